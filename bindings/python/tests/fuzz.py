# SPDX-License-Identifier: BSD-3-Clause
"""Random sequences of calls: no crash, no byte of a frame that is not its own,
no page lost.

usage: fuzz.py [--seconds N] [--seed N] [--spec PORT]...
"""

import argparse
import gc
import os
import random
import signal
import struct
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import millrace
from millrace import _millrace

SPECS = ["null:", "null:queues=2", "pair:a,ring=32", "pair:b,sg=on", "pcap:tx=/dev/null", "no:", ""]
# What misuse may raise; anything else ends the run.
EXPECTED = (millrace.Error, ValueError, TypeError, IndexError, BufferError, OverflowError)
# Whose malloc(), in GCC 12, waits for ever in the child if a thread is ending.
HAS_ASAN = "libasan" in os.environ.get("LD_PRELOAD", "")
META = [*_millrace.meta_layout, "no"]
# Objects of each kind that are kept.
MOST = 6


class Frames:
    """A burst that was filled here, with the bytes its frames have."""

    def __init__(self, pool: millrace.Pool, stamp: int, n: int) -> None:
        self.stamp = stamp % 256
        self.burst = pool.burst([bytes([self.stamp]) * 60] * n)


class Index:
    """A number that does something when it is read."""

    def __init__(self, fuzzer: "Fuzzer") -> None:
        self.fuzzer = fuzzer

    def __index__(self) -> int:
        self.fuzzer.step()
        return 1


