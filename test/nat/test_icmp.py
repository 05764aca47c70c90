# SPDX-License-Identifier: BSD-3-Clause
"""ICMP errors: those that pass, with what they quote, and our own."""
import pytest
from scapy.all import (ICMP, IP, TCP, UDP, ICMPerror, IPerror,
                       IPOption_NOP, IPOption_RR, TCPerror, UDPerror, raw)

from bed import CSUM_PARTIAL, MACS, mac_of, ping, tcp, udp

HOST, PEER, OURS, ROUTER = "10.0.0.2", "198.51.100.7", "192.0.2.1", "203.0.113.9"


def error(source, target, quote, kind=3, code=3, extra=b"", **icmp):
    """An ICMP error with a packet inside."""
    return IP(raw(IP(src=source, dst=target) /
                  ICMP(type=kind, code=code, **icmp) / quote / extra))


def quoted(packet, n_l4=None):
    """The bytes of a packet as a router quotes them."""
    data = raw(packet[IP])
    return data if n_l4 is None else data[:packet[IP].ihl * 4 + n_l4]


@pytest.mark.parametrize("kind, code", [(3, 3), (3, 4), (11, 0), (12, 0)])
@pytest.mark.parametrize("n_l4", [8, None])
@pytest.mark.parametrize("make", [udp, tcp])
def test_error_from_outside(nat, kind, code, n_l4, make):
    """RFC 5508 REQ-4: what is quoted is again what the host has sent."""
    sent = make(HOST, 5000, PEER, 53, payload=b"four", ttl=64)
    out = nat.inside(sent).one
    got = nat.outside(error(ROUTER, OURS, quoted(out, n_l4), kind, code)).one
    assert (got[IP].src, got[IP].dst) == (ROUTER, HOST)
    assert (got[ICMP].type, got[ICMP].code) == (kind, code)
    inner = got[IPerror]
    assert (inner.src, inner.dst) == (HOST, PEER)
    layer = UDPerror if make is udp else TCPerror
    assert (got[layer].sport, got[layer].dport) == (5000, 53)
    if n_l4 is None:  # all of it is there, so its sum can be seen to be right
        assert got[layer].chksum == sent.payload.chksum
    assert nat.drops == {}


def test_error_about_a_query(nat):
    out = nat.inside(ping(HOST, PEER, ident=7)).one
    got = nat.outside(error(ROUTER, OURS, quoted(out), 11, 0)).one
    assert got[IP].dst == HOST
    assert got[ICMPerror].id == 7
    assert got[ICMPerror].chksum == ping(HOST, PEER, ident=7)[ICMP].chksum


def test_sums_of_a_message_without_a_bit_set(nat):
    """An echo reply with id 0: its checksum is 0xffff, 0 would be wrong."""
    out = nat.inside(ping(HOST, PEER, ident=0, seq=0, payload=b"")).one
    reply = IP(raw(IP(src=PEER, dst=OURS) /
                   ICMP(type=0, id=out[ICMP].id, seq=0)))
    got = nat.outside(reply).one
    assert (got[ICMP].id, got[ICMP].chksum) == (0, 0xffff)
    # An error quotes it, there and back again...
    out = nat.inside(error(HOST, PEER, quoted(got))).one
    assert out[ICMPerror].chksum == reply[ICMP].chksum
    # ...and we answer a ping with one.
    got = nat.outside(ping(PEER, OURS, ident=0, seq=0, payload=b"")).one
    assert (got[ICMP].type, got[ICMP].chksum) == (0, 0xffff)


def test_quoted_message_without_a_bit_set(nat):
    """The same where it is quoted: a host answered a ping from outside."""
    nat.inside(ping(HOST, PEER, ident=0, seq=0, payload=b""))
    ident = nat.sessions[0]["outside_port"]
    sent = IP(raw(IP(src=HOST, dst=PEER) / ICMP(type=0, id=0, seq=0)))
    out = nat.inside(sent).one
    assert out[ICMP].id == ident
    got = nat.outside(error(ROUTER, OURS, quoted(out))).one
    assert (got[ICMPerror].id, got[ICMPerror].chksum) == (0, 0xffff)


