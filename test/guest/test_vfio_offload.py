# SPDX-License-Identifier: BSD-3-Clause
"""Sums and segments left to the device: TCP between two kernels, through our
drivers.

    near: nic0, a tap --- virtio -- probe -- any NIC --- nic1, a tap :far

The kernels leave sums to their device, and cutting up to 64 KiB into frames.
With tso a virtio port takes them as they are, and what is known of them goes
with them in the metadata: the device of the other port has the rest of the
work, in the same way for every driver. Behind one of Intel's the tap takes
whole frames alone: it is the NIC that makes the sums and cuts.

Intel's NICs have tags as well, which go by the metadata in the same way.
"""
import struct
from contextlib import contextmanager

import pytest

from conftest import boot, check_log, forget_log, need_driver
from guest import Nic
from lib import talk
from probe import Probe, check_idle
from taps import make_tap, new_lab
from traffic import WINDOW, Traffic, all_lengths, compare

N_BYTES = 1 << 20
# With Ethernet's header.
MTU_BYTES = 1514


def join(near, far):
    """Addresses at both ends, one of them moved away, as QEMU has it now."""
    near.ip("link", "set", "nic1", "netns", far.name)
    for namespace, name, address in ((near, "nic0", "10.77.0.1"),
                                     (far, "nic1", "10.77.0.2")):
        namespace.ip("link", "set", name, "up")
        namespace.ip("address", "add", f"{address}/24", "dev", name)


def tcp_through(guest, near, far, options, has_meta):
    """TCP both ways; the one queue of each port."""
    probe = Probe(guest)
    try:
        probe.do("pool", 8192)
        for nic, more in zip(guest.nics, options):
            probe.do("open", f"vfio:{nic.bdf},promisc{more}")
        probe.begin("forward", 0, 1, has_meta)
        talk.tcp(near, far, "10.77.0.2", N_BYTES)
        talk.tcp(far, near, "10.77.0.1", N_BYTES)
        probe.end_forward()
        probe.flush(1)
        queues = [check_idle(probe, port)["queues"][0] for port in (0, 1)]
        probe.close()
        return queues
    finally:
        probe.kill()


def make_nic(name, kind):
    """On a tap. What virtio can leave to others, Intel's NICs have to do."""
    if kind.startswith("virtio"):
        return Nic(name, kind, "tap", "mq=on,vectors=6", queues=2)
    return Nic(name, kind, "tap-plain", queues=2)


@contextmanager
def two_kernels(tmp_path, kind):
    """A guest with a virtio NIC and one of this kind, each on a tap."""
    need_driver(kind)
    lab = new_lab(tmp_path)
    try:
        near, far = lab.namespace("near"), lab.namespace("far")
        first = kind if kind.startswith("virtio") else "virtio-split"
        nics = [make_nic("nic0", first), make_nic("nic1", kind)]
        for nic in nics:
            make_tap(near, nic.name)
        with boot(nics, prefix=near.command()) as guest:
            join(near, far)
            for nic in nics:
                guest.bind(nic, "vfio-pci")
            forget_log(guest)
            yield guest, near, far
            check_log(guest)
    finally:
        lab.close()


@pytest.mark.parametrize("kind", ["virtio-split", "virtio-packed"])
def test_virtio(tmp_path, kind):
    """It arrives whole with segments, with sums alone, and without both."""
    with two_kernels(tmp_path, kind) as (guest, near, far):
        for queue in tcp_through(guest, near, far, (",tso=on",) * 2, 1):
            # Longer than frames on a wire: they were not cut.
            rx, tx = queue["rx"], queue["tx"]
            assert rx["bytes"] > rx["delivered"] * MTU_BYTES, queue
            assert tx["bytes"] > tx["completed"] * MTU_BYTES, queue
            assert tx["events"]["csum_device"] > 0, queue
        for queue in tcp_through(guest, near, far, (",csum=on",) * 2, 0):
            rx, tx = queue["rx"], queue["tx"]
            assert rx["bytes"] <= rx["delivered"] * MTU_BYTES, queue
            assert tx["events"]["csum_device"] > 0, queue
        for queue in tcp_through(guest, near, far, (",csum=off",) * 2, 0):
            assert queue["tx"]["events"]["csum_device"] == 0, queue


@pytest.mark.parametrize("kind", ["igb", "e1000e"])
def test_intel(tmp_path, kind):
    """What virtio has received in segments and without sums, Intel's NICs
    send as frames with sums."""
    with two_kernels(tmp_path, kind) as (guest, near, far):
        for options, has_meta in ((",tso=on", 1), (",csum=on", 0)):
            virtio, intel = tcp_through(guest, near, far, (options, ""),
                                        has_meta)
            tx = intel["tx"]
            assert tx["bytes"] == virtio["rx"]["bytes"]
            assert (tx["bytes"] > tx["completed"] * MTU_BYTES) == has_meta, tx
            assert tx["events"]["csum_device"] > tx["completed"] / 2, tx
            assert tx["events"]["csum_software"] == 0, tx
            # A plain tap's frames are whole, and short.
            rx = intel["rx"]
            assert rx["bytes"] <= rx["delivered"] * MTU_BYTES, rx
            assert virtio["tx"]["events"]["csum_device"] == 0


def tagged(frame, i):
    """It with a tag: each priority, drop eligible or not, many numbers."""
    tci = i % 8 << 13 | i % 2 << 12 | (1 + i * 37) % 4095
    return frame[:12] + struct.pack("!HH", 0x8100, tci) + frame[12:]


@pytest.mark.parametrize("kind", ["igb", "e1000e"])
def test_vlan(kind):
    """A tag is taken out at one NIC and put in at the other, as it was; frames
    without one stay so."""
    need_driver(kind)
    nics = [Nic("nic0", kind), Nic("nic1", kind)]
    frames = [tagged(data, i) if i % 3 else data
              for i, data in enumerate(all_lengths(1501))]
    n_tags = sum(i % 3 != 0 for i in range(len(frames)))
    with boot(nics) as guest:
        for nic in nics:
            guest.bind(nic, "vfio-pci")
        forget_log(guest)
        probe = Probe(guest)
        try:
            probe.do("pool", 8192)
            for nic in nics:
                probe.do("open", f"vfio:{nic.bdf},promisc,vlan=on")
            probe.begin("forward", 0, 1, 1)
            got = Traffic(guest.wires["nic0"], guest.wires["nic1"], frames,
                          WINDOW).run(len(frames))
            probe.end_forward()
            probe.flush(1)
            compare(got, frames)
            rx = check_idle(probe, 0)["queues"][0]["rx"]
            # A wire has 60 bytes at least; without tags it is 4 less.
            assert rx["bytes"] == sum(max(len(data), 60) for data in frames) \
                - 4 * n_tags, rx
            probe.close()
        finally:
            probe.kill()
        check_log(guest)
