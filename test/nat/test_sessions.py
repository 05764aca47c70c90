# SPDX-License-Identifier: BSD-3-Clause
"""Sessions that are listed, filtered, ended on request, and restored."""
import errno

import pytest
from scapy.all import IP, raw

from harness import CLEAR, LIST, SAVE, STATIC, session, tcp
from rfc import HOST, OTHER, OURS, OURS2, PEER, PEER2, Flow, opened

N = 20  # hosts
OPTIONS = {"other_protocols": True, "filtering_tcp": "address"}


def fill(nat):
    """Hosts with a mapping of each protocol, and with further sessions of TCP;
    how many sessions that are. Permits are none."""
    n = 0
    for i in range(N):
        host = f"10.0.0.{2 + i}"
        opened(nat, "udp", host, i)
        opened(nat, "icmp", host, i)
        flow = Flow(nat, "tcp", host, i)
        for port in range(80, 81 + i % 5):
            flow.out(peer_port=port)
            flow.back(peer_port=port, flags="S")
            n += 1
    nat.inside(IP(raw(IP(src=HOST, dst=PEER, proto=47) / bytes(8))))
    return n + 2 * N + 1


def ends(one):
    """What no two sessions of a list share."""
    return tuple(one.shown()[name] for name in (
        "proto", "inside", "inside_port", "outside", "outside_port", "remote",
        "remote_port"))


def test_every_session_is_listed_once(nat_of):
    nat = nat_of(**OPTIONS)
    n = fill(nat)
    by_one, by_many = ([ends(one) for one in nat.list(n_max)]
                       for n_max in (1, 300))
    assert len(by_one) == len(set(by_one)) == n
    assert sorted(by_one) == sorted(by_many)


@pytest.mark.parametrize("block", [0, 64])
def test_listed_sessions_can_be_restored(nat_of, block):
    """Into another translator, as at a restart; in any order."""
    options = {**OPTIONS, "ports_block": block, "ports_max_blocks": 4}
    old, nat = nat_of(**options), nat_of(**options)
    fill(old)
    old.advance(30)
    nat.advance(5000)
    before = sorted(old.list(), key=ends)
    for one in reversed(before):
        assert nat.restore(one) == 0
    for one, other in zip(before, sorted(nat.list(), key=ends), strict=True):
        for name in ("tcp_state", "age_s", "left_s", "n_out", "n_in"):
            assert getattr(one, name) == getattr(other, name)
        assert ends(one) == ends(other)
        assert nat.restore(one) == errno.EEXIST
    n = nat.counter("mappings")
    nat.advance(30)
    assert nat.counter("mappings") == n
    nat.advance(1)
    assert nat.counter("mappings") == n - N  # ICMP
    nat.advance(9000)
    for name in ("mappings", "sessions", "subscribers"):
        assert nat.counter(name) == 0


UDP_ENDS = (HOST, 5), (OURS, 5000), (PEER, 53)
# What no NAT with such a configuration has saved.
WRONG = [
    {"inside": ("11.0.0.1", 5)}, {"outside": (OURS2, 5000)},
    {"outside": (OURS, 1023)}, {"proto": 47}, {"flags": STATIC},
    {"tcp_state": 2}, {"proto": 6}, {"proto": 6, "tcp_state": 8},
    {"age_s": 2 ** 32 - 1}]


def test_sessions_that_cannot_be_restored_are_refused(nat_of):
    nat = nat_of(limits_mappings=2)

    def restore(**more):
        return nat.restore(session(**{
            **dict(zip(("inside", "outside", "remote"), UDP_ENDS)), "age_s": 10,
            **more}))

    for wrong in WRONG:
        assert restore(**wrong) == errno.EINVAL, wrong
    assert nat.counter("subscribers") == 0
    assert restore() == 0
    assert restore() == errno.EEXIST
    assert restore(inside=(OTHER, 5)) == errno.EADDRINUSE
    assert restore(outside=(OURS, 5001)) == errno.EADDRINUSE
    assert nat.counter("subscribers") == 1
    assert restore(inside=(OTHER, 6), outside=(OURS, 5001)) == 0
    assert restore(inside=(OTHER, 7), outside=(OURS, 5001)) == errno.ENOSPC


