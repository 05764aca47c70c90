# SPDX-License-Identifier: BSD-3-Clause
"""virtio's sums and segments: TCP between two kernels, through our driver.

    near: nic0, a tap --- virtio -- probe -- virtio --- nic1, a tap :far

Both kernels leave sums to their device, and cutting up to 64 KiB into frames.
With tso a port takes them as they are, and what is known of them goes with
them in the metadata: the device of the other port has the rest of the work.
"""
import pytest

from conftest import boot, check_log, forget_log, need_driver
from guest import Nic
from lib import talk
from probe import Probe, check_idle
from taps import make_tap, new_lab

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
        for nic in guest.nics:
            probe.do("open", f"vfio:{nic.bdf},promisc{options}")
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


@pytest.mark.parametrize("kind", ["virtio-split", "virtio-packed"])
def test_tcp(tmp_path, kind):
    """It arrives whole with segments, with sums alone, and without both."""
    need_driver(kind)
    lab = new_lab(tmp_path)
    try:
        near, far = lab.namespace("near"), lab.namespace("far")
        nics = [Nic(name, kind, "tap", "mq=on,vectors=6", queues=2)
                for name in ("nic0", "nic1")]
        for nic in nics:
            make_tap(near, nic.name)
        with boot(nics, prefix=near.command()) as guest:
            join(near, far)
            for nic in nics:
                guest.bind(nic, "vfio-pci")
            forget_log(guest)
            for queue in tcp_through(guest, near, far, ",tso=on", 1):
                # Longer than frames on a wire: they were not cut.
                rx, tx = queue["rx"], queue["tx"]
                assert rx["bytes"] > rx["delivered"] * MTU_BYTES, queue
                assert tx["bytes"] > tx["completed"] * MTU_BYTES, queue
                assert tx["events"]["csum_device"] > 0, queue
            for queue in tcp_through(guest, near, far, ",csum=on", 0):
                rx, tx = queue["rx"], queue["tx"]
                assert rx["bytes"] <= rx["delivered"] * MTU_BYTES, queue
                assert tx["events"]["csum_device"] > 0, queue
            for queue in tcp_through(guest, near, far, ",csum=off", 0):
                assert queue["tx"]["events"]["csum_device"] == 0, queue
            check_log(guest)
    finally:
        lab.close()
