# SPDX-License-Identifier: BSD-3-Clause
"""mr-nat on null: ports: the cost of a packet without the kernel."""
import json
import statistics
import subprocess

import contestants as who
from topology import BenchError

MILLION = 1000000
ADDRESSES = 32
CREATE_ADDRESSES = 16
# (sessions, burst, Zipf's law); the goal's row is first
ROWS = ((MILLION, 64, False), (MILLION, 64, True), (MILLION, 32, False),
        (MILLION, 256, False), (1000, 64, False), (10000, 64, False),
        (100000, 64, False))


def run(program, mode, *, sessions=MILLION, burst=64, zipf=False,
        addresses=ADDRESSES, seconds=1.0, rules=0):
    """One sample of nat_bench; its output."""
    # Two workers need two cores, even if one thread runs both.
    cores = ("0", "1") if mode in ("workers", "flood") else (
        str(who.FORWARDER_CORE),)
    argv = ["taskset", "-c", ",".join(cores), str(program),
            "--mode", mode, "--sessions", str(sessions), "--burst", str(burst),
            "--addresses", str(addresses), "--seconds", str(seconds)]
    if rules:
        argv += ["--rules", str(rules)]
    done = subprocess.run(argv + ["--zipf"] * zipf, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=300)
    if done.returncode != 0:
        words = done.stderr.strip() or done.stdout.strip()
        raise BenchError(f"nat_bench --mode {mode}: {words}")
    return json.loads(done.stdout)


def medians(program, modes, n, **how):
    """n samples of each mode in turn: {mode: [ns per packet]}."""
    taken = {mode: [] for mode in modes}
    for _ in range(n):
        for mode in modes:
            taken[mode].append(run(program, mode, **how)["ns_per_frame"])
    return {mode: statistics.median(values)
            for mode, values in taken.items()}


def stages(program, n, **how):
    """ns per packet by stage; the sum is the whole path.

    A clock in the path would cost as much as what it measures. So the stages
    are differences of runs: the source, which frees; that with sending; that
    with lookups; everything.
    """
    ns = medians(program, ("drop", "forward", "find", "nat"), n, **how)
    lookup = ns["find"] - ns["drop"]
    return {"receive": ns["drop"], "lookup": lookup,
            "rewrite": ns["nat"] - ns["forward"] - lookup,
            "transmit": ns["forward"] - ns["drop"]}


def ratio(program, n, one, other, **how):
    """Median of n ratios of two modes' rates, taken in pairs."""
    return statistics.median(
        run(program, **other, **how)["ns_per_frame"] /
        run(program, **one, **how)["ns_per_frame"] for _ in range(n))


def measure(args):
    """Measure everything, with lines of progress."""
    program = args.build / "test/bench/nat_bench"
    n, seconds = (3, 0.3) if args.quick else (7, 1.0)
    result = {"rows": []}
    for sessions, burst, zipf in ROWS:
        how = {"sessions": sessions, "burst": burst, "zipf": zipf,
               "seconds": seconds}
        row = medians(program, ("drop", "nat"), n, **how)
        result["rows"].append({**how, "drop_ns": row["drop"],
                               "nat_ns": row["nat"]})
        print(f"  {sessions:7} sessions, {'Zipf' if zipf else 'uniform'}, "
              f"burst {burst:3}: source {row['drop']:.1f}, all "
              f"{row['nat']:.1f} ns per packet", flush=True)
    result["stages"] = stages(program, n, seconds=seconds)
    how = {"sessions": 10000, "seconds": seconds / 3}
    result["flood"] = ratio(program, 3 * n, {"mode": "flood"},
                            {"mode": "workers"}, **how)
    result["rules"] = ratio(program, 3 * n, {"rules": 4096}, {"rules": 4},
                            mode="workers", **how)
    result["check"] = run(program, "check", seconds=seconds)
    result["create"] = [
        run(program, "create", burst=256, addresses=CREATE_ADDRESSES,
            sessions=CREATE_ADDRESSES * 64512 + 50000) for _ in range(n)]
    result["sustain"] = run(program, "sustain", burst=256,
                            addresses=CREATE_ADDRESSES)
    print("  stages, sums, creation and sustained rate: done", flush=True)
    return result
