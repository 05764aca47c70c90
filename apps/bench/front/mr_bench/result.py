# SPDX-License-Identifier: BSD-3-Clause
"""The document of a command (mr-bench-net.schema.json), and its files: JSON, CSV, and HdrHistogram
logs. The engine supplies results and ports."""

import base64
import csv
import errno
import io
import json
import os
import shlex
import stat
import struct
import zlib
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from mr_bench import machine
from mr_bench.percentiles import SUB_BITS, VALUE_BITS, Buckets, bucket_of
from mr_support import output
from mr_support.text import print_error, utf8

ARRIVALS = ["received", "unique", "lost", "duplicates", "reordered", "too_old", "foreign"]
TIMES = ["min", "mean", "p50", "p90", "p99", "p999", "p9999", "max"]
COUNTS = {
    "tx": ["due", "sent", "unsent", "bytes", "pps"],
    "rx": [*ARRIVALS, "bytes", "pps"],
    "lateness": TIMES,
    "latency": TIMES,
}
ROW = ["frame_bytes", "goal", "value", "unit", "low", "high", "is_limited_by_tester", "note"]
DIGITS = 3  # of histograms
# After HdrHistogram's AbstractHistogram.encodeIntoByteBuffer(), ZigZagEncoding, HistogramLogWriter
# 1.3 and outputPercentileDistribution(). 0x10: words of 8 bytes, zigzag LEB128.
COOKIE, COOKIE_COMPRESSED = 0x1C849303 | 0x10, 0x1C849304 | 0x10
MAX_WORD_BYTES = 9


def check(path: str) -> None:
    """Raises OSError if it cannot be written, as far as that is known before: for what takes hours
    to measure."""
    if path == "-":
        return
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    # A file is written beside its name, so the folder is what matters.
    where = os.path.dirname(path) or "." if stat.S_ISREG(mode) else path
    os.stat(where)
    if not os.access(where, os.W_OK | os.X_OK if stat.S_ISREG(mode) else os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))


def complain(text: str) -> None:
    """Print a line on standard error."""
    print_error(f"mr-bench: {text}")


def cannot_write(path: str, error: OSError) -> str:
    """The message."""
    where = "standard output" if path == "-" else path
    return f"cannot write {where:.180}: {error.strerror}"


