#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Put a kernel and a small root file system into a folder: vmlinuz and initramfs, for any
virtual machine. With the word "shell" for the kernel, its console is a shell,
which ends the machine when it ends.

    ./mr guest files vm
"""
import argparse
import shutil
import sys
from pathlib import Path

import image
from fetch import Cache, Missing
from guest import MODULES


def main():
    parser = argparse.ArgumentParser(
        prog="./mr guest files", description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kernel", default="newest", metavar="VERSION",
                        help="6.1, 6.12, 7.2, ... (default: newest)")
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    try:
        cache = Cache()
        kernel, busybox = cache.kernel(args.kernel), cache.busybox()
    except Missing as why:
        print(f"guest: {why}", file=sys.stderr)
        return 77
    args.folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(next(iter(sorted(kernel.glob("**/vmlinuz*")))),
                args.folder / "vmlinuz")
    image.build(args.folder / "initramfs", kernel, busybox, MODULES, (), (), ())
    return 0


if __name__ == "__main__":
    sys.exit(main())
