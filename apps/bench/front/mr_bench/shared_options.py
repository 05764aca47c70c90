# SPDX-License-Identifier: BSD-3-Clause
"""The options that all commands that send or receive share, and the ports behind them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mr_bench import device, rates, stream, values
from mr_bench.rates import FCS_BYTES, Rate
from mr_bench.stream import bytes_text
from mr_bench.values import UsageError, percent, seconds_ns
from mr_support.options import HELP, Option, parse
from mr_support.text import utf8

PACES = ("constant", "poisson", "bursts")
DEFAULT_PACE_FRAMES = 32
DEFAULT_LAG_NS = 10_000_000
MAX_PORTS = 8


def whole(least: int, most: int) -> Callable[[str, str], int]:
    """A reader for numbers in this range."""
    return lambda name, text: values.whole(name, text, least, most)


def _pace(name: str, text: str) -> str:
    return values.word(name, text, PACES)


def _mac(name: str, text: str) -> str:
    if not re.fullmatch("[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}", text):
        raise UsageError(f"--{name}: '{text}' is not a MAC address such as 02:00:00:00:00:01")
    return text.lower()


def _device(_: str, text: str) -> str:
    device.read(text)  # Raises UsageError.
    return text


def _size(name: str, text: str) -> int:
    return values.whole(name, text, 14 + FCS_BYTES, 32768 + FCS_BYTES) - FCS_BYTES


def as_it_is(_: str, text: str) -> str:
    """A reader that returns the text."""
    return text


# Units of options, by what reads them.
UNITS: dict[Callable[[str, str], Any] | None, str] = {seconds_ns: "_ns", percent: "_ratio"}


@dataclass(frozen=True)
class Row(Option):
    """read: parses the value; None: the option has no value."""

    read: Callable[[str, str], Any] | None = None

    @property
    def key(self) -> str:
        """The member of options that it sets."""
        return self.name.replace("-", "_") + UNITS.get(self.read, "")

    def take(self, text: str, options: object) -> None:
        """Set it. Raises UsageError."""
        setattr(options, self.key, self.read(self.name, text) if self.read else True)


TRAFFIC = (
    Row("rate", "RATE", "1.2M (frames/s), 10Gbit, 10Gbit-l2, 25%, max (default)", rates.read),
    Row("pace", "HOW", "constant (default), poisson or bursts", _pace),
    Row("pace-frames", "N", "frames per burst of --pace bursts (default 32)", whole(1, 1_000_000)),
    Row("duration", "S", "send for S seconds, such as 10 or 0.5", seconds_ns, letter="d"),
    Row("count", "N", "frames to send, or to receive", whole(1, 1 << 47)),
    Row("stream", "TEXT", "what to send, e.g. 'ip.src=10.0.0.0/16'; repeatable", as_it_is),
    Row("size", "BYTES", "length of other streams' frames, with FCS (64)", _size),
    Row("dst-mac", "MAC", "destination (default: receiving port's, or broadcast)", _mac),
    Row("unstamped", "", "write no stamps: received frames cannot be identified"),
    Row("seed", "N", "for random fields and gaps; rx: that of its tx (0)", whole(0, 2**64 - 1)),
    Row("settle", "S", "wait S seconds for late frames (0.1; searches: 1)", seconds_ns),
    Row("max-lag", "S", "give up frames that are S seconds late (default 0.01)", seconds_ns),
    Row("bidirectional", "", "both ports of a pair send and receive"),
    Row("device", "TEXT", "simulate a DUT between two pair: ports: loss=N,dup=N...", _device),
    Row("virtual", "", "simulated time, one thread; pair: ports only"),
)
# The engine parses the values of these, as in all programs with ports.
PLANE = (
    Option("queues", "N", "queues per port (default: the port's own)"),
    Option("workers", "N", "threads (default: one to send, one to receive)", letter="w"),
    Option("cores", "LIST", "cores to use, such as 1,3-5, or auto (default)", letter="c"),
    Option("burst", "N", "entries per burst, 1 to 256 (default 64)"),
    Option("ring", "N", "ring size (default: the port's; 16384 to receive)"),
    Option("pool-pages", "N", "pages in the pool (default: as many as needed)"),
    Option("page-bytes", "N", "page size, 2048 to 32768 (default 4096)"),
    Option("mtu", "N", "set the ports' MTU; restored at exit"),
    Option("promisc", "auto|on|off", "promiscuous mode (auto: on)"),
)
OUTPUT = (
    Row("json", "", "print JSON instead of text", letter="j"),
    Row("out", "FILE", "write the JSON document to FILE", as_it_is),
    Row("csv", "FILE", "write results, or else the trials, as CSV", as_it_is),
    Row("hdr", "FILE", "write latencies as an HdrHistogram log", as_it_is),
    Row("label", "TEXT", "name of the document in reports", as_it_is),
    Row("quiet", "", "print no progress", letter="q"),
    Row("verbose", "", "log library messages; twice: debug messages too", letter="v"),
)


@dataclass
class Options:
    """The parsed command line, one member per option. Its lengths exclude the FCS. Zero selects
    the command's default."""

    tx: list[str] = field(default_factory=list)
    rx: list[str] = field(default_factory=list)
    own: list[tuple[str, str]] = field(default_factory=list)  # the command's own, in order
    plane: list[tuple[str, str]] = field(default_factory=list)  # for the engine
    streams: list[str] = field(default_factory=list)  # empty: a default one
    raised_bytes: int = 0  # of an imix, in place of 60; 0: it was not raised
    rate: Rate = field(default_factory=Rate)
    pace: str = "constant"
    pace_frames: int = 0
    duration_ns: int = 0
    count: int = 0
    size: int = 0
    dst_mac: str = ""  # empty: auto
    unstamped: bool = False
    has_unstamped: bool = True  # the command has that option
    seed: int = 0
    settle_ns: int = 0
    max_lag_ns: int = 0
    bidirectional: bool = False
    device: str = ""
    virtual: bool = False
    json: bool = False
    out: str = ""
    csv: str = ""
    hdr: str = ""
    label: str = ""
    quiet: bool = False
    verbose: int = 0

    @property
    def files(self) -> dict[str, str | None]:
        """Paths of output files."""
        return {"out": self.out, "csv": self.csv, "hdr": self.hdr}

    def config(self, plane: dict[str, Any]) -> dict[str, Any]:
        """For the document: options that affect figures. plane: as the engine reports it."""
        frames = {"pace_frames": self.pace_frames or DEFAULT_PACE_FRAMES}
        return {
            "rate": str(self.rate),
            "pace": self.pace,
            **(frames if self.pace == "bursts" else {}),
            "duration_s": self.duration_ns / 1e9,
            "count": self.count,
            "settle_s": self.settle_ns / 1e9,
            "max_lag_s": (self.max_lag_ns or DEFAULT_LAG_NS) / 1e9,
            "size": self.size,
            "seed": self.seed,
            "dst_mac": self.dst_mac or "auto",
            **plane,
            "virtual": self.virtual,
            "bidirectional": self.bidirectional,
            "unstamped": self.unstamped,
        }

    def request(self) -> dict[str, Any]:
        """The first request to the engine, which opens the ports. Raises UsageError."""
        streams, self.raised_bytes = stream.read(self.streams, not self.unstamped)
        return {
            "tx": [bytes_text(spec) for spec in self.tx],
            "rx": [bytes_text(spec) for spec in self.rx],
            "streams": streams,
            "device": device.read(self.device) if self.device else None,
            "is_virtual": self.virtual,
            "is_unstamped": self.unstamped,
            "has_unstamped": self.has_unstamped,
            # jansson's integers are signed, 64 bits.
            "seed": self.seed - (self.seed >> 63 << 64),
            "dst_mac": int(self.dst_mac.replace(":", ""), 16) if self.dst_mac else None,
            "frame_bytes": self.size,
            "plane": self.plane,
            "verbose": self.verbose,
            "is_quiet": self.quiet,
        }

    def trial(self) -> dict[str, Any]:
        """Members that all trial requests share."""
        return {"pace": self.pace, "pace_frames": self.pace_frames, "max_lag_ns": self.max_lag_ns}


