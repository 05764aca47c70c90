# SPDX-License-Identifier: BSD-3-Clause
"""Metadata of bursts, and settings of devices. On real ones: test/netns."""

import itertools
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from millrace import Error, Flag, Hash, Meta, Offload, Pool, Port, _millrace

FRAMES = [bytes([i]) * 60 for i in range(80)]
TAG = b"\x81\0\x20\5"


def test_members_are_set_with_their_bits(pool: Pool) -> None:
    with pool.burst(FRAMES[:2]) as burst:
        assert burst.meta(0) == {"valid": 0}
        burst.set_meta(1, mark=7, rx_ns=1 << 63)
        assert burst.meta(1) == {
            "valid": Meta.MARK | Meta.RX_TIME,
            "mark": 7,
            "rx_ns": 1 << 63,
            "rx_clock": 0,
        }
        burst.set_meta(1, vlan_tci=5)
        assert burst.meta(1) == {"valid": Meta.VLAN, "vlan_tci": 5, "vlan_proto": 0}
        burst.set_meta(1, mark=7, valid=Meta.VLAN)
        assert burst.meta(1)["valid"] == Meta.MARK | Meta.VLAN
        assert burst.meta(0) == {"valid": 0}


def test_tags_are_inserted_before_the_rest(pool: Pool, pair: tuple[Port, Port]) -> None:
    """The metadata goes with its frame: past the full ring, and past keep()."""
    near, far = pair
    with pool.burst(FRAMES) as burst:
        for i in range(len(FRAMES)):
            burst.set_meta(i, vlan_tci=0x2005) if i % 3 == 0 else burst.set_meta(i)
        burst.keep(bytes(i % 2 for i in range(len(FRAMES))))
        wanted = [
            frame[:12] + TAG + frame[12:] if i % 3 == 0 else frame
            for i, frame in enumerate(FRAMES)
            if i % 2
        ]
        got: list[bytes] = []
        while len(got) < len(wanted):
            near.tx().send(burst)
            with far.rx().receive() as arrived:
                got += map(bytes, arrived)
    assert got == wanted
    assert near.tx().stats()["events"]["vlan_software"] == sum(f[12:16] == TAG for f in got)


def test_rest_keeps_its_metadata(pool: Pool, pair: tuple[Port, Port]) -> None:
    with pool.burst(FRAMES) as burst:
        for i in range(len(FRAMES)):
            burst.set_meta(i, mark=i)
        n = pair[0].tx().send(burst)
        assert 0 < n < len(FRAMES)
        marks = [burst.meta(i)["mark"] for i in range(len(burst))]
    assert marks == list(range(n, len(FRAMES)))


def test_arrays_of_metadata(pool: Pool) -> None:
    numpy = pytest.importorskip("numpy")
    from millrace import arrays

    with pool.burst(FRAMES[:3]) as burst:
        assert not arrays.metas(burst)["valid"].any()
        burst.set_meta(2, rss_hash=0xFFFFFFFF, hash_type=Hash.L4, csum_start_bytes=34)
        table = arrays.metas(burst)
        assert table["rss_hash"].tolist()[2] == 0xFFFFFFFF
        assert table["hash_type"][2] == Hash.L4
        assert (table["valid"] & Meta.CSUM != 0).tolist() == [False, False, True]
        # What a sum begins at makes it partial.
        flags = arrays.entries(burst)["flags"]
        assert (flags & Flag.CSUM_PARTIAL != 0).tolist() == [False, False, True]
        assert arrays.begins(burst).all()
        with pytest.raises(ValueError, match="do not fit"):
            arrays.metas(burst, numpy.empty(2, arrays.META))


@pytest.mark.parametrize(
    "members", [{"no": 1}, {"mark": 1 << 32}, {"vlan_tci": 1 << 16}, {"mark": -1}, {"mark": "x"}]
)
def test_wrong_members(pool: Pool, members: dict[str, Any]) -> None:
    with pool.burst(FRAMES[:1]) as burst:
        burst.set_meta(0, mark=3)
        with pytest.raises((TypeError, OverflowError)):
            burst.set_meta(0, **members)
        assert burst.meta(0) == {"valid": Meta.MARK, "mark": 3}
        for call in (burst.meta, burst.set_meta):
            with pytest.raises(IndexError):
                call(1)


