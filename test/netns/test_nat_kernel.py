# SPDX-License-Identifier: BSD-3-Clause
"""mr-nat and the host's kernel behind the same addresses: local: kernel."""
import os
import signal
import socket
import struct
import subprocess

import pytest
from host import limit
from lib import servers, talk
from lib.nat import INSIDE, OUTSIDE, SERVER, Echo, House, Nat, Talker, \
    tcp_between
from lib.process import NAT, Process, environment

CONFIG = "local: kernel\nports: {range: 1024-32767}\n"
IP_MINTTL = 21  # linux/in.h
DHCP_CLIENT = 68


@pytest.fixture
def house(lab):
    """Reverse path filtering, and a host with addresses of its own."""
    made = House(lab)
    for port, address in ("p0", INSIDE), ("p1", OUTSIDE):
        made.middle.ip("address", "add", address + "/24", "dev", port)
        made.middle.sysctl(f"net.ipv4.conf.{port}.rp_filter", 1)
    made.middle.sysctl("net.ipv4.conf.all.rp_filter", 1)
    return made


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.short
def test_the_host_is_reached_beside_the_translator(lab, house, workers):
    nat = Nat(house, "--workers", workers, config=CONFIG)
    nat.says("receives only what the program passes to it")
    echo = lab.closing(Echo(house.server))
    talker = lab.closing(Talker(house.a))
    assert echo.socket and talker.ask()[0] == OUTSIDE
    # ssh, from outside and from inside; its answers are the kernel's.
    for client, address in ((house.server, OUTSIDE), (house.a, INSIDE),
                            (house.a, OUTSIDE)):
        tcp_between(client, house.middle, address, 22, 22)
        assert talk.ping(client, address) == 3
        assert talk.ping(client, address, size=4000) == 3  # fragments
    # The host as a client: its own ports, ARP and pings.
    assert tcp_between(house.middle, house.server, SERVER, 80, 80)[0] == OUTSIDE
    assert talk.ping(house.middle, SERVER) == 3
    assert talker.ask()[0] == OUTSIDE
    assert tcp_between(house.a, house.server, SERVER, 81, 81)[0] == OUTSIDE
    nat.stop()


