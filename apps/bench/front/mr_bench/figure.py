# SPDX-License-Identifier: BSD-3-Clause
"""Figures of documents, by name, and whether those of two sets of documents
differ: by medians, because a disturbance makes a sample longer and never shorter, and
bootstrap intervals, because the distribution of samples is unknown."""

import enum
import math
import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mr_bench import units
from mr_bench.document import Document, at, list_of, member, number_of, text_of
from mr_bench.rates import FCS_BYTES

# Fewer runs are too few for a bootstrap interval, which cannot be wider than
# the observed values.
LEAST_FOR_BOOTSTRAP = 5
LEAST_FOR_VERDICT = 2
# Two sides with the same distribution do not overlap, by chance, in 1 of 3
# comparisons of 2 runs each, in 1 of 10 of 3 runs, and in 3 % of 4. Adding
# these shares of the runs' spread at both ends makes it 3 to 4 % for all.
MARGINS = {2: 1.5, 3: 0.25}

N_RESAMPLES = 1000


class Ratio(NamedTuple):
    """value 0: there is none. low, high: its 95 % confidence interval."""

    value: float
    low: float
    high: float


def median(values: Sequence[float]) -> float:
    """The median; 0 if there are no values."""
    return statistics.median(values) if values else 0.0


def ratio(above: Sequence[float], below: Sequence[float]) -> Ratio:
    """Median by median, with a bootstrap interval. The same samples give the same one."""
    if not above or median(below) <= 0:
        return Ratio(0, 0, 0)
    dice = random.Random(1)
    ratios = []
    for _ in range(N_RESAMPLES):
        low, high = (median(dice.choices(side, k=len(side))) for side in (below, above))
        ratios.append(high / low if low > 0 else math.inf if high > 0 else 1.0)
    ratios.sort()
    return Ratio(
        median(above) / median(below),
        ratios[N_RESAMPLES * 25 // 1000],
        ratios[N_RESAMPLES * 975 // 1000 - 1],
    )


@dataclass
class Side:
    """One side's values of a figure: one for each run, with its bounds."""

    values: list[float] = field(default_factory=list)
    lows: list[float] = field(default_factory=list)
    highs: list[float] = field(default_factory=list)
    is_limited_by_tester: bool = False  # at least once

    def add(self, value: float, low: float = 0, high: float = 0) -> None:
        """Bounds of 0 are unknown; the value is used instead."""
        is_bounded = low != 0 or high != 0
        self.values.append(value)
        self.lows.append(min(low, value) if is_bounded else value)
        self.highs.append(max(high, value) if is_bounded else value)

    def _margin(self) -> float:
        spread = max(self.values) - min(self.values)
        return MARGINS.get(len(self.values), 0) * spread

    def lowest(self) -> float:
        """Of what the runs leave open."""
        return max(min(self.lows) - self._margin(), 0)

    def highest(self) -> float:
        """Of what the runs leave open."""
        return max(self.highs) + self._margin()


@dataclass
class Figure:
    """floor: changes up to this count as none; 0: the unit's."""

    name: str  # "64 B ndr", "B06 bulk=32: array"
    unit: str
    floor: float = 0
    sides: tuple[Side, Side] = field(default_factory=lambda: (Side(), Side()))

    def raise_floor(self, n_sent: float) -> None:
        """A share of lost frames changes by whole frames."""
        if self.unit == "ratio" and n_sent > 0:
            self.floor = max(self.floor, units.FLOOR_FRAMES / n_sent)


def size_text(frame_bytes: float) -> str:
    """A size as people count it, with the FCS."""
    return f"{frame_bytes + FCS_BYTES:.0f} B" if frame_bytes > 0 else "mix"


def _sent_of_row(root: Any, row: Any) -> float:
    """Frames sent in the trial that a row's figure comes from, the last one."""
    trials = list_of(row, "trials")
    return number_of(at(list_of(root, "trials"), trials[-1] if trials else None), "tx", "sent")


def _is_figure(row: Any) -> bool:
    """0 is what a row has whose rate was refused, or not confirmed in time,
    and whose latency is of no frame at all. No rate that keeps a goal is 0,
    too, and it is the device's."""
    if number_of(row, "value") != 0:
        return True
    if row["unit"] == "ns":
        return not row["goal"].startswith("latency")
    return units.direction(row["unit"]) < 0 or row.get("is_limited_by_tester") is not True


def _trial_parts(trial: Any) -> Iterator[tuple[str, str, float]]:
    """What a trial measured, its unit and its value."""
    sent = number_of(trial, "tx", "sent")
    received = number_of(trial, "rx", "received")
    if sent > 0:
        yield "sent", "frames/s", number_of(trial, "tx", "pps")
    if received > 0:
        yield "received", "frames/s", number_of(trial, "rx", "pps")
    if sent > 0 and received > 0:
        yield "loss", "ratio", number_of(trial, "rx", "lost") / sent
    # At a receiver, latency includes lateness.
    for key, what in (("latency", "latency"), ("lateness", "late")):
        if isinstance(member(trial, key), dict):
            for p in ("p50", "p99"):
                yield f"{what} {p}", "ns", number_of(trial, key, p)
            break


class Figures:
    """Figures of both sides, in order of appearance."""

    def __init__(self) -> None:
        self._by_name: dict[tuple[str, str], Figure] = {}

    def __iter__(self) -> Iterator[Figure]:
        return iter(self._by_name.values())

    def _figure(self, name: str, unit: str) -> Figure:
        return self._by_name.setdefault((name, unit), Figure(name, unit))

    def _add_row(self, root: Any, row: Any, side: int) -> None:
        if not _is_figure(row):
            return
        figure = self._figure(
            f"{size_text(number_of(row, 'frame_bytes'))} {row['goal'][:200]}", row["unit"]
        )
        figure.raise_floor(_sent_of_row(root, row))
        figure.sides[side].add(*(number_of(row, key) for key in ("value", "low", "high")))
        figure.sides[side].is_limited_by_tester |= row.get("is_limited_by_tester") is True

    def _add_trial(self, trial: Any, side: int) -> None:
        """Trials of the same load are samples of the same figures."""
        asked = number_of(trial, "asked_pps")
        load = f"{asked:.6g} frames/s" if asked > 0 else "full speed"
        size = size_text(number_of(trial, "frame_bytes"))
        for what, unit, value in _trial_parts(trial):
            figure = self._figure(f"{size} at {load}: {what}", unit)
            figure.raise_floor(number_of(trial, "tx", "sent"))
            figure.sides[side].add(value)

    def _add_players(self, row: Any, side: int) -> None:
        """A row of mem has a figure for each player: its time."""
        for player in list_of(row, "players"):
            ns = member(player, "ns")
            if isinstance(ns, dict):
                self._figure(
                    f"{text_of(row, 'workload')[:20]}/"
                    f"{text_of(row, 'name')[:100]}: "
                    f"{text_of(player, 'name')[:90]}",
                    "ns",
                ).sides[side].add(*(number_of(ns, key) for key in ("median", "low", "high")))

    def add(self, document: Document, side: int) -> None:
        """Its rows, or, if it has none, what its trials came to. side: 0 is
        the baseline."""
        rows = document.root["rows"]
        for row in rows:
            if document.is_net:
                self._add_row(document.root, row, side)
            else:
                self._add_players(row, side)
        if document.is_net and not rows:
            for trial in document.root["trials"]:
                self._add_trial(trial, side)


class Verdict(enum.Enum):
    """UNCLEAR: a side has one run, or the difference is no larger than that of
    runs, or one of them is the tester's limit."""

    SAME = "no difference"
    BETTER = "better"
    WORSE = "worse"
    UNCLEAR = "unclear"
    ALONE = "on one side only"


class Comparison:
    """A figure's sides, compared by baseline.

    ratio.value 0: there is none, for the baseline is 0. Its interval is 95 %
    of bootstrap; else from the lowest to the highest ratio of any two runs,
    with their own bounds, and wider where a side has 2 or 3 runs.
    """

    def __init__(self, figure: Figure, threshold: float):
        """threshold: share by which figures may differ, as 0.01."""
        a, b = figure.sides
        least = min(len(a.values), len(b.values))
        self.figure = figure
        self.medians = median(a.values), median(b.values)
        self.ratio = Ratio(0, 0, 0)
        self.has_few_runs = 0 < least < LEAST_FOR_VERDICT
        self.is_bootstrap = least >= LEAST_FOR_BOOTSTRAP
        self.verdict = Verdict.ALONE
        if least == 0:
            return
        if self.is_bootstrap:
            self.ratio = ratio(b.values, a.values)
        elif self.medians[0] > 0:
            self.ratio = Ratio(
                self.medians[1] / self.medians[0],
                b.lowest() / a.highest(),
                b.highest() / a.lowest() if a.lowest() > 0 else math.inf,
            )
        self.verdict = self._judge(threshold)

    def _is_certain(self, is_more: bool) -> bool:
        """Of 0 there is no share: a change is certain if the sides are
        apart."""
        a, b = self.figure.sides
        if self.medians[0] <= 0:
            return b.lowest() > a.highest() if is_more else b.highest() < a.lowest()
        return self.ratio.low > 1 if is_more else self.ratio.high < 1

    def _is_hidden(self, verdict: Verdict) -> bool:
        """A rate that the tester limited is the least that the device does.
        Of other figures nobody knows which way they would go."""
        first, second = (side.is_limited_by_tester for side in self.figure.sides)
        if units.direction(self.figure.unit) < 0:
            return first or second
        return first if verdict is Verdict.BETTER else second

    def _judge(self, threshold: float) -> Verdict:
        unit, (a, b) = self.figure.unit, self.medians
        is_more = b > a
        if self.has_few_runs:
            return Verdict.UNCLEAR
        if abs(b - a) <= max(self.figure.floor, units.floor(unit), threshold * a):
            return Verdict.SAME
        verdict = Verdict.BETTER if (units.direction(unit) > 0) == is_more else Verdict.WORSE
        if not self._is_certain(is_more) or self._is_hidden(verdict):
            return Verdict.UNCLEAR
        return verdict
