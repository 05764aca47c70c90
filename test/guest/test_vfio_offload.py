# SPDX-License-Identifier: BSD-3-Clause
"""Sums and segments left to the device: TCP between two kernels, through our
drivers (see kernels.py).

With tso a virtio port takes them as they are, and what is known of them goes
with them in the metadata: the device of the other port has the rest of the
work, in the same way for every driver. Behind one of Intel's the tap takes
whole frames alone: it is the NIC that makes the sums and cuts.

Intel's NICs have tags as well, which go by the metadata in the same way.
"""
import pytest

from conftest import boot, check_log, forget_log, need_driver
from guest import Nic
from kernels import (MTU_BYTES, check_left_to_device, tcp_through,
                     two_kernels)
from traffic import carry_tags


def specs(guest, *options):
    return [f"vfio:{nic.bdf},promisc{more}"
            for nic, more in zip(guest.nics, options)]


@pytest.mark.parametrize("kind", ["virtio-split", "virtio-packed"])
def test_virtio(tmp_path, kind):
    """It arrives whole with segments, with sums alone, and without both."""
    need_driver(kind)
    with two_kernels(tmp_path, kind) as (guest, near, far):
        both = specs(guest, ",tso=on", ",tso=on")
        for queue in tcp_through(guest, near, far, both, 1):
            # Longer than frames on a wire: they were not cut.
            rx, tx = queue["rx"], queue["tx"]
            assert rx["bytes"] > rx["delivered"] * MTU_BYTES, queue
            assert tx["bytes"] > tx["completed"] * MTU_BYTES, queue
            assert tx["events"]["csum_device"] > 0, queue
        both = specs(guest, ",csum=on", ",csum=on")
        for queue in tcp_through(guest, near, far, both, 0):
            rx, tx = queue["rx"], queue["tx"]
            assert rx["bytes"] <= rx["delivered"] * MTU_BYTES, queue
            assert tx["events"]["csum_device"] > 0, queue
        both = specs(guest, ",csum=off", ",csum=off")
        for queue in tcp_through(guest, near, far, both, 0):
            assert queue["tx"]["events"]["csum_device"] == 0, queue


@pytest.mark.parametrize("kind", ["igb", "e1000e"])
def test_intel(tmp_path, kind):
    """What virtio has received in segments and without sums, Intel's NICs
    send as frames with sums."""
    need_driver(kind)
    with two_kernels(tmp_path, kind) as (guest, near, far):
        for options, has_meta in ((",tso=on", 1), (",csum=on", 0)):
            virtio, intel = tcp_through(guest, near, far,
                                        specs(guest, options, ""), has_meta)
            # A plain tap's frames are whole, and short.
            check_left_to_device(virtio, intel, "completed", has_meta)
            assert virtio["tx"]["events"]["csum_device"] == 0


@pytest.mark.parametrize("kind", ["igb", "e1000e"])
def test_vlan(kind):
    """Tags go through the metadata."""
    need_driver(kind)
    with boot([Nic("nic0", kind), Nic("nic1", kind)]) as guest:
        for nic in guest.nics:
            guest.bind(nic, "vfio-pci")
        forget_log(guest)
        carry_tags(guest, specs(guest, ",vlan=on", ",vlan=on"))
        check_log(guest)
