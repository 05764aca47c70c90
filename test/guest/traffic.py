# SPDX-License-Identifier: BSD-3-Clause
"""Frames on the wires of a guest: made, sent, received, compared."""
import itertools
import struct
import time

from host import limit
from lib.wire import frame
from probe import check_idle, opened, wait_for_link

# Ethernet's shortest frame without FCS: emulated NICs pad to it.
MIN_BYTES = 60
MAX_BYTES = 1514
WINDOW = 200
# Nothing came for so long: it is lost. The host may be busy.
QUIET_S = limit(15)
RUN_LIMIT_S = limit(120)
# The same in the guest; while the host is busy, its clock goes on.
HOLD_MS = 1500
# Of frames that only say what has gone before them; others have lower numbers.
MARK, MARK_LIMIT_S = 1 << 31, limit(10)


def padded(data):
    """As it looks on the wire."""
    return data + b"\0" * (MIN_BYTES - len(data))


def compare(got, sent):
    """All of them, in order, and nothing else. virtio does not pad."""
    for i, (one, other) in enumerate(zip(got, sent)):
        assert padded(one) == padded(other), (
            f"frame {i} of {len(got)}, {len(sent)} were sent: "
            f"{one.hex()[:60]}, and not {other.hex()[:60]}")
    assert len(got) == len(sent)


class Traffic:
    """Frames of ours into one wire, and what comes out of another.

    At most `window` of them are under way: the guest is slower than we, and a
    ring that overflows is not what most tests are about.
    """

    def __init__(self, source, sink, frames, window=None):
        self.window = window or len(frames)
        self.n_sent = 0
        self.source, self.sink = source, sink
        self.waiting = list(reversed(frames))
        self.received = []

    def step(self):
        """Send and receive what can be without waiting."""
        for _ in range(32):
            if not self.waiting or \
                    self.n_sent - len(self.received) >= self.window or \
                    not self.source.try_send(self.waiting[-1]):
                break
            self.waiting.pop()
            self.n_sent += 1
        while (data := self.sink.receive()) is not None:
            self.received.append(data)

    def start(self, n, limit_s=RUN_LIMIT_S):
        """Until n frames came out, and more are under way."""
        deadline = time.monotonic() + limit_s
        while len(self.received) < n:
            assert time.monotonic() < deadline, \
                f"{len(self.received)} of {n} frames in {limit_s} s"
            self.step()

    def run(self, n, limit_s=RUN_LIMIT_S):
        """Until n frames came out, or none for a while."""
        run_all([self], n, limit_s)
        return self.received


def run_all(ways, n, limit_s=RUN_LIMIT_S):
    """Several at once, until n frames came out of each."""
    deadline = time.monotonic() + limit_s
    quiet_since = time.monotonic()
    before = None
    while any(len(way.received) < n for way in ways) and \
            time.monotonic() < min(deadline, quiet_since + QUIET_S):
        for way in ways:
            way.step()
        now = [len(way.received) for way in ways]
        if now != before:
            before = now
            quiet_since = time.monotonic()
        else:
            time.sleep(0.001)


def exchange(one, other, frames):
    """Frames both ways at once between two wires, each as it was, in order."""
    ways = [Traffic(one, other, frames, WINDOW),
            Traffic(other, one, frames[::-1], WINDOW)]
    # A guest forwards 1500 frames a second at least.
    run_all(ways, len(frames), RUN_LIMIT_S + limit(len(frames) / 1500))
    compare(ways[0].received, frames)
    compare(ways[1].received, frames[::-1])


def all_lengths(n):
    """n frames of all lengths from 14 up, in a shuffled but fixed order."""
    span = MAX_BYTES - 14 + 1
    return [frame(14 + (i * 677) % span, i) for i in range(n)]


