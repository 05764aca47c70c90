# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench compare: how two sets of documents differ."""

import collections
import json
import math
import re
from dataclasses import dataclass
from typing import Any

from mr_bench import units
from mr_bench.document import Document, list_of, member, read
from mr_bench.figure import Comparison, Figures, Verdict
from mr_support import output
from mr_support.options import Option, Wrong, parse
from mr_support.text import escape, print_error

MAX_FILES = 256
MAX_DIFFERENCES = 64
MAX_VALUE = 159
SIDES = ("baseline", "compared")

# What figures depend on. The Millrace version is what users want to compare,
# and the spread shows how much the time and the load of the machine matter.
# For mem, "command" is the kind; for others it is the command line, whose
# relevant parts are in "config".
OF_ROOT = ["kind", "streams", "device", "config", "line_bps"]
OF_MACHINE = [
    "cpu",
    "cores",
    "microcode",
    "governor",
    "smt",
    "isolated",
    "nohz_full",
    "guest",
    "kernel",
    "kernel_words",
    "thp",
    "clock_source",
    "vulnerabilities",
    "compiler",
    "flags",
    "dpdk",
]
OF_PORT = ["mode", "mtu", "rx_queues", "tx_queues", "link_mbps"]
OF_NIC = ["driver", "firmware", "rings", "coalesce", "pci", "numa_distance"]

USAGE = """\
usage: mr-bench compare [options] BASELINE FILE...
       mr-bench compare [options] --baseline FILE... FILE...
Compare documents of mr-bench --json. Several files of one side are repeated
runs, which yield its median and interval.
Exit status: 1 if a figure is worse, 2 if they cannot be compared,
3 if none is worse, but all are unclear or one has only one run on a side.
"""
OPTIONS = [
    Option("baseline", "FILE", "document to compare with (repeatable)"),
    Option("threshold", "PERCENT", "smallest change that counts (default 1)"),
    Option("anyway", "", "compare even if measured differently"),
    Option("json", "", "print one JSON object", letter="j"),
]
TESTER = " (tester's limit)"
FEW_RUNS = """\
Where a side has fewer than 5 runs, the interval is from the lowest to the highest
ratio of any two, and wider for 2 or 3 runs. With one run a side, every figure is unclear."""


@dataclass(frozen=True)
class Difference:
    """Something beside the figures that is not the same on both sides.
    is_refused: unless --anyway, for figures would not tell why they differ."""

    what: str  # "machine.kernel"
    values: tuple[str, str]
    is_refused: bool


def _value_text(value: Any) -> str:
    text = (
        value
        if isinstance(value, str)
        else "none"
        if value is None
        else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    )
    return text[:MAX_VALUE]


class Differences:
    """The first of each kind."""

    def __init__(self) -> None:
        self.all: list[Difference] = []

    def _add(self, what: str, a: str, b: str, is_refused: bool) -> None:
        if len(self.all) < MAX_DIFFERENCES:
            self.all.append(Difference(what, (a, b), is_refused))

    def _look(self, what: str, a: Any, b: Any, is_refused: bool = True) -> None:
        if a != b and what not in (one.what for one in self.all):
            self._add(what, _value_text(a), _value_text(b), is_refused)

    def _look_at_members(self, prefix: str, a: Any, b: Any, keys: list[str]) -> None:
        for key in keys:
            self._look(prefix + key, member(a, key), member(b, key))

    def look_at_pair(self, a: Document, b: Document) -> None:
        """Compare what they were measured on, and how."""
        x, y = a.root, b.root
        self._look_at_members("", x, y, OF_ROOT + ([] if a.is_net else ["command"]))
        self._look_at_members("machine.", x["machine"], y["machine"], OF_MACHINE)
        ports, others = list_of(x, "ports"), list_of(y, "ports")
        if len(ports) != len(others):
            self._look("ports", ports, others)
        for i, (port, other) in enumerate(zip(ports, others)):
            if len(ports) == len(others):
                self._look_at_members(f"ports[{i}].", port, other, OF_PORT)
                self._look_at_members(
                    f"ports[{i}].nic.", member(port, "nic"), member(other, "nic"), OF_NIC
                )
        # Reported, but no reason to refuse.
        path = ["millrace"] if a.is_net else ["machine", "millrace"]
        for keys in (["label"], ["cores"], path):
            self._look(keys[-1], member(x, *keys), member(y, *keys), False)

    def look_at_end(self, document: Document, side: int) -> None:
        """A result of an interrupted search is not confirmed; a figure measured
        without a search is valid, and reported."""
        root = document.root
        if root.get("complete") is False:
            values = [_value_text(root.get("why_incomplete")), "(whole)"]
            self._add("complete", values[side], values[1 - side], bool(root["rows"]))


