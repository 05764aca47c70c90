# SPDX-License-Identifier: BSD-3-Clause
"""The two ports: interfaces or PCI functions that this machine can spare."""

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mr_bench import machine
from mr_bench.runner import end_with_parent
from mr_bench.values import UsageError
from mr_support.options import Wrong

BDF = r"(?:[0-9a-f]{4,}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
PCI_IDS = "/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids"
QEMU_SUBSYSTEM, VIRTIO_VENDOR = "0x1af4", "0x1af4"
TOOL_LIMIT_S = 60


class Refused(Wrong):
    """The run cannot begin: the cause and the remedy, one line."""


def _folder() -> Path:
    """Where this program is."""
    return Path(__file__).resolve().parents[2].parent


def find_program(name: str) -> str:
    """The path of another program of Millrace: beside this one, or in the same build."""
    places = _folder(), _folder().parent / name.removeprefix("mr-")
    return str(next((place / name for place in places if (place / name).exists()), name))


def find_conformance() -> str:
    """The path of the conformance suite, of the development package; "": not installed."""
    found = list(_folder().glob("mr-conformance"))
    for place in "lib*/millrace", "lib/*/millrace", "../test/conformance/wire":
        found += sorted(_folder().parent.glob(f"{place}/mr-conformance"))
    return str(next(iter(found), ""))


def ask(*words: str) -> tuple[int, str, str]:
    """Run a tool that Ctrl-C does not reach: exit status, output, last line of its errors."""
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="backslashreplace",
            timeout=TOOL_LIMIT_S,
            check=False,
            process_group=0,
            preexec_fn=end_with_parent,
        )
    except OSError as error:
        return 127, "", f"{words[0]}: {error.strerror}"
    except subprocess.TimeoutExpired:
        return 124, "", f"{words[0]} did not end within {TOOL_LIMIT_S} s"
    return done.returncode, done.stdout, (done.stderr.strip().splitlines() or [""])[-1]


def ask_devices(*words: str) -> tuple[int, Any, str]:
    """mr-devices: exit status, what it prints as JSON or else None, its error."""
    status, text, why = ask(find_program("mr-devices"), *words)
    return status, json.loads(text) if text.startswith("{") else None, why


def _model(pci: dict[str, str]) -> str:
    """The NIC's name in pci.ids; "": unknown."""
    path = next(filter(os.path.exists, PCI_IDS), "")
    text = Path(path).read_text("utf-8", "replace") if path else ""
    vendor, device = (pci[key].removeprefix("0x") for key in ("vendor", "device"))
    of_vendor = re.search(rf"^{vendor}  (.*)\n((?:[\t#].*\n|\n)*)", text, re.MULTILINE)
    of_device = of_vendor and re.search(rf"^\t{device}  (.*)", of_vendor[2], re.MULTILINE)
    return f"{of_vendor[1]} {of_device[1]}" if of_vendor and of_device else ""


@dataclass
class Port:
    """netdev, bdf: "" if it has none. mac: "" if the kernel does not drive it now."""

    netdev: str
    bdf: str
    mac: str
    nic: dict[str, Any]

    @property
    def name(self) -> str:
        """As people call it."""
        return self.netdev or self.bdf

    @property
    def is_vfio(self) -> bool:
        """Whether somebody has bound it before us."""
        return not self.netdev and (self.nic["pci"] or {}).get("driver") == "vfio-pci"

    @property
    def kind(self) -> str:
        """For the name of the document: driver and device."""
        pci = self.nic["pci"]
        ids = f"-{pci['vendor'][2:]}-{pci['device'][2:]}" if pci else ""
        return f"{self.nic.get('driver') or (pci or {}).get('driver') or 'nic'}{ids}"

    @property
    def emulated(self) -> str:
        """What it is instead of hardware; "": nothing that shows."""
        pci = self.nic["pci"]
        if pci is None:
            return f"{self.nic.get('driver') or 'an interface'}, a software device"
        if pci["vendor"] == VIRTIO_VENDOR:
            return "virtio, a device of a hypervisor"
        return "emulated by QEMU" if pci["subsystem_vendor"] == QEMU_SUBSYSTEM else ""

    def addresses(self) -> list[str]:
        """Its IP addresses, without those of the link."""
        text = ask("ip", "-json", "address", "show", "dev", self.netdev)[1] if self.netdev else ""
        return [
            address["local"]
            for link in json.loads(text or "[]")
            for address in link.get("addr_info", [])
            if address["scope"] != "link"
        ]

    def describe(self) -> dict[str, Any]:
        """For the document."""
        model = _model(self.nic["pci"]) if self.nic["pci"] else ""
        return {"name": self.name, "model": model, "emulated": self.emulated, "nic": self.nic}


def sysfs(netdev: str, name: str) -> str:
    """An attribute of an interface; "": it has none."""
    try:
        return Path(f"/sys/class/net/{netdev}/{name}").read_text().strip()
    except OSError:
        return ""


def netdev_of(bdf: str) -> str:
    """The interface of a PCI function; "": it has none."""
    folder = Path(f"/sys/bus/pci/devices/{bdf}")
    names = [*folder.glob("net/*"), *folder.glob("virtio*/net/*")]
    return names[0].name if names else ""


def _bdf_of(netdev: str) -> str:
    """Of the PCI function below an interface, for virtio one folder above."""
    path = os.path.realpath(f"/sys/class/net/{netdev}/device")
    found = [part for part in path.split("/")[-2:] if re.fullmatch(BDF, part)]
    return found[-1] if found else ""


def _read(word: str) -> Port:
    text = word.removeprefix("xdp:").removeprefix("vfio:").removeprefix("dpdk:")
    netdev, bdf = text, ""
    if re.fullmatch(BDF, text.lower()):
        bdf = text.lower() if text.count(":") == 2 else f"0000:{text.lower()}"
        netdev = netdev_of(bdf)
    if "/" in text or not text or text in (".", ".."):
        raise UsageError(
            f"qualify: '{word}' is not an interface or PCI address; 'ip link' lists them"
        )
    nic = machine.nic(netdev or bdf, [])
    if nic is None:
        raise Refused(f"there is no interface or PCI device {text}; 'ip link' lists interfaces")
    return Port(netdev, bdf or _bdf_of(netdev), sysfs(netdev, "address"), nic)


def _check_use(port: Port) -> dict[str, Any]:
    """Refuse what this machine needs; what the doctor says of it. Raises Refused."""
    if not port.netdev:
        return {"findings": [], "unknown": []}
    status, found, why = ask_devices("doctor", "--json", port.netdev)
    if found is None:
        raise Refused(f"{port.name}: mr-devices doctor failed: {why or status}")
    for one in found["findings"]:
        if one["check"] in ("use", "kind"):
            raise Refused(
                f"{port.name}: {one['finding']}; name two ports that this machine does not need"
            )
    return dict(found)


def read(words: list[str]) -> tuple[list[Port], list[dict[str, Any]]]:
    """The ports, and the doctor's document of each. Raises UsageError, Refused."""
    if len(words) != 2:
        raise UsageError(
            f"qualify: {len(words)} ports; name two that a cable joins, such as eth1 eth2; see --help"
        )
    if os.geteuid() != 0:
        raise Refused("it changes settings of NICs; run it as root")
    ports = [_read(word) for word in words]
    if ports[0].name == ports[1].name:
        raise UsageError(f"qualify: {words[0]} and {words[1]} are the same port; it takes two")
    return ports, [_check_use(port) for port in ports]
