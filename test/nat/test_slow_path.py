# SPDX-License-Identifier: BSD-3-Clause
"""Odd packets: rare, but legal or meant to harm. What comes out is right (sums:
harness.py) or dropped by name, and no inside address is seen outside."""
import itertools
import random

import pytest
from scapy.all import (ICMP, IP, TCP, UDP, Dot1Q, Ether, ICMPerror, IPerror,
                       IPOption, IPOption_NOP, IPOption_RR, IPv6, TCPerror,
                       UDPerror, raw)

from harness import (CSUM_PARTIAL, INSIDE, LOOPED, MACS, OUTSIDE, SHARED, mac_of,
                 ping, sum16, tcp, udp)
from rfc import (HOST, OTHER, OURS, PEER, ROUTER, THIRD, Flow, error, opened,
                 partial, pong, quoted)

INSIDE_BYTES = bytes([10, 0])  # how each inside address begins


def leaks(out):
    """Whether an outside frame has an inside address in an IP header."""
    for packet in out.outside:
        data = raw(packet[IP])
        n = (data[0] & 15) * 4
        embedded = data[n + 8:] if data[9] == 1 and data[n] in (3, 11, 12) \
            else b"\0" * 20
        if INSIDE_BYTES in (data[12:14], data[16:18], embedded[12:14],
                            embedded[16:18]):
            return True
    return False


