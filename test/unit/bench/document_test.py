# SPDX-License-Identifier: BSD-3-Clause
"""Documents of mr-bench as others read them: by schema, CSV, HDR logs.

PyPI's hdrhistogram reads HDR logs.
"""
import collections
import copy
import csv
import io
import json
import math
import os
import resource
import signal

import pytest
from bench_program import complaints
from mr_bench import percentiles, result

VALUES = [i * i for i in range(1000)]  # latencies of the first trial
BUILT = {"compiler": "gcc 12", "flags": "-O2", "millrace": "0.1.0"}
WAY = {"from": "xdp:v0", "to": "xdp:v1", "sent": 600, "unsent": 6, "received": 595,
       "unique": 590, "lost": 10, "duplicates": 5, "reordered": 0, "too_old": 0,
       "latency": {"p50": 7, "p99": 77, "max": 99}}
FOUND = {
    "rows": [{"frame_bytes": 60, "goal": "ndr", "unit": "frames/s",
              "note": 'comma, "quote"', "value": 1234567.5, "low": 1234e3,
              "high": 1235e3, "is_limited_by_tester": False,
              "trials": [0, 1]}],
    "selftest": [{"frame_bytes": 60, "mean_bytes": 60, "ceiling_pps": 2.5e6}],
    "config": {"resolution": 0.005}, "measured": {"slope": -1.5}}


def bucket(value):
    """HdrHistogram's index of a value, for three digits."""
    shift = max(value.bit_length() - 11, 0)
    return shift * 1024 + (value >> shift)


def counted(values):
    """As the engine counts them."""
    if not values:
        return None
    counts = collections.Counter(map(bucket, values))
    return {"n": len(values), "n_over": 0, "min": min(values), "max": max(values),
            "sum": sum(values), "sum_sq": sum(value * value for value in values),
            "counts": sorted(map(list, counts.items()))}


