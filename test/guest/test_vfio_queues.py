# SPDX-License-Identifier: BSD-3-Clause
"""Several queues and two workers, each on a processor of its own, with RSS.

That it is the device which spreads frames, and not the wire, is seen by the
hash beside each: it is the one of the queue.
"""
import pytest

from conftest import boot, check_log, forget_log, need_driver
from guest import Nic
from queues import hashed, spread
from taps import TapWire, new_lab

RSS = "mq=on,vectors=6,rss=on,hash=on"


@pytest.mark.parametrize("kind,n_queues", [("igb", 2), ("igb", 8),
                                           ("e1000e", 2)])
def test_intel(kind, n_queues):
    """Intel's NICs; from the fifth queue on registers lie elsewhere."""
    need_driver(kind)
    nics = [Nic("nic0", kind), Nic("nic1", kind)]
    with boot(nics, n_cpus=2) as guest:
        for nic in nics:
            guest.bind(nic, "vfio-pci")
        forget_log(guest)
        specs = [f"vfio:{nic.bdf},queues={n_queues}" for nic in nics]
        spread(guest, list(guest.wires.values()), specs, n_queues)
        hashed(guest, guest.wires["nic0"], specs[0] + ",promisc")
        check_log(guest)


@pytest.mark.parametrize("kind", ["virtio-split", "virtio-packed"])
def test_virtio(tmp_path, kind):
    """virtio with two queue pairs, which its wire must have too: taps."""
    need_driver(kind)
    lab = new_lab(tmp_path)
    try:
        namespace = lab.namespace("tap")
        wires = {name: TapWire(namespace, name) for name in ("nic0", "nic1")}
        nics = [Nic(name, kind, "tap", RSS, queues=2) for name in wires]
        with boot(nics, n_cpus=2, prefix=namespace.command()) as guest:
            for nic in nics:
                guest.bind(nic, "vfio-pci")
            forget_log(guest)
            specs = [f"vfio:{nic.bdf},queues=2,rss=on,hash=on" for nic in nics]
            spread(guest, list(wires.values()), specs, 2)
            hashed(guest, wires["nic0"], specs[0] + ",promisc")
            check_log(guest)
    finally:
        lab.close()
