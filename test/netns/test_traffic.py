# SPDX-License-Identifier: BSD-3-Clause
"""Frames through mr-l2fwd: two kernels talk, every length, many queues."""
import errno
import socket
import struct

import pytest
from lib import invariants, talk
from lib.forwarder import Forwarder
from lib.namespaces import Star, wait_until
from lib.probe import opened
from lib.wire import ETH_P_ALL, TEST_TYPE, Wire, both, frame

MAX_LENGTH = 1514  # MTU 1500 and an Ethernet header


def events(final, name):
    """An event, summed over all queues of all ports."""
    return sum(queue["events"].get(name, 0) for port in final["ports"]
               for queue in port["queues"])


def talk_both_ways(star):
    """Ping, TCP and UDP in both directions."""
    one, other = star.hosts
    for sender, receiver, i in ((one, other, 1), (other, one, 0)):
        address = star.address(i)
        assert talk.ping(sender, address) == 3
        talk.tcp(sender, receiver, address)
        assert talk.udp(sender, receiver, address) == 20


def pass_all(lab, star, frames, sender=0):
    """Send frames from one host; the other must get them, in order."""
    source = lab.closing(Wire(star.hosts[sender], "h0", TEST_TYPE))
    sink = lab.closing(Wire(star.hosts[1 - sender], "h0", TEST_TYPE))
    frames = list(frames)
    source.send_all(frames)
    got = sink.receive(len(frames))
    assert sink.lost() == 0
    assert len(got) == len(frames), f"{len(got)} of {len(frames)} came"
    for sent, received in zip(frames, got):
        assert sent == received, (f"{len(sent)} bytes sent, "
                                  f"{len(received)} received, or others")


@pytest.mark.short
def test_ping_tcp_udp_with_offloads_at_their_defaults(lab, star):
    for host in star.hosts:
        features = host.run("ethtool", "-k", "h0").stdout
        assert "tx-checksumming: on" in features
    forwarder = Forwarder(lab, star.middle, *star.ports)
    talk_both_ways(star)
    final = forwarder.stop()
    # The kernels left the sums to the device, and that was seen and done.
    n_partial = events(final, "rx_csum_partial")
    assert n_partial > 0
    assert n_partial == (events(final, "tx_csum_device") +
                         events(final, "tx_csum_software"))
    for port in final["ports"]:
        assert port["mode"] == "copy" and "veth" in port["why"]


def test_ping_tcp_udp_over_ipv6(lab, star):
    for i, host in enumerate(star.hosts):
        host.sysctl("net.ipv6.conf.h0.disable_ipv6", 0)
        host.ip("address", "add", f"fd00::{i + 1}/64", "dev", "h0", "nodad")
    forwarder = Forwarder(lab, star.middle, *star.ports)
    one, other = star.hosts
    for sender, receiver, address in ((one, other, "fd00::2"),
                                      (other, one, "fd00::1")):
        assert talk.ping(sender, address) == 3
        talk.tcp(sender, receiver, address)
        assert talk.udp(sender, receiver, address) == 20
    assert events(forwarder.stop(), "rx_csum_partial") > 0


def test_csum_off_passes_traffic_of_hosts_that_do_their_sums(lab, star):
    for host in star.hosts:
        host.run("ethtool", "-K", "h0", "tx", "off")
    forwarder = Forwarder(lab, star.middle,
                          *(f"xdp:{p},csum=off" for p in star.ports))
    talk_both_ways(star)
    final = forwarder.stop()
    for name in ("rx_csum_partial", "tx_csum_device", "tx_csum_software"):
        assert events(final, name) == 0


def test_csum_off_leaves_a_partial_sum_partial(lab, star):
    Forwarder(lab, star.middle,
              *(f"xdp:{p},csum=off" for p in star.ports))
    assert talk.ping(star.hosts[0], star.address(1)) == 3  # ARP is done
    # The host leaves the sum to the device, and nobody finishes it.
    assert talk.udp(*star.hosts, star.address(1), n=1, limit_s=2) == 0


