# SPDX-License-Identifier: BSD-3-Clause
"""Figures and tables of samples, as contestants.turns() returns them: by the
name of the contestant."""
import os
import pathlib
import platform
import random
import statistics

N_RESAMPLES = 10000
SEED = 1  # the same samples give the same interval


def ratio_of(pairs):
    """Median of b/a over (a, b) pairs, with its bootstrap 95 % interval.

    The two of a pair were measured one after the other, so a slow minute of
    the machine affects both and cancels out.
    """
    ratios = [b / a for a, b in pairs]
    rng = random.Random(SEED)
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios)))
                     for _ in range(N_RESAMPLES))
    return {
        "median": statistics.median(ratios),
        "low": medians[int(0.025 * N_RESAMPLES)],
        "high": medians[int(0.975 * N_RESAMPLES) - 1],
        "n_pairs": len(pairs),
    }


def ratio(samples, ours, theirs):
    """The ratio of our rate to theirs, round by round."""
    return ratio_of([(a["mpps"], b["mpps"]) for a, b in
                     zip(samples[theirs], samples[ours])])


def core_ratio(samples, ours, theirs):
    """The same by core time per frame; None if it is unknown."""
    key = "core_ns_per_frame"
    if not all(one[key] for name in (ours, theirs) for one in samples[name]):
        return None
    return ratio_of([(b[key], a[key]) for a, b in
                     zip(samples[theirs], samples[ours])])


def median_of(taken, key):
    """The median of a member of the samples."""
    return statistics.median(sample[key] for sample in taken)


def at_least(what, value, limit, digits=3):
    """A goal, as show_goals() takes it."""
    return f"{what} >= {limit:g}", f"{value:.{digits}f}", value >= limit


def at_most(what, value, limit, digits=2):
    return f"{what} <= {limit:g}", f"{value:.{digits}f}", value <= limit


def machine():
    cpu = ""
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":")[1].strip()
    with open("/proc/loadavg", encoding="ascii") as load:
        load_1 = load.read().split()[0]
    return {"kernel": platform.release(), "cpu": cpu,
            "n_cpus": os.cpu_count(), "load_before": load_1}


def show_machine(result, more=""):
    m, disturbed = result["machine"], result.get("n_disturbed", 0)
    print(f"\n{m['cpu']}, {m['n_cpus']} CPUs, Linux {m['kernel']}; load "
          f"before: {m['load_before']}; disturbed samples: {disturbed}{more}")
    if disturbed > 0:
        print("Other programs used these cores: --nice -20 puts the "
              "measured ones before them")


def show_goals(found, what=""):
    """found: a list of (goal, figure, reached)."""
    print("\nGoals" + (f", {what}" if what else ""))
    for goal, figure, reached in found:
        print(f"  {'reached' if reached else 'MISSED':8} {goal}: {figure}")


def show_samples(title, samples, base=None, has_core=True):
    """base: the contestant to compare with (default: the first). has_core: all
    the work is on the forwarders' core."""
    base = base or next(iter(samples))
    print(f"\n{title}: {len(samples[base])} samples in turns")
    print(f"  {'':12} {'Mpps':>7} {'lowest':>7} {'highest':>7} {'user %':>7} "
          f"{'system %':>8} {'user ns':>8} {'core ns':>8} {'waited %':>8}")
    for name, taken in samples.items():
        rates = [sample["mpps"] for sample in taken]
        print(f"  {name:12} {statistics.median(rates):7.3f} {min(rates):7.3f} "
              f"{max(rates):7.3f} {median_of(taken, 'user_pct'):7.2f} "
              f"{median_of(taken, 'system_pct'):8.2f} "
              f"{median_of(taken, 'user_ns_per_frame'):8.1f} "
              f"{median_of(taken, 'core_ns_per_frame'):8.1f} "
              f"{max(sample['waited_pct'] for sample in taken):8.2f}")
    for name in samples:
        for how, figure in (("", ratio), (" by core time", core_ratio)):
            is_shown = name != base and (has_core or figure is ratio)
            r = figure(samples, name, base) if is_shown else None
            if r:
                print(f"  {name} / {base}{how}: {r['median']:.3f}, 95 % "
                      f"interval {r['low']:.3f} to {r['high']:.3f}")
