#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench gen: mr-bench as a generator, beside others on the same veth.

tx: frames per second into a veth, mr-bench beside dpdk-testpmd txonly over
net_af_xdp and trafgen, in turns. rx: at which rates nothing is lost, mr-bench
beside testpmd rxonly, in turns. live: live XDP frames from one core. null: what
it costs to build a frame. What is measured and why so is in
docs/performance.md. Needs root.
"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import command
import contestants as who
import figures
import gen_rx
import report
from topology import BenchError, Topology, call

# Issue "mr-bench", section 3.
GOAL_TESTPMD, GOAL_TRAFGEN = 1.05, 3.0
GOAL_USER_NS = 20.0
GOAL_LIVE_MPPS = 4.0
GOAL_ONE_FIELD_MPPS, GOAL_FOUR_FIELDS_MPPS = 100.0, 40.0

NOBODY = "02:00:00:00:00:99"  # the sink takes no frame for its own
TRAFGEN_FRAME = """{
  eth(da=02:00:00:00:00:99, sa=02:00:00:00:00:01, type=0x0800)
  ipv4(saddr=198.18.0.1, daddr=198.19.0.1, ttl=64)
  udp(sp=1024, dp=9)
  fill(0, 18)
}
"""
ONE_FIELD = ["udp.src=1024-65535"]
FOUR_FIELDS = ["ip.src=10.0.0.0/16 ip.dst=10.1.0.0/16 udp.src=1024-65535 "
               "udp.dst=1-1000"]


def parse(argv):
    parser = command.parser("gen", __doc__, "few and short samples", True)
    parser.add_argument("--rounds", type=int,
                        help="of the senders in turns, default 7")
    parser.add_argument("--seconds", type=float, help="per sample, default 3")
    parser.add_argument("--only", metavar="PART,...",
                        help="tx, rx, live, null; default: all")
    args = parser.parse_args(argv)
    args.rounds = args.rounds or (2 if args.quick else 7)
    args.seconds = args.seconds or (1 if args.quick else 3)
    args.parts = (args.only or "tx,rx,live,null").split(",")
    args.bench = str(pathlib.Path(args.build) / "apps/bench/mr-bench")
    return args


class LiveRunning(who.Running):
    """Live frames, which the sink takes in NAPI; the others, as it is."""

    def stop(self):
        ended = super().stop()
        set_gro(self.topology, "off")
        return ended


class LiveSender(who.Contestant):
    """mr-bench with live frames."""

    def start(self, topology):
        set_gro(topology, "on")
        running = LiveRunning(self.name, self.argv, topology)
        running.topology = topology
        return running


def set_gro(topology, state):
    call("ip", "netns", "exec", topology.namespaces["s"], "ethtool", "-K",
         "s0", "gro", state)


def senders(args, folder):
    """Who sends from p1, each with one thread on the forwarder's core."""
    frame = pathlib.Path(folder) / "frame.cfg"
    frame.write_text(TRAFGEN_FRAME)
    core = str(who.FORWARDER_CORE)
    testpmd = who.testpmd_command(["net_af_xdp0,iface=p1"],
                                  huge_pages=args.has_huge_pages,
                                  extra=["--txpkts=60"])
    testpmd = [word.replace("=io", "=txonly") for word in testpmd]
    return [
        who.Contestant("mr-bench", [
            args.bench, "tx", "xdp:p1", "--quiet", "--workers", "1",
            "--cores", core, "--dst-mac", NOBODY]),
        LiveSender("live", [
            args.bench, "tx", "live:p1", "--quiet", "--cores", core,
            "--dst-mac", NOBODY]),
        who.Contestant("testpmd", testpmd),
        who.Contestant("trafgen", [
            "taskset", "-c", core, "trafgen", "--dev", "p1", "--conf",
            str(frame), "--cpus", "1", "--notouch-irq", "--no-cpu-stats"]),
    ]


def one_sample(topology, contestant, args):
    """Start a sender, warm up, measure, stop it."""
    args.before_each()
    running = contestant.start(topology)
    try:
        who.wait_for_traffic(topology, running)
        who.favour((running.process,), args.nice)
        return who.window(topology, running, args.seconds)
    finally:
        running.stop()


