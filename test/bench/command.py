# SPDX-License-Identifier: BSD-3-Clause
"""What benchmarks do alike as commands: what they need, and how they end."""
import argparse
import json
import os
import pathlib
import shutil
import signal
import sys

from topology import BenchError


BUILD = pathlib.Path(__file__).resolve().parents[2] / "build"


def parser(name, doc, quick="", is_nice=False):
    """With the options that most of them have. quick: what --quick does."""
    made = argparse.ArgumentParser(prog=f"mr bench {name}",
                                   description=doc.splitlines()[0])
    if quick:
        made.add_argument("--quick", action="store_true",
                          help=f"{quick}; for a look, not for a figure")
    made.add_argument("--json", metavar="FILE", help="all samples")
    if is_nice:
        made.add_argument("--nice", type=int, default=0, metavar="N",
                          help="of what is measured, for a machine that does "
                          "other things: -20 to 0")
    made.add_argument("--build", default=str(BUILD))
    return made


def need_root(instead=""):
    """instead: what does not need it."""
    if os.geteuid() != 0:
        raise BenchError("makes network namespaces and interfaces, which "
                         f"needs root{instead}")


def need_program(program, package):
    if shutil.which(program) is None:
        raise BenchError(f"no {program}; install {package}")


def write_json(path, result):
    """All of it; path is None where --json was not given."""
    if path:
        pathlib.Path(path).write_text(json.dumps(result) + "\n",
                                      encoding="ascii")


def run(name, main):
    """The exit status of main(): 1 and a line where it cannot go on."""
    # As Ctrl-C: what was made is taken away.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return main()
    except KeyboardInterrupt:
        return 130
    except BenchError as error:
        print(f"bench {name}: {error}", file=sys.stderr)
        return 1
