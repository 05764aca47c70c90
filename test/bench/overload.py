# SPDX-License-Identifier: BSD-3-Clause
"""A minute at overload: user time, system calls, memory, and the invariants."""
import json
import time

import contestants as who

SYSCALL_SECONDS = 2
RSS_PERIOD_S = 5
# From one sample to the next. A leak of a page per frame would be 5 GB/s.
RSS_SLACK_KIB = 256


def final_object(text):
    """mr-l2fwd's last line, or None for programs without JSON."""
    lines = [line for line in text.splitlines() if line.startswith("{")]
    if not lines:
        return None
    last = json.loads(lines[-1])
    return last if last.get("final") else None


def total(port, direction, member):
    """A member, summed over queues; drops are summed over their names."""
    values = (queue[direction][member] for queue in port["queues"])
    return sum(sum(value.values()) if isinstance(value, dict) else value
               for value in values)


def check(final, sent, arrived, rss):
    """Checks after a run: (name, whether it holds, text).

    sent was counted by the generator's program, arrived by the sink's device;
    neither comes from our own counters.
    """
    source, sink = final["ports"][:2]
    received = total(source, "rx", "received")
    before_us = sum(source["device_drops"].values())
    delivered = total(source, "rx", "delivered")
    rx_drops = total(source, "rx", "drops")
    accepted = total(sink, "tx", "accepted")
    completed = total(sink, "tx", "completed")
    tx_drops = total(sink, "tx", "drops")
    program = sum(sum(worker.get("drops", {}).values())
                  for worker in final["workers"])
    pool = final["pool"]
    grown = max(rss[1:]) - rss[0] if len(rss) > 1 else 0
    return [
        ("rx", sent == received + before_us and
         received == delivered + rx_drops,
         f"{sent} sent = {delivered} delivered + {rx_drops} rx drops + "
         f"{before_us} device drops"),
        ("program", delivered == accepted + program,
         f"{delivered} delivered = {accepted} accepted + "
         f"{program} dropped by the program"),
        ("tx", accepted == completed + tx_drops and completed == arrived,
         f"{accepted} accepted = {completed} completed + {tx_drops} tx "
         f"drops; {arrived} arrived at the sink"),
        ("pages", pool["n_free"] + pool["n_in_flight"] == pool["n_pages"],
         f"{pool['n_free']} free + {pool['n_in_flight']} in flight = "
         f"{pool['n_pages']} pages"),
        ("memory", grown <= RSS_SLACK_KIB,
         f"resident memory {rss[0]} KiB, grown by {grown} KiB"),
    ]


def drops_by_name(final):
    """Every drop counter that is not 0, by its name."""
    found = {}

    def add(where, counters):
        for name, n in counters.items():
            if n:
                found[f"{where}.{name}"] = n
    for port in final["ports"]:
        add(f"{port['port']}.device", port["device_drops"])
        for queue in port["queues"]:
            add(f"{port['port']}.rx", queue["rx"]["drops"])
            add(f"{port['port']}.tx", queue["tx"]["drops"])
    for worker in final["workers"]:
        add("worker", worker.get("drops", {}))
    return found


def long_run(topology, contestant, args, traffic):
    """One forwarder for args.long seconds, empty polls included."""
    print(f"  {contestant.name}: {args.long:.0f} s at overload", flush=True)
    _, before = topology.arrived()
    args.huge_pages.top_up()
    running = contestant.start(topology)
    generator = None
    try:
        who.wait_until_attached(topology, running)
        generator = who.Generator(args.bench, topology, **traffic)
        who.wait_for_traffic(topology, running)
        who.favour((running.process, generator.process), args.nice)
        time.sleep(1)
        rss = [running.rss_kib()]
        result = sampled_window(topology, running, args.long, rss)
        result["calls"] = who.count_system_calls(
            str(args.build / "test/bench/syscount"), topology, running,
            min(SYSCALL_SECONDS, args.long))
        sent = generator.stop()
        generator = None
        time.sleep(0.5)  # until the frames in the rings have left
        _, after = topology.arrived()
    finally:
        if generator is not None:
            generator.stop()
        code, text = running.stop()
    final = final_object(text)
    result["exit"] = code
    result["rss_kib"] = rss
    result["sent"] = sent
    if final is not None:
        result["final"] = final
        result["drops"] = drops_by_name(final)
        result["checks"] = check(final, sent, after - before, rss)
    return result


def sampled_window(topology, running, seconds, rss):
    """contestants.window() in parts, with the memory after each."""
    pieces = []
    n = max(1, round(seconds / RSS_PERIOD_S))
    for _ in range(n):
        pieces.append(who.window(topology, running, seconds / n))
        rss.append(running.rss_kib())
    wall = sum(piece["seconds"] for piece in pieces)
    frames = sum(piece["frames"] for piece in pieces)

    def share(key):
        return sum(p[key] * p["seconds"] for p in pieces) / wall
    return {
        "contestant": running.name,
        "seconds": wall,
        "frames": frames,
        "mpps": frames / wall / 1e6,
        "user_pct": share("user_pct"),
        "system_pct": share("system_pct"),
        "user_ns_per_frame": share("user_pct") / 100 * wall * 1e9 / frames,
        "steal_ticks": sum(piece["steal_ticks"] for piece in pieces),
        "waited_pct": share("waited_pct"),
        "pieces": pieces,
    }


def holds(result):
    """Whether all checks of all runs held."""
    return all(held for run in result.get("long", [])
               for _, held, _ in run.get("checks", []))


def show(runs):
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
