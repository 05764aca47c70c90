#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench gen: mr-bench as a generator, beside others on the same veth.

tx: frames per second into a veth, mr-bench beside dpdk-testpmd txonly over
net_af_xdp and trafgen, in turns. rx: at which rates nothing is lost, mr-bench
beside testpmd rxonly, in turns. live: live XDP frames from one core. null: what
it costs to build a frame. docs/performance.md says what is measured and why.
Needs root.
"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import command
import contestants as who
import gen_rx
import report
from topology import BenchError, Topology

NOBODY = "02:00:00:00:00:99"  # the sink takes no frame for its own
TRAFGEN_FRAME = """{
  eth(da=02:00:00:00:00:99, sa=02:00:00:00:00:01, type=0x0800)
  ipv4(saddr=198.18.0.1, daddr=198.19.0.1, ttl=64)
  udp(sp=1024, dp=9)
  fill(0, 18)
}
"""
ONE_FIELD = "udp.src=1024-65535"
FOUR_FIELDS = ("ip.src=10.0.0.0/16 ip.dst=10.1.0.0/16 udp.src=1024-65535 "
               "udp.dst=1-1000")
CASES = (("one field", ONE_FIELD, ["--unstamped"]),
         ("one field", ONE_FIELD, []),
         ("four fields", FOUR_FIELDS, []),
         ("four fields", FOUR_FIELDS, ["--unstamped"]))


def parse():
    return command.parse(command.parser("gen", __doc__, (
        ("rounds", 7, 2, "of the senders in turns"),
        ("seconds", 3.0, 1.0, "per sample")), "tx,rx,live,null", True))


class LiveRunning(who.Running):
    """Live frames, for which the sink needs NAPI, that is, GRO."""

    def stop(self):
        ended = super().stop()
        set_gro(self.topology, "off")
        return ended


class LiveSender(who.Contestant):
    """mr-bench with live frames."""

    def start(self, topology):
        set_gro(topology, "on")
        running = LiveRunning(self.name, self.argv, topology)
        running.topology = topology
        return running


def set_gro(topology, state):
    topology.run("s", "ethtool", "-K", "s0", "gro", state)


def senders(args, folder):
    """Senders on p1, each with one thread, on the forwarder's core."""
    frame = pathlib.Path(folder) / "frame.cfg"
    frame.write_text(TRAFGEN_FRAME)
    core = str(who.FORWARDER_CORE)
    testpmd = who.testpmd_on_veths(args.has_huge_pages, "p1", mode="txonly",
                                   extra=["--txpkts=60"])
    return [
        who.Contestant("mr-bench", [
            args.bench, "tx", "xdp:p1", "--quiet", "--workers", "1",
            "--cores", core, "--dst-mac", NOBODY]),
        LiveSender("live", [
            args.bench, "tx", "live:p1", "--quiet", "--cores", core,
            "--dst-mac", NOBODY]),
        who.Contestant("testpmd", testpmd),
        who.Contestant("trafgen", [
            "taskset", "-c", core, "trafgen", "--dev", "p1", "--conf",
            str(frame), "--cpus", "1", "--notouch-irq", "--no-cpu-stats"]),
    ]


def measure_tx(args):
    with tempfile.TemporaryDirectory(prefix="mrb") as folder, \
            Topology() as topology:
        return who.turns(topology, senders(args, folder), args.rounds, args,
                         None, who.sample)


