# SPDX-License-Identifier: BSD-3-Clause
"""Loss by load, and long runs over time."""

import re
from typing import Any, NamedTuple

from mr_bench import units
from mr_bench.document import at, list_of, number_of
from mr_bench.figure import size_text
from mr_bench.page.model import (
    LINE_COLOURS,
    MAX_LINES,
    NOTHING,
    Chart,
    Line,
    Point,
    Section,
    Shown,
    Table,
    cut,
)
from mr_bench.page.rates import l1_bps

MAX_TIMES = 480
SAME_LOAD = 1e-5  # a goal has six digits of its share


class _Load(NamedTuple):
    """A trial of a frame loss test. line_share 0: not known."""

    name: str
    size: float
    pps: float
    line_share: float
    loss: float
    n_lost: float
    n_unsent: float


def _trials_of(root: Any, row: Any) -> list[Any]:
    """Those that a row rests on."""
    return [at(root["trials"], i) for i in list_of(row, "trials")]


def _trials(root: Any) -> list[Any]:
    """Of each row the last trial at its load: those before it were taken
    again, for the sender did not keep up, and others look for the path and
    the highest rate."""
    found, size, whole = [], -1.0, 0.0
    for row in root["rows"]:
        match = re.match(r"loss-at-\+?(\d+\.?\d*(?:e-?\d+)?)%", row["goal"])
        share = float(match[1]) / 100 if match else 0
        if share <= 0:
            continue
        # What a share of 1 is: rows of a length begin with the highest load,
        # and no trial of theirs asked for more.
        trials = _trials_of(root, row)
        if number_of(row, "frame_bytes") != size:
            size = number_of(row, "frame_bytes")
            whole = max((number_of(trial, "asked_pps") for trial in trials), default=0) / share
        pps = share * whole
        same = [
            trial for trial in trials if abs(number_of(trial, "asked_pps") - pps) <= SAME_LOAD * pps
        ]
        found += same[-1:]
    return found


def _loads(one: Shown) -> list[_Load]:
    if one.root.get("kind") != "frameloss":
        return []
    line_bps = number_of(one.root, "line_bps")
    found = []
    for trial in _trials(one.root):
        n_sent = number_of(trial, "tx", "sent")
        size, pps = number_of(trial, "frame_bytes"), number_of(trial, "tx", "pps")
        n_lost = number_of(trial, "rx", "lost")
        if n_sent > 0:
            found.append(
                _Load(
                    one.name,
                    size,
                    pps,
                    l1_bps(pps, size) / line_bps if line_bps > 0 and size > 0 else 0,
                    n_lost / n_sent,
                    n_lost,
                    number_of(trial, "tx", "unsent"),
                )
            )
    return sorted(found, key=lambda load: (load.size, load.pps))


def _loss_chart(lines: dict[tuple[str, float], list[_Load]]) -> Chart:
    has_line = all(load.line_share > 0 for loads in lines.values() for load in loads)
    return Chart(
        "Frame loss by load",
        [
            Line(
                f"{name} {size_text(size)}",
                LINE_COLOURS[i % len(LINE_COLOURS)],
                points=[
                    Point(100 * load.line_share if has_line else load.pps, load.loss)
                    for load in loads
                ],
            )
            for i, ((name, size), loads) in enumerate(lines.items())
        ][:MAX_LINES],
        "load, % of the line" if has_line else "load, frames/s",
        "loss, % of the frames sent",
        "A line for each size. The table below has the figures.",
        x_unit="" if has_line else "frames/s",
        y_unit="ratio",
        y_scale="linear",
    )


def loss(shown: list[Shown]) -> Section | None:
    """Of frame loss tests."""
    loads = [load for one in shown for load in _loads(one)]
    lines: dict[tuple[str, float], list[_Load]] = {}
    for load in loads:
        lines.setdefault((load.name, load.size), []).append(load)
    if not loads:
        return None
    table = Table(
        "Frame loss by load",
        ["Name", "Frame", "Load", "Of the line", "Loss", "Lost", "Not sent"],
        [
            [
                load.name,
                size_text(load.size),
                units.text(load.pps, "frames/s"),
                f"{100 * load.line_share:.1f} %" if load.line_share > 0 else NOTHING,
                units.text(load.loss, "ratio"),
                f"{load.n_lost:.0f}",
                f"{load.n_unsent:.0f}",
            ]
            for load in loads
        ],
    )
    return Section(
        "loss",
        "Frame loss",
        "The share of the frames sent that never came back, by load.",
        [_loss_chart(lines), *cut(len(lines)), table],
    )


def _line_of(
    series: list[Any], name: str, colour: int, keys: list[str], is_lowest: bool = False
) -> Line:
    """Of so many intervals the highest one: a disturbance must not be lost."""
    n_each = -(-len(series) // MAX_TIMES)
    pick = min if is_lowest else max
    return Line(
        name,
        colour,
        "curve",
        [
            Point(
                number_of(series[i], "start_s"),
                pick(number_of(interval, *keys) for interval in series[i : i + n_each]),
            )
            for i in range(0, len(series), n_each)
        ],
    )


def _time_charts(one: Shown, series: list[Any]) -> list[Chart]:
    def chart(
        title: str, lines: list[Line], y_name: str, y_unit: str, y_scale: str = "linear"
    ) -> Chart:
        return Chart(
            f"{one.name}: {title} over time",
            lines,
            "seconds",
            y_name,
            "Over the time of the run. The table below has the extremes.",
            y_unit=y_unit,
            y_scale=y_scale,
        )

    def line(*arguments: Any) -> Line:
        return _line_of(series, *arguments)

    return [
        chart(
            "frames per second",
            [line("sent", 1, ["tx_pps"], True), line("received", 0, ["rx_pps"], True)],
            "frames/s",
            "frames/s",
        ),
        chart(
            "losses",
            [line("lost", 1, ["lost"]), line("not sent", 2, ["unsent"])],
            "frames in an interval",
            "frames",
        ),
        chart(
            "latency",
            [
                line("highest", 1, ["latency", "max"]),
                line("99 %", 5, ["latency", "p99"]),
                line("50 %", 0, ["latency", "p50"]),
            ],
            "no more than",
            "ns",
            "log",
        ),
    ]


def _time_table(one: Shown, series: list[Any]) -> Table:
    def row(name: str, unit: str, *keys: str) -> list[str]:
        values = [number_of(interval, *keys) for interval in series]
        return [
            name,
            *(
                units.text(value, unit)
                for value in (min(values), sum(values) / len(values), max(values))
            ),
        ]

    return Table(
        f"{one.name}: {len(series)} intervals",
        ["Of an interval", "Lowest", "Mean", "Highest"],
        [
            row("sent", "frames/s", "tx_pps"),
            row("received", "frames/s", "rx_pps"),
            row("lost", "frames", "lost"),
            row("not sent", "frames", "unsent"),
            row("latency 50 %", "ns", "latency", "p50"),
            row("latency 99 %", "ns", "latency", "p99"),
            row("latency highest", "ns", "latency", "max"),
        ],
    )


def over_time(shown: list[Shown]) -> Section | None:
    """Runs that have intervals."""
    blocks: list[Any] = []
    for one in shown:
        series = one.root["series"]
        if len(series) > 1:
            blocks += [*_time_charts(one, series), _time_table(one, series)]
    return (
        Section(
            "time",
            "Over time",
            "Long runs, interval by interval; where they are many, the worst of each few.",
            blocks,
        )
        if blocks
        else None
    )
