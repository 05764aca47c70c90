# SPDX-License-Identifier: BSD-3-Clause
"""Statistics of the engine's histograms of times, which have HdrHistogram's layout for three
digits: bucket i is entry i of its array of counts."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

SUB_BITS, VALUE_BITS = 10, 40
LAST = ((VALUE_BITS - SUB_BITS + 1) << SUB_BITS) - 1  # has all above the range, too
COARSE_BITS = 5  # log2 of steps per power of two for charts: 3 %
STEPS_PER_HALVING = 5  # of HdrHistogram's table of percentiles
POINTS = {"p50": 50, "p90": 90, "p99": 99, "p999": 99.9, "p9999": 99.99}

Buckets = list[list[int]]  # [bucket, values] of those that are not empty


def low(i: int) -> int:
    """The lowest value of a bucket."""
    shift = max((i >> SUB_BITS) - 1, 0)
    return (i - (shift << SUB_BITS)) << shift


def bucket_of(value: int) -> int:
    """The bucket of a value."""
    value = min(value, (1 << VALUE_BITS) - 1)
    shift = max(value.bit_length() - SUB_BITS - 1, 0)
    return (shift << SUB_BITS) + (value >> shift)


class Times:
    """A histogram; found: as the engine has it, None: no value."""

    def __init__(self, found: dict[str, Any] | None) -> None:
        self.found = found or {"n": 0}
        self.counts: Buckets = self.found.get("counts", [])
        self.below = list(accumulate(n for _, n in self.counts))  # up to each

    def at(self, percentile: float) -> int:
        """The value that this share of all is not above: the highest of its bucket, as
        HdrHistogram has it, and never above the maximum. 0 without values."""
        if not self.counts:
            return 0
        least: int = self.found["min"]
        most: int = self.found["max"]
        if percentile <= 0:
            return least
        # 99.9 % of 1000 are 999, whatever 0.999 is in binary.
        wanted = math.ceil(percentile / 100 * self.below[-1] * (1 - 1e-12))
        i = self.counts[bisect_left(self.below, wanted)][0]
        return most if i == LAST else min(low(i + 1) - 1, most)

    def summary(self) -> dict[str, Any] | None:
        """For the document."""
        h = self.found
        if not self.counts:
            return None
        mean = h["sum"] / h["n"]
        return (
            {key: h[key] for key in ("n", "n_over", "min")}
            | {"mean": mean, "stddev": math.sqrt(max(h["sum_sq"] / h["n"] - mean * mean, 0))}
            | {name: self.at(percentile) for name, percentile in POINTS.items()}
            | {"max": h["max"]}
        )

    def _steps(self) -> Iterator[float]:
        """Percentiles; those behind the last but one would need more values."""
        p = 0.0
        while (100 - p) / 100 * self.below[-1] >= 0.5:
            yield p
            halvings = math.floor(math.log2(100 / (100 - p)))
            p += 100 / (STEPS_PER_HALVING * 2.0 ** (halvings + 1))
        yield 100.0

    def percentiles(self) -> list[list[float]]:
        """[percentile, ns] by the steps of HdrHistogram's table."""
        return [[p, self.at(p)] for p in self._steps()] if self.counts else []

    def coarse(self) -> list[list[int]]:
        """[from, to, values] of coarser buckets that are not empty."""
        found: dict[tuple[int, int], int] = {}
        for i, n in self.counts:
            step = 1 << max(low(i).bit_length() - COARSE_BITS - 1, 0)
            begin = low(i) // step * step
            found[begin, begin + step] = found.get((begin, begin + step), 0) + n
        return [[*ends, n] for ends, n in found.items()]


def describe(trial: dict[str, Any], frame_bytes: int) -> Times:
    """Make a trial of the engine one of a document; its latencies."""
    lateness, latency = Times(trial["lateness"]), Times(trial["latency"])
    trial |= {
        "frame_bytes": frame_bytes,
        "start_s": 0.0,
        "lateness": lateness.summary(),
        "latency": latency.summary(),
        "percentiles": {"lateness": lateness.percentiles(), "latency": latency.percentiles()},
        "histogram": {"latency": latency.coarse()},
    }
    return latency
