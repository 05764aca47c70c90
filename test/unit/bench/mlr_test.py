# SPDX-License-Identifier: BSD-3-Clause
"""mlr_search.py of mr-bench: the RFC's examples, simulated DUT, and CSIT's own search on them."""
import pytest

from search_model import MAX_PPS, SECOND, Model, search_of, within

from mr_bench.mlr_search import Goal, LoadClass, LoadSums, MlrSearch, MlrTrial, classify, \
    conditional_throughput
from mr_bench.search_trials import Interrupted, Limit, Wanted

# The goals of the RFC's appendix C.
RFC_GOALS = (
    Goal("RFC2544", 0, 0, 0.005, 60 * SECOND, 60 * SECOND),
    Goal("TST009", 0, 0.5, 0.005, 60 * SECOND, 120 * SECOND),
    Goal("1s final", 0.005, 0.5, 0.005, SECOND, 120 * SECOND),
    Goal("20% exceed", 0.005, 0.2, 0.005, 60 * SECOND, 60 * SECOND))
CLASSES = {"-": LoadClass.UNDECIDED, "L": LoadClass.LOWER, "U": LoadClass.UPPER}
# NDR and PDR as CSIT has them.
GOALS = (Goal("ndr", 0, 0.5, 0.005, SECOND, 21 * SECOND),
         Goal("pdr", 0.005, 0.5, 0.005, SECOND, 21 * SECOND))


@pytest.mark.parametrize("short_good, short_bad, n_bad, n_good, classes", [
    (59, 0, 0, 0, "----"), (59, 1, 0, 0, "U---"), (59, 60, 0, 0, "U--U"),
    (60, 60, 0, 0, "U-LU"), (60, 60, 1, 0, "U-LU"), (60, 60, 1, 1, "ULLU")])
def test_loads_are_classified_as_in_the_rfc(short_good, short_bad, n_bad, n_good, classes):
    """Six moments of its example: trials so far, and what each goal says. Its tables call the
    load a lower bound of the last goal in the last two moments; by its code, which we follow,
    45 of 105 and of 165 seconds are more than 20 %."""
    for goal, wanted in zip(RFC_GOALS, classes):
        sums = LoadSums(full_low=60 * n_good)
        # A long bad one loses 0.1 %, which two of the goals tolerate.
        if goal.loss_ratio > 0:
            sums.full_low += 60 * n_bad
        else:
            sums.full_high += 60 * n_bad
        if goal.final_trial_ns == SECOND:
            sums.full_low += short_good
            sums.full_high += short_bad
        else:
            sums.short_low, sums.short_high = short_good, short_bad
        assert classify(goal, sums) == CLASSES[wanted], goal.name


def test_throughput_is_conditional_as_in_the_rfc():
    trials = 60 * [MlrTrial(1e6, 0.01, SECOND), MlrTrial(1e6, 0, SECOND)] + [
        MlrTrial(1e6, 0.001, 60 * SECOND), MlrTrial(1e6, 0, 60 * SECOND)]
    assert conditional_throughput(RFC_GOALS[1], 1e6, trials) == 1e6
    assert conditional_throughput(RFC_GOALS[2], 1e6, trials) == 1e6
    assert conditional_throughput(RFC_GOALS[3], 1e6, trials) == pytest.approx(999000)
    # Trials at other loads say nothing; no trial is no throughput.
    assert conditional_throughput(RFC_GOALS[3], 2e6, trials) == 0


def run(model, goals=GOALS):
    """Both goals, of a search that comes to its end."""
    found = MlrSearch(search_of(model), list(goals), SECOND).run()
    assert all(one.is_complete for one in found)
    assert [one.goal for one in found] == [goal.name for goal in goals]
    return found


@pytest.mark.parametrize("rate", [990000, 777777, 500000, 12345, 2500])
def test_a_hard_limit_is_found_for_both_goals(rate):
    model = Model(rate_pps=rate)
    ndr, pdr = run(model)
    within(rate, ndr.low, ndr.high)
    within(ndr.value, rate * 0.995, rate)
    assert ndr.high - ndr.low <= 0.0050001 * ndr.high
    # Half a per cent may be lost: it forwards its limit.
    within(rate / 0.995, pdr.low, pdr.high)
    within(pdr.value, rate * 0.995, rate * 1.001)
    assert ndr.limit == Limit.DEVICE
    # Few loads get the whole sum of seconds.
    assert model.n_seconds < 40


