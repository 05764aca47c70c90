# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests with the distribution's DPDK programs."""
import sys
from pathlib import Path

import pytest

# Tests leave nothing in the tree.
sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).parent),
                str(Path(__file__).parents[1] / "support")]

# pylint: disable=wrong-import-position
import dpdk  # noqa: E402


@pytest.fixture(scope="session")
def pages():
    """Huge pages, if the machine has them to give."""
    with dpdk.HugePages() as huge_pages:
        yield huge_pages
