# SPDX-License-Identifier: BSD-3-Clause
"""RFC 7857, updates: a test for each section."""
import pytest
from scapy.all import IP, TCP

from harness import tcp, udp
from rfc import (HOST, OTHER, OURS, PEER, PEER2, ROUTER, THIRD, Flow,
                 ends_after, opened)
from rfc import requirement as any_requirement

OPENING_S, OPEN_S, CLOSING_S, RESET_S = 200, 8000, 100, 60
ANSWERED = 7  # NAT_TCP_ANSWERED
TIMERS = {"timeouts_tcp_opening": OPENING_S, "timeouts_tcp_open": OPEN_S,
          "timeouts_tcp_closing": CLOSING_S, "timeouts_tcp_reset": RESET_S}


def requirement(number):
    """Of this RFC."""
    return any_requirement("RFC 7857", "section " + number)


def walk(nat, segments, flow=None, peer=PEER):
    """A flow that has seen such segments: ">S" goes out, "<SA" comes in."""
    flow = flow or Flow(nat, "tcp")
    for segment in segments.split():
        way = flow.out if segment[0] == ">" else flow.back
        assert len(way(peer, 80, flags=segment[1:])) == 1, segment
    return flow


@requirement("2")
@requirement("2.1")
@requirement("2.1 shorter")
@any_requirement("RFC 5382", "REQ-5a")
@pytest.mark.parametrize("segments, seconds", [
    (">S", OPENING_S),
    (">S >S <A", OPENING_S),
    (">S <SA", OPEN_S),
    (">S <S", OPEN_S),
    (">S <SA >A >PA <PA", OPEN_S),
    (">S <SA >A >FA", OPEN_S),
    (">S <SA >A <FA", OPEN_S),
    (">S <SA >A >FA <A <FA >A", CLOSING_S),
    (">S <SA >A <FA >FA", CLOSING_S),
    (">S <SA >A >FA <FA >S", OPENING_S),
    (">S <SA >A >FA <FA >S <SA", OPEN_S),
    (">S <SA >A >R", RESET_S),
    (">S <SA >A <RA", RESET_S),
    (">S <SA >A >R >PA", OPEN_S),
    (">S <SA >A <R <PA", OPEN_S),
    (">S <SA >A >FA <R", RESET_S),
    (">S <SA >A >FA <FA >R", CLOSING_S),
    (">S <A >A", OPENING_S),  # data is no answer, nor is an RST
    (">S <RA", OPENING_S),
    (">S <SA <FA <FA", OPEN_S),
    (">S <SA >FA <FA <S >SA", OPENING_S),
    (">S <SA <R <S >SA", OPENING_S),
    (">S <SA <R <R", RESET_S),
    (">S <SA <FA >RA", RESET_S),
    # From outside, which needs the mapping that another session has.
    ("<S >SA", OPENING_S),
    ("<S >SA <A", OPEN_S),
    ("<S >SA <FA", OPEN_S),
    ("<S >SA <S >SA >A", OPENING_S),
    ("<S >SA <R", OPENING_S)])
@pytest.mark.parametrize("first", ["", ">S <SA <R"])
def test_state_machine(nat_of, first, segments, seconds):
    """As its mapping's first session, or behind another that ends before."""
    if segments[0] == "<" and not first:
        return
    nat = nat_of(**TIMERS)
    flow = walk(nat, segments, walk(nat, first, peer=PEER2))
    is_answered = any(row["tcp_state"] == ANSWERED for row in nat.sessions)
    # What changes nothing there.
    probe = "R" if seconds == RESET_S or is_answered else "A"
    assert ends_after(flow, seconds, peer_port=80, flags=probe)


@requirement("2")
def test_sessions_of_a_mapping_have_states_of_their_own(nat_of):
    nat = nat_of(filtering="address-port", **TIMERS)
    flow = walk(nat, ">S <SA >A")
    flow.out(PEER2, 81)
    nat.advance(OPENING_S - 0.1)
    assert flow.is_open(PEER2, 81, flags="A")
    nat.advance(2)
    assert not flow.is_open(PEER2, 81, flags="A")
    assert flow.is_open(PEER, 80, flags="A")


@requirement("2")
@pytest.mark.parametrize("segment", ["<S", ">A", ">RA", ">FA", ">SR"])
def test_segments_that_begin_no_session(nat, segment):
    flow = walk(nat, ">S <SA", peer=PEER2)
    n = len(nat.sessions), nat.counter("sessions")
    walk(nat, segment, flow)
    assert n == (len(nat.sessions), nat.counter("sessions"))