def fragments(src, dst, data, cuts, proto=17, ident=77):
    """Pieces (first, end) of a payload, each an IP packet."""
    return [IP(raw(IP(src=src, dst=dst, proto=proto, id=ident,
                      frag=first // 8, flags="MF" if end < len(data) else 0) /
                   data[first:end])) for first, end in cuts]


def datagram(sport, dport, n, csum=0):
    """A UDP header and n bytes."""
    return raw(UDP(sport=sport, dport=dport, len=8 + n, chksum=csum)) + \
        bytes(i & 0xff for i in range(n))


# ICMP errors, whatever they have inside.

def embedded_packets():
    """Packets that an error may quote, as the inside host had sent them."""
    options = [IPOption_RR(length=7, pointer=4, routers=["0.0.0.0"]),
               IPOption_NOP()]
    yield "udp", udp(HOST, 5000, PEER, 53, b"x" * 30)
    yield "udp without a payload", udp(HOST, 5000, PEER, 53, b"")
    yield "udp with a payload of one", udp(HOST, 5000, PEER, 53, b"1")
    yield "tcp", tcp(HOST, 5000, PEER, 53, "S")
    yield "tcp with options", IP(raw(
        IP(src=HOST, dst=PEER) / TCP(sport=5000, dport=53, flags="S", options=[
            ("MSS", 1460), ("NOP", None), ("WScale", 7)])))
    yield "echo", ping(HOST, PEER, 5000)
    yield "timestamp", IP(raw(IP(src=HOST, dst=PEER) / ICMP(
        type=13, id=5000)))
    yield "options", IP(raw(IP(src=HOST, dst=PEER, options=options) / UDP(
        sport=5000, dport=53) / b"x"))
    yield "df", udp(HOST, 5000, PEER, 53, b"x" * 30, flags="DF")
    yield "first fragment", fragments(HOST, PEER, datagram(5000, 53, 40),
                                      [(0, 24)])[0]


EMBEDDED = list(embedded_packets())


@pytest.mark.parametrize("name, sent", EMBEDDED,
                         ids=[name for name, _ in EMBEDDED])
@pytest.mark.parametrize("flags", [0, SHARED])
def test_errors_of_every_length(nat, name, sent, flags):
    """Cut off anywhere: behind 8 bytes of transport header it passes."""
    out = nat.inside(sent).outside[0]
    quote = quoted(out)
    least = out[IP].ihl * 4 + 8
    for n in range(len(quote) + 1):
        got = nat.outside(error(ROUTER, OURS, quote[:n], 11, 0), flags=flags)
        assert not got.outside
        assert len(got.inside) == (n >= least), (name, n)
        if n < least:
            continue
        inner = got.inside[0][IPerror]
        assert (got.inside[0][IP].dst, inner.src, inner.dst) == \
            (HOST, HOST, PEER)
        if TCP in sent and n == out[IP].ihl * 4 + 17:
            continue  # half a sum cannot be put right
        was = raw(sent)[sent.ihl * 4:n]
        assert raw(got.inside[0][IP])[28 + sent.ihl * 4:28 + n] == was
    assert nat.drops == {"icmp_embedded": least}


@pytest.mark.parametrize("proto", [0, 2, 4, 41, 47, 50, 58, 132, 136, 255])
def test_errors_about_untranslated_protocols_are_dropped(nat, proto):
    nat.inside(udp(HOST, 5000, PEER, 53))
    packet = IP(raw(IP(src=OURS, dst=PEER, proto=proto) /
                    (b"\x13\x88\0\x35" + bytes(16))))
    assert not nat.outside(error(ROUTER, OURS, raw(packet)))
    packet = IP(raw(IP(src=PEER, dst=HOST, proto=proto) /
                    (b"\0\x35\x13\x88" + bytes(16))))
    assert not nat.inside(error(HOST, PEER, raw(packet))).outside
    assert nat.drops == {"icmp_no_mapping": 2}


def test_errors_with_rubbish_inside(nat):
    """Any byte of the embedded header is another one: no way to a host."""
    out = nat.inside(udp(HOST, 5000, PEER, 53, bytes(20))).one
    rng = random.Random(7)
    n = 0
    for side, good in ((OUTSIDE, raw(out[IP])),
                       (INSIDE, raw(udp(PEER, 53, HOST, 5000)))):
        for _ in range(100):
            data = bytearray(good)
            for _ in range(rng.choice((1, 2, 5))):
                data[rng.randrange(len(data))] = rng.randrange(256)
            if rng.random() < 0.5:  # as an attacker would: the sum is right
                data[10:12] = b"\0\0"
                n_header = max(20, (data[0] & 15) * 4)
                data[10:12] = (0xffff - sum16(bytes(data[:n_header]))
                               ).to_bytes(2, "big")
            packet = error(ROUTER, OURS, bytes(data), 3, 1) \
                if side == OUTSIDE else error(HOST, PEER, bytes(data), 3, 1)
            got = nat.send(side, packet)
            assert not leaks(got)
            assert all(p[IP].dst == HOST for p in got.inside)
            n += 1
    assert nat.counter("received") >= n
    assert set(nat.drops) <= {"icmp_embedded", "icmp_embedded_sender",
                              "icmp_no_mapping"}


def test_errors_in_pieces_and_with_options(nat):
    """An error is one packet; with options it is one, too."""
    out = nat.inside(udp(HOST, 5000, PEER, 53, bytes(600))).one
    body = raw(error(ROUTER, OURS, quoted(out))[ICMP])
    for piece in fragments(ROUTER, OURS, body, [(0, 64), (64, len(body))], 1):
        assert not nat.outside(piece)
    assert set(nat.drops) == {"fragment_wrong"}
    packet = IP(raw(IP(src=ROUTER, dst=OURS, options=[IPOption_NOP()] * 8) /
                    body))
    packet.proto, packet.chksum = 1, None
    got = nat.outside(IP(raw(packet))).one
    assert (got[IP].dst, got[IP].ihl, got[UDPerror].sport) == (HOST, 7, 5000)


# Hairpins.

def hairpin(nat, packet, **how):
    """What came back to the inside; nothing else did."""
    out = nat.inside(packet, **how)
    assert not out.outside
    return out.inside[0]


@pytest.mark.parametrize("vlan", [0, 100])
@pytest.mark.parametrize("proto", ["udp", "tcp"])
def test_hairpin_to_a_forward(nat_of, proto, vlan):
    """A server that is forwarded to, by its outside name from inside."""
    nat = nat_of(forwards=[("tcp+udp", OURS, 8080, 8089, OTHER, 80)],
                 inside_vlan=vlan)
    make = udp if proto == "udp" else tcp
    flags = ["S", "SA"] if proto == "tcp" else [b"q", b"a"]
    got = hairpin(nat, make(HOST, 5000, OURS, 8085, flags[0]))
    layer = UDP if proto == "udp" else TCP
    assert (got[IP].src, got[IP].dst, got[layer].dport) == (OURS, OTHER, 85)
    assert (Dot1Q in got) == bool(vlan) and got.dst == mac_of(OTHER)
    got = hairpin(nat, make(OTHER, 85, OURS, got[layer].sport, flags[1]))
    assert (got[IP].src, got[layer].sport) == (OURS, 8085)
    assert (got[IP].dst, got[layer].dport) == (HOST, 5000)
    # And to itself.
    got = hairpin(nat, make(OTHER, 81, OURS, 8080, flags[0]))
    assert (got[IP].src, got[IP].dst, got[layer].dport) == (OURS, OTHER, 80)


def test_hairpin_between_one_to_ones(nat_of):
    nat = nat_of(one_to_one=[("192.0.2.77", "10.0.0.7"),
                              ("192.0.2.78", "10.0.0.8")],
                 other_protocols=True)
    for make in (lambda s, d: udp(s, 5000, d, 53),
                 lambda s, d: tcp(s, 5000, d, 53), ping,
                 lambda s, d: IP(raw(IP(src=s, dst=d, proto=47) / bytes(9)))):
        got = hairpin(nat, make("10.0.0.7", "192.0.2.78"))
        assert (got[IP].src, got[IP].dst) == ("192.0.2.77", "10.0.0.8")
    # From one that has a port only, and the error about it.
    got = hairpin(nat, udp(HOST, 5000, "192.0.2.78", 53))
    assert (got[IP].src, got[IP].dst) == (OURS, "10.0.0.8")
    back = hairpin(nat, error("10.0.0.8", OURS, quoted(got)))
    assert (back[IP].src, back[IP].dst) == ("192.0.2.78", HOST)
    assert (back[IPerror].src, back[IPerror].dst) == (HOST, "192.0.2.78")


def test_hairpin_of_errors_about_tcp(nat):
    a, b = Flow(nat, "tcp", HOST, 5000), Flow(nat, "tcp", OTHER, 6000)
    a.out()
    b.out()
    sent = tcp(HOST, 5000, OURS, b.ident)
    got = hairpin(nat, sent)
    for sender in (OTHER, THIRD):  # the host, and a router before it
        for n_l4 in (8, 20):
            back = hairpin(nat, error(sender, OURS, quoted(got, n_l4), 3, 1))
            assert (back[IP].src, back[IP].dst) == (OURS, HOST)
            assert (back[IPerror].src, back[IPerror].dst) == (HOST, OURS)
            assert (back[TCPerror].sport, back[TCPerror].dport) == \
                (5000, b.ident)


@pytest.mark.parametrize("order", itertools.permutations(range(3)))
def test_hairpin_of_fragments(nat, order):
    a = opened(nat, "udp", HOST, 5000)
    b = opened(nat, "udp", OTHER, 6000)
    data = datagram(5000, b.ident, 64)
    pieces = fragments(HOST, OURS, data, [(0, 24), (24, 48), (48, 72)])
    got = [p for i in order for p in nat.inside(pieces[i]).inside]
    got.sort(key=lambda p: p[IP].frag)
    assert [p[IP].frag for p in got] == [0, 3, 6]
    assert {(p[IP].src, p[IP].dst) for p in got} == {(OURS, OTHER)}
    body = b"".join(raw(p[IP].payload)[:24] for p in got)
    assert body[:4] == a.ident.to_bytes(2, "big") + b"\x17\x70"
    assert body[4:] == data[4:]
    assert nat.drops == {}


@pytest.mark.parametrize("make", [lambda *a: udp(*a), lambda *a: tcp(*a)])
def test_hairpin_of_partial_sums(nat, make):
    """What a stack on the same machine leaves to be finished."""
    proto = "tcp" if TCP in make(HOST, 5000, PEER, 53) else "udp"
    opened(nat, proto, HOST, 5000)
    b = opened(nat, proto, OTHER, 6000)
    got = hairpin(nat, partial(make(HOST, 5000, OURS, b.ident)),
                  flags=CSUM_PARTIAL)
    assert got.csum_flags == CSUM_PARTIAL
    expected = raw(partial(IP(raw(got[IP]))))
    assert raw(got[IP])[:len(expected)] == expected
    assert (got[IP].src, got[IP].dst) == (OURS, OTHER)


def test_hairpin_without_a_sum_and_at_the_end_of_its_life(nat):
    a = opened(nat, "udp", HOST, 5000)
    b = opened(nat, "udp", OTHER, 6000)
    packet = udp(HOST, 5000, OURS, b.ident)
    packet[UDP].chksum = 0
    got = hairpin(nat, packet)
    assert got[UDP].chksum == 0 and got[IP].ttl == 63
    got = hairpin(nat, udp(HOST, 5000, OURS, b.ident, ttl=1))
    assert (got[IP].dst, got[ICMP].type) == (HOST, 11)
    assert nat.drops == {"ttl": 1}


def test_hairpin_of_a_query_by_a_port_is_ours(nat):
    """One id for both ends: who is asked is the NAT itself."""
    Flow(nat, "icmp", OTHER, 7).out()
    got = hairpin(nat, ping(HOST, OURS, 7))
    assert (got[IP].src, got[IP].dst, got[ICMP].type) == (OURS, HOST, 0)


def test_hairpin_that_is_too_big(nat_of):
    nat = nat_of(inside_mtu=1000, outside_mtu=1000)
    a = opened(nat, "udp", HOST, 5000)
    b = opened(nat, "udp", OTHER, 6000)
    got = hairpin(nat, udp(HOST, 5000, OURS, b.ident, bytes(1200),
                           flags="DF"))
    assert (got[ICMP].type, got[ICMP].code, got[ICMP].nexthopmtu) == \
        (3, 4, 1000)
    out = nat.inside(udp(HOST, 5000, OURS, b.ident, bytes(1200)))
    assert [p[IP].dst for p in out.inside] == [OTHER] * 2


@pytest.mark.parametrize("filtering", ["none", "address", "address-port"])
def test_hairpin_of_errors_with_a_filter(nat_of, filtering):
    """RFC 5508 REQ-7: whom the sender talks to is not who it is inside."""
    nat = nat_of(filtering=filtering)
    a, b = Flow(nat, "udp", HOST, 5000), Flow(nat, "udp", OTHER, 6000)
    a.out()
    b.out(OURS, a.ident)
    a.out(OURS, b.ident)
    b.out()
    got = hairpin(nat, udp(HOST, 5000, OURS, b.ident))
    back = hairpin(nat, error(OTHER, OURS, quoted(got)))
    assert (back[IP].src, back[IP].dst) == (OURS, HOST)
    assert (back[IPerror].dst, back[UDPerror].dport) == (OURS, b.ident)


def test_errors_about_packets_of_another_worker_reach_their_sender(nat_of):
    """Its sender is inside, by way of the worker that has it."""
    nat = nat_of(pool=["192.0.2.1-192.0.2.9"], inside_mtu=1000,
                 answers_arp=False,
                 forwards=[("udp+tcp", OURS, 80, 80, OTHER, 80)],
                 inside_neighbours={OTHER: mac_of(OTHER)})
    sender = "192.0.2.9"

    def told(packet, kind, code):
        out = nat.outside(packet, flags=LOOPED) if packet else \
            nat.advance(10)
        assert not out
        error_ = Ether(nat.looped()[0])
        assert (error_.src, error_.dst) == (MACS[OUTSIDE], MACS[OUTSIDE])
        assert (error_[IP].src, error_[IP].dst) == (OURS, sender)
        assert (error_[ICMP].type, error_[ICMP].code) == (kind, code)
        assert error_[IPerror].src == sender

    told(udp(sender, 5000, OURS, 80, bytes(1200), flags="DF"), 3, 4)
    told(udp(sender, 5000, OURS, 80, ttl=1), 11, 0)
    assert not nat.outside(tcp(sender, 5000, OURS, 4444), flags=LOOPED)
    told(None, 3, 3)
    assert nat.drops == {"too_big": 1, "ttl": 1, "unsolicited_syn": 1}


def test_the_error_about_a_hairpin_comes_back_by_another_worker(nat):
    """See test_errors_about_packets_of_another_worker_reach_their_sender()."""
    flow = Flow(nat, "udp", HOST, 5000)
    sent = flow.out().outside[0]
    quote = raw(udp(OURS, flow.ident, "192.0.2.1", 80))
    got = nat.outside(error(OURS, OURS, quote, 3, 4), flags=LOOPED).one
    assert sent[IP].src == OURS
    assert (got[IP].dst, got[IPerror].src, got[UDPerror].sport) == \
        (HOST, HOST, 5000)


# Protocol 0, and a flood.

def test_protocol_0_takes_nothing_over(nat_of):
    """Else its mapping would be one-to-one: all ports, untranslated."""
    nat = nat_of(other_protocols=True, pool=["192.0.2.1"],
                 one_to_one=[("192.0.2.77", "10.0.0.7")])
    out = nat.inside(IP(raw(IP(src=HOST, dst=PEER, proto=0) / bytes(20))))
    assert not out.outside
    assert not nat.outside(udp(PEER, 53, OURS, 22)).inside
    assert nat.inside(udp(HOST, 5000, PEER, 53)).one[IP].src == OURS
    assert nat.drops == {"protocol": 1, "no_mapping": 1}
    out = nat.inside(IP(raw(IP(src="10.0.0.7", dst=PEER, proto=0) /
                            bytes(20)))).one
    assert out[IP].src == "192.0.2.77"


def test_a_flood_of_syns_at_a_forward_is_gone_in_minutes(nat_of):
    """Forged sources: each is answered from inside, and says no more."""
    nat = nat_of(forwards=[("tcp", OURS, 80, 80, OTHER, 80)], limits_sessions=16)

    def knock(i, flags="S"):
        source = f"198.51.100.{i}"
        nat.outside(tcp(source, 1000, OURS, 80, flags))
        return nat.inside(tcp(OTHER, 80, source, 1000,
                              "SA" if flags == "S" else "A"))

    for i in range(1, 31):
        knock(i)
    assert nat.counter("sessions") == 16
    nat.advance(242)
    assert nat.counter("sessions") == 0
    assert len(knock(40).outside) == 1
    assert len(knock(40, "A").outside) == 1
    nat.advance(7000)
    assert nat.sessions[0]["remote"] == "198.51.100.40"


# Fragments that overlap.

def test_no_byte_passes_twice(nat):
    """Random pieces in random order: what passes never overlaps, and a
    datagram without overlaps passes whole."""
    rng = random.Random(11)
    flow = opened(nat, "udp")
    n_whole = 0
    for ident in range(1, 121):
        data = datagram(5000, 53, 120)
        ends = sorted(rng.sample(range(8, 128, 8), rng.randrange(1, 5)))
        cuts = list(zip([0] + ends, ends + [128]))
        is_bad = rng.random() < 0.6
        if is_bad:  # one more, over what is there
            first = 8 * rng.randrange(15)
            cuts.append((first, rng.randrange(first + 8, 129, 8)))
        rng.shuffle(cuts)
        got = [p for piece in fragments(HOST, PEER, data, cuts, ident=ident)
               for p in nat.inside(piece).outside]
        spans = sorted((p[IP].frag * 8, p[IP].frag * 8 + p[IP].len - 20)
                       for p in got)
        assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:])), cuts
        assert len({p[IP].id for p in got}) <= 1
        if not is_bad:
            assert len(got) == len(cuts)
            n_whole += 1
        nat.advance(0.01)
    assert n_whole > 20
    nat.advance(2.1)
    assert nat.counter("held") == 0
    assert set(nat.drops) <= {"fragment_wrong", "fragment_old"}


