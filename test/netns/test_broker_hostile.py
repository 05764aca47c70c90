# SPDX-License-Identifier: BSD-3-Clause
"""Clients of mr-brokerd that speak nonsense, send fds that it must not wait
for, or want more than their rule allows."""
import os
import signal
import socket
import struct

import pytest
from lib import broker as brokers
from lib import talk
from lib.broker import (POWERLESS, Broker, RawClient, activated, flags,
                        forwarder, memfd, message, open_request, rule)
from lib.namespaces import wait_until
from lib.probe import opened


@pytest.mark.short
def test_nonsense_does_not_harm_the_broker(lab, star):
    """Each is refused by one line, or the connection is ended."""
    broker = Broker(lab, star.middle, rule(user=0))
    before = flags(star)
    good, short, unsealed = memfd(), memfd(4096), memfd(seals=False)
    pipe, file = os.pipe(), os.open("/etc/passwd", os.O_RDONLY)
    n_files = len(os.listdir(f"/proc/{broker.pid}/fd"))
    cases = [
        (b"x", []),
        (os.urandom(4000), []),
        (message(9, b""), []),
        (message(brokers.FIND, b"p0".ljust(16, b"\0"), version=7), []),
        (message(brokers.FIND, b"x" * 16), []),
        (message(brokers.FIND, b"../p0".ljust(16, b"\0")), []),
        (message(brokers.FIND, b"p0".ljust(16, b"\0"), n_bytes=1 << 30), []),
        (message(brokers.SET, struct.pack("=IIQ", 0, 0, 1400)), []),
        (message(brokers.SET, struct.pack("=IIQ", 99, 0, 1)), [good]),
        (open_request(), []),
        (open_request(), [good, good]),
        (open_request(segments=(1 << 62,)), [good]),
        (open_request(segments=(1 << 20,) * 64), [good]),
        (open_request(segments=(4097,)), [good]),
        (open_request(ring=63), [good]),
        (open_request(queues=65), [good]),
        (open_request(chunk=3), [good]),
        (open_request(n_insns=4097), [good]),
        (open_request(insns=b"\xff" * 8), [good]),
        (open_request(), [short]),
        (open_request(), [unsealed]),
        (open_request(), [pipe[1]]),
        (open_request(), [file]),
        (open_request(), [broker.process.stdout.fileno()]),
        (open_request() + bytes(60000), [good]),
        (message(brokers.RSS, struct.pack("=4I64x", 0, 0, 0, 1)), []),
        (message(brokers.RSS, struct.pack("=4I64x", 0, 0, 65, 0)), []),
        (message(brokers.RSS, struct.pack("=4I64x", 0, 0, 0, 0)), []),
        (message(brokers.STEER, struct.pack("=I", 1 << 30) + bytes(88)), []),
        (message(brokers.UNSTEER, bytes(8)), []),
        (message(brokers.FILTER, struct.pack("=II", 1, 0)), [good] * 3),
        (message(brokers.FILTER, struct.pack("=IIQ", 1, 0, 6)), [good] * 3),
        (message(brokers.FILTER, struct.pack("=IIQ", 1, 0, 6)), []),
    ]
    for i, (data, fds) in enumerate(cases):
        with RawClient(broker) as client:
            answer = client.ask(data, fds)
            assert answer is None or (answer[0] > 0 and answer[2] and
                                      not answer[3]), (i, answer)
    # Many fds, and one that goes away before it gets its answer.
    for _ in range(20):
        with RawClient(broker) as client:
            client.send(open_request(), [good])
        with RawClient(broker) as client:
            client.send(b"", [good] * 100)
    with RawClient(broker) as client:  # accepted after all of them
        client.ask(*cases[0])
    wait_until("nothing is left", lambda: flags(star) == before)
    wait_until("no fd is left", lambda: len(
        os.listdir(f"/proc/{broker.pid}/fd")) == n_files)
    opened(lab, star.middle, broker.spec("p0"), wrap=POWERLESS).close()
    for fd in (good, short, unsealed, *pipe, file):
        os.close(fd)


def processes(broker):
    """The processes of its clients."""
    with open(f"/proc/{broker.pid}/task/{broker.pid}/children") as file:
        return set(map(int, file.read().split()))


