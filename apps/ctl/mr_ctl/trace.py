# SPDX-License-Identifier: BSD-3-Clause
"""mrctl trace: the path of each frame, joined from the records of its buffer."""

import sys
import time
from collections.abc import Callable

from mr_ctl import packet
from mr_ctl.capture import Ended, Missed, catch_signals, clock
from mr_ctl.client import Connection, Object
from mr_support.text import escape, print_error

# After a frame was sent: flooding may send it again.
SETTLED_S = 0.3
# Without an end: longer than the wait for a neighbour, for fragments or (6 s) for a SYN.
WAIT_S = 8
Path = list[Object]


def end_of(path: Path) -> str:
    """What became of a frame: "sent", "dropped", or "unknown"."""
    return {"tx": "sent", "drop": "dropped"}.get(path[-1]["event"], "unknown")


def rewrite(path: Path, record: Object) -> str:
    return packet.changes(bytes.fromhex(path[0]["data"]), bytes.fromhex(record["data"]))


def as_object(number: int, path: Path) -> Object:
    """The object of --json."""
    first, *rest = path
    steps = []
    for record in rest:
        step = {key: value for key, value in record.items() if key not in ("frame", "data")}
        if record["event"] == "tx":
            step["rewrite"] = rewrite(path, record)
        steps.append(step)
    keys = {key: value for key, value in first.items() if key not in ("frame", "event")}
    return {"frame": number, **keys, "steps": steps, "end": end_of(path)}


def print_path(number: int, path: Path) -> None:
    first = path[0]
    summary = packet.summary(bytes.fromhex(first["data"]))
    print(f"{number}: {clock(first['ns'])} {summary}, {first['bytes']} bytes")
    print(
        f"   rx       {escape(first['port'])} queue {first['queue']}, worker {first['worker']}, "
        f"burst {first['burst']}"
    )
    worker = first["worker"]
    for record in path:
        if record["worker"] != worker:
            worker = record["worker"]
            print(f"   hand-off to worker {worker}")
        if "note" in record:
            print(f"   {escape(record['note'])}")
        if record["event"] == "tx":
            if changed := rewrite(path, record):
                print(f"   rewrite  {changed}")
            print(f"   tx       {escape(record['port'])} queue {record['queue']}")
        elif record["event"] == "drop":
            print(f"   drop     {record['reason']}")
    if end_of(path) == "unknown":
        print("   no end   it waits, was copied, or its record was missed")


class Tracer:
    """Paths that are not complete yet, by their buffers."""

    def __init__(self, show: Callable[[int, Path], None]) -> None:
        self.show = show
        self.open: dict[int, tuple[Path, float]] = {}
        self.n_shown = 0
        self.n_ends: dict[str, int] = {}
        self.looked_s = 0.0

    def take(self, record: Object) -> None:
        """Add the next record, in order of time."""
        buffer = record["frame"]
        if record["event"] == "rx":
            if buffer in self.open:
                self._close(buffer)
            self.open[buffer] = ([record], time.monotonic())
        elif buffer in self.open:
            path, _ = self.open[buffer]
            path.append(record)
            self.open[buffer] = (path, time.monotonic())

    def look(self) -> None:
        """Show complete paths. Call now and then."""
        now_s = time.monotonic()
        if now_s - self.looked_s < 0.1:
            return
        self.looked_s = now_s
        for buffer, (path, since_s) in list(self.open.items()):
            limit_s = WAIT_S if end_of(path) == "unknown" else SETTLED_S
            if now_s - since_s >= limit_s:
                self._close(buffer)

    def close(self) -> None:
        """Show the rest."""
        for buffer in list(self.open):
            self._close(buffer)

    def _close(self, buffer: int) -> None:
        path, _ = self.open.pop(buffer)
        self.n_shown += 1
        self.n_ends[end_of(path)] = self.n_ends.get(end_of(path), 0) + 1
        self.show(self.n_shown, path)

    def text(self) -> str:
        ends = ", ".join(f"{name} {n}" for name, n in self.n_ends.items())
        return f"{self.n_shown} frames traced" + (f": {ends}" if ends else "")


def run(
    connection: Connection, wanted: Object, show: Callable[[int, Path], None], n_frames: int
) -> int:
    """Trace n_frames, or until a signal (0); return the exit status."""
    missed = Missed()
    tracer = Tracer(show)
    catch_signals()
    try:
        for line in connection.stream("trace", **wanted):
            if "event" in line:
                tracer.take(line)
            else:
                missed.take(line)
            tracer.look()
            if not line:
                sys.stdout.flush()
            if n_frames and tracer.n_shown >= n_frames:
                break
    except Ended:
        pass
    tracer.close()
    print_error(f"mrctl: {tracer.text()}; {missed.text()}")
    return 0
