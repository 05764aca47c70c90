# SPDX-License-Identifier: BSD-3-Clause
"""Runs the steps of a plan one after another, and keeps a journal of them.

The journal is plan.journal in the results folder, JSON that is replaced atomically after
each step: it is readable whenever the series is interrupted.
"""

import ctypes
import fcntl
import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mr_bench.plan_file import Device, Plan, Step
from mr_support.text import print_error

SCHEMA = "mr-bench-plan"
READY_S = 30  # for a device to become ready
HELPER_S = 60  # for before, after and stop to end
STOP_S = 5  # between two signals
NAP_S = 0.01
LAST_BYTES = 4096  # of a log, to find its last line in
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


class SeriesError(Exception):
    """Nothing more can be done; one line."""


def complain(text: str) -> None:
    """A line for people."""
    print_error(f"mr-bench: plan: {text}")


class Ending:
    """Signals that end a series. What it started gets its own (Child.stop())."""

    def __init__(self) -> None:
        self.is_set = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note)
        # That nobody reads on is no reason to leave devices behind.
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        self._libc = ctypes.CDLL(None)
        # What a command leaves behind is then this process's, to see when it is gone.
        self._libc.prctl(PR_SET_CHILD_SUBREAPER, 1)

    def _note(self, *_: object) -> None:
        self.is_set = True

    def sleep(self, seconds: float) -> bool:
        """False: a signal came."""
        end_s = time.monotonic() + seconds
        while not self.is_set and time.monotonic() < end_s:
            time.sleep(NAP_S)
        return not self.is_set


class Journal:
    """What of a series is done. Two series in one folder would measure each other: the one
    that is to write has the folder until it ends."""

    def __init__(self, folder: str, is_to_write: bool) -> None:
        self.folder = Path(folder)
        self.lock = -1
        if is_to_write:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                self.lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.close()
                raise SeriesError(
                    f"{folder}: another mr-bench plan is at work there; give another --folder"
                ) from None
            except OSError as error:
                self.close()
                raise SeriesError(f"{folder}: {error.strerror}") from None
        self.path = self.folder / "plan.journal"
        self.root: dict[str, Any] = {"schema": SCHEMA, "v": 1, "steps": {}}
        if self.path.exists():
            try:
                self.root = json.loads(self.path.read_bytes())
                is_ours = (
                    self.root["schema"] == SCHEMA
                    and self.root["v"] == 1
                    and isinstance(self.root["steps"], dict)
                )
            except (OSError, ValueError, LookupError, TypeError):
                is_ours = False
            if not is_ours:
                self.close()
                raise SeriesError(
                    f"{self.path}: no journal of a plan; choose another folder, or remove it"
                )

    def close(self) -> None:
        """Others may have the folder now."""
        if self.lock >= 0:
            os.close(self.lock)
        self.lock = -1

    def result(self, name: str, end: str = ".json") -> Path:
        """The file of a step's result, or with another end."""
        return self.folder / f"{name}{end}"

    def has(self, name: str, key: dict[str, str]) -> bool:
        """Whether a step has its result: done without fault by the same words, setup and
        program, and its file is there."""
        done = self.root["steps"].get(name, {})
        return (
            done.get("status") == 0
            and self.result(name).exists()
            and all(done.get(part) == text for part, text in key.items())
        )

    def count_others(self, names: set[str]) -> int:
        """Results in the folder whose steps are none of these."""
        return sum(name not in names and self.result(name).exists() for name in self.root["steps"])

    def note(self, name: str, key: dict[str, str], seconds: float, status: int) -> None:
        """How a step ended."""
        self.root["steps"][name] = {**key, "status": status, "seconds": round(seconds, 3)}
        beside = self.path.with_suffix(".journal.new")
        try:
            beside.write_text(json.dumps(self.root, indent=1) + "\n", encoding="utf-8")
            beside.replace(self.path)
        except OSError as error:
            raise SeriesError(f"{self.path}: {error.strerror}") from None


