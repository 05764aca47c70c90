# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench compare: verdicts, what is refused, and exit statuses for CI."""
import copy
import functools
import json
import subprocess
import sys

import pytest

from bench_program import BENCH, TOP, complaints, limit
from sample import sample_document


# What measures for ./mr bench mem and its like.
MICRO = BENCH.parents[2] / "test/bench/micro/mr-micro"

sample = functools.cache(sample_document)


def scaled(factor, change=None):
    """The sample with rates by a factor, and something else changed."""
    document = copy.deepcopy(sample())
    for row in document["rows"]:
        if row["unit"] == "frames/s":
            for key in ("value", "low", "high"):
                row[key] *= factor
    if change:
        change(document)
    return document


def twice(a, b):
    """Two runs a side, which is what a verdict takes."""
    return ["--baseline", a, "--baseline", a, b, b]


def test_one_run_a_side_is_unclear(bench, files):
    for factor in (1, 0.5):
        names = files(scaled(1), scaled(factor))
        done = bench("compare", *names)
        assert done.rc == 3, done.out
        assert "unclear" in done.out and "worse" not in done.out
        assert bench("compare", "--baseline", names[0], names[0],
                     names[1]).rc == 3


EVIL = "a\x1b[31mb\nc\x7f"
ESCAPED = r"a\x1b[31mb\nc\x7f"


def test_control_characters_are_escaped(bench, files, tmp_path):
    def change(document):
        document["label"] = EVIL
        document["rows"][0]["goal"] = EVIL
    evil = tmp_path / EVIL
    evil.write_text(json.dumps(scaled(1, change)), encoding="utf-8")
    done = bench("compare", *files(scaled(1)), evil)
    assert done.out.count(ESCAPED) == 3 and done.out.isascii(), done.out
    assert not set(done.out) & {"\x1b", "\x7f"}


@pytest.mark.parametrize("words", [
    [EVIL], ["compare", EVIL, EVIL], ["report", EVIL], ["plan", EVIL],
    ["tx", f"pcap:{EVIL}"], ["tx", EVIL],
    ["tx", "null:", EVIL], ["tx", "null:", "--rate", EVIL],
    ["throughput", EVIL, EVIL], ["nat", EVIL], ["replay", EVIL, "null:"]])
def test_errors_are_one_line_whatever_was_typed(bench, words):
    done = bench(*words)
    assert done.rc != 0 and len(done.errors) == 1, done.err
    assert not {*done.err} & {"\x1b", "\x7f"}, done.err


def test_names_of_ports_are_escaped(bench):
    done = bench("tx", f"null:{EVIL}", "--count", 1)
    assert done.rc == 0 and f"port null:{ESCAPED} " in done.err


def test_itself_is_no_difference(bench, files):
    done = bench("compare", *twice(*files(scaled(1), scaled(1))))
    assert done.rc == 0, done.err
    assert " no difference; changes up to 1 % " in done.out
    assert "worse" not in done.out


@pytest.mark.parametrize("factor,threshold,rc,verdict", [
    (0.9, 1, 1, "worse"), (1.1, 1, 0, "better"),
    (0.9, 15, 0, "no difference"), (0.996, 0.2, 0, "unclear")])
def test_exit_status_is_for_ci(bench, files, factor, threshold, rc, verdict):
    done = bench("compare", "--threshold", threshold,
                 *twice(*files(scaled(1), scaled(factor))))
    assert done.rc == rc, done.out
    assert verdict in done.out


def test_compare_fails_if_every_figure_is_unclear(bench, files):
    """Of runs that differ more from each other than the sides do."""
    def alone(document):
        document["rows"] = [row for row in document["rows"]
                            if row["unit"] == "frames/s"]
        document["trials"] = []
    a, b, c = files(*(scaled(factor, alone) for factor in (0.9, 1.1, 1.05)))
    done = bench("compare", "--baseline", a, "--baseline", b, a, c)
    assert "unclear" in done.out and "no difference;" not in done.out, done.out
    assert done.rc == 3, done.out


def test_runs_of_a_side_make_its_median(bench, files):
    baseline = files(*(scaled(f) for f in (0.98, 0.99, 1, 1.01, 1.02)))
    compared = files(*(scaled(f) for f in (1.18, 1.19, 1.2, 1.21, 1.22)))
    words = [word for name in baseline for word in ("--baseline", name)]
    done = bench("compare", "--json", *words, *compared)
    assert done.rc == 0, done.err
    said = json.loads(done.out)
    assert complaints(said, "mr-bench-compare") == []
    figure = next(f for f in said["figures"] if f["figure"] == "64 B ndr")
    assert figure["ratio"] == pytest.approx(1.2)
    assert figure["is_bootstrap"] and figure["verdict"] == "better"
    assert 1.15 < figure["low"] < 1.2 < figure["high"] < 1.25
    assert len(figure["compared"]["values"]) == 5


def another_machine(document):
    document["machine"]["cpu"] = "another one"


def another_rate(document):
    document["config"]["rate"] = "another one"


def another_mode(document):
    document["ports"][0]["mode"] = "copy"


def another_kind(document):
    document["kind"] = "imix"


