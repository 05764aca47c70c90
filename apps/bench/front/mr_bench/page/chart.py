# SPDX-License-Identifier: BSD-3-Clause
"""Charts as SVG, whose colours are the page's: light, dark, on paper.

The legend stands in the order of the lines' right ends, and has their dashes:
a chart must be readable without seeing colours.
"""

import io
import logging
import math
import re
import warnings

import matplotlib
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mr_bench import units
from mr_bench.page.model import Chart, Line

# Inches of plots, without the texts beside them.
WIDTH, HEIGHT = 5.3, 4.0
BAR_WIDTH, BAR_STEP = 7.0, 0.25
MAX_MARKS = 40  # more would hide the curve
# Okabe and Ito's, which colour-blind readers can tell apart, and greys: they
# stand for the variables of the page's style, which have them for all media.
COLOURS = {
    "#0072b2": "c0",
    "#d55e00": "c1",
    "#009e73": "c2",
    "#6b7280": "c3",
    "#b8558f": "c4",
    "#b87d00": "c5",
    "#e7eaee": "grid",
    "#59636e": "soft",
    "#1b1f24": "ink",
}
HEX = {name: colour for colour, name in COLOURS.items()}
DASHES = ("-", (0, (6, 3)), (0, (2, 3)), (0, (8, 3, 2, 3)))
LIMIT_DASHES = (0, (10, 3, 2, 3))
STYLE = {
    "svg.fonttype": "none",
    # Names of people may have a $ in them.
    "text.parse_math": False,
    "font.size": 9,
    "font.sans-serif": ["DejaVu Sans"],
    "xtick.major.pad": 7,
    "savefig.facecolor": "none",
    "axes.facecolor": "none",
    "text.color": HEX["ink"],
    "axes.labelcolor": HEX["ink"],
    "axes.edgecolor": HEX["soft"],
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": HEX["grid"],
    "grid.linewidth": 0.75,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "xtick.labelcolor": HEX["ink"],
    "ytick.labelcolor": HEX["ink"],
    "lines.markersize": 3.3,
    "legend.frameon": False,
}

# The first start on a machine may be told that fonts are looked for.
logging.getLogger("matplotlib").setLevel(logging.ERROR)
# A letter that no font here has is for the browser's fonts.
warnings.filterwarnings("ignore", module="matplotlib")
warnings.filterwarnings("ignore", message="Glyph .* missing")


def _text(value: float, unit: str) -> str:
    return units.short(value, unit) if unit else f"{value:.5g}"


def _nines(percentile: float) -> float:
    """90 is at 1, 99 at 2: a step for each nine."""
    return math.log10(100 / (100 - min(percentile, 99.9999999)))


def log_ticks(low: float, high: float) -> list[float]:
    """1-2-5, or powers of ten where they are many. [] where next to none of
    them lie between two powers of ten."""
    digits = (1,) if high / low > 2**14 else (1, 2, 5)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    ticks = [digit * 10.0**decade for decade in range(first, last + 1) for digit in digits]
    ticks = [tick for tick in ticks if low <= tick <= high]
    return ticks if len(ticks) > 2 else []


def percentile_ticks(high: float) -> list[float]:
    """Of many nines, the first two stand close together."""
    ticks = [50.0] if _nines(50) / _nines(high) < 0.08 else [0.0, 50.0]
    return ticks + [100 - 10.0**-i for i in range(-1, 7) if 100 - 10.0**-i <= high]


class _XAxis:
    """Where on the axis a value of x is, and what stands there."""

    def __init__(self, chart: Chart, lines: list[Line]):
        xs = sorted({point.x for line in lines for point in line.points})
        self.scale, self.unit = chart.x_scale, chart.x_unit
        self.index = {x: i for i, x in enumerate(xs)}
        self.ends = xs[0], max(xs[-1], *(point.x_to for line in lines for point in line.points))

    def place(self, x: float) -> float:
        """In the plot's own terms."""
        if self.scale == "even":
            return self.index[x]
        return _nines(x) if self.scale == "percentile" else x

    def set_up(self, axes: Axes) -> None:
        """Limits, and ticks with their texts."""
        low, high = self.ends
        if self.scale == "even":
            axes.set_xlim(-0.5, len(self.index) - 0.5)
            axes.set_xticks(range(len(self.index)), [_text(x, self.unit) for x in self.index])
            return
        if self.scale == "percentile":
            ticks = percentile_ticks(high)
            axes.set_xlim(0, _nines(max(high, 50)))
            axes.set_xticks([_nines(tick) for tick in ticks], [f"{tick:.9g} %" for tick in ticks])
            return
        if self.scale == "log":
            axes.set_xscale("log")
        axes.set_xlim(low, high if high > low else low + 1)
        _set_ticks(axes, "x", low, high, self.unit)


def _set_ticks(axes: Axes, name: str, low: float, high: float, unit: str) -> None:
    axis = axes.xaxis if name == "x" else axes.yaxis
    is_log = axis.get_scale() == "log"
    ticks = log_ticks(low, high) if is_log else []
    axis.set_major_locator(
        matplotlib.ticker.FixedLocator(ticks)
        if ticks
        else matplotlib.ticker.MaxNLocator(7, steps=[1, 2, 5, 10])
    )
    axis.set_minor_locator(matplotlib.ticker.NullLocator())
    axis.set_major_formatter(lambda value, _: _text(value, unit))


