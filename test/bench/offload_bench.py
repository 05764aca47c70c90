#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench offload: mr-l2fwd with rules in the kernel, without, and peers.

In turns on veths, UDP frames of 60 bytes, whose checksums are looked at:
dpdk-testpmd, mr-l2fwd, mr-l2fwd --offload on in modes patch and learn, and a
program that only redirects. Once with an XDP program as sink, once with the
kernel's stack (GRO on), which builds an skb of each frame. Needs root.
"""
import pathlib
import sys

import command
import contestants as who
import figures
import pairs
import report
from topology import Topology, call

# (ours, theirs, sink, at least); user CPU at most, in percent
GOALS = (("patch", "l2fwd", "xdp", 5.0), ("patch", "testpmd", "xdp", 5.0),
         ("learn", "l2fwd", "xdp", 5.0), ("patch", "l2fwd", "stack", 1.8),
         ("learn", "l2fwd", "stack", 1.8))
GOAL_USER_PCT = 1.0


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
    args = parser.parse_args(argv)
    args.warm_up = 2  # a bridge's rule begins after a second without a pause
    args.rounds = args.rounds or (2 if args.quick else 9)
    args.seconds = args.seconds or (2 if args.quick else 4)
    return args


def contestants(build, huge_pages):
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
        who.Contestant("bare", [str(build / "test/bench/bare"), "p0", "p1"]))


def set_sink(topology, sink, build):
    """What the frames end at; g0 must receive redirected frames, too."""
    for key, dev in (("g", "g0"), ("s", "s0")):
        call("ip", "netns", "exec", topology.namespaces[key], "ethtool", "-K",
             dev, "gro", "on")
    if sink == "xdp":
        call("ip", "-n", topology.namespaces["s"], "link", "set", "dev", "s0",
             "xdp", "object", str(build / "test/bench/drop.bpf.o"), "section",
             "xdp")


def turns(topology, all_of_them, args):
    """A list of samples per contestant; the order is reversed each round."""
    taken = {one.name: [] for one in all_of_them}
    for i in range(args.rounds):
        for one in all_of_them[::-1 if i % 2 else 1]:
            taken[one.name].append(pairs.undisturbed(
                topology, one, args, {}))
        print(f"  round {i + 1:2}/{args.rounds}: " + ", ".join(
            f"{name} {samples[-1]['mpps']:.3f}"
            for name, samples in taken.items()) + " Mpps", flush=True)
    return taken


def ratio(samples, ours, theirs):
    return figures.ratio([(b["mpps"], a["mpps"]) for a, b in
                          zip(samples[ours], samples[theirs])])


def show(result):
    report.show_machine(result["machine"])
    for sink, samples in result["sinks"].items():
        print(f"\nSink: {sink}, median of {result['rounds']} rounds")
        print(f"  {'':8} {'Mpps':>7} {'lowest':>7} {'highest':>7} "
              f"{'user %':>7} {'to l2fwd':>9} {'95 % interval':>16}")
        for name, of_one in samples.items():
            low, mid, high = figures.spread(of_one, "mpps")
            r = ratio(samples, name, "l2fwd")
            print(f"  {name:8} {mid:7.3f} {low:7.3f} {high:7.3f} "
                  f"{figures.median_of(of_one, 'user_pct'):7.2f} "
                  f"{r['median']:9.2f} {r['low']:7.2f} to {r['high']:5.2f}")
    print(f"\n{result['n_disturbed']} samples were disturbed and repeated")
    report.show_goals(goals(result))


def goals(result):
    """(goal, figure, reached) of each."""
    found = []
    for ours, theirs, sink, least in GOALS:
        r = ratio(result["sinks"][sink], ours, theirs)
        found.append((f"{ours} / {theirs}, sink {sink}, >= {least}",
                      f"{r['median']:.2f}", r["median"] >= least))
    for name in ("patch", "learn"):
        user = figures.median_of(result["sinks"]["xdp"][name], "user_pct")
        found.append((f"{name}: user CPU <= {GOAL_USER_PCT:.0f} %",
                      f"{user:.2f}", user <= GOAL_USER_PCT))
    return found


def main():
    args = parse(sys.argv[1:])
    command.need_root()
    command.need_program("dpdk-testpmd", "dpdk-dev")
    build = pathlib.Path(args.build)
    args.bench = str(build / "apps/bench/mr-bench")
    args.n_disturbed = 0
    result = {"v": 1, "machine": report.machine(), "argv": sys.argv[1:],
              "rounds": args.rounds, "sinks": {}}
    with who.HugePages() as huge_pages:
        args.before_each = huge_pages.top_up
        all_of_them = contestants(build, huge_pages.top_up())
        for sink in ("xdp", "stack"):
            with Topology() as topology:
                set_sink(topology, sink, build)
                print(f"sink {sink}:")
                result["sinks"][sink] = turns(topology, all_of_them, args)
    result["n_disturbed"] = args.n_disturbed
    show(result)
    command.write_json(args.json, result)
    return 0


if __name__ == "__main__":
    sys.exit(command.run("offload", main))
