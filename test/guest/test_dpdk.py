# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's own NIC drivers under dpdk: ports, by vfio-pci, on emulated NICs.

The conformance suite, with a NIC that the guest's kernel drives at the other
end of the cable; and mr-l2fwd between two of them. The IOMMU reports a device
that writes where it may not.
"""
import pytest

import dpdk
from conftest import (CONFORMANCE, MANY_PLACES, PROGRAMS, boot, check_log,
                      run_suite)
from forwarder import end_l2fwd, start_l2fwd
from guest import Nic
from traffic import Traffic, all_lengths, compare

# Of each kind: options, what it lacks, and how many tests are not skipped. DPDK
# 22.11 does not program the MSI-X of the 82574, and the second interrupt never
# comes; with MSI each sleep ends at once, since it never reads what the
# interrupt was for. virtio has two queues if its wire has, and this has not.
CASES = {
    "igb": ("", "", 47),
    "e1000e": ("irq=off", "cleanup,irqs,queues", 44),
    "virtio-split": ("", "cleanup,queues", 46),
}
# DPDK's net_virtio stops a device by not looking at it any more. What it
# receives between that and its reset, the IOMMU refuses, and says so.
RUNS_ON = ["virtio-split"]


@pytest.mark.parametrize("kind", CASES)
def test_suite(kind):
    """Every test of the suite passes, and the IOMMU has seen no fault."""
    options, lacks, n_least = CASES[kind]
    more = MANY_PLACES if kind.startswith("virtio") else ""
    cable = [Nic("nic0", kind, wire=0, options=more),
             Nic("far0", "virtio-net", wire=0)]
    with boot(cable, programs=[CONFORMANCE], files=dpdk.files_of_ours(),
              **dpdk.MEMORY) as guest:
        dpdk.prepare(guest)
        guest.bind(cable[0], "vfio-pci")
        assert guest.run("ip link set far0 mtu 9000")[0] == 0
        guest.run("dmesg -c >/dev/null")
        run_suite(guest, "dpdk-nic", n_least, **{"": cable[0].bdf},
                  _FAR="far0", _OPTIONS=options, _LACKS=lacks)
        if kind not in RUNS_ON:
            check_log(guest)


@pytest.mark.parametrize("one,other", [("igb", "virtio-split"),
                                       ("e1000e", "igb")])
def test_forwarded(one, other):
    """mr-l2fwd between two of DPDK's drivers: every length, both ways."""
    nics = [Nic(one, one), Nic(other, other)]
    with boot(nics, programs=PROGRAMS, files=dpdk.files_of_ours(),
              **dpdk.MEMORY) as guest:
        dpdk.prepare(guest)
        for nic in nics:
            guest.bind(nic, "vfio-pci")
        guest.run("dmesg -c >/dev/null")
        pid = start_l2fwd(guest, "--mode", "patch",
                          *(f"dpdk:{nic.bdf},ring=256,promisc"
                            for nic in nics))
        for source, sink in (nics, nics[::-1]):
            frames = all_lengths(1501)
            got = Traffic(guest.wires[source.name], guest.wires[sink.name],
                          frames, window=64).run(len(frames))
            compare(got, frames)
        end_l2fwd(guest, pid)
        check_log(guest) # no traffic while they are closed
