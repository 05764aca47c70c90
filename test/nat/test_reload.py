# SPDX-License-Identifier: BSD-3-Clause
"""Each key of the configuration is applied by a reload, or refused by name."""
import json

import pytest
from scapy.all import IP, TCP, UDP, IPerror, IPOption_RR, raw

from harness import keys, ping, tcp, udp
from rfc import (HOST, OTHER, OURS, OURS2, PEER, PEER2, ROUTER, THIRD, Flow,
                 error, opened, quoted)

BASE = {
    "inside": {"port": "p0", "addresses": "10.0.0.1/24", "mtu": 1500,
               "gateway": "10.0.0.254"},
    "outside": {"port": "p1", "addresses": "192.0.2.1/24", "mtu": 1500,
                "gateway": "192.0.2.254"},
    "subscribers": "10.0.0.0/16",
    "limits": {"mappings": 4096, "sessions": 4096},
    "log": {"path": "/log"},
}
FAR = "10.0.1.5"  # by way of the inside gateway


def text_of(*settings):
    """A configuration file: BASE, and {"timeouts.udp": 5} on top of it."""
    config = json.loads(json.dumps(BASE))
    for key, value in [item for more in settings for item in more.items()]:
        section, _, name = key.rpartition(".")
        (config.setdefault(section, {}) if section else config)[name] = value
    return json.dumps(config)


def count(send, packet, side):
    """A probe: how many frames come out on a side, but for ICMP errors."""
    return lambda nat: sum(
        IPerror not in frame for frame in getattr(getattr(nat, send)(packet), side))


def back_to(host):
    """Where the answer to a host is sent."""
    def probe(nat):
        flow = opened(nat, "udp", host)
        return flow.back().inside[0].dst
    return probe


def sources(n, port=5000, step=2):
    """External ends of n flows of a host; fewer if some are refused."""
    def probe(nat):
        flows = [Flow(nat, "udp", port=port + step * i) for i in range(n)]
        return [(flow.addr, flow.ident) for flow in flows
                if flow.out().outside]
    return probe


def that(test, *made):
    """Whether all external ends of a probe satisfy this."""
    return lambda nat: all(test(*end) for end in sources(*made)(nat))


def permits(proto):
    """Whether another host may send to a mapping."""
    def probe(nat):
        flow = opened(nat, proto)
        return len(flow.back(PEER2, 99, **{"flags": "S"} if proto == "tcp"
                             else {}).inside)
    return probe


def left(packet=None, handshake=None):
    """How long a session has left."""
    def probe(nat):
        if packet is not None:
            assert nat.inside(packet).outside
        else:
            flow = Flow(nat, "tcp")
            sent = 101  # sequence numbers: 100 and 200 for the SYNs
            assert flow.out(flags="S", seq=100).outside
            assert flow.back(flags="SA", seq=200, ack=sent).inside
            assert flow.out(flags="A", seq=sent, ack=201).outside
            for side, flags in handshake:
                if side == "out":
                    flow.out(flags=flags, seq=sent, ack=201)
                else:
                    flow.back(flags=flags, seq=201, ack=sent)
        return max(row["left_s"] for row in nat.sessions)
    return probe



def refreshed(nat):
    """Whether what comes in prolongs a session."""
    flow = opened(nat, "udp")
    nat.advance(100)
    flow.back()
    return nat.sessions[0]["left_s"] > 250


def rests(nat):
    """Whether a port that was freed is still held down."""
    Flow(nat, "udp").out()
    nat.advance(30)
    return nat.counter("hold_down")


def waits(nat):
    """Whether a fragment still waits for the first one after 3 s."""
    nat.inside(IP(raw(IP(src=HOST, dst=PEER, frag=3, proto=17) / (b"x" * 8))))
    nat.advance(3)
    return nat.counter("held")


def held_syn(nat):
    """Whether an unsolicited SYN has been answered after 4 s."""
    nat.outside(tcp(PEER, 99, OURS, 4444))
    return sum(IP in frame for frame in nat.advance(4).outside)


def clamped(nat):
    """The MSS that the server sees."""
    syn = IP(raw(IP(src=HOST, dst=PEER) / TCP(
        sport=5000, dport=80, flags="S", options=[("MSS", 1460)])))
    return nat.inside(syn).outside[0][TCP].options[0][1]


def recorded(nat):
    """Whether our address is put into a record of the route."""
    sent = IP(raw(IP(src=HOST, dst=PEER, options=[IPOption_RR(
        length=7, routers=["0.0.0.0"])]) / UDP(sport=5000, dport=53)))
    return nat.inside(sent).outside[0][IP].options[0].pointer


