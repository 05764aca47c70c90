# SPDX-License-Identifier: BSD-3-Clause
"""examples/lwip.c: a TCP/IP stack on a port, beside the kernel of a host."""
import os
import signal
import socket

import pytest
from lib import talk
from lib.namespaces import wait_until
from lib.process import BUILD, Process
from lib.servers import need
from lib.wire import Wire
from scapy.all import IP, UDP, Ether, IPv6, IPv6ExtHdrFragment

LWIP = BUILD / "examples/example-lwip"
ADDRESSES = ["10.77.0.9", "2001:db8:77::9"]
WORDS = ["10.77.0.9/24", "2001:db8:77::9"]
FILE_BYTES = 5_000_003
HEADER = b"HTTP/1.0 200 OK\r\n\r\n"


class Stack(Process):
    """One on the port of a host's veth, which serves random bytes."""

    def __init__(self, lab, star):
        self.middle, self.host = star.middle, star.hosts[0]
        self.host.sysctl("net.ipv6.conf.h0.disable_ipv6", 0)
        self.host.ip("address", "add", "2001:db8:77::1/64", "dev", "h0", "nodad")
        self.path = lab.tmp_path / "file"
        self.path.write_bytes(os.urandom(FILE_BYTES))
        super().__init__(lab, self.middle, [LWIP, self.path, *WORDS, "p0"])
        assert self.out.wait("ready".__eq__, 30), self.err.text()
        # For 2 s, lwIP looks for another owner of an IPv6 address.
        for address in ADDRESSES:
            wait_until(f"{address} answers", lambda address=address:
                       self.host.run("ping", "-c", 1, "-W", 1, address,
                                     check=False).returncode == 0)

    def stop(self):
        """End it with Ctrl-C: it fails if a page is missing. Returns what it
        printed."""
        self.process.send_signal(signal.SIGINT)
        assert self.wait() == 0, self.err.text()
        assert not self.middle.link("p0").get("xdp")
        return self.out.text()

    def connect(self, address, port):
        client = talk.socket_in(self.host, socket.SOCK_STREAM, address)
        client.connect((address, port))
        return client


@pytest.fixture
def stack(lab, star):
    if not LWIP.exists():
        pytest.skip("liblwip is missing (package liblwip-dev)")
    return Stack(lab, star)


def read_all(client):
    data = b""
    while some := client.recv(1 << 16):
        data += some
    return data


def test_http_serves_a_file_to_curl(lab, stack):
    need("curl", "curl")
    got = lab.tmp_path / "got"
    for address in ADDRESSES:
        url = f"http://[{address}]/" if ":" in address else f"http://{address}/"
        stack.host.run("curl", "-gsS", "--max-time", 40, "-o", got, url)
        assert got.read_bytes() == stack.path.read_bytes()
    assert stack.stop().endswith("0 refused, 0 not sent")


def test_iperf_sends_all_bytes(stack):
    need("iperf", "iperf")
    for more, address in zip(([], ["-V"]), ADDRESSES):
        stack.host.run("iperf", "-c", address, *more, "-n", 8 << 20)
        wait_until("the connection is closed", lambda: stack.out.wait(
            lambda line, address=address: line.endswith(" bytes") and
            (":" in line.split(": ")[0]) == (":" in address), 1))
    sizes = [int(line.split()[-2]) for line in stack.stop().splitlines()
             if line.endswith(" bytes")]
    assert len(sizes) == 2 and min(sizes) >= 8 << 20, sizes


@pytest.mark.parametrize("address", ADDRESSES)
def test_requests_in_pieces_and_many_clients(stack, address):
    """A request byte by byte; one whose client closes its half; 40 at once."""
    wanted = HEADER + stack.path.read_bytes()
    with stack.connect(address, 80) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"GET / HTTP/1.0\r\nA: \r\r\n\r\n":
            client.send(bytes([byte]))
        client.shutdown(socket.SHUT_WR)
        assert read_all(client) == wanted
    clients = [stack.connect(address, 80) for _ in range(40)]
    for client in clients:
        client.send(b"GET / HTTP/1.0\r\n\r\n")
    for client in clients[:4]:
        assert read_all(client) == wanted
    for client in clients:  # most have not read: these are reset
        client.close()
    stack.stop()


def test_frames_that_the_stack_has_at_the_end_are_freed(lab, stack):
    """Connections in all states, and fragments of packets that never come."""
    clients = [stack.connect(address, port) for address in ADDRESSES
               for port in (80, 5001)]
    for client in clients[::2]:
        client.send(b"GET / HTTP/1.0\r\n\r\n")
        assert client.recv(1) == b"H"
    for client in clients[1::2]:
        client.send(bytes(100_000))
    ether = Ether(dst=stack.middle.link("p0")["address"],
                  src=stack.host.link("h0")["address"])
    wire = lab.closing(Wire(stack.host, "h0"))
    for i in range(4):
        wire.send_all([
            bytes(ether / IP(src="10.77.0.1", dst=ADDRESSES[0], flags="MF",
                             id=i) / UDP() / bytes(1000)),
            bytes(ether / IPv6(src="2001:db8:77::1", dst=ADDRESSES[1]) /
                  IPv6ExtHdrFragment(m=1, id=i, nh=17) / UDP() / bytes(1000))])
    assert talk.ping(stack.host, ADDRESSES[0], 1)  # it has seen them
    stack.stop()
    for client in clients:
        with client, pytest.raises(ConnectionResetError):
            read_all(client)
            client.send(b"x")  # after what came before the reset
            read_all(client)


@pytest.mark.parametrize("words, status, named", [
    ([], 2, "usage: "),
    (["FILE", "10.77.0.9", WORDS[1], "p0"], 2, "192.0.2.1/24"),
    (["FILE", "10.77.0.9/33", WORDS[1], "p0"], 2, "10.77.0.9/33"),
    (["FILE", "10.77.0.9/24x", WORDS[1], "p0"], 2, "10.77.0.9/24x"),
    (["FILE", "10.77.0.999/24", WORDS[1], "p0"], 2, "10.77.0.999/24"),
    (["FILE", "224.0.0.1/24", WORDS[1], "p0"], 2, "224.0.0.1/24"),
    (["FILE", WORDS[0], "2001:db8::1::2", "p0"], 2, "2001:db8::1"),
    (["FILE", WORDS[0], "ff02::1", "p0"], 2, "ff02::1"),
    (["/nonexistent", *WORDS, "p0"], 1, "/nonexistent: No such file"),
    (["/tmp", *WORDS, "p0"], 1, "/tmp: not a file"),
    (["FILE", *WORDS, "p9"], 1, "p9")])
def test_wrong_arguments_are_named(lab, star, words, status, named):
    if not LWIP.exists():
        pytest.skip("liblwip is missing (package liblwip-dev)")
    (lab.tmp_path / "file").write_bytes(b"")
    words = [lab.tmp_path / "file" if word == "FILE" else word for word in words]
    done = star.middle.run(LWIP, *words, check=False)
    assert done.returncode == status and named in done.stdout, done.stdout
    assert done.stdout.count("\n") == 1
