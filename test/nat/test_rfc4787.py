# SPDX-License-Identifier: BSD-3-Clause
"""RFC 4787, UDP, and what other RFCs ask of other protocols alike."""
import itertools

import pytest
from scapy.all import ICMP, IP, UDP, raw

from harness import CSUM_PARTIAL, mac_of, ping, udp
from rfc import (HOST, OTHER, OURS, PEER, PEER2, ROUTER, Flow, cut, ends_after,
                 error, is_sum_right, opened, partial, quoted, together)
from rfc import requirement as any_requirement


def requirement(number):
    """Of this RFC."""
    return any_requirement("RFC 4787", number)


@requirement("REQ-1")
@any_requirement("RFC 5382", "REQ-1")
@any_requirement("RFC 5508", "REQ-1a")
@pytest.mark.parametrize("proto", ["udp", "tcp", "icmp"])
def test_mapping_does_not_depend_on_the_remote_end(nat, proto):
    flow = Flow(nat, proto)
    ends = set()
    for peer, port in itertools.product((PEER, PEER2, ROUTER), (53, 65535)):
        assert flow.out(peer, port).outside
        ends.add((flow.addr, flow.ident))
    assert len(ends) == nat.counter("mappings") == 1
    flows = [flow, Flow(nat, proto, HOST, 5001), Flow(nat, proto, OTHER)]
    for other in flows[1:]:  # of each inside address and port its own
        assert other.out().outside
        ends.add((other.addr, other.ident))
    assert len(ends) == 3 and all(flow.is_open() for flow in flows)


@requirement("REQ-2")
def test_all_of_a_host_has_one_address(nat_of):
    nat = nat_of(pool=["192.0.2.1-192.0.2.8"])
    addrs = {}
    for host in range(2, 34):
        for proto, port in itertools.product(("udp", "tcp", "icmp"),
                                             (5000, 6001)):
            flow = opened(nat, proto, f"10.0.0.{host}", port)
            addrs.setdefault(host, set()).add(flow.addr)
    assert all(len(mine) == 1 for mine in addrs.values())
    assert len(set.union(*addrs.values())) == 8  # and all are made use of


@requirement("REQ-3")
@any_requirement("RFC 5382", "REQ-7")
@pytest.mark.parametrize("proto", ["udp", "tcp"])
def test_no_port_serves_two(nat_of, proto):
    nat = nat_of(ports_range="2048-2111")
    flows = [Flow(nat, proto, HOST, 5000 + i) for i in range(64)]
    assert all(flow.out(f"198.51.100.{i}").outside
               for i, flow in enumerate(flows))
    assert len({flow.ident for flow in flows}) == 64
    late = Flow(nat, proto, OTHER, 5000)  # though it is another remote end
    assert not late.out("198.51.100.200", 1).outside
    assert nat.drops == {"no_port": 1}
    for flow in flows:
        assert flow.back().inside[0][IP].payload.dport == flow.port


@requirement("REQ-3a")
@pytest.mark.parametrize("keeps_port", [True, False])
def test_well_known_ports_stay_well_known(nat_of, keeps_port):
    nat = nat_of(ports_range="1-65535", ports_keep_port=keeps_port)
    for host in range(2, 12):
        for port in (1, 500, 1023, 1024, 5000, 65535):
            flow = opened(nat, "udp", f"10.0.0.{host}", port)
            assert (flow.ident <= 1023) == (port <= 1023)


@requirement("REQ-4")
@any_requirement("RFC 7857", "section 8")
@pytest.mark.parametrize("keeps_port, keeps_parity", [
    (True, True), (False, True), (False, False)])
def test_parity_is_kept_or_not(nat_of, keeps_port, keeps_parity):
    nat = nat_of(ports_keep_port=keeps_port, ports_keep_parity=keeps_parity)
    differs = set()
    for host in range(2, 22):
        for port in (5000, 5001, 5002, 5003):
            flow = opened(nat, "udp", f"10.0.0.{host}", port)
            differs.add((flow.ident - port) % 2)
    assert differs == ({0} if keeps_parity else {0, 1})


