# SPDX-License-Identifier: BSD-3-Clause
"""Bind devices to vfio-pci, and return them.

Source: linux/Documentation/ABI/testing/sysfs-bus-pci, sysfs-bus-platform.
"""

import contextlib
import errno
import socket
import time

from mr_devices import owner as owners
from mr_devices.device import Device, driver_in_group, holder_of, node_of_group, read_device
from mr_devices.library import Failure, PciInfo
from mr_devices.machine import Machine, Note, wait_for
from mr_devices.owner import Owner
from mr_support.text import escape

VFIO = "vfio-pci"
DRIVER_WAIT_S = 10  # some drivers wait for firmware when probing
NETDEV_WAIT_S = 10
RENAME_WAIT_S = 1  # udev renames a new interface after seeing it
NOIOMMU = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode"


def _say(text: str) -> None:
    print(escape(text))


def _with_interface(text: str, interface: str) -> str:
    return f"{text}, interface {interface}" if interface else text


def _write(machine: Machine, path: str, text: str, bdf: str, what: str) -> None:
    """Raises Failure."""
    try:
        machine.write(path, text)
    except OSError as error:
        cure = ": run as root" if error.errno in (errno.EACCES, errno.EPERM) else ""
        raise Failure(f"{bdf}: {what}: {machine.root}{path}: {error.strerror}{cure}") from None


def _attribute(machine: Machine, bdf: str, name: str) -> str:
    """What the library says of it now; "": it is gone."""
    pci = machine.look(bdf)
    return str(getattr(pci, name)) if pci else ""


def _driver_of(machine: Machine, bdf: str) -> str:
    return _attribute(machine, bdf, "kernel_driver")


def _release(machine: Machine, bdf: str) -> None:
    """Unbind it from its kernel driver, if it has one. Raises Failure."""
    driver = _driver_of(machine, bdf)
    if not driver:
        return
    path = f"/sys/bus/pci/devices/{bdf}/driver/unbind"
    _write(machine, path, bdf, bdf, "cannot unbind it from its kernel driver")
    if not wait_for(lambda: not _driver_of(machine, bdf), DRIVER_WAIT_S):
        raise Failure(f"{bdf}: kernel driver {driver} did not release it within {DRIVER_WAIT_S} s")


def _probe(machine: Machine, bdf: str, driver: str | None) -> None:
    """Have a driver bind it: by name, since another one may also match its ids."""
    if driver not in (None, VFIO):
        with contextlib.suppress(OSError):
            machine.write(f"/sys/bus/pci/drivers/{driver}/bind", bdf)
            return
    who = "vfio-pci does not accept it" if driver == VFIO else "no kernel driver accepts it"
    _write(machine, "/sys/bus/pci/drivers_probe", bdf, bdf, who)


def _switch(machine: Machine, bdf: str, driver: str | None) -> None:
    """Move a function to another kernel driver: to "vfio-pci"; to "", which is none; to the
    named driver; or, None, to any that accepts it. Raises Failure, after a while."""
    # Makes vfio-pci match only this device. An empty line removes it.
    path = f"/sys/bus/pci/devices/{bdf}/driver_override"
    _write(machine, path, VFIO if driver == VFIO else "\n", bdf, "cannot set its driver")
    _release(machine, bdf)
    if driver == "":
        return
    if driver not in (None, VFIO) and not machine.exists(f"/sys/bus/pci/drivers/{driver}"):
        raise Failure(
            f"{bdf}: its kernel driver {driver} is not loaded; 'modprobe {driver}', then try again"
        )
    _probe(machine, bdf, driver)

    def is_bound() -> bool:
        now = _driver_of(machine, bdf)
        return now == driver if driver else now not in ("", VFIO)

    if not wait_for(is_bound, DRIVER_WAIT_S):
        who = driver or "its kernel driver (is it loaded?)"
        raise Failure(f"{bdf}: {who} did not bind within {DRIVER_WAIT_S} s; see dmesg")


def _check_use(machine: Machine, device: Device) -> None:
    """Whether the kernel uses it; unknown for another root. Raises Failure."""
    bdf, name = device.pci.bdf, device.pci.netdev
    why = ""
    if device.default_route:
        name = device.default_route
        why = "carries the default route of this machine, which would be cut off"
    elif name and not machine.root:
        with contextlib.suppress(OSError):
            why = machine.library.why_in_use(socket.if_nametoindex(name))
    if why:
        raise Failure(f"{bdf}: its interface {name} {why}; use --force to bind it anyway")


def _check_group(machine: Machine, device: Device, bdfs: set[str]) -> None:
    """The others in its group are bound as well, or not used for DMA. Raises Failure."""
    others = []
    for other in device.siblings:
        driver, is_viable = driver_in_group(machine, other)
        if other not in bdfs and not is_viable:
            others.append(f"{other} ({driver})")
    if others:
        raise Failure(
            f"{device.pci.bdf}: IOMMU group {device.pci.iommu_group} is not viable: the kernel "
            f"uses other devices in it: {', '.join(others)}; bind its network devices as well, "
            "unbind the others from their drivers (driver/unbind in sysfs), or use another slot"
        )


