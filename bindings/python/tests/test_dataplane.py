# SPDX-License-Identifier: BSD-3-Clause
"""Data planes: workers, ways to stop, errors, and that nothing is left."""

import asyncio
import errno
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from host import limit

import millrace
from millrace import Burst, Dataplane, Error, Idle, Port, RxQueue, Worker

ENDS = ("pair:a,ring=64", "pair:b,ring=64")  # of two cables; the tests have the others
two_cores = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")


def forward(worker: Worker, rx: RxQueue, burst: Burst) -> None:
    worker.send(1 - rx.port_idx, burst)


def wait_until(is_so: Callable[[], bool]) -> None:
    end_s = time.monotonic() + limit(20)
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.001)


@contextmanager
def running(dp: Dataplane, call: Callable[[Worker, RxQueue, Burst], object]) -> Iterator[None]:
    """run() in a thread of its own, which ends with the block."""
    thread = threading.Thread(target=dp.run, args=(call,))
    thread.start()
    try:
        yield
    finally:
        dp.stop()
        thread.join(limit(20))
        assert not thread.is_alive()


def check_pages(dp: Dataplane) -> None:
    """Without frames of the program, rings have what is not free. None was freed twice."""
    stats = dp.pool.stats()
    assert stats["n_free"] + stats["n_in_flight"] == stats["n_pages"]
    assert stats["free_invalid"] == stats["free_double"] == 0


def test_forwards_between_its_ports() -> None:
    with Dataplane(*ENDS, n_workers=1, safety=1, kept_pages=512) as dp:
        assert [port.info()["name"] for port in dp.ports] == ["pair:a", "pair:b"]
        assert all(isinstance(port, Port) for port in dp.ports)
        with Port(dp.pool, "pair:a") as a, Port(dp.pool, "pair:b") as b, running(dp, forward):
            for i in range(20):
                a.tx().send(dp.pool.burst([b"%60d" % i] * 3))
                got: list[bytes] = []
                while len(got) < 3:
                    with b.rx().receive() as burst:
                        got += map(bytes, burst)
                assert got == [b"%60d" % i] * 3
        check_pages(dp)
        stats = dp.stats()
        assert stats["ports"][0]["queues"][0]["rx"]["delivered"] == 60
        assert stats["ports"][1]["queues"][0]["tx"]["accepted"] == 60
        assert stats["workers"][0]["rounds"] == dp.workers[0].stats()["rounds"] >= 20
        assert stats["pool"]["n_pages"] == dp.pool.stats()["n_pages"]
        assert "queue 0 rx delivered 60\n" in dp.text()
        assert f"worker 0 rounds {stats['workers'][0]['rounds']}\n" in dp.text()


@two_cores
def test_each_worker_has_a_thread_and_queues() -> None:
    """They also allocate, and free frames of others, at once."""
    threads: dict[int, set[int]] = {0: set(), 1: set()}
    counts: list[Counter[str]] = [Counter(), Counter()]
    last: list[Burst] = []

    def work(worker: Worker, rx: RxQueue, burst: Burst) -> None:
        threads[worker.idx].add(threading.get_ident())
        last[:] = [burst]
        own = dp.pool.burst([b"x" * 60] * 32)
        own.keep(bytes([1] * 16 + [0] * 16))
        counts[worker.idx]["sent"] += worker.send(1 - rx.port_idx, own)
        if min(count["sent"] for count in counts) > 2000:
            dp.stop()

    specs = ["null:queues=2"] * 2
    with Dataplane(*specs, n_workers=2, safety=1, kept_pages=1024, idle=Idle.POLL) as dp:
        assert [worker.idx for worker in dp.workers] == [0, 1]
        assert len({worker.core for worker in dp.workers}) == 2
        dp.run(work)
        assert len(threads[0]) == len(threads[1]) == 1
        assert threads[0] != threads[1]
        last.clear()
        check_pages(dp)


@two_cores
def test_frames_are_handed_to_the_worker_that_has_the_queue() -> None:
    specs = ("null:queues=2", "null:queues=1")
    with Dataplane(*specs, n_workers=2, safety=1) as dp:

        def send_to_second(worker: Worker, rx: RxQueue, burst: Burst) -> None:
            worker.send(1, burst)
            if all(other.stats()["rounds"] > 100 for other in dp.workers):
                dp.stop()

        dp.run(send_to_second)
        assert sum(worker.stats()["handed_off"] for worker in dp.workers) > 0


