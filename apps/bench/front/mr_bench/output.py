# SPDX-License-Identifier: BSD-3-Clause
"""Files that are complete, or not touched."""

import contextlib
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def to_stdout() -> Iterator[None]:
    """All that is printed meanwhile is written at its end. Raises OSError, and
    then gives up the rest, which would fail again as the program ends."""
    try:
        yield
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), 1)
        raise


def write(path: str, text: str) -> None:
    """Beside its name first; "-" is standard output. What is no regular file
    (/dev/stderr, a pipe) is written to as it is. Raises OSError."""
    if path == "-":
        with to_stdout():
            sys.stdout.write(text)
        return
    is_special = os.path.exists(path) and not os.path.isfile(path)
    beside = path if is_special else f"{path}.{os.getpid()}.part"
    try:
        with open(beside, "w", encoding="utf-8") as file:
            file.write(text)
        if not is_special:
            os.replace(beside, path)
    except OSError:
        if not is_special:
            with contextlib.suppress(OSError):
                os.unlink(beside)
        raise