def run_tx(topology, argv, seconds):
    """Run mr-bench tx; return the trial of its document."""
    process = topology.start("g", [*argv, "--duration", str(seconds), "--json",
                                   "--quiet"], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with process:
        out, err = process.communicate(timeout=seconds + 30)
    if process.returncode != 0:
        raise BenchError(f"mr-bench tx: {err.strip()}")
    return json.loads(out)["trials"][0]


def drop_on_arrival(topology, args):
    """A cheap receiver, whose NAPI runs on the sender's core."""
    topology.run("f", "ip", "link", "set", "p0", "xdpdrv", "object",
                 str(args.build / "test/bench/drop.bpf.o"), "section", "xdp")


def measure_alone(args, topology, port, cases):
    """Frames per second from one core, of one flow and of many."""
    rows = []
    for name, streams, stamp in cases:
        trials = [run_tx(topology, [args.bench, "tx", *port, *stamp,
                                    "--stream", streams], args.seconds)
                  for _ in range(3)]
        rows.append({"what": name, "is_stamped": not stamp, "trials": trials,
                     "mpps": statistics.median(arrived_pps(trial) / 1e6
                                               for trial in trials)})
    return rows


def measure_live(args):
    with Topology() as topology:
        drop_on_arrival(topology, args)
        return measure_alone(args, topology, [
            "live:g0", "--cores", str(who.GENERATOR_CORE), "--dst-mac",
            NOBODY], CASES[:3])


def measure_null(args):
    """The cost of a frame to null:."""
    with Topology() as topology:
        return measure_alone(args, topology, [
            "null:", "--workers", "1", "--cores", str(who.FORWARDER_CORE)],
            CASES)


def arrived_pps(trial):
    """The frames that the far end accepted; frames that it refused were not
    sent."""
    return trial["tx"]["sent"] / trial["duration_s"]


def stamped(row):
    return "stamped" if row["is_stamped"] else "unstamped"


def goals(result):
    """The goals in docs/performance.md."""
    found = []
    if "tx" in result:
        for ours, theirs, goal in (("mr-bench", "testpmd", 1.05),
                                   ("mr-bench", "trafgen", 3),
                                   ("live", "trafgen", 3)):
            found.append(report.at_least(f"tx: {ours} / {theirs}", report.ratio(
                result["tx"], ours, theirs)["median"], goal))
        found.append(report.at_most("tx: user ns per frame", report.median_of(
            result["tx"]["mr-bench"], "user_ns_per_frame"), 20, 1))
    if "rx" in result:
        found.append(gen_rx.goal(result["rx"]))
    for row in result.get("live", [])[:2]:
        found.append(report.at_least(
            f"live: Mpps per core, {row['what']}, {stamped(row)},",
            row["mpps"], 4, 2))
    # a stamp has a time and a field that varies
    for row, goal in zip(result.get("null", [])[::3], (100, 40)):
        found.append(report.at_least(
            f"null: Mpps per core, {row['what']}, unstamped,", row["mpps"],
            goal, 1))
    return found


def show(result):
    report.show_machine(result)
    if "tx" in result:
        for base in ("testpmd", "trafgen"):
            report.show_samples("Sending from one veth, 60-byte frames, one "
                                "core each", result["tx"], base)
    if "rx" in result:
        gen_rx.show(result["rx"])
    for part, what in (
            ("live", "Live XDP frames into a veth whose peer drops them"),
            ("null", "null:: built, counted and given back")):
        if part in result:
            print(f"\n{what}, one core")
        for row in result.get(part, []):
            print(f"  {row['what']:12} {stamped(row):10} {row['mpps']:7.2f} "
                  "Mpps")
    report.show_goals(goals(result))


def measure(args):
    result = command.document()
    with who.HugePages() as huge_pages:
        args.before_each = huge_pages.top_up
        args.has_huge_pages = huge_pages.top_up()
        for part, taken in (("tx", measure_tx), ("rx", gen_rx.measure),
                            ("live", measure_live), ("null", measure_null)):
            if part in args.parts:
                result[part] = taken(args)
    return result


def main():
    args = parse()
    command.need_root()
    command.need_program("dpdk-testpmd", "dpdk-dev")
    command.need_program("trafgen", "netsniff-ng")
    result = measure(args)
    show(result)
    command.write_json(args.json, result)
    return 0


if __name__ == "__main__":
    sys.exit(command.run("gen", main))