def test_inner_options_are_skipped(nat):
    """RFC 5508 REQ-3c."""
    packet = IP(raw(IP(src=HOST, dst=PEER, options=[
        IPOption_RR(length=7, pointer=4, routers=["0.0.0.0"]),
        IPOption_NOP()]) / UDP(sport=5000, dport=53) / b"four"))
    out = nat.inside(packet).one
    got = nat.outside(error(ROUTER, OURS, quoted(out))).one
    assert (got[IPerror].src, got[UDPerror].sport) == (HOST, 5000)


def test_inner_sum_is_not_looked_at(nat):
    """RFC 5508 REQ-3d: wrong as it is, it passes."""
    out = nat.inside(udp(HOST, 5000, PEER, 53)).one
    out[UDP].chksum ^= 0x1111
    assert nat.outside(error(ROUTER, OURS, quoted(out))).one[IP].dst == HOST
    out[UDP].chksum = 0
    got = nat.outside(error(ROUTER, OURS, quoted(out))).one
    assert got[UDPerror].chksum == 0


def test_extensions_are_left_alone(nat):
    """RFC 4884: 128 bytes of packet, then what is not ours to read."""
    out = nat.inside(udp(HOST, 5000, PEER, 53, bytes(200))).one
    extension = b"\x20\0\0\0\0\x08\x01\x01\x12\x34\x51\x01"
    got = nat.outside(error(ROUTER, OURS, quoted(out)[:128], 11, 0, extension,
                            length=32)).one
    assert raw(got[IP])[28 + 128:] == extension
    assert (got[IPerror].src, got[UDPerror].sport) == (HOST, 5000)


def test_errors_change_nothing(nat):
    """4787 REQ-12, 5508 REQ-6: no timer, no end."""
    out = nat.inside(udp(HOST, 5000, PEER, 53)).one
    nat.advance(200)
    nat.outside(error(ROUTER, OURS, quoted(out)))
    assert nat.counter("mappings") == 1
    nat.advance(110)
    assert not nat.outside(udp(PEER, 53, OURS, out[UDP].sport))


def test_wrong_errors_are_dropped(nat_of):
    nat = nat_of(checks_sums=False)
    out = nat.inside(udp(HOST, 5000, PEER, 53, bytes(16))).one
    packet = error(ROUTER, OURS, quoted(out))
    packet[ICMP].chksum ^= 1
    assert not nat.outside(packet)
    broken = bytearray(quoted(out))
    broken[10] ^= 1
    assert not nat.outside(error(ROUTER, OURS, bytes(broken)))
    assert not nat.outside(error(ROUTER, OURS, quoted(out, 7)))
    assert not nat.outside(error(ROUTER, OURS, b"\x45"))
    other = udp(OURS, 9, PEER, 53)  # nobody's port
    assert not nat.outside(error(ROUTER, OURS, quoted(other)))
    later = IP(quoted(out))
    later.frag, later.chksum = 3, None
    assert not nat.outside(error(ROUTER, OURS, raw(later)))
    nested = error(OURS, PEER, quoted(udp(HOST, 5000, PEER, 53)))
    assert not nat.outside(error(ROUTER, OURS, raw(nested)))
    assert nat.drops == {"icmp_csum": 1, "icmp_embedded": 6}


def test_error_from_inside(nat):
    """RFC 5508 REQ-5: with our address outside, about what came in."""
    out = nat.inside(udp(HOST, 5000, PEER, 53)).one
    got = nat.outside(udp(PEER, 53, OURS, out[UDP].sport, b"late")).one
    back = nat.inside(error(HOST, PEER, quoted(got))).one
    assert (back[IP].src, back[IP].dst) == (OURS, PEER)
    assert (back[IPerror].src, back[IPerror].dst) == (PEER, OURS)
    assert back[UDPerror].dport == out[UDP].sport
    back = nat.inside(error("10.0.0.99", PEER, quoted(got), 11, 0)).one
    assert back[IP].src == OURS  # a router between


