# SPDX-License-Identifier: BSD-3-Clause
"""runner.py: the order of steps, what a second run does, and how devices are stopped."""
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mr_bench.runner import Device, Journal, Runner, RunnerError, Step
from bench_program import limit

OK = "echo {} >> LOG; echo 1 > \"$MR_OUT\""
# Runs the steps of a file in a process of its own, which tests can signal.
SCRIPT = """\
import json, pathlib, sys
from mr_bench.runner import Device, Journal, Runner, Step
folder = pathlib.Path(sys.argv[1])
steps = [Step(name, command, Device(*device), limit_s)
         for name, command, device, limit_s in json.loads(sys.argv[2])]
runner = Runner(Journal(folder / "results"))
sys.exit(not runner.run(steps))
"""


class Lab:
    """A folder, and a log of what was called."""

    def __init__(self, folder):
        self.folder, self.results = folder, folder / "results"
        self.path = folder / "log"

    @property
    def log(self):
        return self.path.read_text().split("\n")[:-1] if self.path.exists() else []

    def text(self, command):
        return command.replace("LOG", str(self.path))

    def step(self, name, command=None, device=Device("none"), limit_s=60):
        device = Device(device.name, *(self.text(part) for part in (
            device.start, device.ready, device.stop)))
        return Step(name, self.text(command or OK.format(name)), device, limit_s)

    def run(self, *steps, program=""):
        """(whether all steps are done, the runner)"""
        before = {number: signal.getsignal(number) for number in (
            signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)}
        journal = Journal(self.results)
        try:
            runner = Runner(journal, program)
            return runner.run(steps), runner
        finally:
            journal.close()
            for number, action in before.items():
                signal.signal(number, action)

    def start(self, *steps):
        return subprocess.Popen(
            [sys.executable, "-c", SCRIPT, self.folder, json.dumps(
                [(s.name, s.command, list(vars(s.device).values()), s.limit_s)
                 for s in steps])],
            env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
            stderr=subprocess.PIPE, text=True)

    def wait_for(self, line):
        end_s = time.monotonic() + limit(20)
        while line not in self.log:
            assert time.monotonic() < end_s
            time.sleep(0.02)


@pytest.fixture
def lab(tmp_path, monkeypatch):
    monkeypatch.setattr("mr_bench.runner.STOP_S", limit(0.5))
    return Lab(tmp_path)


def runs(command):
    """Whether a process with these words exists."""
    return any(
        path.read_bytes().replace(b"\0", b" ").strip() == command.encode()
        for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists())


PROCESS = Device("process", "echo start process >> LOG; exec sleep 60",
                 "grep -q 'start process' LOG", "echo stop process >> LOG")
SETUP = Device("setup", "echo start setup >> LOG", "true", "echo stop setup >> LOG")


def test_devices_are_started_and_stopped_in_turn(lab):
    steps = [lab.step(f"{device.name}-{n}", device=device)
             for device in (PROCESS, SETUP) for n in (1, 2)]
    is_done, _ = lab.run(*steps)
    assert is_done
    assert lab.log == ["start process", "process-1", "process-2", "stop process",
                       "start setup", "setup-1", "setup-2", "stop setup"]
    assert {path.stem for path in lab.results.glob("*.json")} == {
        "process-1", "process-2", "setup-1", "setup-2"}


def test_a_second_run_does_only_what_is_missing(lab):
    steps = [lab.step("a", device=SETUP), lab.step("b", device=SETUP)]
    assert lab.run(*steps)[0]
    n = len(lab.log)
    is_done, runner = lab.run(*steps)
    assert (is_done, runner.n_done, runner.n_skipped) == (True, 0, 2)
    assert len(lab.log) == n
    (lab.results / "b.json").unlink()
    assert lab.run(*steps)[0]
    assert lab.log[n:] == ["start setup", "b", "stop setup"]


def test_results_of_other_commands_devices_and_programs_do_not_count(lab):
    lab.run(lab.step("a"))
    for step, program in ((lab.step("a", OK.format("other")), ""),
                          (lab.step("a", device=SETUP), ""),
                          (lab.step("a"), "2")):
        _, runner = lab.run(step, program=program)
        assert (runner.n_done, runner.n_skipped) == (1, 0)


