# SPDX-License-Identifier: BSD-3-Clause
"""What a frame costs the device under test: CPU time and, where there is a PMU, cycles."""

import ctypes
import os
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from mr_bench.runner import LIBC

PERIOD_S = 0.05
# <linux/perf_event.h>: struct perf_event_attr of the first version; the cycles of a thread.
PERF_CALL = {"x86_64": 298, "aarch64": 241}
PERF_ATTR, PERF_SIZE = "IIQQQQQIIQ", 64


class Sample(NamedTuple):
    """So far."""

    at_s: float
    cpu_ns: int
    cycles: int


def _threads(group: int) -> set[int]:
    """Of all processes of a process group."""
    found: set[int] = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):  # it has ended
            if int(path.read_text().rpartition(")")[2].split()[2]) == group:
                found |= {int(name) for name in os.listdir(path.parent / "task")}
    return found


def _open_cycles(thread: int) -> int:
    """A counter of its cycles; -1: none."""
    number = PERF_CALL.get(os.uname().machine)
    attr = struct.pack(PERF_ATTR, 0, PERF_SIZE, *[0] * 8)
    if number is None:
        return -1
    return int(LIBC.syscall(number, ctypes.c_char_p(attr), thread, -1, -1, 8))  # CLOEXEC


class Meter:
    """Looks at a process group now and then, when tick() is called."""

    def __init__(self, group: int) -> None:
        self.threads = _threads(group)
        self.counters = [fd for thread in self.threads if (fd := _open_cycles(thread)) >= 0]
        self.samples: list[Sample] = []

    def tick(self) -> None:
        """Take a sample if it is time."""
        now_s = time.monotonic()
        if self.samples and now_s - self.samples[-1].at_s < PERIOD_S:
            return
        cpu_ns = 0
        for thread in self.threads:
            with suppress(OSError):
                cpu_ns += int(Path(f"/proc/{thread}/schedstat").read_text().split()[0])
        cycles = sum(int.from_bytes(os.read(fd, 8), "little") for fd in self.counters)
        self.samples.append(Sample(now_s, cpu_ns, cycles))

    def close(self) -> None:
        """Close the counters."""
        for fd in self.counters:
            os.close(fd)

    def busiest(self, seconds: float) -> tuple[float, float]:
        """CPU time (ns) and cycles per second in the busiest period of this length; 0: unknown."""
        best = 0.0, 0.0
        for i, first in enumerate(self.samples):
            last = next((s for s in self.samples[i:] if s.at_s - first.at_s >= seconds), None)
            if last is not None:
                s = last.at_s - first.at_s
                best = max(
                    best, ((last.cpu_ns - first.cpu_ns) / s, (last.cycles - first.cycles) / s)
                )
        return best
