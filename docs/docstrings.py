# SPDX-License-Identifier: BSD-3-Clause
"""The docstrings of public functions."""
import re
from typing import NamedTuple

COMMENT = r"/\*\*(?P<doc>(?:(?!\*/).)*)\*/\s*"
FUNCTION = re.compile(
    COMMENT + r"(?P<decl>(?:MR_API|static inline)\b[^;{]*?\([^;{]*?\))"
    r"[^;{()]*(?:__attribute__\s*\(\(.*?\)\))?\s*[;{]", re.S)


class Function(NamedTuple):
    """A documented function. "": its docstring is the one before."""
    name: str
    declaration: str  # without MR_API; over several lines
    doc: str          # without the stars


def plain(comment):
    """The text of a comment, without its stars."""
    return "\n".join(re.sub(r"^\s*\*? ?", "", line).rstrip()
                     for line in comment.splitlines()).strip("\n")


def functions(source):
    """All documented functions of a header, in order."""
    for match in FUNCTION.finditer(source):
        declaration = match["decl"]
        yield Function(re.search(r"\b(mr_\w+)\s*\(", declaration)[1],
                       re.sub(r"^MR_API\s+", "", declaration),
                       plain(match["doc"]))


def about(source):
    """What the @file comment of a header says."""
    match = re.search(COMMENT.replace("(?P<doc>", r"(?P<doc>\s*\*\s*@file"),
                      source, re.S)
    return plain(match["doc"]).replace("@file", "").strip() if match else ""
