# SPDX-License-Identifier: BSD-3-Clause
"""No frame is lost without a name.

Each test sends a number of frames from outside and looks for every one of
them: at the other host, or under the name of a drop.
"""
import signal
import time

import pytest
from lib import invariants
from lib.forwarder import Forwarder
from lib.namespaces import Star, wait_until
from lib.wire import TEST_TYPE, Wire, both, frame, number_of

RING = 256


def lost_before_queues(port):
    return sum(port["device_drops"].values())


def check_way(final, n_sent, n_arrived, source=0, sink=1):
    """n_sent into port source, n_arrived out of port sink: none unnamed."""
    entry, leave = final["ports"][source], final["ports"][sink]
    rx_drops = sum(invariants.drops(entry, "rx").values())
    assert n_sent == invariants.total(entry, "rx", "delivered") + rx_drops + \
        lost_before_queues(entry), (n_sent, entry)
    lost = invariants.lost_by_name(final, source)
    tx_drops = sum(invariants.drops(leave, "tx").values())
    assert n_sent == n_arrived + sum(lost.values()) + tx_drops, (
        n_sent, n_arrived, lost, invariants.drops(leave, "tx"))
    assert n_arrived == invariants.total(leave, "tx", "completed")


def stall_and_send(forwarder, source, frames, gap=64):
    """Send while the forwarder is stopped; how many were sent."""
    forwarder.process.send_signal(signal.SIGSTOP)
    n = source.send_all(frames, gap)
    time.sleep(0.05)
    forwarder.process.send_signal(signal.SIGCONT)
    return n


@pytest.mark.parametrize("options", ["", ",attach=generic"])
def test_losses_of_a_stalled_forwarder_are_named(lab, star, options):
    source, sink = both(lab, star)
    forwarder = Forwarder(lab, star.middle, *(p + options for p in star.ports),
                          options=["--ring", RING])
    n, got = 0, []
    for _ in range(3):
        n += stall_and_send(forwarder, source,
                            (frame(100, i) for i in range(n, n + 1000)))
        some = sink.receive_until_quiet()
        assert len(some) >= RING
        got += some
    n += source.send_all(frame(100, i) for i in range(n, n + 100))
    got += sink.receive(100)
    final = forwarder.stop()
    assert not sink.lost()
    check_way(final, n, len(got))
    # In order, and none twice.
    numbers = [number_of(f) for f in got]
    assert numbers == sorted(set(numbers)) and numbers[-100:] == [
        *range(n - 100, n)]
    lost = invariants.lost_by_name(final, 0)
    assert sum(lost.values()) >= 3 * (1000 - 2 * RING - 64), lost
    assert set(lost) <= {"rx no_buffer", "rx ring_full"}, lost


def test_jumbo_frames_are_lost_whole(lab):
    """Several entries per frame, and rings that end in the middle of one."""
    star = Star(lab, mtu=9000)
    source, sink = both(lab, star)
    forwarder = Forwarder(lab, star.middle, *star.ports,
                          options=["--ring", RING])
    n = 0
    got = []
    for _ in range(3):
        n += stall_and_send(forwarder, source, (
            frame(9000 - i % 7, i) for i in range(n, n + 400)), gap=16)
        got += sink.receive_until_quiet()
    n += source.send_all((frame(9014, i) for i in range(n, n + 50)), gap=16)
    got += sink.receive(50)
    final = forwarder.stop()
    assert not sink.lost()
    for data in got:
        i = number_of(data)
        assert data == frame(9014 if i >= 1200 else 9000 - i % 7, i)
    check_way(final, n, len(got))
    assert len(got) >= 3 * 60 + 50
    assert sum(invariants.lost_by_name(final, 0).values()) > 0


