#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The same random packets through two translators, one of which has the XDP
program before it.

usage: differential.py [PACKETS [SEED]]

There must be no difference in what leaves, from where, what is dropped and why,
sessions and their times, TCP windows, and what is logged. Only ids of packets
without DF and of fragments may differ, also where errors quote them: rx queues
and workers have numbers of their own. Time goes in steps that the driver's clock does not round.

The packets are of a few hosts and their peers, plausible and not: flows that
live long enough for the program to forward them, and everything else that may
happen to them. A seed makes the same packets again. Exit code 77: the program
cannot be loaded.
"""
import random
import sys
import time
from ipaddress import ip_address
from struct import pack

from harness import CLEAR, INSIDE, LOOP, MACS, OUTSIDE, Nat
from scapy.all import ARP, Dot1Q, Ether, checksum, raw

ROUND = 2000  # packets under one configuration
STEP_MS = 20
HOSTS = ("10.0.0.2", "10.0.0.3", "10.0.0.9", "10.0.7.7", "10.0.7.8")
PORTS = (5000, 5001)
# By way of the gateway, some with two ports, or on the link.
PEERS = (("198.51.100.7", 53), ("198.51.100.7", 80), ("192.0.2.77", 53),
         ("203.0.113.9", 80), ("198.51.100.8", 53), ("198.51.100.8", 54),
         ("192.0.2.78", 53), ("198.51.100.9", 53))
OURS = ("10.0.0.1", "192.0.2.1")
UDP, TCP, ICMP = 17, 6, 1
FIN, SYN, RST, PUSH, ACK = 1, 2, 4, 8, 16


def get16(data, at):
    return int.from_bytes(data[at:at + 2], "big")


def put16(data, at, value):
    data[at:at + 2] = (value & 0xffff).to_bytes(2, "big")


def inverted(data):
    return bytes(255 - byte for byte in data)


def sum_ip(ip):
    """Write the header's sum."""
    put16(ip, 10, 0)
    put16(ip, 10, checksum(bytes(ip[:(ip[0] & 15) * 4])))


def pseudo(ip):
    """What the sum of layer 4 covers of the IP header."""
    return pack("!8sHH", ip[12:20], ip[9], len(ip) - 20)


def udp(sport, dport, payload):
    return pack("!HHHH", sport, dport, 8 + len(payload), 0) + payload


def tcp(sport, dport, seq, ack, flags, window, payload=b"", scale=0):
    """scale 0: without the option."""
    option = bytes((3, 3, scale, 1)) if scale else b""
    return pack("!HHIIBBHI", sport, dport, seq % 2 ** 32, ack % 2 ** 32,
                (20 + len(option)) * 4, flags, window, 0) + option + payload


class End:
    """An end of a TCP connection."""

    def __init__(self):
        self.next = self.acked = 0  # sequence numbers
        self.window = self.largest = self.shift = 0


