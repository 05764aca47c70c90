# SPDX-License-Identifier: BSD-3-Clause
"""mr-brokerd in a namespace, and clients of it that have no privileges."""
import array
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import tempfile
from pathlib import Path

from host import limit

from .forwarder import Forwarder
from .process import BUILD, L2FWD, Process

BROKERD = BUILD / "apps" / "brokerd" / "mr-brokerd"
NOBODY = 65534
# Root without capabilities: the probe's library is in a folder of root.
POWERLESS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
# Small rings, so that little memory is registered.
SMALL = ["--ring", 64, "--workers", 1, "--page-bytes", 2048]

FIND, OPEN, SET, RSS, STEER, UNSTEER, FILTER, BIND = range(1, 9)
VERSION = 6
MAX_STUCK = 64  # CLIENTS_MAX_STUCK
SO_PASSRIGHTS = 83
ANSWER = struct.Struct("=IHHiI384sI")  # and more


def unprivileged(*words):
    """A command as a user without any capability."""
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}",
            "--clear-groups", "--bounding-set=-all", "--inh-caps=-all",
            "--no-new-privs", *words]


def rule(**changes):
    """A rule for that user as YAML, with changes; None: without that key."""
    keys = {"user": NOBODY, "interface": "p*", "memory": "64M",
            "transmit": "yes", "settings": "yes"} | changes
    lines = [f"{key}: {value}" for key, value in keys.items()
             if value is not None]
    return "rules:\n  - " + "\n    ".join(lines) + "\n"


class Broker(Process):
    """A running mr-brokerd, in a folder that others may enter."""

    def __init__(self, lab, namespace, rules=None, folder=None, wrap=()):
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="mrt-broker-"))
            folder.chmod(0o755)
            lab.closing(self)
        self.folder = folder
        self.socket = folder / "sock"
        (folder / "rules.yaml").write_text(rules or rule())
        super().__init__(lab, namespace, [
            *wrap, BROKERD, "--verbose", "--rules", folder / "rules.yaml",
            "--socket", self.socket])
        self.says("listening on")

    def close(self):
        shutil.rmtree(self.folder)

    def spec(self, port, options=""):
        return f"xdp:{port},broker={self.socket}{options}"

    def forwarder(self):
        """A copy of mr-l2fwd that the user may run."""
        copy = self.folder / L2FWD.name
        if not copy.exists():
            shutil.copy(L2FWD, copy)
            copy.chmod(0o755)
        return copy


def activated(lab, star, folder, listener, rules):
    """mr-brokerd as sd_listen_fds(3) has it: fd 3, LISTEN_PID, LISTEN_FDS."""
    (folder / "rules.yaml").write_text(rules)
    lab.popen(star.middle.command(
        "bash", "-c", f"exec 3<&{listener.fileno()}; LISTEN_FDS=1 "
        f"LISTEN_PID=$$ exec {BROKERD} --rules {folder}/rules.yaml"),
        pass_fds=[listener.fileno()], stderr=subprocess.DEVNULL)


def forwarder(lab, star, broker, options="", more=()):
    """mr-l2fwd of a user without privileges."""
    return Forwarder(lab, star.middle,
                     *[broker.spec(port, options) for port in star.ports],
                     options=[*SMALL, *more], wrap=unprivileged(),
                     program=broker.forwarder())


def flags(star):
    """What a port changes of its interface."""
    return [(link["flags"], link["mtu"], link.get("xdp"))
            for link in map(star.middle.link, star.ports)]


class RawClient:
    """A client that speaks the protocol as badly as it likes; greeting is what
    the broker says first."""

    def __init__(self, broker, is_greeted=True):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(str(broker.socket))
        self.socket.settimeout(limit(20.0))
        self.greeting = self.receive() if is_greeted else None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.socket.close()

    def send(self, data, fds=()):
        more = [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                 array.array("i", fds))] if fds else []
        self.socket.sendmsg([data], more)

    def receive(self):
        """(errno, number of sockets, reason, fds); None: it has hung up."""
        try:
            data, more, _, _ = self.socket.recvmsg(
                8192, socket.CMSG_SPACE(4 * 80))
        except ConnectionResetError:
            return None
        if not data:
            return None
        fds = array.array("i")
        for _, _, part in more:
            fds.frombytes(part[:len(part) // 4 * 4])
        _, _, _, err, _, reason, n_sockets = ANSWER.unpack_from(data)
        return -err, n_sockets, reason.split(b"\0")[0].decode(), list(fds)

    def ask(self, data, fds=()):
        self.send(data, fds)
        return self.receive()


def message(kind, body, version=VERSION, n_bytes=None):
    """A message with its head."""
    return struct.pack("=IHH", n_bytes or len(body) + 8, version, kind) + body


def open_request(interface="p0", segments=(1 << 20,), ring=64, queues=1,
                 insns=b"", n_insns=None, chunk=2048):
    """struct xdp_wire_open."""
    body = struct.pack("=16sQ", interface.encode(), 0)
    body += struct.pack("=10I", 2, 0, 0, 0, queues, 0, ring, 0, 0, 0)
    body += bytes(4) + struct.pack(
        "=5I", chunk, 0, 0, len(segments),
        len(insns) // 8 if n_insns is None else n_insns)
    body += struct.pack("=64Q", *segments, *[0] * (64 - len(segments)))
    return message(OPEN, body + insns)


def memfd(n_bytes=1 << 20, seals=True):
    """Memory as a pool has it; the fd."""
    fd = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, n_bytes)
    if seals:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    return fd
