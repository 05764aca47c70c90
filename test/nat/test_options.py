# SPDX-License-Identifier: BSD-3-Clause
"""IPv4 options that a router processes: RFC 1812 5.3.13.5 and 5.3.13.6."""
import time

import pytest
from scapy.all import ICMP, IP, UDP, IPOption, IPOption_LSRR, IPOption_SSRR, raw

from rfc import HOST, OURS, PEER, ROUTER, opened

OUT, IN, STEP = bytes([192, 0, 2, 1]), bytes([10, 0, 0, 1]), bytes([7, 7, 7, 7])
NONE = bytes(4)


def sent(option, src=HOST, dst=PEER, port=5000, peer_port=53):
    """UDP with an option, given as bytes."""
    return IP(raw(IP(src=src, dst=dst, options=[IPOption(option)]) /
                  UDP(sport=port, dport=peer_port) / b"hello"))


def option_of(packet, n):
    """The bytes of its first option."""
    return raw(packet[IP])[20:20 + n]


# Option as it goes in, and as it comes out; T: a time.
RECORDED = [
    (b"\x07\x0b\x04" + NONE * 2, b"\x07\x0b\x08" + OUT + NONE),
    (b"\x07\x0b\x08" + STEP + NONE, b"\x07\x0b\x0c" + STEP + OUT),
    (b"\x07\x0b\x0c" + STEP * 2, b"\x07\x0b\x0c" + STEP * 2),
    (b"\x44\x0c\x05\x00" + NONE * 2, b"\x44\x0c\x09\x00TTTT" + NONE),
    (b"\x44\x0c\x05\x01" + NONE * 2, b"\x44\x0c\x0d\x01" + OUT + b"TTTT"),
    (b"\x44\x0c\x05\x03" + STEP + NONE, b"\x44\x0c\x05\x03" + STEP + NONE),
    (b"\x44\x0c\x05\x03" + OUT + NONE,
     b"\x44\x0c\x0d\x03" + OUT + b"TTTT"),
    (b"\x44\x08\x09\x20" + STEP, b"\x44\x08\x09\x30" + STEP),  # overflow
]


@pytest.mark.parametrize("before, after", RECORDED)
def test_route_and_time_are_recorded(nat_of, before, after):
    """By default; else they pass unchanged."""
    now = int(time.time() * 1000) % 86400000
    got = option_of(nat_of().inside(sent(before)).one, len(before))
    at = after.find(b"TTTT")
    if at >= 0:
        stamp = int.from_bytes(got[at:at + 4], "big")
        assert (stamp - now) % 86400000 < 60000
        after = after.replace(b"TTTT", got[at:at + 4])
    assert got == after
    nat = nat_of(fill_options=False)
    assert option_of(nat.inside(sent(before)).one, len(before)) == before


def test_inbound_packets_and_our_answers_are_stamped_too(nat):
    flow = opened(nat, "udp")
    before = b"\x07\x07\x04" + NONE
    got = nat.outside(sent(before, PEER, OURS, 53, flow.ident)).one
    assert got[IP].dst == HOST and option_of(got, 7) == b"\x07\x07\x08" + IN
    got = nat.inside(IP(raw(IP(src=HOST, dst="10.0.0.1",
                               options=[IPOption(before)]) / ICMP()))).one
    assert got[ICMP].type == 0 and option_of(got, 7) == b"\x07\x07\x08" + IN


@pytest.mark.parametrize("option", [
    b"\x07\x0b\x09" + NONE * 2, b"\x07\x07\x03" + NONE,
    b"\x44\x0c\x0a\x00" + NONE * 2, b"\x44\x08\x05\x01" + NONE,
    b"\x44\x08\x04\x00" + NONE, b"\x44\x08\x09\xf0" + NONE])
def test_no_room_for_all_of_it(nat, option):
    """Room, but not enough, or an overflow of the counter: RFC 791."""
    assert not nat.inside(sent(option)).outside
    assert nat.drops == {"malformed": 1}


def routed(kind, src, dst, pointer):
    """A packet with a source route of one stop."""
    return IP(raw(IP(src=src, dst=dst, options=[
        kind(routers=[ROUTER], pointer=pointer)]) / UDP(sport=5000, dport=53)))


@pytest.mark.parametrize("pointer", [4, 8])  # a stop is left, or none
@pytest.mark.parametrize("kind", [IPOption_LSRR, IPOption_SSRR])
def test_packets_with_a_source_route_are_dropped(nat, kind, pointer):
    """Whether they name us or not: RFC 7126 4.3.5, 4.4.5."""
    for dst in (PEER, "192.0.2.77", "10.0.0.1"):
        assert not nat.inside(routed(kind, HOST, dst, pointer))
    assert not nat.outside(routed(kind, PEER, OURS, pointer))
    assert nat.drops == {"source_route": 4}
