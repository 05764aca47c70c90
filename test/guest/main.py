#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests in emulated machines.

usage: ./mr guest                      all of them, counted
       ./mr guest NAME... [PYTEST]     those of test_NAME.py; options for
                                       pytest, as -k WORD or -x, follow
       ./mr guest shell [OPTIONS]      a shell in a machine with our programs
       ./mr guest run [OPTIONS] -- COMMAND
                                       a command in one; both: --help
       ./mr guest files FOLDER         a kernel and a root for other machines
"""
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]


def names():
    """The tests, by the names that ./mr guest takes."""
    return sorted(path.stem[len("test_"):] for path in
                  HERE.glob("test_*.py"))


def main(arguments):
    python = sys.executable
    if arguments and arguments[0] in ("-h", "--help"):
        print(f"{__doc__.strip()}\n\nNAME: {', '.join(names())}")
        return 0
    if not arguments:
        command = [TOP / "test/support/run_tests.py", "guest"]
    elif arguments[0] in ("shell", "run"):
        command = [HERE / "run.py", *arguments[1:]]
    elif arguments[0] == "files":
        command = [HERE / "files.py", *arguments[1:]]
    else:
        wanted = [word for word in arguments if word in names()]
        rest = [word for word in arguments if word not in names()]
        if not wanted:
            print(f"mr guest: no test {arguments[0]}; there are "
                  f"{', '.join(names())}", file=sys.stderr)
            return 2
        command = [HERE.parent / "netns/run.py",
                   *(HERE / f"test_{name}.py" for name in wanted), *rest]
    os.execv(python, [python, *map(str, command)])
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
