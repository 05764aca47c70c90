# SPDX-License-Identifier: BSD-3-Clause
"""Files that are written completely or not at all. Text on standard output and standard error
that may be lost, because a measurement must continue without its reader."""

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator

_lost: list[OSError] = []  # errors of say()


def _give_up(fd: int) -> None:
    """Discard buffered text, which would fail again when the program ends."""
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(null, fd)
    os.close(null)


@contextlib.contextmanager
def to_stdout() -> Iterator[None]:
    """Flush standard output at the end of the block. Raises OSError, including earlier errors of
    say(), and discards the rest."""
    try:
        yield
        sys.stdout.flush()
    except OSError:
        _give_up(1)
        raise
    if _lost:
        raise _lost[0]


def say(text: str, end: str = "\n", is_last: bool = False) -> None:
    """Print text whose loss must not stop a measurement; is_last flushes it. to_stdout() raises
    the error later."""
    try:
        print(text, end=end, flush=is_last)
    except OSError as error:
        _give_up(1)
        _lost.append(error)


def is_lost() -> bool:
    """Whether text could not be written, because its reader has gone."""
    return bool(_lost)


def copy(lines: Iterable[bytes]) -> None:
    """Copy lines to standard output, like say(). All lines are consumed even after an error."""
    for data in lines:
        try:
            sys.stdout.buffer.write(data)
        except OSError as error:
            _give_up(1)
            _lost.append(error)


def tell(text: str, end: str = "\n") -> None:
    """Print text on standard error, ignoring errors."""
    try:
        print(text, end=end, file=sys.stderr, flush=True)
    except OSError:
        _give_up(2)


def open_missing() -> None:
    """Replace a closed standard output or error (>&-) with /dev/null, here and in child
    processes."""
    for fd, name in (1, "stdout"), (2, "stderr"):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), fd)
            os.set_inheritable(fd, True)  # if it is the same fd
            setattr(sys, name, os.fdopen(fd, "w", encoding="utf-8", closefd=False))


def write(path: str, text: str) -> None:
    """Write a temporary file and rename it; "-" is standard output. Other than regular files
    (/dev/stderr, a pipe) are written directly. Raises OSError."""
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
