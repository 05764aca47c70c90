# SPDX-License-Identifier: BSD-3-Clause
"""mr-nat --offload: sessions that the kernel forwards by rules."""
import json
import signal
import socket
import struct
import threading
import time

import pytest
from host import limit
from lib import nat, talk
from lib.namespaces import wait_until
from lib.nat import Echo, Kernel, Nat

ASKS = 20


@pytest.mark.parametrize("workers, vlan, spec", [
    (1, None, ""), (2, None, ""), (1, 5, ""), (1, None, ",meta"),
    (1, 5, ",meta")])
def test_udp_is_forwarded_both_ways(lab, workers, vlan, spec, on_vlan):
    """With metadata, tickets and it are both in front of a frame."""
    kernel = Kernel(lab, "--workers", workers, vlan=vlan, spec=spec)
    if vlan:
        on_vlan(kernel.house.a, kernel.house.b, kernel.house.server)
    talkers = [kernel.talker(host)
               for host in (kernel.house.a, kernel.house.b) for _ in range(3)]
    seen = kernel.known(*talkers)
    for _ in range(ASKS):
        assert [talker.ask(500) for talker in talkers] == seen
    sessions = kernel.translator.sessions()
    assert len(sessions) == len(talkers)
    assert all(one["out"] == one["in"] >= ASKS for one in sessions)
    final = kernel.stop()
    assert final["offload"]["attempted"] >= 2 * ASKS * len(talkers)
    assert final["offload"]["tx_drops"] == 0


@pytest.mark.short
def test_tcp_ends_with_its_fins(lab):
    kernel = Kernel(lab)
    sender = nat.tcp_between(kernel.house.a, kernel.house.server, nat.SERVER,
                             8080, 8080, 16 << 20)
    assert sender[0] == nat.OUTSIDE
    session, = kernel.translator.sessions("proto=tcp")
    assert session["state"] == "closing"
    wait_until("its rule is gone", lambda:
               kernel.translator.stats()["offload"]["rules"] == 0)
    assert kernel.event("segment") >= 2  # the FINs
    assert kernel.stop()["offload"]["attempted"] > 10000


def test_partial_checksums_go_through_user_space(lab):
    kernel = Kernel(lab)
    kernel.house.a.run("ethtool", "-K", "h0", "tx", "on")
    talker = kernel.talker()
    seen = talker.ask()
    for _ in range(ASKS):
        assert talker.ask(1000) == seen
    assert nat.tcp_between(kernel.house.a, kernel.house.server, nat.SERVER,
                           8080, 8080)
    assert kernel.event("csum_partial") > 0
    kernel.stop()


def test_no_frame_overtakes_another(lab):
    """From the first one on: user space has some when the rule begins."""
    kernel = Kernel(lab)
    n_frames, n_flows = 3000, 8
    # What waits for a neighbour, in the sender's kernel, may be overtaken.
    kernel.talker().ask()
    receiver = talk.socket_in(kernel.house.server, socket.SOCK_DGRAM,
                              port=9000)
    receiver.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)  # SO_RCVBUFFORCE
    senders = [talk.socket_in(kernel.house.a, socket.SOCK_DGRAM, port=0)
               for _ in range(n_flows)]

    def send():
        for number in range(n_frames):
            for sender in senders:
                sender.sendto(number.to_bytes(4, "big"), (nat.SERVER, 9000))
    thread = threading.Thread(target=send)
    thread.start()
    last = {}
    end_s = time.monotonic() + limit(30)
    while (len(last) < n_flows or min(last.values()) < n_frames - 1) and \
            time.monotonic() < end_s:
        try:
            data, sender = receiver.recvfrom(64)
        except socket.timeout:
            break  # the last ones were lost
        number = int.from_bytes(data, "big")
        assert number > last.get(sender, -1), f"{sender}: {number}"
        last[sender] = number
    thread.join()
    assert kernel.stop()["offload"]["attempted"] > n_frames
    for one in (receiver, *senders):
        one.close()


def test_a_reload_takes_all_rules_and_gives_them_back(lab):
    kernel = Kernel(lab)
    talkers = [kernel.talker() for _ in range(5)]
    seen = kernel.known(*talkers)
    assert "reload: done" in kernel.translator.reload(
        "timeouts: {udp: 10m}\n")
    assert kernel.known(*talkers) == seen
    assert all(session["left_s"] > 300
               for session in kernel.translator.sessions())
    kernel.stop()


def test_a_session_that_is_cleared_is_not_forwarded(lab):
    kernel = Kernel(lab, config="ports: {keep_port: no}\n")
    talker, other = kernel.talker(), kernel.talker(kernel.house.b)
    seen, stays = kernel.known(talker, other)
    kernel.translator.ask("nat", "clear", f"port={seen[1]}")
    before = kernel.offloaded()
    kernel.echo.socket.sendto(b"late", seen)
    wait_until("it is dropped", lambda:
               kernel.translator.stats()["drops"]["no_mapping"] == 1)
    assert kernel.offloaded() == before
    assert talker.ask() != seen
    assert kernel.known(other) == [stays]
    kernel.stop()


