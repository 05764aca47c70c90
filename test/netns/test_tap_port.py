# SPDX-License-Identifier: BSD-3-Clause
"""tap: ports: the hosts' interfaces are taps, and the forwarder is their wire.

With tso the kernels' segments arrive merged; what goes out of a port that
cannot cut them is cut by the library, and what comes from one is merged.
"""
import os
import re
import socket
from pathlib import Path

import pytest
from lib import invariants, talk
from lib.forwarder import Forwarder, Refused
from lib.namespaces import Star
from lib.probe import opened

UDP_SEGMENT, SOL_UDP = 103, 17
MTU = 1500


@pytest.fixture(autouse=True)
def tun():
    if not os.path.exists("/dev/net/tun"):
        pytest.skip("no /dev/net/tun")


class Taps:
    """Two hosts, the first with a tap of the forwarder's, the second too,
    or with a veth."""

    def __init__(self, lab, *specs, options=()):
        self.middle = lab.namespace("f")
        self.hosts = [lab.namespace(f"h{i}") for i in range(2)]
        for spec, host in zip(specs, self.hosts):
            if spec.startswith("xdp:"):
                lab.veth(host, "h0", self.middle,
                         re.split("[:,]", spec)[1])
        self.forwarder = Forwarder(lab, self.middle, *specs, options=options)
        for i, (spec, host) in enumerate(zip(specs, self.hosts)):
            if spec.startswith("tap:"):
                self.middle.ip("link", "set", re.split("[:,]", spec)[1],
                               "netns", host.name, "name", "h0")
            host.sysctl("net.ipv6.conf.h0.disable_ipv6", 0)
            host.ip("link", "set", "h0", "up")
            host.ip("address", "add", f"{Star.address(i)}/24", "dev", "h0")
            host.ip("address", "add", f"fd00::{i + 1}/64", "dev", "h0",
                    "nodad")

    def talk(self):
        one, other = self.hosts
        for address in Star.address(1), "fd00::2":
            assert talk.ping(one, address) == 3
            talk.tcp(one, other, address)
            assert talk.udp(one, other, address) == 20
        for address in Star.address(0), "fd00::1":
            talk.tcp(other, one, address)

    def send_udp_segments(self, n_each=1000, n=20):
        """Datagrams that the sender's kernel leaves to its device to cut."""
        address = Star.address(1)
        sink = talk.socket_in(self.hosts[1], socket.SOCK_DGRAM, address, 5004)
        with sink, talk.socket_in(self.hosts[0],
                                  socket.SOCK_DGRAM) as source:
            source.setsockopt(SOL_UDP, UDP_SEGMENT, n_each)
            data = os.urandom(n * n_each + 7)
            source.sendto(data, (address, 5004))
            got = [sink.recv(65536) for _ in range(n + 1)]
        assert b"".join(got) == data
        assert {len(part) for part in got[:-1]} == {n_each}


def longest_mean(final, port, way):
    """Mean bytes per frame."""
    queues = [queue[way] for queue in final["ports"][port]["queues"]]
    n = sum(queue["delivered" if way == "rx" else "completed"]
            for queue in queues)
    return sum(queue["bytes"] for queue in queues) / n


def events(final, port, name):
    return sum(queue["events"].get(name, 0)
               for queue in final["ports"][port]["queues"])


@pytest.mark.parametrize("options", [
    ("--mode", "patch"), ("--mode", "learn"),
    # One worker has no queue of a port, and hands over with the metadata.
    ("--mode", "learn", "-w", "2")])
@pytest.mark.short
def test_segments_pass_uncut(lab, options):
    if "-w" in options and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")
    taps = Taps(lab, "tap:p0,tso", "tap:p1,tso", options=options)
    taps.talk()
    taps.send_udp_segments()
    final = taps.forwarder.stop()
    for port in range(2):
        assert longest_mean(final, port, "rx") > MTU
        assert longest_mean(final, port, "tx") > MTU
        assert events(final, port, "tx_csum_device") > 0
        assert events(final, port, "tx_gso_software") == 0


