# SPDX-License-Identifier: BSD-3-Clause
"""The conformance suite on emulated NICs: with the kernel's driver under the
xdp driver, and with each of our own.

At the other end of each cable is a NIC that the guest's kernel drives.
"""
import pytest

from conftest import (CONFORMANCE, MANY_PLACES, boot, check_log, forget_log,
                      need_driver, run_suite)
from guest import Nic

# (kind of NIC, fixture, options, how many tests are not skipped).
CASES = {
    "xdp-igb": ("igb", "nic", "mode=zc", 30),
    "xdp-virtio": ("virtio-split", "nic", "mode=auto", 30),
    **{kind: (kind, "vfio", "", 48) for kind in ("igb", "e1000e")},
    # virtio has two queues if its wire has, and this has not.
    **{kind: (kind, "vfio", "", 46) for kind in (
        "virtio-split", "virtio-packed", "virtio-split-in-order",
        "virtio-packed-in-order")},
}
# QEMU's igb and e1000e lose a frame of which one descriptor's bytes lie in two
# places behind the IOMMU: it asks pci_dma_map() for the whole descriptor, gets
# less, and skips the packet (hw/net/net_tx_pkt.c,
# net_tx_pkt_add_raw_fragment_pci()). The hardware does two reads. So chunks
# of more than 4 KiB are on huge pages here.
MEMORY = {"memory_mb": 2560, "append": "hugepages=400"}


@pytest.mark.parametrize("name", CASES)
def test_suite(name):
    """Every test of the suite passes, and the IOMMU has seen no fault."""
    kind, fixture, options, n_least = CASES[name]
    if fixture == "vfio":
        need_driver(kind)
    is_virtio = kind.startswith("virtio")
    more = is_virtio and fixture == "vfio"
    cable = [Nic("nic0", kind, wire=0, options=MANY_PLACES if more else ""),
             Nic("far0", "virtio-net", wire=0)]
    with boot(cable, programs=[CONFORMANCE], **MEMORY) as guest:
        where = "nic0"
        if fixture == "vfio":
            guest.bind(cable[0], "vfio-pci")
            assert guest.run("ip link set far0 mtu 9000")[0] == 0
            where = cable[0].bdf
        elif kind == "igb":  # it strips tags, and tells no XDP program
            assert guest.run("ethtool -K nic0 rxvlan off")[0] == 0
        forget_log(guest)
        run_suite(guest, fixture, n_least, **{"": where}, _FAR="far0",
                  _OPTIONS=options, _LACKS="queues" if is_virtio else "")
        check_log(guest)
