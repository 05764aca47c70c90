# SPDX-License-Identifier: BSD-3-Clause
"""Parses the text of a stream, and checks that its words go together. Grammar: docs/streams.md.

A value is a number of up to 128 bits, whose last 32 can vary: the engine gets these in pieces of
a first one and how many there are, and the bits in front of them once."""

import os
import re
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from mr_bench.values import UsageError

VALUES_MOST = 1 << 20  # in a set, which the engine makes a table of
ZIPF_MOST = 1 << 16  # one of which is drawn by a table
TEXT_MOST, FIELDS_MOST, SIZES_MOST = 255, 32, 64
LEAST_BYTES, MOST_BYTES = 60, 65535
LOW = (1 << 32) - 1
RAW = 255
VLAN_BYTES, STAMP_BYTES = 4, 18
L4_BYTES = {6: 20, RAW: 0}  # by protocol; of others 8
PROTOS = {"icmp": 1, "tcp": 6, "udp": 17}
WORDS_OF_PROTO = (*PROTOS.values(), 58)
# By bit: RFC 9293 3.1.
TCP_FLAGS = ("fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr")
# IMIX of RFC 6985's simple form, 7:4:1, less the FCS.
IMIX = "60x7,566x4,1514x1"
MAC = "a MAC address such as 02:00:00:00:00:01"
IP = "an IP address such as 198.18.0.1 or 2001:2::1"
FLAGS = "TCP flags such as syn or fin+ack"
# Fields by the kind of their values; of numbers, the highest one.
BY_KIND: dict[int | str, str] = {
    MAC: "eth.src eth.dst",
    IP: "ip.src ip.dst",
    FLAGS: "tcp.flags",
    7: "qinq.pcp vlan.pcp",
    0x3F: "ip.dscp",
    0xFF: "ip.tos ip.ttl ip.proto icmp.type",
    0xFFF: "qinq.id vlan.id",
    0xFFFF: "eth.type ip.id udp.src udp.dst tcp.src tcp.dst tcp.window icmp.id icmp.seq",
    0xFFFFF: "ip.flow",
    LOW: "tcp.seq tcp.ack",
}
FIELDS = {name: kind for kind, names in BY_KIND.items() for name in names.split()}


def bytes_text(text: str) -> str:
    """Encode arbitrary bytes for JSON, one character each."""
    return os.fsencode(text).decode("latin-1")


def _number(text: str) -> int | None:
    if re.fullmatch("0x[0-9a-fA-F]{1,255}", text):
        return int(text, 16)
    return int(text) if re.fullmatch("[0-9]{1,255}", text) else None


def _below(text: str, most: int) -> int | None:
    number = _number(text)
    return number if number is not None and number <= most else None


def _ip(text: str) -> tuple[int, int] | None:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            packed = socket.inet_pton(family, text)
        except (OSError, ValueError):
            continue
        return int.from_bytes(packed, "big"), 8 * len(packed)
    return None


def _flags(text: str) -> int | None:
    names = [name for name in text.split("+") if name]
    if not text or not set(names) <= set(TCP_FLAGS):
        return _number(text)
    return sum(1 << TCP_FLAGS.index(name) for name in set(names))


def _value(name: str, text: str) -> tuple[int, int]:
    """A value and its number of bits. Raises UsageError."""
    kind = FIELDS[name]
    found: tuple[int, int] | None = None
    if kind == MAC:
        if re.fullmatch("[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}", text):
            found = int(text.replace(":", ""), 16), 48
    elif kind == IP:
        found = _ip(text)
    else:
        number = _flags(text) if kind == FLAGS else _number(text)
        most = kind if isinstance(kind, int) else 0xFF
        if number is not None and number > most:
            raise UsageError(f"{name}={text} is more than {most}")
        found = None if number is None else (number, 32)
    if found is None:
        what = kind if isinstance(kind, str) else "a number such as 53"
        raise UsageError(f"{name}={text} is not {what}")
    return found


def _prefix(name: str, text: str, bits_text: str) -> tuple[int, int, int]:
    whole = f"{name}={text}/{bits_text}"
    if FIELDS[name] not in (MAC, IP):
        raise UsageError(f"{whole}: addresses have prefixes; a range is FROM-TO")
    first, n_bits = _value(name, text)
    n_prefix = _below(bits_text, n_bits)
    if n_prefix is None:
        raise UsageError(f"{whole}: the prefix has 0 to {n_bits} bits")
    n_low = n_bits - n_prefix
    if n_low > 32:
        raise UsageError(
            f"{whole} has more than 2^32 values; /{n_bits - 32} is the shortest prefix"
        )
    if first & ((1 << n_low) - 1):
        raise UsageError(f"{whole}: bits behind the prefix are set; a range is FROM-TO")
    return first, first + (1 << n_low) - 1, n_bits