def _rounded(value: Any, digits: int = 10) -> Any:
    """Ten digits are more than any figure has."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, dict):
        return {key: _rounded(one, digits) for key, one in value.items()}
    return [_rounded(one, digits) for one in value] if isinstance(value, list) else value


def one_line(value: Any) -> str:
    """JSON."""
    return json.dumps(_rounded(value), ensure_ascii=False, separators=(",", ":"))


def json_text(root: dict[str, Any], digits: int = 10) -> str:
    """Entries of arrays, which are many, are a line each."""
    root = _rounded(root, digits)

    def member(value: Any) -> str:
        if isinstance(value, list) and value:
            return "[\n  " + ",\n  ".join(map(one_line, value)) + "\n ]"
        return json.dumps(value, ensure_ascii=False, indent=2)

    return "{\n" + ",\n".join(f' "{key}": {member(root[key])}' for key in root) + "\n}\n"


def _csv_rows(root: dict[str, Any]) -> Iterator[list[Any]]:
    yield ["kind", "label", "date", *ROW]
    for row in root["rows"]:
        texts = {key: f"{row[key]:.10g}" for key in ("value", "low", "high")}
        texts["is_limited_by_tester"] = f"{row['is_limited_by_tester']:d}"
        yield [root["kind"], root["label"], root["date"]] + [(row | texts)[key] for key in ROW]


def _csv_trials(root: dict[str, Any]) -> Iterator[list[Any]]:
    of_parts = [(part, key) for part, keys in COUNTS.items() for key in keys]
    numbers = ["frame_bytes", "asked_pps", "start_s", "duration_s"]
    yield numbers + [f"{part}_{key}" for part, key in of_parts]
    for trial in root["trials"]:
        yield (
            [f"{trial[key]:.10g}" for key in numbers]
            # Bytes of an hour are exact.
            + [f"{trial[part][key]:.15g}" if trial[part] else "" for part, key in of_parts]
        )


def csv_text(root: dict[str, Any]) -> str:
    """A line per row, or, where there are none, per trial."""
    to = io.StringIO()
    csv.writer(to, lineterminator="\n").writerows(
        _csv_rows(root) if root["rows"] else _csv_trials(root)
    )
    return to.getvalue()


def _word(value: int) -> bytes:
    """Seven bits a byte, the sign lowest; a ninth byte has all of its eight."""
    rest = value << 1 if value >= 0 else -value * 2 - 1
    text = bytearray()
    while len(text) < MAX_WORD_BYTES - 1 and rest > 127:
        text.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*text, rest])


def hdr_payload(buckets: Buckets) -> str:
    """The V2 encoding, compressed, in base64."""
    words, end = [], 0
    for i, n in buckets:
        if i > end:
            words.append(_word(end - i))  # a run of zeros as its length below 0
        words.append(_word(n))
        end = i + 1
    counts = b"".join(words)
    # The array is not rotated; the lowest value that is told from 0; the highest; the ratio.
    head = struct.pack(">IIIIQQd", COOKIE, len(counts), 0, DIGITS, 1, (1 << VALUE_BITS) - 1, 1.0)
    packed = zlib.compress(head + counts, zlib.Z_BEST_COMPRESSION)
    return base64.b64encode(struct.pack(">II", COOKIE_COMPRESSED, len(packed)) + packed).decode()


def hdr_percentiles(trial: dict[str, Any], buckets: Buckets) -> str:
    """HdrHistogram's table, in us: a line per step. Steps halve the rest five times per
    doubling."""
    latency = trial["latency"]
    lines = [f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}", ""]
    n_below, left = 0, iter([*buckets, [1 << VALUE_BITS, 0]])
    i, n = next(left)
    for p, ns in trial["percentiles"]["latency"]:
        while i <= bucket_of(ns):
            n_below += n
            i, n = next(left)
        rest = f" {100 / (100 - p):14.2f}" if p < 100 else ""
        lines.append(f"{ns / 1e3:12.3f} {p / 100:14.12f} {n_below:10}{rest}")
    lines += [
        (
            f"#[Mean    = {latency['mean'] / 1e3:12.3f}, "
            f"StdDeviation   = {latency['stddev'] / 1e3:12.3f}]"
        ),
        f"#[Max     = {latency['max'] / 1e3:12.3f}, Total count    = {latency['n']:12}]",
        f"#[Buckets = {VALUE_BITS - SUB_BITS:12}, SubBuckets     = {2 << SUB_BITS:12}]",
    ]
    return "\n".join(lines) + "\n"


def begin(kind: str, label: str, words: list[str], built: dict[str, str]) -> dict[str, Any]:
    """Begin a document with the current state of the machine. words: as typed; built: see
    machine.look()."""
    command = utf8(shlex.join(["mr-bench", *words]))
    found = machine.look(built, command)
    return {
        "schema": "mr-bench-net",
        "v": 1,
        "kind": kind,
        "label": utf8(label),
        "date": found["date"],
        "command": command,
        "millrace": found["millrace"],
        "complete": True,
        "why_incomplete": "",
        "machine": found,
        "ports": [],
        "cores": [],
        "line_bps": 0.0,
        "clock": None,
        "device": "",
        "streams": [],
        "config": {},
        "measured": {},
        "selftest": [],
        "rows": [],
        "trials": [],
    }


def describe(root: dict[str, Any], found: dict[str, Any]) -> None:
    """Add the ports that the engine opened, with their NICs, and its cores."""
    root |= found
    if cores := found.get("cores"):
        root["machine"]["governor"] = machine.governor(cores)
    for port in found.get("ports", []):
        port["nic"] = machine.nic(port["name"].partition(":")[2], root["cores"])


class Result:
    """The document as it grows. A path of files is None where nothing was asked for."""

    def __init__(self, root: dict[str, Any], files: dict[str, str | None]) -> None:
        self.root = root
        self.files = {kind: path for kind, path in files.items() if path}
        self.trials_s = 0.0  # of testing, so far: where the next trial begins
        self.buckets: list[Buckets] = []  # by trial

    def add_trial(self, trial: dict[str, Any], buckets: Buckets) -> int:
        """Add a trial; its number, from 0."""
        trial["start_s"] = self.trials_s
        self.trials_s += trial["whole_s"]
        self.root["trials"].append(trial)
        self.buckets.append(buckets)
        return len(self.buckets) - 1

    def add(self, why_incomplete: str = "", **found: Any) -> None:
        """Add results: rows, selftest, config, measured."""
        for key, value in found.items():
            if isinstance(value, dict):
                self.root[key].update(value)
            else:
                self.root[key] += value
        if why_incomplete:
            self.root |= {"complete": False, "why_incomplete": why_incomplete}

    def hdr_log(self) -> str:
        """A line per trial that has latencies; seconds since the epoch, and of time."""
        date = self.root["date"]
        start_s = datetime.fromisoformat(date).timestamp()
        lines = [
            "#[Histogram log format version 1.3]",
            f"#[StartTime: {start_s:.3f} (seconds since epoch), {date}]",
            '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
        ]
        for i, (trial, buckets) in enumerate(zip(self.root["trials"], self.buckets, strict=True)):
            if trial["latency"]:
                lines.append(
                    f"Tag={i}-{trial['frame_bytes']}B-{trial['tx']['pps']:.0f}pps,"
                    f"{start_s + trial['start_s']:.3f},{trial['duration_s']:.3f},"
                    f"{trial['latency']['max'] / 1e6:.3f},{hdr_payload(buckets)}"
                )
        return "\n".join(lines) + "\n"

    def _texts(self) -> Iterator[tuple[str, str]]:
        """Paths, and what is to stand there."""
        files = self.files
        if "out" in files:
            yield files["out"], json_text(self.root)
        if "csv" in files:
            yield files["csv"], csv_text(self.root)
        if "hdr" in files:
            yield files["hdr"], self.hdr_log()
            for i, (trial, buckets) in enumerate(
                zip(self.root["trials"], self.buckets, strict=True)
            ):
                if trial["latency"]:
                    yield f"{files['hdr']}.{i}.hgrm", hdr_percentiles(trial, buckets)

    def write(self, is_json: bool = False, is_one_line: bool = False) -> int:
        """The files that were asked for, and on stdout, in one line or not. The exit status."""
        if is_json or is_one_line:
            output.say(one_line(self.root) + "\n" if is_one_line else json_text(self.root), end="")
        for path, text in self._texts():
            try:
                output.write(path, text)
            except OSError as error:
                complain(cannot_write(path, error))
                return 1
        output.say("", end="", is_last=True)
        return 0
