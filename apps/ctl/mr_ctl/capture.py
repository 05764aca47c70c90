# SPDX-License-Identifier: BSD-3-Clause
"""mrctl capture: write frames of a running program to a pcapng file, or print them."""

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from mr_ctl import packet, pcapng
from mr_ctl.client import Connection, Object
from mr_support.text import escape, print_error

ENDING = (signal.SIGINT, signal.SIGTERM)


class Ended(Exception):
    """A signal to end the command."""


def _end(*_: Any) -> None:
    raise Ended


def catch_signals() -> None:
    """SIGINT and SIGTERM raise Ended from now on."""
    for number in ENDING:
        signal.signal(number, _end)


class Missed:
    """Frames that match, or may match, but were not recorded, by reason."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.n_new = 0  # since the last packet

    def take(self, line: Object) -> bool:
        """False: the line is about something else. The first one means that it has begun."""
        if "missed" not in line:
            return False
        if not self.counts:
            print_error("mrctl: capturing; Ctrl-C ends it")
        n_before = sum(self.counts.values())
        self.counts = line["missed"]
        self.n_new += sum(self.counts.values()) - n_before
        return True

    def text(self) -> str:
        names = ", ".join(f"{name} {n}" for name, n in self.counts.items() if n)
        return f"missed: {names}" if names else "missed none"


def _add(file: pcapng.File, line: Object, n_missed: int) -> None:
    about = [f"worker {line['worker']}, queue {line['queue']}, burst {line['burst']}"]
    if "reason" in line:
        about.append(f"drop: {line['reason']}")
    if "note" in line:
        about.append(line["note"])
    file.write(
        file.interface(line["port"]),
        line["ns"],
        bytes.fromhex(line["data"]),
        n_bytes=line["bytes"],
        direction=pcapng.OUTBOUND if line["event"] == "tx" else pcapng.INBOUND,
        queue=line["queue"],
        n_missed=n_missed,
        comment="; ".join(about),
    )


def clock(ns: int) -> str:
    """Local time of day."""
    return f"{time.strftime('%H:%M:%S', time.localtime(ns // 10**9))}.{ns % 10**9:09}"


def print_line(line: Object) -> None:
    what = f"{line['event']} {line['reason']}" if "reason" in line else line["event"]
    print(
        f"{clock(line['ns'])} {escape(line['port'])} queue {line['queue']} {what}: "
        f"{packet.summary(bytes.fromhex(line['data']))}, {line['bytes']} bytes"
        + (f" ({escape(line['note'])})" if "note" in line else "")
    )


def _to_file(lines: Iterator[Object], path: str, missed: Missed) -> int:
    file = None
    n = 0
    with contextlib.suppress(Ended):
        for line in lines:
            if file is None and line:
                # Not earlier: a refusal leaves an existing file alone.
                file = pcapng.File(path, "mrctl")
            if file is None:
                continue
            if not line:
                file.flush()
            elif not missed.take(line) and "event" in line:
                _add(file, line, missed.n_new)
                missed.n_new = 0
                n += 1
    if file is not None:
        file.flush()
    return n


def _to_people(lines: Iterator[Object], print_it: Callable[[Object], None], missed: Missed) -> int:
    n = 0
    with contextlib.suppress(Ended):
        for line in lines:
            if not line:
                sys.stdout.flush()
            elif not missed.take(line) and "event" in line:
                print_it(line)
                n += 1
    return n


def run(
    connection: Connection,
    wanted: Object,
    path: str | None,
    print_it: Callable[[Object], None] | None,
) -> int:
    """Capture until the program or a signal ends it; return the exit status."""
    missed = Missed()
    catch_signals()
    lines = connection.stream("capture", **wanted)
    n = (
        _to_file(lines, path, missed)
        if path is not None
        else _to_people(lines, print_it or print_line, missed)
    )
    print_error(f"mrctl: {n} frames captured, {missed.text()}")
    return 0
