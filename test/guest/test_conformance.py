# SPDX-License-Identifier: BSD-3-Clause
"""The conformance suite on emulated NICs: with the kernel's driver under the
xdp driver, with each of our own, and with DPDK's under dpdk: ports.

At the other end of each cable is a NIC that the guest's kernel drives.
"""
import pytest

import dpdk
from conftest import (CONFORMANCE, MANY_PLACES, boot, check_log, forget_log,
                      need_driver, run_suite)
from guest import Nic

# (kind of NIC, driver, options, what it lacks, how many tests are not skipped). virtio has two queues if its wire has, and this has not. DPDK 22.11
# does not program the MSI-X of the 82574, and the second interrupt never comes;
# with MSI each sleep ends at once, since it never reads what the interrupt was
# for. Its net_virtio leaves the address that another one replaced in the
# device's table. QEMU's igb has no filters by ports: it takes the rules of
# DPDK's driver, and goes on with RSS.
CASES = {
    "xdp-igb": ("igb", "xdp", ",mode=zc", "", 30),
    "xdp-virtio": ("virtio-split", "xdp", "", "queues", 30),
    **{kind: (kind, "vfio", "", "", 48) for kind in ("igb", "e1000e")},
    **{kind: (kind, "vfio", "", "queues", 46) for kind in (
        "virtio-split", "virtio-packed", "virtio-split-in-order",
        "virtio-packed-in-order")},
    "dpdk-igb": ("igb", "dpdk", "", "steering", 47),
    "dpdk-e1000e": ("e1000e", "dpdk", ",irq=off", "cleanup,irqs,queues", 44),
    "dpdk-virtio": ("virtio-split", "dpdk", "", "cleanup,macs,queues",
                    46),
}
# DPDK's net_virtio stops a device by not looking at it any more. What it
# receives between that and its reset, the IOMMU refuses, and says so.
RUNS_ON = ["dpdk-virtio"]


# QEMU's igb and e1000e lose a frame of which one descriptor's bytes lie in two
# places behind the IOMMU: it asks pci_dma_map() for the whole descriptor, gets
# less, and skips the packet (hw/net/net_tx_pkt.c,
# net_tx_pkt_add_raw_fragment_pci()). The hardware does two reads. So chunks
# of more than 4 KiB are on huge pages here: dpdk.MEMORY.
@pytest.mark.parametrize("name", CASES)
def test_suite(name):
    """Every test of the suite passes, and the IOMMU has seen no fault."""
    kind, driver, options, lacks, n_least = CASES[name]
    if driver == "vfio":
        need_driver(kind)
    more = kind.startswith("virtio") and driver != "xdp"
    cable = [Nic("nic0", kind, wire=0, options=MANY_PLACES if more else ""),
             Nic("far0", "virtio-net", wire=0)]
    files = dpdk.files_of_ours() if driver == "dpdk" else ()
    with boot(cable, programs=[CONFORMANCE], files=files,
              **dpdk.MEMORY) as guest:
        where = "nic0"
        if files:
            dpdk.prepare(guest)
        if driver != "xdp":
            guest.bind(cable[0], "vfio-pci")
            assert guest.run("ip link set far0 mtu 9000")[0] == 0
            where = cable[0].bdf
        elif kind == "igb":  # it strips tags, and tells no XDP program
            assert guest.run("ethtool -K nic0 rxvlan off")[0] == 0
        forget_log(guest)
        run_suite(guest, f"{driver}:{where}{options}", n_least, lacks)
        if name not in RUNS_ON:
            check_log(guest)
