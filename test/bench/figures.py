# SPDX-License-Identifier: BSD-3-Clause
"""Medians and the interval of a ratio."""
import random
import statistics

N_RESAMPLES = 10000
SEED = 1  # the same samples give the same interval


def ratio(pairs):
    """Median of b/a over (a, b) pairs, with its bootstrap 95 % interval.

    Each pair was measured back to back, so what slows the machine for a
    minute is in both halves of it and cancels.
    """
    ratios = [b / a for a, b in pairs]
    rng = random.Random(SEED)
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios)))
                     for _ in range(N_RESAMPLES))
    return {
        "median": statistics.median(ratios),
        "low": medians[int(0.025 * N_RESAMPLES)],
        "high": medians[int(0.975 * N_RESAMPLES) - 1],
        "n_pairs": len(pairs),
    }


def median_of(samples, key):
    """Median of one member of many samples."""
    return statistics.median(sample[key] for sample in samples)


def spread(samples, key):
    """(lowest, median, highest) of one member of many samples."""
    values = [sample[key] for sample in samples]
    return min(values), statistics.median(values), max(values)
