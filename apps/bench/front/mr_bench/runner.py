# SPDX-License-Identifier: BSD-3-Clause
"""Runs commands one after another, on devices that are started and stopped for them. A
journal in the folder of results, replaced atomically after each step, says which steps are
done, so that a run that was interrupted can be resumed."""

import ctypes
import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mr_support.text import print_error

READY_S = 30  # for a device to become ready
HELPER_S = 60  # for a stop command to end
STOP_S = 5  # between two signals
NAP_S = 0.01
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LIBC = ctypes.CDLL(None)


def end_with_parent() -> None:
    """Called in a child: it gets SIGTERM when this process ends, however that happens."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class RunnerError(Exception):
    """The folder cannot be used."""


@dataclass(frozen=True)
class Device:
    """What is measured: shell commands. "" is none."""

    name: str
    start: str = ""  # runs until it is stopped, or sets something up and ends with 0
    ready: str = ""  # is repeated until it succeeds
    stop: str = ""  # undoes what start did


@dataclass(frozen=True)
class Step:
    """A shell command that writes its result to "$MR_OUT"."""

    name: str  # of its files
    command: str
    device: Device
    limit_s: float


class Ending:
    """Notes the signals that end a run."""

    is_set = False

    def __init__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # or devices would be left behind
        # Orphans become children of this process, which can then wait for them.
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)

    def _note(self, *_: object) -> None:
        self.is_set = True


class Journal:
    """The steps of a folder that were run. One process at a time uses a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "journal"
        self.steps: dict[str, dict[str, object]] = {}
        folder.mkdir(parents=True, exist_ok=True)
        self.lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self.path.exists():
                self.steps = dict(json.loads(self.path.read_bytes()).items())
        except BlockingIOError:
            self.close()
            raise RunnerError(f"{folder}: another process uses it") from None
        except (ValueError, AttributeError):
            self.close()
            raise RunnerError(f"{self.path}: not a journal; use another folder") from None

    def close(self) -> None:
        """Release the folder."""
        os.close(self.lock)

    def file(self, name: str, end: str) -> Path:
        """A file of a step or device."""
        return self.folder / f"{name}{end}"

    def has(self, name: str, key: dict[str, str]) -> bool:
        """Whether a step succeeded with the same key, and its result still exists."""
        return self.steps.get(name) == {**key, "status": 0} and self.file(name, ".json").exists()

    def note(self, name: str, key: dict[str, str], status: int) -> None:
        """Record the exit status of a step."""
        self.steps[name] = {**key, "status": status}
        beside = self.path.with_suffix(".new")
        beside.write_text(json.dumps(self.steps, indent=1) + "\n", encoding="utf-8")
        beside.replace(self.path)


