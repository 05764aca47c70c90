# SPDX-License-Identifier: BSD-3-Clause
"""DPDK in a guest: what its programs and our dpdk driver load at run time.

    with Guest(nics, programs, files=dpdk.files_of_ours(),
               **dpdk.MEMORY) as guest:
        dpdk.prepare(guest)
        guest.bind(nic, "vfio-pci")
        guest.run(f"mr-l2fwd --duration 3 dpdk:{nic.bdf} null:")
"""
import glob
import os

from fetch import Missing
from guest import BUILD

LIBRARIES = "/usr/lib/x86_64-linux-gnu"
# Of all drivers that Debian has: EAL loads what is in its folder.
PMDS = ["bus_pci", "bus_vdev", "mempool_ring", "net_e1000", "net_virtio",
        "net_af_xdp", "net_null"]
# libxdp's programs, which net_af_xdp attaches.
XDP_OBJECTS = ["xdp-dispatcher.o", "xsk_def_xdp_prog.o",
               "xsk_def_xdp_prog_5.3.o"]
MODULE = BUILD / "lib" / "link" / "libmillrace-dpdk.so"
# For Guest(): EAL wants 16 huge pages, pools of ours take what is left.
MEMORY = {"memory_mb": 2560, "append": "hugepages=400"}


def pmd_folder():
    """Where DPDK looks for its drivers, here and in the guest."""
    folders = sorted(glob.glob(f"{LIBRARIES}/dpdk/pmds-*"))
    if not folders:
        raise Missing("no DPDK drivers; install dpdk (Debian: dpdk-dev)")
    return folders[-1]


def files():
    """(file, name in the guest) of what EAL opens, for Guest(files=)."""
    found = []
    for name in PMDS:
        # By the name that others are linked with: one and the same file.
        path = os.path.realpath(f"{pmd_folder()}/librte_{name}.so")
        found.append((path, "/lib/" + ".".join(
            os.path.basename(path).split(".")[:3])))
    for name in XDP_OBJECTS:
        path = f"{LIBRARIES}/bpf/{name}"
        if os.path.exists(path):
            found.append((path, path))
    return found


def files_of_ours():
    """files(), and our driver for dpdk: ports, beside our library."""
    if not MODULE.exists():
        raise Missing("the driver dpdk is not built")
    return [*files(), (MODULE, f"/lib/{MODULE.name}")]


def prepare(guest):
    """Huge pages, and DPDK's folder of drivers."""
    folder = pmd_folder()
    status, text = guest.run(
        f"mkdir -p /dev/hugepages {folder} && "
        "mount -t hugetlbfs hugetlbfs /dev/hugepages && "
        + " && ".join(f"ln -s /lib/librte_{name}.so.* {folder}/librte_{name}.so"
                      for name in PMDS))
    if status != 0:
        raise RuntimeError(f"DPDK was not prepared: {text}")
