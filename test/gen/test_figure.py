# SPDX-License-Identifier: BSD-3-Clause
"""Parts of mr-bench's front end: figures and verdicts, documents, units."""
import contextlib
import copy
import io
import json
import math
import random

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
from mr_bench import document, page, units  # noqa: E402 pylint: disable=wrong-import-position
from mr_bench.compare import Compare  # noqa: E402 pylint: disable=wrong-import-position
from mr_bench.figure import Comparison, Figure, Figures, median, ratio  # noqa: E402 pylint: disable=wrong-import-position
from mr_support.options import Wrong  # noqa: E402 pylint: disable=wrong-import-position


def figure_of(unit, a, b, bound=0.0, floor=0.0):
    """Runs of both sides, each known to a share of itself."""
    figure = Figure("x", unit, floor)
    for side, values in zip(figure.sides, (a, b)):
        for value in values:
            side.add(value, value * (1 - bound), value * (1 + bound))
    return figure


def judged_runs(unit, a, b, floor=0.0):
    """Each run is known to 1 % of itself; changes up to 2 % are none."""
    found = Comparison(figure_of(unit, a, b, 0.01, floor), 0.02)
    assert not found.is_bootstrap
    return found.verdict.value


# Two equal runs a side. 1.9 %: below the threshold. 2.01 %: above, but
# 100..102 is about what one run may be wrong by, so bounds decide.
@pytest.mark.parametrize("unit,a,b,verdict,floor", [
    ("frames/s", 100, 110, "better", 0), ("frames/s", 100, 90, "worse", 0),
    ("ns", 100, 110, "worse", 0), ("ns", 100, 90, "better", 0),
    ("frames lost", 50, 65, "worse", 0),
    ("frames/s", 100, 101.9, "no difference", 0),
    ("frames/s", 100, 102.01, "unclear", 0),
    ("frames/s", 100, 102.1, "better", 0),
    ("frames/s", 100, 98.01, "no difference", 0),
    # Of 0 a change must exceed the floor: here of 1,000,000 frames.
    ("ratio", 0, 0, "no difference", 1e-5),
    ("ratio", 0, 1e-6, "no difference", 1e-5),
    ("ratio", 1e-6, 2e-6, "no difference", 1e-5),
    ("ratio", 0, 2e-5, "worse", 1e-5), ("ratio", 2e-5, 0, "better", 1e-5),
    ("frames lost", 0, 1, "no difference", 0),
    ("frames lost", 0, 20, "worse", 0), ("frames/s", 0, 100, "better", 0),
    ("frames/s", 100, 0, "worse", 0)])
def test_what_is_better_and_what_is_no_difference(unit, a, b, verdict, floor):
    assert judged_runs(unit, [a, a], [b, b], floor) == verdict


# By chance, all runs of one side are above those of the other in 1 of 6.
@pytest.mark.parametrize("a,b,verdict", [
    ([100], [200], "unclear"), ([100], [100], "unclear"),
    ([100], [200, 200], "unclear"), ([100, 100], [200], "unclear"),
    ([100, 100], [200, 200], "worse"), ([100, 110], [120, 130], "unclear"),
    ([100, 110], [200, 210], "worse")])
def test_few_runs_must_be_further_apart_than_runs_are(a, b, verdict):
    assert judged_runs("ns", a, b) == verdict


# Most runs of both sides lose nothing: a median of a bit more is no verdict.
@pytest.mark.parametrize("b,verdict", [
    ([0, 0, 1e-7, 1e-7, 1e-7], "unclear"),
    ([1e-4, 2e-5, 2e-5, 2e-5, 2e-5], "worse")])
def test_of_zero_the_sides_must_be_apart(b, verdict):
    figure = figure_of("ratio", [0, 0, 0, 0, 1e-5], b)
    assert Comparison(figure, 0.01).verdict.value == verdict


def test_five_runs_a_side_make_a_bootstrap_interval():
    a, b = [100, 101, 99, 100.5, 99.5], [105, 106, 104, 105.5, 104.5]
    found = Comparison(figure_of("frames/s", a, b), 0.01)
    assert found.is_bootstrap and found.ratio.value == 1.05
    assert 1.03 < found.ratio.low and found.ratio.high < 1.07
    assert found.verdict.value == "better"
    found = Comparison(figure_of("frames/s", a[:4], b), 0.01)
    assert not found.is_bootstrap
    assert found.ratio[1:] == (104 / 101, 106 / 99)
    found = Comparison(figure_of("frames/s", [], b), 0.01)
    assert found.verdict.value == "on one side only"


