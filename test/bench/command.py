# SPDX-License-Identifier: BSD-3-Clause
"""What benchmarks do alike as commands: what they need, and how they end."""
import json
import os
import pathlib
import shutil
import signal
import sys

from topology import BenchError


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
