# SPDX-License-Identifier: BSD-3-Clause
"""The libraries of this tree can replace those of the last release.

usage: abi_test.py

Builds the last tag v* and this tree, and lets abidiff compare; skipped before
the first release. First shows that abidiff finds a struct that was changed.
"""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
LIBRARIES = ["millrace", "millrace-flow"]
# Ignore what only experimental functions can reach.
SUPPRESSIONS = """
[suppress_function]
symbol_version_regexp = EXPERIMENTAL$
"""
# abidiff(1): the change is incompatible, or may be.
INCOMPATIBLE, CHANGED, BROKEN = 8, 4, 3
# A library of one function, and the struct that it fills.
SOURCE = """
#include <millrace/port.h>
int mr_port_link(const struct mr_port *port, struct mr_link *ret_link)
{
    return port != 0 && ret_link->is_up;
}
"""


def run(*command, **options):
    return subprocess.run([str(c) for c in command], check=True, text=True,
                          capture_output=True, **options).stdout


def compare(old, new, folder):
    """The output of abidiff for two libraries; '' if they are compatible."""
    suppressions = Path(folder, "suppressions")
    suppressions.write_text(SUPPRESSIONS)
    done = subprocess.run(
        ["abidiff", "--no-added-syms", "--suppressions", suppressions, old,
         new], text=True, capture_output=True, check=False)
    assert not done.returncode & BROKEN, done.stderr
    return done.stdout if done.returncode & (INCOMPATIBLE | CHANGED) else ""


def check_abidiff(folder):
    """Check that abidiff finds a changed struct, and nothing in equal ones."""
    include = Path(folder, "include")
    shutil.copytree(TOP / "lib/include", include)
    Path(folder, "one.c").write_text(SOURCE)
    header = include / "millrace/port.h"
    was = header.read_text()
    made = {}
    for name, text in (("same", was), ("again", was), ("changed", was.replace(
            "\tuint32_t speed_mbps;", "\tuint64_t speed_mbps;"))):
        header.write_text(text)
        made[name] = Path(folder, name + ".so")
        run("cc", "-g", "-shared", "-fPIC", f"-I{include}",
            Path(folder, "one.c"), "-o", made[name])
    said = compare(made["same"], made["again"], folder)
    assert said == "", said
    said = compare(made["same"], made["changed"], folder)
    assert "speed_mbps" in said, f"abidiff said: {said}"


def build(source, folder):
    """The libraries, with debug information."""
    run("meson", "setup", folder, source, "-Dtests=false", "-Dapps=false",
        "-Dpython=disabled", "-Ddpdk=disabled", "-Dwerror=false",
        "-Dbuildtype=debugoptimized")
    run("meson", "compile", "-C", folder,
        *(f"{name}:shared_library" for name in LIBRARIES))
    return [Path(folder, f"lib/link/lib{name}.so") for name in LIBRARIES]


def check_release(tag, folder):
    """Compare this tree with a release; '' if it is compatible."""
    tree = Path(folder, "release")
    tree.mkdir()
    archive = Path(folder, "release.tar")
    run("git", "-C", TOP, "archive", "-o", archive, tag)
    run("tar", "-xf", archive, "-C", tree)
    old = build(tree, Path(folder, "old"))
    new = build(TOP, Path(folder, "new"))
    return "".join(compare(was, now, folder) for was, now in zip(old, new))


def main():
    for tool in ("abidiff", "git"):
        if not shutil.which(tool):
            print(f"{tool} is missing")
            return 77
    with tempfile.TemporaryDirectory(prefix="mr-abi-") as folder:
        check_abidiff(folder)
        described = subprocess.run(
            ["git", "-C", TOP, "describe", "--tags", "--match", "v*",
             "--abbrev=0"], text=True, capture_output=True, check=False)
        tag = described.stdout.strip()
        if described.returncode != 0:
            print("abidiff works; no release yet: there is no tag v*")
            return 77
        said = check_release(tag, folder)
    print(said or f"compatible with {tag}")
    return 1 if said else 0


sys.exit(main())
