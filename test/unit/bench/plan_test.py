# SPDX-License-Identifier: BSD-3-Clause
"""plan_file.py and the journal of series.py: what a plan says, each mistake with its line and
cure, the order of steps, and what is done of them. The rest of series.py and plan.py are tested
as a user meets them, in test/gen/test_plan.py."""
import random

import pytest

from mr_bench.plan_file import Device, Plan, PlanError, parse, steps_of
from mr_bench.series import Journal, Series, SeriesError, last_line
from mr_support.text import escape

FULL = """\
folder: out
before: make
after: unmake
prefix: ip netns exec t
repeat: 2
devices:
- {name: a, start: run a, ready: ask a, stop: end a, wait: 2s}
- name: b
measures:
- name: t
  run: throughput x y --size {size} --rate {rate}/{size}
  sizes: [60, 1514]
  rates: [1M, 25%]
  time: 1m
  limit: 2m
- {name: l, run: latency x y}
"""
MEASURE = "measures: [{name: t, run: tx p}]\n"


def plan_of(text):
    """Of a file in a folder."""
    return parse("dir/f.yaml", text.encode())


def test_a_short_plan_has_all_the_defaults():
    plan = plan_of("measures:\n- name: t\n  run: tx p\n")
    assert (plan.folder, plan.repeat, plan.prefix) == ("dir/f.results", 1, "")
    assert plan.devices == [Device()]
    measure, = plan.measures
    assert (measure.run, measure.time, measure.limit) == ("tx p", 60, 660)
    plan_of("measures:\n- name: t\n  run: replay f.pcap p\n")


def test_every_key_is_taken():
    plan = plan_of(FULL)
    assert (plan.folder, plan.before, plan.after, plan.prefix, plan.repeat) == (
        "out", "make", "unmake", "ip netns exec t", 2)
    device = plan.devices[0]
    assert (device.name, device.start, device.ready, device.stop, device.wait) == (
        "a", "run a", "ask a", "end a", 2)
    measure = plan.measures[0]
    assert (measure.sizes, measure.rates) == ([60, 1514], ["1M", "25%"])
    assert (measure.time, measure.limit) == (60, 120)


def test_a_command_may_have_lines():
    plan = plan_of("prefix: |\n  a\n  b\n"
                   "measures:\n- name: t\n  run: >\n    tx p\n    --size 60\n")
    assert plan.prefix == "a b "
    assert plan.measures[0].run == "tx p --size 60 "


def test_rounds_go_there_and_back():
    steps = list(steps_of(plan_of(FULL)))
    assert [step.name for step in steps[:11]] == [
        "a+t+60+1M+1", "a+t+60+25%+1", "a+t+1514+1M+1", "a+t+1514+25%+1", "a+l+1",
        "b+t+60+1M+1", "b+t+60+25%+1", "b+t+1514+1M+1", "b+t+1514+25%+1", "b+l+1",
        "b+t+60+1M+2"]
    assert (len(steps), steps[19].name) == (20, "a+l+2")
    assert steps[3].words == "throughput x y --size 1514 --rate 25%/1514"
    assert steps[3].title == "a, t, 1514 bytes, 25%, round 1"
    assert steps[3].setup == ("before: make; prefix: ip netns exec t; start: run a; "
                              "ready: ask a; wait: 2s")


