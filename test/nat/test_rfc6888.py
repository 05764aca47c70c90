# SPDX-License-Identifier: BSD-3-Clause
"""RFC 6888, carrier-grade NAT: a test for each requirement."""
import errno

import pytest
from scapy.all import ICMP, IP, UDP, raw

from harness import RESTS, ping, tcp, udp
from rfc import HOST, OTHER, OURS, PEER, PEER2, Flow, opened
from rfc import requirement as any_requirement

# A range of 64 ports, so that it is soon used up.
FEW = {"ports_range": "2048-2111"}


def requirement(number):
    """Of this RFC."""
    return any_requirement("RFC 6888", number)


def fill(nat, n=64, host=HOST, proto="udp"):
    """So many mappings of one host, all made."""
    flows = [Flow(nat, proto, host, 5000 + i) for i in range(n)]
    for flow in flows:
        assert flow.out().outside, flow.port
    return flows


@requirement("REQ-1")
def test_protocols_without_a_translation_are_not_forwarded(nat):
    for proto in set(range(256)) - {1, 6, 17}:
        packet = IP(raw(IP(src=HOST, dst=PEER, proto=proto) / bytes(40)))
        assert not nat.inside(packet).outside
        packet = IP(raw(IP(src=PEER, dst=OURS, proto=proto) / bytes(40)))
        assert not nat.outside(packet).inside
    assert nat.drops == {"protocol": 253, "no_mapping": 253}
    for proto in ("udp", "tcp", "icmp"):
        assert Flow(nat, proto).out().outside


@requirement("REQ-2")
def test_pooling_is_paired_by_default(nat_of):
    for options, expected in (({}, 1), ({"pairing": False}, 4)):
        nat = nat_of(pool=["192.0.2.1-192.0.2.4"], **options)
        addrs = {Flow(nat, proto, HOST, port).out().one[IP].src
                 for proto in ("udp", "tcp", "icmp")
                 for port in range(5000, 5030)}
        assert len(addrs) == expected


@requirement("REQ-3")
def test_addresses_need_not_be_contiguous(nat_of):
    pool = ["192.0.2.1", "192.0.2.9-192.0.2.11", "203.0.113.200"]
    nat = nat_of(pool=pool, **FEW)
    addrs = {}
    for host in range(2, 7):
        for flow in fill(nat, 64, f"10.0.0.{host}"):
            addrs.setdefault(flow.addr, []).append(flow)
            assert flow.is_open()
    assert {a: len(f) for a, f in addrs.items()} == dict.fromkeys(
        ["192.0.2.1", "192.0.2.9", "192.0.2.10", "192.0.2.11",
         "203.0.113.200"], 64)


@requirement("REQ-3 size")
def test_many_addresses(nat_of):
    nat = nat_of(pool=["198.18.0.0-198.18.31.255"])  # 8,192 of them
    flows = [Flow(nat, "udp", f"10.0.1.{i}") for i in range(60)]
    for flow in flows:
        assert flow.out().outside
    assert len({flow.addr for flow in flows}) > 50
    assert all(flow.is_open() for flow in flows)


@requirement("REQ-4")
@requirement("REQ-4A")
@pytest.mark.parametrize("proto", ["udp", "tcp", "icmp"])
@pytest.mark.parametrize("limit", [3, 10])
def test_limit_of_a_subscriber(nat_of, proto, limit):
    nat = nat_of(limits_per_subscriber=limit)
    flows = fill(nat, limit, HOST, proto)
    assert not Flow(nat, proto, HOST, 7000).out().outside
    assert nat.drops == {"quota": 1}
    assert Flow(nat, proto, OTHER, 7000).out().outside  # it is his alone
    assert all(flow.out().outside for flow in flows)
    if proto == "icmp":  # what has ended does not count
        nat.advance(62)
        assert Flow(nat, proto, HOST, 7000).out().outside


