# SPDX-License-Identifier: BSD-3-Clause
"""Parcels of a hand-over (docs/design/0014-upgrade.md), as text and as messages.

A line of text is an entry:

    NAME LAYOUT BYTES...            bytes in hex; ".N" is N zeros
    NAME fd memfd SIZE SEALS        instead of an fd, what it was
    NAME fd listen

A line "[offer]" or "[state]" begins a parcel. Here and in what is sent, nothing
comes from the library: it has to read what an older one sent.
"""
import fcntl
import mmap
import os
import re
import socket
import struct
import time
from pathlib import Path

MAGIC, PARCEL_FORMAT = 0x6d727063, 1
HEAD = struct.Struct("<IIQII")
ENTRY = struct.Struct("<IIQ40s")
SEALS = 0xf  # SEAL, SHRINK, GROW, WRITE
FDS_PER_MESSAGE = 200
OLD, OFFERED, NEW = range(3)  # whose it is
AGE_S = 100  # of the old process, when it is played


def to_words(data):
    return " ".join(
        f".{len(part)}" if part.startswith(b"\0\0\0\0") else part.hex()
        for part in re.findall(rb"\0{4,}|(?:(?!\0{4}).)+", data, re.DOTALL))


def from_words(words):
    return b"".join(bytes(int(word[1:])) if word[0] == "." else bytes.fromhex(word)
                    for word in words)


def is_listening(fd):
    with socket.socket(fileno=os.dup(fd)) as sock:
        return sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)


def describe(fd):
    if "/memfd:" in os.readlink(f"/proc/self/fd/{fd}"):
        return f"memfd {os.fstat(fd).st_size} {fcntl.fcntl(fd, fcntl.F_GET_SEALS)}"
    assert is_listening(fd), os.readlink(f"/proc/self/fd/{fd}")
    return "listen"


def new_memfd(n_bytes, seals, data=b""):
    fd = os.memfd_create("recorded", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.truncate(fd, n_bytes)
    os.pwrite(fd, data, 0)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def receive(sock):
    """A parcel: its entries by name, each (layout, bytes) or the fd."""
    head, fds, _, _ = socket.recv_fds(sock, HEAD.size, 1)
    if not head:
        raise EOFError("the other process is gone")
    magic, parcel_format, n_bytes, n_fds, n_entries = HEAD.unpack(head)
    assert (magic, parcel_format, len(fds)) == (MAGIC, PARCEL_FORMAT, 1)
    data = os.pread(fds[0], n_bytes, 0)
    os.close(fds[0])
    fds = []
    while len(fds) < n_fds:
        fds += socket.recv_fds(sock, 4, FDS_PER_MESSAGE)[1]
    entries, at = {}, 0
    while at < n_bytes:
        layout, fd_plus_1, n, name = ENTRY.unpack_from(data, at)
        at += ENTRY.size
        entries[name.rstrip(b"\0").decode()] = \
            fds[fd_plus_1 - 1] if fd_plus_1 else (layout, data[at:at + n])
        at += n + -n % 8
    assert len(entries) == n_entries
    return entries


def send(sock, entries):
    data, fds = b"", []
    for name, value in entries.items():
        if isinstance(value, int):
            fds.append(value)
            data += ENTRY.pack(0, len(fds), 0, name.encode())
        else:
            layout, some = value
            data += ENTRY.pack(layout, 0, len(some), name.encode()) + some + bytes(-len(some) % 8)
    memfd = new_memfd(len(data), SEALS, data)
    socket.send_fds(sock, [HEAD.pack(MAGIC, PARCEL_FORMAT, len(data), len(fds), len(entries))],
                    [memfd])
    os.close(memfd)
    for i in range(0, len(fds), FDS_PER_MESSAGE):
        socket.send_fds(sock, [struct.pack("<I", i)], fds[i:i + FDS_PER_MESSAGE])


def to_text(entries):
    return "".join(f"{name} fd {describe(value)}\n" if isinstance(value, int)
                   else f"{name} {value[0]} {to_words(value[1])}".strip() + "\n"
                   for name, value in entries.items())


class Recording:
    """What an old process has sent, with new fds."""

    def __init__(self, path, listener=None):
        self.parcels, self.fds = {}, []
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            if line.startswith("["):
                entries = self.parcels[line[1:-1]] = {}
            elif not line.startswith("#"):
                name, what, *words = line.split()
                entries[name] = (int(what), from_words(words)) if what != "fd" else \
                    self.new_fd(words, listener)
        self.owner = mmap.mmap(self.parcels["offer"]["owner"], 4096)

    def new_fd(self, words, listener):
        if words == ["listen"]:
            return listener.fileno()
        self.fds.append(new_memfd(int(words[1]), int(words[2])))
        return self.fds[-1]

    def close(self):
        for fd in self.fds:
            os.close(fd)

    def play(self, sock):
        """The old process's side; who owns it at the end, and what was refused."""
        receive(sock)
        for parcel in self.parcels.values():
            if parcel is self.parcels.get("state"):
                self.owner[:4] = struct.pack("=I", OFFERED)
                if "start_ns" in parcel:
                    parcel["start_ns"] = 0, struct.pack("=Q", time.monotonic_ns() - AGE_S * 10 ** 9)
            send(sock, parcel)
            answer = receive(sock)
            if "why" in answer:
                return OLD, answer["why"][1].decode()
        return struct.unpack("=I", self.owner[:4])[0], ""


def record(sock, path, note="", formats=(1, 1), why=""):
    """The new process's side, which does not take the state; or refuses the
    offer."""
    send(sock, {"hello": (0, struct.pack("=II", *formats))})
    offer = receive(sock)
    if "why" in offer:
        return
    if why:
        send(sock, {"why": (0, why.encode())})
        return
    send(sock, {"ready": (0, b"")})
    Path(path).write_text(f"# {note}\n[offer]\n{to_text(offer)}[state]\n{to_text(receive(sock))}",
                          encoding="utf-8")
