# SPDX-License-Identifier: BSD-3-Clause
"""ICMP: what test_rfc5508.py does not show of errors and of our own messages."""
import pytest
from scapy.all import ICMP, IP, TCP, UDP, ICMPerror, IPerror, TCPerror, raw

from harness import MACS, mac_of, ping, sum16, tcp, udp
from rfc import HOST, OTHER, OURS, PEER, ROUTER, error, opened, quoted


def test_a_message_of_zeros_has_the_sum_ffff(nat):
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


def test_a_quoted_message_of_zeros_has_the_sum_ffff(nat):
    """The same where it is quoted: a host answered a ping from outside."""
    nat.inside(ping(HOST, PEER, ident=0, seq=0, payload=b""))
    ident = nat.sessions[0]["outside_port"]
    sent = IP(raw(IP(src=HOST, dst=PEER) / ICMP(type=0, id=0, seq=0)))
    out = nat.inside(sent).one
    assert out[ICMP].id == ident
    got = nat.outside(error(ROUTER, OURS, quoted(out))).one
    assert (got[ICMPerror].id, got[ICMPerror].chksum) == (0, 0xffff)


def test_errors_about_later_fragments_and_errors_are_dropped(nat):
    out = nat.inside(udp(HOST, 5000, PEER, 53, bytes(16))).one
    later = IP(quoted(out))
    later.frag, later.chksum = 3, None
    assert not nat.outside(error(ROUTER, OURS, raw(later)))
    nested = error(OURS, PEER, quoted(udp(HOST, 5000, PEER, 53)))
    assert not nat.outside(error(ROUTER, OURS, raw(nested)))
    assert nat.drops == {"icmp_embedded": 2}


# What routers do to the headers that they quote.
CHANGES = {
    "a checksum of 0": lambda q: q[:10] + b"\0\0" + q[12:],
    "another TTL": lambda q: q[:8] + b"\1" + q[9:],
    "a length without the header": lambda q: q[:2] + (
        int.from_bytes(q[2:4], "big") - 20).to_bytes(2, "big") + q[4:],
    "a length in another order": lambda q: q[:2] + q[3:4] + q[2:3] + q[4:],
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("make, layer", [(udp, UDP), (tcp, TCP)])
def test_errors_with_changed_quotes_pass(nat_of, change, make, layer):
    """As in Linux. What routers changed stays as it is."""
    for strict in (False, True):
        nat = nat_of(**({"icmp_errors": "strict"} if strict else {}))
        opened(nat, "udp", OTHER, 5000)  # so that the ports are others
        opened(nat, "tcp", OTHER, 5000)
        sent = make(HOST, 5000, PEER, 53)
        out = nat.inside(sent).one
        quote = CHANGES[change](quoted(out))
        got = nat.outside(error(ROUTER, OURS, quote, 3, 1))
        if strict:
            assert not got and nat.drops == {"icmp_embedded_csum": 1}
            continue
        inner = got.one[IPerror]
        assert (got.one[IP].dst, inner.src, inner.dst) == (HOST, HOST, PEER)
        assert raw(inner)[:4] == quote[:4]
        assert raw(inner)[6:10] == quote[6:10]
        if quote[10:12] == b"\0\0":
            assert inner.chksum == 0
        assert raw(got.one[IP])[28 + 20:] == raw(sent)[20:]
        # And from inside.
        got = nat.outside(make(PEER, 53, OURS, out[layer].sport)).one
        back = nat.inside(error(HOST, PEER, CHANGES[change](quoted(got)))).one
        assert (back[IP].dst, back[IPerror].dst) == (PEER, OURS)


@pytest.mark.parametrize("octet", [1, 2, 6, 7, 10, 31, 32, 255])
@pytest.mark.parametrize("kind", [3, 11, 12])
@pytest.mark.parametrize("n_quoted", [28, 40])
def test_errors_with_a_nonzero_unused_octet_pass(nat, octet, kind, n_quoted):
    """RFC 4884: it is a length, but of 128 bytes or more."""
    sent = tcp(HOST, 5000, PEER, 53)
    quote = quoted(nat.inside(sent).one)[:n_quoted]
    packet = IP(raw(IP(src=ROUTER, dst=OURS) / ICMP(type=kind, chksum=0) /
                    quote))
    data = bytearray(raw(packet[ICMP]))
    data[5] = octet
    data[2:4] = (0xffff - sum16(bytes(data))).to_bytes(2, "big")
    got = nat.outside(IP(raw(IP(src=ROUTER, dst=OURS, proto=1) /
                             bytes(data)))).one
    assert got[IP].dst == HOST
    assert raw(got[TCPerror]) == raw(sent)[20:n_quoted]


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


def test_outside_hosts_do_not_use_up_the_errors_for_subscribers(nat_of):
    """Answers to each side have a rate of their own."""
    nat = nat_of(pool=["192.0.2.9"])
    rsts = sum(len(nat.outside(tcp(PEER, 1000 + i, OURS, 80, "S")))
               for i in range(60))
    assert rsts == 50
    told = nat.inside(IP(src=HOST, dst=PEER, ttl=1) / UDP()).one
    assert told[ICMP].type == 11
