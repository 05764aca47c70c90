# SPDX-License-Identifier: BSD-3-Clause
"""RFC 5508, ICMP: a test for each requirement that is not in test_rfc4787.py."""
import pytest
from scapy.all import (ICMP, IP, TCP, UDP, ICMPerror, IPerror, IPOption_NOP,
                       IPOption_RR, TCPerror, UDPerror, raw)

from harness import ping, sum16, tcp, udp
from rfc import (HOST, OTHER, OURS, PEER, PEER2, ROUTER, THIRD, Flow, cut,
                 error, opened, pong, quoted)
from rfc import requirement as any_requirement

ERRORS = [(3, code) for code in range(16)] + [(11, 0), (11, 1), (12, 0),
                                              (12, 1)]


def requirement(number):
    """Of this RFC."""
    return any_requirement("RFC 5508", number)


@requirement("REQ-1")
def test_queries_and_their_answers(nat):
    out = nat.inside(ping(HOST, PEER, ident=7, seq=3, payload=b"x" * 99)).one
    assert (out[IP].src, out[ICMP].seq) == (OURS, 3)
    ident = out[ICMP].id
    got = nat.outside(pong(PEER, OURS, ident, 3, b"x" * 99)).one
    assert (got[IP].src, got[IP].dst) == (PEER, HOST)
    assert (got[ICMP].type, got[ICMP].id, got[ICMP].seq) == (0, 7, 3)
    # An answer that nobody asked for, and one from inside to nobody.
    assert not nat.outside(pong(PEER, OURS, ident ^ 1))
    assert not nat.inside(pong(HOST, PEER, 99)).outside
    assert nat.drops == {"no_mapping": 2}


@requirement("REQ-3")
def test_wrong_icmp_sums(nat_of):
    nat = nat_of(checks_sums=False)
    for make in (udp, tcp):
        out = nat.inside(make(HOST, 5000, PEER, 53)).one
        packet = error(ROUTER, OURS, quoted(out))
        assert nat.outside(packet).one[IP].dst == HOST
        packet[ICMP].chksum ^= 1
        assert not nat.outside(packet)
    got = nat.outside(udp(PEER, 53, OURS, 5000)).one
    packet = error(HOST, PEER, quoted(got))
    packet[ICMP].chksum ^= 0x8000
    assert not nat.inside(packet)
    assert nat.drops == {"icmp_csum": 3}


@requirement("REQ-3a")
@pytest.mark.parametrize("at", range(20))
def test_wrong_embedded_ip_sums(nat_of, at):
    """Whichever byte of its header is another one, where that is asked for."""
    nat = nat_of(icmp_errors="strict")
    data = bytearray(quoted(nat.inside(udp(HOST, 5000, PEER, 53)).one))
    assert nat.outside(error(ROUTER, OURS, bytes(data)))
    data[at] ^= 0x01 if at else 0x10
    assert not nat.outside(error(ROUTER, OURS, bytes(data)))
    # A version, or a later fragment: not looked at any further.
    assert nat.drops == {"icmp_embedded" if at in (0, 6, 7) else
                         "icmp_embedded_csum": 1}


def udp_with_options(options):
    """From HOST:5000 to PEER:53."""
    return IP(raw(IP(src=HOST, dst=PEER, options=options) /
                  UDP(sport=5000, dport=53) / b"four"))


@requirement("REQ-3b")
@pytest.mark.parametrize("n", [1, 4, 10])
def test_embedded_options_are_skipped(nat_of, n):
    """What stands where ports would be without them belongs to a mapping."""
    nat = nat_of(ports_range="1-65535")
    decoy = opened(nat, "udp", OTHER, 0x0101)
    assert decoy.ident == 0x0101  # two options of one byte
    out = nat.inside(udp_with_options([IPOption_NOP()] * 4 * n)).one
    got = nat.outside(error(ROUTER, OURS, quoted(out, 8))).one
    assert got[IP].dst == HOST
    assert (got[IPerror].src, got[UDPerror].sport) == (HOST, 5000)
    assert got[IPerror].ihl == 5 + n


