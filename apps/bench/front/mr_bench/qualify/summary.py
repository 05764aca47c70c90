# SPDX-License-Identifier: BSD-3-Clause
"""The figures of a document by driver, device and size: for the terminal, the page, and the list
of NICs."""

import statistics
from collections.abc import Iterator
from typing import Any, NamedTuple

from mr_bench import units
from mr_bench.qualify import checks
from mr_bench.qualify.drivers import DEVICES
from mr_bench.rates import FCS_BYTES, WIRE_BYTES

HALF = 0.5  # of the throughput: where latency is compared
NOTHING = "\u2013"


class Row(NamedTuple):
    """size: with FCS. 0: not measured. pps: the median of rounds, and between what they lie."""

    driver: str
    device: str
    size: int
    pps: float
    low: float
    high: float
    is_limited: bool
    latency: dict[str, float]  # ns, at half of the throughput
    costs: dict[str, float]  # by unit, of the first size

    @property
    def bps(self) -> float:
        """On the wire."""
        return self.pps * 8 * (self.size - FCS_BYTES + WIRE_BYTES)


def _rates(runs: list[dict[str, Any]], size: int) -> list[dict[str, Any]]:
    return [
        row
        for run in runs
        if run["kind"] == "throughput"
        for row in run["rows"]
        if row["frame_bytes"] == size - FCS_BYTES and row["value"] > 0
    ]


def _latency(runs: list[dict[str, Any]], size: int) -> dict[str, float]:
    """Of the trial at the middle one of the shares."""
    trials = sorted(
        (
            trial
            for run in runs
            if run["kind"] == "latency"
            for trial in run["trials"]
            if trial["frame_bytes"] == size - FCS_BYTES and trial["latency"]
        ),
        key=lambda trial: trial["asked_pps"],
    )
    return dict(trials[len(trials) // 2]["latency"]) if trials else {}


def rows(root: dict[str, Any]) -> Iterator[Row]:
    """Of all drivers and devices that were measured."""
    for driver in root["drivers"]:
        for device in DEVICES:
            prefix = f"{driver['name']}-{device} "
            runs = [run for run in root["runs"] if run["name"].startswith(prefix)]
            costs = {
                row["unit"]: row["value"]
                for run in runs
                for row in run["rows"]
                if row["goal"] in ("core-time", "cycles")
            }
            for i, size in enumerate(root["sizes"] if runs else []):
                found = _rates(runs, size)
                values = [row["value"] for row in found] or [0]
                yield Row(
                    driver["name"], device, size,
                    statistics.median(values), min(values), max(values),
                    any(row["is_limited_by_tester"] for row in found),
                    _latency(runs, size), {} if i else costs,
                )  # fmt: skip


def cells(row: Row) -> list[str]:
    """As HEAD has them."""
    pps = units.number(row.pps, "frames/s") if row.pps else NOTHING
    times = [
        units.text(row.latency[key], "ns") if row.latency else NOTHING
        for key in ("p50", "p99", "p999")
    ]
    costs = [
        units.number(row.costs[unit], unit) if unit in row.costs else NOTHING
        for unit in ("ns/frame", "cycles/frame")
    ]
    bits = units.text(row.bps, "bit/s") if row.pps else NOTHING
    return [
        row.driver, row.device, str(row.size), ("\u2265 " if row.is_limited else "") + pps, bits,
        *times, *costs,
    ]  # fmt: skip


HEAD = [
    "driver", "device", "bytes", "frames/s", "on the wire", "50 %", "99 %", "99.9 %", "ns/frame",
    "cycles/frame",
]  # fmt: skip


def lines(table: list[list[str]]) -> Iterator[str]:
    """Columns for a terminal."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        texts = [
            text.ljust(width) if i < 2 else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(texts).rstrip()


def text(root: dict[str, Any]) -> Iterator[str]:
    """For a terminal."""
    if table := [cells(row) for row in rows(root)]:
        yield from lines([HEAD, *table])
        yield ""
        yield "frames/s with at most 0.1 % lost; latency, round trip, at half of that"
    for driver in root["drivers"]:
        suite = driver["conformance"] or checks.EMPTY
        if suite["status"] != "not run":
            counts = f"{suite['passed']} passed, {len(suite['failed'])} failed"
            yield f"{driver['name']} conformance: {counts}, {suite['skipped']} skipped"
    for one in checks.of(root):
        yield f"{'FAILED' if one.is_failed else 'note'}: {one.what}: {one.why}"
