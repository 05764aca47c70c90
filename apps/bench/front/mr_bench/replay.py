# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench replay: the engine's, but for the files of its document."""

import json
import os
import signal
from typing import NoReturn

from mr_bench import engine
from mr_bench.result import Result


def _write(from_: int) -> int:
    """The document that comes from there, if one does. The exit status."""
    with open(from_, "rb") as file:
        text = file.read()
    if not text:
        return 0
    files = json.loads(text)
    return Result(files.pop("document"), files).write()


def main(words: list[str]) -> NoReturn:
    """Become the engine, which waits for the child that writes files. Raises OSError."""
    from_, to = os.pipe()
    if os.fork():
        os.close(from_)
        os.set_inheritable(to, True)
        engine.become(["replay", str(to), *words])
    os.close(to)
    # They end the engine, and that ends this.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    status = 1
    try:
        status = _write(from_)
    finally:
        os._exit(status)
