# SPDX-License-Identifier: BSD-3-Clause
"""Neighbours: whom we answer, whom we ask, and what waits meanwhile."""
import pytest
from scapy.all import ARP, ICMP, IP, UDP, Dot1Q, Ether

from harness import INSIDE, MACS, OUTSIDE, mac_of, udp

HOST, PEER, OURS, GATEWAY = "10.0.0.2", "198.51.100.7", "192.0.2.1", \
    "192.0.2.254"
ALL = "ff:ff:ff:ff:ff:ff"


def request(source, target, mac=None, dst=ALL):
    """Who has target? Tell source."""
    mac = mac or mac_of(source)
    return Ether(src=mac, dst=dst) / ARP(op=1, hwsrc=mac, psrc=source,
                                         pdst=target)


def reply(source, target, side, mac=None, dst=None):
    """Source has mac."""
    mac = mac or mac_of(source)
    return Ether(src=mac, dst=dst or MACS[side]) / ARP(
        op=2, hwsrc=mac, psrc=source, hwdst=MACS[side], pdst=target)


@pytest.fixture
def quiet(nat_of):
    """A Nat whose neighbours say nothing by themselves."""
    return nat_of(answers_arp=False)


def test_answers_for_own_addresses(nat_of):
    nat = nat_of(pool=["192.0.2.10-192.0.2.12"],
                 forwards=[("tcp", "192.0.2.20", 80, 80, "10.0.0.5", 80)],
                 one_to_one=[("192.0.2.30", "10.0.0.7")])
    for address in (OURS, "192.0.2.10", "192.0.2.12", "192.0.2.20",
                    "192.0.2.30"):
        got = nat.outside(request("192.0.2.99", address)).one
        assert (got[ARP].op, got[ARP].psrc) == (2, address)
        assert (got[ARP].hwsrc, got.src) == (MACS[1], MACS[1])
        assert (got[ARP].pdst, got.dst) == ("192.0.2.99", mac_of("192.0.2.99"))
        assert not nat.inside(request(HOST, address))  # not that side's
    assert nat.inside(request(HOST, "10.0.0.1")).one[ARP].hwsrc == MACS[0]
    assert not nat.outside(request("192.0.2.98", "10.0.0.1"))
    assert not nat.outside(request("192.0.2.98", "192.0.2.50"))
    assert nat.drops == {"arp": 7}


def test_addresses_are_announced_at_the_start(nat_of):
    nat = nat_of(pool=["192.0.2.10-192.0.2.60", "203.0.113.1-203.0.113.9"],
                 outside_vlan=9)
    told = nat.announced.outside + nat.advance(0.2).outside
    told += nat.advance(0.2).outside
    assert {p[ARP].psrc for p in told} == \
        {OURS} | {f"192.0.2.{i}" for i in range(10, 61)}
    assert len(told) == 52  # once each; those off the link not at all
    assert all(p[ARP].psrc == p[ARP].pdst and p.dst == ALL and
               p[Dot1Q].vlan == 9 for p in told)
    assert [p[ARP].psrc for p in nat.announced.inside] == ["10.0.0.1"]
    assert not nat.advance(60)


def test_forwards_use_up_no_announcements(nat_of):
    """Their addresses are in the pool, and told with it."""
    nat = nat_of(pool=["192.0.2.1", "192.0.2.10-192.0.2.12"],
                 forwards=[("udp", "192.0.2.10", port, port, "10.0.0.5", port)
                           for port in range(1, 1200)])
    told = nat.announced.outside
    for _ in range(60):
        told += nat.advance(0.2).outside
    assert sorted(p[ARP].psrc for p in told if p[ARP].psrc != OURS) == \
        ["192.0.2.10", "192.0.2.11", "192.0.2.12"]


def test_a_packet_waits_for_the_answer_to_a_query(quiet):
    """Frames wait for the answer, and go in the order they came in."""
    got = quiet.inside(udp(HOST, 5000, PEER, 53, b"1")).one
    assert (got[ARP].op, got[ARP].pdst, got.dst) == (1, GATEWAY, ALL)
    assert (got[ARP].psrc, got[ARP].hwsrc) == (OURS, MACS[1])
    assert not quiet.inside(udp(HOST, 5000, PEER, 53, b"2"))
    assert quiet.counter("held") == 2
    got = quiet.outside(reply(GATEWAY, OURS, OUTSIDE)).outside
    assert [bytes(p[UDP].payload)[:1] for p in got] == [b"1", b"2"]
    assert all(p.dst == mac_of(GATEWAY) for p in got)
    assert quiet.counter("held") == 0 and quiet.drops == {}
    assert len(quiet.inside(udp(HOST, 5000, PEER, 53))) == 1


