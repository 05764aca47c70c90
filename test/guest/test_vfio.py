# SPDX-License-Identifier: BSD-3-Clause
"""Our own drivers, by vfio-pci, on emulated NICs: with AF_XDP in one pool, and
between unlike NICs. One port alone is tested by the conformance suite.

Each wire ends in this process: what is compared is what was on it. The IOMMU
reports a device that writes where it may not.
"""
import os

import pytest

from conftest import boot, spec_of
from forwarder import end_l2fwd, start_l2fwd
from guest import Nic
from lib import invariants
from probe import check_idle
from traffic import all_lengths, exchange

KINDS = ["igb", "e1000e", "virtio-split", "virtio-packed"]
# Each way. A ring's 16-bit counters wrap at 65536.
N_FRAMES, N_MANY = 4000, int(os.environ.get("MR_GUEST_FRAMES", "100000"))
UNLIKE = [("igb", "virtio-packed", N_MANY),
          ("e1000e", "virtio-split", N_FRAMES),
          ("virtio-packed", "e1000e", N_FRAMES)]


@pytest.fixture(scope="module")
def machine():
    """A NIC of each kind for us, two that the kernel drives."""
    ours = [Nic(kind, kind) for kind in KINDS]
    theirs = [Nic("igb-xdp", "igb"), Nic("virtio-xdp", "virtio-split")]
    with boot(ours + theirs, needs_all=False) as guest:
        for nic in guest.nics:
            if nic in ours:
                guest.bind(nic, "vfio-pci")
        yield guest


def cross(guest, probe, one, other, n=1501):
    """n frames each way between two ports of one pool; both ports' stats."""
    specs = [spec_of(guest, name) for name in (one, other)]
    for spec in specs:
        probe.do("open", spec)
    probe.begin("forward", 0, 1)
    exchange(guest.wires[one], guest.wires[other], all_lengths(n))
    probe.end_forward()
    probe.flush(1)
    stats = [check_idle(probe, port)["queues"][0] for port in (0, 1)]
    for queue in stats:
        assert queue["rx"]["received"] == queue["tx"]["completed"] == n
    return stats


@pytest.mark.parametrize("kind", KINDS)
def test_beside_zero_copy(guest, probe, kind):
    """Our driver and AF_XDP zero-copy, one pool, no copy of ours."""
    for queue in cross(guest, probe, kind, "igb-xdp"):
        assert queue["tx"]["events"]["foreign_copied"] == 0, queue
        assert queue["tx"]["events"]["edge_copied"] == 0, queue
    assert probe.do("info", 1)["mode"] == "zc"


@pytest.mark.parametrize("kind", ["virtio-packed", "igb"])
def test_beside_virtio_xdp(guest, probe, kind):
    """Our driver, and AF_XDP on a virtio NIC of the kernel's, and back."""
    for queue in cross(guest, probe, kind, "virtio-xdp"):
        assert queue["tx"]["events"]["foreign_copied"] == 0, queue


@pytest.mark.parametrize("one,other,n", UNLIKE)
def test_unlike(guest, one, other, n):
    """mr-l2fwd between unlike NICs: each frame as it was, in order."""
    pid = start_l2fwd(guest, spec_of(guest, one), spec_of(guest, other))
    frames = all_lengths(n)
    exchange(guest.wires[one], guest.wires[other], frames)
    final = end_l2fwd(guest, pid)
    for port in final["ports"]:
        assert invariants.total(port, "rx", "received") == len(frames)
        assert invariants.total(port, "tx", "completed") == len(frames)