def test_the_median_is_the_middle_of_any_order():
    odd = [5, 1, 9, 3, 7]
    assert median(odd) == 5 and odd[0] == 5
    assert median([4, 1, 3, 2]) == 2.5
    assert (median([5]), median([])) == (5, 0)


def test_ratios_can_be_worked_out_by_hand():
    assert ratio([], []).value == 0
    assert ratio([4] * 7, [2] * 7) == (2, 2, 2)
    # 31 values around 150 and 31 around 100: 1.5, and 1 far outside.
    found = ratio([150 + i * 7 % 31 - 15 for i in range(31)],
                         [100 + i * 11 % 31 - 15 for i in range(31)])
    assert found.value == 1.5
    assert 1.3 < found.low < 1.5 < found.high < 1.7
    # Where a resample of the divisor is 0, the ratio has no end.
    assert ratio([1] * 5, [0, 0, 2, 2, 2]) == (0.5, 0.5, math.inf)


def text_of(rows, trials=()):
    return json.dumps({
        "schema": "mr-bench-net", "v": 1, "machine": {}, "ports": [],
        "selftest": [], "rows": rows, "trials": trials}).encode()


def figures_of(*sides):
    figures = Figures()
    for side, text in enumerate(sides):
        figures.add(document.read_bytes("x.json", text), side)
    return list(figures)


ROW = {"goal": "ndr", "unit": "frames/s", "value": 7, "frame_bytes": 1514,
       "low": 6, "high": 8}
TRIAL = {"frame_bytes": 60, "asked_pps": 1e6, "start_s": 0, "duration_s": 1,
         "tx": {"sent": 1000, "pps": 5},
         "rx": {"received": 900, "lost": 100, "pps": 9e5},
         "percentiles": {}, "histogram": {}, "latency": None}


def test_rows_are_figures():
    figure, = figures_of(*[text_of([ROW], [TRIAL])] * 2)
    assert figure.name == "1518 B ndr" and figure.sides[1].lows == [6]


def test_or_else_trials_are_and_two_of_a_load_are_two_samples():
    sent, _, loss = figures_of(text_of(
        [], [TRIAL, TRIAL | {"tx": {"sent": 1000, "pps": 6}}]))
    assert sent.name == "64 B at 1e+06 frames/s: sent"
    assert sent.sides[0].values == [5, 6]
    assert loss.unit == "ratio" and loss.sides[0].values[0] == 0.1
    assert loss.floor == 0.01  # 10 of 1,000 frames


NET = '{"schema": "mr-bench-net", "v": 1'


@pytest.mark.parametrize("text,words", [
    ("", "truncated"), (NET, "truncated"), ("[" * 100000, "truncated"),
    (NET + ', "v": 1}', "twice"), (NET + ', "a": NaN}', "NaN is not a number"),
    (NET + ', "a": 1e999}', "too large"), (NET + f', "a": {9 ** 99}}}', "large"),
    (NET + r', "a": "\ud800"}', "surrogates"),
    (b"\xff", "can't decode"), ("[]", "not a document of mr-bench"),
    ('{"schema": "other"}', "not a document of mr-bench"),
    ('{"schema": "mr-bench-net", "v": 2}', "version 2 of the schema"),
    (NET + "}", 'no "machine"; measure again'),
    (NET + ', "machine": {}}', 'no "rows"; measure again'),
    (text_of([7]), "rows[0] is not an object"),
    (text_of([{}]), "rows[0].goal is not text"),
    (text_of([ROW | {"value": "7"}]), "rows[0].value is not a number"),
    (text_of([ROW | {"value": True}]), "rows[0].value is not a number"),
    (text_of([ROW], [TRIAL | {"tx": []}]), "trials[0].tx is not an object"),
    (text_of([ROW | {"unit": "miles"}]), 'rows[0].unit "miles" is unknown')])
def test_an_invalid_document_is_a_one_line_error_with_a_remedy(text, words):
    data = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(Wrong) as wrong:
        document.read_bytes("x.json", data)
    said = str(wrong.value)
    assert said.startswith("x.json: ") and words in said and "\n" not in said


