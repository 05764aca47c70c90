# SPDX-License-Identifier: BSD-3-Clause
"""Millrace: ports, pools and bursts of Ethernet frames.

with Dataplane("xdp:eth0", "xdp:eth1") as dp:
    dp.run(lambda worker, rx, burst: worker.send(1 - rx.port_idx, burst))

or, without workers:

with Pool(Pool.size_for(["xdp:eth1"])) as pool, Port(pool, "xdp:eth1") as port:
    with port.rx().receive() as burst:
        for frame in burst:
            print(bytes(frame[:14]))

A view of a frame ends when its burst is released or sent: later access raises
ValueError. If a slice or an array still refers to the bytes, that call raises
BufferError instead. See docs/embedding.md for threads, ownership and errors.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Iterable
from enum import IntEnum
from typing import Any

from . import _millrace
from ._millrace import (
    BURST_MAX,
    Burst,
    Error,
    Flag,
    Hash,
    Meta,
    Offload,
    Pool,
    RxQueue,
    TxQueue,
    Worker,
    version,
)

__all__ = ["BURST_MAX", "Burst", "Dataplane", "Error", "Flag", "Hash", "Idle", "Meta", "Offload"]
__all__ += ["Pool", "Port", "RxQueue", "TxQueue", "Worker", "version"]


class Idle(IntEnum):
    """What a worker does after a round without frames."""

    ADAPTIVE = 0  #: polls or sleeps, depending on the gaps between frames
    POLL = 1
    INTERRUPT = 2  #: sleeps immediately


class Dataplane(_millrace.Dataplane):
    """Ports, a pool that is large enough for them, and workers.

    Dataplane(*specs) has a worker for each rx queue of a port, as far as there
    are cores. Parameters are members of struct mr_dataplane_config
    (<millrace/dataplane.h>): n_workers, cores, max_workers, may_idle,
    may_be_fewer, sends_to, handoff_entries, idle, n_pages, kept_pages,
    page_bytes, headroom_bytes, tailroom_bytes, safety; takes_meta: bursts have
    metadata. On failure nothing is left open.
    """

    @property
    def ports(self) -> tuple["Port", ...]:
        """The ports in the order of the specs, which the data plane closes."""
        return super().ports

    def stats(self) -> dict[str, Any]:
        """Counters of ports, workers and pool: json() as a dict."""
        stats: dict[str, Any] = json.loads(self.json())
        return stats


class Port(_millrace.Port):
    """An open port; `async for burst in port` receives from all its queues.

    The iteration ends when nothing more can arrive: at the end of a capture, or
    when the device is gone. Asking for the next burst releases the previous one.
    Other tasks run in between, even under constant load. If the port is closed,
    in the loop's thread, the task that waits gets ValueError.
    """

    _wait: tuple[asyncio.AbstractEventLoop, list[int], asyncio.Event] | None = None

    def __aiter__(self) -> AsyncIterator[Burst]:
        return self.bursts()

    def bursts(self, *, meta: bool = False) -> AsyncIterator[Burst]:
        """Iterate over bursts, optionally with metadata."""
        return _Bursts(self, meta)

    def close(self) -> None:
        """Close the port. Frames received stay valid in their bursts."""
        self._end_wait()
        super().close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def stats(self) -> dict[str, Any]:
        """Counters of the port and its queues: stats_json() as a dict."""
        stats: dict[str, Any] = json.loads(self.stats_json())
        return stats

    async def _work(self, queues: Iterable[RxQueue]) -> None:
        """Wait until a queue may have a frame, or poll() has something to do."""
        if not all(queue.arm() for queue in queues):
            return
        if self._wait is not None:  # an event loop has one reader per fd
            raise RuntimeError("another task waits for the port")
        loop = asyncio.get_running_loop()
        is_ready = asyncio.Event()
        fds = [fd for fd in [*(queue.fileno() for queue in queues), self.fileno()] if fd >= 0]
        for fd in fds:
            loop.add_reader(fd, is_ready.set)
        self._wait = loop, fds, is_ready
        try:
            await is_ready.wait()
        finally:
            self._end_wait()

    def _end_wait(self) -> None:
        """Comes before fds are closed, because others may get their numbers."""
        if self._wait is not None:
            loop, fds, is_ready = self._wait
            self._wait = None
            for fd in fds:
                loop.remove_reader(fd)
            is_ready.set()


class _Bursts(AsyncIterator[Burst]):
    """The bursts of a port. Not a generator, so a break needs no cleanup."""

    def __init__(self, port: Port, meta: bool) -> None:
        self._port = port
        self._meta = meta
        self._queues = deque(port.rx(i) for i in range(port.info()["n_rxqs"]))
        self._burst: Burst | None = None

    async def __anext__(self) -> Burst:
        if self._burst is not None:
            self._burst.release()
        while True:
            await asyncio.sleep(0)
            for _ in range(len(self._queues)):
                self._queues.rotate(-1)
                self._burst = self._queues[-1].receive(meta=self._meta)
                if self._burst:
                    return self._burst
            self._port.poll()
            link = self._port.link()
            if link["is_ended"] or link["is_gone"]:
                raise StopAsyncIteration
            await self._port._work(self._queues)