def test_argument_that_releases_the_burst(pool: Pool) -> None:
    burst = pool.burst(FRAMES[:1])

    class Releases:
        def __index__(self) -> int:
            burst.release()
            return 0

    with pytest.raises(IndexError):
        burst.set_meta(0, mark=Releases())  # type: ignore[arg-type]


def test_received_metadata_is_of_the_frames(pool: Pool) -> None:
    with Port(pool, "null:") as port, port.rx().receive(8, meta=True) as burst:
        assert [burst.meta(i) for i in range(8)] == [{"valid": 0}] * 8
        assert port.tx().times() == []


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda port: port.set(promisc=True), "promiscuous"),
        (lambda port: port.set(allmulti=1), "multicast"),
        (lambda port: port.set(filter="udp"), "filter"),
        (lambda port: port.set(mtu_bytes=1400), "MTU"),
        (lambda port: port.set(mac=b"\2" * 6), "MAC address"),
        (lambda port: port.set(mac_filter=b"\2" * 12), "MAC"),
        (lambda port: port.set_rss(), "RSS"),
        (lambda port: port.set_rss(table=b"\0\7"), "queue 7: it has 1 rx queues"),
        (lambda port: port.set_rss(fields=9), "fields has an unknown value"),
        (lambda port: port.steer(protocol=17, dst_port=53, dst_port_mask=65535), "steering"),
        (lambda port: port.steer(src=b"\n\0\0\1"), "need a protocol"),
        (lambda port: port.unsteer(0), "steering"),
        (lambda port: port.open_kernel(), "driver null"),
    ],
)
def test_refused_settings_have_reasons(
    pool: Pool, call: Callable[[Port], object], reason: str
) -> None:
    with Port(pool, "null:") as port, pytest.raises(Error, match=reason):
        call(port)
    with pytest.raises(ValueError, match="port is closed"):
        call(port)


@pytest.mark.parametrize(
    "call",
    [
        lambda port: port.set(no=1),
        lambda port: port.set(1),
        lambda port: port.set(filter=1),
        lambda port: port.set(filter="a\0b"),
        lambda port: port.set(mac=b"\2" * 5),
        lambda port: port.set(mac_filter=b"\2" * 7),
        lambda port: port.set(mtu_bytes=1 << 32),
        lambda port: port.set_rss(table=bytes(1025)),
        lambda port: port.set_rss(fields="x"),
        lambda port: port.steer(1),
        lambda port: port.steer(no=1),
        lambda port: port.steer(src=b"12345"),
        lambda port: port.steer(dst_mac=b"1234567"),
        lambda port: port.unsteer("x"),
    ],
)
def test_wrong_settings(pool: Pool, call: Callable[[Port], object]) -> None:
    with Port(pool, "null:") as port, pytest.raises((TypeError, ValueError, OverflowError)):
        call(port)


def test_without_a_way_to_the_kernel_frames_are_lost(pool: Pool) -> None:
    with Port(pool, "null:") as port, pool.burst(FRAMES[:3]) as burst, Pool(512) as other:
        with pytest.raises(ValueError, match="another pool"):
            port.to_kernel(other.burst([b"x"]))
        view = burst[0]
        assert port.to_kernel(burst) == len(burst) == 0
        with pytest.raises(ValueError, match="released memoryview"):
            view[0]


def test_counters_of_port_and_device(pool: Pool, pair: tuple[Port, Port]) -> None:
    near, far = pair
    near.tx().send(pool.burst(FRAMES[:3]))
    far.rx().receive().release()
    stats = far.stats()
    assert (stats["port"], stats["device_drops"]) == ("pair:x", {})
    assert [queue["rx"]["delivered"] for queue in stats["queues"]] == [3]
    assert near.stats()["queues"][0]["tx"] == near.tx().stats()
    assert near.device_stats() == near.device_drops() == []
    assert Offload(near.info()["offloads"]) & Offload.TSO4 == 0


@pytest.mark.parametrize("flag", [Flag.MORE, Meta.VLAN | Meta.MARK, Hash.UDP, Offload.LRO])
def test_flags_can_be_sent_to_processes(flag: object) -> None:
    assert pickle.loads(pickle.dumps(flag)) == flag


def test_layout_has_no_gaps_that_overlap() -> None:
    """Of struct mr_meta, whose members are read from a table."""
    spans = sorted(
        (at, at + int(kind.removeprefix("u"))) for kind, at in _millrace.meta_layout.values()
    )
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans))
    assert spans[-1][1] <= 64
