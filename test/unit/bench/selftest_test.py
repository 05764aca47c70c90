# SPDX-License-Identifier: BSD-3-Clause
"""selftest.py: its table has to tell a tester that is wrong."""
from mr_bench.selftest import CASES
from mr_bench.traffic import Trial


def test_a_tester_that_finds_nothing_is_wrong():
    """Nothing found at all agrees with none of the cases."""
    assert len(CASES) >= 5
    for case in CASES:
        assert not case.agrees(case.found(Trial()))
        assert case.agrees(case.injected)
        assert case.agrees(case.injected - 0.9 * case.error)
        assert not case.agrees(case.injected + case.error + 1)
        assert case.error <= 0.03 * case.injected