def _take_ports(command: str, ports: str, words: list[str], options: Options) -> None:
    """ports: "sends", "receives", "pairs", "pairs or none"."""
    if not words and ports != "pairs or none":
        raise UsageError(f"{command}: no port; name one, such as eth0 or pair:a; see --help")
    if ports.startswith("pairs") and len(words) % 2:
        raise UsageError(
            f"{command}: '{words[-1]}' has no partner; ports come in pairs: one sends, one receives"
        )
    if len(words) > MAX_PORTS:
        raise UsageError(f"{len(words)} ports are more than {MAX_PORTS}")
    if ports == "sends":
        options.tx = words
    elif ports == "receives":
        options.rx = words
    for a, b in zip(words[::2], words[1::2]) if ports.startswith("pairs") else ():
        options.tx += [a, b] if options.bidirectional else [a]
        options.rx += [b, a] if options.bidirectional else [b]


def _check_ports(options: Options) -> None:
    """Raises UsageError."""
    for specs, what in (options.tx, "send"), (options.rx, "receive"):
        # A queue has one user.
        for spec in specs:
            if specs.count(spec) > 1:
                raise UsageError(f"{spec} is named twice among the ports that {what}")
    ports = set(options.tx + options.rx)
    others = sorted(spec for spec in ports if not spec.startswith("pair:"))
    if options.virtual and others:
        raise UsageError(
            f"--virtual: {others[0]} has no simulated clock; only pair: ports have one"
        )
    if options.device and ports and (others or len(ports) != 2):
        raise UsageError("--device needs two pair: ports of different names, such as pair:a pair:b")


def read(
    command: str,
    words: list[str],
    usage: str,
    own: Sequence[Option],
    without: Sequence[str],
    ports: str,
) -> Options | None:
    """Parse a command line; None: help was printed. own: rows before the shared ones.
    without: names of shared options that the command lacks. Raises Wrong."""
    shared = [row for row in (*TRAFFIC, *PLANE, *OUTPUT) if row.name not in without]
    parsed = parse(words, usage, [*own, *shared], [HELP])
    if parsed is None:
        return None
    rows = {row.name: row for row in shared if isinstance(row, Row)}
    plane = {row.name for row in PLANE}
    options = Options(has_unstamped="unstamped" not in without)
    for name, texts in parsed[0].items():
        if name not in rows and any(text != utf8(text) for text in texts):
            raise UsageError(f"--{name}: not UTF-8")
        if name in plane:
            options.plane += [(name, text) for text in texts]
        elif name not in rows:
            options.own += [(name, text) for text in texts]
        elif name == "stream":
            options.streams = texts
        elif name == "verbose":
            options.verbose = len(texts)
        else:
            for text in texts:
                rows[name].take(text, options)
    _take_ports(command, ports, parsed[1], options)
    _check_ports(options)
    return options