@requirement("REQ-3c")
@pytest.mark.parametrize("make, layer", [(udp, UDP), (tcp, TCP)])
def test_embedded_transport_sum_is_not_checked(nat, make, layer):
    sent = make(HOST, 5000, PEER, 53)
    out = nat.inside(sent).one
    out[layer].chksum ^= 0x1234
    got = nat.outside(error(ROUTER, OURS, quoted(out))).one
    assert got[IP].dst == HOST
    # And it is as wrong as it was, not put right.
    inner = got[UDPerror if layer is UDP else TCPerror]
    assert inner.chksum != sent[layer].chksum


EXTENSION = b"\x20\0\0\0\0\x08\x01\x01\x12\x34\x51\x01"


@requirement("REQ-3d")
@pytest.mark.parametrize("n_payload", [200, 20])
def test_extensions_are_left_alone(nat, n_payload):
    """RFC 4884: 128 bytes, padded with zeros, then what is not ours."""
    sent = udp(HOST, 5000, PEER, 53, b"p" * n_payload)
    out = nat.inside(sent).one
    quote = quoted(out)[:128].ljust(128, b"\0")
    got = nat.outside(error(ROUTER, OURS, quote, 11, 0, EXTENSION,
                            length=32)).one
    data = raw(got[IP])
    assert data[28 + 128:] == EXTENSION
    assert data[28 + 28:28 + 128] == quote[28:]  # payload and padding
    assert (got[IPerror].src, got[UDPerror].sport) == (HOST, 5000)
    assert got[UDPerror].chksum == sent[UDP].chksum
    # Where a sum would be in a longer packet, there is an extension.
    out = nat.inside(tcp(HOST, 5001, PEER, 53)).one
    got = nat.outside(error(ROUTER, OURS, quoted(out)[:28], 11, 0, EXTENSION,
                            length=7)).one
    assert got[IPerror].src == HOST
    assert raw(got[IP])[28 + 28:] == EXTENSION


@requirement("REQ-4")
def test_errors_about_nothing_of_ours_are_dropped(nat):
    out = nat.inside(udp(HOST, 5000, PEER, 53)).one
    wrong = [udp(OURS, out[UDP].sport ^ 1, PEER, 53),
             tcp(OURS, out[UDP].sport, PEER, 53), ping(OURS, PEER, 5000),
             udp(PEER, 53, OURS, out[UDP].sport)]  # the wrong direction
    for packet in wrong:
        assert not nat.outside(error(ROUTER, OURS, quoted(packet)))
    assert nat.drops == {"icmp_no_mapping": 3, "icmp_embedded_sender": 1}
    # And one to another address than it is about.
    nat.outside(error(ROUTER, "192.0.2.9", quoted(out)))
    assert sum(nat.drops.values()) == len(wrong) + 1
    assert nat.outside(error(ROUTER, OURS, quoted(out))).one[IP].dst == HOST


@requirement("REQ-4a")
@requirement("REQ-4b")
@requirement("REQ-4c")
@any_requirement("RFC 4787", "REQ-12a")
@any_requirement("RFC 4787", "REQ-12b")
@any_requirement("RFC 5382", "REQ-9")
@pytest.mark.parametrize("kind, code", ERRORS)
def test_error_from_outside(nat, kind, code):
    """From whoever it comes."""
    for make, layer in ((udp, UDPerror), (tcp, TCPerror)):
        sent = make(HOST, 5000, PEER, 53, payload=b"four", tos=0x10)
        out = nat.inside(sent).one
        assert out[IP].src != HOST
        for n_l4, source in ((8, PEER), (8, "192.0.2.254"), (8, ROUTER),
                             (None, "8.8.8.8")):
            got = nat.outside(error(source, OURS, quoted(out, n_l4), kind,
                                    code, unused=0x1234 if kind == 11
                                    else None)).one
            assert (got[IP].src, got[IP].dst) == (source, HOST)
            assert (got[ICMP].type, got[ICMP].code) == (kind, code)
            inner = got[IPerror]
            assert (inner.src, inner.dst, inner.tos) == (HOST, PEER, 0x10)
            assert (got[layer].sport, got[layer].dport) == (5000, 53)
        # As a whole: what the host has sent, but for the TTL.
        assert raw(got[layer]) == raw(sent)[20:]
        assert inner.id == sent.id