def test_a_next_hop_that_moves_takes_its_rules_along(lab):
    kernel = Kernel(lab)
    talkers = [kernel.talker() for _ in range(3)]
    seen = kernel.known(*talkers)
    server = kernel.house.server
    server.sysctl("net.ipv4.conf.h0.arp_notify", 1)
    server.ip("link", "set", "h0", "down")
    server.ip("link", "set", "h0", "address", "02:00:00:00:77:01")
    server.ip("link", "set", "h0", "up")
    wait_until("it has told its new address", lambda: "up" == server.link(
        "h0")["operstate"].lower())
    assert kernel.known(*talkers) == seen
    kernel.stop()


def test_frames_go_up_while_a_port_is_down(lab):
    kernel = Kernel(lab)
    talker = kernel.talker()
    seen = kernel.known(talker)
    kernel.house.server.ip("link", "set", "h0", "down")
    assert kernel.translator.err.wait(
        lambda line: "frames that rules would send from it" in line, limit(10))
    talker.socket.sendto(b"lost", talker.to)
    wait_until("user space has it",
               lambda: kernel.event("no_target") >= 1)
    kernel.house.server.ip("link", "set", "h0", "up")
    assert kernel.known(talker) == seen
    kernel.stop()


def test_idle_rules_of_another_worker_end_to_make_room(lab):
    kernel = Kernel(lab, "--workers", 2,
                    config="limits: {mappings: 2, sessions: 1}\n")
    ports = (7777, 7778, 7779)
    assert [lab.closing(Echo(kernel.house.server, port)) for port in ports[1:]]
    holder, other = kernel.talker(), kernel.talker(kernel.house.b)
    for port in ports:
        holder.to = (nat.SERVER, port)
        seen = kernel.known(holder)
    wait_until("a rule is refused", lambda: other.ask() and
               kernel.translator.stats()["offload"]["full"] > 0)
    kernel.known(other)
    assert kernel.known(holder) == seen
    kernel.stop()


def test_killed_and_started_again(lab):
    kernel = Kernel(lab)
    talker = kernel.talker()
    kernel.known(talker)
    kernel.translator.process.send_signal(signal.SIGKILL)
    kernel.translator.wait()
    kernel.translator = Nat(kernel.house, "--offload", "on")
    kernel.known(talker)
    kernel.stop()


def unreachable(host, sender, ident):
    """An ICMP error about a UDP datagram that had this id."""
    quote = struct.pack("!BBHHHBBH4s4sHHHH", 0x45, 0, 28, ident, 0, 64, 17, 0,
                        socket.inet_aton(sender[0]),
                        socket.inet_aton(nat.SERVER), sender[1], 7777, 8, 0)
    head = struct.pack("!BBHI", 3, 3, 0, 0)
    total = sum(struct.unpack("!18H", head + quote))
    total = (total & 0xffff) + (total >> 16)
    with host:
        icmp = socket.socket(socket.AF_INET, socket.SOCK_RAW,
                             socket.IPPROTO_ICMP)
    with icmp:
        icmp.sendto(head[:2] + struct.pack("!H", total ^ 0xffff) + head[4:] +
                    quote, (sender[0], 0))


def test_without_rules_after_a_port_was_opened_again(lab):
    kernel = Kernel(lab)
    middle = kernel.house.middle
    talker = kernel.talker()
    seen, = kernel.known(talker)
    program = middle.link("p1")["xdp"]["prog"]["id"]
    for link in json.loads(middle.run("bpftool", "--json", "link",
                                      "show").stdout):
        if link.get("prog_id") == program:
            middle.run("bpftool", "link", "detach", "id", link["id"])
    assert kernel.translator.err.wait(
        lambda line: "opened again" in line and "is opened" not in line,
        limit(15))
    before = kernel.offloaded()
    for _ in range(ASKS):
        assert talker.ask() == seen
    for ident in range(64):  # of each worker and of the driver
        unreachable(kernel.house.server, seen, ident)
    assert talker.ask() == seen
    assert kernel.offloaded() == before
    kernel.translator.stop()


def test_auto_prints_why_there_is_no_offload(lab):
    kernel = Kernel(lab, mode="auto", gro="off")
    assert kernel.translator.err.wait(
        lambda line: "--offload auto: off: " in line and
        "'ethtool -K PEER gro on'" in line, limit(5))
    assert kernel.talker().ask()[0] == nat.OUTSIDE
    assert "offload" not in kernel.translator.stop()
