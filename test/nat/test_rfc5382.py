# SPDX-License-Identifier: BSD-3-Clause
"""RFC 5382, TCP: what is not in test_rfc4787.py or test_rfc5508.py."""
import pytest
from scapy.all import ICMP, IP, TCP, raw

from harness import tcp
from rfc import HOST, OTHER, OURS, PEER, PEER2, Flow, ends_after
from rfc import requirement as any_requirement

ESTABLISHED_S, TRANSITORY_S = 2 * 3600 + 4 * 60, 4 * 60


def requirement(number):
    """Of this RFC."""
    return any_requirement("RFC 5382", number)


@requirement("REQ-2")
def test_from_the_first_segment_to_the_last(nat):
    flow = Flow(nat, "tcp").connect()
    for _ in range(2):
        out = flow.out(PEER, 80, flags="PA", payload=b"GET").one
        assert raw(out[TCP].payload) == b"GET"
        got = flow.back(PEER, 80, flags="PA", payload=b"200").one
        assert raw(got[TCP].payload) == b"200"
    assert flow.out(PEER, 80, flags="FA").outside
    # One side has finished, the other one has much to say.
    for _ in range(3):
        nat.advance(ESTABLISHED_S - 100)
        assert flow.back(PEER, 80, flags="PA", payload=b"more").inside
        assert flow.out(PEER, 80, flags="A").outside
    assert flow.back(PEER, 80, flags="FA").inside
    assert flow.out(PEER, 80, flags="A").outside
    # The same ends again, at once.
    port = flow.ident
    flow.connect()
    assert flow.ident == port
    assert ends_after(flow, ESTABLISHED_S, peer_port=80, flags="A")


@requirement("REQ-2")
def test_connections_from_outside(nat):
    """Where the filter permits them: to a mapping that there is."""
    flow = Flow(nat, "tcp").connect()
    got = flow.back(PEER2, 1000, flags="S").one
    assert (got[IP].dst, got[TCP].dport) == (HOST, 5000)
    out = flow.out(PEER2, 1000, flags="SA").one
    assert out[TCP].sport == flow.ident
    assert flow.back(PEER2, 1000, flags="A").inside
    assert flow.out(PEER2, 1000, flags="FA").outside
    assert flow.back(PEER2, 1000, flags="FA").inside
    assert flow.out(PEER2, 1000, flags="A").outside
    assert nat.drops == {}


@requirement("REQ-2")
def test_no_segment_without_a_connection_makes_one(nat):
    for flags in ("A", "PA", "FA", "R", "RA", "F"):
        assert not nat.inside(tcp(HOST, 5000, PEER, 80, flags)).outside
        assert not nat.outside(tcp(PEER, 80, OURS, 5000, flags))
    assert nat.counter("mappings") == 0
    assert nat.drops == {"tcp_state": 6, "no_mapping": 6}


@requirement("REQ-2a")
@pytest.mark.parametrize("filtering", ["none", "address", "address-port"])
def test_simultaneous_open(nat_of, filtering):
    nat = nat_of(filtering=filtering)
    flow = Flow(nat, "tcp")
    flow.out(PEER, 80)
    assert flow.back(PEER, 80, flags="S").inside
    assert flow.out(PEER, 80, flags="SA").outside
    assert flow.back(PEER, 80, flags="SA").inside
    assert flow.out(PEER, 80, flags="A").outside
    assert flow.back(PEER, 80, flags="A").inside
    assert nat.drops == {}
    # It counts as established: it outlives what is only being opened.
    assert ends_after(flow, ESTABLISHED_S, peer_port=80, flags="A")


@requirement("REQ-3b")
def test_filtering_is_not_that_of_udp(nat_of):
    for kinds in (("none", "address-port"), ("address-port", "none")):
        nat = nat_of(filtering_udp=kinds[0], filtering_tcp=kinds[1])
        for proto, kind in zip(("udp", "tcp"), kinds):
            flow = Flow(nat, proto)
            flow.out(PEER, 80)
            assert flow.is_open(PEER2, 9) == (kind == "none")


def is_port_unreachable(packet, syn):
    """About that SYN, to who sent it."""
    return (packet[IP].dst, packet[ICMP].type, packet[ICMP].code) == \
        (syn.src, 3, 3) and \
        raw(packet[ICMP].payload)[:40] == raw(syn)[:40]


