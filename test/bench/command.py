# SPDX-License-Identifier: BSD-3-Clause
"""What all benchmarks share: options, requirements, and how they end."""
import argparse
import json
import os
import pathlib
import shutil
import signal
import sys

import report
from topology import BenchError

BUILD = pathlib.Path(__file__).resolve().parents[2] / "build"


def parser(name, doc, numbers=(), parts="", is_nice=False):
    """A parser with the options that most benchmarks have. numbers: (name,
    usual value, value with --quick, help) of each option. parts: the choices
    of --only.
    """
    made = argparse.ArgumentParser(prog=f"mr bench {name}",
                                   description=doc.splitlines()[0])
    made.set_defaults(numbers=numbers, all_parts=parts, quick=False, only="")
    if any(usual != quick for _, usual, quick, _ in numbers):
        made.add_argument("--quick", action="store_true", help="few and short "
                          "samples; for a look, not for a figure")
    for option, usual, _, what in numbers:
        made.add_argument(f"--{option}", type=type(usual), metavar="N",
                          help=f"{what} ({usual:g})")
    if parts:
        made.add_argument("--only", metavar="PART,...",
                          help=f"of {parts}; default: all")
    made.add_argument("--json", metavar="FILE", help="all samples")
    if is_nice:
        made.add_argument("--nice", type=int, default=0, metavar="N",
                          help="of what is measured, for a machine that does "
                          "other things: -20 to 0")
    made.add_argument("--build", type=pathlib.Path, default=BUILD)
    return made


def parse(made, argv=None):
    """The options, and the settings of contestants.sample()."""
    args = made.parse_args(argv)
    for option, usual, quick, _ in args.numbers:
        name = option.replace("-", "_")
        if getattr(args, name) is None:
            setattr(args, name, quick if args.quick else usual)
    args.parts = (args.only or args.all_parts).split(",")
    args.build = args.build.resolve()
    args.bench = str(args.build / "apps/bench/mr-bench")
    args.before_each = lambda: None
    args.n_disturbed = 0
    return args


def document(**more):
    """The start of the document of --json."""
    return {"v": 1, "machine": report.machine(), "argv": sys.argv[1:], **more}


def need_root(instead=""):
    """instead: text about what works without root."""
    if os.geteuid() != 0:
        raise BenchError("makes network namespaces and interfaces, which "
                         f"needs root{instead}")


def need_program(program, package):
    if shutil.which(program) is None:
        raise BenchError(f"no {program}; install {package}")


def write_json(path, result):
    """Write the document; path is None without --json."""
    if path:
        pathlib.Path(path).write_text(json.dumps(result) + "\n",
                                      encoding="ascii")


def run(name, main):
    """The exit status of main(); 1 after a BenchError, whose text is printed."""
    # Like Ctrl-C: `with` statements clean up.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return main()
    except KeyboardInterrupt:
        return 130
    except BenchError as error:
        print(f"bench {name}: {error}", file=sys.stderr)
        return 1
