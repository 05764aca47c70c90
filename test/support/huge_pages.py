# SPDX-License-Identifier: BSD-3-Clause
"""Huge pages for DPDK's programs, and for ours beside them."""
import os
import pathlib

# Left to other programs.
SPARE_MIB = 512


def meminfo(key):
    """A line of /proc/meminfo: a count, or kB."""
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1])
    return 0


def page_mib():
    return max(1, meminfo("Hugepagesize") // 1024)


def free_mib():
    return meminfo("HugePages_Free") * page_mib()


class HugePages:
    """Adds huge pages while a with statement runs, if the kernel has them.

    Others take and return some at the same time, so each run looks again, and
    the end removes only as many as were added.
    """
    PATH = pathlib.Path("/proc/sys/vm/nr_hugepages")

    def __init__(self):
        self.n_added = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.n_added > 0:
            self.add(-self.n_added)

    def add(self, n):
        """Add n pages, if the kernel allows that and finds them."""
        try:
            before = int(self.PATH.read_text())
            self.PATH.write_text(str(max(0, before + n)))
            self.n_added += int(self.PATH.read_text()) - before
        except OSError:  # not root, or a container
            pass

    def are_there(self, mib):
        """Whether mib of them are free; tops them up."""
        if os.geteuid() != 0:
            return False
        missing = -(-(mib - free_mib()) // page_mib())
        room_mib = meminfo("MemAvailable") // 1024 - SPARE_MIB
        if 0 < missing <= room_mib // page_mib():
            self.add(missing)
        return free_mib() >= mib
