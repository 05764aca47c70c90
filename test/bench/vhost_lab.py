# SPDX-License-Identifier: BSD-3-Clause
"""Forwarders between two vhost-user sockets, and the peer at their other ends.

    core 0: dpdk_peer == a.sock ==> forwarder, core 1 == b.sock ==> dpdk_peer

One of the two sides listens: net_vhost or vhost:. It is started first.
"""
import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import time

import contestants as who
from topology import BenchError, die_with_parent, end

LAYOUTS = {"split": 0, "packed": 1}
BYTES_OF_FCS = 4
START_S = 60
PEER_MIB = 128


class HugePages(who.HugePages):
    """Of testpmd, the peer and mr-l2fwd."""

    N_MIB = 600 + PEER_MIB + 200

    def wait(self, seconds=START_S):
        """Until there are enough: other programs take and return some."""
        deadline = time.monotonic() + seconds
        while not self.top_up():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.2)
        return True

    def insist(self):
        if not self.wait():
            raise BenchError("other programs took the huge pages")


class Lab:
    """A folder with the two sockets; processes that end with us. Stands for a
    topology in contestants.py: the sink is the peer."""

    def __init__(self, build):
        self.build = build
        self.folder = tempfile.TemporaryDirectory(prefix="mrb")
        self.sockets = [pathlib.Path(self.folder.name) / f"{c}.sock"
                        for c in "ab"]
        self.peer = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    @staticmethod
    def start(_, argv, **kwargs):
        return subprocess.Popen(argv, preexec_fn=die_with_parent,
                                start_new_session=True, **kwargs)

    def arrived(self):
        """(monotonic seconds, frames that the peer has received)."""
        line = self.peer.line()
        return line["t"], line["received"]

    def clear(self):
        for path in self.sockets:
            path.unlink(missing_ok=True)

    def wait_for_sockets(self, running):
        deadline = time.monotonic() + START_S
        while not all(path.exists() for path in self.sockets):
            running.check()
            if time.monotonic() > deadline:
                raise BenchError(f"{running.name} does not listen")
            time.sleep(0.02)


def device_vdevs(sockets):
    """DPDK's back ends."""
    return [f"net_vhost{i},iface={path},queues=1"
            for i, path in enumerate(sockets)]


def driver_vdevs(sockets, layout, ring):
    """DPDK's front ends."""
    return [f"net_virtio_user{i},path={path},queues=1,queue_size={ring},"
            f"packed_vq={LAYOUTS[layout]},mac=02:00:00:00:00:0{i + 1}"
            for i, path in enumerate(sockets)]


class Peer(who.Running):
    """A started dpdk_peer."""

    def __init__(self, lab, vdevs, args, size):
        names = [vdev.split(",")[0] for vdev in vdevs]
        super().__init__("dpdk_peer", [
            str(lab.build / "test/bench/dpdk_peer"),
            "-l", str(who.GENERATOR_CORE),
            *who.eal_options(vdevs, args.has_huge_pages, PEER_MIB),
            "--", *names, str(args.ring), str(size - BYTES_OF_FCS)], lab)
        lab.peer = self

    def line(self):
        """Its newest line, after waiting for a new one."""
        seen, deadline = self.lines(), time.monotonic() + START_S
        while len(lines := self.lines()) == len(seen):
            self.check()
            if time.monotonic() > deadline:
                raise BenchError("the peer prints nothing")
            time.sleep(0.005)
        return json.loads(lines[-1])

    def lines(self):
        whole, _, _ = self.output().rpartition("\n")
        return [line for line in whole.splitlines() if line.startswith("{")]


class Forwarder:
    """A contestant: mr-l2fwd or testpmd, as the device or the driver."""

    def __init__(self, name, role, command):
        self.name, self.role, self.command = name, role, command

    def argv(self, lab, args, layout):
        return self.command(lab, args, layout)


def millrace(kind, *options, name="mr-l2fwd"):
    """mr-l2fwd with these options on ports of this kind."""
    def command(lab, args, layout):
        ring = f",ring={args.ring}" if kind == "virtio-user" else ",unsealed"
        packed = "on" if layout == "packed" else "off"
        return who.l2fwd_command(args.build, *options, ports=[
            f"{kind}:{path}{ring},packed={packed}" for path in lab.sockets])
    role = "driver" if kind == "virtio-user" else "device"
    return Forwarder(name, role, command)


def testpmd(role, name="testpmd"):
    def command(lab, args, layout):
        vdevs = driver_vdevs(lab.sockets, layout, args.ring) \
            if role == "driver" else device_vdevs(lab.sockets)
        return who.testpmd_command(vdevs, huge_pages=args.has_huge_pages)
    return Forwarder(name, role, command)


def adapter(*options, name="mr-l2fwd"):
    """mr-l2fwd on DPDK's back ends."""
    def command(lab, args, _):
        return who.l2fwd_command(args.build, *options, ports=[
            "dpdk:" + vdev.replace(",", r"\,")
            for vdev in device_vdevs(lab.sockets)])
    return Forwarder(name, "device", command)


@contextlib.contextmanager
def connected(lab, forwarder, args, layout, size):
    """The running forwarder, with its peer in lab.peer."""
    lab.clear()
    with contextlib.ExitStack() as stack:
        def start_forwarder():
            running = who.Running(forwarder.name,
                                  forwarder.argv(lab, args, layout), lab)
            stack.callback(running.stop)
            return running

        def start_peer():
            vdevs = device_vdevs(lab.sockets) if forwarder.role == "driver" \
                else driver_vdevs(lab.sockets, layout, args.ring)
            peer = Peer(lab, vdevs, args, size)
            stack.callback(peer.stop)
            return peer

        if forwarder.role == "device":
            running = start_forwarder()
            lab.wait_for_sockets(running)
            start_peer()
        else:
            lab.wait_for_sockets(start_peer())
            running = start_forwarder()
        yield running


def check_pages(running):
    """On 4 KiB pages, either forwarder takes up to three times as long. DPDK's
    programs do not start without huge pages; ours logs that it found none."""
    if "on OS pages of 4 KiB" in running.output():
        raise BenchError(f"{running.name} found no huge pages")


def sample(lab, forwarder, args, traffic):
    """contestants.sample() for a Lab. traffic: (layout, size)."""
    layout, size = traffic
    args.before_each()
    with connected(lab, forwarder, args, layout, size) as running:
        who.wait_for_traffic(lab, running, START_S)
        if args.has_huge_pages:
            check_pages(running)
        who.favour([running.process, lab.peer.process], args.nice)
        time.sleep(args.seconds / 2)
        before, waited = lab.peer.line(), lab.peer.scheduled()[1]
        taken = who.window(lab, running, args.seconds)
        after = lab.peer.line()
        waited = lab.peer.scheduled()[1] - waited
        taken["waited_pct"] = max(taken["waited_pct"],
                                  100 * waited / taken["seconds"])
        taken["peer_full_pct"] = 100 * (after["full"] - before["full"]) / \
            (after["rounds"] - before["rounds"])
        return taken


def patient(lab, forwarder, args, traffic):
    """A sample, or another one: other programs may take the huge pages between
    the look and the start."""
    for _ in range(who.MAX_RETRIES - 1):
        try:
            return sample(lab, forwarder, args, traffic)
        except BenchError as error:
            print(f"  {error}; once more", flush=True)
    return sample(lab, forwarder, args, traffic)


def undisturbed(lab, forwarder, args, traffic):
    return who.undisturbed(lab, forwarder, args, traffic, patient)