class Compare:
    """Documents of both sides, and the outcome."""

    def __init__(
        self, sides: tuple[list[Document], list[Document]], threshold: float, is_anyway: bool
    ):
        figures, differences = Figures(), Differences()
        first = sides[0][0]
        for side, documents in enumerate(sides):
            for document in documents:
                figures.add(document, side)
                differences.look_at_end(document, side)
                if document is not first:
                    differences.look_at_pair(first, document)
        self.sides, self.threshold = sides, threshold
        self.differences = differences.all
        self.is_refused = not is_anyway and any(one.is_refused for one in self.differences)
        self.figures = [Comparison(figure, threshold) for figure in figures]

    def print(self) -> None:
        """Print text."""
        for name, documents in zip(SIDES, self.sides):
            print(f"{name}:", *(escape(d.name) for d in documents))
        if self.differences:
            print("\nNot the same:")
        for one in self.differences:
            a, b = (escape(value or "(none)") for value in one.values)
            print(f"  {one.what:24} {a}\n  {'':24} {b}")
        if not self.is_refused:
            self._print_figures()

    def _print_figures(self) -> None:
        names = [escape(c.figure.name) for c in self.figures]
        width = max([6, *map(len, names)])
        print(
            f"\n{'figure':{width}} {'baseline':>18} {'compared':>18} "
            f"{'change':>10} {'interval':>22} {'runs':7} verdict"
        )
        for name, c in zip(names, self.figures):
            print(f"{name:{width}} {_row(c)}")
        n_of = collections.Counter(c.verdict for c in self.figures)
        said = [f"{n_of[v]} {v.value}; " for v in Verdict if n_of[v]]
        print(f"\n{''.join(said)}changes up to {self.threshold * 100:g} % are no difference")
        if any(not c.is_bootstrap and c.verdict is not Verdict.ALONE for c in self.figures):
            print(FEW_RUNS)

    def print_json(self) -> None:
        """Print JSON, as in mr-bench-compare.schema.json."""
        files = {
            name: [_utf8(d.name) for d in documents] for name, documents in zip(SIDES, self.sides)
        }
        print(
            json.dumps(
                {
                    "schema": "mr-bench-compare",
                    "v": 1,
                    **files,
                    "threshold": self.threshold,
                    "refused": self.is_refused,
                    "differences": [
                        {
                            "what": one.what,
                            **dict(zip(SIDES, one.values)),
                            "is_refused": one.is_refused,
                        }
                        for one in self.differences
                    ],
                    "figures": [] if self.is_refused else [_figure_json(c) for c in self.figures],
                },
                indent=1,
                ensure_ascii=False,
            )
        )

    def status(self) -> int:
        """The exit status; reports documents that cannot be compared."""
        if self.is_refused:
            return _complain("measured differently, so not compared; --anyway does")
        if all(c.verdict is Verdict.ALONE for c in self.figures):
            return _complain("no figure is on both sides")
        if any(c.verdict is Verdict.WORSE for c in self.figures):
            return 1
        is_told = any(c.verdict in (Verdict.SAME, Verdict.BETTER) for c in self.figures)
        return 3 if not is_told or any(c.has_few_runs for c in self.figures) else 0


def _utf8(text: str) -> str:
    """A file name may contain any bytes."""
    return re.sub("[\ud800-\udfff]", lambda match: escape(match[0]), text)


def _row(c: Comparison) -> str:
    """A row of the table, after the name."""
    sides, ratio = c.figure.sides, c.ratio
    values = [
        units.text(median, c.figure.unit) if side.values else "-"
        for side, median in zip(sides, c.medians)
    ]
    change = interval = "-"
    if ratio.value > 0:
        change = f"{(ratio.value - 1) * 100:+.2f} %"
        if math.isfinite(ratio.high):
            interval = f"{(ratio.low - 1) * 100:+.2f} .. {(ratio.high - 1) * 100:+.2f} %"
    runs = f"{len(sides[0].values):3}:{len(sides[1].values):<3}"
    is_tester = any(side.is_limited_by_tester for side in sides)
    return (
        f"{values[0]:>18} {values[1]:>18} {change:>10} {interval:>22} "
        f"{runs} {c.verdict.value}{TESTER if is_tester else ''}"
    )


def _figure_json(c: Comparison) -> dict[str, Any]:
    numbers = [value if c.ratio.value > 0 and math.isfinite(value) else None for value in c.ratio]
    sides = [
        {
            "median": median if side.values else None,
            "values": side.values,
            "is_limited_by_tester": side.is_limited_by_tester,
        }
        for side, median in zip(c.figure.sides, c.medians)
    ]
    return {
        "figure": c.figure.name,
        "unit": c.figure.unit,
        **dict(zip(SIDES, sides)),
        **dict(zip(("ratio", "low", "high"), numbers)),
        "is_bootstrap": c.is_bootstrap,
        "verdict": c.verdict.value,
    }


def _complain(text: str) -> int:
    print_error(f"mr-bench compare: {text}")
    return 2


def _threshold(text: str) -> float:
    try:
        percent = float(text)
    except ValueError:
        percent = math.nan
    if not 0 <= percent <= 1000:
        raise Wrong(f"--threshold: '{text}' is no share in percent, 0 to 1000")
    return percent / 100


def _read(baseline: list[str], files: list[str]) -> tuple[list[Document], list[Document]]:
    n = len(baseline) + len(files)
    if n > MAX_FILES or n < 2 or not files:
        raise Wrong(
            f"{n} file{'' if n == 1 else 's'} given; it takes 2 to "
            f"{MAX_FILES}, one of them the baseline"
        )
    if not baseline:
        baseline, files = files[:1], files[1:]
    sides = [read(path) for path in baseline], [read(path) for path in files]
    for one in (*sides[0], *sides[1]):
        if one.is_net != sides[0][0].is_net:
            raise Wrong(
                f"{sides[0][0].name} and {one.name} are of different "
                "commands; compare like with like"
            )
    return sides


def main(words: list[str]) -> int:
    """The exit status: 0; 1: a figure is worse; 2: there is nothing to
    compare; 3: none is worse, but all are unclear, or one has only one run on
    a side."""
    try:
        asked = parse(words, USAGE, OPTIONS, statuses="; 3 if it is unclear whether one is worse")
        if asked is None:
            return 0
        given, files = asked
        threshold = _threshold(given.get("threshold", ["1"])[-1])
        compare = Compare(_read(given.get("baseline", []), files), threshold, "anyway" in given)
    except Wrong as wrong:
        return _complain(str(wrong))
    try:
        with output.to_stdout():
            (compare.print_json if "json" in given else compare.print)()
    except OSError as error:
        return _complain(f"cannot write to stdout: {error.strerror}")
    return compare.status()
