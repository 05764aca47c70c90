# SPDX-License-Identifier: BSD-3-Clause
"""Pack a program in Python into one file that runs.

usage: pack.py OUTPUT PYTHON PACKAGE VERSION BINDIR BUILT INSTALLED FILE...

PACKAGE.main.main() is the program, which also gets the files of no package. VERSION: a file whose
last line it is. BINDIR: where OUTPUT will be installed; BUILT, INSTALLED: the engine or library
that it needs, here and there.
"""

import os
import sys
import zipfile
from pathlib import Path


def name_of(path: Path, package: str) -> str:
    """The name in the archive, relative to the folder above the package."""
    root = path.parent
    if not (root / "__init__.py").exists():
        return f"{package}/{path.name}"
    while (root / "__init__.py").exists():
        root = root.parent
    return str(path.relative_to(root))


def main() -> None:
    output, python, package, version, bindir, built, installed, *files = sys.argv[1:]
    # Relative, so that a build or an installation can be moved as a whole.
    places = os.path.relpath(installed, bindir), os.path.relpath(built, os.path.dirname(output))
    entries = {
        "__main__.py": f"from {package}.main import main\n\nmain()\n".encode(),
        "mr_support/version": Path(version).read_bytes().splitlines()[-1],
        "mr_support/companion": "\n".join(places).encode(),
    } | {name_of(path, package): path.read_bytes() for path in map(Path, files)}
    with open(output, "wb") as to:
        # -I: the program may run as root, so it must not load Python code from the
        # environment or the working directory.
        to.write(f"#!{python} -I\n".encode())
        with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, data in sorted(entries.items()):
                # Without a date, so that the same files make the same program.
                packed.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    os.chmod(output, 0o755)


main()
