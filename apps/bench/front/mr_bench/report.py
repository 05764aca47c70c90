# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench report: documents as one page."""

from mr_bench.document import read
from mr_support import output
from mr_support.options import Option, Wrong, parse
from mr_support.text import print_error

MAX_FILES = 1024
USAGE = """\
usage: mr-bench report [options] FILE...
Write an HTML page with charts of documents that mr-bench wrote with
--json. The page needs no other file and no network.
"""
OPTIONS = [
    Option("out", "FILE", "write the page to FILE (default: stdout)"),
    Option("title", "TEXT", "title of the page"),
]


def _complain(text: str, status: int) -> int:
    print_error(f"mr-bench report: {text}")
    return status


def main(words: list[str]) -> int:
    """The exit status."""
    try:
        asked = parse(words, USAGE, OPTIONS)
        if asked is None:
            return 0
        given, files = asked
        # Needs packages that --help, which the build asks for, does not.
        from mr_bench.page import render

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
    out = given.get("out", ["-"])[-1]
    try:
        output.write(out, render(documents, given.get("title", ["Measured with mr-bench"])[-1]))
    except OSError as error:
        where = "standard output" if out == "-" else out
        return _complain(f"cannot write {where}: {error.strerror}", 1)
    return 0