class Packets:
    """Random packets."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.vlans = [5 + side if self.percent(30) else 0 for side in (0, 1)]
        self.heads = [raw(self.link(side, "02:00:09:00:00:00"))[:-2] +
                      b"\x08\0" for side in (0, 1)]
        self.flow = (0, 0, 0, False)  # indices of host, port, peer; is TCP
        self.conns = {}  # [stage of the handshake, ends] by flow
        self.outside = {}  # the external end of a protocol, host and port
        self.quoted = [b"", b""]  # what came out last, which an error quotes

    def percent(self, n):
        return self.rng.randrange(100) < n

    def payload(self):
        kind = self.rng.randrange(20)
        return self.rng.randbytes(
            0 if kind < 5 else self.rng.randrange(64) if kind < 18 else
            self.rng.randrange(500, 600) if kind == 18 else
            self.rng.randrange(1360, 1480))

    def segment(self, side, ends):
        """Of an open connection, mostly in order."""
        rng, sender, receiver = self.rng, ends[side], ends[1 - side]
        payload = self.payload()
        if self.percent(10):
            sender.window = rng.randrange(4) * 21845
        seq, ack = sender.next, receiver.next
        flags = ACK | (PUSH if self.percent(20) else 0)
        window = receiver.largest << receiver.shift
        odd = rng.randrange(60)
        if odd < 4:  # at an edge of the window...
            seq = receiver.acked + window + rng.randrange(-1, 2)
        elif odd == 4:  # ...or of what may be repeated
            seq = receiver.acked - max(window, 65535) - len(payload) + \
                rng.randrange(-1, 2)
        elif odd == 5:
            seq -= rng.randrange(2000)
        elif odd == 6:
            seq = rng.getrandbits(32)
        elif odd == 7:
            ack += rng.randrange(-1, 2)
        elif odd == 8:
            ack = rng.getrandbits(32)
        elif odd == 9:
            flags = rng.choice((0, FIN | ACK, FIN, RST, RST | ACK, SYN,
                                SYN | ACK))
        else:
            sender.next = (sender.next + len(payload)) % 2 ** 32
            sender.acked = ack
            sender.largest = max(sender.largest, sender.window)
        return seq, ack, flags, sender.window, payload

    def tcp(self, side):
        """(side, arguments of tcp()): of a handshake, in order, or behind it.
        None: its external end is not known yet."""
        host, port, peer, _ = self.flow
        conn = self.conns.setdefault((host, port, peer), [0, (End(), End())])
        ends = conn[1]
        if self.percent(3):
            conn[0] = 0
        stage = conn[0]
        if stage == 3 or self.percent(2):
            return side, self.segment(side, ends)
        side = stage % 2
        if side == OUTSIDE and (True, HOSTS[host], PORTS[port]) not in \
                self.outside:
            return None
        own, other, scale = ends[side], ends[1 - side], 0
        if stage < 2:
            own.next, own.shift = self.rng.getrandbits(32), 0
            own.window = own.largest = self.rng.randrange(1, 65536)
            scale = self.rng.randrange(1, 9) if self.percent(60) else 0
            if side == INSIDE or (scale and other.shift):
                own.shift = scale
            else:  # both have the option, or neither
                other.shift = 0
        own.acked = other.next
        segment = (own.next, other.next, (SYN, SYN | ACK, ACK)[stage],
                   own.window, b"", scale)
        own.next = (own.next + (stage < 2)) % 2 ** 32
        conn[0] += 1
        return side, segment

    def next_flow(self):
        """Most sockets have one peer; the first one has as many as there
        are."""
        rng, is_busy = self.rng, self.percent(40)
        return (0 if is_busy else rng.randrange(len(HOSTS)),
                0 if is_busy else rng.randrange(len(PORTS)),
                0 if not is_busy and self.percent(85) else
                rng.randrange(len(PEERS)), self.percent(60))

    def of_flow(self):
        """(side, bytes) of a packet; None: it has no external end yet."""
        if not self.percent(80):
            self.flow = self.next_flow()
        host, port, peer, is_tcp = self.flow
        is_hairpin, side = self.percent(3), self.rng.randrange(2)
        made = self.tcp(side) if is_tcp else (side, (self.payload(),))
        if made is None:
            return None
        side, fields = made
        src, sport = HOSTS[host], PORTS[port]
        dst, dport = PEERS[peer]
        if side == OUTSIDE:
            src, sport = dst, 99 if self.percent(3) else dport
        if side == OUTSIDE or is_hairpin:
            to = (self.rng.choice(HOSTS), self.rng.choice(PORTS)) \
                if is_hairpin else (HOSTS[host], PORTS[port])
            dst, dport = self.outside.get((is_tcp, *to), (None, 0))
        return (side, self.ip(src, dst, TCP if is_tcp else UDP, (
            tcp if is_tcp else udp)(sport, dport, *fields))) if dst else None

    def ip(self, src, dst, proto, l4):
        """A packet with right sums; those in l4 are 0."""
        ip = bytearray(pack(
            "!BBHHHBBH4s4s", 0x45, 0xb8 if self.percent(10) else 0,
            20 + len(l4), self.rng.getrandbits(16),
            0x4000 if self.percent(40) else 0, 2 if self.percent(4) else 64,
            proto, 0, ip_address(src).packed, ip_address(dst).packed) + l4)
        sum_ip(ip)
        put16(ip, 20 + {UDP: 6, TCP: 16, ICMP: 2}[proto], checksum(
            (b"" if proto == ICMP else pseudo(ip)) + l4) or 0xffff)
        return ip

    def error(self):
        """An ICMP error about what came out last; None: nothing did."""
        side = self.rng.randrange(2)
        quote = self.quoted[side]
        if quote[:1] != b"\x45":
            return None
        kind, code = self.rng.choice(((3, 1), (3, 3), (3, 4), (11, 0)))
        return side, self.ip(quote[16:20], quote[12:16], ICMP, pack(
            "!BBHHH48s", kind, code, 0, 0, 1200, quote))

    def vanish(self, side, ip):
        """A sum of UDP that is 0 once it is translated."""
        host, port, *_ = self.flow
        ends = [ip_address(addr).packed + number.to_bytes(2, "big")
                for addr, number in
                ((HOSTS[host], PORTS[port]), self.outside.get(
                    (False, HOSTS[host], PORTS[port]), ("0.0.0.0", 0)))]
        put16(ip, 26, ~checksum(inverted(ends[side]) + ends[1 - side]))

    def twist(self, side, ip):
        """Something wrong or unusual about a packet of layer 3."""
        rng, kind = self.rng, self.rng.randrange(14)
        is_udp = ip[9] == UDP
        if kind == 0:
            ip[8] = rng.randrange(2)
        elif kind == 1:
            ip[10] ^= rng.randrange(1, 256)
            return ip
        elif kind == 2:  # a sum may be anything
            ip[26 if is_udp or len(ip) < 37 else 36] ^= 1
        elif kind == 3 and is_udp:
            if self.percent(50):
                put16(ip, 26, 0)
            else:
                self.vanish(side, ip)
        elif kind == 4 and ip[9] != ICMP:  # it is left to the device
            put16(ip, 26 if is_udp else 36, ~checksum(pseudo(ip)))
        elif kind == 5:  # no-operations, or something stranger
            option = bytearray([rng.choice((1, 0x94))] * 4)
            if self.percent(50):
                option[1] = 4
            ip[20:20] = option
            ip[0] += 1
            put16(ip, 2, len(ip))
        elif kind == 6:  # a fragment
            put16(ip, 6, rng.choice((0x2000, rng.randrange(0x4000))))
        elif kind in (7, 8):  # a length of IP, or of UDP
            at = 2 if kind == 7 else 24
            put16(ip, at, get16(ip, at) + rng.randrange(-2, 3))
        elif kind == 9 and len(ip) > 33:  # the length of TCP's header
            ip[32] = rng.randrange(16) << 4
        elif kind == 10:
            ip[rng.randrange(20)] = rng.randrange(256)
        elif kind == 11:  # another address, often one that nobody has
            at = rng.choice((12, 16))
            ip[at:at + 4] = rng.choice((bytes([224, 0, 0, 1]),
                                        rng.randbytes(4)))
        elif kind == 12 and len(ip) > 33:
            ip[33] = rng.randrange(256)
        elif kind == 13:
            put16(ip, 6, 0x8000)  # reserved
        sum_ip(ip)
        return ip

    def twist_frame(self, frame):
        """The same of a whole frame."""
        rng, kind = self.rng, self.rng.randrange(6)
        if kind == 0:
            frame[:6] = b"\xff" * 6
        elif kind == 1:
            frame[3] ^= 1
        elif kind == 2:
            del frame[rng.randrange(len(frame) + 1):]
        elif kind == 3:  # bytes behind it
            frame += b"\x5a" * rng.randrange(1, 9)
        elif kind == 4:  # another tag: priority, number, or type
            frame[14] ^= 1 << rng.randrange(8)
        else:
            frame[12 + rng.randrange(6)] ^= 1
        return frame

    def link(self, side, src):
        """Layer 2 of a frame to the translator."""
        eth = Ether(src=src, dst=MACS[side])
        return eth / Dot1Q(vlan=self.vlans[side]) if self.vlans[side] else eth

    def next(self):
        """(side, frame) of the next packet."""
        made = None
        while made is None:
            kind = self.rng.randrange(40)
            if kind == 0:
                made = self.error()
            elif kind == 1:
                made = INSIDE, self.ip(self.rng.choice(HOSTS), PEERS[0][0],
                                       ICMP, pack("!BBHHH", 8, 0, 0, 7, 1))
            else:
                made = self.of_flow()
        side, ip = made
        if self.percent(10):
            ip = self.twist(side, ip)
        frame = bytearray(self.heads[side] + ip)
        if self.percent(60):
            frame = frame.ljust(60, b"\0")
        if self.percent(3):
            frame = self.twist_frame(frame)
        return side, bytes(frame)

    def arp(self, side, addr, generation):
        """An answer to an ARP request, or an announcement."""
        mac = f"02:{generation % 256:02x}:" + ":".join(
            f"{byte:02x}" for byte in ip_address(addr).packed)
        return raw(self.link(side, mac) / ARP(
            op=2, hwsrc=mac, psrc=addr, hwdst=MACS[side], pdst=OURS[side]))

    def body(self, side, frame, ether_type):
        """What a frame of a side has behind its layer 2; empty: it is of
        another type."""
        at = 18 if side < LOOP and self.vlans[side] else 14
        return frame[at:] if get16(frame, at - 2) == ether_type else b""


class Raw(Nat):
    """What comes out is bytes: lists by side."""

    def __init__(self, **options):
        super().__init__(answers_arp=False, **options)

    def clear(self, text="all", now=False):
        self.ask(CLEAR, text, now)
        return self._collect()

    def _collect(self, checks=True):
        return [[frame for frame, _ in self.frames(side)]
                for side in (INSIDE, OUTSIDE, LOOP)]


def without_id(ip):
    """A packet without what may differ, and what depends on it; of the packet
    that an error quotes, too."""
    n = (ip[0] & 15) * 4 if ip else 0
    if len(ip) < max(n, 20):
        return ip
    if ip[9] == ICMP and ip[n:n + 1] in (b"\3", b"\x0b"):
        ip = ip[:n + 8] + without_id(ip[n + 8:])
    if ip[6] & 0x7f == 0x40 and ip[7] == 0:
        return ip
    is_right = checksum(ip[:n]) == 0
    return ip[:4] + b"\0\0" + ip[6:10] + bytes([is_right] * 2) + ip[12:]


class Differential:
    """Two translators, plain and offloaded, under one configuration."""

    def __init__(self, seed):
        self.packets = packets = Packets(seed)
        rng = self.rng = packets.rng
        self.n_silent = 0  # percent of requests that nobody answers
        self.generation = 0  # of MAC addresses
        more = {"inside_vlan": packets.vlans[0],
                "outside_vlan": packets.vlans[1], **self.options()}
        self.nats = Raw(**more), Raw(
            lag=rng.choice((1, 1, 3, 10)), n_rules=rng.choice((8192, 8192, 5)),
            **more)
        self.n_forwarded = {False: 0, True: 0}  # of UDP, TCP
        # How often that was to another peer than the last one of its socket.
        self.n_changes, self.last_peers = 0, {}

    def options(self):
        rng = self.rng
        filters, bools = ("none", "address", "address-port"), (False, True)
        return {
            "outside_mtu": 1400,
            "pool": ["192.0.2.1"] + rng.choice(([], ["192.0.2.2"])),
            "limits_mappings": 64, "limits_sessions": 256,
            "log_sessions": True, "filtering_udp": rng.choice(filters),
            "filtering_tcp": rng.choice(filters),
            "timeouts_udp": rng.randrange(3, 13),
            "timeouts_tcp_open": rng.randrange(20, 60),
            "timeouts_tcp_opening": 20, "timeouts_tcp_closing": 3,
            "timeouts_tcp_reset": 2, "timeouts_hold_down": 1,
            "inbound_refresh": rng.choice(bools), "hairpin": rng.choice(bools),
            "exclude": [(rng.choice(("192.0.99.0/24", "203.0.113.0/24")),
                         0, 0, 0)],
            "forwards": [("udp+tcp", "192.0.2.1", 7000, 7000, "10.0.0.2",
                          5001)],
            "one_to_one": rng.choice(([], [("192.0.2.9", "10.0.7.8")]))}

    def both(self, act):
        """Do it with both, compare what comes out, and answer what is asked,
        until nothing more comes out."""
        packets, asked = self.packets, []
        while act is not None:
            outs = [act(nat) for nat in self.nats]
            for side, (plain, offloaded) in enumerate(zip(*outs)):
                shown = []
                for frames in plain, offloaded:
                    ips = [packets.body(side, f, 0x0800) for f in frames]
                    shown.append([f[:len(f) - len(ip)] + without_id(ip)
                                  for f, ip in zip(frames, ips)])
                assert shown[0] == shown[1], \
                    f"frames on side {side} differ:\n" + "\n".join(
                        f"{frame.hex()}" for some in shown for frame in some)
                asked += [(side, request) for frame in plain
                          if (request := self.see(side, frame))]
            act = None
            if asked:
                side, addr = asked.pop()
                answer = packets.arp(side, addr, self.generation)

                def act(nat, side=side, answer=answer):
                    return nat.send(side, answer)

    def see(self, side, frame):
        """Remember a frame that came out; the address that it asks for, if
        that is going to be answered."""
        ip = self.packets.body(side, frame, 0x0800)
        if side < LOOP and len(ip) >= 28:
            self.packets.quoted[side] = ip[:64]
        arp = self.packets.body(side, frame, 0x0806)
        if get16(arp, 6) != 1 or arp[14:18] == arp[24:28] or \
                self.packets.percent(self.n_silent):
            return None
        return str(ip_address(arp[24:28]))

    def same(self, what, show):
        plain, offloaded = map(show, self.nats)
        assert plain == offloaded, f"{what} differ: {plain} and {offloaded}"

    def compare_sessions(self):
        self.same("sessions", lambda nat: sorted(map(str, nat.sessions)))
        self.same("TCP windows", lambda nat: sorted(nat.windows()))

    def compare_counters(self):
        self.same("counters", lambda nat: {
            **nat.counters, "offloaded": 0, "bytes": 0})

    def learn(self):
        """External ends, for packets from outside."""
        for row in self.nats[0].sessions:
            ports, protos = (row["inside_port"],), (row["proto"] == 6,)
            if row["proto"] == 0:  # one-to-one
                ports, protos = PORTS, (False, True)
            for port in ports:
                for proto in protos:
                    self.packets.outside[proto, row["inside"], port] = (
                        row["outside"], row["outside_port"] or port)

    def wait(self):
        """Mostly milliseconds; sometimes longer than timeouts."""
        kind = self.rng.randrange(1000)
        ms = self.rng.randrange(50000 if kind < 2 else 4000 if kind < 8 else
                                100 if kind < 500 else 1)
        self.both(lambda nat: nat.advance(ms // STEP_MS * STEP_MS / 1000))

    def happen(self):
        """What happens now and then, besides packets."""
        kind = self.rng.randrange(800)
        if kind == 0:
            options = self.options()
            self.both(lambda nat: nat.reload(**options))
        elif kind == 1:
            self.both(lambda nat: nat.clear())
        elif kind == 2:  # a neighbour has another MAC address, and says so
            self.generation += 1
            side, addr = self.rng.choice((
                (OUTSIDE, "192.0.2.254"), (OUTSIDE, "192.0.2.77"),
                (INSIDE, "10.0.0.2"), (INSIDE, "10.0.0.254")))
            frame = self.packets.arp(side, addr, self.generation)
            self.both(lambda nat: nat.send(side, frame))
        elif kind == 3:
            self.n_silent = self.rng.choice((0, 0, 0, 0, 90))

    def packet(self, n):
        """The n-th one."""
        self.happen()
        self.wait()
        side, frame = self.packets.next()
        # Frames in pieces pass by the program, without a ticket.
        entries = (60 if self.packets.percent(3) else 0, 0)
        before = self.nats[1].counter("offloaded")
        if frame:
            self.both(lambda nat: nat.send(side, frame, entries=entries))
        if self.nats[1].counter("offloaded") != before:
            host, port, peer, is_tcp = self.packets.flow
            self.n_forwarded[is_tcp] += 1
            socket = host, port, is_tcp
            self.n_changes += self.last_peers.get(socket) != peer
            self.last_peers[socket] = peer
        if n % 4 == 0:
            self.learn()
        if self.rng.randrange(20) == 0:
            self.compare_sessions()
        if n % 100 == 0:
            self.compare_counters()

    def end(self):
        self.compare_sessions()
        self.compare_counters()
        self.same("logs", lambda nat: sorted(map(str, nat.events)))
        for nat in self.nats:
            nat.close()


def main():
    n_all = int(sys.argv[1]) if len(sys.argv) > 1 else 20000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    print(f"seed {seed}", flush=True)
    udp = tcp = n_changes = 0
    for first in range(0, n_all, ROUND):
        try:
            differential = Differential(seed + first)
        except ValueError as refusal:
            print(refusal)
            return 77
        for n in range(first, min(first + ROUND, n_all)):
            try:
                differential.packet(n)
            except AssertionError:
                print(f"seed {seed}, packet {n}", flush=True)
                raise
        differential.end()
        udp += differential.n_forwarded[False]
        tcp += differential.n_forwarded[True]
        n_changes += differential.n_changes
    print(f"{n_all} packets; the program forwarded {udp} of UDP, {tcp} of TCP, "
          f"{n_changes} times to another peer")
    # Fewer would say nothing.
    return int(udp < n_all // 20 or tcp < n_all // 50 or
               n_changes < n_all // 100)


if __name__ == "__main__":
    sys.exit(main())
