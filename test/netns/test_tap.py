# SPDX-License-Identifier: BSD-3-Clause
"""A port on a tap device: frames both ways, and their checksums.

As with veth, a sum may be left to the device: csum=auto is on here. The test
is who reads the tap's file, as a virtual machine's host would.
"""
import os
import struct

import pytest
from lib import talk
from lib.forwarder import Forwarder
from lib.namespaces import Star
from lib.tap import NEEDS_CSUM, Tap
from lib.wire import TEST_TYPE, Wire, frame, mac

FAR = "10.77.0.99"  # the address behind the tap
FAR_MAC = mac(99)
LENGTHS = range(14, 1515, 20)
UDP_START, UDP_SUM = 14 + 20, 6


@pytest.fixture(autouse=True)
def tun():
    if not os.path.exists("/dev/net/tun"):
        pytest.skip("no /dev/net/tun")


@pytest.fixture
def one_host(lab):
    """A host at p0; the tap is the other port."""
    star = Star(lab, n_hosts=1)
    host = star.hosts[0]
    host.ip("neighbour", "add", FAR, "lladdr", FAR_MAC.hex(":"), "dev", "h0",
            "nud", "permanent")
    return star


@pytest.mark.parametrize("has_wait", [True, False])
@pytest.mark.parametrize("attach", ["native", "generic"])
@pytest.mark.short
def test_frames_are_intact_both_ways(lab, one_host, attach, has_wait):
    tap = lab.closing(Tap(one_host.middle, "t0", has_wait=has_wait))
    forwarder = Forwarder(lab, one_host.middle, "p0",
                          f"xdp:t0,attach={attach}")
    wire = lab.closing(Wire(one_host.hosts[0], "h0", TEST_TYPE))
    sent = [frame(n, n) for n in LENGTHS]
    for data in sent:
        tap.send(data)
    assert wire.receive(len(sent)) == sent
    wire.send_all(sent)
    assert [data for data, _ in tap.receive(len(sent))] == sent
    final = forwarder.stop()
    assert final["ports"][1]["mode"] == "copy"
    assert "tun" in final["ports"][1]["why"] or attach == "generic"


def far_frame(host, is_partial):
    """UDP from behind the tap to the host; its sum right or only begun."""
    # pylint: disable=import-outside-toplevel
    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether
    from scapy.utils import checksum
    packet = Ether(src=FAR_MAC.hex(":"), dst=host.link("h0")["address"]) / \
        IP(src=FAR, dst=Star.address(0)) / \
        UDP(sport=4000, dport=5002) / b"from behind the tap"
    data = bytes(packet)
    if is_partial:
        n_bytes = len(data) - UDP_START
        pseudo = data[26:34] + struct.pack("!BBH", 0, 17, n_bytes)
        at = UDP_START + UDP_SUM
        data = data[:at] + struct.pack("!H", ~checksum(pseudo) & 0xffff) + \
            data[at + 2:]
    return data


def right_sum(data):
    """The UDP checksum that a frame should have."""
    # pylint: disable=import-outside-toplevel
    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether
    packet = Ether(data)
    del packet[UDP].chksum
    return Ether(bytes(packet))[IP][UDP].chksum


def sum_of(data):
    return struct.unpack_from("!H", data, UDP_START + UDP_SUM)[0]


def events(port, name):
    """An event of a port's one queue."""
    return port["queues"][0]["events"].get(name, 0)


@pytest.mark.parametrize("spec", ["xdp:t0", "xdp:t0,attach=generic"])
@pytest.mark.parametrize("has_header", [False, True])
def test_a_sum_left_to_the_device_is_not_lost(lab, one_host, has_header, spec):
    """The kernel finishes it for a reader that cannot, else it is flagged."""
    host = one_host.hosts[0]
    tap = lab.closing(Tap(one_host.middle, "t0", has_header))
    forwarder = Forwarder(lab, one_host.middle, "p0", spec)
    server = lab.closing(talk.Udp(host, one_host.address(0)))
    server.socket.sendto(b"to behind the tap", (FAR, 4000))
    (data, header), = tap.receive(1)
    assert data.endswith(b"to behind the tap")
    if has_header:
        flags, *_, start, offset = header
        assert flags & NEEDS_CSUM and (start, offset) == (UDP_START, UDP_SUM)
        assert sum_of(data) != right_sum(data)
    else:
        assert sum_of(data) == right_sum(data)
    for is_partial in (True, False):
        tap.send(far_frame(host, is_partial))
        assert server.receive() == b"from behind the tap"
    near, far = forwarder.stop()["ports"]
    assert events(near, "rx_csum_partial") == 1  # the host leaves it out
    assert events(far, "tx_csum_device") == 1
    assert events(far, "rx_csum_partial") == 1
    assert events(near, "tx_csum_device") == 1
