# SPDX-License-Identifier: BSD-3-Clause
"""A translator to send packets through: no ports, no clock, no privilege.

    nat = Nat(hairpin=False, timeouts_udp=120)   # keys of a configuration file
    out = nat.inside(IP(src="10.0.0.2", dst="198.51.100.7") / UDP(...))
    out.outside[0][UDP].sport                       # what came out, by side
    nat.advance(121)
    nat.drops                                       # {"filtered": 1}
    nat.close()                                     # checks the invariants; see Nat

A test uses the fixture `nat_of` (conftest.py), which closes what it made.

With MR_NAT_OFFLOAD=1 in the environment, each frame goes through the XDP
program first, as `mr-nat --offload` has it (simulated.h).
"""
import ctypes
import itertools
import json
import os
import socket
from ipaddress import ip_address
from pathlib import Path

from scapy.all import (ARP, DNS, ICMP, IP, TCP, UDP, Dot1Q, Ether, raw,
                       split_layers)

# Payloads are bytes here, whatever the port: much faster.
split_layers(UDP, DNS)
split_layers(TCP, DNS)

INSIDE, OUTSIDE, LOOP = 0, 1, 2
SIDES = ("inside", "outside")
MACS = ("02:0a:0a:0a:0a:0a", "02:0b:0b:0b:0b:0b")  # harness.c
CSUM_VALID, CSUM_PARTIAL, SHARED = 1 << 16, 1 << 17, 1 << 0
LOOPED = 1 << 31  # NAT_FRAME_LOOPED
EVENTS = ("block_begin", "block_end", "mapping_begin", "mapping_end",
          "no_port", "quota")
LIST, SAVE, CLEAR = 0, 1, 2  # enum nat_question
STATIC, RESTS = 1, 1 << 7  # NAT_MAP_STATIC, NAT_MAP_RESTS: of flags
N_WINDOW = 16  # HARNESS_WINDOW_NUMBERS
MAX_FRAME = 65536 + 64
U8, U16, U32, U64 = (ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32,
                     ctypes.c_uint64)


class Record(ctypes.Structure):
    """Addresses and ports are in network order."""

    def shown(self):
        """Its members, with addresses and ports as people write them."""
        shown = {name: getattr(self, name) for name, _ in self._fields_
                 if name != "_hole"}
        for name in ("inside", "outside", "remote"):
            if name in shown:
                shown[name] = str(ip_address(socket.ntohl(shown[name])))
                port = name + "_port"
                if port in shown:
                    shown[port] = socket.ntohs(shown[port])
        return shown


class Session(Record):
    """struct nat_session"""

    _fields_ = [
        ("inside", U32), ("inside_port", U16), ("proto", U8), ("reserved", U8),
        ("outside", U32), ("outside_port", U16),
        ("remote", U32), ("remote_port", U16), ("_hole", U16),
        ("tcp_state", U8), ("flags", U8), ("age_s", U32), ("left_s", U32),
        ("n_out", U32), ("n_in", U32)]


class Event(Record):
    """struct nat_log_event"""

    _fields_ = [
        ("what", U32), ("now_s", U32), ("proto", U8), ("inside", U32),
        ("outside", U32), ("inside_port", U16), ("outside_port", U16),
        ("n_ports", U16)]


def session(inside, outside, remote=("0.0.0.0", 0), proto=17, **more):
    """A session between such ends, (address, port)."""
    made = Session(proto=proto, **more)
    for name, (addr, port) in (("inside", inside), ("outside", outside),
                               ("remote", remote)):
        setattr(made, name, socket.htonl(int(ip_address(addr))))
        setattr(made, name + "_port", socket.htons(port))
    return made


def load():
    """The library, with the types of its functions."""
    lib = ctypes.CDLL(os.environ.get("NAT_BED") or str(
        Path(os.environ["MR_BUILD"]) / "test/nat/libnatbed.so"))
    lib.harness_new.restype = ctypes.c_void_p
    lib.harness_key.restype = ctypes.c_bool
    lib.nat_drop_name.restype = ctypes.c_char_p
    lib.harness_event.restype = ctypes.POINTER(Event)
    lib.harness_offloaded.restype = U64
    for name in ("invariant", "pages_in_use", "free", "ask"):
        getattr(lib, "harness_" + name).restype = ctypes.c_int64
    return lib


