# SPDX-License-Identifier: BSD-3-Clause
"""Fail on more than three files of a program that need each other in a circle,
by their #include or by the functions that they call."""
import re
from pathlib import Path

import tree

MOST = 3
# A function that is not static, at the beginning of a line.
DEFINITION = re.compile(r"^(?!static|typedef)[A-Za-z_][\w *\n\t]*?\b(\w+)"
                        r"\((?:[^(){};]|\([^(){};]*\))*\)\s*\{", re.M)


def circles(needs):
    """The strongly connected parts of {file: files that it needs}."""
    def reached(start):
        seen, waiting = set(), [start]
        while waiting:
            waiting += needs[waiting.pop()] - seen
            seen.update(waiting)
        return seen

    far = {name: reached(name) for name in needs}
    return {frozenset(other for other in far[name] if name in far[other])
            for name in needs}


def included(name, source, known):
    for target in re.findall(r'^#include "([^"]+)"', source, re.M):
        for folder in (name.parent, Path(*name.parts[:2]), Path("apps")):
            if folder / target in known:
                yield folder / target
                break


@tree.check("files of programs")
def main(wrong):
    text = {name: tree.text(name) for name in tree.files("*.c", "*.h")
            if name.parts[0] == "apps"}
    code = {name: tree.blank_strings(tree.blank_comments(source))
            for name, source in text.items() if name.suffix == ".c"}
    # Programs may have functions of the same name.
    defined = {(name.parts[1], function): name for name, source in code.items()
               for function in DEFINITION.findall(source)}
    calls = {}
    for name, source in code.items():
        places = [(program, word) for word in re.findall(r"\b(\w+)\(", source)
                  for program in (name.parts[1], "support")]
        calls[name] = {defined[place] for place in places
                       if place in defined} - {name}
    includes = {name: set(included(name, source, text))
                for name, source in text.items()}
    for kind, needs in (("call", calls), ("include", includes)):
        for circle in circles(needs):
            if len(circle) > MOST:
                names = sorted(map(str, circle))
                wrong.add(names[0], f"{len(circle)} files {kind} each other in "
                          "a circle; take out what most of them need: "
                          + " ".join(names))
    return len(text)