def test_steps_in_an_event_loop() -> None:
    """Frames wake the loop; other tasks run meanwhile; stop() ends it."""
    others = 0

    async def count() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    async def step(dp: Dataplane) -> None:
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(dp.fileno(), ready.set)
        while (wait_ms := dp.step(forward)) is not None:
            ready.clear()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(ready.wait(), wait_ms / 1000)
        loop.remove_reader(dp.fileno())

    async def talk(dp: Dataplane, a: Port, b: Port) -> None:
        for i in range(20):
            a.tx().send(dp.pool.burst([b"%60d" % i] * 3))
            got: list[bytes] = []
            while len(got) < 3:
                with b.rx().receive() as burst:
                    got += map(bytes, burst)
                await asyncio.sleep(0)
            assert got == [b"%60d" % i] * 3
        dp.stop()

    async def both(dp: Dataplane) -> None:
        with Port(dp.pool, "pair:a") as a, Port(dp.pool, "pair:b") as b:
            counting = asyncio.create_task(count())
            await asyncio.wait_for(asyncio.gather(step(dp), talk(dp, a, b)), limit(20))
            counting.cancel()

    with Dataplane(*ENDS, n_workers=1, safety=1, kept_pages=512) as dp:
        asyncio.run(both(dp))
        assert others > 20
        assert dp.step(forward) is None
        check_pages(dp)


def test_exception_of_a_step_is_raised_and_the_next_one_goes_on() -> None:
    seen: list[int] = []

    def fail(worker: Worker, rx: RxQueue, burst: Burst) -> None:
        with pytest.raises(Error) as caught:
            dp.step(fail)  # within a step
        assert caught.value.errno == errno.EBUSY
        with pytest.raises(Error) as caught:
            dp.close()
        assert caught.value.errno == errno.EBUSY
        seen.append(worker.idx)
        raise ValueError("mine")

    with Dataplane("null:", "null:", n_workers=1, safety=1) as dp:
        with pytest.raises(Error) as caught:
            dp.step(fail)  # before fileno()
        assert caught.value.errno == errno.EBUSY
        assert dp.fileno() == dp.fileno() >= 0
        for _ in range(3):
            with pytest.raises(ValueError, match="mine"):
                dp.step(fail)
        assert seen == [0] * 3
        with pytest.raises(Error) as caught:
            dp.run(forward)
        assert "step()" in str(caught.value)
        with pytest.raises(TypeError):
            dp.step(1)  # type: ignore[arg-type]
        dp.step(forward)
        check_pages(dp)
    with pytest.raises(ValueError, match="closed"):
        dp.step(forward)


@two_cores
def test_an_event_loop_has_one_worker() -> None:
    with Dataplane("null:queues=2", n_workers=2) as dp, pytest.raises(Error) as caught:
        dp.fileno()
    assert caught.value.errno == errno.EINVAL and "n_workers=1" in str(caught.value)


def test_only_one_thread_steps() -> None:
    errors: list[int | None] = []

    def call(what: Callable[[], object]) -> None:
        try:
            what()
        except Error as error:
            errors.append(error.errno)

    with Dataplane("null:", n_workers=1) as dp:
        dp.fileno()
        for what in dp.fileno, lambda: dp.step(forward):
            thread = threading.Thread(target=call, args=(what,))
            thread.start()
            thread.join(limit(20))
    assert errors == [errno.EBUSY] * 2


def test_metadata_passes() -> None:
    seen: list[millrace._millrace.MetaFields] = []
    with Dataplane("null:", n_workers=1, takes_meta=True) as dp:

        def look(worker: Worker, _: RxQueue, burst: Burst) -> None:
            burst.set_meta(0, vlan_tci=5)
            seen.append(burst.meta(0))
            worker.send(0, burst)
            dp.stop()

        dp.run(look)
    assert seen[0]["vlan_tci"] == 5


def test_stop_before_run_counts_once() -> None:
    with Dataplane("null:", n_workers=1) as dp:
        dp.stop()
        dp.run(lambda *_: None)
        calls: list[int] = []

        def stop(*_: object) -> None:
            calls.append(1)
            dp.stop()

        dp.run(stop)
        assert calls


@pytest.mark.parametrize("spec", ["null:", "pair:idle"])
def test_signal_handlers_and_keyboard_interrupt_end_it(spec: str) -> None:
    """Though null: always has frames, and the pair never."""
    with Dataplane(spec, n_workers=1) as dp:

        def rounds() -> int:
            return dp.workers[0].stats()["rounds"]

        def interrupt(number: int, n_before: int) -> None:
            wait_until(lambda: rounds() > n_before)
            os.kill(os.getpid(), number)

        before = signal.signal(signal.SIGUSR1, lambda *_: dp.stop())
        try:
            for number in (signal.SIGUSR1, signal.SIGINT):
                thread = threading.Thread(target=interrupt, args=(number, rounds()))
                thread.start()
                if number == signal.SIGINT:
                    with pytest.raises(KeyboardInterrupt):
                        dp.run(lambda *_: None)
                else:
                    dp.run(lambda *_: None)
                thread.join(limit(20))
        finally:
            signal.signal(signal.SIGUSR1, before)


