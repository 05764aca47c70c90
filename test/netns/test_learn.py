# SPDX-License-Identifier: BSD-3-Clause
"""Mode learn: three ports of one queue each, on two workers."""
import time

import pytest
from lib import invariants, talk
from lib.forwarder import Forwarder
from lib.namespaces import Star, wait_until
from lib.wire import BROADCAST, TEST_TYPE, Wire, frame, mac

N_HOSTS = 3


class Bridge:
    """Three hosts at a learning bridge, each with a raw socket."""

    def __init__(self, lab):
        self.star = Star(lab, n_hosts=N_HOSTS)
        self.wires = [lab.closing(Wire(host, "h0", TEST_TYPE))
                      for host in self.star.hosts]
        self.forwarder = Forwarder(
            lab, self.star.middle, *self.star.ports,
            options=["--mode", "learn", "--workers", 2, "--ring", 256])

    def send(self, i, src, dst, to):
        """Send a frame from host i; it must come to hosts `to`, once each."""
        data = frame(100, i, dst=dst, src=src)
        self.wires[i].send(data)
        for k in to:
            assert self.wires[k].receive(1) == [data], f"not to host {k}"
        # Long enough for a wrong copy, which would take the same way.
        for k, wire in enumerate(self.wires):
            assert not wire.receive(1, 0.1 if k == 0 else 0), f"host {k}"

    def introduce(self):
        """Let the bridge learn mac(i) behind each host i."""
        for i in range(N_HOSTS):
            self.send(i, mac(i), BROADCAST,
                      [k for k in range(N_HOSTS) if k != i])

    def stop(self):
        return self.forwarder.stop()


@pytest.fixture
def bridge(lab):
    return Bridge(lab)


@pytest.mark.short
def test_kernels_talk_through_the_bridge(bridge):
    star = bridge.star
    for i, sender in enumerate(star.hosts):
        for k, receiver in enumerate(star.hosts):
            if i != k:
                assert talk.ping(sender, star.address(k)) == 3
                talk.tcp(sender, receiver, star.address(k), 1 << 20)
    final = bridge.stop()
    assert len(final["workers"]) == 2
    assert invariants.worker_total(final, "handed_off") > 0
    assert final["fdb"]["entries"] == N_HOSTS
    # A small ring may be full for a moment; nothing else may be lost.
    assert {name for name, n in invariants.worker_drops(final).items() if n} <= {
        "tx_full", "handoff_full"}


def test_no_frame_is_doubled_or_lost_in_many(bridge):
    """From all sides at once: each broadcast reaches both others, once."""
    n = 300
    bridge.introduce()
    sent = {i: [frame(100, i << 16 | number, src=mac(i))
                for number in range(n)] for i in range(N_HOSTS)}
    for number in range(0, n, 30):
        for i, wire in enumerate(bridge.wires):
            wire.send_all(sent[i][number:number + 30])
        time.sleep(0.005)
    for i, wire in enumerate(bridge.wires):
        got = wire.receive((N_HOSTS - 1) * n)
        assert wire.lost() == 0
        for k in range(N_HOSTS):
            of_k = [data for data in got if data[6:12] == mac(k)]
            assert of_k == ([] if k == i else sent[k]), (i, k, len(of_k))
    bridge.stop()


def test_one_deleted_port_leaves_a_bridge_of_two(bridge):
    bridge.introduce()
    bridge.star.middle.ip("link", "delete", "p2")
    wait_until("it is gone", lambda: bridge.forwarder.next_snapshot()[
        "ports"][2]["link"]["gone"])
    bridge.wires.pop()
    bridge.send(0, mac(0), mac(1), [1])
    bridge.send(1, mac(1), BROADCAST, [0])
    final = bridge.stop()
    assert invariants.drops(final["ports"][2], "tx")["port_gone"] >= 1
