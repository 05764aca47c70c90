# SPDX-License-Identifier: BSD-3-Clause
"""Packets of known flows, both ways: addresses, ports, sums, TTL, layer 2.

Sums of all that comes out are checked by harness.py.
"""
import pytest
from scapy.all import ICMP, IP, TCP, UDP, Dot1Q, Ether, raw

from harness import (CSUM_PARTIAL, CSUM_VALID, INSIDE, MACS, SHARED, mac_of, ping,
                 sum16, tcp, udp)
from rfc import HOST, OURS, PEER, partial


def open_flow(nat, sport=5000):
    """Send one packet out; the outside port that it got."""
    return nat.inside(udp(HOST, sport, PEER, 53)).outside[0][UDP].sport


def test_udp_both_ways(nat):
    out = nat.inside(udp(HOST, 5000, PEER, 53, b"question", ttl=9)).one
    assert (out[IP].src, out[IP].dst, out[IP].ttl) == (OURS, PEER, 8)
    assert (out[UDP].dport, raw(out[UDP].payload)) == (53, b"question")
    assert (out.src, out.dst) == (MACS[1], mac_of("192.0.2.254"))
    for _ in range(2):  # one by one at first, then in the fast stage
        back = nat.outside(udp(PEER, 53, OURS, out[UDP].sport, b"answer"))
        assert not back.outside
        back = back.one
        assert (back[IP].src, back[IP].dst) == (PEER, HOST)
        assert (back[UDP].sport, back[UDP].dport) == (53, 5000)
        assert (back.src, back.dst) == (MACS[0], mac_of(HOST))
    again = nat.inside(udp(HOST, 5000, PEER, 53)).one
    assert again[UDP].sport == out[UDP].sport
    assert nat.drops == {}
    assert nat.counter("translated_inside") == 2
    assert nat.counter("translated_outside") == 2


@pytest.mark.parametrize("address, side", [("10.0.0.1", "inside"),
                                           (OURS, "inside"),
                                           (OURS, "outside")])
def test_own_addresses_answer_ping(nat, address, side):
    source = HOST if side == "inside" else PEER
    got = getattr(nat, side)(ping(source, address, payload=bytes(1200)))
    reply = getattr(got, side)[0]
    assert (reply[IP].src, reply[IP].dst) == (address, source)
    assert (reply[ICMP].type, reply[ICMP].id, reply[IP].ttl) == (0, 7, 64)
    assert (reply.src, reply.dst) == (MACS[side == "outside"], mac_of(source))
    assert nat.drops == {}
    assert nat.counter("mappings") == 0


def test_ping_of_our_own_is_silent_if_told(nat_of):
    nat = nat_of(ping=False)
    assert not nat.outside(ping(PEER, OURS))
    assert nat.drops == {"no_mapping": 1}


@pytest.mark.parametrize("flags, expected", [(0, 0), (CSUM_VALID, CSUM_VALID)])
def test_udp_without_a_sum_stays_without(nat, flags, expected):
    packet = udp(HOST, 5000, PEER, 53)
    packet[UDP].chksum = 0
    for _ in range(2):
        out = nat.inside(packet, flags=flags).one
        assert out[UDP].chksum == 0
        assert out.csum_flags == expected
    back = udp(PEER, 53, OURS, out[UDP].sport)
    back[UDP].chksum = 0
    for _ in range(2):
        assert nat.outside(back).one[UDP].chksum == 0


def payload_for_zero(source, sport, target, dport):
    """Two bytes of payload that make the UDP sum 0xffff on the wire."""
    packet = udp(source, sport, target, dport, b"\0\0")
    packet[UDP].chksum = 0
    data = raw(packet)
    pseudo = data[12:20] + b"\0\x11\0\x0a"
    return (0xffff - sum16(pseudo + data[20:])).to_bytes(2, "big")


