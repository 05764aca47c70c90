# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench filter: the cost per frame of a filter in a port's XDP program.

The kernel repeatedly runs the program that an xdp: port attached to a veth on
one frame (BPF_PROG_RUN), alternating with the program of a port without filter.
A frame for the port also costs a redirection; one for the kernel does not.
attach=generic, because the kernel does not run programs that are loaded for a
device. Needs root.
"""
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import command
import contestants as who
import report
from topology import BenchError, Topology, call, die_with_parent, end

PORTS = " or ".join(f"port {port}" for port in range(7000, 7032))
NO_MATCH = 5000
# The port's options, and a UDP port that matches, if the filter has ports.
FILTERS = {
    "none": ("", NO_MATCH),
    "udp port 4789": ("filter=udp port 4789", 4789),
    "ports=53/udp+443/tcp": ("ports=53/udp+443/tcp", 53),
    "dst=10.0.0.0/8": ("dst=10.0.0.0/8", NO_MATCH),
    "the last of 32 ports": (f"filter={PORTS}", 7031),
}
# UDP over IPv4 from 10.0.0.1 to 10.0.0.2, a port in place of the braces.
FRAME = ("020000000002020000000001" "0800" "4500002e00000000401166bd0a000001"
         "0a000002" "0400{:04x}001a0000" + "00" * 18)
VERDICTS = {2: "to the kernel", 4: "to the port"}  # XDP_PASS, XDP_REDIRECT


class Port(Topology):
    """A port with a filter on one end of a veth."""

    def __init__(self, args, options):
        super().__init__()
        self.args = args
        self.spec = ",".join(["xdp:p0", "attach=generic", "csum=off"] +
                             ([options] if options else []))
        self.forwarder = None

    def __exit__(self, *_):
        if self.forwarder is not None:
            end(self.forwarder)
        super().__exit__()

    def make(self):
        inside = self.namespaces["f"]
        call("ip", "netns", "add", inside)
        call("ip", "-n", inside, "link", "add", "p0", "type", "veth", "peer",
             "name", "p1")
        for name in ("p0", "p1"):
            call("ip", "-n", inside, "link", "set", name, "up")
        self.forwarder = subprocess.Popen(
            ["ip", "netns", "exec", inside, *who.l2fwd_command(
                self.args.build, "--mode", "drop", "--idle", "interrupt",
                ports=[self.spec])],
            preexec_fn=die_with_parent, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)
        for line in self.forwarder.stderr:
            if line.startswith("worker "):
                break
        else:
            raise BenchError(f"mr-l2fwd {self.spec} did not start")
        link = json.loads(call("ip", "-n", inside, "-j", "link", "show",
                               "p0"))[0]
        self.program = str(link["xdp"]["prog"]["id"])

    def ns(self, udp_port):
        """(what the program decided, ns per frame)"""
        with tempfile.NamedTemporaryFile() as file:
            pathlib.Path(file.name).write_bytes(bytes.fromhex(
                FRAME.format(udp_port)))
            text = call("bpftool", "prog", "run", "id", self.program,
                        "data_in", file.name, "repeat", str(self.args.frames))
        found = re.search(r"Return value: (\d+), duration \(average\): (\d+)ns",
                          text)
        if found is None:
            raise BenchError(f"bpftool: {text.strip()}")
        return int(found.group(1)), int(found.group(2))


def main():
    args = command.parse(command.parser("filter", __doc__, (
        ("rounds", 11, 3, "samples of each, in turns"),
        ("frames", 1000000, 100000, "runs of a program in a sample"))))
    command.need_root()
    command.need_program("bpftool", "bpftool")
    taken = {}
    for _ in range(args.rounds):
        for name, (options, udp_port) in FILTERS.items():
            with Port(args, options) as port:
                for frame in {udp_port: 0, NO_MATCH: 0}:
                    to, ns = port.ns(frame)
                    taken.setdefault((name, VERDICTS[to]), []).append(ns)
    plain = taken["none", "to the port"]
    print(f"ns per frame, medians of {args.rounds}")
    result = command.document(rows=[])
    for (name, verdict), samples in taken.items():
        more = ""
        if verdict == "to the port":
            more = statistics.median(a - b for a, b in zip(samples, plain))
            more = f", {more:+g} beside none"
        print(f"  {name:22} {verdict:14} {statistics.median(samples):5g} "
              f"({min(samples)} to {max(samples)}){more}")
        result["rows"].append({"filter": name, "verdict": verdict,
                               "ns": samples})
    report.show_machine(result)
    command.write_json(args.json, result)
    return 0


if __name__ == "__main__":
    sys.exit(command.run("filter", main))
