# SPDX-License-Identifier: BSD-3-Clause
"""mrctl upgrade of mr-nat: its sessions go on in the next process."""
import ctypes
import hashlib
import json
import os
import signal
import socket
import subprocess
import threading

import pytest
from lib import invariants, nat, talk
from lib.nat import Echo, House, Nat, Talker, ask_all
from lib.talk import socket_in

PR_SET_CHILD_SUBREAPER = 36
N_UPGRADES = 5
N_BYTES = 96 << 20
FORWARD = "forwards: [{outside: '192.0.2.1:8080', inside: '10.0.0.4:80', protocols: tcp}]\n"


@pytest.fixture(autouse=True)
def children():
    """Successors become children of this process when their parents end."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    yield
    libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


class Chain(Nat):
    """A mr-nat, and whichever process follows it."""

    def __init__(self, house, *options, config=""):
        super().__init__(house, *options, config=config)
        self.pids = [self.pid]
        house.lab.closing(self)

    def close(self):
        for pid in self.pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def upgrade(self):
        answer = json.loads(self.ask("--json", "upgrade"))
        self.pids.append(answer["pid"])
        return answer["gap_us"]

    def stop_last(self):
        """End the process that runs now; its last object, checked."""
        os.kill(self.pids[-1], signal.SIGINT)
        _, status = os.waitpid(self.pids[-1], 0)
        assert os.waitstatus_to_exitcode(status) == 0, self.err.text()
        final = json.loads(self.out.text().splitlines()[-1])
        assert final["final"] and final["invariants_hold"] and final["conserved"]
        invariants.check_ports(final["ports"])
        return final


class Download:
    """Bytes that a server sends to a client inside, as fast as they go."""

    def __init__(self, house):
        self.listener = socket_in(house.server, socket.SOCK_STREAM, port=8000)
        self.listener.listen(1)
        self.sent, self.got = hashlib.sha256(), hashlib.sha256()
        self.n_got = 0
        self.client = socket_in(house.a, socket.SOCK_STREAM)
        self.client.settimeout(60)
        self.threads = [threading.Thread(target=self.serve), threading.Thread(target=self.fetch)]
        self.client.connect((nat.SERVER, 8000))
        for thread in self.threads:
            thread.start()

    def serve(self):
        peer, _ = self.listener.accept()
        with peer:
            for _ in range(N_BYTES >> 20):
                piece = os.urandom(1 << 20)
                self.sent.update(piece)
                peer.sendall(piece)

    def fetch(self):
        while piece := self.client.recv(1 << 16):
            self.got.update(piece)
            self.n_got += len(piece)

    def check(self):
        for thread in self.threads:
            thread.join(120)
        self.client.close()
        self.listener.close()
        assert self.n_got == N_BYTES
        assert self.got.digest() == self.sent.digest()


def events_of(path):
    """What the log has, by event."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {what: [(e["proto"], e["inside"], e["inside_port"], e["outside_port"])
                   for e in lines if e["event"] == what]
            for what in ("mapping_begin", "mapping_end")}


def check_counters(before, after):
    """None went back."""
    for one, other in zip(before["workers"], after["workers"]):
        for name in ("received", "sent", "translated_out", "translated_in", "taken"):
            assert other[name] >= one[name], name
    for name in ("created", "expired"):
        assert after["state"][name] >= before["state"][name]
    for name in ("log_written", "log_lost", "reloads"):
        assert after["operation"][name] >= before["operation"][name], name


@pytest.mark.parametrize("workers", [1, 2])
def test_sessions_go_on(lab, workers):
    house = House(lab)
    lab.closing(Echo(house.server))
    log = lab.tmp_path / "nat.log"
    chain = Chain(house, "--workers", workers,
                  config=f"log: {{path: {log}, sessions: yes}}\n"
                         f"ports: {{keep_port: no}}\n{FORWARD}")
    assert chain.ask("nat", "sessions", "--json") is not None
    talkers = [lab.closing(Talker(host)) for host in (house.a, house.b) for _ in range(50)]
    seen = ask_all(talkers, chain)
    ping = lab.popen(house.b.command("ping", "-i", "0.02", "-c", "200", "-W", "5", nat.SERVER),
                     stdout=subprocess.PIPE, text=True)
    download = Download(house)
    gaps = []
    for _ in range(N_UPGRADES):
        before = chain.stats()
        gaps.append(chain.upgrade())
        check_counters(before, chain.stats())
        assert ask_all(talkers, chain) == seen
    download.check()
    assert " 200 received" in ping.communicate(timeout=60)[0]
    print(f"gaps: {gaps} us")
    assert talk.ping(house.b, nat.SERVER) == 3
    assert chain.ask("nat", "clear", "all").strip().endswith("ended")
    final = chain.stop_last()
    events = events_of(log)
    assert len(set(events["mapping_begin"])) == len(events["mapping_begin"])
    assert sorted(events["mapping_begin"]) == sorted(events["mapping_end"])
    assert final["operation"]["log_lost"] == 0
    assert chain.process.wait(10) == 0
