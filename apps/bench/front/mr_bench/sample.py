# SPDX-License-Identifier: BSD-3-Clause
"""Medians, because a disturbance makes a sample longer and never shorter, and
bootstrap intervals, because the distribution of samples is unknown."""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

N_RESAMPLES = 1000


class Ratio(NamedTuple):
    """value 0: there is none. low, high: its 95 % confidence interval."""

    value: float
    low: float
    high: float


def median(values: Sequence[float]) -> float:
    """Of nothing it is 0."""
    n, ordered = len(values), sorted(values)
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2 if n else 0.0


@functools.cache
def _dice(n: int) -> list[int]:
    """xorshift64, from a fixed seed: the same samples give the same report."""
    state, words = 88172645463325252, []
    for _ in range(n):
        state ^= state << 13 & 0xFFFFFFFFFFFFFFFF
        state ^= state >> 7
        state ^= state << 17 & 0xFFFFFFFFFFFFFFFF
        words.append(state >> 32)
    return words


def ratio(above: Sequence[float], below: Sequence[float]) -> Ratio:
    """Median by median, with a bootstrap interval."""
    if not above or median(below) <= 0:
        return Ratio(0, 0, 0)
    dice = iter(_dice(N_RESAMPLES * (len(above) + len(below))))

    def resampled(values: Sequence[float]) -> float:
        n = len(values)
        return median([values[next(dice) * n >> 32] for _ in range(n)])

    ratios = []
    for _ in range(N_RESAMPLES):
        low, high = resampled(below), resampled(above)
        ratios.append(high / low if low > 0 else math.inf if high > 0 else 1.0)
    ratios.sort()
    return Ratio(
        median(above) / median(below),
        ratios[N_RESAMPLES * 25 // 1000],
        ratios[N_RESAMPLES * 975 // 1000 - 1],
    )
