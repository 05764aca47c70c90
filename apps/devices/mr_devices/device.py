# SPDX-License-Identifier: BSD-3-Clause
"""Information about a device, from the library and sysfs.

Source: linux/Documentation/ABI/testing/sysfs-bus-pci, sysfs-class-net; for
/proc/net/route and ipv6_route, proc(5).
"""

import contextlib
import os
from dataclasses import dataclass

from mr_devices.library import PCI_USE_KERNEL, PCI_USE_VFIO, Failure, PciInfo
from mr_devices.machine import Machine, Note

CLASS_NETWORK = 0x02  # base class; PCI Code and ID Assignment 1.11
MAX_DEPTH = 8  # of stacked interfaces

# Fields of a route: interface, and those that have this text in a default one.
ROUTES = (("/proc/net/route", 0, (1, 7), "00000000"), ("/proc/net/ipv6_route", 9, (1,), "00"))
MISSING = [""] * 10  # of a line that is too short


@dataclass(frozen=True)
class Device:
    """driver: our vfio driver for it; "": none. siblings: the others of its IOMMU group.
    is_vfio: bound to vfio-pci or a driver of its kind. link: whether it is up, and its Mb/s,
    0: unknown; None: no interface. default_route: its interface with that route; "": none."""

    pci: PciInfo
    driver: str
    siblings: list[str]
    is_nic: bool
    is_vfio: bool
    link: tuple[bool, int] | None
    default_route: str
    note: Note | None


def _has_route(machine: Machine, interface: str) -> bool:
    for path, name, fields, zero in ROUTES:
        with contextlib.suppress(OSError), open(machine.root + path, "rb") as file:
            for line in file:
                words = [*os.fsdecode(line).split(), *MISSING]
                if words[name] == interface and all(words[i] == zero for i in fields):
                    return True
    return False


def _has_default_route(machine: Machine, interface: str, depth: int = 0) -> bool:
    """Whether the machine's default route uses this interface, or a bridge, bond or VLAN on
    top of it, such as "upper_br0" in its directory."""
    if _has_route(machine, interface):
        return True
    uppers = [
        name.removeprefix("upper_")
        for name in machine.names_if_any(f"/sys/class/net/{interface}")
        if name.startswith("upper_")
    ]
    return depth < MAX_DEPTH and any(_has_default_route(machine, u, depth + 1) for u in uppers)


def _link_of(machine: Machine, interface: str) -> tuple[bool, int]:
    # The carrier of an interface that is down: EINVAL. A speed of -1: unknown.
    is_up = machine.read(f"/sys/class/net/{interface}/carrier") == "1"
    speed = machine.read(f"/sys/class/net/{interface}/speed")
    return is_up, int(speed) if is_up and speed.isdigit() else 0


def read_device(machine: Machine, bdf: str) -> Device:
    """Raises Failure."""
    pci = machine.library.pci_info(bdf)
    siblings: list[str] = []
    if pci.iommu_group >= 0:
        try:
            siblings = machine.names(f"/sys/kernel/iommu_groups/{pci.iommu_group}/devices")
        except OSError as error:
            raise Failure(
                f"{pci.bdf}: cannot read its IOMMU group {pci.iommu_group}: {error.strerror}"
            ) from None
    # A function may have several interfaces, one per NIC port.
    net = f"/sys/class/net/{pci.netdev}/device/net"
    interfaces = machine.names_if_any(net) if pci.netdev else []
    return Device(
        pci,
        driver=machine.library.driver_name(pci),
        siblings=[sibling for sibling in siblings if sibling != pci.bdf],
        is_nic=pci.class_code >> 16 == CLASS_NETWORK,
        is_vfio=machine.library.pci_use(pci) == PCI_USE_VFIO,
        link=_link_of(machine, pci.netdev) if pci.netdev else None,
        default_route=next((i for i in interfaces if _has_default_route(machine, i)), ""),
        note=machine.recall(pci.bdf),
    )


def driver_in_group(machine: Machine, bdf: str) -> tuple[str, bool]:
    """The kernel driver of a function, "": none; and whether a user space program may own a
    group that contains it. One that was unplugged meanwhile does not matter."""
    pci = machine.look(bdf)
    if pci is None:
        return "", True
    return pci.kernel_driver, machine.library.pci_use(pci) != PCI_USE_KERNEL


def node_of_group(machine: Machine, pci: PciInfo) -> str:
    """The path of its IOMMU group's node, without machine.root."""
    noiommu = f"/dev/vfio/noiommu-{pci.iommu_group}"
    return noiommu if machine.exists(noiommu) else f"/dev/vfio/{pci.iommu_group}"


def nodes_of(machine: Machine, pci: PciInfo) -> list[str]:
    """The node of its group, and its own node if the kernel creates one."""
    group = [node_of_group(machine, pci)] if pci.iommu_group >= 0 else []
    return group + ([f"/dev/vfio/devices/{pci.vfio_cdev}"] if pci.vfio_cdev else [])


def holder_of(machine: Machine, pci: PciInfo) -> str:
    """The pid of a process that has the device, or its group, open; "": none is visible.
    Taking a device from its user blocks in the kernel until the user releases it, and cannot
    be interrupted."""
    nodes = nodes_of(machine, pci)
    for pid in filter(str.isdigit, machine.names_if_any("/proc")):
        for fd in machine.names_if_any(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"{machine.root}/proc/{pid}/fd/{fd}") in nodes:
                    return pid
    return ""
