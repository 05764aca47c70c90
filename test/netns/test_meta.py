# SPDX-License-Identifier: BSD-3-Clause
"""Metadata: what veth's kfuncs report of received frames, and the times that
the kernel takes of sent ones."""
import struct
import time

import pytest
from lib.probe import opened
from lib.wire import Wire, frame, mac

L4 = 8  # MR_HASH_L4
TX_TIME = {"tx_ns": 0}


def udp(port):
    """A frame with UDP over IPv4 to a port."""
    head = mac(2) + mac(1) + struct.pack(
        "!HBBHHHBBH", 0x0800, 0x45, 0, 46, 0, 0, 64, 17, 0)
    head += bytes((10, 88, 0, 2, 10, 88, 0, 9))
    return (head + struct.pack("!HHHH", 1000, port, 26, 0)).ljust(60, b"x")


@pytest.fixture
def wire(lab, star):
    """The kernel finds the flow of what a socket sends, not of a port's."""
    return lab.closing(Wire(star.hosts[0], "h0"))


def metas_of(receiver, wire, frames):
    """The metadata of each frame, sent from the other end of the veth."""
    wire.send_all(frames)
    got = receiver.receive_all(len(frames))
    assert [data for data, _, _ in got] == frames
    return [meta for _, meta, _ in got]


@pytest.mark.parametrize("options", [
    "", ",filter=udp", ",sg=on,mtu=3000"])
@pytest.mark.short
def test_the_hash_is_of_the_flow(star, wire, end, options):
    port = end(star.middle, "p0,meta" + options)
    frames = [udp(5000 + i % 10) for i in range(100)]
    metas = metas_of(port, wire, frames)
    assert [meta["hash_type"] for meta in metas] == [L4] * 100
    assert all(meta.keys() == {"valid", "rss_hash", "hash_type"}
               for meta in metas)
    hashes = {data: meta["rss_hash"] for data, meta in zip(frames, metas)}
    assert [hashes[data] for data in frames] == [m["rss_hash"] for m in metas]
    assert len(set(hashes.values())) == 10
    assert "metadata" not in port.port.info()["why"]


def test_a_frame_with_a_tag_has_both(star, wire, end, on_vlan):
    """The tag is inserted in the frame, and the hash stays in the metadata."""
    on_vlan(star.hosts[0])
    port, way_out = end(star.middle, "p0,meta"), end(star.middle, "p1")
    got = end(star.hosts[1], "h0")
    data = udp(5000)
    tagged = data[:12] + struct.pack("!HH", 0x8100, 3 << 13 | 5) + data[12:]
    wire.send(data)
    [(received, meta, _)] = port.receive_all(1)
    assert received == tagged and meta["hash_type"] == L4
    way_out.send([received], meta=lambda i: meta)
    assert got.receive(1) == [tagged]
    # The tag of metadata is written into the frame: it has two then.
    way_out.send([received], meta=lambda i: {"vlan_tci": 7})
    assert got.receive(1) == [data[:12] + b"\x81\0\0\x07" + tagged[12:]]


@pytest.mark.parametrize("spec", ["p0", "p0,meta,attach=generic"])
def test_without_the_option_or_the_driver_there_is_none(star, wire, end,
                                                        spec):
    star.hosts[0].run("ethtool", "-K", "h0", "txvlan", "off")
    port = end(star.middle, spec)
    metas = metas_of(port, wire, [udp(5000)] * 10)
    assert metas == [{"valid": 0}] * 10
    assert ("no metadata: hash, receive time (generic attach)" in
            port.port.info()["why"]) == ("meta" in spec)


@pytest.mark.parametrize("options", ["", ",vlan=5"])
def test_without_perfmon(lab, star, wire, on_vlan, options):
    """The hash is reported, and the tag is in the frame."""
    on_vlan(star.hosts[0])
    wrap = ["setpriv", "--bounding-set=-perfmon,-sys_admin",
            "--inh-caps=-perfmon,-sys_admin"]
    probe = opened(lab, star.middle, "p0,meta" + options, wrap=wrap)
    wire.send(udp(5000))
    assert probe.do("metas", 0, 1, 5000)["metas"][0]["type"] == L4
    wire.send(udp(5000))
    assert probe.do("hold", 0, 1, 5000)["n"] == 1
    probe.do("release")


def test_an_unknown_value_is_refused(star, end):
    with pytest.raises(OSError, match="meta"):
        end(star.middle, "p0,meta=maybe")


@pytest.mark.parametrize("options", ["", ",csum=off", ",attach=generic",
                                     ",sg=on,mtu=3000"])
def test_a_sent_frame_has_a_time(star, end, options):
    """In copy mode the kernel takes it, at completion."""
    port = end(star.middle, "p0,meta" + options)
    tx = port.port.tx()
    before = time.clock_gettime_ns(time.CLOCK_TAI)
    times = []
    for at in range(0, 500, 100):
        port.send((frame(60, at + i) for i in range(100)),
                  meta=lambda i: {**TX_TIME, "mark": at + i})
        times += tx.times()
    assert [one["mark"] for one in times] == list(range(500))
    assert {one["tx_clock"] for one in times} == {time.CLOCK_TAI}
    seen = [before, *(one["tx_ns"] for one in times),
            time.clock_gettime_ns(time.CLOCK_TAI)]
    assert seen == sorted(seen)
    assert tx.stats()["events"]["time_lost"] == 0


def test_no_time_without_the_option(star, end):
    port = end(star.middle, "p0")
    port.send([frame(60)] * 10, meta=lambda i: TX_TIME)
    tx = port.port.tx()
    assert tx.times() == []
    assert tx.stats()["events"]["time_lost"] == 0
