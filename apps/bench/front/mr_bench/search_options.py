# SPDX-License-Identifier: BSD-3-Clause
"""Options of the search commands, in addition to those that all sending and receiving commands
share."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mr_bench import shared_options, values
from mr_bench.rates import FCS_BYTES
from mr_bench.search import SECOND
from mr_bench.shared_options import Options, as_it_is, whole
from mr_bench.values import UsageError, percent, seconds_ns

METHODS = ("binary", "tst009", "mlr")
RFC2544_SIZES = (64, 128, 256, 512, 1024, 1280, 1518)


class Group(enum.Flag):
    """Groups of options: a command has some of them."""

    SEARCH = enum.auto()  # method and what belongs to it
    SIZES = enum.auto()
    TRIAL = enum.auto()
    STEP = enum.auto()
    BURSTS = enum.auto()
    SHARES = enum.auto()
    INTERVAL = enum.auto()
    CEILING = enum.auto()


@dataclass
class SearchOptions:
    """Shares are of 1; lengths of frames are without FCS."""

    method: str = "binary"
    sizes: list[int] = field(default_factory=list)  # empty: as the streams are
    is_rfc2544: bool = False  # they are those of that word
    loss_tolerance: float = 0.0
    pdr: float = 0.005
    resolution: float = 0.005
    unsent_tolerance: float = 0.005
    exceed_ratio: float = 0.5
    step: float = 0.1
    trial_ns: int = SECOND
    confirm_ns: int = 0  # 0: as long as a trial
    duration_sum_ns: int = 0
    interval_ns: int = 10 * SECOND
    max_burst_ns: int = 2 * SECOND
    verify: int = 2
    tests: int = 50
    shares: list[float] = field(default_factory=lambda: [0.1, 0.5, 0.9])
    ceiling: str = ""  # a rate, or a document of selftest
    pid: int = 0  # of the device; 0: none


def _sizes(name: str, text: str) -> list[int]:
    sizes: Sequence[float] = (
        RFC2544_SIZES if text == "rfc2544" else values.numbers(name, text, 64, 9728, 32)
    )
    return [int(size) - FCS_BYTES for size in sizes]


@dataclass(frozen=True, kw_only=True)
class Row(shared_options.Row):
    """An option, and the commands that have it."""

    groups: Group


def _method(name: str, text: str) -> str:
    return values.word(name, text, METHODS)


def _most_of_time(name: str, text: str) -> float:
    return percent(name, text, 90)


def _shares(name: str, text: str) -> list[float]:
    return [share / 100 for share in values.numbers(name, text, 0.001, 100, 16)]


ROWS = (
    Row("method", "HOW", "binary (default), tst009 or mlr", read=_method, groups=Group.SEARCH),
    Row(
        "sizes",
        "LIST",
        "sizes with FCS, such as 64,512,1518, or rfc2544",
        read=_sizes,
        groups=Group.SIZES,
    ),
    Row("trial", "S", "length of a trial (default 1)", read=seconds_ns, groups=Group.TRIAL),
    Row(
        "confirm",
        "S",
        "binary, tst009: length of the last trial",
        read=seconds_ns,
        groups=Group.SEARCH,
    ),
    Row(
        "verify",
        "N",
        "tst009, back2back: repeats of a lossy trial (default 2)",
        read=whole(0, 100),
        groups=Group.SEARCH,
    ),
    Row(
        "resolution",
        "P%",
        "share of the rate found (default 0.5%)",
        read=percent,
        groups=Group.SEARCH | Group.BURSTS,
    ),
    Row(
        "loss-tolerance",
        "P%",
        "binary, tst009, soak: tolerated loss (default 0%)",
        read=percent,
        groups=Group.SEARCH | Group.INTERVAL,
    ),
    Row(
        "pdr",
        "P%",
        "mlr: loss of the second goal (default 0.5%)",
        read=percent,
        groups=Group.SEARCH,
    ),
    Row(
        "duration-sum",
        "S",
        "mlr: total length per load (default 21 trials)",
        read=seconds_ns,
        groups=Group.SEARCH,
    ),
    Row(
        "exceed-ratio",
        "P%",
        "mlr: share of bad trials allowed (default 50%)",
        read=_most_of_time,
        groups=Group.SEARCH,
    ),
    Row(
        "unsent-tolerance",
        "P%",
        "tolerated unsent frames in a trial (default 0.5%)",
        read=percent,
        groups=Group.TRIAL,
    ),
    Row("step", "P%", "share of the highest rate (default 10%)", read=percent, groups=Group.STEP),
    Row("tests", "N", "repetitions (default 50)", read=whole(1, 1000), groups=Group.BURSTS),
    Row(
        "max-burst",
        "S",
        "length of the longest burst (default 2)",
        read=seconds_ns,
        groups=Group.BURSTS,
    ),
    Row(
        "shares",
        "LIST",
        "in % of the throughput (default 10,50,90)",
        read=_shares,
        groups=Group.SHARES,
    ),
    Row(
        "interval",
        "S",
        "length of an interval (default 10)",
        read=seconds_ns,
        groups=Group.INTERVAL,
    ),
    Row(
        "pid",
        "N",
        "process ID of the device, to watch its memory",
        read=whole(1, 2**31 - 1),
        groups=Group.INTERVAL,
    ),
    Row(
        "ceiling",
        "RATE|FILE",
        "the tester's limit: a rate, or selftest's document",
        read=as_it_is,
        groups=Group.CEILING,
    ),
)
# An option of another method would have no effect, unless a group has it, too.
METHODS_OF = {
    "confirm": (("binary", "tst009"), None),
    "verify": (("tst009",), Group.BURSTS),
    "loss-tolerance": (("binary", "tst009"), Group.INTERVAL),
    "pdr": (("mlr",), None),
    "duration-sum": (("mlr",), None),
    "exceed-ratio": (("mlr",), None),
}


def _check_sizes(options: SearchOptions, shared: Options) -> None:
    """What says how long frames are."""
    if options.sizes and shared.size:
        raise UsageError("--size and --sizes: one of them says how long frames are")
    for stream in shared.streams if options.sizes else []:
        if "size=" in stream or "pcap=" in stream:
            raise UsageError(f"--sizes: the stream '{stream:.200}' has lengths of its own")


def read_options(name: str, groups: Group, shared: Options) -> SearchOptions:
    """Parse the command line. Raises UsageError."""
    options = SearchOptions()
    rows = {row.name: row for row in ROWS}
    for option, text in shared.own:
        rows[option].take(text, options)
        if option == "sizes":
            options.is_rfc2544 = text == "rfc2544"
    # Without that option its name would be short for --duration-sum.
    if shared.duration_ns and not groups & Group.INTERVAL:
        raise UsageError(f"--duration: {name} makes trials of --trial seconds")
    if 0 < options.duration_sum_ns < options.trial_ns:
        raise UsageError("--duration-sum: shorter than one --trial")
    given = {option for option, _ in shared.own}
    for option, (methods, beside) in METHODS_OF.items():
        if option in given and options.method not in methods and not (beside and beside & groups):
            raise UsageError(
                f"--{option} belongs to --method {' or '.join(methods)}; this is {options.method}"
            )
    _check_sizes(options, shared)
    # Finer than any rate can be told.
    options.resolution = max(options.resolution, 1e-5)
    options.step = max(options.step, 0.02)
    options.duration_sum_ns = options.duration_sum_ns or 21 * options.trial_ns
    return options


def describe(options: SearchOptions, groups: Group) -> dict[str, Any]:
    """Everything that the figures depend on, to tell unlike runs apart."""
    config: dict[str, Any] = {}
    if groups & Group.SEARCH:
        config |= {
            "method": options.method,
            "confirm_s": options.confirm_ns / 1e9,
            "verify": options.verify,
            "pdr": options.pdr,
            "duration_sum_s": options.duration_sum_ns / 1e9,
            "exceed_ratio": options.exceed_ratio,
        }
    if groups & (Group.SEARCH | Group.BURSTS):
        config["resolution"] = options.resolution
    if groups & (Group.SEARCH | Group.INTERVAL):
        config["loss_tolerance"] = options.loss_tolerance
    if groups & Group.TRIAL:
        config |= {"trial_s": options.trial_ns / 1e9, "unsent_tolerance": options.unsent_tolerance}
    if groups & Group.STEP:
        config["step"] = options.step
    if groups & Group.BURSTS:
        config |= {"tests": options.tests, "max_burst_s": options.max_burst_ns / 1e9}
    if groups & Group.SHARES:
        config["shares"] = options.shares
    if groups & Group.INTERVAL:
        config["interval_s"] = options.interval_ns / 1e9
    if groups & Group.CEILING:
        config["ceiling"] = options.ceiling
    return config
