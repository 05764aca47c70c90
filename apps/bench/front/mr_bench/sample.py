# SPDX-License-Identifier: BSD-3-Clause
"""Medians, because a disturbance makes a sample longer and never shorter, and
bootstrap intervals, because the distribution of samples is unknown."""

import math
import random
import statistics
from collections.abc import Sequence
from typing import NamedTuple

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
