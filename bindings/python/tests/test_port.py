# SPDX-License-Identifier: BSD-3-Clause
"""Pools, ports and queues: errors, owners, children, asyncio."""

import asyncio
import copy
import errno
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from host import limit

import millrace
from millrace import Burst, Error, Pool, Port, _millrace


def in_thread(call: Callable[[], object]) -> Error | None:
    """What a call raises in another thread."""
    raised: list[Error] = []

    def run() -> None:
        try:
            call()
        except Error as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(limit(20))
    return raised[0] if raised else None


def test_errors_have_number_and_reason(pool: Pool) -> None:
    with pytest.raises(Error, match="no driver 'nothing'") as caught:
        Port(pool, "nothing:")
    assert isinstance(caught.value, OSError)
    assert caught.value.errno == errno.ENODEV
    with pytest.raises(Error) as caught:
        millrace.Pool(page_bytes=3000)
    assert caught.value.errno == errno.EINVAL
    with pytest.raises(OverflowError):
        millrace.Pool(1 << 40)


def test_text_that_is_cut_within_a_character(pool: Pool) -> None:
    for i in range(3):
        with pytest.raises(Error) as caught:
            Port(pool, "pcap:rx=/" + "n" * i + "\u20ac" * 130)
        text = str(caught.value)
        assert text.endswith("\u2026") and "\ufffd" not in text
    with Port(pool, "pair:n" + "\u20ac" * 20) as port:
        assert port.info()["name"].startswith("pair:n\u20ac")


def test_stats_and_info(pool: Pool, pair: tuple[Port, Port]) -> None:
    near, far = pair
    near.tx().send(pool.burst([b"x" * 60] * 3))
    far.rx().receive().release()
    near.tx().collect()
    stats = far.rx().stats()
    assert (stats["received"], stats["delivered"], stats["bytes"]) == (3, 3, 180)
    assert set(stats["drops"].values()) == {0}
    assert near.tx().stats()["completed"] == 3
    assert near.info()["name"] == "pair:x"
    assert near.link()["is_up"]
    assert pool.stats()["n_in_flight"] == 0


def test_pool_is_sized_for_its_ports() -> None:
    specs = ["pair:x,ring=4096"] * 2
    n_pages = Pool.size_for(specs)
    assert Pool.size_for(specs, n_pages=1000) >= n_pages + 1000
    with Pool(n_pages) as pool, Port(pool, specs[0]), Port(pool, specs[1]):
        assert pool.stats()["n_pages"] == n_pages
    with pytest.raises(Error, match="none"):
        Pool.size_for(["pair:x", "none:"])
    with pytest.raises(TypeError, match="not a string"):
        Pool.size_for("pair:x")


def test_stats_by_name(pair: tuple[Port, Port], pool: Pool) -> None:
    near, far = pair
    near.tx().send(pool.burst([b"x" * 60] * 3))
    far.rx().receive().release()
    stats = far.stats()
    assert stats == json.loads(far.stats_json())
    assert stats["port"] == far.info()["name"]
    assert stats["device_drops"] == dict(far.device_drops())
    assert stats["queues"][0]["rx"] == far.rx().stats()
    assert stats["queues"][0]["tx"] == far.tx().stats()
    assert "queue 0 rx received 3\n" in far.stats_text()


def test_default_pool_grows_for_its_ports() -> None:
    with Pool() as pool, Port(pool, "pair:x,ring=4096,queues=4"):
        assert pool.stats()["n_pages"] > 8192


def test_use_after_close() -> None:
    pool = Pool(2048)
    port = Port(pool, "null:")
    rx, tx = port.rx(), port.tx()
    burst = rx.receive()
    with pytest.raises(Error, match="in use"):
        pool.close()
    port.close()
    port.close()
    for call in (rx.receive, rx.arm, rx.stats, tx.collect, port.poll, port.info, port.link):
        with pytest.raises(ValueError, match="port is closed"):
            call()
    with pytest.raises(ValueError, match="port is closed"):
        tx.send(burst)
    assert len(burst) == 256
    burst.release()
    pool.close()
    for use in (pool.stats, lambda: pool.burst([b"x"]), lambda: Port(pool, "null:")):
        with pytest.raises(ValueError, match="pool is closed"):
            use()


def test_wrong_arguments(pool: Pool) -> None:
    with Port(pool, "null:") as port, Pool(512) as other:
        with pytest.raises(IndexError, match="has 1 such queues, not 1"):
            port.rx(1)
        for n in (0, 257):
            with pytest.raises(ValueError, match="a burst has 1 to 256"):
                port.rx().receive(n)
        with pytest.raises(ValueError, match="another pool"):
            port.tx().send(other.burst([b"x" * 60]))
        with pytest.raises(TypeError):
            port.tx().send(b"x")  # type: ignore[arg-type]


