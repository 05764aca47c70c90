# SPDX-License-Identifier: BSD-3-Clause
"""When a started program is ready for a signal."""
import re
import signal
import time
from pathlib import Path

from host import limit

LIMIT_S = limit(20)
# If ignored, as under nohup, programs that tests start would ignore it too.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def await_sigint(process):
    """Wait until it blocks or catches SIGINT, which kills it before that. For
    LIMIT_S at most: what the signal does then is for the caller to see.

    Python catches SIGINT before any program does, and SIGTERM only if told to:
    while a process is Python, that is what counts."""
    end_s = time.monotonic() + LIMIT_S
    while process.poll() is None and time.monotonic() < end_s:
        process_files = Path(f"/proc/{process.pid}")
        is_python = b"python" in (
            process_files / "cmdline").read_bytes().partition(b"\0")[0]
        wanted = signal.SIGTERM if is_python else signal.SIGINT
        status = (process_files / "status").read_text()
        for mask in re.findall(r"(?m)^Sig(?:Blk|Cgt):\s+(\w+)$", status):
            if int(mask, 16) & 1 << wanted - 1:
                return
        time.sleep(0.01)
