# SPDX-License-Identifier: BSD-3-Clause
"""Trials of the engine beside the simulated device, whose counters are the truth. By the virtual
clock every figure is exact. Covers net/tester*.c, sender.c, receiver.c, device.c."""
import signal

import pytest

from conftest import VIRTUAL

SECOND = 10**9
LINE_PPS = 10e9 / 8 / 84  # of frames of 60 bytes, with preamble, FCS and gap
REAL = {"rx": ["pair:b"], "plane": [["workers", "2"]]}


@pytest.fixture
def through(serve):
    """through(device, rate): a tenth of a second. tx, rx, trial, and the device's counters,
    which must balance."""
    def run(device, pps=1e6, pace="constant", **begin):
        one = serve(**VIRTUAL | {"device": device} | begin)
        one.request("open")
        reply = one.trial(pps=pps, pace=pace, duration_ns=SECOND // 10)
        trial, there = reply["trial"], reply["device"][0]
        tx, rx = trial["tx"], trial["rx"]
        assert trial["complete"] and tx["sent"] == rx["unique"] + rx["lost"]
        assert (there["received"], there["forwarded"]) == (tx["sent"], rx["received"])
        assert there["received"] + there["doubled"] == (
            there["forwarded"] + there["lost"] + there["over_its_rate"])
        assert there["held"] == 0
        one.finish()
        return tx, rx, trial, there
    return run


def test_a_cable_loses_nothing_and_takes_no_time(serve):
    one = serve(is_virtual=True)
    one.request("open")
    for _ in range(3):
        trial = one.trial(pps=1e6, duration_ns=SECOND // 10)["trial"]
        tx, rx = trial["tx"], trial["rx"]
        assert tx["sent"] == rx["unique"] == rx["received"] == 100000
        assert rx["reordered"] == 0 and tx["bytes"] == rx["bytes"] == 60 * 100000
        for times in trial["lateness"], trial["latency"]:
            assert (times["n"], times["max"]) == (100000, 0)
        assert trial["drops"] == trial["directions"] == []
        assert (tx["pps"], rx["pps"]) == (1e6, pytest.approx(1e6))
    one.finish()


@pytest.mark.parametrize("device, found", [
    ({"loss_every": 1000}, {"lost": 100}),
    ({"loss_every": 7}, {"lost": 14285}),
    ({"dup_every": 500}, {"duplicates": 200}),
    # The last one that is set aside has nobody behind it.
    ({"reorder_every": 300, "reorder_by": 3}, {"reordered": 333}),
    ({"corrupt_every": 400}, {"lost": 250, "foreign": 250})])
def test_each_fault_is_found_exactly(through, device, found):
    _, rx, _, there = through(device)
    for key in "lost", "duplicates", "reordered", "foreign":
        assert rx[key] == found.get(key, 0), key
    assert (there["doubled"], there["reordered"], there["corrupted"]) == (
        rx["duplicates"], rx["reordered"], rx["foreign"])


def test_faults_do_not_hide_each_other(through):
    _, rx, _, there = through({"loss_every": 100, "dup_every": 77, "reorder_every": 50,
                               "reorder_by": 2, "delay_ns": 3000})
    assert rx["lost"] == there["lost"] == 1000
    assert rx["duplicates"] == there["doubled"]
    assert there["reordered"] - 1 <= rx["reordered"] <= there["reordered"]


def test_a_delay_is_the_latency(through):
    _, rx, trial, _ = through({"delay_ns": 50000})
    latency = trial["latency"]
    assert (latency["n"], latency["min"], latency["max"]) == (100000, 50000, 50000)
    assert rx["lost"] == 0


def test_above_its_rate_a_device_drops_and_its_queue_is_the_latency(through):
    device = {"rate_pps": 800e3, "queue_frames": 10}
    assert through(device, 800e3)[1]["lost"] == 0
    _, rx, trial, _ = through(device)
    # 800 000 a second for 100 ms, and what fits into the queue.
    assert 80000 <= rx["unique"] <= 80011
    assert 9 * 1250 < trial["latency"]["max"] <= 11 * 1250


def test_each_stream_has_its_own_figures(through):
    tx, rx, trial, _ = through({"loss_every": 999}, pace="poisson",
                               streams=["weight=3", "size=1000"])
    first, second = streams = trial["streams"]
    assert first["sent"] > 2 * second["sent"]
    for i, stream in enumerate(streams):
        assert (stream["stream"], stream["received"]) == (i, stream["unique"])
        assert stream["sent"] - stream["unique"] == stream["lost"]
        assert stream["longest_gap"] >= 1
    assert sum(stream["sent"] for stream in streams) == tx["sent"]
    assert sum(stream["lost"] for stream in streams) == rx["lost"]


def test_the_same_run_again_is_the_same_to_the_last_frame(through):
    device = {"loss_every": 13, "delay_ns": 7000, "rate_pps": 1e6, "queue_frames": 3}
    trials = [through(device, 990e3, "poisson")[2] for _ in range(2)]
    assert trials[0]["rx"]["lost"] > 1000
    assert trials[0] == trials[1]


@pytest.mark.parametrize("ports", [["pair:a"], ["pair:a", "pair:b"]])
def test_full_speed_is_that_of_all_links(serve, ports):
    one = serve(tx=ports, rx=ports, is_virtual=True)
    assert one.request("open")["document"]["line_bps"] == len(ports) * 10e9
    trial = one.trial(pps=0, frames=1000)["trial"]
    assert trial["tx"]["sent"] == 1000
    assert trial["asked_pps"] == pytest.approx(len(ports) * LINE_PPS)
    # Times are whole ns.
    assert trial["tx"]["pps"] == pytest.approx(len(ports) * LINE_PPS, rel=1e-3)
    one.finish()


def test_a_trial_of_no_time_has_no_rate(serve):
    one = serve(is_virtual=True)
    one.request("open")
    trial = one.trial(pps=1e6, frames=1)["trial"]
    assert (trial["tx"]["sent"], trial["tx"]["pps"], trial["rx"]["pps"]) == (1, 0, 0)
    one.finish()


LOSSY = {"device": {"loss_every": 3}}


@pytest.mark.parametrize("begin, status, why", [
    ({"rx": ["pair:b"]}, 1, "its other end is not open"),
    ({"tx": ["pair:a,queues=2"], "rx": ["pair:b,queues=2"]} | LOSSY, 2, "one queue"),
    ({"tx": ["nope:a"]}, 2, "nope"),
    ({"tx": ["live:g0", "null:"], "rx": [], "plane": [["workers", "1"]]}, 2, "--workers 2"),
    ({"streams": ["tcp size=60"]}, 2, "headers and the stamp need 72 bytes")])
def test_impossible_values_are_refused(serve, begin, status, why):
    one = serve(**begin)
    reply = one.request("open")
    assert reply["status"] == status and why in reply["why"]
    one.finish()


def check_directions(trial):
    """Sum by sum, all of them are the whole."""
    for side, key in (("tx", "sent"), ("tx", "unsent"), ("rx", "unique"), ("rx", "lost")):
        assert sum(way[key] for way in trial["directions"]) == trial[side][key]
    assert all(way["sent"] == way["unique"] + way["lost"] for way in trial["directions"])


def test_each_way_has_its_own_losses(serve):
    """The device loses each 501st of a direction, which only one of them has."""
    one = serve(**VIRTUAL | {"tx": ["pair:a", "pair:b"], "rx": ["pair:b", "pair:a"],
                             "device": {"loss_every": 501, "delay_ns": 20000}})
    one.request("open")
    reply = one.trial(pps=1e6, frames=1001)
    trial = reply["trial"]
    check_directions(trial)
    assert trial["rx"]["lost"] == 1
    for i, (way, there) in enumerate(zip(trial["directions"], reply["device"], strict=True)):
        assert (way["from"], way["to"]) == (("pair:a", "pair:b"), ("pair:b", "pair:a"))[i]
        assert way["sent"] == there["received"] == (501, 500)[i]
        assert (way["lost"], way["unique"]) == (there["lost"], there["forwarded"])
        assert 20000 <= way["latency"]["p50"] <= 21000 and way["latency"]["max"] == 20000
    one.finish()


def test_each_pair_has_its_own_frames(serve):
    """Two cables beside each other; the odd frame is the first one's."""
    one = serve(tx=["pair:a", "pair:b"], rx=["pair:a", "pair:b"], is_virtual=True)
    one.request("open")
    trial = one.trial(pps=1e6, frames=1001)["trial"]
    check_directions(trial)
    assert [(way["to"], way["unique"]) for way in trial["directions"]] == [
        ("pair:a", 501), ("pair:b", 500)]
    one.finish()


def test_it_does_not_lose_frames_by_the_real_clock(serve):
    """Nothing is lost on the way, and what is not sent in time is counted."""
    one = serve(device={"loss_every": 100, "dup_every": 300}, **REAL)
    one.request("open")
    for _ in range(2):
        reply = one.trial(pps=200e3, frames=20000, settle_ns=SECOND)
        trial, there = reply["trial"], reply["device"][0]
        sent, rx = trial["tx"]["sent"], trial["rx"]
        assert trial["tx"]["due"] == 20000
        lateness, latency = (trial[key] or {"n": 0} for key in ("lateness", "latency"))
        assert there["received"] == lateness["n"] == sent
        assert rx["lost"] == there["lost"] == sent // 100
        assert rx["duplicates"] == there["doubled"]
        assert latency["n"] == there["forwarded"]
    one.finish()


def test_a_delay_is_found_by_the_real_clock(serve):
    """What is injected is found within the error that the result states. A few frames, and all
    the time to send them: machines are busy."""
    one = serve(device={"delay_ns": 2000000}, **REAL)
    one.request("open")
    trial = one.trial(pps=2e3, frames=200, max_lag_ns=SECOND, settle_ns=SECOND)["trial"]
    assert 1 <= trial["clock_error_ns"] <= 1000000
    # What the machine does besides adds to it, nothing takes away.
    assert trial["latency"]["min"] + trial["clock_error_ns"] >= 2000000
    one.finish()


def test_frames_on_their_way_at_the_end_are_waited_for(serve):
    """20 ms of frames, 400, are in the device by then, and come still. The signal ends the trial,
    not the session."""
    one = serve(device={"delay_ns": 20000000}, **REAL)
    one.request("open")
    one.ask("trial", pps=20e3, settle_ns=SECOND // 2, progress_ns=10**8)
    while one.line()["tx"]["sent"] < 1000:
        pass
    one.process.send_signal(signal.SIGINT)
    reply = one.hear()
    trial, there = reply["trial"], reply["device"][0]
    assert not trial["complete"] and trial["why_stopped"] == ""
    assert trial["tx"]["sent"] > 1000
    # On a busy machine a late burst may not fit into the device.
    assert (there["received"], there["held"]) == (trial["tx"]["sent"], 0)
    assert trial["rx"]["lost"] == there["over_its_rate"]
    assert trial["rx"]["unique"] == there["forwarded"]
    assert trial["duration_s"] < trial["whole_s"]
    one.finish()
