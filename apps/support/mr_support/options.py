# SPDX-License-Identifier: BSD-3-Clause
"""Options of a command: one table defines the parser and the help."""

import getopt
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from mr_support import program


class Wrong(Exception):
    """One line: what is wrong with a command line or file, and the remedy."""


@dataclass(frozen=True)
class Option:
    """value: its name in the help; "": no value. letter: the short form."""

    name: str
    value: str
    help: str
    _: KW_ONLY
    letter: str = ""


HELP = Option("help", "", "print this help", letter="h")
ENDING = (HELP, Option("version", "", "print the version", letter="V"))


def _print_help(usage: str, options: Sequence[Option], statuses: str) -> None:
    print(usage)
    for o in options:
        short = f"-{o.letter}, " if o.letter else "    "
        left = f"--{o.name} {o.value}".strip()
        # The help of a long option is on the next line.
        gap = "\n" + 25 * " " if len(left) > 18 else (19 - len(left)) * " "
        print(f"  {short}{left}{gap}{o.help}")
    print(f"\nExit status: 0; 1 on failure; 2 on a usage error{statuses}.")


def parse(
    words: list[str],
    usage: str,
    options: Sequence[Option],
    ending: Sequence[Option] = ENDING,
    statuses: str = "",
) -> tuple[dict[str, list[str]], list[str]] | None:
    """Returns the values of each option given ("" if it takes none), and the other
    words; None if help or version was printed. usage begins with "usage: PROGRAM [" or
    "usage: PROGRAM COMMAND [". statuses: further exit statuses, for the help. Raises Wrong."""
    options = [*options, *ending]
    command = usage.partition(" [")[0].removeprefix("usage: ")
    letters = "".join(o.letter + ":" * (o.value != "") for o in options if o.letter)
    by_name = {f"--{o.name}": o for o in options} | {f"-{o.letter}": o for o in options}
    try:
        pairs, rest = getopt.gnu_getopt(
            words, letters, [o.name + ("=" if o.value else "") for o in options]
        )
    except getopt.GetoptError as error:
        dashes = "-" if len(error.opt) == 1 else "--"
        if "requires argument" in error.msg:
            raise Wrong(f"option '{dashes}{error.opt}' needs a value") from None
        if "must not have" in error.msg:
            raise Wrong(f"option '--{error.opt}' takes no value") from None
        if "not a unique prefix" in error.msg:
            meant = ", ".join(f"--{o.name}" for o in options if o.name.startswith(error.opt))
            raise Wrong(f"option '--{error.opt}' is ambiguous; it may be: {meant}") from None
        raise Wrong(f"unknown option '{dashes}{error.opt}'; see {command} --help") from None
    given: dict[str, list[str]] = {}
    for word, value in pairs:
        name = by_name[word].name
        if name == "help":
            _print_help(usage, options, statuses)
            return None
        if name == "version":
            print(command.split()[0], program.version())
            return None
        given.setdefault(name, []).append(value)
    return given, rest
