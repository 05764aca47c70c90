# SPDX-License-Identifier: BSD-3-Clause
"""Figures worked out by hand, and goals: the worst row counts, and rows that
were not measured are not judged."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

pytest.importorskip("numpy")
from micro import front, goals, report, stats  # noqa: E402 pylint: disable=wrong-import-position


def variant(name, side, ns, to_ours, **more):
    return {"name": name, "side": side, "counts": {}, "samples": 5, "disturbed": 0,
            "noisy": False, "ns": {"n": 5, "median": ns, "low": ns - 0.1, "high": ns + 0.1},
            "ratio_to_ours": goals.ratio(to_ours, to_ours - 0.1, to_ours + 0.1), **more}


def absent(name, side):
    return {"name": name, "side": side, "counts": {}}


def row(workload, name, *variants, **more):
    return {"workload": workload, "name": name, "threads": 1, "players": list(variants), **more}


def look(*rows):
    return goals.look(list(rows), "mem", False)


def test_time_is_compared_with_its_limit():
    def of(single):
        goal, = look(row("W02", "fields=1", variant("array", "ours", 0.9, 1), single))
        return goal
    goal = of(variant("single", "ours", 12.5, 2.7))
    assert goal["goal"] == "6: frame built and sent, one field"
    assert (goal["unit"], goal["player"], goal["state"]) == ("ns", "single", "missed")
    assert not goal["within_noise"]
    one = variant("single", "ours", 9.5, 2)
    one["ns"] |= {"low": 9, "high": 10.5}
    goal = of(one)
    assert goal["state"] == "reached" and goal["within_noise"]


def test_a_row_that_was_not_run_is_not_judged():
    single = variant("single", "ours", 1, 1)
    assert not look(row("B06", "from=cache bulk=2", single))
    assert len(look(row("B06", "from=cache bulk=1", single))) == 1
    assert not look(row("B06", "from=cache bulk=1", absent("single", "ours")))


def test_the_worst_row_and_player_count():
    worst, aligned = look(
        row("B09", "len=12 threads=2 hop=1 alloc", variant("frag cache", "ours", 4, 1),
            variant("frag cache, aligned", "ours", 4.2, 1.05)),
        row("B09", "len=75 threads=2 hop=1 alloc", variant("frag cache", "ours", 9, 1),
            variant("frag cache, aligned", "ours", 8.9, 0.99)))
    assert worst["rows"] == 2
    assert (worst["row"][:6], worst["player"]) == ("len=75", "frag cache")
    assert worst["state"] == "reported"
    # Aligned divided by unaligned: the other row is worse.
    assert (aligned["row"][:6], aligned["player"]) == ("len=12", "frag cache, aligned")
    assert aligned["state"] == "missed" and aligned["within_noise"]


def test_a_figure_beside_the_time_is_compared():
    def of(value):
        return look(row("B17", "burst=32 pools=1",
                        variant("ours", "ours", 2, 1,
                               counts={} if value is None else {"depot_ops_per_32": value}),
                        variant("ours, large", "ours", 2, 1, counts={"depot_ops_per_32": 7})))
    assert not of(None)
    assert of(0.5)[0]["state"] == "reached" and of(0.5)[0]["measured"]["value"] == 0.5
    assert of(1.5)[0]["state"] == "missed"
    assert of(1)[0]["state"] == "reached"  # the limit itself
    assert not of(1)[0]["within_noise"]  # it has no interval


def test_the_best_of_dpdk_is_what_counts():
    r = row("B08", "drop burst=64", variant("addresses", "ours", 1, 1),
            variant("frames", "ours", 4, 4), variant("ring", "dpdk", 1.5, 1.5),
            variant("stack", "dpdk", 1.15, 1.15), absent("none", "dpdk"),
            variant("plain", "plain", 0.1, 0.1))
    assert goals.best_of_dpdk(r)["name"] == "stack"
    assert goals.best_of(r, "ours")["name"] == "addresses"
    goal, = look(r)
    assert goal["state"] == "missed" and goal["within_noise"]  # 1.2
    assert goal["limit_is"] == "least"
    r["players"][3] = variant("stack", "dpdk", 2, 2)
    goal, = look(r)
    assert goal["player"] == "ring" and goal["state"] == "reached"


def test_goal_of_pipelines_looks_at_the_median_of_the_rows():
    def pipe(pages, ratio):
        return row("B14", f"pages={pages} touch=header", variant("ours", "ours", 1, 1),
                   variant("ring", "dpdk", ratio, ratio))
    goal, = look(pipe(1, 0.9), pipe(2, 1.6), pipe(3, 1.7))
    assert goal["row"] == "pages=2 touch=header" and goal["state"] == "reached"
    goal, = look(pipe(1, 0.9), pipe(2, 1.6))
    assert goal["state"] == "missed"  # the lower of the two


def test_model_of_the_kernel_is_a_peer():
    found = look(row("B09", "x threads=2 hop=32 alloc", variant("frag cache", "ours", 5, 1),
                     variant("page_frag", "kernel", 8, 1.6)))
    states = {g["goal"]: g["state"] for g in found}
    assert states["1: the same, in bursts"] == "reached"
    assert states["1: frag over a ring, in bursts"] == "reported"


def test_growth_is_by_the_same_player_on_one_thread():
    def point(ns, plot, n_threads, name="millrace objects"):
        return row("B12", f"fast threads={n_threads}", variant(name, "ours", ns, 1), plot=plot,
                   threads=n_threads)
    one, two, eight = point(4, "fast", 1), point(4.4, "fast", 2), point(5.2, "fast", 8)
    other = point(1, "N=128", 1)
    assert not look(one)  # nothing to compare with
    goal, = look(one, two)
    assert goal["measured"]["value"] == pytest.approx(1.1)
    assert goal["measured"]["low"] < 1.1 < goal["measured"]["high"]
    assert goal["state"] == "reached" and goal["limit_is"] == "most"
    goal, = look(one, two, eight, other)
    assert goal["row"] == "fast threads=8" and goal["state"] == "missed"
    assert goal["measured"]["value"] == pytest.approx(1.3)
    del one["players"][0]["ns"]
    assert not look(one, two, eight, other)


def test_all_goals_of_a_command_are_listed():
    r = row("B06", "from=pages bulk=64", variant("single", "ours", 1, 1))
    states = {g["goal"]: g["state"] for g in goals.look([r], "mem", True)}
    assert len(states) > 30
    assert states["burst of 32 by address"] == "not run"
    assert states["2: single by array of 64, allocator"] == "reported"
    flow = "bulk lookup of 1 M: rte_hash by ours"
    assert flow not in states
    found = goals.look([], "flow", True)
    assert [g["goal"] for g in found] == [flow] and found[0]["rows"] == 0


def test_goals_choose_rows_and_players():
    assert goals.is_wanted("B06/from=pages bulk=1")
    assert not goals.is_wanted("B06/from=pages bulk=2")
    assert not goals.is_wanted("B01/1 core")
    wanted = [name for name in (
        "rte_mempool ring c512", "rte_mempool stack c256, in bulk", "rte_mempool bucket c256",
        "rte_mempool ring c0", "ours, magazines of 64")
        if not any(goals.fnmatchcase(name, p) for p in goals.UNWANTED_PLAYERS)]
    assert wanted == ["rte_mempool ring c512", "rte_mempool stack c256, in bulk"]


def test_slower_rows_are_counted():
    ours = variant("ours", "ours", 1, 1)
    found = goals.slower([row("B06", "x", ours, variant("ring", "dpdk", 0.9, 0.9)),
                          row("B06", "y", ours, variant("ring", "dpdk", 1.1, 1.1)),
                          row("B06", "without ours", variant("ring", "dpdk", 1, 0)),
                          row("B06", "without DPDK", ours)])
    assert found["rows"] == 2 and [r["row"] for r in found["slower"]] == ["x"]


def test_rows_that_dpdk_wins_are_counted_by_kind_and_by_how_much():
    def lost(workload, ns, ours_ns):
        return {"workload": workload, "ns": ns, "ours_ns": ours_ns}
    text = report.slower_head([lost("B06", 1.2, 1), lost("B06", 1, 1.1), lost("B09", 1, 1.2),
                               lost("B14", 1, 1.3)], 95)
    assert "first of ours: 4 of 95 " in text
    assert "best of ours in 3, in 2 by more than 15 %: in 1 with" in text
    assert text.endswith("in 1 others.")


def test_a_summary_has_what_the_samples_have():
    s = stats.summary([10, 12, 11, 100, 9])
    assert [s[k] for k in ("n", "median", "min", "max", "mad")] == [5, 11, 9, 100, 1]
    assert 9 <= s["low"] <= 11 <= s["high"] <= 100
    assert stats.summary([4, 1, 3, 2])["median"] == 2.5


def test_ratios():
    assert stats.ratio([], []) is None
    assert stats.ratio([4] * 7, [2] * 7) == goals.ratio(2, 2, 2)
    # 31 values around 150 and 31 around 100: 1.5, and 1 far outside.
    r = stats.ratio([150 + i * 7 % 31 - 15 for i in range(31)],
                    [100 + i * 11 % 31 - 15 for i in range(31)])
    assert r["value"] == 1.5 and 1.3 < r["low"] < 1.5 < r["high"] < 1.7
    # If a resample of the divisor is 0, the ratio has no upper end.
    r = stats.ratio([1] * 5, [0, 0, 2, 2, 2])
    assert (r["value"], r["low"], r["high"]) == (0.5, 0.5, float("inf"))


def test_the_interval_follows_the_spread():
    narrow = stats.summary([100 + i * 7 % 31 - 15 for i in range(31)])
    wide = stats.summary([100 + 4 * (i * 7 % 31 - 15) for i in range(31)])
    assert narrow["high"] > narrow["low"]
    assert wide["high"] - wide["low"] > 2 * (narrow["high"] - narrow["low"])


def test_disturbed_samples_count_only_where_clean_ones_are_too_few():
    def of(*clean):
        sampled = {"name": "x", "side": "ours", "operations": 9, "counts": {},
                   "ns": [1.0] * len(clean), "cycles": [1.0] * len(clean), "clean": list(clean)}
        one, = stats.evaluated(row("B01", "x", sampled))["players"]
        return one["ns"]["n"], one["samples"], one["disturbed"], one["noisy"]
    assert of(*[True] * 5, False) == (5, 6, 1, False)
    assert of(*[True] * 4, False) == (5, 5, 1, True)
    assert of(True, True) == (2, 2, 0, False)


@pytest.mark.parametrize("words, samples, ms", [
    ([], "31", "50"), (["--goals"], "15", "20"), (["--quick"], "7", "5"),
    (["--quick", "--samples", "9", "--sample-ms", "3"], "9", "3")])
def test_options_become_those_of_the_engine(words, samples, ms):
    options = front.parser("mem").parse_args([*words, "--only-ours", "-c", "2", "B01"])
    line = front.engine_words("engine", "mem", options)
    assert line[:6] == ["engine", "mem", "--samples", samples, "--sample-ms", ms]
    assert line[6:10] == ["--only", "ours", "--cores", "2"]
    assert ("--without" in line) == options.goals
    assert options.names == ["B01"] and not options.json and options.out is None
