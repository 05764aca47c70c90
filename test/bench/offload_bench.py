#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench offload: frames that the kernel forwards by rules, and peers.

In turns on veths, UDP frames of 60 bytes, whose checksums are looked at:
dpdk-testpmd, mr-l2fwd, mr-l2fwd --offload on in modes patch and learn, and a
program that only redirects; then, for each number of flows, nftables
masquerade, mr-nat, mr-nat --offload on, and a program that only translates and
redirects. Once with an XDP program as sink,
once with the kernel's stack (GRO on), which builds an skb of each frame. And how
many rules a second one core adds and removes, and whether frames keep their order
while rules begin, for 60,000 new flows per round. Needs root.
"""
import json
import pathlib
import statistics
import sys
import tempfile

import command
import contestants as who
import figures
import flow_order
import nat_wire
import pairs
import report
from topology import Topology, call

# (what is forwarded, sink): (ours, theirs, at least)...
GOALS = {
    ("bridge", "xdp"): (("patch", "l2fwd", 5.0), ("patch", "testpmd", 5.0),
                        ("learn", "l2fwd", 5.0)),
    ("bridge", "stack"): (("patch", "l2fwd", 1.8), ("learn", "l2fwd", 1.8)),
    ("1000 flows", "xdp"): (("offloaded", "mr-nat", 4.0),
                            ("offloaded", "nftables", 6.0)),
    ("1000 flows", "stack"): (("offloaded", "mr-nat", 1.8),),
    ("60000 flows", "xdp"): (("offloaded", "mr-nat", 2.2),
                             ("offloaded", "nftables", 4.0)),
    ("60000 flows", "stack"): (("offloaded", "mr-nat", 1.8),),
}
FLOWS = (1000, 60000)
SINKS = ("xdp", "stack")
# User CPU at most, in percent.
GOAL_USER_PCT = 1.0
N_RULES = 100000
GOAL_RULES_PER_S = 300000
IN_KERNEL = ("patch", "learn", "offloaded")


# Sends a frame from the generator's destination, which is known from then on.
SEND = f"""import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("s0", 0))
s.send(bytes.fromhex("{'ff' * 6}{who.ROUTER_MAC.replace(':', '')}88b5") +
       bytes(46))"""


class Learning(who.Contestant):
    """A bridge that knows where the generator's frames go to."""

    def start(self, topology):
        running = super().start(topology)
        who.wait_until_attached(topology, running)
        call("ip", "netns", "exec", topology.namespaces["s"], sys.executable,
             "-c", SEND)
        return running


def parse(argv):
    parser = command.parser("offload", __doc__, "2 rounds of 2 s", True)
    parser.add_argument("--rounds", type=int, help="default 9")
    parser.add_argument("--seconds", type=float, help="per sample, default 4")
    parser.add_argument("--only", metavar="PART,...",
                        help="bridge, nat, rules, order; default: all")
    parser.add_argument("--sinks", metavar="SINK,...",
                        help="xdp, stack; default: both")
    args = parser.parse_args(argv)
    args.parts = (args.only or "bridge,nat,rules,order").split(",")
    args.sinks = (args.sinks or ",".join(SINKS)).split(",")
    args.warm_up = 2  # a bridge's rule begins after a second without a pause
    args.rounds = args.rounds or (2 if args.quick else 9)
    args.seconds = args.seconds or (2 if args.quick else 4)
    return args


def bare(build, *options):
    return who.Contestant("bare", [str(build / "test/bench/bare"), "p0", "p1",
                                   *options])


def bridges(build, huge_pages):
    def l2fwd(name, *options, make=who.Contestant):
        return make(name, [
            str(build / "apps/l2fwd/mr-l2fwd"), "--json", "--quiet",
            "--cores", str(who.FORWARDER_CORE), *options,
            "xdp:p0", "xdp:p1"])

    vdevs = ["net_af_xdp0,iface=p0", "net_af_xdp1,iface=p1"]
    return (
        who.Contestant("testpmd",
                       who.testpmd_command(vdevs, huge_pages=huge_pages)),
        l2fwd("l2fwd"), l2fwd("patch", "--offload", "on"),
        l2fwd("learn", "--offload", "on", "--mode", "learn", make=Learning),
        bare(build))


def set_sink(topology, sink, build):
    """What the frames end at; g0 must receive redirected frames, too."""
    for key, dev in (("g", "g0"), ("s", "s0")):
        call("ip", "netns", "exec", topology.namespaces[key], "ethtool", "-K",
             dev, "gro", "on")
    if sink == "xdp":
        call("ip", "-n", topology.namespaces["s"], "link", "set", "dev", "s0",
             "xdp", "object", str(build / "test/bench/drop.bpf.o"), "section",
             "xdp")


def translators(build, folder):
    return (
        nat_wire.Nftables(), nat_wire.millrace_nat(build, folder),
        nat_wire.millrace_nat(build, folder, "--offload", "on",
                              name="offloaded"),
        bare(build, nat_wire.OUTSIDE.partition("/")[0], nat_wire.GATEWAY_MAC))


def turns(topology, all_of_them, args, traffic):
    """A list of samples per contestant; the order is reversed each round."""
    taken = {one.name: [] for one in all_of_them}
    for i in range(args.rounds):
        for one in all_of_them[::-1 if i % 2 else 1]:
            taken[one.name].append(pairs.undisturbed(
                topology, one, args, traffic))
        print(f"  round {i + 1:2}/{args.rounds}: " + ", ".join(
            f"{name} {samples[-1]['mpps']:.3f}"
            for name, samples in taken.items()) + " Mpps", flush=True)
    return taken


