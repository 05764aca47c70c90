# SPDX-License-Identifier: BSD-3-Clause
"""Hairpins between the subscribers of two workers."""
import pytest
from scapy.all import ICMP, IP, TCP, UDP, raw

from harness import LOOPED, OUTSIDE, ping, tcp, udp

OURS, MAPPED = "192.0.2.1", "192.0.2.77"


def worker_of(address):
    """nat_steer_subscriber() of two."""
    addr = int.from_bytes(bytes(map(int, address.split("."))), "little")
    value = (addr * 0x9e3779b1 ^ addr >> 15) * 0x85ebca6b & 0xffffffff
    return value >> 31


def host_of(worker, others=()):
    """The first address of a worker's subscribers."""
    return next(a for a in (f"10.0.0.{i}" for i in range(2, 250))
                if worker_of(a) == worker and a not in others)


HOST, OTHER = host_of(0), host_of(1)
ROUTER = host_of(1, [OTHER])


class Both:
    """Two workers; what one has for the other goes there."""

    def __init__(self, nat_of, **options):
        self.nats = [nat_of(shard=i, n_shards=2, **options) for i in (0, 1)]

    def hairpin(self, worker, packet):
        """Sent inside, of a worker; what the other one sends inside."""
        assert not self.nats[worker].inside(packet)
        frame, = self.nats[worker].looped()
        return self.other(worker, frame)

    def other(self, worker, frame):
        """What becomes of a frame from a worker at the other one."""
        out = self.nats[1 - worker].send(OUTSIDE, frame, flags=LOOPED)
        assert not self.nats[1 - worker].looped() and not out.outside
        packet, = out.inside
        return packet[IP]


@pytest.fixture
def both_of(nat_of):
    return lambda **options: Both(nat_of, **options)


def test_errors_about_hairpins(both_of):
    both = both_of()
    ends = [both.nats[w].inside(udp(h, 5000, "198.51.100.7", 53)).one[UDP].sport
            for w, h in enumerate((HOST, OTHER))]
    got = both.hairpin(0, udp(HOST, 5000, OURS, ends[1]))
    assert (got.src, got[UDP].sport, got.dst) == (OURS, ends[0], OTHER)
    error = IP(src=OTHER, dst=OURS) / ICMP(type=3, code=3) / raw(got)
    back = both.hairpin(1, error)
    assert (back.src, back.dst, back[ICMP].type) == (OURS, HOST, 3)
    about = IP(raw(back[ICMP].payload))
    assert (about.src, about[UDP].sport) == (HOST, 5000)
    assert (about.dst, about[UDP].dport) == (OURS, ends[1])


def test_an_error_about_nothing_is_dropped_by_name(both_of):
    both = both_of()
    port = both.nats[1].inside(
        udp(OTHER, 5000, "198.51.100.7", 53)).one[UDP].sport
    lost = udp(OURS, 2048 if port != 2048 else 2049, OTHER, 5000)
    assert not both.nats[1].inside(
        IP(src=OTHER, dst=OURS) / ICMP(type=3, code=3) / raw(lost))
    frame, = both.nats[1].looped()
    assert not both.nats[0].send(OUTSIDE, frame, flags=LOOPED)
    assert both.nats[0].drops == {"icmp_embedded": 1}


def test_ping_of_a_one_to_one(both_of):
    both = both_of(one_to_one=[(MAPPED, OTHER)])
    got = both.hairpin(0, ping(HOST, MAPPED))
    assert (got.src, got.dst) == (OURS, OTHER)
    pong = IP(src=OTHER, dst=got.src) / ICMP(type=0, id=got[ICMP].id) / b"x"
    back = both.hairpin(1, pong)
    assert (back.src, back.dst, back[ICMP].id) == (MAPPED, HOST, 7)


def test_a_forward_is_its_hosts_workers(both_of):
    """TCP's state is where the host's segments go, and nowhere else."""
    both = both_of(forwards=[("tcp", OURS, 8080, 8080, OTHER, 80)])
    got = both.hairpin(0, tcp(HOST, 5000, OURS, 8080, "S"))
    assert (got.dst, got[TCP].dport) == (OTHER, 80)
    back = both.hairpin(1, tcp(OTHER, 80, OURS, got[TCP].sport, "SA"))
    assert (back.src, back[TCP].sport, back.dst) == (OURS, 8080, HOST)
    both.hairpin(0, tcp(HOST, 5000, OURS, 8080, "A"))
    of_forward = [[s for s in nat.sessions if s["inside_port"] == 80]
                  for nat in both.nats]
    assert of_forward[0][0]["remote"] == "0.0.0.0"
    assert of_forward[1][0]["remote"] == OURS


def test_at_home_nothing_is_handed_over(both_of):
    both = both_of(forwards=[("udp", OURS, 8080, 8080, ROUTER, 80)])
    out = both.nats[1].inside(udp(OTHER, 5000, OURS, 8080))
    assert not both.nats[1].looped()
    assert out.one[IP].dst == ROUTER
