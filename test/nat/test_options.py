# SPDX-License-Identifier: BSD-3-Clause
"""IPv4 options that a router processes: RFC 1812 5.3.13.4 to 5.3.13.6."""
import time

import pytest
from scapy.all import ICMP, IP, UDP, IPOption, IPOption_LSRR, IPOption_SSRR, raw

from harness import ping
from rfc import HOST, OURS, PEER, ROUTER, Flow, opened

OUT, IN, STEP = bytes([192, 0, 2, 1]), bytes([10, 0, 0, 1]), bytes([7, 7, 7, 7])
NONE = bytes(4)
STEP_ADDR = "7.7.7.7"


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


def test_on_the_way_in_and_in_answers_of_our_own(nat):
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


@pytest.mark.parametrize("kind", [IPOption_LSRR, IPOption_SSRR])
def test_source_route_by_way_of_us(nat_of, kind):
    """Its next stop is the destination, our address is in its place."""
    nat = nat_of(checks_sums=False)  # UDP's is for the last stop
    target = "192.0.2.77"  # on the link, which a strict route asks for
    packet = IP(raw(IP(src=HOST, dst="10.0.0.1", options=[
        kind(routers=[target, ROUTER])]) / UDP(sport=5000, dport=53)))
    out = nat.inside(packet).one
    assert (out[IP].src, out[IP].dst) == (OURS, target)
    assert out[IP].options[0].routers == [OURS, ROUTER]
    assert out[IP].options[0].pointer == 8
    assert nat.drops == {}


def test_source_route_that_does_not_name_us(nat_of):
    """It passes as it is; a strict one cannot, unless it is one step."""
    nat = nat_of(checks_sums=False)

    def send(kind, dst):
        return nat.inside(IP(raw(IP(src=HOST, dst=dst, options=[
            kind(routers=[ROUTER])]) / UDP(sport=5000, dport=53)))).one

    for kind, dst in ((IPOption_LSRR, PEER), (IPOption_SSRR, "192.0.2.77")):
        out = send(kind, dst)
        assert (out[IP].src, out[IP].dst) == (OURS, dst)
        assert out[IP].options[0].routers == [ROUTER]
    failed = send(IPOption_SSRR, PEER)
    assert (failed[ICMP].type, failed[ICMP].code) == (3, 5)


def test_source_routes_can_be_refused(nat_of):
    nat = nat_of(source_routes=False)
    for dst in (PEER, "10.0.0.1"):
        failed = nat.inside(routed(HOST, dst, [ROUTER])).one
        assert (failed[ICMP].type, failed[ICMP].code) == (3, 5)
    assert nat.drops == {"source_route": 2}


def test_source_routes_from_outside_reach_nobody(nat_of):
    """By way of us to a host inside, or back out, whatever is excluded."""
    for stop, drop in ((HOST, "source_route"), (PEER, "source_route"),
                       (OURS, "no_mapping")):
        nat = nat_of(exclude=[("0.0.0.0/0", 0, 0, 65535)])
        assert not nat.outside(routed(ROUTER, OURS, [stop])).inside
        assert nat.drops == {drop: 1}
        assert nat.outside(ping(PEER, OURS))


def routed(src, dst, stops, pointer=4, port=2):
    """A packet with these stops before it."""
    return IP(raw(IP(src=src, dst=dst, options=[
        IPOption_LSRR(routers=stops, pointer=pointer)]) /
        UDP(sport=53, dport=port)))


def test_a_route_that_ends_at_a_mapping_reaches_it(nat):
    flow = opened(nat, "udp")
    packet = routed(PEER, OURS, [STEP_ADDR], 8, flow.ident)
    assert nat.outside(packet).one[IP].dst == HOST
    assert not nat.outside(routed(PEER, OURS, [STEP_ADDR], 8, 9))
    assert nat.drops == {"no_mapping": 1}
    assert not nat.inside(routed(HOST, "10.0.0.1", [STEP_ADDR], 8))
    assert nat.drops == {"no_mapping": 1, "source_route": 1}


def test_an_echo_request_by_a_source_route_is_not_answered(nat):
    """Its answer would have to go along the reversed route."""
    for send, src, dst in ((nat.inside, HOST, "10.0.0.1"),
                           (nat.outside, PEER, OURS)):
        request = IP(raw(IP(src=src, dst=dst, options=[
            IPOption_LSRR(routers=[STEP_ADDR], pointer=8)]) / ICMP()))
        assert not send(request)
        assert send(ping(src, dst)).one[ICMP].type == 0
    assert nat.drops["source_route"] == 2


def test_a_stop_of_several_workers_is_refused(nat_of):
    nat = nat_of(shard=0, n_shards=2)
    Flow(nat, "udp").out()
    assert not nat.outside(routed(PEER, OURS, [OURS])).inside
    assert nat.drops == {"source_route": 1}
