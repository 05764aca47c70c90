#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench NAME [options]: run NAME_bench.py of this folder."""
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent


def main():
    names = sorted(path.name[:-len("_bench.py")]
                   for path in HERE.glob("*_bench.py"))
    arguments = sys.argv[1:] or names[:1]
    if arguments[0] not in names:
        print(f"usage: ./mr bench {'|'.join(names)} [--help]",
              file=sys.stderr)
        return 2
    script = HERE / f"{arguments[0]}_bench.py"
    os.execv(sys.executable, [sys.executable, str(script), *arguments[1:]])
    return 1


if __name__ == "__main__":
    sys.exit(main())
