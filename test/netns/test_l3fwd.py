# SPDX-License-Identifier: BSD-3-Clause
"""examples/l3fwd.c: kernels of hosts, routed through it."""
import re
import signal
import time

import pytest
import signals
from lib import talk
from lib.namespaces import wait_until
from lib.process import BUILD, Process
from lib.wire import Wire
from scapy.all import ICMP, IP, UDP, Dot1Q, Ether, IPv6

L3FWD = BUILD / "examples/example-l3fwd"
ROUTES = """\
10.1.0.1/24       0
2001:db8:1::1/64  0   # a comment
10.2.0.1/24       1

2001:db8:2::1/64  1
10.3.0.0/16       10.2.0.2
10.4.0.0/16       10.2.0.77
2001:db8:3::/48   2001:db8:2::2
"""
HOSTS = [["10.1.0.2", "2001:db8:1::2"], ["10.2.0.2", "2001:db8:2::2"]]
# Of the second host, behind the next hop of a route.
BEHIND = ["10.3.9.9", "2001:db8:3:9::9"]


class Router(Process):
    """A running router between two hosts."""

    def __init__(self, lab, queues=1, text=ROUTES, mtu=None):
        self.middle = lab.namespace("f")
        self.hosts = [lab.namespace(f"h{i}") for i in range(2)]
        for i, host in enumerate(self.hosts):
            lab.veth(host, "h0", self.middle, f"p{i}", queues)
            for end, name in (host, "h0"), (self.middle, f"p{i}"):
                end.run("ethtool", "-L", name, "rx", queues, "tx", queues)
            host.sysctl("net.ipv6.conf.h0.disable_ipv6", 0)
            for address, bits in zip(HOSTS[i], (24, 64)):
                family = "-6" if ":" in address else "-4"
                host.ip(family, "address", "add", f"{address}/{bits}", "dev", "h0",
                        *(["nodad"] if family == "-6" else []))
                host.ip(family, "route", "add", "default", "via",
                        address[:-1] + "1")
        if mtu:
            for end, name in (self.hosts[1], "h0"), (self.middle, "p1"):
                end.ip("link", "set", name, "mtu", mtu)
        for address in BEHIND:
            self.hosts[1].ip("address", "add", address, "dev", "h0",
                             *(["nodad"] if ":" in address else []))
        self.path = lab.tmp_path / "routes"
        self.path.write_text(text)
        super().__init__(lab, self.middle, [L3FWD, self.path, "p0", "p1"])
        signals.await_sigint(self.process)

    def reach(self, address):
        """Ping until there is an answer: the first packets ask for neighbours."""
        wait_until(f"{address} answers", lambda: self.hosts[0].run(
            "ping", "-c", 1, "-W", 1, address, check=False).returncode == 0)

    def stop(self):
        """End it with Ctrl-C: it fails if a page is missing. Its counters."""
        self.process.send_signal(signal.SIGINT)
        assert self.wait() == 0, self.err.text()
        return {name: int(n) for n, name in
                (line.split(" ", 1) for line in self.out.text().splitlines())}


@pytest.mark.short
@pytest.mark.parametrize("queues", [1, 2])
def test_packets_are_routed(lab, queues):
    """Pings and TCP in both families, to a neighbour and beyond one."""
    router = Router(lab, queues)
    for address in HOSTS[1] + BEHIND:
        router.reach(address)
        assert talk.ping(router.hosts[0], address, 5) == 5
        talk.tcp(*router.hosts, address)
    for address in HOSTS[0]:
        talk.tcp(*router.hosts[::-1], address)
    for address in "10.1.0.1", "10.2.0.1", "2001:db8:1::1", "2001:db8:2::1":
        assert talk.ping(router.hosts[0], address, 2) == 2  # the router itself
    counts = router.stop()
    assert counts["forwarded"] > 10_000 and counts["malformed"] == 0
    assert counts["unresolved"] >= 2 and counts["no host"] == 0


def said_by_ping(host, address, *words):
    return host.run("ping", "-n", "-c", 1, "-W", 2, *words, address,
                    check=False).stdout


def test_senders_are_told_why_packets_are_dropped(lab):
    """By the address of the router on their side; what is quoted belongs to the
    ping, or the kernel would not say so."""
    router = Router(lab, mtu=1300)
    host = router.hosts[0]
    for address in BEHIND:
        router.reach(address)
    for far, near, nowhere in ((BEHIND[0], "10.1.0.1", "10.9.0.1"),
                               (BEHIND[1], "2001:db8:1::1", "2001:db8:9::1")):
        for words, reason in (((far, "-t", 1), "(?i)time.* exceeded"),
                              ((nowhere,), "(?i)net unreachable|no route"),
                              ((far, "-s", 1400, "-M", "do"), "mtu ?= ?1300")):
            said = said_by_ping(host, *words)
            assert re.search(reason, said) and f"rom {near} " in said, said
        talk.tcp(*router.hosts, far, 1 << 18)  # finds the MTU
    said = wait_until("the next hop does not answer", lambda: re.search(
        "From (.*) icmp.* Host Unreachable", said_by_ping(host, "10.4.0.1")))
    assert said[1] == "10.1.0.1"
    counts = router.stop()
    assert counts["ttl"] == counts["no route"] == 2
    assert counts["too big"] >= 2 and counts["unresolved"] >= 3
    assert counts["no host"] >= 1


