# SPDX-License-Identifier: BSD-3-Clause
"""Millrace: ports, pools and bursts of Ethernet frames.

with Pool() as pool, Port(pool, "xdp:eth1") as port:
    with port.rx().receive() as burst:
        for frame in burst:
            print(bytes(frame[:14]))

A view of a frame ends when its burst is released or sent: access raises
ValueError. What uses the bytes in another way (a slice, an array) makes that
call raise BufferError instead. docs/embedding.md: threads, ownership, errors.
"""

import asyncio
from collections.abc import AsyncIterator

from . import _millrace
from ._millrace import BURST_MAX, MORE, Burst, Error, Pool, RxQueue, TxQueue, version

__all__ = ["BURST_MAX", "MORE", "Burst", "Error", "Pool", "Port", "RxQueue", "TxQueue", "version"]


class Port(_millrace.Port):
    """An open port; `async for burst in port` receives from all its queues.

    The iteration ends when nothing more can arrive: at the end of a capture, or
    when the device is gone. A burst is released when the next one is asked for.
    Other tasks run in between, also if there is always work.
    """

    async def __aiter__(self) -> AsyncIterator[Burst]:
        queues = [self.rx(i) for i in range(self.info()["n_rxqs"])]
        while True:
            n = 0
            for queue in queues:
                with queue.receive() as burst:
                    if burst:
                        n += 1
                        yield burst
            if n > 0:
                await asyncio.sleep(0)
                continue
            self.poll()
            link = self.link()
            if link["is_ended"] or link["is_gone"]:
                return
            await self._work(queues)

    async def _work(self, queues: list[RxQueue]) -> None:
        """Until a queue may have a frame, or poll() something to do."""
        if not all(queue.arm() for queue in queues):
            await asyncio.sleep(0)
            return
        loop = asyncio.get_running_loop()
        is_ready = asyncio.Event()
        fds = [fd for fd in [*(queue.fileno() for queue in queues), self.fileno()] if fd >= 0]
        for fd in fds:
            loop.add_reader(fd, is_ready.set)
        try:
            await is_ready.wait()
        finally:
            for fd in fds:
                loop.remove_reader(fd)
