# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench mem [--native] [--goals] [--plots DIR] [options] [NAME...]

The memory layer beside its peers. With root, huge pages are set aside for
DPDK and for us while it runs.

--native     both sides compiled with -march=native, in build-native/;
             libdpdk itself stays as the distribution built it
--goals      all goals in less than 12 minutes; the report (report.txt,
             report.json, charts) is in build/bench-goals, or --out DIR
--plots DIR  measure the cases whose charts say most, about 20 minutes, and
             put the charts into DIR
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import contestants as who
from micro import front

TOP = pathlib.Path(__file__).resolve().parents[2]
# Size of bursts, size of the ring between two cores, threads.
PLOTTED = ["B06/from=cache", "B06/from=depot", "B08/drop", "B08/frames",
           "B14/ring=", "B12/fast", "B12/N=128"]


class HugePages(who.HugePages):
    """600 MB for rte_mempool, and as much for the pools beside it."""
    N_MIB = 1200


def taken(arguments, option):
    """Remove a flag from the arguments; whether it was there."""
    if option not in arguments:
        return False
    arguments.remove(option)
    return True


def value_taken(arguments, option):
    """Remove an option from the arguments; its value, or None."""
    if option not in arguments:
        return None
    at = arguments.index(option)
    if at + 1 == len(arguments):
        sys.exit(f"bench mem: {option} needs a folder")
    return arguments.pop(at) and arguments.pop(at)


def build_native():
    folder = TOP / "build-native"
    if not (folder / "build.ninja").exists():
        subprocess.run(["meson", "setup", str(folder), str(TOP),
                        "-Dc_args=-march=native"], check=True)
    subprocess.run(["ninja", "-C", str(folder), "test/bench/micro/mr-micro"],
                   check=True)
    return folder


def run(call):
    """The result of call(), with huge pages if we are root."""
    if os.geteuid() != 0:
        print("bench mem: not root: both sides get small pages",
              file=sys.stderr)
        return call()
    with HugePages() as pages:
        pages.top_up()
        return call()


def run_plots(call, folder):
    with tempfile.TemporaryDirectory() as out:
        status = run(lambda: call(["--out", out, *PLOTTED]))
        if status == 0:
            folder.mkdir(parents=True, exist_ok=True)
            for chart in sorted(pathlib.Path(out).glob("*.svg")):
                shutil.copyfile(chart, folder / chart.name)
                print(folder / chart.name)
    return status


def main(command="mem"):
    arguments = sys.argv[1:]
    if "--help" in arguments or "-h" in arguments:
        print(__doc__, flush=True)
        front.parser(command).print_help()
        return 0
    build = build_native() if taken(arguments, "--native") else TOP / "build"
    if "--goals" in arguments and "--out" not in arguments:
        arguments += ["--out", str(TOP / "build/bench-goals")]
    plots = value_taken(arguments, "--plots")

    def call(more=()):
        program = str(build / "test/bench/micro/mr-micro")
        return front.main(program, command, [*arguments, *more])
    if plots is not None:
        return run_plots(call, pathlib.Path(plots))
    return call() if "--list" in arguments else run(call)


if __name__ == "__main__":
    sys.exit(main())