@requirement("2.2")
def test_rst_is_translated(nat):
    flow = walk(nat, ">S <SA >A")
    got = flow.back(PEER, 80, flags="R").one
    assert (got[IP].dst, got[TCP].dport, got[TCP].flags) == (HOST, 5000, "R")
    out = flow.out(PEER, 80, flags="RA").one
    assert (out[IP].src, out[TCP].sport) == (OURS, flow.ident)
    # Of a mapping, whatever its session: with another remote end.
    assert flow.back(PEER2, 9, flags="R").one[IP].dst == HOST
    assert flow.out(PEER2, 9, flags="R").one[IP].src == OURS
    assert nat.counter("sessions") == 0
    # And no RST without one.
    assert not nat.outside(tcp(PEER, 80, OURS, flow.ident ^ 1, "R"))
    assert not nat.inside(tcp(OTHER, 1, PEER, 80, "R")).outside


@requirement("2.2 wait")
@requirement("2.2 note 2")
@pytest.mark.parametrize("rst", [">R", "<RA"])
def test_behind_an_rst(nat_of, rst):
    flow = walk(nat_of(), ">S <SA >A " + rst)
    assert ends_after(flow, 240, peer_port=80, flags="R")
    # Where packets follow it was none of the connection's.
    flow = walk(nat_of(), ">S <SA >A " + rst)
    flow.nat.advance(239)
    assert flow.out(PEER, 80, flags="PA").outside
    assert ends_after(flow, 7440, peer_port=80, flags="A")


def established(nat, scale=None):
    """A connection: HOST has sent 1000, and gets 3000; PEER 5000, and 4000."""
    flow = Flow(nat, "tcp")
    options = [] if scale is None else [("WScale", scale)]
    more = 0 if scale is None else scale
    flow.out(PEER, 80, flags="S", seq=999, window=3000, options=options)
    flow.back(PEER, 80, flags="SA", seq=4999, ack=1000, window=4000,
              options=options)
    flow.out(PEER, 80, flags="A", seq=1000, ack=5000, window=3000 >> more)
    flow.back(PEER, 80, flags="A", seq=5000, ack=1000, window=4000 >> more)
    return flow


def state_of(nat):
    """A name, and the seconds that are left."""
    row, = nat.sessions
    names = {2: "open", 3: "half-out", 4: "half-in", 6: "reset"}
    return names[row["tcp_state"]], row["left_s"]


# By direction, where a segment may begin.
WINDOWS = {"out": (1000, 4000), "back": (5000, 3000)}


@requirement("2.2 note 1")
@pytest.mark.parametrize("scale", [None, 3])
@pytest.mark.parametrize("way", ["out", "back"])
@pytest.mark.parametrize("flags", ["R", "RA"])
def test_rst_outside_of_the_window(nat_of, way, flags, scale):
    """It is translated, and the connection goes on (RFC 5961 3.2)."""
    first, n = WINDOWS[way]
    for seq in (first - 1, first + n + 1, first + 70000, first + 2 ** 31):
        nat = nat_of()
        flow = established(nat, scale)
        nat.advance(100)
        assert len(getattr(flow, way)(PEER, 80, flags=flags, seq=seq)) == 1
        state, left = state_of(nat)
        assert state == "open" and left < 7440 - 90
    for seq in (first, first + n):
        nat = nat_of()
        assert len(getattr(established(nat, scale), way)(
            PEER, 80, flags=flags, seq=seq)) == 1
        state, left = state_of(nat)
        assert state == "reset" and 230 < left <= 241


@requirement("2.2 note 1")
@pytest.mark.parametrize("forged", [
    {"flags": "A", "ack": 1000 + 2 ** 30, "window": 9},
    {"flags": "A", "ack": 1000, "window": 0},
    {"flags": "S", "ack": 0, "window": 0}])
def test_a_forged_segment_does_not_cut_a_connection(nat_of, forged):
    """One that hits the window: the ends go on, and are followed."""
    nat = nat_of()
    flow = established(nat, 3)
    flow.back(PEER, 80, seq=5000, **forged)
    for i in range(10):
        nat.advance(1000)
        flow.out(PEER, 80, flags="PA", seq=2500 + 500 * i, ack=5000,
                 window=375, payload=b"x" * 500)
        assert state_of(nat)[1] > 7440 - 10
        flow.back(PEER, 80, flags="A", seq=5000, ack=1000 + 500 * i,
                  window=500)
    flow.back(PEER, 80, flags="R", seq=5000)
    assert state_of(nat)[0] == "reset"


