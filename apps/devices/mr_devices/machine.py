# SPDX-License-Identifier: BSD-3-Clause
"""The machine that the program works on; tests choose a root directory."""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable
from typing import NamedTuple

from mr_devices.library import Failure, Library, PciInfo

NAP_S = 0.005
NOTES = "/run/millrace/devices"
FORMS = "driver=", "interface="


class Note(NamedTuple):
    """What a device had before it was bound to vfio-pci; "": none."""

    driver: str
    interface: str


class Machine:
    """Paths begin with /sys, /proc, /dev or /run, below root.

    NOTES has a file per device bound to vfio-pci. A reboot removes it, like the binding."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.library = Library(f"{root}/sys")

    def read(self, path: str) -> str:
        """The first line of a file, without its end; "" if it cannot be read."""
        try:
            with open(self.root + path, encoding="utf-8", errors="surrogateescape") as file:
                return file.readline().rstrip("\n")
        except OSError:
            return ""

    def write(self, path: str, text: str) -> None:
        """One write(), as sysfs requires. Raises OSError."""
        fd = os.open(self.root + path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, os.fsencode(text))
        finally:
            os.close(fd)

    def exists(self, path: str) -> bool:
        """Whether the file exists."""
        return os.path.exists(self.root + path)

    def names(self, path: str) -> list[str]:
        """A directory's entries, sorted. Raises OSError."""
        return sorted(name for name in os.listdir(self.root + path) if name[0] != ".")

    def names_if_any(self, path: str) -> list[str]:
        """The same, but empty if there is no such directory."""
        try:
            return self.names(path)
        except OSError:
            return []

    def look(self, bdf: str) -> PciInfo | None:
        """Only what the library knows. None: it was unplugged meanwhile."""
        with contextlib.suppress(Failure):
            return self.library.pci_info(bdf)
        return None

    def lock(self) -> None:
        """Lock out other mr-devices that change something, until the program ends. Raises
        Failure."""
        try:
            for folder in os.path.dirname(NOTES), NOTES:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(self.root + folder, 0o755)
            fd = os.open(self.root + NOTES, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            found = os.fstat(fd)
            if found.st_uid not in (0, os.geteuid()) or found.st_mode & 0o022:
                # A member of the group of /run/millrace may have created it.
                raise Failure(
                    f"{self.root}{NOTES} belongs to user {found.st_uid}, or others can write to "
                    "it; remove it"
                )
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Failure("another mr-devices is running; wait for it") from None
        except OSError as error:
            cure = ": run as root" if error.errno == errno.EACCES else ""
            raise Failure(f"cannot write {self.root}{NOTES}: {error.strerror}{cure}") from None

    def remember(self, bdf: str, note: Note) -> None:
        """Write a temporary file and rename it, so that no file is incomplete. Raises Failure."""
        fresh = f"{self.root}{NOTES}/.new"
        try:
            with open(fresh, "wb") as file:
                file.writelines(os.fsencode(f"{f}{n}\n") for f, n in zip(FORMS, note, strict=True))
            os.replace(fresh, f"{self.root}{NOTES}/{bdf}")
        except OSError as error:
            raise Failure(
                f"{bdf}: cannot record its kernel driver in {NOTES}: {error.strerror}"
            ) from None

    def recall(self, bdf: str) -> Note | None:
        """Read a note; None: there is none."""
        try:
            with open(f"{self.root}{NOTES}/{bdf}", "rb") as file:
                lines = [os.fsdecode(line).rstrip("\n") for line in file]
        except OSError:
            return None
        return Note(*(next((l[len(f) :] for l in lines if l.startswith(f)), "") for f in FORMS))

    def forget(self, bdf: str) -> None:
        """Remove a note."""
        with contextlib.suppress(OSError):
            os.unlink(f"{self.root}{NOTES}/{bdf}")


def wait_for(condition: Callable[[], bool], limit_s: float) -> bool:
    """Wait until it is true; False after a timeout."""
    end_s = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end_s:
            return False
        time.sleep(NAP_S)
    return True
