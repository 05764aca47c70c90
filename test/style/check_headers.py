# SPDX-License-Identifier: BSD-3-Clause
"""Each public header compiles alone, included twice, as C11 and as C++17. Where
it is installed, Clang also says: it knows more of what ISO C forbids than GCC."""
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import tree

# Strict on purpose: a user's flags may be stricter than ours. -Wshadow not in
# C++, where it objects to a function with the name of a struct; mr_pool_stats
# is both as stat(2) is, and C++ allows it.
FLAGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
C_FLAGS = ["-Wshadow", "-Wstrict-prototypes"]
# flow.h and lpm.h are of a library of their own.
NOT_IN_ALL = tree.FOR_DRIVERS | {"flow.h", "lpm.h", "millrace.h"}


def compile_alone(compiler, standard, suffix, name, folder):
    """What the compiler says of the header, '' if nothing."""
    source = Path(folder) / f"alone{suffix}"
    include = f"#include <millrace/{name}>\n"
    # The empty file is no translation unit in strict C, hence the typedef.
    source.write_text(include * 2 + "typedef int not_empty;\n")
    flags = FLAGS + (C_FLAGS if suffix == ".c" else [])
    done = subprocess.run(
        [compiler, f"-std={standard}", *flags,
         f"-I{tree.TOP}/lib/include", str(source)],
        capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr.strip()


@tree.check("compilations of headers")
def main(wrong):
    names = tree.public_headers()
    cxx = os.environ.get("CXX", "g++")
    compilers = [os.environ.get("CC", "cc")]
    if shutil.which("clang"):
        compilers.append("clang")
    rows = [(one, "c11", ".c") for one in compilers]
    if shutil.which(cxx):
        rows.append((cxx, "c++17", ".cc"))
    else:
        print(f"{cxx} is missing: C++17 is not checked")
    with tempfile.TemporaryDirectory() as folder:
        for compiler, standard, suffix in rows:
            for name in names:
                said = compile_alone(compiler, standard, suffix, name, folder)
                if said:
                    wrong.add(f"millrace/{name}", f"alone as {standard}, by "
                              f"{compiler}:\n{said}")
    in_all = tree.text("lib/include/millrace/millrace.h")
    for name in names:
        is_stable = "/" not in name and name not in NOT_IN_ALL
        if is_stable != (f"#include <millrace/{name}>" in in_all):
            wrong.add("millrace/millrace.h",
                      f"does {'not ' * is_stable}include {name}")
    return len(names) * len(rows)