def silent(nat, who):
    """A connection of which we saw the handshake alone. Who: opened it."""
    flow = Flow(nat, "tcp")
    if who == "client":
        flow.out(PEER, 80, flags="S", seq=999, window=3000)
        flow.back(PEER, 80, flags="SA", seq=4999, ack=1000, window=4000)
        flow.out(PEER, 80, flags="A", seq=1000, ack=5000, window=3000)
    else:
        flow.out(PEER2, 9, flags="S")  # a mapping
        flow.back(PEER, 80, flags="S", seq=4999, window=4000)
        flow.out(PEER, 80, flags="SA", seq=999, ack=5000, window=3000)
        flow.back(PEER, 80, flags="A", seq=5000, ack=1000, window=4000)
    return flow


def first_state(nat):
    """State and seconds left of the session with PEER."""
    row, = (r for r in nat.sessions if r["remote"] == PEER)
    return row["tcp_state"], row["left_s"]


@requirement("2.2 note 1")
@pytest.mark.parametrize("way", ["out", "back"])
@pytest.mark.parametrize("who", ["client", "server"])
@pytest.mark.parametrize("flags", ["A", "FA", "PA"])
def test_a_handshake_fixes_the_numbers_of_both_ends(nat_of, way, who, flags):
    """Forged segments change nothing, though an end has sent nothing since."""
    first, n = WINDOWS[way]
    for seq in (first + n + 1, first + 70000, first + 2 ** 31, 2 ** 32 - 70000):
        nat = nat_of(inbound_refresh=True, filtering="none")
        flow = silent(nat, who)
        send = getattr(flow, way)
        nat.advance(1000)
        left = first_state(nat)
        assert left[0] == 2 and left[1] < 7440 - 990
        send(PEER, 80, flags=flags, seq=seq, ack=77 * 10 ** 6, payload=b"x")
        assert first_state(nat) == left
        send(PEER, 80, flags="R", seq=seq + 1)
        send(PEER, 80, flags="R", seq=77 * 10 ** 6)
        assert first_state(nat) == left
        send(PEER, 80, flags="R", seq=first)
        assert first_state(nat)[0] == 6


@requirement("2.2 note 1")
def test_a_forged_answer_does_not_open_a_connection(nat_of):
    """A SYN from a forged source, and then the ACK: with a number of chance."""
    nat = nat_of(filtering="none")
    flow = Flow(nat, "tcp")
    flow.out(PEER2, 9, flags="S")
    flow.back(PEER, 80, flags="S", seq=4999)
    flow.out(PEER, 80, flags="SA", seq=999, ack=5000, window=3000)
    flow.back(PEER, 80, flags="A", seq=10 ** 7, ack=77)
    assert first_state(nat)[0] == 7  # answered
    # The real one opens another connection meanwhile.
    flow.back(PEER, 80, flags="S", seq=8 * 10 ** 6)
    flow.out(PEER, 80, flags="SA", seq=2000, ack=8 * 10 ** 6 + 1, window=3000)
    flow.back(PEER, 80, flags="A", seq=8 * 10 ** 6 + 1, ack=2001)
    assert first_state(nat)[0] == 2


@requirement("2.2 note 1")
@pytest.mark.parametrize("ahead", [1000, 10 ** 6, 2 ** 31])
@pytest.mark.parametrize("fin", ["", "out", "back"])
@pytest.mark.parametrize("first", ["out", "back"])
def test_a_connection_follows_one_that_vanished(nat_of, first, fin, ahead):
    """The same ends, other numbers, and no FIN or RST between."""
    nat = nat_of(inbound_refresh=True)
    flow = established(nat, 3)
    if fin:
        getattr(flow, fin)(PEER, 80, flags="FA", ack=WINDOWS["back"][0] if
                           fin == "out" else 1000, window=500,
                           seq=WINDOWS[fin][0])
    nat.advance(3000)
    one, other = (getattr(flow, way) for way in
                  (first, {"out": "back", "back": "out"}[first]))
    seq, peer = WINDOWS[first][0] + ahead, 77 * 10 ** 6
    options = [("WScale", 3)]
    one(PEER, 80, flags="S", seq=seq, window=100, options=options)
    assert state_of(nat)[1] < 7440 - 2990
    other(PEER, 80, flags="SA", seq=peer, ack=seq + 1, window=100,
          options=options)
    one(PEER, 80, flags="A", seq=seq + 1, ack=peer + 1, window=100)
    assert state_of(nat) == ("open", pytest.approx(7440, abs=5))
    nat.advance(3000)
    one(PEER, 80, flags="PA", seq=seq + 1, ack=peer + 1, window=100,
        payload=b"x")
    assert state_of(nat) == ("open", pytest.approx(7440, abs=5))
    other(PEER, 80, flags="R", seq=peer + 1 + 801)  # scaled
    assert state_of(nat)[0] == "open"
    other(PEER, 80, flags="R", seq=peer + 1 + 800)
    assert state_of(nat)[0] == "reset"