def test_further_sessions_are_restored_within_limits(nat_of):
    nat = nat_of(limits_sessions=1)

    def restore(port):
        return nat.restore(session((HOST, 5), (OURS, 5000), (PEER, port),
                                   proto=6, tcp_state=2))

    assert [restore(port) for port in (53, 54, 54, 55)] == \
        [0, 0, errno.EEXIST, errno.ENOSPC]


# Requests to a worker, and what they choose.

def test_freed_ports_wait_unless_they_are_released_at_once(nat):
    n = 1034  # more than a round releases
    for port in range(n):
        opened(nat, "udp", HOST, port)
    # A snapshot takes fewer rounds than a list.
    assert nat.ask(SAVE) == (n, 4) and nat.ask(LIST) == (n, 18)
    assert nat.clear() == nat.counter("hold_down") == n
    opened(nat, "udp", HOST, 1)
    assert nat.clear(now=True) == 1
    assert nat.counter("hold_down") == 0


def test_clearing_by_filter_ends_all_sessions_of_a_mapping(nat):
    flow = opened(nat, "tcp", peer_port=80)
    flow.out(PEER2, 80)
    opened(nat, "udp")
    assert nat.clear("proto=icmp") == 0
    assert nat.clear("proto=tcp,port=80") == 1
    assert (nat.counter("mappings"), nat.counter("sessions")) == (1, 0)
    assert nat.clear() == 1
    assert nat.counter("mappings") == 0


def test_a_forward_stays_but_its_sessions_end(nat_of):
    nat = nat_of(filtering_tcp="address",
                 forwards=[("tcp", OURS, 2000, 2000, OTHER, 80)])
    assert nat.clear() == 0
    flow = Flow(nat, "tcp", OTHER, 80)
    for peer in (PEER, PEER2):
        flow.out(peer, 1)
    assert flow.is_open(PEER, 1, flags="S")
    assert nat.clear() == 1 and nat.counter("sessions") == 0
    assert nat.outside(tcp(PEER, 1, OURS, 2000)).one[IP].dst == OTHER


@pytest.mark.parametrize("text, has", [
    *((text, 1) for text in (
        "", "all", "inside=10.0.0.2", "inside=10.0.0.0/24", "outside=192.0.2.1",
        "remote=198.51.100.0/24", "port=5", "port=5000", "port=53",
        "proto=udp", "proto=17",
        "inside=10.0.0.2,proto=udp,port=53,remote=198.51.100.7")),
    *((text, 0) for text in (
        "inside=10.0.0.6", "inside=10.0.1.0/24", "outside=192.0.2.2",
        "remote=10.0.0.2", "port=54", "proto=tcp", "proto=1",
        "proto=udp,port=54"))])
def test_all_conditions_of_a_filter_hold(nat, text, has):
    assert nat.restore(session(*UDP_ENDS)) == 0
    assert nat.ask(LIST, text)[0] == has


@pytest.mark.parametrize("text, why", [
    ("port", "'port' is not a condition"),
    ("prot=udp", "'prot' is not one of: inside, outside, remote"),
    ("port=0", "'0' is not a whole number from 1 to 65535"),
    ("proto=sctpx", "'sctpx' is not one of udp, tcp, icmp, or a number"),
    ("inside=10.0.0.1/24", "has bits set beyond its prefix length"),
    ("port=53,", "'' is not a condition"), ("inside=" + "1" * 68, "too long")])
def test_wrong_filters_are_refused(nat, text, why):
    with pytest.raises(ValueError, match=why):
        nat.ask(CLEAR, text)
