# SPDX-License-Identifier: BSD-3-Clause
"""The live view of a trial on a terminal: rates, losses, and the latencies of the last interval
as percentiles and as bars, one for each power of two."""

import contextlib
import curses
import os
import sys
from collections import Counter
from typing import Any

from mr_bench import units
from mr_bench.show import PERCENTILES, left, on_wire, time_text

BAR_CHARS = 48
REDRAW_NS = 500_000_000


class Screen:
    """It takes the terminal, until close(). Raises curses.error: standard output is no terminal
    that curses knows, or we are not in front, and the shell would stop us."""

    def __init__(self, title: str, mean_bytes: float, duration_ns: int) -> None:
        self.title, self.mean_bytes, self.duration_ns = title, mean_bytes, duration_ns
        self.then: dict[str, Any] = {"t": 0.0}
        if not sys.stdout.isatty() or not _is_in_front():
            raise curses.error("not a terminal")
        self.window = curses.initscr()
        curses.cbreak()
        curses.noecho()
        with contextlib.suppress(curses.error):  # not every terminal can
            curses.curs_set(0)
        self.window.nodelay(True)

    def close(self) -> None:
        """Restore the terminal."""
        curses.endwin()

    def _counts(self, now: dict[str, Any], side: str, key: str) -> tuple[int, float]:
        """All so far, and those of the interval per second."""
        n = now[side][key]
        return n, (n - self.then.get(side, {}).get(key, 0)) / (now["t"] - self.then["t"])

    def _rate(self, name: str, n: int, pps: float) -> str:
        return (
            f"{name:10} {units.text(pps, 'pps'):>15} {on_wire(pps, self.mean_bytes):>17}  {n:20}\n"
        )

    def _text(self, now: dict[str, Any]) -> str:
        head = left(self.duration_ns, now["t"])
        text = f"mr-bench {self.title}, {now['t']:.0f} s{head and f', {head}'}; q ends\n\n"
        for name, side, key in (
            ("sent", "tx", "sent"),
            ("unsent", "tx", "unsent"),
            ("received", "rx", "unique"),
            ("twice", "rx", "duplicates"),
            ("disordered", "rx", "reordered"),
            ("foreign", "rx", "foreign"),
        ):
            if side not in now:
                continue
            n, pps = self._counts(now, side, key)
            if key in ("sent", "unique"):
                text += self._rate(name, n, pps)
            else:
                text += f"{name:10} {pps:12.0f}/s  {'':12}       {n:20}\n"
        times = now.get("latency")
        if times:
            points = "".join(
                f"  {name} {time_text(times[key])}" for name, key in PERCENTILES.items()
            )
            text += f"\nlatency in this interval:{points}  max {time_text(times['max'])}\n"
            text += _bars(now["histogram"])
        return text

    def show(self, now: dict[str, Any]) -> bool:
        """The counters so far. False: q was typed."""
        self.window.erase()
        with contextlib.suppress(curses.error):  # more than it has room for
            self.window.addstr(0, 0, self._text(now))
        self.window.redrawwin()  # a line of log may have gone over it
        self.window.refresh()
        self.then = now
        return self.window.getch() not in (ord("q"), ord("Q"))


def _is_in_front() -> bool:
    """Whether we are in the foreground, or the terminal has no jobs."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return True


def _bars(histogram: list[list[int]]) -> str:
    counts: Counter[int] = Counter()
    for low, _, n in histogram:
        counts[max(low, 1).bit_length() - 1] += n
    most, text = max(counts.values()), ""
    for bar in range(min(counts), max(counts) + 1):
        n = -(-counts[bar] * BAR_CHARS // most)
        text += f"{time_text(1 << bar):>12} {'#' * n:{BAR_CHARS}} {counts[bar]}\n"
    return text