def _set_up_y(axes: Axes, chart: Chart, lines: list[Line]) -> str:
    """Set up the y axis; its scale."""
    ys = [point.y for line in lines for point in line.points]
    low = min(ys)
    high = max(max(point.y, point.high) for line in lines for point in line.points)
    is_log = chart.y_scale == "log" or (chart.y_scale == "auto" and low > 0 and high / low >= 20)
    if is_log:
        axes.set_yscale("log")
        low, high = low / 1.15, high * 1.15
    else:
        low, high = 0, high * 1.08
    axes.set_ylim(low, high)
    _set_ticks(axes, "y", low, high, chart.y_unit)
    return "log" if is_log else "linear"


def _dashes(lines: list[Line], i: int) -> object:
    """Dashes tell lines of one colour apart."""
    if lines[i].look == "limit":
        return LIMIT_DASHES
    n_before = sum(line.colour == lines[i].colour for line in lines[:i])
    return DASHES[n_before % len(DASHES)]


def _draw(axes: Axes, line: Line, x: _XAxis, dashes: object) -> object:
    colour = HEX[f"c{line.colour}"]
    look = {
        "color": colour,
        "linestyle": dashes,
        "gid": f"c{line.colour}",
        "linewidth": 0.9 if line.look == "limit" else 1.3,
    }
    if line.look == "steps":
        # One outline, down to the bottom where steps do not touch.
        edges, values = [line.points[0].x], []
        for point in line.points:
            if point.x > edges[-1]:
                edges.append(point.x)
                values.append(0.0)
            if point.x_to > edges[-1]:
                edges.append(point.x_to)
                values.append(point.y)
        return axes.stairs(values, edges, baseline=0, **look)
    has_marks = line.look == "marked" and len(line.points) <= MAX_MARKS
    places = [x.place(point.x) for point in line.points]
    bounds = [
        (place, point.low, point.high)
        for place, point in zip(places, line.points)
        if 0 < point.low < point.high
    ]
    if bounds:
        axes.vlines(*zip(*bounds), color=colour, linewidth=4, alpha=0.35)
    return axes.plot(
        places, [point.y for point in line.points], marker="o" if has_marks else "", **look
    )[0]


def _legend_text(line: Line, unit: str) -> str:
    """The name; of a single point, also its value."""
    text = (
        line.name
        if len(line.points) > 1 or line.look == "steps"
        else f"{line.name}: {_text(line.last, unit)}" + " %" * (unit == "ratio")
    )
    # One that begins with _ would be left out.
    return f" {text}" if text.startswith("_") else text


def _add_axes(figure: Figure, width: float, height: float) -> Axes:
    figure.set_size_inches(width, height)
    return figure.add_axes((0, 0, 1, 1))


def _draw_lines(chart: Chart, figure: Figure) -> None:
    lines = chart.drawn()
    texts = [_legend_text(line, chart.y_unit) for line in lines]
    axes = _add_axes(figure, WIDTH, HEIGHT)
    x = _XAxis(chart, lines)
    y_scale = _set_up_y(axes, chart, lines)
    x.set_up(axes)
    drawn = [_draw(axes, line, x, _dashes(lines, i)) for i, line in enumerate(lines)]
    order = sorted(range(len(lines)), key=lambda i: -lines[i].last)
    axes.legend(
        [drawn[i] for i in order],
        [texts[i] for i in order],
        loc="upper left",
        bbox_to_anchor=(1.04, 1),
        borderaxespad=0,
        handlelength=3,
    )
    axes.set_xlabel(chart.x_name + " (logarithmic)" * (chart.x_scale == "log"))
    axes.set_title(
        chart.y_name + " (logarithmic)" * (y_scale == "log"),
        loc="left",
        fontsize=9,
        color=HEX["soft"],
    )


def _draw_bars(chart: Chart, figure: Figure) -> None:
    lines = chart.drawn()
    axes = _add_axes(figure, BAR_WIDTH, BAR_STEP * len(lines))
    for i, line in enumerate(lines):
        axes.barh(i, line.last, height=0.75, color=HEX[f"c{line.colour}"])
        axes.text(line.last, i, f" {_text(line.last, chart.y_unit)}", va="center")
    axes.set_yticks(range(len(lines)), [line.name for line in lines])
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_xticks([])
    axes.grid(False)
    axes.set_frame_on(False)
    axes.set_title(chart.y_name, loc="left", fontsize=9, color=HEX["soft"])


def svg(chart: Chart, number: int) -> Markup:
    """Number: unlike that of any other chart of the page."""
    to = io.StringIO()
    name = f"chart{number}"
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": name}):
        figure = Figure()
        (_draw_bars if chart.is_bars else _draw_lines)(chart, figure)
        figure.savefig(to, format="svg", bbox_inches="tight")
    text = to.getvalue()
    box = re.search(r'viewBox="[^"]*"', text)
    # From the first group on: what is in front of it is for a file.
    body = text[text.index('<g id="figure_1">') :]
    body = re.sub(r'<g id="(c\d)"', r'<g class="\1"', body)
    body = re.sub(r'<g id="[^"]*"', "<g", body)
    body = body.replace("xlink:href", "href")
    body = re.sub(
        r'style="[^"]*"',
        lambda match: re.sub(
            "#[0-9a-f]{6}",
            lambda colour: f"var(--{COLOURS[colour[0]]})" if colour[0] in COLOURS else colour[0],
            match[0],
        ),
        body,
    )
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" class="plot" role="img" '
        f'aria-labelledby="{name}-t {name}-d" {box[0] if box else ""}>\n'
        f'<title id="{name}-t">{escape(chart.title)}</title>\n'
        f'<desc id="{name}-d">{escape(chart.what)}</desc>\n{body}'
    )