def test_exceptions_of_the_function_end_the_run() -> None:
    def fail(_worker: Worker, _rx: RxQueue, burst: Burst) -> None:
        raise KeyError(len(burst))

    with pytest.raises(KeyError, match="256") as caught, Dataplane("null:", n_workers=1) as dp:
        dp.run(fail)
    # Its frames are those of the exception, and the pool ends with them.
    with pytest.raises(ValueError, match="closed"):
        dp.text()
    assert dp.pool.stats()["n_in_flight"] == 256
    del caught
    gc.collect()
    with pytest.raises(ValueError, match="the pool is closed"):
        dp.pool.stats()


def test_the_function_is_not_called_after_an_exception() -> None:
    calls: list[int] = []

    def fail(_worker: Worker, rx: RxQueue, _burst: Burst) -> None:
        calls.append(rx.port_idx)
        raise KeyError(rx.port_idx)

    with Dataplane("null:", "null:", n_workers=1) as dp:
        with pytest.raises(KeyError):
            dp.run(fail)
        assert calls == [0]


@two_cores
def test_an_exception_in_any_worker_ends_all() -> None:
    def fail(worker: Worker, _rx: RxQueue, _burst: Burst) -> None:
        if worker.idx == 1:
            raise KeyError("second")

    with Dataplane("null:queues=2", n_workers=2) as dp:
        for _ in range(2):
            with pytest.raises(KeyError, match="second"):
                dp.run(fail)


def test_a_failed_open_leaves_nothing() -> None:
    with Dataplane("pair:warm"):
        pass
    fds = os.listdir("/proc/self/fd")
    for specs, reason in ((("pair:a", "nothing:"), "nothing"), (("pair:a,ring=3",), "ring")):
        with pytest.raises(Error, match=reason) as caught:
            Dataplane(*specs)
        assert caught.value.errno in (errno.EINVAL, errno.ENODEV)
    with pytest.raises(Error, match="too small"):
        Dataplane("pair:a", n_pages=1)
    with pytest.raises(Error, match="would have no queue"):
        Dataplane("null:", n_workers=len(os.sched_getaffinity(0)) if os.cpu_count() != 1 else 2)
    assert os.listdir("/proc/self/fd") == fds


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="no ports"):
        Dataplane()
    with pytest.raises(TypeError, match="there is no 'n_worker'"):
        Dataplane("null:", n_worker=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Dataplane(1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="sends_to"):
        Dataplane("null:", sends_to=[0, 0])
    with pytest.raises(OverflowError):
        Dataplane("null:", cores=[1 << 40])
    with Dataplane("null:", n_workers=1, cores=[min(os.sched_getaffinity(0))]) as dp:
        with pytest.raises(TypeError, match="not a function"):
            dp.run(1)  # type: ignore[arg-type]
        with pytest.raises(IndexError, match="1 ports, not 1"):
            dp.run(forward)
        with pytest.raises(TypeError):
            Worker()


def test_parts_belong_to_the_data_plane() -> None:
    dp = Dataplane("null:", n_workers=1)
    port, pool, worker = dp.ports[0], dp.pool, dp.workers[0]
    refused: list[str] = []

    def call(_worker: Worker, _rx: RxQueue, _burst: Burst) -> None:
        for use in (dp.close, lambda: dp.run(call)):
            with pytest.raises(Error, match="runs"):
                use()
            refused.append("")
        dp.stop()

    for use in (port.close, pool.close, port.rx().receive, port.rx().__enter__):
        with pytest.raises(Error, match="data plane") as caught:
            use()
        assert caught.value.errno == errno.EBUSY
    port.rx().release()
    with pytest.raises(Error, match="only the function"):
        worker.send(0, pool.burst([b"x"]))
    dp.run(call)
    assert len(refused) >= 2
    assert port.rx().stats()["delivered"] > 0
    dp.close()
    dp.close()
    for closed in (dp.text, port.info, worker.stats, pool.stats, lambda: dp.run(call)):
        with pytest.raises(ValueError, match="is closed"):
            closed()
    dp.stop()


def test_dropping_it_closes_it() -> None:
    for _ in range(3):
        port = Dataplane("pair:dropped", n_workers=1).ports[0]
        with pytest.raises(ValueError, match="port is closed"):
            port.info()


def test_child_may_not_use_it() -> None:
    with Dataplane("null:", n_workers=1) as dp:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with pytest.raises(Error, match="parent process"):
                    dp.run(forward)
                dp.close()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        dp.text()


def test_process_may_exit_during_run() -> None:
    program = """
import threading, time, millrace
dp = millrace.Dataplane("null:", n_workers=1)
threading.Thread(target=dp.run, args=(lambda *_: None,), daemon=True).start()
while dp.workers[0].stats()["rounds"] == 0:
    time.sleep(0.001)
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=limit(60), check=False)
    assert done.returncode == 0