@pytest.mark.parametrize("other", ["tap:p1", "xdp:p1"])
def test_without_segments(lab, other):
    """Ports that do not merge: nothing is longer than the MTU."""
    taps = Taps(lab, "tap:p0", other)
    taps.talk()
    taps.send_udp_segments()
    final = taps.forwarder.stop()
    for port in range(2):
        assert longest_mean(final, port, "rx") <= MTU + 14


def test_segments_are_cut_where_the_port_cannot(lab):
    taps = Taps(lab, "tap:p0,tso", "xdp:p1")
    taps.talk()
    taps.send_udp_segments()
    final = taps.forwarder.stop()
    assert longest_mean(final, 0, "rx") > MTU
    assert longest_mean(final, 1, "tx") <= MTU + 14
    assert events(final, 1, "tx_gso_software") > 0
    assert sum(sum(queue[way]["drops"].values()) for port in final["ports"]
               for queue in port["queues"] for way in ("rx", "tx")) == 0


@pytest.mark.parametrize("mode", ["patch", "learn"])
def test_segments_are_merged_for_a_port_that_takes_them(lab, mode):
    """From a port that does not merge, to one whose host has long frames."""
    taps = Taps(lab, "tap:p0,tso", "xdp:p1", options=("--mode", mode))
    taps.talk()
    final = taps.forwarder.stop()
    assert longest_mean(final, 1, "rx") <= MTU + 14
    assert longest_mean(final, 0, "tx") > MTU
    assert invariants.worker_total(final, "merged") > 0


def cpu_ticks(probe):
    fields = Path(f"/proc/{probe.pid}/stat").read_text().rsplit(")")[-1].split()
    return int(fields[11]) + int(fields[12])


def test_a_deleted_interface_lets_its_user_sleep(lab):
    """Its fd is readable for ever; who waits for a frame must not spin."""
    middle = lab.namespace("f")
    probe = opened(lab, middle, "tap:p0,queues=2")
    middle.ip("link", "set", "p0", "up", "mtu", 1400)
    probe.do("link", 0)
    assert probe.do("info", 0)["mtu"] == 1400
    middle.ip("link", "set", "p0", "down")
    middle.ip("link", "set", "p0", "name", "other")
    middle.ip("link", "set", "other", "mtu", 1300)
    assert probe.do("link", 0)["events"] == 1
    assert probe.do("info", 0)["mtu"] == 1300
    probe.do("hold", 0, 1000, 1)
    ticks = [cpu_ticks(probe)]
    probe.do("hold", 0, 1000, 1000)
    ticks.append(cpu_ticks(probe))
    middle.ip("link", "delete", "other")
    probe.do("hold", 0, 1000, 1)
    assert probe.do("link", 0)["gone"]
    ticks.append(cpu_ticks(probe))
    probe.do("hold", 0, 1000, 1000)
    ticks.append(cpu_ticks(probe))
    # Of 100 a second, unless others have the processor.
    assert ticks[3] - ticks[2] <= ticks[1] - ticks[0] + 3, ticks
    probe.close()


def test_the_mtu_is_not_that_of_another_interface(lab):
    """Another interface can take its name here once it is in another namespace."""
    middle, host = lab.namespace("f"), lab.namespace("h")
    probe = opened(lab, middle, "tap:t0")
    middle.ip("link", "set", "t0", "mtu", 1400)
    probe.do("link", 0)  # which takes events
    assert probe.do("info", 0)["mtu"] == 1400
    middle.ip("link", "set", "t0", "netns", host.name)
    middle.ip("link", "add", "t0", "mtu", 9000, "type", "veth", "peer", "t1")
    probe.do("link", 0)  # which takes events
    assert probe.do("info", 0)["mtu"] == 1400
    probe.close()


def test_refusals(lab):
    middle = lab.namespace("f")
    for spec, status, part in (
            ("tap:", 2, "name"), ("tap:p0,sgg", 2, "sgg"),
            ("tap:" + "x" * 16, 2, "15"),
            ("tap:p0,queues=65", 2, "64")):
        Refused(lab, middle, spec, "null:").check(status, part)
    Forwarder(lab, middle, "tap:p0", "null:", options=("--mode", "drop"))
    Refused(lab, middle, "tap:p0", "null:").check(1, "p0", "open")
