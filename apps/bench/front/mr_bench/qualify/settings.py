# SPDX-License-Identifier: BSD-3-Clause
"""Settings of the machine that a run changes, and puts back: also by the next run, if this one is
killed. Each change is written to a file before it is made."""

import array
import fcntl
import json
import os
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from mr_bench.qualify.ports import Port, Refused, ask, ask_devices, netdev_of, sysfs
from mr_support import output

FOLDER = "/run/millrace"
HUGE_PAGES = Path("/proc/sys/vm/nr_hugepages")
HUGE_MIB = 1024  # for EAL's programs
# <linux/sockios.h>, <linux/ethtool.h>: the most of four kinds of channels, and their number now.
SIOCETHTOOL, GCHANNELS, SCHANNELS = 0x8946, 0x3C, 0x3D
CHANNELS = "9I"
COMBINED = 8
IFF_UP = 1


def _channels(netdev: str, fields: list[int]) -> list[int]:
    """An ethtool request; its reply. Raises OSError."""
    data = array.array("B", struct.pack(CHANNELS, *fields))
    request = struct.pack("16sP16x", os.fsencode(netdev)[:15], data.buffer_info()[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as to:
        fcntl.ioctl(to, SIOCETHTOOL, request)
    return list(struct.unpack(CHANNELS, data))


def combined(netdev: str) -> int:
    """The number of combined channels; 0: it has none."""
    with suppress(OSError):
        return _channels(netdev, [GCHANNELS, *[0] * 8])[COMBINED]
    return 0


def set_combined(netdev: str, n: int) -> str:
    """Why not; "": done."""
    try:
        now = _channels(netdev, [GCHANNELS, *[0] * 8])
        _channels(netdev, [SCHANNELS, *now[1:COMBINED], n])
    except OSError as error:
        return str(error.strerror)
    return ""


def is_up(netdev: str) -> bool:
    """Whether it is set up, with or without a carrier."""
    flags = Path(f"/sys/class/net/{netdev}/flags")
    return flags.exists() and bool(int(flags.read_text(), 16) & IFF_UP)


def _set_link(netdev: str, is_to_be_up: bool) -> str:
    """Why not; "": done."""
    return ask("ip", "link", "set", "dev", netdev, "up" if is_to_be_up else "down")[2]


def _huge_pages(n_more: int) -> int:
    """Add or remove huge pages, as far as the kernel lets us; how many were added."""
    with suppress(OSError, ValueError):
        before = int(HUGE_PAGES.read_text())
        HUGE_PAGES.write_text(str(max(before + n_more, 0)))
        return int(HUGE_PAGES.read_text()) - before
    return 0


def _meminfo(key: str) -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith(key + ":")), 0)


def _set_mtu(netdev: str, mtu: str) -> str:
    """Why not; "": done."""
    return ask("ip", "link", "set", "dev", netdev, "mtu", mtu)[2]


def _unbind(bdf: str, netdev: str) -> str:
    """Give a NIC back to its driver; where no udev does that, its interface gets its name.
    Why not; "": done."""
    status, _, why = ask_devices("unbind", bdf)
    now = netdev_of(bdf)
    if netdev and now not in ("", netdev):
        _set_link(now, False)
        return ask("ip", "link", "set", "dev", now, "name", netdev)[2]
    return (why or f"exit status {status}") if status else ""


# They return why a change cannot be undone, or "".
UNDO: dict[str, Callable[[Any], str]] = {
    "bound": lambda value: _unbind(*value),
    "mtu": lambda value: _set_mtu(*value),
    "channels": lambda value: set_combined(*value),
    "link": lambda value: _set_link(*value),
    "huge_pages": lambda n: "" if _huge_pages(-n) == -n else "the kernel keeps some",
}


class Settings:
    """One run at a time in a network namespace. Raises Refused."""

    def __init__(self) -> None:
        Path(FOLDER).mkdir(mode=0o755, exist_ok=True)
        self.path = Path(FOLDER, f"qualify-{os.stat('/proc/self/ns/net').st_ino}")
        self.lock = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused("another mr-bench qualify is running; wait for it, or end it") from None
        found = os.fstat(self.lock)
        if found.st_uid != os.geteuid() or found.st_nlink != 1:
            raise Refused(f"{self.path} is not ours alone; remove it, and try again")
        text = os.read(self.lock, 1 << 20).partition(b"\n")[0]
        self.changes: list[tuple[str, Any]] = []
        with suppress(ValueError):
            self.changes = [(kind, value) for kind, value in json.loads(text or b"[]")]
        if self.changes:
            output.tell("mr-bench: putting back what a run that was killed had changed")
            self.restore()

    def _write(self) -> None:
        """In place, because the lock is on this file. Only the first line counts."""
        text = json.dumps(self.changes).encode() + b"\n"
        os.pwrite(self.lock, text, 0)
        os.ftruncate(self.lock, len(text))

    def _note(self, kind: str, value: Any) -> None:
        self.changes.append((kind, value))
        self._write()

    def restore(self, n_left: int = 0) -> None:
        """Undo all but the first changes, the last one first."""
        while len(self.changes) > n_left:
            kind, value = self.changes[-1]
            if kind in UNDO and (why := UNDO[kind](value)):
                text = " ".join(map(str, value)) if isinstance(value, list) else value
                output.tell(f"mr-bench: cannot put back {kind} {text}: {why}")
            self.changes.pop()
            self._write()

    def set_up(self, ports: list[Port]) -> None:
        """Interfaces up, with one channel, because one flow is measured. Raises Refused."""
        for port in ports:
            if not port.netdev:
                continue
            self._note("link", [port.netdev, is_up(port.netdev)])
            if why := _set_link(port.netdev, True):
                raise Refused(f"{port.name}: cannot set it up: {why}")
            if (n := combined(port.netdev)) > 1:
                self._note("channels", [port.netdev, n])
                set_combined(port.netdev, 1)

    def bind(self, ports: list[Port]) -> str:
        """Give the NICs to vfio-pci; why not, or "". restore() gives them back."""
        kernels = [port for port in ports if not port.is_vfio]
        for port in kernels:
            if mtu := sysfs(port.netdev, "mtu"):  # its driver forgets it
                self._note("mtu", [port.netdev, mtu])
            self._note("bound", [port.bdf, port.netdev])
        return ask_devices("bind", *(port.bdf for port in kernels))[2] if kernels else ""

    def add_huge_pages(self) -> bool:
        """Whether EAL finds enough of them."""
        page_kib = _meminfo("Hugepagesize") or 2048
        n = -(-(HUGE_MIB * 1024 - _meminfo("HugePages_Free") * page_kib) // page_kib)
        if 0 < n * page_kib < _meminfo("MemAvailable") // 2:
            self._note("huge_pages", n)
            self.changes[-1] = "huge_pages", _huge_pages(n)
            self._write()
        return _meminfo("HugePages_Free") * page_kib >= HUGE_MIB * 1024

    def close(self) -> None:
        """Put all back, and remove the file."""
        self.restore()
        self.path.unlink(missing_ok=True)
        os.close(self.lock)
