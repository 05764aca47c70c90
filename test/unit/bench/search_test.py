# SPDX-License-Identifier: BSD-3-Clause
"""search_trials.py, binary_search.py and loss_and_bursts.py, on devices whose result is
known."""
import pytest

from search_model import FOREVER, MAX_PPS, SECOND, Model, search_of, within

from mr_bench.binary_search import BinarySearch
from mr_bench.search_trials import BrokenOff, Interrupted, Limit, MAX_TRIALS, NoPath, SearchError, \
    Unsteady
from mr_bench.loss_and_bursts import Bursts, back2back, frame_loss


def binary(model, n_verify=0):
    """A search that comes to its end."""
    search = search_of(model)
    found = BinarySearch(search, n_verify).run()
    assert found.is_complete
    assert search.trials == list(range(model.n_calls))
    return found


def no_rate(search, error):
    """What there is of one that does not, and why."""
    one = BinarySearch(search)
    with pytest.raises(error) as raised:
        one.run()
    assert not one.found.is_complete
    return one.found, str(raised.value)


@pytest.mark.parametrize("rate", [999000, 777777, 500000, 12345, 2500])
@pytest.mark.parametrize("n_verify", [0, 1, 2])
def test_a_hard_limit_is_found_to_the_resolution(rate, n_verify):
    found = binary(Model(rate_pps=rate), n_verify)
    within(found.value, rate * 0.995, rate)
    within(rate, found.low, found.high)
    assert (found.limit, found.loss, found.goal) == (Limit.DEVICE, 0, "ndr")


@pytest.mark.parametrize("tolerance, pps", [
    (0, 300000), (0.0009, 300000), (0.0011, 800880)])
def test_the_tolerated_loss_moves_the_result(tolerance, pps):
    """0.1 % of all frames are lost above 300000, all above 800000."""
    model = Model(rate_pps=800000, soft_loss=0.001, soft_from=300000)
    found = BinarySearch(search_of(model, loss_tolerance_ratio=tolerance)).run()
    within(found.value, pps * 0.995, pps)
    assert found.goal == ("pdr" if tolerance else "ndr")


def test_verification_outlives_rare_bursts():
    """A few frames are lost in each 3rd trial, whatever the rate."""
    within(binary(Model(rate_pps=600000, burst_every=3), 2).value, 600000 * 0.995, 600000)
    assert binary(Model(rate_pps=600000, burst_every=3)).value < 600000 * 0.99


def test_a_rate_that_fails_verification_is_no_result():
    """Each trial takes 2 % off: what held at the first does not at the last."""
    found, why = no_rate(search_of(Model(rate_pps=600000, drift=0.02)), Unsteady)
    assert "does not converge" in why and "--method mlr" in why
    assert found.value == 0


def test_a_slow_drift_is_followed_down():
    """It settles some steps lower where the drift is less than that."""
    model = Model(rate_pps=600000, drift=0.0008)
    found = binary(model)
    within(found.value, model.rate_pps * 0.99, model.rate_pps * 1.001)


def test_a_sender_that_fails_is_not_the_device():
    found = binary(Model(rate_pps=900000, sender_pps=400000))
    assert found.limit == Limit.SENDER
    # Half a per cent unsent is let pass; the value is what was sent.
    within(found.value, 398000, 400000)
    # Each such rate was tried three times, before it was given up.
    found = binary(Model(rate_pps=300000, n_unsent=2))
    assert found.limit == Limit.DEVICE
    within(found.value, 300000 * 0.995, 300000)


@pytest.mark.parametrize("late, is_unsent, low, high", [
    (0.01, True, 198000, 198100), (0.002, False, 199590, 199620)])
def test_a_load_is_what_left_in_time(late, is_unsent, low, high):
    """All frames were sent, but it took longer than asked."""
    outcome = search_of(Model(late_share=late)).trial(200000, SECOND)
    assert outcome.is_unsent == is_unsent
    within(outcome.load_pps, low, high)


