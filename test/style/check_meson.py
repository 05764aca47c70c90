# SPDX-License-Identifier: BSD-3-Clause
"""meson files: sorted lists of one entry per line, a reason per warning flag.

Order that means something (layers, drivers) is in foreach lists and in the
subdir() calls; files() lists are sorted, so that two people who add a file
each do not collide.
"""
import re

import tree


def entries(body):
    """The quoted entries of a files() list."""
    return re.findall(r"'([^']*)'", re.sub(r"#[^\n]*", "", body))


def check(wrong, path, text):
    for number, line in enumerate(text.splitlines(), 1):
        if "\t" in line:
            wrong.add(f"{path}:{number}", "a tab; meson files use two spaces")
        flag = re.search(r"'(-W[\w-]+)'", line)
        # A whole line of its own: the flags of the project.
        if flag and re.match(r"\s*'-W[^']*',", line) and "#" not in line and \
                flag.group(1) not in SELF_EXPLAINING:
            wrong.add(f"{path}:{number}", f"{flag.group(1)}: say why")
    for match in re.finditer(r"\bfiles\(([^)]*)\)", text):
        names = entries(match.group(1))
        number = text.count("\n", 0, match.start()) + 1
        if len(names) > 1 and "+" not in match.group(1):  # not computed
            if names != sorted(names):
                wrong.add(f"{path}:{number}", f"files() is not sorted: "
                          f"{', '.join(sorted(names))}")
            lines = [line for line in match.group(1).splitlines()
                     if entries(line)]
            if any(len(entries(line)) > 1 for line in lines):
                wrong.add(f"{path}:{number}", "files(): one entry per line")


# Flags that say what they do as well as a comment could.
SELF_EXPLAINING = {"-Wimplicit-fallthrough"}


@tree.check("meson files")
def main(wrong):
    paths = tree.files("meson.build", "meson_options.txt")
    for path in paths:
        check(wrong, path, tree.text(path))
    return len(paths)
