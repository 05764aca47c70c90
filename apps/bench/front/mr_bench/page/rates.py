# SPDX-License-Identifier: BSD-3-Clause
"""Results: rates by the length of frames, and all others as tables."""

from typing import Any

from mr_bench import units
from mr_bench.document import number_of, text_of
from mr_bench.figure import size_text
from mr_bench.page.model import (
    LIMIT_COLOUR,
    LINE_COLOURS,
    MAX_LINES,
    NOTHING,
    Block,
    Cell,
    Chart,
    Line,
    Point,
    Shown,
    Table,
    cut,
    value_cell,
)
from mr_bench.rates import FCS_BYTES, WIRE_BYTES

Row = dict[str, Any]


def l1_bps(pps: float, frame_bytes: float) -> float:
    """Bits on the wire, with preamble and gap."""
    return pps * 8 * (frame_bytes + WIRE_BYTES)


def _is_rate(row: Row) -> bool:
    return bool(row["unit"] == "frames/s")


def _limit(shown: list[Shown], size: float, is_line: bool) -> float:
    """Frames/s of the first document that knows it; they are of one machine,
    or it is said. 0: none does."""
    for one in shown:
        pps = (
            number_of(one.root, "line_bps") / ((size + WIRE_BYTES) * 8)
            if is_line
            else next(
                (
                    number_of(entry, "ceiling_pps")
                    for entry in one.root["selftest"]
                    if number_of(entry, "frame_bytes") == size
                ),
                0,
            )
        )
        if pps > 0:
            return pps
    return 0


class _Rates:
    """Rows in frames per second: by document, goal and size."""

    def __init__(self, shown: list[Shown]):
        self.shown = shown
        self.rows: list[dict[str, dict[float, Row]]] = []
        for one in shown:
            by_goal: dict[str, dict[float, Row]] = {}
            for row in filter(_is_rate, one.root["rows"]):
                by_goal.setdefault(row["goal"], {}).setdefault(number_of(row, "frame_bytes"), row)
            self.rows.append(by_goal)
        self.goals = list(dict.fromkeys(goal for by_goal in self.rows for goal in by_goal))
        self.sizes = sorted(
            {size for by_goal in self.rows for rows in by_goal.values() for size in rows}
        )
        # Each document's goals, in the order of all.
        self.columns = [
            (i, goal)
            for i, by_goal in enumerate(self.rows)
            for goal in self.goals
            if goal in by_goal
        ]

    def _line(self, i: int, goal: str, is_bits: bool) -> Line:
        colour = self.shown[i].colour if len(self.shown) > 1 else self.goals.index(goal)
        line = Line(f"{self.shown[i].name} {goal}", LINE_COLOURS[colour % len(LINE_COLOURS)])
        for size, row in sorted(self.rows[i][goal].items()):
            value, low, high = (
                l1_bps(pps, size) if is_bits else pps
                for pps in (number_of(row, key) for key in ("value", "low", "high"))
            )
            if size > 0:
                line.points.append(Point(size + FCS_BYTES, value, low, high))
        return line

    def chart(self, is_bits: bool) -> Chart:
        """A line for each column, and the limits."""
        lines = [self._line(i, goal, is_bits) for i, goal in self.columns[:MAX_LINES]]
        for name, is_line in (("line rate", True), ("tester alone", False)):
            limit = Line(name, LIMIT_COLOUR, "limit")
            for size in self.sizes:
                pps = _limit(self.shown, size, is_line) if size > 0 else 0
                if pps > 0:
                    limit.points.append(
                        Point(size + FCS_BYTES, l1_bps(pps, size) if is_bits else pps)
                    )
            lines.append(limit)
        return Chart(
            "Bits on the wire by frame size" if is_bits else "Frames per second by frame size",
            [line for line in lines if line.points],
            "bytes of a frame, with FCS",
            "bit/s, with preamble and gap" if is_bits else "frames/s",
            "A line for each result, and the limits of link and tester. The "
            "table below has the figures.",
            y_unit="bit/s" if is_bits else "frames/s",
            x_scale="even",
            is_bars=sum(size > 0 for size in self.sizes) == 1,
        )

    def _cells(self, size: float) -> list[Any]:
        cells: list[Any] = [size_text(size)]
        for is_line in (True, False):
            pps = 0 if is_line and size <= 0 else _limit(self.shown, size, is_line)
            cells.append(units.number(pps, "frames/s") if pps > 0 else NOTHING)
        for i, goal in self.columns:
            cells.append(value_cell(self.rows[i][goal].get(size), "\u2265 "))
        return cells

    def table(self) -> Table:
        """A row for each size."""
        return Table(
            "Frames per second, and what the search left open",
            ["Frame", "Line rate", "Tester alone"]
            + [f"{self.shown[i].name} {goal}" for i, goal in self.columns],
            [self._cells(size) for size in self.sizes],
        )


def rates(shown: list[Shown]) -> list[Block]:
    """Throughput."""
    found = _Rates(shown)
    notes = cut(len(found.columns))
    blocks = [found.chart(False), *notes, found.table()]
    if len(found.sizes) > 1:
        blocks += [found.chart(True), *notes]
    return blocks if found.goals else []


def _is_in_charts(row: Row) -> bool:
    """Loss has its curve, rates have theirs."""
    return _is_rate(row) or text_of(row, "goal").startswith("loss-")


def _other_table(one: Shown) -> Table | None:
    found: dict[tuple[str, str], dict[float, Row]] = {}
    for row in one.root["rows"]:
        if not _is_in_charts(row):
            found.setdefault((row["goal"], row["unit"]), {}).setdefault(
                number_of(row, "frame_bytes"), row
            )
    sizes = sorted({size for rows in found.values() for size in rows})
    lines: list[list[Any]] = []
    for (goal, unit), rows in found.items():
        sign = "\u2265 " if units.direction(unit) > 0 else "\u2264 "
        cells = [goal, *(value_cell(rows.get(size), sign, unit) for size in sizes)]
        # What holds for all lengths is said once.
        notes = dict.fromkeys(text_of(rows[size], "note") for size in sizes if size in rows)
        cells.append(Cell("; ".join(filter(None, notes)), is_text=True))
        lines.append(cells)
    head = ["Goal", *map(size_text, sizes), Cell("Note", is_text=True)]
    return Table(one.name, head, lines) if lines else None


def others(shown: list[Shown]) -> list[Block]:
    """Results that no chart has."""
    return [table for table in map(_other_table, shown) if table]
