# SPDX-License-Identifier: BSD-3-Clause
"""Filters of xdp: ports: the port takes matching frames, and the kernel of its
namespace keeps the other traffic of the interface."""
import socket
import struct
import subprocess
import threading
import time

import pytest
from host import limit
from lib import invariants, talk
from lib.forwarder import Forwarder, Refused
from lib.namespaces import Star, wait_until
from lib.probe import opened
from lib.process import CTL
from lib.wire import Wire, mac

NO_PERFMON = ["setpriv", "--bounding-set=-perfmon,-sys_admin",
              "--inh-caps=-perfmon,-sys_admin"]
ADDRESSES = {4: ("10.88.0.1", "10.88.0.2"), 6: ("fd00::1", "fd00::2")}


def with_addresses(star):
    """Give p0 and its peer an IPv4 and an IPv6 address, and a default route via
    the peer."""
    for namespace, device, i in ((star.middle, "p0", 0),
                                 (star.hosts[0], "h0", 1)):
        namespace.sysctl(f"net.ipv6.conf.{device}.disable_ipv6", 0)
        namespace.ip("address", "add", ADDRESSES[4][i] + "/24", "dev", device)
        namespace.ip("address", "add", ADDRESSES[6][i] + "/64", "dev", device,
                     "nodad")
    for family in ADDRESSES:
        star.middle.ip(f"-{family}", "route", "add", "default", "via",
                       ADDRESSES[family][1])


def udp(n_bytes=60, port=4789, tags=(), to=mac(2), fragment=0):
    """A frame with UDP over IPv4 from port 1000 to a port."""
    head = to + mac(1)
    for tag in tags:
        head += struct.pack("!HH", 0x8100, tag)
    head += struct.pack("!HBBHHHBBH", 0x0800, 0x45, 0, 46, 0, fragment, 64, 17,
                        0) + bytes((10, 88, 0, 2, 10, 88, 0, 9))
    head += struct.pack("!HHHH", 1000, port, 26, 0)
    return head.ljust(n_bytes, b"x")


class Session:
    """A TCP connection through p0 to the kernel of the port's namespace, as of
    a user who is logged in."""

    def __init__(self, lab, star, family):
        local = ADDRESSES[family][0]
        listener = lab.closing(talk.socket_in(
            star.middle, socket.SOCK_STREAM, local, 22))
        listener.listen(1)
        self.client = lab.closing(talk.socket_in(
            star.hosts[0], socket.SOCK_STREAM, local))
        self.client.connect((local, 22))
        self.server = lab.closing(listener.accept()[0])

    def answers(self):
        """Check that both ends still reach each other."""
        for sender, receiver in ((self.client, self.server),
                                 (self.server, self.client)):
            sender.sendall(b"x" * 1000)
            left = 1000
            while left:
                left -= len(receiver.recv(left))


