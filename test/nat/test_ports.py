# SPDX-License-Identifier: BSD-3-Clause
"""Which external port a mapping gets, blocks of ports, and what is logged."""
import pytest

from rfc import HOST, OTHER, OURS, OURS2, Flow, opened

FIRST = "10.0.0.{}"


def blocks(nat):
    """What the log says of blocks: (begin or end, host, first port, ports)."""
    return [(e["what"][6:], e["inside"], e["outside_port"], e["n_ports"])
            for e in nat.events if e["what"].startswith("block")]


def test_the_inside_port_is_kept_if_it_is_free(nat):
    assert [opened(nat, "udp", HOST, p).ident for p in (5000, 65535)] == \
        [5000, 65535]
    for host, port in ((OTHER, 5000), (HOST, 53), (HOST, 0)):
        ident = opened(nat, "udp", host, port).ident
        assert ident != port and ident >= 1024


def test_low_ports_are_low_until_they_are_used_up(nat_of):
    nat = nat_of(ports_range="1000-1099", ports_keep_port=False)
    low = [opened(nat, "udp", FIRST.format(i + 2), 500).ident
           for i in range(25)]
    assert set(low[:24]) == set(range(1000, 1024)) and low[24] >= 1024


def test_without_pairing_all_addresses_fill_up(nat_of):
    nat = nat_of(pool=["192.0.2.1-192.0.2.20"], pairing=False,
                 ports_range="1024-1033")
    ends = {(flow.addr, flow.ident) for flow in
            (opened(nat, "udp", HOST, port) for port in range(1, 201))}
    assert len(ends) == 200
    assert not Flow(nat, "udp", HOST, 201).out().outside
    assert nat.drops == {"no_port": 1}


