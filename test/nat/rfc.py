# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of requirements share: who talks, and the marker."""
import pytest
from scapy.all import ICMP, IP, TCP, UDP, raw

from harness import ping, sum16, tcp, udp

HOST, OTHER, THIRD = "10.0.0.2", "10.0.0.3", "10.0.0.4"
PEER, PEER2, ROUTER = "198.51.100.7", "198.51.100.8", "203.0.113.9"
OURS, OURS2 = "192.0.2.1", "192.0.2.2"


def requirement(rfc, number):
    """The test is about this line of docs/nat-compliance.md."""
    return pytest.mark.requirement(f"{rfc} {number}")


def pong(src, dst, ident, seq=1, payload=b"ping", **ip):
    """An echo reply, built."""
    return IP(raw(IP(src=src, dst=dst, **ip) /
                  ICMP(type=0, id=ident, seq=seq) / payload))


def error(source, target, quote, kind=3, code=3, extra=b"", **icmp):
    """An ICMP error about the bytes of a packet."""
    return IP(raw(IP(src=source, dst=target) /
                  ICMP(type=kind, code=code, **icmp) / quote / extra))


def quoted(packet, n_l4=None):
    """The bytes of a packet as a router quotes them."""
    data = raw(packet[IP])
    return data if n_l4 is None else data[:packet[IP].ihl * 4 + n_l4]


def partial(packet):
    """The pseudo-header's sum instead of the real one, as a stack leaves it."""
    data = bytearray(raw(packet))
    at = 20 + (6 if data[9] == 17 else 16)
    n = len(data) - 20
    data[at:at + 2] = sum16(bytes(data[12:20]) + bytes([0, data[9]]) +
                            n.to_bytes(2, "big")).to_bytes(2, "big")
    return IP(bytes(data))


def cut(packet, size=24, ident=77):
    """A packet as fragments of size bytes each; scapy's own are not asked."""
    data = raw(packet)[20:]
    return [IP(raw(IP(src=packet.src, dst=packet.dst, proto=packet.proto,
                      id=ident, frag=at // 8,
                      flags="MF" if at + size < len(data) else 0) /
                   data[at:at + size])) for at in range(0, len(data), size)]


def together(pieces):
    """The datagram that fragments make."""
    body = {p[IP].frag * 8: raw(p[IP])[p[IP].ihl * 4:p[IP].len]
            for p in pieces}
    data, at = b"", 0
    while at in body:
        data += body[at]
        at = len(data)
    assert len(data) == sum(map(len, body.values())), "a hole"
    p = pieces[0][IP]
    return IP(raw(IP(src=p.src, dst=p.dst, proto=p.proto) / data))


def is_sum_right(packet):
    """Whether its layer-4 sum is that of its bytes."""
    fresh = IP(raw(packet))
    fresh.payload.chksum = None
    return IP(raw(fresh)).payload.chksum == packet.payload.chksum


def ident_of(packet):
    """Its source port, or its id."""
    layer = next(c for c in (UDP, TCP, ICMP) if c in packet)
    return packet[ICMP].id if layer is ICMP else packet[layer].sport


class Flow:
    """An inside address and port of a protocol, and what it gets outside."""

    def __init__(self, nat, proto, host=HOST, port=5000):
        self.nat, self.proto, self.host, self.port = nat, proto, host, port
        self.addr = self.ident = None

    def out(self, peer=PEER, peer_port=53, **more):
        """Send; what came out (TCP: a SYN unless flags= says otherwise)."""
        if self.proto == "udp":
            packet = udp(self.host, self.port, peer, peer_port, **more)
        elif self.proto == "tcp":
            flags = more.pop("flags", "S")
            packet = tcp(self.host, self.port, peer, peer_port, flags, **more)
        else:
            packet = ping(self.host, peer, ident=self.port, **more)
        out = self.nat.inside(packet)
        if len(out.outside) == 1:
            self.addr = out.outside[0][IP].src
            self.ident = ident_of(out.outside[0])
        return out

    def back(self, peer=PEER, peer_port=53, **more):
        """Send to its external end; what came out."""
        if self.proto == "udp":
            packet = udp(peer, peer_port, self.addr, self.ident, **more)
        elif self.proto == "tcp":
            flags = more.pop("flags", "SA")
            packet = tcp(peer, peer_port, self.addr, self.ident, flags, **more)
        else:
            packet = pong(peer, self.addr, self.ident, **more)
        return self.nat.outside(packet)

    def is_open(self, peer=PEER, peer_port=53, **more):
        """Whether what is sent to its external end gets to it."""
        got = self.back(peer, peer_port, **more)
        assert not got.outside
        return len(got.inside) == 1 and got.inside[0][IP].dst == self.host

    def connect(self, peer=PEER, peer_port=80):
        """TCP's three segments; itself."""
        assert self.out(peer, peer_port).outside
        assert self.back(peer, peer_port).inside
        assert self.out(peer, peer_port, flags="A").outside
        return self


def opened(nat, proto, host=HOST, port=5000, **out):
    """A flow that has a mapping."""
    flow = Flow(nat, proto, host, port)
    assert flow.out(**out).outside
    return flow


def ends_after(flow, seconds, **how):
    """Whether it is there at the last moment, and gone in the next second."""
    flow.nat.advance(seconds - 0.1)
    if not flow.is_open(**how):
        return False
    flow.nat.advance(2)
    return not flow.is_open(**how)