@requirement("REQ-4")
def test_unsolicited_syn_is_not_answered_for_six_seconds(nat_of):
    for options, port in (({}, 8080), ({"filtering": "address-port"}, None)):
        nat = nat_of(**options)
        if port is None:  # a mapping whose filter does not let it in
            port = Flow(nat, "tcp").connect().ident
        syn = tcp(PEER2, 1000, OURS, port)
        assert not nat.outside(syn)
        assert not nat.advance(5.9)
        assert is_port_unreachable(nat.advance(0.2).one, syn)
        assert not nat.advance(20)
        assert nat.drops == {"unsolicited_syn": 1}


@requirement("REQ-4")
def test_unsolicited_syn_that_is_met_ends_silently(nat_of):
    nat = nat_of(filtering="address-port")
    flow = Flow(nat, "tcp").connect(PEER, 80)
    assert not flow.back(PEER2, 1000, flags="S")
    other = tcp(PEER2, 1001, OURS, flow.ident)  # which nobody meets
    assert not nat.outside(other)
    nat.advance(5.8)
    out = flow.out(PEER2, 1000).one
    assert out[TCP].flags == "S"
    got = nat.advance(10)
    assert is_port_unreachable(got.one, other)
    # Its repetition is part of a simultaneous open.
    assert flow.back(PEER2, 1000, flags="S").inside
    assert flow.out(PEER2, 1000, flags="SA").outside


@requirement("REQ-5")
def test_established_ones_stay(nat):
    flow = Flow(nat, "tcp").connect()
    assert ends_after(flow, ESTABLISHED_S, peer_port=80, flags="A")
    # Each segment from inside begins that time anew.
    flow = Flow(nat, "tcp", HOST, 5001).connect()
    nat.advance(ESTABLISHED_S - 1)
    flow.out(PEER, 80, flags="A")
    assert ends_after(flow, ESTABLISHED_S, peer_port=80, flags="A")


@requirement("REQ-5 transitory")
@any_requirement("RFC 7857", "section 2.1 default")
@pytest.mark.parametrize("segments", [
    [("out", "S")],
    [("out", "S"), ("out", "S")],
    [("out", "S"), ("back", "SA"), ("out", "A"), ("out", "FA"),
     ("back", "FA"), ("out", "A")],
    [("out", "S"), ("back", "SA"), ("out", "A"), ("back", "FA"),
     ("out", "A"), ("out", "FA"), ("back", "A")]])
def test_those_being_opened_or_closed_stay(nat, segments):
    flow = Flow(nat, "tcp")
    for way, flags in segments:
        assert len(getattr(flow, way)(PEER, 80, flags=flags)) == 1
    assert ends_after(flow, TRANSITORY_S, peer_port=80, flags="A")


@requirement("REQ-8")
@requirement("REQ-8a")
def test_hairpin(nat):
    a, b = Flow(nat, "tcp", HOST, 5000), Flow(nat, "tcp", OTHER, 6000)
    b.connect()  # so that it has a mapping
    got = nat.inside(tcp(HOST, 5000, OURS, b.ident)).inside[0]
    assert (got[IP].dst, got[TCP].dport) == (OTHER, 6000)
    assert got[IP].src == OURS
    a.addr, a.ident = OURS, got[TCP].sport
    assert a.ident not in (0, b.ident)
    got = nat.inside(tcp(OTHER, 6000, OURS, a.ident, "SA")).inside[0]
    assert (got[IP].src, got[TCP].sport) == (OURS, b.ident)
    assert (got[IP].dst, got[TCP].dport) == (HOST, 5000)
    for _ in range(2):
        for src, sport, to, target in ((HOST, 5000, b, OTHER),
                                       (OTHER, 6000, a, HOST)):
            out = nat.inside(tcp(src, sport, OURS, to.ident, "PA", b"x"))
            assert not out.outside
            got = out.inside[0]
            assert (got[IP].src, got[IP].dst) == (OURS, target)
            assert got[TCP].sport == (a if to is b else b).ident
    assert nat.drops == {}
    # Both sides count as established.
    nat.advance(TRANSITORY_S + 2)
    assert nat.inside(tcp(HOST, 5000, OURS, b.ident, "A")).inside
    assert nat.inside(tcp(OTHER, 6000, OURS, a.ident, "A")).inside
