# SPDX-License-Identifier: BSD-3-Clause
"""The programs of examples/ on real interfaces."""
import os
import re
import signal
import socket
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import signals
from lib import talk
from lib.namespaces import Star, run, wait_until
from lib.process import BUILD, Process
from lib.servers import Web, need
from lib.wire import TEST_TYPE, Wire, frame
from scapy.all import ARP, DNS, DNSQR, IP, TCP, UDP, Dot1Q, Ether, IPOption, IPv6, rdpcap

TOP = Path(__file__).resolve().parents[2]
EXAMPLES = BUILD / "examples"
# The same firewall in several languages: what starts it.
FIREWALLS = {
    "c": [EXAMPLES / "example-firewall"],
    "python": [sys.executable, "-Bu", TOP / "examples/python/firewall.py"],
    "rust": [BUILD / "bindings/rust/debug/examples/firewall"],
}
LIST = """# a comment

192.0.2.0/24
 198.51.100.7   # one address: a host
203.0.113.200/25
2001:db8:1::/48
2001:db8:2::7
192.0.2.0/28    # covered by the first
"""
BAD_LINES = ["192.0.2.0/33", "2001:db8::/129", "192.0.2", "192.0.2.0/", "/24",
             "192.0.2.0/24 198.51.100.7", "192.0.2.0/x",
             "192.0.2.0/-1", "fe80::1%eth0", "hosts"]
ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
LISTED = ["192.0.2.0", "192.0.2.255", "198.51.100.7", "203.0.113.128",
          "2001:db8:1::", "2001:db8:1:ffff:ffff:ffff:ffff:ffff",
          "2001:db8:2::7"]
OTHERS = ["192.0.1.255", "192.0.3.0", "198.51.100.6", "203.0.113.127",
          "2001:db8:2::", "2001:db8:0:ffff::1", "2001:db8:2::8", "::192.0.2.1"]


def packet(source, below=ETHER):
    """A frame from an address, to one that is listed."""
    ip = IPv6(src=source, dst="2001:db8:1::1") if ":" in source else \
        IP(src=source, dst="192.0.2.1")
    return bytes(below / ip / UDP(sport=source.count("."), dport=9) / bytes(32))


class Example(Process):
    """A running example, in a namespace between two others."""

    def __init__(self, lab, command, *ports, more=(), queues=1):
        self.middle = lab.namespace("f")
        self.hosts = [lab.namespace(f"h{i}") for i in range(len(ports))]
        for i, host in enumerate(self.hosts):
            lab.veth(host, "h0", self.middle, f"p{i}", queues)
            for end, name in (host, "h0"), (self.middle, f"p{i}"):
                end.run("ethtool", "-L", name, "rx", queues, "tx", queues)
        self.wires = [lab.closing(Wire(host, "h0")) for host in self.hosts]
        super().__init__(lab, self.middle, [*command, *ports, *more])

    def stop(self):
        """End it with Ctrl-C. Returns what it printed."""
        self.process.send_signal(signal.SIGINT)
        assert self.wait() == 0, self.err.text()
        assert not any(self.middle.link(f"p{i}").get("xdp")
                       for i in range(len(self.hosts)))
        return self.out.text()


class Firewall(Example):
    """A firewall in any language; it is ready when frames pass."""

    PROBE = frame(60)

    def __init__(self, lab, command, text, queues=1):
        (lab.tmp_path / "list").write_text(text)
        super().__init__(lab, [*command, lab.tmp_path / "list"], "p0", "p1",
                         queues=queues)
        self.n_probes = 0
        wait_until("a frame passes", self.is_passed)
        assert self.n_probes > 0, self.err.text()

    def is_passed(self):
        self.wires[0].send(self.PROBE)
        self.n_probes += len(self.wires[1].receive(1, 0.2))
        return self.n_probes > 0 or self.process.poll() is not None

    def receive(self, wire, n):
        """Receive n frames, besides probes that were on their way."""
        frames = []
        while len(frames) < n:
            some = wire.receive(n - len(frames))
            if not some:
                break
            self.n_probes += some.count(self.PROBE)
            frames += [data for data in some if data != self.PROBE]
        return frames


