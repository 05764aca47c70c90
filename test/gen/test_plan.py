# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench plan: its commands, their order, and what a second run does.

A shell script stands for mr-bench: it notes how it was called and writes its
result as it is told.
"""
import json
import resource
import signal
import subprocess
import time

import pytest

from bench_program import BENCH, TOP, limit

# $1 is mr-bench, $2 the command; "slow" takes its time, "bad" fails, "half"
# when it has written its result.
FAKE = """\
echo "$2 $3 $4" >> LOG
[ "$2" = bad ] && { echo cannot >&2; exit 3; }
[ "$2" = slow ] && sleep 30
[ "$2" = half ] && status=3
while [ $# -gt 1 ]; do [ "$1" = --out ] && echo '{"x": 1}' > "$2"; shift; done
exit ${status:-0}
"""


@pytest.fixture
def plan(tmp_path):
    """Writes a plan: the command line for it. plan.log: what was called."""
    log = tmp_path / "log"
    fake = tmp_path / "fake.sh"
    fake.write_text(FAKE.replace("LOG", str(log)))

    def write(text, name="plan.yaml"):
        path = tmp_path / name
        path.write_text(f"prefix: sh {fake}\nfolder: {tmp_path}/results\n"
                        + text.replace("LOG", str(log)))
        return ("plan", path)
    write.log = lambda: log.read_text().splitlines() if log.exists() else []
    write.results = tmp_path / "results"
    return write


SERIES = """\
repeat: 2
before: echo before >> LOG
after: echo after >> LOG
devices:
- name: process
  start: echo start process >> LOG; exec sleep 60
  stop: echo stop process >> LOG
- name: setup
  start: echo start setup >> LOG
  ready: 'true'
  stop: echo stop setup >> LOG
measures:
- {name: m, run: 'm {size} {rate}', sizes: [60, 99], rates: [1M], time: 1s}
"""
ROUND = ["m 60 1M", "m 99 1M"]


def on(device, calls):
    """What is called while a device is under test."""
    return [f"start {device}", *calls, f"stop {device}"]


def test_devices_take_turns_and_are_stopped(bench, plan):
    words = plan(SERIES)
    done = bench(*words)
    assert done.rc == 0, done.err
    assert plan.log() == ["before", *on("process", ROUND), *on("setup", ROUND),
                          *on("setup", ROUND), *on("process", ROUND), "after"]
    assert "8 steps done, 0 were already, 0 failed, 0 left" in done.err
    assert "about" in done.err
    names = {path.stem for path in plan.results.glob("*.json")}
    assert names == {f"{d}+m+{s}+1M+{r}" for d in ("process", "setup")
                     for s in (60, 99) for r in (1, 2)}


@pytest.mark.parametrize("file,n_steps", [
    ("config/bench/forwarder.yaml", 50), ("test/bench/series.yaml", 30)])
def test_our_own_plans_are_ones(bench, tmp_path, file, n_steps):
    copy = tmp_path / "plan.yaml"
    copy.write_text((TOP / file).read_text(encoding="utf-8"))
    done = bench("plan", copy, "--dry-run")
    assert done.rc == 0, done.err
    assert f"{n_steps} steps" in done.out
    assert list(tmp_path.iterdir()) == [copy]


def test_a_dry_run_does_nothing(bench, plan):
    done = bench(*plan(SERIES), "--dry-run")
    assert done.rc == 0
    assert plan.log() == []
    assert not plan.results.exists()
    assert done.out.count("mr-bench m 60 1M") == 4
    assert "8 steps, about 8 s to go" in done.out
    done = bench(*plan(SERIES), "--dry-run", "--repeat", 1)
    assert "4 steps, about 4 s to go" in done.out


def test_a_second_run_does_what_is_missing_and_no_more(bench, plan):
    words = plan(SERIES)
    assert bench(*words).rc == 0
    n = len(plan.log())
    done = bench(*words)
    assert done.rc == 0
    assert "0 steps done, 8 were already" in done.err
    assert len(plan.log()) == n
    (plan.results / "setup+m+99+1M+2.json").unlink()
    assert bench(*words).rc == 0
    assert plan.log()[n:] == ["before", *on("setup", ["m 99 1M"]), "after"]


def test_other_words_are_other_steps(bench, plan):
    assert bench(*plan("measures: [{name: m, run: m a}]\n")).rc == 0
    assert bench(*plan("measures: [{name: m, run: m b}]\n")).rc == 0
    assert [line.split(" --")[0] for line in plan.log()] == ["m a", "m b"]


@pytest.mark.parametrize("more", [
    "devices: [{name: d, start: 'true # other'}]\n", "before: 'true'\n"])
def test_another_setup_is_another_step(bench, plan, more):
    measures = "measures: [{name: m, run: m}]\n"
    device = "devices: [{name: d, start: 'true'}]\n"
    assert bench(*plan(measures + device)).rc == 0
    done = bench(*plan(measures + (more if "devices" in more
                                   else device + more)))
    assert "1 steps done, 0 were already" in done.err
    assert len(plan.log()) == 2


def test_a_folder_may_have_any_name(bench, plan, tmp_path):
    words = plan("measures: [{name: m, run: m}]\n")
    folder = tmp_path / "bob's $(touch x) folder"
    done = bench(*words, "--folder", folder)
    assert done.rc == 0, done.err
    assert (folder / "m+1.json").exists()


def test_a_step_that_fails_leaves_no_result_of_before(bench, plan):
    assert bench(*plan("measures: [{name: m, run: m}]\n")).rc == 0
    assert bench(*plan("measures: [{name: m, run: bad}]\n")).rc == 1
    assert not (plan.results / "m+1.json").exists()


def test_what_a_step_that_fails_wrote_is_no_result(bench, plan):
    assert bench(*plan("measures: [{name: m, run: half}]\n")).rc == 1
    assert not list(plan.results.glob("*.json"))
    assert (plan.results / "m+1.json.failed").exists()


def test_results_of_other_plans_are_told(bench, plan):
    assert bench(*plan("measures: [{name: m, run: m}]\n")).rc == 0
    done = bench(*plan("measures: [{name: n, run: m}]\n"))
    assert done.rc == 0
    assert "1 results there are of steps that this plan does not" in done.err


def test_a_step_that_fails_is_said_and_done_again(bench, plan):
    words = plan("measures:\n- {name: b, run: bad}\n- {name: g, run: m}\n")
    done = bench(*words)
    assert done.rc == 1
    assert "b+1: exit status 3: cannot" in done.err
    assert "1 steps done, 0 were already, 1 failed, 0 left" in done.err
    done = bench(*words)
    assert done.rc == 1
    assert "0 steps done, 1 were already, 1 failed, 0 left" in done.err
    steps = json.loads((plan.results / "plan.journal").read_text())["steps"]
    assert {name: step["status"] for name, step in steps.items()} == {
        "b+1": 3, "g+1": 0}


def test_a_step_that_hangs_is_ended(bench, plan):
    done = bench(*plan("measures: [{name: s, run: slow, limit: 1s}]\n"))
    assert done.rc == 1
    assert "ended after 1 s; a higher 'limit'" in done.err


def test_a_device_that_ends_while_it_is_measured_is_said(bench, plan):
    words = plan("devices:\n- {name: d, start: 'sleep 0.5; exit 4', ready: "
                 "'true'}\nmeasures:\n- {name: m, run: slow, limit: 1s}\n"
                 "- {name: n, run: m}\n")
    done = bench(*words)
    assert done.rc == 1
    assert "the device ended while it was measured" in done.err
    assert "0 steps done, 0 were already, 2 failed" in done.err


def test_what_a_device_started_has_time_to_clean_up(bench, plan):
    """It outlives the process that is the device by a moment. A shell has what
    it starts with & ignore SIGINT, so it is SIGTERM that ends it."""
    clean = "trap 'echo cleaned >> LOG; exit' TERM"
    done = bench(*plan(
        "devices:\n- name: d\n"
        f"  start: sh -c \"{clean}; while sleep 0.1; do :; done\" & "
        "exec sleep 60\n"
        "measures: [{name: m, run: m}]\n"))
    assert done.rc == 0, done.err
    assert plan.log()[-1] == "cleaned"


def test_what_a_device_left_behind_is_ended(bench, plan):
    done = bench(*plan("devices: [{name: d, start: 'sleep 61.5 &'}]\n"
                       "measures: [{name: m, run: m}]\n"))
    assert done.rc == 0, done.err
    assert not children_of("sleep 61.5")


def test_more_rounds_than_there_may_be_steps_are_refused(bench, plan):
    sizes = list(range(60, 120))
    words = plan(f"measures: [{{name: m, run: 'm {{size}}', sizes: {sizes}}},"
                 f" {{name: n, run: 'm {{size}}', sizes: {sizes}}}]\n")
    done = bench(*words, "--repeat", 100)
    assert (done.rc, done.err.count("\n")) == (1, 1)
    assert "more than 10000 steps" in done.err


def test_a_device_that_does_not_start_is_said(bench, plan):
    words = plan("devices:\n- {name: d, start: 'echo no room >&2; exit 4'}\n"
                 "- {name: e}\nmeasures: [{name: m, run: m}]\n")
    done = bench(*words)
    assert done.rc == 1
    assert "d: exit status 4: no room" in done.err
    assert "1 steps done, 0 were already, 1 failed" in done.err


def children_of(text):
    """Whether a process with these words is there."""
    return subprocess.run(["pgrep", "-f", text], check=False,
                          stdout=subprocess.DEVNULL).returncode == 0


def wait_for(plan, words):
    """Until these words stand in the log."""
    end_s = time.monotonic() + limit(20)
    while not any(line.startswith(words) for line in plan.log()):
        assert time.monotonic() < end_s
        time.sleep(0.05)


def test_two_plans_do_not_share_a_folder(bench, plan):
    words = plan("measures: [{name: s, run: slow}]\n")
    with subprocess.Popen([BENCH, *words], stderr=subprocess.PIPE) as process:
        wait_for(plan, "slow")
        done = bench(*words)
        assert (done.rc, done.err.count("\n")) == (1, 1)
        assert "another mr-bench plan is at work there" in done.err
        assert bench(*words, "--dry-run").rc == 0
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=limit(20))


def test_it_sleeps_while_a_device_is_stopped(bench, plan):
    words = plan("devices: [{name: d, start: 'true', stop: sleep 1}]\n"
                 "measures: [{name: s, run: slow}]\n")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen([BENCH, *words], stderr=subprocess.PIPE) as process:
        wait_for(plan, "slow")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=limit(20))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - \
        before.ru_utime - before.ru_stime < 0.5


def test_ctrl_c_stops_all_and_the_rest_is_done_later(bench, plan):
    text = ("after: echo after >> LOG\n"
            "devices: [{name: d, start: 'exec sleep 61.25', "
            "stop: echo stop >> LOG}]\n"
            "measures:\n- {name: a, run: m}\n- {name: s, run: slow}\n")
    words = plan(text)
    with subprocess.Popen([BENCH, *words], stderr=subprocess.PIPE,
                          text=True) as process:
        wait_for(plan, "slow")
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=limit(20))[1]
    assert process.returncode == 1
    assert "1 steps done, 0 were already, 0 failed, 1 left" in err
    assert plan.log()[-2:] == ["stop", "after"]
    assert not children_of("sleep 61.25")
    words = plan(text.replace("run: slow", "run: m 2"))
    done = bench(*words)
    assert done.rc == 0
    assert "1 steps done, 1 were already" in done.err


def test_a_mistake_has_its_line(bench, plan):
    done = bench(*plan("\nmeasure: []\n"))
    assert done.rc == 2
    assert "plan.yaml:4: unknown key 'measure'; did you mean 'measures'?" \
        in done.err
    done = bench("plan", "/no/such/file")
    assert done.rc == 2
    assert "/no/such/file: No such file" in done.err