LIB = load()
REASONS = [name.decode() for name in
           iter(lambda i=itertools.count(): LIB.nat_drop_name(next(i)), None)]


class Stats(ctypes.Structure):
    """struct nat_stats"""

    _fields_ = [
        ("received", U64 * 2), ("sent", U64 * 2), ("made", U64), ("held", U64),
        ("drops", U64 * len(REASONS)), ("translated", U64 * 2),
        ("hairpinned", U64), ("excluded", U64)]


class MapsStats(ctypes.Structure):
    """struct nat_maps_stats"""

    _fields_ = [(name, U64) for name in (
        "mappings", "sessions", "subscribers", "hold_down",
        "ports", "ports_used", "created",
        "expired", "bytes")]


LIB.harness_stats.restype = ctypes.POINTER(Stats)
BUFFER = ctypes.create_string_buffer(MAX_FRAME)


def mac_of(address):
    """The MAC address of the host that has an address, in these tests."""
    return "02:00:" + ":".join(f"{b:02x}" for b in
                               ip_address(address).packed)


class Out:
    """What came out after something went in: scapy's Ether, by side."""

    def __init__(self, inside, outside):
        self.inside, self.outside = inside, outside

    @property
    def one(self):
        """The only packet."""
        assert len(self) == 1, f"{len(self)} packets: {self}"
        return (self.inside + self.outside)[0]

    def __len__(self):
        return len(self.inside) + len(self.outside)

    def __repr__(self):
        return f"inside {self.inside}, outside {self.outside}"


