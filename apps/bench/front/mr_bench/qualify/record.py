# SPDX-License-Identifier: BSD-3-Clause
"""The document of a run (mr-bench-qualify.schema.json), which is written after each step and read
by the next run with --resume."""

import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from mr_bench.document import MAX_BYTES
from mr_bench.qualify.ports import Refused
from mr_bench.result import json_text
from mr_bench.runner import Journal
from mr_support import output

SCHEMA, VERSION = "mr-bench-qualify", 1
POINTS = (0, 50, 90, 99, 99.9, 100)  # of latency, for the chart
OFFLOADS = (  # enum mr_offload, by bit
    *("tx checksum", "rx checksum", "TSO", "TSO IPv6", "USO", "RSS hash", "VLAN insertion"),
    *("VLAN removal", "rx time", "launch time", "LRO", "tx time"),
)
RUN_MEMBERS = "kind", "date", "command", "complete", "why_incomplete", "cores", "line_bps", "clock"
ROW_MEMBERS = "frame_bytes", "goal", "value", "unit", "low", "high", "is_limited_by_tester", "note"
TX_MEMBERS, RX_MEMBERS = ("due", "sent", "unsent", "pps"), ("unique", "lost", "pps")
TRIAL_MEMBERS = "frame_bytes", "asked_pps", "start_s", "duration_s", "clock_error_ns"


def _some(value: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: value[key] for key in keys if key in value}


def _slim_trial(trial: dict[str, Any], has_latency: bool) -> dict[str, Any]:
    points, latency = [], trial["latency"] if has_latency else None
    if latency:
        keys = zip(POINTS, ("min", "p50", "p90", "p99", "p999", "max"), strict=True)
        points = [[p, latency[key]] for p, key in keys]
    return _some(trial, TRIAL_MEMBERS) | {
        "tx": _some(trial["tx"], TX_MEMBERS),
        "rx": _some(trial["rx"], RX_MEMBERS),
        "latency": latency,
        "lateness": None,
        "percentiles": {"latency": points},
        "histogram": {"latency": []},
    }


def slim(document: dict[str, Any]) -> dict[str, Any]:
    """Of a document of mr-bench, what its page shows. Rows of a search need no trials, and
    latencies are those of trials."""
    rows = [row for row in document["rows"] if not row["goal"].startswith("latency")]
    numbers = [row["trials"][-1] for row in document["rows"] if row["trials"]]
    if document["kind"] == "throughput":
        numbers = []
    kept = {number: i for i, number in enumerate(dict.fromkeys(numbers))}
    trials = document["trials"]
    # Addresses of NICs are nobody else's business.
    command = re.sub(r"--dst-mac \S+ ", "", document["command"])
    return _some(document, RUN_MEMBERS) | {
        "command": command,
        "rows": [
            _some(row, ROW_MEMBERS) | {"trials": [kept[n] for n in row["trials"][-1:] if n in kept]}
            for row in rows
        ],
        "trials": [_slim_trial(trials[n], document["kind"] == "latency") for n in kept],
        "selftest": [],
        "ports": [],
    }


def slim_port(port: dict[str, Any]) -> dict[str, Any]:
    """A port as a driver opened it."""
    names = [name for bit, name in enumerate(OFFLOADS) if port["offloads"] >> bit & 1]
    keys = ("name", "mode", "why", "rx_queues", "tx_queues", "mtu", "link_mbps", "nic")
    return _some(port, keys) | {"offloads": names}


class Record(Journal):
    """A document whose steps are the journal. Logs and whole results are in a folder beside it,
    which one process at a time uses."""

    def __init__(self, path: Path, root: dict[str, Any], is_resumed: bool) -> None:
        super().__init__(path.with_suffix(".logs"))
        self.document, self.root = path, root
        self.whys: dict[str, str] = {}  # what went wrong with a step or device
        self.on_step: Callable[[str], None] | None = None
        self.begun_s = time.monotonic()
        if is_resumed:
            self._take(self._read())

    def _read(self) -> dict[str, Any]:
        """Raises Refused."""
        try:
            with self.document.open("rb") as file:
                root = json.loads(file.read(MAX_BYTES))
            if root["schema"] != SCHEMA or root["v"] != VERSION:
                raise ValueError
            return dict(root)
        except OSError as error:
            raise Refused(
                f"--resume: {self.document}: {error.strerror}; start without it"
            ) from None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Refused(
                f"--resume: {self.document} is not a document of this mr-bench qualify; start "
                "without it"
            ) from None

    def _take(self, root: dict[str, Any]) -> None:
        """The steps and results of a run before this one, on the same ports."""
        names = [[port["name"] for port in one["ports"]] for one in (root, self.root)]
        if names[0] != names[1]:
            raise Refused(
                f"--resume: {self.document} is of {' and '.join(names[0])}; start without it"
            )
        for key in ("drivers", "runs", "steps"):
            self.root[key] = root[key]

    def step(self, name: str) -> dict[str, Any] | None:
        """A step that was run, whatever became of it."""
        return next((step for step in self.root["steps"] if step["name"] == name), None)

    @staticmethod
    def _key(key: dict[str, str]) -> str:
        return hashlib.sha256(json.dumps(key).encode()).hexdigest()[:16]

    def has(self, name: str, key: dict[str, str]) -> bool:
        """Whether the step was done in the same way."""
        step = self.step(name)
        return step is not None and step["why"] == "" and step["key"] == self._key(key)

    def note(self, name: str, key: dict[str, str], status: int) -> None:
        """Record the end of a step, and write the document."""
        why = self.whys.pop(name, "") or (f"exit status {status}" if status else "")
        now_s = time.monotonic()
        seconds, self.begun_s = now_s - self.begun_s, now_s
        self.put("steps", {"name": name, "why": why, "seconds": seconds, "key": self._key(key)})
        if self.on_step:
            self.on_step(name)
        self.write()

    def put(self, array: str, entry: dict[str, Any]) -> None:
        """Add an entry, or replace that of the same name."""
        entries = self.root[array]
        old = next((i for i, one in enumerate(entries) if one["name"] == entry["name"]), None)
        if old is None:
            entries.append(entry)
        else:
            entries[old] = entry

    def result(self, name: str) -> dict[str, Any]:
        """What a step wrote; {}: nothing. Also if it failed."""
        try:
            return dict(json.loads(self.text(name)))
        except (TypeError, ValueError):
            return {}

    def text(self, name: str) -> str:
        """The same, as it stands there."""
        for end in (".json", ".json.failed"):
            with suppress(OSError):
                return self.file(name, end).read_text("utf-8", "backslashreplace")
        return ""

    def last_line(self, name: str) -> str:
        """Of its log, without the program's name; "": none."""
        try:
            lines = self.file(name, ".log").read_text("utf-8", "backslashreplace").splitlines()
        except OSError:
            return ""
        line = next((line for line in reversed(lines) if line.strip()), "")
        return re.sub("^[a-z0-9-]+: ", "", line.rpartition("\r")[2].removeprefix("\033[K"))[:400]

    def write(self) -> None:
        """Raises OSError."""
        # People read it, and send it to others: six digits are enough.
        output.write(str(self.document), json_text(self.root, 6))

    def clear(self) -> None:
        """Remove the logs of a run without a fault."""
        shutil.rmtree(self.folder, ignore_errors=True)
