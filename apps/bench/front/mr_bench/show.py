# SPDX-License-Identifier: BSD-3-Clause
"""What tx, rx and loop print: a line each second, and a summary at the end."""

import select
import sys
from collections.abc import Iterator
from typing import Any

from mr_bench import units
from mr_bench.explain import tail_text
from mr_bench.rates import FCS_BYTES, WIRE_BYTES
from mr_support import output

MAX_STREAM_LINES = 16
# As they are shown, and in a document.
PERCENTILES = {"p50": "p50", "p90": "p90", "p99": "p99", "p99.9": "p999", "p99.99": "p9999"}


def time_text(ns: float) -> str:
    """ "12.30 us" of 12300."""
    if ns < 1e3:
        return f"{ns:.0f} ns"
    if ns < 1e6:
        return f"{ns / 1e3:.2f} us"
    return f"{ns / 1e6:.2f} ms" if ns < 1e9 else f"{ns / 1e9:.3f} s"


def on_wire(pps: float, mean_bytes: float) -> str:
    """Bits per second, with preamble, gap and FCS."""
    return units.text(pps * (mean_bytes + WIRE_BYTES) * 8, "bit/s")


def _rate(pps: float) -> str:
    return units.text(pps, "frames/s")


def left(duration_ns: int, seconds: float) -> str:
    """ "3 s left"; empty: no end is known."""
    left_s = duration_ns / 1e9 - seconds
    return f"{left_s:.0f} s left" if left_s > 0 else ""


def can_write() -> bool:
    """Whether standard output takes a line without waiting for its reader: a pipe has room for
    a page, and no line is longer."""
    return bool(select.select([], [sys.stdout], [], 0)[1])


class Lines:
    """A line each second."""

    def __init__(self, mean_bytes: float, duration_ns: int) -> None:
        self.mean_bytes, self.duration_ns = mean_bytes, duration_ns
        self.then: dict[str, Any] = {"t": 0.0}
        self.n_runs = 0

    def _moved(self, now: dict[str, Any], side: str, key: str) -> float:
        return float(now[side][key] - self.then.get(side, {}).get(key, 0))

    def show(self, now: dict[str, Any]) -> bool:
        """The counters so far. False: nobody reads them any more."""
        if not can_write():
            return True
        seconds = now["t"] - self.then["t"]
        rx, n_runs = now.get("rx"), now.get("rx", {}).get("runs", 0)
        if n_runs > max(self.n_runs, 1):
            output.say(f"{now['t']:5.0f} s  another run of tx has begun: number {n_runs}")
        self.n_runs = n_runs
        parts = [f"{now['t']:5.0f} s"]
        if "tx" in now:
            pps = self._moved(now, "tx", "sent") / seconds
            parts.append(f"tx {_rate(pps)} {on_wire(pps, self.mean_bytes)}")
            if unsent := self._moved(now, "tx", "unsent"):
                parts.append(f"unsent {unsent:.0f}")
        if rx:
            parts.append(f"rx {_rate(self._moved(now, 'rx', 'unique') / seconds)}")
            if "tx" not in now:
                parts.append(f"lost {rx['lost']}")
            if foreign := self._moved(now, "rx", "foreign"):
                parts.append(f"foreign {foreign:.0f}")
        if text := left(self.duration_ns, now["t"]):
            parts.append(text)
        output.say("  ".join(parts), is_last=True)
        self.then = now
        return not output.is_lost()


def _share(n: int, of: int) -> str:
    return f"{n} ({100 * n / of if of else 0:.4g} %)"


def _counts(of: dict[str, Any], lost: str) -> str:
    return f"lost {lost}, twice {of['duplicates']}, out of order {of['reordered']}"


