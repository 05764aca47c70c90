#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench l2fwd: forwarding beside Debian's dpdk-testpmd.

Between veths: interleaved pairs A/B/B/A, each sample a fresh forwarder at
overload, then one long run of each for user time, system calls, memory and
the accounting invariants, and csum=auto beside csum=off. Then null: to null:.
docs/performance.md says what is measured and why. Needs root.
"""
import sys

import command
import contestants as who
import null_ports
import overload
import report
from topology import Topology

UNHANDLED = {"ethertype": 0x88b5}  # IEEE 802 local experimental: no host
#                                    wants it
IP = {"ethertype": 0x0800}         # for csum=auto, which reads IP headers


def parse():
    parser = command.parser("l2fwd", __doc__, (
        ("pairs", 15, 3, "samples of each"),
        ("seconds", 5.0, 2.0, "per sample"),
        ("long", 60.0, 6.0, "seconds of the long run")),
        "null,pairs,long,csum", True)
    parser.add_argument("--spec", default="csum=off", metavar="OPTIONS",
                        help="of our xdp: ports in pairs and long run")
    parser.add_argument("--forward", default="", metavar="OPTIONS",
                        help="more options for mr-l2fwd")
    parser.add_argument("--against", metavar="OPTIONS",
                        help="instead of testpmd, mr-l2fwd with these as "
                        "--spec, or with those behind a '/' as --forward")
    return command.parse(parser)


def millrace(build, spec, forward="", name="mr-l2fwd"):
    options = "," + spec if spec else ""
    return who.Contestant(name, who.l2fwd_command(
        build, *forward.split(),
        ports=(f"xdp:p0{options}", f"xdp:p1{options}")))


def measure_veths(args, topology, result):
    ours = millrace(args.build, args.spec, args.forward)
    theirs = who.Contestant("testpmd",
                            who.testpmd_on_veths(args.has_huge_pages))
    if args.against is not None:
        spec, _, forward = args.against.partition("/")
        theirs = millrace(args.build, spec, forward, "against")
    if "pairs" in args.parts:
        result["pairs"] = who.turns(topology, (theirs, ours), args.pairs, args,
                                    UNHANDLED)
    if "long" in args.parts:
        result["long"] = [overload.long_run(topology, c, args, UNHANDLED)
                          for c in (theirs, ours)]
    if "csum" in args.parts:
        result["csum"] = who.turns(
            topology, [millrace(args.build, spec, name=spec)
                       for spec in ("csum=off", "csum=auto")], args.pairs,
            args, IP)


def measure(args):
    result = command.document()
    with who.HugePages() as huge_pages:
        args.huge_pages = huge_pages
        args.before_each = huge_pages.top_up
        args.has_huge_pages = result["huge_pages"] = huge_pages.top_up()
        if "null" in args.parts:
            result["null"] = null_ports.measure(args)
        with Topology() as topology:
            measure_veths(args, topology, result)
    result["n_disturbed"] = args.n_disturbed
    return result


def goals(result):
    """The goals in docs/performance.md."""
    found = []
    if "pairs" in result:
        theirs, ours = result["pairs"]
        ratio = report.ratio(result["pairs"], ours, theirs)
        found += [report.at_least("median ratio", ratio["median"], 1.03),
                  report.at_least("its lower bound", ratio["low"], 1.00),
                  report.at_least("stretch: median ratio", ratio["median"],
                                  1.10)]
    if "long" in result:
        theirs, ours = result["long"]
        user = ours["user_ns_per_frame"]
        found += [
            report.at_most("user ns per frame", user, 15, 1),
            report.at_most("user time by testpmd's", user / max(
                theirs["user_ns_per_frame"], 1e-9), 0.5),
            report.at_least("frames per tx call",
                            ours["calls"]["frames_per_tx_call"], 128, 1)]
    if "null" in result:
        found.append(report.at_most("null: to null:, ns per frame", min(
            row["ours_ns"] for row in result["null"]), 3))
    return found


def show(result):
    report.show_machine(result, "; huge pages for testpmd: " +
                        ("yes" if result["huge_pages"] else "no"))
    if "null" in result:
        null_ports.show("null: to null:, both directions on one core",
                        result["null"])
    if "pairs" in result:
        report.show_samples("veth to veth, 60-byte frames", result["pairs"])
    if "long" in result:
        overload.show(result["long"])
    if "csum" in result:
        report.show_samples("csum=auto beside csum=off, UDP frames",
                            result["csum"])
    report.show_goals(goals(result))


def main():
    args = parse()
    command.need_root()
    command.need_program("dpdk-testpmd", "dpdk-dev")
    result = measure(args)
    show(result)
    command.write_json(args.json, result)
    return 0 if overload.holds(result) else 1


if __name__ == "__main__":
    sys.exit(command.run("l2fwd", main))
