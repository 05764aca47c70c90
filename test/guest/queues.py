# SPDX-License-Identifier: BSD-3-Clause
"""Several queues of a NIC in a guest: each has its flows."""
import struct

from forwarder import end_l2fwd, start_l2fwd
from lib import invariants
from probe import check_idle, opened
from traffic import WINDOW, Traffic, own_flow, run_all

N_FRAMES = 3000
# Fewer than a ring has places: none is lost.
N_HASHED = 200
LIMIT_MS = 60000
N_FLOWS = 24
# enum mr_rss_keep
KEEP_KEY = 1


def spread(guest, wires, specs, n_queues):
    """Many flows both ways; each worker and each queue had its share."""
    pid = start_l2fwd(guest, f"--queues {n_queues}", "--workers 2",
                      "--cores 0,1", *specs)
    frames = [own_flow(i, 60 + i % 1400) for i in range(N_FRAMES)]
    one, other = wires
    ways = [Traffic(one, other, frames, WINDOW),
            Traffic(other, one, frames, WINDOW)]
    run_all(ways, len(frames))
    final = end_l2fwd(guest, pid)
    for way in ways:
        assert sorted(way.received) == sorted(frames)
    for port in final["ports"]:
        assert invariants.total(port, "rx", "received") == len(frames)
        assert len(port["queues"]) == n_queues
        for queue in port["queues"]:
            assert queue["rx"]["received"] > N_FRAMES / n_queues / 5, port
    assert len(final["workers"]) == 2
    for worker in final["workers"]:
        assert worker["entries"] > N_FRAMES / 5, final["workers"]


def hashed(guest, wire, spec):
    """Each frame has come by the queue that its hash says."""
    waiting = [own_flow(i, 60) for i in range(N_HASHED)]

    def send():
        if waiting and wire.try_send(waiting[-1]):
            waiting.pop()

    with opened(guest, spec, pool=16384) as probe:
        queues = probe.do("hashes", 0, N_HASHED, LIMIT_MS,
                          meanwhile=send)["queues"]
        for queue in queues:
            assert queue["fitting"] == queue["n"] > 0, queues
        # And out by the same one.
        frames = [own_flow(i, 60) for i in range(N_HASHED)]
        probe.begin("forward", 0)
        got = Traffic(wire, wire, frames, WINDOW).run(len(frames))
        probe.end_forward()
        assert sorted(got) == sorted(frames)
        for queue in check_idle(probe)["queues"]:
            assert queue["tx"]["completed"] > 0, queue


def reverse(data):
    """The frame that goes the other way."""
    return data[6:12] + data[:6] + data[12:26] + data[30:34] + data[26:30] + \
        struct.pack("!HH", *reversed(struct.unpack("!HH", data[34:38]))) + \
        data[38:]


def queue_of(guest, probe, data):
    """The queue that a frame arrives at."""
    before = [q["rx"]["received"] for q in probe.stats()["queues"]]
    assert guest.wires["nic0"].try_send(data)
    assert probe.do("hold", 0, 1, LIMIT_MS)["n"] == 1
    probe.do("release")
    after = [q["rx"]["received"] for q in probe.stats()["queues"]]
    moved = [b - a for a, b in zip(before, after)]
    assert sorted(moved) == [0] * (len(moved) - 1) + [1], moved
    return moved.index(1)


def ways(guest, probe):
    """Of many flows: how many have both directions on one queue, and queues."""
    same, seen = 0, set()
    for i in range(N_FLOWS):
        data = own_flow(i * 37, 100)
        queues = queue_of(guest, probe, data), queue_of(guest, probe,
                                                        reverse(data))
        same += queues[0] == queues[1]
        seen.update(queues)
    return same, seen