def _times(name: str, times: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    if times:
        points = "  ".join(f"{shown} {time_text(times[key])}" for shown, key in PERCENTILES.items())
        yield name, f"min {time_text(times['min'])}  {points}  max {time_text(times['max'])}"


def _sent(trial: dict[str, Any], mean_bytes: float) -> Iterator[tuple[str, str]]:
    tx, pps = trial["tx"], trial["tx"]["pps"]
    frames = f"{tx['sent']} frames in {trial['duration_s']:.3f} s: {_rate(pps)}"
    with_fcs = units.text(pps * (mean_bytes + FCS_BYTES) * 8, "bit/s")
    bits = f"{on_wire(pps, mean_bytes)} with preamble, gap and FCS, {with_fcs} with FCS"
    yield "sent", f"{frames}, {bits}"
    if trial["asked_pps"]:
        yield ("asked", f"{_rate(trial['asked_pps'])}; unsent {tx['unsent']} of {tx['due']}")
        yield from _times("late by", trial["lateness"])


def _received(
    trial: dict[str, Any], reply: dict[str, Any], clock: str
) -> Iterator[tuple[str, str]]:
    rx = trial["rx"]
    counts = _counts(rx, _share(rx["lost"], rx["unique"] + rx["lost"]))
    others = f"too old to tell {rx['too_old']}, foreign {rx['foreign']}"
    yield "received", f"{rx['received']}: {_rate(rx['pps'])}; {counts}, {others}"
    if rx["runs"] > 1:
        yield "runs", f"{rx['runs']} of tx, apart below"
    yield from _times("latency", trial["latency"])
    if trial["latency"] and trial["tail"]["rx_away_ns"] > 0:
        yield from (
            ("", line) for line in tail_text(trial["tail"], reply["tail_least_ns"]).splitlines()
        )
    if trial["latency"] or trial["lateness"]:
        yield "clock", f"{clock}, times are within {time_text(trial['clock_error_ns'])}"


def _directions(trial: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for one in trial["directions"]:
        times = one["latency"]
        latency = "  ".join(f"{key} {time_text(ns)}" for key, ns in (times or {}).items())
        way = f"{one['from']} to {one['to']}: sent {one['sent']}, unsent {one['unsent']}"
        counts = _counts(one, _share(one["lost"], one["sent"]))
        behind = f"; latency {latency}" if times else ""
        yield "direction", f"{way}, received {one['received']}, {counts}{behind}"


def _streams(trial: dict[str, Any], texts: list[str]) -> Iterator[tuple[str, str]]:
    streams = trial["streams"] if len(trial["streams"]) > 1 else []
    for i, one in enumerate(streams):
        if i == MAX_STREAM_LINES:
            yield "stream", f"{len(streams) - i} more: --json has them"
            return
        has_run = one["run"] > 0 and trial["rx"]["runs"] > 1
        run = f"of run {one['run']}, " if has_run else ""
        text = f"  {texts[i]}" if i < len(texts) else ""
        sent = f"sent {one['sent']}, received {one['received']}"
        yield "stream", f"{run}{one['stream']}: {sent}, {_counts(one, str(one['lost']))}{text}"


def _threads(trial: dict[str, Any], reply: dict[str, Any], has_tx: bool) -> str:
    """The load of threads and, at full speed, the cost of a frame."""
    text, n = f"{100 * trial['cpu_share']:.0f} % of the time with frames", 0
    if has_tx and not trial["asked_pps"]:
        n = trial["tx"]["sent"] + trial["rx"]["received"]
    if n:
        text += (
            f"; CPU per frame sent or received: {reply['user_ns'] / n:.1f} ns here, "
            f"{reply['system_ns'] / n:.1f} ns in the kernel"
        )
    return text


def summary(
    reply: dict[str, Any], opened: dict[str, Any], has_tx: bool, has_rx: bool
) -> Iterator[tuple[str, str]]:
    """The lines of a trial: name and text."""
    trial = reply["trial"]
    if has_tx:
        yield from _sent(trial, opened["mean_bytes"])
    if has_rx:
        yield from _received(trial, reply, opened["clock"]["source"])
    yield from _directions(trial)
    yield from _streams(trial, opened["streams"])
    for drop in trial["drops"]:
        yield "dropped", f"{drop['port']} {drop['side']} {drop['name']}: {drop['n']}"
    for way, counts in zip(("there", "back"), reply["device"], strict=False):
        if counts["received"]:
            said = ", ".join(f"{name} {n}" for name, n in counts.items())
            yield "device", f"{way}: {said.replace('_', ' ')}"
    yield "threads", _threads(trial, reply, has_tx)
