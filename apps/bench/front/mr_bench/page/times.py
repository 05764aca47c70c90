# SPDX-License-Identifier: BSD-3-Clause
"""Latency, and the pacing error: percentiles and histograms of trials."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mr_bench import units
from mr_bench.document import at, list_of, member, number, number_of
from mr_bench.figure import size_text
from mr_bench.page.model import LINE_COLOURS, NOTHING, Block, Chart, Line, Note, Point, Shown, table

MAX_TRIALS = 64
MAX_CURVES = 5  # of a chart
STEP = 1.03  # of the histogram's axis
MISSED_SHARE = 0.01  # by how much a sender may miss its rate
MAX_POINTS = 512


def _rate_text(pps: float, without: str) -> str:
    return units.text(pps, "frames/s") if pps > 0 else without


def _is_missed(trial: Any) -> bool:
    """Then it is a trial of another rate."""
    asked = number_of(trial, "asked_pps")
    return asked > 0 and number_of(trial, "tx", "pps") < (1 - MISSED_SHARE) * asked


@dataclass
class _Pick:
    """A trial that is shown, of a document."""

    one: Shown
    trial: Any
    is_alone: bool  # its document

    @property
    def name(self) -> str:
        """Of its curve, and in the table."""
        trial = self.trial
        return (
            f"{'' if self.is_alone else self.one.name + ' '}"
            f"{size_text(number_of(trial, 'frame_bytes'))}, "
            f"{_rate_text(number_of(trial, 'asked_pps'), 'full speed')}"
            f"{' (missed)' if _is_missed(trial) else ''}"
        )


def _trials(root: Any) -> list[Any]:
    """What a document shows. Where there are rows it is the last trial of each,
    which is what a search is for: others look for the path and the highest
    rate, or were taken again."""
    if not root["rows"]:
        return list(root["trials"])
    last = [list_of(row, "trials")[-1:] for row in root["rows"]]
    wanted = dict.fromkeys(i for ids in last for i in ids if isinstance(i, int) and i >= 0)
    return [at(root["trials"], i) for i in wanted]


def _pick(shown: list[Shown], key: str) -> list[_Pick]:
    """In turns, so that each document has a part where there is no room for
    all."""
    trials = [_trials(one.root) for one in shown]
    return [
        _Pick(one, of_one[k], len(shown) == 1)
        for k in range(max(map(len, trials)))
        for one, of_one in zip(shown, trials)
        if k < len(of_one) and isinstance(member(of_one[k], key), dict)
    ]


def _line(pick: _Pick, i: int, look: str, points: list[Point]) -> Line:
    colour = i if pick.is_alone else pick.one.colour
    return Line(pick.name, LINE_COLOURS[colour % len(LINE_COLOURS)], look, points[:MAX_POINTS])


def _percentiles(pick: _Pick, i: int, key: str) -> Line:
    """100 would be without end: the last value is half a value before it."""
    n = number_of(pick.trial, key, "n")
    points = []
    for point in list_of(pick.trial, "percentiles", key):
        p, value = (number(at(point, k)) if isinstance(point, list) else 0 for k in (0, 1))
        if p >= 100 and n > 0:
            p = 100 * (1 - 0.5 / n)
        if 0 <= p < 100:
            points.append(Point(p, value))
    return _line(pick, i, "curve", points)


def _percentile_charts(picks: list[_Pick], n_documents: int, key: str, title: str) -> list[Chart]:
    """Trials of all documents at one load are neighbours: they share a
    chart."""
    n_each = MAX_CURVES if n_documents >= MAX_CURVES else MAX_CURVES // n_documents * n_documents
    n_charts = -(-len(picks) // n_each)
    return [
        Chart(
            f"{title} ({k + 1} of {n_charts})" if n_charts > 1 else title,
            [
                line
                for i in range(k * n_each, min((k + 1) * n_each, len(picks)))
                if (line := _percentiles(picks[i], i, key)).points
            ],
            "of all frames",
            "no more than",
            "A curve for each trial. The table below has the figures.",
            y_unit="ns",
            x_scale="percentile",
        )
        for k in range(n_charts)
    ]


def _histogram(pick: _Pick, i: int) -> Line:
    """Buckets double their width with each power of two, and the axis does
    not: shares are those of steps that are equal on it."""
    n = number_of(pick.trial, "latency", "n")
    points = []
    for bucket in list_of(pick.trial, "histogram", "latency"):
        low, end, count = (
            number(at(bucket, k)) if isinstance(bucket, list) else 0 for k in range(3)
        )
        # 0 has no place on the axis.
        if low >= 1 and n > 0 and end > low:
            points.append(Point(low, count / n * math.log(STEP) / math.log(end / low), x_to=end))
    return _line(pick, i, "steps", points)


def _histogram_chart(picks: list[_Pick]) -> Chart:
    lines = [_histogram(pick, i) for i, pick in enumerate(picks)]
    return Chart(
        "Latency: how often",
        [line for line in lines if line.points][:MAX_CURVES],
        "latency",
        "% of the frames, per step of 3 % of latency",
        "A histogram for each of the first trials. The table above has the percentiles.",
        x_unit="ns",
        y_unit="ratio",
        x_scale="log",
        y_scale="linear",
    )


def _columns(key: str, members: dict[str, str]) -> dict[str, Callable[[_Pick], str]]:
    """Times of a trial, by their heads."""
    return {
        head: lambda pick, name=name: units.text(number_of(pick.trial, key, name), "ns")  # type: ignore[misc]
        for head, name in members.items()
    }


def _count(*keys: str) -> Callable[[_Pick], str]:
    return lambda pick: f"{number_of(pick.trial, *keys):.0f}"


def _sent(pick: _Pick) -> str:
    sent = units.text(number_of(pick.trial, "tx", "pps"), "frames/s")
    return sent + (", missed" if _is_missed(pick.trial) else "")


_NAME: dict[str, Callable[[_Pick], str]] = {"Trial": lambda pick: pick.name}
LATENCY = _NAME | {
    "Asked": lambda pick: _rate_text(number_of(pick.trial, "asked_pps"), NOTHING),
    "Sent": _sent,
    "Frames": _count("latency", "n"),
    **_columns(
        "latency",
        {"Lowest": "min", "50 %": "p50", "90 %": "p90", "99 %": "p99", "99.9 %": "p999"}
        | {"99.99 %": "p9999", "Highest": "max", "Mean": "mean"},
    ),
}
LATENESS = _NAME | {
    "Due": _count("tx", "due"),
    "Not sent": _count("tx", "unsent"),
    **_columns("lateness", {"50 %": "p50", "99 %": "p99", "99.9 %": "p999", "Latest": "max"}),
}


def _show(
    shown: list[Shown],
    key: str,
    title: str,
    caption: str,
    columns: dict[str, Callable[[_Pick], str]],
) -> list[Block]:
    picks = _pick(shown, key)
    n_left_out = len(picks) - MAX_TRIALS
    del picks[MAX_TRIALS:]
    if not picks:
        return []
    blocks: list[Block] = [*_percentile_charts(picks, len(shown), key, title)]
    if n_left_out > 0:
        blocks.append(Note(f"{n_left_out} more trials are in the documents alone."))
    blocks.append(table(caption, picks, columns))
    return blocks + ([_histogram_chart(picks)] if key == "latency" else [])


def latency(shown: list[Shown]) -> list[Block]:
    """Of each trial that a result rests on."""
    caption = "Latency: no more than, for that share of the frames"
    return _show(shown, "latency", "Latency by percentile", caption, LATENCY)


def pacing(shown: list[Shown]) -> list[Block]:
    """How well the tester kept its times."""
    caption = "How late frames left, and how many could not"
    return _show(shown, "lateness", "Lateness by percentile", caption, LATENESS)
