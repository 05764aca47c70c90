# SPDX-License-Identifier: BSD-3-Clause
"""Exported symbols: libraries, symbol maps and headers agree.

usage: check_symbols.py LIBRARY.so FLOW.so FFI.so STATIC.a...

FFI.so has the inline functions of the headers that programs include. Every
global symbol of our own objects starts with mr_ or mri_, so that a static
library collides with nobody.
"""
import re
import subprocess
import sys

import tree

PREFIXES = ("mr_", "mri_")
FLOW = {"flow.h", "lpm.h", "experimental/flow_hand_over.h"}
VERSIONS = re.compile(r"^(MILLRACE_[\w.]+) \{(.*?)\};", re.M | re.S)


def nm(*arguments):
    done = subprocess.run(["nm", "--defined-only", "-g", *arguments],
                          capture_output=True, text=True, check=True)
    return {line.split()[2] for line in done.stdout.splitlines()
            if len(line.split()) == 3}


def compare(wrong, where, have, what, should):
    """Complain about names that one side has and the other has not."""
    for name in sorted(should - have):
        wrong.add(where, f"{name} is missing, {what} has it")
    for name in sorted(have - should):
        wrong.add(where, f"{name} is not in {what}")


def inline(headers):
    return {name for header in headers for name in re.findall(
        r"static inline\b[^;{]*?\b(mr_\w+)\s*\(",
        tree.blank_comments(tree.text(header)))}


def compare_versions(wrong, library, map_name, declared):
    """Compare library, map and {is_experimental: names}; return how many."""
    versions = dict(VERSIONS.findall(tree.blank_comments(tree.text(map_name))))
    # Otherwise, two incompatible libraries in a process would share symbols.
    done = subprocess.run(["readelf", "-d", library], capture_output=True,
                          text=True, check=True)
    major = re.search(r"SONAME.*\.so\.(\d+)\]", done.stdout).group(1)
    for version in versions:
        if not re.search(rf"_{major}[._]", version):
            wrong.add(map_name, f"{version} lacks the soname's number, as "
                      f"MILLRACE_{major}.1 or MILLRACE_{major}_EXPERIMENTAL")
    in_map = {f"{name}@@{version}" for version, names in versions.items()
              for name in re.findall(r"^\t(\w+);", names, re.M)}
    exported = nm("-D", library) - {f"{v}@@{v}" for v in versions} - \
        set(versions)
    compare(wrong, library, exported, map_name, in_map)
    for is_experimental, names in declared.items():
        compare(wrong, map_name,
                {name.partition("@")[0] for name in in_map
                 if ("EXPERIMENTAL" in name) == is_experimental},
                "the headers" + " in experimental/" * is_experimental, names)
    return len(exported)


@tree.check("exported symbols")
def main(wrong):
    library, flow, ffi, *objects = sys.argv[1:]
    headers = tree.public_headers()
    declared = {False: set(), True: set()}
    for name, path in headers.items():
        if name not in FLOW:
            declared["/" in name] |= tree.exported(path)
    n = compare_versions(wrong, library, "lib/millrace.map", declared)
    of_flow = [headers[name] for name in FLOW if "/" not in name]
    n += compare_versions(wrong, flow, "lib/millrace-flow.map", {
        False: inline(of_flow).union(*map(tree.exported, of_flow)),
        True: set().union(*(tree.exported(headers[name]) for name in FLOW
                            if "/" in name))})
    is_inline = inline(path for name, path in headers.items()
                       if name not in tree.FOR_DRIVERS | FLOW
                       and "/" not in name)
    compare(wrong, ffi, nm("-D", ffi), "the headers (inline)", is_inline)
    for name in sorted(nm(*objects)):
        # Symbols of sanitizers and coverage begin with two underscores; the
        # third is what <sys/sdt.h> measures distances from.
        if not name.startswith((*PREFIXES, "__", "_.stapsdt.base")):
            wrong.add("libmillrace", f"global {name} lacks mr_ or mri_")
    return n + len(is_inline)
