# SPDX-License-Identifier: BSD-3-Clause
"""vhost: ports, whose peer and guest are this test: it writes what it likes."""
import array
import mmap
import os
import re
import socket
import struct
import sys
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from lib.process import BUILD

sys.path.insert(0, str(BUILD / "bindings/python"))

from millrace import Error, Pool, Port  # noqa: E402

SET_FEATURES, SET_LOG_BASE, SET_NUM, SET_ADDR, SET_BASE = 2, 6, 8, 9, 10
GET_BASE, SET_KICK, SET_CALL, SET_PROTOCOL, ENABLE = 11, 12, 13, 16, 18
ADD_REGION = 37
NEED_REPLY, NO_FD = 8, 0x100
VERSION_1, LOG_ALL, PROTOCOL_FEATURES = 1 << 32, 1 << 26, 1 << 30
LOG_SHMFD, REPLY_ACK, SLOTS = 1 << 1, 1 << 3, 1 << 15
NEXT, WRITE = 1, 2
GUEST_ADDR = 0x100000
N_ENTRIES = 512
RING_BYTES, AVAIL_AT, USED_AT = 0x4000, 0x2000, 0x2800
BUFFERS_AT = 4 * RING_BYTES
LOG_AT, LOG_BYTES = 0xff000, 0x100
SHARED_BYTES = 1 << 20
FRAME = bytes.fromhex("0200000000020200000000010800") + bytes(50)


