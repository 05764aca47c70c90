# SPDX-License-Identifier: BSD-3-Clause
"""MLRsearch (draft-ietf-bmwg-mlrsearch-15, in its last form RFC 9971): several goals in one
search, each decided by the share of the time in which a load lost too much, so that one bad
trial does not decide.

Loads are classified as in appendix A of the RFC; the choice of the next load is our own:
first single trials find each goal, then the bounds found are measured longer, level by
level. To spend the time on few loads, one goal's upper bound is another's lower bound
wherever possible.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field, replace

from mr_bench.search_trials import MAX_TRIALS, Found, Limit, Outcome, Search, Unsteady

N_LEVELS = 3
N_WIDE = 4  # widths of the first step of the first level


@dataclass(frozen=True)
class Goal:
    """What a load has to meet."""

    name: str
    loss_ratio: float  # of a trial that is good
    exceed_ratio: float  # of the time: share of bad trials; < 1
    width: float  # share of the upper bound
    final_trial_ns: int  # shorter trials count for less
    duration_sum_ns: int  # until then a load is undecided

    def at_level(self, level: int, initial_ns: int) -> Goal:
        """Early levels measure for fewer seconds."""
        if level == 0:
            return self
        share = 1 - level / (N_LEVELS - 1)
        return replace(
            self,
            final_trial_ns=initial_ns,
            duration_sum_ns=int(initial_ns * (self.duration_sum_ns / initial_ns) ** share),
        )


class LoadClass(enum.Enum):
    """The class of a load for a goal."""

    UNDECIDED = enum.auto()
    LOWER = enum.auto()
    UPPER = enum.auto()


@dataclass
class LoadSums:
    """The sums of seconds that classify a load."""

    full_low: float = 0.0  # of trials of the final length
    full_high: float = 0.0
    short_low: float = 0.0  # of shorter ones
    short_high: float = 0.0


def classify(goal: Goal, sums: LoadSums) -> LoadClass:
    """As in the RFC's appendix A."""
    balance = sums.short_low * goal.exceed_ratio / (1 - goal.exceed_ratio)
    high = sums.full_high + max(0.0, sums.short_high - balance)
    whole = max(sums.full_low + high, goal.duration_sum_ns / 1e9)
    allowed = whole * goal.exceed_ratio
    # If all missing seconds were bad, and if all were good.
    is_lower_at_worst = whole - sums.full_low <= allowed
    is_lower_at_best = high <= allowed
    if is_lower_at_worst and is_lower_at_best:
        return LoadClass.LOWER
    return LoadClass.UNDECIDED if is_lower_at_best else LoadClass.UPPER


def is_same(a: float, b: float) -> bool:
    """Whether two loads, computed in different ways, are the same."""
    return abs(a - b) <= 1e-9 * b


@dataclass(frozen=True)
class MlrTrial:
    """A trial that counts."""

    pps: float
    loss: float
    duration_ns: int


def sums_at(goal: Goal, pps: float, trials: list[MlrTrial]) -> LoadSums:
    """The sums of the trials at a load."""
    sums = LoadSums()
    for trial in trials:
        if is_same(trial.pps, pps):
            length = "full" if trial.duration_ns >= goal.final_trial_ns else "short"
            part = f"{length}_{'low' if trial.loss <= goal.loss_ratio else 'high'}"
            setattr(sums, part, getattr(sums, part) + trial.duration_ns / 1e9)
    return sums


def conditional_throughput(goal: Goal, pps: float, trials: list[MlrTrial]) -> float:
    """The forwarding rate that the goal grants at pps, by its trials."""
    full = sorted(
        (trial.loss, trial.duration_ns / 1e9)
        for trial in trials
        if is_same(trial.pps, pps) and trial.duration_ns >= goal.final_trial_ns
    )
    whole = max(sum(seconds for _, seconds in full), goal.duration_sum_ns / 1e9)
    remaining, worst = whole * (1 - goal.exceed_ratio), None
    for loss, seconds in full:
        if worst is not None and remaining <= 0:
            break
        worst = loss
        remaining -= seconds
    # Seconds that were not measured count as lost.
    return 0.0 if worst is None or remaining > 1e-9 else pps * (1 - worst)


