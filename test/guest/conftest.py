# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the guest tests, and what they need to run."""
import os
import re
import sys
from pathlib import Path

import pytest

# Tests leave nothing in the tree.
sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "netns")]

# pylint: disable=wrong-import-position
from fetch import Missing  # noqa: E402
from guest import BUILD, KINDS_SINCE, Guest  # noqa: E402
from host import limit  # noqa: E402
from probe import opened  # noqa: E402

CONFORMANCE = BUILD / "test" / "conformance" / "wire" / "mr-conformance"
PROGRAMS = [BUILD / "test" / "netns" / "netns-probe",
            BUILD / "apps" / "l2fwd" / "mr-l2fwd",
            BUILD / "apps" / "nat" / "mr-nat",
            BUILD / "apps" / "brokerd" / "mr-brokerd"]
KERNEL = os.environ.get("MR_GUEST_KERNEL", "newest")
# A jumbo frame takes many places of a ring; a NIC loses what there is none for.
# Not so many under the kernel's driver: of an entry of the used ring that lies
# on two pages QEMU writes the second half behind the first in physical memory,
# whatever the IOMMU says (system/physmem.c,
# address_space_write_continue_cached()). One frame per page of the ring is lost
# then, and other memory written, where the pages happen to lie apart. 256
# entries of the kernel's lie on one page, ours are aligned to their size, and
# DPDK's rings are on huge pages.
MANY_PLACES = "rx_queue_size=1024"
# With igb most of the conformance suite is opening: 1.5 s for its link each
# time, 3 minutes in all; on a busy host several times that.
SUITE_LIMIT_S = limit(900)
# What the kernel says of a NIC that writes where it may not, and of itself.
FAULTS = ("DMAR: ", "BUG", "WARNING", "Call Trace", "Tx Unit Hang",
          "Reset adapter")


def pytest_configure(config):
    """As those of test/netns."""
    config.addinivalue_line("markers", "short: a scenario of a feature")


def need_driver(kind):
    """Skip unless our driver for NICs of this kind was built."""
    driver = "virtio" if kind.startswith("virtio") else "intel"
    table = BUILD / "drivers" / "driver_table.c"
    if driver not in table.read_text(encoding="ascii"):
        pytest.skip(f"the driver {driver} is not built")


def boot(nics, programs=(), needs_all=True, **options):
    """A guest with our programs, or a skip that says what is missing.

    Its kernel's igb has zero-copy since 6.14.
    """
    programs = list(programs) or PROGRAMS
    for program in programs:
        if not program.exists():
            pytest.skip(f"{program} is not built")
    try:
        guest = Guest(nics, programs, **{"kernel": KERNEL} | options)
    except Missing as why:
        pytest.skip(str(why))
    if needs_all:
        for nic in nics:
            if nic not in guest.nics:
                skip_kind(guest, nic.kind)
    return guest


def skip_kind(guest, kind):
    """There is no such NIC in this guest."""
    pytest.skip(f"QEMU {guest.qemu_version} has no {kind}, "
                f"{KINDS_SINCE[kind]} has")


def spec_of(guest, name):
    """How a port on a NIC is opened: one called -xdp by way of the kernel."""
    if name not in guest.wires:
        skip_kind(guest, "igb")
    if name.endswith("-xdp"):
        return f"xdp:{name}" + (",mode=zc" if name == "igb-xdp" else "")
    need_driver(name)
    return f"vfio:{guest.nic(name).bdf}"


def forget_log(guest):
    """What the kernel said until now is no fault: booting, binding."""
    guest.run("dmesg -c >/dev/null")


def check_log(guest):
    """No fault is in the kernel's log; it is empty afterwards."""
    status, log = guest.run("dmesg -c")
    assert status == 0
    faults = [line for line in log.splitlines()
              if any(word in line for word in FAULTS)]
    assert not faults, log


def run_suite(guest, port, n_least, lacks=""):
    """The conformance suite on a port that a cable joins to far0: all that is
    not skipped passes, and that is n_least tests."""
    status, text = guest.run(f"MR_NIC_LACKS={lacks} mr-conformance {port} "
                             "kernel:far0 2>&1", SUITE_LIMIT_S)
    assert status == 0, text
    passed = sum(int(n) for n in re.findall(r"PASSED +\] (\d+) test", text))
    assert passed >= n_least, text


@pytest.fixture
def guest(machine):
    """The module's guest with quiet wires, and no fault afterwards."""
    machine.drain_wires()
    forget_log(machine)
    yield machine
    check_log(machine)


@pytest.fixture
def probe(guest):
    """A probe with a pool, and no page missing at its end."""
    with opened(guest, pool=16384) as a_probe:
        yield a_probe
