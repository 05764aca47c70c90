# SPDX-License-Identifier: BSD-3-Clause
"""Mathematical devices behind a trial function: what is to be found is known."""
import math
from dataclasses import dataclass, field

from mr_bench.search_trials import Search, Wanted
from mr_bench.traffic import Trial

SECOND = 10**9
MAX_PPS = 1e6
FOREVER = 2**32


@dataclass
class Model:
    """A device and its tester. 0 is none, or never."""

    rate_pps: float = 0  # frames above it are lost
    buffer: float = 0  # frames that wait before any is lost
    soft_loss: float = 0  # share lost at all rates above soft_from
    soft_from: float = 0
    burst_every: int = 0  # each Nth trial loses a few frames
    drift: float = 0  # share that each trial takes off the rate
    sender_pps: float = 0  # more is not sent in time
    late_share: float = 0  # of the trial, that the last frame is late by
    n_unsent: int = 0  # the next trials that the sender fails
    unsent_from: int = 0  # calls from here on are
    is_receiver: bool = False  # losses have a counter of the receiver,
    is_sending_port: bool = False  # or of the port that sends
    foreign_share: float = 0  # of the frames that came
    is_dead: bool = False
    cut_at: int = 0  # the trial that a signal ends
    stop: str = ""  # why a trial broke off
    seen: str = ""  # where frames were last
    n_calls: int = 0
    n_seconds: float = 0
    settled: list[int] = field(default_factory=list)

    def run(self, wanted: Wanted) -> Trial:
        """One trial."""
        self.n_calls += 1
        self.settled.append(wanted.settle_ns)
        seconds = wanted.frames / wanted.pps if wanted.frames else wanted.duration_ns / 1e9
        load = min(wanted.pps, self.sender_pps or wanted.pps)
        if self.n_unsent > 0 or 0 < self.unsent_from <= self.n_calls:
            self.n_unsent = max(0, self.n_unsent - 1)
            load *= 0.9
        lost = 0.0
        if self.rate_pps and load > self.rate_pps:
            lost = max(0.0, (load - self.rate_pps) * seconds - self.buffer)
        if self.soft_loss and load > self.soft_from:
            lost = max(lost, self.soft_loss * load * seconds)
        if self.burst_every and self.n_calls % self.burst_every == 0:
            lost += 3
        due, sent = int(wanted.pps * seconds + 0.5), int(load * seconds + 0.5)
        n_lost = sent if self.is_dead else math.ceil(lost)
        unique = sent - n_lost
        foreign = int(unique * self.foreign_share / (1 - self.foreign_share))
        drops = [{"side": "rx", "name": "no_room", "n": n_lost,
                  "is_receivers": not self.is_sending_port}] \
            if self.is_receiver and n_lost else []
        late_ns = seconds * 1e9 * self.late_share
        self.rate_pps *= 1 - self.drift
        self.n_seconds += seconds
        return Trial(
            due=due, sent=sent, received=unique + foreign, unique=unique,
            lost=n_lost, foreign=foreign, late_p25_ns=int(late_ns / 4),
            late_max_ns=int(late_ns), tx_pps=load, rx_pps=unique / seconds, drops=drops,
            is_cut_short=self.cut_at == self.n_calls or bool(self.stop),
            why_stopped=self.stop, seen=self.seen, number=self.n_calls - 1)


def search_of(model: Model, **more: object) -> Search:
    """A search on it."""
    return Search(**{
        "run": model.run, "max_pps": MAX_PPS, "min_pps": MAX_PPS / 1e3, "trial_ns": SECOND,
        "settle_ns": SECOND // 10} | more)


def within(value: float, low: float, high: float) -> None:
    """low and high are allowed."""
    assert low <= value <= high, f"{value} is not in {low}..{high}"
