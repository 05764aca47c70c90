# SPDX-License-Identifier: BSD-3-Clause
"""soak.py of mr-bench, on lines that are known, and selftest.py, whose table has to tell a
tester that is wrong."""
import pytest

from mr_bench.selftest import CASES
from mr_bench.soak import Drift
from mr_bench.traffic import Trial


def drift_of(values):
    """Of pairs of a time and a value."""
    drift = Drift()
    for t, value in values:
        drift.add(t, value)
    return drift


def test_a_line_has_its_slope():
    """Far from 0, where sums of squares would cancel."""
    drift = drift_of((1e6 + i, 1e9 - 3 * i) for i in range(100))
    assert drift.slope == pytest.approx(-3)
    assert drift.is_real
    assert (drift.last, drift.min, drift.max) == (1e9 - 297, 1e9 - 297, 1e9)


def test_noise_does_not_drift():
    noise, random = [], 1
    for _ in range(200):
        random = (random * 1664525 + 1013904223) % 2**32
        noise.append(random >> 16)
    assert not drift_of(enumerate(noise)).is_real
    both = drift_of((i, value + 1000 * i) for i, value in enumerate(noise))
    assert both.is_real
    assert abs(both.slope - 1000) < 100


def test_few_values_say_nothing():
    for n in range(5):
        assert not drift_of((i, i) for i in range(n)).is_real
    assert drift_of((i, i) for i in range(4)).slope == pytest.approx(1)
    assert Drift().slope == 0
    # All at one time: no line.
    at_once = drift_of((7, i) for i in range(9))
    assert at_once.slope == 0 and not at_once.is_real


def test_a_tester_that_finds_nothing_is_wrong():
    """Nothing found at all agrees with none of the cases."""
    assert len(CASES) >= 5
    for case in CASES:
        assert not case.agrees(case.found(Trial()))
        assert case.agrees(case.injected)
        assert case.agrees(case.injected - 0.9 * case.error)
        assert not case.agrees(case.injected + case.error + 1)
        assert case.error <= 0.03 * case.injected