@pytest.mark.parametrize("queues", [1, 4])
@pytest.mark.parametrize("name", ["l2fwd", "epoll"])
def test_forwarders_forward(lab, name, queues):
    """Those whose flows differ come in by different queues."""
    example = Example(lab, [EXAMPLES / f"example-{name}"], "p0", "p1",
                      queues=queues)
    signals.await_sigint(example.process)
    if name == "l2fwd":  # a worker per queue, at most one per core
        n_workers = min(queues, len(os.sched_getaffinity(0)))
        wait_until("its workers", lambda: n_workers == len(
            os.listdir(f"/proc/{example.process.pid}/task")))
    for near, far in (0, 1), (1, 0):
        frames = [bytes(ETHER / IP(dst="192.0.2.1") / UDP(sport=i, dport=9) /
                        bytes(20 + 100 * i)) for i in range(14)]
        example.wires[near].send_all(frames)
        got = example.wires[far].receive(len(frames))
        assert sorted(got) == sorted(frames)
        assert queues > 1 or got == frames
    example.stop()


def n_sleeps(process):
    """How often it has gone to sleep. It looks for frames each time."""
    status = Path(f"/proc/{process.process.pid}/status").read_text()
    return int(re.search(r"(?m)^voluntary_ctxt_switches:\s+(\d+)", status)[1])


def test_count_waits_for_a_link(lab):
    middle, host = lab.namespace("f"), lab.namespace("h0")
    lab.veth(host, "h0", middle, "p0")
    host.run("ip", "link", "set", "h0", "down")
    counter = Process(lab, middle, [EXAMPLES / "example-count", "xdp:p0"])
    wait_until("the port is open", lambda: middle.link("p0").get("xdp"))
    with pytest.raises(subprocess.TimeoutExpired):  # it goes on
        counter.process.wait(0.5)
    host.run("ip", "link", "set", "h0", "up")
    wire = lab.closing(Wire(host, "h0"))
    wire.send_all([frame(60)] * 5)
    wait_until("the frames are there",
               lambda: middle.link("p0")["stats64"]["rx"]["packets"] >= 5)
    before = n_sleeps(counter)
    wait_until("it has read them", lambda: n_sleeps(counter) >= before + 2)
    counter.process.send_signal(signal.SIGINT)
    assert counter.wait() == 0, counter.err.text()
    assert f"{TEST_TYPE:04x}" in counter.out.text()


@pytest.fixture(params=FIREWALLS)
def firewall(request, python_path, rust_path):
    command = FIREWALLS[request.param]
    if not command[-1].exists() or (request.param == "python" and
                                    not python_path):
        pytest.skip(f"no firewall in {request.param} here")
    return command


def test_firewall_drops_what_is_listed(lab, firewall):
    running = Firewall(lab, firewall, LIST)
    tagged = ETHER / Dot1Q(vlan=5)
    listed = [packet(source) for source in LISTED]
    listed += [packet("192.0.2.9", tagged), packet("2001:db8:1::9", tagged)]
    others = [packet(source) for source in OTHERS]
    others += [packet("192.0.3.9", tagged), bytes(ETHER / ARP(psrc="192.0.2.1")),
               frame(1514, src=b"\x02\0\xc0\0\2\1")]
    for near, far in running.wires, running.wires[::-1]:
        near.send_all(listed + others)  # in order: when the last is there, all are
        assert running.receive(far, len(others)) == others
    assert running.stop().strip() == (
        f"{running.n_probes + 2 * len(others)} passed, {2 * len(listed)} listed, "
        "0 not sent")


@pytest.mark.parametrize("prefix", ["0.0.0.0/0", "::/0"])
def test_firewall_with_an_empty_prefix(lab, firewall, prefix):
    """A prefix of 0 bits matches all addresses of its family only."""
    running = Firewall(lab, firewall, prefix)
    dropped, passed = packet("192.0.2.1"), packet("2001:db8::1")
    if ":" in prefix:
        dropped, passed = passed, dropped
    running.wires[0].send_all([dropped, passed])
    assert running.receive(running.wires[1], 1) == [passed]
    assert " 1 listed" in running.stop()


def test_firewall_with_four_queues(lab, firewall):
    """Frames of all pass."""
    running = Firewall(lab, firewall, LIST, queues=4)
    others = [packet(source) for source in OTHERS]
    running.wires[0].send_all(others)
    assert sorted(running.receive(running.wires[1], len(others))) == sorted(others)
    running.stop()