@pytest.mark.short
def test_four_queues_count_each_for_itself(lab, end):
    star = Star(lab, queues=4)
    # The sink's rings have room for all that the forwarder's had.
    source, sink = (end(host, "h0,ring=512") for host in star.hosts)
    forwarder = Forwarder(lab, star.middle, *star.ports,
                          options=["--ring", 64])
    forwarder.process.send_signal(signal.SIGSTOP)
    n_of = [10, 100, 200, 1000]
    for queue, n in enumerate(n_of):
        source.send((frame(100, i) for i in range(n)), queue)
    forwarder.process.send_signal(signal.SIGCONT)
    got = sink.receive_until_quiet()
    final = forwarder.stop()
    check_way(final, sum(n_of), len(got))
    queues = [queue["rx"] for queue in final["ports"][0]["queues"]]
    assert queues[0]["delivered"] == n_of[0]  # less than a ring
    for rx, n in zip(queues, n_of):
        assert min(n, 64) <= rx["delivered"] <= rx["received"] <= n, queues


def test_a_peer_that_is_down_is_a_drop_of_the_device(lab, star):
    source = both(lab, star)[0]
    forwarder = Forwarder(lab, star.middle, *star.ports)
    star.hosts[1].ip("link", "set", "h0", "down")
    n = source.send_all(frame(100, i) for i in range(300))
    wait_until("all are dropped", lambda: invariants.drops(
        forwarder.next_snapshot()["ports"][1], "tx")["device"] == 300)
    star.hosts[1].ip("link", "set", "h0", "up")
    sink = lab.closing(Wire(star.hosts[1], "h0", TEST_TYPE))
    n += source.send_all(frame(100, i) for i in range(300, 400))
    got = sink.receive(100)
    assert [number_of(f) for f in got] == list(range(300, 400))
    final = forwarder.stop()
    assert invariants.drops(final["ports"][1], "tx")["device"] == 300
    check_way(final, n, 100)


def test_frames_longer_than_the_buffer_are_named(lab, star):
    """Chunks of 2 KiB; then the MTU rises, and the host sends 3000 bytes."""
    source, sink = both(lab, star)
    forwarder = Forwarder(lab, star.middle,
                          *(f"{p},sg=off" for p in star.ports),
                          options=["--page-bytes", 2048])
    star.middle.ip("link", "set", "p0", "mtu", 3000)
    star.hosts[0].ip("link", "set", "h0", "mtu", 3000)
    sent = [frame(3000 if i % 3 == 0 else 1000, i) for i in range(300)]
    n = source.send_all(sent)
    got = sink.receive(200)
    assert got == [f for f in sent if len(f) == 1000]
    final = forwarder.stop()
    check_way(final, n, 200)
    assert invariants.lost_by_name(final, 0) == {"rx no_buffer": 100}


def test_frames_longer_than_the_way_out_are_named(lab, star):
    source, sink = both(lab, star)
    forwarder = Forwarder(lab, star.middle, *star.ports)
    star.middle.ip("link", "set", "p1", "mtu", 1000)
    wait_until("the new MTU is known", lambda: source.send(frame(1500)) or
               invariants.drops(forwarder.next_snapshot()["ports"][1],
                          "tx")["too_long"] > 0)
    before = forwarder.next_snapshot()["ports"][1]
    n = source.send_all(frame(1500 if i % 3 == 0 else 900, i)
                        for i in range(300))
    assert n == 300
    assert len(sink.receive_until_quiet()) >= 200
    final = forwarder.stop()
    assert invariants.drops(final["ports"][1], "tx")["too_long"] == \
        invariants.drops(before, "tx")["too_long"] + 100


def test_counts_begin_at_zero_for_each_run(lab, star):
    """What the device counted before us is none of ours."""
    source, sink = both(lab, star)
    for _ in range(2):
        forwarder = Forwarder(lab, star.middle, *star.ports,
                              options=["--ring", RING])
        n = stall_and_send(forwarder, source,
                           (frame(100, i) for i in range(700)))
        got = sink.receive_until_quiet()
        check_way(forwarder.stop(), n, len(got))


def test_accounting_holds_when_it_ends_under_load(lab, star):
    source, sink = both(lab, star)
    forwarder = Forwarder(lab, star.middle, *star.ports)
    for i in range(3000):
        source.send(frame(200, i))
    final = forwarder.stop()  # checks the invariants; frames are still under way
    got = sink.receive_until_quiet()
    delivered = invariants.total(final["ports"][0], "rx", "delivered")
    assert 0 < delivered <= 3000
    assert invariants.total(final["ports"][1], "tx", "completed") == len(
        got) + sink.lost()
