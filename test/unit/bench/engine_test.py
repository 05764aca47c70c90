# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench-engine serve: each request and reply is as its schema says, and a front end that is
wrong, or gone, does no harm. usage: MR_BUILD=build engine_test.py, by pytest"""
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
ASK = {"v": 2, "command": "throughput", "usage": "usage: x\n", "options": [["trial", "S", "t"]],
       "without": ["count"]}
VIRTUAL = ["--virtual", "--device", "loss=10", "pair:a", "pair:b"]
LIMIT_S = limit(60)


@pytest.fixture(scope="module")
def check():
    """check("reply", object): as the schema has it."""
    jsonschema = pytest.importorskip("jsonschema")
    folder = TOP / "apps/bench"
    # One schema of both: references between files need a resolver.
    net = (folder / "mr-bench-net.schema.json").read_text().replace('"#/', '"#/net/')
    engine = (folder / "mr-bench-engine.schema.json").read_text().replace(
        '"mr-bench-net.schema.json#', '"#/net')
    schema = json.loads(engine) | {"net": json.loads(net)}

    def is_good(what, instance):
        jsonschema.Draft7Validator(
            schema | {"$ref": f"#/definitions/{what}"}).validate(instance)
    return is_good


class Serving:
    """An engine, by hand."""

    def __init__(self, check, words, ask=None, before=()):
        self.check = check
        self.process = subprocess.Popen(
            [*before, ENGINE, "serve", "throughput", "-q", *words], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        check("ask", ask or ASK)
        self.say(ask or ASK)
        self.options = self.hear()

    def say(self, request):
        """A line."""
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def hear(self):
        """The reply, behind any progress."""
        while line := self.process.stdout.readline():
            reply = json.loads(line)
            self.check("reply", reply)
            if "reply" in reply:
                return reply
        return None

    def request(self, name, **members):
        """What is said and heard."""
        self.check("request", {"request": name, **members})
        self.say({"request": name, **members})
        return self.hear()

    def end(self):
        """Exit status, and the rest of what it wrote."""
        out, err = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, out, err


@pytest.fixture
def serving(check):
    """An engine with a simulated device, which ends with the test."""
    one = Serving(check, ["--trial", "0.5", "--json", *VIRTUAL])
    yield one
    one.process.kill()
    one.process.communicate()


def test_a_session_is_as_the_schema_says(serving, check):
    assert serving.options["values"] == [["trial", "0.5"]]
    assert (serving.options["tx"], serving.options["rx"]) == (["pair:a"], ["pair:b"])
    assert serving.options["is_json"] and serving.options["is_virtual"]
    opened = serving.request("open", streams=None)
    assert (opened["mean_bytes"], opened["max_bytes"], opened["raised"]) == (60, 60, "")
    document = opened["document"]
    assert [port["name"] for port in document["ports"]] == ["pair:a", "pair:b"]
    rate = serving.request("rate", mean_bytes=60)
    assert (rate["pps"], rate["line_pps"]) == (0, pytest.approx(10e9 / 8 / 84))
    assert serving.request("rate", text="1M", mean_bytes=60)["pps"] == 1e6
    trial = serving.request("trial", pps=1000, frames=100, as_bytes=60, has_buckets=True)
    measured = trial["trial"]
    assert (measured["tx"]["sent"], measured["rx"]["lost"], measured["rx"]["unique"]) == (
        100, 10, 90)
    assert sum(n for _, n in trial["buckets"]) == measured["latency"]["n"] == 90
    interval = serving.request("trial", pps=1000, duration_ns=10**9, goes_on=True)
    assert interval["trial"]["tx"]["sent"] == 1000 and "buckets" not in interval
    alone = serving.request("alone", device="dup=2", pps=1e6, frames=50)
    assert (alone["trial"]["tx"]["sent"], alone["trial"]["rx"]["duplicates"]) == (50, 25)
    check("request", {"request": "finish"})
    serving.say({"request": "finish"})
    assert serving.end() == (0, "", "")


def test_a_trial_as_the_command_line_says(check):
    """Without a rate of the front end's; with latencies in its lines of progress."""
    one = Serving(check, ["--rate", "1k", "--count", "1000", "pair:a", "pair:a"],
                  ASK | {"without": [], "ports": "pairs"})
    assert (one.options["pace"], one.options["count"]) == ("constant", 1000)
    opened = one.request("open", has_map=True)
    document = opened["document"]
    assert len(document["streams"]) == 1 and document["clock"]["source"] != "virtual"
    assert one.options["document"]["config"]["count"] == 1000
    members = {"progress_ns": 10**8, "has_latencies": True}
    check("request", {"request": "trial", **members})
    one.say({"request": "trial", **members})
    n_seen = 0
    while "reply" not in (line := json.loads(one.process.stdout.readline())):
        check("progress", line)
        if line["latency"]:  # not before frames arrived
            n_seen += line["latency"]["n"]
            assert line["latency"]["n"] == sum(n for _, _, n in line["histogram"])
    assert n_seen > 0
    check("reply", line)
    reply = line
    assert (reply["trial"]["tx"]["due"], reply["pending"]) == (1000, 0)
    assert reply["device"] == [] and reply["user_ns"] > 0
    one.say({"request": "finish"})
    status, out, err = one.end()
    assert (status, out) == (0, "") and "thread 0" in err