def udp_frame(star, checksum):
    """A UDP datagram from host 0 to host 1, as bytes; checksum(right sum)."""
    # pylint: disable=import-outside-toplevel
    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether
    packet = Ether(src=star.hosts[0].link("h0")["address"],
                   dst=star.hosts[1].link("h0")["address"]) / \
        IP(src=star.address(0), dst=star.address(1)) / \
        UDP(sport=4000, dport=5002) / b"as it came, corrupt or not"
    right = UDP(bytes(packet[UDP])).chksum
    packet[UDP].chksum = checksum(right)
    return bytes(packet)


def pseudo_sum(star, n_bytes):
    """What a kernel leaves in the field: the pseudo-header's sum."""
    # pylint: disable=import-outside-toplevel
    from scapy.utils import checksum
    from socket import inet_aton
    head = inet_aton(star.address(0)) + inet_aton(star.address(1)) + \
        bytes([0, 17]) + n_bytes.to_bytes(2, "big")
    return ~checksum(head) & 0xffff


@pytest.mark.parametrize("spec", ["xdp:{}", "xdp:{},csum=on",
                                  "xdp:{},csum=off"])
def test_a_corrupt_sum_leaves_as_corrupt_as_it_came(lab, star, spec):
    Forwarder(lab, star.middle,
              *(spec.format(p) for p in star.ports))
    source = lab.closing(Wire(star.hosts[0], "h0"))
    sink = lab.closing(Wire(star.hosts[1], "h0", 0x0800))
    server = lab.closing(talk.Udp(star.hosts[1], star.address(1)))
    for change, is_good in ((lambda right: right ^ 0x0100, False),
                            (lambda right: right, True),
                            (lambda right: 0, True)):  # 0: no sum, RFC 768
        data = udp_frame(star, change)
        source.send(data)
        assert sink.receive(1) == [data]
        assert (server.receive(0.3) is not None) == is_good


def test_a_partial_sum_is_finished_for_a_port_that_cannot(lab, star):
    """To a file, which finishes no sums: the library must have done it."""
    from scapy.layers.inet import UDP  # pylint: disable=C0415
    from scapy.utils import rdpcap  # pylint: disable=C0415
    path = lab.tmp_path / "out.pcap"
    forwarder = Forwarder(lab, star.middle, "p0", f"pcap:tx={path}")
    source = lab.closing(Wire(star.hosts[0], "h0"))
    length = len(udp_frame(star, lambda right: right)) - 34
    data = udp_frame(star, lambda right: pseudo_sum(star, length))
    source.send(data)
    source.send(udp_frame(star, lambda right: right ^ 0x0100))
    wait_until("both are in", lambda: invariants.total(
        forwarder.next_snapshot()["ports"][0], "rx", "delivered") == 2)
    final = forwarder.stop()
    assert events(final, "rx_csum_partial") == 1
    mended, corrupt = rdpcap(str(path))
    assert bytes(mended) == udp_frame(star, lambda right: right)
    assert bytes(corrupt) == udp_frame(star, lambda right: right ^ 0x0100)
    assert mended[UDP].chksum != pseudo_sum(star, length)


def tagged(data, vlan):
    """A frame with a VLAN tag in it."""
    return data[:12] + struct.pack("!HH", 0x8100, vlan) + data[12:]


def test_a_vlan_tag_in_the_frame_stays(lab, star):
    """In generic mode; native: below."""
    Forwarder(lab, star.middle,
              *(f"xdp:{p},attach=generic" for p in star.ports))
    source, sink = both(lab, star, ETH_P_ALL)
    # The longest one, too: MTU, Ethernet header and tag.
    sent = [tagged(frame(n, n), 5) for n in (60, 1000, MAX_LENGTH)]
    source.send_all(sent)
    assert sink.receive(3) == sent


