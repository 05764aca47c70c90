# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures: a pool that has all its pages at the end, and two connected ports."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "test/support"))

import millrace


@pytest.fixture(name="pool")
def _pool() -> Iterator[millrace.Pool]:
    with millrace.Pool(2048, safety=1) as pool:
        yield pool
        stats = pool.stats()
        assert stats["n_in_flight"] == stats["free_invalid"] == stats["free_double"] == 0


@pytest.fixture(name="pair")
def _pair(pool: millrace.Pool) -> Iterator[tuple[millrace.Port, millrace.Port]]:
    with millrace.Port(pool, "pair:x,ring=64") as near, millrace.Port(pool, "pair:x") as far:
        yield near, far