def test_errors_are_hairpinned(nat):
    """RFC 5508 REQ-7."""
    port_a = nat.inside(udp(HOST, 5000, PEER, 53)).one[UDP].sport
    port_b = nat.inside(udp("10.0.0.3", 6000, PEER, 53)).one[UDP].sport
    got = nat.inside(udp(HOST, 5000, OURS, port_b)).inside[0]
    back = nat.inside(error("10.0.0.3", OURS, quoted(got))).inside[0]
    assert (back[IP].src, back[IP].dst) == (OURS, HOST)
    assert (back[IPerror].src, back[UDPerror].sport) == (HOST, 5000)
    assert (back[IPerror].dst, back[UDPerror].dport) == (OURS, port_b)
    assert port_a != port_b


def is_about(answer, packet):
    """The error quotes the packet as it was sent."""
    quote = raw(answer[ICMP].payload)
    data = raw(packet)
    return quote == data[:len(quote)] and len(quote) >= min(len(data), 28)


def test_time_exceeded(nat):
    """Traceroute: from our own address, to the sender, and nothing opened."""
    packet = udp(HOST, 5000, PEER, 33434, ttl=1)
    got = nat.inside(packet).inside[0]
    assert (got[IP].src, got[IP].dst) == ("10.0.0.1", HOST)
    assert (got[ICMP].type, got[ICMP].code) == (11, 0)
    assert (got.src, got.dst) == (MACS[0], mac_of(HOST))
    assert is_about(got, packet)
    assert nat.drops == {"ttl": 1} and nat.counter("mappings") == 0
    port = nat.inside(udp(HOST, 5000, PEER, 53)).one[UDP].sport
    got = nat.outside(udp(PEER, 53, OURS, port, ttl=1)).outside[0]
    assert (got[IP].src, got[IP].dst, got[ICMP].type) == (OURS, PEER, 11)
    # Its last step, to ourselves.
    got = nat.inside(udp(HOST, 5000, "10.0.0.1", 33434, ttl=1)).one
    assert (got[ICMP].type, got[ICMP].code) == (3, 3)


def test_too_big(nat_of):
    """4787 REQ-13: DF is answered with the MTU of the next link."""
    nat = nat_of(outside_mtu=1400)
    packet = udp(HOST, 5000, PEER, 53, bytes(1373), flags="DF")
    for _ in range(2):
        got = nat.inside(packet).one
        assert (got[ICMP].type, got[ICMP].code) == (3, 4)
        assert got[ICMP].nexthopmtu == 1400
        assert len(got[IP]) == 576 and is_about(got, packet)
    assert nat.drops == {"too_big": 2}
    fits = udp(HOST, 5000, PEER, 53, bytes(1372), flags="DF")
    assert nat.inside(fits).one[IP].len == 1400


@pytest.mark.parametrize("flags", [0, CSUM_PARTIAL])
def test_too_big_in_pieces(nat_of, flags):
    """4787 REQ-13a: in order, and right when put together."""
    nat = nat_of(outside_mtu=576)
    payload = bytes(i * 7 & 0xff for i in range(1400))
    packet = udp(HOST, 5000, PEER, 53, payload)
    if flags:
        from test_forward import partial
        packet = partial(packet)
    pieces = nat.inside(packet, flags=flags).outside
    assert [p[IP].frag * 8 for p in pieces] == [0, 552, 1104]
    assert [int(p[IP].flags) for p in pieces] == [1, 1, 0]
    assert len({p[IP].id for p in pieces}) == 1
    body = b"".join(raw(p[IP].payload)[:p[IP].len - 20] for p in pieces)
    together = IP(raw(IP(src=OURS, dst=PEER, proto=17) / body))
    assert raw(together[UDP].payload) == payload
    right = IP(raw(IP(src=OURS, dst=PEER) / UDP(
        sport=together[UDP].sport, dport=53) / payload))
    assert together[UDP].chksum == right[UDP].chksum
    assert all(p.csum_flags == 0 for p in pieces)
    assert nat.counter("made") == len(nat.announced) + 1 + 2  # one ARP


def test_pieces_have_the_options_that_they_need(nat_of):
    """RFC 791: those with the copied bit are in each."""
    nat = nat_of(outside_mtu=576)
    data = raw(udp(HOST, 5000, PEER, 53, bytes(1000)))
    # Router alert (copied), record route (not), end.
    options = b"\x94\x04\0\0" + b"\x07\x07\x04\0\0\0\0" + b"\0"
    head = bytearray(data[:20] + options)
    head[0] = 0x48
    head[2:4] = (len(data) + 12).to_bytes(2, "big")
    head[10:12] = b"\0\0"
    packet = IP(bytes(head) + data[20:])
    packet.chksum = None
    pieces = nat.inside(IP(raw(packet))).outside
    assert [p[IP].ihl for p in pieces] == [8, 6]
    assert raw(pieces[1][IP])[20:24] == b"\x94\x04\0\0"


