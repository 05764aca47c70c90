# SPDX-License-Identifier: BSD-3-Clause
"""Several workers: which of them a frame belongs to, and hairpins between the
subscribers of two."""
import pytest
from scapy.all import ICMP, IP, TCP, UDP, raw

from harness import INSIDE, LOOPED, OUTSIDE, ping, tcp, udp
from rfc import PEER, cut, error

OURS, MAPPED = "192.0.2.1", "192.0.2.77"
FRAGMENT = 2  # the lane to where the fragments of a datagram meet
RECEIVER, N = 3, 4


def worker_of(address, n=2):
    """nat_steer_subscriber()"""
    addr = int.from_bytes(bytes(map(int, address.split("."))), "little")
    value = (addr * 0x9e3779b1 ^ addr >> 15) * 0x85ebca6b & 0xffffffff
    return value * n >> 32


def of_port(port):
    """The worker that has an external port."""
    return port // 64 % N


@pytest.fixture
def one_of_four(nat_of):
    """It knows all static mappings."""
    return nat_of(shard=RECEIVER, n_shards=N, one_to_one=[(MAPPED, "10.0.0.7")],
                  forwards=[("tcp", OURS, 8000, 8009, "10.0.0.9", 80)])


def test_frames_from_inside_belong_to_their_source(one_of_four):
    counts = [0] * N
    for i in range(256):
        host = f"10.0.0.{i}"
        worker = worker_of(host, N)
        counts[worker] += 1
        for port in range(1, 1000, 333):
            for proto in (udp, tcp):
                assert one_of_four.owner(INSIDE, proto(
                    host, port, f"203.0.113.{port % 256}", 53)) == \
                    (worker, INSIDE)
    # Of addresses next to each other, no worker has far too many.
    assert all(40 <= n <= 90 for n in counts)


def test_frames_from_outside_belong_to_the_slice_of_the_port(one_of_four):
    for port in range(1024, 65536, 610):
        for packet in (udp(PEER, 53, OURS, port), ping(PEER, OURS, port)):
            assert one_of_four.owner(OUTSIDE, packet) == \
                (of_port(port), OUTSIDE)
    gre = IP(raw(IP(src=PEER, dst=OURS, proto=47) / bytes(8)))
    assert one_of_four.owner(OUTSIDE, gre)[0] == 0xc0000201 % N  # no ports


def test_fixed_ends_belong_to_their_hosts(one_of_four):
    for port in range(7999, 8011):
        for packet, worker in (
                (tcp(PEER, 9, OURS, port), worker_of("10.0.0.9", N)
                 if 8000 <= port <= 8009 else of_port(port)),
                (udp(PEER, 9, OURS, port), of_port(port)),
                (udp(PEER, 9, MAPPED, port), worker_of("10.0.0.7", N)),
                # Excluded: the answer is to the address itself.
                (udp(PEER, 9, "10.0.0.5", port), worker_of("10.0.0.5", N))):
            assert one_of_four.owner(OUTSIDE, packet)[0] == worker


def test_icmp_errors_belong_to_the_worker_of_the_embedded_packet(one_of_four):
    for port in range(2000, 3000, 100):
        about = raw(udp(OURS, port, PEER, 53))
        assert one_of_four.owner(OUTSIDE, error(
            "203.0.113.9", OURS, about))[0] == of_port(port)
    about = raw(udp(PEER, 53, "10.0.0.5", 2000))
    assert one_of_four.owner(INSIDE, error(
        "10.0.0.254", PEER, about, 11, 0))[0] == worker_of("10.0.0.5", N)


def test_fragments_of_a_datagram_meet(one_of_four):
    pieces = cut(udp(PEER, 53, OURS, 2000, bytes(60)))
    owners = {one_of_four.owner(OUTSIDE, piece) for piece in pieces}
    (_, lane), = owners
    assert lane == FRAGMENT
    # There, the first one is looked at as any other.
    assert one_of_four.owner(OUTSIDE, pieces[0], FRAGMENT) == \
        (of_port(2000), OUTSIDE)


def test_malformed_frames_have_an_owner(one_of_four):
    packet = error(PEER, OURS, raw(udp(OURS, 2000, PEER, 53)))
    frame = bytearray(raw(one_of_four.ether(OUTSIDE, packet)))
    for n in range(len(frame) + 1):
        for side in (INSIDE, OUTSIDE):
            assert one_of_four.owner(side, bytes(frame[:n]))[0] < N
    for at, value in ((13, 6), (14, 0x44)):  # another type, a short header
        odd = frame[:at] + bytes([value]) + frame[at + 1:]
        assert one_of_four.owner(OUTSIDE, bytes(odd))[0] == RECEIVER


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
    assert both.nats[0].drops == {"icmp_no_mapping": 1}


def test_ping_of_a_one_to_one(both_of):
    both = both_of(one_to_one=[(MAPPED, OTHER)])
    got = both.hairpin(0, ping(HOST, MAPPED))
    assert (got.src, got.dst) == (OURS, OTHER)
    pong = IP(src=OTHER, dst=got.src) / ICMP(type=0, id=got[ICMP].id) / b"x"
    back = both.hairpin(1, pong)
    assert (back.src, back.dst, back[ICMP].id) == (MAPPED, HOST, 7)


def test_a_forward_belongs_to_the_worker_of_its_host(both_of):
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