def _check(machine: Machine, device: Device, is_forced: bool, owner: Owner | None) -> None:
    """Raises Failure."""
    pci = device.pci
    if not device.is_nic:
        raise Failure(f"{pci.bdf} is not a network device (class {pci.class_code:06x})")
    if not is_forced:
        _check_use(machine, device)
    if not machine.exists(f"/sys/bus/pci/drivers/{VFIO}"):
        raise Failure(f"{pci.bdf}: vfio-pci is not loaded; 'modprobe vfio-pci' first")
    has_iommu = pci.iommu_group >= 0
    if not has_iommu and machine.read(NOIOMMU)[:1] not in ("Y", "1"):
        raise Failure(
            f"{pci.bdf} has no IOMMU group; enable the IOMMU in the firmware (VT-d, AMD-Vi) and "
            "with intel_iommu=on on the kernel command line"
        )
    # Without an IOMMU, only root may open the node.
    if owner and (not has_iommu or "noiommu" in node_of_group(machine, pci)):
        raise Failure(f"{pci.bdf}: without an IOMMU, only root may use it")


def _undo(machine: Machine, pci: PciInfo) -> str:
    """Restore its previous driver. If that fails, the note stays for unbind, and the returned
    text says so."""
    with contextlib.suppress(Failure):
        _switch(machine, pci.bdf, pci.kernel_driver)
    if _driver_of(machine, pci.bdf) != pci.kernel_driver:
        return f"; {pci.bdf} could not be returned; run mr-devices unbind {pci.bdf}"
    machine.forget(pci.bdf)
    return ""


def bind(machine: Machine, bdfs: list[str], is_forced: bool, owner: Owner | None) -> None:
    """Bind functions to vfio-pci: all or none. Prints what was done. Raises Failure."""
    devices = [read_device(machine, bdf) for bdf in bdfs]
    for device in devices:
        _check(machine, device, is_forced, owner)
        _check_group(machine, device, {device.pci.bdf for device in devices})
    changed: list[PciInfo] = []
    try:
        for device in devices:
            pci = device.pci
            if not device.is_vfio:
                # Before any change: if killed in between, it can be undone.
                machine.remember(pci.bdf, Note(pci.kernel_driver, pci.netdev))
                changed.append(pci)
                _switch(machine, pci.bdf, VFIO)
        if owner:
            for device in devices:
                owners.give(machine, device.pci.bdf, owner)
    except Failure as failure:
        undone = [_undo(machine, pci) for pci in reversed(changed)]
        raise Failure(f"{failure}{''.join(undone)}") from None
    for device in devices:
        bdf, driver = device.pci.bdf, device.pci.kernel_driver
        was = _with_interface(driver or "without a driver", device.pci.netdev)
        done = f"already bound to {driver}" if device.is_vfio else f"bound to vfio-pci, was {was}"
        _say(f"{bdf}: {done}")
    if owner:
        limit = owners.memlock_of(owner.user)
        for device in devices:
            node = node_of_group(machine, machine.look(device.pci.bdf) or device.pci)
            _say(f"{device.pci.bdf}: {node} now belongs to {owner.user}, who {limit}")


def _final_interface(machine: Machine, bdf: str, former: str) -> str:
    """Wait for the interface, under its final name; "": it did not come back."""
    renamed_s = time.monotonic() + RENAME_WAIT_S

    def is_there() -> bool:
        now = _attribute(machine, bdf, "netdev")
        return now == former or (now != "" and time.monotonic() > renamed_s)

    wait_for(is_there, NETDEV_WAIT_S)
    return _attribute(machine, bdf, "netdev")


def _give_back(machine: Machine, device: Device) -> None:
    """Raises Failure."""
    bdf, driver, note = device.pci.bdf, device.pci.kernel_driver, device.note
    if not device.is_vfio and (driver or not note):
        _say(f"{bdf}: not bound to vfio-pci; it has {driver or 'no driver'}")
        return
    pid = holder_of(machine, device.pci)
    if pid:
        raise Failure(
            f"{bdf}: in use by process {pid} ({machine.read(f'/proc/{pid}/comm')}); stop it "
            "first, since the kernel would wait for it"
        )
    _switch(machine, bdf, note.driver if note else None)
    driver = _driver_of(machine, bdf)
    interface = _final_interface(machine, bdf, note.interface) if note and note.interface else ""
    if note and note.interface and not interface:
        raise Failure(
            f"{bdf}: {driver} has it again, but interface {note.interface} did not come back "
            f"within {NETDEV_WAIT_S} s; see dmesg"
        )
    _say(f"{bdf}: returned to " + _with_interface(driver or "no driver, as before", interface))


def unbind(machine: Machine, bdf: str) -> None:
    """Return a device to its former kernel driver. Raises Failure."""
    try:
        device = read_device(machine, bdf)
        bdf = device.pci.bdf
        _give_back(machine, device)
    except Failure as failure:
        if failure.errno != errno.ENODEV or not machine.recall(bdf):
            raise
        _say(f"{bdf}: no longer present")
    machine.forget(bdf)
