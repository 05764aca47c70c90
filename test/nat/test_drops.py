# SPDX-License-Identifier: BSD-3-Clause
"""What is refused, by name: bad input, wrong addresses."""
import pytest
from scapy.all import (ICMP, IP, TCP, UDP, Dot1Q, Ether, IPOption_LSRR,
                       IPv6, raw)

from harness import INSIDE, MACS, mac_of, tcp, udp

HOST, PEER, OURS = "10.0.0.2", "198.51.100.7", "192.0.2.1"
ROUTER = "203.0.113.9"


def changed(packet, **fields):
    """An IP packet with other fields, its sum right again."""
    data = IP(raw(packet))
    for name, value in fields.items():
        setattr(data, name, value)
    data.chksum = None
    return IP(raw(data))


def frame(payload=b"", side=INSIDE, **eth):
    """An Ethernet frame to us, unless told otherwise."""
    return Ether(**{"src": mac_of(HOST), "dst": MACS[side], **eth}) / payload


def spoil(packet, at):
    """One byte of it is another."""
    data = bytearray(raw(packet))
    data[at] ^= 0x55
    return bytes(data)


GOOD = udp(HOST, 5000, PEER, 53)


@pytest.mark.parametrize("packet, reason", [
    (b"\2\x0a\x0a\x0a\x0a\x0a\2\0", "runt"),
    (frame(Dot1Q(vlan=5))[Ether].build()[:15], "runt"),
    (frame(GOOD, dst="02:00:00:00:00:99"), "not_for_us"),
    (frame(GOOD, dst="ff:ff:ff:ff:ff:ff"), "not_for_us"),
    (frame(IPv6() / UDP()), "ether_type"),
    (frame(b"x" * 50, type=0x88cc), "ether_type"),
    (frame(Dot1Q(vlan=5) / GOOD), "vlan"),
    (frame(b"", type=0x800), "malformed"),
    (frame(raw(GOOD)[:19], type=0x800), "malformed"),
    (changed(GOOD, version=6), "malformed"),
    (changed(GOOD, ihl=4), "malformed"),
    (changed(GOOD, ihl=15), "malformed"),
    (changed(GOOD, len=19), "malformed"),
    (changed(GOOD, len=200), "malformed"),
    (spoil(frame(GOOD), 14 + 10), "ip_csum"),
    (changed(GOOD, len=27), "l4_malformed"),
    (udp(HOST, 1, PEER, 2)[IP] and IP(raw(IP(src=HOST, dst=PEER) / UDP(
        sport=1, dport=2, len=7))), "l4_malformed"),
    (IP(raw(IP(src=HOST, dst=PEER) / UDP(sport=1, dport=2, len=99))),
     "l4_malformed"),
    (IP(raw(IP(src=HOST, dst=PEER) / TCP(dataofs=4))), "l4_malformed"),
    (IP(raw(IP(src=HOST, dst=PEER) / TCP(dataofs=9))), "l4_malformed"),
    (IP(raw(IP(src=HOST, dst=PEER, proto=6) / bytes(19))), "l4_malformed"),
    (IP(raw(IP(src=HOST, dst=PEER, proto=1) / bytes(7))), "l4_malformed"),
    (changed(GOOD, src="127.0.0.1"), "martian"),
    (changed(GOOD, src="0.0.0.0"), "martian"),
    (changed(GOOD, src="224.0.0.1"), "martian"),
    (changed(GOOD, src="10.0.0.255"), "martian"),
    (changed(GOOD, dst="255.255.255.255"), "martian"),
    (changed(GOOD, dst="239.1.1.1"), "martian"),
    (changed(GOOD, dst="127.0.0.1"), "martian"),
    (changed(GOOD, dst="192.0.2.255"), "martian"),
    (changed(GOOD, src="10.1.0.2"), "spoofed"),
    (changed(GOOD, src="10.0.0.1"), "spoofed"),
    (changed(GOOD, src=OURS), "spoofed"),
    (changed(GOOD, dst="10.0.3.4"), "no_route"),
    (tcp(HOST, 1, PEER, 2, "A"), "tcp_state"),
    (tcp(HOST, 1, PEER, 2, "R"), "tcp_state"),
    (tcp(HOST, 1, PEER, 2, "SF"), "tcp_state"),
    (tcp(HOST, 1, PEER, 2, "SR"), "tcp_state"),
    (udp(HOST, 1, "169.254.7.7", 2), "martian"),
    (IP(raw(IP(src=HOST, dst=PEER) / ICMP(type=0, id=1))), "no_mapping"),
    (IP(raw(IP(src=HOST, dst=PEER) / ICMP(type=5))), "icmp_type"),
    (IP(raw(IP(src=HOST, dst="10.0.0.1", options=[IPOption_LSRR(
        routers=[ROUTER], pointer=8)]) / ICMP())), "source_route"),
])
def test_from_inside(nat, packet, reason):
    out = nat.inside(packet)
    assert not out.outside
    assert nat.drops == {reason: 1}
    assert nat.counter("mappings") == 0