def test_hosts_on_the_link_are_queried_directly(quiet):
    got = quiet.inside(udp(HOST, 5000, "192.0.2.77", 53)).one
    assert got[ARP].pdst == "192.0.2.77"
    port = quiet.outside(reply("192.0.2.77", OURS, OUTSIDE)).one[UDP].sport
    got = quiet.outside(udp("192.0.2.77", 53, OURS, port)).one
    assert (got[ARP].pdst, got[ARP].psrc) == (HOST, "10.0.0.1")
    assert quiet.inside(reply(HOST, "10.0.0.1", INSIDE)).one.dst == \
        mac_of(HOST)
    # The same mapping, now by way of the gateway, then on the link again.
    assert quiet.inside(udp(HOST, 5000, PEER, 53)).one[ARP].pdst == GATEWAY
    assert quiet.outside(reply(GATEWAY, OURS, OUTSIDE)).one.dst == \
        mac_of(GATEWAY)
    for _ in range(2):
        assert quiet.inside(udp(HOST, 5000, "192.0.2.77", 53)).one.dst == \
            mac_of("192.0.2.77")
        assert quiet.inside(udp(HOST, 5000, PEER, 53)).one.dst == \
            mac_of(GATEWAY)


def test_packets_are_refused_if_arp_is_not_answered(quiet):
    """Three requests, a second apart; then host unreachable, and a pause."""
    packet = udp(HOST, 5000, PEER, 53)
    assert ARP in quiet.inside(packet).one
    assert [ARP in p for p in quiet.advance(2.5).outside] == [True, True]
    got = quiet.advance(1).one
    assert (got[ICMP].type, got[ICMP].code, got[IP].dst) == (3, 1, HOST)
    quote = bytes(got[ICMP].payload)
    assert quote == bytes(packet)[:len(quote)]  # as it was sent
    got = quiet.inside(packet).one  # at once, without a request
    assert (got[ICMP].type, got[ICMP].code) == (3, 1)
    assert quiet.drops == {"neighbour": 2}
    quiet.advance(1.1)
    assert ARP in quiet.inside(packet).one  # it is tried again
    assert UDP in quiet.outside(reply(GATEWAY, OURS, OUTSIDE)).one


def test_waiting_is_bounded(quiet):
    for i in range(20):
        quiet.inside(udp(HOST, 5000 + i, PEER, 53))
    assert quiet.counter("held") == 16
    assert quiet.drops == {"neighbour_full": 4}
    for i in range(100):  # a scan of the link
        quiet.inside(udp(HOST, 5000, f"192.0.2.{i + 10}", 53))
    assert quiet.counter("held") == 16 + 8
    assert quiet.drops == {"neighbour_full": 4 + 92}
    assert len(quiet.outside(reply(GATEWAY, OURS, OUTSIDE)).outside) == 16


def asks(nat, mac, src, dst):
    """Whether a packet from a host makes a request for dst."""
    frame = Ether(src=mac, dst=MACS[INSIDE]) / udp(src, 5000, dst, 53)
    return any(ARP in p and p[ARP].pdst == dst
               for p in nat.inside(frame).outside)


def test_a_scan_has_at_most_eight_queries(quiet):
    """A host gets 8 queries at a time."""
    scanner = mac_of(HOST)
    asked = [asks(quiet, scanner, HOST, f"192.0.2.{i + 10}")
             for i in range(200)]
    assert asked == [True] * 8 + [False] * 192
    assert asks(quiet, mac_of("10.0.0.3"), "10.0.0.3", "192.0.2.250")
    assert UDP in quiet.outside(reply("192.0.2.250", OURS, OUTSIDE)).one
    quiet.advance(1.1)  # who is there has answered by now: others have a turn
    assert asks(quiet, scanner, HOST, "192.0.2.249")


ROUTER = "02:00:00:00:00:aa"  # all subscribers are behind it


@pytest.mark.parametrize("host", [
    "10.0.{}.2", "10.0.0.{}"], ids=["routed", "on the link"])
