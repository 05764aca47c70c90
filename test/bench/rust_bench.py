#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench rust: the example l2fwd in Rust beside the one in C.

Both run for a time and print their rate: on null:, where a frame costs what
the library and the binding cost, in pairs C/Rust, Rust/C; and between veths at
overload, as ./mr bench l2fwd does. Needs root for veths.
"""
import os
import subprocess
import sys

import command
import contestants as who
import report
from topology import BenchError, Topology

UNHANDLED = {"ethertype": 0x88b5}
TOP = command.BUILD.parent


def parse():
    return command.parse(command.parser("rust", __doc__, (
        ("rounds", 60, 5, "pairs on null:"),
        ("pairs", 15, 3, "samples of each between veths"),
        ("seconds", 0.3, 0.1, "per sample on null:; five times that on veths")),
        "null,veth", True))


def programs(build):
    """Commands by language; cargo builds the Rust one."""
    library = build / "lib/link"
    env = {**os.environ, "LD_LIBRARY_PATH": str(library),
           "PKG_CONFIG_PATH": str(build / "meson-uninstalled"),
           "CARGO_TARGET_DIR": str(build / "bindings/rust")}
    done = subprocess.run(
        ["cargo", "build", "--release", "--example", "l2fwd"],
        cwd=TOP / "bindings/rust", env=env, check=False)
    if done.returncode != 0:
        raise BenchError("cargo failed")
    os.environ["LD_LIBRARY_PATH"] = str(library)
    return {"C": build / "test/bench/l2fwd-timed",
            "Rust": build / "bindings/rust/release/examples/l2fwd"}


def rate(program, args):
    """Mframes/s between two null: ports."""
    done = subprocess.run(
        ["nice", "-n", str(args.nice), program, "null:", "null:",
         str(args.seconds)], stdout=subprocess.PIPE, text=True, check=True)
    return int(done.stdout.split()[0]) / 1e6


def measure_null(args, found):
    samples = {name: [] for name in found}
    for i in range(args.rounds):
        for name in list(found)[::-1 if i % 2 else 1]:
            samples[name].append(rate(found[name], args))
    return samples


def show(name, samples, goal, digits):
    """Medians, the best of each, and the ratio of pairs."""
    for language, rates in samples.items():
        print(f"{name}, {language}: median {report.statistics.median(rates):.{digits}f}, "
              f"best {max(rates):.{digits}f} Mframes/s")
    ratio = report.ratio_of(list(zip(samples["C"], samples["Rust"])))
    print(f"{name}, Rust/C: {ratio['median']:.3f} ({ratio['low']:.3f} to "
          f"{ratio['high']:.3f}) of {ratio['n_pairs']} pairs; best/best "
          f"{max(samples['Rust']) / max(samples['C']):.3f}; goal {goal}")


def main():
    args = parse()
    found = programs(args.build)
    result = command.document()
    if "null" in args.parts:
        result["null"] = measure_null(args, found)
        show("null:", result["null"], 0.97, 1)
    if "veth" in args.parts:
        forwarders = [who.Contestant(name, [
            str(program), "xdp:p0,csum=off", "xdp:p1,csum=off", "3600"])
            for name, program in found.items()]
        args.seconds *= 5
        with Topology() as topology:
            taken = who.turns(topology, forwarders, args.pairs, args, UNHANDLED)
        result["veth"] = {name: [one["mpps"] for one in samples]
                          for name, samples in taken.items()}
        show("veth", result["veth"], 0.99, 3)
    command.write_json(args.json, result)
    return 0


if __name__ == "__main__":
    sys.exit(command.run("rust", main))
