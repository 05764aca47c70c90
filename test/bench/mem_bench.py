# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench mem [--native] [--goals] [options] [NAME...]

The memory layer beside its peers. With root, huge pages are set aside for
DPDK and for us while it runs.

--native     both sides compiled with -march=native, in build-native/;
             libdpdk itself stays as the distribution built it
--goals      all goals in less than 12 minutes; the report (report.txt,
             report.json) is in build/bench-goals, or --out DIR
"""
import os
import pathlib
import subprocess
import sys

import contestants as who
from micro import front

TOP = pathlib.Path(__file__).resolve().parents[2]


class HugePages(who.HugePages):
    """600 MB for rte_mempool, and as much for our pools."""
    N_MIB = 1200


class HugePagesForTables(who.HugePages):
    """What rte_fib, its RIB and rte_lpm6 need for a million routes."""
    N_MIB = 4000


def taken(arguments, option):
    """Remove a flag from the arguments; return whether it was there."""
    if option not in arguments:
        return False
    arguments.remove(option)
    return True


def build_native():
    folder = TOP / "build-native"
    if not (folder / "build.ninja").exists():
        subprocess.run(["meson", "setup", str(folder), str(TOP),
                        "-Dc_args=-march=native"], check=True)
    subprocess.run(["ninja", "-C", str(folder), "test/bench/micro/mr-micro"],
                   check=True)
    return folder


def run(call, command):
    """Return call(); if we are root, with huge pages."""
    if os.geteuid() != 0:
        print("bench mem: not root: both sides get small pages",
              file=sys.stderr)
        return call()
    with (HugePagesForTables if command == "flow" else HugePages)() as pages:
        pages.top_up()
        return call()


def main(command="mem"):
    arguments = sys.argv[1:]
    if "--help" in arguments or "-h" in arguments:
        print(__doc__, flush=True)
        front.parser(command).print_help()
        return 0
    build = build_native() if taken(arguments, "--native") else TOP / "build"
    if "--goals" in arguments and "--out" not in arguments:
        arguments += ["--out", str(TOP / "build/bench-goals")]

    def call():
        program = str(build / "test/bench/micro/mr-micro")
        return front.main(program, command, arguments)
    return call() if "--list" in arguments else run(call, command)


if __name__ == "__main__":
    sys.exit(main())
