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
import null_ports
from topology import BenchError

DEVICES = ["net_null0", "net_null1"]
GOAL = 0.9


def parse():
    parser = command.parser("dpdk", __doc__, (
        ("pairs", 15, 15, "samples of each"),
        ("seconds", 3.0, 3.0, "of mr-l2fwd per sample")))
    parser.add_argument("--bursts", default="32,64",
                        help="frames per burst, of both; default 32,64")
    return command.parse(parser)


def memory_of(pid):
    """MiB of memory: resident, and huge pages, which are counted separately."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    kib = {line.split(":")[0]: int(line.split()[1])
           for line in text.splitlines() if line.endswith(" kB")}
    return {"resident": kib["VmRSS"] / 1024,
            "huge": kib.get("HugetlbPages", 0) / 1024}


def memory(argv):
    """Memory of a forwarder that has run for two seconds."""
    with subprocess.Popen(argv, stdin=subprocess.PIPE,
                          stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        try:
            time.sleep(2)
            return memory_of(process.pid)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(20)


def convert(build, burst):
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
    null_ports.show("net_null to net_null: testpmd io, mr-l2fwd patch",
                    result["rows"])
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
    args = parse()
    bursts = [int(word) for word in args.bursts.split(",")]
    if not (args.build / "lib/link/libmillrace-dpdk.so").exists():
        raise BenchError("the dpdk driver is not built (libdpdk?)")
    result = command.document()
    ports = [f"dpdk:{device}" for device in DEVICES]
    with who.HugePages() as huge_pages:
        result["rows"] = [null_ports.compare(
            args.pairs, burst, huge_pages, lambda burst=burst:
            null_ports.mr_l2fwd(args.build, burst, args.seconds, ports))
            for burst in bursts]
        result["convert"] = {burst: convert(args.build, burst)
                             for burst in bursts}
        result["memory"] = {
            "testpmd": memory(who.testpmd_command(
                DEVICES, huge_pages=huge_pages.top_up())),
            "mr-l2fwd": memory([str(args.build / "apps/l2fwd/mr-l2fwd"),
                                *ports])}
    show(result)
    command.write_json(args.json, result)
    return 0


if __name__ == "__main__":
    sys.exit(command.run("dpdk", main))
