# SPDX-License-Identifier: BSD-3-Clause
"""Frames that a program hands back to the kernel: mr_port_to_kernel()."""
import json
import os
import signal
import socket

import pytest
from lib import talk
from lib.namespaces import wait_until
from lib.probe import Probe

HERE, PEER = "10.88.0.1", "10.88.0.2"
PORT = 7


def open_port(lab, star):
    """A probe with p0 open, and addresses that only the kernel answers for."""
    for namespace, device, address in ((star.middle, "p0", HERE),
                                       (star.hosts[0], "h0", PEER)):
        namespace.ip("address", "add", address + "/24", "dev", device)
    star.middle.sysctl("net.ipv4.conf.all.rp_filter", 1)
    star.middle.sysctl("net.ipv4.conf.p0.rp_filter", 1)
    probe = Probe(lab, star.middle)
    probe.do("pool", 4096)
    probe.do("open", "p0,force,ring=256")
    return probe


def taps(star):
    links = json.loads(star.middle.ip("-json", "link").stdout)
    return [link["ifname"] for link in links
            if link.get("ifname", "").startswith("mrk")]


def test_the_kernel_answers_as_if_there_were_no_port(lab, star):
    """ARP, ICMP, UDP to a socket bound to the device, and TCP whose checksums
    are partial, with reverse path filtering."""
    probe = open_port(lab, star)
    assert talk.ping(star.hosts[0], HERE, more=["-W", 1]) == 0
    probe.do("open-kernel", 0)
    probe.do("open-kernel", 0)  # once more is no error, and no second tap
    assert len(taps(star)) == 1
    probe.begin("to-kernel", 0)
    assert talk.ping(star.hosts[0], HERE) == 3
    bound = lab.closing(talk.socket_in(star.middle, socket.SOCK_DGRAM,
                                       HERE, PORT))
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"p0")
    sender = lab.closing(talk.socket_in(star.hosts[0], socket.SOCK_DGRAM))
    sender.sendto(b"to the device", (HERE, PORT))
    assert bound.recv(100) == b"to the device"
    talk.tcp(star.hosts[0], star.middle, HERE)
    probe.begin("info", 0)
    done = probe.answer()
    assert done["received"] == done["handed"] > 100
    probe.answer()
    counts = dict(probe.do("device-stats", 0)["stats"])
    assert counts["to_kernel"] == done["handed"]
    assert counts["to_kernel_lost"] == 0
    probe.do("close", 0)
    assert not taps(star)


def test_without_a_way_they_are_lost_and_counted(lab, star):
    probe = open_port(lab, star)
    probe.begin("to-kernel", 0)
    assert talk.ping(star.hosts[0], HERE, more=["-W", 1]) == 0
    probe.begin("info", 0)
    done = probe.answer()
    assert done["received"] > 0 and done["handed"] == 0
    probe.answer()
    counts = dict(probe.do("device-stats", 0)["stats"])
    assert counts["to_kernel"] == 0
    assert counts["to_kernel_lost"] == done["received"]


def test_a_killed_program_leaves_no_tap(lab, star):
    """Not even while a child of its lives."""
    probe = open_port(lab, star)
    probe.do("open-kernel", 0)
    assert len(taps(star)) == 1
    child = probe.do("fork", 30)["pid"]
    probe.kill()
    wait_until("the tap is gone", lambda: not taps(star))
    os.kill(child, signal.SIGKILL)
    assert not taps(star)


@pytest.mark.parametrize("spec, part", [
    ("p0,force,ring=256,attach=generic", "generic attach"),
    ("null:", "driver null"),
])
def test_who_cannot_says_so(lab, star, spec, part):
    probe = Probe(lab, star.middle)
    probe.do("pool", 4096)
    probe.do("open", spec)
    assert part in probe.refused("open-kernel", 0)
    assert not taps(star)


def test_a_missing_capability_is_named(lab, star):
    probe = open_port(lab, star)
    probe.do("drop-capabilities")
    assert "CAP_NET_ADMIN" in probe.refused("open-kernel", 0)
