# SPDX-License-Identifier: BSD-3-Clause
"""mr-nat between two inside hosts and one outside, asked while it runs."""
import hashlib
import json
import os
import select
import signal
import socket
import threading
import time

from host import limit

from . import invariants
from .namespaces import wait_until
from .process import CTL, NAT, Process, environment
from .talk import socket_in

LIMIT_S = limit(10.0)
INSIDE = "10.0.0.1"
OUTSIDE = "192.0.2.1"
SERVER = "192.0.2.254"
DOWNLOAD_BYTES = 96 << 20


class House:
    """Two hosts behind a switch, the translator, and a server outside.

        a 10.0.0.2 --+
                     switch --- p0 :translator: p1 --- server 192.0.2.254
        b 10.0.0.4 --+
    """

    def __init__(self, lab, queues=1, vlan=None, spec=""):
        self.lab = lab
        self.spec = spec
        self.tag = f", vlan: {vlan}" if vlan else ""
        self.middle = lab.namespace("f")
        self.switch = switch = lab.namespace("s")
        self.a, self.b = lab.namespace("a"), lab.namespace("b")
        self.server = lab.namespace("o")
        switch.ip("link", "add", "br0", "type", "bridge", "forward_delay", 0)
        lab.veth(switch, "u", self.middle, "p0", queues)
        lab.veth(self.server, "h0", self.middle, "p1", queues)
        for i, host in enumerate((self.a, self.b)):
            lab.veth(switch, f"d{i}", host, "h0")
            host.ip("address", "add", f"10.0.0.{2 + 2 * i}/24", "dev", "h0")
            host.ip("route", "add", "default", "via", INSIDE)
        for name in ("u", "d0", "d1"):
            switch.ip("link", "set", name, "master", "br0")
        switch.ip("link", "set", "br0", "up")
        self.server.ip("address", "add", f"{SERVER}/24", "dev", "h0")

    def write(self, text="", name="nat.yaml", port="p1"):
        """A configuration file; its path."""
        path = self.lab.tmp_path / name
        path.write_text(
            f"inside: {{port: \"p0{self.spec}\", "
            f"addresses: {INSIDE}/24{self.tag}}}\n"
            f"outside: {{port: \"{port}{self.spec}\", "
            f"addresses: {OUTSIDE}/24, "
            f"gateway: {SERVER}{self.tag}}}\n{text}")
        return path


class Nat(Process):
    """A running mr-nat. stop() checks invariants and conservation."""

    def __init__(self, house, *options, config=""):
        self.house = house
        self.config = house.write(config)
        super().__init__(house.lab, house.middle,
                         [*environment(self.house.lab), NAT, "--json", "--config",
                          self.config, *options])
        ready = self.err.wait(lambda line: line.startswith("worker "), 15)
        assert ready is not None, f"it did not start:\n{self.err.text()}"

    def ask(self, *words, check=True):
        """A question that mrctl asks; its output."""
        return self.house.middle.run(
            CTL, "--control", self.house.lab.tmp_path / "nat.sock", *words,
            check=check).stdout

    def sessions(self, text=None):
        """The sessions that a filter has."""
        more = [text] if text else []
        return [json.loads(line) for line in self.ask(
            "nat", "sessions", "--json", *more).splitlines()]

    def stats(self):
        return json.loads(self.ask("show", "stats", "--json").splitlines()[0])

    def reload(self, text="", port="p1"):
        """Another configuration, and a SIGHUP; what it says about it."""
        self.config = self.house.write(text, port=port)
        n = self.err.count()
        self.process.send_signal(signal.SIGHUP)
        line = self.err.wait(lambda line: "reload: " in line, LIMIT_S, n)
        assert line is not None, self.err.text()
        return line

    def stop(self, sig=signal.SIGINT):
        """End it as a person would; its final object, checked."""
        self.process.send_signal(sig)
        assert self.wait() == 0, self.err.text()
        final = json.loads(self.out.text().splitlines()[-1])
        assert final["final"] and final["invariants_hold"] and final["conserved"]
        invariants.check_ports(final["ports"])
        return final


class Download:
    """Bytes that a server sends to a client inside, as fast as they go."""

    def __init__(self, house):
        self.listener = socket_in(house.server, socket.SOCK_STREAM, port=8000)
        self.listener.listen(1)
        self.sent, self.got = hashlib.sha256(), hashlib.sha256()
        self.n_got = 0
        self.client = socket_in(house.a, socket.SOCK_STREAM)
        self.client.settimeout(60)
        self.threads = [threading.Thread(target=self.serve), threading.Thread(target=self.fetch)]
        self.client.connect((SERVER, 8000))
        for thread in self.threads:
            thread.start()

    def serve(self):
        peer, _ = self.listener.accept()
        with peer:
            for _ in range(DOWNLOAD_BYTES >> 20):
                piece = os.urandom(1 << 20)
                self.sent.update(piece)
                peer.sendall(piece)

    def fetch(self):
        while piece := self.client.recv(1 << 16):
            self.got.update(piece)
            self.n_got += len(piece)

    def check(self):
        for thread in self.threads:
            thread.join(120)
        self.client.close()
        self.listener.close()
        assert self.n_got == DOWNLOAD_BYTES
        assert self.got.digest() == self.sent.digest()


