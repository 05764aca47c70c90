# SPDX-License-Identifier: BSD-3-Clause
"""null: to null: beside testpmd on net_null: what the user part costs."""
import json
import os
import re
import shlex
import signal
import statistics
import subprocess
import tempfile
import time

import contestants as who
import figures
from topology import BenchError, die_with_parent, end

PERIODS_S = 4       # of testpmd's own statistics; the first is warm-up
OUR_SECONDS = 1.0


def install_and_build(build, folder, source):
    """null_bench against the installed library, as a user would build it."""
    def run(argv, **env):
        done = subprocess.run(argv, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, check=False,
                              env={**os.environ, **env})
        if done.returncode != 0:
            raise BenchError(f"{argv[0]}: {done.stdout.strip()}")
        return done.stdout

    run(["meson", "install", "-C", str(build), "--no-rebuild", "--quiet"],
        DESTDIR=folder)
    found = [root for root, _, names in os.walk(folder)
             if "libmillrace.pc" in names]
    if not found:
        raise BenchError("the installed library has no libmillrace.pc")
    flags = run(["pkg-config", "--cflags", "--libs", "libmillrace"],
                PKG_CONFIG_PATH=found[0], PKG_CONFIG_SYSROOT_DIR=folder)
    program = os.path.join(folder, "null_bench")
    run(["cc", "-O2", "-o", program, str(source), *shlex.split(flags)])
    return program, os.path.dirname(found[0])


def ours(program, library_path, burst):
    """One sample of null_bench."""
    done = subprocess.run(
        ["taskset", "-c", str(who.FORWARDER_CORE), program,
         "--seconds", str(OUR_SECONDS), "--burst", str(burst)],
        stdout=subprocess.PIPE, text=True, check=True,
        env={**os.environ, "LD_LIBRARY_PATH": library_path})
    return json.loads(done.stdout.splitlines()[-1])["ns_per_frame"]


def testpmd(huge_pages, burst):
    """One sample of testpmd: its own Tx-pps of both ports, a second each."""
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
    # Two ports per period; the first period counts from before the start.
    per_period = [a + b for a, b in zip(rates[0::2], rates[1::2])][2:]
    if not per_period or min(per_period) == 0:
        raise BenchError("testpmd on net_null printed no rate: " + text[-200:])
    return 1e9 / statistics.median(per_period)


def mr_l2fwd(build, seconds=3, ports=("null:a", "null:b"), argv=None):
    """mr-l2fwd itself on two ports that always have frames: ns per frame, both
    directions. argv: its command line up to the ports."""
    argv = argv or [str(build / "apps/l2fwd/mr-l2fwd"), "--json",
                    "--cores", str(who.FORWARDER_CORE)]
    argv = [*argv, "--duration", str(seconds), *ports]
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


def measure(args, build):
    """Interleaved samples of both, testpmd's burst and its best one."""
    source = build.parent / "test/bench/null_bench.c"
    n = 2 if args.quick else 5
    with tempfile.TemporaryDirectory(prefix="mrb") as folder:
        program, library_path = install_and_build(build, folder, source)
        rows = []
        for burst in (32, 64, 256):
            pairs = []
            for _ in range(n):
                args.huge_pages.top_up()
                theirs = testpmd(args.has_huge_pages, burst)
                pairs.append((theirs, ours(program, library_path, burst)))
            rows.append({
                "burst": burst,
                "testpmd_ns": statistics.median(a for a, _ in pairs),
                "ours_ns": statistics.median(b for _, b in pairs),
                "ratio": figures.ratio([(b, a) for a, b in pairs]),
                "pairs": pairs,
            })
            print(f"  null, burst {burst}: testpmd "
                  f"{rows[-1]['testpmd_ns']:.2f}, null_bench "
                  f"{rows[-1]['ours_ns']:.2f} ns per frame", flush=True)
    return {"rows": rows, "mr_l2fwd_ns": mr_l2fwd(build)}
