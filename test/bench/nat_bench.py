#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench nat: address translation, without the kernel and beside it.

First the packet path on null: ports over a million sessions. Then mr-nat
between veths: interleaved pairs with mr-l2fwd and with nftables masquerade.
What is measured and why so is in docs/performance.md. The second part needs
root.
"""
import pathlib
import statistics
import sys

import command
import contestants as who
import nat_null
import nat_wire
import report

# Issue "mr-nat", section 4.
GOAL_MPPS = 12.0
GOAL_CREATED_PER_S = 1e6
GOAL_RATIOS = {("mr-l2fwd", 1): 0.92, ("mr-l2fwd", 1000): 0.92,
               ("mr-l2fwd", 50000): 0.88, ("nftables", 1): 1.3,
               ("nftables", 1000): 1.3, ("nftables", 50000): 1.8}


def parse(argv):
    parser = command.parser("nat", __doc__, "few and short samples", True)
    parser.add_argument("--pairs", type=int, help="default 15")
    parser.add_argument("--seconds", type=float,
                        help="per sample between veths, default 5")
    parser.add_argument("--flows", metavar="N,...", help="default: " +
                        ",".join(map(str, nat_wire.FLOWS)))
    parser.add_argument("--only", metavar="PART,...",
                        help="null, wire; default: both")
    args = parser.parse_args(argv)
    args.pairs = args.pairs or (3 if args.quick else 15)
    args.seconds = args.seconds or (1 if args.quick else 5)
    args.parts = (args.only or "null,wire").split(",")
    args.flows = ([int(n) for n in args.flows.split(",")] if args.flows
                  else list(nat_wire.FLOWS))
    return args


def measure(args):
    build = pathlib.Path(args.build)
    result = {"v": 1, "machine": report.machine(), "argv": sys.argv[1:]}
    args.bench = str(build / "apps/bench/mr-bench")
    args.before_each = lambda: None
    args.n_disturbed = 0
    if "null" in args.parts:
        result["null"] = nat_null.measure(args, build)
    if "wire" in args.parts:
        l2fwd = who.Contestant("mr-l2fwd", [
            str(build / "apps/l2fwd/mr-l2fwd"), "--json", "--cores",
            str(who.FORWARDER_CORE), "xdp:p0", "xdp:p1"])
        result["wire"] = nat_wire.measure(args, build, l2fwd)
    result["n_disturbed"] = args.n_disturbed
    return result


def created_per_s(null):
    return statistics.median(run["created_per_s"] for run in null["create"])


def show_null(null):
    print(f"\nnull: to null:, half each way, one core, "
          f"{nat_null.ADDRESSES} external addresses, ns of core time per "
          "packet")
    print(f"  {'sessions':>8} {'drawn':>8} {'burst':>6} {'source':>7} "
          f"{'all':>7} {'Mpps':>6} {'without source':>15} {'Mpps':>6}")
    for row in null["rows"]:
        own = row["nat_ns"] - row["drop_ns"]
        print(f"  {row['sessions']:8} {'Zipf' if row['zipf'] else 'uniform':>8}"
              f" {row['burst']:6} {row['drop_ns']:7.1f} {row['nat_ns']:7.1f} "
              f"{1e3 / row['nat_ns']:6.2f} {own:15.1f} {1e3 / own:6.2f}")
    named = ", ".join(f"{k} {v:.1f}" for k, v in null["stages"].items())
    print(f"  by stage, first row: {named}")
    check, create = null["check"], null["create"][0]
    print(f"  sums: {check['checked']} packets out, {check['wrong']} wrong or "
          "lost")
    print(f"  created in one pass: {create['created']} mappings on "
          f"{create['ports']} ports, {created_per_s(null) / 1e6:.2f} M/s; "
          f"then {create['no_port']} refused")
    print(f"  bytes per session: {check['bytes_per_session']:.1f}")
    rate = null["sustain"]
    print(f"  sustained: {rate['created_per_s']:.1f} a second of "
          f"{rate['offered_per_s']} offered; ports / (lifetime + hold-down) "
          f"= {rate['ports']} / ({rate['lifetime_s']} + "
          f"{rate['hold_down_s']} s) = {rate['bound_per_s']:.1f}")


def goals(result):
    """(goal, figure, reached) of what was measured."""
    found = []
    if "null" in result:
        null = result["null"]
        mpps = 1e3 / null["rows"][0]["nat_ns"]
        found.append((f"{GOAL_MPPS:.0f} Mpps per core at 1 M sessions, source "
                      "included", f"{mpps:.2f}", mpps >= GOAL_MPPS))
        found.append(("1 M mappings at 1 M/s",
                      f"{created_per_s(null) / 1e6:.2f}",
                      created_per_s(null) >= GOAL_CREATED_PER_S))
        found.append(("0.9 of the rate while a tenth more fragments come that "
                      "belong to nothing", f"{null['flood']:.3f}",
                      null["flood"] >= 0.9))
        found.append(("lists of 4,096 rules at 0.91 of the rate with 4",
                      f"{null['rules']:.3f}", null["rules"] >= 1 / 1.1))
        found.append(("both sums right in all output",
                      f"{null['check']['wrong']} wrong",
                      null["check"]["wrong"] == 0))
    for pair in result.get("wire", []):
        goal = GOAL_RATIOS.get((pair["a"], pair["flows"]))
        if goal is not None:
            ratio = pair["ratio"]["median"]
            found.append((f"{goal:.2f} x {pair['a']} at {pair['flows']} flows",
                          f"{ratio:.3f}", ratio >= goal))
    return found


def show(result):
    report.show_machine(result["machine"],
                        f"; disturbed samples: {result['n_disturbed']}")
    if "null" in result:
        show_null(result["null"])
    for pair in result.get("wire", []):
        report.show_pairs(f"veth to veth, 60-byte frames, {pair['flows']} "
                          "flows", pair)
    report.show_goals(goals(result))


def main():
    args = parse(sys.argv[1:])
    if "wire" in args.parts:
        command.need_root("; --only null does not")
        command.need_program("nft", "nftables")
    result = measure(args)
    show(result)
    command.write_json(args.json, result)
    null = result.get("null")
    return 0 if null is None or null["check"]["wrong"] == 0 else 1


if __name__ == "__main__":
    sys.exit(command.run("nat", main))
