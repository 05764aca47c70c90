# SPDX-License-Identifier: BSD-3-Clause
"""Commands with a deadline, each in a session and process group of its own.

timeout(1) sends SIGTERM to the group at the limit or when end() is called, and
SIGKILL END_S later. Output goes to a file: a process that outlives the command
could keep a pipe open. What the command left in its group is killed at its end.
"""
import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import host

# From SIGTERM to SIGKILL.
END_S = 10.0
LOOK_S = 0.2  # between two looks at the output, and at whether all is over
ENDED_BY_TIMEOUT = (124, 128 + signal.SIGKILL)


class Done(NamedTuple):
    """How a command ended; of a signal: minus its number."""

    status: int
    output: str
    cpu_s: float


class Commands:
    """Commands, run by any number of threads."""

    def __init__(self) -> None:
        self.is_over = False

    def end(self, *_: object) -> None:
        """End what runs and start nothing more. It can handle signals."""
        self.is_over = True

    def run(self, command: Iterable[object], limit_s: float,
            on_line: Callable[[str], object] = str,
            env: dict[str, str] | None = None, nice: int = 0) -> Done:
        """Run one to its end. One that is ended has failed, whatever it says
        about that."""
        if self.is_over:
            return Done(-signal.SIGTERM, "interrupted\n", 0)

        def prepare() -> None:
            os.nice(nice)
            host.end_with_parent(signal.SIGTERM)
        start_s = time.monotonic()
        with tempfile.TemporaryFile() as out:
            # wait4() waits for it. pylint: disable-next=consider-using-with
            process = subprocess.Popen(
                ["timeout", f"--kill-after={END_S}", f"{limit_s}",
                 *map(str, command)], stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, env=env, start_new_session=True,
                preexec_fn=prepare)
            was_ended = self._follow(process.pid, out.fileno(), on_line)
            # It is a zombie until wait4(), so no other process has its number.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            _, status, used = os.wait4(process.pid, 0)
            out.seek(0)
            output = out.read().decode(errors="replace")
        process.returncode = status = os.waitstatus_to_exitcode(status)
        if was_ended:
            status = status or -signal.SIGTERM
            output += "\ninterrupted\n"
        elif (time.monotonic() - start_s >= limit_s
              and status in (*ENDED_BY_TIMEOUT, -signal.SIGKILL)):
            output += f"\ndid not end within {limit_s:.0f} s\n"
        return Done(status, output, used.ru_utime + used.ru_stime)

    def _follow(self, pid: int, out: int,
                on_line: Callable[[str], object]) -> bool:
        """Tell each line of the output until the process has ended; whether it
        was ended because all is over."""
        was_ended, told, has_ended = False, 0, False
        while not has_ended:
            has_ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT
                                  | os.WNOHANG) is not None
            lines = os.pread(out, 1 << 24, told)
            lines = lines[:lines.rfind(b"\n") + 1]
            told += len(lines)
            for line in lines.splitlines():
                on_line(line.decode(errors="replace"))
            if self.is_over and not was_ended and not has_ended:
                os.kill(pid, signal.SIGTERM)
                was_ended = True
            if not has_ended:
                time.sleep(LOOK_S)
        return was_ended