def counts(forwarder):
    """received, passed_to_kernel of its first port, now."""
    port = forwarder.next_snapshot()["ports"][0]
    return [invariants.total(port, "rx", name)
            for name in ("received", "passed_to_kernel")]


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("attach", ["native", "generic"])
def test_a_session_lives_while_frames_are_taken(lab, star, family, attach):
    n = 100000
    with_addresses(star)
    session = Session(lab, star, family)
    local = ADDRESSES[family][0]
    forwarder = Forwarder(
        lab, star.middle,
        f"p0,filter=udp port 4789,attach={attach}", "p1")
    sender = talk.socket_in(star.hosts[0], socket.SOCK_DGRAM, local)
    for i in range(n):
        sender.sendto(b"taken", (local, 4789))
        if i % (n // 20) == 0:
            session.answers()
    assert talk.ping(star.hosts[0], local) == 3
    # No ICMP error answers frames that the port took: it would raise here.
    sender.sendto(b"taken", (local, 4789))
    sender.close()
    wait_until("all are counted", lambda: int.__sub__(*counts(forwarder)) > n)
    session.answers()
    final = forwarder.stop()
    port = final["ports"][0]
    assert invariants.total(port, "rx", "received") == n + 1 + \
        invariants.total(port, "rx", "passed_to_kernel")
    # The session's, 20 and more, and pings.
    assert invariants.total(port, "rx", "passed_to_kernel") >= 20 + 3
    assert invariants.total(final["ports"][1], "rx", "passed_to_kernel") == 0


@pytest.mark.parametrize(("options", "parts"), {
    "filter=tcp": ["a packet of the TCP connection of 10.88.0.1 port 22 with "
                   "10.88.0.2"],
    "dst=fd00::1": ["for fd00::1"],
    "ports=4789,fragments=port": ["a fragment of the TCP connection of "
                                  "10.88.0.1"],
}.items())
def test_a_filter_that_may_cut_a_session_needs_force(lab, star, options,
                                                     parts):
    with_addresses(star)
    Session(lab, star, 4)
    Refused(lab, star.middle, "p0," + options, "p1").check(1, *parts,
                                                           "'force'")
    Forwarder(lab, star.middle, f"p0,{options},force", "p1").stop()


@pytest.mark.short
def test_punted_frames_stay_with_the_kernel(lab, star):
    """The host's own address answers beside traffic that is forwarded."""
    star.middle.ip("address", "add", "10.77.0.9/24", "dev", "p0")
    forwarder = Forwarder(lab, star.middle, "--punt",
                          "arp and arp[24:4] = 0x0a4d0009 or dst 10.77.0.9",
                          "p0", "p1")
    assert talk.ping(star.hosts[0], "10.77.0.9") == 3
    assert talk.ping(star.hosts[0], star.address(1)) == 3
    port = forwarder.stop()["ports"][0]
    assert invariants.total(port, "rx", "passed_to_kernel") >= 4
    Refused(lab, star.middle, "--punt", "arp", "p0,filter=tcp", "p1").check(
        2, "--punt")
    Refused(lab, star.middle, "--punt", "arq", "p0", "p1").check(2, "arq")
    Refused(lab, star.middle, "--punt", "", "p0", "p1").check(
        2, "--punt: empty, or longer than 240 bytes")


def test_punting_changes_at_run_time(lab, star):
    star.middle.ip("address", "add", "10.77.0.9/24", "dev", "p0")
    file, control = lab.tmp_path / "br.yaml", lab.tmp_path / "br.sock"

    def apply(punt):
        """Exit status and errors of mrctl."""
        file.write_text(f"ports: [p0, p1]\n{punt}\n", encoding="utf-8")
        done = subprocess.run([CTL, "--control", control, "apply", file], capture_output=True,
                              text=True, check=False, timeout=limit(30))
        return done.returncode, done.stderr

    file.write_text("ports: [p0, p1]\npunt: udp port 9\n", encoding="utf-8")
    forwarder = Forwarder(lab, star.middle, options=["--config", file, "--control", control])
    mine = "punt: 'arp and arp[24:4] = 0x0a4d0009 or dst 10.77.0.9'"
    assert apply(mine) == (0, "")
    assert talk.ping(star.hosts[0], "10.77.0.9") == 3
    for wrong, why in ("punt: arq", "arq"), ("mode: learn", "restart"):
        status, said = apply(wrong)
        assert (status, "nothing has changed" in said) == (1, True)
        assert why in said
    assert apply("") == (0, "")  # and every frame is forwarded
    wire = lab.closing(Wire(star.hosts[0], "h0"))
    got = lab.closing(Wire(star.hosts[1], "h0"))
    wire.send(udp(port=9))
    assert got.receive(1) == [udp(port=9)]
    assert apply(mine) == (0, "")
    assert talk.ping(star.hosts[0], "10.77.0.9") == 3
    forwarder.stop()


def test_punting_stays_set_if_a_port_is_opened_again(lab, star):
    file, control = lab.tmp_path / "br.yaml", lab.tmp_path / "br.sock"
    file.write_text("ports: [p0, p1]\npunt: udp port 9\n", encoding="utf-8")
    forwarder = Forwarder(lab, star.middle, options=["--config", file, "--control", control])
    file.write_text("ports: [p0, p1]\npunt: udp port 8\n", encoding="utf-8")
    done = subprocess.run([CTL, "--control", control, "apply", file], capture_output=True,
                          text=True, check=False, timeout=limit(30))
    assert done.returncode == 0, done.stderr
    star.middle.ip("link", "delete", "p0")
    lab.veth(star.hosts[0], "h0", star.middle, "p0")
    assert forwarder.err.wait(lambda line: "opened again" in line, limit(15))
    wire = lab.closing(Wire(star.hosts[0], "h0"))
    got = lab.closing(Wire(star.hosts[1], "h0"))
    wire.send_all([udp(port=8), udp(port=9)])
    assert got.receive(1) == [udp(port=9)]
    forwarder.stop(pending=True)


def test_a_filter_that_hides_an_address_from_the_kernel_warns(lab, star):
    star.middle.ip("address", "add", "10.88.0.1/24", "dev", "p0")
    for options, warns in (("filter=arp", True), ("ports=4789", False)):
        forwarder = Forwarder(lab, star.middle, "p0," + options, "p1")
        assert ("may take ARP for 10.88.0.1" in forwarder.err.text()) == warns
        forwarder.stop()


def test_a_member_of_a_bridge_needs_force_with_a_filter_too(lab, star):
    star.middle.ip("link", "add", "br0", "type", "bridge")
    star.middle.ip("link", "set", "p0", "master", "br0")
    Refused(lab, star.middle, "p0,ports=4789", "p1").check(
        1, "is a member of br0 (bridge)", "'force'")


# Options, and whether the port takes: UDP to port 4789, to port 4790, with one
# tag (5), with two tags, a later fragment, to another address of Ethernet.
NAMES = ("plain", "other port", "tag 5", "tags 5 and 6", "fragment", "other mac")
FRAMES = (udp(), udp(port=4790), udp(tags=[5]), udp(tags=[5, 6]),
          udp(fragment=100), udp(to=mac(3), port=4790))
SELECTIONS = {
    "filter=udp port 4789": "plain",
    "filter=udp,fragments=port": "plain,other port,fragment,other mac",
    "filter=vlan": "tag 5,tags 5 and 6",
    "ports=4789": "plain",
    "ports=4789/udp+4790/tcp": "plain",
    "ports=4780-4790/udp": "plain,other port,other mac",
    "ports=4789,fragments=port": "plain,fragment",
    "ports=not 4789": "other port,tag 5,tags 5 and 6,fragment,other mac",
    "ports=4789,vlan=5": "tag 5",
    "vlan=4+5": "tag 5,tags 5 and 6",
    "vlan=not 5,dst=02:00:00:00:00:02": "plain,other port,fragment",
    "ethertype=0x800,dst=not 02:00:00:00:00:02": "other mac",
    "dst=10.88.0.9+fd00::1,ports=4790": "other port,other mac",
    "dst=10.99.0.0/16": "",
    "filter=ip,vlan=5,ports=4789": "tag 5",
}


@pytest.mark.parametrize("options", SELECTIONS)
@pytest.mark.short
def test_options_select(lab, star, options):
    star.hosts[0].run("ethtool", "-K", "h0", "txvlan", "off")
    wire = lab.closing(Wire(star.hosts[0], "h0"))
    forwarder = Forwarder(lab, star.middle, "p0," + options, "p1")
    got = lab.closing(Wire(star.hosts[1], "h0"))
    kernel = lab.closing(Wire(star.middle, "p0"))
    for data in FRAMES:
        wire.send(data)
    taken = [name for name in NAMES if name in SELECTIONS[options].split(",")]
    want = [FRAMES[NAMES.index(name)] for name in taken]
    assert got.receive(len(want)) == want
    # The kernel receives the other frames unchanged.
    assert kernel.receive(len(FRAMES) - len(want)) == [
        data for data in FRAMES if data not in want]
    port = forwarder.stop()["ports"][0]
    assert invariants.total(port, "rx", "delivered") == len(want)
    assert invariants.total(port, "rx", "passed_to_kernel") == \
        len(FRAMES) - len(want)


@pytest.mark.parametrize("wrap", [[], NO_PERFMON], ids=["", "no perfmon"])
@pytest.mark.parametrize(("options", "n_taken"), [
    ("vlan=5,ports=4789", 1), ("filter=vlan", 2), ("filter=udp", 0),
    ("ports=not 4789", 2), ("filter=vlan and udp[ether[9]:2] != 9", 2)])
def test_a_tag_outside_the_frame_counts(lab, star, on_vlan, options, n_taken,
                                        wrap):
    on_vlan(star.hosts[0])
    wire = lab.closing(Wire(star.hosts[0], "h0"))
    forwarder = Forwarder(lab, star.middle, "p0," + options, "p1", wrap=wrap)
    assert "VLAN tags" not in forwarder.err.text()
    got = lab.closing(Wire(star.hosts[1], "h0"))
    kernel = lab.closing(Wire(star.middle, "p0"))
    tags = [3 << 13 | 5]
    tagged = [udp(64, tags=tags), udp(64, 4790, tags)]
    wire.send(udp())
    wire.send(udp(port=4790))
    assert got.receive(n_taken) == tagged[:n_taken]
    # The kernel has the tag once, where it was.
    assert kernel.receive(2 - n_taken) == tagged[n_taken:]
    port = forwarder.stop()["ports"][0]
    assert invariants.total(port, "rx", "passed_to_kernel") == 2 - n_taken


@pytest.mark.parametrize("options", ["", ",filter=vlan"])
def test_a_queue_without_a_socket_leaves_tags_outside(lab, on_vlan, options):
    """What the filter takes there goes to the kernel as it came, too."""
    star = Star(lab, queues=4)
    on_vlan(star.hosts[0])
    wire = lab.closing(Wire(star.hosts[0], "h0"))
    tags = [3 << 13 | 5]
    left = []
    for start in 0, 1:  # whichever queue the frames come in on
        forwarder = Forwarder(
            lab, star.middle, f"p0,queues=1,start={start},partial{options}",
            "null:")
        kernel = lab.closing(Wire(star.middle, "p0"))
        for port in range(4000, 4040):
            wire.send(udp(port=port))

        def all_came():
            left.extend(kernel.receive(40, 0.1))
            return len(left) + counts(forwarder)[0] >= 40

        wait_until("each is somewhere", all_came)
        forwarder.stop()
        if left:
            break
    assert left and {udp(64, port, tags) for port in range(4000, 4040)
                     }.issuperset(left)


def test_frames_of_several_buffers(lab, star):
    """With sg, filters also see bytes after the first buffer."""
    for end, name in (star.hosts[0], "h0"), (star.middle, "p0"):
        end.ip("link", "set", name, "mtu", 9000)
    wire = lab.closing(Wire(star.hosts[0], "h0"))
    forwarder = Forwarder(
        lab, star.middle, "p0,sg=on,filter=ether[8000] = 0x79", "null:")
    wire.send(udp(8000) + b"y")
    wire.send(udp(8000) + b"z")
    wire.send(udp(8000))
    wait_until("all are counted", lambda: counts(forwarder) == [3, 2])
    forwarder.stop()


def test_each_queue_has_the_filter_and_others_are_named(lab):
    star = Star(lab, queues=4)
    forwarder = Forwarder(
        lab, star.middle, "p0,queues=2,start=1,partial,ports=4789", "null:",
        options=["--verbose"])
    assert "of queues 0 to 3, only 1 to 2 have a socket" in \
        forwarder.err.text()
    wire = lab.closing(Wire(star.hosts[0], "h0"))
    kernel = lab.closing(Wire(star.middle, "p0", 0x0800))
    for port in range(4000, 4100):
        wire.send(udp(port=port))
    # Raw sockets choose the queue by the sender's: all on some of them.
    assert len(kernel.receive(100)) == 100
    port = forwarder.stop()["ports"][0]
    assert invariants.total(port, "rx", "received") == \
        invariants.total(port, "rx", "passed_to_kernel") <= 100


def test_it_needs_no_perfmon(lab, star):
    """Direct loads, indexed loads, and loads from other buffers."""
    Forwarder(lab, star.middle,
              "p0,sg=on,filter=udp port 4789 and ether[ether[9]] = 1", "p1",
              wrap=NO_PERFMON).stop()


def test_rules_apply_to_what_the_filter_takes(lab, star):
    star.hosts[1].run("ethtool", "-K", "h0", "gro", "on")
    forwarder = Forwarder(lab, star.middle, "p0,ports=4789", "p1",
                          options=["--mode", "patch", "--offload", "on"])
    wire = lab.closing(Wire(star.hosts[0], "h0"))
    got = lab.closing(Wire(star.hosts[1], "h0"))
    for _ in range(20):
        wire.send(udp())
        wire.send(udp(port=1))
    assert got.receive(20) == [udp()] * 20
    port = forwarder.stop()["ports"][0]
    assert invariants.total(port, "rx", "offloaded") == 20
    assert invariants.total(port, "rx", "passed_to_kernel") == 20


class Traffic:
    """UDP to ports 4789 and 4790 in turn, from a thread, until stop()."""

    def __init__(self, lab, star):
        self.wire = lab.closing(Wire(star.hosts[0], "h0"))
        self.sent, self.is_on = [], True
        self.thread = threading.Thread(target=self.send)
        self.thread.start()

    def frames(self):
        while self.is_on:
            n = len(self.sent)
            self.sent.append(udp(port=4789 + n % 2) + n.to_bytes(4, "big"))
            yield self.sent[-1]

    def send(self):
        self.wire.send_all(self.frames())

    def stop(self):
        self.is_on = False
        self.thread.join()
        return self.sent


@pytest.mark.parametrize("attach", ["native", "generic"])
@pytest.mark.short
def test_a_filter_changes_under_traffic(lab, star, end, attach):
    """Each frame is on one side, once; after a change, on the right one."""
    kernel = lab.closing(Wire(star.middle, "p0", 0x0800))
    port = end(star.middle, f"p0,ports=4789,attach={attach}")
    traffic = Traffic(lab, star)
    taken, left = [], []

    def look():
        taken.extend(port.receive(1 << 20, 0))
        left.extend(kernel.receive(1 << 20, 0))
        return len(taken) + len(left)

    wait_until("each side has some", lambda: look() and taken and left)
    for i in range(100):
        port.set(filter=f"udp port {4789 + i % 2}")
        look()
    sent = traffic.stop()
    wait_until("each is somewhere", lambda: look() >= len(sent))
    assert sorted(taken + left) == sorted(sent)
    port.check(delivered=len(taken), passed_to_kernel=len(left))
    for number, other in (4790, 4789), (4789, 4790):
        port.set(filter=f"udp port {number}")
        traffic.wire.send_all(udp(port=n) for n in (4789, 4790))
        assert port.receive(1) == [udp(port=number)]
        assert kernel.receive(1) == [udp(port=other)]


REFUSED = {
    "udp prt 4789": ["'udp prt 4789'", "after 'udp'"],
    "ip6 protochain 6": ["loops", "protochain"],
    "ip and arp": ["expression rejects all packets"],
    "": ["NULL, or empty"],
    "tcp": ["TCP connection of 10.88.0.1 port 22", "'force'"],
}


def test_a_bad_change_leaves_the_old_filter(lab, star, end):
    with_addresses(star)
    session = Session(lab, star, 4)
    port = end(star.middle, "p0,ports=4789")
    program = star.middle.link("p0")["xdp"]
    for expression, parts in REFUSED.items():
        with pytest.raises(OSError) as refused:
            port.set(filter=expression)
        for part in parts:
            assert part in refused.value.strerror
    assert star.middle.link("p0")["xdp"] == program
    session.answers()
    sender = talk.socket_in(star.hosts[0], socket.SOCK_DGRAM, "10.88.0.2")
    sender.sendto(b"taken", ("10.88.0.1", 4789))
    sender.close()
    [data] = port.receive(1)
    assert data.endswith(b"taken")


@pytest.mark.parametrize("spec, reason", [
    ("p0", "without a filter"), ("null:", "driver null")])
def test_a_port_without_a_filter_gets_none(star, end, spec, reason):
    with pytest.raises(OSError, match=reason):
        end(star.middle, spec).set(filter="udp")


def test_a_filter_cannot_change_with_rules_or_without_a_device(lab, star):
    probe = opened(lab, star.middle, "p0,ring=256,ports=4789",
                   "p1,ring=256,ports=4789")
    probe.do("rules", 0)
    assert "while rules are open" in probe.refused("take", 0, "udp")
    probe.do("take", 1, "udp")
    star.middle.ip("link", "del", "p1")
    assert "the interface is gone" in probe.refused("take", 1, "tcp")


BAD = {
    "filter=udp prt 4789": ["'udp prt 4789'", "after 'udp'"],
    "filter=": ["syntax error"],
    "filter=ip6 protochain 6": ["loops", "protochain"],
    "filter=ip and arp": ["expression rejects all packets"],
    "filter=(ip": ["'(ip'", "syntax error"],
    "filter=ip) or (arp": ["syntax error"],
    "ports=1+70000": ["ports", "1+70000", "PORT-PORT"],
    "ports=1/ucp": ["ports", "1/ucp"],
    "ports=": ["ports"],
    "vlan=4096": ["vlan", "0 to 4095"],
    "ethertype=5": ["ethertype", "0x600"],
    "dst=host": ["dst", "address"],
    "dst=10.0.0.1.2": ["10.0.0.1.2"],
    "fragments=port": ["fragments", "filter", "ports"],
    "ports=1,fragments=all": ["'all'", "kernel", "port"],
}


@pytest.mark.parametrize("options", BAD)
def test_a_bad_filter_is_refused(lab, star, options):
    before = star.middle.link("p0")
    Refused(lab, star.middle, f"p0,{options}", "p1").check(
        1 if "protochain" in options else 2, *BAD[options])
    after = star.middle.link("p0")
    assert (after.get("xdp"), after["flags"]) == (before.get("xdp"),
                                                  before["flags"])