def changed_quote(nat):
    """Whether an error passes that quotes an IP checksum of 0."""
    quote = quoted(Flow(nat, "udp").out().outside[0])
    packet = error(ROUTER, OURS, quote[:10] + b"\0\0" + quote[12:])
    return len(nat.outside(packet).inside)


def hairpin(nat):
    """Whether a host reaches the external end of another one."""
    flow = opened(nat, "udp")
    return count("inside", udp(OTHER, 1, flow.addr, flow.ident),
                 "inside")(nat)


def events(*names):
    """How many events of these names are logged."""
    def probe(nat):
        before = len(nat.events)
        sources(3)(nat)
        return sum(e["what"] in names for e in nat.events[before:])
    return probe


def sessions(nat):
    """Peers that one socket of a host can reach."""
    return sum(bool(Flow(nat, "udp").out(peer=f"198.51.100.{i}").outside)
               for i in range(1, 9))


GRE = IP(raw(IP(src=HOST, dst=PEER, proto=47) / b"12345678"))
RANDOM = {"ports.keep_port": "no"}
FIXED = "02:00:00:00:00:99"

# key: (before, after, probe, other settings). A probe sees what the key does.
APPLIED = {
    "inside.addresses": ("10.0.0.1/24", ["10.0.0.1/24", "10.0.0.9/24"],
                         count("inside", ping(HOST, "10.0.0.9"), "inside"), {}),
    "inside.gateway": ("10.0.0.254", "10.0.0.253", back_to(FAR), {}),
    "inside.neighbours": ([f"{OTHER} {FIXED}"], [f"{HOST} {FIXED}"],
                          back_to(HOST), {}),
    "outside.addresses": ("192.0.2.1/24", ["192.0.2.1/24", "192.0.2.9/24"],
                          count("outside", ping(PEER, "192.0.2.9"), "outside"), {}),
    "outside.gateway": ("192.0.2.254", "192.0.2.253",
                        lambda nat: Flow(nat, "udp").out().outside[0].dst, {}),
    "outside.neighbours": (
        [f"192.0.2.77 {FIXED}"], [f"192.0.2.254 {FIXED}"],
        lambda nat: Flow(nat, "udp").out().outside[0].dst, {}),
    "pool": (OURS, OURS2, sources(1), {}),
    "subscribers": ("10.0.0.0/16", "10.0.1.0/24",
                    count("inside", udp(HOST, 1, PEER, 2), "outside"), {}),
    "forwards": ([{"outside": f"{OURS}:80", "inside": f"{HOST}:80"}],
                 [{"outside": f"{OURS}:81", "inside": f"{HOST}:80"}],
                 count("outside", udp(PEER, 1, OURS, 81), "inside"), {}),
    "one_to_one": ([{"outside": OURS2, "inside": HOST}],
                   [{"outside": OURS2, "inside": OTHER}],
                   lambda nat: nat.outside(udp(PEER, 1, OURS2, 5))
                   .inside[0][IP].dst, {}),
    "exclude": ([{"to": "198.51.100.8/32"}], [{"to": "198.51.100.7/32"}],
                lambda nat: nat.inside(udp(HOST, 1, PEER, 2))
                .outside[0][IP].src, {}),
    "filtering.udp": ("none", "address", permits("udp"), {}),
    "filtering.tcp": ("none", "address-port", permits("tcp"), {}),
    "filtering.icmp": ("none", "address", permits("icmp"), {}),
    "timeouts.udp": ("300s", "200s", left(udp(HOST, 1, PEER, 2)), {}),
    "timeouts.tcp_opening": ("240s", "250s", left(tcp(HOST, 1, PEER, 2)), {}),
    "timeouts.tcp_open": ("7440s", "7500s", left(handshake=[]), {}),
    "timeouts.tcp_closing": (
        "240s", "250s", left(handshake=[("out", "FA"), ("back", "FA")]), {}),
    "timeouts.tcp_reset": ("240s", "250s",
                           left(handshake=[("back", "R")]), {}),
    "timeouts.tcp_unsolicited": ("6s", "3s", held_syn, {}),
    "timeouts.icmp": ("60s", "70s", left(ping(HOST, PEER)), {}),
    "timeouts.other": ("300s", "310s", left(GRE), {"other_protocols": "yes"}),
    "timeouts.fragment": ("2s", "5s", waits, {}),
    "timeouts.hold_down": ("120s", "5s", rests, {"timeouts.udp": "10s"}),
    "ports.range": ("1024-65535", "2048-3000",
                    that(lambda _, port: port <= 3000, 4), RANDOM),
    "ports.keep_port": ("yes", "no", that(lambda _, port: 5000 <= port < 5020,
                                          10), {}),
    "ports.keep_parity": ("yes", "no", that(lambda _, port: port % 2 == 0, 40),
                          RANDOM),
    "ports.keep_class": ("yes", "no", that(lambda _, port: port < 1024, 20,
                                           100),
                         {"ports.range": "1-65535", **RANDOM}),
    "ports.block": (64, 1024, lambda nat: [
        e["n_ports"] for e in (sources(1)(nat), nat.events)[1]][-1],
                    {"subscribers": "10.0.0.0/28"}),
    "ports.max_blocks": (1, 2, lambda nat: len(sources(80)(nat)),
                         {"subscribers": "10.0.0.0/28", "ports.block": 64,
                          "ports.keep_parity": "no"}),
    "ports.deterministic": ("no", "yes", events("block_begin"),
                            {"subscribers": "10.0.0.0/28", "ports.block": 64}),
    "limits.per_subscriber": (3, 5, lambda nat: len(sources(8)(nat)), {}),
    "limits.sessions_per_subscriber": (3, 5, sessions,
                                        {"filtering.udp": "address"}),
    "pairing": ("yes", "no", lambda nat: len({
        addr for addr, _ in sources(40)(nat)}) > 1,
                {"pool": "192.0.2.1-192.0.2.4", **RANDOM}),
    "hairpin": ("yes", "no", hairpin, {}),
    "inbound_refresh": ("no", "yes", refreshed, {}),
    "other_protocols": ("no", "yes", count("inside", GRE, "outside"), {}),
    "ping": ("yes", "no", count("outside", ping(PEER, OURS), "outside"), {}),
    "mss": ("no", 1200, clamped, {}),
    "fill_options": ("yes", "no", recorded, {}),
    "icmp_errors": ("lenient", "strict", changed_quote, {}),
    "log.sessions": ("no", "yes", events("mapping_begin"), {}),
}
# What tables, rings and files were made from: (before, after).
REFUSED = {
    "inside.port": ("p0", "p9"), "outside.port": ("p1", "p9"),
    "inside.vlan": (5, 6), "outside.vlan": (5, 6),
    "inside.mtu": (1500, 1400), "outside.mtu": (1500, 1400),
    "local": ("nat", "kernel"),
    "limits.mappings": (4096, 4097), "limits.sessions": (4096, 4097),
    "limits.fragments": (256, 257), "log.path": ("/log", "/other"),
    "dataplane.burst": (64, 65),
    "dataplane.queues": (1, 2), "dataplane.ring": (512, 1024),
    "dataplane.mtu": (1400, 1500), "dataplane.promisc": ("on", "off"),
    "dataplane.pool_pages": (9999, 10000),
    "dataplane.page_bytes": (4096, 8192),
    "dataplane.safety": ("counts", "poison"),
    "metrics": ("tcp:127.0.0.1:9100", "tcp:127.0.0.1:9101"),
}
# Applied or refused by the main thread: test_nat.py of test/netns. Here, there
# is one worker, whatever the file says.
OF_THE_PROGRAM = {"state", "state_interval", "dataplane.idle",
                  "dataplane.log_level", "dataplane.workers", "dataplane.cores"}