@requirement("2.2 note 1")
def test_a_connection_whose_segments_took_another_path_is_tracked_again(nat_of):
    """Both ends are far ahead; a stranger alone moves nothing."""
    nat = nat_of()
    flow = established(nat)
    flow.back(PEER, 80, flags="A", seq=10 ** 6, ack=10 ** 7, payload=b"x")
    flow.out(PEER, 80, flags="PA", seq=10 ** 7, ack=5000, payload=b"abc")
    nat.advance(3000)
    flow.back(PEER, 80, flags="A", seq=10 ** 8, ack=10 ** 7 + 2, window=100)
    flow.back(PEER, 80, flags="R", seq=10 ** 8, ack=10 ** 7 + 3)
    flow.out(PEER, 80, flags="PA", seq=10 ** 7, ack=5000, payload=b"abc")
    assert state_of(nat)[1] < 7440 - 2990
    flow.back(PEER, 80, flags="A", seq=10 ** 8, ack=10 ** 7 + 3, window=100)
    flow.out(PEER, 80, flags="A", seq=10 ** 7 + 3, ack=10 ** 8, window=100)
    assert state_of(nat)[1] > 7440 - 5


@requirement("2.2 note 1")
@pytest.mark.parametrize("scale", [0, 14, 15, 33, 255])
def test_window_scales_end_at_14(nat_of, scale):
    """RFC 7323 2.3: what is above counts as 14, and is known."""
    flow = Flow(nat_of(), "tcp")
    options = [("WScale", scale)]
    flow.out(PEER, 80, flags="S", seq=999, options=options)
    flow.back(PEER, 80, flags="SA", seq=4999, ack=1000, options=options)
    flow.out(PEER, 80, flags="A", seq=1000, ack=5000, window=2)
    window = 2 << min(scale, 14)
    flow.back(PEER, 80, flags="R", seq=5001 + window)
    assert state_of(flow.nat)[0] == "open"
    flow.back(PEER, 80, flags="R", seq=5000 + window)
    assert state_of(flow.nat)[0] == "reset"


@requirement("2.2 note 1")
@pytest.mark.parametrize("way", ["out", "back"])
@pytest.mark.parametrize("flags", ["A", "PA", "S", "FA"])
def test_segments_outside_of_the_window_do_not_refresh(nat_of, way, flags):
    nat = nat_of(inbound_refresh=True)
    flow = established(nat)
    first, n = WINDOWS[way]
    nat.advance(100)
    for seq in (first - 2 ** 17, first + n + 1, first + 2 ** 31):
        getattr(flow, way)(PEER, 80, flags=flags, seq=seq % 2 ** 32, ack=77)
        state, left = state_of(nat)
        assert state == "open" and left < 7440 - 90
    getattr(flow, way)(PEER, 80, flags="PA", seq=first, payload=b"x",
                       ack=5000 if way == "out" else 1000, window=3000)
    assert state_of(nat)[1] > 7440 - 10


@requirement("4")
def test_a_full_address_is_not_left(nat_of):
    nat = nat_of(pool=["192.0.2.1-192.0.2.2"], ports_range="2048-2111")
    flows = [Flow(nat, "udp", HOST, 5000 + i) for i in range(64)]
    assert all(flow.out().outside for flow in flows)
    late = Flow(nat, "udp", HOST, 7000)
    assert not late.out().outside
    assert nat.drops == {"no_port": 1}
    assert len({flow.addr for flow in flows}) == 1
    other = Flow(nat, "udp", OTHER)  # there is room at the other address
    assert other.out().outside and other.addr != flows[0].addr
    nat.advance(300 + 120 + 3)
    assert late.out().outside