@requirement("REQ-4a")
@requirement("REQ-4b")
@requirement("REQ-4c")
@pytest.mark.parametrize("kind, code", ERRORS)
def test_error_from_outside_about_a_query(nat, kind, code):
    sent = ping(HOST, PEER, ident=7)
    Flow(nat, "icmp", OTHER, 7).out()  # so that the id is another one
    out = nat.inside(sent).one
    assert out[ICMP].id != 7
    got = nat.outside(error(ROUTER, OURS, quoted(out), kind, code)).one
    assert (got[ICMP].type, got[ICMP].code) == (kind, code)
    assert (got[IP].dst, got[IPerror].src) == (HOST, HOST)
    assert raw(got[ICMPerror]) == raw(sent)[20:]


@requirement("REQ-4a")
def test_quoted_ids_are_those_that_the_host_has_sent(nat):
    """Of each of many packets of two hosts, whichever way they left."""
    sent = [udp((HOST, OTHER)[i % 2], 5000, (PEER, PEER2)[i % 3 % 2], 53,
                id=500 + i) for i in range(40)]
    sent += [ping(HOST, PEER, id=77), udp(HOST, 5000, PEER, 53, id=78,
                                          flags="DF"), cut(udp(
                                              HOST, 5000, PEER, 53, bytes(50),
                                              id=79))[0]]
    out = [nat.inside(packet).outside[0] for packet in sent]
    assert len({packet[IP].id for packet in out}) == len(out)
    for packet, left in zip(sent, out):
        got = nat.outside(error(ROUTER, OURS, quoted(left, 8), 11, 0)).one
        assert (got[IP].dst, got[IPerror].id) == (packet.src, packet.id)
        assert sum16(raw(got[IP])[28:48]) == 0xffff
    # Also of a hairpinned packet.
    sent = udp(HOST, 5000, left[IP].src, left[UDP].sport, id=81)
    got = nat.inside(sent).inside[0]
    back = nat.inside(error(got[IP].dst, OURS, quoted(got))).inside[0]
    assert (back[IP].dst, back[IPerror].id) == (HOST, 81)
    # An error from inside quotes an incoming packet, whose id is not ours.
    flow = opened(nat, "udp", THIRD)
    got = nat.outside(udp(PEER, 53, flow.addr, flow.ident, id=80)).one
    assert nat.inside(error(THIRD, PEER, quoted(got))).one[IPerror].id == 80


@requirement("REQ-5")
def test_errors_from_inside_about_nothing_are_dropped(nat):
    nat.inside(udp(HOST, 5000, PEER, 53))
    for packet in (udp(PEER, 53, HOST, 5001), udp(PEER, 53, OTHER, 5000),
                   tcp(PEER, 53, HOST, 5000), udp(HOST, 5000, PEER, 53)):
        assert not nat.inside(error(HOST, PEER, quoted(packet)))
    assert sum(nat.drops.values()) == 4
    assert nat.inside(error(HOST, PEER, quoted(udp(PEER, 53, HOST, 5000))))


@requirement("REQ-5a")
@requirement("REQ-5b")
@pytest.mark.parametrize("kind, code", ERRORS)
def test_error_from_inside(nat, kind, code):
    flow = opened(nat, "udp", OTHER, 5000)  # so that HOST's port is another one
    flow = opened(nat, "udp", HOST, 5000)
    assert flow.ident != 5000
    sent = udp(PEER, 53, OURS, flow.ident, b"late")
    got = nat.outside(sent).one
    back = nat.inside(error(HOST, PEER, quoted(got), kind, code)).one
    assert (back[IP].src, back[IP].dst) == (OURS, PEER)
    assert (back[ICMP].type, back[ICMP].code) == (kind, code)
    assert (back[IPerror].src, back[IPerror].dst) == (PEER, OURS)
    assert raw(back[UDPerror]) == raw(sent)[20:]