def test_a_second_first_fragment_is_refused(nat):
    """RFC 3128: ports that a filter would not have let through."""
    flow = opened(nat, "udp")
    good, bad = datagram(5000, 53, 40), datagram(5001, 23, 40)
    out = nat.inside(fragments(HOST, PEER, good, [(0, 24)])[0])
    assert len(out.outside) == 1
    assert not nat.inside(fragments(HOST, PEER, bad, [(0, 24)])[0]).outside
    assert not nat.inside(fragments(HOST, PEER, bad, [(0, 32)])[0]).outside
    assert nat.counter("mappings") == 1


# Options, sizes, tags.

@pytest.mark.parametrize("option", [
    IPOption_RR(length=39, pointer=4, routers=["0.0.0.0"] * 9),
    IPOption(b"\x44\x08\x05\0\0\0\0\0"), IPOption_NOP()])
def test_options_of_all_kinds(nat_of, option):
    nat = nat_of(fill_options=False)
    for body in (UDP(sport=5000, dport=53) / b"x",
                 TCP(sport=5000, dport=80, flags="S"), ICMP(id=9)):
        sent = IP(raw(IP(src=HOST, dst=PEER, options=[option]) / body))
        out = nat.inside(sent).one
        assert out[IP].src == OURS and out[IP].ihl == sent.ihl
        n = sent.ihl * 4
        assert raw(out[IP])[20:n] == raw(sent)[20:n]  # untouched
    # An error of ours about it quotes them.
    sent.ttl, sent.chksum = 1, None
    got = nat.inside(IP(raw(sent))).one
    assert got[ICMP].type == 11
    assert raw(got[ICMP].payload)[20:n] == raw(sent)[20:n]


