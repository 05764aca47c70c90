# SPDX-License-Identifier: BSD-3-Clause
"""Text and JSON output. The text is made from the JSON object of a device."""

import json
from typing import Any

from mr_devices.device import Device, driver_in_group
from mr_devices.machine import Machine
from mr_support.text import escape

COLUMNS = {
    "ADDRESS": "address",
    "IDS": "ids",
    "VFIO": "driver",
    "KERNEL": "kernel_driver",
    "INTERFACE": "interface",
    "GROUP": "iommu_group",
    "NODE": "numa_node",
    "LINK": "link",
}
LINES = {
    "address": "address",
    "ids": "ids",
    "driver (vfio:)": "driver",
    "kernel driver": "kernel_driver",
    "interface": "interface",
    "link": "link",
    "default route": "default_route",
    "IOMMU group": "iommu_group",
    "shared with": "group_shared_with",
    "NUMA node": "numa_node",
    "virtual fns": "virtual_functions",
    "was": "former_kernel_driver",
    "port spec": "spec",
}
Object = dict[str, Any]


def object_of(device: Device) -> Object:
    """Version 1: mr-devices.schema.json. Each member is always present."""
    pci, link, note = device.pci, device.link, device.note
    spec = f"xdp:{pci.netdev}" if pci.netdev else None
    if device.is_vfio and device.driver:
        spec = f"vfio:{pci.bdf}"
    members: Object = {
        "address": pci.bdf,
        "vendor": f"{pci.vendor_id:04x}",
        "device": f"{pci.device_id:04x}",
        "subsystem_vendor": f"{pci.subsystem_vendor_id:04x}",
        "subsystem_device": f"{pci.subsystem_id:04x}",
        "class": f"{pci.class_code:06x}",
        "driver": device.driver or None,
        "kernel_driver": pci.kernel_driver or None,
        "interface": pci.netdev or None,
        "link": {"up": link[0], "mbps": link[1]} if link else None,
        "default_route": bool(device.default_route),
        "iommu_group": pci.iommu_group if pci.iommu_group >= 0 else None,
        "group_shared_with": device.siblings,
        "numa_node": pci.numa_node if pci.numa_node >= 0 else None,
        "virtual_functions": pci.n_vfs,
        "former_kernel_driver": note.driver if note else None,
        "spec": spec,
    }
    return {key: escape(v) if isinstance(v, str) else v for key, v in members.items()}


def _words(member: Any, none: str) -> str:
    """A member as text, or none."""
    if isinstance(member, bool):
        return "yes" if member else "no"
    if isinstance(member, dict):
        speed = f", {member['mbps']} Mb/s" if member["mbps"] > 0 else ""
        return f"up{speed}" if member["up"] else "down"
    return none if member in (None, "") else str(member)


def _ids(shown: Object) -> str:
    return f"{shown['vendor']}:{shown['device']}"


def _remarks(shown: Object) -> str:
    """Remarks that have no column."""
    remarks = ["default route"] if shown["default_route"] else []
    if shown["group_shared_with"]:
        remarks.append(f"group shared with {' '.join(shown['group_shared_with'])}")
    if shown["former_kernel_driver"] is not None:
        remarks.append(f"was {_words(shown['former_kernel_driver'], 'without a driver')}")
    return f"  {', '.join(remarks)}" if remarks else ""


def print_list(devices: list[Device]) -> None:
    """A table."""
    rows, remarks = [list(COLUMNS)], [""]
    for shown in map(object_of, devices):
        shown["ids"] = _ids(shown)
        rows.append([_words(shown[key], "-") for key in COLUMNS.values()])
        remarks.append(_remarks(shown))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    widths[-1] = 0
    for row, remark in zip(rows, remarks, strict=True):
        print("  ".join(f"{cell:{n}}" for cell, n in zip(row, widths, strict=True)) + remark)


def print_info(machine: Machine, device: Device) -> None:
    """One device in full."""
    shown = object_of(device)
    shown["ids"] = (
        f"{_ids(shown)}, subsystem {shown['subsystem_vendor']}:{shown['subsystem_device']}, "
        f"class {shown['class']}"
    )
    for title, key in LINES.items():
        if key == "group_shared_with":
            for other in shown[key]:
                driver, is_viable = driver_in_group(machine, other)
                spoils = "" if is_viable else ": not viable"
                print(f"{title:16} {other}, {escape(driver) or 'no driver'}{spoils}")
        elif title != "was" or shown[key] is not None:
            print(f"{title:16} {_words(shown[key], 'none')}")


def print_json(devices: list[Device]) -> None:
    """One JSON object."""
    print_object({"v": 1, "devices": [object_of(device) for device in devices]})


def print_object(shown: Object) -> None:
    """JSON on one line."""
    print(json.dumps(shown, ensure_ascii=False, separators=(",", ":")))
