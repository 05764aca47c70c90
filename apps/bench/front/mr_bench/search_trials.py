# SPDX-License-Identifier: BSD-3-Clause
"""Searches for a rate, on a function that makes one trial.

Nothing here knows ports: a test puts a mathematical device behind the function. Rates are
frames per second. Trials are judged in one place, Search.trial(): a trial whose sender
did not keep up its rate says nothing about the device, and no search counts it as loss.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field

from mr_bench.traffic import Trial

MAX_TRIALS = 2000  # of one result
SECOND = 1_000_000_000
UNSENT_REPEATS, DISTURBED_REPEATS = 2, 9
# The path check uses a rate that any device can handle.
PATH_PPS, PATH_FRAMES, PATH_TRIES = 1000, 100, 3
# What a frame may be late by, as long as the rate is kept: threads look at the clock in
# rounds.
JITTER_NS = 20000


class SearchError(Exception):
    """A search without a result, or with a part of it; one line."""

    status = 1


class Interrupted(SearchError):
    """Ended by a signal."""


class BrokenOff(SearchError):
    """A port is gone, or nothing could be sent."""


class Unsteady(SearchError):
    """The device or the sender is not repeatable."""


class NoPath(SearchError):
    """Nothing came back."""


class Limit(enum.IntEnum):
    """What limits a rate, if not the device."""

    DEVICE = 0  # it is: the device lost frames above
    HIGHEST = 1  # the highest rate of the search was passed
    SENDER = 2  # above, frames could not be sent in time
    RECEIVER = 3  # above, the receiving ports lost frames


@dataclass
class Wanted:
    """The parameters of a trial."""

    pps: float  # 0: full speed
    duration_ns: int
    frames: int = 0  # 0: as many as the duration has
    settle_ns: int = 0


@dataclass
class Outcome:
    """A trial as a search sees it."""

    asked_pps: float
    load_pps: float = 0.0  # what was offered: less what was unsent or late
    loss: float = 0.0  # share of the frames sent
    n_sent: int = 0
    n_lost: int = 0
    is_unsent: bool = False  # the sender failed, each time that it tried
    is_by_receiver: bool = False  # most of the loss has a counter of a receiver
    why_dropped: str = ""  # why the sending ports dropped frames, which never left

    @property
    def limit(self) -> Limit:
        """What limited a trial that did not hold."""
        if self.is_unsent:
            return Limit.SENDER
        return Limit.RECEIVER if self.is_by_receiver else Limit.DEVICE


@dataclass
class Found:
    """What a search found."""

    goal: str = "ndr"
    value: float = 0.0  # offered load of the best trial; 0: none held
    low: float = 0.0  # held; 0: there was none
    high: float = 0.0  # did not hold
    loss: float = 0.0  # at the value
    limit: Limit = Limit.DEVICE
    is_complete: bool = False
    note: str = ""


def lost_by_receiver(trial: Trial) -> float:
    """Frames that the receiving ports had, and lost by their own account. Of these as many
    are foreign as of those that came."""
    share = 1 - trial.foreign / trial.received if trial.received else 1.0
    return share * sum(
        int(drop["n"])
        for drop in trial.drops
        if drop["is_receivers"] and (drop["side"] == "rx" or drop["name"].startswith("rx"))
    )


def overrun_ns(trial: Trial) -> int:
    """How much longer the sender took than was asked. If it falls behind steadily its frames
    are later and later, the first quarter of them by a quarter of that; a pause that it makes
    good again does not show in a quarter."""
    return max(0, min(trial.late_max_ns, 4 * trial.late_p25_ns) - JITTER_NS)


@dataclass
class Search:
    """Trials for one result, and what was done so far."""

    run: Callable[[Wanted], Trial]
    max_pps: float
    min_pps: float = 0.0
    trial_ns: int = SECOND
    settle_ns: int = 0
    resolution_ratio: float = 0.005  # share of the rate
    loss_tolerance_ratio: float = 0.0  # share of the frames sent
    unsent_tolerance_ratio: float = 0.005  # share of the frames due
    max_trials: int = MAX_TRIALS
    # Is called after each trial.
    on_trial: Callable[[Search, Trial], None] | None = None
    trials: list[int] = field(default_factory=list)  # their numbers in the document
    n_before: int = 0  # of them, for results before this one
    sender_pps: float = 0.0  # most that the sender kept up; 0: not known
    left_ns: float = 0.0  # an estimate

    def _try_once(self, wanted: Wanted) -> Trial:
        n = len(self.trials) - self.n_before
        if n >= self.max_trials:
            raise Unsteady(
                f"no result after {n} trials: the device is not steady, or --resolution too fine"
            )
        trial = self.run(wanted)
        self.trials.append(trial.number)
        if self.on_trial is not None:
            self.on_trial(self, trial)
        if trial.is_cut_short and not trial.why_stopped:
            raise Interrupted("ended by a signal")
        if trial.why_stopped:
            raise BrokenOff(f"the trial broke off: {trial.why_stopped}")
        if trial.sent == 0:
            raise BrokenOff(f"nothing was sent: {trial.why_incomplete}")
        return trial

    def _judge(self, pps: float, trial: Trial) -> Outcome:
        outcome = Outcome(pps, trial.tx_pps, n_sent=trial.sent, n_lost=trial.lost)
        if pps > 0:
            asked_ns = trial.due * 1e9 / pps
            sent = trial.sent / trial.due if trial.due else 1.0
            outcome.load_pps = pps * sent * asked_ns / (asked_ns + overrun_ns(trial))
            outcome.is_unsent = outcome.load_pps < pps * (1 - self.unsent_tolerance_ratio)
        outcome.why_dropped = trial.why_incomplete if trial.n_dropped else ""
        outcome.loss = trial.lost / trial.sent if trial.sent else 0.0
        outcome.is_by_receiver = 0 < trial.lost <= 2 * lost_by_receiver(trial)
        return outcome

    def trial(self, pps: float, duration_ns: int = 0, frames: int = 0) -> Outcome:
        """One trial at pps, or of so many frames. One whose sender failed is made again,
        twice; at less than half of what the sender can do, where only something else can
        have disturbed it, up to ten times."""
        is_disturbance = 0 < pps < self.sender_pps / 2
        wanted = Wanted(pps, 0 if frames else duration_ns, frames, self.settle_ns)
        for _ in range(1 + (DISTURBED_REPEATS if is_disturbance else UNSENT_REPEATS)):
            outcome = self._judge(pps, self._try_once(wanted))
            if not outcome.is_unsent:
                self.sender_pps = max(self.sender_pps, outcome.load_pps)
                return outcome
        if is_disturbance:
            raise Unsteady(
                f"the sender is disturbed: {100 * (1 - outcome.load_pps / pps):.1f} % of the "
                f"frames were not sent in time at {pps:.0f} frames/s, of {self.sender_pps:.0f} "
                "that it can do; other load on its cores (--cores, --max-lag, "
                "--unsent-tolerance)"
            )
        return outcome

    def check_path(self) -> None:
        """Whether there is a path: a few frames at a low rate. Frames of a first trial also
        teach switches their addresses (RFC 2544, 23)."""
        pps = self.max_pps if 0 < self.max_pps < PATH_PPS else PATH_PPS
        wanted = Wanted(pps, 0, PATH_FRAMES, self.settle_ns)
        for _ in range(PATH_TRIES):
            trial = self._try_once(wanted)
            if trial.unique > 0:
                return
        seen = trial.seen or (
            "no port lost any; is the device forwarding, to this port and this address (--dst-mac)?"
        )
        raise NoPath(f"none of {trial.sent} frames came back: {seen}")