def measured(latencies):
    """A trial as the engine tells it."""
    keys = ("late", "waited", "still", "called", "tx_away", "rx_away", "all_waited", "all_still")
    return {
        "asked_pps": 1e6, "duration_s": 2.0, "whole_s": 2.1,
        "tx": {"due": 1010, "sent": 1000, "unsent": 10, "bytes": 0, "pps": 500.0},
        "rx": {"received": 995, "unique": 990, "lost": 10, "duplicates": 5, "reordered": 0,
               "too_old": 0, "foreign": 0, "bytes": 0, "pps": 495.25},
        "lateness": counted([1000]), "latency": counted(latencies),
        "tail": {f"{key}_ns": 0 for key in keys}, "clock_error_ns": 0, "streams": [],
        "directions": [WAY], "cpu_share": 0.5, "complete": True, "why_stopped": "",
        "drops": [{"port": "xdp:v0", "side": "dev", "name": 'rx "missed"', "n": 7}]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A document in all forms."""
    made = tmp_path_factory.mktemp("forms")
    late, first = measured([]), measured(VALUES)
    percentiles.describe(late, 1514)
    buckets = percentiles.describe(first, 60).counts
    root = result.begin("throughput", 'a "b"', ["throughput", "x"], BUILT)
    written = result.Result(root, {
        kind: str(made / f"a.{kind}") for kind in ("out", "csv", "hdr")})
    written.add_trial(first, buckets)
    written.add_trial(late, [])
    written.add(**copy.deepcopy(FOUND))
    assert written.write() == 0
    return made


@pytest.fixture(scope="module")
def written(folder):
    """The document."""
    return json.loads((folder / "a.out").read_text("utf-8"))


def test_json_is_as_its_schema_says(written):
    assert complaints(written) == []
    # A schema that allows everything would have passed that.
    for key in written:
        less = {k: v for k, v in written.items() if k != key}
        assert complaints(less), key
    for place in ("rows", "trials", "selftest"):
        more = copy.deepcopy(written)
        more[place][0]["x"] = 1
        assert complaints(more), place


def test_a_command_is_as_it_was_typed():
    root = result.begin("tx", "", ["tx", "--stream", "tcp size=80", "it's",
                                   os.fsdecode(b"\xff")], {"millrace": "1"})
    assert root["command"] == \
        """mr-bench tx --stream 'tcp size=80' 'it'"'"'s' '\\xff'"""


def test_a_trial_begins_where_the_one_before_ended(written):
    assert [one["start_s"] for one in written["trials"]] == [0, 2.1]


def test_csv_has_the_trials_where_there_are_no_rows(written):
    text = result.csv_text(written | {"rows": []})
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["latency_max"] for row in rows] == [str(VALUES[-1]), ""]
    assert (rows[1]["start_s"], rows[1]["tx_unsent"]) == ("2.1", "10")


def test_csv_has_the_rows(folder):
    with (folder / "a.csv").open(newline="", encoding="utf-8") as file:
        row, = csv.DictReader(file)
    assert (row["label"], row["note"]) == ('a "b"', 'comma, "quote"')
    assert (float(row["value"]), row["unit"]) == (1234567.5, "frames/s")


def test_a_file_is_whole_or_as_it_was(written, tmp_path, capsys):
    def cannot_write(path, why):
        assert result.Result(written, {"out": str(path)}).write() == 1
        assert f"cannot write {path}: {why}" in capsys.readouterr().err

    path = tmp_path / "x.json"
    path.write_text("old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    was = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        cannot_write(path, "File too large")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, was)
    assert path.read_text() == "old"
    assert result.Result(written, {"out": str(path)}).write() == 0
    assert json.loads(path.read_text("utf-8")) == written
    # Nothing is left beside it.
    assert list(tmp_path.iterdir()) == [path]
    cannot_write("/dev/full", "No space left")
    cannot_write("/nowhere/x", "No such file")


def test_a_path_may_have_any_bytes(written, tmp_path):
    path = tmp_path / os.fsdecode(b"\xff\xe4\xc3")
    assert result.Result(written, {"out": str(path)}).write() == 0
    assert path.exists()


def test_bytes_that_are_no_text_are_not_lost():
    root = result.begin("tx", os.fsdecode(b"\xff"), [], {"millrace": "1"})
    assert root["label"] == r"\xff"


def test_percentiles_are_of_the_values(written):
    points = written["trials"][0]["percentiles"]["latency"]
    assert [points[0][0], points[-1][0]] == [0, 100]
    for percentile, ns in points:
        rank = math.ceil(len(VALUES) * percentile / 100)
        exact = VALUES[max(rank, 1) - 1]
        assert exact <= ns <= exact * (1 + 1 / 1024)
    # The step behind 99.9 would need more than 1000 values.
    assert 99.9 < points[-2][0] < 99.96


def test_hdrhistogram_finds_all_values(folder):
    log = pytest.importorskip("hdrh.log")
    hdr = pytest.importorskip("hdrh.histogram").HdrHistogram
    text = (folder / "a.hdr").read_text("ascii")
    assert text.startswith(
        "#[Histogram log format version 1.3]\n#[StartTime: ")
    # The second trial has no latencies.
    line, = [line for line in text.splitlines() if line.startswith("Tag=")]
    tag, _, length_s, high_ms, _ = line.split(",")
    assert (tag, float(length_s)) == ("Tag=0-60B-500pps", 2)
    assert float(high_ms) == pytest.approx(VALUES[-1] / 1e6, abs=5e-4)
    reader = log.HistogramLogReader(str(folder / "a.hdr"),
                                    hdr(1, 2**40 - 1, 3))
    found = reader.get_next_interval_histogram()
    assert reader.get_next_interval_histogram() is None
    wanted = hdr(1, 2**40 - 1, 3)
    for value in VALUES:
        wanted.record_value(value)
    assert found.get_total_count() == len(VALUES)
    assert {item.value_iterated_to: item.count_at_value_iterated_to
            for item in found.get_recorded_iterator()} == \
        {item.value_iterated_to: item.count_at_value_iterated_to
         for item in wanted.get_recorded_iterator()}


def test_percentile_text(folder, written):
    assert not (folder / "a.hdr.1.hgrm").exists()
    lines = (folder / "a.hdr.0.hgrm").read_text("ascii").splitlines()
    table = [line.split() for line in lines[2:] if line[0] != "#"]
    of_json = written["trials"][0]["percentiles"]["latency"]
    assert len(table) == len(of_json)
    for row, (percentile, ns) in zip(table, of_json):
        assert float(row[0]) == pytest.approx(ns / 1000, abs=5e-4)
        assert float(row[1]) == pytest.approx(percentile / 100, abs=5e-10)
    assert table[-1][2] == "1000"
    assert lines[-2].startswith("#[Max ")
    assert lines[-2].replace(" ", "").endswith("998.001,Totalcount=1000]")


def test_percentiles_are_those_of_all_values():
    of = percentiles.Times(counted(range(1, 1001)))
    assert [of.at(p) for p in (0, 50, 99.9, 99.99, 100)] == [
        1, 500, 999, 1000, 1000]
    found = of.summary()
    assert found["mean"] == pytest.approx(500.5)
    assert found["stddev"] == pytest.approx(288.675, abs=5e-4)
    assert (found["n"], found["min"], found["max"]) == (1000, 1, 1000)


def test_no_values_have_no_percentiles():
    of = percentiles.Times(None)
    assert (of.at(50), of.summary(), of.percentiles(), of.coarse()) == (
        0, None, [], [])


def test_values_above_the_range_count_as_the_maximum():
    last = {"n": 2, "n_over": 1, "min": 5, "max": 1 << 50, "sum": 0,
            "sum_sq": 0, "counts": [[5, 1], [percentiles.LAST, 1]]}
    assert percentiles.Times(last).at(100) == 1 << 50


def test_buckets_are_narrow_and_without_gaps():
    for i in range(percentiles.LAST):
        low, end = percentiles.low(i), percentiles.low(i + 1)
        assert end - low == 1 or 0 < (end - low) * 1000 < low
        assert bucket(low) == bucket(end - 1) == i == percentiles.bucket_of(low)
    assert percentiles.low(percentiles.LAST + 1) == 1 << 40


def test_the_coarse_histogram_loses_no_value():
    values, ns = [], 1
    while ns < 1 << 40:
        values.append(ns)
        ns = ns * 21 // 20 + 1
    coarse, end = percentiles.Times(counted(values)).coarse(), 0
    for low, next_end, _ in coarse:
        assert low >= end
        end = next_end
        assert end == low + 1 if low < 64 else (end - low) / low <= 1 / 32
    assert sum(n for _, _, n in coarse) == len(values)
    assert len(coarse) > 300
