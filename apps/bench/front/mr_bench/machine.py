# SPDX-License-Identifier: BSD-3-Clause
"""Describes the machine that figures were measured on: the NIC of each port, its slot, and its
settings in the kernel. Figures of two machines differ because of these."""

import array
import fcntl
import os
import re
import socket
import struct
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

CPUS = "/sys/devices/system/cpu"
# <linux/sockios.h>, <linux/ethtool.h>: numbers of commands, and what the kernel fills in.
SIOCETHTOOL, GDRVINFO, GCOALESCE, GRINGPARAM = 0x8946, 0x3, 0xE, 0x10
DRVINFO, RINGPARAM, COALESCE = "4x32s32s32s96x", "20xI8xI", "4xI12xI16xII44x"
MAX_NODES = 256


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text("utf-8", "backslashreplace").splitlines()
    except OSError:
        return []


def _line(path: str, otherwise: str = "") -> str:
    """The first line."""
    return next((line.strip() for line in _lines(path)), otherwise)


def _number(path: str, otherwise: int) -> int:
    found = re.match("-?[0-9]+", _line(path))
    return int(found[0]) if found else otherwise


def _value(path: str, key: str) -> str:
    """The value in a line "key : value"."""
    for line in _lines(path):
        name, colon, value = line.partition(":")
        if colon and name.startswith(key):
            return value.strip()
    return "unknown"


def _mem(key: str) -> int:
    found = re.match("[0-9]+", _value("/proc/meminfo", key))
    return int(found[0]) if found else 0


def _numa_nodes() -> int:
    """The number of NUMA nodes with memory, from a list such as "0-1,3"."""
    ranges = re.findall("([0-9]+)(?:-([0-9]+))?", _line("/sys/devices/system/node/has_memory"))
    return sum(int(last or first) - int(first) + 1 for first, last in ranges)


def _guest() -> str:
    """Virtual machine or container: others may take CPU time from the benchmark."""
    parts = []
    if " hypervisor" in _value("/proc/cpuinfo", "flags"):
        dmi = "/sys/class/dmi/id"
        names = [_line(f"{dmi}/sys_vendor"), _line(f"{dmi}/product_name")]
        parts.append(" ".join(["virtual machine", *filter(None, names)]))
    if any(map(os.path.exists, ("/.dockerenv", "/run/.containerenv"))):
        parts.append("container")
    return ", ".join(parts)


def _vulnerabilities() -> list[str]:
    """CPU vulnerabilities and their mitigations, which affect figures."""
    folder = Path(f"{CPUS}/vulnerabilities")
    states = {path.name: _line(str(path)) for path in sorted(folder.glob("*"))}
    return [f"{name}: {state}" for name, state in states.items() if state != "Not affected"]


def governor(cores: Iterable[int], sysfs: str = "/sys") -> str:
    """Governors of these cores: "performance", or "performance, powersave" if they differ."""
    folders = (f"{sysfs}/devices/system/cpu/cpu{core}/cpufreq" for core in cores)
    words = (_line(f"{folder}/scaling_governor", "unknown") for folder in folders)
    return ", ".join(dict.fromkeys(words))


