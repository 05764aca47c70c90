# SPDX-License-Identifier: BSD-3-Clause
"""Devices for users other than root."""

import contextlib
import errno
import grp
import os
import pwd
import subprocess
from functools import partial
from typing import NamedTuple

from mr_devices.device import nodes_of
from mr_devices.library import Failure
from mr_devices.machine import Machine, wait_for
from mr_support.options import Wrong

NODE_WAIT_S = 5
UNCHANGED = -1
MAX_ID = 2**32 - 2  # the highest stands for UNCHANGED


class Owner(NamedTuple):
    """Of nodes in /dev/vfio."""

    user: str
    uid: int
    gid: int


def _id_of(text: str) -> int | None:
    is_number = text.isascii() and text.isdigit() and int(text) <= MAX_ID
    return int(text) if is_number else None


def parse(text: str) -> Owner:
    """USER[:GROUP], by name or number; no group: the user's own, if any. Raises Wrong."""
    user, colon, group = text.partition(":")
    uid = _id_of(user)
    try:
        found = pwd.getpwnam(user) if uid is None else pwd.getpwuid(uid)
        owner = Owner(found.pw_name, found.pw_uid, found.pw_gid)
    except KeyError:
        # A numeric id needs no user database: containers have none.
        if uid is None:
            raise Wrong(f"--owner: there is no user '{user or text}'") from None
        owner = Owner(user, uid, UNCHANGED)
    if not colon:
        return owner
    gid = _id_of(group)
    with contextlib.suppress(KeyError):
        gid = grp.getgrnam(group).gr_gid
    if gid is None:
        raise Wrong(f"--owner: there is no group '{group}'")
    return owner._replace(gid=gid)


def _is_given(path: str, owner: Owner) -> bool:
    try:
        os.chown(path, owner.uid, owner.gid)
    except FileNotFoundError:
        return False
    return True


def give(machine: Machine, bdf: str, owner: Owner) -> None:
    """Give the nodes of a device that is bound to vfio-pci, and has an IOMMU. Raises Failure."""
    for node in nodes_of(machine, machine.library.pci_info(bdf)):
        path = machine.root + node
        try:
            # devtmpfs creates it on binding; udev may follow.
            if not wait_for(partial(_is_given, path, owner), NODE_WAIT_S):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        except OSError as error:
            cure = ": run as root" if error.errno == errno.EPERM else ""
            raise Failure(
                f"{bdf}: cannot give {path} to {owner.user}: {error.strerror}{cure}"
            ) from None


def memlock_of(user: str) -> str:
    """The user's limit of locked memory. PAM sets it, so ask the user's own shell."""
    words = ["timeout", "-k", "1", "5", "su", "-s", "/bin/sh", "-c", "ulimit -l", user]
    limit = ""
    with contextlib.suppress(OSError):
        null = subprocess.DEVNULL
        done = subprocess.run(words, stdin=null, stdout=-1, stderr=null, check=False)
        limit = done.stdout.decode(errors="replace").partition("\n")[0]
    if limit == "unlimited":
        return "may lock any amount of memory"
    if not limit[:1].isdigit():
        return "may lock as much memory as 'ulimit -l' shows there"
    return (
        f"may lock {limit} KiB of memory; opening a port prints how much it needs; the limit "
        "is 'memlock' in /etc/security/limits.conf"
    )
