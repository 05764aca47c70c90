# SPDX-License-Identifier: BSD-3-Clause
"""Sessions of one socket. With the XDP program, packets pass through rules as
soon as these exist; without it, the same tests must hold."""
import os

import pytest
from scapy.all import TCP, UDP

from harness import tcp, udp
from rfc import HOST, OURS

HAS_RULES = bool(os.environ.get("MR_NAT_OFFLOAD"))
PEERS = [f"198.51.100.{i}" for i in range(1, 6)] + ["192.0.2.77"]  # on the link


class Socket:
    """A socket of an inside host; it sends and receives one packet at a time."""

    def __init__(self, nat, port=5000, host=HOST):
        self.nat, self.port, self.host = nat, port, host
        self.outside = None

    def out(self, peer):
        """Send a packet. Returns its translated source."""
        packet = self.nat.inside(udp(self.host, self.port, peer, 53)).one
        self.outside = (packet.payload.src, packet[UDP].sport)
        return self.outside

    def back(self, peer):
        """Whether an answer arrives at the socket."""
        return self.nat.outside(udp(peer, 53, *self.outside)).inside != []

    def by_rules(self, *peers):
        """How many frames rules forward in one exchange with each peer."""
        before = self.nat.counter("offloaded")
        for peer in peers:
            self.out(peer)
            assert self.back(peer)
        return self.nat.counter("offloaded") - before


def all_of(n):
    """How many of n frames rules forward, if all can be."""
    return n if HAS_RULES else 0


@pytest.mark.parametrize("filtering", ["none", "address", "address-port"])
def test_each_remote_end_of_a_socket_has_a_rule(nat_of, filtering):
    nat = nat_of(filtering=filtering)
    socket = Socket(nat)
    for _ in range(2):  # the first packets make rules, the next confirm them
        socket.by_rules(*PEERS)
    for _ in range(10):
        assert socket.by_rules(*PEERS) == all_of(2 * len(PEERS))
        nat.advance(1)
    assert {(row["n_out"], row["n_in"]) for row in nat.sessions} == \
        {(12 * len(PEERS),) * 2}
    assert len(nat.sessions) == (1 if filtering == "none" else len(PEERS))


def test_with_sessions_by_address_one_port_has_a_rule(nat_of):
    nat = nat_of(filtering="address")
    socket = Socket(nat)
    for _ in range(2):
        socket.by_rules(*PEERS)
    before = nat.counter("offloaded")
    for peer in PEERS:
        for _ in range(3):
            assert nat.inside(udp(HOST, 5000, peer, 54)).outside
            assert nat.outside(udp(peer, 54, *socket.outside)).inside
    assert nat.counter("offloaded") == before
    assert socket.by_rules(*PEERS) == all_of(2 * len(PEERS))


def test_without_sessions_idle_rules_end_except_the_first(nat):
    socket = Socket(nat)
    first, second, *others = PEERS
    for _ in range(2):
        socket.by_rules(*PEERS)
    for _ in range(20):
        nat.advance(1)
        assert socket.by_rules(second) == all_of(2)
    assert socket.by_rules(first) == all_of(2)
    assert socket.by_rules(*others) == 0
    assert len(nat.sessions) == 1


@pytest.mark.parametrize("filtering", ["address", "address-port"])
def test_sessions_of_a_socket_end_one_by_one(nat_of, filtering):
    nat = nat_of(filtering=filtering, timeouts_udp=30)
    socket = Socket(nat)
    first, second, third = PEERS[:3]
    for _ in range(3):
        socket.by_rules(first, second, third)
    for _ in range(4):
        nat.advance(9)
        socket.out(second)
    assert [socket.back(peer) for peer in (first, second, third)] == \
        [False, True, False]
    # The mapping has one without a remote end: that of its first session.
    assert {(row["remote"], row["age_s"]) for row in nat.sessions} == \
        {("0.0.0.0", 0), (second, 0)}
    assert nat.drops == {"filtered": 2}
    nat.advance(32)
    assert not nat.sessions and not socket.back(second)


