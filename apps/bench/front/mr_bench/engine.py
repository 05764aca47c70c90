# SPDX-License-Identifier: BSD-3-Clause
"""The traffic engine, a program of its own."""

import os
import pkgutil
import signal
from pathlib import Path
from typing import NoReturn

NAME = "mr-bench-engine"


def path() -> Path:
    """Its path: beside this program in a build folder, or else where it was
    installed. The environment has no influence, since both may run as root."""
    folder = Path(__file__).resolve().parents[1].parent
    beside = folder / NAME
    if beside.exists():
        return beside
    installed = pkgutil.get_data("mr_bench", "engine_path") or b""
    return folder / os.fsdecode(installed)


def become(words: list[str]) -> NoReturn:
    """Run it with these words in place of this process. Raises OSError."""
    # Python ignores these signals, and exec would pass that on.
    for sig in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(sig, signal.SIG_DFL)
    os.execv(path(), ["mr-bench", *words])
