# SPDX-License-Identifier: BSD-3-Clause
"""mrctl upgrade of mr-nat: its sessions go on in the next process."""
import ctypes
import json
import os
import select
import signal
import socket
import struct
import subprocess
import threading

import pytest
from host import limit
from lib import invariants, nat, talk
from lib.namespaces import wait_until
from lib.nat import Download, Echo, House, Kernel, Nat, Talker, ask_all
from lib.talk import socket_in

PR_SET_CHILD_SUBREAPER = 36
N_UPGRADES = 5
FEW = "limits: {mappings: 1000, sessions: 1000}\n"
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
        """The gap; or why not."""
        text = self.ask("--json", "upgrade", check=False)
        if not text.startswith("{"):
            return text
        answer = json.loads(text)
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


def test_the_state_file_goes_along(lab):
    """The next process writes it, the old one leaves it alone, and a restart restores it."""
    house = House(lab)
    lab.closing(Echo(house.server))
    state = lab.tmp_path / "state"
    config = f"state: {state}\nstate_interval: 1h\nports: {{keep_port: no}}\n"
    chain = Chain(house, config=config)
    talkers = [lab.closing(Talker(host)) for host in (house.a, house.b) for _ in range(5)]
    seen = ask_all(talkers, chain)
    before = state.stat()
    chain.upgrade()
    assert chain.process.wait(10) == 0
    assert (state.stat().st_ino, state.stat().st_mtime) == (before.st_ino, before.st_mtime)
    talkers += [lab.closing(Talker(house.b)) for _ in range(5)]
    seen += ask_all(talkers[10:], chain)
    assert chain.ask("nat", "clear", f"port={seen[0][1]}").strip() == "1 ended"
    assert state.stat().st_ino != before.st_ino
    chain.upgrade()
    os.waitpid(chain.pids[1], 0)
    chain.stop_last()
    again = Nat(house, config=config)
    assert again.err.wait(lambda line: "14 sessions restored, 0 not" in line, 5)
    assert ask_all(talkers[1:], again) == seen[1:]
    again.stop()


class Stream:
    """Numbers that the two ends of a flow send each other, until both are told to stop."""
    BATCH, PAUSE_S = 20, 0.01

    def __init__(self, house, kind, port):
        server = socket_in(house.server, kind, port=port)
        client = socket_in(house.a, kind, port=0)
        if kind == socket.SOCK_STREAM:
            server.listen(1)
        client.connect((nat.SERVER, port))
        if kind == socket.SOCK_STREAM:
            peer, _ = server.accept()
            server.close()
            server = peer
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                end.settimeout(limit(20))
        else:
            client.send(b"")
            server.connect(server.recvfrom(64)[1])
            for end in (client, server):
                end.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
        self.ends = client, server
        self.n_sent, self.got = [0, 0], [bytearray(), bytearray()]
        self.is_done = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(2)]
        for thread in self.threads:
            thread.start()

    def run(self, i):
        while not self.is_done.wait(self.PAUSE_S):
            for _ in range(self.BATCH):
                self.ends[i].send(self.n_sent[i].to_bytes(4, "big"))
                self.n_sent[i] += 1
            while select.select([self.ends[i]], [], [], 0)[0]:
                self.got[i] += self.ends[i].recv(1 << 16)

    def stop(self):
        """All numbers came, once and in order."""
        self.is_done.set()
        for thread in self.threads:
            thread.join()
        for i, end in enumerate(self.ends):
            wanted = b"".join(n.to_bytes(4, "big") for n in range(self.n_sent[1 - i]))
            while len(self.got[i]) < len(wanted):
                self.got[i] += end.recv(1 << 16)
            assert self.got[i] == wanted

    def close(self, is_reset=False):
        for end in self.ends:
            if is_reset:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            end.close()


class Fast(Stream):
    """10,000 numbers per second each way."""
    BATCH = 100


def test_fifty_in_a_row(lab):
    """With 1,000 sessions: none of the numbered frames is lost, doubled or out of order."""
    house = House(lab, spec=",ring=2048")
    chain = Chain(house)
    stream = Fast(house, socket.SOCK_DGRAM, 9000)

    def begin():  # a host that asks for the gateway drops some
        for port in range(20000, 20500):
            for host in (house.a, house.b):
                with socket_in(host, socket.SOCK_DGRAM, port=port) as client:
                    client.sendto(b"", (nat.SERVER, 9))
        return len(chain.sessions()) == 1001
    wait_until("1,000 sessions", begin)
    gaps = [chain.upgrade() for _ in range(50)]
    stream.stop()
    stream.close()
    print(f"gaps: median {sorted(gaps)[25]} us, most {max(gaps)} us; {stream.n_sent} frames")
    assert len(chain.sessions()) == 1001
    chain.stop_last()


def in_user_space(kernel):
    """Frames that workers translated; and how many the kernel did not forward, by their
    contents: one checksum in 65,536 looks partial."""
    stats = kernel.translator.stats()
    return (sum(worker["translated_out"] + worker["translated_in"] for worker in stats["workers"]),
            sum(n for port in stats["ports"] for queue in port["queues"]
                for name, n in queue["events"].items() if name.startswith("rx_offload")))


