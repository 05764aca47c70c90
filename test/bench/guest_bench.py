#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench guest: instructions per frame beside Debian's dpdk-testpmd.

In one emulated machine, over the same two NICs, mr-l2fwd and testpmd (io)
forward the same frames. What counts is what the forwarding thread executes in
user space: counted by a plug-in of QEMU, each instruction, no sampling. It has
a processor of its own. Frames arrive together, nearly as many as a ring holds,
while the machine is stopped, so that both find the same bursts.

A poll that finds nothing is no work: its cost is measured without traffic, and
subtracted for each of them. Time is not measured.
"""
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "guest")]

# pylint: disable=wrong-import-position
import command  # noqa: E402
import dpdk  # noqa: E402
import guest_contestants as who  # noqa: E402
import report  # noqa: E402
from fetch import Missing  # noqa: E402
from guest import Guest, Nic  # noqa: E402
from topology import BenchError  # noqa: E402

# The kind of NIC, which of the guest's drivers has it, and its rings.
ROWS = {
    "igb": ("igb", "vfio-pci", 1024),
    "e1000e": ("e1000e", "vfio-pci", 1024),
    "virtio-split": ("virtio-split", "vfio-pci", 256),
    "virtio-packed": ("virtio-packed", "vfio-pci", 256),
    "xdp-zc": ("igb", "igb", 1024),
}
LUMP_LIMIT_S = 20
FRAME = bytes.fromhex("020000000002020000000001") + b"\x88\xb5" + bytes(46)
IDLE_S = 2
GOAL_RATIO_TWICE, GOAL_RATIO_XDP, BURST_TOLERANCE = 0.8, 0.7, 0.2


def parse():
    parser = command.parser("guest", __doc__, (
        ("frames", 51200, 51200, "per run"),), ",".join(ROWS))
    parser.add_argument("--bursts", default="32", metavar="N,...",
                        help="most frames per poll (default: 32)")
    parser.add_argument("--kernel", default="newest", metavar="VERSION")
    args = command.parse(parser)
    args.bursts = [int(n) for n in args.bursts.split(",")]
    unknown = set(args.parts) - set(ROWS)
    if unknown:
        parser.error(f"no row {', '.join(unknown)}; "
                     f"there are {', '.join(ROWS)}")
    return args


class Machine:
    """A guest with two NICs of a row and a counted processor."""

    def __init__(self, row, args):
        kind, driver, self.ring = ROWS[row]
        self.nics = [Nic(f"nic{i}", kind, "stream") for i in range(2)]
        self.driver = driver
        self.guest = Guest(
            self.nics, kernel=args.kernel, n_cpus=2, memory_mb=3072,
            programs=[args.build / "apps/l2fwd/mr-l2fwd", *who.testpmd_programs()],
            files=dpdk.files(),
            append="isolcpus=1 hugepages=512",
            options=["-plugin", f"{args.build}/test/bench/libinsn_count.so,"
                     "counts={folder}/counts"])

    def __enter__(self):
        self.guest.__enter__()
        try:
            self._prepare()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.guest.__exit__()

    def _prepare(self):
        dpdk.prepare(self.guest)
        if self.driver == "vfio-pci":
            for nic in self.nics:
                self.guest.bind(nic, self.driver)
        else:
            # The kernel works on the forwarder's processor, between two polls,
            # as on the veths of ./mr bench l2fwd.
            for nic in self.nics:
                self.guest.run(
                    f"ethtool -L {nic.name} combined 1; "
                    f"ethtool -G {nic.name} rx {self.ring} tx {self.ring}")
            self.guest.run(
                "for i in $(grep -e nic /proc/interrupts | cut -d: -f1); do "
                "echo 2 >/proc/irq/$i/smp_affinity; done")

    def executed(self):
        """Instructions of the forwarder's processor, which sleeps now."""
        data = (self.guest.folder / "counts").read_bytes()
        return int.from_bytes(data[8:16], sys.byteorder)

    def wait_for_links(self):
        """The kernel's igb needs 1.5 s for its link after each bind."""
        names = " ".join(nic.name for nic in self.nics)
        status, text = self.guest.run(
            f"sleep 1; for n in {names}; do for i in $(seq 100); do "
            "[ $(cat /sys/class/net/$n/carrier) = 1 ] && break; "
            "usleep 100000; done; done; sleep 1")
        assert status == 0, text

    def forward(self, running, n_frames):
        """Let the forwarder continue and send frames; return how many came
        out. The machine runs only for as long as that takes."""
        source, sink = (self.guest.wires[nic.name] for nic in self.nics)
        n_out = 0
        # The more at once, the fewer polls between them are empty.
        n_at_once = self.ring * 15 // 16
        self.guest.qmp("stop")
        running.begin_to_go_on()
        for first in range(0, n_frames, n_at_once):
            n = min(n_at_once, n_frames - first)
            source.send_all([FRAME] * n)
            self.guest.qmp("cont")
            n_now = len(sink.receive(n, LUMP_LIMIT_S))
            n_out += n_now
            self.guest.qmp("stop")
            if n_now < n:
                break
        return n_out


