#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench NAME [options]: run NAME_bench.py of this folder."""
import os
import pathlib
import sys

USAGE = """usage: ./mr bench [NAME [options]]
       ./mr bench NAME --help

NAME: {names}"""
HERE = pathlib.Path(__file__).resolve().parent


def main():
    names = sorted(path.name[:-len("_bench.py")]
                   for path in HERE.glob("*_bench.py"))
    arguments = sys.argv[1:] or names[:1]
    if arguments[0] in ("-h", "--help"):
        print(USAGE.format(names="|".join(names)))
        return 0
    if arguments[0] not in names:
        print(f"mr bench: no benchmark {arguments[0]}; there are "
              f"{', '.join(names)}", file=sys.stderr)
        return 2
    script = HERE / f"{arguments[0]}_bench.py"
    os.execv(sys.executable, [sys.executable, str(script), *arguments[1:]])
    return 1


if __name__ == "__main__":
    sys.exit(main())
