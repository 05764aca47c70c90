# SPDX-License-Identifier: BSD-3-Clause
"""Bursts: the life of their views, and what they copy."""

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import millrace
from millrace import Burst, Pool, Port

FRAMES = [bytes([i]) * (60 + i) for i in range(40)]


def test_frames_arrive_as_sent(pool: Pool, pair: tuple[Port, Port]) -> None:
    near, far = pair
    with pool.burst(FRAMES) as burst:
        assert near.tx().send(burst) == len(FRAMES)
        assert len(burst) == 0
    with far.rx().receive() as burst:
        assert [bytes(frame) for frame in burst] == FRAMES
        assert burst[-1] == FRAMES[-1]
        with pytest.raises(IndexError):
            burst[len(FRAMES)]


def test_long_frames_have_several_entries(pool: Pool) -> None:
    frame = bytes(range(256)) * 40
    with Port(pool, "pair:y,sg=on,ring=64") as near, Port(pool, "pair:y") as far:
        with pool.burst([frame, b"x" * 60]) as burst:
            assert [len(view) for view in burst] == [3968, 3968, 2304, 60]
            assert near.tx().send(burst) == 4
        with far.rx().receive() as burst:
            assert b"".join(burst) == frame + b"x" * 60
            burst.keep(bytes([0, 1, 1, 1]))  # the frame's first entry decides
            assert [len(view) for view in burst] == [60]


def test_rest_stays_with_sender(pool: Pool, pair: tuple[Port, Port]) -> None:
    near, _ = pair
    with pool.burst([b"%60d" % i for i in range(100)]) as burst:
        n = near.tx().send(burst)
        assert n == 64
        assert len(burst) == 36
        assert burst[0] == b"%60d" % n


def test_views_end_with_release(pool: Pool) -> None:
    burst = pool.burst(FRAMES)
    view = burst[3]
    view[0] = 7
    assert burst[3][0] == 7
    burst.release()
    with pytest.raises(ValueError, match="released memoryview"):
        view[0]
    burst.release()


def test_views_end_with_send_and_keep(pool: Pool, pair: tuple[Port, Port]) -> None:
    with pool.burst(FRAMES) as burst:
        view = burst[0]
        burst.keep(bytes(20) + bytes([1]) * 20)
        with pytest.raises(ValueError, match="released memoryview"):
            view[0]
        view = burst[0]
        assert view == FRAMES[20]
        pair[0].tx().send(burst)
        with pytest.raises(ValueError, match="released memoryview"):
            view[0]


@pytest.mark.parametrize("use", [lambda view: view[2:], memoryview])
def test_slices_hold_frames(pool: Pool, use: type) -> None:
    """A view that was made of a view cannot be ended, so its bytes stay."""
    burst = pool.burst(FRAMES)
    first = burst[0]
    other = use(burst[1])
    for call in (burst.release, lambda: burst.keep(bytes(40))):
        with pytest.raises(BufferError, match="1 views"):
            call()
    assert other[-1] == 1
    with pytest.raises(ValueError, match="released memoryview"):
        first[0]
    del other
    burst.release()
    assert pool.stats()["n_in_flight"] == 0


def test_arrays_hold_frames(pool: Pool) -> None:
    numpy = pytest.importorskip("numpy")
    burst = pool.burst(FRAMES)
    last = burst[-1]
    array = numpy.frombuffer(burst[5], "u1")
    with pytest.raises(BufferError):
        burst.release()
    assert (array == 5).all()
    del array
    burst.release()
    with pytest.raises(ValueError, match="released memoryview"):
        last[0]


def test_dropped_burst_lives_as_long_as_its_views(pool: Pool) -> None:
    view = pool.burst(FRAMES)[2]
    assert pool.stats()["n_in_flight"] == len(FRAMES)
    assert view == FRAMES[2]
    with pytest.raises(millrace.Error, match="in use"):
        pool.close()
    del view
    assert pool.stats()["n_in_flight"] == 0


def test_views_make_no_cycle(pool: Pool) -> None:
    gc.disable()
    try:
        burst = pool.burst(FRAMES)
        gone = weakref.ref(burst[0])
        del burst
        assert gone() is None
    finally:
        gc.enable()


def test_weak_reference_that_looks_back(pool: Pool) -> None:
    """Code that runs while views end may use the burst."""
    burst = pool.burst(FRAMES)
    again: list[memoryview] = []
    watch = weakref.ref(burst[0], lambda _: again.append(burst[1]))
    with pytest.raises(BufferError):
        burst.release()
    assert watch() is None
    assert again[0] == FRAMES[1]
    burst.release()
    with pytest.raises(ValueError, match="released memoryview"):
        again[0][0]


def test_keep_takes_masks_of_its_length(pool: Pool) -> None:
    with pool.burst(FRAMES) as burst:
        with pytest.raises(ValueError, match="39 bytes for 40"):
            burst.keep(bytes(39))
        burst.keep(bytes(i % 2 for i in range(40)))
        assert [frame[0] for frame in burst] == list(range(1, 40, 2))


def test_empty_burst_outlives_pool() -> None:
    pool = Pool(512)
    burst = pool.burst([])
    pool.close()
    burst.keep(b"")
    burst.release()
    assert burst.copy_headers(bytearray(), 14) == len(burst) == 0


def test_headers_and_entries(pool: Pool) -> None:
    numpy = pytest.importorskip("numpy")
    from millrace import arrays

    frame = bytes(range(12)) + b"\x08\x00" + bytes([0x45]) + bytes(11) + bytes([10, 0, 0, 1, 10, 0])
    with pool.burst([frame, *FRAMES]) as burst:
        table = arrays.headers(burst, arrays.IPV4)
        entries = arrays.entries(burst)
        small = numpy.empty(40, arrays.IPV4)
        with pytest.raises(ValueError, match="do not fit"):
            arrays.headers(burst, arrays.IPV4, small)
        with pytest.raises(ValueError, match="0 bytes"):
            burst.copy_headers(bytearray(10), 0)
        with pytest.raises(BufferError):
            burst.copy_headers(bytes(10), 1)
    assert entries["len"].tolist() == [len(frame), *map(len, FRAMES)]
    assert table["type"][0] == 0x800
    assert table["src_ip"][0] == 0x0A000001
    assert table["dst_ip"][0] == 0x0A000000  # the frame ends in its middle
    assert (table["protocol"][1:] == numpy.arange(40)).all()


def test_headers_may_be_copied_within_the_burst(pool: Pool) -> None:
    with pool.burst([bytes(range(60))]) as burst:
        burst.copy_headers(burst[0][4:], 40)
        assert burst[0][:44] == bytes(range(4)) + bytes(range(40))


def closing(pool: Pool) -> Iterator[bytes]:
    pool.close()
    yield b"x"


@pytest.mark.parametrize(
    "frames",
    [
        *(lambda _: [b""], lambda _: [bytes(80000)], lambda _: [b"x"] * 257, lambda _: [1]),
        *(lambda _: [bytes(5000)] * 129, id, closing),
    ],
)
def test_bad_frames(frames: Callable[[Pool], Any]) -> None:
    with millrace.Pool(512) as pool, pytest.raises((ValueError, TypeError)):
        pool.burst(frames(pool))


def test_empty_pool() -> None:
    with millrace.Pool(512) as pool:
        held: list[Burst] = []
        with pytest.raises(millrace.Error, match="no free page"):
            while True:
                held.append(pool.burst([b"x"] * 64))
        assert pool.stats()["n_free"] == 0
        del held
        assert pool.stats()["n_free"] == 512