def test_hosts_behind_one_router_have_shares_of_their_own(quiet, host):
    """One that sends to silent hosts takes no query from the others."""
    for second in range(8):
        for i in range(25):
            asks(quiet, ROUTER, host.format(100),
                 f"192.0.2.{10 + second * 25 + i}")
        other = f"192.0.2.{240 + second}"
        assert asks(quiet, ROUTER, host.format(101 + second), other)
        assert UDP in quiet.outside(reply(other, OURS, OUTSIDE)).one
        quiet.advance(1)


def test_forged_source_addresses_take_no_query_from_other_hosts(quiet):
    """The forger has one MAC address: that has the most queries, so it loses some."""
    for i in range(200):
        asks(quiet, ROUTER, f"10.0.{i // 100 + 1}.{i % 100 + 1}",
             f"192.0.2.{i + 10}")
    for i in range(8):
        assert asks(quiet, mac_of(HOST), HOST, f"192.0.2.{i + 240}")
    for i in range(200):  # nor do more of them
        asks(quiet, ROUTER, f"10.0.{i // 100 + 3}.{i % 100 + 1}",
             f"192.0.2.{i + 10}")
    for i in range(8):
        got = quiet.outside(reply(f"192.0.2.{i + 240}", OURS, OUTSIDE))
        assert UDP in got.one


def test_forged_source_addresses_leave_time_to_answer_behind_one_router(quiet):
    for i in range(64):
        assert asks(quiet, ROUTER, f"10.0.1.{i + 1}", f"192.0.2.{i + 10}")
    quiet.advance(0.02)
    assert asks(quiet, ROUTER, "10.0.2.2", "192.0.2.250")
    for i in range(100):
        asks(quiet, ROUTER, f"10.0.3.{i + 1}", f"192.0.2.{i + 100}")
    assert UDP in quiet.outside(reply("192.0.2.250", OURS, OUTSIDE)).one


def test_the_mac_address_with_most_queries_loses_one(quiet):
    for i in range(64):
        host = f"10.0.0.{i // 8 + 10}"
        assert asks(quiet, mac_of(host), host, f"192.0.2.{i + 10}")
    assert asks(quiet, mac_of(HOST), HOST, "192.0.2.200")
    assert UDP in quiet.outside(reply("192.0.2.200", OURS, OUTSIDE)).one
    assert quiet.drops == {"neighbour": 1}


def forged(i):
    """The i-th of a host's MAC addresses; the first one is all zero."""
    return f"02:66:00:00:{i // 256:02x}:{i % 256:02x}" if i else ":".join(
        ["00"] * 6)


def test_forged_addresses_do_not_starve_others(quiet):
    """A query lasts as long as who is there needs to answer it."""
    for i in range(64):
        assert asks(quiet, forged(i), HOST, f"192.0.2.{i + 10}")
    assert not asks(quiet, forged(64), HOST, "192.0.2.100")
    quiet.advance(0.02)
    for i in range(65, 65 + 64):
        assert asks(quiet, forged(i), HOST, f"192.0.2.{i + 10}")
    quiet.advance(0.02)
    assert asks(quiet, mac_of("10.0.0.3"), "10.0.0.3", "192.0.2.250")
    assert UDP in quiet.outside(reply("192.0.2.250", OURS, OUTSIDE)).one


def test_the_longest_queue_loses_its_oldest_frame(quiet):
    """16 for one neighbour, 256 for all: of those, one that most wait for."""
    for i in range(16):
        host = f"10.0.0.{i + 10}"
        for port in range(16):
            quiet.inside(udp(host, 5000 + port, f"192.0.2.{i + 10}", 53))
    assert quiet.counter("held") == 256
    assert asks(quiet, mac_of(HOST), HOST, "192.0.2.250")
    assert quiet.counter("held") == 256
    assert UDP in quiet.outside(reply("192.0.2.250", OURS, OUTSIDE)).one
    assert quiet.drops == {"neighbour_full": 1}


def test_waiting_frames_use_a_bounded_number_of_pages(quiet):
    """What is kept for frames that wait is pages: 1024 + max_fragments."""
    for i in range(16):
        host = f"10.0.0.{i + 10}"
        for port in range(16):
            quiet.inside(udp(host, 5000 + port, f"192.0.2.{i + 10}", 53,
                             bytes(1400)), entries=(100, 100))
    assert 0 < quiet.counter("held") <= (1024 + 256) // 15
    assert set(quiet.drops) == {"neighbour_full"}