def sum16(data):
    """RFC 1071, folded, not complemented."""
    if len(data) % 2:
        data += b"\0"
    total = sum(int.from_bytes(data[i:i + 2], "big")
                for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


def wrong_sums(frame):
    """Which sums of an Ethernet frame are wrong: names."""
    packet = Ether(frame)
    if IP not in packet:
        return []
    at = 14 + (4 if Dot1Q in packet else 0)
    data = frame[at:]
    n_header, n_total = (data[0] & 15) * 4, int.from_bytes(data[2:4], "big")
    fragment = int.from_bytes(data[6:8], "big")
    body, proto = data[n_header:n_total], data[9]
    wrong = ["IP"] if sum16(data[:n_header]) != 0xffff else []
    if fragment & 0x3fff:
        return wrong
    if proto == 1 and sum16(body) != 0xffff:
        wrong.append("ICMP")
    pseudo = data[12:20] + bytes([0, proto]) + len(body).to_bytes(2, "big")
    if proto == 6 and sum16(pseudo + body) != 0xffff:
        wrong.append("TCP")
    if proto == 17 and body[6:8] != b"\0\0" and \
            len(body) == int.from_bytes(body[4:6], "big") and \
            sum16(pseudo + body) != 0xffff:
        wrong.append("UDP")
    return wrong


def keys():
    """All keys of a configuration file, as "timeouts.udp"."""
    name = ctypes.create_string_buffer(80)
    i = -1
    while LIB.harness_key(i := i + 1, name, 80):
        yield name.value.decode().replace(": ", ".")


def side_of(options, name, i):
    """What a configuration file says about a side."""
    default = ("10.0.0.1/24", "192.0.2.1/24")[i]
    gateway = ("10.0.0.254", "192.0.2.254")[i]
    side = {"port": f"p{i}", "addresses": options.pop(name, [default]),
            "gateway": options.pop(f"{name}_gateway", gateway),
            "mtu": options.pop(f"{name}_mtu", 1500),
            "vlan": options.pop(f"{name}_vlan", 0),
            "neighbours": [f"{address} {mac}" for address, mac in
                           options.pop(f"{name}_neighbours", {}).items()]}
    return {key: value for key, value in side.items() if value}


def text_of(options):
    """A configuration file from the options of Nat."""
    options = dict(options)
    config = {name: side_of(options, name, i) for i, name in enumerate(SIDES)}
    config["pool"] = options.pop("pool", ["192.0.2.1"])
    config["subscribers"] = options.pop("subscribers", ["10.0.0.0/16"])
    config["forwards"] = [
        {"protocols": protos.split("+"), "outside": f"{outside}:{first}-{last}",
         "inside": f"{inside}:{inside_first}"}
        for protos, outside, first, last, inside, inside_first in
        options.pop("forwards", [])]
    config["one_to_one"] = [{"outside": outside, "inside": inside} for
                            outside, inside in options.pop("one_to_one", [])]
    config["exclude"] = [
        {"to": prefix, **({"protocol": proto} if proto else {}),
         **({"ports": f"{first}-{last}"} if first else {})}
        for prefix, proto, first, last in options.pop("exclude", [])]
    config["limits"] = {"mappings": 65536, "sessions": 65536}  # many harnesses
    for name, value in options.items():
        section, _, key = name.partition("_")
        if section in ("filtering", "limits", "log", "ports", "timeouts") and \
                key:
            config.setdefault(section, {})[key] = value
        else:
            config[name] = value
    return json.dumps({key: value for key, value in config.items() if value
                       is not None and value != []})


class Nat:
    """One worker.

    By default 10.0.0.1/24 inside and 192.0.2.1/24 outside with the gateway
    192.0.2.254; 192.0.2.1 is the only external address; hosts of 10.0.0.0/16 are
    subscribers (10.0.x by way of the inside gateway 10.0.0.254).

    Options: `inside`, `outside` (lists of "address/bits"), and with these in
    front `_gateway`, `_vlan`, `_mtu`, `_neighbours` ({address: MAC}); `pool`,
    `subscribers` (lists); `forwards` (list of (protos, outside, first, last,
    inside, inside_first)), `one_to_one` (list of (outside, inside)), `exclude`
    (list of (prefix, proto, first, last)); `shard`, `n_shards`, `start_s`; and
    the other keys of a configuration file, with their section in front, as
    `hairpin`, `timeouts_udp`, `filtering_tcp`. They need not make sense
    together.

    Instead of all these, file="...": the text of a configuration file.

    answers_arp: neighbours answer the translator's requests by themselves
    (mac_of()), and such requests are not in what comes out.
    checks_sums: every sum of what comes out must be right. Switch it off, or
    send with flags, where what goes in is wrong.
    n_rules: that the XDP program has room for. lag: use that program, and
    defer user space's own work, lag - 1 times out of lag.
    """

    def __init__(self, answers_arp=True, checks_sums=True, n_rules=8192,
                 lag=None, **options):
        self.answers_arp, self.checks_sums = answers_arp, checks_sums
        self.harness = ctypes.c_void_p(LIB.harness_new(
            options.pop("shard", 0), options.pop("n_shards", 1),
            options.pop("start_s", 1000)))
        lag = lag or int(os.environ.get("MR_NAT_OFFLOAD", 0))
        if lag:
            LIB.harness_offload(self.harness, lag, n_rules)
        self.vlans = [options.get(f"{side}_vlan", 0) for side in SIDES]
        self.announced = []  # gratuitous ARP of the start
        self.options = options
        try:
            self._parse(LIB.harness_start, options)
        except ValueError:
            LIB.harness_free(self.harness)
            raise
        self.announced = self._collect()

    def _parse(self, function, options):
        """Give it a configuration file; ValueError has what it says."""
        why = ctypes.create_string_buffer(400)
        text = options["file"] if "file" in options else text_of(options)
        if function(self.harness, text.encode(), "file" in options, why,
                    400) != 0:
            raise ValueError(why.value.decode())

    def reload(self, **options):
        """Another configuration: with these options changed."""
        self._parse(LIB.harness_reload, {**self.options, **options})
        self.options.update(options)
        return self._collect()

    def inside(self, packet, **how):
        """Send from inside; what came out at once. See send()."""
        return self.send(INSIDE, packet, **how)

    def outside(self, packet, **how):
        """Send from outside; what came out at once. See send()."""
        return self.send(OUTSIDE, packet, **how)

    def send(self, side, packet, flags=0, entries=(0, 0)):
        """Send an IP packet (from mac_of(its source)), an Ether, or bytes.

        flags: CSUM_VALID, CSUM_PARTIAL, SHARED, LOOPED. entries: bytes of the frame's
        first entry and of the others; 0: as few as it takes.
        """
        if isinstance(packet, IP):
            packet = self.ether(side, packet)
        data = packet if isinstance(packet, bytes) else raw(packet)
        assert LIB.harness_send(self.harness, side, data, len(data), flags,
                            *entries) == 0
        if flags & SHARED:
            assert LIB.harness_shared_is(self.harness, data, len(data)), \
                "a frame was changed under its other owner"
        return self._collect(checks=not flags & CSUM_PARTIAL)

    def ether(self, side, packet):
        """The frame that carries packet to the translator."""
        frame = Ether(src=mac_of(packet[IP].src), dst=MACS[side])
        if self.vlans[side]:
            frame /= Dot1Q(vlan=self.vlans[side])
        return frame / packet

    def frames(self, side):
        """What came out, as bytes, and its flags."""
        flags = ctypes.c_uint32()
        while n := LIB.harness_recv(self.harness, side, BUFFER, MAX_FRAME,
                                    ctypes.byref(flags)):
            yield ctypes.string_at(BUFFER, n), flags.value

    def looped(self):
        """Frames for the workers that have their other ends, as bytes."""
        frames = [frame for frame, _ in self.frames(LOOP)]
        assert not any(map(wrong_sums, frames))
        return frames

    def owner(self, side, packet, lane=None):
        """The worker that a packet, or bytes of a frame, belongs to, and the
        lane to there."""
        frame = packet if isinstance(packet, bytes) else raw(
            self.ether(side, packet))
        lane = ctypes.c_uint32(side if lane is None else lane)
        owner = LIB.harness_owner(self.harness, side, frame, len(frame),
                                  ctypes.byref(lane))
        return owner, lane.value

    def advance(self, seconds):
        """Time passes; what came out meanwhile."""
        LIB.harness_advance_ms(self.harness, round(seconds * 1000))
        return self._collect()

    def _take(self, side, checks):
        """What came out, checked."""
        packets = []
        for frame, flags in self.frames(side):
            packet = Ether(frame)
            if checks and self.checks_sums and not flags & CSUM_PARTIAL:
                assert wrong_sums(frame) == [], packet.show(dump=True)
            packet.csum_flags = flags & (CSUM_VALID | CSUM_PARTIAL)
            packets.append(packet)
        return packets

    def _answer(self, side, request):
        """Whether it was a request for a neighbour, which has answered."""
        if not self.answers_arp or ARP not in request or \
                request[ARP].op != 1 or request[ARP].psrc == request[ARP].pdst:
            return False
        target = request[ARP].pdst
        reply = Ether(src=mac_of(target), dst=MACS[side])
        if self.vlans[side]:
            reply /= Dot1Q(vlan=self.vlans[side])
        reply /= ARP(op=2, hwsrc=mac_of(target), psrc=target,
                     hwdst=MACS[side], pdst=request[ARP].psrc)
        data = raw(reply)
        LIB.harness_send(self.harness, side, data, len(data), 0, 0, 0)
        return True

    def _collect(self, checks=True):
        out = Out([], [])
        while True:
            got = [self._take(side, checks) for side in (INSIDE, OUTSIDE)]
            if not got[INSIDE] and not got[OUTSIDE]:
                return out
            for side, packets in enumerate(got):
                keep = [p for p in packets if not self._answer(side, p)]
                getattr(out, SIDES[side]).extend(keep)

    @property
    def counters(self):
        """By name: received, sent, offloaded (by the XDP program: in all of
        these, too), made, held, translated_inside, translated_outside,
        hairpinned, excluded, mappings, sessions, subscribers, hold_down,
        created, expired, and the names of reasons."""
        maps = MapsStats()
        stats = LIB.harness_stats(self.harness, ctypes.byref(maps)).contents
        inside, outside = (LIB.harness_offloaded(self.harness, side)
                           for side in (INSIDE, OUTSIDE))
        return {
            **{name: getattr(maps, name) for name, _ in maps._fields_},
            **{name: getattr(stats, name) for name in
               ("made", "held", "hairpinned", "excluded")},
            **dict(zip(REASONS, stats.drops)),
            "received": sum(stats.received) + inside + outside,
            "sent": sum(stats.sent) + inside + outside,
            "offloaded": inside + outside,
            "translated_inside": stats.translated[INSIDE] + inside,
            "translated_outside": stats.translated[OUTSIDE] + outside}

    def counter(self, name):
        """One of them."""
        return self.counters[name]

    @property
    def drops(self):
        """Frames that were given up, by reason; those used up are not."""
        counters = self.counters
        return {name: counters[name] for name in REASONS[1:]
                if name != "taken" and counters[name]}

    def windows(self):
        """Rows of numbers: what is known of TCP's windows (offload.c)."""
        n_max = self.counter("mappings") + self.counter("sessions")
        numbers = (U32 * (n_max * N_WINDOW))()
        n = LIB.harness_windows(self.harness, numbers, n_max)
        return [numbers[i:i + N_WINDOW]
                for i in range(0, n * N_WINDOW, N_WINDOW)]

    def _listed(self, function, n_max):
        """What function fills in, n_max at a time."""
        cursor, some = ctypes.c_uint64(), (Session * n_max)()
        listed = []
        while n := function(self.harness, ctypes.byref(cursor), some, n_max):
            listed += [Session.from_buffer_copy(one) for one in some[:n]]
        return listed

    def list(self, n_max=256):
        """All sessions, n_max at a time."""
        return self._listed(LIB.harness_list, n_max)

    def link_event(self, side):
        """The link of a side went down or came up."""
        LIB.harness_link_event(self.harness, side)

    def saved(self, n_max=256):
        """What a snapshot has: sessions, then ports in hold-down."""
        return self._listed(LIB.harness_save, n_max)

    def restore(self, one):
        """Take up a session: 0, or an errno."""
        return -LIB.harness_restore(self.harness, ctypes.byref(one))

    @property
    def sessions(self):
        """What a list of them says, as dicts."""
        return [one.shown() for one in self.list()]

    def ask(self, question, text="", now=False):
        """What mr-nat asks a worker about sessions that a filter has: how
        many, and in how many rounds. ValueError: what is wrong with it."""
        rounds, why = U32(), ctypes.create_string_buffer(400)
        n = LIB.harness_ask(self.harness, question, text.encode(), now,
                            ctypes.byref(rounds), why, 400)
        if n < 0:
            raise ValueError(why.value.decode())
        return n, rounds.value

    def clear(self, text="all", now=False):
        """End sessions; how many mappings."""
        n, _ = self.ask(CLEAR, text, now)
        assert not len(self._collect())
        return n

    @property
    def events(self):
        """What was logged so far, as dicts."""
        rows = []
        while event := LIB.harness_event(self.harness, len(rows)):
            rows.append(event.contents.shown())
            rows[-1]["what"] = EVENTS[rows[-1]["what"]]
        return rows

    def check(self):
        """The invariant of path.h, and pages: only frames that are held have any."""
        assert LIB.harness_invariant(self.harness) == 0, "frames were lost or counted twice"
        held = self.counter("held")
        in_use = LIB.harness_pages_in_use(self.harness)
        assert in_use >= held if held else in_use == 0, \
            f"{in_use} pages in use, {held} frames held"

    def close(self):
        """Check, and take all down: every page must be back."""
        if self.harness is None:
            return
        harness, self.harness = self.harness, None
        invariant = LIB.harness_invariant(harness)
        left = LIB.harness_free(harness)
        assert invariant == 0, "frames were lost or counted twice"
        assert left == 0, f"{left} pages were not given back"


def offload_refusal():
    """With MR_NAT_OFFLOAD: why there can be none here; else None."""
    try:
        Nat().close()
    except ValueError as refusal:
        if os.environ.get("MR_NAT_OFFLOAD"):
            return str(refusal)
        raise
    return None


def udp(src, sport, dst, dport, payload=b"hello", **ip):
    """A UDP packet, built."""
    return IP(raw(IP(src=src, dst=dst, **ip) /
                  UDP(sport=sport, dport=dport) / payload))


def tcp(src, sport, dst, dport, flags="S", payload=b"", **fields):
    """A TCP packet, built."""
    segment = {name: fields.pop(name) for name in
               ("seq", "ack", "window", "options") if name in fields}
    return IP(raw(IP(src=src, dst=dst, **fields) /
                  TCP(sport=sport, dport=dport, flags=flags, **segment) /
                  payload))


def ping(src, dst, ident=7, seq=1, payload=b"ping", **ip):
    """An echo request, built."""
    return IP(raw(IP(src=src, dst=dst, **ip) /
                  ICMP(type=8, id=ident, seq=seq) / payload))
