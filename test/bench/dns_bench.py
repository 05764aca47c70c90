#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench dns: examples/dns.c beside servers on a UDP socket.

mr-bench sends queries to p0, from core 0, as fast as it can; the servers take
turns on core 1. All have the same function answer(). One socket
server reads and writes up to 64 datagrams per system call, the other one. The
answers that come back to g0 are counted. Needs root.
"""
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile

import command
import contestants as who
import report
from topology import ROUTER_MAC, Topology, call, end

CLIENT, SERVER, CLIENT_MAC = "198.18.0.2", "198.18.0.1", "02:00:00:00:00:01"
N_QUERIES = 256


def parse():
    return command.parse(command.parser("dns", __doc__, (
        ("pairs", 15, 3, "samples of each"),
        ("seconds", 3.0, 1.0, "per sample")), is_nice=True))


def query(i):
    """The frame of query i; each has its own name and source port."""
    label = f"192-0-2-{i % 256}".encode()
    dns = struct.pack("!6H", i, 0x100, 1, 0, 0, 0) + bytes([len(label)]) + \
        label + b"\7example\3org\0" + struct.pack("!2H", 1, 1)
    ip = struct.pack("!2B3H2BH4s4s", 0x45, 0, 28 + len(dns), i, 0, 64, 17, 0,
                     *map(socket.inet_aton, (CLIENT, SERVER)))
    total = sum(struct.unpack("!10H", ip))
    total = (total & 0xffff) + (total >> 16)
    ip = ip[:10] + struct.pack("!H", ~total & 0xffff) + ip[12:]
    macs = bytes.fromhex((ROUTER_MAC + CLIENT_MAC).replace(":", ""))
    return macs + b"\x08\0" + ip + struct.pack(
        "!4H", 1024 + i, 53, 8 + len(dns), 0) + dns


def write_queries(path):
    """A capture of them (pcap, microseconds)."""
    records = (struct.pack("<4I", 0, 0, len(frame), len(frame)) + frame
               for frame in map(query, range(N_QUERIES)))
    path.write_bytes(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1)
                     + b"".join(records))


class Client(Topology):
    """p0 has an address; g0 counts what comes back."""

    def __init__(self):
        super().__init__(is_two=True, sink="g0")

    def make(self):
        super().make()
        self.run("g", "ip", "link", "set", "g0", "address", CLIENT_MAC)
        self.run("f", "ip", "address", "add", f"{SERVER}/24", "dev", "p0")
        self.run("f", "ip", "neighbour", "add", CLIENT, "lladdr", CLIENT_MAC,
                 "dev", "p0", "nud", "permanent")


class Running(who.Running):
    """A server, and the queries that it gets."""

    def __init__(self, server, topology):
        super().__init__(server.name, server.argv, topology)
        self.client = topology.start("g", server.client,
                                     stdout=subprocess.DEVNULL)
        who.favour([self.client], server.niceness)

    def stop(self):
        end(self.client)
        return super().stop()


class Server(who.Contestant):
    """A server that gets queries as long as it runs."""

    def __init__(self, name, argv, args, queries):
        super().__init__(name, ["taskset", "-c", str(who.FORWARDER_CORE),
                                *map(str, argv)])
        self.niceness = args.nice
        self.client = [args.bench, "tx", "xdp:g0", "--cores",
                       str(who.GENERATOR_CORE), "--unstamped", "--quiet",
                       "--stream", f"pcap={queries}"]

    def start(self, topology):
        return Running(self, topology)


def measure(args):
    result = command.document()
    with tempfile.TemporaryDirectory(prefix="mrb") as folder, \
            Client() as topology:
        queries = pathlib.Path(folder) / "queries.pcap"
        write_queries(queries)
        plain = args.build / "test/bench/dns-socket"
        servers = [
            Server("socket", [plain, SERVER, 1], args, queries),
            Server("socket, 64", [plain, SERVER, 64], args, queries),
            Server("dns", [args.build / "examples/example-dns",
                           "xdp:p0,filter=ip and udp dst port 53"], args,
                   queries)]
        result["samples"] = who.turns(topology, servers, args.pairs, args, None)
    result["n_disturbed"] = args.n_disturbed
    return result


def main():
    args = parse()
    command.need_root()
    result = measure(args)
    report.show_machine(result)
    report.show_samples("answers to DNS queries between veths",
                        result["samples"])
    command.write_json(args.json, result)
    return 0


if __name__ == "__main__":
    sys.exit(command.run("dns", main))
