# SPDX-License-Identifier: BSD-3-Clause
"""Busy polling: what it sets and restores, and when it has no effect."""
import pytest
from lib import napi
from lib.probe import opened
from lib.wire import TEST_TYPE, Wire, frame


@pytest.fixture
def before(star):
    """With GRO the NAPIs of p0 are there without a program, too."""
    star.middle.run("ethtool", "-K", "p0", "gro", "on")
    try:
        deferrals = napi.deferrals(star.middle, "p0")
    except (OSError, KeyError):
        pytest.skip("NAPIs have no settings of their own (before Linux 6.13)")
    assert deferrals and set(deferrals.values()) == {(0, 0)}
    return deferrals


def test_interrupts_are_deferred_until_close(lab, star, before):
    probe = opened(lab, star.middle, "p0,busy=64")
    assert "busy" not in probe.err.text()
    now = napi.deferrals(star.middle, "p0")
    assert now == dict.fromkeys(before, (2, 200000))
    probe.do("close", 0)
    assert napi.deferrals(star.middle, "p0") == before


def test_after_a_kill_the_next_start_undoes_it(lab, star, before):
    probe = opened(lab, star.middle, "p0,busy=64")
    probe.kill()
    assert napi.deferrals(star.middle, "p0") != before
    probe = opened(lab, star.middle, "p0")
    assert napi.deferrals(star.middle, "p0") == before
    assert "restored 'napi_defer_hard_irqs 0'" in probe.err.text()


@pytest.mark.short
def test_frames_arrive_while_it_polls(lab, star):
    wire = lab.closing(Wire(star.hosts[0], "h0", TEST_TYPE))
    probe = opened(lab, star.middle, "p0,busy=64")
    wire.send_all(frame(100, i) for i in range(200))
    # One more than there is: it finds the queue empty, and polls.
    assert probe.do("hold", 0, 201, 1000)["n"] == 200
    assert probe.stats(0)["queues"][0]["rx"]["events"]["wakeup"] > 0


@pytest.mark.parametrize("is_tap", [False, True])
def test_it_warns_if_busy_polling_has_no_effect(lab, star, is_tap):
    spec = "p0,attach=generic"
    if is_tap:
        star.middle.ip("tuntap", "add", "t0", "mode", "tap")
        spec = "t0"
    probe = opened(lab, star.middle, spec + ",busy=64")
    probe.says("busy=64 has no effect: ")
