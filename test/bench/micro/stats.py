# SPDX-License-Identifier: BSD-3-Clause
"""Figures from samples. Medians, because disturbances make samples only
longer; bootstrap intervals, because the distribution of samples is unknown."""
from __future__ import annotations

from typing import Any

import numpy as np

N_RESAMPLES = 1000
MIN_CLEAN = 5  # if fewer are undisturbed, all count
SEED = 88172645463325252  # the same samples give the same report


def resampled(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Medians of as many values, drawn with replacement."""
    drawn = rng.integers(0, len(values), (N_RESAMPLES, len(values)))
    return np.median(values[drawn], axis=1)


def interval(figures: np.ndarray) -> tuple[float, float]:
    """The 2.5 and 97.5 percentiles."""
    ordered = np.sort(figures)
    return float(ordered[N_RESAMPLES * 25 // 1000]), float(ordered[N_RESAMPLES * 975 // 1000 - 1])


def summary(values: list[float]) -> dict[str, Any]:
    a = np.array(values)
    median = float(np.median(a))
    low, high = interval(resampled(a, np.random.default_rng(SEED)))
    return {"n": len(a), "median": median, "min": float(a.min()), "max": float(a.max()),
            "mad": float(np.median(np.abs(a - median))), "low": low, "high": high}


def ratio(above: list[float], below: list[float]) -> dict[str, float] | None:
    """Ratio of medians, with its interval; None if one is missing."""
    if not above or not below or np.median(below) <= 0:
        return None
    rng = np.random.default_rng(SEED)
    b, a = resampled(np.array(below), rng), resampled(np.array(above), rng)
    # If a resample of the divisor is 0, the ratio has no upper end.
    ratios = np.divide(a, b, out=np.where(a > 0, np.inf, 1.0), where=b > 0)
    low, high = interval(ratios)
    return {"value": float(np.median(above) / np.median(below)), "low": low, "high": high}


def used(variant: dict[str, Any]) -> tuple[list[int], bool]:
    """Which samples count, and whether disturbed ones must."""
    clean = [i for i, is_clean in enumerate(variant["clean"]) if is_clean]
    is_noisy = len(clean) < MIN_CLEAN and len(clean) < len(variant["clean"])
    return (list(range(len(variant["clean"]))) if is_noisy else clean), is_noisy


def evaluated(row: dict[str, Any]) -> dict[str, Any]:
    """A row of mr-micro as documents have it: figures in place of samples."""
    ours: list[float] | None = None
    variants = []
    for variant in row["players"]:
        which, is_noisy = used(variant)
        ns = [variant["ns"][i] for i in which]
        n = len(variant["clean"])
        made = {key: variant[key] for key in ("name", "side", "why_not", "operations", "counts")
                if key in variant}
        made |= {"samples": n, "disturbed": n - sum(variant["clean"]), "noisy": is_noisy}
        if ns:
            made |= {"ns": summary(ns),
                     "cycles": float(np.median([variant["cycles"][i] for i in which]))}
            if ours is None and variant["side"] == "ours":
                ours = ns
        variants.append((made, ns))
    for made, ns in variants:
        by_ours = ratio(ns, ours or [])
        if by_ours:
            made["ratio_to_ours"] = by_ours
    return {**row, "players": [made for made, _ in variants]}
