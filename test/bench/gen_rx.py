# SPDX-License-Identifier: BSD-3-Clause
"""The highest rate that a receiver loses nothing of.

    mr-bench tx live:g0 --rate R ==> p0  receiver

What was sent is counted by the BPF program that sends, so that neither
receiver's own idea of its losses is needed.
"""
import json
import re
import subprocess
import time

import contestants as who
from topology import BenchError, Topology, call

LOWEST_MPPS, HIGHEST_MPPS = 0.1, 8.0
N_HALVINGS = 6
TRIES = 2       # at each rate: the machine is not ours alone
IN_TIME = 0.99  # of the frames, or the sender is at its end


def receivers(args):
    """Who receives on p0, and how the number is read from what it prints."""
    testpmd = who.testpmd_command(["net_af_xdp0,iface=p0"],
                                  huge_pages=args.has_huge_pages)
    testpmd = [word.replace("=io", "=rxonly") for word in testpmd]

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


def wait_until_attached(topology, running, seconds=20):
    """Until p0 has its XDP program, and half a second for the rest."""
    deadline = time.monotonic() + seconds
    while "xdp" not in json.loads(call(
            "ip", "-n", topology.namespaces["f"], "-j", "link", "show",
            "p0"))[0]:
        running.check()
        if time.monotonic() > deadline:
            raise BenchError(f"{running.name}: no XDP program on p0")
        time.sleep(0.05)
    time.sleep(0.5)


def n_sent(topology, args, mpps):
    """Send for a while; how many frames, and how many not in time."""
    process = topology.start(
        "g", [args.bench, "tx", "live:g0", "--rate", f"{mpps:.4f}M",
              "--duration", str(args.seconds), "--json", "--quiet", "--cores",
              str(who.GENERATOR_CORE), "--dst-mac", "02:00:00:00:00:99"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process:
        out, err = process.communicate(timeout=args.seconds + 30)
    if process.returncode != 0:
        raise BenchError(f"mr-bench tx: {err.strip()}")
    tx = json.loads(out)["trials"][0]["tx"]
    return tx["sent"], tx["unsent"]


def trial(topology, args, receiver, read, mpps):
    """(whether all that was sent arrived, at which rate it was sent)."""
    args.before_each()
    running = receiver.start(topology)
    try:
        wait_until_attached(topology, running)
        who.favour((running.process,), args.nice)
        sent, unsent = n_sent(topology, args, mpps)
        time.sleep(0.2)
    finally:
        text = running.stop()[1]
    received = read(text)
    print(f"  {receiver.name:10} {mpps:7.3f} Mpps: {sent} sent, {unsent} not "
          f"in time, {sent - received} lost", flush=True)
    return received == sent, mpps * sent / (sent + unsent)


def search(topology, args, receiver, read):
    """Halve the interval between the highest clean and the lowest lossy."""
    clean, lossy, trials, is_limited = 0.0, HIGHEST_MPPS, [], False
    mpps = 1.0
    for _ in range(4 if args.quick else N_HALVINGS):
        tried = []
        while len(tried) < TRIES and not any(good for good, _ in tried):
            tried.append(trial(topology, args, receiver, read, mpps))
        trials.append((mpps, tried))
        sent_mpps = max((rate for good, rate in tried if good), default=0)
        clean = max(clean, sent_mpps)
        is_limited = 0 < sent_mpps < mpps * IN_TIME
        if is_limited:  # more cannot be sent
            break
        if sent_mpps == 0:
            lossy = mpps
        mpps = min((clean + lossy) / 2, 2 * clean) if clean else lossy / 2
        if mpps < LOWEST_MPPS:
            break
    return {"mpps": clean, "is_limited_by_sender": is_limited,
            "trials": trials}


def measure(args):
    """For each receiver."""
    with Topology() as topology:
        return {receiver.name: search(topology, args, receiver, read)
                for receiver, read in receivers(args)}
