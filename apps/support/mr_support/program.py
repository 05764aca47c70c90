# SPDX-License-Identifier: BSD-3-Clause
"""How a program in Python starts and ends, and what pack.py packed with it."""

import os
import pkgutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from mr_support import output
from mr_support.text import print_error


def version() -> str:
    """That of the build."""
    return (pkgutil.get_data("mr_support", "version") or b"").decode()


def companion() -> Path:
    """The path of the engine or library that comes with this program: where it was
    installed, or else in the build folder. The environment has no influence, since
    programs may run as root."""
    folder = Path(__file__).resolve().parents[1].parent
    places = (pkgutil.get_data("mr_support", "companion") or b"").split(b"\n")
    paths = [folder / os.fsdecode(place) for place in places]
    return next((path for path in paths if path.exists()), paths[0])


def start(name: str, run: Callable[[list[str]], int]) -> NoReturn:
    """Run the words of sys.argv to the end of the program; run() returns its exit status."""
    # Ctrl-C ends it as it ends any program; a command that has something to
    # tidy up says so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    output.open_missing()
    # JSON has an escape for a byte that is no UTF-8; text is escaped before.
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    try:
        with output.to_stdout():
            status = run(sys.argv[1:])
    except OSError as error:
        where = error.filename or "standard output"
        print_error(f"{name}: {where}: {error.strerror}")
        status = 1
    sys.exit(status)