class Fuzzer:
    """Keeps objects of each kind, and does something to some of them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.n_done = 0
        self.is_child = False  # which sees zeros
        self.pools: list[millrace.Pool] = []
        self.ports: list[millrace.Port] = []
        self.queues: list[millrace.RxQueue | millrace.TxQueue] = []
        self.frames: list[Frames] = []
        self.bursts: list[millrace.Burst] = []
        self.views: list[tuple[int, memoryview]] = []
        self.others: list[Any] = [None, 1 << 70, -1, b"x", "", bytearray(999), [b"x"], object()]

    def any_of(self, things: list[Any]) -> Any:
        """One of them, and sometimes something else."""
        is_wrong = not things or self.random.random() < 0.03
        return self.random.choice(self.others if is_wrong else things)

    def keep(self, things: list[Any], thing: Any) -> None:
        things.append(thing)
        if len(things) > MOST:
            del things[self.random.randrange(len(things))]

    def any_burst(self) -> Any:
        return self.any_of([*self.bursts, *(frames.burst for frames in self.frames)])

    def new_pool(self) -> None:
        if len(self.pools) < 3:
            self.pools.append(millrace.Pool(1024, safety=self.random.choice([0, 0, 1, 2])))

    def new_port(self) -> None:
        self.keep(self.ports, millrace.Port(self.any_of(self.pools), self.random.choice(SPECS)))

    def new_queue(self) -> None:
        port = self.any_of(self.ports)
        self.keep(
            self.queues, self.random.choice([port.rx, port.tx])(self.random.choice([0, 0, 1]))
        )

    def new_frames(self) -> None:
        frames = Frames(self.any_of(self.pools), self.n_done, self.random.randrange(60))
        self.keep(self.frames, frames)

    def from_iterable(self) -> None:
        pool = self.any_of(self.pools)

        def items() -> Iterator[bytes]:
            yield b"x"
            self.step()
            yield b"x"

        self.keep(self.bursts, pool.burst(items()))

    def receive(self) -> None:
        n = self.random.choice([0, 1, 18, 64, 256, 300])
        has_meta = self.random.choice([False, True, object()])
        self.keep(self.bursts, self.any_of(self.queues).receive(n, meta=has_meta))

    def view(self) -> None:
        frames = self.random.choice(self.frames)
        view = frames.burst[self.random.randrange(-3, 60)]
        if self.random.random() < 0.4:  # made of a view
            view = self.random.choice([view[3:], memoryview(view)])
        self.keep(self.views, (frames.stamp, view))

    def write(self) -> None:
        view = self.any_of(list(self.any_burst()))
        view[-1] = view[0]

    def look(self) -> None:
        """A view has the bytes of its frame, or raises."""
        stamp, view = self.random.choice(self.views)
        if set(view) != {stamp} and not self.is_child:
            raise SystemExit(f"a view of frames of {stamp} has {set(view)}")

    def hook(self) -> None:
        """Do something at the end of a view."""
        view = self.any_burst()[0]
        self.others.append(weakref.ref(view, lambda _: self.step()))
        del self.others[8:-3]

    def call(self) -> None:
        things: list[Any] = self.random.choice(
            [self.ports, self.queues, [self.any_burst()], self.pools]
        )
        thing = self.any_of(things)
        names = [name for name in dir(thing) if name[0] != "_" or name in ("__enter__", "__exit__")]
        arguments = [
            self.any_of([self.any_burst()]) for _ in range(self.random.choice([0, 0, 1, 2]))
        ]
        method = getattr(thing, self.random.choice(names or ["no"]))
        if callable(method) and thing not in self.others:
            method(*arguments)

    def send(self) -> None:
        self.any_of(self.queues).send(self.any_burst())

    def any_number(self) -> Any:
        """Of any size, and sometimes one that does something, or none."""
        if self.random.random() < 0.1:
            return self.random.choice([Index(self), *self.others])
        return self.random.getrandbits(self.random.choice([1, 3, 6, 11, 16, 32, 64]))

    def some_of(self, names: Iterable[str]) -> dict[str, Any]:
        n = self.random.choice([0, 1, 1, 2, 3, len(META)])
        return {name: self.any_number() for name in self.random.choices([*names], k=n)}

    def describe(self) -> None:
        """Metadata that may be nonsense; the frames are sent with it."""
        burst = self.any_burst()
        i = self.random.choice([0, 0, 1, 2, self.any_number()])
        burst.set_meta(i, **self.some_of(META))
        burst.meta(i)
        burst.copy_metas(bytearray(self.random.choice([10, 20000])))

    def segments(self) -> None:
        """Long frames to cut, with a byte wrong here and there."""
        n_bytes = self.random.randrange(self.random.choice([3000, 20000]))
        for_tcp = self.random.choice([True, False])
        ip = struct.pack("!BxHxxxxBBxx8x", 0x45, 40 + n_bytes, 64, 6 if for_tcp else 17)
        l4 = struct.pack("!12xBx6x" if for_tcp else "!4xH14x", 0x50 if for_tcp else 20 + n_bytes)
        frame = bytearray(bytes(12) + b"\x08\0" + ip + l4 + bytes(n_bytes))
        if self.random.random() < 0.3:
            frame[self.random.randrange(54)] = self.random.randrange(256)
        burst = self.any_of(self.pools).burst([frame] * 3)
        at = self.random.choice([34, 34, self.any_number()])
        for i in range(3):
            burst.set_meta(
                i,
                gso_type=1 if for_tcp else 5,
                gso_bytes=self.random.choice([1, 100, 1400]),
                csum_start_bytes=at,
                csum_offset_bytes=16 if for_tcp else 6,
                **self.random.choice([{}, {"vlan_tci": 5}]),
            )
        self.keep(self.bursts, burst)

    def configure(self) -> None:
        port = self.any_of(self.ports)
        names = self.random.choice(
            [
                (port.set, ("filter", "mac", "mac_filter", "promisc", "allmulti", "mtu_bytes")),
                (port.set_rss, ("key", "table", "fields", "keep")),
                (port.steer, ("queue", "protocol", "dst_port", "dst", "dst_mac", "is_ipv6", "no")),
            ]
        )
        arguments = self.some_of(names[1])
        for name in arguments:
            if self.random.random() < 0.5:
                arguments[name] = self.random.randbytes(self.random.choice([2, 4, 6, 16]))
        names[0](**arguments)

    def mask(self) -> None:
        burst = self.any_burst()
        burst.keep(self.random.randbytes(len(burst)).replace(b"\x07", b"\0"))

    def gather(self) -> None:
        self.any_burst().copy_headers(bytearray(5000), self.random.choice([0, 1, 14, 64, 1 << 31]))
        self.any_burst().copy_entries(bytearray(self.random.choice([10, 5000])))

    def forget(self) -> None:
        things: list[Any] = self.random.choice(
            [self.pools, self.ports, self.queues, self.frames, self.bursts, self.views]
        )
        if things:
            del things[self.random.randrange(len(things))]

    def thread(self) -> None:
        thread = threading.Thread(target=self.step)
        thread.start()
        thread.join()

    def fork(self) -> None:
        """The child does a few things; nothing but a crash is wrong there."""
        if self.random.random() > 0.05 or HAS_ASAN:
            return
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            self.is_child = True
            try:
                for _ in range(50):
                    self.step()
                self.clear()
            finally:
                os._exit(0)
        if os.WIFSIGNALED(os.waitpid(child, 0)[1]):
            raise SystemExit("a child crashed or hung")

    STEPS: tuple[Callable[["Fuzzer"], None], ...] = (
        *(new_pool, new_port, new_port, new_queue, new_queue, new_frames, from_iterable),
        *(receive, receive, view, view, view, write, look, look, hook, call, call, send, send),
        *(mask, gather, forget, thread, fork, describe, describe, segments, configure),
    )

    def step(self) -> None:
        self.n_done += 1
        try:
            self.random.choice(self.STEPS)(self)
        except EXPECTED:
            pass
        except AttributeError as error:
            if type(error.obj) in (Fuzzer, Frames):
                raise  # not of the objects under test

    def clear(self) -> None:
        self.others.clear()  # the hooks, which would do something
        for things in (self.views, self.frames, self.bursts, self.queues, self.ports):
            things.clear()

    def end(self) -> None:
        """Drop everything but the pools: they have all their pages."""
        self.clear()
        gc.collect()
        for pool in self.pools:
            try:
                stats = pool.stats()
            except ValueError:
                continue  # closed
            assert stats["n_in_flight"] == stats["free_invalid"] == stats["free_double"] == 0, stats
            pool.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spec", action="append", default=[], help="use this port, too")
    options = parser.parse_args()
    SPECS.extend(options.spec)
    end_s = time.monotonic() + options.seconds
    seed = options.seed
    n_done = 0
    while time.monotonic() < end_s:
        fuzzer = Fuzzer(seed)
        try:
            for _ in range(1000):
                fuzzer.step()
            fuzzer.end()
        except BaseException:
            print(f"fuzz.py --seed {seed}")
            raise
        n_done += fuzzer.n_done
        seed += 1
    print(f"{n_done} calls, seeds {options.seed} to {seed - 1}")


if __name__ == "__main__":
    main()
