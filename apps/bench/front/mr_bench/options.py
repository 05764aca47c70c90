# SPDX-License-Identifier: BSD-3-Clause
"""Options of a command: one table defines the parser and the help."""

import getopt
from collections.abc import Callable
from dataclasses import dataclass

from mr_bench import engine


class Wrong(Exception):
    """One line: what is wrong with a command line or file, and the remedy."""


@dataclass(frozen=True)
class Option:
    """take: called with the value, "" for an option that has none. letter "":
    there is no short form."""

    name: str
    letter: str
    value: str  # what the help calls it; "": there is none
    help: str
    take: Callable[[str], None]


def _print_help(usage: str, options: list[Option]) -> None:
    rows = [(o.letter, f"{o.name} {o.value}".strip(), o.help) for o in options]
    rows += [("h", "help", "print this"), ("V", "version", "print the version")]
    print(usage)
    for letter, left, what in rows:
        short = f"-{letter}, " if letter else "    "
        print(f"  {short}--{left:16} {what}")
    print("\nExit status: 0; 1 on failure; 2 if the command line is wrong.")


def parse(words: list[str], usage: str, options: list[Option]) -> list[str] | None:
    """Process the options in order. Returns the other words, or None if help
    was printed. Raises Wrong."""
    letters = "hV" + "".join(o.letter + (":" if o.value else "") for o in options if o.letter)
    names = ["help", "version"] + [o.name + ("=" if o.value else "") for o in options]
    by_name = {name: o for o in options for name in (f"--{o.name}", f"-{o.letter}")}
    try:
        given, rest = getopt.gnu_getopt(words, letters, names)
    except getopt.GetoptError as error:
        dashes = "-" if len(error.opt) == 1 else "--"
        if "requires argument" in error.msg:
            raise Wrong(f"option '{dashes}{error.opt}' needs a value") from None
        raise Wrong(f"no option '{dashes}{error.opt}'; mr-bench --help lists them") from None
    for name, value in given:
        if name in ("-h", "--help"):
            _print_help(usage, options)
            return None
        if name in ("-V", "--version"):
            engine.become(["--version"])
        by_name[name].take(value)
    return rest
