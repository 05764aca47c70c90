# SPDX-License-Identifier: BSD-3-Clause
"""Guests whose NICs are behind vhost: ports, and traffic between them.

    guest 0: nic0, 10.78.0.1 --- socket 0 --- our program --- socket 1 --- guest 1

Our program runs on the host, and maps the memory of the guests.
"""
import hashlib
import json
import os
import re
import socket

import pytest

from conftest import KERNEL, skip_kind
from fetch import Missing
from guest import Guest, Nic
from host import limit
from lib.forwarder import Forwarder
from lib.namespaces import wait_until
from lib.process import ask_ctl, environment
from lib.talk import socket_in
from taps import new_lab

MEMORY_MB = 256
N_BYTES = 4 << 20
LIMIT_S = 120


@pytest.fixture
def lab(tmp_path):
    """Namespaces and processes of one test."""
    a_lab = new_lab(tmp_path)
    try:
        yield a_lab
        a_lab.check()
    finally:
        a_lab.close()


def address(i):
    return f"10.78.0.{i + 1}"


class Switch:
    """mr-l2fwd between sockets, which may be killed and started again."""

    def __init__(self, lab, options="", n_ports=2, more=()):
        self.lab, self.more = lab, more
        self.paths = [lab.tmp_path / f"vm{i}" for i in range(n_ports)]
        self.specs = [f"vhost:{path}{options}" for path in self.paths]
        self.namespace = lab.namespace("f")
        self.start()

    def start(self):
        self.running = Forwarder(self.lab, self.namespace, *self.specs,
                                 options=self.more,
                                 wrap=environment(self.lab))

    def kill(self):
        self.lab.checks.remove(self.running.check_end)
        self.running.kill()

    def are_up(self):
        """The link states of the ports, as mrctl shows them."""
        shown = ask_ctl(self.lab, "show", "ports", "--json")
        assert shown.returncode == 0, shown
        return [json.loads(line)["link"]["up"]
                for line in shown.stdout.splitlines()]

    def wait_for_links(self, *wanted):
        wait_until(f"links are {wanted}",
                   lambda: self.are_up() == list(wanted), LIMIT_S, 0.1)


def new_guest(path, kind="vhost-split", queues=1, **more):
    """Not started: a guest with a NIC behind the socket at this path."""
    options = f"mq=on,vectors={2 * queues + 2}" if queues > 1 else ""
    nic = Nic("nic0", kind, more.pop("wire", "vhost"), options, queues,
              path=path)
    try:
        guest = Guest([nic], kernel=KERNEL, **{
            "memory_mb": MEMORY_MB, "n_cpus": queues} | more)
    except Missing as why:
        pytest.skip(str(why))
    if nic not in guest.nics:
        skip_kind(guest, kind)
    return guest


class Arriving(Guest):
    """The QEMU to which a guest migrates, with its NIC behind another
    socket. It does not boot."""

    def __init__(self, source, path):
        nic = source.nics[0]
        here = Nic(nic.name, nic.kind, nic.wire, "", nic.queues, path=path)
        here.mac, here.options = nic.mac, nic.options
        super().__init__([here], kernel=KERNEL, n_cpus=source.n_cpus,
                         memory_mb=source.memory_mb,
                         options=["-incoming", "unix:{folder}/incoming"])

    def _wait_for_boot(self):
        wait_until("it waits for the guest",
                   (self.folder / "incoming").exists, LIMIT_S)


def migrate(source, target):
    """Migrate a running guest from one QEMU to another."""
    source.qmp("migrate-set-parameters", **{"downtime-limit": 1000})
    source.qmp("migrate", uri=f"unix:{target.folder}/incoming")

    def is_over():
        now = source.qmp("query-migrate")
        assert now.get("status") != "failed", (now, target.log())
        return now.get("status") == "completed"
    wait_until("the guest has moved", is_over, LIMIT_S, 0.1)


def do(guest, command):
    """Run a command in a guest, which must succeed; return its output."""
    status, text = guest.run(command)
    assert status == 0, f"{command}: {status}: {text}"
    return text.strip()


def configure(guest, i):
    """The i-th address."""
    do(guest, f"ip address add {address(i)}/24 dev nic0")


def ping(guest, to, n_bytes=56, n=3):
    """The number of answers received."""
    text = guest.run(f"ping -c {n} -A -W 10 -s {n_bytes} {to}")[1]
    return int(re.search(r"(\d+) packets received", text).group(1))


class Transfer:
    """TCP from one guest to another: random bytes, compared at both ends.
    Both ends run on one CPU, and so use one pair of queues."""

    def __init__(self, source, sink, to, n_bytes=N_BYTES, cpu=0):
        self.source, self.sink, self.n_bytes = source, sink, n_bytes
        # A listener whose input ends would close the connection.
        do(sink, "mkfifo /tmp/quiet 2>/dev/null; rm -f /tmp/sum; "
                 f"(taskset -c {cpu} nc -l -p 5001 0<>/tmp/quiet >/tmp/got; "
                 "sha256sum </tmp/got >/tmp/sum) >/dev/null 2>&1 &")
        wait_until("the sink listens", lambda: ":5001" in do(
            sink, "netstat -ltn"), LIMIT_S, 0.1)
        do(source, f"head -c {n_bytes} /dev/urandom >/tmp/data; "
                   f"taskset -c {cpu} nc {to} 5001 </tmp/data >/dev/null 2>&1 &")

    def n_got(self):
        return int(do(self.sink, "stat -c %s /tmp/got"))

    def is_over(self):
        return self.sink.run("[ -s /tmp/sum ]")[0] == 0

    def finish(self):
        wait_until("all has come", self.is_over, LIMIT_S, 0.1)
        assert self.n_got() == self.n_bytes
        assert do(self.sink, "cat /tmp/sum") == \
            do(self.source, "sha256sum </tmp/data")


def tcp(source, sink, to, cpu=0):
    Transfer(source, sink, to, cpu=cpu).finish()


def tcp_with(guest, namespace, to, n_bytes=N_BYTES):
    """TCP both ways between a guest and a namespace that has an address; the
    address of the guest as it is seen there."""
    do(guest, f"head -c {n_bytes} /dev/urandom >/tmp/data")
    data = os.urandom(n_bytes)
    with socket_in(namespace, socket.SOCK_STREAM, to, 5001) as listener:
        listener.settimeout(limit(LIMIT_S))
        listener.listen(1)
        guest.start(f"nc {to} 5001 </tmp/data >/tmp/got")
        peer, seen = listener.accept()
        with peer:
            peer.settimeout(limit(LIMIT_S))
            got = hashlib.sha256()
            while part := peer.recv(1 << 16):
                got.update(part)
            peer.sendall(data)
    assert guest.finish()[0] == 0
    assert do(guest, "sha256sum </tmp/data").split()[0] == got.hexdigest()
    assert do(guest, "sha256sum </tmp/got").split()[0] == \
        hashlib.sha256(data).hexdigest()
    return seen[0]