def test_objects_cannot_be_forged(pool: Pool) -> None:
    """One that was not made by its constructor would have no port or pool."""
    with Port(pool, "null:") as port:
        with port.rx() as rx, pytest.raises(TypeError):
            rx.__class__ = millrace.TxQueue  # type: ignore[assignment]

        class Queue(_millrace.Queue): ...

        kinds: list[Any] = [Pool, Port, Burst, Queue, millrace.RxQueue]
        for kind in kinds:
            with pytest.raises(TypeError):
                object.__new__(kind)
        for kind in kinds[1:]:
            with pytest.raises(TypeError):
                kind()
        for thing in (pool, port, port.rx(), port.rx().receive()):
            with pytest.raises(TypeError):
                copy.copy(thing)


def test_queue_has_one_thread_at_a_time(pool: Pool) -> None:
    with Port(pool, "null:") as port:
        with port.rx() as rx:
            rx.receive().release()
            error = in_thread(port.rx().receive)
            assert error is not None
            assert error.errno == errno.EBUSY
            assert "another thread uses rx queue 0" in str(error)
        assert in_thread(lambda: port.rx().receive().release()) is None
        with pytest.raises(Error, match="another thread"):
            port.rx().receive()
        port.rx().release()
        port.rx().receive().release()


def test_child_cannot_use_what_it_inherits(pool: Pool, pair: tuple[Port, Port]) -> None:
    near, _ = pair
    burst = pool.burst([b"x" * 60])
    view = burst[0]
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for call in (near.rx().receive, near.poll, pool.stats, lambda: pool.burst([b"x"])):
                with pytest.raises(Error, match="parent process"):
                    call()
            assert view[0] == 0
            burst.release()
            near.close()
            pool.close()
            with Pool(512) as own, Port(own, "null:") as port:
                assert len(port.rx().receive()) == 256
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert view == b"x" * 60
    burst.release()


async def receive(port: Port, n: int) -> list[bytes]:
    frames: list[bytes] = []
    async for burst in port:
        frames += map(bytes, burst)
        if len(frames) >= n:
            break
    return frames


def test_asyncio_sleeps_until_frames_arrive(pool: Pool, pair: tuple[Port, Port]) -> None:
    near, far = pair

    async def run() -> list[bytes]:
        receiver = asyncio.create_task(receive(far, 20))
        for i in range(20):
            while far.rx().stats()["delivered"] < i:
                await asyncio.sleep(0)
            near.tx().send(pool.burst([b"%60d" % i]))
        return await asyncio.wait_for(receiver, limit(20))

    assert asyncio.run(run()) == [b"%60d" % i for i in range(20)]


def test_asyncio_can_be_cancelled(pair: tuple[Port, Port]) -> None:
    async def run() -> None:
        await asyncio.wait_for(receive(pair[0], 1), 0.01)

    with pytest.raises(TimeoutError):
        asyncio.run(run())


def test_asyncio_has_one_task_per_port(pool: Pool, pair: tuple[Port, Port]) -> None:
    near, far = pair

    async def run() -> None:
        first = asyncio.create_task(receive(far, 2))
        await asyncio.sleep(0.01)
        with pytest.raises(RuntimeError, match="another task"):
            await receive(far, 1)
        for i in range(2):  # what ended the iteration leaves nothing behind
            near.tx().send(pool.burst([b"%60d" % i] * 2))
            assert len(await asyncio.wait_for(first, limit(20))) == 2
            first = asyncio.create_task(receive(far, 2))
            await asyncio.sleep(0.01)
        first.cancel()

    asyncio.run(run())


def test_asyncio_notices_that_the_port_is_closed(pair: tuple[Port, Port]) -> None:
    near, _ = pair

    async def run() -> None:
        receiver = asyncio.create_task(receive(near, 1))
        await asyncio.sleep(0.01)
        with near:
            pass
        with pytest.raises(ValueError, match="port is closed"):
            await asyncio.wait_for(receiver, limit(20))

    asyncio.run(run())


def test_asyncio_lets_others_run(pool: Pool) -> None:
    """Though null: always has frames."""

    async def run(port: Port) -> None:
        await asyncio.wait_for(receive(port, 1 << 62), 0.01)

    with Port(pool, "null:") as port, pytest.raises(TimeoutError):
        asyncio.run(run(port))


def test_asyncio_ends_with_the_capture(pool: Pool, tmp_path: Path) -> None:
    frames = [b"%60d" % i for i in range(300)]
    with Port(pool, f"pcap:tx={tmp_path}/a.pcap") as port:
        for i in range(0, 300, 100):
            port.tx().send(pool.burst(frames[i : i + 100]))
    with Port(pool, f"pcap:rx={tmp_path}/a.pcap") as port:
        assert asyncio.run(asyncio.wait_for(receive(port, 301), limit(20))) == frames
        with pytest.raises(ValueError, match="18 to 256"):
            port.rx().receive(17)
