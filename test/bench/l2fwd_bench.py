#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench l2fwd: forwarding beside Debian's dpdk-testpmd.

Between veths: interleaved pairs A/B/B/A, each sample a fresh forwarder at
overload, then one long run of each for user time, system calls, memory and
the accounting invariants, and csum=auto beside csum=off. Then null: to null:. What
is measured and why so is in docs/performance.md. Needs root.
"""
import pathlib
import sys

import command
import contestants as who
import null_ports
import overload
import pairs
import report
from topology import Topology

UNHANDLED = 0x88b5       # IEEE 802 local experimental: no host wants it
IP = 0x0800              # for csum=auto, which reads IP headers


def parse(argv):
    parser = command.parser("l2fwd", __doc__, "3 pairs of 2 s", True)
    parser.add_argument("--pairs", type=int, help="default 15")
    parser.add_argument("--seconds", type=float, help="per sample, default 5")
    parser.add_argument("--long", type=float, metavar="S",
                        help="the long run, default 60")
    parser.add_argument("--only", metavar="PART,...",
                        help="null, pairs, long, csum; default: all")
    parser.add_argument("--spec", default="csum=off", metavar="OPTIONS",
                        help="of our xdp: ports in pairs and long run")
    parser.add_argument("--forward", default="", metavar="OPTIONS",
                        help="more options for mr-l2fwd")
    parser.add_argument("--against", metavar="OPTIONS",
                        help="instead of testpmd, mr-l2fwd with these as "
                        "--spec, or with those behind a '/' as --forward")
    args = parser.parse_args(argv)
    args.pairs = args.pairs or (3 if args.quick else 15)
    args.seconds = args.seconds or (2 if args.quick else 5)
    args.long = args.long or (6 if args.quick else 60)
    args.parts = (args.only or "null,pairs,long,csum").split(",")
    return args


def millrace(build, spec, forward="", name="mr-l2fwd"):
    """mr-l2fwd with one worker on the forwarder's core."""
    options = "," + spec if spec else ""
    return who.Contestant(name, [
        str(build / "apps/l2fwd/mr-l2fwd"), "--json",
        "--cores", str(who.FORWARDER_CORE), *forward.split(),
        f"xdp:p0{options}", f"xdp:p1{options}"])


def testpmd(huge_pages):
    vdevs = ["net_af_xdp0,iface=p0", "net_af_xdp1,iface=p1"]
    return who.Contestant("testpmd",
                          who.testpmd_command(vdevs, huge_pages=huge_pages))


def measure(args):
    result = {"v": 1, "machine": report.machine(), "argv": sys.argv[1:]}
    build = pathlib.Path(args.build)
    args.bench = str(build / "apps/bench/mr-bench")
    args.syscount = str(build / "test/bench/syscount")
    args.n_disturbed = 0
    with who.HugePages() as huge_pages:
        args.huge_pages = huge_pages
        args.before_each = huge_pages.top_up
        args.has_huge_pages = huge_pages.top_up()
        ours = millrace(build, args.spec, args.forward)
        theirs = testpmd(args.has_huge_pages)
        if args.against is not None:
            spec, _, forward = args.against.partition("/")
            theirs = millrace(build, spec, forward, "against")
        if "null" in args.parts:
            result["null"] = null_ports.measure(args, build)
        with Topology() as topology:
            if "pairs" in args.parts:
                result["pairs"] = pairs.interleaved(
                    topology, theirs, ours, args,
                    {"ethertype": UNHANDLED})
            if "long" in args.parts:
                result["long"] = [overload.long_run(topology, c, args,
                                                    UNHANDLED)
                                  for c in (theirs, ours)]
            if "csum" in args.parts:
                result["csum"] = pairs.interleaved(
                    topology, millrace(build, "csum=off", name="csum=off"),
                    millrace(build, "csum=auto", name="csum=auto"), args,
                    {"ethertype": IP})
        result["huge_pages"] = args.has_huge_pages
    result["n_disturbed"] = args.n_disturbed
    return result


def main():
    args = parse(sys.argv[1:])
    command.need_root()
    command.need_program("dpdk-testpmd", "dpdk-dev")
    result = measure(args)
    report.show(result)
    command.write_json(args.json, result)
    return 0 if overload.holds(result) else 1


if __name__ == "__main__":
    sys.exit(command.run("l2fwd", main))