def _item(name: str, text: str) -> tuple[int, int, int]:
    """The first and the last value, and their number of bits."""
    if mark := re.search("[/-]", text):
        first_text, last_text = text[: mark.start()], text[mark.end() :]
        if mark[0] == "/":
            return _prefix(name, first_text, last_text)
    else:
        first_text = last_text = text
    first, n_bits = _value(name, first_text)
    last, n_last_bits = _value(name, last_text)
    whole = f"{name}={first_text}-{last_text}"
    if n_bits != n_last_bits or first >> 32 != last >> 32:
        raise UsageError(f"{whole}: only the last 32 bits of an address can vary")
    if first > last:
        raise UsageError(f"{whole} ends before it begins; did you mean {last_text}-{first_text}?")
    return first, last, n_bits


def _exponent(name: str, option: str, text: str) -> float:
    with suppress(ValueError):
        if 0 < (exponent := float(text)) <= 10:
            return exponent
    raise UsageError(f"{name}: {option}: the exponent is a number above 0, up to 10")


def _options(name: str, text: str) -> dict[str, Any]:
    found: dict[str, Any] = {"order": "seq", "step": 1}
    for option in filter(None, text.split(":")):
        key, equals, value = option.partition("=")
        if option in ("random", "seq"):
            found["order"] = option
        elif key == "zipf":
            exponent = _exponent(name, option, value if equals else "1")
            found |= {"order": key, "exponent": exponent}
        elif key == "step" and (step := _below(value, LOW)):
            found["step"] = step
        else:
            raise UsageError(
                f"{name}: no option '{option}' of values; valid: seq, random, zipf, "
                "zipf=EXPONENT, step=N"
            )
    return found


