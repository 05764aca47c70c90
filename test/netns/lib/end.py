# SPDX-License-Identifier: BSD-3-Clause
"""Ends of wires: ports of the Python package, in this process."""
import select
import time

from host import limit
from millrace import Flag, Pool, Port

from . import invariants

AT_ONCE = 64  # frames, of up to 4 entries


class End:
    """A port on a pool of its own, or on another end's, which stays open
    longer. close() checks that no page is missing."""

    def __init__(self, namespace, spec, other=None):
        self.namespace = namespace
        self.own_pool = Pool(8192) if other is None else None
        self.pool = self.own_pool or other.pool
        with namespace:
            self.port = Port(self.pool, spec)
        n_queues = self.port.info()["n_rxqs"]
        self.rxqs = [self.port.rx(i) for i in range(n_queues)]

    def close(self):
        """In its namespace, where the port restores the interface's settings."""
        with self.namespace:
            self.port.close()
        if self.own_pool:
            stats = self.pool.stats()
            assert stats["n_in_flight"] == 0, stats
            self.pool.close()
            self.own_pool = None  # for a second call

    def set(self, **settings):
        with self.namespace:
            self.port.set(**settings)

    def check(self, **wanted):
        """Check the sums of these rx counters, and the invariants."""
        stats = self.port.stats()
        invariants.check_ports([stats])
        assert {name: invariants.total(stats, "rx", name)
                for name in wanted} == wanted

    def send(self, frames, queue=0, meta=None, limit_s=limit(5.0)):
        """Send frames in bursts, with meta(i) as the metadata of each.
        Returns how many there were."""
        end_s = time.monotonic() + limit_s
        tx = self.port.tx(queue)
        frames = list(frames)
        for at in range(0, len(frames), AT_ONCE):
            with self.pool.burst(frames[at:at + AT_ONCE]) as burst:
                for i in range(len(burst) if meta else 0):
                    burst.set_meta(i, **meta(at + i))
                while burst:
                    tx.send(burst)
                    assert time.monotonic() < end_s, f"{len(burst)} not sent"
        while tx.stats()["pending"]:
            tx.collect()
            assert time.monotonic() < end_s, tx.stats()
        return len(frames)

    def _wait(self, limit_s):
        """Wait until a queue may have frames."""
        if all([rx.arm() for rx in self.rxqs]):
            select.select([rx.fileno() for rx in self.rxqs], [], [], limit_s)

    def receive_all(self, n, limit_s=limit(5.0)):
        """Receive n frames with their metadata and queues, or fewer if the
        time is up; and whatever came with them."""
        got = []
        end_s = time.monotonic() + limit_s
        while True:
            left_s = end_s - time.monotonic()
            n_before = len(got)
            for i, rx in enumerate(self.rxqs):
                with rx.receive(meta=True) as burst:
                    got += [(data, meta, i) for data, meta in whole(burst)]
            if len(got) >= n or (left_s <= 0 and len(got) == n_before):
                return got
            if len(got) == n_before:
                self._wait(left_s)

    def receive(self, n, limit_s=limit(5.0)):
        """receive_all(), but only the frames, as Wire.receive() does."""
        return [data for data, _, _ in self.receive_all(n, limit_s)]

    def receive_until_quiet(self, quiet_s=2.0):
        """Receive until no frame comes for quiet_s."""
        frames = []
        while some := self.receive(1, quiet_s):
            frames += some
        return frames


def whole(burst):
    """Frames of a burst, each with its metadata."""
    entries = memoryview(bytearray(16 * len(burst)))
    burst.copy_entries(entries)
    data = b""
    for i, (view, flags) in enumerate(zip(burst, entries.cast("I")[3::4])):
        meta = meta if data else burst.meta(i)
        data += view
        if not flags & Flag.MORE:
            yield data, meta
            data = b""