def test_all_keys_are_here():
    assert set(keys()) == {*APPLIED, *REFUSED, *OF_THE_PROGRAM}


@pytest.mark.parametrize("key", APPLIED)
def test_a_reload_applies(nat_of, key):
    before, after, probe, more = APPLIED[key]
    old, new = (text_of(more, {key: value}) for value in (before, after))
    is_so = probe(nat_of(file=new))
    assert probe(nat_of(file=old)) != is_so, "the probe does not see it"
    nat = nat_of(file=old)
    nat.reload(file=new)
    assert probe(nat) == is_so


@pytest.mark.parametrize("key", REFUSED)
def test_a_reload_refuses(nat_of, key):
    old, new = (text_of({key: value}) for value in REFUSED[key])
    nat = nat_of(file=old)
    with pytest.raises(ValueError, match=f"^{key.replace('.', ': ')}$"):
        nat.reload(file=new)


# What lives on, and what ends.

def forward(port, host, to=None, protos="tcp", addr=OURS):
    """A forward of one port."""
    return (protos, addr, port, port, host, to or port)


def reached(nat, port, proto=tcp, addr=OURS):
    """The host and port that a forward of ours leads to."""
    out = nat.outside(proto(PEER, 1, addr, port))
    return [(p[IP].dst, p[IP].payload.dport) for p in out.inside]


