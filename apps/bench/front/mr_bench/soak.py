# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench soak: a long run at one rate, as consecutive trials, so that the losses of each
interval are exact; between trials is the settling time."""

import math
import os
from dataclasses import dataclass, field
from pathlib import Path

from mr_bench.search import BrokenOff, Interrupted, SearchError, Wanted
from mr_bench.search_options import Group
from mr_bench.session import Command, Session, rate_text
from mr_bench.traffic import Trial

HOUR_NS = 3.6e12
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Drift:
    """Whether a figure moves over a long run: a line through its values. Sums are taken about
    the means so far (Welford), so that none cancels."""

    n: int = 0
    mean_t: float = 0.0
    mean_v: float = 0.0
    sum_tt: float = 0.0  # about the means
    sum_tv: float = 0.0
    sum_vv: float = 0.0
    last: float = 0.0
    min: float = 0.0
    max: float = 0.0

    def add(self, t: float, value: float) -> None:
        """A value at a time."""
        dt, dv = t - self.mean_t, value - self.mean_v
        self.n += 1
        self.mean_t += dt / self.n
        self.mean_v += dv / self.n
        self.sum_tt += dt * (t - self.mean_t)
        self.sum_tv += dt * (value - self.mean_v)
        self.sum_vv += dv * (value - self.mean_v)
        self.last = value
        self.min = value if self.n == 1 else min(self.min, value)
        self.max = value if self.n == 1 else max(self.max, value)

    @property
    def slope(self) -> float:
        """Least squares: how much the value changes per unit of time; 0 below 3."""
        return 0.0 if self.n < 3 or self.sum_tt <= 0 else self.sum_tv / self.sum_tt

    @property
    def is_real(self) -> bool:
        """Whether the slope is more than chance: it is farther from 0 than three times its
        standard error."""
        if self.n < 5 or self.sum_tt <= 0:
            return False
        residue = max(0.0, self.sum_vv - self.slope * self.sum_tv)
        return abs(self.slope) > 3 * math.sqrt(residue / (self.n - 2) / self.sum_tt)


def resident_bytes(pid: int) -> int:
    """Resident memory of a process; 0: unknown."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0