class Peer:
    """A VMM and its guest."""

    def __init__(self, port, path):
        self.port = port
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.fd = os.memfd_create("guest", os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, SHARED_BYTES)
        self.memory = mmap.mmap(self.fd, SHARED_BYTES)
        self.n_avail = [0, 0]
        port.poll()

    def close(self):
        self.socket.close()
        self.memory.close()
        os.close(self.fd)
        self.port.poll()

    def say(self, request, payload, fd=None, flags=1):
        control = [] if fd is None else [
            (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
        self.socket.sendmsg([struct.pack("=III", request, flags, len(payload))
                             + payload], control)
        self.port.poll()

    def ask(self, request, payload, fd=None):
        """What is replied; 0: done."""
        self.say(request, payload, fd, 1 | NEED_REPLY)
        self.socket.settimeout(5)
        return struct.unpack("=IIIQ", self.socket.recv(20))[3]

    def say_u64(self, request, value):
        self.say(request, struct.pack("=Q", value))

    def start(self, features=0, call=None):
        self.say_u64(SET_FEATURES, VERSION_1 | PROTOCOL_FEATURES | features)
        self.say_u64(SET_PROTOCOL, LOG_SHMFD | REPLY_ACK | SLOTS)
        self.say(ADD_REGION, struct.pack("=5Q", 0, GUEST_ADDR, SHARED_BYTES, 0,
                                         0), self.fd)
        if features & LOG_ALL:
            assert self.ask(SET_LOG_BASE, struct.pack("=QQ", LOG_BYTES, LOG_AT),
                            self.fd) == 0
        for ring in 0, 1:
            self.start_ring(ring, call)
        assert self.port.link()["is_up"]

    def start_ring(self, ring, call=None):
        at = ring * RING_BYTES
        self.say(SET_NUM, struct.pack("=II", ring, N_ENTRIES))
        self.say(SET_BASE, struct.pack("=II", ring, 0))
        self.say(SET_ADDR, struct.pack("=II4Q", ring, 0, at, at + USED_AT,
                                       at + AVAIL_AT, 0))
        if call is None:
            self.say_u64(SET_CALL, ring | NO_FD)
        else:
            self.say(SET_CALL, struct.pack("=Q", ring), call)
        self.say_u64(SET_KICK, ring | NO_FD)
        self.say(ENABLE, struct.pack("=II", ring, 1))

    def clear_ring(self, ring):
        at = ring * RING_BYTES
        self.memory[at:at + RING_BYTES] = bytes(RING_BYTES)
        self.n_avail[ring] = 0

    def write_chain(self, ring, first, buffers, flags):
        """Make (address, bytes) available, in descriptors from `first` on."""
        at = ring * RING_BYTES
        for i, (addr, n_bytes) in enumerate(buffers):
            more = NEXT if i + 1 < len(buffers) else 0
            struct.pack_into("=QIHH", self.memory, at + 16 * (first + i),
                             GUEST_ADDR + addr, n_bytes, flags | more,
                             first + i + 1)
        n = self.n_avail[ring]
        struct.pack_into("=H", self.memory, at + AVAIL_AT + 4 + 2 * n, first)
        self.n_avail[ring] = n + 1
        struct.pack_into("=H", self.memory, at + AVAIL_AT + 2, n + 1)


@contextmanager
def peer_of(path, options="", n_pages=0):
    with Pool(n_pages) as pool, Port(pool, f"vhost:{path}{options}") as port:
        peer = Peer(port, path)
        yield peer, pool
        peer.close()


@contextmanager
def take_all(pool):
    """Hold all pages."""
    with ExitStack() as stack:
        for n in [128] * 8 + [1] * 256:
            with suppress(Error):
                stack.enter_context(pool.burst([FRAME] * n))
        yield


def virtual_bytes():
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmSize:\s+(\d+) kB", status)[1]) << 10


def test_long_chains_wait_for_pages(tmp_path):
    """Two chains that do not fit into one round are valid, if pages lack."""
    with peer_of(tmp_path / "vm.sock", n_pages=1024) as (peer, pool):
        peer.start()
        for i in range(2):
            peer.write_chain(1, 200 * i, [(BUFFERS_AT, 4)] * 200, 0)
        with take_all(pool), peer.port.rx().receive() as none:
            assert len(none) == 0
        n = 0
        for _ in range(2):
            with peer.port.rx().receive() as frames:
                n += len(frames)
        assert n == 2


def test_log_has_only_what_was_written(tmp_path):
    """A buffer may be large, and be there many times: logging it takes long."""
    with peer_of(tmp_path / "vm.sock") as (peer, pool):
        peer.start(LOG_ALL)
        peer.write_chain(0, 0, [(BUFFERS_AT, 0x40000)], WRITE)
        with pool.burst([FRAME]) as burst:
            peer.port.tx().send(burst)
        log = int.from_bytes(peer.memory[LOG_AT:LOG_AT + LOG_BYTES], "little")
        first = (GUEST_ADDR + BUFFERS_AT) >> 12
        assert log >> first & 1 == 1
        assert log >> first + 1 == 0


def test_only_shared_bytes_are_mapped(tmp_path):
    """A region far into a file takes no more addresses than it has bytes."""
    with peer_of(tmp_path / "vm.sock", ",memory=1") as (peer, _):
        far = 1 << 40
        os.ftruncate(peer.fd, far + SHARED_BYTES)
        peer.say_u64(SET_FEATURES, VERSION_1 | PROTOCOL_FEATURES)
        peer.say_u64(SET_PROTOCOL, LOG_SHMFD | REPLY_ACK | SLOTS)
        before = virtual_bytes()
        region = struct.pack("=5Q", 0, GUEST_ADDR, SHARED_BYTES, 0, far)
        assert peer.ask(ADD_REGION, region, peer.fd) == 0
        assert virtual_bytes() - before < 1 << 30
        peer.say(SET_LOG_BASE, struct.pack("=QQ", far, 0), peer.fd)
        assert virtual_bytes() - before < 1 << 30
        assert peer.socket.recv(20) == b""


def test_broken_ring_stops_until_the_driver_resets_it(tmp_path):
    with peer_of(tmp_path / "vm.sock") as (peer, _):
        peer.start()

        def receive():
            with peer.port.rx().receive() as frames:
                n = len(frames)
            peer.port.poll()
            return n, peer.port.link()["is_up"]

        peer.write_chain(1, 0, [(SHARED_BYTES, 100)], 0)
        assert receive() == (0, False)
        # Valid now, but the ring stays stopped, whatever else is sent.
        peer.clear_ring(1)
        peer.write_chain(1, 0, [(BUFFERS_AT, 100)], 0)
        peer.say_u64(SET_FEATURES, VERSION_1 | PROTOCOL_FEATURES)
        assert receive() == (0, False)
        peer.say(GET_BASE, struct.pack("=II", 1, 0))
        peer.start_ring(1)
        assert receive() == (1, True)


def test_worker_does_not_wait_for_a_full_eventfd(tmp_path):
    """The peer fills the counter, and makes writes wait."""
    call = os.eventfd(0)
    with peer_of(tmp_path / "vm.sock") as (peer, pool):
        peer.start(call=call)
        os.eventfd_read(call)
        os.eventfd_write(call, 2 ** 64 - 2)
        os.set_blocking(call, True)
        peer.write_chain(0, 0, [(BUFFERS_AT, 0x1000)], WRITE)
        with pool.burst([FRAME]) as burst:
            assert peer.port.tx().send(burst) == 1
        peer.say(SET_CALL, struct.pack("=Q", 0), call)
    os.close(call)