def clear(source, sink):
    """Forget what is under way from one wire to another, which somebody joins:
    all that comes before a mark. QEMU may hold frames of a port that was."""
    deadline = time.monotonic() + RUN_LIMIT_S
    for i in itertools.count():
        assert time.monotonic() < deadline, f"{sink.name}: no mark comes"
        mark = frame(MIN_BYTES, MARK + i)
        source.send(mark)  # another one, as it may be lost, too
        while (data := sink.receive(MARK_LIMIT_S)) is not None:
            if data == mark:
                return


def echo(wire, probe, frames, port=0, window=WINDOW, is_clear=True):
    """Frames in, and out again the same; is_clear: nothing is under way."""
    traffic = Traffic(wire, wire, frames, window)
    probe.begin("forward", port)
    if not is_clear:
        clear(wire, wire)
    got = traffic.run(len(frames))
    probe.end_forward(port)
    compare(got, frames)


def hold(probe, traffic, port=0, until_sent=False):
    """Take frames and keep them until none comes for a while, or, with
    until_sent, until all are on their way, too; how many came."""
    deadline = time.monotonic() + RUN_LIMIT_S
    n = 0
    n_now = 1
    while n_now > 0 or (until_sent and traffic.waiting):
        assert time.monotonic() < deadline, f"{n} frames, and no end"
        n_now = probe.do("hold", port, 1 << 20, HOLD_MS,
                         meanwhile=traffic.step)["n"]
        n += n_now
    return n


def kill_under_traffic(guest, wire, spec):
    """SIGKILL while frames come in, again and again: nothing is left mapped,
    and the next port works."""
    for is_last in (False, False, True):
        with opened(guest, spec) as probe:
            if is_last:
                echo(wire, probe, all_lengths(500), is_clear=False)
            else:
                probe.begin("forward", 0)
                Traffic(wire, wire, all_lengths(20000), WINDOW).start(500)
                probe.kill()


def cut_link(wire, probe, set_link):
    """Link down and up by set_link(is_up): noticed, and traffic goes on."""
    try:
        set_link(False)
        wait_for_link(probe, False)
        # Taken or not, by the driver: it neither hangs nor eats pages.
        assert "n" in probe.ask("send", 0, 0, 100, 200)
    finally:
        set_link(True)
    wait_for_link(probe, True)
    probe.flush()
    echo(wire, probe, all_lengths(300), is_clear=False)


def own_flow(i, n_bytes):
    """An IPv4/UDP frame of its own flow, so that RSS spreads them."""
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, n_bytes - 14, i & 0xffff, 0, 64,
                     17, 0, bytes([10, 0, 0, 1]), bytes([10, 0, i >> 8 & 0xff,
                                                         i & 0xff]))
    udp = struct.pack("!HHHH", 1000 + i % 5000, 9, n_bytes - 34, 0)
    head = b"\x02\0\0\0\0\1\x02\0\0\0\0\2\x08\0" + ip + udp
    return head + frame(n_bytes, i)[len(head):]


def tagged(data, i):
    """It with a tag: each priority, drop eligible or not, many numbers."""
    tci = i % 8 << 13 | i % 2 << 12 | (1 + i * 37) % 4095
    return data[:12] + struct.pack("!HH", 0x8100, tci) + data[12:]


def carry_tags(guest, specs):
    """From the first of two NICs to the second: a tag is taken out at one and
    put in at the other, as it was; frames without one stay so."""
    source, sink = guest.wires.values()
    frames = [tagged(data, i) if i % 3 else data
              for i, data in enumerate(all_lengths(1501))]
    n_tags = sum(i % 3 != 0 for i in range(len(frames)))
    with opened(guest, *specs) as probe:
        probe.begin("forward", 0, 1, 1)
        got = Traffic(source, sink, frames, WINDOW).run(len(frames))
        probe.end_forward()
        probe.flush(1)
        compare(got, frames)
        rx = check_idle(probe, 0)["queues"][0]["rx"]
        # A wire has 60 bytes at least; without tags it is 4 less.
        assert rx["bytes"] == sum(max(len(data), MIN_BYTES)
                                  for data in frames) - 4 * n_tags, rx