@pytest.mark.parametrize("entries", [(0, 0), (60, 1000), (1500, 1500)])
@pytest.mark.parametrize("flags", [0, SHARED])
def test_jumbo_frames(nat_of, entries, flags):
    nat = nat_of(inside_mtu=9000, outside_mtu=9000)
    payload = bytes(i * 3 & 0xff for i in range(8972))
    for _ in range(2):
        out = nat.inside(udp(HOST, 5000, PEER, 53, payload, flags="DF"),
                         entries=entries, flags=flags).one
        assert out[IP].len == 9000 and raw(out[UDP].payload) == payload
    got = nat.outside(udp(PEER, 53, OURS, 5000, payload), entries=entries,
                      flags=flags).one
    assert raw(got[UDP].payload) == payload
    assert nat.inside(udp(HOST, 5000, PEER, 53, payload + b"1", flags="DF")
                      ).one[ICMP].nexthopmtu == 9000


@pytest.mark.parametrize("entries", [(0, 0), (60, 1000)])
def test_jumbo_frames_to_a_link_of_small_ones(nat_of, entries):
    nat = nat_of(inside_mtu=9000)
    payload = bytes(i * 3 & 0xff for i in range(8972))
    out = nat.inside(udp(HOST, 5000, PEER, 53, payload),
                     entries=entries).outside
    assert [p[IP].frag * 8 for p in out] == list(range(0, 8972, 1480))
    body = b"".join(raw(p[IP].payload)[:p[IP].len - 20] for p in out)
    assert body[8:] == payload
    got = nat.inside(udp(HOST, 5000, PEER, 53, payload, flags="DF")).one
    assert (got[ICMP].type, got[ICMP].code) == (3, 4)


