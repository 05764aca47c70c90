# SPDX-License-Identifier: BSD-3-Clause
"""Exported symbols: library, symbol map and headers agree.

usage: check_symbols.py LIBRARY.so FFI.so DRIVER...

FFI.so has the inline functions of the headers that programs include. Every global symbol of our own objects starts with mr_ or mri_, so that a
static library collides with nobody.
"""
import re
import subprocess
import sys

import tree

PREFIXES = ("mr_", "mri_")


def nm(*arguments):
    done = subprocess.run(["nm", "--defined-only", "-g", *arguments],
                          capture_output=True, text=True, check=True)
    return {line.split()[2].split("@")[0] for line in
            done.stdout.splitlines() if len(line.split()) == 3}


def compare(wrong, where, have, what, should):
    """Complain about names that one side has and the other has not."""
    for name in sorted(should - have):
        wrong.add(where, f"{name} is missing, {what} has it")
    for name in sorted(have - should):
        wrong.add(where, f"{name} is not in {what}")


@tree.check("exported symbols")
def main(wrong):
    library, ffi, *objects = sys.argv[1:]
    map_text = tree.blank_comments(tree.text("lib/millrace.map"))
    releases = set(re.findall(r"^(MILLRACE_[\w.]+) \{", map_text, re.M))
    in_map = set(re.findall(r"^\t(\w+);", map_text, re.M))
    in_headers = set()
    is_inline = set()
    for path in tree.public_headers():
        text = tree.blank_comments(tree.text(path))
        in_headers |= set(re.findall(r"MR_API\b[^;{]*?\b(mr_\w+)\s*\(", text))
        if path.name not in tree.FOR_DRIVERS:
            is_inline |= set(re.findall(
                r"static inline\b[^;{]*?\b(mr_\w+)\s*\(", text))
    exported = nm("-D", library) - releases
    compare(wrong, library, exported, "lib/millrace.map", in_map)
    compare(wrong, "lib/millrace.map", in_map, "the headers (MR_API)",
            in_headers)
    compare(wrong, ffi, nm("-D", ffi), "the headers (inline)", is_inline)
    for name in sorted(nm(*objects)):
        # Symbols of sanitizers and coverage begin with two underscores; the
        # third is what <sys/sdt.h> measures distances from.
        if not name.startswith((*PREFIXES, "__", "_.stapsdt.base")):
            wrong.add("libmillrace", f"global {name} lacks mr_ or mri_")
    return len(exported) + len(is_inline)