@dataclass
class Soak:
    """What was seen so far."""

    session: Session
    n: int = 0
    sent: int = 0
    lost: int = 0
    unsent: int = 0
    why_dropped: str = ""  # why the sending ports first dropped frames
    elapsed_ns: int = 0
    n_lossy: int = 0  # intervals
    median_ns: Drift = field(default_factory=Drift)
    p99_ns: Drift = field(default_factory=Drift)
    own_bytes: Drift = field(default_factory=Drift)
    device_bytes: Drift = field(default_factory=Drift)

    def add(self, trial: Trial) -> None:
        """An interval."""
        hours = self.elapsed_ns / HOUR_NS
        self.elapsed_ns += trial.whole_ns
        self.n += 1
        self.sent += trial.sent
        self.lost += trial.lost
        self.unsent += trial.unsent
        if trial.n_dropped:
            self.why_dropped = self.why_dropped or f"interval {self.n}: {trial.why_incomplete}"
        self.n_lossy += trial.lost > 0
        if trial.latency.n > 0:
            self.median_ns.add(hours, trial.latency.p50)
            self.p99_ns.add(hours, trial.latency.p99)
        self.own_bytes.add(hours, resident_bytes(self.session.engine.pid))
        if self.session.options.pid:
            self.device_bytes.add(hours, resident_bytes(self.session.options.pid))

    def show(self, trial: Trial) -> None:
        """A line of the table, and progress."""
        session = self.session
        session.progress.clear()
        if self.n == 1:
            session.print(
                f"{'interval':>9} {'frames/s':>15} {'sent':>12} {'lost':>10} "
                f"{'unsent':>10} {'p50 us':>9} {'p99 us':>9} {'memory':>9}"
            )
        memory = self.device_bytes if session.options.pid else self.own_bytes
        session.print(
            f"{self.n:9} {rate_text(trial.tx_pps):>15} {trial.sent:12} "
            f"{trial.lost:10} {trial.unsent:10} {self.median_ns.last / 1e3:9.1f} "
            f"{self.p99_ns.last / 1e3:9.1f} {memory.last / 1e6:6.1f} MB"
        )
        # Without --duration nobody knows when it ends.
        session.progress.show(
            (session.shared.duration_ns - self.elapsed_ns) / 1e9,
            f"soak: {self.n} intervals, {self.n_lossy} with loss",
        )

    def interval(self, wanted: Wanted, goes_on: bool) -> None:
        """One; raises SearchError behind the last."""
        trial = self.session.measure(wanted, goes_on=goes_on, is_interval=True)
        self.add(trial)
        self.show(trial)
        if trial.why_stopped:
            raise BrokenOff(f"it broke off: {trial.why_stopped}")
        if trial.is_cut_short:
            raise Interrupted("ended by a signal")

    def _print_drift(self, name: str, drift: Drift, unit: float, text: str) -> None:
        """How much it moved, by the line through all of its values."""
        if drift.n == 0:
            return
        trend = drift.slope * self.elapsed_ns / HOUR_NS / unit
        self.session.print(
            f"{name:22} {drift.min / unit:.1f} to {drift.max / unit:.1f} {text}, "
            f"a trend of {trend:+.3f} {text}"
            f"{': it drifts' if drift.is_real else ''}"
        )

    def summarize(self) -> None:
        """The rows, and what drifts."""
        session = self.session
        loss = self.lost / self.sent if self.sent else 0.0
        is_unsent = self.unsent > session.options.unsent_tolerance * (self.sent + self.unsent)
        note = "the sender did not keep up" if is_unsent else ""
        session.print(
            f"{self.n} intervals, {self.sent} frames sent, {self.lost} lost "
            f"({100 * loss:.6f} %) in {self.n_lossy} of them, {self.unsent} unsent"
        )
        self._print_drift("latency, median", self.median_ns, 1e3, "us")
        self._print_drift("latency, p99", self.p99_ns, 1e3, "us")
        self._print_drift("memory of mr-bench", self.own_bytes, 1e6, "MB")
        self._print_drift("memory of the device", self.device_bytes, 1e6, "MB")
        if self.sent:
            session.row("loss", "ratio", loss, is_limited=is_unsent, note=note)
            session.row(
                "intervals-with-loss",
                "ratio",
                self.n_lossy / self.n,
                is_limited=is_unsent,
                note=note,
            )
        # If nothing came back there is no latency.
        if self.sent and self.median_ns.n:
            for goal, drift in (("p50", self.median_ns), ("p99", self.p99_ns)):
                session.row(f"latency-{goal}", "ns", drift.mean_v, drift.min, drift.max)
        session.measured["memory_slope_bytes_per_hour"] = self.own_bytes.slope
        session.measured["latency_p50_slope_ns_per_hour"] = self.median_ns.slope


def run(session: Session) -> int:
    """Until --duration is over; without it, until a signal."""
    options = session.options
    soak = Soak(session)
    whole_ns = left_ns = session.shared.duration_ns
    # The time to settle is the command line's: a long one would be a gap in the load.
    settle_ns = session.settle_ns
    try:
        while not whole_ns or left_ns > 0:
            length_ns = min(left_ns, options.interval_ns) if whole_ns else options.interval_ns
            soak.interval(
                Wanted(session.search.max_pps, length_ns, settle_ns=settle_ns), goes_on=soak.n > 0
            )
            left_ns -= length_ns
    except Interrupted:
        if whole_ns:
            raise  # without --duration it was to end so
    finally:
        soak.summarize()
    if soak.median_ns.n == 0:
        raise SearchError(f"of {soak.sent} frames sent none came back")
    if soak.why_dropped:
        raise SearchError(soak.why_dropped)
    return 1 if soak.lost > options.loss_tolerance * soak.sent else 0


COMMAND = Command(
    "soak",
    """\
usage: mr-bench soak [options] TX RX [TX RX...]
A long run at --rate: loss, latency and drift of each interval.
""",
    Group.INTERVAL,
    run,
)
main = COMMAND.main