@pytest.mark.parametrize("vlans", [(100, 0), (0, 200), (100, 200)])
def test_packets_of_the_slow_path_have_the_tag_of_their_side(nat_of, vlans):
    """Errors, ours and others', fragments, pings: each with its side's tag."""
    nat = nat_of(inside_vlan=vlans[0], outside_vlan=vlans[1])

    def tag(packet):
        return packet[Dot1Q].vlan if Dot1Q in packet else 0

    out = nat.inside(udp(HOST, 5000, PEER, 53)).one
    for packet in (error(ROUTER, OURS, quoted(out)),
                   udp(PEER, 53, OURS, 5000),
                   *fragments(PEER, OURS, datagram(53, 5000, 40),
                              [(0, 24), (24, 48)])):
        got = nat.outside(packet).one
        assert tag(got) == vlans[0] and got[IP].dst == HOST
    got = nat.outside(ping(PEER, OURS)).one
    assert tag(got) == vlans[1] and got[ICMP].type == 0
    got = nat.inside(udp(HOST, 5000, PEER, 53, ttl=1)).one
    assert tag(got) == vlans[0] and got[ICMP].type == 11
    got = nat.inside(ping(HOST, PEER)).one
    assert tag(got) == vlans[1]


def test_two_tags_are_not_ours(nat_of):
    nat = nat_of(inside_vlan=100)
    packet = Ether(src=mac_of(HOST), dst=MACS[0]) / Dot1Q(vlan=100) / \
        Dot1Q(vlan=100) / udp(HOST, 5000, PEER, 53)
    assert not nat.inside(packet)
    assert nat.drops == {"ether_type": 1}


