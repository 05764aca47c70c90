#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench nat: address translation, without the kernel and beside it.

First the packet path on null: ports over a million sessions. Then mr-nat
between veths: interleaved pairs with mr-l2fwd and with nftables masquerade.
docs/performance.md says what is measured and why. The second part needs root.
"""
import statistics
import sys

import command
import nat_null
import nat_wire
import report

GOAL_RATIOS = {("mr-l2fwd", 1): 0.92, ("mr-l2fwd", 1000): 0.92,
               ("mr-l2fwd", 50000): 0.88, ("nftables", 1): 1.3,
               ("nftables", 1000): 1.3, ("nftables", 50000): 1.8}


def parse():
    parser = command.parser("nat", __doc__, (
        ("pairs", 15, 3, "samples of each"),
        ("seconds", 5.0, 1.0, "per sample between veths")), "null,wire", True)
    parser.add_argument("--flows", metavar="N,...", default="1,1000,50000",
                        help="default: %(default)s")
    return command.parse(parser)


def measure(args):
    result = command.document()
    if "null" in args.parts:
        result["null"] = nat_null.measure(args)
    if "wire" in args.parts:
        result["wire"] = nat_wire.measure(args)
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
    """The goals in docs/performance.md."""
    found = []
    if "null" in result:
        null = result["null"]
        wrong = null["check"]["wrong"]
        found += [
            report.at_least("Mpps per core at 1 M sessions, source included",
                            1e3 / null["rows"][0]["nat_ns"], 12, 2),
            report.at_least("M mappings created per second",
                            created_per_s(null) / 1e6, 1, 2),
            report.at_least("of the rate while a tenth more fragments come "
                            "that belong to nothing", null["flood"], 0.9),
            report.at_least("of the rate with lists of 4,096 rules in place "
                            "of 4", null["rules"], 0.91),
            ("both sums right in all output", f"{wrong} wrong", wrong == 0)]
    for one in result.get("wire", []):
        for (other, flows), goal in GOAL_RATIOS.items():
            if flows == one["flows"]:
                found.append(report.at_least(
                    f"mr-nat by {other} at {flows} flows", report.ratio(
                        one["samples"][other], "mr-nat", other)["median"],
                    goal))
    return found


def show(result):
    report.show_machine(result)
    if "null" in result:
        show_null(result["null"])
    for one in result.get("wire", []):
        for samples in one["samples"].values():
            report.show_samples("veth to veth, 60-byte frames, "
                                f"{one['flows']} flows", samples)
    report.show_goals(goals(result))


def main():
    args = parse()
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
