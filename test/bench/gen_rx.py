# SPDX-License-Identifier: BSD-3-Clause
"""At which rates a receiver loses nothing.

  mr-bench tx live:g0 --rate R ==> p0  receiver

The BPF program that sends counts the frames, so a receiver's own count of its
losses is not needed. If a virtual CPU stalls for longer than the rings last,
frames are lost whoever receives, so receivers have several trials in turn at
each rate; the number of trials without loss is compared.
"""
import json
import re
import subprocess
import time

import contestants as who
from topology import BenchError, Topology

RATES_MPPS = (0.4, 0.6, 0.8, 1.0, 1.2, 1.4)
N_TRIALS = 7
MOST_UNSENT = 0.01


def receivers(args):
    """Receivers on p0, and how to read their counters from their output."""
    testpmd = who.testpmd_on_veths(args.has_huge_pages, "p0", mode="rxonly")

    def of_testpmd(text):
        found = re.search(r"RX-packets: (\d+)", text)
        return int(found.group(1)) if found else 0

    def of_ours(text):
        start = text.find("{")
        if start < 0:
            return 0
        document, _ = json.JSONDecoder().raw_decode(text[start:])
        return document["trials"][0]["rx"]["received"]
    ours = [args.bench, "rx", "xdp:p0", "--json", "--quiet", "--workers", "1",
            "--cores", str(who.FORWARDER_CORE)]
    return ((who.Contestant("testpmd", testpmd), of_testpmd),
            (who.Contestant("mr-bench", ours), of_ours))


def n_sent(topology, args, mpps):
    """Send for a while; return the number of frames, and of late ones."""
    process = topology.start(
        "g", [args.bench, "tx", "live:g0", "--rate", f"{mpps:.4f}M",
              "--duration", str(args.seconds), "--json", "--quiet", "--cores",
              str(who.GENERATOR_CORE), "--dst-mac", "02:00:00:00:00:99"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process:
        out, err = process.communicate(timeout=args.seconds + 30)
    # 1: some frames were late; that is checked below
    if process.returncode not in (0, 1) or not out:
        raise BenchError(f"mr-bench tx: {err.strip()}")
    tx = json.loads(out)["trials"][0]["tx"]
    return tx["sent"], tx["unsent"]


def trial(topology, args, receiver, read, mpps):
    """A receiver at a rate: frames sent and received."""
    args.before_each()
    running = receiver.start(topology)
    try:
        who.wait_until_attached(topology, running, 1)
        who.favour((running.process,), args.nice)
        sent, unsent = n_sent(topology, args, mpps)
        time.sleep(0.2)
    finally:
        text = running.stop()[1]
    return {"sent": sent, "unsent": unsent, "received": read(text)}


def is_in_time(taken):
    """Whether the requested rate was reached."""
    return taken["unsent"] <= MOST_UNSENT * (taken["sent"] + taken["unsent"])


def timely_trial(*args):
    """A trial at the rate, repeated if the sender was too slow."""
    for _ in range(3):
        taken = trial(*args)
        if is_in_time(taken):
            break
    return taken


def is_clean(taken):
    return is_in_time(taken) and 0 < taken["sent"] == taken["received"]


def measure(args):
    rates = RATES_MPPS[::2] if args.quick else RATES_MPPS
    n_trials = 2 if args.quick else N_TRIALS
    rows = []
    with Topology() as topology:
        for mpps in rates:
            row = {name: [] for name in ("testpmd", "mr-bench")}
            for i in range(n_trials):
                turns = receivers(args)
                for receiver, read in turns if i % 2 else reversed(turns):
                    row[receiver.name].append(
                        timely_trial(topology, args, receiver, read, mpps))
            rows.append({"mpps": mpps, "trials": row})
            print(f"  {mpps:.1f} Mpps, trials without loss: " + ", ".join(
                f"{name} {n_clean(rows[-1], name)} of {n_trials}"
                for name in row), flush=True)
    return rows


def n_clean(row, name):
    """The number of trials at a rate without loss."""
    return sum(map(is_clean, row["trials"][name]))


def lost_share(row, name):
    """The share of frames lost at a rate."""
    taken = row["trials"][name]
    sent = sum(one["sent"] for one in taken)
    return (sent - sum(one["received"] for one in taken)) / max(sent, 1)


def highest(rows):
    """The row of the highest rate at which testpmd loses nothing in most
    trials."""
    mostly = [row for row in rows if n_clean(row, "testpmd") * 2 >
              len(row["trials"]["testpmd"])]
    return max(mostly, key=lambda row: row["mpps"], default=None)


def goal(rows):
    """Ours loses nothing at the rate of highest()."""
    row = highest(rows)
    if row is None:
        return ("rx: no loss where testpmd has none",
                "testpmd has some at each rate", False)
    theirs, ours = (n_clean(row, name) for name in ("testpmd", "mr-bench"))
    return (f"rx: no loss at testpmd's highest rate, {row['mpps']:.1f} Mpps",
            f"{ours} trials, testpmd {theirs}, of "
            f"{len(row['trials']['testpmd'])}", ours >= theirs)


def show(rows):
    print("\nReceiving from one veth, 60-byte frames: trials without loss, "
          "and frames lost in all")
    for row in rows:
        print(f"  {row['mpps']:4.1f} Mpps " + "  ".join(
            f"{name} {n_clean(row, name)} of {len(row['trials'][name])}, "
            f"{lost_share(row, name):.4%}" for name in row["trials"]))