def test_a_sum_of_zero_is_written_as_ffff(nat):
    """RFC 768; wherever ids and ports lead to it."""
    port = open_flow(nat)
    good = payload_for_zero(OURS, port, PEER, 53)
    for _ in range(2):
        out = nat.inside(udp(HOST, 5000, PEER, 53, good)).one
        assert out[UDP].chksum == 0xffff
    good = payload_for_zero(PEER, 53, HOST, 5000)
    assert nat.outside(udp(PEER, 53, OURS, port, good)).one[UDP].chksum == \
        0xffff


@pytest.mark.parametrize("make", [lambda *a: udp(*a),
                                  lambda *a: tcp(*a, flags="S")])
def test_partial_sums_stay_partial(nat, make):
    """What is in the field follows the addresses, not the ports."""
    for _ in range(2):  # TCP: one by one, as each SYN
        out = nat.inside(partial(make(HOST, 5000, PEER, 53)),
                         flags=CSUM_PARTIAL).one
        assert out.csum_flags == CSUM_PARTIAL
        expected = raw(partial(IP(raw(out[IP]))))
        assert raw(out[IP])[:len(expected)] == expected
    port = out[IP].payload.sport
    back = udp(PEER, 53, OURS, port) if UDP in out else \
        tcp(PEER, 53, OURS, port, "SA")
    back = nat.outside(partial(back), flags=CSUM_PARTIAL).one
    expected = raw(partial(IP(raw(back[IP]))))
    assert raw(back[IP])[:len(expected)] == expected


def test_wrong_sums_stay_wrong(nat_of):
    nat = nat_of(checks_sums=False)
    right = nat.inside(udp(HOST, 5000, PEER, 53)).one[UDP].chksum
    packet = udp(HOST, 5000, PEER, 53)
    packet[UDP].chksum ^= 0x0101
    assert nat.inside(packet).one[UDP].chksum != right


@pytest.mark.parametrize("inside, outside", [(0, 100), (100, 0), (100, 200)])
def test_vlans(nat_of, inside, outside):
    nat = nat_of(inside_vlan=inside, outside_vlan=outside)
    for _ in range(2):
        out = nat.inside(udp(HOST, 5000, PEER, 53)).one
        assert (Dot1Q in out) == (outside != 0)
        assert not outside or out[Dot1Q].vlan == outside
        back = nat.outside(udp(PEER, 53, OURS, out[UDP].sport)).one
        assert (Dot1Q in back) == (inside != 0)
        assert not inside or back[Dot1Q].vlan == inside
    wrong = Ether(src=mac_of(HOST), dst=MACS[0]) / Dot1Q(vlan=7) / \
        udp(HOST, 5000, PEER, 53)
    assert not nat.inside(wrong)
    assert nat.drops == {"vlan": 1}


def test_priority_tag_is_no_vlan(nat):
    for _ in range(2):
        tagged = Ether(src=mac_of(HOST), dst=MACS[0]) / Dot1Q(prio=5, vlan=0) / \
            udp(HOST, 5000, PEER, 53)
        out = nat.inside(tagged).one
        assert Dot1Q not in out and out[UDP].dport == 53


@pytest.mark.parametrize("entries", [(14, 0), (30, 0), (42, 100), (1, 60),
                                     (20, 7), (60, 0)])
def test_frames_of_several_entries(nat, entries):
    """Wherever a frame is cut, the same packet comes out."""
    whole = nat.inside(udp(HOST, 5000, PEER, 53, bytes(range(60)))).one
    cut = nat.inside(udp(HOST, 5000, PEER, 53, bytes(range(60))),
                     entries=entries).one
    assert raw(cut[UDP]) == raw(whole[UDP])
    back = nat.outside(ping(PEER, OURS, payload=bytes(range(61))),
                       entries=entries).one
    assert raw(back[ICMP].payload)[:61] == bytes(range(61))