@pytest.mark.parametrize("line", BAD_LINES)
def test_firewall_names_a_bad_line(lab, firewall, line, tmp_path):
    (tmp_path / "list").write_text(f"192.0.2.0/24\n\n{line}\n")
    done = lab.namespace("f").run(*firewall, tmp_path / "list", "p0", "p1",
                                  check=False)
    assert done.returncode == 1 and done.stdout.count("\n") == 1
    assert f"{tmp_path}/list:3: " in done.stdout
    assert "192.0.2.0/24" in done.stdout  # what would be right


def test_firewall_needs_its_list_and_ports(lab, firewall, tmp_path):
    middle = lab.namespace("f")
    done = middle.run(*firewall, tmp_path / "none", "p0", "p1", check=False)
    assert done.returncode == 1 and f"{tmp_path}/none" in done.stdout
    (tmp_path / "list").write_text(LIST)
    done = middle.run(*firewall, tmp_path / "list", "p0", "p1", check=False)
    assert done.returncode == 1 and "p0" in done.stdout
    assert middle.run(*firewall, check=False).returncode == 2


def test_answer_is_a_host_for_the_kernel(lab):
    """Addresses that no kernel has: probed for, resolved, and pinged."""
    example = Example(lab, [EXAMPLES / "example-answer", "10.77.0.1",
                            "fd77::1"], "p0")
    host = example.hosts[0]
    signals.await_sigint(example.process)
    host.sysctl("net.ipv6.conf.h0.disable_ipv6", 0)
    host.ip("address", "add", "10.77.0.2/24", "dev", "h0")
    host.ip("address", "add", "fd77::2/64", "dev", "h0", "nodad")
    for address in "10.77.0.1", "fd77::1":
        for size in 0, 56, 1400:
            assert ", 0% packet loss" in host.run(
                "ping", "-c", 3, "-i", 0.01, "-W", 20, "-s", size,
                address).stdout
        neighbour = host.run("ip", "neighbour", "show", address).stdout
        assert example.middle.link("p0")["address"] in neighbour
    # Who takes the same address learns that somebody has it.
    host.ip("address", "add", "fd77::1/64", "dev", "h0")
    wait_until("the duplicate is noticed", lambda: "dadfailed" in host.run(
        "ip", "address", "show", "dev", "h0").stdout)
    said = dict(reversed(word.split()) for word in
                example.stop().replace(" not sent", " unsent").split(", "))
    assert said["echo"] == said["echo6"] == "9"
    assert int(said["arp"]) >= 1 and int(said["solicitation"]) >= 2
    assert said["malformed"] == said["no_page"] == said["unsent"] == "0"


@pytest.fixture
def dns(lab):
    """The responder at 10.77.0.1, whose kernel has the address."""
    need("dig", "bind9-dnsutils")
    example = Example(lab, [EXAMPLES / "example-dns"],
                      "xdp:p0,filter=ip and udp dst port 53")
    example.middle.ip("address", "add", "10.77.0.1/24", "dev", "p0")
    example.hosts[0].ip("address", "add", "10.77.0.2/24", "dev", "h0")
    signals.await_sigint(example.process)
    return example


def dig(example, *words):
    """The output of dig(1) for a query."""
    return example.hosts[0].run("dig", "@10.77.0.1", "+tries=5", "+timeout=2",
                                *words).stdout


def test_dns_answers_dig(dns):
    said = dig(dns, "192-0-2-1.Example.org")
    assert "192-0-2-1.Example.org.\t60\tIN\tA\t192.0.2.1" in said
    assert "status: NOERROR" in said and "flags: qr aa rd;" in said
    assert "EDNS: version: 0, flags:; udp: 1232" in said
    assert "WARNING: Message" not in said and "malformed" not in said
    said = dig(dns, "+noedns", "+norecurse", "255-255-255-255.")
    assert "IN\tA\t255.255.255.255" in said and "EDNS" not in said
    for name in ("www.example.org", "192-168-100-1000.example.org", ".",
                 "300-0-0-1.example.org", "-".join("1" * 20) + ".org",
                 ".".join(["a" * 63] * 3 + ["b" * 61])):  # the longest
        said = dig(dns, name)
        assert "status: NXDOMAIN" in said and "ANSWER: 0" in said
    said = dig(dns, "-t", "AAAA", "192-0-2-1.example.org")
    assert "status: NOERROR" in said and "ANSWER: 0" in said
    said = dig(dns, "+edns=1", "+noednsneg", "192-0-2-1.example.org")
    assert "status: BADVERS" in said and "ANSWER: 0" in said
    assert "EDNS: version: 0" in said
    # The kernel still has the rest of what comes to its address.
    assert dns.hosts[0].run("ping", "-c", 1, "-W", 20, "10.77.0.1")
    assert int(dns.stop().split()[0]) >= 8


