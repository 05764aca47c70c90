#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench tcp: TCP between two namespaces through mr-l2fwd, in turns.

iperf3, offloads as the kernel sets them: between veths (xdp: ports), between
taps, between taps whose segments arrive merged, and from such a tap to a veth,
for which the library cuts them; from a veth to such a tap, for which mr-l2fwd
merges them, and to one without. Needs root.
"""
import json
import statistics
import subprocess
import sys
import time

import command
import contestants as who
import report
from topology import BenchError, Topology, call, die_with_parent, end

VETH, TAP = "xdp:p{}", "tap:p{}"
CONTESTANTS = {"xdp": (VETH, VETH), "tap": (TAP, TAP),
               "tap,tso": (TAP + ",tso", TAP + ",tso"),
               "tap,tso to xdp": (TAP + ",tso", VETH),
               "xdp to tap,tso": (VETH, TAP + ",tso"),
               "xdp to tap": (VETH, TAP)}
GOAL = 3.0
LIMIT_S = 10


def inside(namespace, *argv):
    return ["ip", "netns", "exec", namespace, *argv]


class Pair(Topology):
    """Two hosts, the forwarder between them, while the with statement lasts."""

    def __init__(self, args, specs):
        super().__init__()
        self.args = args
        self.specs = [spec.format(i) for i, spec in enumerate(specs)]
        self.middle, *self.hosts = (self.namespaces[c] for c in "fgs")
        self.forwarder = None

    def __exit__(self, *_):
        if self.forwarder is not None:
            end(self.forwarder)
        super().__exit__()

    def make(self):
        for name in (self.middle, *self.hosts):
            call("ip", "netns", "add", name)
        for i, spec in enumerate(self.specs):
            if spec.startswith("xdp:"):
                call("ip", "-n", self.middle, "link", "add", f"p{i}", "type",
                     "veth", "peer", "name", "h0", "netns", self.hosts[i])
                call("ip", "-n", self.middle, "link", "set", f"p{i}", "up")
        self.forwarder = subprocess.Popen(
            inside(self.middle,
                   *who.l2fwd_command(self.args.build, ports=self.specs)),
            preexec_fn=die_with_parent, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)
        for line in self.forwarder.stderr:  # ports and map: it is ready
            if line.startswith("worker "):
                break
        else:
            raise BenchError(f"mr-l2fwd {' '.join(self.specs)} did not start")
        for i, (host, spec) in enumerate(zip(self.hosts, self.specs)):
            if spec.startswith("tap:"):
                call("ip", "-n", self.middle, "link", "set", f"p{i}", "netns",
                     host, "name", "h0")
            call("ip", "-n", host, "address", "add", f"10.77.0.{i + 1}/24",
                 "dev", "h0")
            call("ip", "-n", host, "link", "set", "h0", "up")

    def gbits(self):
        """Of one transfer, as the receiver counts it."""
        server = subprocess.Popen(
            inside(self.hosts[1], "iperf3", "--server", "--one-off"),
            preexec_fn=die_with_parent, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + LIMIT_S
        while ":5201" not in call(*inside(self.hosts[1], "ss", "-Hltn")):
            if time.monotonic() > deadline:
                raise BenchError("iperf3 does not listen")
            time.sleep(0.01)
        try:
            said = json.loads(call(*inside(
                self.hosts[0], "iperf3", "--json", "--client", "10.77.0.2",
                "--time", str(int(self.args.seconds)))))
        finally:
            end(server)
        if "error" in said:
            raise BenchError(f"iperf3: {said['error']}")
        return said["end"]["sum_received"]["bits_per_second"] / 1e9


def main():
    args = command.parse(command.parser("tcp", __doc__, (
        ("rounds", 9, 2, "transfers through each"),
        ("seconds", 3.0, 2.0, "per transfer"))))
    command.need_root()
    command.need_program("iperf3", "iperf3")
    result = command.document(gbits={name: [] for name in CONTESTANTS})
    for _ in range(args.rounds):
        for name, specs in CONTESTANTS.items():
            with Pair(args, specs) as pair:
                result["gbits"][name].append(pair.gbits())
    print(f"TCP, Gbit/s: {args.rounds} transfers through each, in turns")
    base = result["gbits"]["xdp"]
    for name, taken in result["gbits"].items():
        times = report.ratio_of(list(zip(base, taken)))
        print(f"  {name:15} {statistics.median(taken):6.2f} "
              f"({min(taken):.2f} to {max(taken):.2f})  x "
              f"{times['median']:.2f} ({times['low']:.2f} to "
              f"{times['high']:.2f})")
        if name == "tap,tso":
            reached = times["median"]
    report.show_machine(result)
    found = [report.at_least("tap,tso beside xdp", reached, GOAL)]
    report.show_goals(found)
    command.write_json(args.json, result)
    return 0 if all(ok for _, _, ok in found) else 1


if __name__ == "__main__":
    sys.exit(command.run("tcp", main))