@pytest.mark.parametrize("ports, words, tx, rx", [
    ("sends", ["null:"], ["null:"], []), ("receives", ["null:"], [], ["null:"]),
    ("pairs or none", [], [], [])])
def test_what_words_behind_the_options_are(check, ports, words, tx, rx):
    one = Serving(check, words, ASK | {"ports": ports})
    assert (one.options["tx"], one.options["rx"]) == (tx, rx)
    one.say({"request": "finish"})
    assert one.end()[0] == 0


@pytest.mark.parametrize("name, members", [
    ("open", {"streams": ["no such word"]}), ("rate", {"text": "fast", "mean_bytes": 60}),
    ("trial", {"pps": 1}), ("alone", {"pps": 1}), ("alone", {"pps": 1, "device": "loss=x"}),
    ("nat-again", {"pps": 1}), ("nat-establish", {"pps": 1, "n": 1}),
    ("nat-validate", {"pps": 1, "n": 0}), ("nat-reset", {})])
def test_what_cannot_be_done_is_said_and_it_goes_on(serving, name, members):
    reply = serving.request(name, **members)
    assert (reply["reply"], reply["status"]) == ("failed", 2), reply
    assert serving.request("open", streams=["udp"])["reply"] == "open"
    assert serving.request("open")["why"] == "open: they are open"


@pytest.mark.parametrize("request_", [
    {}, {"request": 1}, {"request": "fly"}, {"request": "trial", "pps": "x"}, [],
    {"request": "rate", "mean_bytes": None}])
def test_requests_that_are_none(serving, request_):
    serving.say(request_)
    assert serving.hear() is not None
    assert serving.request("open")["reply"] == "open"


@pytest.mark.parametrize("line", ["x", "{", "\0", "{}{}"])
def test_what_is_no_json_ends_it(serving, line):
    serving.process.stdin.write(line + "\n")
    serving.process.stdin.flush()
    assert serving.process.wait(LIMIT_S) == 1


@pytest.mark.parametrize("first", ["", "{", '{"v": 1}', "[]", "\0"])
def test_a_front_end_of_another_version_is_refused(first):
    done = subprocess.run([ENGINE, "serve", "throughput", *VIRTUAL], input=first + "\n",
                          text=True, capture_output=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "another version" in done.stderr


def test_help_and_a_wrong_line_have_no_reply():
    for words, status, where in (["--help"], 0, 1), (["--bogus"], 2, 2):
        done = subprocess.run([ENGINE, "serve", "throughput", *words],
                              input=json.dumps(ASK) + "\n", text=True, capture_output=True,
                              timeout=LIMIT_S, check=False)
        assert done.returncode == status
        assert "{" not in done.stdout and (done.stdout, done.stderr)[where - 1]


def test_a_front_end_that_goes_ends_the_trial(check):
    """Ports are closed as they should be: it is no signal that ends it."""
    one = Serving(check, ["pair:a", "pair:a"])
    one.request("open")
    one.say({"request": "trial", "pps": 1000, "duration_ns": 3600 * 10**9})
    assert "t" in json.loads(one.process.stdout.readline())  # progress: it runs
    one.process.stdin.close()
    assert one.process.wait(LIMIT_S) == 1
    one.process.stdout.close()
    one.process.stderr.close()


def test_a_front_end_that_is_killed_ends_what_runs(check):
    """Also where it is not what closes the pipe."""
    one = Serving(check, ["pair:a", "pair:a"], before=["sh", "-c", '"$@"; true', "sh"])
    one.request("open")
    one.say({"request": "trial", "pps": 1000, "duration_ns": 3600 * 10**9})
    assert "t" in json.loads(one.process.stdout.readline())
    one.process.kill()
    assert not one.hear()["trial"]["complete"]
    one.say({"request": "finish"})
    one.end()


def test_values_are_text():
    done = subprocess.run([ENGINE, "serve", "throughput", "--trial", b"\xff", *VIRTUAL],
                          input=json.dumps(ASK).encode() + b"\n", capture_output=True,
                          timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--trial: not UTF-8" in done.stderr


def test_names_of_ports_may_be_any_bytes(check):
    """They are shown as text, and the reason of a failure is not lost."""
    one = Serving(check, [b"pair:\xff", b"nope:\xfe"])
    assert (one.options["tx"], one.options["rx"]) == ([r"pair:\xff"], [r"nope:\xfe"])
    failed = one.request("open")
    assert (failed["reply"], failed["status"]) == ("failed", 2)
    assert r"nope:\xfe" in failed["why"]
    one.process.stdin.close()
    one.process.stdout.close()
    one.process.stderr.close()
    assert one.process.wait(LIMIT_S) == 1


def test_a_signal_ends_the_trial_and_not_the_session(check):
    one = Serving(check, ["pair:a", "pair:a"])
    one.request("open")
    one.say({"request": "trial", "pps": 1000, "duration_ns": 3600 * 10**9})
    assert "t" in json.loads(one.process.stdout.readline())
    one.process.send_signal(signal.SIGINT)
    trial = one.hear()["trial"]
    assert not trial["complete"] and trial["why_stopped"] == "" and trial["tx"]["sent"] > 0
    one.say({"request": "finish"})
    assert one.end()[0] == 0
