# SPDX-License-Identifier: BSD-3-Clause
"""null: to null: beside testpmd on net_null: the cost in user space."""
import json
import re
import signal
import statistics
import subprocess
import tempfile
import time

import contestants as who
import report
from topology import BenchError, die_with_parent, end

PERIODS_S = 4       # of testpmd's own statistics; the first is for warm-up


def testpmd(huge_pages, burst):
    """A sample of testpmd: its own Tx-pps of both ports."""
    argv = who.testpmd_command(
        ["net_null0", "net_null1"], huge_pages=huge_pages,
        extra=["--stats-period=1", f"--burst={burst}"])
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=log,
                                   stderr=subprocess.STDOUT,
                                   preexec_fn=die_with_parent)
        deadline = time.monotonic() + 30
        rates = []
        while len(rates) < 2 * (PERIODS_S + 1):
            time.sleep(0.1)
            log.seek(0)
            text = log.read()
            rates = [int(x) for x in re.findall(r"Tx-pps:\s+(\d+)", text)]
            if process.poll() is not None or time.monotonic() > deadline:
                break
        end(process, sig=signal.SIGINT)
        process.stdin.close()
    # A period has a line for each port; the first counts from before the
    # start.
    per_period = [a + b for a, b in zip(rates[0::2], rates[1::2])][2:]
    if not per_period or min(per_period) == 0:
        raise BenchError("testpmd on net_null printed no rate: " + text[-200:])
    return 1e9 / statistics.median(per_period)


def mr_l2fwd(build, burst, seconds=3, ports=("null:a", "null:b")):
    """mr-l2fwd on two ports that always have frames: ns per frame, both
    directions together."""
    argv = who.l2fwd_command(build, "--burst", str(burst), "--duration",
                             str(seconds), ports=ports)
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL, check=False,
                          timeout=seconds + 30)
    lines = [json.loads(line) for line in done.stdout.splitlines()
             if line.startswith("{")]
    if done.returncode != 0 or len(lines) < 2:
        raise BenchError(f"mr-l2fwd on {ports[0]} ended with "
                         f"{done.returncode}")

    def completed(line):
        return sum(queue["tx"]["completed"] for port in line["ports"]
                   for queue in port["queues"])
    first, last = lines[0], lines[-1]
    return 1e9 * (last["t"] - first["t"]) / (completed(last) -
                                              completed(first))


def compare(n, burst, huge_pages, ours):
    """n pairs of samples of testpmd and of ours(), in ns per frame. The order
    alternates, so that a drift affects both equally."""
    pairs = []
    for i in range(n):
        has_huge_pages = huge_pages.top_up()
        b = ours() if i % 2 else None
        a = testpmd(has_huge_pages, burst)
        pairs.append((a, b or ours()))
        print(f"  burst {burst}, pair {i + 1} of {n}: testpmd {a:.2f}, "
              f"mr-l2fwd {pairs[-1][1]:.2f} ns per frame", flush=True)
    # The ratio of rates, ours to theirs, is that of their time to ours.
    return {"burst": burst, "pairs": pairs,
            "testpmd_ns": statistics.median(a for a, _ in pairs),
            "ours_ns": statistics.median(b for _, b in pairs),
            "ratio": report.ratio_of([(b, a) for a, b in pairs])}


def measure(args):
    """Both, by burst size, including testpmd's default and its best size."""
    return [compare(2 if args.quick else 5, burst, args.huge_pages,
                    lambda burst=burst: mr_l2fwd(args.build, burst))
            for burst in (32, 64, 256)]


def show(what, rows):
    print(f"\n{what}, ns per frame")
    print(f"{'burst':>7} {'testpmd':>9} {'mr-l2fwd':>9} {'rate':>6}  95 %")
    for row in rows:
        rate = row["ratio"]
        print(f"{row['burst']:7} {row['testpmd_ns']:9.2f} "
              f"{row['ours_ns']:9.2f} {rate['median']:6.2f}  "
              f"{rate['low']:.2f} to {rate['high']:.2f}")
