#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench dpdk: mr-l2fwd on dpdk: ports beside testpmd on the same devices.

On net_null, two ports, one core, interleaved: testpmd's mode io, with its own
mempools and their caches, against mr-l2fwd's mode patch through the view of our
pool. Then the memory that each has while it forwards, and what a frame costs
between DPDK's burst and ours (test/bench/dpdk_convert.c).
"""
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import time

import command
import contestants as who
import figures
import null_ports
import report

DEVICES = ["net_null0", "net_null1"]
GOAL = 0.9


def parse(argv):
    parser = command.parser("dpdk", __doc__)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=3,
                        help="of mr-l2fwd per sample")
    parser.add_argument("--bursts", default="32,64",
                        help="frames per burst, of both; default 32,64")
    return parser.parse_args(argv)


def l2fwd_command(build, burst):
    return [str(build / "apps/l2fwd/mr-l2fwd"), "--json", "--mode", "patch",
            "--cores", str(who.FORWARDER_CORE), "--burst", str(burst)]


def memory_of(pid):
    """MiB: resident, and in huge pages, which are not part of that."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    kib = {line.split(":")[0]: int(line.split()[1])
           for line in text.splitlines() if line.endswith(" kB")}
    return {"resident": kib["VmRSS"] / 1024,
            "huge": kib.get("HugetlbPages", 0) / 1024}


def memory(argv, ports=()):
    """Of a forwarder that has run for two seconds."""
    with subprocess.Popen([*argv, *ports], stdin=subprocess.PIPE,
                          stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        try:
            time.sleep(2)
            return memory_of(process.pid)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(20)


def compare(args, build, burst):
    """Pairs of (testpmd, ours) in ns per frame."""
    samples = []
    ports = [f"dpdk:{device}" for device in DEVICES]
    for i in range(args.pairs):
        def theirs():
            return null_ports.testpmd(args.has_huge_pages, burst)

        def ours():
            return null_ports.mr_l2fwd(build, args.seconds, ports,
                                       l2fwd_command(build, burst))
        args.huge_pages.top_up()
        # Who goes first changes, so that a drift hits both alike.
        if i % 2 == 0:
            samples.append((theirs(), ours()))
        else:
            b = ours()
            samples.append((theirs(), b))
        print(f"  burst {burst}, pair {i + 1} of {args.pairs}: testpmd "
              f"{samples[-1][0]:.2f}, mr-l2fwd {samples[-1][1]:.2f} ns per "
              "frame", flush=True)
    # Rates: ours over theirs is their time over ours.
    return {"burst": burst, "samples": samples,
            "testpmd_ns": statistics.median(a for a, _ in samples),
            "ours_ns": statistics.median(b for _, b in samples),
            "rate": figures.ratio([(b, a) for a, b in samples])}


def convert(build, burst):
    """Medians of five runs of dpdk_convert."""
    runs = []
    for _ in range(5):
        done = subprocess.run(
            ["taskset", "-c", str(who.FORWARDER_CORE),
             str(build / "test/bench/dpdk_convert"), str(burst)],
            stdout=subprocess.PIPE, text=True, check=True, timeout=60)
        runs.append(json.loads(done.stdout))
    return {key: statistics.median(run[key] for run in runs)
            for key in ("rx_ns", "tx_ns", "round_ns", "usual_ns",
                        "pinned_ns")}


def show(result):
    print("\nnet_null to net_null, ns per frame")
    print(f"{'burst':>5} {'testpmd io':>11} {'mr-l2fwd patch':>15} "
          f"{'rate':>6}  95 %")
    for row in result["rows"]:
        rate = row["rate"]
        print(f"{row['burst']:5} {row['testpmd_ns']:11.2f} "
              f"{row['ours_ns']:15.2f} {rate['median']:6.2f}  "
              f"{rate['low']:.2f} to {rate['high']:.2f}")
    print(f"goal: {GOAL} of testpmd's rate")
    print("\nbetween DPDK's burst and ours, ns per frame")
    for burst, row in result["convert"].items():
        print(f"burst {burst:>3}: mbuf to frame {row['rx_ns']:.2f}, frame to "
              f"mbuf {row['tx_ns']:.2f}")
    print("\nDPDK's bursts there and back in one program, ns per frame")
    for burst, row in result["convert"].items():
        print(f"burst {burst:>3}: ours {row['round_ns']:.2f}; DPDK alone, its "
              f"usual mempool {row['usual_ns']:.2f}, a pinned one "
              f"{row['pinned_ns']:.2f}")
    print("\nmemory, MiB: resident, and in huge pages besides")
    for name, row in result["memory"].items():
        print(f"{name:10} {row['resident']:8.1f} {row['huge']:8.1f}")


def main():
    args = parse(sys.argv[1:])
    build = pathlib.Path(args.build)
    bursts = [int(word) for word in args.bursts.split(",")]
    if not (build / "lib/link/libmillrace-dpdk.so").exists():
        sys.exit("mr bench dpdk: the dpdk driver is not built (libdpdk?)")
    result = {"machine": report.machine(), "argv": sys.argv[1:]}
    with who.HugePages() as huge_pages:
        args.huge_pages = huge_pages
        args.has_huge_pages = huge_pages.top_up()
        result["rows"] = [compare(args, build, burst) for burst in bursts]
        result["convert"] = {burst: convert(build, burst)
                             for burst in bursts}
        result["memory"] = {
            "testpmd": memory(who.testpmd_command(
                DEVICES, huge_pages=args.has_huge_pages)),
            "mr-l2fwd": memory(l2fwd_command(build, 32),
                               [f"dpdk:{device}" for device in DEVICES])}
    show(result)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(result, indent=1) + "\n")


main()