@pytest.mark.parametrize("mtu", [1500, 9000])
@pytest.mark.parametrize("txvlan", ["on", "off"])
@pytest.mark.short
def test_a_vlan_tag_stays_wherever_the_sender_leaves_it(lab, on_vlan, txvlan,
                                                        mtu):
    """Outside of the frame, or in it."""
    star = Star(lab, mtu=mtu)
    on_vlan(star.hosts[0])
    star.hosts[0].run("ethtool", "-K", "h0", "txvlan", txvlan)
    Forwarder(lab, star.middle, *star.ports)
    source, sink = both(lab, star, ETH_P_ALL)
    sent = [frame(n, n) for n in (18, 60, 1000, mtu + 14)]
    source.send_all(sent)
    assert sink.receive(4) == [tagged(data, 3 << 13 | 5) for data in sent]


def test_a_port_warns_if_it_loses_vlan_tags(lab, star):
    forwarder = Forwarder(lab, star.middle, "xdp:p0,attach=generic", "p1")
    ports = forwarder.stop()["ports"]
    assert "tags outside the frame are lost (generic" in ports[0]["why"]
    assert "tags" not in ports[1]["why"]


def test_one_entry_per_frame_at_mtu_1500(lab, star):
    probe = opened(lab, star.middle, "p0")
    assert not probe.do("info", 0)["sg"]
    source = lab.closing(Wire(star.hosts[0], "h0"))
    n = source.send_all(frame(MAX_LENGTH, i) for i in range(100))
    assert probe.do("hold", 0, 1000, 500)["n"] == n  # entries
    assert invariants.total(probe.stats(0), "rx", "delivered") == n  # frames
    probe.close()
    # And a burst of one entry is enough to forward them.
    Forwarder(lab, star.middle, *star.ports,
              options=["--burst", 1])
    pass_all(lab, star, (frame(MAX_LENGTH, i) for i in range(100)))


@pytest.mark.short
def test_jumbo_frames_pass_by_mtu_9000(lab):
    star = Star(lab)
    for host in star.hosts:
        host.ip("link", "set", "h0", "mtu", 9000)
    forwarder = Forwarder(lab, star.middle,
                          *(f"xdp:{p},mtu=9000" for p in star.ports))
    one, other = star.hosts
    for sender, i in ((one, 1), (other, 0)):
        assert talk.ping(sender, star.address(i), size=8972,
                         more=["-M", "do"]) == 3
    talk.tcp(one, other, star.address(1))
    talk.tcp(other, one, star.address(0))
    lengths = [*range(14, 9014, 97), 9013, 9014]
    # Around each place where a chunk is full.
    for edge in range(3456, 9014, 3456):
        lengths += range(edge - 3, edge + 4)
    pass_all(lab, star, (frame(n, n) for n in lengths))
    final = forwarder.stop()
    assert events(final, "rx_csum_partial") > 0
    for port in star.ports:
        assert star.middle.link(port)["mtu"] == 1500  # as it was


@pytest.mark.parametrize("mtu", [1500, 9000])
@pytest.mark.short
def test_each_of_four_queues_is_served(lab, end, mtu):
    """From port to port; of 9000, in several entries: the other sockets have
    their memory, and SG with it, from the first."""
    star = Star(lab, queues=4, mtu=mtu)
    forwarder = Forwarder(lab, star.middle, *star.ports,
                          options=["--ring", 256])
    ends = [end(host, "h0,ring=256") for host in star.hosts]
    counts = [30, 50, 70, 90]
    for source, sink in (ends, ends[::-1]):
        for queue, n in enumerate(counts):
            for i in range(0, n, 10):  # what all rings have room for
                sent = [frame(mtu + 14 - j * 5, j) for j in range(i, i + 10)]
                source.send(sent, queue)
                assert sink.receive(10) == sent
    for port in forwarder.stop()["ports"]:
        assert [q["rx"]["delivered"] for q in port["queues"]] == counts


