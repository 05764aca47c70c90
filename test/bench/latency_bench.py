#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench latency: tails of forwarders between two namespaces, in turn.

mr-l2fwd, idle adaptive and poll, mr-nat, both with --offload on, dpdk-testpmd
and the kernel's bridge, and a veth with no device at all, at 10,000 and 100,000
frames/s of 64 bytes.
Rounds alternate in direction until --minutes are over. Needs root and a quiet
machine; it prints how much time the host took.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import command
import contestants as who
import nat_wire
import report
from topology import ROUTER_MAC, BenchError, Topology, call

RATES = {"10k": "10%", "100k": "100%"}
POINTS = ("p50", "p99", "p99.9", "max")
# (name, ours, theirs, rate, point, limit): medians of the ratio in each round.
GOALS = tuple(
    (f"{ours} / {theirs} at {rate}, {point}", ours, theirs, rate, point, most)
    for ours, theirs, rate, points, most in (
        ("l2fwd", "testpmd", "100k", ("p99", "p99.9"), 0.8),
        ("l2fwd", "l2fwd-poll", "10k", ("p50", "p99"), 1.3),
        ("nat", "l2fwd", "100k", ("p50", "p99"), 1.2),
        ("l2fwd-rules", "bridge", "100k", ("p99",), 1.0),
        ("nat-rules", "bridge", "100k", ("p99",), 1.0))
    for point in points)


def parse():
    return command.parse(command.parser("latency", __doc__, (
        ("minutes", 7.5, 0.0, "begin no round that would end later"),
        ("trial", 3.0, 3.0, "seconds at each rate"))))


def tester_cores():
    """Cores beside the forwarder's: to send and to receive, if there are two."""
    others = sorted(os.sched_getaffinity(0) - {who.FORWARDER_CORE})
    return others[-2:] if len(others) > 2 else others[:1]


class Cable:
    """Without a device: the tester and the kernel alone."""

    ports = ("xdp:c0", "xdp:c1")

    def __init__(self, topology):
        self.ip = ("ip", "-n", topology.namespaces["g"], "link")
        call(*self.ip, "add", "c0", "numtxqueues", "1", "numrxqueues", "1",
             "type", "veth", "peer", "name", "c1", "numtxqueues", "1",
             "numrxqueues", "1")
        for dev in ("c0", "c1"):
            call(*self.ip, "set", dev, "arp", "off", "up")

    def stop(self):
        call(*self.ip, "delete", "c0")


class Bridge:
    """The kernel's bridge, which works in p0's NAPI thread, on one core."""

    def __init__(self, namespace):
        self.namespace = namespace
        before = nat_wire.napi_threads()
        # The bridge does not forward frames to its own address.
        self.shell("ip link set p0 address 02:00:00:00:00:98 && "
                   "ethtool -K p0 gro on && "
                   "echo 1 > /sys/class/net/p0/threaded && "
                   "ip link add br0 type bridge mcast_snooping 0 && "
                   "ip link set p0 master br0 && "
                   "ip link set p1 master br0 && ip link set br0 up")
        for thread in nat_wire.napi_threads() - before:
            os.sched_setaffinity(thread, {who.FORWARDER_CORE})

    def shell(self, command):
        return call("ip", "netns", "exec", self.namespace, "sh", "-c", command)

    def stop(self):
        self.shell("ip link delete br0; echo 0 > /sys/class/net/p0/threaded; "
                   "ethtool -K p0 gro off; "
                   f"ip link set p0 address {ROUTER_MAC}")


def start(name, topology, argv):
    """Start the device under test; it counts how long it waits for its core."""
    if name == "cable":
        return Cable(topology)
    if name == "bridge":
        return Bridge(topology.namespaces["f"])
    running = who.Contestant(name, argv).start(topology)
    try:
        who.wait_until_attached(topology, running)
    except BaseException:
        running.stop()
        raise
    return running


def read_comm(path):
    try:
        return path.read_text()
    except OSError:
        return ""  # it has ended


def waited_s(running):
    """Seconds so far for which (the device, softirqs) waited for a core."""
    device = running.scheduled()[1] if hasattr(running, "scheduled") else 0
    softirqs = [path.parent.name
                for path in pathlib.Path("/proc").glob("[0-9]*/comm")
                if read_comm(path).startswith("ksoftirqd/")]
    return device, sum(who.scheduled_of(pid)[1] for pid in softirqs)


