# SPDX-License-Identifier: BSD-3-Clause
"""What devices do for dpdk: ports, by DPDK's igb, e1000e and virtio drivers:
spreading frames, sums, segments, tags, word of the cable; mr-l2fwd between two
of them, and a port of our own driver beside one in one pool."""
import pytest

import dpdk
from conftest import boot, check_log, forget_log, need_driver
from forwarder import end_l2fwd, start_l2fwd
from guest import Nic
from kernels import check_left_to_device, tcp_through, two_kernels
from probe import Probe, check_idle, opened, wait_for_link
from queues import KEEP_KEY, N_FLOWS, hashed, spread, ways
from traffic import (Traffic, all_lengths, carry_tags, compare, cut_link, echo,
                     exchange)

WAKE_LIMIT_MS = 30000
# enum mr_os_pages
SMALL_PAGES, HUGE_PAGES = 4, 2
# DPDK's net_virtio looks for what was sent only when it wants the room.
LAZY = ["virtio-split"]


def boot_dpdk(nics, **options):
    return boot(nics, files=dpdk.files_of_ours(), **dpdk.MEMORY, **options)


def bind(guest):
    dpdk.prepare(guest)
    for nic in guest.nics:
        guest.bind(nic, "vfio-pci")
    forget_log(guest)


def copied(queue):
    """Frames of a queue that were copied, both ways."""
    return sum(n for way in ("rx", "tx")
               for name, n in queue[way]["events"].items()
               if name.endswith("copied"))


@pytest.mark.parametrize("one,other", [("igb", "virtio-split"),
                                       ("e1000e", "igb")])
def test_forwarded(one, other):
    """mr-l2fwd between two of DPDK's drivers: every length, both ways."""
    nics = [Nic("one", one), Nic("other", other)]
    with boot_dpdk(nics) as guest:
        bind(guest)
        pid = start_l2fwd(guest, "--mode", "patch",
                          *(f"dpdk:{nic.bdf},ring=256,promisc"
                            for nic in nics))
        wires = list(guest.wires.values())
        frames = all_lengths(1501)
        for source, sink in (wires, wires[::-1]):
            compare(Traffic(source, sink, frames, window=64).run(len(frames)),
                    frames)
        end_l2fwd(guest, pid)
        check_log(guest)  # no traffic while they are closed


def test_spread():
    """igb's two queues: frames by their hash, which is in the metadata."""
    with boot_dpdk([Nic("nic0", "igb"), Nic("nic1", "igb")],
                   n_cpus=2) as guest:
        bind(guest)
        specs = [f"dpdk:{nic.bdf},queues=2,promisc" for nic in guest.nics]
        spread(guest, list(guest.wires.values()), specs, 2)
        hashed(guest, guest.wires["nic0"], specs[0])
        check_log(guest)


def test_rss():
    """Both directions of a flow on one queue; then another table."""
    with boot_dpdk([Nic("nic0", "igb")]) as guest:
        bind(guest)
        with opened(guest, f"dpdk:{guest.nics[0].bdf},queues=2,ring=256,"
                    "promisc") as probe:
            probe.do("rss", 0)
            assert ways(guest, probe) == (N_FLOWS, {0, 1})
            probe.do("rss", 0, KEEP_KEY, 0, 1)
            assert ways(guest, probe) == (N_FLOWS, {1})