@requirement("REQ-4")
@requirement("REQ-4A")
@pytest.mark.parametrize("n_blocks", [1, 2])
def test_limit_of_blocks(nat_of, n_blocks):
    nat = nat_of(ports_block=64, ports_max_blocks=n_blocks)
    fill(nat, 64 * n_blocks)
    assert not Flow(nat, "udp", HOST, 7000).out().outside
    assert nat.drops == {"quota": 1}
    assert Flow(nat, "udp", OTHER, 7000).out().outside


@requirement("REQ-5")
@requirement("REQ-5A")
@pytest.mark.parametrize("limit", [3, 9])
@pytest.mark.parametrize("proto", ["udp", "tcp"])
def test_sessions_are_limited(nat_of, proto, limit):
    """What a mapping remembers besides its first remote end."""
    nat = nat_of(filtering="address-port", limits_sessions_per_subscriber=limit)
    flow = Flow(nat, proto)
    n = sum(len(flow.out(PEER, 1000 + i).outside) for i in range(20))
    assert n == limit + 1
    assert nat.counter("sessions") <= limit + 1
    assert nat.drops == {"quota": 20 - n}
    assert Flow(nat, proto, OTHER).out().outside
    other = Flow(nat, proto, HOST, 6000)
    for _ in range(3):  # those that have ended do not count; the host stays
        assert other.out().outside
        nat.advance(160)
    assert nat.counter("sessions") == 0
    assert sum(len(flow.out(PEER, i).outside) for i in range(1, 21)) == n


@requirement("REQ-5")
@requirement("REQ-5A")
def test_all_state_is_limited(nat_of):
    nat = nat_of(filtering="address-port", limits_mappings=10, limits_sessions=5)
    flow = Flow(nat, "udp")
    assert sum(len(flow.out(PEER, 1000 + i).outside) for i in range(20)) == 6
    n = sum(len(Flow(nat, "udp", f"10.0.0.{i}").out().outside)
            for i in range(3, 33))
    assert n == 9
    assert nat.drops == {"table_full": 14 + 21}
    assert flow.out(PEER, 1000).outside


@requirement("REQ-6")
def test_translation_can_be_off(nat_of):
    nat = nat_of(exclude=[("203.0.113.0/24", 0, 0, 65535),
                           ("198.51.100.7/32", 17, 53, 53)])
    for target, port, is_excluded in (
            ("203.0.113.0", 9, True), ("203.0.113.255", 53, True),
            ("203.0.112.255", 9, False), ("203.0.114.0", 9, False),
            (PEER, 53, True), (PEER, 52, False), (PEER, 54, False),
            (PEER2, 53, False)):
        out = nat.inside(udp(HOST, 5000, target, port)).one
        shown = (out[IP].src, out[UDP].sport)
        assert shown == ((HOST, 5000) if is_excluded else (OURS, 5000))
        out = nat.inside(tcp(HOST, 5000, target, port)).one
        assert (out[IP].src == HOST) == target.startswith("203.0.113.")
        back = nat.outside(udp(target, port, HOST, 5000))
        assert len(back) == is_excluded
    assert nat.counter("excluded") == 8


@requirement("REQ-8")
@requirement("REQ-8 limits")
@pytest.mark.parametrize("proto, idle_s", [("udp", 300), ("tcp", 240),
                                           ("icmp", 60)])
@pytest.mark.parametrize("wait_s", [None, 300])
def test_freed_ports_stay_in_hold_down(nat_of, proto, idle_s, wait_s):
    options = {} if wait_s is None else {"timeouts_hold_down": wait_s}
    nat = nat_of(**FEW, **options)
    fill(nat, 64, HOST, proto)
    nat.advance(idle_s + 2)
    assert nat.counter("mappings") == 0
    assert nat.counter("hold_down") == 64
    late = Flow(nat, proto, OTHER)
    assert not late.out().outside
    assert not Flow(nat, proto, HOST).out().outside  # not for him either
    # They ended idle_s + 1 s behind the packet, so 1 s ago.
    nat.advance((wait_s or 120) - 1.5)
    assert not late.out().outside
    assert nat.drops == {"no_port": 3}
    nat.advance(2.5)
    assert late.out().outside
    assert nat.counter("hold_down") == 0