def run_once(machine, contestant, n_frames):
    """A run of a forwarder: (instructions, its counters, frames out)."""
    before = machine.executed()
    running = contestant.start(machine.guest)
    if machine.driver != "vfio-pci":
        machine.wait_for_links()
    n_out = 0
    if n_frames:
        n_out = machine.forward(running, n_frames)
    else:
        machine.guest.qmp("stop")
        running.begin_to_go_on()
        machine.guest.qmp("cont")
        time.sleep(IDLE_S)
        machine.guest.qmp("stop")
    running.begin_to_end()
    machine.guest.qmp("cont")
    counters = running.counters()
    machine.guest.run("sleep 0.3")  # until its processor sleeps
    return machine.executed() - before, counters, n_out


def measure_one(machine, contestant, n_frames):
    idle_insns, idle, _ = run_once(machine, contestant, 0)
    insns, c, n_out = run_once(machine, contestant, n_frames)
    empty_cost = idle_insns / idle["polls"]
    n_empty = c["polls"] - c["bursts"]
    return {
        "forwarder": contestant.name,
        "frames": c["frames"], "frames_out": n_out,
        "instructions": insns, "polls": c["polls"], "empty_polls": n_empty,
        "instructions_per_empty_poll": empty_cost,
        "idle_instructions": idle_insns, "idle_polls": idle["polls"],
        "mean_burst": c["frames"] / max(1, c["bursts"]),
        "net_per_frame":
            (insns - n_empty * empty_cost) / max(1, c["frames"]),
    }


def measure_row(row, args):
    """All bursts of a row: a list of (theirs, ours)."""
    results = []
    with Machine(row, args) as machine:
        for burst in args.bursts:
            pair = {"row": row, "burst": burst}
            for contestant in who.contestants(machine, burst):
                pair[contestant.name] = measure_one(machine, contestant,
                                                    args.frames)
            results.append(pair)
            show_pair(pair)
    return results


def ratio(pair):
    """Ours divided by theirs; None if the bursts differ or one is missing."""
    ours, theirs = pair.get("mr-l2fwd"), pair.get("testpmd")
    if not ours or not theirs:
        return None
    bursts = ours["mean_burst"] / theirs["mean_burst"]
    if abs(bursts - 1) > BURST_TOLERANCE:
        return None
    return ours["net_per_frame"] / theirs["net_per_frame"]


HEAD = (f"{'NICs':14} {'burst':>5} {'forwarder':10} {'frames':>8} "
        f"{'instructions':>13} {'empty %':>8} {'insns per':>10} "
        f"{'mean':>6} {'net insns':>9} {'ours /':>7}\n"
        f"{'':14} {'':>5} {'':10} {'':>8} {'':>13} {'of polls':>8} "
        f"{'empty poll':>10} {'burst':>6} {'per frame':>9} {'theirs':>7}")


def show_pair(pair):
    for name in ("testpmd", "mr-l2fwd"):
        r = pair.get(name)
        if not r:
            continue
        how = ratio(pair) if name == "mr-l2fwd" else None
        print(f"{pair['row']:14} {pair['burst']:5} {name:10} "
              f"{r['frames']:8} {r['instructions']:13} "
              f"{100 * r['empty_polls'] / r['polls']:8.2f} "
              f"{r['instructions_per_empty_poll']:10.2f} "
              f"{r['mean_burst']:6.2f} {r['net_per_frame']:9.2f} "
              f"{'' if how is None else f'{how:.3f}':>7}", flush=True)


def lost(results):
    """Runs in which frames were missing, which do not count."""
    return [f"{pair['row']} {name}: {r['frames_out']} of {n} frames"
            for pair, n in results
            for name, r in pair.items()
            if isinstance(r, dict) and
            not r["frames_out"] == r["frames"] == n]


def goals(results):
    """The goals in docs/performance.md, at the largest burst."""
    at = max(pair["burst"] for pair in results)
    ratios = {pair["row"]: how for pair in results
              if pair["burst"] == at and (how := ratio(pair)) is not None}
    low = sum(row != "xdp-zc" and how <= GOAL_RATIO_TWICE
              for row, how in ratios.items())
    return [*(report.at_most(f"{row}: by testpmd", how,
                             GOAL_RATIO_XDP if row == "xdp-zc" else 1, 3)
              for row, how in ratios.items()),
            report.at_least(f"rows with {GOAL_RATIO_TWICE} x at most", low, 2,
                            0)]


def main():
    args = parse()
    missing = who.missing(args.build)
    if missing:
        raise BenchError(missing)
    results = []
    try:
        print(HEAD)
        for row in args.parts:
            results += measure_row(row, args)
    except Missing as why:
        raise BenchError(str(why)) from why
    command.write_json(args.json, command.document(pairs=results))
    missed = lost([(pair, args.frames) for pair in results])
    for text in missed:
        print(f"frames are missing: {text}", file=sys.stderr)
    report.show_goals(goals(results))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(command.run("guest", main))
