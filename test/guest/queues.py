# SPDX-License-Identifier: BSD-3-Clause
"""Several queues of a NIC in a guest: each has its flows."""
from forwarder import end_l2fwd, start_l2fwd
from lib import invariants
from probe import check_idle, opened
from traffic import WINDOW, Traffic, own_flow, run_all

N_FRAMES = 3000
# Fewer than a ring has places: none is lost.
N_HASHED = 200
HASHED_LIMIT_MS = 30000


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
        queues = probe.do("hashes", 0, N_HASHED, HASHED_LIMIT_MS,
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