def test_the_queue_with_most_pages_loses_its_oldest_frame(quiet):
    """What waits for a few neighbours takes no other's first frame."""
    for i in range(6):
        for port in range(16):
            quiet.inside(udp(f"10.0.0.{i + 10}", 5000 + port,
                             f"192.0.2.{i + 10}", 53, bytes(1400)),
                         entries=(100, 100))
    full = quiet.counter("held")
    assert 6 * 12 < full < 6 * 16
    assert asks(quiet, mac_of(HOST), HOST, "192.0.2.250")
    quiet.inside(udp(HOST, 5000, "192.0.2.250", 53, bytes(1400)),
                 entries=(100, 100))
    assert len(quiet.outside(reply("192.0.2.250", OURS, OUTSIDE)).outside) == 2


def test_probes_beyond_half_of_the_queries_are_displaced(quiet):
    """64 hosts that have gone silent, and what is sent to them all along."""
    peers = [f"192.0.2.{i + 10}" for i in range(64)]
    for i, peer in enumerate(peers):
        assert asks(quiet, forged(i), HOST, peer)
        quiet.outside(reply(peer, OURS, OUTSIDE))
    quiet.advance(31)
    for peer in peers:
        got = quiet.inside(udp(HOST, 5000, peer, 53)).outside
        assert any(UDP in p for p in got)
    assert asks(quiet, mac_of("10.0.0.3"), "10.0.0.3", "192.0.2.250")
    # From others, too: nobody loses a neighbour that is in use.
    for i, peer in enumerate(peers):
        frame = Ether(src=forged(i), dst=MACS[INSIDE]) / udp(
            HOST, 5000, peer, 53)
        assert any(UDP in p for p in quiet.inside(frame).outside)
    quiet.advance(0.02)
    assert asks(quiet, mac_of("10.0.0.3"), "10.0.0.3", "192.0.2.251")
    for peer in peers:
        got = quiet.inside(udp(HOST, 5000, peer, 53)).outside
        assert any(UDP in p for p in got)


def silent(nat, n):
    """The addresses of n hosts that HOST has talked to, stale by now."""
    peers = [f"192.0.2.{i + 10}" for i in range(n)]
    for i, peer in enumerate(peers):
        assert asks(nat, forged(i), HOST, peer)
        nat.outside(reply(peer, OURS, OUTSIDE))
    nat.advance(31)
    return peers


def talk(nat, peers, seconds, of=lambda i: mac_of(HOST)):
    """What goes out while HOST sends to all of them, every 250 ms."""
    got = []
    frames = [bytes(Ether(src=of(i), dst=MACS[INSIDE]) /
                    udp(HOST, 5000, peer, 53)) for i, peer in enumerate(peers)]
    for _ in range(round(seconds * 4)):
        for frame in frames:
            got += nat.inside(frame).outside
        got += nat.advance(0.25).outside
    return got


@pytest.mark.parametrize("n, seconds, of", [
    (20, 6, lambda i: mac_of(HOST)), (72, 3, forged)], ids=["one", "many"])
def test_all_of_many_silent_neighbours_are_given_up(quiet, n, seconds, of):
    """Though more are stale than may be asked at a time, all are asked."""
    peers = silent(quiet, n)
    got = talk(quiet, peers, seconds, of)
    assert {p[ARP].pdst for p in got if ARP in p and p.dst == ALL} == \
        set(peers)
    quiet.advance(4)  # none is used as it was
    for peer in peers:
        got = quiet.inside(udp(HOST, 5000, peer, 53)).outside
        assert not any(UDP in p for p in got)


def test_one_of_many_stale_neighbours_has_moved(quiet):
    """Nobody answers a request to its old address: all are asked."""
    peers = silent(quiet, 20)
    moved = "02:00:00:00:00:99"
    for _ in range(24):
        for packet in talk(quiet, peers, 0.25):
            if ARP in packet and packet[ARP].pdst == peers[13] and \
                    packet.dst == ALL:
                quiet.outside(reply(peers[13], OURS, OUTSIDE, mac=moved))
    assert quiet.inside(udp(HOST, 5000, peers[13], 53)).one.dst == moved


def test_a_probe_ends_no_other_one(quiet):
    """What it is for goes out without it; the others need their time."""
    peers = silent(quiet, 65)
    first = talk(quiet, peers, 0.25, forged)
    assert len([p for p in first if ARP in p]) == 64
    assert not [p for p in talk(quiet, peers, 0.5, forged) if ARP in p]
    assert quiet.drops == {}