def _values(name: str, text: str) -> dict[str, Any]:
    """A field in the form that the engine accepts."""
    if len(text) > TEXT_MOST:
        raise UsageError(f"{name}: values of more than {TEXT_MOST} characters; use ranges")
    # Addresses have colons too, but none in front of a letter behind g.
    mark = re.search(":(?=[g-z])", text)
    found = _options(name, text[mark.end() :] if mark else "")
    items = [_item(name, item) for item in (text[: mark.start()] if mark else text).split(",")]
    first, _, n_bits = items[0]
    if any((n, one >> 32) != (n_bits, first >> 32) for one, _, n in items):
        raise UsageError(
            f"{name}: only the last 32 bits of an address can vary; use several streams"
        )
    pieces = [(one & LOW, (last - one) // found["step"] + 1) for one, last, _ in items]
    n = sum(n for _, n in pieces)
    if len(pieces) > 1 and n > VALUES_MOST:
        raise UsageError(
            f"{name}: a set has at most {VALUES_MOST} values; one range alone may have 2^32"
        )
    if found["order"] == "zipf" and n > ZIPF_MOST:
        raise UsageError(f"{name}: zipf is for at most {ZIPF_MOST} values")
    high = [first >> shift & LOW for shift in (96, 64, 32)]
    return found | {"name": name, "pieces": pieces, "high": high, "is_ipv6": n_bits == 128}


def _size(text: str) -> tuple[int, int]:
    """ "60x7": 7 of them."""
    bytes_, cross, weight_text = text.partition("x")
    n_bytes, weight = _below(bytes_, MOST_BYTES), _below(weight_text, 1000) if cross else 1
    if n_bytes is None or n_bytes < LEAST_BYTES or not weight:
        raise UsageError(
            f"size={text} is not a size of {LEAST_BYTES} to {MOST_BYTES} bytes without FCS, such as "
            "60, 60x7,1514 or imix"
        )
    return n_bytes, weight


@dataclass
class Stream:
    """A stream in the form that the engine accepts."""

    text: str
    fields: list[dict[str, Any]] = field(default_factory=list)  # in the text's order
    sizes: list[tuple[int, int]] = field(default_factory=list)  # with weights; none: not said
    weight: int = 1
    capture: str | None = None
    proto: int = 0  # 0: not said
    is_ipv6: bool = False
    is_raw: bool = False  # without IP
    is_vlan: bool = False
    is_qinq: bool = False
    is_csum_off: bool = False
    option_bytes: int = 0

    def _take_proto(self, proto: int, word: str) -> None:
        if self.proto not in (0, proto):
            raise UsageError(
                f"{word}: a stream has one of udp, tcp, icmp and ip.proto; use several streams"
            )
        self.proto = proto

    def _take_sizes(self, text: str) -> None:
        if self.sizes:
            raise UsageError("size is given twice; a mix is size=60x7,1514")
        self.sizes = [_size(size) for size in (IMIX if text == "imix" else text).split(",")]
        if len(self.sizes) > SIZES_MOST:
            raise UsageError(f"size: more than {SIZES_MOST} in a mix")

    def _take_field(self, name: str, text: str) -> None:
        if name not in FIELDS:
            raise UsageError(f"no field '{name}'; docs/streams.md and mr-bench(1) have a list")
        if self._has(name):
            raise UsageError(f"{name} is given twice; commas make a set: {name}=A,B-C")
        if len(self.fields) == FIELDS_MOST:
            raise UsageError(f"{name}: more than {FIELDS_MOST} fields")
        values = _values(name, text)
        self.fields.append(values)
        layer = name.partition(".")[0]
        self.is_qinq |= layer == "qinq"
        self.is_vlan |= layer in ("vlan", "qinq")
        self.is_raw |= name == "eth.type"
        self.is_ipv6 |= values["is_ipv6"] or name == "ip.flow"
        if name == "ip.proto":
            [number, n], *more = values["pieces"]
            if n > 1 or more:
                raise UsageError("ip.proto cannot vary; use several streams")
            if number in WORDS_OF_PROTO:
                raise UsageError(f"ip.proto={number} is a word of its own: udp, tcp or icmp")
            self._take_proto(RAW, name)
        elif layer in PROTOS:
            self._take_proto(PROTOS[layer], name)

    def _take_key(self, key: str, value: str) -> None:
        if key == "size":
            self._take_sizes(value)
        elif key == "pcap":
            if self.capture:
                raise UsageError("pcap is given twice; use two streams")
            if not value:
                raise UsageError("pcap= needs a file")
            self.capture = bytes_text(value)
        elif key == "weight":
            self.weight = _below(value, 1000) or 0
            if not self.weight:
                raise UsageError(f"weight={value} is not a number from 1 to 1000")
        elif key == "ip.options":
            number = _below(value, 40)
            if number is None or number % 4:
                raise UsageError(f"ip.options={value} is not 0, 4, 8, ... 40 bytes")
            self.option_bytes = number
        elif key == "udp.csum":
            if value not in ("on", "off"):
                raise UsageError(f"udp.csum={value} is not on or off")
            self.is_csum_off = value == "off"
            self._take_proto(PROTOS["udp"], key)
        else:
            self._take_field(key, value)

    def take(self, word: str) -> None:
        """Raises UsageError."""
        key, equals, value = word.partition("=")
        if equals:
            self._take_key(key, value)
        elif word in PROTOS:
            self._take_proto(PROTOS[word], word)
        elif word == "ip6":
            self.is_ipv6 = True
        else:
            raise UsageError(
                f"'{word}' is not a word of a stream; valid: udp, tcp, icmp, ip6 and KEY=VALUE"
            )

    def _has(self, name: str) -> bool:
        return any(one["name"] == name for one in self.fields)

    def check(self) -> None:
        """Check that the frame, built or captured, can have all fields. Raises UsageError."""
        for one in self.fields:
            name = one["name"]
            if self.is_ipv6 and name == "ip.id":
                raise UsageError(f"IPv6 has no {name}")
            if self.is_ipv6 and FIELDS[name] == IP and not one["is_ipv6"]:
                raise UsageError(f"{name} is an IPv4 address in a stream of IPv6; use two streams")
            if self.is_raw and not self.capture and name.startswith(("ip.", *PROTOS)):
                raise UsageError(f"{name}: with eth.type a frame has no IP; leave one of them out")
        if self.capture and self.sizes:
            raise UsageError("pcap and size: frames of a capture have their sizes; leave size out")
        if self.is_ipv6 and self.option_bytes:
            raise UsageError("IPv6 has no ip.options")
        if self.is_ipv6 and self.is_csum_off:
            raise UsageError("udp.csum=off is for IPv4 (RFC 8200 8.1)")
        if self.is_qinq and not self._has("vlan.id"):
            raise UsageError("qinq is the outer tag; give vlan.id, too")

    def raise_imix(self, is_stamped: bool) -> int:
        """Make an imix's shortest frames as long as headers and stamp need. Returns their length;
        0: that fits."""
        if "size=imix" not in self.text.split():
            return 0
        n = 14 + VLAN_BYTES * (self.is_vlan + self.is_qinq) + STAMP_BYTES * is_stamped
        if not self.is_raw:
            n += (40 if self.is_ipv6 else 20 + self.option_bytes) + L4_BYTES.get(self.proto, 8)
        if n <= LEAST_BYTES:
            return 0
        self.sizes = [(max(size, n), weight) for size, weight in self.sizes]
        mix = ",".join(f"{size}x{weight}" for size, weight in self.sizes)
        self.text = self.text.replace("size=imix", f"size={mix}", 1)
        return n


def read(texts: list[str], is_stamped: bool = True) -> tuple[list[dict[str, Any]], int]:
    """The streams in the form that the engine accepts, and the length to which the shortest frames
    of an imix were raised (0: they were not). UsageError names the wrong stream."""
    streams, raised = [], 0
    for i, text in enumerate(texts):
        stream = Stream(bytes_text(text))
        try:
            for word in text.split():
                stream.take(word)
            stream.check()
            raised = max(raised, stream.raise_imix(is_stamped))
        except UsageError as error:
            raise UsageError(f"stream{f' {i + 1}' if len(texts) > 1 else ''}: {error}") from None
        streams.append(vars(stream))
    return streams, raised
