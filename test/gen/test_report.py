# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench report: one page that needs nothing else, looked at in a browser."""
import base64
import copy
import functools
import html.parser
import json
import os
import re
import subprocess
import sys
import xml.dom.minidom

import pytest

import browser
from bench_program import BENCH, limit, run, saved
from sample import frameloss_document, latency_document, sample_document

NASTY = "<script>alert(1)</script> & \"quoted\" 'text' \u2028 <svg onload=x>"


@functools.cache
def made_up():
    """A document of each kind that has a chart of its own."""
    return [sample_document("bridge"), sample_document("l2fwd", 1.25, 9),
            frameloss_document(), latency_document()]


def written(folder):
    """What mr-bench itself wrote, of kinds without a chart of their own."""
    virtual = ["--virtual", "--trial", "0.05"]
    commands = [["imix", *virtual, "--device", "rate=100k,queue=8", "pair:a",
                 "pair:b"], ["selftest", *virtual, "pair:a", "pair:a"],
                ["tx", "--count", 1000, "null:"]]
    documents = []
    for words in commands:
        name = folder / f"{words[0]}.json"
        done = run(*words, "-q", "--out", name)
        assert done.rc == 0, done.err
        documents.append(json.loads(name.read_text(encoding="utf-8")))
    # A NAT's needs one: its rows are as nat's.
    rows = [{"frame_bytes": 60, "goal": goal, "value": 1500, "unit": unit,
             "low": 0, "high": 0, "is_limited_by_tester": True, "trials": [],
             "note": "a note of nat"}
            for goal, unit in (("set-up-rate", "connections/s"),
                               ("table-capacity", "connections"))]
    rows.append(dict(rows[0], frame_bytes=124, note="of a length"))
    return documents + [dict(documents[0], kind="nat", rows=rows, trials=[])]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages by name, as files."""
    folder = tmp_path_factory.mktemp("pages")
    nasty = copy.deepcopy(made_up()[0])
    nasty["label"] = nasty["command"] = nasty["why_incomplete"] = NASTY
    nasty["ports"][0]["name"] = nasty["rows"][0]["note"] = NASTY
    nasty["complete"] = False
    one_size = copy.deepcopy(made_up()[0])
    one_size["rows"] = one_size["rows"][:2]
    # A label as a script makes it; and one with as much as there is room for.
    long = [dict(document, label=label) for document in (made_up()[0], one_size)
            for label in ("mr-l2fwd, throughput, 1518 bytes, round 2",
                          "device under test " * 3 + "\u00b5" * 9)]
    sets = {"all": made_up(), "one": made_up()[:1], "nasty": [nasty],
            "one_size": [one_size], "long": long, "long_bars": long[2:],
            "latency": [latency_document()], "written": written(folder)}
    for name, documents in sets.items():
        done = run("report", "--out", folder / f"{name}.html",
                   *saved(folder, *documents))
        assert (done.rc, done.out, done.err) == (0, "", "")
    return {name: folder / f"{name}.html" for name in sets}


class Reader(html.parser.HTMLParser):
    """Tags that are open, and all that came."""

    EMPTY = {"meta", "br"}

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        # Rows and cells of tables may end with the next one.
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", ["all", "one", "nasty", "one_size", "written"])
def test_the_page_is_whole_and_needs_nothing(pages, name):
    text = pages[name].read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    assert not {"script", "link", "img", "iframe", "object"} & \
        set(reader.tags)
    keys = {key for key, _ in reader.attributes}
    assert not any(key.startswith("on") or key in ("src", "xlink:href")
                   for key in keys)
    assert all(value.startswith("#") for key, value in reader.attributes
               if key == "href")
    assert "http://" not in re.sub(r'xmlns="[^"]*"', "", text)
    assert "https://" not in text and "@import" not in text
    ids = [value for key, value in reader.attributes if key == "id"]
    assert len(ids) == len(set(ids))
    for chart in re.findall(r"<svg.*?</svg>", text, re.S):
        xml.dom.minidom.parseString(chart)
        assert "<title" in chart and "<desc" in chart
    assert not re.search(r"\b(nan|inf)\b", text)


def test_results_without_a_chart_are_in_tables(pages):
    text = pages["written"].read_text(encoding="utf-8")
    for words in ("imix", "selftest", "known-loss-1000", "set-up-rate",
                  "table-capacity", "a note of nat; of a length"):
        assert words in text


def test_each_chart_has_its_table(pages):
    text = pages["all"].read_text(encoding="utf-8")
    for words in ("Frames per second by frame size", "Bits on the wire",
                  "Frame loss by load", "Latency by percentile",
                  "Latency: how often", "Lateness by percentile"):
        assert f"{words}" in text
    # Each section with a chart has a table, too.
    for section in text.split("<h2 ")[1:]:
        assert section.count("<svg") == 0 or "<table>" in section
    # Figures of the first document: 64 B without loss, with its bounds, and
    # what the tester limited.
    row = made_up()[0]["rows"][0]
    assert f">{row['value'] / 1e6:.3f} M<br>" in text
    assert f"{row['low'] / 1e6:.3f} M \u2013 {row['high'] / 1e6:.3f} M" in text
    assert "<td>\u2265 " in text
    assert ">13.20 M</td>" in text  # the tester alone


def test_a_loss_curve_is_of_the_trials_that_rows_name(pages):
    text = pages["all"].read_text(encoding="utf-8")
    section = text.split('id="loss"')[1].split("<h2")[0]
    table = section.split("<table>")[1]
    assert table.count("<tr>") - 1 == len(frameloss_document()["rows"])
    assert "777777" not in table


@pytest.mark.parametrize("section", ["latency", "pacing"])
def test_a_trial_is_shown_if_a_row_rests_on_it(pages, section):
    """Of three shares three trials, and not the one that looked for a path."""
    text = pages["latency"].read_text(encoding="utf-8")
    table = text.split(f'id="{section}"')[1].split("</table>")[0]
    assert re.findall(r"<tr><th>(64 B, [^<]*)</th>", table) == [
        f"64 B, {load}frames/s"
        for load in ("910.0 k", "4.550 M", "8.190 M")]


def test_a_rate_that_the_sender_missed_is_marked(bench, files):
    document = latency_document()
    document["trials"][1]["tx"]["pps"] *= 0.17
    text = bench("report", *files(document)).out.split('id="latency"')[1]
    table = text.split("</table>")[0]
    assert "<th>Asked</th><th>Sent</th>" in table
    rows = re.findall(r"<tr><th>(64 B, .*?)</tr>", table, re.S)
    assert [row.count("missed") for row in rows] == [2, 0, 0]
    # The curve, too: in the legend.
    assert "k frames/s (missed)" in text.split("<svg")[1].split("</svg>")[0] \
        or "kframes/s (missed)" in text.split("<svg")[1].split("</svg>")[0]


def test_curves_of_many_trials_are_of_several_charts(bench, files):
    """Nine curves in one chart cannot be told apart."""
    text = bench("report", *files(*(
        latency_document(f"d{i}", seed=i) for i in range(3)))).out.split('id="latency"')[1]
    charts = [chart.split("</svg>")[0] for chart in text.split("<svg")[1:]
              if "Latency by percentile" in chart]
    assert len(charts) == 3
    for i, chart in enumerate(charts):
        assert f"Latency by percentile ({i + 1} of 3)" in chart
        names = re.findall(r">(d\d 64 B, [^<]*)<", chart)
        assert len(names) == 3 and len({name[:2] for name in names}) == 3
        # The end of a curve is not its value.
        assert not any(":" in name for name in names)


def test_long_labels_are_shown_whole(pages):
    text = pages["long"].read_text(encoding="utf-8")
    assert ">mr-l2fwd, throughput, 1518 bytes, round 2<" in text


def test_rounds_of_a_step_have_one_colour(bench, files):
    chart = bench("report", *files(*(
        sample_document(label) | {"trials": []}
        for label in ("a, round 1", "a, round 2", "b, round 1")))).out.split("<svg")[1].split("</svg>")[0]
    colours = re.findall(r'<g class="c(\d)', chart)
    assert len(set(colours) - {"3"}) == 2  # c3 is for limits


def test_lines_that_have_no_room_are_told(bench, files):
    words = files(*(made_up()[0] | {"label": f"d{i}", "trials": []}
                    for i in range(13)))  # of two goals each
    out = bench("report", *words).out
    assert "The chart has the first 24 lines" in out
    assert "The chart has" not in bench("report", *words[:12]).out.split(
        'id="latency"')[0]


def test_other_results_are_marked_and_options_are_those_given(bench, files):
    document = latency_document()
    document["rows"][0]["is_limited_by_tester"] = True
    document["config"] |= {"seed": 0, "virtual": False, "pdr": 0.005,
                           "verify": 0, "unsent_tolerance": 0.0, "loop": 0,
                           "cores": [], "count": 0}
    out = bench("report", *files(document)).out
    assert out.count("<td>\u2264 ") == 1
    assert "<dt>pdr</dt><dd>0.005</dd>" in out
    for key in ("seed", "virtual", "cores", "count"):
        assert f"<dt>{key}</dt>" not in out
    # Of these 0 is no default.
    for key in ("verify", "unsent_tolerance", "loop"):
        assert f"<dt>{key}</dt><dd>0" in out


def test_an_incomplete_run_is_marked_at_the_top(pages):
    text = pages["nasty"].read_text(encoding="utf-8")
    assert "not complete: &lt;script&gt;alert(1)" in text.split("<h2")[0]


@pytest.mark.parametrize("words,rc,said", [
    ([], 2, "0 files given"), (["/nowhere.json"], 2, "No such file"),
    (["--out", "/nowhere/x.html", "GOOD"], 1, "/nowhere/x.html"),
    (["--nope"], 2, "--nope"), (["MEM"], 2, "mr-bench mem or flow"),
    (["CUT"], 2, "truncated")])
def test_errors_are_one_line(bench, files, words, rc, said):
    mem = {"v": 1, "command": "mem", "machine": {}, "rows": []}
    paths = dict(zip(("GOOD", "MEM", "CUT"),
                     files(made_up()[0], mem, made_up()[0])))
    os.truncate(paths["CUT"], paths["CUT"].stat().st_size // 2)
    done = bench("report", *[paths.get(word, word) for word in words])
    assert (done.rc, done.err.count("\n")) == (rc, 1), done.err
    assert said in done.err and done.out == ""


def test_a_package_that_is_missing_is_named():
    # -S: without what the distribution has installed.
    done = subprocess.run([sys.executable, "-I", "-S", BENCH, "report", "x"],
                          capture_output=True, text=True, check=False,
                          timeout=limit(60))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == ("mr-bench report: Python has no module jinja2; "
                           "install the package python3-jinja2\n")


def test_many_documents_have_room_and_no_half_letters(bench, files):
    done = bench("report", *files(*(
        dict(made_up()[2], label="d" * (i % 2 + 57) + 4 * "\u00b5")
        for i in range(65))))
    assert done.rc == 0, done.err
    assert "d\u00b5\u00b5</" in done.out
    assert "\u00b5\u00b5\u00b5\u00b5</" not in done.out


def test_stdout_is_the_default(bench, files):
    done = bench("report", "--title", "A < B", *files(made_up()[0]))
    assert done.rc == 0
    assert done.out.startswith("<!DOCTYPE html>")
    assert "<title>A &lt; B</title>" in done.out


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    if not browser.find():
        pytest.skip("no browser (package chromium)")
    it = browser.Browser(tmp_path_factory.mktemp("profile"))
    yield it
    it.close()


def shown(chromium, page):
    chromium.media()
    chromium.resize(1100)
    chromium.requests.clear()
    chromium.complaints.clear()
    chromium.open(page.as_uri())


@pytest.mark.parametrize("name", ["all", "one", "nasty", "one_size"])
def test_it_fetches_nothing_and_nothing_is_wrong(chromium, pages, name):
    shown(chromium, pages[name])
    assert chromium.requests == [pages[name].as_uri()]
    assert chromium.complaints == []
    assert chromium.value("document.scripts.length") == 0
    assert chromium.value("document.compatMode") == "CSS1Compat"


def test_texts_are_shown_as_they_are(chromium, pages):
    shown(chromium, pages["nasty"])
    assert chromium.value("document.body.textContent").count(
        "<script>alert(1)</script> & \"quoted\" 'text'") >= 3


@pytest.mark.parametrize("width", [1100, 400])
@pytest.mark.parametrize("name", ["all", "nasty", "one_size"])
def test_nothing_is_wider_than_the_window(chromium, pages, name, width):
    shown(chromium, pages[name])
    chromium.resize(width)
    assert chromium.value("document.documentElement.scrollWidth") <= width
    # What scrolls in its own box may be wider; all else ends in the page.
    assert chromium.value("""[...document.querySelectorAll(
        'h1,h2,h3,p,li,dd,dt')].filter(e => e.scrollWidth >
        e.clientWidth + 1 || e.getBoundingClientRect().right >
        innerWidth).map(e => e.textContent)""") == []


@pytest.mark.parametrize("name", ["all", "one", "nasty", "one_size", "long",
                                  "long_bars"])
def test_charts_have_size_and_their_texts_room(chromium, pages, name):
    shown(chromium, pages[name])
    charts = chromium.value("""[...document.querySelectorAll('svg')].map(
        s => { const b = s.getBoundingClientRect();
               return [b.width, b.height]; })""")
    assert len(charts) >= 4
    for width, height in charts:
        assert width > 600 and height > 80
    # No text beyond its chart's edge, and none on another one.
    assert chromium.value("""[...document.querySelectorAll('svg')].flatMap(
        s => { const box = s.getBoundingClientRect();
               const texts = [...s.querySelectorAll('text')].map(
                   t => [t.textContent, t.getBoundingClientRect()]);
               const out = texts.filter(([, b]) => b.left < box.left ||
                   b.right > box.right + 1 || b.top < box.top - 1 ||
                   b.bottom > box.bottom + 1);
               const on = texts.filter(([, a], i) => texts.some(([, b], k) =>
                   k > i && a.left < b.right - 2 && b.left < a.right - 2 &&
                   a.top < b.bottom - 4 && b.top < a.bottom - 4));
               return [...out, ...on].map(([t]) => t); })""") == []


LUMINANCE = """(() => {
    const of = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number).map(
        v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const paper = of(getComputedStyle(document.body).backgroundColor);
    const style = (s, p) => of(getComputedStyle(document.querySelector(s))[p]);
    return { paper: paper,
        texts: ['body', 'caption', 'dt', 'td'].map(
            s => ratio(paper, style(s, 'color'))).concat(
            ratio(paper, style('svg text', 'fill'))),
        lines: [...document.querySelectorAll('svg g[class^=c] path')].map(
            e => ratio(paper, of(getComputedStyle(e).stroke))) }; })()"""


@pytest.mark.parametrize("media,scheme,is_dark", [
    ("", "light", False), ("", "dark", True), ("print", "dark", False)])
def test_it_is_readable_in_light_dark_and_print(chromium, pages, media,
                                                scheme, is_dark):
    shown(chromium, pages["all"])
    chromium.media(media, scheme)
    seen = chromium.value(LUMINANCE)
    assert (seen["paper"] < 0.05) == is_dark
    # WCAG: 4.5 for text, 3 for what is drawn.
    assert min(seen["texts"]) >= 4.5
    assert min(seen["lines"]) >= 3


def test_it_prints(chromium, pages):
    shown(chromium, pages["all"])
    pdf = base64.b64decode(chromium.ask("Page.printToPDF")["data"])
    assert pdf.startswith(b"%PDF-")
    n_pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
    assert 5 <= n_pages <= 25


def test_a_picture_of_it_is_not_blank(chromium, pages):
    shown(chromium, pages["one"])
    png = base64.b64decode(chromium.ask("Page.captureScreenshot")["data"])
    assert png.startswith(b"\x89PNG") and len(png) > 20000