@pytest.mark.parametrize("side", [INSIDE, OUTSIDE])
@pytest.mark.parametrize("vlan", [0, 100])
def test_ipv6_is_dropped_by_name(nat_of, side, vlan):
    """Not translated yet, whatever it is; no answer, no mapping."""
    nat = nat_of(inside_vlan=vlan, outside_vlan=vlan)
    head = Ether(src=mac_of(HOST), dst=MACS[side])
    if vlan:
        head /= Dot1Q(vlan=vlan)
    packets = [IPv6(src="2001:db8::1", dst="2001:db8::2") / UDP(),
               IPv6(dst="64:ff9b::c633:6407") / TCP(), IPv6(nh=58) / bytes(8),
               IPv6(nh=4) / udp(HOST, 5000, PEER, 53)]
    for packet in packets:
        assert not nat.send(side, head / packet)
    assert nat.drops == {"ether_type": len(packets)}
    assert nat.counter("mappings") == 0
    assert nat.counter("made") == len(nat.announced)


# Everything at once.

def test_randomly_changed_packets_are_correct_or_dropped(nat_of):
    """Good packets with wrong bytes, from both sides: right or dropped."""
    nat = nat_of(checks_sums=False, hairpin=True,
                 one_to_one=[("192.0.2.77", "10.0.0.7")],
                 other_protocols=True)
    rng = random.Random(5)
    out = nat.inside(udp(HOST, 5000, PEER, 53)).one
    nat.inside(tcp(HOST, 5000, PEER, 80))
    good = {INSIDE: [udp(HOST, 5000, PEER, 53), tcp(HOST, 5000, PEER, 80),
                     ping(HOST, PEER), udp(HOST, 5000, OURS, 5000),
                     error(HOST, PEER, raw(udp(PEER, 53, HOST, 5000)))],
            OUTSIDE: [udp(PEER, 53, OURS, 5000),
                      tcp(PEER, 80, OURS, 5000, "SA"),
                      ping(PEER, "192.0.2.77"), pong(PEER, OURS, 7),
                      error(ROUTER, OURS, quoted(out))]}
    n_passed = 0
    for _ in range(1200):
        side = rng.choice((INSIDE, OUTSIDE))
        data = bytearray(raw(rng.choice(good[side])))
        for _ in range(rng.choice((1, 1, 2, 4))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() < 0.8:
            n = max(20, min(len(data), (data[0] & 15) * 4))
            data[10:12] = b"\0\0"
            data[10:12] = (0xffff - sum16(bytes(data[:n]))).to_bytes(2, "big")
        if rng.random() < 0.2:
            del data[rng.randrange(20, len(data)):]
        got = nat.send(side, raw(Ether(src=mac_of(HOST), dst=MACS[side],
                                       type=0x800) / bytes(data)))
        assert not leaks(got), bytes(data).hex()
        assert all(sum16(raw(p[IP])[:p[IP].ihl * 4]) == 0xffff
                   for p in got.inside + got.outside if IP in p)
        n_passed += len(got)
        if rng.random() < 0.01:
            nat.advance(1)
    assert n_passed > 200 and len(nat.drops) > 8
    nat.advance(10)
    assert nat.counter("held") == 0
    assert UDPerror in nat.outside(error(ROUTER, OURS, quoted(out))).one
    assert ICMPerror not in out