@pytest.mark.parametrize("text, wanted", [
    ("", "dir/f.yaml:1: nothing is measured; add 'measures:"),
    ("measures: []\n", "f.yaml:1: measures: empty"),
    ("- a\n", "f.yaml:1: must be a mapping"),
    (MEASURE + "\nrepat: 3\n", "f.yaml:3: unknown key 'repat'; did you mean 'repeat'"),
    (MEASURE + "xyz: 3\n", "f.yaml:2: unknown key 'xyz'; valid: folder, before"),
    (MEASURE + "repeat: 0\n", "f.yaml:2: repeat: '0'"),
    (MEASURE + "repeat: [1]\n", "f.yaml:2: repeat: must be one value, not a list"),
    (MEASURE + "repeat: 1\nrepeat: 2\n", "f.yaml:3: 'repeat' is given twice, first on "
     "line 2"),
    (MEASURE + "prefix: ''\n", "f.yaml:2: prefix: empty, or longer than 1023 bytes"),
    ("measures:\n- run: tx p\n", "f.yaml:2: a measure without a name"),
    ("measures:\n- name: t\n", "f.yaml:2: a measure that runs nothing"),
    ("measures:\n- {name: t, run: fwd W01}\n", "f.yaml:2: run: that command writes no document"),
    ("measures:\n- {name: t, run: reflect p}\n",
     "f.yaml:2: run: that command writes no document"),
    ("measures:\n- {name: t, run: '  mem'}\n", "f.yaml:2: run: that command writes no document"),
    ("measures:\n- {name: t, run: tx p --out x}\n", "f.yaml:2: run: --out is set here"),
    ("measures:\n- {name: t, run: tx p, sizes: [60]}\n",
     "f.yaml:2: there are sizes, but run has no {size}"),
    ("measures:\n- {name: t, run: tx p, rates: [1M]}\n",
     "f.yaml:2: there are rates, but run has no {rate}"),
    ("measures:\n- {name: t, run: 'tx {size}'}\n",
     "f.yaml:2: run has {size}, but there are none"),
    ("measures:\n- {name: t, run: 'tx {rate}'}\n",
     "f.yaml:2: run has {rate}, but there are none"),
    ("measures:\n- {name: t, run: 'tx {size}', sizes: [60, 60]}\n",
     "f.yaml:2: a size or a rate is there twice"),
    ("measures:\n- {name: t, run: 'tx {rate}', rates: [1M, 1M]}\n",
     "f.yaml:2: a size or a rate is there twice"),
    ("measures:\n- {name: t, run: 'tx {size}',\n   sizes: [60, x]}\n",
     "f.yaml:3: sizes: 'x' is not a whole number"),
    ("measures:\n- {name: t, run: 'tx {rate}', rates: ['1 M']}\n",
     "f.yaml:2: rates: '1 M' is not a rate such as 1.2M"),
    ("measures:\n- {name: a b, run: tx}\n", "f.yaml:2: name: 'a b' has"),
    ("measures:\n- {name: ../x, run: tx}\n", "f.yaml:2: name: '../x'"),
    ("measures:\n- {name: t, run: tx}\n- {name: t, run: tx}\n",
     "f.yaml:3: two measures have this name"),
    (MEASURE + "devices:\n- start: x\n", "f.yaml:3: a device without a"),
    (MEASURE + "devices:\n- {name: d, stop: x}\n",
     "f.yaml:3: a device with ready or stop, but without start"),
    (MEASURE + "devices:\n- {name: d}\n- {name: d}\n", "f.yaml:4: two devices have this name"),
    ("measures:\n- {name: t, run: tx, time: soon}\n", "f.yaml:2: time: 'soon' is not a time"),
    ("measures:\n- {name: t, run: tx, time: 4m2h}\n", "f.yaml:2: time: '4m2h' is not a time"),
    ("measures: [\n", "f.yaml:2: not valid YAML"),
    ("measures: \x01\n", "f.yaml:1: not valid YAML"),
    ('a: b\nc: "\\UFFFFFFFF"\n', "f.yaml:2: not valid YAML: '\\U...' above"),
    ('c: "\\U00110000"\n', "f.yaml:1: not valid YAML: '\\U...' above"),
    (MEASURE + 'before: "a\\0b"\n', "f.yaml:2: before: a NUL"),
    (MEASURE + 'folder: "\\uD800"\n', "f.yaml:2: folder: a NUL, or half of a character"),
    (MEASURE + '"\\uD800": x\n', "f.yaml:2: unknown key '?'"),
    ("measures: " + 5000 * "[", "f.yaml:1: not valid YAML"),
    ("a: " + (1 << 20) * "x", "f.yaml:1: the file is larger than 1 MiB"),
    ("&a [*a, {? [x] : y}]\n", "f.yaml:1: must be a mapping"),
    ("? [x]\n: y\n", "f.yaml:1: a key: must be one value, not a list"),
    (MEASURE + "---\ntitle: x\n", "a second document begins")])
