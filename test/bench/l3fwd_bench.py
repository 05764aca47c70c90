#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench l3fwd: the example router beside the kernel's, between veths.

Interleaved pairs A/B/B/A, each sample a fresh router with the same two links
and a gateway, on one core. docs/performance.md says what is measured. Needs
root.
"""
import pathlib
import sys
import tempfile

import command
import contestants as who
import nat_wire
import report
from topology import Topology

ROUTES = f"""\
{nat_wire.INSIDE} 0
{nat_wire.OUTSIDE} 1
0.0.0.0/0 {nat_wire.GATEWAY}
"""
# The gateway is nobody: this answers for it until the router has asked.
ANSWER = f"""\
import socket, sys, time
mac = bytes.fromhex({nat_wire.GATEWAY_MAC!r}.replace(":", ""))
own = bytes.fromhex(sys.argv[1].replace(":", ""))
reply = own + mac + bytes.fromhex("0806000108000604" "0002") + mac + \\
    socket.inet_aton({nat_wire.GATEWAY!r}) + own + bytes(22)
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
link.bind(("s0", 0))
while True:
    link.send(reply)
    time.sleep(0.1)
"""


class Example(who.Contestant):
    """examples/l3fwd.c, with one worker: a veth has one queue here."""

    def start(self, topology):
        mac = topology.run("f", "cat", "/sys/class/net/p1/address").strip()
        answer = topology.start("s", [sys.executable, "-c", ANSWER, mac])
        running = super().start(topology)
        stop = running.stop

        def stop_both():
            answer.kill()
            answer.wait()
            return stop()

        running.stop = stop_both
        return running


class Kernel:
    """The kernel's forwarding as a contestant."""

    name = "kernel"

    def start(self, topology):
        return nat_wire.Router(self.name, topology, rules="")


def parse():
    return command.parse(command.parser("l3fwd", __doc__, (
        ("pairs", 15, 3, "samples of each"),
        ("seconds", 5.0, 1.0, "per sample")), "", True))


def main():
    args = parse()
    command.need_root()
    result = command.document()
    with tempfile.TemporaryDirectory(prefix="mrb") as folder, \
            Topology() as topology:
        routes = pathlib.Path(folder) / "routes"
        routes.write_text(ROUTES)
        ours = Example("l3fwd", [
            "taskset", "-c", str(who.FORWARDER_CORE),
            str(args.build / "examples/example-l3fwd"), str(routes),
            "xdp:p0", "xdp:p1"])
        result["samples"] = who.turns(topology, (Kernel(), ours), args.pairs,
                                      args, {"flows": 1000})
    result["n_disturbed"] = args.n_disturbed
    report.show_machine(result)
    report.show_samples("veth to veth, 60-byte frames, 1000 flows",
                        result["samples"])
    command.write_json(args.json, result)
    return 0


if __name__ == "__main__":
    sys.exit(command.run("l3fwd", main))