def test_kernels_talk_over_four_queues(lab):
    star = Star(lab, queues=4)
    forwarder = Forwarder(lab, star.middle, *star.ports)
    talk_both_ways(star)
    forwarder.stop()


# linux/if_xdp.h; XDP_MAX_TX_SKB_BUDGET
AF_XDP, SOL_XDP, TX_BUDGET = 44, 283, 9


def skip_without_tx_budget():
    """Linux before 6.17 sends 32 frames per call, whatever it is told."""
    with socket.socket(AF_XDP, socket.SOCK_RAW) as xsk:
        try:
            xsk.setsockopt(SOL_XDP, TX_BUDGET, 64)
        except OSError as error:
            # EACCES: it is known, and more than this socket's tx ring.
            if error.errno == errno.ENOPROTOOPT:
                pytest.skip("no XDP_MAX_TX_SKB_BUDGET (Linux 6.17)")


@pytest.mark.parametrize("options, budget", [
    ("", 1024), (",budget=32", 32), (",budget=128", 128)])
def test_one_system_call_sends_at_most_the_budget(lab, star, options, budget):
    skip_without_tx_budget()
    probe = opened(lab, star.middle, f"p0,ring=1024,csum=off{options}")
    sink = lab.closing(Wire(star.hosts[0], "h0", TEST_TYPE))
    # A device that is down keeps them: they are all there when it is up.
    star.middle.ip("link", "set", "p0", "down")
    n = probe.do("send", 0, 0, 768, 60)["n"]
    before = probe.tx_events(0)["wakeup"]
    star.middle.ip("link", "set", "p0", "up")
    probe.do("flush", 0, 2000)
    n_calls = probe.tx_events(0)["wakeup"] - before
    assert len(sink.receive(n)) == n
    assert n_calls == -(-n // budget), n_calls


def test_busy_polling_forwards_and_is_not_warned_of(lab, star):
    forwarder = Forwarder(lab, star.middle,
                          *(f"{p},busy=64" for p in star.ports),
                          options=["-v"])
    talk_both_ways(star)
    lengths = range(14, MAX_LENGTH + 1, 50)
    for sender in (0, 1):
        pass_all(lab, star, (frame(n, n) for n in lengths), sender)
    forwarder.stop()
    said = forwarder.err.text()
    assert "attach" in said  # it is verbose
    # That there are no huge pages is none of its business, nor is another
    # suite's program that polls at the same time.
    warnings = [line for line in said.splitlines() if "warning" in line
                and "segment" not in line and "shares core" not in line]
    assert not warnings


@pytest.mark.parametrize("idle", ["poll", "adaptive", "interrupt"])
def test_each_way_of_waiting_forwards(lab, star, idle):
    forwarder = Forwarder(lab, star.middle, *star.ports,
                          options=["--idle", idle])
    for _ in range(10):  # one by one: each finds it waiting
        assert talk.ping(star.hosts[0], star.address(1), 1) == 1
    final = forwarder.stop()
    assert (invariants.worker_total(final, "sleeps") == 0) == (idle == "poll")


def test_json_keeps_its_laws_while_it_runs(lab, star):
    """Counters of one line may be of different moments, but only grow."""
    forwarder = Forwarder(lab, star.middle, *star.ports)
    for _ in range(2):
        talk.tcp(*star.hosts, star.address(1), n_bytes=16 << 20)
    forwarder.next_snapshot()
    forwarder.next_snapshot()
    final = forwarder.stop()
    seen = forwarder.snapshots()
    assert len(seen) >= 3 and seen[-1] == final
    assert [s["v"] for s in seen] == [1] * len(seen)
    for before, after in zip(seen, seen[1:]):
        assert before["t"] <= after["t"]
        assert "final" not in before
        for p, port in enumerate(before["ports"]):
            for side, name in (("rx", "delivered"), ("tx", "completed")):
                assert invariants.total(port, side, name) <= invariants.total(
                    after["ports"][p], side, name)