class Echo:
    """A UDP server that answers with the address that it saw."""

    def __init__(self, namespace, port=7777):
        self.socket = socket_in(namespace, socket.SOCK_DGRAM, port=port)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                data, sender = self.socket.recvfrom(1 << 16)
                if not data:
                    return
                self.socket.sendto(repr(sender).encode() + b" " + data,
                                   sender)
            except socket.timeout:
                continue
            except OSError:
                return

    def close(self):
        self.socket.close()


class Talker:
    """A UDP client that keeps its port."""

    def __init__(self, namespace, address=SERVER, port=7777):
        self.socket = socket_in(namespace, socket.SOCK_DGRAM, port=0)
        self.to = (address, port)
        self.n = 0

    def ask(self, size=0):
        """One exchange; the address that the server saw. A datagram without an
        answer is sent again: on a host that stalls, the translator may drop one
        because a neighbour did not answer its three ARP requests."""
        self.n += 1
        text = b"%d" % self.n + b"x" * size
        end_s = time.monotonic() + LIMIT_S
        while True:
            self.socket.sendto(text, self.to)
            ready, _, _ = select.select([self.socket], [], [], limit(4))
            if not ready:
                assert time.monotonic() < end_s, "no answer"
                continue
            seen, _, back = self.socket.recv(1 << 16).rpartition(b" ")
            if back == text:
                address, port = seen.decode().strip("()").split(", ")
                return address.strip("'"), int(port)
            assert int(back.rstrip(b"x")) < self.n  # an old one

    def close(self):
        self.socket.close()


class Kernel:
    """mr-nat --offload on between hosts whose checksums are complete."""

    def __init__(self, lab, *options, config="", mode="on", gro="on",
                 make=Nat, **house):
        self.lab = lab
        self.house = House(lab, **house)
        for host in (self.house.a, self.house.b, self.house.server):
            host.run("ethtool", "-K", "h0", "tx", "off", "tso", "off", "gso",
                     "off")
        self.set_gro(gro)
        self.echo = lab.closing(Echo(self.house.server))
        self.translator = make(self.house, "--offload", mode, *options,
                               config=config)

    def set_gro(self, state):
        """Whether redirected frames are received on both sides."""
        self.house.switch.run("ethtool", "-K", "u", "gro", state)
        self.house.server.run("ethtool", "-K", "h0", "gro", state)

    def talker(self, host=None):
        return self.lab.closing(Talker(host or self.house.a))

    def offloaded(self):
        return self.translator.stats()["offload"]["attempted"]

    def known(self, *talkers):
        """The kernel forwards what these say, both ways; as whom."""
        seen = []
        for talker in talkers:
            first = talker.ask()

            def is_offloaded(talker=talker, first=first):
                before = self.offloaded()
                assert talker.ask() == first
                return self.offloaded() == before + 2
            wait_until("both ways are in the kernel", is_offloaded)
            seen.append(first)
        return seen

    def event(self, name):
        """How often frames of rules went up, and why."""
        return sum(queue["events"][f"rx_offload_{name}"]
                   for port in self.translator.stats()["ports"]
                   for queue in port["queues"])

    def stop(self):
        """The last object; all frames are accounted for."""
        return self.check(self.translator.stop())

    @staticmethod
    def check(final):
        """The last object; all frames are accounted for."""
        assert final["offload"]["tx_drops_known"] == 1
        assert final["offload"]["attempted"] == sum(
            invariants.total(port, "rx", "offloaded")
            for port in final["ports"])
        return final


def ask_all(talkers, translator):
    """What the server saw of each; if one gets no answer, what the translator
    has counted."""
    seen = []
    for i, talker in enumerate(talkers):
        try:
            seen.append(talker.ask())
        except AssertionError as error:
            known = [translator.ask(*words, check=False)
                     for words in (("show", "stats"), ("nat", "neighbours"),
                                   ("nat", "sessions"))]
            raise AssertionError(f"client {i}: {error}\n" + "".join(known)
                                 ) from error
    return seen


def tcp_between(client, server, address, port, server_port, n_bytes=1 << 20):
    """A connection to address:port that a server has as server_port.

    Bytes go there and come back. The address that the server saw.
    """
    listener = socket_in(server, socket.SOCK_STREAM, port=server_port)
    listener.listen(1)
    seen = []

    def serve():
        peer, sender = listener.accept()
        seen.append(sender)
        with peer:
            peer.settimeout(LIMIT_S)
            while True:
                data = peer.recv(1 << 16)
                if not data:
                    return
                peer.sendall(data)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    data = bytes(i * 7 % 251 for i in range(1 << 12)) * (n_bytes >> 12)
    with listener, socket_in(client, socket.SOCK_STREAM) as made:
        made.connect((address, port))
        sender = threading.Thread(target=made.sendall, args=(data,))
        sender.start()
        got = bytearray()
        while len(got) < len(data):
            piece = made.recv(1 << 16)
            assert piece, f"{len(got)} of {len(data)} bytes came back"
            got += piece
        sender.join(LIMIT_S)
        made.shutdown(socket.SHUT_WR)
        thread.join(LIMIT_S)
    assert got == data
    return seen[0]
