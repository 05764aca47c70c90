# SPDX-License-Identifier: BSD-3-Clause
"""How long no frame comes when a forwarder is killed and started again."""
import contextlib
import ctypes
import os
import pathlib
import select
import signal
import socket
import subprocess
import threading
import time

from keeper import Keeper
from topology import BenchError, end

CLONE_NEWNET = 0x40000000
TEST_TYPE = 0x88b5
PAUSE_S = 0.0001  # between two frames
SETTLE_S = 1.0    # before and after a kill
START_S = 30


def raw_socket(namespace, interface):
    libc = ctypes.CDLL(None)
    with open("/proc/self/ns/net", "rb") as own, open(f"/run/netns/{namespace}", "rb") as other:
        libc.setns(other.fileno(), CLONE_NEWNET)
        try:
            made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(TEST_TYPE))
        finally:
            libc.setns(own.fileno(), CLONE_NEWNET)
    made.bind((interface, TEST_TYPE))
    made.setblocking(False)
    return made


class Probe:
    """Frames from g0 to s0, all the time; when they come."""

    def __init__(self, topology):
        self.sockets = [raw_socket(topology.namespaces[ns], name)
                        for ns, name in (("g", "g0"), ("s", "s0"))]
        self.came_s = []
        self.is_done = False
        self.threads = [threading.Thread(target=work) for work in (self.send, self.receive)]
        for thread in self.threads:
            thread.start()

    def send(self):
        data = bytes.fromhex("020000000002020000000001") + TEST_TYPE.to_bytes(2, "big") + bytes(46)
        while not self.is_done:
            with contextlib.suppress(OSError):  # the queue is full
                self.sockets[0].send(data)
            time.sleep(PAUSE_S)

    def receive(self):
        while not self.is_done:
            if select.select([self.sockets[1]], [], [], 0.1)[0]:
                with contextlib.suppress(BlockingIOError):
                    self.sockets[1].recv(128)
                    self.came_s.append(time.monotonic())

    def longest_ms(self, since_s):
        """Between two frames since then."""
        came = [t for t in list(self.came_s) if t >= since_s]
        return max((b - a for a, b in zip(came, came[1:])), default=0) * 1000

    def close(self):
        self.is_done = True
        for thread in self.threads:
            thread.join()
        for one in self.sockets:
            one.close()


class Service:
    """mr-l2fwd, started as systemd would."""

    def __init__(self, topology, keeper, command):
        self.topology, self.keeper, self.command = topology, keeper, command
        self.start()

    def start(self):
        before, fds = self.keeper.start()
        self.process = self.topology.start(
            "f", [*map(str, before), *self.command], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, pass_fds=fds)
        self.keeper.wait_for(self.process.pid, START_S)

    def crash(self, is_kept):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if not is_kept:
            self.keeper.forget()
        self.start()


def measure(args, topology, folder):
    """Gaps in ms: with what was kept, and without, in turns."""
    keeper = Keeper(pathlib.Path(folder))
    command = [str(args.build / "apps/l2fwd/mr-l2fwd"), "--quiet", "p0", "p1"]
    service, probe = None, None
    gaps = ([], [])
    try:
        service = Service(topology, keeper, command)
        probe = Probe(topology)
        for i in range(2 * args.upgrades):
            time.sleep(SETTLE_S)
            since_s = time.monotonic() - SETTLE_S / 2
            service.crash(is_kept=i % 2 == 0)
            time.sleep(SETTLE_S)
            gaps[i % 2].append(probe.longest_ms(since_s))
        if service.process.poll() is not None:
            raise BenchError("it did not stay")
    finally:
        if probe is not None:
            probe.close()
        if service is not None:
            end(service.process)
        keeper.close()
    return gaps