@requirement("5")
def test_mappings_are_by_protocol(nat):
    """The same inside and outside ports, and different hosts behind them."""
    a, b = Flow(nat, "udp", HOST), Flow(nat, "tcp", OTHER)
    a.out()
    assert not nat.outside(tcp(PEER, 53, OURS, a.ident, "SA")).inside
    b.out()
    assert a.ident == b.ident == 5000
    assert nat.outside(udp(PEER, 53, OURS, 5000)).one[IP].dst == HOST
    assert nat.outside(tcp(PEER, 53, OURS, 5000, "SA")).one[IP].dst == OTHER
    # One host's: they begin and end by themselves.
    a, b = Flow(nat, "udp", THIRD), Flow(nat, "tcp", THIRD)
    a.out()
    b.connect()
    nat.advance(302)
    assert not a.is_open() and b.is_open(PEER, 80, flags="A")


@requirement("6")
def test_filters_are_by_protocol(nat_of):
    nat = nat_of(filtering="address")
    a, b = Flow(nat, "udp"), Flow(nat, "tcp")
    a.out(PEER)
    b.connect(PEER2)
    assert a.is_open(PEER) and not a.is_open(PEER2)
    assert b.is_open(PEER2, 80, flags="A")
    assert not b.is_open(PEER, 80, flags="A")


@requirement("7")
@pytest.mark.parametrize("proto", ["udp", "tcp"])
@pytest.mark.parametrize("filtering", ["address", "address-port"])
def test_refused_packets_do_not_refresh(nat_of, proto, filtering):
    nat = nat_of(inbound_refresh=True, filtering=filtering,
                 timeouts_tcp_opening=300)
    flow = opened(nat, proto)
    for _ in range(30):
        nat.advance(10)
        assert not flow.is_open(ROUTER, flags="A") if proto == "tcp" \
            else not flow.is_open(ROUTER)
    nat.advance(2)
    assert nat.counter("mappings") == 0
    # Those that pass do, with this setting.
    flow = opened(nat, "udp", HOST, 6000)
    nat.advance(200)
    assert flow.is_open()
    nat.advance(200)
    assert flow.is_open()


@requirement("7.1")
@pytest.mark.parametrize("segments, seconds", [
    (">S", OPENING_S), (">S <SA >A >R", RESET_S),
    (">S <SA >A >FA <FA", CLOSING_S)])
def test_rsts_that_go_out_do_not_refresh(nat_of, segments, seconds):
    flow = walk(nat_of(**TIMERS), segments)
    for _ in range(seconds // 20 - 1):
        flow.nat.advance(20)
        assert flow.out(PEER, 80, flags="R").outside
    flow.nat.advance(19.9)
    assert flow.is_open(PEER, 80, flags="R")
    flow.nat.advance(2)
    assert not flow.is_open(PEER, 80, flags="R")


@requirement("9")
@pytest.mark.parametrize("proto", ["udp", "tcp", "icmp"])
def test_ports_are_kept_or_random(nat, proto):
    idents = []
    for i in range(60):
        flow = opened(nat, proto, f"10.0.1.{i}", 5000)
        idents.append(flow.ident)
    assert idents[0] == 5000 and len(set(idents)) == 60
    steps = [b - a for a, b in zip(idents[1:], idents[2:])]
    assert 12 < sum(step > 0 for step in steps) < 46
    assert max(steps.count(step) for step in steps) < 5
    assert max(idents) - min(idents[1:]) > 40000


@requirement("10")
def test_packets_that_may_be_fragmented_get_new_ids(nat):
    """Of hosts that chose the same; in one burst of traffic to one peer."""
    ids = []
    for i in range(50):
        out = nat.inside(udp(f"10.0.0.{2 + i % 20}", 5000, PEER, 53, id=77))
        ids.append(out.one[IP].id)
    assert len(set(ids)) == 50
    # With DF it is not looked at by anyone, and stays.
    for _ in range(2):
        out = nat.inside(udp(HOST, 5000, PEER, 53, id=78, flags="DF")).one
        assert out[IP].id == 78


@requirement("10")
def test_ids_of_fragments_stay_together_and_apart(nat):
    """Two datagrams with one id, of two hosts, to one peer, mixed."""
    def piece(host, frag, flags):
        body = bytes([0x13, 0x88, 0, 53, 0, 24, 0, 0]) if frag == 0 \
            else bytes(8)
        return IP(bytes(IP(src=host, dst=PEER, id=9, proto=17, frag=frag,
                           flags=flags) / body))

    out = {HOST: set(), OTHER: set()}
    for frag, flags in ((0, "MF"), (1, "MF"), (2, 0)):
        for host, ids in out.items():
            ids.add(nat.inside(piece(host, frag, flags)).one[IP].id)
    assert all(len(ids) == 1 for ids in out.values())
    assert out[HOST] != out[OTHER]