def lingering(listener):
    """A TCP socket whose last close() waits until its peer, the second one,
    reads."""
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                    struct.pack("ii", 1, 600))
    slow.connect(listener.getsockname())
    peer = listener.accept()[0]
    slow.setblocking(False)
    with pytest.raises(BlockingIOError):
        while True:
            slow.send(bytes(1 << 16))
    return slow, peer


def small_server(namespace):
    with namespace:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        return listener


def test_a_slow_close_delays_only_its_own_connection(lab, star):
    """As many as one user can have: others are served. The last fd of a request
    waits, alone or among more than the broker receives."""
    broker = Broker(lab, star.middle, rule(user=[0, brokers.NOBODY]))
    clients, peers = [], []
    with small_server(star.middle) as listener, star.middle:
        for i in range(brokers.MAX_STUCK):
            n_fds = 1 if i % 2 == 0 else 253
            slow, peer = lingering(listener)
            known = processes(broker)
            client = RawClient(broker)
            assert client.greeting[0] == 0
            # Stopped until this is closed here, so that its fd is the last.
            process, = processes(broker) - known
            os.kill(process, signal.SIGSTOP)
            client.send(open_request(),
                        [0] * (n_fds - 1) + [slow.fileno()])
            slow.close()
            os.kill(process, signal.SIGCONT)
            if n_fds == 1:
                assert "sealed against shrinking" in client.receive()[2]
            clients.append(client)
            peers.append(peer)
    with RawClient(broker) as client:
        assert "64 connections" in client.greeting[2]
    assert len(processes(broker)) == brokers.MAX_STUCK
    forwarder(lab, star, broker).stop()
    for peer, client in zip(peers, clients, strict=True):
        peer.close()
        client.socket.close()
    wait_until("all have ended", lambda: not processes(broker))
    with RawClient(broker) as client:
        assert client.ask(message(brokers.FIND, b"p0".ljust(16, b"\0")))[0] == 0


def test_a_port_process_that_gets_sigterm_closes_its_port(lab, star):
    """It may have opened a port since the broker chose it."""
    broker = Broker(lab, star.middle, rule(user=0))
    fd = memfd()
    with RawClient(broker) as client:
        fds = client.ask(open_request(), [fd])[3]
        process, = processes(broker)
        os.kill(process, signal.SIGTERM)
        set_mtu = message(brokers.SET, struct.pack("=IIQ", 0, 0, 1400))
        assert client.ask(set_mtu)[0] == 0
        assert star.middle.link("p0")["mtu"] == 1400
    for other in (fd, *fds):
        os.close(other)
    wait_until("it is restored",
               lambda: star.middle.link("p0")["mtu"] == 1500)


def test_the_next_port_waits_for_what_is_restored(lab, star):
    """Else it takes the record of the last one, which then restores what the
    next one has set. A killed program that is started again is as quick."""
    broker = Broker(lab, star.middle, rule(user=0))
    fd = memfd()
    set_mtu = message(brokers.SET, struct.pack("=IIQ", 0, 0, 1400))
    with RawClient(broker) as client:
        fds = client.ask(open_request(), [fd])[3] + client.ask(set_mtu)[3]
        client.ask(set_mtu)  # by now, it has closed what it has sent
        process, = processes(broker)
        os.kill(process, signal.SIGSTOP)
        for other in fds:
            os.close(other)
    with RawClient(broker) as client:
        assert "another Millrace program" in client.ask(
            open_request(), [fd])[2]
    os.kill(process, signal.SIGCONT)
    wait_until("it is restored", lambda: process not in processes(broker))
    with RawClient(broker) as client:
        fds = client.ask(open_request(), [fd])[3] + client.ask(set_mtu)[3]
        assert star.middle.link("p0")["mtu"] == 1400
        for other in (fd, *fds):
            os.close(other)
    wait_until("it is restored again",
               lambda: star.middle.link("p0")["mtu"] == 1500)


def test_a_broker_whose_parent_ignores_sigchld(lab, star):
    """The broker still notices when its processes end."""
    broker = Broker(lab, star.middle, rule(user=0),
                    wrap=["env", "--ignore-signal=CHLD"])
    for _ in range(brokers.MAX_STUCK + 1):
        with RawClient(broker) as client:
            assert client.greeting[0] == 0, client.greeting
        wait_until("it has ended", lambda: not processes(broker))