@pytest.mark.parametrize("options, code", [({}, 13),
                                           ({"ports_block": 64,
                                             "ports_max_blocks": 1}, 1)])
def test_no_port_is_answered(nat_of, options, code):
    """5508 REQ-8; 6888 REQ-11 where subscribers have shares."""
    nat = nat_of(ports_range="1024-1087", **options)
    for i in range(64):
        assert nat.inside(udp(HOST, 5000 + i, PEER, 53)).outside, i
    packet = udp(HOST, 6000, PEER, 53)
    got = nat.inside(packet).inside[0]
    assert (got[ICMP].type, got[ICMP].code) == (3, code)
    assert is_about(got, packet)
    assert sum(nat.drops.values()) == 1
    assert nat.inside(udp(HOST, 5000, PEER, 53)).outside  # still works


def test_unsolicited_syn(nat):
    """5382 REQ-4: silence for 6 s, then port unreachable."""
    packet = tcp(PEER, 1000, OURS, 8080)
    assert not nat.outside(packet)
    assert not nat.advance(5.9)
    assert nat.counter("held") == 1
    got = nat.advance(0.2).one
    assert (got[IP].dst, got[ICMP].type, got[ICMP].code) == (PEER, 3, 3)
    assert is_about(got, packet)
    assert nat.drops == {"unsolicited_syn": 1}


def test_unsolicited_syn_that_is_met(nat_of):
    """5382 REQ-4: a SYN from inside meanwhile, and it ends silently."""
    nat = nat_of(filtering="address-port")
    port = nat.inside(tcp(HOST, 4000, "198.51.100.9", 80)).one[TCP].sport
    assert not nat.outside(tcp(PEER, 1000, OURS, port))
    nat.advance(1)
    assert nat.inside(tcp(HOST, 4000, PEER, 1000)).one[TCP].sport == port
    assert not nat.advance(10)
    assert nat.drops == {"unsolicited_syn": 1}


def test_errors_are_limited_in_rate(nat):
    n = sum(len(nat.inside(udp(HOST, 5000, PEER, 33434, ttl=1)))
            for _ in range(200))
    assert n == 50
    nat.advance(0.010)
    n = sum(len(nat.inside(udp(HOST, 5000, PEER, 33434, ttl=1)))
            for _ in range(200))
    assert n == 10
    assert nat.drops == {"ttl": 400}


def test_no_errors_about_errors_and_later_fragments(nat):
    """RFC 1122 3.2.2."""
    inner = quoted(udp(PEER, 53, HOST, 5000))
    packet = error(HOST, PEER, inner)
    packet.ttl, packet.chksum = 1, None
    assert not nat.inside(IP(raw(packet)))
    reply = IP(raw(IP(src=HOST, dst=PEER, ttl=1) / ICMP(type=0, id=3)))
    assert not nat.inside(reply)
    first = IP(raw(IP(src=HOST, dst=PEER, flags="MF", id=5, proto=17) /
                   raw(UDP(sport=1, dport=2, len=24, chksum=0) / bytes(8))))
    assert len(nat.inside(first)) == 1
    later = IP(raw(IP(src=HOST, dst=PEER, frag=2, id=5, proto=17, ttl=1) /
                   bytes(8)))
    assert not nat.inside(later)
    unknown = IP(raw(IP(src=HOST, dst=PEER) / ICMP(type=10)))
    assert not nat.inside(unknown)
    assert nat.drops["icmp_type"] == 1


def test_strangers_do_not_use_up_what_subscribers_are_told(nat_of):
    """Answers to each side have a rate of their own."""
    nat = nat_of(pool=["192.0.2.9"])
    rsts = sum(len(nat.outside(tcp(PEER, 1000 + i, OURS, 80, "S")))
               for i in range(60))
    assert rsts == 50
    told = nat.inside(IP(src=HOST, dst=PEER, ttl=1) / UDP()).one
    assert told[ICMP].type == 11