def test_workers_have_slices_of_their_own(nat_of):
    seen = []
    for shard in range(3):
        nat = nat_of(shard=shard, n_shards=3, ports_range="1024-1599")
        mine = {opened(nat, "udp", HOST, 5000 + i).ident for i in range(192)}
        assert {port // 64 % 3 for port in mine} == {shard}
        assert not Flow(nat, "udp", HOST, 6000).out().outside
        seen += mine
    assert sorted(seen) == list(range(1024, 1600))


# Blocks.

def test_a_block_ends_behind_the_hold_down(nat_of):
    """It stays the subscriber's as long as a port of it is held down."""
    nat = nat_of(ports_block=64, ports_max_blocks=1)
    first = opened(nat, "udp").ident // 64 * 64
    nat.advance(301)
    assert nat.counter("mappings") == 0 and nat.counter("subscribers") == 1
    assert opened(nat, "udp", HOST, 7).ident // 64 * 64 == first  # goes on
    nat.advance(301 + 120)
    assert nat.counter("mappings") == 0 and len(nat.events) == 1
    nat.advance(1)
    assert blocks(nat) == [("begin", HOST, first, 64), ("end", HOST, first, 64)]
    assert nat.counter("subscribers") == 0


def test_blocks_run_out_and_come_back(nat_of):
    nat = nat_of(ports_block=64, ports_range="1024-1663",
                 timeouts_hold_down=1)
    flows = [opened(nat, "udp", FIRST.format(i + 2)) for i in range(10)]
    assert len({flow.ident // 64 for flow in flows}) == 10
    late = Flow(nat, "udp", FIRST.format(99))
    assert not late.out().outside and nat.drops == {"no_port": 1}
    assert nat.counter("subscribers") == 10
    nat.advance(200)
    for flow in flows[1:]:
        flow.out()
    nat.advance(104)  # the first one has ended
    assert nat.counter("subscribers") == 9
    assert late.out().outside and late.ident // 64 == flows[0].ident // 64


def test_blocks_are_cut_by_the_range_and_by_forwards(nat_of):
    nat = nat_of(ports_block=64, ports_max_blocks=9, ports_range="1050-1149",
                 forwards=[("udp", OURS, 1088, 1151, OTHER, 1)])
    n = sum(len(Flow(nat, "udp", HOST, port).out().outside)
            for port in range(1, 100))
    assert n == 1088 - 1050
    assert blocks(nat) == [("begin", HOST, 1050, n)]


def test_blocks_of_several_workers_are_logged_by_slice(nat_of):
    nat = nat_of(shard=1, n_shards=2, ports_block=256, ports_max_blocks=1)
    flows = [opened(nat, "udp", HOST, port) for port in range(1, 257)]
    runs = blocks(nat)
    assert [run[3] for run in runs] == [64] * 4
    assert {flow.ident & ~63 for flow in flows} == {run[2] for run in runs}
    assert not Flow(nat, "udp", HOST, 300).out().outside
    assert nat.drops == {"quota": 1}


def test_the_inside_port_is_kept_within_a_block(nat_of):
    nat = nat_of(ports_block=64)
    first = opened(nat, "udp", HOST, 1).ident & ~63
    n_kept = sum(opened(nat, "udp", HOST, port).ident == port
                 for port in range(first, first + 60))
    assert n_kept > 40  # but for the first mapping's, and those it displaces


def test_deterministic_ports_follow_from_the_address(nat_of):
    """RFC 7422: 15 whole blocks from 4096 up, then the next address."""
    nat = nat_of(pool=[OURS, OURS2], subscribers=["10.0.0.0/28"],
                 ports_deterministic=True, ports_block=4096)
    for i in (2, 7, 14, 15):
        for port in range(30):
            flow = opened(nat, "udp" if port & 1 else "tcp", FIRST.format(i),
                          5000 + port)
            assert flow.addr == (OURS, OURS2)[i // 15]
            assert flow.ident // 4096 == 1 + i % 15
    nat.advance(301 + 122)
    assert nat.events == [] and nat.counter("subscribers") == 0


def test_a_deterministic_block_is_all_there_is(nat_of):
    """The largest size of which each of the four has a block."""
    nat = nat_of(subscribers=["10.0.0.0/30"], ports_deterministic=True,
                 ports_range="1024-2047")
    for port in range(256):
        opened(nat, "udp", HOST, 5000 + port)
    assert not Flow(nat, "udp", HOST, 9000).out().outside
    assert nat.drops == {"quota": 1}
    opened(nat, "udp", OTHER)


# The log.

def test_mappings_are_logged_on_request(nat_of):
    nat = nat_of(log_sessions=True)
    flow = opened(nat, "tcp", HOST, 7)
    nat.advance(242)
    begin, end = nat.events
    assert (begin["what"], end["what"]) == ("mapping_begin", "mapping_end")
    assert end["now_s"] == begin["now_s"] + 241
    for event in (begin, end):
        assert (event["inside"], event["inside_port"]) == (HOST, 7)
        assert (event["outside"], event["outside_port"]) == (OURS, flow.ident)


def test_refusals_are_logged_now_and_then(nat_of):
    """A host that is refused a million times is a line a minute."""
    nat = nat_of(limits_per_subscriber=1, timeouts_udp=600)
    opened(nat, "udp", HOST, 1)
    for _ in range(120):
        assert not Flow(nat, "udp", HOST, 2).out().outside
        nat.advance(1)
    assert [(e["what"], e["now_s"]) for e in nat.events] == \
        [("quota", 1000), ("quota", 1060)]


# Sessions besides a mapping's first.

def syn_passes(flow, peer, port=9):
    """Whether another connection from there is let in."""
    return len(flow.back(peer, port, flags="S").inside)


PEERS = [f"198.51.100.{i}" for i in range(7, 12)]


def test_a_permit_ends_with_its_last_session(nat_of):
    nat = nat_of(filtering_tcp="address")
    flow = opened(nat, "tcp", peer=PEERS[0])
    flow.back(PEERS[0])  # established: it keeps the mapping
    flow.out(PEERS[1], 1)
    nat.advance(100)
    flow.out(PEERS[1], 2)
    nat.advance(141)  # the first of the two has ended
    assert nat.counter("sessions") == 1 and syn_passes(flow, PEERS[1])
    nat.advance(100)
    assert nat.counter("sessions") == 0 and not syn_passes(flow, PEERS[1])
    assert syn_passes(flow, PEERS[0])


def test_filters_forget_in_time(nat_of):
    """What was not sent to for as long as a mapping lasts."""
    nat = nat_of(filtering_udp="address")
    flow = opened(nat, "udp", peer=PEERS[0])
    flow.out(PEERS[1])
    nat.advance(200)
    flow.out(PEERS[2])
    nat.advance(100)
    assert [flow.is_open(peer) for peer in PEERS] == [True] * 3 + [False] * 2
    nat.advance(1)
    assert [flow.is_open(peer) for peer in PEERS[:3]] == [False, False, True]
    flow.out(PEERS[3])  # where the first one was
    assert nat.counter("sessions") == 1
    nat.advance(302)
    assert nat.counter("sessions") == nat.counter("mappings") == 0


@pytest.mark.parametrize("refreshes", [False, True])
def test_inbound_packets_refresh_sessions_if_configured(nat_of, refreshes):
    nat = nat_of(filtering_udp="address-port", inbound_refresh=refreshes)
    flow = opened(nat, "udp", peer_port=1)
    flow.out(peer_port=2)
    nat.advance(200)
    assert flow.is_open(peer_port=1) and flow.is_open(peer_port=2)
    flow.out(peer_port=3)  # keeps the mapping
    nat.advance(200)
    assert flow.is_open(peer_port=1) == flow.is_open(peer_port=2) == refreshes


def test_sessions_end_in_any_order(nat_of):
    """From the middle and from both ends of the mapping's list."""
    nat = nat_of(filtering_udp="address-port")
    flow = opened(nat, "udp", peer_port=999)
    for port in range(1, 51):
        flow.out(peer_port=port)
    order = [1 + i * 7 % 50 for i in range(50)]
    for port in order:  # each is used again, a second after the one before
        nat.advance(1)
        flow.out(peer_port=port)
    flow.out(peer_port=999)
    nat.advance(300 - 48)
    for n_ended, port in enumerate(order, 1):
        assert nat.counter("sessions") == 50 - n_ended
        assert not flow.is_open(peer_port=port)
        assert flow.out(peer_port=999).outside
        nat.advance(1)


# What a list of sessions says.

def test_a_list_says_how_old_and_how_long(nat):
    flow = opened(nat, "udp", HOST, 7)
    for _ in range(4):
        flow.out()
    flow.back()
    nat.advance(100)
    row, = nat.sessions
    assert {key: row[key] for key in (
        "proto", "inside", "inside_port", "outside", "outside_port", "remote",
        "remote_port", "age_s", "left_s", "n_out", "n_in")} == {
            "proto": 17, "inside": HOST, "inside_port": 7, "outside": OURS,
            "outside_port": flow.ident, "remote": PEERS[0],
            "remote_port": 53, "age_s": 100, "left_s": 201, "n_out": 5,
            "n_in": 1}


def test_a_further_session_is_left_when_the_first_one_ends(nat):
    flow = Flow(nat, "tcp").connect()
    flow.out(peer_port=81)
    nat.advance(10)
    assert [(row["tcp_state"], row["left_s"], row["remote_port"])
            for row in nat.sessions] == [(2, 7431, 80), (1, 231, 81)]
    flow.back(peer_port=81)
    flow.back(peer_port=80, flags="R")
    nat.advance(242)
    assert [row["remote_port"] for row in nat.sessions] == [81]


def test_a_remote_end_that_is_forgotten_is_not_listed(nat_of):
    """Else it would be let in again behind a restart."""
    nat = nat_of(filtering_udp="address")
    flow = opened(nat, "udp", peer=PEERS[0])
    nat.advance(200)
    flow.out(PEERS[1])
    for remotes in (PEERS[:2], ["0.0.0.0", PEERS[1]]):
        assert [row["remote"] for row in nat.sessions] == remotes
        nat.advance(101)


def test_static_ones_are_listed_without_a_time(nat_of):
    nat = nat_of(forwards=[("tcp", OURS, 80, 80, HOST, 80)])

    def listed():
        row, = nat.sessions
        return row["remote"], row["left_s"], row["flags"]

    assert listed() == ("0.0.0.0", 0, 1)
    Flow(nat, "tcp", HOST, 80).out(flags="SA")
    assert listed() == (PEERS[0], 241, 1)
    nat.advance(8000)
    assert listed() == ("0.0.0.0", 0, 1)