def ratio(samples, ours, theirs):
    return figures.ratio([(b["mpps"], a["mpps"]) for a, b in
                          zip(samples[ours], samples[theirs])])


def show(result):
    report.show_machine(result["machine"])
    for one in result["rules"]:
        print(f"  {one['rules']} rules: {one['added_per_s']:.0f} added, "
              f"{one['removed_per_s']:.0f} removed per second")
    if result["order"]:
        n_flows, n_late = in_order(result)
        print(f"  {n_flows} flows got rules: {n_late} frames were overtaken")
    for table in result["tables"]:
        samples, base = table["samples"], table["base"]
        print(f"\n{table['what']}, sink {table['sink']}, median of "
              f"{result['rounds']} rounds")
        print(f"  {'':9} {'Mpps':>7} {'lowest':>7} {'highest':>7} "
              f"{'user %':>7} {'to ' + base:>9} {'95 % interval':>16}")
        for name, of_one in samples.items():
            low, mid, high = figures.spread(of_one, "mpps")
            r = ratio(samples, name, base)
            print(f"  {name:9} {mid:7.3f} {low:7.3f} {high:7.3f} "
                  f"{figures.median_of(of_one, 'user_pct'):7.2f} "
                  f"{r['median']:9.2f} {r['low']:7.2f} to {r['high']:5.2f}")
    print(f"\n{result['n_disturbed']} samples were disturbed and repeated")
    report.show_goals(goals(result))


def added_per_s(result):
    return statistics.median(one["added_per_s"] for one in result["rules"])


def in_order(result):
    return (sum(one["flows"] for one in result["order"]),
            sum(one["late"] for one in result["order"]))


def goals(result):
    """(goal, figure, reached) of each."""
    found = []
    if result["rules"]:
        found.append((f"{N_RULES} rules added at {GOAL_RULES_PER_S}/s",
                      f"{added_per_s(result):.0f}",
                      added_per_s(result) >= GOAL_RULES_PER_S))
    if result["order"]:
        n_flows, n_late = in_order(result)
        found.append(("frames overtaken per million flows <= 1",
                      f"{n_late * 1e6 / n_flows:.2f}",
                      n_late * 1e6 <= n_flows))
    for table in result["tables"]:
        what, sink, samples = (table[k] for k in ("what", "sink", "samples"))
        for ours, theirs, least in GOALS[what, sink]:
            r = ratio(samples, ours, theirs)
            found.append((f"{what}: {ours} / {theirs}, sink {sink}, "
                          f">= {least}", f"{r['median']:.2f}",
                          r["median"] >= least))
        for name in (n for n in IN_KERNEL if n in samples and sink == "xdp"):
            user = figures.median_of(samples[name], "user_pct")
            found.append((f"{what}: {name}: user CPU <= "
                          f"{GOAL_USER_PCT:.0f} %", f"{user:.2f}",
                          user <= GOAL_USER_PCT))
    return found


def measure(args, build, folder, huge_pages):
    """A table for each sink and what is forwarded."""
    wanted = []
    if "bridge" in args.parts:
        wanted.append(("bridge", "l2fwd", bridges(build, huge_pages), {}))
    if "nat" in args.parts:
        wanted += [(f"{flows} flows", "mr-nat", translators(build, folder),
                    {"flows": flows}) for flows in FLOWS]
    tables = []
    for sink in args.sinks:
        for what, base, all_of_them, traffic in wanted:
            with Topology() as topology:
                set_sink(topology, sink, build)
                call("ip", "-n", topology.namespaces["f"], "link", "set",
                     "p0", "address", who.ROUTER_MAC)
                print(f"{what}, sink {sink}:", flush=True)
                tables.append({
                    "what": what, "sink": sink, "base": base,
                    "samples": turns(topology, all_of_them, args, traffic)})
    return tables


def measure_rules(args, build):
    """What test/bench/rules.c says, in each round."""
    if "rules" not in args.parts:
        return []
    with Topology() as topology:
        return [json.loads(call(
            "ip", "netns", "exec", topology.namespaces["f"],
            str(build / "test/bench/rules"), "p0", "p1", str(N_RULES)))
            for _ in range(args.rounds)]


def measure_order(args, build, folder):
    if "order" not in args.parts:
        return []
    with Topology() as topology:
        set_sink(topology, "stack", build)
        call("ip", "-n", topology.namespaces["f"], "link", "set", "p0",
             "address", who.ROUTER_MAC)
        return [flow_order.sample(topology, build, folder)
                for _ in range(args.rounds)]


def main():
    args = parse(sys.argv[1:])
    command.need_root()
    command.need_program("dpdk-testpmd", "dpdk-dev")
    command.need_program("nft", "nftables")
    build = pathlib.Path(args.build)
    args.bench = str(build / "apps/bench/mr-bench")
    args.n_disturbed = 0
    result = {"v": 1, "machine": report.machine(), "argv": sys.argv[1:],
              "rounds": args.rounds}
    with who.HugePages() as huge_pages, \
            tempfile.TemporaryDirectory(prefix="mrb") as folder:
        args.before_each = huge_pages.top_up
        result["rules"] = measure_rules(args, build)
        result["order"] = measure_order(args, build, folder)
        result["tables"] = measure(args, build, folder, huge_pages.top_up())
    result["n_disturbed"] = args.n_disturbed
    show(result)
    command.write_json(args.json, result)
    return 0


if __name__ == "__main__":
    sys.exit(command.run("offload", main))