@pytest.mark.parametrize("packet, reason", [
    (udp(PEER, 53, OURS, 4242), "no_mapping"),
    (udp(PEER, 53, "192.0.2.77", 4242), "no_mapping"),
    (udp(PEER, 53, HOST, 5000), "no_mapping"),
    (tcp(PEER, 53, OURS, 4242, "A"), "no_mapping"),
    (udp("10.0.0.9", 53, OURS, 4242), "spoofed"),
    (udp("10.0.77.9", 53, OURS, 4242), "spoofed"),
    (udp(OURS, 53, OURS, 4242), "spoofed"),
    (udp("192.0.2.255", 53, OURS, 4242), "martian"),
    (udp(PEER, 53, "10.0.0.1", 4242), "no_mapping"),
    (IP(raw(IP(src=PEER, dst=OURS, proto=47) / bytes(20))), "no_mapping"),
])
def test_from_outside(nat, packet, reason):
    assert not nat.outside(packet)
    assert nat.drops == {reason: 1}


def test_syn_to_ourselves_is_refused(nat_of):
    """No service listens; from outside, where the address is ours alone."""
    nat = nat_of(outside=["192.0.2.1/24", "192.0.2.9/24"])
    for send, source, ours in ((nat.inside, HOST, "10.0.0.1"),
                               (nat.inside, HOST, "192.0.2.9"),
                               (nat.outside, PEER, "192.0.2.9")):
        got = send(tcp(source, 4000, ours, 22, "S", seq=0xffffffff)).one
        assert (got[IP].src, got[IP].dst) == (ours, source)
        assert (got[TCP].sport, got[TCP].dport) == (22, 4000)
        assert (got[TCP].flags, got[TCP].seq, got[TCP].ack) == ("RA", 0, 0)
    assert not nat.outside(tcp(PEER, 4000, OURS, 22, "S"))  # RFC 5382 REQ-4
    for flags in ("R", "A", "SA"):
        assert not nat.outside(tcp(PEER, 4000, "192.0.2.9", 22, flags))
    group = Ether(src="03:00:00:00:00:01", dst=MACS[0]) / tcp(
        HOST, 4000, "10.0.0.1", 22, "S")
    assert not nat.inside(group)  # nobody to send it to
    wrong = tcp(PEER, 4000, "192.0.2.9", 22, "S")
    wrong[TCP].chksum ^= 1
    assert not nat.outside(wrong)
    n = sum(len(nat.outside(tcp(PEER, i, "192.0.2.9", 22, "S")))
            for i in range(1, 200))
    assert 0 < n < 150  # at a rate
    nat.advance(10)


@pytest.mark.parametrize("option", [b"\x44\0", b"\x44\1", b"\x44\x09",
                                    b"\1\1\1\x44"])
def test_broken_options(nat, option):
    packet = IP(raw(udp(HOST, 5000, PEER, 53)))
    data = raw(packet)
    head = bytearray(data[:20] + option.ljust(4, b"\1"))
    head[0] = 0x46
    head[2:4] = (len(data) + 4).to_bytes(2, "big")
    head[10:12] = b"\0\0"
    broken = IP(bytes(head) + data[20:])
    broken.chksum = None
    assert not nat.inside(IP(raw(broken)))
    assert nat.drops == {"malformed": 1}


def test_a_side_never_changes_its_mind_about_addresses(nat):
    """Known flows are looked at as closely as new ones."""
    port = nat.inside(udp(HOST, 5000, PEER, 53)).one[UDP].sport
    nat.outside(udp(PEER, 53, OURS, port))
    for source in ("10.0.0.9", OURS, "127.0.0.1", "224.0.0.9"):
        assert not nat.outside(udp(source, 53, OURS, port))
    for target in ("10.0.0.9", "127.0.0.1", "224.0.0.9"):
        assert not nat.inside(udp(HOST, 5000, target, 53)).outside
    assert sum(nat.drops.values()) == 7


@pytest.mark.parametrize("side", ["inside", "outside"])
def test_headers_of_known_flows_are_looked_at(nat, side):
    port = nat.inside(udp(HOST, 5000, PEER, 53)).one[UDP].sport
    packet = GOOD if side == "inside" else udp(PEER, 53, OURS, port)
    send = getattr(nat, side)
    for _ in range(2):
        assert send(packet).one[IP].ttl == 63
    assert send(changed(packet, ttl=1)).one[ICMP].type == 11
    assert send(changed(packet, ttl=2)).one[IP].ttl == 1
    assert not send(IP(spoil(packet, 10)))
    assert not send(changed(packet, len=27))
    broken = IP(raw(packet))
    broken[UDP].len = 50
    assert not send(IP(raw(broken)))
    assert nat.drops == {"ttl": 1, "ip_csum": 1, "l4_malformed": 2}