def look(built: dict[str, str], command: str) -> dict[str, Any]:
    """ "machine" of a document, before it is busy. built: the program that measures, its compiler,
    flags, version and DPDK. The governor is that of all cores that this process may run on."""
    kernel = os.uname()
    thp = re.search(r"\[(.*?)\]", _line("/sys/kernel/mm/transparent_hugepage/enabled"))
    nohz = _line(f"{CPUS}/nohz_full")
    return {
        "cpu": _value("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "microcode": _value("/proc/cpuinfo", "microcode"),
        "governor": governor(sorted(os.sched_getaffinity(0))),
        "smt": _line(f"{CPUS}/smt/active") == "1",
        "numa_nodes": _numa_nodes(),
        "isolated": _line(f"{CPUS}/isolated"),
        "nohz_full": "" if nohz == "(null)" else nohz,
        "vulnerabilities": _vulnerabilities(),
        "guest": _guest(),
        "kernel": f"{kernel.sysname} {kernel.release}",
        "kernel_words": _line("/proc/cmdline"),
        "clock_source": _line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "thp": thp[1] if thp else "",
        "huge_pages": _mem("HugePages_Total"),
        "huge_pages_free": _mem("HugePages_Free"),
        "load": _line("/proc/loadavg", "unknown"),
        "dpdk": "none",
        **built,
        "command": command,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _ask_kernel(netdev: str, command: int, layout: str) -> tuple[Any, ...] | None:
    """An ethtool ioctl; None if the interface does not support it."""
    data = array.array("B", struct.pack("I", command) + bytes(struct.calcsize(layout) - 4))
    request = struct.pack("16sP16x", os.fsencode(netdev)[:15], data.buffer_info()[0])
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as to:
            fcntl.ioctl(to, SIOCETHTOOL, request)
    except OSError:
        return None
    return struct.unpack(layout, data)


def _netdev(folder: str, name: str) -> dict[str, Any]:
    """Driver, firmware, rings and interrupt moderation."""
    found: dict[str, Any] = {}
    if driver := _ask_kernel(name, GDRVINFO, DRVINFO):
        texts = [text.partition(b"\0")[0].decode("utf-8", "backslashreplace") for text in driver]
        found |= zip(("driver", "driver_version", "firmware"), texts, strict=True)
    if rings := _ask_kernel(name, GRINGPARAM, RINGPARAM):
        found["rings"] = dict(zip(("rx", "tx"), rings, strict=True))
    if wait := _ask_kernel(name, GCOALESCE, COALESCE):
        rx_us, tx_us, *adaptive = wait
        found["coalesce"] = {"rx_us": rx_us, "tx_us": tx_us} | {
            f"{way}_adaptive": bool(on) for way, on in zip(("rx", "tx"), adaptive, strict=True)
        }
    return found | {
        "link_mbps": max(_number(f"{folder}/speed", 0), 0),
        "napi_defer_hard_irqs": _number(f"{folder}/napi_defer_hard_irqs", 0),
        "gro_flush_timeout_ns": _number(f"{folder}/gro_flush_timeout", 0),
    }


def _find_pci(netdev: str) -> str:
    """The PCI function of an interface; for virtio, one folder above. Empty: none."""
    for folder in (f"{netdev}/device", f"{netdev}/device/.."):
        is_id = len(_line(f"{folder}/vendor")) == len("0x8086")
        if is_id and _line(f"{folder}/current_link_width"):
            return folder
    return ""


def _pci(folder: str) -> dict[str, str]:
    """The PCI slot, which may be slower than the device supports."""
    ids = ("vendor", "device", "subsystem_vendor", "subsystem_device", "revision")
    driver = f"{folder}/driver"
    return {
        **{name: _line(f"{folder}/{name}") for name in ids},
        "driver": os.path.basename(os.readlink(driver)) if os.path.islink(driver) else "",
        "link_speed": _line(f"{folder}/current_link_speed"),
        "link_width": _line(f"{folder}/current_link_width"),
        "max_link_speed": _line(f"{folder}/max_link_speed"),
        "max_link_width": _line(f"{folder}/max_link_width"),
    }


def _distance(sysfs: str, core: int, node: int) -> int:
    """Distance between NUMA nodes, from the firmware: 10 is the same node; 0: unknown."""
    nodes = f"{sysfs}/devices/system"
    for of_core in range(MAX_NODES):
        if os.path.exists(f"{nodes}/cpu/cpu{core}/node{of_core}"):
            distances = _line(f"{nodes}/node/node{of_core}/distance").split()
            return int(distances[node]) if 0 <= node < len(distances) else 0
    return 0


def nic(device: str, cores: Iterable[int], sysfs: str = "/sys") -> dict[str, Any] | None:
    """Describe an interface of this network namespace, or a PCI address. None: no such device, as
    for ports in memory. cores: those that use it."""
    netdev, pci = f"{sysfs}/class/net/{device}", f"{sysfs}/bus/pci/devices/{device}"
    is_netdev = os.path.exists(netdev)
    if not device or "/" in device or not (is_netdev or os.path.exists(pci)):
        return None
    if is_netdev:
        pci = _find_pci(netdev)
    node = _number(f"{pci}/numa_node", -1) if pci else -1
    return {
        **(_netdev(netdev, device) if is_netdev else {}),
        "pci": _pci(pci) if pci else None,
        "numa_node": node,
        "numa_distance": max((_distance(sysfs, core, node) for core in cores), default=0),
    }