def test_shared_frames_are_copied_first(nat):
    for entries in ((0, 0), (50, 0)):
        for _ in range(2):
            out = nat.inside(udp(HOST, 5000, PEER, 53), flags=SHARED,
                             entries=entries)
            assert out.one[IP].src == OURS
    assert nat.outside(ping(PEER, OURS), flags=SHARED).one[ICMP].type == 0


def test_bytes_after_the_packet_are_cut_off(nat):
    open_flow(nat)
    frame = raw(nat.ether(INSIDE, udp(HOST, 5000, PEER, 53, bytes(100))))
    for entries in ((0, 0), (100, 50), (len(frame), 30)):
        out = nat.inside(frame + b"secret" * 50, entries=entries).one
        assert len(raw(out)) == len(frame)
    short = raw(nat.ether(INSIDE, udp(HOST, 5000, PEER, 53, b"")))
    out = nat.inside(short.ljust(60, b"\0")).one  # Ethernet's own padding
    assert len(raw(out)) == 60


@pytest.mark.parametrize("mss, mtu, expected", [("no", 1500, 1460),
                                                ("mtu", 1400, 1360),
                                                (1300, 1500, 1300),
                                                (1500, 1500, 1460)])
def test_mss_is_clamped(nat_of, mss, mtu, expected):
    nat = nat_of(mss=mss, outside_mtu=mtu)

    def syn(source, sport, target, dport, flags):
        return IP(raw(IP(src=source, dst=target) /
                      TCP(sport=sport, dport=dport, flags=flags,
                          options=[("NOP", None), ("MSS", 1460),
                                   ("SAckOK", b"")])))

    out = nat.inside(syn(HOST, 4000, PEER, 80, "S")).one
    assert dict(out[TCP].options)["MSS"] == expected
    back = nat.outside(syn(PEER, 80, OURS, out[TCP].sport, "SA")).one
    assert dict(back[TCP].options)["MSS"] == expected


def test_excluded_destinations_pass_as_they_are(nat_of):
    nat = nat_of(exclude=[("203.0.113.0/24", 0, 0, 65535)])
    out = nat.inside(udp(HOST, 5000, "203.0.113.9", 53)).one
    assert (out[IP].src, out[UDP].sport, out[IP].ttl) == (HOST, 5000, 63)
    back = nat.outside(udp("203.0.113.9", 53, HOST, 5000)).one
    assert (back[IP].dst, back[UDP].dport) == (HOST, 5000)
    assert nat.counter("mappings") == 0
    assert nat.counter("excluded") == 2
    assert not nat.inside(udp("10.9.0.1", 5000, "203.0.113.9", 53))
    assert nat.drops == {"spoofed": 1}


@pytest.mark.parametrize("proto, csum", [(136, 0xffff), (33, 0)])
def test_sum_that_becomes_zero(nat_of, proto, csum):
    """UDP-Lite has no packets without a sum (RFC 3828, 3.1); DCCP may send 0."""
    nat = nat_of(other_protocols=True)
    delta = 0xc000 + 0x0201 - 0x0a00 - 0x0002  # 10.0.0.2 to 192.0.2.1
    body = bytes([0x13, 0x88, 0, 53, 0, 8]) + delta.to_bytes(2, "big") + \
        bytes(4)
    out = nat.inside(IP(raw(IP(src=HOST, dst=PEER, proto=proto) / body))).one
    assert raw(out[IP])[26:28] == csum.to_bytes(2, "big")


def test_frames_are_counted_by_mapping(nat_of):
    nat = nat_of()
    port_a = open_flow(nat)
    port_b = open_flow(nat, 6000)
    for _ in range(3):
        nat.inside(udp(HOST, 5000, PEER, 53))
    for _ in range(2):
        nat.outside(udp(PEER, 53, OURS, port_a))
    nat.inside(udp(HOST, 5000, OURS, port_b))
    rows = {row["inside_port"]: (row["n_out"], row["n_in"])
            for row in nat.sessions}
    assert rows == {5000: (5, 2), 6000: (1, 1)}
    assert {row["outside_port"] for row in nat.sessions} == {port_a, port_b}
