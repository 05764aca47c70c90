# SPDX-License-Identifier: BSD-3-Clause
"""Our own drivers, by vfio-pci, on emulated NICs: what goes through them.

Each wire ends in this process: what is compared is what was on it. The IOMMU
reports a device that writes where it may not.
"""
import pytest

from conftest import boot, spec_of
from forwarder import end_l2fwd, start_l2fwd
from guest import Nic
from lib import invariants
from probe import check_idle
from traffic import MAX_BYTES, Traffic, all_lengths, echo, exchange, hold

KINDS = ["igb", "e1000e", "virtio-split", "virtio-packed"]
UNLIKE = [("igb", "virtio-packed"), ("e1000e", "virtio-split"),
          ("virtio-packed", "e1000e")]


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


@pytest.mark.parametrize("kind", [*KINDS, "igb-xdp"])
def test_every_length_echoed(guest, probe, kind):
    """Each length 14..1514 in, and out again from the same buffer."""
    probe.do("open", spec_of(guest, kind))
    frames = all_lengths(MAX_BYTES - 14 + 1)
    echo(guest.wires[kind], probe, frames)
    queue = check_idle(probe)["queues"][0]
    assert queue["rx"]["received"] == len(frames), queue
    assert queue["tx"]["completed"] == len(frames), queue


@pytest.mark.parametrize("kind", KINDS)
def test_starved(guest, probe, kind):
    """The application keeps every page; when they are back all goes on.

    Each frame from the wire is delivered or a named drop.
    """
    probe.do("pool", 1500)
    probe.do("open", spec_of(guest, kind), 1)
    wire = guest.wires[kind]
    frames = all_lengths(3000)
    traffic = Traffic(wire, wire, frames)
    held = hold(probe, traffic)
    assert 0 < held < len(frames)
    late = 0
    for _ in range(len(frames) // held + 2):
        probe.do("release")
        late += hold(probe, traffic)
    assert not traffic.waiting and late > 0
    probe.do("release")
    stats = check_idle(probe, 0, 1)
    lost = sum(stats["queues"][0]["rx"]["drops"].values()) + \
        sum(stats["device_drops"].values())
    assert held + late + lost == len(frames), (held, late, stats)
    echo(wire, probe, all_lengths(500), is_clear=False)


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


@pytest.mark.parametrize("one,other", UNLIKE)
def test_unlike(guest, one, other):
    """mr-l2fwd between unlike NICs: each frame as it was, in order."""
    pid = start_l2fwd(guest, spec_of(guest, one), spec_of(guest, other))
    frames = all_lengths(4000)
    exchange(guest.wires[one], guest.wires[other], frames)
    final = end_l2fwd(guest, pid)
    for port in final["ports"]:
        assert invariants.total(port, "rx", "received") == len(frames)
        assert invariants.total(port, "tx", "completed") == len(frames)
