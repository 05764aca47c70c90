# SPDX-License-Identifier: BSD-3-Clause
"""Channels appear while a port is open. No frame may bypass the port."""
import pytest
from lib.forwarder import Forwarder
from lib.namespaces import Star, wait_until
from lib.probe import opened
from lib.wire import Wire
from scapy.all import IP, UDP, Ether, raw

N_FRAMES = 256
POOL = (24576,)


def flows():
    """Frames that a device with several channels spreads over them."""
    return [raw(Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01") /
                IP(src="10.77.0.1", dst="10.77.0.2") /
                UDP(sport=10000 + 7 * i, dport=9) / bytes(32))
            for i in range(N_FRAMES)]


@pytest.fixture
def one_channel(lab):
    """A star whose interfaces may have four channels, and have one."""
    star = Star(lab, queues=4)
    set_channels(star, 1)
    return star


def set_channels(star, n):
    for host, port in zip(star.hosts, star.ports):
        # A veth sends to no more channels than its peer has.
        steps = [(star.middle, port, "rx"), (host, "h0", "tx")]
        for end, name, side in steps if n > 1 else reversed(steps):
            end.run("ethtool", "-L", name, side, n)


def unserved(probe):
    return probe.stats()["device_drops"]["queue_without_socket"]


def test_frames_without_a_socket_are_dropped_and_counted(lab, one_channel):
    star = one_channel
    probe = opened(lab, star.middle, "xdp:p0")
    inside = lab.closing(Wire(star.middle, "p0"))
    wire = lab.closing(Wire(star.hosts[0], "h0"))
    set_channels(star, 4)
    wait_until("the event", lambda: "queues" in
               probe.do("link", 0)["changed"])
    wire.send_all(flows())
    n = probe.do("hold", 0, N_FRAMES, 1000)["n"]
    assert 0 < n < N_FRAMES
    wait_until("the rest to be counted", lambda: unserved(probe) ==
               N_FRAMES - n)
    assert inside.receive(1, 0) == []  # none went around
    probe.do("release")


@pytest.mark.short
def test_queues_are_added_for_new_channels(lab, one_channel):
    star = one_channel
    probe = opened(lab, star.middle, "xdp:p0,ring=1024", pool=POOL)
    wire = lab.closing(Wire(star.hosts[0], "h0"))
    assert probe.do("add-queues", 0)["n"] == 0
    set_channels(star, 4)
    wait_until("the event", lambda: "queues" in
               probe.do("link", 0)["changed"])
    assert probe.do("add-queues", 0)["n"] == 3
    info = probe.do("info", 0)
    assert info["rxqs"] == 4 and info["channels"] == 4
    wire.send_all(flows())
    assert probe.do("hold", 0, N_FRAMES, 5000)["n"] == N_FRAMES
    used = [queue["rx"]["delivered"] for queue in probe.stats()["queues"]]
    assert len(used) == 4 and all(used), used
    probe.do("release")


def test_queues_are_added_after_a_rename(lab, one_channel):
    """The port may not know the new name yet."""
    star = one_channel
    probe = opened(lab, star.middle, "xdp:p0,ring=1024", pool=POOL)
    star.middle.run("ethtool", "-L", "p0", "tx", 4)
    set_channels(star, 4)
    wait_until("the event", lambda: "queues" in
               probe.do("link", 0)["changed"])
    star.middle.run("ip", "link", "set", "p0", "name", "renamed")
    assert probe.do("add-queues", 0)["n"] == 3
    info = probe.do("info", 0)
    assert info["rxqs"] == 4 and info["txqs"] == 4


def test_queues_are_not_added_without_pages(lab, one_channel):
    star = one_channel
    probe = opened(lab, star.middle, "xdp:p0")
    set_channels(star, 4)
    wait_until("the event", lambda: "queues" in
               probe.do("link", 0)["changed"])
    assert "the pool needs at least" in probe.refused("add-queues", 0)
    assert probe.do("info", 0)["rxqs"] == 1


def test_a_partial_port_leaves_new_channels_to_the_kernel(lab, one_channel):
    star = one_channel
    probe = opened(lab, star.middle, "xdp:p0,partial")
    inside = lab.closing(Wire(star.middle, "p0"))
    wire = lab.closing(Wire(star.hosts[0], "h0"))
    set_channels(star, 4)
    assert probe.do("link", 0)["changed"] == []
    assert probe.do("add-queues", 0)["n"] == 0
    wire.send_all(flows())
    n = probe.do("hold", 0, N_FRAMES, 1000)["n"]
    assert 0 < n < N_FRAMES
    assert len(inside.receive(N_FRAMES - n)) == N_FRAMES - n
    assert unserved(probe) == 0
    probe.do("release")


def test_a_forwarder_serves_new_channels(lab, one_channel):
    star = one_channel
    forwarder = Forwarder(lab, star.middle, *star.ports,
                          options=["--ring", 1024])
    wires = [lab.closing(Wire(host, "h0")) for host in star.hosts]
    set_channels(star, 4)
    for port in star.ports:
        assert forwarder.err.wait(lambda line, port=port: line ==
                                  f"mr-l2fwd: xdp:{port}: 3 rx queues added", 15)
    wires[0].send_all(flows())
    assert len(wires[1].receive(N_FRAMES)) == N_FRAMES
    final = forwarder.stop()
    assert len(final["ports"][0]["queues"]) == 4
    assert sum(queue["rx"]["delivered"] > 0
               for queue in final["ports"][0]["queues"]) == 4


def test_added_queues_count_no_frames_of_rules(lab, one_channel):
    star = one_channel
    for host in star.hosts:  # it receives what is redirected to it
        host.run("ethtool", "-K", "h0", "gro", "on")
    forwarder = Forwarder(lab, star.middle, *star.ports,
                          options=["--ring", 1024, "--pool-pages", 49152,
                                   "--mode", "patch", "--offload", "on"])
    wires = [lab.closing(Wire(host, "h0")) for host in star.hosts]
    sent = flows()
    wires[1].send_all(sent)  # the rules of the second port count them
    assert len(wires[0].receive(N_FRAMES)) == N_FRAMES
    set_channels(star, 4)
    for port in star.ports:
        assert forwarder.err.wait(lambda line, port=port: line ==
                                  f"mr-l2fwd: xdp:{port}: 3 rx queues added", 15)
    final = forwarder.stop()
    offloaded = [[queue["rx"]["offloaded"] for queue in port["queues"]]
                 for port in final["ports"]]
    assert offloaded == [[0, 0, 0, 0], [N_FRAMES, 0, 0, 0]]


def test_a_forwarder_without_pages_reports_the_drops(lab, one_channel):
    star = one_channel
    forwarder = Forwarder(lab, star.middle, *star.ports,
                          options=["--pool-pages", 16384])
    wires = [lab.closing(Wire(host, "h0")) for host in star.hosts]
    set_channels(star, 4)
    for port in star.ports:
        assert forwarder.err.wait(lambda line, port=port: line.startswith(
            f"mr-l2fwd: xdp:{port}: frames of the new channels are dropped"), 15)
    wires[0].send_all(flows())
    n = len(wires[1].receive(N_FRAMES, 1))
    assert 0 < n < N_FRAMES
    drops = forwarder.stop()["ports"][0]["device_drops"]
    assert drops["queue_without_socket"] == N_FRAMES - n