def test_a_user_without_a_rule_cannot_send_fds(lab, star):
    """Not even before it is refused."""
    broker = Broker(lab, star.middle)
    broker.process.send_signal(signal.SIGSTOP)
    client = RawClient(broker, is_greeted=False)
    try:
        client.socket.getsockopt(socket.SOL_SOCKET, brokers.SO_PASSRIGHTS)
    except OSError:
        pytest.skip("needs Linux 6.16")
    with client, pytest.raises(PermissionError):
        client.send(b"x", [0])
    broker.process.send_signal(signal.SIGCONT)
    with RawClient(broker) as client:
        assert "no rule of the broker allows user 0" in client.greeting[2]
        assert client.receive() is None


def test_fds_sent_before_the_broker_starts_delay_no_client(lab, star):
    """systemd's socket takes them, as any does before Linux 6.16."""
    broker = Broker(lab, star.middle)
    broker.process.terminate()
    broker.wait()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener, \
            small_server(star.middle) as server:
        listener.bind(str(broker.socket))
        broker.socket.chmod(0o666)
        listener.listen()
        with star.middle:
            slow, peer = lingering(server)
        client = RawClient(broker, is_greeted=False)
        client.send(b"x", [slow.fileno()])
        slow.close()
        activated(lab, star, broker.folder, listener, rule())
        # The fd behind its request is released after this. The kernel may
        # first report that the broker closed without reading the request.
        assert (client.receive() or client.receive())[0] > 0
        forwarder(lab, star, broker).stop()
        peer.close()
        client.socket.close()


def test_a_second_open_gains_nothing(lab, star):
    """One connection has one port, and that port's rule."""
    broker = Broker(lab, star.middle,
                    "rules:\n"
                    "  - {user: 0, interface: p0, memory: 4M}\n"
                    "  - {user: 0, interface: p1, memory: 4M, settings: yes}\n")
    fd = memfd()
    with RawClient(broker) as client:
        first = client.ask(open_request(), [fd])
        assert first[0] == 0, first
        second = client.ask(open_request("p1"), [fd])
        assert second[0] > 0 and "already has a port" in second[2]
        third = client.ask(message(brokers.SET,
                                   struct.pack("=IIQ", 0, 0, 1400)))
        assert third[0] > 0 and "settings: yes" in third[2]
        # Another fd is not the link of its program.
        accept = message(brokers.FILTER, struct.pack(
            "=IIHBBI", 1, 0, 6, 0, 0, 65535))
        for fds in ([fd, fd, first[3][0]], first[3][:1] * 3):
            got = client.ask(accept, fds)
            assert got[0] > 0 and "not the link" in got[2], got
        for other in first[3]:
            os.close(other)
    os.close(fd)
    assert star.middle.link("p0")["mtu"] == 1500


def test_a_filter_counts_only_in_its_port(lab, star):
    """No program of the broker's writes to another map that a client has."""
    broker = Broker(lab, star.middle, rule(user=0))
    accept = struct.pack("=HBBI", 6, 0, 0, 65535)
    again = message(brokers.FILTER, struct.pack("=II", 1, 0) + accept)
    fd = memfd()
    with RawClient(broker) as client, RawClient(broker) as beside:
        _, _, _, ours = client.ask(open_request(insns=accept), [fd])
        _, _, _, theirs = beside.ask(open_request("p1", insns=accept), [fd])
        queue, link, counts = ours[:3]
        got = client.ask(again, [link, theirs[2], queue])
        assert got[0] > 0 and "not its filter's counters" in got[2], got
        got = client.ask(again, [link, counts, queue])
        assert got[0] == 0, got
        for fd_of_port in ours + theirs:
            os.close(fd_of_port)
    os.close(fd)


@pytest.mark.parametrize("user", [0, 1])
def test_a_thousand_idle_connections_do_no_harm(lab, star, user):
    """Those of a user with a rule, whose oldest ones end, or without one."""
    broker = Broker(lab, star.middle, rule(user=[user, brokers.NOBODY]))
    idle = []
    try:
        for _ in range(1000):
            idle.append(RawClient(broker))
            assert (idle[-1].greeting[0] == 0) == (user == 0)
        running = forwarder(lab, star, broker)
        assert talk.udp(*star.hosts, star.address(1)) == 20
        running.stop()
    finally:
        for client in idle:
            client.socket.close()