class Child:
    """A command of a shell, a process group of its own; what it prints is added to a log.
    It ends when this process is killed."""

    def __init__(self, command: str, log: Path, ending: Ending) -> None:
        self.ending = ending
        libc, parent = ending._libc, os.getpid()

        def become() -> None:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:
                os._exit(1)  # it went before that was asked for

        try:
            with log.open("ab") as to:
                self.process = subprocess.Popen(
                    ["/bin/sh", "-c", command],
                    stdin=subprocess.DEVNULL,
                    stdout=to,
                    stderr=to,
                    process_group=0,
                    preexec_fn=become,  # noqa: PLW1509 - there are no threads
                )
        except OSError as error:
            raise SeriesError(f"{error.filename or log}: {error.strerror}") from None

    def wait(self, limit_s: float, is_helper: bool = False) -> int | None:
        """Its exit status, as a shell has it; None: it runs still, or a signal came, which
        one that helps to clean up is not ended by."""
        end_s = time.monotonic() + limit_s
        while (status := self.process.poll()) is None:
            if (self.ending.is_set and not is_helper) or time.monotonic() >= end_s:
                return None
            time.sleep(NAP_S)
        return status if status >= 0 else 128 - status

    def is_there(self) -> bool:
        """Whether it, or what it started, is still there."""
        self.process.poll()
        with suppress(ChildProcessError):
            while os.waitpid(-self.process.pid, os.WNOHANG)[0] > 0:
                pass
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True

    def stop(self) -> None:
        """End it and what it started, with time in between for the last of them to clean up."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)
            end_s = time.monotonic() + STOP_S
            while time.monotonic() < end_s:
                time.sleep(NAP_S)
                if not self.is_there():
                    return


def last_line(log: Path) -> str:
    """The last line that a program left, for what is said of its failure."""
    with suppress(OSError), log.open("rb") as file:
        # A device may have said much in its time.
        file.seek(max(file.seek(0, os.SEEK_END) - LAST_BYTES, 0))
        lines = [line for line in file.read().decode("utf-8", "replace").splitlines() if line]
        return lines[-1][:200] if lines else ""
    return ""


def time_text(seconds: float) -> str:
    """As "12 s", "4 min" or "1 h 5 min"."""
    minutes = int(seconds / 60 + 0.5)
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


@dataclass
class UnderTest:
    """The device that is up."""

    device: Device
    round: int
    child: Child | None = None  # None: its start command has ended
    left: Child | None = None  # whose group it left behind
    is_failed: bool = False


class Series:
    """Does what is not done. Devices are started for their steps and stopped after them, also
    when a signal comes; a step that fails is noted, and the others go on."""

    ending: Ending  # of run()

    def __init__(
        self, plan: Plan, steps: list[Step], journal: Journal, program: str, is_quiet: bool
    ) -> None:
        self.plan, self.steps, self.journal = plan, steps, journal
        self.program, self.is_quiet = program, is_quiet
        self.n_done = self.n_failed = self.n_before = 0
        self.under_test: UnderTest | None = None
        self.planned_s = self.taken_s = 0.0  # of the steps that were done

    def key(self, step: Step) -> dict[str, str]:
        """What a result belongs to; of anything else it is not the result."""
        return {"run": step.words, "setup": step.setup, "program": self.program}

    def is_done(self, step: Step) -> bool:
        """Whether it has its result."""
        return self.journal.has(step.name, self.key(step))

    def time_left(self, first: int = 0) -> float:
        """Of the steps from there on; as those that were done, so much longer."""
        factor = self.taken_s / self.planned_s if self.planned_s > 0 else 1
        return factor * sum(
            step.measure.time for step in self.steps[first:] if not self.is_done(step)
        )

    def list(self) -> None:
        """What would be done, and how long that takes."""
        for i, step in enumerate(self.steps):
            print(
                f"{i + 1:4} {'done' if self.is_done(step) else '':4} {step.measure.time:4} s  "
                f"{step.device.name:16} mr-bench {step.words}"
            )
        print(
            f"{len(self.steps)} steps, about {time_text(self.time_left())} to go; results: "
            f"{self.journal.folder}"
        )

    def start(self, command: str, name: str) -> Child:
        """Run a command with the log of that name."""
        return Child(command, self.journal.result(name, ".log"), self.ending)

    def complain(self, name: str, status: int) -> None:
        """With what it printed last."""
        log = self.journal.result(name, ".log")
        complain(f"{name}: exit status {status}: {last_line(log)} ({log})")

    def help_with(self, name: str, command: str) -> None:
        """before, after, stop: to the end, whatever signal comes."""
        if not command:
            return
        child = self.start(command, name)
        status = child.wait(HELPER_S, is_helper=True)
        if status is None:
            child.stop()
            status = 128
        if status != 0:
            self.complain(name, status)
            raise SeriesError(
                f"{name}: exit status {status}; see {self.journal.result(name, '.log')}"
            )

    def stop_device(self) -> None:
        """And what it left behind."""
        it, self.under_test = self.under_test, None
        if it is None:
            return
        if it.child:
            it.child.stop()
        with suppress(SeriesError):  # it has been said
            self.help_with(it.device.name, it.device.stop)
        if it.left:
            it.left.stop()

    def check_device(self) -> bool:
        """False: it has ended and was not to, or a signal came. One that sets something up
        ends with 0, which may be later than it is ready."""
        it = self.under_test
        assert it is not None
        if it.child is None:
            return not self.ending.is_set
        status = it.child.wait(0, is_helper=True)
        if status is None:
            return not self.ending.is_set
        it.left = it.child if it.child.is_there() else None
        it.child = None
        if status != 0:
            self.complain(it.device.name, status)
        return status == 0

    def is_ready(self, device: Device) -> bool:
        """Poll until it is ready."""
        end_s = time.monotonic() + READY_S
        while self.check_device() and time.monotonic() < end_s:
            child = self.start(device.ready, device.name)
            status = child.wait(READY_S)
            if status is None:
                child.stop()
            elif status == 0:
                return True
            self.ending.sleep(0.1)
        if time.monotonic() >= end_s:
            complain(
                f"{device.name}: not ready within {READY_S} s: '{device.ready}' fails; see "
                f"{self.journal.result(device.name, '.log')}"
            )
        return False

    def start_device(self, step: Step) -> bool:
        """False: it is not there."""
        device = step.device
        self.under_test = it = UnderTest(device, step.round)
        if not device.start:
            return True
        try:
            it.child = self.start(device.start, device.name)
        except SeriesError as error:
            complain(str(error))
            return False
        if device.ready and not self.is_ready(device):
            return False
        wait_s = device.wait if device.ready or device.wait else 1
        return self.ending.sleep(wait_s) and self.check_device()

    def have_device(self, step: Step) -> bool:
        """True: what the step measures is there."""
        it = self.under_test
        if it is not None and (it.device, it.round) == (step.device, step.round):
            it.is_failed = it.is_failed or not self.check_device()
            return not it.is_failed
        self.stop_device()
        is_there = self.start_device(step)
        assert self.under_test is not None
        self.under_test.is_failed = not is_there
        return is_there

    def measure(self, step: Step) -> int | None:
        """The exit status of its command; None: a signal came."""
        result = self.journal.result(step.name)
        # A result of before, of whatever it was, is gone. Names that the shell would take
        # apart reach it as variables.
        result.unlink(missing_ok=True)
        self.journal.result(step.name, ".log").unlink(missing_ok=True)
        os.environ["MR_OUT"], os.environ["MR_LABEL"] = str(result), step.title
        child = self.start(
            f'{self.plan.prefix} "$MR_BENCH" {step.words} --quiet --out '
            '"$MR_OUT" --label "$MR_LABEL"',
            step.name,
        )
        status = child.wait(step.measure.limit)
        if status is None:
            child.stop()
            if self.ending.is_set:
                return None
            complain(
                f"{step.name}: ended after {step.measure.limit} s; a higher 'limit' in the "
                "plan gives it more"
            )
            status = 124  # as timeout(1)
        elif status != 0:
            self.complain(step.name, status)
        # If the device ended meanwhile, the measurement is not valid.
        if not self.ending.is_set and not self.check_device():
            assert self.under_test is not None
            self.under_test.is_failed = True
            complain(f"{step.name}: the device ended while it was measured")
            status = status or 1
        return status

    def do(self, step: Step) -> None:
        """One step, and the note of how it ended."""
        begin_s = time.monotonic()
        status = self.measure(step)
        if status != 0:
            # What was measured so far is not a result, and is kept as something else.
            with suppress(OSError):  # or there is none
                self.journal.result(step.name).rename(
                    self.journal.result(step.name, ".json.failed")
                )
        if status is None:
            return
        seconds = time.monotonic() - begin_s
        self.planned_s += step.measure.time
        self.taken_s += seconds
        self.n_failed += status != 0
        self.n_done += status == 0
        self.journal.note(step.name, self.key(step), seconds, status)

    def do_steps(self) -> None:
        """Steps without a result."""
        try:
            for i, step in enumerate(self.steps):
                if self.ending.is_set:
                    break
                if self.is_done(step):
                    self.n_before += 1
                    continue
                if not self.is_quiet:
                    print_error(
                        f"[{i + 1}/{len(self.steps)}] {step.title}; about "
                        f"{time_text(self.time_left(i))} left"
                    )
                if self.have_device(step):
                    self.do(step)
                else:
                    self.n_failed += not self.ending.is_set
        finally:
            self.stop_device()

    def run(self) -> None:
        """Raises SeriesError for what is first wrong."""
        if self.time_left() <= 0:
            self.n_before = len(self.steps)
            return
        self.ending = Ending()
        failure = None
        try:
            self.help_with("before", self.plan.before)
            self.do_steps()
        except SeriesError as error:
            failure = error
        finally:
            try:
                self.help_with("after", self.plan.after)
            except SeriesError as error:
                failure = failure or error
        if failure is not None:
            raise failure