@dataclass
class MlrSearch:
    """found has the result so far of each goal, even if run() raises."""

    search: Search
    goals: list[Goal]
    initial_ns: int
    trials: list[MlrTrial] = field(default_factory=list)  # in their order
    outcomes: list[Outcome] = field(default_factory=list)  # of the same
    # From here on the sender fails, at this level; 0: nowhere known.
    unsent_pps: float = 0.0
    found: list[Found] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.found = [Found(goal.name) for goal in self.goals]

    def _bounds(self, goal: Goal) -> tuple[float, float]:
        """The highest lower bound below the lowest upper bound, and that; 0: not known."""
        classes = {
            pps: classify(goal, sums_at(goal, pps, self.trials))
            for pps in {trial.pps for trial in self.trials}
        }
        uppers = [pps for pps, found in classes.items() if found == LoadClass.UPPER]
        if self.unsent_pps > 0:
            uppers.append(self.unsent_pps)
        upper = min(uppers, default=0.0)
        return max(
            (
                pps
                for pps, found in classes.items()
                if found == LoadClass.LOWER and (upper <= 0 or pps < upper)
            ),
            default=0.0,
        ), upper

    def _undecided(self, goal: Goal, lower: float, upper: float) -> float:
        """A load between the bounds that has trials, but not enough: the highest of those
        that look good, else the lowest of those that look bad. 0: none."""
        between = [
            trial
            for trial in self.trials
            if trial.pps > lower
            and not is_same(trial.pps, lower)
            and (upper <= 0 or trial.pps < upper)
        ]
        good = max((t.pps for t in between if t.loss <= goal.loss_ratio), default=0.0)
        bad = min((t.pps for t in between if t.loss > goal.loss_ratio), default=0.0)
        return good if good > 0 and (bad <= 0 or good < bad) else bad

    def _next(self, goal: Goal, step: float) -> tuple[float, float]:
        """The next load, 0: the bounds are narrow enough; and the step after it. Steps away
        from what is known double; they are shares of the load."""
        s = self.search
        lower, upper = self._bounds(goal)
        if lower >= s.max_pps or (
            upper > 0 and (upper - lower <= goal.width * upper * (1 + 1e-9) or upper <= s.min_pps)
        ):
            return 0.0, step
        undecided = self._undecided(goal, lower, upper)
        if undecided > 0:
            return undecided, step
        if lower > 0 and upper > 0:
            # The highest load bounds every goal, and is far away.
            if upper >= s.max_pps and step < (upper / lower - 1) / 2:
                pps = lower * (1 + step)
            else:
                # About the middle, a whole number of widths from below, so that other goals'
                # bounds can be the same loads.
                n = (upper - lower) / (goal.width * lower)
                pps = lower * (1 + goal.width * max(1, math.floor(n / 2)))
        elif lower <= 0 and upper <= 0:
            pps = s.max_pps
        elif lower <= 0:
            pps = max(s.min_pps, upper * max(1 - step, 0.5))
        else:
            pps = min(s.max_pps, lower * (1 + step))
        return pps, min(2 * step, 1.0)

    def _measure(self, pps: float, duration_ns: int) -> None:
        if len(self.trials) == MAX_TRIALS:
            raise Unsteady(f"no result after {MAX_TRIALS} trials")
        outcome = self.search.trial(pps, duration_ns)
        if outcome.is_unsent:
            self.unsent_pps = min(pps, self.unsent_pps or pps)
            return
        self.outcomes.append(outcome)
        self.trials.append(MlrTrial(pps, outcome.loss, duration_ns))

    def _narrow(self, goal: Goal, step: float) -> None:
        """A goal at one level, until its bounds are as near as the level wants."""
        while True:
            pps, step = self._next(goal, step)
            if pps <= 0:
                return
            self._measure(pps, goal.final_trial_ns)

    def _begin(self) -> None:
        """The first loads: the highest, then half a width below the rate that came through.
        That is near the goals of a device that drops the excess, and a width above it is an
        upper bound of one goal and a lower bound of the other."""
        s = self.search
        self._measure(s.max_pps, self.initial_ns)
        if not self.trials or self.trials[0].loss <= 0:
            return
        rx_pps = s.max_pps * (1 - self.trials[0].loss) * (1 - self.goals[0].width / 2)
        if rx_pps > s.min_pps:
            self._measure(rx_pps, self.initial_ns)

    def _time_left(self, goal_idx: int, level: int) -> float:
        """The time of about three loads for each remaining level and goal."""
        return sum(
            3 * goal.at_level(below, self.initial_ns).duration_sum_ns
            for g, goal in enumerate(self.goals)
            for below in range(N_LEVELS)
            if below < level or (below == level and g >= goal_idx)
        )

    def _levels(self) -> None:
        self._begin()
        for level in reversed(range(N_LEVELS)):
            # A disturbance does not bound later loads.
            self.unsent_pps = 0.0
            for g, goal in enumerate(self.goals):
                self.search.left_ns = self._time_left(g, level)
                self._narrow(
                    goal.at_level(level, self.initial_ns),
                    goal.width * (N_WIDE if level == N_LEVELS - 1 else 1),
                )
                self.found[g].is_complete = level == 0

    def _limit(self, upper: float) -> Limit:
        if upper <= 0:
            return Limit.HIGHEST
        if 0 < self.unsent_pps <= upper:
            return Limit.SENDER
        if any(
            outcome.is_by_receiver
            for trial, outcome in zip(self.trials, self.outcomes)
            if is_same(trial.pps, upper)
        ):
            return Limit.RECEIVER
        return Limit.DEVICE

    def _take(self, goal: Goal, found: Found) -> None:
        """A search that was ended early has the bounds of the finest level with any."""
        at = goal
        lower, upper = self._bounds(at)
        for level in range(1, N_LEVELS):
            if found.is_complete or (lower > 0 and upper > 0):
                break
            at = goal.at_level(level, self.initial_ns)
            lower, upper = self._bounds(at)
        found.low, found.high, found.limit = lower, upper, self._limit(upper)
        if lower > 0:
            found.value = conditional_throughput(at, lower, self.trials)
            found.loss = 1 - found.value / lower
        elif found.is_complete:
            found.note = f"the goal is missed at all loads down to {upper:.0f} frames/s"

    def run(self) -> list[Found]:
        """Raises SearchError."""
        try:
            self._levels()
        finally:
            for goal, found in zip(self.goals, self.found):
                self._take(goal, found)
            self.search.left_ns = 0
        return self.found
