# SPDX-License-Identifier: BSD-3-Clause
"""The line behind a trial: who is to blame, by whose counter. Results are made up."""
import pytest

from mr_bench.explain import Ends, explain, is_silent, tail_text

BOTH = Ends("pair:a", "pair:a")


def trial_of(sent=0, received=0, unique=0, lost=0, foreign=0, whole_s=1.0):
    """What is looked at."""
    return {"tx": {"sent": sent}, "whole_s": whole_s,
            "rx": {"received": received, "unique": unique, "lost": lost, "foreign": foreign}}


def drop(port, side, name, n, is_receivers=False):
    """A counter that moved."""
    return {"port": port, "side": side, "name": name, "n": n, "is_receivers": is_receivers}


def said(ends, n_lost, *drops):
    """The line of a result that lost n_lost of a million."""
    n = 10**6 - n_lost
    return explain(trial_of(10**6, n, n, n_lost), list(drops), 0, ends)


@pytest.mark.parametrize("side, name", [("rx", "ring_full"), ("dev", "rx_missed")])
def test_the_receiver_is_blamed_for_what_it_dropped(side, name):
    assert said(BOTH, 1000, drop("xdp:t1", side, name, 600, True)).startswith(
        f"the receiver was slower than the sender: xdp:t1 dropped 600 frames ({name})")


@pytest.mark.parametrize("n_lost, one, line", [
    (1000, drop("xdp:t1", "dev", "rx_missed", 1, True), ""),
    # A ring of the sending port, that nobody reads.
    (1000, drop("xdp:t0", "rx", "ring_full", 999), ""),
    (0, drop("xdp:t1", "dev", "rx_missed", 5000, True), ""),
    # What never left is not among those that are missing.
    (1000, drop("xdp:t0", "dev", "tx_dropped", 999, True), ""),
    (1000, drop("xdp:t0", "tx", "too_long", 700, True), "")])
def test_the_receiver_is_not_blamed_for_more(n_lost, one, line):
    """Nor for what the sending port lost, nor for one frame where a thousand are missing, nor
    where none is."""
    assert said(BOTH, n_lost, one) == line


def test_a_larger_counter_does_not_hide_the_cause():
    """What never left is not among the lost, and what nobody receives is nobody's loss: neither
    hides the counter that tells."""
    paused = (drop("live:t0", "tx", "kernel_set_up", 10000),
              drop("xdp:t1", "rx", "ring_full", 500, True))
    aside = drop("xdp:t0", "rx", "ring_full", 9000), drop("xdp:t0", "tx", "device", 5000)
    assert "xdp:t1 dropped 500 frames (ring_full)" in said(BOTH, 500, *paused)
    assert said(BOTH, 500, *aside) == ""


def test_a_share_is_worth_a_line_where_losses_are_not_known():
    """Where the sender is another program nobody knows how many are missing."""
    few, many = (drop("null:", "rx", "ring_full", n, True) for n in (999, 1000))
    far = Ends(receiver="null:")
    assert said(far, 0, few) == ""
    # Of a million sent, and a million that came.
    assert said(far, 0, many) == ""
    assert "the receiver was slower than the sender" in said(far, 10**6, many)


def test_frames_without_our_stamp_are_explained():
    trial = trial_of(100, received=51, lost=100, foreign=51)
    assert is_silent(trial, BOTH)
    assert explain(trial, [], 0, BOTH).startswith(
        "none of the 100 frames came back as sent, but pair:a received 51 without our stamp")
    # A few are somebody else's.
    trial = trial_of(100, received=50, lost=100, foreign=50)
    assert explain(trial, [], 0, BOTH).startswith(
        "100 frames left pair:a and none reached pair:a, which counts no loss")


def test_a_device_that_does_not_transmit_is_explained():
    """What the queue took stays in its ring."""
    trial = trial_of(1, lost=1)
    assert explain(trial, [], 1, BOTH) == (
        "pair:a took 1 frames and sent none: the device does not transmit")
    assert explain(trial_of(5, lost=5), [], 2, BOTH).startswith("3 frames left pair:a")
    live = Ends("live:a", "pair:a", is_live=True)
    assert explain(trial_of(5, lost=5), [], 0, live).startswith("5 frames left live:a")


def test_silence_is_explained():
    far = Ends(receiver="null:")
    assert is_silent(trial_of(), far)
    assert explain(trial_of(), [], 0, far).startswith(
        "null: received nothing in 1 s: is the sender running")
    one = trial_of(received=1, foreign=1)
    assert not is_silent(one, far) and explain(one, [], 0, far) == ""
    # Frames as they are: all that comes is foreign, and has come.
    plain = Ends("pair:a", "pair:a", is_stamped=False)
    assert is_silent(trial_of(100), plain) and explain(trial_of(100), [], 0, plain)
    all_came = trial_of(100, received=100, foreign=100)
    assert not is_silent(all_came, plain) and explain(all_came, [], 0, plain) == ""
    # Who has sent nothing waits for nothing.
    assert not is_silent(trial_of(), plain)
    # Who receives nowhere waits for nothing either.
    assert not is_silent(trial_of(100), Ends("null:"))
    assert explain(trial_of(100), [], 0, Ends("null:")) == ""


def test_causes_of_late_frames_are_listed():
    tail = {"late_ns": 1000, "waited_ns": 100, "still_ns": 200, "called_ns": 300,
            "tx_away_ns": 1500, "rx_away_ns": 2000, "all_waited_ns": 3 * 10**6,
            "all_still_ns": 10**5}
    away, polls = tail_text(tail, 0).splitlines()
    assert away == ("p99.9 and longer: 60 % of the time the tester was away (10 % waiting for a "
                    "core, 20 % stopped by the host, 30 % in calls)")
    assert polls == ("longest between two polls: 1.5 us sending, 2.0 us receiving; in all 3.0 ms "
                     "waiting for cores, 0.1 ms stopped by the host")
    assert tail_text(tail, 50000).startswith("50.0 us and longer: ")
    assert tail_text(tail | {"late_ns": 0}, 0) == polls + "\n"
