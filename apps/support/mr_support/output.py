# SPDX-License-Identifier: BSD-3-Clause
"""Files that are complete, or not touched; text on standard output and standard
error that may be lost, where what is at work must go on without its reader."""

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator

_lost: list[OSError] = []  # why say() could not write


def _give_up(fd: int) -> None:
    """What is left would fail again, as the program ends at the latest."""
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(null, fd)
    os.close(null)


@contextlib.contextmanager
def to_stdout() -> Iterator[None]:
    """All that is printed meanwhile is written at its end. Raises OSError, also
    that which say() met before, and gives up the rest."""
    try:
        yield
        sys.stdout.flush()
    except OSError:
        _give_up(1)
        raise
    if _lost:
        raise _lost[0]


def say(text: str, end: str = "\n", is_last: bool = False) -> None:
    """Text on standard output, of a measurement that is worth more than it; the
    last is written at once. An error is kept for the end: see to_stdout()."""
    try:
        print(text, end=end, flush=is_last)
    except OSError as error:
        _give_up(1)
        _lost.append(error)


def is_lost() -> bool:
    """Whether text could not be written: nobody reads it any more."""
    return bool(_lost)


def copy(lines: Iterable[bytes]) -> None:
    """Lines to standard output, as say(); all are read in any case."""
    for data in lines:
        try:
            sys.stdout.buffer.write(data)
        except OSError as error:
            _give_up(1)
            _lost.append(error)


def tell(text: str, end: str = "\n") -> None:
    """Text on standard error; if nobody can read it, nobody can be told."""
    try:
        print(text, end=end, file=sys.stderr, flush=True)
    except OSError:
        _give_up(2)


def open_missing() -> None:
    """A standard output or error that was closed at the start (>&-) is
    /dev/null, here and in programs that are started."""
    for fd, name in (1, "stdout"), (2, "stderr"):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), fd)
            os.set_inheritable(fd, True)  # where it is the same one
            setattr(sys, name, os.fdopen(fd, "w", encoding="utf-8", closefd=False))


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
