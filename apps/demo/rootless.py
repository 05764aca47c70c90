# SPDX-License-Identifier: BSD-3-Clause
"""The demo without root: the same forwarder on pcap: and pair: ports.

What two hosts would say to each other (ARP, ping, a TCP transfer) is written
into capture files, forwarded, and compared. What is missing is the kernel:
nobody answers, the frames are ours on both sides.
"""
import ipaddress
import shutil
import struct
import tempfile
from pathlib import Path

from forwarder import Display, Failed, Forwarder, summary

PCAP_MAGIC, LINKTYPE_ETHERNET = 0xA1B2C3D4, 1
HOSTS = {"a": (bytes.fromhex("02000000000a"), "10.77.0.1"),
         "b": (bytes.fromhex("02000000000b"), "10.77.0.2")}
SEGMENT_BYTES = 1460
TRANSFER_BYTES = 1 << 20
ACK, PUSH_ACK, SYN, SYN_ACK, FIN_ACK = 0x10, 0x18, 0x02, 0x12, 0x11
LIMIT_S = 30


def checksum(data):
    """RFC 1071."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ipv4(source, to, protocol, payload):
    """An Ethernet frame with an IPv4 packet, 60 bytes at least."""
    (src_mac, src_ip), (dst_mac, dst_ip) = HOSTS[source], HOSTS[to]
    src, dst = (ipaddress.ip_address(ip).packed for ip in (src_ip, dst_ip))
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 0, 0x4000,
                         64, protocol, 0, src, dst)
    header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
    return (dst_mac + src_mac + b"\x08\x00" + header + payload).ljust(60, b"\0")


def arp(source, to, operation):
    """Who has, and the answer."""
    (src_mac, src_ip), (dst_mac, dst_ip) = HOSTS[source], HOSTS[to]
    target, dst = (b"\0" * 6, b"\xff" * 6) if operation == 1 else \
        (dst_mac, dst_mac)
    return (dst + src_mac + b"\x08\x06" + struct.pack(
        "!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, operation, src_mac,
        ipaddress.ip_address(src_ip).packed, target,
        ipaddress.ip_address(dst_ip).packed)).ljust(60, b"\0")


def ping(source, to, kind, sequence):
    """ICMP echo request (8) or reply (0)."""
    body = struct.pack("!BBHHH", kind, 0, 0, 77, sequence) + bytes(range(56))
    return ipv4(source, to, 1,
                body[:2] + struct.pack("!H", checksum(body)) + body[4:])


def tcp(source, to, flags, seq, ack, payload=b""):
    """A TCP segment between ports 40000 (a) and 5001 (b)."""
    ports = (40000, 5001) if source == "a" else (5001, 40000)
    segment = struct.pack("!HHIIBBHHH", *ports, seq, ack, 0x50, flags, 65535,
                          0, 0) + payload
    pseudo = b"".join(ipaddress.ip_address(HOSTS[h][1]).packed
                      for h in (source, to)) + \
        struct.pack("!BBH", 0, 6, len(segment))
    return ipv4(source, to, 6, segment[:16] + struct.pack(
        "!H", checksum(pseudo + segment)) + segment[18:])


def conversation():
    """{host: the frames it sends}."""
    a = [arp("a", "b", 1)] + [ping("a", "b", 8, i) for i in range(3)]
    b = [arp("b", "a", 2)] + [ping("b", "a", 0, i) for i in range(3)]
    a += [tcp("a", "b", SYN, 0, 0), tcp("a", "b", ACK, 1, 1)]
    b.append(tcp("b", "a", SYN_ACK, 0, 1))
    data = bytes(i * 7 % 251 for i in range(TRANSFER_BYTES))
    for at in range(0, TRANSFER_BYTES, SEGMENT_BYTES):
        part = data[at:at + SEGMENT_BYTES]
        a.append(tcp("a", "b", PUSH_ACK, 1 + at, 1, part))
        b.append(tcp("b", "a", ACK, 1, 1 + at + len(part)))
    a.append(tcp("a", "b", FIN_ACK, 1 + TRANSFER_BYTES, 1))
    b.append(tcp("b", "a", FIN_ACK, 1, 2 + TRANSFER_BYTES))
    return {"a": a, "b": b}


def write_pcap(path, frames):
    """A capture file of these frames."""
    with open(path, "wb") as file:
        file.write(struct.pack("=IHHiIII", PCAP_MAGIC, 2, 4, 0, 0, 65535,
                               LINKTYPE_ETHERNET))
        for i, frame in enumerate(frames):
            file.write(struct.pack("=IIII", 0, i, len(frame), len(frame)))
            file.write(frame)


def read_pcap(path):
    """The frames of a capture file; those that are complete."""
    data, frames, at = path.read_bytes() if path.exists() else b"", [], 24
    while at + 16 <= len(data):
        _, _, length, _ = struct.unpack_from("=IIII", data, at)
        if at + 16 + length > len(data):
            break
        frames.append(data[at + 16:at + 16 + length])
        at += 16 + length
    return frames


def show_conversation(stack, program):
    """Forward what hosts a and b say; what arrives is what was sent."""
    folder = Path(tempfile.mkdtemp(prefix="mr-demo-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    sent = conversation()
    for host, frames in sent.items():
        write_pcap(folder / f"{host}-sends.pcap", frames)
    ports = [f"pcap:rx={folder}/{host}-sends.pcap,tx={folder}/{host}-gets.pcap"
             for host in "ab"]
    print("\nARP, ping and a TCP transfer of 1 MiB, from capture files, "
          "between pcap: ports")
    forwarder = Forwarder([program, "--json", *ports])
    stack.callback(forwarder.close)
    final = forwarder.wait(LIMIT_S)
    for to, source in (("a", "b"), ("b", "a")):
        got = read_pcap(folder / f"{to}-gets.pcap")
        if got != sent[source]:
            raise Failed(f"host {to} got {len(got)} frames, not the "
                         f"{len(sent[source])} that host {source} sent")
        print(f"  host {to} got all {len(got)} frames of host {source}, "
              "byte for byte")
    return final


def show_full_speed(stack, program, seconds):
    """null: makes frames, a pair carries them, null: takes them."""
    forwarder = Forwarder([program, "--json", "null:", "pair:demo",
                           "pair:demo", "null:"])
    stack.callback(forwarder.close)
    forwarder.wait_ready()
    print(f"\nfull speed for {seconds:g} s, 60-byte frames: null: -> pair: "
          "-> null:, all in memory")
    first, last = Display().run(forwarder, seconds)
    final = forwarder.stop()
    summary(first, last, final)
    return final


def show(stack, build, seconds):
    """The demo. The forwarder's final object."""
    print("Without root there are no network namespaces and no AF_XDP sockets. "
          "Differences:\n"
          "  - the ports are pcap: (capture files) and pair: (memory), not "
          "xdp:\n"
          "  - the hosts' frames are prerecorded: nobody answers\n"
          "  - the rates are those of memory, not of a device\n"
          "With root, or sudo, ./mr demo uses real interfaces.")
    program = build / "apps/l2fwd/mr-l2fwd"
    show_conversation(stack, program)
    return show_full_speed(stack, program, seconds)
