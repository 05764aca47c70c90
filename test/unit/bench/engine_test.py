# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench-engine serve: a session by hand, and a front end that is wrong or has gone does no
harm."""
import subprocess
import time

import pytest

from conftest import ENGINE, LIMIT_S, SCHEMA, VIRTUAL


@pytest.fixture
def serving(serve):
    """An engine with a simulated device."""
    return serve(**VIRTUAL | {"device": {"loss_every": 10}},
                 plane=[["burst", "32"], ["workers", "1"]])


def test_a_session_from_begin_to_finish(serving):
    assert (serving.begun["config"]["burst"], serving.begun["config"]["workers"]) == (32, 1)
    opened = serving.request("open")
    assert (opened["mean_bytes"], opened["max_bytes"]) == (60, 60)
    document = opened["document"]
    assert [port["name"] for port in document["ports"]] == ["pair:a", "pair:b"]
    assert document["line_bps"] == 10e9
    trial = serving.request("trial", pps=1000, frames=100)
    measured = trial["trial"]
    assert (measured["tx"]["sent"], measured["rx"]["lost"], measured["rx"]["unique"]) == (
        100, 10, 90)
    assert sum(n for _, n in measured["latency"]["counts"]) == measured["latency"]["n"] == 90
    alone = serving.request("alone", device={"dup_every": 2}, pps=1e6, frames=50)
    assert (alone["trial"]["tx"]["sent"], alone["trial"]["rx"]["duplicates"]) == (50, 25)
    assert serving.finish() == ""


def test_a_line_of_progress_may_be_without_latencies():
    """On a busy host, no frame may arrive between two lines."""
    SCHEMA.validate({"v": 1, "t": 1.2, "latency": None})


def test_lines_of_progress_have_latencies(serve):
    one = serve()
    opened = one.request("open", has_map=True)
    document = opened["document"]
    assert len(document["streams"]) == 1 and document["clock"]["source"] != "virtual"
    members = {"pps": 1000, "pace": "poisson", "frames": 1000, "progress_ns": 10**8,
               "has_latencies": True}
    n_seen, end_s = 0, time.monotonic() + LIMIT_S
    while n_seen == 0:  # a busy host may pass all frames of a trial at its end
        assert time.monotonic() < end_s
        one.ask("trial", **members)
        while "reply" not in (line := one.line()):
            if line["latency"]:  # not before frames arrived
                n_seen += line["latency"]["n"]
                assert line["latency"]["n"] == sum(n for _, n in line["latency"]["counts"])
    assert (line["trial"]["tx"]["due"], line["pending"]) == (1000, 0)
    assert line["trial"]["asked_pps"] == 1000
    assert line["device"] == [] and line["user_ns"] > 0
    assert "thread 0" in one.finish()


def test_no_ports_need_be_named(serve):
    serve(tx=[], rx=[]).finish()


@pytest.mark.parametrize("plane, why", [
    ([["burst", "999"]], "--burst: '999' is not a whole number from 1 to 256"),
    ([["page-bytes", "3000"]], "--page-bytes: 3000 is not a power of two"),
    ([["fly", "1"]], "no option 'fly'")])
def test_options_of_ports_and_threads_are_read(serve, plane, why):
    one = serve(plane=plane)
    assert (one.begun["reply"], one.begun["status"], one.begun["why"]) == ("failed", 2, why)
    one.finish()


@pytest.mark.parametrize("name, members", [
    ("trial", {"pps": 1}), ("alone", {"pps": 1}),
    ("nat-again", {"pps": 1}), ("nat-establish", {"pps": 1, "n": 1}),
    ("nat-validate", {"pps": 1, "n": 0})])
def test_failed_requests_are_answered_and_it_continues(serving, name, members):
    reply = serving.request(name, **members)
    assert (reply["reply"], reply["status"]) == ("failed", 2), reply
    assert serving.request("open")["reply"] == "open"
    assert serving.request("open")["why"] == "open: they are open"


@pytest.mark.parametrize("request_", [
    {}, {"request": 1}, {"request": "fly"}, {"request": "trial", "pps": "x"}, [],
    {"request": "alone", "device": []}])
def test_invalid_requests_are_refused(serving, request_):
    serving.say(request_)
    assert serving.hear() is not None
    assert serving.request("open")["reply"] == "open"


@pytest.mark.parametrize("line", ["x", "{", "\0", "{}{}"])
def test_invalid_json_ends_the_engine(serving, line):
    serving.process.stdin.write(line + "\n")
    serving.process.stdin.flush()
    assert serving.process.wait(LIMIT_S) == 1


@pytest.mark.parametrize("first", ["", "{", '{"request": "begin", "v": 2}', "[]", "\0"])
def test_a_front_end_of_another_version_is_refused(first):
    done = subprocess.run([ENGINE, "serve"], input=first + "\n", text=True,
                          capture_output=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "another version" in done.stderr


def test_a_front_end_that_goes_ends_the_trial(serve):
    """Ports are closed as they should be: it is no signal that ends it."""
    one = serve()
    one.request("open")
    one.ask("trial", pps=1000, duration_ns=3600 * 10**9)
    assert "t" in one.line()  # progress: it runs
    one.process.stdin.close()
    assert one.process.wait(LIMIT_S) == 1


def test_a_front_end_that_is_killed_ends_what_runs(serve):
    """Also where it is not what closes the pipe."""
    one = serve(before=["sh", "-c", '"$@"; true', "sh"])
    one.request("open")
    one.ask("trial", pps=1000, duration_ns=3600 * 10**9)
    assert "t" in one.line()
    one.process.kill()
    assert not one.hear()["trial"]["complete"]
    one.ask("finish")
    one.end()


def test_names_of_ports_may_be_any_bytes(serve):
    """They are shown as text, and the reason of a failure is not lost."""
    one = serve(tx=["pair:\xff"], rx=["nope:\xfe\xc3\xa4"])
    failed = one.request("open")
    assert (failed["reply"], failed["status"]) == ("failed", 2)
    assert r"nope:\xfeä" in failed["why"]
    one.process.stdin.close()
    assert one.process.wait(LIMIT_S) == 1