@pytest.mark.parametrize("kind", ["igb", "virtio-split"])
def test_sums_and_segments(tmp_path, kind):
    """What our virtio has received in segments and without sums, the device
    sends as frames with sums; and back, with sums that it leaves to ours."""
    need_driver("virtio-split")
    is_virtio = kind.startswith("virtio")
    with two_kernels(tmp_path, kind, files=dpdk.files_of_ours(),
                     **dpdk.MEMORY) as (guest, near, far):
        dpdk.prepare(guest)
        near_nic, far_nic = guest.nics
        for options, has_meta in ((",tso=on", 1), (",csum=on", 0)):
            ours, theirs = tcp_through(
                guest, near, far, [f"vfio:{near_nic.bdf},promisc{options}",
                                   f"dpdk:{far_nic.bdf},promisc,csum=on"],
                has_meta, kind in LAZY)
            # DPDK is not asked to receive frames longer than the wire's.
            check_left_to_device(ours, theirs, "accepted", has_meta)
            # A plain tap's frames have their sums, virtio's have not.
            assert (ours["tx"]["events"]["csum_device"] > 0) == is_virtio, ours
            assert copied(ours) == copied(theirs) == 0, (ours, theirs)
        ours, theirs = tcp_through(
            guest, near, far, [f"vfio:{near_nic.bdf},promisc,csum=on",
                               f"dpdk:{far_nic.bdf},promisc,csum=off"],
            0, kind in LAZY)
        assert theirs["tx"]["events"]["csum_device"] == 0, theirs
        assert theirs["tx"]["events"]["csum_software"] > 0, theirs


def test_vlan():
    """Tags go through the metadata."""
    with boot_dpdk([Nic("nic0", "igb"), Nic("nic1", "igb")]) as guest:
        bind(guest)
        carry_tags(guest, [f"dpdk:{nic.bdf},promisc,vlan=strip"
                           for nic in guest.nics])
        check_log(guest)


def test_link_down_and_up():
    """The cable is pulled and put back: the port's fd wakes, and says so."""
    with boot_dpdk([Nic("nic0", "igb")]) as guest:
        bind(guest)
        with opened(guest, f"dpdk:{guest.nics[0].bdf},promisc") as probe:
            def set_link(is_up):
                while probe.do("link", 0)["events"]:
                    pass
                guest.qmp("set_link", name="nic0", up=is_up)
                probe.do("wake", 0, WAKE_LIMIT_MS)

            wait_for_link(probe, True)
            for _ in range(2):
                cut_link(guest.wires["nic0"], probe, set_link)
            check_idle(probe)
        check_log(guest)


@pytest.mark.parametrize("ours,theirs", [("virtio-split", "igb"),
                                         ("igb", "virtio-split")])
def test_beside_ours(ours, theirs):
    """vfio: and dpdk: in one process and pool: both ways, without copies."""
    need_driver(ours)
    with boot_dpdk([Nic("nic0", ours), Nic("nic1", theirs)]) as guest:
        bind(guest)
        one, other = guest.wires.values()
        with opened(guest, f"vfio:{guest.nics[0].bdf},promisc",
                    f"dpdk:{guest.nics[1].bdf},promisc") as probe:
            frames = all_lengths(1501)
            probe.begin("forward", 0, 1)
            exchange(one, other, frames)
            probe.end_forward()
            if theirs not in LAZY:
                probe.flush(1)
            for port in (0, 1):
                queue = check_idle(probe, port)["queues"][0]
                assert queue["tx"]["accepted"] == len(frames), queue
                assert copied(queue) == 0, queue


def test_physical_addresses():
    """Where DPDK wants them: small pages are refused, huge ones are taken."""
    with boot_dpdk([Nic("nic0", "igb")]) as guest:
        bind(guest)
        spec = f"dpdk:{guest.nics[0].bdf},promisc,eal=--iova-mode=pa"
        for os_pages in (SMALL_PAGES, HUGE_PAGES):
            with Probe(guest) as probe:
                probe.do("region", os_pages)
                probe.do("pool", 8192)
                answer = probe.ask("open", spec)
                assert answer["ok"] == (os_pages == HUGE_PAGES), answer
                if answer["ok"]:
                    echo(guest.wires["nic0"], probe, all_lengths(1501))
                    check_idle(probe)
                else:
                    assert "physical addresses" in answer["reason"], answer
                    assert "huge pages" in answer["reason"], answer
        check_log(guest)
