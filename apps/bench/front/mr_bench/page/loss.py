# SPDX-License-Identifier: BSD-3-Clause
"""Loss by load."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from mr_bench import units
from mr_bench.document import at, list_of, number_of
from mr_bench.figure import size_text
from mr_bench.page.model import (
    LINE_COLOURS,
    MAX_LINES,
    NOTHING,
    Block,
    Chart,
    Line,
    Point,
    Shown,
    cut,
    table,
)
from mr_bench.page.rates import l1_bps

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


def loss(shown: list[Shown]) -> list[Block]:
    """Of frame loss tests."""
    loads = [load for one in shown for load in _loads(one)]
    lines: dict[tuple[str, float], list[_Load]] = {}
    for load in loads:
        lines.setdefault((load.name, load.size), []).append(load)
    columns: dict[str, Callable[[_Load], str]] = {
        "Name": lambda load: load.name,
        "Frame": lambda load: size_text(load.size),
        "Load": lambda load: units.text(load.pps, "frames/s"),
        "Of the line": lambda load: (
            f"{100 * load.line_share:.1f} %" if load.line_share > 0 else NOTHING
        ),
        "Loss": lambda load: units.text(load.loss, "ratio"),
        "Lost": lambda load: f"{load.n_lost:.0f}",
        "Not sent": lambda load: f"{load.n_unsent:.0f}",
    }
    shown_loads = table("Frame loss by load", loads, columns)
    return [_loss_chart(lines), *cut(len(lines)), shown_loads] if loads else []
