# SPDX-License-Identifier: BSD-3-Clause
"""Limits of time for hosts that take part of the CPU time away; and programs
that end with the test that started them.

run_tests.py measures that part once, and passes a factor to the tests in
MR_TIME_FACTOR. A test multiplies each limit by it: limit() here,
test_limit_ms() in limit.h.
"""
import ctypes
import multiprocessing
import os
import signal
import subprocess
import time
from typing import Any

SPIN_S = 1.0
# Between two looks at the clock; a tick of the kernel takes less.
GAP_S = 10e-6
# The host's load changes over minutes: its share may double later.
CAUTION = 4
MAX_FACTOR = 40.0
PR_SET_PDEATHSIG = 1  # linux/prctl.h

libc = ctypes.CDLL(None)


def end_with_parent(by: int = signal.SIGKILL) -> None:
    """preexec_fn of a program under test: killed when we end, however we do.

    At its time limit meson kills a test, which cannot clean up then.
    """
    libc.prctl(PR_SET_PDEATHSIG, by)


def popen(command: list[str], **more: Any) -> subprocess.Popen[Any]:
    return subprocess.Popen(  # pylint: disable=consider-using-with
        command, preexec_fn=end_with_parent, **more)


def limit(seconds: float) -> float:
    """A timeout, for a wait that ends sooner if all is well."""
    return seconds * float(os.environ.get("MR_TIME_FACTOR", "1"))


def lost_share(core: int) -> float:
    """The share of a core's time that a spinning program does not get."""
    os.sched_setaffinity(0, [core])
    begin = last = time.perf_counter()
    lost = 0.0
    while last - begin < SPIN_S:
        now = time.perf_counter()
        if now - last > GAP_S:
            lost += now - last
        last = now
    return lost / (last - begin)


def measure() -> tuple[float, float]:
    """The share that the host and other programs take; the factor."""
    cores = sorted(os.sched_getaffinity(0))
    with multiprocessing.Pool(len(cores)) as pool:
        share = sum(pool.map(lost_share, cores, 1)) / len(cores)
    return share, min(MAX_FACTOR, 1 + CAUTION * share / max(1 - share, 0.01))


if __name__ == "__main__":
    print(*measure())