def test_a_flood_with_forged_addresses_ends_no_probe(nat_of):
    """Else a neighbour that is silent would be used as long as it lasts."""
    nat = nat_of(answers_arp=False,
                 outside=["192.0.2.1/24", "198.18.0.1/16"])
    peers = silent(nat, 8)
    asked = set()
    for i in range(5):
        got = talk(nat, peers, 0.75, forged)
        asked |= {p[ARP].pdst for p in got if ARP in p and p.dst == ALL}
        for k in range(64):
            asks(nat, forged(100 + k), HOST, f"198.18.{i + 1}.{k + 1}")
    assert asked >= set(peers)
    for peer in peers:
        got = nat.inside(udp(HOST, 5000, peer, 53)).outside
        assert not any(UDP in p for p in got)


def test_a_failed_neighbour_is_not_queried_without_room(quiet):
    """It stays as it was: its host is told so, at once."""
    assert asks(quiet, forged(99), HOST, "192.0.2.250")
    quiet.advance(5)
    for i in range(64):
        assert asks(quiet, forged(i), HOST, f"192.0.2.{i + 10}")
    before = quiet.drops["neighbour"]
    for _ in range(2):
        assert not asks(quiet, forged(99), HOST, "192.0.2.250")
    assert quiet.drops == {"neighbour": before + 2}


def test_the_gateway_is_probed_though_all_queries_are_taken(quiet):
    quiet.inside(udp(HOST, 5000, PEER, 53))
    quiet.outside(reply(GATEWAY, OURS, OUTSIDE))
    quiet.advance(31)
    for i in range(64):
        assert asks(quiet, forged(i), HOST, f"192.0.2.{i + 10}")
    packet = udp(HOST, 5000, PEER, 53)
    got = quiet.inside(packet).outside
    assert GATEWAY in [p[ARP].pdst for p in got if ARP in p]
    quiet.advance(0.02)
    for i in range(64, 64 + 70):
        asks(quiet, forged(i), HOST, f"192.0.2.{i + 10}")
    got = quiet.advance(1).outside  # it is still asked
    assert GATEWAY in [p[ARP].pdst for p in got if ARP in p]


def test_the_gateway_is_queried_though_all_queries_are_taken(quiet):
    for i in range(64):
        host = f"10.0.0.{i // 8 + 10}"
        assert asks(quiet, mac_of(host), host, f"192.0.2.{i + 10}")
    got = quiet.inside(udp(HOST, 5000, PEER, 53))
    assert GATEWAY in [p[ARP].pdst for p in got.outside if ARP in p]
    assert UDP in quiet.outside(reply(GATEWAY, OURS, OUTSIDE)).one


def test_stale_and_probed(quiet):
    """In use, it is asked again every 30 s: itself at first, and used on."""
    packet = udp(HOST, 5000, PEER, 53)
    quiet.inside(packet)
    quiet.outside(reply(GATEWAY, OURS, OUTSIDE))
    quiet.advance(30)
    assert UDP in quiet.inside(packet).one
    quiet.advance(1)
    got = quiet.inside(packet).outside
    assert {ARP in p for p in got} == {True, False}
    probe = next(p for p in got if ARP in p)
    assert probe.dst == mac_of(GATEWAY)
    assert UDP in quiet.inside(packet).one
    moved = "02:00:00:00:00:99"
    quiet.outside(reply(GATEWAY, OURS, OUTSIDE, mac=moved))
    assert quiet.inside(packet).one.dst == moved
    assert not quiet.advance(29)
    # Now it is gone: one request to itself, two to all, and it has failed.
    quiet.advance(3)
    assert len(quiet.inside(packet)) == 2
    got = quiet.advance(2.5).outside
    assert [p.dst for p in got] == [ALL, ALL]
    quiet.advance(1)
    assert ICMP in quiet.inside(packet).one
    assert quiet.drops == {"neighbour": 1}


