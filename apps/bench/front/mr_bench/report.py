# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench report: documents as one page."""

from mr_bench import output
from mr_bench.document import read
from mr_bench.options import Option, Wrong, parse
from mr_bench.page import render
from mr_bench.text import print_error

MAX_FILES = 1024
USAGE = """\
usage: mr-bench report [options] FILE...
Make one page, with charts, of what commands of mr-bench that send and
receive wrote with --json. It needs no other file and no network.
"""


def _complain(text: str, status: int) -> int:
    print_error(f"mr-bench report: {text}")
    return status


def main(words: list[str]) -> int:
    """The exit status."""
    given = {"out": "-", "title": "Measured with mr-bench"}
    options = [
        Option(
            "out",
            "o",
            "FILE",
            "where to write it (standard output)",
            lambda value: given.update(out=value),
        ),
        Option("title", "t", "TEXT", "of the page", lambda value: given.update(title=value)),
    ]
    try:
        files = parse(words, USAGE, options)
        if files is None:
            return 0
        if not 1 <= len(files) <= MAX_FILES:
            raise Wrong(f"{len(files)} files given; it takes 1 to {MAX_FILES}")
        documents = [read(path) for path in files]
        for document in documents:
            if not document.is_net:
                raise Wrong(
                    f"{document.name} is of mr-bench mem or flow, which draw with --out DIR"
                )
    except Wrong as wrong:
        return _complain(str(wrong), 2)
    try:
        output.write(given["out"], render(documents, given["title"]))
    except OSError as error:
        where = "standard output" if given["out"] == "-" else given["out"]
        return _complain(f"cannot write {where}: {error.strerror}", 1)
    return 0
