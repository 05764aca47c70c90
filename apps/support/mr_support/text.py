# SPDX-License-Identifier: BSD-3-Clause
"""Makes text from files, command lines and peers safe for a terminal: control characters must
neither move the cursor nor end a line."""

import os
import re

from mr_support import output

MAX_MESSAGE = 2048
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    # Python's own surrogates stand for bytes; others come from the text itself.
    errors = "surrogateescape" if "\udc80" <= character <= "\udcff" else "surrogatepass"
    if character in "\n\t":
        return {"\n": r"\n", "\t": r"\t"}[character]
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", errors))


def escape(text: str) -> str:
    r"""Escape control characters and bytes that are not UTF-8, as \n, \t, \x1b."""
    return UNPRINTABLE.sub(_escaped, text)


def utf8(text: str) -> str:
    r"""For a document: bytes that are not UTF-8 as \xff, so that different texts stay different."""
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def print_error(text: str) -> None:
    """Print one line on standard error."""
    output.tell(escape(text[:MAX_MESSAGE]))
