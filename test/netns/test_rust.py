# SPDX-License-Identifier: BSD-3-Clause
"""The crates for Rust on real interfaces, through their examples."""
import socket

import pytest
from lib import talk
from lib.process import Process
from lib.wire import TEST_TYPE, Wire, frame


@pytest.fixture
def example(lab, rust_path):
    """A function that starts one in a namespace."""
    def start(namespace, name, *arguments):
        if not (rust_path / name).exists():
            pytest.skip("the examples in Rust are not built")
        return Process(lab, namespace, [rust_path / name, *arguments])
    return start


def test_stack_in_the_program_answers_the_kernel(lab, star, example):
    """smoltcp has an address that the kernel of its namespace does not."""
    host = star.hosts[0]
    echo = example(star.middle, "udp_echo", "p0", "10.99.0.1/24", 7)
    assert echo.out.wait("ready".__eq__, 30), echo.err.text()
    host.ip("address", "add", "10.99.0.2/24", "dev", "h0")
    with talk.socket_in(host, socket.SOCK_DGRAM) as client:
        client.connect(("10.99.0.1", 7))
        for n_bytes in [1, 100, 1472]:
            payload = bytes(i % 251 for i in range(n_bytes))
            client.send(payload)
            assert client.recv(2000) == payload
    assert talk.ping(host, "10.99.0.1") > 0


def test_workers_forward_until_they_are_stopped(lab, star, example):
    wires = [lab.closing(Wire(host, "h0", TEST_TYPE))
             for host in star.hosts[:2]]
    forward = example(star.middle, "l2fwd", "p0", "p1", 5)
    assert forward.out.wait("forwarding".__eq__, 30), forward.err.text()
    for near, far in (0, 1), (1, 0):
        frames = [frame(60 + 100 * i, i) for i in range(14)]
        wires[near].send_all(frames)
        assert wires[far].receive(len(frames)) == frames
    assert forward.wait() == 0, forward.err.text()
    assert "worker 0 rounds" in forward.out.text()


def test_tasks_forward_and_sleep(lab, star, example):
    wires = [lab.closing(Wire(host, "h0", TEST_TYPE))
             for host in star.hosts[:2]]
    forward = example(star.middle, "async", "p0", "p1", 600)
    assert forward.out.wait(lambda line: line.endswith("frames/s"), 30), \
        forward.err.text()
    for near, far in (0, 1), (1, 0):
        frames = [frame(60 + 100 * i, i) for i in range(14)]
        wires[near].send_all(frames)
        assert wires[far].receive(len(frames)) == frames