def test_a_disturbed_sender_is_told_from_a_slow_one():
    """Where it can do far more, something else is at fault."""
    model = Model(rate_pps=300000, n_unsent=9)
    search = search_of(model, sender_pps=MAX_PPS)
    assert not search.trial(200000, SECOND).is_unsent
    assert model.n_calls == 10
    model.n_unsent = 10
    with pytest.raises(Unsteady, match="the sender is disturbed: 10.0 %"):
        search.trial(200000, SECOND)
    # Nothing is known of it: no rate is left, and that is no result.
    _, why = no_rate(search_of(Model(n_unsent=FOREVER)), Unsteady)
    assert "kept no rate up" in why


@pytest.mark.parametrize("more, limit", [
    ({}, Limit.RECEIVER),
    # Most of what its ring had no room for was not ours.
    ({"foreign_share": 0.6}, Limit.DEVICE),
    # What is flooded back to the port that sends is not missing.
    ({"is_sending_port": True}, Limit.DEVICE)])
def test_losses_of_the_receiver_are_told_from_the_devices(more, limit):
    assert binary(Model(rate_pps=500000, is_receiver=True, **more)).limit == limit


def test_a_rate_that_was_kept_tells_what_the_sender_can_do():
    """Also where --rate said what the highest rate is."""
    model = Model(rate_pps=300000)
    search = search_of(model)
    search.trial(500000, SECOND)
    model.n_unsent = 9
    assert not search.trial(200000, SECOND).is_unsent
    # Not the device's fault, if it is the sender that does not do again what it did.
    model = Model(rate_pps=600000)
    within(binary(model).value, 597000, 600000)
    found, why = no_rate(search_of(Model(rate_pps=600000, unsent_from=model.n_calls)), Unsteady)
    assert "the sender kept no rate up" in why
    assert found.limit == Limit.SENDER


def test_the_highest_rate_is_tried_first():
    model = Model()
    found = binary(model)
    assert (found.limit, found.value, found.high) == (Limit.HIGHEST, MAX_PPS, 0)
    assert model.n_calls == 2  # and once more


def test_a_device_that_always_loses_has_no_rate():
    found = binary(Model(soft_loss=0.01))
    assert found.value == 0 and found.high > 0
    assert "more than the tolerated loss" in found.note


def test_a_signal_leaves_what_there_is():
    found, _ = no_rate(search_of(Model(rate_pps=600000, cut_at=4)), Interrupted)
    within(600000, found.low, found.high)
    assert found.low == 500000


def test_a_trial_that_broke_off_says_why():
    """It is cut short, but not by a signal."""
    _, why = no_rate(search_of(Model(stop="veth0: link down")), BrokenOff)
    assert why.endswith("broke off: veth0: link down")


def test_trials_have_an_end():
    model = Model(rate_pps=600000)
    _, why = no_rate(search_of(model, max_trials=5), Unsteady)
    assert model.n_calls == 5
    assert "after 5 trials" in why


def test_a_dead_device_is_noticed_first():
    model = Model(is_dead=True)
    with pytest.raises(NoPath, match="none of 100 frames came back: .*--dst-mac"):
        search_of(model).check_path()
    assert model.n_calls == 3
    model.seen = "last seen at p0"
    with pytest.raises(NoPath, match="last seen at p0"):
        search_of(model).check_path()
    model.is_dead = False
    search_of(model).check_path()