def test_the_same_again_changes_nothing(nat_of):
    nat = nat_of(ports_block=64, ports_max_blocks=4, timeouts_icmp=1,
                 forwards=[("tcp", OURS, 2000, 2009, OTHER, 1)])
    opened(nat, "icmp")
    nat.advance(3)
    flows = [opened(nat, "udp"), opened(nat, "tcp")]
    flows[1].out(PEER2)
    nat.outside(tcp(PEER, 1, OURS, 2003))
    nat.inside(tcp(OTHER, 4, PEER, 1, "SA"))
    before = nat.sessions, nat.events, nat.counter("hold_down")
    assert before[2] == 1 and nat.counter("sessions") == 1
    nat.reload()
    assert before == (nat.sessions, nat.events, nat.counter("hold_down"))
    assert all(flow.is_open() for flow in flows)


@pytest.mark.parametrize("last", [65535, 65534])
def test_mappings_live_on_in_a_larger_pool(nat_of, last):
    """Another range of ports has all of them entered anew."""
    nat = nat_of(timeouts_icmp=10, timeouts_hold_down=200)
    for part in (0, 1):  # freed at 1011 and 1031
        for i in range(25):
            opened(nat, "icmp", f"10.0.1.{i}", 7 + part)
        nat.advance(20)
    flows = [opened(nat, "udp", f"10.0.2.{i // 3}", 5000 + i)
             for i in range(50)]
    now = 1040
    assert nat.counter("hold_down") == 50
    nat.reload(pool=["192.0.2.1", "203.0.113.5-203.0.113.10"],
               ports_range=f"1024-{last}")
    assert all(flow.is_open() for flow in flows)
    for flow in flows:
        ident = flow.ident
        assert flow.out().outside and flow.ident == ident
        assert opened(nat, "tcp", flow.host, flow.port).addr == OURS  # paired
    for second, n in ((1211, 50), (1212, 25), (1231, 25), (1232, 0)):
        nat.advance(second - now)  # as if nothing had been
        assert nat.counter("hold_down") == n
        now = second
    nat.advance(300)
    assert nat.counter("mappings") == 0


def test_a_forwards_address_comes_into_the_pool(nat_of):
    """Its external end was found by hash, and has a place from now on."""
    nat = nat_of(forwards=[forward(2000, HOST, 80, addr="192.0.2.9")])
    for pool in (["192.0.2.1"], ["192.0.2.1-192.0.2.9"]):
        nat.reload(pool=pool)
        assert reached(nat, 2000, addr="192.0.2.9") == [(HOST, 80)]
    nat.reload(forwards=[])
    assert reached(nat, 2000, addr="192.0.2.9") == []


def test_forwards_change_hands(nat_of):
    """Another host behind a port, and another port of a host."""
    nat = nat_of(forwards=[forward(80, HOST), forward(81, OTHER)])
    opened(nat, "tcp", THIRD, 80)
    nat.reload(forwards=[forward(80, THIRD), forward(82, OTHER, 81)])
    assert [reached(nat, port) for port in (80, 81, 82)] == \
        [[(THIRD, 80)], [], [(OTHER, 81)]]
    assert opened(nat, "tcp", THIRD, 80).ident == 80
    assert opened(nat, "tcp", HOST, 80).ident != 80
    assert nat.counter("mappings") == 3 and nat.counter("hold_down") == 1
    nat.advance(400)
    nat.reload(forwards=[])
    assert nat.counter("mappings") == nat.counter("subscribers") == 0


def test_static_ones_come_go_and_stay(nat_of):
    nat = nat_of(pool=["192.0.2.1-192.0.2.2"], filtering_tcp="address",
                 forwards=[forward(80, HOST), forward(81, OTHER, 80)])
    for port in (9, 10):
        nat.outside(tcp(PEER, port, OURS, 80))
        nat.inside(tcp(HOST, 80, PEER, port, "SA"))
    # In the way of what comes: by inside end, outside end, and host.
    opened(nat, "udp", THIRD, 53)
    outside = opened(nat, "udp", "10.0.0.8", 1)
    opened(nat, "udp", "10.0.0.9", 1)
    nat.reload(
        one_to_one=[("192.0.2.3", "10.0.0.9")],
        forwards=[forward(80, HOST), forward(53, THIRD, protos="udp"),
                  forward(outside.ident, THIRD, 99, "udp", outside.addr)])
    state = [row for row in nat.sessions if row["inside"] == HOST]
    assert len(state) == 2 and {row["remote_port"] for row in state} == {9, 10}
    assert reached(nat, 80) == [(HOST, 80)] and reached(nat, 81) == []
    assert reached(nat, 53, udp) == [(THIRD, 53)]
    assert reached(nat, outside.ident, udp, outside.addr) == [(THIRD, 99)]
    assert opened(nat, "udp", "10.0.0.9", 1).addr == "192.0.2.3"
    assert nat.outside(ping(PEER, "192.0.2.3")).one[IP].dst == "10.0.0.9"
    assert nat.counter("mappings") == 4
    nat.reload(one_to_one=[], forwards=[])
    assert nat.counter("mappings") == nat.counter("subscribers") == 0
    assert not nat.outside(ping(PEER, "192.0.2.3"))