def connect(nat, peer, seq=1000):
    """A connection, in which both sides have sent something; its outside port.
    """
    out = nat.inside(tcp(HOST, 5000, peer, 80, "S", seq=seq)).one
    port = out[TCP].sport
    nat.outside(tcp(peer, 80, OURS, port, "SA", seq=8000, ack=seq + 1))
    nat.inside(tcp(HOST, 5000, peer, 80, "A", seq=seq + 1, ack=8001))
    say(nat, peer, port, 0)
    say(nat, peer, port, 1)
    return port


def say(nat, peer, port, i, seq=1000):
    """10 bytes each way, for the i-th time."""
    assert nat.inside(tcp(HOST, 5000, peer, 80, "A", bytes(10),
                          seq=seq + 1 + 10 * i, ack=8001 + 10 * i)).outside
    assert nat.outside(tcp(peer, 80, OURS, port, "A", bytes(10),
                           seq=8001 + 10 * i, ack=seq + 11 + 10 * i)).inside


def test_connections_of_a_port_have_windows_of_their_own(nat):
    ports = {peer: connect(nat, peer, 1000) for peer in PEERS}
    assert len({*ports.values()}) == 1
    before = nat.counter("offloaded")
    for i in range(2, 6):
        for peer, port in ports.items():
            say(nat, peer, port, i)
    assert nat.counter("offloaded") - before == all_of(8 * len(PEERS))
    # A reset outside the window changes nothing; then one of them ends.
    ended, *others = PEERS[1:]
    nat.outside(tcp(others[0], 80, OURS, ports[others[0]], "R", seq=99999999))
    nat.outside(tcp(ended, 80, OURS, ports[ended], "R", seq=8061, ack=1061))
    states = {row["remote"]: row["tcp_state"] for row in nat.sessions}
    assert states.pop(ended) == 6 and {*states.values()} == {2}
    before = nat.counter("offloaded")
    for peer in (PEERS[0], *others[1:]):
        say(nat, peer, ports[peer], 6)
    assert nat.counter("offloaded") - before == all_of(2 * len(others))


def test_idle_rules_end_to_make_room(nat_of):
    nat = nat_of(n_rules=2, timeouts_udp=300)
    first, second, third = (Socket(nat, port) for port in (1, 2, 3))

    def talk(*sockets):
        return [socket.by_rules(PEERS[0]) for socket in sockets]
    for _ in range(3):
        talk(first, second)
    for _ in range(20):  # those in use stay
        nat.advance(1)
        assert talk(first, second, third) == [all_of(2), all_of(2), 0]
    for _ in range(15):
        nat.advance(1)
        talk(first, third)
    assert talk(first, third) == [all_of(2), all_of(2)]
    assert talk(second) == [0]  # in user space
    assert len(nat.sessions) == 3


def test_a_one_to_one_host_has_a_rule_for_each_flow(nat_of):
    nat = nat_of(one_to_one=[("192.0.2.9", HOST)])
    sockets = [Socket(nat, port) for port in (1, 2)]
    for _ in range(2):
        for socket in sockets:
            socket.by_rules(*PEERS)
    before = nat.counter("offloaded")
    for socket in sockets:
        assert socket.by_rules(*PEERS) == all_of(2 * len(PEERS))
        assert socket.outside == ("192.0.2.9", socket.port)

    def segment(flags, seq):
        packet = nat.inside(tcp(HOST, 3, PEERS[0], 80, flags, seq=seq)).one
        assert packet.payload.src == "192.0.2.9" and packet[TCP].sport == 3
        return nat.counter("offloaded")
    for seq in (0, 1 << 30, 1 << 31):  # the NAT does not track this connection
        segment("A", seq)
    before = segment("A", 5)
    assert segment("A", 3 << 30) == before + all_of(1)
    assert segment("FA", 7) == segment("S", 9) == before + all_of(1)
    row, = nat.sessions
    assert (row["n_out"], row["n_in"]) == (6 * len(PEERS) + 7, 6 * len(PEERS))
