# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the guest tests, and what they need to run."""
import os
import sys
from pathlib import Path

import pytest

# Tests leave nothing in the tree.
sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "netns")]

# pylint: disable=wrong-import-position
from fetch import Missing  # noqa: E402
from guest import Guest, Nic  # noqa: E402

BUILD = Path(os.environ.get("MR_BUILD") or HERE.parents[1] / "build")
CONFORMANCE = BUILD / "test" / "conformance" / "conformance"
PROGRAMS = [BUILD / "test" / "netns" / "netns-probe",
            BUILD / "apps" / "l2fwd" / "mr-l2fwd"]


KERNEL = os.environ.get("MR_GUEST_KERNEL", "newest")


def boot(nics, programs=(), **options):
    """A guest with our programs, or a skip that says what is missing.

    Its kernel's igb has zero-copy since 6.14.
    """
    programs = list(programs) or PROGRAMS
    for program in programs:
        if not program.exists():
            pytest.skip(f"{program} is not built")
    try:
        return Guest(nics, programs, kernel=KERNEL, **options)
    except Missing as why:
        pytest.skip(str(why))


@pytest.fixture(scope="module")
def igb_guest():
    """Two igb on our wires."""
    with boot([Nic("nic0"), Nic("nic1")]) as guest:
        yield guest


@pytest.fixture
def two_cpus():
    """As igb_guest, with a queue for each of two processors."""
    with boot([Nic("nic0")], n_cpus=2) as guest:
        yield guest