def test_neighbours_are_doubted_after_the_link_was_down(nat_of):
    """They stay in use, but are queried at once by broadcast."""
    nat = nat_of(answers_arp=False,
                 inside_neighbours={HOST: "02:00:00:00:00:42"})
    packet = udp(HOST, 5000, PEER, 53)
    nat.inside(packet)
    nat.outside(reply(GATEWAY, OURS, OUTSIDE))
    nat.link_event(INSIDE)  # of the other side; and static ones are believed
    assert UDP in nat.inside(packet).one
    assert nat.outside(udp(PEER, 53, OURS, 5000)).one.dst == \
        "02:00:00:00:00:42"
    nat.link_event(OUTSIDE)
    assert not nat.advance(1)  # it is not used
    got = nat.inside(packet).outside
    assert sorted(ARP in p for p in got) == [False, True]
    assert {p.dst for p in got if ARP in p} == {ALL}
    assert UDP in nat.inside(packet).one  # asked once
    moved = "02:00:00:00:00:99"
    nat.outside(reply(GATEWAY, OURS, OUTSIDE, mac=moved))
    assert nat.inside(packet).one.dst == moved
    nat.link_event(OUTSIDE)
    nat.link_event(OUTSIDE)
    assert len(nat.inside(packet).outside) == 2
    nat.advance(3.2)  # nobody there
    assert ICMP in nat.inside(packet).one


def test_idle_neighbours_are_not_probed(quiet):
    quiet.inside(udp(HOST, 5000, PEER, 53))
    quiet.outside(reply(GATEWAY, OURS, OUTSIDE))
    assert not quiet.advance(200)


def test_fixed_neighbours_are_believed_forever(nat_of):
    nat = nat_of(answers_arp=False,
                 outside_neighbours={GATEWAY: "02:00:00:00:00:42"})
    for _ in range(3):
        assert nat.inside(udp(HOST, 5000, PEER, 53)).one.dst == \
            "02:00:00:00:00:42"
        nat.outside(reply(GATEWAY, OURS, OUTSIDE))
        nat.advance(100)


def test_hosts_that_query_us_are_learned(quiet):
    quiet.outside(request(GATEWAY, OURS))
    assert UDP in quiet.inside(udp(HOST, 5000, PEER, 53)).one


def test_implausible_arp_teaches_nothing(quiet):
    for lie in (reply("192.0.2.66", OURS, OUTSIDE),  # nobody asked
                reply("203.0.113.1", OURS, OUTSIDE),  # not on the link
                request("192.0.2.255", OURS),         # a broadcast
                request(OURS, OURS, mac="02:00:00:00:00:66"),  # us
                request(GATEWAY, OURS, mac="03:00:00:00:00:66"),  # a group
                Ether(src="02:00:00:00:00:01", dst=ALL) / ARP(
                    op=1, hwsrc="02:00:00:00:00:02", psrc=GATEWAY, pdst=OURS),
                bytes(Ether(src=mac_of(GATEWAY), dst=ALL) / ARP(
                    op=1, psrc=GATEWAY, pdst=OURS))[:40]):
        assert not quiet.outside(lie)
    assert quiet.drops == {"arp": 7}
    assert quiet.inside(udp(HOST, 5000, PEER, 53)).one[ARP].pdst == GATEWAY


def test_gratuitous_arp_renews_known_neighbours(quiet):
    quiet.inside(udp(HOST, 5000, PEER, 53))
    quiet.outside(reply(GATEWAY, OURS, OUTSIDE))
    moved = "02:00:00:00:00:99"
    quiet.outside(request(GATEWAY, GATEWAY, mac=moved))
    assert quiet.inside(udp(HOST, 5000, PEER, 53)).one.dst == moved


def test_no_route(nat_of):
    nat = nat_of(outside_gateway=None)
    got = nat.inside(udp(HOST, 5000, PEER, 53)).one
    assert (got[ICMP].type, got[ICMP].code) == (3, 0)
    assert nat.drops == {"no_route": 1}
    assert nat.inside(udp(HOST, 5000, "192.0.2.9", 53)).outside


def test_waiting_frames_are_freed_at_the_end(nat_of):
    """Fixture's close(): no page is missing."""
    nat = nat_of(answers_arp=False)
    nat.inside(udp(HOST, 5000, PEER, 53))
    nat.inside(udp(HOST, 5000, PEER, 53), entries=(50, 0))
    assert nat.counter("held") == 2


def test_asks_with_the_address_of_that_link(nat_of):
    nat = nat_of(outside=["192.0.2.1/24", "198.18.0.1/24"], answers_arp=False)
    got = nat.inside(udp(HOST, 1, "198.18.0.9", 2)).one
    assert (got[ARP].psrc, got[ARP].pdst) == ("198.18.0.1", "198.18.0.9")