@pytest.mark.parametrize("path,words", [
    ("/nowhere/x", "/nowhere/x: No such file"), ("/", "/: Is a directory")])
def test_an_unreadable_file_is_a_one_line_error(path, words):
    with pytest.raises(Wrong, match=words):
        document.read(path)


@pytest.mark.parametrize("value,unit,text", [
    (1234567.5, "frames/s", "1.235 Mframes/s"),
    (999.9, "frames/s", "999.9 frames/s"), (999999, "bit/s", "1.000 Mbit/s"),
    (25e9, "bit/s", "25.00 Gbit/s"), (0, "frames/s", "0 frames/s"),
    (3.7, "ns/frame", "3.700 ns/frame"), (1500, "ns", "1.500 us"),
    (0.25, "s", "250.0 ms"), (0.005, "ratio", "0.5 %"),
    (12, "frames lost", "12.00 frames lost")])
def test_values_are_as_people_read_them(value, unit, text):
    assert units.text(value, unit) == text


TIMES = {"n": 9, "p50": 7, "p99": 8, "max": 9}
SEED_TRIAL = TRIAL | {
    "tx": {"sent": 9, "pps": 9}, "latency": TIMES, "lateness": TIMES,
    "percentiles": {"latency": [[0, 1], [50, 7], [100, 9]]},
    "histogram": {"latency": [[1, 2, 4], [8, 9, 5]]}}
SEED_NET = json.loads(text_of(
    [ROW | {"trials": [0]}, ROW | {"goal": "loss-at-50%", "unit": "ratio"},
     ROW | {"goal": "other"}], [SEED_TRIAL])) | {
    "kind": "frameloss", "line_bps": 1e9, "label": "<script>",
    "ports": [{"name": "a", "mode": "b", "nic": {"pci": {}, "rings": {}}}],
    "selftest": [{"frame_bytes": 60, "ceiling_pps": 99}],
    "config": {"rate": "1M"}, "clock": {}, "streams": ["x"], "cores": [1]}
SEEDS = [
    SEED_NET, SEED_NET | {"rows": []},
    {"v": 1, "command": "mem", "machine": {}, "rows": [
        {"workload": "<script>", "name": "x", "unit": "y",
         "players": [{"name": "z", "ns": {"median": 1}}]}]}]
VALUES = [None, True, 0, -1, 60, 1e308, -1e308, 5e-324, 2 ** 62, "", "<script>",
          "loss-at-1%", "ratio", "ns", "\x00\n\u2028", [], [1], {}]


def places(value):
    keys = value.keys() if isinstance(value, dict) else \
        range(len(value)) if isinstance(value, list) else ()
    for key in list(keys):
        yield value, key
        yield from places(value[key])


def mutated(dice):
    """Bytes that are nearly a document."""
    root = json.loads(json.dumps(dice.choice(SEEDS)))
    for _ in range(dice.randint(1, 4)):
        container, key = dice.choice(list(places(root)))
        container[key] = copy.copy(dice.choice(VALUES))
    data = bytearray(json.dumps(root).encode())
    if dice.random() < 0.1:
        data[dice.randrange(len(data))] = dice.randrange(256)
    return bytes(data)


def check_refused_or_compared_and_drawn(data):
    """With itself there is nothing that could be worse."""
    try:
        sides = tuple([document.read_bytes("x", data)] for _ in range(2))
    except Wrong as wrong:
        assert str(wrong).startswith("x: ") and "\n" not in str(wrong)
        return
    compare = Compare(sides, 0.01, False)
    assert not compare.is_refused or sides[0][0].root.get("complete") is False
    assert {c.verdict.value for c in compare.figures} <= {"unclear"}
    with contextlib.redirect_stdout(io.StringIO()) as said:
        compare.print()
        said.truncate(0)
        said.seek(0)
        compare.print_json()
    json.loads(said.getvalue())
    if sides[0][0].is_net:
        assert "<script" not in page.render(sides[0], "title")


@pytest.mark.parametrize("seed", range(4))
def test_any_bytes_are_refused_or_compared_and_drawn(seed, monkeypatch):
    dice = random.Random(seed)
    draw = page.svg
    for i in range(250):
        # A chart takes a tenth of a second: only a few are drawn.
        monkeypatch.setattr(page, "svg", draw if i % 25 == 0 else
                            lambda chart, number: f"{chart.title}{number}")
        check_refused_or_compared_and_drawn(mutated(dice))
