# SPDX-License-Identifier: BSD-3-Clause
"""Charts of mr-bench report, as XML. A browser looks at them in
test_report.py."""
import math
import re
import xml.dom.minidom

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
from mr_bench.page import chart as charts  # noqa: E402 pylint: disable=wrong-import-position
from mr_bench.page.model import Chart, Line, Point  # noqa: E402 pylint: disable=wrong-import-position


def line(name, *points, colour=0, look="marked"):
    return Line(name, colour, look, [Point(*point) for point in points])


def drawn(*lines, **more):
    """The texts of a chart's SVG, and what it is."""
    chart = Chart("a<b", list(lines), "pages", "ns", "c&d", **more)
    svg = charts.svg(chart, 7)
    root = xml.dom.minidom.parseString(svg).documentElement
    assert root.tagName == "svg"
    assert not re.search(r"\b(nan|inf)\b", svg)
    return [text.firstChild.data for text in root.getElementsByTagName("text")
            if text.firstChild], svg


def classes(svg, name):
    return svg.count(f'<g class="{name}"')


def test_lines_have_their_points_and_say_their_scale():
    texts, svg = drawn(line("a<b & $c_1$", (1, 1), (8, 2), (64, 3)),
                       line("_dpdk", (1, 50), (8, 0), (64, 90), colour=1),
                       x_scale="log")
    assert "a<b & $c_1$" in texts and " _dpdk" in texts
    assert [text for text in texts if "(logarithmic)" in text] == [
        "pages (logarithmic)", "ns (logarithmic)"]
    # 5 points (0 has no place there), and one in each line of the legend.
    assert svg.count("<use ") == 5 + 2
    assert '<title id="chart7-t">a&lt;b</title>' in svg
    assert '<desc id="chart7-d">c&amp;d</desc>' in svg


def test_colours_are_the_page_s():
    _, svg = drawn(line("x", (1, 1), (2, 2)), line("y", (1, 3), (2, 3), colour=3,
                                                   look="limit"))
    assert (classes(svg, "c0"), classes(svg, "c3")) == (1, 1)
    assert "var(--c0)" in svg and "var(--grid)" in svg
    assert "fill: #ffffff" not in svg  # the page's paper


def test_bars_have_their_values():
    texts, svg = drawn(line("a", (1, 1)), line("b", (1, 50)), is_bars=True)
    assert [text.strip() for text in texts if text.strip() in ("1", "50")] == [
        "1", "50"]
    assert {"a", "b"} <= set(texts)
    assert svg.count("var(--c0)") == 2


def test_percentiles_have_a_step_for_each_nine():
    assert charts.percentile_ticks(99.99) == pytest.approx(
        [50, 90, 99, 99.9, 99.99])  # without 0: 50 stands close to it
    assert charts.percentile_ticks(90)[0] == 0
    texts, svg = drawn(line("x", (0, 1), (90, 2), (99, 3), (99.99, 4),
                            look="curve"), x_scale="percentile")
    assert "99.99 %" in texts
    points = re.search(r'<g class="c0">\s*<path d="([^"]*)"', svg)[1]
    xs = [float(x) for x in re.findall(r"[ML] (\S+)", points)]
    shares = [(x - xs[0]) / (xs[-1] - xs[0]) for x in xs]
    assert shares == pytest.approx([0, 0.25, 0.5, 1], abs=1e-3)


def test_values_of_an_even_axis_have_equal_steps():
    texts, svg = drawn(line("x", (1518, 1), (64, 2), (1280, 3)),
                       x_scale="even")
    xs = [float(x) for x in re.findall(r'<use [^>]*x="([\d.]+)"', svg)[:3]]
    assert xs[0] - xs[2] == pytest.approx(xs[2] - xs[1])
    assert texts[:3] == ["64", "1280", "1518"]


def test_zero_is_shown_where_it_has_a_place():
    zeros = line("x", (1, 0), (2, 0), (3, 5))
    for scale, n in (("linear", 3), ("log", 1)):
        chart = Chart("", [zeros], "", "", "", y_scale=scale)
        assert len(chart.drawn()[0].points) == n
    drawn(zeros, y_scale="log")  # has one point


def test_ticks_have_the_unit():
    texts, _ = drawn(line("x", (1, 1e3), (2, 1e6)), y_unit="ns")
    assert {"20 us", "1 ms"} <= set(texts)
    # Between two powers of ten there may be next to none.
    assert charts.log_ticks(2.1, 4.9) == []
    assert charts.log_ticks(1, 1e9)[:2] == [1, 10]


def test_steps_that_touch_share_an_edge_and_a_gap_goes_to_the_bottom():
    _, svg = drawn(line("x", (1, 5, 0, 0, 2), (2, 6, 0, 0, 3), (8, 7, 0, 0, 9),
                        look="steps"), y_scale="linear")
    path = re.search(r'<g class="c0">\s*<path d="([^"]*)"', svg)[1]
    ys = [float(y) for y in re.findall(r"[ML] \S+ (\S+)", path)]
    bottom = max(ys)
    assert ys[0] == ys[-1] == bottom
    assert ys.count(bottom) == 2 + 2  # the ends, and the gap between 3 and 8


def test_bounds_are_drawn():
    _, svg = drawn(line("x", (1, 2, 1, 3), (2, 3, 3, 3)), y_scale="linear")
    assert svg.count("stroke-opacity: 0.35") == 1


def test_a_curve_of_many_points_has_no_marks():
    many = line("x", *((i, i + 1) for i in range(charts.MAX_MARKS + 1)))
    assert "<use " not in drawn(many)[1]


@pytest.mark.parametrize("points,has_points", [
    ([], False), ([(1, 0)], False), ([(1, math.inf)], False),
    ([(1, 1e308)], False), ([(1, 1)], True)])
def test_nothing_is_no_chart(points, has_points):
    chart = Chart("", [line("x", *points)], "", "", "")
    assert chart.has_points() == has_points
