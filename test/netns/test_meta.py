# SPDX-License-Identifier: BSD-3-Clause
"""Metadata: what veth's kfuncs report of received frames, and the times that
the kernel takes of sent ones."""
import struct

import pytest
from lib.probe import Probe, opened
from lib.wire import Wire, mac

HASH = 1  # MR_META_RSS_HASH
L4 = 8  # MR_HASH_L4
CLOCK_TAI = 11


def udp(port):
    """A frame with UDP over IPv4 to a port."""
    head = mac(2) + mac(1) + struct.pack(
        "!HBBHHHBBH", 0x0800, 0x45, 0, 46, 0, 0, 64, 17, 0)
    head += bytes((10, 88, 0, 2, 10, 88, 0, 9))
    return (head + struct.pack("!HHHH", 1000, port, 26, 0)).ljust(60, b"x")


def received(probe, wire, frames):
    """The metadata of each frame, sent from the other end of the veth."""
    for data in frames:
        wire.send(data)
    return probe.do("metas", 0, len(frames), 5000)["metas"]


@pytest.mark.parametrize("options", [
    "", ",filter=udp", ",sg=on,mtu=3000"])
def test_the_hash_is_of_the_flow(lab, star, options):
    probe = opened(lab, star.middle, "p0,meta" + options)
    wire = lab.closing(Wire(star.hosts[0], "h0"))
    ports = [5000 + i % 10 for i in range(100)]
    metas = received(probe, wire, [udp(port) for port in ports])
    assert {meta["valid"] for meta in metas} == {HASH}
    assert {meta["type"] for meta in metas} == {L4}
    hashes = {port: meta["hash"] for port, meta in zip(ports, metas)}
    assert [hashes[port] for port in ports] == [m["hash"] for m in metas]
    assert len(set(hashes.values())) == 10
    assert "metadata" not in probe.do("info", 0)["why"]


def test_a_frame_with_a_tag_has_both(lab, star, on_vlan):
    """The tag goes into the frame, behind the hash."""
    on_vlan(star.hosts[0])
    probe = opened(lab, star.middle, "p0,meta,ring=256",
                   "p1,ring=256")
    wire = lab.closing(Wire(star.hosts[0], "h0"))
    got = lab.closing(Wire(star.hosts[1], "h0"))
    data = udp(5000)
    meta, = received(probe, wire, [data])
    assert meta["valid"] == HASH and meta["type"] == L4
    probe.begin("forward", 0, 1, 1)
    wire.send(data)
    tag = struct.pack("!HH", 0x8100, 3 << 13 | 5)
    assert got.receive(1) == [data[:12] + tag + data[12:]]
    assert probe.end_forward() == 1


def test_without_the_option_there_is_none(lab, star):
    probe = opened(lab, star.middle, "p0")
    wire = lab.closing(Wire(star.hosts[0], "h0"))
    metas = received(probe, wire, [udp(5000)] * 10)
    assert {meta["valid"] for meta in metas} == {0}


def test_generic_attach_says_that_there_is_none(lab, star):
    star.hosts[0].run("ethtool", "-K", "h0", "txvlan", "off")
    probe = opened(lab, star.middle, "p0,meta,attach=generic")
    wire = lab.closing(Wire(star.hosts[0], "h0"))
    metas = received(probe, wire, [udp(5000)] * 10)
    assert {meta["valid"] for meta in metas} == {0}
    assert "no metadata: hash, receive time (generic attach)" in \
        probe.do("info", 0)["why"]


def test_without_perfmon(lab, star):
    wrap = ["setpriv", "--bounding-set=-perfmon,-sys_admin",
            "--inh-caps=-perfmon,-sys_admin"]
    probe = opened(lab, star.middle, "p0,meta", wrap=wrap)
    wire = lab.closing(Wire(star.hosts[0], "h0"))
    meta, = received(probe, wire, [udp(5000)])
    assert meta["valid"] == HASH


def test_a_value_that_is_none_is_refused(lab, star):
    probe = Probe(lab, star.middle)
    probe.do("pool", 4096)
    assert "meta" in probe.refused("open", "p0,meta=maybe")


@pytest.mark.parametrize("options", ["", ",csum=off", ",attach=generic",
                                     ",sg=on,mtu=3000"])
def test_a_sent_frame_has_a_time(lab, star, options):
    """In copy mode the kernel takes it, at completion."""
    probe = opened(lab, star.middle, "p0,meta" + options)
    got = probe.do("times", 0, 500, 20000)
    assert [one["mark"] for one in got["times"]] == list(range(500))
    assert {one["clock"] for one in got["times"]} == {CLOCK_TAI}
    times = [one["ns"] for one in got["times"]]
    assert got["before"] <= times[0] and times[-1] <= got["after"]
    assert times == sorted(times)
    assert probe.tx_events(0)["time_lost"] == 0


def test_no_time_without_the_option(lab, star):
    probe = opened(lab, star.middle, "p0")
    answer = probe.ask("times", 0, 10, 200)
    assert not answer["ok"] and answer["times"] == []
    probe.flush()
    assert probe.tx_events(0)["time_lost"] == 0
