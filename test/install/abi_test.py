# SPDX-License-Identifier: BSD-3-Clause
"""The public headers declare what lib/abi says: functions, structs, constants.

usage: abi_test.py [update]

abidw describes the headers, and abidiff compares that with the baseline. A
difference in the stable headers is an error; one in the experimental headers is
reported. update writes the baseline anew; docs/abi.md says which differences are
allowed. Also shows that abidiff finds changes.
"""
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.append(str(TOP / "docs"))

import docstrings  # noqa: E402 pylint: disable=wrong-import-position

BASELINE = TOP / "lib/abi"
MAX_BYTES = 300_000
# Of each baseline: its headers.
PARTS = {"stable": "millrace/*.h", "experimental": "millrace/experimental/*.h"}
# What neither abidiff nor a reader needs, and is a third of the file.
SURPLUS = re.compile(r"^ +| (?:visibility='default(?:-visibility)?'|"
                     r"binding='global-binding'|access='public'|"
                     r"mangled-name='\w+')", re.M)
# abidiff(1): it could not compare.
BROKEN = 3
# What is changed in which header, and whether abidiff has to say so.
CHANGES = [
    ("port.h", "#include", "#include", False),
    ("port.h", "\tMR_RX_DROP_RULE,", "\tMR_RX_DROP_RULE, MR_RX_DROP_MORE,",
     False),
    ("port.h", "\tMR_RX_DROP_INVALID,",
     "\tMR_RX_DROP_MORE, MR_RX_DROP_INVALID,", True),
    ("port.h", "MR_BURST_MAX = 256", "MR_BURST_MAX = 512", True),
    ("port_events.h", "\tuint32_t speed_mbps;", "\tuint64_t speed_mbps;",
     True),
    ("pool.h", "MR_API struct mr_region *mr_pool_region(",
     "MR_API struct mr_region *mr_pool_region(int more, ", True),
    ("pool.h", "MR_API struct mr_region *mr_pool_region(",
     "MR_API struct mr_region *mr_pool_its_region(", True),
    ("lpm.h", "MR_LPM_NONE UINT32_MAX", "MR_LPM_NONE 0", True),
]


def run(*command, **options):
    return subprocess.run([str(c) for c in command], check=True, text=True,
                          capture_output=True, **options).stdout


def source(include, pattern):
    """A C file with a variable for each function, struct, enum and constant,
    since abidw describes variables and what they refer to."""
    headers = sorted(include.glob(pattern))
    lines = [f"#include <{path.relative_to(include)}>" for path in headers]
    for path in headers:
        text = path.read_text()
        for function in docstrings.functions(text):
            if not function.declaration.startswith("static inline"):
                lines.append(f"__typeof__({function.name}) "
                             f"*abi_{function.name};")
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        for kind, name in re.findall(r"^(struct|enum|union) (mr_\w+)\s*{",
                                     text, re.M):
            lines.append(f"{kind} {name} abi_{kind}_{name};")
        for constants in re.findall(r"^enum {(.*?)}", text, re.M | re.S):
            for name in re.findall(r"\b(MR_\w+)\s*(?:=|,|$)", constants):
                lines.append(f"char (*abi_{name})[{name}];")
        for name in re.findall(r"^#define (MR_(?!VERSION)\w+) \(?UINT", text,
                               re.M):
            lines.append(f"char (*abi_{name})[(uint32_t){name}];")
    return "\n".join(lines) + "\n"


def library(include, part, folder):
    """A library with these variables."""
    file = Path(folder, part + ".c")
    file.write_text(source(include, PARTS[part]))
    run("cc", "-O1", "-g", f"-fdebug-prefix-map={folder}=.", "-shared",
        "-fPIC", f"-I{include}", file, "-o", file.with_suffix(".so"))
    return file.with_suffix(".so")


def describe(include, part, folder):
    """The baseline of these headers."""
    text = run("abidw", "--no-show-locs", "--no-comp-dir-path",
               "--no-corpus-path", "--no-parameter-names",
               "--no-write-default-sizes", "--drop-private-types",
               "--type-id-style", "hash",
               "--headers-dir", include, library(include, part, folder))
    return SURPLUS.sub("", text)


def compare(baseline, include, part, folder):
    """What abidiff says; '' if nothing that matters differs."""
    done = subprocess.run(["abidiff", "--no-added-syms", baseline,
                           library(include, part, folder)],
                          text=True, capture_output=True, check=False)
    assert done.returncode >= 0 and not done.returncode & BROKEN, done.stderr
    return done.stdout if done.returncode else ""


def check_abidiff(folder):
    """Check that abidiff finds changes of the headers."""
    include = Path(folder, "include")
    shutil.copytree(TOP / "lib/include", include)
    baseline = Path(folder, "stable.abi")
    baseline.write_text(describe(include, "stable", folder))
    for name, before, after, is_worse in CHANGES:
        file = include / "millrace" / name
        was = file.read_text()
        assert before in was, before
        file.write_text(was.replace(before, after))
        said = compare(baseline, include, "stable", folder)
        file.write_text(was)
        assert (said != "") == is_worse, f"{after}: abidiff said: {said}"


def update(folder):
    """Write the baseline."""
    for part in PARTS:
        text = describe(TOP / "lib/include", part, folder)
        (BASELINE / f"{part}.abi").write_text(text)
    n_bytes = sum(path.stat().st_size for path in BASELINE.iterdir())
    print(f"lib/abi: {n_bytes} bytes, of at most {MAX_BYTES}")
    return 1 if n_bytes > MAX_BYTES else 0


def check(folder):
    """Compare the headers with the baseline."""
    status = 0
    for part in PARTS:
        said = compare(BASELINE / f"{part}.abi", TOP / "lib/include", part,
                       folder)
        if said:
            print(f"{said}{part} headers differ from lib/abi; after a change "
                  "that docs/abi.md allows: ./mr abi update")
            status |= part == "stable"
    if status == 0:
        check_abidiff(folder)
    return status


def main():
    for tool in ("abidiff", "abidw"):
        if not shutil.which(tool):
            print(f"{tool} is missing")
            return 77
    if platform.machine() != "x86_64":
        print("lib/abi is for x86-64")
        return 77
    with tempfile.TemporaryDirectory(prefix="mr-abi-") as folder:
        return update(folder) if sys.argv[1:] == ["update"] else check(folder)


sys.exit(main())
