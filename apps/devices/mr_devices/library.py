# SPDX-License-Identifier: BSD-3-Clause
"""libmillrace: information about PCI functions and interfaces.

Source: millrace/ctx.h, error.h, pci_info.h, port_device.h.
"""

import ctypes
import os
from ctypes import byref
from typing import Any

from mr_support import program


class Failure(Exception):
    """One line: the cause and, if there is one, the remedy; errno or 0."""

    def __init__(self, text: str, errno: int = 0) -> None:
        super().__init__(text)
        self.errno = errno


class Reason(ctypes.Structure):
    """struct mr_reason."""

    _fields_ = [("text", ctypes.c_char * 384)]


class CtxConfig(ctypes.Structure):
    """struct mr_ctx_config; hooks: opaque, log, alloc, free, clock."""

    _fields_ = [
        ("size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("hooks", ctypes.c_void_p * 5),
        ("sysfs", ctypes.c_char_p),
    ]


class PciInfo(ctypes.Structure):
    """struct mr_pci_info, with texts as str."""

    _fields_ = [
        ("size", ctypes.c_uint32),
        ("bdf", ctypes.c_char * 32),
        ("vendor_id", ctypes.c_uint16),
        ("device_id", ctypes.c_uint16),
        ("subsystem_vendor_id", ctypes.c_uint16),
        ("subsystem_id", ctypes.c_uint16),
        ("class_code", ctypes.c_uint32),
        ("numa_node", ctypes.c_int32),
        ("iommu_group", ctypes.c_int32),
        ("n_vfs", ctypes.c_uint32),
        ("kernel_driver", ctypes.c_char * 32),
        ("netdev", ctypes.c_char * 16),
        ("vfio_cdev", ctypes.c_char * 32),
    ]

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        return os.fsdecode(value) if isinstance(value, bytes) else value


PCI_USE_VFIO, PCI_USE_KERNEL = 1, 2  # enum mr_pci_use
NETDEV_IN_USE = 2  # enum mr_netdev_use


class Library:
    """A library context that reads this sysfs. It lives as long as the program."""

    def __init__(self, sysfs: str) -> None:
        path = program.companion()
        try:
            self._lib = ctypes.CDLL(str(path))
        except OSError as error:
            raise Failure(f"cannot load the library {path}: {error}") from None
        self._lib.mr_pci_driver_name.restype = ctypes.c_char_p
        self._config = CtxConfig(ctypes.sizeof(CtxConfig), sysfs=os.fsencode(sysfs))
        self._ctx = ctypes.c_void_p()
        self._call(self._lib.mr_ctx_create, byref(self._config), byref(self._ctx))

    def _call(self, function: Any, *arguments: Any) -> None:
        reason = Reason()
        err = function(*arguments, byref(reason))
        if err < 0:
            raise Failure(os.fsdecode(reason.text), -err)

    def pci_info(self, bdf: str) -> PciInfo:
        """Describe a function; bdf may lack the domain. Raises Failure, ENODEV if it is not there."""
        info = PciInfo(ctypes.sizeof(PciInfo))
        self._call(self._lib.mr_pci_info, self._ctx, os.fsencode(bdf), byref(info))
        return info

    def pci_use(self, info: PciInfo) -> int:
        """The user of a function, by the kernel's rule for IOMMU groups."""
        return int(self._lib.mr_pci_use(self._ctx, byref(info)))

    def driver_name(self, info: PciInfo) -> str:
        """Our vfio driver for it; "": none."""
        return os.fsdecode(self._lib.mr_pci_driver_name(self._ctx, byref(info)) or b"")

    def why_in_use(self, ifindex: int) -> str:
        """A predicate that follows the interface's name; "": not in use."""
        why = Reason()
        use = self._lib.mr_netdev_use(ifindex, byref(why))
        return os.fsdecode(why.text) if use == NETDEV_IN_USE else ""