@requirement("REQ-5c")
def test_source_of_errors_from_inside(nat_of):
    nat = nat_of(pool=["192.0.2.1", "192.0.2.50"],
                 one_to_one=[("192.0.2.77", "10.0.0.7"),
                              ("192.0.2.78", "10.0.0.8")])
    flow = opened(nat, "udp")
    got = flow.back().one
    # By the host itself, and by a router in between.
    for sender in (HOST, THIRD):
        back = nat.inside(error(sender, PEER, quoted(got), 11, 0)).one
        assert back[IP].src == flow.addr
    # Basic NAT: who has an address of his own is known by it.
    got = nat.outside(udp(PEER, 53, "192.0.2.77", 99)).one
    assert got[IP].dst == "10.0.0.7"
    back = nat.inside(error("10.0.0.7", PEER, quoted(got))).one
    assert (back[IP].src, back[IPerror].dst) == ("192.0.2.77", "192.0.2.77")
    back = nat.inside(error("10.0.0.8", PEER, quoted(got), 11, 0)).one
    assert (back[IP].src, back[IPerror].dst) == ("192.0.2.78", "192.0.2.77")


@requirement("REQ-6")
@any_requirement("RFC 4787", "REQ-12")
@any_requirement("RFC 5382", "REQ-10")
@any_requirement("RFC 7857", "section 7.1")
@pytest.mark.parametrize("kind, code", ERRORS + [(4, 0), (5, 1)])
@pytest.mark.parametrize("proto, seconds, flags", [
    ("udp", 300, {}), ("tcp", 7440, {"flags": "PA"}), ("icmp", 60, {})])
@pytest.mark.parametrize("filtering", ["none", "address-port"])
def test_errors_neither_refresh_nor_delete(nat_of, filtering, proto, seconds,
                                           flags, kind, code):
    nat = nat_of(filtering=filtering)
    flow = Flow(nat, proto)
    flow.out(PEER, 80)
    flow.back(PEER, 80)
    out = flow.out(PEER, 80, **flags).one
    nat.advance(seconds - 10)
    passes = (kind, code) in ERRORS
    assert len(nat.outside(error(ROUTER, OURS, quoted(out), kind, code)
                           )) == passes
    got = flow.back(PEER, 80, **flags).one
    assert len(nat.inside(error(HOST, PEER, quoted(got), kind, code))
               ) == passes
    assert flow.is_open(PEER, 80, **flags)
    nat.advance(9.9)
    assert flow.is_open(PEER, 80, **flags)
    assert nat.counter("mappings") == nat.counter("created") == 1
    nat.advance(2)
    assert not flow.is_open(PEER, 80, **flags)


@requirement("REQ-7")
@any_requirement("RFC 7857", "section 12")
def test_basic_nat_hairpins_queries(nat_of):
    nat = nat_of(one_to_one=[("192.0.2.77", "10.0.0.7"),
                              ("192.0.2.78", "10.0.0.8")])
    for source, shown in ((HOST, OURS), ("10.0.0.8", "192.0.2.78")):
        got = nat.inside(ping(source, "192.0.2.77", ident=99)).inside[0]
        assert (got[IP].src, got[IP].dst) == (shown, "10.0.0.7")
        back = nat.inside(pong("10.0.0.7", shown, got[ICMP].id)).inside[0]
        assert (back[IP].src, back[IP].dst) == ("192.0.2.77", source)
        assert (back[ICMP].type, back[ICMP].id) == (0, 99)
    assert nat.drops == {}