# Trials of CSIT's MLRsearch 1.2.1 (PyPI) on the same devices with the same goals, its warm-up
# included: initial and final trials of 1 s, 21 s in all, two preceding targets, factor 2.
DEVICES = (
    ({"rate_pps": 990000}, 40), ({"rate_pps": 900000}, 36), ({"rate_pps": 777777}, 36),
    ({"rate_pps": 500000}, 36), ({"rate_pps": 333333}, 36), ({"rate_pps": 123456}, 36),
    ({"rate_pps": 50000}, 36), ({"rate_pps": 12345}, 36), ({"rate_pps": 2500}, 36),
    ({"rate_pps": 600000, "buffer": 2000}, 36), ({"rate_pps": 600000, "burst_every": 3}, 63),
    ({"rate_pps": 600000, "burst_every": 5}, 37),
    ({"rate_pps": 800000, "soft_loss": 0.001, "soft_from": 300000}, 65),
    ({"rate_pps": 600000, "soft_loss": 0.0005, "soft_from": 590000}, 54),
    ({"rate_pps": 700000, "soft_loss": 0.002, "soft_from": 50000}, 70),
    ({}, 12))


@pytest.mark.parametrize("device, n_csit", DEVICES)
def test_trials_are_no_more_than_of_csit(device, n_csit):
    model = Model(**device)
    run(model)
    assert model.n_calls <= n_csit


def csit_bounds(device):
    """Lower and upper bound of each goal, 0: none, as CSIT's own search finds them."""
    csit = pytest.importorskip(
        "MLRsearch", reason="CSIT's MLRsearch is missing")

    class Measurer(csit.AbstractMeasurer):
        """The device behind CSIT's interface."""

        def measure(self, intended_duration, intended_load):
            wanted = Wanted(float(intended_load), int(intended_duration * 1e9))
            trial = Model(**device).run(wanted)
            return csit.MeasurementResult(
                intended_duration=intended_duration, intended_load=intended_load,
                offered_count=trial.sent, loss_count=trial.lost)

    goals = [csit.SearchGoal(
        loss_ratio=goal.loss_ratio, exceed_ratio=goal.exceed_ratio,
        relative_width=goal.width, initial_trial_duration=1.0, final_trial_duration=1.0,
        duration_sum=goal.duration_sum_ns / 1e9) for goal in GOALS]
    found = csit.MultipleLossRatioSearch(csit.Config(
        goals=goals, min_load=MAX_PPS / 1e3, max_load=MAX_PPS, search_duration_max=3600.0,
        warmup_duration=1.0)).search(Measurer())
    return [[float(bound or 0) for bound in (
        found[goal].relevant_lower_bound, found[goal].relevant_upper_bound)] for goal in goals]


# Of those that answer the same whenever they are asked.
@pytest.mark.parametrize("device", [
    device for device, _ in DEVICES if "burst_every" not in device])
def test_bounds_are_those_of_csit(device):
    """Two intervals that have the same limit in them overlap, and none is wider than the
    width."""
    for ours, (low, high) in zip(run(Model(**device)), csit_bounds(device)):
        assert (ours.high > 0) == (high > 0)
        assert ours.low == pytest.approx(low, rel=GOALS[0].width * 1.001)
        if high:
            assert ours.low < high and low < ours.high
            assert max(ours.high, high) - min(ours.low, low) <= 2 * GOALS[0].width * high


def test_goals_with_other_losses_differ():
    ndr, pdr = run(Model(rate_pps=800000, soft_loss=0.001, soft_from=300000))
    within(ndr.value, 300000 * 0.995, 300000)
    within(pdr.value, 795000, 800100)


def test_rare_bursts_do_not_decide():
    """Bad trials are less than half of the time: they decide nothing."""
    within(run(Model(rate_pps=600000, burst_every=3))[0].value, 600000 * 0.995, 600000)


def test_with_drift_the_bounds_follow():
    model = Model(rate_pps=600000, drift=0.0002)
    ndr = run(model)[0]
    within(ndr.value, model.rate_pps * 0.98, 600000)


def test_a_sender_that_fails_bounds_the_search():
    ndr = run(Model(rate_pps=900000, sender_pps=400000))[0]
    assert ndr.limit == Limit.SENDER
    within(ndr.value, 398000, 402100)


def test_a_sender_that_was_disturbed_bounds_nothing():
    """It fails three times in turn, and then never again."""
    ndr = run(Model(n_unsent=3))[0]
    assert (ndr.limit, ndr.value) == (Limit.HIGHEST, MAX_PPS)


def test_the_highest_load_may_be_the_result():
    ndr = run(Model())[0]
    assert (ndr.limit, ndr.value) == (Limit.HIGHEST, MAX_PPS)


def test_losses_of_the_receiver_are_told_from_the_devices():
    assert run(Model(rate_pps=500000, is_receiver=True))[0].limit == Limit.RECEIVER


def test_a_goal_that_no_load_meets_has_no_value():
    ndr, pdr = run(Model(rate_pps=700000, soft_loss=0.001))
    assert ndr.value == 0
    assert "missed at all loads" in ndr.note
    within(pdr.value, 690000, 701000)


def test_a_signal_leaves_the_bounds_so_far():
    search = MlrSearch(search_of(Model(rate_pps=600000, cut_at=9)), list(GOALS), SECOND)
    with pytest.raises(Interrupted):
        search.run()
    assert not any(found.is_complete for found in search.found)
    within(search.found[0].high, 1, MAX_PPS)