def test_a_failed_step_leaves_no_result_and_is_repeated(lab, capfd):
    assert lab.run(lab.step("a"))[0]
    is_done, runner = lab.run(lab.step("a", "echo 1 > $MR_OUT; exit 3"), lab.step("b"))
    assert (is_done, runner.n_done) == (False, 1)
    assert "a: exit status 3; see" in capfd.readouterr().err
    assert not (lab.results / "a.json").exists()
    assert (lab.results / "a.json.failed").exists()
    assert lab.run(lab.step("a"), lab.step("b"))[1].n_skipped == 1


def test_a_step_is_ended_at_its_limit(lab, capfd):
    assert not lab.run(lab.step("a", "sleep 30", limit_s=0.3))[0]
    assert "a: exit status 124" in capfd.readouterr().err


def test_if_the_device_ends_the_measurement_is_not_valid(lab, capfd):
    device = Device("d", "until grep -q begun LOG; do sleep 0.01; done; exit 4", "true")
    steps = [
        lab.step("a", "echo 1 > $MR_OUT; echo begun >> LOG; sleep 1", device),
        lab.step("b", device=device)]
    _, runner = lab.run(*steps)
    assert runner.n_done == 0
    assert "the device ended during the measurement" in capfd.readouterr().err
    assert not list(lab.results.glob("*.json"))


def test_a_device_that_does_not_start_is_reported(lab, capfd):
    _, runner = lab.run(
        lab.step("a", device=Device("d", "exit 4", "sleep 0.1; false")), lab.step("b"))
    assert runner.n_done == 1
    assert "d: exit status 4" in capfd.readouterr().err


def test_processes_of_a_device_have_time_to_clean_up(lab):
    """A shell lets background processes ignore SIGINT, so SIGTERM ends this one."""
    clean = "trap 'echo cleaned >> LOG; exit' TERM; echo up >> LOG"
    device = Device(
        "d", f"sh -c \"{clean}; while sleep 0.1; do :; done\" & exec sleep 60",
        "grep -q up LOG")
    assert lab.run(lab.step("a", device=device))[0]
    assert lab.log[-1] == "cleaned"


def test_background_processes_of_a_device_are_ended(lab):
    assert lab.run(lab.step("a", device=Device("d", "sleep 61.5 &", "true")))[0]
    assert not runs("sleep 61.5")


def test_two_processes_do_not_share_a_folder(lab):
    journal = Journal(lab.results)
    with pytest.raises(RunnerError, match="another process uses it"):
        Journal(lab.results)
    journal.close()
    Journal(lab.results).close()


@pytest.mark.parametrize("text", ["[]", "{", ""])
def test_other_files_are_not_overwritten_by_the_journal(lab, text):
    lab.results.mkdir()
    (lab.results / "journal").write_text(text)
    with pytest.raises(RunnerError, match="not a journal"):
        Journal(lab.results)
    assert (lab.results / "journal").read_text() == text


def test_a_signal_stops_everything_and_the_rest_is_done_later(lab):
    device = Device("d", "exec sleep 61.25", stop="sleep 1; echo stop >> LOG")
    slow = lab.step("slow", "echo slow >> LOG; sleep 30", device)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with lab.start(lab.step("a", device=device), slow) as process:
        lab.wait_for("slow")
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=limit(20))[1]
    assert (process.returncode, err) == (1, "")
    assert lab.log[-1] == "stop"
    assert not runs("sleep 61.25")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < limit(1)
    _, runner = lab.run(lab.step("a", device=device), lab.step("slow", device=device))
    assert (runner.n_done, runner.n_skipped) == (1, 1)


def test_devices_end_if_the_runner_is_killed(lab):
    device = Device("d", "exec sleep 61.75")
    with lab.start(lab.step("slow", "echo slow >> LOG; sleep 30", device)) as process:
        lab.wait_for("slow")
        process.kill()
    end_s = time.monotonic() + limit(20)
    while runs("sleep 61.75"):
        assert time.monotonic() < end_s
        time.sleep(0.02)
