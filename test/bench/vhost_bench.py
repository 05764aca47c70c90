#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench vhost: vhost-user ports beside DPDK's.

device: the forwarder is the back end (vhost: beside net_vhost), the peer DPDK's
virtio_user. driver: the forwarder is the front end (virtio-user: beside
virtio_user), the peer DPDK's net_vhost. The peer (dpdk_peer.c) sends frames
through one socket and counts those that the forwarder sends through the other,
each side on a core of its own; samples of mr-l2fwd and of dpdk-testpmd (io) take
turns. count: instructions per frame of both, by callgrind. latency and restart:
of back ends, seen from virtio-user: ports. guests: TCP and pings between two
emulated machines, with the kernel's bridge as a third.
"""
import sys

import command
import contestants as who
import report
import vhost_count
import vhost_delay
import vhost_guests
import vhost_lab as lab
from topology import BenchError

SIDES = ("device", "driver")
# Of DPDK's rate at least, and of its instructions at most; at larger frames, a
# back end's rate is that of copying.
GOAL_RATE, GOAL_RATE_COPY, GOAL_COUNT = 1.1, 1.0, 0.6
# Goals of latency and restart: no longer than with testpmd.
GOAL_DELAY = 1.0
# Of the rates of testpmd and of the bridge at least.
GOAL_GUESTS = 1.0


def parse():
    parser = command.parser("vhost", __doc__, (
        ("pairs", 9, 3, "samples of each"),
        ("seconds", 2.0, 1.0, "per sample"),
        ("ring", 256, 256, "descriptors per ring"),
        ("frames", 32000, 32000, "per count"),
        ("tcp-mib", 256, 64, "per transfer between guests"),
        ("pings", 200, 50, "between guests, per sample")),
        "device,driver,count,latency,restart,guests", True)
    parser.add_argument("--layouts", default="split,packed", metavar="LIST",
                        help="of the rings (split,packed)")
    parser.add_argument("--sizes", default="64,512,1518", metavar="LIST",
                        help="of frames with FCS (64,512,1518)")
    parser.add_argument("--bursts", default="32", metavar="LIST",
                        help="of count (32)")
    args = command.parse(parser)
    args.layouts = args.layouts.split(",")
    args.sizes = [int(word) for word in args.sizes.split(",")]
    args.bursts = [int(word) for word in args.bursts.split(",")]
    return args


def contestants(part):
    """DPDK's forwarder and ours."""
    kind = {"device": "vhost", "driver": "virtio-user"}[part]
    return lab.testpmd(part), lab.millrace(kind)


def measure_rates(args, where):
    rows = []
    for part in [part for part in SIDES if part in args.parts]:
        for layout in args.layouts:
            for size in args.sizes:
                print(f"{part}, {layout}, {size} bytes", flush=True)
                samples = who.turns(where, contestants(part), args.pairs,
                                    args, (layout, size), lab.undisturbed)
                rows.append({
                    "part": part, "layout": layout, "size": size,
                    "samples": samples,
                    "ratio": report.ratio(samples, *reversed(samples))})
    return rows


def measure(args, where, result):
    result["rates"] = measure_rates(args, where)
    if "count" in args.parts:
        result["count"] = vhost_count.measure(where, SIDES, args.layouts,
                                              args.bursts, args.frames)
    back_ends = [*contestants("device"),
                 lab.millrace("vhost", "--idle", "poll", name="poll")]
    if "latency" in args.parts:
        result["latency"] = vhost_delay.rounds(
            where, back_ends, args, vhost_delay.latency, args.pairs)
    if "restart" in args.parts:
        result["restart"] = vhost_delay.rounds(
            where, back_ends[:2], args, vhost_delay.restart, args.pairs)
    if "guests" in args.parts:
        result["guests"] = vhost_guests.measure(args)
    result["n_disturbed"] = args.n_disturbed


def show_rates(rows):
    print(f"\n{'':22} {'testpmd':>16} {'mr-l2fwd':>16}\n"
          f"{'part, ring, bytes':22} {'Mpps':>7} {'full %':>8} {'Mpps':>7} "
          f"{'full %':>8} {'ratio':>7} {'95 %':>15}")
    for row in rows:
        ratio = row["ratio"]
        print(f"{row['part']:7} {row['layout']:6} {row['size']:7} " +
              " ".join(f"{report.median_of(one, 'mpps'):7.3f} "
                       f"{report.median_of(one, 'peer_full_pct'):8.1f}"
                       for one in row["samples"].values()) +
              f" {ratio['median']:7.3f} {ratio['low']:6.3f} to "
              f"{ratio['high']:.3f}")
    print("full: rounds of the peer in which it could not send, because the "
          "forwarder was slower")


def goals(result):
    """The goals in docs/performance.md."""
    found = [report.at_least(
        f"{row['part']}, {row['layout']}, {row['size']}: by testpmd",
        row["ratio"]["median"],
        GOAL_RATE_COPY if row["part"] == "device" and row["size"] > 64
        else GOAL_RATE) for row in result["rates"]]
    found += [report.at_most(
        f"{row['part']}, {row['layout']}, bursts of {row['burst']}: "
        "instructions by DPDK's", row["ratio"], GOAL_COUNT)
        for row in result.get("count", [])]
    found += vhost_delay.goals(result, GOAL_DELAY)
    if "guests" in result:
        found += vhost_guests.goals(result["guests"], GOAL_GUESTS)
    return found


def show(result):
    report.show_machine(result, "; huge pages for DPDK: " +
                        ("yes" if result["huge_pages"] else "no"))
    if result["rates"]:
        show_rates(result["rates"])
    if "count" in result:
        vhost_count.show(result["count"])
    if "latency" in result:
        vhost_delay.show_latency(result["latency"])
    if "restart" in result:
        vhost_delay.show_restart(result["restart"])
    if "guests" in result:
        vhost_guests.show(result["guests"])
    report.show_goals(goals(result))


def main():
    args = parse()
    command.need_program("dpdk-testpmd", "dpdk-dev")
    command.need_program("valgrind", "valgrind")
    if "guests" in args.parts:
        command.need_root()
        command.need_program("iperf3", "iperf3")
        vhost_guests.need_machine()
    if not (args.build / "test/bench/dpdk_peer").exists():
        raise BenchError("test/bench/dpdk_peer is not built (libdpdk?)")
    result = command.document()
    with lab.HugePages() as pages, lab.Lab(args.build) as where:
        args.has_huge_pages = result["huge_pages"] = pages.wait(10)
        if args.has_huge_pages:
            args.before_each = pages.insist
        measure(args, where, result)
    show(result)
    command.write_json(args.json, result)
    return 0


if __name__ == "__main__":
    sys.exit(command.run("vhost", main))
