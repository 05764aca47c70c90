# SPDX-License-Identifier: BSD-3-Clause
"""Pack the front end into one file that runs.

usage: pack.py OUTPUT PYTHON BINDIR ENGINE FILE...

BINDIR, ENGINE: where that file and the engine will be installed.
"""

import os
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> None:
    output, python, bindir, engine, *files = sys.argv[1:]
    with open(output, "wb") as to:
        # -I: what the environment or the working directory have of Python
        # must not run in a program that is started as root.
        to.write(f"#!{python} -I\n".encode())
        with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as packed:

            def add(name: str, data: bytes) -> None:
                # Without a date: the same files make the same program.
                packed.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)

            for name in sorted(files):
                path = Path(name).resolve()
                add(str(path.relative_to(HERE)), path.read_bytes())
            # Relative: what is installed may be moved as a whole.
            add("mr_bench/engine_path", os.path.relpath(engine, bindir).encode())
    os.chmod(output, 0o755)


main()