def test_dns_ignores_other_messages(dns):
    """Answers, and messages that it cannot parse, get no answer."""
    query = bytes(DNS(id=7, qd=DNSQR(qname="192-0-2-1.example.org")))
    lies = [query[:n] for n in range(len(query))]  # truncated
    lies += [query[:2] + b"\x81" + query[3:],  # an answer
             query[:5] + b"\2" + query[6:],  # two questions
             query[:12] + b"\xc0\x0c" + query[14:],  # a pointer
             query[:12] + b"\x3f" + query[13:],  # a label beyond the end
             query[:12] + 4 * (b"\x3f" + bytes(63)) + query[-5:]]  # too long
    between = {"src": "10.77.0.2", "dst": "10.77.0.1"}
    ether = Ether(dst=dns.middle.link("p0")["address"], src=ETHER.src)
    frames = [ether / IP(**between) / UDP(sport=7, dport=53) / data
              for data in lies]
    frames += [head / IP(**between, **more) / UDP(sport=7, dport=53) / query
               for head, more in (
                   (Ether(dst="ff:ff:ff:ff:ff:ff", src=ETHER.src), {}),
                   (ETHER, {}),  # to another host
                   (ether, {"chksum": 1}), (ether, {"flags": "MF"}),
                   (ether, {"options": IPOption(b"\x94\x04\0\0")}))]
    frames += [ether / IP(**between) / UDP(sport=7, dport=53, len=n) / query
               for n in (0, 20, 200)]
    for data in frames:
        dns.wires[0].send(bytes(data))
    assert "192.0.2.1" in dig(dns, "+short", "192-0-2-1.example.org")
    n_answered, n_ignored = map(int, re.findall(r"(\d+) (?:answ|ign)", dns.stop()))
    assert n_ignored == len(frames) and n_answered >= 1


def test_mirror_shows_each_frame(lab):
    example = Example(lab, [EXAMPLES / "example-mirror"], "p0", "p1",
                      more=["tap:m0"])
    signals.await_sigint(example.process)
    example.wires[0].send(frame(60))
    assert example.wires[1].receive(1) == [frame(60)]
    n = n_unseen = 1  # the tap was not up
    example.middle.ip("link", "set", "m0", "up")
    tap = lab.closing(Wire(example.middle, "m0", TEST_TYPE))
    for near, far in (0, 1), (1, 0):
        frames = [frame(60 + 97 * i, i) for i in range(15)]
        example.wires[near].send_all(frames)
        assert example.wires[far].receive(len(frames)) == frames
        assert tap.receive(len(frames)) == frames
        n += len(frames)
    assert example.stop().strip() == (
        f"{n} forwarded, 0 not sent; {n - n_unseen} mirrored, {n_unseen} not")
    assert example.middle.link("m0") is None


def test_mirror_forwards_frames_of_kernels(lab):
    """The port completes their checksums, in frames that it shares."""
    example = Example(lab, [EXAMPLES / "example-mirror"], "p0", "p1",
                      more=["tap:m0"])
    for i, host in enumerate(example.hosts):
        host.ip("address", "add", f"10.77.0.{i + 1}/24", "dev", "h0")
    signals.await_sigint(example.process)
    example.middle.ip("link", "set", "m0", "up")
    talk.tcp(*example.hosts, "10.77.0.2")
    n_forwarded, n_mirrored = map(int, re.findall(r"(\d+) (?:for|mir)",
                                                  example.stop()))
    assert n_forwarded >= n_mirrored > (4 << 20) / 1500