def test_each_trial_is_seen_by_the_observer():
    model = Model(rate_pps=600000)
    seen = []
    search = search_of(model, on_trial=lambda s, trial: seen.append((trial.sent, s.left_ns)))
    BinarySearch(search).run()
    assert len(seen) == model.n_calls
    assert all(sent > 0 and left_ns > 0 for sent, left_ns in seen)
    assert search.left_ns == 0
    assert set(model.settled) == {SECOND // 10}


def test_the_loss_curve_ends_behind_two_clean_steps():
    points = []
    frame_loss(search_of(Model(rate_pps=650000)), 0.1, points)
    assert len(points) == 6  # 100 to 50 %
    within(points[0].loss, 0.349, 0.351)
    within(points[3].loss, 0.071, 0.072)
    assert points[4].n_lost == points[5].n_lost == 0
    # Two in turn, not two in all; and down to the last step.
    points = []
    frame_loss(search_of(Model(rate_pps=950000, burst_every=2)), 0.1, points)
    assert len(points) == 10
    # One that is ended has its points so far.
    points = []
    with pytest.raises(Interrupted):
        frame_loss(search_of(Model(rate_pps=650000, cut_at=3)), 0.1, points)
    assert len(points) == 2


def bursts_of(model, resolution_ratio=0.005, n_tests=2, max_burst_ns=SECOND, n_verify=0,
              throughput_pps=0, **more):
    """Bursts into the model's buffer."""
    search = search_of(model, resolution_ratio=resolution_ratio, **more)
    bursts = Bursts(search.max_pps, throughput_pps)
    back2back(search, bursts, n_tests, max_burst_ns, n_verify)
    assert bursts.is_complete
    assert len(bursts.frames) == n_tests
    assert len(search.trials) == model.n_calls
    return bursts


def test_bursts_tell_the_buffer():
    """A burst of B / (1 - R / L) frames fills a buffer of B."""
    model = Model(rate_pps=750000, buffer=1024)
    bursts = bursts_of(model, 0.001, 5, 2 * SECOND, throughput_pps=750000)
    assert bursts.limit == Limit.DEVICE
    within(bursts.mean, 4096 * 0.999, 4097)
    assert model.n_seconds < 1
    assert bursts.sd == 0 and len(set(bursts.frames)) == 1
    within(bursts.implied_s, 0.00409, 0.0041)
    within(bursts.corrected_s, 0.001022, 0.001025)
    # Nothing is lost at all: the longest burst, and it says so.
    bursts = bursts_of(Model(), 0.001, 5, 2 * SECOND)
    assert (bursts.limit, bursts.mean) == (Limit.HIGHEST, 2000000)


def test_many_tests_have_room():
    """Trials are limited for each of them."""
    model = Model(rate_pps=750000, buffer=1024)
    bursts_of(model, 0.0001, 1000, 2 * SECOND, 2)
    assert model.n_calls > 10 * MAX_TRIALS
    # One that finds no end is still told.
    with pytest.raises(Unsteady, match="after 3 trials"):
        bursts_of(Model(rate_pps=750000, buffer=1024), max_trials=3)


def test_bursts_that_the_tester_ends_are_not_the_devices():
    model = Model(rate_pps=500000, buffer=512, is_receiver=True)
    assert bursts_of(model).limit == Limit.RECEIVER
    # It takes twice as long for them: no burst at that rate ever left.
    bursts = bursts_of(Model(late_share=1))
    assert bursts.limit == Limit.SENDER and bursts.mean < 100
    with pytest.raises(Unsteady, match="sends no burst"):
        bursts_of(Model(late_share=100))
    with pytest.raises(SearchError, match="--max-burst"):
        bursts_of(Model(), max_burst_ns=999)


def test_confirming_stays_above_the_lowest_rate():
    """Steps down never reach 0, which would be full speed."""
    model = Model(rate_pps=600000, drift=0.9)
    search = search_of(model, resolution_ratio=0.5, max_pps=500000)
    found, _ = no_rate(search, Unsteady)
    assert model.n_calls > 5
    assert found.high >= search.min_pps


def test_bursts_of_a_flaky_device_spread():
    bursts = bursts_of(Model(rate_pps=500000, buffer=512, burst_every=17), n_tests=20)
    assert bursts.sd > 1 and min(bursts.frames) < bursts.mean < max(bursts.frames)
    bursts = bursts_of(Model(rate_pps=500000, buffer=512, burst_every=17), n_tests=20,
                       n_verify=1)
    within(bursts.mean, 1024 * 0.995, 1026)
