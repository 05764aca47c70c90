# SPDX-License-Identifier: BSD-3-Clause
"""The traffic engine, a program of its own."""

import os
import signal
from typing import NoReturn

from mr_support import program


def become(words: list[str]) -> NoReturn:
    """Run it with these words in place of this process. Raises OSError."""
    # Python ignores these signals, and exec would pass that on.
    for sig in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(sig, signal.SIG_DFL)
    os.execv(program.companion(), ["mr-bench", *words])
