# SPDX-License-Identifier: BSD-3-Clause
"""Two kernels talk through the forwarder: ping, TCP and UDP."""
import hashlib
import os
import re
import socket
import threading

from host import limit

LIMIT_S = limit(20.0)


def ping(namespace, address, count=3, size=56, more=()):
    """Ping; how many answers came. All at once, then up to 20 s for the last:
    once one has come, ping waits for others no longer than an interval."""
    done = namespace.run("ping", "-n", "-c", count, "-l", count, "-i", 20,
                         "-W", 20, "-s", size, *more, address, check=False)
    match = re.search(r"(\d+) received", done.stdout)
    assert match, done.stdout
    return int(match.group(1))


def socket_in(namespace, kind, address="0.0.0.0", port=None):
    """A socket of a namespace with a time limit; bound if there is a port."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with namespace:
        made = socket.socket(family, kind)
    made.settimeout(LIMIT_S)
    if port is not None:
        if port != 0:  # with this, two could get the same free port
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((address, port))
    return made


def tcp(sender, receiver, address, n_bytes=4 << 20, port=5001):
    """Send random bytes over TCP; the receiver must get just these."""
    listener = socket_in(receiver, socket.SOCK_STREAM, address, port)
    listener.listen(1)
    got = hashlib.sha256()
    failures = []

    def receive():
        try:
            peer, _ = listener.accept()
            with peer:
                peer.settimeout(LIMIT_S)
                while True:
                    data = peer.recv(1 << 16)
                    if not data:
                        return
                    got.update(data)
        except OSError as error:
            failures.append(error)

    thread = threading.Thread(target=receive)
    thread.start()
    data = os.urandom(n_bytes)
    try:
        with socket_in(sender, socket.SOCK_STREAM, address) as client:
            client.connect((address, port))
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            thread.join(LIMIT_S)
    finally:
        listener.close()
        thread.join(LIMIT_S)
    assert not failures, failures
    assert got.digest() == hashlib.sha256(data).digest(), "TCP lost bytes"


class Udp:
    """A UDP socket bound in a namespace."""

    def __init__(self, namespace, address, port=5002):
        self.socket = socket_in(namespace, socket.SOCK_DGRAM, address, port)

    def close(self):
        self.socket.close()

    def receive(self, limit_s=LIMIT_S):
        """One datagram's bytes, or None if none came."""
        self.socket.settimeout(limit_s)
        try:
            return self.socket.recv(70000)
        except TimeoutError:
            return None


def udp(sender, receiver, address, n=20, n_bytes=1200, port=5002,
        limit_s=LIMIT_S):
    """Send datagrams one by one; how many came as they were sent, until one
    did not."""
    server = Udp(receiver, address, port)
    n_good = 0
    try:
        with socket_in(sender, socket.SOCK_DGRAM, address) as client:
            for _ in range(n):
                data = os.urandom(n_bytes)
                client.sendto(data, (address, port))
                if server.receive(limit_s) != data:
                    break
                n_good += 1
    finally:
        server.close()
    return n_good
