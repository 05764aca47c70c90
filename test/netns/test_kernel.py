# SPDX-License-Identifier: BSD-3-Clause
"""Frames that a program hands back to the kernel: mr_port_to_kernel()."""
import asyncio
import json
import os
import signal
import socket

import pytest
from lib import talk
from lib.namespaces import wait_until
from lib.probe import opened

HERE, PEER = "10.88.0.1", "10.88.0.2"
PORT = 7


SPEC = "p0,force,ring=256"


@pytest.fixture
def place(star):
    """p0 with an address that only the kernel answers for."""
    for namespace, device, address in ((star.middle, "p0", HERE),
                                       (star.hosts[0], "h0", PEER)):
        namespace.ip("address", "add", address + "/24", "dev", device)
    star.middle.sysctl("net.ipv4.conf.all.rp_filter", 1)
    star.middle.sysctl("net.ipv4.conf.p0.rp_filter", 1)
    return star.middle


def taps(star):
    links = json.loads(star.middle.ip("-json", "link").stdout)
    return [link["ifname"] for link in links
            if link.get("ifname", "").startswith("mrk")]


def hand_over(port, meanwhile):
    """Hand all frames to the kernel until meanwhile() returns, in a thread:
    (received, taken by the kernel)."""
    counts = [0, 0]

    async def receive():
        async for burst in port:
            counts[0] += len(burst)
            counts[1] += port.to_kernel(burst)

    async def run():
        receiver = asyncio.ensure_future(receive())
        await asyncio.to_thread(meanwhile)
        receiver.cancel()

    asyncio.run(run())
    return counts


@pytest.mark.short
def test_the_kernel_answers_as_if_there_were_no_port(lab, star, place, end):
    """ARP, ICMP, UDP to a socket bound to the device, and TCP whose checksums
    are partial, with reverse path filtering."""
    port = end(place, SPEC)
    assert talk.ping(star.hosts[0], HERE, more=["-W", 1]) == 0
    with place:
        port.port.open_kernel()
        port.port.open_kernel()  # once more is no error, and no second tap
    assert len(taps(star)) == 1

    def talk_to_it():
        assert talk.ping(star.hosts[0], HERE) == 3
        bound = lab.closing(talk.socket_in(place, socket.SOCK_DGRAM, HERE,
                                           PORT))
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"p0")
        sender = lab.closing(talk.socket_in(star.hosts[0], socket.SOCK_DGRAM))
        sender.sendto(b"to the device", (HERE, PORT))
        assert bound.recv(100) == b"to the device"
        talk.tcp(star.hosts[0], place, HERE)

    received, taken = hand_over(port.port, talk_to_it)
    assert received == taken > 100
    with place:
        counts = dict(port.port.device_stats())
    assert counts["to_kernel"] == taken
    assert counts["to_kernel_lost"] == 0
    port.close()
    assert not taps(star)


def test_frames_are_counted_if_the_path_is_not_open(star, place, end):
    port = end(place, SPEC)

    def ping():
        assert talk.ping(star.hosts[0], HERE, more=["-W", 1]) == 0

    received, taken = hand_over(port.port, ping)
    assert received > 0 and taken == 0
    with place:
        counts = dict(port.port.device_stats())
    assert counts["to_kernel"] == 0
    assert counts["to_kernel_lost"] == received


def test_a_killed_program_leaves_no_tap(lab, star):
    """Not even while a child of its lives."""
    probe = opened(lab, star.middle, SPEC)
    probe.do("open-kernel", 0)
    assert len(taps(star)) == 1
    child = probe.do("fork", 30)["pid"]
    probe.kill()
    wait_until("the tap is gone", lambda: not taps(star))
    os.kill(child, signal.SIGKILL)
    assert not taps(star)


@pytest.mark.parametrize("spec, part", [
    (SPEC + ",attach=generic", "generic attach"), ("null:", "driver null")])
def test_ports_without_a_kernel_path_say_so(star, end, spec, part):
    with pytest.raises(OSError, match=part):
        end(star.middle, spec).port.open_kernel()
    assert not taps(star)


def test_a_missing_capability_is_named(lab, star):
    probe = opened(lab, star.middle, SPEC)
    probe.do("drop-capabilities")
    assert "CAP_NET_ADMIN" in probe.refused("open-kernel", 0)
