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
# Structs that grew since the last release, as docs/abi.md allows: abidiff does
# not know sizes and reserves, so they are reviewed and named here.
GROWN = []
# Ignore experimental functions too, and types that no stable header defines.
SUPPRESSIONS = f"""
[suppress_function]
symbol_version_regexp = EXPERIMENTAL$

[suppress_type]
source_location_not_regexp = include/millrace/[a-z_]+\\.h$

[suppress_type]
type_kind = struct
name_regexp = ^({"|".join(GROWN)})$
"""
# abidiff(1): the change is incompatible, or may be.
INCOMPATIBLE, CHANGED, BROKEN = 8, 4, 3
# A library with a struct of its own, and types of the headers.
SOURCE = """
#include <millrace/port.h>
#include <millrace/port_events.h>
struct mr_pool { int is_private; };
int mr_port_link(const struct mr_port *port, struct mr_link *ret_link)
{
    return port != 0 && ret_link->is_up + MR_RX_DROP_INVALID;
}
struct mr_region *mr_pool_region(const struct mr_pool *pool)
{
    return pool->is_private ? 0 : (void *)pool;
}
"""
# What is changed in which file, and whether abidiff has to say so.
CHANGES = [
    ("one.c", "#include", "#include", False),
    ("one.c", "int is_private;", "long more, is_private;", False),
    ("include/millrace/port.h", "\tMR_RX_DROP_RULE,",
     "\tMR_RX_DROP_RULE, MR_RX_DROP_MORE,", False),
    ("include/millrace/port.h", "\tMR_RX_DROP_INVALID,",
     "\tMR_RX_DROP_MORE, MR_RX_DROP_INVALID,", True),
    ("include/millrace/port_events.h", "\tuint32_t speed_mbps;",
     "\tuint64_t speed_mbps;", True),
]


def run(*command, **options):
    return subprocess.run([str(c) for c in command], check=True, text=True,
                          capture_output=True, **options).stdout


def compare(old, new, folder):
    """The output of abidiff for two libraries; '' if they are compatible."""
    suppressions = Path(folder, "suppressions")
    suppressions.write_text(SUPPRESSIONS)
    done = subprocess.run(
        ["abidiff", "--no-added-syms", "--non-reachable-types",
         "--suppressions", suppressions, old, new],
        text=True, capture_output=True, check=False)
    assert not done.returncode & BROKEN, done.stderr
    return done.stdout if done.returncode & (INCOMPATIBLE | CHANGED) else ""


def check_abidiff(folder):
    """Check that abidiff finds incompatible changes, and nothing else."""
    shutil.copytree(TOP / "lib/include", Path(folder, "include"))
    Path(folder, "one.c").write_text(SOURCE)

    def compiled(name):
        library = Path(folder, name)
        run("cc", "-g", "-shared", "-fPIC", f"-I{folder}/include",
            Path(folder, "one.c"), "-o", library)
        return library

    old = compiled("old.so")
    for name, before, after, is_worse in CHANGES:
        file = Path(folder, name)
        was = file.read_text()
        assert before in was, before
        file.write_text(was.replace(before, after))
        said = compare(old, compiled("new.so"), folder)
        file.write_text(was)
        assert (said != "") == is_worse, f"{after}: abidiff said: {said}"


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
