# SPDX-License-Identifier: BSD-3-Clause
"""Samples of two forwarders in turns, and the ratio of what they forward."""
import time

import contestants as who
import figures

MAX_RETRIES = 5          # of a sample that was disturbed
MAX_WAITED_PCT = 3.0     # of its time, for a core that others took
WARM_UP_S = 1.0


def sample(topology, contestant, args, traffic):
    """Start a forwarder, warm up, measure, stop it."""
    args.before_each()
    running = contestant.start(topology)
    generator = None
    try:
        generator = who.Generator(args.bench, topology, **traffic)
        who.wait_for_traffic(topology, running)
        who.favour((running.process, generator.process), args.nice)
        time.sleep(getattr(args, "warm_up", min(WARM_UP_S, args.seconds / 2)))
        return who.window(topology, running, args.seconds)
    finally:
        if generator is not None:
            generator.stop()
        running.stop()


def undisturbed(topology, contestant, args, traffic):
    """A sample that neither the hypervisor nor a program here disturbed.

    If there is none in MAX_RETRIES, the least disturbed one, marked so.
    """
    tried = []
    for _ in range(MAX_RETRIES):
        taken = sample(topology, contestant, args, traffic)
        taken["disturbed"] = (taken["steal_ticks"] > 0 or
                              taken["waited_pct"] > MAX_WAITED_PCT)
        if not taken["disturbed"]:
            return taken
        tried.append(taken)
        args.n_disturbed += 1
    return min(tried, key=lambda t: (t["waited_pct"], t["steal_ticks"]))


def interleaved(topology, a, b, args, traffic):
    """args.pairs pairs, A/B/B/A/..., so that a drift hits both alike.

    traffic: what the Generator is told.
    """
    rows = []
    for i in range(args.pairs):
        order = (a, b) if i % 2 == 0 else (b, a)
        taken = {c.name: undisturbed(topology, c, args, traffic)
                 for c in order}
        rows.append((taken[a.name], taken[b.name]))
        print(f"  pair {i + 1:2}/{args.pairs}: "
              f"{a.name} {taken[a.name]['mpps']:.3f}, "
              f"{b.name} {taken[b.name]['mpps']:.3f} Mpps", flush=True)
    return {
        "a": a.name,
        "b": b.name,
        "pairs": rows,
        "ratio": figures.ratio([(x["mpps"], y["mpps"]) for x, y in rows]),
        "core_ratio": figures.ratio([(y["core_ns_per_frame"],
                                      x["core_ns_per_frame"])
                                     for x, y in rows]),
    }