@pytest.mark.parametrize("change,word", [
    (another_machine, "machine.cpu"), (another_rate, "config"),
    (another_mode, "ports[0].mode"), (another_kind, "kind")])
def test_results_measured_differently_are_refused(bench, files, change, word):
    names = files(scaled(1), scaled(0.5, change))
    done = bench("compare", *names)
    assert (done.rc, done.err.count("\n")) == (2, 1)
    assert word in done.out and "--anyway" in done.err
    assert "verdict" not in done.out
    done = bench("compare", "--anyway", *twice(*names))
    assert done.rc == 1 and word in done.out and "worse" in done.out


def ended_early(document):
    document["complete"] = False
    document["why_incomplete"] = "ended by a signal"


@pytest.mark.parametrize("ends", [(True, False), (False, True), (True, True)])
def test_a_search_that_was_ended_early_is_refused(bench, files, ends):
    names = files(*(scaled(1, ended_early if end else None) for end in ends))
    done = bench("compare", *names)
    assert done.rc == 2
    assert "complete" in done.out and "ended by a signal" in done.out
    assert bench("compare", "--anyway", *twice(*names)).rc == 0


def verdicts(bench, names):
    said = json.loads(bench("compare", "--json", *twice(*names)).out)
    found = {f["figure"]: f["verdict"] for f in said["figures"]}
    return [found.get(f"64 B {goal}") for goal in ("ndr", "latency-p99")]


def refused(document):
    document["rows"][0] |= {"value": 0, "low": 0, "high": 0,
                            "is_limited_by_tester": True}
    document["rows"][2] |= {"value": 0, "low": 0, "high": 0}


def test_refused_trials_and_trials_without_frames_give_no_figure(bench, files):
    for pair in ((scaled(1), scaled(1, refused)),
                 (scaled(1, refused), scaled(1))):
        assert verdicts(bench, files(*pair)) == ["on one side only"] * 2


def none_holds(document):
    document["rows"][0] |= {"value": 0, "low": 0, "high": 1000}


def test_that_no_rate_holds_is_worse(bench, files):
    assert verdicts(bench, files(scaled(1), scaled(1, none_holds)))[0] == \
        "worse"


def limited(document):
    for row in document["rows"]:
        row["is_limited_by_tester"] = True


def slower(document):
    for key in ("value", "low", "high"):
        document["rows"][2][key] *= 2


@pytest.mark.parametrize("factor,is_first,verdict", [
    (0.5, True, "worse"), (0.5, False, "unclear"),
    (2, True, "unclear"), (2, False, "better")])
def test_the_testers_limit_is_a_lower_bound(bench, files, factor, is_first,
                                            verdict):
    a = scaled(1, limited if is_first else None)
    b = scaled(factor, None if is_first else limited)
    slower(b)
    assert verdicts(bench, files(a, b)) == [verdict, "unclear"]


def another_load(document):
    document["machine"]["load"] = "9.99"
    document["millrace"] = "9.9.9"
    document["date"] = "2020-01-01T00:00:00Z"


def test_documents_of_two_versions_are_compared_with_a_note(bench, files):
    done = bench("compare", *twice(*files(scaled(1), scaled(1, another_load))))
    assert done.rc == 0
    assert "9.9.9" in done.out and "9.99" not in done.out


@pytest.mark.parametrize("command,side,row,line", [
    ("mem", "plain", "B01/1 core", "B01/1 core: for_loop"),
    ("fwd", "ours", "W02/fields=0", "W02/fields=0: ")])
def test_documents_of_workloads(bench, tmp_path, command, side, row, line):
    names = [tmp_path / "a.json", tmp_path / "b.json"]
    for name in names:
        done = subprocess.run(
            [sys.executable, TOP / "test/bench/micro/run.py", MICRO, command,
             "--quick", "--samples", "3", "--sample-ms", "1", "--only", side,
             "--json", row], stdout=subprocess.PIPE,
            check=True, timeout=limit(60))
        name.write_bytes(done.stdout)
    done = bench("compare", "--threshold", 1000, *twice(*names))
    assert done.rc == 0, done.out + done.err
    assert line in done.out
    whole = json.loads(names[0].read_text(encoding="utf-8"))
    for player in whole["rows"][0]["players"]:
        for key in ("median", "low", "high"):
            player["ns"][key] *= 100
    names[1].write_text(json.dumps(whole), encoding="utf-8")
    done = bench("compare", *twice(*names))
    assert done.rc == 1 and "+9900" in done.out


def test_wrong_words_are_one_line(bench, files):
    one = files(scaled(1))
    for words in (["compare"], ["compare", *one],
                  ["compare", "--threshold", "x", *one, *one],
                  ["compare", *one, "/nowhere.json"]):
        done = bench(*words)
        assert (done.rc, done.err.count("\n")) == (2, 1), done.err
        assert done.err.startswith("mr-bench compare: ")


def test_a_full_disk_is_an_error(bench, files):
    names = files(scaled(1), scaled(1))
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([BENCH, "compare", *names], stdout=full,
                              stderr=subprocess.PIPE, text=True, check=False,
                              timeout=limit(20))
    assert done.returncode == 2 and "cannot write to stdout" in done.stderr