@requirement("REQ-5")
def test_nothing_ends_within_two_minutes(nat_of):
    """With the shortest timer that is not below what is asked for."""
    nat = nat_of(timeouts_udp=120)
    nat.advance(0.9)  # late in its second, which must count whole
    flow = opened(nat, "udp")
    assert ends_after(flow, 120)


@requirement("REQ-5b")
@any_requirement("RFC 5508", "REQ-2a")
@pytest.mark.parametrize("proto", ["udp", "icmp"])
@pytest.mark.parametrize("seconds", [120, 600])
def test_timer_can_be_set(nat_of, proto, seconds):
    flow = opened(nat_of(**{"timeouts_" + proto: seconds}), proto)
    assert ends_after(flow, seconds)


@requirement("REQ-5c")
@requirement("REQ-6")
@any_requirement("RFC 5508", "REQ-2")
@any_requirement("RFC 7857", "section 11")
@pytest.mark.parametrize("proto, seconds", [("udp", 300), ("icmp", 60)])
def test_packets_from_inside_refresh(nat, proto, seconds):
    """For the time that is the default; the mapping ends with its session."""
    flow = opened(nat, proto)
    port = flow.ident
    for _ in range(3):
        nat.advance(seconds - 1)
        assert flow.out(PEER2).outside  # whoever they go to
    assert flow.ident == port
    assert nat.counter("created") == 1
    assert ends_after(flow, seconds)
    assert nat.counter("mappings") == nat.counter("subscribers") == 0
    assert nat.counter("expired") == 1


@requirement("REQ-6a")
def test_packets_from_outside_refresh_if_told(nat_of):
    for refreshes in (False, True):
        nat = nat_of(inbound_refresh=refreshes)
        flow = opened(nat, "udp")
        nat.advance(200)
        assert flow.is_open()
        nat.advance(200)
        assert flow.is_open() == refreshes


@requirement("REQ-8")
@requirement("REQ-8a")
@any_requirement("RFC 5382", "REQ-3")
@any_requirement("RFC 5382", "REQ-3a")
@any_requirement("RFC 6888", "REQ-7")
@pytest.mark.parametrize("proto, flags", [("udp", [None]), ("icmp", [None]),
                                          ("tcp", ["A", "S", "SA"])])
def test_filtering(nat_of, proto, flags):
    """Who may send to a mapping that talks with PEER:53 only."""
    senders = [(PEER, 53), (PEER, 54), (PEER2, 53)]
    expected = {None: [True, True, True],  # nothing said: anyone
                "none": [True, True, True],
                "address": [True, True, False],
                "address-port": [True, proto == "icmp", False]}
    for (kind, allowed), before in itertools.product(
            expected.items(), ([], ["198.51.100.99"])):
        nat = nat_of(filtering=kind) if kind else nat_of()
        flow = Flow(nat, proto)
        for peer in (*before, PEER):  # the first remote end, or a further one
            flow.out(peer, 53)
        n_sessions = nat.counter("sessions")
        if proto == "udp":  # the filter holds for errors, too
            about = udp(OURS, flow.ident, PEER2, 53)
            assert len(nat.outside(error(ROUTER, OURS, quoted(about)))) == \
                allowed[2]
        for some in flags:
            more = {"flags": some} if some else {}
            assert [flow.is_open(*s, **more) for s in senders] == allowed, kind
        refused = allowed.count(False) * len(flags)
        refused += proto == "udp" and not allowed[2]
        assert nat.counter("held") == (proto == "tcp") * allowed.count(False)
        assert sum(nat.drops.values()) + nat.counter("held") == refused
        assert nat.counter("sessions") == n_sessions  # strangers make none


