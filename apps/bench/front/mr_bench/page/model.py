# SPDX-License-Identifier: BSD-3-Clause
"""What a page is made of, before it is HTML."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mr_bench import units
from mr_bench.document import number_of

MAX_LINES = 24  # of a chart
# Nothing is measured beyond these, but files may have been changed.
SMALLEST, LARGEST = 1e-30, 1e30
NOTHING = "\u2013"
# Colours of a chart by number; the page's style has --c0 to --c5.
LIMIT_COLOUR = 3
LINE_COLOURS = (0, 1, 2, 4, 5)


@dataclass(frozen=True)
class Shown:
    """A document on the page: a name unlike that of any other, and a colour,
    which rounds of a step share."""

    root: dict[str, Any]
    file: str
    name: str
    colour: int


class Point(NamedTuple):
    """Of a line. low, high: bounds of y. x_to: where a step ends."""

    x: float
    y: float
    low: float = 0
    high: float = 0
    x_to: float = 0


@dataclass
class Line:
    """look: "marked", "curve" (without marks), "limit" (what cannot be
    passed), "steps" (a histogram: y holds from x to x_to)."""

    name: str
    colour: int
    look: str = "marked"
    points: list[Point] = field(default_factory=list)

    @property
    def last(self) -> float:
        """Where it ends."""
        return self.points[-1].y if self.points else 0


@dataclass
class Chart:
    """Scales of x: "linear", "log", "even" (one step for each value that there
    is), "percentile" (a step per nine). Of y: "auto" (logarithmic for values of
    different magnitudes), "linear" (from 0 on), "log". what: for those who do
    not see it. Units are those of ticks."""

    title: str
    lines: list[Line]
    x_name: str
    y_name: str
    what: str
    x_unit: str = ""
    y_unit: str = ""
    x_scale: str = "linear"
    y_scale: str = "auto"
    is_bars: bool = False
    kind = "chart"

    def drawn(self) -> list[Line]:
        """Lines with those of their points that have a place. A logarithmic
        axis has none for 0."""
        least = 0 if self.y_scale == "linear" else SMALLEST
        lines = [
            Line(
                line.name,
                line.colour,
                line.look,
                [
                    point
                    for point in line.points
                    if point.y >= least and max(map(abs, point)) <= LARGEST
                ],
            )
            for line in self.lines
        ]
        return [line for line in lines if line.points]

    def has_points(self) -> bool:
        """Of zeros alone it shows nothing: its table says it."""
        return any(point.y > 0 for line in self.drawn() for point in line.points)


class Cell(NamedTuple):
    """Of a table. below: between what the value lies."""

    text: str
    below: str = ""
    is_text: bool = False


@dataclass
class Table:
    """Rows of cells, or of their texts. The first one of each heads it."""

    caption: str
    head: list[Any]
    rows: list[list[Any]]
    kind = "table"


def table(caption: str, items: Iterable[Any], columns: dict[str, Callable[[Any], Any]]) -> Table:
    """A row for each item, and columns by their heads."""
    rows = [[read(item) for read in columns.values()] for item in items]
    return Table(caption, list(columns), rows)


@dataclass
class Note:
    """A paragraph."""

    text: str
    kind = "note"


Block = Chart | Table | Note


def value_cell(row: dict[str, Any] | None, sign: str, unit: str = "") -> Cell:
    """A result's value, and between what it lies; sign: where the tester's
    limit was. unit "": that of rates, which the table's caption has."""
    if row is None:
        return Cell(NOTHING)
    middle, low, high = (number_of(row, key) for key in ("value", "low", "high"))

    def text(number: float) -> str:
        return units.text(number, unit) if unit else units.number(number, "frames/s")

    is_limited = row.get("is_limited_by_tester") is True
    return Cell(
        (sign if is_limited else "") + text(middle),
        f"{text(low)} \u2013 {text(high)}" if high > low else "",
    )


def cut(n_lines: int) -> list[Block]:
    """Says so, if a chart has not all of them."""
    if n_lines <= MAX_LINES:
        return []
    return [Note(f"The chart has the first {MAX_LINES} lines; the table has all.")]
