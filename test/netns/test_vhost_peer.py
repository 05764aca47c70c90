# SPDX-License-Identifier: BSD-3-Clause
"""vhost: ports, whose peer and guest are this test: it writes what it likes."""
import os
import re
import struct
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from lib.namespaces import wait_until
from lib.process import L2FWD, Process
from lib.vhost_peer import (
    ADD_REGION,
    BUFFERS_AT,
    FRAME,
    GET_BASE,
    GUEST_ADDR,
    LOG_ALL,
    LOG_AT,
    LOG_BYTES,
    LOG_SHMFD,
    PROTOCOL_FEATURES,
    REPLY_ACK,
    SET_CALL,
    SET_FEATURES,
    SET_LOG_BASE,
    SET_NUM,
    SET_PROTOCOL,
    SHARED_BYTES,
    SLOTS,
    VERSION_1,
    WRITE,
    Peer,
    peer_of,
)
from millrace import Error


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


def test_first_error_of_a_connection_is_logged(lab, tmp_path):
    """A peer that wants replies can err for ever."""
    path = tmp_path / "vm.sock"
    device = Process(lab, lab.namespace("device"),
                     [L2FWD, "--quiet", f"vhost:{path}", "null:"])
    wait_until("it listens", path.exists)
    for n in 1, 2:
        peer = Peer(None, path)
        peer.negotiate()
        for _ in range(20):
            assert peer.ask(SET_NUM, struct.pack("=II", 0, 3)) == 1
        peer.close()
        wait_until("it is logged", lambda: device.err.text().count(
            "invalid ring size") >= n)
        assert device.err.text().count("invalid ring size") == n
