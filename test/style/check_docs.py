# SPDX-License-Identifier: BSD-3-Clause
"""Docstrings of public functions say what a caller has to know.

Each function of a public header has a docstring. One that returns something
has @return; every one says which thread may call (Thread); one that may change an
object (a pointer to it that is not const) or returns a pointer says who owns
what afterwards (Owner); one that moves bursts says what it costs (Cost). "As mr_other()" is an answer: it hands the question on. A docstring
that covers the function just before may be a one-line /** */.
"""
import re
import sys

import tree

sys.path.append(str(tree.TOP / "docs"))

import docstrings  # noqa: E402 pylint: disable=wrong-import-position

ANY_FUNCTION = re.compile(r"^(?:MR_API|static inline)\b[^;{]*?\b(mr_\w+)\s*\(",
                          re.M)
OBJECT = re.compile(r"(?<!const )\bstruct mr_(?:cache|ctx|frame|pool|port|region|ring\w*|"
                    r"rxq|txq|queue|worker\w*)\s*\*")
PASSES_ON = re.compile(r"\b[Aa]s (?:mr_\w+\(\)|above|it was)|"
                       r"The other direction|Contract of", re.S)


def words_needed(name, declaration):
    """The words that the docstring of a declaration must have."""
    needed = {"Thread"}
    result, _, rest = declaration.partition(name)
    parameters = rest[rest.index("(") + 1:]
    if not re.search(r"\bvoid\s*$", result):
        needed.add("@return")
    if "*" in result.replace("const char *", "") or OBJECT.search(parameters):
        needed.add("Owner")
    if name.endswith(("_burst", "_bulk", "_burst_meta")):
        needed.add("Cost")
    return needed


def has(doc, word):
    """Whether a docstring answers the question that the word asks."""
    if word == "@return":
        return "@return" in doc
    return re.search(rf"\b{word}(?:, \w+)*:", doc) is not None


@tree.check("docstrings")
def main(wrong):
    n = 0
    for path in tree.public_headers().values():
        source = tree.text(path)
        documented = set()
        for name, declaration, doc in docstrings.functions(source):
            documented.add(name)
            n += 1
            if PASSES_ON.search(doc):
                continue
            declaration = " ".join(declaration.split())
            for word in sorted(words_needed(name, declaration)):
                if not has(doc, word):
                    wrong.add(path, f"{name}: no {word}")
        for name in ANY_FUNCTION.findall(tree.blank_comments(source)):
            if name not in documented:
                wrong.add(path, f"{name}: no docstring")
        if "@file" not in source:
            wrong.add(path, "no @file comment")
    return n