def n_rules(kernel):
    return kernel.translator.stats()["offload"]["rules"]


def check_empty(kernel):
    """No rule is left in the maps after all sessions were cleared."""
    middle = kernel.house.middle
    kernel.translator.ask("nat", "clear", "all")
    wait_until("no rules", lambda: n_rules(kernel) == 0)

    def bpf(*words):
        return json.loads(middle.run("bpftool", "--json", *words).stdout)
    program = middle.link("p0")["xdp"]["prog"]["id"]
    flows, = [number for number in bpf("prog", "show", "id", program)["map_ids"]
              if bpf("map", "show", "id", number)["name"] == "flows"]
    wait_until("the map is empty", lambda: not any(
        int(byte, 16) for entry in bpf("map", "dump", "id", flows) for byte in entry["value"]))


def stop_kernel(kernel):
    final = kernel.check(kernel.translator.stop_last())
    assert final["offload"]["tx_drops"] == 0
    assert not any(n for port in final["ports"] for n in invariants.drops(port, "rx").values())
    for port in ("p0", "p1"):
        wait_until("no program", lambda port=port: not kernel.house.middle.link(port).get("xdp"))


@pytest.mark.short
def test_rules_forward_meanwhile(lab):
    """Frames of established flows do not wait; counters are exact; TCP ends its rules."""
    kernel = Kernel(lab, config=FEW, make=Chain)
    kernel.known(kernel.talker())
    streams = [Stream(kernel.house, *flow) for flow in (
        (socket.SOCK_DGRAM, 9000), (socket.SOCK_STREAM, 9001), (socket.SOCK_STREAM, 9002))]

    def are_known():
        before = in_user_space(kernel)
        n_offloaded = kernel.offloaded()
        wait_until("frames", lambda: kernel.offloaded() > n_offloaded + 200)
        return n_rules(kernel) == 4 and in_user_space(kernel) == before
    wait_until("all are in the kernel", are_known)
    before = in_user_space(kernel)
    for _ in range(N_UPGRADES):
        assert kernel.translator.sessions()  # reads the counters of rules
        assert kernel.translator.upgrade() > 0
    n_slow, n_refused = (b - a for a, b in zip(before, in_user_space(kernel)))
    assert n_slow == 0 or n_refused > 0
    for stream in streams:
        stream.stop()
    session, = kernel.translator.sessions("port=9000")
    # The first datagram was empty.
    assert [session["out"], session["in"]] == [streams[0].n_sent[0] + 1, streams[0].n_sent[1]]
    assert streams[0].n_sent[0] > 1000
    streams[1].close()
    wait_until("FINs ended its rule", lambda: n_rules(kernel) == 3)
    streams[2].close(is_reset=True)
    wait_until("an RST ended its rule", lambda: n_rules(kernel) == 2)
    kernel.known(kernel.talker())
    streams[0].close()
    check_empty(kernel)
    stop_kernel(kernel)


@pytest.mark.parametrize("workers", [1, 2])
def test_rules_that_come_and_go(lab, workers):
    """Sessions begin and end all the while; no rule is left without one."""
    kernel = Kernel(lab, "--workers", workers, config=FEW, make=Chain)
    is_done = threading.Event()

    def come_and_go():
        while not is_done.is_set():
            talkers = [kernel.talker() for _ in range(8)]
            for talker in talkers * 8:
                talker.ask()
            kernel.translator.ask("nat", "clear", "inside=10.0.0.2", check=False)
    thread = threading.Thread(target=come_and_go)
    thread.start()
    stays = kernel.talker(kernel.house.b)
    try:
        seen = kernel.known(stays)
        for _ in range(2 * N_UPGRADES):
            assert kernel.translator.upgrade() > 0
            assert stays.ask() == seen[0]
    finally:
        is_done.set()
        thread.join()
    kernel.known(stays)
    check_empty(kernel)
    stop_kernel(kernel)


def test_rules_with_another_configuration(lab):
    """Sessions stay, and get new rules."""
    kernel = Kernel(lab, config=FEW, make=Chain)
    talkers = [kernel.talker() for _ in range(5)]
    seen = kernel.known(*talkers)
    stream = Stream(kernel.house, socket.SOCK_STREAM, 9000)
    wait_until("its rule", lambda: n_rules(kernel) == 6)
    kernel.house.write(f"timeouts: {{udp: 10m}}\n{FEW}")
    assert kernel.translator.upgrade() > 0
    wait_until("its rule", lambda: n_rules(kernel) == 1)
    stream.stop()
    assert kernel.known(*talkers) == seen
    assert all(one["left_s"] > 300 for one in kernel.translator.sessions("proto=udp"))
    stream.close()
    wait_until("FINs ended its rule", lambda: n_rules(kernel) == 5)
    kernel.house.write(f"dataplane: {{workers: 2}}\n{FEW}")
    assert "needs a restart" in kernel.translator.upgrade()
    assert kernel.known(*talkers) == seen
    check_empty(kernel)
    stop_kernel(kernel)
