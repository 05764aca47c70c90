# SPDX-License-Identifier: BSD-3-Clause
"""mr-nat between veths: beside nftables masquerade, and beside mr-l2fwd.

The translators have an address on each side; what is behind them has static
neighbours. The gateway's MAC address is nobody's, so that the sink gives up
all frames at the same place, those of mr-l2fwd as well.
"""
import json
import os
import pathlib
import tempfile
import types

import contestants as who
from topology import BenchError, Topology, call

GATEWAY, GATEWAY_MAC = "192.0.2.254", "02:00:00:00:00:99"
INSIDE, OUTSIDE = "198.18.0.254/24", "192.0.2.1/24"

NAT_YAML = f"""\
inside:
  port: xdp:p0
  addresses: {INSIDE}
outside:
  port: xdp:p1
  addresses: {OUTSIDE}
  gateway: {GATEWAY}
  neighbours: ["{GATEWAY} {GATEWAY_MAC}"]
"""

MASQUERADE = """\
table ip mrb {
  chain out {
    type nat hook postrouting priority srcnat;
    oifname "p1" counter masquerade
  }
}
"""


def napi_threads():
    """Process ids of the kernel's NAPI threads of any p0."""
    found = set()
    for path in pathlib.Path("/proc").glob("[0-9]*/comm"):
        try:
            if path.read_text().startswith("napi/p0-"):
                found.add(int(path.parent.name))
        except OSError:
            continue  # it has ended
    return found


class Router:
    """The kernel as a forwarder: one NAPI thread on one core."""

    def __init__(self, name, topology, rules=MASQUERADE):
        self.name = name
        self.rules = rules
        self.namespace = topology.namespaces["f"]
        ip = ("ip", "-n", self.namespace)
        call(*ip, "address", "add", INSIDE, "dev", "p0")
        call(*ip, "address", "add", OUTSIDE, "dev", "p1")
        call(*ip, "neighbour", "replace", GATEWAY, "lladdr", GATEWAY_MAC,
             "dev", "p1", "nud", "permanent")
        call(*ip, "route", "replace", "default", "via", GATEWAY)
        self.shell("sysctl -qw net.ipv4.ip_forward=1 "
                   "net.ipv4.conf.all.rp_filter=0")
        if rules:
            with tempfile.NamedTemporaryFile("w", suffix=".nft") as file:
                file.write(rules)
                file.flush()
                self.shell(f"nft -f {file.name}")
        before = napi_threads()
        # A veth without an XDP program has NAPI only with GRO.
        self.shell("ethtool -K p0 gro on")
        self.shell("echo 1 > /sys/class/net/p0/threaded")
        threads = napi_threads() - before
        if len(threads) != 1:
            raise BenchError("nftables: p0 has no NAPI thread")
        self.process = types.SimpleNamespace(pid=threads.pop())
        os.sched_setaffinity(self.process.pid, {who.FORWARDER_CORE})

    def shell(self, command):
        return call("ip", "netns", "exec", self.namespace, "sh", "-c", command)

    def check(self):
        """It never ends by itself."""

    def cpu(self):
        return who.cpu_of(self.process.pid)

    def scheduled(self):
        return who.scheduled_of(self.process.pid)

    def n_translated(self):
        """The number of flows: the hook sees the first packet of each."""
        listed = json.loads(self.shell("nft -j list table ip mrb"))
        return sum(part["counter"]["packets"]
                   for item in listed["nftables"] if "rule" in item
                   for part in item["rule"]["expr"] if "counter" in part)

    def stop(self):
        n_translated = self.n_translated() if self.rules else 1
        self.shell("echo 0 > /sys/class/net/p0/threaded; "
                   "ethtool -K p0 gro off; nft flush ruleset; "
                   "sysctl -qw net.ipv4.ip_forward=0; "
                   "ip address flush dev p0; ip address flush dev p1; "
                   "ip neighbour flush nud permanent dev p1")
        if n_translated == 0:
            raise BenchError("nftables: it has not translated anything")


class Nftables:
    """nftables masquerade as a contestant."""

    name = "nftables"

    def start(self, topology):
        return Router(self.name, topology)


def millrace_nat(build, folder, *options, name="mr-nat"):
    """mr-nat with one worker on the forwarder's core; folder: for its
    configuration file."""
    config = pathlib.Path(folder) / "nat.yaml"
    config.write_text(NAT_YAML)
    return who.Contestant(name, [
        str(build / "apps/nat/mr-nat"), "--json", "--instance",
        f"mrb{os.getpid()}", "--cores", str(who.FORWARDER_CORE),
        "--config", str(config), *options])


def measure(args):
    """mr-nat in turn with each of the other two, for each number of flows."""
    result = []
    others = (who.Contestant("mr-l2fwd", who.l2fwd_command(args.build)),
              Nftables())
    with tempfile.TemporaryDirectory(prefix="mrb") as folder, \
            Topology() as topology:
        nat = millrace_nat(args.build, folder)
        for flows in map(int, args.flows.split(",")):
            print(f"  {flows} flows", flush=True)
            result.append({"flows": flows, "samples": {
                other.name: who.turns(topology, (other, nat), args.pairs, args,
                                      {"flows": flows}) for other in others}})
    return result
