# SPDX-License-Identifier: BSD-3-Clause
"""vhost: ports resume after they were killed, as their records say."""
import fcntl
import os
import random
import struct
import time
from contextlib import contextmanager

import pytest
from lib.namespaces import wait_until
from lib.process import L2FWD, Process
from lib.vhost_peer import (
    AVAIL_AT,
    BUFFERS_AT,
    FRAME,
    GET_BASE,
    GET_RECORDS,
    GUEST_ADDR,
    N_ENTRIES,
    NEXT,
    RING_BYTES,
    USED_AT,
    WRITE,
    Peer,
    peer_of,
)

PACKED = 1 << 34
LAYOUTS = pytest.mark.parametrize("features", [0, PACKED],
                                  ids=["split", "packed"])
USED, AVAIL = 1 << 15, 1 << 7  # in the flags of packed descriptors
BUFFER_BYTES = 256
HEADER = bytes(12)
BURST = 32


class Driver:
    """The driver of one ring: each buffer has a number, and one descriptor."""

    def __init__(self, peer, ring, is_packed):
        at, end = ring * RING_BYTES, (ring + 1) * RING_BYTES
        self.is_packed = is_packed
        self.words = memoryview(peer.memory)[at:end].cast("Q")
        self.halves = memoryview(peer.memory)[at:end].cast("H")
        self.first_addr = BUFFERS_AT + ring * N_ENTRIES * BUFFER_BYTES
        self.n_avail = self.n_used = 0

    def close(self):
        self.words.release()
        self.halves.release()

    def add(self, number, n_bytes, flags):
        addr = GUEST_ADDR + self.first_addr + number * BUFFER_BYTES
        place, lap = self.n_avail % N_ENTRIES, self.n_avail // N_ENTRIES
        if self.is_packed:
            flags |= USED if lap % 2 else AVAIL
            self.words[2 * place] = addr
            self.words[2 * place + 1] = n_bytes | number << 32 | flags << 48
        else:
            self.words[2 * number] = addr
            self.words[2 * number + 1] = n_bytes | flags << 32
            self.halves[AVAIL_AT // 2 + 2 + place] = number
            self.halves[AVAIL_AT // 2 + 1] = (self.n_avail + 1) % 65536
        self.n_avail += 1

    def take(self):
        """(number, bytes written) of each used buffer."""
        taken = []
        while self.n_used < self.n_avail:
            place, lap = self.n_used % N_ENTRIES, self.n_used // N_ENTRIES
            if self.is_packed:
                word = self.words[2 * place + 1]
                shown = 0 if lap % 2 else USED | AVAIL
                if word >> 48 & (USED | AVAIL) != shown:
                    break
                taken.append((word >> 32 & 0xffff, word & 0xffffffff))
            else:
                if self.halves[USED_AT // 2 + 1] == self.n_used % 65536:
                    break
                at = USED_AT // 2 + 2 + 4 * place
                taken.append((self.halves[at], self.halves[at + 2]))
            self.n_used += 1
        return taken


class Guest(Peer):
    """Sends numbered frames, and looks at what comes back."""

    def __init__(self, port, path, features):
        super().__init__(port, path)
        self.features = features
        # Where the rings began: what an old VMM would say later.
        self.position = 0x80008000 if features & PACKED else 0
        self.rx, self.tx = (Driver(self, ring, features & PACKED)
                            for ring in (0, 1))
        self.idle = list(range(N_ENTRIES // 2))
        self.n_sent, self.received = 0, []
        for i in range(N_ENTRIES):
            self.rx.add(i, BUFFER_BYTES, WRITE)

    def close(self):
        self.rx.close()
        self.tx.close()
        super().close()

    def begin(self, records=None, call=None):
        """Records as in set_records(); None: new ones."""
        self.negotiate(self.features)
        if records is None:
            records = self.get_records()
        else:
            assert self.set_records(*records) == 0
        for ring in 0, 1:
            self.start_ring(ring, call, self.position)
        return records

    def send(self):
        """Send a frame if a buffer is idle."""
        if not self.idle:
            return
        number = self.idle.pop()
        at = self.tx.first_addr + number * BUFFER_BYTES
        frame = HEADER + FRAME[:14] + struct.pack("=I", self.n_sent) + bytes(46)
        self.memory[at:at + len(frame)] = frame
        self.tx.add(number, len(frame), 0)
        self.n_sent += 1

    def look(self):
        """Take what the device has used."""
        self.idle += [number for number, _ in self.tx.take()]
        for number, n_bytes in self.rx.take():
            at = self.rx.first_addr + number * BUFFER_BYTES + len(HEADER) + 14
            if n_bytes > 0:
                self.received += struct.unpack_from("=I", self.memory, at)
            self.rx.add(number, BUFFER_BYTES, WRITE)

    def run(self, seconds):
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            for _ in range(8):
                self.send()
            self.look()


@contextmanager
def guest_of(path, features, options=""):
    with peer_of(path, options, peer_type=lambda *args: Guest(
            *args, features)) as (guest, pool):
        yield guest, pool


def record_bytes(features, n_entries):
    n = 32 + 32 * n_entries if features & PACKED else 16 + 16 * n_entries
    return (n + 63) // 64 * 64


@LAYOUTS
@pytest.mark.parametrize("tail", [b"", bytes(4)], ids=["20 bytes", "24 bytes"])
def test_records_are_made(tmp_path, features, tail):
    """QEMU and others send four bytes more than the specification says."""
    with peer_of(tmp_path / "vm.sock") as (peer, _):
        peer.negotiate(features)
        fd, n_bytes = peer.get_records(3, 100, tail)
        assert n_bytes == 3 * record_bytes(features, 100)
        assert os.fstat(fd).st_size == n_bytes
        assert fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK
        assert os.pread(fd, n_bytes, 0) == bytes(n_bytes)
        assert peer.set_records(fd, n_bytes, n_queues=3, n_entries=100) == 0
        os.close(fd)


def send(peer, pool, n):
    with pool.burst([FRAME] * n) as burst:
        assert peer.port.tx().send(burst) == n


def receive(peer):
    with peer.port.rx().receive() as frames:
        return len(frames)


@LAYOUTS
def test_positions_are_recorded(tmp_path, features):
    with guest_of(tmp_path / "vm.sock", features) as (guest, pool):
        fd, n_bytes = guest.begin()
        send(guest, pool, 5)
        for _ in range(3):
            guest.send()
        assert receive(guest) == 3
        area = os.pread(fd, n_bytes, 0)
        for ring, n in enumerate([5, 3]):
            record = area[ring * record_bytes(features, N_ENTRIES):]
            version, n_entries = struct.unpack_from("=HH", record, 8)
            assert (version, n_entries) == (1, N_ENTRIES)
            if features & PACKED:
                assert struct.unpack_from("=HHBB", record, 16) == (n, n, 1, 1)
            else:
                assert struct.unpack_from("=H", record, 14) == (n,)
        guest.say(GET_BASE, struct.pack("=II", 1, 0))
        assert struct.unpack("=IIIII", guest.socket.recv(20))[4] == (
            0x80038003 if features & PACKED else 3)
        os.close(fd)


class Records:
    """The record of ring 1, which is the guest's tx ring."""

    def __init__(self, fd, features):
        self.fd, self.is_packed = fd, features & PACKED
        self.at = record_bytes(features, N_ENTRIES)
        self.states_at = self.at + (32 if self.is_packed else 16)
        self.state_bytes = 32 if self.is_packed else 16

    def write(self, at, form, *values):
        os.pwrite(self.fd, struct.pack("=" + form, *values), self.at + at)

    def read(self, at, form):
        n_bytes = struct.calcsize("=" + form)
        return struct.unpack("=" + form, os.pread(self.fd, n_bytes,
                                                  self.at + at))

    def state(self, i, counter, following=0, last=0, n=1, buffer=0):
        """State i is in flight. following: in its list."""
        values = [1, 0, following, last, n, counter, buffer] if \
            self.is_packed else [1, bytes(5), following, counter]
        os.pwrite(self.fd, struct.pack(
            "=BBHHHQH" if self.is_packed else "=B5sHQ", *values),
            self.states_at + i * self.state_bytes)

    def n_in_flight(self):
        states = os.pread(self.fd, N_ENTRIES * self.state_bytes,
                          self.states_at)
        return sum(states[::self.state_bytes])


@contextmanager
def stopped_guest(path, features, place=0):
    """A guest whose back end has died, and whose tx ring is at this place."""
    with guest_of(path, features) as (guest, _):
        guest.records = guest.begin()
        guest.socket.close()
        guest.port.poll()
        guest.tx.n_avail = guest.tx.n_used = place
        guest.record = Records(guest.records[0], features)
        if not features & PACKED:
            guest.tx.halves[USED_AT // 2 + 1] = place
        yield guest
        os.close(guest.records[0])


def resume(guest, path):
    """How often the driver was called."""
    call = os.eventfd(0)
    guest.connect(path)
    guest.begin(guest.records, call)
    assert guest.port.link()["is_up"]
    assert guest.record.n_in_flight() == 0
    n_calls = os.eventfd_read(call)
    os.close(call)
    return n_calls


def words(*descriptors):
    """The second words of descriptors from (bytes, id, flags)."""
    return [n_bytes | number << 32 | flags << 48
            for n_bytes, number, flags in descriptors]


@pytest.mark.parametrize("is_shown", [False, True])
def test_batch_that_was_being_shown(tmp_path, is_shown):
    """A process died before or after it showed the first of three buffers, and
    after it wrote the last one."""
    path = tmp_path / "vm.sock"
    shown = USED | AVAIL
    with stopped_guest(path, PACKED) as guest:
        ring = words((100, 7, shown if is_shown else AVAIL),
                     (50, 0, AVAIL | NEXT), (50, 8, AVAIL), (9, 9, shown))
        guest.tx.words[1:8:2] = memoryview(struct.pack("=4Q", *ring)).cast("Q")
        guest.tx.n_avail = 4
        guest.send()
        guest.record.write(16, "HHBB", 4, 0, 1, 1)
        # For each ring: the new eventfd, and what may have been used.
        assert resume(guest, path) == 4
        assert guest.record.read(16, "HHBB") == (4, 4, 1, 1)
        place = [guest.tx.words[i] for i in (1, 3, 7)]
        if is_shown:
            assert place == [ring[0], ring[1], ring[3]]
        else:
            assert place == words((0, 7, shown), (0, 8, shown), (0, 9, shown))
        assert receive(guest) == 1
        assert guest.record.read(16, "HHBB") == (5, 5, 1, 1)


def test_all_of_a_ring_was_being_shown(tmp_path):
    """The place is the same before and after; the laps differ."""
    path = tmp_path / "vm.sock"
    with stopped_guest(path, PACKED) as guest:
        for i in range(N_ENTRIES):
            guest.tx.add(i, 100, 0)
        guest.record.write(16, "HHBB", 0, 0, 0, 1)
        resume(guest, path)
        assert guest.tx.take() == [(i, 0) for i in range(N_ENTRIES)]
        guest.send()
        assert receive(guest) == 1


def test_other_back_end_left_buffers_in_a_packed_ring(tmp_path):
    path = tmp_path / "vm.sock"
    with stopped_guest(path, PACKED, place=10) as guest:
        record = guest.record
        record.write(12, "HH", 4, 5)  # free ones; before the last batch
        record.write(16, "HHBB", 14, 10, 1, 1)
        guest.tx.words[21] = words((100, 3, AVAIL))[0]  # not shown
        record.state(2, counter=5, last=2, buffer=7)
        record.state(0, counter=3, last=1, n=2)
        record.state(1, counter=0, buffer=9)
        os.pwrite(record.fd, b"\0", record.states_at + 32)
        record.state(5, counter=1, following=6)
        record.state(6, counter=2, following=6)
        resume(guest, path)
        assert [guest.tx.words[2 * i + 1] for i in (10, 12)] == words(
            (0, 9, USED | AVAIL), (0, 7, USED | AVAIL))
        guest.tx.n_avail = 13
        guest.send()
        assert receive(guest) == 1


def test_other_back_end_left_buffers_in_a_split_ring(tmp_path):
    path = tmp_path / "vm.sock"
    with stopped_guest(path, 0, place=10) as guest:
        record = guest.record
        record.write(12, "HH", 3, 8)  # a batch of two
        record.state(3, counter=1, following=4)
        record.state(4, counter=2, following=6)
        record.state(6, counter=5)
        record.state(2, counter=3)
        guest.tx.n_avail = 12
        guest.send()
        resume(guest, path)
        assert guest.tx.take() == [(2, 0), (6, 0)]
        assert receive(guest) == 1


@LAYOUTS
def test_all_buffers_were_in_flight(tmp_path, features):
    path = tmp_path / "vm.sock"
    with stopped_guest(path, features) as guest:
        guest.record.write(12, "H", 0xffff)
        for i in range(N_ENTRIES):
            guest.tx.add(i, 100, 0)
            guest.record.state(i, N_ENTRIES - i, last=i, buffer=i)
        resume(guest, path)
        assert guest.tx.take() == [(i, 0) for i in reversed(range(N_ENTRIES))]
        guest.send()
        assert receive(guest) == 1


@LAYOUTS
def test_ring_that_was_stopped_begins_where_its_messages_say(tmp_path,
                                                             features):
    path = tmp_path / "vm.sock"
    with guest_of(path, features) as (guest, _):
        records = guest.begin()
        guest.send()
        assert receive(guest) == 1
        guest.say(GET_BASE, struct.pack("=II", 1, 0))
        record = Records(records[0], features)
        assert record.read(8, "H") == (0,)
        guest.clear_ring(1)
        guest.tx.n_avail = guest.tx.n_used = 100
        guest.tx.halves[USED_AT // 2 + 1] = 0 if features & PACKED else 100
        guest.send()
        guest.start_ring(1, position=guest.position + (
            0x640064 if features & PACKED else 100))
        assert record.read(8, "H") == (1,)
        assert receive(guest) == 1
        os.close(records[0])


@LAYOUTS
def test_record_of_unknown_version_is_left_alone(tmp_path, features):
    path = tmp_path / "vm.sock"
    with stopped_guest(path, features) as guest:
        guest.record.write(8, "H", 2)
        guest.send()
        resume(guest, path)
        assert receive(guest) == 1
        assert guest.record.read(8, "H") == (2,)


# ---- a peer that lies ----

WRONG = [
    (16, "HHBB", (N_ENTRIES, 0, 1, 1)),
    (16, "HHBB", (0, 0xffff, 1, 1)),
    (16, "HHBB", (5, 10, 1, 1)),
    (32, "BBHHH", (1, 0, 0, N_ENTRIES, 1)),  # last of its chain
    (32, "BBHHH", (1, 0, 0, 0, 0)),  # descriptors
    (32, "BBHHH", (1, 0, 0, 0, N_ENTRIES + 1)),
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_invalid_record_is_ignored(tmp_path, wrong):
    path = tmp_path / "vm.sock"
    with stopped_guest(path, PACKED) as guest:
        at, form, values = wrong
        guest.record.write(12, "HH", 0xffff, 0xffff)
        guest.record.write(at, form, *values)
        guest.send()
        resume(guest, path)
        assert guest.record.read(16, "HHBB") == (0, 0, 1, 1)
        assert receive(guest) == 1


@LAYOUTS
def test_lists_that_never_end(tmp_path, features):
    path = tmp_path / "vm.sock"
    with stopped_guest(path, features) as guest:
        guest.record.write(12, "HH", 3, 3)
        guest.record.state(3, counter=1, following=3)
        guest.send()
        resume(guest, path)


@LAYOUTS
def test_random_records(tmp_path, features):
    path = tmp_path / "vm.sock"
    chance = random.Random(1)
    with stopped_guest(path, features) as guest:
        for _ in range(100):
            garbage = bytearray(chance.randbytes(guest.records[1]))
            for ring in 0, 1:
                at = ring * record_bytes(features, N_ENTRIES)
                garbage[at + 8:at + 10] = b"\1\0"
                if chance.random() < 0.5:  # few that are in flight
                    garbage[at + 32:at + 8192:16] = bytes(510)
                    garbage[at + 16:at + 24] = bytes(8)
            os.pwrite(guest.records[0], garbage, 0)
            resume(guest, path)
            receive(guest)
            guest.socket.close()
            guest.port.poll()


MESSAGES = {
    "no queues": {"n_queues": 0},
    "too many queues": {"n_queues": 200},
    "no entries": {"n_entries": 0},
    "too many entries": {"n_entries": 32769},
    "unaligned": {"at": 8},
    "no bytes": {"n_bytes": 0},
    "more than the file": {"n_bytes": 1 << 20},
    "wraps": {"at": 2 ** 64 - 64},
}


@pytest.mark.parametrize("wrong", MESSAGES.values(), ids=list(MESSAGES))
def test_invalid_message_is_refused(tmp_path, wrong):
    with guest_of(tmp_path / "vm.sock", PACKED) as (guest, _):
        fd, n_bytes = guest.begin()
        assert guest.set_records(fd, **{"n_bytes": n_bytes, **wrong}) == 1
        guest.send()
        assert receive(guest) == 1
        os.close(fd)


@LAYOUTS
@pytest.mark.parametrize("wrong", [{"n_bytes": 64}, {"n_queues": 1},
                                   {"n_entries": 64}], ids=str)
def test_ring_without_a_record_runs(tmp_path, features, wrong):
    with guest_of(tmp_path / "vm.sock", features) as (guest, _):
        fd, n_bytes = guest.begin()
        assert guest.set_records(fd, **{"n_bytes": n_bytes, **wrong}) == 0
        guest.send()
        assert receive(guest) == 1
        os.close(fd)


def test_records_cannot_shrink(tmp_path):
    with guest_of(tmp_path / "vm.sock", PACKED) as (guest, _):
        guest.begin()
        n_bytes = 2 * record_bytes(PACKED, N_ENTRIES)
        fd = os.memfd_create("records", os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, n_bytes)
        assert guest.set_records(fd, n_bytes) == 0
        with pytest.raises(PermissionError):
            os.ftruncate(fd, 0)
        os.close(fd)
        fd = os.memfd_create("records")
        os.ftruncate(fd, n_bytes)
        assert guest.set_records(fd, n_bytes) == 1
        os.close(fd)
        guest.say(GET_RECORDS, struct.pack("=QQHH", 0, 0, 0, 64))
        assert guest.socket.recv(1) == b"", "the connection ends"


@LAYOUTS
def test_killed_process_resumes(lab, tmp_path, features):
    path = tmp_path / "vm.sock"
    guest = records = None
    for _ in range(24):
        process = Process(lab, lab.namespace("device"), [
            L2FWD, "--mode", "macswap", "--quiet", "--burst", str(BURST),
            "--idle", "poll", f"vhost:{path}"])
        if guest is None:
            wait_until("it listens", path.exists)
            guest = Guest(None, path, features)
        else:
            wait_until("it listens", lambda: not refuses(guest, path))
        records = guest.begin(records)
        before = len(guest.received)
        wait_until("frames return", lambda: guest.run(0.01) or len(
            guest.received) > before + 100)
        guest.run(random.uniform(0, 0.01))
        process.kill()
        guest.look()
    check_order(guest)
    guest.close()
    os.close(records[0])


def refuses(guest, path):
    try:
        guest.connect(path)
    except OSError:
        return True
    return False


def check_order(guest):
    """None came twice, and each time at most a burst was lost."""
    steps = [b - a for a, b in zip(guest.received, guest.received[1:])]
    gaps = [step - 1 for step in steps if step != 1]
    print(len(guest.received), "frames, gaps:", gaps)
    assert all(0 < gap <= BURST for gap in gaps), gaps
    assert len(gaps) <= 24
