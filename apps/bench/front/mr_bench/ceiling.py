# SPDX-License-Identifier: BSD-3-Clause
"""The tester's own ceiling: a rate, or a selftest document of an equivalent tester."""

import json
from typing import Any

from mr_bench import rates
from mr_bench.search_trials import SearchError
from mr_bench.values import UsageError

CURE = "mr-bench selftest with these ports and options measures ours"


def _is_alike(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Equivalent ports: the same access to the NIC, driver and queues."""

    def traits(port: dict[str, Any]) -> tuple[Any, ...]:
        return (
            port.get("mode", ""),
            (port.get("nic") or {}).get("driver", ""),
            port.get("rx_queues"),
            port.get("tx_queues"),
        )

    return traits(a) == traits(b)


def _check_tester(path: str, theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    """A document of another machine, port or number of threads does not apply."""
    cpu = theirs.get("machine", {}).get("cpu", "")
    workers = theirs.get("config", {}).get("workers")
    if cpu != ours["machine"].get("cpu", ""):
        raise SearchError(
            f"--ceiling {path:.60} is from another machine, with a '{cpu:.40}'; {CURE}"
        )
    if workers != ours["config"]["workers"]:
        raise SearchError(
            f"--ceiling {path:.60} is from other --workers ({workers}; 0: the default); {CURE}"
        )
    for port in ours["ports"]:
        if not any(_is_alike(other, port) for other in theirs.get("ports", [])):
            raise SearchError(
                f"--ceiling {path:.60} has no port of the mode '{port['mode']}', "
                f"driver and queues of {port['name']:.40}; {CURE}"
            )


def read_ceiling(text: str, ours: dict[str, Any], frame_bytes: int, mean_bytes: float) -> float:
    """The ceiling for frames of a length, or for a mix (0) of that mean. ours: the document."""
    try:
        # A link's speed does not tell the ceiling of a tester.
        pps = rates.read("ceiling", text).pps(mean_bytes, 0)
    except UsageError:
        pass  # the path of a document, then
    else:
        if pps > 0:
            return pps
        raise SearchError(
            f"--ceiling {text}: give frames or bits per second, or a document of selftest"
        )
    try:
        with open(text, encoding="utf-8") as file:
            theirs = json.load(file)
        entries = [
            entry
            for entry in theirs.get("selftest", [])
            if entry["frame_bytes"] == frame_bytes
            and
            # Mixes with different mean sizes are different mixes.
            (frame_bytes or abs(entry["mean_bytes"] - mean_bytes) < 0.01)
        ]
        ceiling = float(entries[-1]["ceiling_pps"]) if entries else 0.0
        # A document without any ceiling is not from selftest.
        if ceiling > 0:
            _check_tester(text, theirs, ours)
            return ceiling
    except OSError as error:
        raise SearchError(
            f"--ceiling {text}: neither a rate nor a document: {error.strerror}"
        ) from None
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise SearchError(f"--ceiling {text}: neither a rate nor a document: {error}") from None
    raise SearchError(
        f"--ceiling {text}: it has no ceiling for frames of {mean_bytes:g} bytes"
        f"{'' if frame_bytes else ' on average'} without FCS; mr-bench selftest "
        "measures them"
    )
