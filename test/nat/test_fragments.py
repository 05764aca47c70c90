# SPDX-License-Identifier: BSD-3-Clause
"""Fragments in any order, from both sides, bounded against abuse."""
import itertools

import pytest
from scapy.all import ICMP, IP, TCP, UDP, raw

from harness import CSUM_PARTIAL, ping, udp
from rfc import HOST, OURS, PEER, cut, is_sum_right, together


@pytest.mark.parametrize("order", itertools.permutations(range(3)))
def test_a_ping_in_any_order(nat, order):
    """As UDP (4787 REQ-14): all of it arrives, and its sum is right."""
    pieces = cut(ping(HOST, PEER, payload=bytes(range(60))))
    got = []
    for i in order:
        got += nat.inside(pieces[i]).outside
    assert len(got) == 3 and len({p[IP].id for p in got}) == 1
    whole = together(got)
    assert whole.src == OURS and is_sum_right(whole)
    assert raw(whole.payload.payload)[:60] == bytes(range(60))
    assert nat.counter("held") == 0 and nat.drops == {}


def test_ping_of_our_own_in_pieces(nat):
    for order in ((0, 1, 2), (2, 1, 0)):
        pieces = cut(ping(HOST, "10.0.0.1", payload=bytes(range(60))),
                           ident=order[0])
        got = []
        for i in order:
            got += nat.inside(pieces[i]).inside
        whole = together(got)
        assert (whole[ICMP].type, whole.src) == (0, "10.0.0.1")
        assert is_sum_right(whole)


def test_fragments_without_a_first_one_expire(nat):
    pieces = cut(udp(HOST, 5000, PEER, 53, bytes(60)))
    assert not nat.inside(pieces[1]) and not nat.inside(pieces[2])
    assert nat.counter("held") == 2
    nat.advance(1.9)
    assert nat.counter("held") == 2
    nat.advance(0.2)
    assert nat.counter("held") == 0
    assert nat.drops == {"fragment_old": 2}


def test_fragments_are_dropped_if_the_first_one_is_refused(nat):
    """What becomes of the first becomes of all."""
    pieces = cut(udp(PEER, 53, OURS, 4242, bytes(60)))
    nat.outside(pieces[1])
    assert not nat.outside(pieces[0])
    assert not nat.outside(pieces[2])
    assert nat.drops == {"no_mapping": 3}


def test_repeated_and_overlapping(nat):
    pieces = cut(udp(HOST, 5000, PEER, 53, bytes(60)))
    assert nat.inside(pieces[0]).outside
    assert not nat.inside(pieces[0])  # twice on the way: one is enough
    assert nat.inside(pieces[1]).outside
    assert nat.drops == {"fragment_wrong": 1}
    evil = IP(raw(pieces[2]))
    evil.frag, evil.chksum = pieces[2].frag - 1, None
    assert not nat.inside(IP(raw(evil)))  # 8 bytes of it were there
    assert not nat.inside(pieces[2])      # and now none is believed
    assert nat.drops == {"fragment_wrong": 3}


def test_tiny_ones(nat):
    """RFC 1858, RFC 3128: what passes a filter of the first alone."""
    data = raw(TCP(sport=1000, dport=80, flags="S"))
    base = {"src": HOST, "dst": PEER, "proto": 6}
    assert not nat.inside(IP(raw(IP(flags="MF", id=1, **base) / data[:8])))
    assert not nat.inside(IP(raw(IP(frag=1, id=2, **base) / data[8:])))
    assert not nat.inside(IP(raw(IP(flags="MF", id=3, **base) /
                                 (data + b"\0" * 5))))  # no multiple of 8
    far = IP(raw(IP(frag=8191, id=4, **base) / bytes(16)))
    assert not nat.inside(far)  # ends behind 65535
    assert nat.drops == {"fragment_wrong": 4}


def test_waiting_frames_are_bounded(nat_of):
    nat = nat_of(limits_fragments=10)
    for i in range(30):
        nat.outside(cut(udp(PEER, 53, OURS, 4242, bytes(60)),
                              ident=i)[1])
    assert nat.counter("held") == 10
    assert nat.drops == {"fragment_full": 20}


def test_pieces_that_are_too_big_become_smaller(nat_of):
    nat = nat_of(outside_mtu=100)
    packet = udp(HOST, 5000, PEER, 53, bytes(i & 0xff for i in range(1000)))
    got = []
    for piece in cut(packet, size=400):
        got += nat.inside(piece).outside
    assert all(p[IP].len <= 100 for p in got)
    whole = together(got)
    assert raw(whole[UDP].payload) == raw(packet[UDP].payload)
    assert is_sum_right(whole)
    assert [int(p[IP].flags) for p in got] == [1] * (len(got) - 1) + [0]


def test_ids_of_workers_differ(nat_of):
    """RFC 6864: they share an external address."""
    def ids(shard):
        nat = nat_of(shard=shard, n_shards=3)
        return [nat.inside(udp(HOST, 5000, PEER, 53)).one[IP].id
                for _ in range(50)]

    seen = [ids(shard) for shard in (0, 1, 2)]
    assert len({i for some in seen for i in some}) == 150
    assert len({some[0] // 4 for some in seen}) > 1, "they begin anywhere"


def test_options_that_a_first_fragment_does_not_have(nat):
    """The MSS would be looked for in bytes behind the packet."""
    header = raw(TCP(sport=5000, dport=80, flags="S", dataofs=15))
    assert not nat.inside(IP(raw(IP(src=HOST, dst=PEER,
                                    flags="MF", proto=6) / header[:20] /
                                 bytes(4))))
    assert nat.drops == {"fragment_wrong": 1}


@pytest.mark.parametrize("frag, flags", [(0, "MF"), (3, 0)])
def test_fragments_with_a_partial_sum(nat_of, frag, flags):
    """Nobody can finish it. Split again, it once crashed."""
    nat = nat_of(outside_mtu=600)
    nat.inside(udp(HOST, 5000, PEER, 53))
    piece = IP(raw(IP(src=HOST, dst=PEER, frag=frag, id=9,
                      flags=flags, proto=17) /
                   raw(UDP(sport=5000, dport=53, len=1008)) / bytes(992)))
    assert not nat.inside(piece, flags=CSUM_PARTIAL)
    assert nat.drops == {"fragment_wrong": 1}