def blocks(path):
    """(type, body) of each whole block of a pcapng file."""
    data = path.read_bytes() if path.exists() else b""
    while len(data) >= 12:
        kind, size = struct.unpack_from("<II", data)
        if len(data) < size:
            return
        assert struct.unpack_from("<I", data, size - 4) == (size,)
        yield kind, data[8:size - 4]
        data = data[size:]


@pytest.fixture
def sampler(lab, tmp_path):
    """A function that starts one on an interface with two queues, sends it 60
    frames of as many flows, and waits for n samples; its file, the frames."""
    def start(interval, n):
        star = Star(lab, 1, queues=2)
        path = tmp_path / "samples"
        example = Process(lab, star.middle, [
            EXAMPLES / "example-sampler", interval, path, "p0"])
        signals.await_sigint(example.process)
        frames = [bytes(ETHER / IP() / UDP(sport=i) / bytes(7 * i))
                  for i in range(1, 61)]
        lab.closing(Wire(star.hosts[0], "h0")).send_all(frames)
        wait_until("samples", lambda: n <= len(
            [kind for kind, _ in blocks(path) if kind == 6]))
        example.process.send_signal(signal.SIGINT)
        assert example.wait() == 0, example.err.text()
        return path, frames
    return start


def test_sampler_of_each_frame(sampler):
    path, frames = sampler(1, 60)
    assert sorted(map(bytes, rdpcap(str(path)))) == sorted(frames)
    need("tshark", "tshark")
    said = run("tshark", "-r", path, "-Tfields", "-e", "frame.interface_name",
               "-e", "udp.srcport").stdout
    assert sorted(map(int, re.findall(r"queue 0[01]\t(\d+)", said))) == list(
        range(1, 61))


def test_sampler_ends_with_its_reader():
    """The reader of the pipe has gone."""
    near, far = os.pipe()
    with os.fdopen(far, "wb") as out:
        os.close(near)
        done = run(EXAMPLES / "example-sampler", 1000, f"/dev/fd/{far}",
                   "null:", check=False, pass_fds=[far])
    assert done.returncode == 1 and "Broken pipe" in done.stdout


@pytest.mark.parametrize("words", [
    ["1e3", "null:"], ["-1", "null:"], [1, "no such port"]])
def test_sampler_keeps_a_file_if_it_cannot_begin(tmp_path, words):
    path = tmp_path / "samples"
    path.write_text("precious")
    done = run(EXAMPLES / "example-sampler", words[0], path, words[1],
               check=False, timeout=20)
    assert done.returncode != 0 and done.stdout.count("\n") == 1
    assert path.read_text() == "precious"


def test_sampler_of_every_third_frame(sampler):
    """Every third frame of each queue, beginning with the first."""
    path, frames = sampler(3, 20)
    queues = [struct.unpack_from("<I", body)[0]
              for kind, body in blocks(path) if kind == 6]
    counters = [struct.unpack("=I8x4xQ4xQ4xQ4x", body)
                for kind, body in blocks(path) if kind == 5]
    assert [queue for queue, *_ in counters] == [0, 1]
    for queue, n_seen, n_lost, n_written in counters:
        assert n_lost == 0
        assert n_written == queues.count(queue) == (n_seen + 2) // 3 > 0
    assert 58 <= sum(n_seen for _, n_seen, *_ in counters) <= len(frames)