def test_each_mistake_has_its_line_and_its_cure(text, wanted):
    with pytest.raises(PlanError) as raised:
        plan_of(text)
    assert wanted in str(raised.value)
    assert str(raised.value).isprintable()


def test_whatever_a_file_has_is_a_plan_or_one_line():
    """Parts of files in any order, and any bytes: a path of a step never leaves its folder."""
    dice = random.Random(7)
    parts = [*FULL.splitlines(keepends=True), MEASURE, "- &a [*a]\n", "\t", "...\n", "? x\n",
             "name: ..\n", "name: .x\n", "{", "]", "'", "\0", "\x1b[2J\n"]
    n_plans = 0
    for _ in range(2000):
        text = bytearray("".join(dice.choices(parts, k=dice.randrange(9))).encode())
        if dice.random() < 0.3 and text:
            text[dice.randrange(len(text))] = dice.randrange(256)
        try:
            plan = parse("file", bytes(text))
        except PlanError as error:
            assert str(error).startswith("file:") and "\n" not in str(error)
            continue
        n_plans += 1
        for step in steps_of(plan):
            assert step.name and step.name[0] != "." and "/" not in step.name
    assert n_plans > 0


def test_a_plan_has_an_end():
    with pytest.raises(PlanError, match="more than 10000 steps"):
        plan_of("repeat: 100\n"
                "devices: [{name: a}, {name: b}, {name: c}, {name: d},\n"
                "  {name: e}, {name: f}, {name: g}, {name: h}]\n"
                "measures:\n- {name: t, run: 'x {size}{rate}', "
                "sizes: [60, 61, 62, 63], rates: [1, 2, 3, 4]}\n")
    assert Plan().count_steps() == 0


def test_what_is_done_is_known_after_a_restart(tmp_path):
    folder = tmp_path / "a/b"
    key = {"run": "tx p", "setup": "start: d", "program": "1"}
    journal = Journal(str(folder), True)
    journal.note("s", key, 1.5, 0)
    journal.note("bad", key, 2, 1)
    assert not journal.has("s", key)  # no file of it
    journal.result("s").touch()
    journal.close()
    journal = Journal(str(folder), False)
    assert journal.count_others(set()) == 1
    assert journal.count_others({"s"}) == 0
    assert journal.has("s", key)
    for other in ({"run": "tx other"}, {"setup": "start: e"}, {"program": "2"}):
        assert not journal.has("s", key | other)
    assert not journal.has("bad", key)
    journal.result("s").unlink()
    assert not journal.has("s", key)
    for text in ('{"schema": "another"}', "[]", "{", ""):
        journal.path.write_text(text)
        with pytest.raises(SeriesError, match="no journal of a plan"):
            Journal(str(folder), False)
        assert journal.path.read_text() == text


def test_after_is_run_whatever_happens(tmp_path, monkeypatch):
    plan = plan_of(MEASURE + f"after: touch {tmp_path}/after\n")
    journal = Journal(str(tmp_path), True)
    series = Series(plan, list(steps_of(plan)), journal, "", True)

    def fail():
        raise OSError
    monkeypatch.setattr(series, "do_steps", fail)
    monkeypatch.setattr("signal.signal", lambda *_: None)  # pytest has its own
    with pytest.raises(OSError):
        series.run()
    journal.close()
    assert (tmp_path / "after").exists()


def test_the_last_line_of_a_long_log_is_found(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"\xff" * (1 << 20) + b"\nlast\n\n")
    assert last_line(log) == "last"
    log.write_text("only")
    assert last_line(log) == "only"
    assert last_line(tmp_path / "none") == ""


def test_half_a_character_is_escaped():
    assert escape("\ud800\udcff") == r"\xed\xa0\x80\xff"