@requirement("REQ-7")
@requirement("REQ-7a")
@any_requirement("RFC 7857", "section 12")
@pytest.mark.parametrize("kind, code", ERRORS)
def test_errors_are_hairpinned(nat, kind, code):
    a = opened(nat, "udp", HOST, 5000)
    b = opened(nat, "udp", OTHER, 6000)
    sent = udp(HOST, 5000, OURS, b.ident)
    got = nat.inside(sent).inside[0]
    out = nat.inside(error(OTHER, OURS, quoted(got), kind, code))
    assert not out.outside
    back = out.inside[0]
    assert (back[IP].src, back[IP].dst) == (OURS, HOST)
    assert (back[ICMP].type, back[ICMP].code) == (kind, code)
    assert back[IPerror].src == back[IP].dst
    assert raw(back[UDPerror]) == raw(sent)[20:]
    assert nat.drops == {}


@requirement("REQ-8")
@pytest.mark.parametrize("make", [udp, tcp])
def test_no_session_is_answered(nat_of, make):
    nat = nat_of(limits_mappings=1)
    assert nat.inside(make(HOST, 5000, PEER, 53)).outside
    packet = make(HOST, 5001, PEER, 53)
    out = nat.inside(packet)
    assert not out.outside
    got = out.inside[0]
    assert (got[IP].dst, got[ICMP].type, got[ICMP].code) == (HOST, 3, 13)
    assert raw(got[ICMP].payload)[:28] == raw(packet)[:28]
    assert nat.drops == {"table_full": 1}


@requirement("REQ-8")
def test_forbidden_sessions_are_answered(nat_of):
    nat = nat_of(ports_range="2048-2111", hairpin=False)
    other = IP(raw(IP(src=HOST, dst=PEER, proto=47) / b"\0\0\x08\0"))
    got = nat.inside(other).inside[0]
    assert (got[ICMP].type, got[ICMP].code) == (3, 13)
    for i in range(64):
        assert nat.inside(ping(HOST, PEER, ident=i + 1)).outside
    got = nat.inside(ping(HOST, PEER, ident=100)).inside[0]
    assert (got[ICMP].type, got[ICMP].code) == (3, 13)
    got = nat.inside(udp(HOST, 5000, OURS, 9)).inside[0]
    assert (got[ICMP].type, got[ICMP].code) == (3, 13)
    assert nat.drops == {"protocol": 1, "no_port": 1, "hairpin_off": 1}


@requirement("REQ-10a")
def test_messages_that_must_be_supported(nat):
    """Ours, too: those of others are REQ-1 and REQ-4."""
    for target in ("10.0.0.1", OURS):  # both of our addresses, from inside
        got = nat.inside(ping(HOST, target)).one
        assert (got[IP].src, got[ICMP].type) == (target, 0)
    assert nat.outside(ping(PEER, OURS)).one[ICMP].type == 0
    got = nat.inside(udp(HOST, 5000, PEER, 33434, ttl=1)).one
    assert (got[IP].src, got[ICMP].type, got[ICMP].code) == ("10.0.0.1", 11, 0)
    got = nat.inside(udp(HOST, 5000, "10.0.0.1", 33434)).one
    assert (got[ICMP].type, got[ICMP].code) == (3, 3)
    assert nat.counter("mappings") == 0


def icmp(src, dst, kind, code=0, body=b"\0" * 12, ident=7, **ip):
    """An ICMP message of bytes, with an id in the usual place."""
    head = bytes([kind, code, 0, 0]) + ident.to_bytes(2, "big") + b"\0\1"
    packet = IP(src=src, dst=dst, proto=1, **ip) / ICMP(head + body)
    packet[ICMP].chksum = None
    return IP(raw(packet))


