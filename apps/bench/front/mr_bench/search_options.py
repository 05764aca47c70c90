# SPDX-License-Identifier: BSD-3-Clause
"""Options of the search commands, in addition to those that all sending and receiving commands
share."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mr_bench import shared_options, values
from mr_bench.rates import FCS_BYTES
from mr_bench.search_trials import SECOND
from mr_bench.shared_options import Options, as_it_is, whole
from mr_bench.values import UsageError, percent, seconds_ns

METHODS = ("binary", "tst009", "mlr")
RFC2544_SIZES = (64, 128, 256, 512, 1024, 1280, 1518)  # with FCS


class Group(enum.Flag):
    """Groups of options: a command has some of them."""

    NONE = 0
    SEARCH = enum.auto()  # method and what belongs to it
    SIZES = enum.auto()
    TRIAL = enum.auto()
    STEP = enum.auto()
    BURSTS = enum.auto()
    SHARES = enum.auto()
    CEILING = enum.auto()


@dataclass
class SearchOptions:
    """Shares are of 1; lengths of frames are without FCS."""

    method: str = "binary"
    sizes: list[int] = field(default_factory=list)  # empty: as the streams are
    is_rfc2544: bool = False  # they are those of that word
    loss_tolerance_ratio: float = 0.0
    pdr_ratio: float = 0.005
    resolution_ratio: float = 0.005
    unsent_tolerance_ratio: float = 0.005
    exceed_ratio: float = 0.5
    step_ratio: float = 0.1
    trial_ns: int = SECOND
    confirm_ns: int = 0  # 0: as long as a trial
    duration_sum_ns: int = 0
    max_burst_ns: int = 2 * SECOND
    verify: int = 2
    tests: int = 50
    shares: list[float] = field(default_factory=lambda: [0.1, 0.5, 0.9])
    ceiling: str = ""  # a rate, or a document of selftest


def _sizes(name: str, text: str) -> list[int]:
    sizes: Sequence[float] = (
        RFC2544_SIZES if text == "rfc2544" else values.numbers(name, text, 64, 9728, 32)
    )
    return [int(size) - FCS_BYTES for size in sizes]


@dataclass(frozen=True)
class Row(shared_options.Row):
    """An option, and the commands that have it."""

    groups: Group = Group.NONE
    # Another --method would ignore it, unless a command of this group has it for something else.
    methods: tuple[str, ...] = METHODS
    beside: Group = Group.NONE
    is_in_document: bool = True


def _method(name: str, text: str) -> str:
    return values.word(name, text, METHODS)


def _most_of_time(name: str, text: str) -> float:
    return percent(name, text, 90)


def _shares(name: str, text: str) -> list[float]:
    return [share / 100 for share in values.numbers(name, text, 0.001, 100, 16)]


_G = Group
_BINARY, _MLR = ("binary", "tst009"), ("mlr",)
ROWS = (
    Row("method", "HOW", "binary (default), tst009 or mlr", _method, _G.SEARCH),
    Row(
        "sizes",
        "LIST",
        "sizes with FCS, such as 64,512,1518, or rfc2544",
        _sizes,
        _G.SIZES,
        is_in_document=False,
    ),
    Row("trial", "S", "length of a trial (default 1)", seconds_ns, _G.TRIAL),
    Row("confirm", "S", "binary, tst009: length of the last trial", seconds_ns, _G.SEARCH, _BINARY),
    Row(
        "verify",
        "N",
        "tst009, back2back: repeats of a lossy trial (default 2)",
        whole(0, 100),
        _G.SEARCH,
        ("tst009",),
        _G.BURSTS,
    ),
    Row(
        "resolution", "P%", "share of the rate found (default 0.5%)", percent, _G.SEARCH | _G.BURSTS
    ),
    Row(
        "loss-tolerance",
        "P%",
        "binary, tst009: tolerated loss (default 0%)",
        percent,
        _G.SEARCH,
        _BINARY,
    ),
    Row("pdr", "P%", "mlr: loss of the second goal (default 0.5%)", percent, _G.SEARCH, _MLR),
    Row(
        "duration-sum",
        "S",
        "mlr: total length per load (default 21 trials)",
        seconds_ns,
        _G.SEARCH,
        _MLR,
    ),
    Row(
        "exceed-ratio",
        "P%",
        "mlr: share of bad trials allowed (default 50%)",
        _most_of_time,
        _G.SEARCH,
        _MLR,
    ),
    Row(
        "unsent-tolerance",
        "P%",
        "tolerated unsent frames in a trial (default 0.5%)",
        percent,
        _G.TRIAL,
    ),
    Row("step", "P%", "share of the highest rate (default 10%)", percent, _G.STEP),
    Row("tests", "N", "repetitions (default 50)", whole(1, 1000), _G.BURSTS),
    Row("max-burst", "S", "length of the longest burst (default 2)", seconds_ns, _G.BURSTS),
    Row("shares", "LIST", "in % of the throughput (default 10,50,90)", _shares, _G.SHARES),
    Row(
        "ceiling",
        "RATE|FILE",
        "the tester's limit: a rate, or selftest's document",
        as_it_is,
        _G.CEILING,
    ),
)


def _check_sizes(options: SearchOptions, shared: Options) -> None:
    """Check that only one option gives the lengths. Raises UsageError."""
    if options.sizes and shared.size:
        raise UsageError("--size and --sizes exclude each other")
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
    if shared.duration_ns:
        raise UsageError(f"--duration: the trials of {name} last --trial seconds")
    if 0 < options.duration_sum_ns < options.trial_ns:
        raise UsageError("--duration-sum: shorter than one --trial")
    for row in (rows[option] for option, _ in shared.own):
        if options.method not in row.methods and not row.beside & groups:
            raise UsageError(
                f"--{row.name} belongs to --method {' or '.join(row.methods)}; "
                f"this is {options.method}"
            )
    _check_sizes(options, shared)
    # Finer than any rate can be told.
    options.resolution_ratio = max(options.resolution_ratio, 1e-5)
    options.step_ratio = max(options.step_ratio, 0.02)
    options.duration_sum_ns = options.duration_sum_ns or 21 * options.trial_ns
    return options


def describe(options: SearchOptions, groups: Group) -> dict[str, Any]:
    """All options that figures depend on, to distinguish runs."""
    config: dict[str, Any] = {}
    for row in ROWS:
        if row.groups & groups and row.is_in_document:
            value = getattr(options, row.key)
            name = row.name.replace("-", "_")
            is_time = row.key.endswith("_ns")
            config[f"{name}_s" if is_time else name] = value / 1e9 if is_time else value
    return config
