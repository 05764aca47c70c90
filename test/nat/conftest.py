# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the translator's tests."""
import pytest

from bed import Nat


@pytest.fixture
def nat_of():
    """nat_of(**options): a Nat, closed and checked when the test has ended."""
    made = []

    def make(**options):
        made.append(Nat(**options))
        return made[-1]

    yield make
    for nat in made:
        nat.close()


@pytest.fixture
def nat(nat_of):
    """A Nat with all defaults."""
    return nat_of()
