# SPDX-License-Identifier: BSD-3-Clause
"""The peer of a vhost: port, and its guest: a test that writes what it likes."""
import array
import mmap
import os
import socket
import struct
import sys
from contextlib import contextmanager

from lib.process import BUILD

sys.path.insert(0, str(BUILD / "bindings/python"))

from millrace import Pool, Port  # noqa: E402

SET_FEATURES, SET_LOG_BASE, SET_NUM, SET_ADDR, SET_BASE = 2, 6, 8, 9, 10
GET_BASE, SET_KICK, SET_CALL, SET_PROTOCOL, ENABLE = 11, 12, 13, 16, 18
GET_RECORDS, SET_RECORDS, ADD_REGION = 31, 32, 37
NEED_REPLY, NO_FD = 8, 0x100
VERSION_1, LOG_ALL, PROTOCOL_FEATURES = 1 << 32, 1 << 26, 1 << 30
LOG_SHMFD, REPLY_ACK, IN_FLIGHT, SLOTS = 1 << 1, 1 << 3, 1 << 12, 1 << 15
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
        self.port = port  # None: of another process
        self.fd = os.memfd_create("guest", os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, SHARED_BYTES)
        self.memory = mmap.mmap(self.fd, SHARED_BYTES)
        self.n_avail = [0, 0]
        self.connect(path)

    def connect(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.poll()

    def poll(self):
        if self.port:
            self.port.poll()

    def close(self):
        self.socket.close()
        self.memory.close()
        os.close(self.fd)
        self.poll()

    def say(self, request, payload, fd=None, flags=1):
        control = [] if fd is None else [
            (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
        self.socket.sendmsg([struct.pack("=III", request, flags, len(payload))
                             + payload], control)
        self.poll()

    def ask(self, request, payload, fd=None):
        """What is replied; 0: done."""
        self.say(request, payload, fd, 1 | NEED_REPLY)
        self.socket.settimeout(5)
        return struct.unpack("=IIIQ", self.socket.recv(20))[3]

    def say_u64(self, request, value):
        self.say(request, struct.pack("=Q", value))

    def negotiate(self, features=0):
        self.say_u64(SET_FEATURES, VERSION_1 | PROTOCOL_FEATURES | features)
        self.say_u64(SET_PROTOCOL, LOG_SHMFD | REPLY_ACK | IN_FLIGHT | SLOTS)
        self.say(ADD_REGION, struct.pack("=5Q", 0, GUEST_ADDR, SHARED_BYTES, 0,
                                         0), self.fd)

    def get_records(self, n_queues=2, n_entries=N_ENTRIES, tail=bytes(4)):
        """A new file for the records of queues, and how many bytes it has."""
        self.say(GET_RECORDS, struct.pack("=QQHH", 0, 0, n_queues, n_entries)
                 + tail)
        self.socket.settimeout(5)
        reply, fds, _, _ = socket.recv_fds(self.socket, 100, 1)
        request, flags, length, n_bytes, at, *queues = struct.unpack(
            "=IIIQQHH", reply[:32])
        assert (request, flags, length) == (GET_RECORDS, 5, 20 + len(tail))
        assert [at, *queues] == [0, n_queues, n_entries]
        return fds[0], n_bytes

    def set_records(self, fd, n_bytes, at=0, n_queues=2, n_entries=N_ENTRIES):
        """0: they are taken."""
        return self.ask(SET_RECORDS, struct.pack(
            "=QQHHI", n_bytes, at, n_queues, n_entries, 0), fd)

    def start(self, features=0, call=None):
        self.negotiate(features)
        if features & LOG_ALL:
            assert self.ask(SET_LOG_BASE, struct.pack("=QQ", LOG_BYTES, LOG_AT),
                            self.fd) == 0
        for ring in 0, 1:
            self.start_ring(ring, call)
        assert self.port.link()["is_up"]

    def start_ring(self, ring, call=None, position=0):
        at = ring * RING_BYTES
        self.say(SET_NUM, struct.pack("=II", ring, N_ENTRIES))
        self.say(SET_BASE, struct.pack("=II", ring, position))
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
def peer_of(path, options="", n_pages=0, peer_type=Peer):
    with Pool(n_pages) as pool, Port(pool, f"vhost:{path}{options}") as port:
        peer = peer_type(port, path)
        yield peer, pool
        peer.close()