def test_ttl_security_and_broadcasts(lab, house):
    """BGP's GTSM (RFC 5082) sees the TTL as it came; DHCP its broadcasts."""
    nat = Nat(house, config=CONFIG)
    listener = lab.closing(talk.socket_in(
        house.middle, socket.SOCK_STREAM, OUTSIDE, 179))
    listener.setsockopt(socket.IPPROTO_IP, IP_MINTTL, 255)
    listener.listen(1)
    client = lab.closing(talk.socket_in(house.server, socket.SOCK_STREAM))
    client.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 255)
    client.connect((OUTSIDE, 179))
    bound = lab.closing(talk.socket_in(
        house.middle, socket.SOCK_DGRAM, "", DHCP_CLIENT))
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"p1")
    sender = lab.closing(talk.socket_in(house.server, socket.SOCK_DGRAM))
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"h0")
    sender.sendto(b"offer", ("255.255.255.255", DHCP_CLIENT))
    assert bound.recv(100) == b"offer"
    # A frame that is neither IPv4 nor ARP.
    with house.middle:
        raw = lab.closing(socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                        socket.htons(0x88cc)))
    raw.settimeout(bound.gettimeout())
    raw.bind(("p1", 0x88cc))
    with house.server:
        out = lab.closing(socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
    lldp = bytes.fromhex("0180c200000e") + b"\2" * 6 + struct.pack("!H", 0x88cc)
    out.bind(("h0", 0))
    out.send(lldp.ljust(60, b"\0"))
    assert raw.recv(100)[:14] == lldp
    nat.stop()


def test_a_session_of_ssh(lab, house):
    """From outside, with 1 MiB each way, beside translated traffic."""
    key = lab.tmp_path / "key"
    servers.sshd(lab, house.middle, key)
    nat = Nat(house, config=CONFIG)
    lab.closing(Echo(house.server))
    talker = lab.closing(Talker(house.a))
    data = os.urandom(1 << 20)
    (lab.tmp_path / "data").write_bytes(data)
    with (lab.tmp_path / "data").open("rb") as sent:
        came = subprocess.run(house.server.command(
            "ssh", "-F", "none", "-i", key, "-oBatchMode=yes",
            "-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null",
            f"root@{OUTSIDE}", "cat"), stdin=sent, timeout=limit(30),
            check=True, stdout=subprocess.PIPE)
    assert came.stdout == data
    assert talker.ask()[0] == OUTSIDE
    nat.stop()


def test_a_dhcp_client_renews_its_lease(lab, house):
    """With broadcasts at first, then with unicasts."""
    servers.need("udhcpc", "udhcpc")
    servers.dnsmasq(
        lab, house.server, "--port=0", "--interface=h0", "--dhcp-authoritative",
        f"--dhcp-range={OUTSIDE},{OUTSIDE},255.255.255.0,10m", "--no-ping",
        f"--dhcp-leasefile={lab.tmp_path}/leases")
    script = lab.tmp_path / "script"
    script.write_text('#!/bin/sh\necho "$1 $ip"\n')
    script.chmod(0o755)
    nat = Nat(house, config=CONFIG)
    client = Process(lab, house.middle, ["udhcpc", "-f", "-i", "p1", "-s",
                                         script])
    for event in "bound", "renew":
        assert client.out.wait(lambda line, wanted=f"{event} {OUTSIDE}":
                               line == wanted, 20.0), client.err.text()
        client.process.send_signal(signal.SIGUSR1)  # renew now
    nat.stop()


def summed(data, at):
    """With its checksum."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xffff) + (total >> 16)
    return data[:at] + struct.pack("!H", ~total & 0xffff) + data[at + 2:]


def test_errors_about_the_host_s_packets_at_their_last_hop(lab, house):
    """A TTL of 1 is enough for what is not forwarded."""
    nat = Nat(house, config=CONFIG)
    lab.closing(talk.socket_in(house.server, socket.SOCK_DGRAM, SERVER, 9))
    client = lab.closing(talk.socket_in(
        house.middle, socket.SOCK_DGRAM, OUTSIDE, 40000))
    client.connect((SERVER, 9))
    client.send(b"")
    sent = summed(struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 28, 0, 0, 64, 17, 0,
        socket.inet_aton(OUTSIDE), socket.inet_aton(SERVER)), 10) + \
        struct.pack("!HHHH", 40000, 9, 8, 0)
    error = summed(struct.pack("!BBHI", 3, 3, 0, 0) + sent, 2)
    with house.server:
        raw = lab.closing(socket.socket(socket.AF_INET, socket.SOCK_RAW,
                                        socket.IPPROTO_ICMP))
    raw.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 1)
    raw.sendto(error, (OUTSIDE, 0))
    with pytest.raises(ConnectionRefusedError):
        client.recv(1)
    nat.stop()


def refuse(house, config, *parts):
    """It does not start, and one line says why; --check says the same."""
    for check in [], ["--check"]:
        process = Process(house.lab, house.middle,
                          [*environment(house.lab), NAT, "--config",
                           house.write(config), *check])
        assert process.wait(15) in (1, 2)
        line = process.err.text().splitlines()[-1]
        for part in ("local: kernel: ", *parts):
            assert part in line, line


def test_ports_that_the_host_uses_are_not_given_out(lab, house):
    refuse(house, "local: kernel\n", "32768 to 60999", "1024-32767")
    for kind, proto, address in ((socket.SOCK_STREAM, "TCP", "0.0.0.0"),
                                 (socket.SOCK_DGRAM, "UDP", OUTSIDE),
                                 (socket.SOCK_STREAM, "TCP", "::"),
                                 (socket.SOCK_STREAM, "TCP",
                                  "::ffff:" + OUTSIDE)):
        with talk.socket_in(house.middle, kind, address, 8080) as used:
            if kind == socket.SOCK_STREAM:
                used.listen(1)
            else:
                used.connect((SERVER, 9))
            refuse(house, CONFIG, f"uses {proto} port 8080")
    with talk.socket_in(house.middle, socket.SOCK_STREAM, OUTSIDE, 22) as used:
        used.listen(1)
        refuse(house, CONFIG + "forwards: [{outside: '192.0.2.1:22', "
               "inside: '10.0.0.4:22'}]\n", "uses TCP port 22")
    # Neither an address of the loopback, nor a port beyond the range.
    house.middle.ip("link", "set", "lo", "up")
    for address, port in ("127.0.0.1", 8080), ("0.0.0.0", 80):
        used = lab.closing(talk.socket_in(house.middle, socket.SOCK_STREAM,
                                          address, port))
        used.listen(1)
    nat = Nat(house, config=CONFIG)
    assert "32768 to 60999" in nat.reload("local: kernel\n")
    nat.stop()


def test_a_port_that_cannot_share_is_refused(house):
    process = Process(house.lab, house.middle,
                      [*environment(house.lab), NAT, "--config",
                       house.write(CONFIG, port="p1,attach=generic")])
    assert process.wait(15) == 1
    assert "generic attach" in process.err.text()
