# SPDX-License-Identifier: BSD-3-Clause
"""Configuration files: send them to a program that plans or applies them, and write them from
the settings that it has in force."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mr_ctl.client import Connection, Object, Refused
from mr_support.text import escape, print_error

# A YAML reader might take other texts for a number, a boolean or null.
PLAIN = re.compile(
    r"(?!(?:y|n|yes|no|on|off|true|false|null)$)[A-Za-z/][\w./-]*"  # words, paths
    r"|\d+[dhms][\ddhms]*|\d+-\d+|\d+(?:\.\d+){3}(?:/\d+)?",  # times, ranges, addresses
    re.IGNORECASE,
)
# json.dumps() leaves these as they are; YAML does not allow them.
UNPRINTABLE = re.compile(r"[\x7f-\x84\x86-\x9f\ufeff\ufffe\uffff]")


def scalar(value: Any) -> str:
    """A value as YAML."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str) and not PLAIN.fullmatch(value):
        text = json.dumps(value, ensure_ascii=False)
        return UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return str(value)


def flow(value: Any) -> str:
    """Any value, on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {flow(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(one) for one in value) + "]"
    return scalar(value)


def document(settings: Object, indent: str = "") -> Iterator[str]:
    """The lines of a file."""
    for name, value in settings.items():
        if isinstance(value, dict):
            yield f"{indent}{name}:"
            yield from document(value, indent + "  ")
        elif isinstance(value, list):
            yield f"{indent}{name}:"
            for one in value:
                yield f"{indent}  - {flow(one)}"
        else:
            yield f"{indent}{name}: {scalar(value)}"


def ask(connection: Connection, verb: str, path: str) -> tuple[list[Object], Object]:
    """Send a request with a file ("-": standard input). Returns the answer's objects, and its last.
    Prints a line for each error in the file. Raises Refused, OSError."""
    data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    name = "standard input" if path == "-" else path
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Refused(f"{name}:{line}: not UTF-8") from error
    found = []
    for answer in connection.ask(verb, name=escape(name), text=text):
        if "wrong" in answer:
            print_error(f"mrctl: {answer['wrong']}")
        else:
            found.append(answer)
    return found[:-1], found[-1]


def change_line(change: Object) -> str:
    """A change as a line of text."""
    values = [flow(change[side]) for side in ("from", "to") if side in change]
    mark = " " if len(values) == 2 else "-" if "from" in change else "+"
    ending = "  (needs a restart)" if change["restart"] else ""
    return escape(f"{mark} {change['key']}: {' -> '.join(values)}{ending}")