@requirement("REQ-8")
@pytest.mark.parametrize("n_max", [1, 3, 512])
@pytest.mark.parametrize("proto", ["udp", "tcp", "icmp"])
def test_hold_down_continues_after_a_restart(nat_of, proto, n_max):
    """Ports in hold-down are saved and wait for the rest of their time; others do not."""
    old = nat_of(**FEW)
    for n in (10, 20, 2):  # each freed in a second of its own
        flows = [Flow(old, proto, HOST, 5000 + n + i) for i in range(n)]
        assert all(flow.out().outside for flow in flows)
        old.advance(30)
        old.clear(f"proto={proto}")
    saved = old.saved(n_max)
    assert [one.age_s for one in saved] == [60] * 10 + [30] * 20 + [0] * 2
    assert {one.flags for one in saved} == {RESTS}
    nat, other = (nat_of(**FEW, start_s=77777) for _ in range(2))
    for one in saved:
        assert nat.restore(one) == other.restore(one) == 0
        assert nat.restore(one) == errno.EADDRINUSE
    fill(other, 32, OTHER, proto)
    assert not Flow(other, proto, OTHER, 6000).out().outside
    for seconds, n in ((59.5, 32), (2, 22), (28, 22), (2, 2), (28, 2), (3, 0)):
        nat.advance(seconds)
        assert nat.counter("hold_down") == n
    fill(nat, 64, OTHER, proto)


@requirement("REQ-8")
def test_blocks_in_hold_down_keep_their_owner_after_a_restart(nat_of):
    """No other subscriber gets the ports, and the owner does not get them too soon."""
    options = {"ports_block": 64, "ports_range": "1024-1151",
               "ports_max_blocks": 1}
    old, nat = nat_of(**options), nat_of(**options)
    flows = [opened(old, "udp", HOST, 1024 + i) for i in range(8)]
    old.clear()
    saved = old.saved()
    assert {one.shown()["inside"] for one in saved} == {HOST}
    assert [nat.restore(one) for one in saved] == [0] * 8
    idents = {opened(nat, "udp", OTHER, 1024 + i).ident for i in range(64)}
    idents |= {opened(nat, "udp", HOST, 1024 + i).ident for i in range(56)}
    assert len(idents) == 120
    assert not idents & {flow.ident for flow in flows}
    nat.advance(130)
    assert nat.counter("hold_down") == 0


@requirement("REQ-10")
def test_counters(nat):
    """Every frame is counted once, and those that are lost by reason."""
    Flow(nat, "udp").out()
    nat.inside(udp(HOST, 5000, PEER, 53, ttl=1))
    nat.outside(udp(PEER, 53, OURS, 9))
    nat.inside(udp("10.200.0.1", 1, PEER, 53))
    assert nat.drops == {"ttl": 1, "no_mapping": 1, "spoofed": 1}
    assert nat.counter("translated_inside") == 1
    assert nat.counter("subscribers") == nat.counter("mappings") == 1
    nat.check()


@requirement("REQ-11A")
@requirement("REQ-11B")
@requirement("REQ-11C")
@requirement("REQ-11D")
@pytest.mark.parametrize("proto", ["udp", "tcp", "icmp"])
@pytest.mark.parametrize("options, event", [
    ({"limits_per_subscriber": 64}, "quota"),
    ({"ports_block": 64, "ports_max_blocks": 1}, "quota"),
    ({"ports_block": 64, **FEW}, "no_port")])
