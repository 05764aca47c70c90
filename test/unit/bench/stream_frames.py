# SPDX-License-Identifier: BSD-3-Clause
"""Frames of streams, taken apart by scapy and put together again.

usage: stream_frames.py STREAM_FRAMES

Every field is there with the values that its text names, no other byte differs
from what scapy makes of the same fields, and that includes the checksums.
"""
import ipaddress
import random
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    from scapy.all import (Dot1AD, Dot1Q, Ether, ICMP, ICMPv6EchoRequest, IP,
                           IPv6, Raw, TCP, UDP, rdpcap, wrpcap)
except ImportError:
    print("scapy is missing: apt install python3-scapy")
    sys.exit(77)

PROGRAM = ""
MAGIC = 0x5eed1234


def made(n, *texts, is_stamped=False):
    """The frames that the texts make."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "out.pcap")
        subprocess.run([PROGRAM, path, str(n), str(int(is_stamped)), *texts],
                       check=True, timeout=60)
        return list(rdpcap(path))


def rebuilt(frame):
    """The same fields with sums and lengths as scapy computes them."""
    again = Ether(bytes(frame))
    no_udp_sum = UDP in again and IP in again and again[UDP].chksum == 0
    for layer, names in ((IP, ("chksum", "len")), (IPv6, ("plen",)),
                         (UDP, ("len",) if no_udp_sum else ("chksum", "len")),
                         (TCP, ("chksum",)), (ICMP, ("chksum",)),
                         (ICMPv6EchoRequest, ("cksum",))):
        if layer in again:
            for name in names:
                delattr(again[layer], name)
    return bytes(again)


def stamp(frame):
    """(magic, lane, seq, due) of the last 18 bytes."""
    magic, lane, seq, due = struct.unpack(">IH6s6s", bytes(frame)[-18:])
    return magic, lane, int.from_bytes(seq, "big"), int.from_bytes(due, "big")


def prefix(text):
    """All addresses of a prefix."""
    return [str(address) for address in ipaddress.ip_network(text)]


# Word, layer and attribute in scapy, text, values in sequence.
FIELDS = [
    ("eth.src", Ether, "src", "02:00:00:00:00:fe-02:00:00:00:01:01",
     ["02:00:00:00:00:fe", "02:00:00:00:00:ff", "02:00:00:00:01:00",
      "02:00:00:00:01:01"]),
    ("eth.dst", Ether, "dst", "06:11:00:00:00:00/46",
     [f"06:11:00:00:00:0{i}" for i in range(4)]),
    ("eth.type", Ether, "type", "0x9000-0x9003", list(range(0x9000, 0x9004))),
    ("vlan.id", Dot1Q, "vlan", "1,4094,7-9", [1, 4094, 7, 8, 9]),
    ("vlan.pcp", Dot1Q, "prio", "0-7", list(range(8))),
    ("qinq.id", Dot1AD, "vlan", "100-103 vlan.id=5", list(range(100, 104))),
    ("qinq.pcp", Dot1AD, "prio", "3,1 vlan.id=5", [3, 1]),
    ("ip.src", IP, "src", "10.1.2.0/29", prefix("10.1.2.0/29")),
    ("ip.dst", IP, "dst", "255.255.255.252/30", prefix("255.255.255.252/30")),
    ("ip.src", IPv6, "src", "2001:db8::fffe-2001:db8::1:1",
     ["2001:db8::fffe", "2001:db8::ffff", "2001:db8::1:0", "2001:db8::1:1"]),
    ("ip.dst", IPv6, "dst", "fe80::/126", prefix("fe80::/126")),
    ("ip.tos", IP, "tos", "0-255:step=51", list(range(0, 256, 51))),
    ("ip.tos", IPv6, "tc", "0-255:step=51 ip6", list(range(0, 256, 51))),
    ("ip.dscp", IP, "tos", "46,0,63", [46 << 2, 0, 63 << 2]),
    ("ip.dscp", IPv6, "tc", "46,0,63 ip6", [46 << 2, 0, 63 << 2]),
    ("ip.ttl", IP, "ttl", "1,64,255", [1, 64, 255]),
    ("ip.ttl", IPv6, "hlim", "1,64,255 ip6", [1, 64, 255]),
    ("ip.id", IP, "id", "65530-65535", list(range(65530, 65536))),
    ("ip.flow", IPv6, "fl", "0xffffe-0xfffff", [0xffffe, 0xfffff]),
    ("udp.src", UDP, "sport", "1,65535,0", [1, 65535, 0]),
    ("udp.dst", UDP, "dport", "53-55", [53, 54, 55]),
    ("udp.dst", UDP, "dport", "53-55 ip6", [53, 54, 55]),
    ("tcp.src", TCP, "sport", "1000-1002", [1000, 1001, 1002]),
    ("tcp.dst", TCP, "dport", "80,443", [80, 443]),
    ("tcp.seq", TCP, "seq", "4294967294-4294967295", [2**32 - 2, 2**32 - 1]),
    ("tcp.ack", TCP, "ack", "0,0x12345678", [0, 0x12345678]),
    ("tcp.flags", TCP, "flags", "syn,syn+ack,fin+ack,rst,psh+ack",
     [2, 18, 17, 4, 24]),
    ("tcp.window", TCP, "window", "0,65535", [0, 65535]),
    ("tcp.src", TCP, "sport", "1000-1002 ip6", [1000, 1001, 1002]),
    ("icmp.type", ICMP, "type", "0,8", [0, 8]),
    ("icmp.id", ICMP, "id", "7-9", [7, 8, 9]),
    ("icmp.seq", ICMP, "seq", "65535,0", [65535, 0]),
    ("icmp.id", ICMPv6EchoRequest, "id", "7-9 ip6", [7, 8, 9]),
]


class EveryField(unittest.TestCase):
    """One at a time, then many."""

    def check_whole(self, frames):
        """No byte is other than scapy would have it."""
        for frame in frames:
            self.assertEqual(bytes(frame).hex(), rebuilt(frame).hex())

    def test_sequence(self):
        """Values in their order, again and again, with right sums."""
        for name, layer, attribute, text, values in FIELDS:
            with self.subTest(f"{name}={text}"):
                n = 2 * len(values) + 1
                frames = made(n, f"{name}={text}")
                self.assertEqual(
                    [int(v) if isinstance(values[0], int) else v
                     for v in (getattr(f[layer], attribute) for f in frames)],
                    [values[i % len(values)] for i in range(n)])
                self.check_whole(frames)

    def test_constant(self):
        """A single value is in every frame."""
        for name, layer, attribute, text, values in FIELDS:
            words = text.split()
            if layer is Ether and attribute == "dst":
                continue  # a prefix of it is no value
            value = words[0].split(",")[0].split("-")[0].split("/")[0]
            with self.subTest(f"{name}={value}"):
                frames = made(3, f"{name}={value} {' '.join(words[1:])}")
                self.assertEqual(len({bytes(f) for f in frames}), 1)
                got = getattr(frames[0][layer], attribute)
                self.assertEqual(
                    int(got) if isinstance(values[0], int) else got,
                    values[0])
                self.check_whole(frames)

    def test_stamped(self):
        """Stamps count, and sums are over them, at odd lengths too."""
        for text in ("udp.src=1-9", "udp.src=1-9 size=61", "tcp.flags=syn",
                     "tcp size=73", "ip6 udp.dst=1-5 size=81", "icmp size=61",
                     "ip6 icmp", "udp.csum=off", "eth.type=0x88b5", "vlan.id=7",
                     "ip.options=12 udp.src=5,6", "size=60x2,1514,61",
                     "ip.proto=50 ip.src=10.0.0.0/24"):
            with self.subTest(text):
                frames = made(100, text, is_stamped=True)
                self.assertEqual([stamp(f)[:3] for f in frames],
                                 [(MAGIC, 0, i) for i in range(100)])
                self.assertEqual([stamp(f)[3] for f in frames],
                                 [1000000007 * (100 - i) for i in range(100)])
                self.check_whole(frames)

    def test_random_texts(self):
        """Many fields at once, drawn by the test."""
        rng = random.Random(6)
        names = {
            IP: ["ip.src=10.0.0.0/8", "ip.dst=11.0.0.0-11.0.3.7", "ip.ttl=1-9",
                 "ip.id=0-65535", "ip.tos=0-255", "vlan.id=1-4094",
                 "ip.options=8", "eth.src=02:00:00:00:00:00/32"],
            IPv6: ["ip6 ip.flow=0-0xfffff", "ip.src=2001:db8::/96",
                   "ip.dst=2001:db8:1::1,2001:db8:1::2", "ip.ttl=1-200",
                   "qinq.id=1-9 vlan.id=1-20"],
            UDP: ["udp.src=1024-65535", "udp.dst=53,80,443"],
            TCP: ["tcp.src=1024-65535", "tcp.flags=syn,ack,rst",
                  "tcp.seq=0-4294967295", "tcp.window=1-65535"],
        }
        for _ in range(25):
            words = []
            for name in (names[rng.choice((IP, IPv6))] +
                         names[rng.choice((UDP, TCP))]):
                if rng.random() < 0.6:
                    small = "/8" not in name and "/96" not in name and \
                        "/32" not in name and "4294967295" not in name
                    order = rng.choice(["", ":random"] +
                                       (["", ":zipf=0.8"]
                                        if "-" in name and small and
                                        "fffff" not in name else []))
                    words.append(name + ("" if "options" in name else order))
            text = " ".join(words + [f"size={rng.randrange(130, 200)}"])
            with self.subTest(text):
                self.check_whole(made(60, text, is_stamped=True))

    def test_capture(self):
        """A capture as it is, and with a field that varies."""
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "in.pcap")
            sent = [Ether(bytes(Ether(src="02:00:00:00:00:09",
                                      dst="02:00:00:00:00:08") /
                                IP(src="192.0.2.1", dst="192.0.2.2", ttl=i) /
                                UDP(sport=i, dport=99, chksum=0x1234) /
                                Raw(bytes(range(40)))))
                    for i in range(1, 4)]
            wrpcap(path, sent)
            got = made(6, f"pcap={path}")
            self.assertEqual([bytes(f) for f in got],
                             [bytes(f) for f in sent + sent])
            got = made(4, f"pcap={path} ip.src=10.0.0.0/30", is_stamped=True)
            self.check_whole(got)
            self.assertEqual([f[IP].src for f in got], prefix("10.0.0.0/30"))
            self.assertEqual([f[IP].ttl for f in got], [1, 2, 3, 1])
            self.assertEqual(bytes(got[0])[42:64], bytes(range(22)))
            self.assertEqual(stamp(got[3])[:3], (MAGIC, 0, 3))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