class Child:
    """A shell command, in a process group of its own. It ends with this process."""

    def __init__(
        self, command: str, log: Path, ending: Ending, on_wait: Callable[[], None] | None = None
    ) -> None:
        self.ending, self.on_wait = ending, on_wait
        with log.open("ab") as to:
            self.process = subprocess.Popen(
                ["/bin/sh", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=to,
                stderr=to,
                process_group=0,
                preexec_fn=end_with_parent,  # noqa: PLW1509
            )

    def wait(self, limit_s: float, is_helper: bool = False) -> int | None:
        """Its exit status. It is stopped at the limit (124, as by timeout(1)) and when a signal
        comes (None), which does not stop helpers."""
        end_s = time.monotonic() + limit_s
        while (status := self.process.poll()) is None:
            is_interrupted = self.ending.is_set and not is_helper
            if is_interrupted or time.monotonic() >= end_s:
                self.stop()
                return None if is_interrupted else 124
            if self.on_wait:
                self.on_wait()
            time.sleep(NAP_S)
        return status if status >= 0 else 128 - status

    def has_group(self) -> bool:
        """Whether it, or a process that it started, still runs."""
        self.process.poll()
        with suppress(ChildProcessError):
            while os.waitpid(-self.process.pid, os.WNOHANG)[0] > 0:
                pass
        try:
            os.killpg(self.process.pid, 0)
        except OSError as error:
            return isinstance(error, PermissionError)
        return True

    def stop(self) -> None:
        """End its group. Each process has time to clean up."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with suppress(OSError):
                os.killpg(self.process.pid, number)
            end_s = time.monotonic() + STOP_S
            while time.monotonic() < end_s:
                time.sleep(NAP_S)
                if not self.has_group():
                    return


class Runner:
    """Runs the steps that have no result. A device is started for its steps and stopped after
    them, also after a signal. If a step fails, the others still run. on_wait is called while
    one runs."""

    on_wait: Callable[[], None] | None = None

    def __init__(self, journal: Journal, program: str = "") -> None:
        self.journal, self.program, self.ending = journal, program, Ending()
        self.n_done = self.n_skipped = 0
        self.device: Device | None = None  # that was started
        self.child: Child | None = None  # its start command
        self.is_failed = False  # the device did not start, or ended

    def _start(self, command: str, name: str) -> Child:
        return Child(command, self.journal.file(name, ".log"), self.ending, self.on_wait)

    def complain(self, name: str, what: str) -> None:
        """Report what went wrong with a device or a step."""
        print_error(f"mr-bench: {name}: {what}; see {self.journal.file(name, '.log')}")

    def _stop_device(self) -> None:
        device, child = self.device, self.child
        self.device = self.child = None
        if device is None:
            return
        if child and child.process.poll() is None:
            child.stop()
        if device.stop:
            helper = self._start(device.stop, device.name)
            if helper.wait(HELPER_S, is_helper=True) != 0:
                self.complain(device.name, "the stop command failed")
        if child and child.has_group():
            child.stop()

    def _is_up(self) -> bool:
        """False: the device failed, or a signal came. A start command may end with 0."""
        status = self.child.process.poll() if self.child else 0
        if status and not self.is_failed:
            self.complain(self.device.name if self.device else "", f"exit status {status}")
        self.is_failed = self.is_failed or bool(status)
        return not self.is_failed and not self.ending.is_set

    def _start_device(self, device: Device) -> None:
        self.device, self.is_failed = device, False
        if device.start:
            self.child = self._start(device.start, device.name)
        end_s = time.monotonic() + READY_S
        while device.ready and self._is_up():
            if self._start(device.ready, device.name).wait(READY_S) == 0:
                return
            if time.monotonic() >= end_s:
                self.complain(device.name, f"not ready within {READY_S} s")
                self.is_failed = True
            time.sleep(10 * NAP_S)

    def _measure(self, step: Step) -> int | None:
        """The exit status of a step; None: a signal came."""
        for end in (".json", ".log"):
            self.journal.file(step.name, end).unlink(missing_ok=True)
        os.environ["MR_OUT"] = str(self.journal.file(step.name, ".json"))
        status = self._start(step.command, step.name).wait(step.limit_s)
        if status:
            self.complain(step.name, f"exit status {status}")
        if status is not None and not self._is_up() and not self.ending.is_set:
            self.complain(step.name, "the device ended during the measurement")
            status = status or 1
        return status

    def _run_step(self, step: Step) -> bool:
        """Whether it has a result now."""
        device = step.device
        key = {"command": step.command, "device": repr(device), "program": self.program}
        if self.journal.has(step.name, key):
            self.n_skipped += 1
            return True
        if device != self.device:
            self._stop_device()
            self._start_device(device)
        status = self._measure(step) if self._is_up() else None
        if status != 0:
            # An incomplete result must not be taken for a result.
            result = self.journal.file(step.name, ".json")
            with suppress(OSError):
                result.rename(result.with_suffix(".json.failed"))
        if status is not None:
            self.journal.note(step.name, key, status)
        self.n_done += status == 0
        return status == 0

    def run(self, steps: Iterable[Step]) -> bool:
        """Whether all steps have results now. A step may be made when those before it have been
        run. Raises RunnerError, OSError."""
        n_left = 0
        try:
            for step in steps:
                n_left += 1
                if not self.ending.is_set:
                    n_left -= self._run_step(step)
        finally:
            self._stop_device()
        return n_left == 0