def test_sampler_of_a_slow_reader_counts_what_is_lost(lab, tmp_path):
    """The reader of a pipe stops, until the ring has overflowed."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    example = Example(lab, [EXAMPLES / "example-sampler", 1, path], "p0")
    signals.await_sigint(example.process)
    sent = [frame(1514, i) for i in range(6000)]
    example.wires[0].send_all(sent)
    os.set_blocking(reader, True)
    with open(reader, "rb") as pipe:
        example.process.send_signal(signal.SIGINT)
        (tmp_path / "samples").write_bytes(pipe.read())
    assert example.wait() == 0, example.err.text()
    found = list(blocks(tmp_path / "samples"))
    (_, n_received, n_lost, n_written), = [
        struct.unpack("=I8x4xQ4xQ4xQ4x", body)
        for kind, body in found if kind == 5]
    assert n_written == len([kind for kind, _ in found if kind == 6])
    assert n_received == n_written + n_lost and n_lost > 0


class Balancer(Example):
    """The balancer of 192.0.2.80, and servers that are numbers: the last byte
    of a MAC address. What it forwards comes back to its only host."""

    def __init__(self, lab, *servers):
        self.path = lab.tmp_path / "servers"
        self.write(servers)
        super().__init__(lab, [EXAMPLES / "example-lb", self.path],
                         "xdp:p0,filter=dst host 192.0.2.80 and (tcp or udp)")
        signals.await_sigint(self.process)

    def write(self, servers):
        self.path.write_text("# a comment\n\n" + "".join(
            f"02:00:00:00:00:{server:02x} # a server\n" for server in servers))

    def change(self, *servers):
        """Replace the set of servers while it runs."""
        self.write(servers)
        n_before = self.out.count()
        self.process.send_signal(signal.SIGHUP)
        assert self.out.wait(f"{len(servers)} servers".__eq__, 10, n_before)

    def servers_of(self, clients, n_ports=100):
        """{connection: its server}, of 100 connections of each client."""
        head = Ether(dst=self.middle.link("p0")["address"],
                     src="02:00:00:00:01:00")
        wanted = {}
        for client in clients:
            packet = bytes(head / IP(src=f"198.18.0.{client}", dst="192.0.2.80") /
                           TCP(sport=1, dport=80))
            for port in range(n_ports):
                data = packet[:34] + struct.pack("!H", 1024 + port) + packet[36:]
                wanted[data[12:]] = (client, port)
        frames = [bytes(head)[:12] + data for data in wanted]
        got = []
        while frames:  # no more at a time than its ring holds
            self.wires[0].send_all(frames[:500])
            got += self.wires[0].receive(len(frames[:500]))
            frames = frames[500:]
        assert len(got) == len(wanted)
        assert {data[6:12] for data in got} == {bytes.fromhex(
            self.middle.link("p0")["address"].replace(":", ""))}
        return {wanted[data[12:]]: data[5] for data in got}


def test_balancer_balances(lab):
    """Servers have shares within a tenth of each other, and one that goes
    takes few of the others' connections along, even if all are new."""
    before = Balancer(lab, 1, 2, 3, 4).servers_of(range(1, 41))
    counts = Counter(before.values())
    assert sorted(counts) == [1, 2, 3, 4]
    assert all(900 <= n <= 1100 for n in counts.values()), counts
    after = Balancer(lab, 1, 2, 4).servers_of(range(1, 41))
    assert 3 not in after.values()
    n_moved = sum(before[one] not in (3, after[one]) for one in before)
    assert n_moved < len(before) / 20


def test_balancer_keeps_connections(lab):
    """When servers come and go, those of other servers stay where they are."""
    balancer = Balancer(lab, 1, 2, 3)
    first = balancer.servers_of(range(1, 11))
    balancer.change(1, 2, 3, 4)
    assert balancer.servers_of(range(1, 11)) == first
    assert Counter(balancer.servers_of(range(11, 21)).values())[4] > 200
    balancer.change(4, 3, 1)
    after = balancer.servers_of(range(1, 11))
    assert all(after[one] in ((3, 1, 4) if server == 2 else (server,))
               for one, server in first.items())
    balancer.change(1, 2, 3, 4)
    assert balancer.servers_of(range(1, 11)) == after
    assert " 0 not sent" in balancer.stop()


def test_balancer_keeps_its_servers_if_a_file_is_wrong(lab):
    balancer = Balancer(lab, 1)
    good = "02:00:00:00:00:02"
    for text in (f"{good}\n02:00:00:00:03\n", "", "# none\n",
                 f"{good} {good}\n", "ff:ff:ff:ff:ff:ff\n",
                 f"#{300 * '#'}{good}\n"):
        balancer.path.write_text(text)
        n_before = balancer.err.count()
        balancer.process.send_signal(signal.SIGHUP)
        line = balancer.err.wait(lambda line: str(balancer.path) in line, 10,
                                 n_before)
        assert line and "as 02:00:00:00:00:01" in line
    assert set(balancer.servers_of([1]).values()) == {1}
    balancer.path.unlink()
    balancer.process.send_signal(signal.SIGHUP)
    balancer.says("No such file")
    balancer.path.mkdir()
    balancer.process.send_signal(signal.SIGHUP)
    balancer.says("Is a directory")
    balancer.stop()