def test_mappings_that_are_no_longer_allowed_end(nat_of):
    nat = nat_of(pool=["192.0.2.1-192.0.2.2"], log_sessions=True,
                 other_protocols=True, ports_keep_port=False)
    flows = [opened(nat, "udp", f"10.0.0.{i}") for i in range(2, 102)]
    nat.inside(GRE)
    kept = [f for i, f in enumerate(flows, 2)
            if f.addr == OURS and f.ident < 40000 and i < 64]
    n = len(nat.events)
    nat.reload(pool=["192.0.2.1"], ports_range="1024-39999",
               subscribers=["10.0.0.0/26"], other_protocols=False)
    assert all(flow.is_open() for flow in kept)
    assert nat.counter("mappings") == nat.counter("subscribers") == len(kept)
    assert [e["what"] for e in nat.events[n:]] == \
        ["mapping_end"] * (101 - len(kept))
    assert not nat.inside(GRE).outside


def test_a_shorter_timer_counts_at_once(nat_of):
    nat = nat_of()
    opened(nat, "udp")
    for peer in (PEER, PEER2):
        Flow(nat, "tcp").connect(peer)
    nat.reload(timeouts_udp=120, timeouts_tcp_open=7000)
    for seconds, n in ((120, 2), (1, 1), (6879, 1), (1, 0)):
        nat.advance(seconds)
        assert nat.counter("mappings") == n
    assert nat.counter("sessions") == 0


def test_changed_filters_keep_the_sessions_that_they_need(nat_of):
    nat = nat_of(filtering_udp="address")
    peers, stranger = [PEER, PEER2, ROUTER], "203.0.113.77"
    udp_flow, tcp_flow = Flow(nat, "udp"), Flow(nat, "tcp")
    for flow in (udp_flow, tcp_flow):
        for peer in peers:
            flow.out(peer, 1)
    nat.reload(filtering_udp="address-port", filtering_tcp="address")
    assert nat.counter("sessions") == 2
    for peer in peers:
        assert tcp_flow.is_open(peer, 99, flags="S")
        udp_flow.out(peer, 1)
        assert udp_flow.is_open(peer, 1) and not udp_flow.is_open(peer, 2)
    assert not tcp_flow.is_open(stranger, flags="S")
    nat.reload(filtering_udp="none", filtering_tcp="none")
    assert tcp_flow.is_open(stranger, flags="S") and udp_flow.is_open(stranger)
    assert nat.counter("sessions") == 2
    nat.advance(302)
    assert nat.counter("mappings") == nat.counter("sessions") == 0


def test_blocks_change_their_size(nat_of):
    """The log says so; whose ports fit no block of theirs any more end."""
    nat = nat_of(ports_block=64, ports_keep_port=False, timeouts_icmp=10)
    flows = [opened(nat, "udp", f"10.0.0.{i + 2}") for i in range(40)]
    nat.reload(ports_block=4096)  # there are 16
    n = nat.counter("mappings")
    assert 4 <= n <= 16 and sum(flow.is_open() for flow in flows) == n
    names = [e["what"] for e in nat.events]
    assert names[:80] == ["block_begin"] * 40 + ["block_end"] * 40
    assert names[80:] == ["block_begin"] * n
    nat.advance(301 + 122)
    assert nat.counter("subscribers") == nat.counter("hold_down") == 0
    flow = opened(nat, "udp")
    nat.reload(ports_block=0)
    assert flow.is_open()


def test_lower_limits_apply_to_new_mappings(nat_of):
    """A limit of tables stays; that of a host is not theirs."""
    nat = nat_of()
    flows = [opened(nat, "udp", port=port) for port in range(1, 6)]
    nat.reload(limits_per_subscriber=2)
    assert all(flow.is_open() for flow in flows)
    assert not Flow(nat, "udp", port=9).out().outside
    assert nat.drops == {"quota": 1}