@requirement("REQ-9")
@requirement("REQ-9a")
def test_hairpin(nat):
    a, b = Flow(nat, "udp", HOST, 5000), Flow(nat, "udp", OTHER, 6000)
    assert a.out().outside and b.out().outside
    for _ in range(2):
        got = nat.inside(udp(HOST, 5000, OURS, b.ident))
        assert not got.outside
        got = got.inside[0]
        assert (got[IP].src, got[UDP].sport) == (OURS, a.ident)
        assert (got[IP].dst, got[UDP].dport) == (OTHER, 6000)
        assert got.dst == mac_of(OTHER)
        got = nat.inside(udp(OTHER, 6000, OURS, a.ident)).inside[0]
        assert (got[IP].src, got[UDP].sport) == (OURS, b.ident)
        assert (got[IP].dst, got[UDP].dport) == (HOST, 5000)
    assert nat.counter("hairpinned") == 4
    # To itself, and from one that had no mapping before.
    got = nat.inside(udp(HOST, 5000, OURS, a.ident)).inside[0]
    assert (got[IP].src, got[IP].dst, got[UDP].dport) == (OURS, HOST, 5000)
    got = nat.inside(udp("10.0.0.9", 7000, OURS, b.ident)).inside[0]
    assert got[IP].src == OURS and got[IP].dst == OTHER
    assert not nat.inside(udp(HOST, 5000, OURS, 9)).inside  # nobody's port
    assert nat.drops == {"no_mapping": 1}


@requirement("REQ-10")
@any_requirement("RFC 5382", "REQ-6")
@pytest.mark.parametrize("proto", ["udp", "tcp"])
def test_payloads_are_left_alone(nat, proto):
    """What ALGs would change: FTP, DNS, TFTP, SIP with the inside address."""
    texts = {21: b"PORT 10,0,0,2,200,10\r\n",
             53: b"\x12\x34\x01\0\0\1\0\0\0\0\0\0\1a\0\0\1\0\1" +
                 bytes([10, 0, 0, 2]),
             69: b"\0\1file\0octet\0",
             5060: b"INVITE sip:a@b SIP/2.0\r\nContact: <sip:a@10.0.0.2:5060>"
                   b"\r\n\r\nc=IN IP4 10.0.0.2\r\nm=audio 5004 RTP/AVP 0\r\n"}
    more = {"flags": "PA"} if proto == "tcp" else {}
    for port, text in texts.items():
        flow = Flow(nat, proto, HOST, port + 1000)
        assert flow.out(PEER, port).outside
        for way in (flow.out, flow.back):
            got = way(PEER, port, payload=text, **more).one
            assert raw(got[IP].payload.payload) == text
    assert nat.counter("mappings") == len(texts)  # and none besides