def measure_tx(args):
    """Rounds of all senders, each round beginning with another one."""
    with tempfile.TemporaryDirectory(prefix="mrb") as folder, \
            Topology() as topology:
        all_senders = senders(args, folder)
        samples = {sender.name: [] for sender in all_senders}
        for i in range(args.rounds):
            turn = i % len(all_senders)
            for sender in all_senders[turn:] + all_senders[:turn]:
                samples[sender.name].append(one_sample(topology, sender, args))
            print(f"  round {i + 1:2}/{args.rounds}: " + ", ".join(
                f"{name} {taken[-1]['mpps']:.3f}"
                for name, taken in samples.items()) + " Mpps", flush=True)
    return {"samples": samples, "ratios": {
        f"{ours} / {name}": figures.ratio(
            [(theirs["mpps"], mine["mpps"]) for theirs, mine in
             zip(samples[name], samples[ours])])
        for ours in ("mr-bench", "live") for name in ("testpmd", "trafgen")}}


def run_tx(argv, seconds, *, in_namespace=None, topology=None):
    """mr-bench tx to its end: its document's one trial."""
    argv = [*argv, "--duration", str(seconds), "--json", "--quiet"]
    if in_namespace:
        process = topology.start(in_namespace, argv, text=True,
                                 stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
    else:
        process = subprocess.Popen(argv, text=True,
                                   stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
    with process:
        out, err = process.communicate(timeout=seconds + 30)
    if process.returncode != 0:
        raise BenchError(f"mr-bench tx: {err.strip()}")
    return json.loads(out)["trials"][0]


def drop_on_arrival(topology, args):
    """A receiver that costs little: its NAPI runs on the sender's core."""
    program = pathlib.Path(args.build) / "test/bench/drop.bpf.o"
    done = topology.start("f", ["ip", "link", "set", "p0", "xdpdrv", "object",
                                str(program), "section", "xdp"],
                          stderr=subprocess.PIPE, text=True)
    with done:
        err = done.communicate(timeout=30)[1]
    if done.returncode != 0:
        raise BenchError(f"drop.bpf.o: {err.strip()}")


def measure_live(args):
    """Frames per second from one core, of one flow and of many."""
    rows = []
    with Topology() as topology:
        drop_on_arrival(topology, args)
        for name, streams, stamp in (
                ("one field", ONE_FIELD, ["--unstamped"]),
                ("one field", ONE_FIELD, []),
                ("four fields", FOUR_FIELDS, [])):
            words = stamp + [word for text in streams
                             for word in ("--stream", text)]
            trials = [run_tx([args.bench, "tx", "live:g0", "--cores",
                              str(who.GENERATOR_CORE), "--dst-mac", NOBODY,
                              *words], args.seconds, in_namespace="g",
                             topology=topology) for _ in range(3)]
            rows.append({"what": name, "is_stamped": not stamp,
                         "trials": trials, "mpps":
                         statistics.median(arrived_pps(t) / 1e6
                                           for t in trials)})
    return rows


def arrived_pps(trial):
    """What the far end took: what it refused was counted as sent."""
    refused = sum(drop["n"] for drop in trial["drops"])
    return (trial["tx"]["sent"] - refused) / trial["duration_s"]


def measure_null(args):
    """What a frame costs that goes nowhere."""
    rows = []
    for name, streams in (("one field", ONE_FIELD),
                          ("four fields", FOUR_FIELDS)):
        words = [word for text in streams for word in ("--stream", text)]
        for stamp in ([], ["--unstamped"]):
            trials = [run_tx([args.bench, "tx", "null:", "--workers", "1",
                              "--cores", str(who.FORWARDER_CORE), *stamp,
                              *words], args.seconds) for _ in range(3)]
            rows.append({"what": name, "is_stamped": not stamp, "mpps":
                         statistics.median(t["tx"]["pps"] / 1e6
                                           for t in trials),
                         "trials": trials})
    return rows


def stamped(row):
    return "stamped" if row["is_stamped"] else "unstamped"


def goals(result):
    """(goal, figure, reached) of what was measured."""
    found = []
    if "tx" in result:
        for name, goal in (("mr-bench / testpmd", GOAL_TESTPMD),
                           ("mr-bench / trafgen", GOAL_TRAFGEN),
                           ("live / trafgen", GOAL_TRAFGEN)):
            ratio = result["tx"]["ratios"][name]["median"]
            found.append((f"tx: {name} >= {goal:.2f}", f"{ratio:.3f}",
                          ratio >= goal))
        user = figures.median_of(result["tx"]["samples"]["mr-bench"],
                                 "user_ns_per_frame")
        found.append((f"tx: user time <= {GOAL_USER_NS:.0f} ns per frame",
                      f"{user:.1f}", user <= GOAL_USER_NS))
    if "rx" in result:
        row = gen_rx.highest(result["rx"])
        if row is None:
            found.append(("rx: no loss where testpmd has none",
                          "testpmd has some at each rate", False))
        else:
            theirs, ours = (gen_rx.n_clean(row, name)
                            for name in ("testpmd", "mr-bench"))
            found.append((f"rx: no loss at testpmd's highest rate, "
                          f"{row['mpps']:.1f} Mpps",
                          f"{ours} trials, testpmd {theirs}, of "
                          f"{len(row['trials']['testpmd'])}",
                          ours >= theirs))
    if "live" in result:
        for row in result["live"][:2]:
            found.append((f"live: {GOAL_LIVE_MPPS:.0f} Mpps per core, "
                          f"{row['what']}, {stamped(row)}",
                          f"{row['mpps']:.2f}",
                          row["mpps"] >= GOAL_LIVE_MPPS))
    if "null" in result:
        # A stamp is a field that varies, too, and a time.
        for row, goal in ((result["null"][1], GOAL_ONE_FIELD_MPPS),
                          (result["null"][3], GOAL_FOUR_FIELDS_MPPS)):
            found.append((f"null: {goal:.0f} Mpps per core, {row['what']}, "
                          "unstamped", f"{row['mpps']:.1f}",
                          row["mpps"] >= goal))
    return found


def show_tx(tx):
    print("\nSending from one veth, 60-byte frames, one core each")
    print(f"  {'':10} {'Mpps':>7} {'lowest':>7} {'highest':>7} "
          f"{'user ns':>8} {'core ns':>8} {'waited %':>8}")
    for name, samples in tx["samples"].items():
        low, mid, high = figures.spread(samples, "mpps")
        print(f"  {name:10} {mid:7.3f} {low:7.3f} {high:7.3f} "
              f"{figures.median_of(samples, 'user_ns_per_frame'):8.1f} "
              f"{figures.median_of(samples, 'core_ns_per_frame'):8.1f} "
              f"{max(s['waited_pct'] for s in samples):8.2f}")
    for name, ratio in tx["ratios"].items():
        print(f"  {name}: {ratio['median']:.3f}, 95 % interval "
              f"{ratio['low']:.3f} to {ratio['high']:.3f}")


def show(result):
    report.show_machine(result["machine"])
    if "tx" in result:
        show_tx(result["tx"])
    if "rx" in result:
        gen_rx.show(result["rx"])
    if "live" in result:
        print("\nLive XDP frames into a veth whose peer drops them, one core")
        for row in result["live"]:
            print(f"  {row['what']:12} {stamped(row):10} {row['mpps']:7.2f} "
                  "Mpps")
    if "null" in result:
        print("\nnull:, one core: built, counted and given back")
        for row in result["null"]:
            print(f"  {row['what']:12} {stamped(row):10} {row['mpps']:7.1f} "
                  "Mpps")
    report.show_goals(goals(result))


def measure(args):
    result = {"v": 1, "machine": report.machine(), "argv": sys.argv[1:]}
    with who.HugePages() as huge_pages:
        args.before_each = huge_pages.top_up
        args.has_huge_pages = huge_pages.top_up()
        if "tx" in args.parts:
            result["tx"] = measure_tx(args)
        if "rx" in args.parts:
            result["rx"] = gen_rx.measure(args)
        if "live" in args.parts:
            result["live"] = measure_live(args)
        if "null" in args.parts:
            result["null"] = measure_null(args)
    return result


def main():
    args = parse(sys.argv[1:])
    command.need_root()
    command.need_program("dpdk-testpmd", "dpdk-dev")
    command.need_program("trafgen", "netsniff-ng")
    result = measure(args)
    show(result)
    command.write_json(args.json, result)
    return 0


if __name__ == "__main__":
    sys.exit(command.run("gen", main))
