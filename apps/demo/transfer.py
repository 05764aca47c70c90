# SPDX-License-Identifier: BSD-3-Clause
"""One TCP transfer: bytes, and a hash so that both ends can compare.

usage: transfer.py receive PORT
       transfer.py send ADDRESS PORT BYTES
Each prints one line: bytes, seconds, hash.
"""
import hashlib
import os
import socket
import sys
import time

BLOCK_BYTES = 1 << 16
LIMIT_S = 30


def receive(port):
    """Take one connection; print 'ready' when it can come."""
    with socket.create_server(("0.0.0.0", port)) as server:
        server.settimeout(LIMIT_S)
        print("ready", flush=True)
        connection, _ = server.accept()
    n, digest, start_s = 0, hashlib.sha256(), time.monotonic()
    with connection:
        connection.settimeout(LIMIT_S)
        while block := connection.recv(BLOCK_BYTES):
            n += len(block)
            digest.update(block)
    return n, time.monotonic() - start_s, digest.hexdigest()


def send(address, port, n_bytes):
    """Send that many bytes nobody can guess."""
    block, digest = os.urandom(BLOCK_BYTES), hashlib.sha256()
    n, start_s = 0, time.monotonic()
    with socket.create_connection((address, port), LIMIT_S) as connection:
        while n < n_bytes:
            part = block[:n_bytes - n]
            connection.sendall(part)
            digest.update(part)
            n += len(part)
    return n, time.monotonic() - start_s, digest.hexdigest()


def main(arguments):
    if arguments[0] == "receive":
        result = receive(int(arguments[1]))
    else:
        result = send(arguments[1], int(arguments[2]), int(arguments[3]))
    print(*result)


main(sys.argv[1:])