def test_nothing_left(nat_of, proto, options, event):
    nat = nat_of(**options)
    flows = fill(nat, 64, HOST, proto)
    late = Flow(nat, proto, HOST, 7000)
    for _ in range(3):
        out = late.out()
        assert not out.outside  # A
        got = out.inside[0]
        assert (got[IP].dst, got[ICMP].type, got[ICMP].code) == (HOST, 3, 1)
    assert sum(nat.drops.values()) == 3
    events = [e for e in nat.events if e["what"] == event]
    assert len(events) >= 1  # C; not one for each packet
    assert len(events) < 3 and events[0]["inside"] == HOST
    assert all(flow.is_open() for flow in flows)  # D
    assert all(flow.out().outside for flow in flows)


@requirement("REQ-12")
@pytest.mark.parametrize("options", [{"ports_block": 64}, {}])
def test_destinations_are_not_logged(nat_of, options):
    nat = nat_of(log_sessions=True, limits_per_subscriber=5, **options)
    for i in range(6):
        Flow(nat, "udp", HOST, 5000 + i).out(PEER, 12345)
    nat.advance(500)
    events = nat.events
    assert {e["what"] for e in events} >= {"mapping_begin", "mapping_end",
                                           "quota"}
    for event in events:
        assert PEER not in event.values() and 12345 not in event.values()


@requirement("REQ-13")
@pytest.mark.parametrize("options", [{}, {"ports_block": 64,
                                          "ports_max_blocks": 8}])
def test_every_port_is_used(nat_of, options):
    nat = nat_of(ports_range="2048-2559", **options)
    flows = [Flow(nat, "udp", HOST, 5000 + 2 * i) for i in range(512)]
    for flow in flows:  # all of them even: parity gives way
        assert flow.out().outside
    assert {flow.ident for flow in flows} == set(range(2048, 2048 + 512))
    # By protocol, too: none takes ports from another one.
    assert Flow(nat, "tcp").out().outside and Flow(nat, "icmp").out().outside


@requirement("REQ-14")
def test_blocks_are_logged_once(nat_of):
    nat = nat_of(ports_block=64, ports_max_blocks=2)
    flows = fill(nat, 128)
    events = nat.events
    assert [(e["what"], e["proto"], e["now_s"]) for e in events] == \
        [("block_begin", 17, 1000)] * 2
    for flow in flows:  # whose port it was is in them
        assert sum(e["inside"] == HOST and e["outside"] == flow.addr and
                   0 <= flow.ident - e["outside_port"] < e["n_ports"]
                   for e in events) == 1
    nat.advance(300 + 120 + 3)
    events = nat.events[2:]
    assert [e["what"] for e in events] == ["block_end"] * 2


@requirement("REQ-14")
def test_deterministic_ports_need_no_log(nat_of):
    """RFC 7422: the same block each time, and nobody else's."""
    options = {"ports_deterministic": True, "ports_block": 512,
               "subscribers": ["10.0.0.0/26"]}
    blocks = {}
    for _ in range(2):
        nat = nat_of(**options)
        for host in (2, 3, 40):
            for flow in fill(nat, 50, f"10.0.0.{host}"):
                blocks.setdefault(host, set()).add(flow.ident // 512)
        assert nat.events == []
    assert all(len(b) == 1 for b in blocks.values())
    assert len(set.union(*blocks.values())) == 3


@requirement("REQ-15")
@pytest.mark.parametrize("proto", ["udp", "tcp", "icmp"])
@pytest.mark.parametrize("options", [{}, {"ports_block": 512}])
def test_ports_are_hard_to_guess(nat_of, proto, options):
    nat = nat_of(ports_keep_port=False, **options)
    idents = [flow.ident for flow in fill(nat, 200, HOST, proto)]
    steps = [b - a for a, b in zip(idents, idents[1:])]
    n_up = sum(step > 0 for step in steps)
    assert 60 < n_up < 140  # neither up nor down
    assert max(steps.count(step) for step in set(steps)) < 12
    if not options:
        assert len({ident >> 12 for ident in idents}) >= 14  # all the range
    assert len({ident % 64 for ident in idents}) > 40
    assert not nat.inside(ping("10.200.0.1", PEER)).outside
