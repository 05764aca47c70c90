# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench-engine serve: a session by hand, and a front end that is wrong or has gone does no
harm. usage: MR_BUILD=build engine_test.py, by pytest"""
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "test/support"))

from host import limit  # noqa: E402 pylint: disable=wrong-import-position

ENGINE = Path(os.environ.get("MR_BUILD", TOP / "build")) / "apps/bench/mr-bench-engine"
BEGIN = {"request": "begin", "v": 3, "tx": ["pair:a"], "rx": ["pair:a"], "is_quiet": True}
VIRTUAL = {"rx": ["pair:b"], "is_virtual": True, "device": {"loss_every": 10}}
LIMIT_S = limit(60)


class Serving:
    """An engine, by hand."""

    def __init__(self, before=(), **begin):
        self.process = subprocess.Popen(
            [*before, ENGINE, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.begun = self.request(**BEGIN | begin)

    def say(self, request):
        """A line."""
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def hear(self):
        """The reply, behind any progress."""
        while line := self.process.stdout.readline():
            reply = json.loads(line)
            if "reply" in reply:
                return reply
        return None

    def request(self, request, **members):
        """What is said and heard."""
        self.say({"request": request, **members})
        return self.hear()

    def end(self):
        """Exit status, and the rest of what it wrote."""
        out, err = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, out, err


@pytest.fixture
def serving():
    """An engine with a simulated device, which ends with the test."""
    one = Serving(**VIRTUAL, plane=[["burst", "32"], ["workers", "1"]])
    yield one
    one.process.kill()
    one.process.communicate()


def test_a_session_from_begin_to_finish(serving):
    assert (serving.begun["config"]["burst"], serving.begun["config"]["workers"]) == (32, 1)
    opened = serving.request("open")
    assert (opened["mean_bytes"], opened["max_bytes"], opened["raised_bytes"]) == (60, 60, 0)
    document = opened["document"]
    assert [port["name"] for port in document["ports"]] == ["pair:a", "pair:b"]
    assert document["line_bps"] == 10e9
    trial = serving.request("trial", pps=1000, frames=100, as_bytes=60, has_buckets=True)
    measured = trial["trial"]
    assert (measured["tx"]["sent"], measured["rx"]["lost"], measured["rx"]["unique"]) == (
        100, 10, 90)
    assert sum(n for _, n in trial["buckets"]) == measured["latency"]["n"] == 90
    interval = serving.request("trial", pps=1000, duration_ns=10**9, goes_on=True)
    assert interval["trial"]["tx"]["sent"] == 1000 and "buckets" not in interval
    alone = serving.request("alone", device={"dup_every": 2}, pps=1e6, frames=50)
    assert (alone["trial"]["tx"]["sent"], alone["trial"]["rx"]["duplicates"]) == (50, 25)
    serving.say({"request": "finish"})
    assert serving.end() == (0, "", "")


def test_lines_of_progress_have_latencies():
    one = Serving()
    opened = one.request("open", has_map=True)
    document = opened["document"]
    assert len(document["streams"]) == 1 and document["clock"]["source"] != "virtual"
    members = {"pps": 1000, "pace": "poisson", "frames": 1000, "progress_ns": 10**8,
               "has_latencies": True}
    one.say({"request": "trial", **members})
    n_seen = 0
    while "reply" not in (line := json.loads(one.process.stdout.readline())):
        if line["latency"]:  # not before frames arrived
            n_seen += line["latency"]["n"]
            assert line["latency"]["n"] == sum(n for _, _, n in line["histogram"])
    assert n_seen > 0
    assert (line["trial"]["tx"]["due"], line["pending"]) == (1000, 0)
    assert line["trial"]["asked_pps"] == 1000
    assert line["device"] == [] and line["user_ns"] > 0
    one.say({"request": "finish"})
    status, out, err = one.end()
    assert (status, out) == (0, "") and "thread 0" in err


def test_no_ports_need_be_named():
    one = Serving(tx=[], rx=[])
    one.say({"request": "finish"})
    assert one.end()[0] == 0


@pytest.mark.parametrize("plane, why", [
    ([["burst", "999"]], "--burst: 999 is out of range, 1 to 256"),
    ([["page-bytes", "3000"]], "--page-bytes: 3000 is not a power of two"),
    ([["fly", "1"]], "no option 'fly'")])
def test_options_of_ports_and_threads_are_read(plane, why):
    one = Serving(plane=plane)
    assert (one.begun["reply"], one.begun["status"], one.begun["why"]) == ("failed", 2, why)
    one.say({"request": "finish"})
    assert one.end()[0] == 0


@pytest.mark.parametrize("device", [
    {"reorder_every": 2}, {"reorder_every": 2, "reorder_by": 2}])
def test_a_device_that_would_hold_several_frames_is_refused(device):
    """It has room for one; the others would be lost, with their pages."""
    one = Serving(**VIRTUAL | {"device": device})
    reply = one.request("open")
    assert (reply["reply"], reply["status"]) == ("failed", 2)
    assert "reorder" in reply["why"]
    one.say({"request": "finish"})
    assert one.end()[0] == 0


def test_wrong_streams_are_refused():
    one = Serving(streams=["no such word"])
    assert one.request("open")["status"] == 2
    one.say({"request": "finish"})
    assert one.end()[0] == 0


@pytest.mark.parametrize("name, members", [
    ("trial", {"pps": 1}), ("alone", {"pps": 1}),
    ("nat-again", {"pps": 1}), ("nat-establish", {"pps": 1, "n": 1}),
    ("nat-validate", {"pps": 1, "n": 0}), ("nat-reset", {})])
def test_what_cannot_be_done_is_said_and_it_goes_on(serving, name, members):
    reply = serving.request(name, **members)
    assert (reply["reply"], reply["status"]) == ("failed", 2), reply
    assert serving.request("open")["reply"] == "open"
    assert serving.request("open")["why"] == "open: they are open"


@pytest.mark.parametrize("request_", [
    {}, {"request": 1}, {"request": "fly"}, {"request": "trial", "pps": "x"}, [],
    {"request": "alone", "device": []}])
def test_requests_that_are_none(serving, request_):
    serving.say(request_)
    assert serving.hear() is not None
    assert serving.request("open")["reply"] == "open"


@pytest.mark.parametrize("line", ["x", "{", "\0", "{}{}"])
def test_what_is_no_json_ends_it(serving, line):
    serving.process.stdin.write(line + "\n")
    serving.process.stdin.flush()
    assert serving.process.wait(LIMIT_S) == 1


@pytest.mark.parametrize("first", ["", "{", '{"request": "begin", "v": 2}', "[]", "\0"])
def test_a_front_end_of_another_version_is_refused(first):
    done = subprocess.run([ENGINE, "serve"], input=first + "\n", text=True,
                          capture_output=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "another version" in done.stderr


def test_a_front_end_that_goes_ends_the_trial():
    """Ports are closed as they should be: it is no signal that ends it."""
    one = Serving()
    one.request("open")
    one.say({"request": "trial", "pps": 1000, "duration_ns": 3600 * 10**9})
    assert "t" in json.loads(one.process.stdout.readline())  # progress: it runs
    one.process.stdin.close()
    assert one.process.wait(LIMIT_S) == 1
    one.process.stdout.close()
    one.process.stderr.close()


def test_a_front_end_that_is_killed_ends_what_runs():
    """Also where it is not what closes the pipe."""
    one = Serving(before=["sh", "-c", '"$@"; true', "sh"])
    one.request("open")
    one.say({"request": "trial", "pps": 1000, "duration_ns": 3600 * 10**9})
    assert "t" in json.loads(one.process.stdout.readline())
    one.process.kill()
    assert not one.hear()["trial"]["complete"]
    one.say({"request": "finish"})
    one.end()


def test_names_of_ports_may_be_any_bytes():
    """They are shown as text, and the reason of a failure is not lost."""
    one = Serving(tx=["pair:\xff"], rx=["nope:\xfe\xc3\xa4"])
    failed = one.request("open")
    assert (failed["reply"], failed["status"]) == ("failed", 2)
    assert r"nope:\xfeä" in failed["why"]
    one.process.stdin.close()
    one.process.stdout.close()
    one.process.stderr.close()
    assert one.process.wait(LIMIT_S) == 1


def test_a_signal_ends_the_trial_and_not_the_session():
    one = Serving()
    one.request("open")
    one.say({"request": "trial", "pps": 1000, "duration_ns": 3600 * 10**9})
    assert "t" in json.loads(one.process.stdout.readline())
    one.process.send_signal(signal.SIGINT)
    trial = one.hear()["trial"]
    assert not trial["complete"] and trial["why_stopped"] == "" and trial["tx"]["sent"] > 0
    one.say({"request": "finish"})
    assert one.end()[0] == 0
