# SPDX-License-Identifier: BSD-3-Clause
"""Start and exit of a program in Python, and the files that pack.py added to it."""

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
    """The version of the build."""
    return (pkgutil.get_data("mr_support", "version") or b"").decode()


def companion() -> Path:
    """The path of the engine or library that belongs to this program: where it was installed, or
    else in the build folder. It does not depend on the environment, since programs may run as
    root."""
    folder = Path(__file__).resolve().parents[1].parent
    places = (pkgutil.get_data("mr_support", "companion") or b"").split(b"\n")
    paths = [folder / os.fsdecode(place) for place in places]
    return next((path for path in paths if path.exists()), paths[0])


def start(name: str, run: Callable[[list[str]], int]) -> NoReturn:
    """Run the command line in sys.argv and exit with the status that run() returns."""
    # Ctrl-C ends the program by the default action; a command that must clean up
    # installs its own handler.
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