@requirement("REQ-11")
def test_behaviour_does_not_change(nat_of):
    """When ports collide, get few, and are used up; in both directions."""
    nat = nat_of(ports_range="2048-2175")
    first = Flow(nat, "udp", HOST, 2050)
    assert first.out().outside and first.ident == 2050
    ends = {}
    for i in range(140):
        flow = Flow(nat, "udp", f"10.0.0.{3 + i % 20}", 2050 + i // 20)
        if not flow.out(PEER).outside:
            continue
        ends[flow.host, flow.port] = flow
        for peer in (PEER2, ROUTER):  # still endpoint-independent
            ident = flow.ident
            assert flow.out(peer, 1000 + i).outside and flow.ident == ident
        assert flow.is_open("203.0.113.200", 9)  # still for anyone
    assert len(ends) == 127 and nat.drops == {"no_port": 13}
    assert first.out(PEER2).outside and first.ident == 2050
    for flow in ends.values():
        ident = flow.ident
        assert flow.out(ROUTER).outside and flow.ident == ident
        assert flow.is_open("203.0.113.201", 9)


@requirement("REQ-13")
def test_too_big_with_df_is_answered(nat_of):
    nat = nat_of(outside_mtu=1400)
    packet = udp(HOST, 5000, PEER, 53, bytes(1373), flags="DF")
    for _ in range(2):
        got = nat.inside(packet).one
        assert (got[IP].dst, got[ICMP].type, got[ICMP].code) == (HOST, 3, 4)
        assert got[ICMP].nexthopmtu == 1400 and len(got[IP]) == 576
        quote = raw(got[ICMP].payload)
        assert quote == raw(packet)[:len(quote)]
    assert nat.drops == {"too_big": 2}
    fits = udp(HOST, 5000, PEER, 53, bytes(1372), flags="DF")
    assert nat.inside(fits).one[IP].dst == PEER


@requirement("REQ-13a")
@pytest.mark.parametrize("flags", [0, CSUM_PARTIAL])
def test_too_big_without_df_is_fragmented_in_order(nat_of, flags):
    nat = nat_of(outside_mtu=576)
    payload = bytes(i * 7 & 0xff for i in range(3000))
    packet = udp(HOST, 5000, PEER, 53, payload)
    out = nat.inside(partial(packet) if flags else packet, flags=flags)
    assert not out.inside
    assert [p[IP].frag * 8 for p in out.outside] == list(range(0, 3000, 552))
    assert [int(p[IP].flags) for p in out.outside] == [1] * 5 + [0]
    assert all(p[IP].len <= 576 and p.csum_flags == 0 for p in out.outside)
    assert len({p[IP].id for p in out.outside}) == 1
    whole = together(out.outside)
    assert (whole.src, whole.dst) == (OURS, PEER) and is_sum_right(whole)
    assert raw(whole[UDP].payload) == payload
    assert nat.counter("made") == len(nat.announced) + 1 + 5  # one ARP


@requirement("REQ-14")
@pytest.mark.parametrize("order", itertools.permutations(range(4)))
@pytest.mark.parametrize("side", ["inside", "outside"])
def test_fragments_in_any_order(nat, order, side):
    payload = bytes(i * 11 & 0xff for i in range(1000))
    flow = opened(nat, "udp")
    if side == "inside":
        send, packet = nat.inside, udp(HOST, 5000, PEER, 53, payload)
        src, dst, ports = OURS, PEER, (flow.ident, 53)
    else:
        send, packet = nat.outside, udp(PEER, 53, OURS, flow.ident, payload)
        src, dst, ports = PEER, HOST, (53, 5000)
    pieces = cut(packet, 256)
    got = [p for i in order for out in [send(pieces[i])]
           for p in out.inside + out.outside]
    assert len(got) == 4
    assert {(p[IP].src, p[IP].dst) for p in got} == {(src, dst)}
    assert len({p[IP].id for p in got}) == 1
    whole = together(got)
    assert (whole[UDP].sport, whole[UDP].dport) == ports
    assert raw(whole[UDP].payload) == payload and is_sum_right(whole)
    assert nat.drops == {}


@requirement("REQ-14a")
def test_a_flood_of_fragments_affects_only_fragments(nat):
    flow = opened(nat, "udp")
    n_max = 0
    for i in range(3000):  # never a first one
        stray = IP(raw(IP(src=ROUTER, dst=OURS, proto=17, id=i & 0xffff,
                          frag=100 + i % 50, flags="MF") / bytes(64)))
        assert not nat.outside(stray).inside
        n_max = max(n_max, nat.counter("held"))
        if i % 100 == 0:
            assert flow.is_open() and flow.out().outside
            big = udp(PEER, 53, OURS, flow.ident, bytes(500))
            pieces = cut(big, 256, ident=i + 1)
            assert sum(len(nat.outside(p).inside) for p in pieces) == 2
    assert n_max <= 256  # it is bounded
    nat.advance(3)  # what has expired goes in several rounds
    assert nat.counter("held") == 0
    drops = nat.drops
    assert sum(drops.values()) == 3000
    assert set(drops) <= {"fragment_old", "fragment_full"}
    assert nat.outside(ping(PEER, OURS)).one[ICMP].type == 0