def test_balancer_ignores_frames_of_no_connection(lab):
    """And what a switch floods: another balancer, for one, may have sent it."""
    balancer = Balancer(lab, 1)
    ip = {"src": "198.18.0.1", "dst": "192.0.2.80"}
    ether = Ether(dst=balancer.middle.link("p0")["address"], src=ETHER.src)
    frames = [head / packet for head, packet in (
        (ETHER, IP(**ip) / TCP()), (ether, IP(**ip, flags="MF") / TCP()),
        (Ether(dst="ff:ff:ff:ff:ff:ff"), IP(**ip) / TCP()),
        (ether, IP(**ip, len=2000) / TCP()),
        (ether, IP(**ip, proto=6) / bytes(19)))]
    for data in frames:
        balancer.wires[0].send(bytes(data))
    assert len(balancer.servers_of([1])) == 100
    assert f"100 balanced, {len(frames)} ignored" in balancer.stop()


def test_balancer_of_web_servers(lab, tmp_path):
    """Real connections, to real servers that all have the address."""
    switch = lab.namespace("s")
    switch.ip("link", "add", "br0", "type", "bridge", "forward_delay", 0)
    hosts = [lab.namespace(f"h{i}") for i in range(4)]
    for i, host in enumerate(hosts):
        lab.veth(switch, f"d{i}", host, "h0")
        switch.ip("link", "set", f"d{i}", "master", "br0")
        host.ip("address", "add", f"192.0.2.{i + 1}/24", "dev", "h0")
    switch.ip("link", "set", "br0", "up")
    client, middle, *servers = hosts
    middle.ip("address", "add", "192.0.2.80/32", "dev", "h0")
    for server in servers:  # has the address, but does not say so
        server.sysctl("net.ipv4.conf.h0.arp_ignore", 1)
        server.ip("address", "add", "192.0.2.80/32", "dev", "lo")
        lab.closing(Web(server, 80))
    macs = [server.link("h0")["address"] + "\n" for server in servers]
    path = tmp_path / "servers"
    path.write_text(macs[0])
    balancer = Process(lab, middle, [
        EXAMPLES / "example-lb", path,
        "xdp:h0,filter=tcp and dst host 192.0.2.80"])
    signals.await_sigint(balancer.process)
    with talk.socket_in(client, socket.SOCK_STREAM) as old:
        old.connect(("192.0.2.80", 80))
        old.sendall(b"GET /who HTTP/1.0\r\n")
        path.write_text("".join(macs))
        balancer.process.send_signal(signal.SIGHUP)
        assert balancer.out.wait("2 servers".__eq__, 10)
        for _ in range(10):
            assert client.run("curl", "-sS", "-m", 20, "192.0.2.80/who"
                              ).stdout.startswith("192.0.2.1:")
        old.sendall(b"\r\n")
        assert b"\n192.0.2.1:" in old.makefile("rb").read()


@pytest.mark.parametrize("name", ["answer", "dns", "lb", "mirror",
                                  "sampler"])
def test_wrong_arguments_get_one_line(lab, name):
    wrong = {"answer": ["10.77.0.1", "fd77::1", "no such port"],
             "mirror": ["no such port"] * 3,
             "lb": ["/dev/null", "null:"],
             "sampler": [1, "/dev/null", "no such port"]}
    for words in [], wrong.get(name, ["no such port"]):
        done = lab.namespace("x").run(EXAMPLES / f"example-{name}", *words,
                                      check=False)
        assert done.returncode == 1 + (not words)
        assert done.stdout.count("\n") == 1


def test_reopen_goes_on_counting_after_its_device_returned(lab, star):
    example = Process(lab, star.middle,
                      [EXAMPLES / "example-reopen", "xdp:p0"])
    assert example.out.wait("counting".__eq__, 15), example.err.text()
    star.middle.ip("link", "delete", "p0")
    assert example.out.wait("the device is gone".__eq__, 15)
    lab.veth(star.hosts[0], "h0", star.middle, "p0")
    assert example.out.wait("opened again after 0 entries".__eq__, 15)
    wire = lab.closing(Wire(star.hosts[0], "h0", TEST_TYPE))
    wire.send_all([frame(100, i) for i in range(10)])
    example.process.send_signal(signal.SIGINT)
    assert example.wait() == 0
    assert example.out.text().splitlines()[-1].endswith(" entries")