def sample(name, topology, argv, args):
    """A run of mr-bench through a device: figures by rate."""
    running = start(name, topology, argv)
    try:
        waited = waited_s(running)
        done = subprocess.run(
            ["ip", "netns", "exec", topology.namespaces["g"],
             args.bench, "latency",
             *getattr(running, "ports", ("xdp:g0", "xdp:s0")), "--quiet",
             "--json", "--cores", ",".join(map(str, tester_cores())),
             "--sizes", "64", "--rate", "100k", "--shares", "10,100",
             "--trial", str(args.trial), "--settle", "0.2",
             "--dst-mac", ROUTER_MAC, "--stream",
             "ip.src=198.18.0.1-198.18.0.10 udp.src=1024-1123"],
            capture_output=True, text=True, check=False, timeout=120)
        waited = [after - before for after, before in
                  zip(waited_s(running), waited)]
    finally:
        running.stop()
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise BenchError(f"{name}: mr-bench: {lines[-1]}")
    document = json.loads(done.stdout)
    found = {"device": name, "device_waited_s": waited[0],
             "softirqs_waited_s": waited[1]}
    for rate, share in RATES.items():
        values = {row["goal"]: row["value"] for row in document["rows"]}
        found[rate] = {point: values[f"latency-{point}-at-{share}"]
                       for point in POINTS}
    for rate, trial in zip(RATES, document["trials"][-2:]):
        found[rate].update(trial["tail"], whole_s=trial["whole_s"])
    return found


def rounds(topology, devices, args):
    """Samples by round, in alternating order; a device that fails is left out.
    """
    taken, begin = [], time.monotonic()
    end = begin + 60 * args.minutes
    while not taken or time.monotonic() + \
            (time.monotonic() - begin) / len(taken) < end:
        names = list(devices) if len(taken) % 2 == 0 else \
            list(devices)[::-1]
        found = {}
        for name in names:
            try:
                found[name] = sample(name, topology, devices[name], args)
            except BenchError as error:
                print(f"  {error}", file=sys.stderr, flush=True)
        taken.append(found)
        print(f"  round {len(taken)}, {time.monotonic() - begin:.0f} s",
              flush=True)
    return taken


def share(part, whole):
    return 100 * part / whole if whole else 0


def show(taken, devices):
    """Medians of the rounds, and how much of the tails the tester explains."""
    print(f"\n{'device':11} {'frames/s':>8} " +
          " ".join(f"{point + ', us':>10}" for point in POINTS) +
          f" {'tester away':>12} {'host':>7} {'device waited':>14}"
          f" {'softirqs waited':>16}")
    for name in devices:
        for rate in RATES:
            rows = [found[name][rate] for found in taken if name in found]
            if not rows:
                continue
            away = statistics.median(
                share(row["waited_ns"] + row["still_ns"] + row["called_ns"],
                      row["late_ns"]) for row in rows)
            host = statistics.median(
                share(row["all_still_ns"] / 1e9, row["whole_s"])
                for row in rows)
            device, softirqs = (
                1e3 * statistics.median(found[name][key]
                                        for found in taken if name in found)
                for key in ("device_waited_s", "softirqs_waited_s"))
            print(f"{name:11} {rate:>8} " + " ".join(
                f"{statistics.median(row[p] for row in rows) / 1e3:10.1f}"
                for p in POINTS) +
                f" {away:10.0f} % {host:5.1f} % {device:11.1f} ms"
                f" {softirqs:13.1f} ms")
    print("tester away: of the time of frames at p99.9 and above, with a "
          "thread of the tester away;\nhost: stopped, by gaps of 20 us and "
          "more that the polling tester saw; 1 to 2 % is a quiet host;\n"
          "waited: for a core, in the whole run at both rates")


def goals(taken):
    """Goals of the devices that were measured."""
    found = []
    for name, ours, theirs, rate, point, most in GOALS:
        ratios = [one[ours][rate][point] / one[theirs][rate][point]
                  for one in taken if ours in one and theirs in one]
        if ratios:
            found.append(report.at_most(name, statistics.median(ratios), most))
    return found


def measure(args):
    l2fwd = who.l2fwd_command(args.build, "--quiet")
    with tempfile.TemporaryDirectory(prefix="mrb") as folder, \
            who.HugePages() as huge_pages, Topology(is_two=True) as topology:
        nat = nat_wire.millrace_nat(args.build, folder, "--quiet").argv
        devices = {
            "cable": None,
            "bridge": None,
            "testpmd": who.testpmd_on_veths(huge_pages.top_up()),
            "l2fwd": l2fwd,
            "l2fwd-poll": [*l2fwd, "--idle", "poll"],
            "l2fwd-rules": [*l2fwd, "--offload", "on"],
            "nat": nat,
            "nat-rules": [*nat, "--offload", "on"],
        }
        taken = rounds(topology, devices, args)
    show(taken, devices)
    report.show_goals(goals(taken), "medians of the ratio in each round")
    command.write_json(args.json, taken)
    return 0


def main():
    args = parse()
    command.need_root()
    command.need_program("dpdk-testpmd", "dpdk-dev")
    return measure(args)


if __name__ == "__main__":
    sys.exit(command.run("latency", main))