def test_packets_that_must_not_be_routed_are_counted(lab):
    router = Router(lab)
    router.reach(BEHIND[0])
    router.reach(BEHIND[1])
    wire = lab.closing(Wire(router.hosts[0], "h0"))
    ether = Ether(dst=router.middle.link("p0")["address"],
                  src=router.hosts[0].link("h0")["address"])
    udp = UDP(sport=9, dport=9)
    ip = {"src": HOSTS[0][0], "dst": BEHIND[0]}
    ip6 = {"src": HOSTS[0][1], "dst": BEHIND[1]}
    packets = {
        "malformed": [ether / IP(**ip, chksum=1) / udp, ether / IP(**ip, len=999) / udp,
                      ether / IPv6(**ip6, plen=999) / udp],
        "unroutable": [ether / IP(src="127.0.0.1", dst=ip["dst"]) / udp,
                       ether / IP(src="224.0.0.5", dst=ip["dst"]) / udp,
                       ether / IP(src=ip["src"], dst="239.1.1.1") / udp,
                       ether / IPv6(src="fe80::1", dst=ip6["dst"]) / udp,
                       ether / IPv6(src=ip6["src"], dst="::ffff:10.3.9.9") / udp],
        "other": [Ether(dst="02:00:00:00:09:09", src=ether.src) / IP(**ip) / udp,
                  ether / Dot1Q(vlan=5) / IP(**ip) / udp],
        "no port": [ether / IP(src=ip["src"], dst="10.1.0.1") / udp],
    }
    frames = [bytes(packet) for some in packets.values() for packet in some]
    wire.send_all(frames)
    assert talk.ping(router.hosts[0], BEHIND[0], 1)  # after them
    errors = [Ether(data) for data in wire.receive(100, 1)]
    counts = router.stop()
    for name, some in packets.items():
        assert counts[name] >= len(some), (name, counts)
    assert counts["malformed"] == 3 and counts["unroutable"] == 5
    ports = [e for e in errors if ICMP in e and e[ICMP].type == 3]
    assert [(e[ICMP].code, e[IP].src) for e in ports] == [(3, "10.1.0.1")]


def test_errors_are_limited(lab):
    """To about fifty at once, and a thousand a second."""
    router = Router(lab)
    wire = lab.closing(Wire(router.hosts[0], "h0"))
    packet = bytes(Ether(dst=router.middle.link("p0")["address"],
                         src=router.hosts[0].link("h0")["address"]) /
                   IP(src=HOSTS[0][0], dst=BEHIND[0], ttl=1) / UDP() / bytes(40))
    begin_s = time.monotonic()
    wire.send_all([packet] * 400)
    assert talk.ping(router.hosts[0], "10.1.0.1", 1)  # after them
    errors = [Ether(data) for data in wire.receive(400, 1)]
    errors = [e for e in errors if ICMP in e and e[ICMP].type == 11]
    limit = 51 + 1000 * (time.monotonic() - begin_s)
    assert 50 <= len(errors) <= limit
    assert bytes(errors[0][ICMP].payload) == packet[14:]
    assert router.stop()["ttl"] == 400


@pytest.mark.parametrize("line, named", [
    ("10.0.0.0/33 10.1.0.2", "192.0.2.1/24 0"),
    ("2001:db8::/129 2001:db8:1::2", "192.0.2.1/24 0"),
    ("10.0.0.0 10.1.0.2", "192.0.2.1/24 0"),
    ("10.0.0.0/8", "port"),
    ("10.0.0.0/8 10.1.0.2 10.1.0.3", "192.0.2.1/24 0"),
    ("10.0.0.0/x 10.1.0.2", "192.0.2.1/24 0"),
    ("10.0.0.0/8 10.9.0.2", "network"),
    ("10.0.0.0/8 10.5.0.2", "network"),  # behind another next hop
    ("10.9.0.1/24 2", "port"),
    ("10.9.0.1/24 -1", "port"),
    ("10.9.0.1/24 1x", "port"),
    ("10.9.0.1/24 0", "address")])
def test_a_bad_line_is_named(lab, line, named):
    path = lab.tmp_path / "routes"
    path.write_text(f"10.1.0.1/24 0\n# fine\n10.5.0.0/16 10.1.0.2\n{line}\n")
    done = lab.namespace("f").run(L3FWD, path, "null:", "null:", check=False)
    assert done.returncode == 1 and done.stdout.count("\n") == 1, done.stdout
    assert f"{path}:4: " in done.stdout and named in done.stdout, done.stdout


@pytest.mark.parametrize("words, status", [
    ([], 2), (["/nonexistent", "null:"], 1), (["/tmp", "null:"], 1),
    (["/dev/null", "no such port"], 1), (["/dev/null"] + ["null:"] * 9, 2)])
def test_wrong_arguments_get_one_line(lab, words, status):
    done = lab.namespace("f").run(L3FWD, *words, check=False)
    assert done.returncode == status and done.stdout.count("\n") == 1, done.stdout


def test_a_million_routes_are_loaded(lab):
    """Of odd numbers, to a next hop that is not there."""
    router = Router(lab, text=ROUTES + "".join(
        f"{n >> 16}.{n >> 8 & 255}.{n & 255}.0/24 10.2.0.{2 + n % 2 * 75}\n"
        for n in range(11 << 16, (11 << 16) + 1_000_000)))
    for address in "11.0.0.9", "26.66.60.9":  # the first and one of the last
        router.hosts[1].ip("address", "add", address, "dev", "h0")
        router.reach(address)
    router.stop()
