# SPDX-License-Identifier: BSD-3-Clause
"""Structs of stable headers can grow, or are in the table of docs/abi.md; the
compiler finds them as the table says, and inline functions read no others."""
import os
import re
import subprocess

import tree

PAGE = "docs/abi.md"
ROW = re.compile(r"^\| `(mr_\w+)` \| (\d+) \| (.*) \|$", re.M)
STRUCT = re.compile(r"^struct (mr_\w+) \{\n(.*?)^\}(.*?);", re.M | re.S)
INLINE = re.compile(r"^(?:static|extern) inline\b[^;{]*\{\n(.*?)^\}", re.M | re.S)
ACCESS = re.compile(r"(?:->|\.)([a-z]\w*)")
# The name in a declaration of a member: a function pointer's, or the last word.
MEMBER = re.compile(r"\(\*(\w+)\)\(|\b(\w+)(?:\[[^]]*\])*\s*;")


def table():
    """{struct: (size, {member: offset})}."""
    return {name: (size, dict(re.findall(r"`(\w+)` (\d+)", members)))
            for name, size, members in ROW.findall(tree.text(PAGE))}


def check_structs(wrong, path, source, frozen):
    """Complain of structs that cannot grow; how many it has."""
    n = 0
    for name, members, attributes in STRUCT.findall(source):
        n += 1
        can_grow = re.search(r"\buint32_t size;|\breserved", members)
        if not can_grow and name not in frozen and "packed" not in attributes:
            wrong.add(path, f"struct {name} has no size, nothing reserved, "
                      f"and is not in {PAGE}")
        for names in MEMBER.findall(members) if name in frozen else ():
            member = "".join(names)
            if member not in frozen[name][1] and "reserved" not in member:
                wrong.add(PAGE, f"the row of {name} lacks {member}")
    return n


def compile_table(wrong, frozen, headers):
    """Let the compiler compare."""
    source = "#include <stddef.h>\n" + "".join(
        f"#include <millrace/{header}>\n" for header in sorted(headers))
    for name, (size, members) in frozen.items():
        facts = {f"sizeof(struct {name})": size} | {
            f"offsetof(struct {name}, {member})": offset
            for member, offset in members.items()}
        source += "".join(f'_Static_assert({what} == {n}, "{what} is {n}");\n'
                          for what, n in facts.items())
    done = subprocess.run(
        [os.environ.get("CC", "cc"), "-std=gnu11", "-fsyntax-only", "-xc",
         f"-I{tree.TOP}/lib/include", "-"], input=source, text=True,
        capture_output=True, check=False)
    if done.returncode != 0:
        wrong.add(PAGE, done.stderr.strip())


@tree.check("structs")
def main(wrong):
    frozen = table()
    members = {member for _, found in frozen.values() for member in found}
    headers = {name: tree.blank_comments(tree.text(path))
               for name, path in tree.public_headers().items()
               if "/" not in name}
    n = 0
    for name, source in headers.items():
        n += check_structs(wrong, name, source, frozen)
        for body in INLINE.findall(source):
            for member in set(ACCESS.findall(body)) - members:
                wrong.add(name, f"an inline function reads {member}, which "
                          f"is not in {PAGE}")
    compile_table(wrong, frozen, headers)
    return n
