# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark's table, and which goals it reaches."""
import os
import pathlib
import platform

import figures

# Issue "Forward real traffic", section 7.
GOAL_RATIO, GOAL_RATIO_LOW, STRETCH_RATIO = 1.03, 1.00, 1.10
GOAL_USER_NS = 15.0
GOAL_USER_SHARE = 0.5
GOAL_FRAMES_PER_TX_CALL = 128
GOAL_NULL_NS = 3.0


def machine():
    cpu = ""
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":")[1].strip()
    with open("/proc/loadavg", encoding="ascii") as load:
        load_1 = load.read().split()[0]
    return {"kernel": platform.release(), "cpu": cpu,
            "n_cpus": os.cpu_count(), "load_before": load_1}


def show_machine(m, more=""):
    print(f"\n{m['cpu']}, {m['n_cpus']} CPUs, Linux {m['kernel']}; load "
          f"before: {m['load_before']}{more}")


def show_goals(found, what=""):
    """found: (goal, figure, reached) of each."""
    print("\nGoals" + (f", {what}" if what else ""))
    for goal, figure, reached in found:
        print(f"  {'reached' if reached else 'MISSED':8} {goal}: {figure}")


def show_pairs(title, pairs):
    ratio = pairs["ratio"]
    print(f"\n{title}: {ratio['n_pairs']} interleaved pairs")
    print(f"  {'':12} {'Mpps':>7} {'lowest':>7} {'highest':>7} {'user %':>7} "
          f"{'system %':>8} {'core ns':>8} {'waited %':>8}")
    for i, name in enumerate((pairs["a"], pairs["b"])):
        samples = [pair[i] for pair in pairs["pairs"]]
        low, mid, high = figures.spread(samples, "mpps")
        print(f"  {name:12} {mid:7.3f} {low:7.3f} {high:7.3f} "
              f"{figures.median_of(samples, 'user_pct'):7.2f} "
              f"{figures.median_of(samples, 'system_pct'):8.2f} "
              f"{figures.median_of(samples, 'core_ns_per_frame'):8.1f} "
              f"{max(sample['waited_pct'] for sample in samples):8.2f}")
    print(f"  {pairs['b']} / {pairs['a']}: {ratio['median']:.3f}, "
          f"95 % interval {ratio['low']:.3f} to {ratio['high']:.3f}")
    core = pairs["core_ratio"]
    print(f"  by core time per frame: {core['median']:.3f}, "
          f"95 % interval {core['low']:.3f} to {core['high']:.3f}")


def show_long(runs):
    print(f"\nOne run of {runs[0]['seconds']:.0f} s each at overload, empty "
          "polls included")
    print(f"  {'':12} {'Mpps':>7} {'user %':>7} {'system %':>8} "
          f"{'user ns':>8} {'calls':>9} {'frames per':>10}")
    print(f"  {'':12} {'':>7} {'':>7} {'':>8} {'/frame':>8} {'/frame':>9} "
          f"{'tx call':>10}")
    for run in runs:
        calls = run["calls"]
        print(f"  {run['contestant']:12} {run['mpps']:7.3f} "
              f"{run['user_pct']:7.2f} {run['system_pct']:8.2f} "
              f"{run['user_ns_per_frame']:8.1f} "
              f"{calls['calls_per_frame']:9.5f} "
              f"{calls['frames_per_tx_call']:10.1f}")
    for run in runs:
        for name, held, words in run.get("checks", []):
            print(f"  {run['contestant']}: {name:8} "
                  f"{'holds' if held else 'BROKEN'}: {words}")
        if "drops" in run:
            named = ", ".join(f"{k} {v}" for k, v in run["drops"].items())
            print(f"  {run['contestant']}: drops by name: {named or 'none'}")


def show_null(null):
    print("\nnull: to null:, both directions on one core, ns per frame")
    print(f"  {'burst':>6} {'testpmd net_null':>17} {'mr-l2fwd':>11}")
    for row in null["rows"]:
        print(f"  {row['burst']:6} {row['testpmd_ns']:17.2f} "
              f"{row['ours_ns']:11.2f}")


def goals(result):
    """(goal, figure, reached) of what was measured."""
    found = []
    if "pairs" in result:
        ratio = result["pairs"]["ratio"]
        found.append((f"median ratio >= {GOAL_RATIO}",
                      f"{ratio['median']:.3f}",
                      ratio["median"] >= GOAL_RATIO))
        found.append((f"its lower bound >= {GOAL_RATIO_LOW:.2f}",
                      f"{ratio['low']:.3f}", ratio["low"] >= GOAL_RATIO_LOW))
        found.append((f"stretch: median ratio >= {STRETCH_RATIO:.2f}",
                      f"{ratio['median']:.3f}",
                      ratio["median"] >= STRETCH_RATIO))
    if "long" in result:
        theirs, ours = result["long"]
        user = ours["user_ns_per_frame"]
        share = user / max(theirs["user_ns_per_frame"], 1e-9)
        per_call = ours["calls"]["frames_per_tx_call"]
        found.append((f"user time <= {GOAL_USER_NS:.0f} ns per frame",
                      f"{user:.1f}", user <= GOAL_USER_NS))
        found.append(("user time <= half of testpmd's", f"{share:.2f}",
                      share <= GOAL_USER_SHARE))
        found.append((f">= {GOAL_FRAMES_PER_TX_CALL} frames per tx call",
                      f"{per_call:.1f}",
                      per_call >= GOAL_FRAMES_PER_TX_CALL))
    if "null" in result:
        best = min(row["ours_ns"] for row in result["null"]["rows"])
        found.append((f"null: to null: <= {GOAL_NULL_NS:.0f} ns per frame",
                      f"{best:.2f}", best <= GOAL_NULL_NS))
    return found


def show(result):
    show_machine(result["machine"],
                 f"; disturbed samples: {result['n_disturbed']}; huge pages "
                 f"for testpmd: {'yes' if result['huge_pages'] else 'no'}")
    if result["n_disturbed"] > 0:
        print("Other programs used these cores: --nice -20 puts the "
              "measured ones before them")
    if "null" in result:
        show_null(result["null"])
    if "pairs" in result:
        show_pairs("veth to veth, 60-byte frames", result["pairs"])
    if "long" in result:
        show_long(result["long"])
    if "csum" in result:
        show_pairs("csum=auto beside csum=off, UDP frames", result["csum"])
    show_goals(goals(result))
