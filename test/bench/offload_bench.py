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
import statistics
import sys
import tempfile

import command
import contestants as who
import flow_order
import nat_wire
import report
from topology import ROUTER_MAC, Topology

# (what is forwarded, sink): (ours, theirs, at least), ...
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
N_RULES = 100000
IN_KERNEL = ("patch", "learn", "offloaded")


# Send a frame from the generator's destination, so that the bridge learns it.
SEND = f"""import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("s0", 0))
s.send(bytes.fromhex("{'ff' * 6}{ROUTER_MAC.replace(':', '')}88b5") +
       bytes(46))"""


class Learning(who.Contestant):
    """A bridge that has learned the generator's destination."""

    def start(self, topology):
        running = super().start(topology)
        who.wait_until_attached(topology, running)
        topology.run("s", sys.executable, "-c", SEND)
        return running


def parse():
    parser = command.parser("offload", __doc__, (
        ("rounds", 9, 2, "samples of each"),
        ("seconds", 4.0, 2.0, "per sample")), "bridge,nat,rules,order", True)
    parser.add_argument("--sinks", metavar="SINK,...", default="xdp,stack",
                        help="default: %(default)s")
    args = command.parse(parser)
    args.warm_up = 2  # a bridge adds a rule after a second without a pause
    return args


def bare(build, *options):
    return who.Contestant("bare", [str(build / "test/bench/bare"), "p0", "p1",
                                   *options])


def bridges(build, huge_pages):
    def l2fwd(*options):
        return who.l2fwd_command(build, "--quiet", *options)
    return (
        who.Contestant("testpmd", who.testpmd_on_veths(huge_pages)),
        who.Contestant("l2fwd", l2fwd()),
        who.Contestant("patch", l2fwd("--offload", "on")),
        Learning("learn", l2fwd("--offload", "on", "--mode", "learn")),
        bare(build))


def set_sink(topology, sink, build):
    """The sink of the frames. g0 must receive redirected frames as well."""
    for key, dev in (("g", "g0"), ("s", "s0")):
        topology.run(key, "ethtool", "-K", dev, "gro", "on")
    if sink == "xdp":
        topology.run("s", "ip", "link", "set", "dev", "s0", "xdp", "object",
                     str(build / "test/bench/drop.bpf.o"), "section", "xdp")


def translators(build, folder):
    return (
        nat_wire.Nftables(), nat_wire.millrace_nat(build, folder),
        nat_wire.millrace_nat(build, folder, "--offload", "on",
                              name="offloaded"),
        bare(build, nat_wire.OUTSIDE.partition("/")[0], nat_wire.GATEWAY_MAC))


def show(result):
    report.show_machine(result)
    for one in result["rules"]:
        print(f"  {one['rules']} rules: {one['added_per_s']:.0f} added, "
              f"{one['removed_per_s']:.0f} removed per second")
    if result["order"]:
        n_flows, n_late = in_order(result)
        print(f"  {n_flows} flows got rules: {n_late} frames were overtaken")
    for table in result["tables"]:
        report.show_samples(f"{table['what']}, sink {table['sink']}",
                            table["samples"], table["base"], False)
    report.show_goals(goals(result))


def added_per_s(result):
    return statistics.median(one["added_per_s"] for one in result["rules"])


def in_order(result):
    return (sum(one["flows"] for one in result["order"]),
            sum(one["late"] for one in result["order"]))


def goals(result):
    """Goals of what was measured."""
    found = []
    if result["rules"]:
        found.append(report.at_least(f"{N_RULES} rules added per second",
                                     added_per_s(result), 300000, 0))
    if result["order"]:
        n_flows, n_late = in_order(result)
        found.append(report.at_most("frames overtaken per million flows",
                                    n_late * 1e6 / n_flows, 1))
    for table in result["tables"]:
        what, sink, samples = (table[k] for k in ("what", "sink", "samples"))
        for ours, theirs, least in GOALS[what, sink]:
            found.append(report.at_least(
                f"{what}: {ours} / {theirs}, sink {sink},",
                report.ratio(samples, ours, theirs)["median"], least, 2))
        for name in (n for n in IN_KERNEL if n in samples and sink == "xdp"):
            found.append(report.at_most(
                f"{what}: {name}: user CPU, %",
                report.median_of(samples[name], "user_pct"), 1))
    return found


def measure(args, folder, huge_pages):
    """A table for each sink and each kind of forwarding."""
    wanted = []
    if "bridge" in args.parts:
        wanted.append(("bridge", "l2fwd", bridges(args.build, huge_pages), {}))
    if "nat" in args.parts:
        wanted += [(f"{flows} flows", "mr-nat",
                    translators(args.build, folder), {"flows": flows})
                   for flows in FLOWS]
    tables = []
    for sink in args.sinks.split(","):
        for what, base, all_of_them, traffic in wanted:
            with Topology() as topology:
                set_sink(topology, sink, args.build)
                print(f"{what}, sink {sink}:", flush=True)
                tables.append({
                    "what": what, "sink": sink, "base": base,
                    "samples": who.turns(topology, all_of_them, args.rounds,
                                         args, traffic)})
    return tables


def measure_rules(args):
    """The output of test/bench/rules.c, in each round."""
    if "rules" not in args.parts:
        return []
    with Topology() as topology:
        return [json.loads(topology.run(
            "f", str(args.build / "test/bench/rules"), "p0", "p1",
            str(N_RULES))) for _ in range(args.rounds)]


def measure_order(args, folder):
    if "order" not in args.parts:
        return []
    with Topology() as topology:
        set_sink(topology, "stack", args.build)
        return [flow_order.sample(topology, args.build, folder)
                for _ in range(args.rounds)]


def main():
    args = parse()
    command.need_root()
    command.need_program("dpdk-testpmd", "dpdk-dev")
    command.need_program("nft", "nftables")
    result = command.document()
    with who.HugePages() as huge_pages, \
            tempfile.TemporaryDirectory(prefix="mrb") as folder:
        args.before_each = huge_pages.top_up
        result["rules"] = measure_rules(args)
        result["order"] = measure_order(args, folder)
        result["tables"] = measure(args, folder, huge_pages.top_up())
    result["n_disturbed"] = args.n_disturbed
    show(result)
    command.write_json(args.json, result)
    return 0


if __name__ == "__main__":
    sys.exit(command.run("offload", main))
