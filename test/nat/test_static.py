# SPDX-License-Identifier: BSD-3-Clause
"""Forwards, one-to-one mappings, and mappings of whole addresses."""
import pytest
from scapy.all import ICMP, IP, UDP, raw

from harness import ping, tcp, udp
from rfc import HOST, OTHER, OURS, OURS2, PEER, PEER2, THIRD, Flow, opened, pong

FAR = "192.0.2.9"  # external, not of the pool


def gre(src, dst, proto=47):
    """A packet without ports."""
    return IP(raw(IP(src=src, dst=dst, proto=proto) / bytes(8)))


def test_a_port_forward_works_both_ways_and_never_expires(nat_of):
    """In the range of ports, below it, and not an address of the pool."""
    nat = nat_of(forwards=[("tcp+udp", OURS, 8000, 8009, HOST, 80),
                           ("tcp", OURS, 443, 443, HOST, 443),
                           ("tcp", FAR, 22, 22, HOST, 22)])
    ends = [(OURS, 8000 + i, 80 + i) for i in range(10)]
    ends += [(OURS, 443, 443), (FAR, 22, 22)]
    for _ in range(2):
        for addr, outside, inside in ends:
            got = nat.outside(tcp(PEER, 1, addr, outside)).one
            assert (got[IP].dst, got[IP].payload.dport) == (HOST, inside)
            out = nat.inside(tcp(HOST, inside, PEER, 1, "SA")).one
            assert (out[IP].src, out[IP].payload.sport) == (addr, outside)
        got = nat.outside(udp(PEER, 1, OURS, 8003)).one
        assert (got[IP].dst, got[UDP].dport) == (HOST, 83)
        assert not nat.outside(udp(PEER, 1, OURS, 443))
        assert not nat.outside(udp(PEER, 1, OURS, 8010))
        assert nat.counter("mappings") == 22
        nat.advance(10000)
    assert nat.drops == {"no_mapping": 4}


def test_forwarded_ports_are_never_given_out(nat_of):
    nat = nat_of(ports_range="1024-1123",
                 forwards=[("udp", OURS, 1030, 1059, OTHER, 1030)])
    idents = {opened(nat, "udp", f"10.0.1.{i}", 9).ident for i in range(70)}
    assert idents == {*range(1024, 1124)} - {*range(1030, 1060)}
    assert not Flow(nat, "udp").out().outside and nat.drops == {"no_port": 1}


def test_a_host_with_a_forward_is_paired_with_its_address(nat_of):
    """What the host opens comes from where it is reached."""
    nat = nat_of(pool=["203.0.113.0-203.0.113.15"],
                 forwards=[("tcp", "203.0.113.11", 80, 80, HOST, 80)])
    assert {opened(nat, "udp", HOST, 1 + i).addr for i in range(20)} == \
        {"203.0.113.11"}


def test_a_forward_has_no_filter_and_its_sessions_end(nat_of):
    """Who may come is said by having one. Whom the host talks to is known."""
    nat = nat_of(filtering="address-port",
                 forwards=[("udp+tcp", OURS, 2000, 2000, HOST, 80)])
    assert nat.outside(udp(PEER, 1, OURS, 2000)).one[IP].dst == HOST
    assert nat.outside(tcp(PEER, 1, OURS, 2000)).one[IP].dst == HOST
    assert nat.counter("sessions") == 0
    for peer in (PEER, PEER2):
        assert nat.inside(tcp(HOST, 80, peer, 1)).outside
    assert nat.counter("sessions") == 1  # besides the first
    nat.advance(241)
    assert nat.counter("sessions") == 0 and nat.counter("mappings") == 2


def test_one_to_one_is_for_all_protocols_and_ports(nat_of):
    nat = nat_of(pool=[OURS], one_to_one=[(OURS2, HOST)],
                 filtering="address-port", ports_keep_port=False)
    out = (udp(HOST, 7, PEER, 9), tcp(HOST, 7, PEER, 9, "A"),
           ping(HOST, PEER, 7), gre(HOST, PEER))
    back = (udp(PEER, 9, OURS2, 7), tcp(PEER, 9, OURS2, 7, "A"),
            pong(PEER, OURS2, 7), gre(PEER, OURS2))
    for _ in range(2):
        for sent, answer in zip(out, back):
            got = nat.outside(answer).one
            assert got[IP].dst == HOST
            if sent.proto in (6, 17):
                assert got[IP].payload.dport == 7
            got = nat.inside(sent).one
            assert got[IP].src == OURS2
            if sent.proto in (6, 17):
                assert got[IP].payload.sport == 7
    assert nat.outside(ping(PEER, OURS2, 99)).one[ICMP].id == 99
    # The address is nobody else's.
    assert {opened(nat, "udp", f"10.0.1.{i}").addr for i in range(60)} == \
        {OURS}
    assert nat.counter("sessions") == 0


def test_every_worker_has_all_forwards(nat_of):
    """Whosever slice the port is in."""
    for shard in range(4):
        nat = nat_of(shard=shard, n_shards=4,
                     forwards=[("udp", OURS, 2000, 2299, HOST, 2000)])
        for port in range(2000, 2300, 13):
            assert nat.outside(udp(PEER, 1, OURS, port)).one[UDP].dport == port
        assert nat.counter("mappings") == 300


def test_other_protocols_get_an_address_to_themselves(nat_of):
    nat = nat_of(pool=[OURS, OURS2], other_protocols=True)
    addrs = {nat.inside(gre(host, PEER)).one[IP].src: host
             for host in (HOST, OTHER)}
    assert set(addrs) == {OURS, OURS2}
    assert not nat.inside(gre(THIRD, PEER)).outside
    assert nat.drops == {"no_port": 1}
    esp = nat.inside(gre(THIRD, PEER, 50)).one[IP].src
    for addr, host in addrs.items():
        assert nat.outside(gre(PEER, addr)).one[IP].dst == host
    assert nat.outside(gre(PEER, esp, 50)).one[IP].dst == THIRD
    nat.advance(200)
    nat.inside(gre(HOST, PEER))
    nat.advance(101)
    assert nat.counter("mappings") == 1
    assert nat.inside(gre(THIRD, PEER)).outside  # the other one's address


@pytest.mark.parametrize("shard", [0, 1])
def test_other_protocols_are_shared_out_by_address(nat_of, shard):
    """Of an external address one worker has them: everyone can compute which."""
    nat = nat_of(pool=["203.0.113.0-203.0.113.3"], other_protocols=True,
                 shard=shard, n_shards=2)
    got = {nat.inside(gre(host, PEER)).one[IP].src for host in (HOST, OTHER)}
    assert got == {f"203.0.113.{i}" for i in range(4) if i % 2 == shard}
    assert not nat.inside(gre(THIRD, PEER)).outside
