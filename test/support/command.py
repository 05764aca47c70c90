# SPDX-License-Identifier: BSD-3-Clause
"""Commands with a deadline, each in a session and process group of its own.

At its limit a command's group gets SIGTERM, and SIGKILL END_S later; so does
each that runs when end() is called. Who else holds the pipe when the command
has ended has END_S to let go of it, and ends as well.
"""
import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import host

# From SIGTERM to SIGKILL.
END_S = 10.0
# Between two looks at the clock, and at whether all is over.
LOOK_MS = 500
TIMED_OUT = 124  # as timeout(1) has it


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
        """End what runs, and start nothing more; a handler of signals, too."""
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
        # Who holds the pipe may outlive it: there is no wait for the end of
        # what is written. pylint: disable-next=consider-using-with
        process = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env,
            start_new_session=True, preexec_fn=prepare)
        assert process.stdout is not None
        with process.stdout, contextlib.closing(
                Following(process, limit_s, on_line)) as following:
            while following.is_going_on():
                following.look(self.is_over)
            # Nobody else has waited for it: its signals go by killpg().
            pid, status, used = os.wait4(
                process.pid, 0 if following.has_ended else os.WNOHANG)
        process.returncode = os.waitstatus_to_exitcode(status) if pid \
            else -signal.SIGKILL
        output = following.output.decode(errors="replace")
        if following.timed_out:
            process.returncode = process.returncode or TIMED_OUT
            output += "\ninterrupted\n" if self.is_over else \
                f"\ndid not end within {limit_s:.0f} s\n"
        return Done(process.returncode, output, used.ru_utime + used.ru_stime)


class Following:
    """A command under way: its output, and its end."""

    def __init__(self, process: subprocess.Popen[bytes], limit_s: float,
                 on_line: Callable[[str], object]) -> None:
        assert process.stdout is not None
        self.pid, self.on_line = process.pid, on_line
        self.pipe, self.pid_fd = process.stdout.fileno(), os.pidfd_open(
            process.pid)
        self.end_s = time.monotonic() + limit_s
        self.signals = [signal.SIGTERM, signal.SIGKILL]  # still to be sent
        self.output = b""
        self.n_told = 0  # bytes of output whose lines were told
        self.is_open, self.has_ended = True, False
        self.timed_out = self.is_given_up = False
        self.poll = select.poll()
        for fd in (self.pipe, self.pid_fd):
            self.poll.register(fd, select.POLLIN)

    def close(self) -> None:
        """What close() of a file is."""
        os.close(self.pid_fd)

    def is_going_on(self) -> bool:
        """Whether there is something to wait for."""
        return (self.is_open or not self.has_ended) and not self.is_given_up

    def look(self, is_over: bool) -> None:
        """Wait for a moment, take what came, signal if it is time."""
        ready = {fd for fd, _ in self.poll.poll(LOOK_MS)}
        if self.pipe in ready:
            self.read()
        now_s = time.monotonic()
        if self.pid_fd in ready:
            self.poll.unregister(self.pid_fd)
            self.has_ended = True
            self.end_s = min(self.end_s, now_s + END_S)
        is_first = len(self.signals) == 2
        if now_s < self.end_s and not (is_over and is_first):
            return
        self.timed_out |= not self.has_ended
        self.end_s = now_s + END_S
        if not self.signals:
            self.is_given_up = True  # the pipe is in another group's hands
            return
        # Its number is not another's yet: it is a zombie until wait4().
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, self.signals.pop(0))

    def read(self) -> None:
        """Take what is in the pipe, and tell of each line that is whole."""
        piece = os.read(self.pipe, 1 << 16)
        self.output += piece
        if not piece:
            self.is_open = False
            self.poll.unregister(self.pipe)
        end = self.output.rfind(b"\n") + 1
        for line in self.output[self.n_told:end].splitlines():
            self.on_line(line.decode(errors="replace"))
        self.n_told = max(end, self.n_told)