@requirement("REQ-10b")
def test_messages_that_may_be_supported(nat):
    out = nat.inside(icmp(HOST, PEER, 13)).one
    assert (out[IP].src, out[ICMP].type) == (OURS, 13)
    ident = int.from_bytes(raw(out[ICMP])[4:6], "big")
    got = nat.outside(icmp(PEER, OURS, 14, ident=ident)).one
    assert got[IP].dst == HOST and raw(got[ICMP])[4:6] == b"\0\7"
    out = nat.inside(udp(HOST, 5000, PEER, 53)).one
    got = nat.outside(error(PEER, OURS, quoted(out), 12, 0, ptr=20)).one
    assert (got[IP].dst, got[ICMP].ptr) == (HOST, 20)
    n = nat.counter("mappings")
    for kind in (5, 9, 10, 17, 18):
        assert not nat.inside(icmp(HOST, PEER, kind)).outside
        assert not nat.outside(icmp(PEER, OURS, kind))
    assert nat.drops == {"icmp_type": 10}
    packet = udp_with_options([IPOption_RR(copy_flag=1, optclass=0, option=3,
                                           length=7, pointer=4,
                                           routers=[PEER2])])
    data = bytearray(raw(packet))
    assert data[20] == 131  # loose source route
    data[22] = 8  # that ends here
    data[16:20] = bytes([10, 0, 0, 1])
    packet = IP(bytes(data))
    packet.chksum = None
    assert not nat.inside(IP(raw(packet))).outside
    assert nat.drops == {"icmp_type": 10, "source_route": 1}
    assert nat.counter("mappings") == n


@requirement("REQ-10c")
@pytest.mark.parametrize("kind", [4, 15, 16])
def test_messages_that_should_not_be_supported(nat, kind):
    out = nat.inside(udp(HOST, 5000, PEER, 53)).one
    assert not nat.outside(icmp(PEER, OURS, kind, body=quoted(out), ident=0))
    assert not nat.inside(icmp(HOST, PEER, kind)).outside
    assert nat.drops == {"icmp_type": 2}


@requirement("REQ-10d")
def test_tos_of_our_messages(nat):
    got = nat.inside(udp(HOST, 5000, PEER, 53, ttl=1, tos=0x28)).one
    assert got[IP].tos >> 5 in (6, 7)
    for tos in (0, 0x28, 0xb8):
        assert nat.outside(ping(PEER, OURS, tos=tos)).one[IP].tos == tos


@requirement("REQ-10e")
def test_no_errors_are_sent_about_errors_replies_and_later_fragments(nat):
    inner = udp(PEER, 53, HOST, 5000)
    for packet in (error(HOST, PEER, quoted(inner)),
                   pong(HOST, PEER, 3),
                   IP(raw(IP(src=HOST, dst=PEER, frag=2, proto=17) /
                          bytes(16)))):
        packet.ttl, packet.chksum = 1, None
        assert not nat.inside(IP(raw(packet)))
    first = raw(UDP(sport=5000, dport=53, len=24, chksum=0)) + bytes(8)
    for ttl, frag, body in ((9, 0, first), (1, 2, bytes(8))):
        out = nat.inside(IP(raw(IP(src=HOST, dst=PEER, id=5, proto=17, ttl=ttl,
                                   frag=frag, flags="" if frag else "MF") /
                                body)))
        assert len(out.outside) == (ttl > 1) and not out.inside
    made = nat.counter("made")  # a request for the gateway's address
    for target in ("224.0.0.251", "255.255.255.255", "10.0.0.255"):
        assert not nat.inside(udp(HOST, 5000, target, 5353, ttl=1))
    for source in ("0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255"):
        assert not nat.inside(udp(source, 5000, PEER, 53, ttl=1))
    assert nat.counter("made") == made == len(nat.announced) + 1
    assert nat.inside(udp(HOST, 5000, PEER, 53, ttl=1)).one[ICMP].type == 11


@requirement("REQ-10f")
def test_errors_are_limited_in_rate(nat):
    def count(n):
        return sum(len(nat.inside(udp(HOST, 5000, PEER, 53, ttl=1)))
                   for _ in range(n))

    assert count(200) == 50
    nat.advance(0.010)
    assert count(200) == 10
    assert nat.drops == {"ttl": 400}  # they are dropped all the same


@requirement("REQ-11")
@pytest.mark.parametrize("kind", [1, 2, 7, 19, 30, 40, 42, 43, 253, 255])
def test_icmp_that_is_neither_query_nor_error_is_dropped(nat, kind):
    assert not nat.inside(icmp(HOST, PEER, kind)).outside
    assert not nat.outside(icmp(PEER, OURS, kind))
    assert nat.drops == {"icmp_type": 2}
    assert nat.counter("mappings") == 0
