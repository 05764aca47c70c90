# SPDX-License-Identifier: BSD-3-Clause
"""The benchmarks' generator: so many flows, in turn, with right sums."""
import ipaddress
import struct

from lib.namespaces import wait_until
from lib.process import BUILD
from lib.wire import Wire

LIVEGEN = BUILD / "test/bench/livegen"
IP = 0x0800
N_FLOWS = 700


def fold(data):
    """The sum of big-endian words; 0xffff where the field is right."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


def frames_of(lab, n_flows, count):
    """What arrives at the other end of a cable."""
    source, sink = lab.namespace("g"), lab.namespace("s")
    lab.veth(source, "g0", sink, "h0")
    sink.run("ethtool", "-K", "h0", "gro", "on")  # NAPI without a program
    wire = lab.closing(Wire(sink, "h0", IP))
    source.run(LIVEGEN, "--dev", "g0", "--flows", n_flows, "--count", count)
    return wire.receive(count)


def test_flows_are_distinct_and_their_sums_right(lab):
    frames = frames_of(lab, N_FLOWS, 2 * N_FLOWS)
    flows = [(frame[26:30], frame[34:36]) for frame in frames]
    assert len(frames) == 2 * N_FLOWS
    assert len(set(flows)) == N_FLOWS
    assert flows[:N_FLOWS] == flows[N_FLOWS:]
    addresses = {ipaddress.ip_address(address) for address, _ in flows}
    assert {str(address) for address in addresses} == {
        "198.18.0.1", "198.18.0.2", "198.18.0.3"}
    for frame in frames:
        pseudo = frame[26:34] + struct.pack("!HH", 17, len(frame) - 34)
        assert fold(frame[14:34]) == 0xffff
        assert fold(pseudo + frame[34:]) == 0xffff


def test_one_flow_has_right_sums(lab):
    frame, = frames_of(lab, 1, 1)
    pseudo = frame[26:34] + struct.pack("!HH", 17, len(frame) - 34)
    assert fold(frame[14:34]) == 0xffff
    assert fold(pseudo + frame[34:]) == 0xffff


def n_forwarded(router):
    """Packets that its kernel has passed on."""
    lines = router.run("grep", "^Ip:", "/proc/net/snmp").stdout.splitlines()
    names, values = lines
    return int(dict(zip(names.split(), values.split()))["ForwDatagrams"])


def test_a_page_that_a_router_changed_is_sent_as_the_first_time(lab):
    source, router, sink = (lab.namespace(label) for label in "grs")
    lab.veth(source, "g0", router, "h0")
    lab.veth(router, "k0", sink, "s0")
    router.run("ethtool", "-K", "h0", "gro", "on")
    router.ip("link", "set", "h0", "address", "02:00:00:00:00:02")
    router.ip("address", "add", "198.18.0.254/24", "dev", "h0")
    router.ip("address", "add", "198.18.1.254/24", "dev", "k0")
    router.ip("neighbour", "add", "198.18.1.1", "lladdr", "02:00:00:00:00:99",
              "dev", "k0", "nud", "permanent")
    router.sysctl("net.ipv4.ip_forward", 1)
    before = n_forwarded(router)
    source.run(LIVEGEN, "--dev", "g0", "--count", 20000)
    received = router.link("h0")["stats64"]["rx"]["packets"]
    assert received > 1000
    wait_until("all of them have been forwarded",
               lambda: n_forwarded(router) - before == received)
