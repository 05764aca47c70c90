# SPDX-License-Identifier: BSD-3-Clause
"""Documents of mr-bench as others read them: by schema, CSV, HDR logs.

usage: document_test.py SCHEMA

HDR logs are read by a decoder written from the format's description, and by
PyPI's hdrhistogram where it is installed.
"""
import base64
import collections
import contextlib
import csv
import io
import json
import math
import os
import pathlib
import resource
import signal
import struct
import sys
import tempfile
import unittest
import zlib

try:
    import jsonschema
except ImportError:
    jsonschema = None
try:
    import hdrh.histogram
    import hdrh.log
except ImportError:
    hdrh = None

sys.dont_write_bytecode = True
for folder in "apps/bench/front", "apps/support":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / folder))
from mr_bench import result, times  # noqa: E402 pylint: disable=wrong-import-position

SCHEMA = ""
VALUES = [i * i for i in range(1000)]  # latencies of the first trial
BUILT = {"compiler": "gcc 12", "flags": "-O2", "millrace": "0.1.0"}
WAY = {"from": "xdp:v0", "to": "xdp:v1", "sent": 600, "unsent": 6, "received": 595,
       "unique": 590, "lost": 10, "duplicates": 5, "reordered": 0, "too_old": 0,
       "latency": {"p50": 7, "p99": 77, "max": 99}}

FOUND = {
    "files": ("out", "csv", "hdr"),
    "found": {
        "rows": [{"frame_bytes": 60, "goal": "ndr", "unit": "frames/s",
                  "note": 'comma, "quote"', "value": 1234567.5, "low": 1234e3,
                  "high": 1235e3, "is_limited_by_tester": False,
                  "trials": [0, 1]}],
        "selftest": [{"frame_bytes": 60, "mean_bytes": 60,
                      "ceiling_pps": 2.5e6}],
        "config": {"resolution": 0.005}, "measured": {"slope": -1.5}}}


def words(payload):
    """Numbers of a payload: zigzag, seven bits a byte, low ones first."""
    at = 0
    while at < len(payload):
        value = shift = 0
        while True:
            byte = payload[at]
            at += 1
            if shift == 56:
                value |= byte << shift
                break
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        yield value >> 1 ^ -(value & 1)


def decode(text):
    """{bucket: count} and digits of a histogram of a log, V2."""
    packed = base64.b64decode(text, validate=True)
    cookie, n_bytes = struct.unpack(">II", packed[:8])
    assert (cookie, n_bytes) == (0x1c849314, len(packed) - 8)
    plain = zlib.decompress(packed[8:])
    cookie, n_bytes, offset, digits, lowest, highest, ratio = \
        struct.unpack(">IIIIQQd", plain[:40])
    assert (cookie, n_bytes) == (0x1c849313, len(plain) - 40)
    assert (offset, lowest, highest, ratio) == (0, 1, 2 ** 40 - 1, 1.0)
    counts, i = {}, 0
    for word in words(plain[40:]):
        if word > 0:
            counts[i] = word
            i += 1
        else:
            i += -word
    return counts, digits


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


class Written(unittest.TestCase):
    """A document in all forms, in a folder."""

    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.made.name)
        late, first = measured([]), measured(VALUES)
        times.describe(late, 1514)
        buckets = times.describe(first, 60).counts
        root = result.begin("throughput", 'a "b"', ["throughput", "x"], BUILT)
        cls.result = result.Result(root, {
            kind: str(cls.folder / f"a.{kind}") for kind in FOUND["files"]})
        cls.result.add_trial(first, buckets)
        cls.result.add_trial(late, [])
        for _ in range(2):
            cls.result.add_interval(dict(first))
        cls.result.add(**FOUND["found"])
        assert cls.result.write() == 0
        cls.json = json.loads((cls.folder / "a.out").read_text("utf-8"))

    @classmethod
    def tearDownClass(cls):
        cls.made.cleanup()


class Forms(Written):
    """Each form says the same."""

    def test_json_is_as_its_schema_says(self):
        if jsonschema is None:
            self.skipTest("python3-jsonschema is missing")
        schema = json.loads(pathlib.Path(SCHEMA).read_text("utf-8"))
        jsonschema.Draft7Validator.check_schema(schema)
        validator = jsonschema.Draft7Validator(schema)
        self.assertEqual([error.message for error in
                          validator.iter_errors(self.json)], [])
        # A schema that allows everything would have passed that.
        for key in self.json:
            less = {k: v for k, v in self.json.items() if k != key}
            self.assertTrue(list(validator.iter_errors(less)), key)
        for place in ("rows", "trials", "series", "selftest"):
            more = json.loads(json.dumps(self.json))
            more[place][0]["x"] = 1
            self.assertTrue(list(validator.iter_errors(more)), place)

    def test_a_command_is_as_it_was_typed(self):
        root = result.begin("tx", "", ["tx", "--stream", "tcp size=80", "it's",
                                       os.fsdecode(b"\xff")], {"millrace": "1"})
        self.assertEqual(root["command"],
                         """mr-bench tx --stream 'tcp size=80' 'it'"'"'s' '\\xff'""")

    def test_a_trial_begins_where_the_one_before_ended(self):
        for place in ("trials", "series"):
            self.assertEqual([one["start_s"] for one in self.json[place]],
                             [0, 2.1])
        self.assertEqual(self.json["series"][0]["latency"]["p99"],
                         self.json["trials"][0]["latency"]["p99"])

    def test_csv_has_the_trials_where_there_are_no_rows(self):
        text = result.csv_text(self.json | {"rows": []})
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual([row["latency_max"] for row in rows],
                         [str(VALUES[-1]), ""])
        self.assertEqual((rows[1]["start_s"], rows[1]["tx_unsent"]),
                         ("2.1", "10"))

    def test_a_file_is_whole_or_as_it_was(self):
        path = self.folder / "x" / "x.json"
        path.parent.mkdir()
        path.write_text("old")
        one = result.Result(self.json, {"out": str(path)})
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        was = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
        try:
            said = self.cannot_write(one)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, was)
        self.assertIn(f"cannot write {path}: File too large", said)
        self.assertEqual(path.read_text(), "old")
        self.assertEqual(one.write(), 0)
        self.assertEqual(json.loads(path.read_text("utf-8")), self.json)
        # Nothing is left beside it.
        self.assertEqual(list(path.parent.iterdir()), [path])
        for path, why in (("/dev/full", "No space left"),
                          ("/nowhere/x", "No such file")):
            said = self.cannot_write(result.Result(self.json, {"out": path}))
            self.assertIn(f"cannot write {path}: {why}", said)

    def test_a_path_may_have_any_bytes(self):
        path = self.folder / os.fsdecode(b"\xff\xe4\xc3")
        one = result.Result(self.json, {"out": str(path)})
        self.assertEqual(one.write(), 0)
        path.unlink()

    def test_bytes_that_are_no_text_are_not_lost(self):
        root = result.begin("tx", os.fsdecode(b"\xff"), [], {"millrace": "1"})
        self.assertEqual(root["label"], r"\xff")

    def cannot_write(self, one):
        """What it says on stderr."""
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(one.write(), 1)
        return said.getvalue()

    def test_csv_has_the_rows(self):
        with (self.folder / "a.csv").open(newline="", encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
        self.assertEqual(len(rows), 1)
        self.assertEqual(rows[0]["label"], 'a "b"')
        self.assertEqual(rows[0]["note"], 'comma, "quote"')
        self.assertEqual(float(rows[0]["value"]), 1234567.5)
        self.assertEqual(rows[0]["unit"], "frames/s")

    def test_percentiles_are_of_the_values(self):
        trial = self.json["trials"][0]
        points = trial["percentiles"]["latency"]
        self.assertEqual([points[0][0], points[-1][0]], [0, 100])
        for percentile, ns in points:
            rank = math.ceil(len(VALUES) * percentile / 100)
            exact = VALUES[max(rank, 1) - 1]
            self.assertLessEqual(exact, ns)
            self.assertLessEqual(ns, exact * (1 + 1 / 1024))
        # The step behind 99.9 would need more than 1000 values.
        self.assertLess(points[-2][0], 99.96)
        self.assertGreater(points[-2][0], 99.9)


class Statistics(unittest.TestCase):
    """Of histograms."""

    def test_percentiles_are_those_of_the_values(self):
        of = times.Times(counted(range(1, 1001)))
        self.assertEqual([of.at(p) for p in (0, 50, 99.9, 99.99, 100)],
                         [1, 500, 999, 1000, 1000])
        found = of.summary()
        self.assertAlmostEqual(found["mean"], 500.5, 9)
        self.assertAlmostEqual(found["stddev"], 288.675, 3)
        self.assertEqual((found["n"], found["min"], found["max"]), (1000, 1, 1000))

    def test_of_nothing_there_is_nothing(self):
        of = times.Times(None)
        self.assertEqual((of.at(50), of.summary(), of.percentiles(), of.coarse()),
                         (0, None, [], []))

    def test_what_is_above_the_range_is_the_maximum(self):
        last = {"n": 2, "n_over": 1, "min": 5, "max": 1 << 50, "sum": 0, "sum_sq": 0,
                "counts": [[5, 1], [times.LAST, 1]]}
        self.assertEqual(times.Times(last).at(100), 1 << 50)

    def test_buckets_are_narrow_and_without_gaps(self):
        for i in range(times.LAST):
            low, end = times.low(i), times.low(i + 1)
            assert end - low == 1 or 0 < (end - low) * 1000 < low
            assert bucket(low) == bucket(end - 1) == i == times.bucket_of(low)
        self.assertEqual(times.low(times.LAST + 1), 1 << 40)

    def test_the_coarse_histogram_loses_no_value(self):
        values, ns = [], 1
        while ns < 1 << 40:
            values.append(ns)
            ns = ns * 21 // 20 + 1
        coarse, end = times.Times(counted(values)).coarse(), 0
        for low, next_end, _ in coarse:
            assert low >= end
            end = next_end
            assert end == low + 1 if low < 64 else (end - low) / low <= 1 / 32
        self.assertEqual(sum(n for _, _, n in coarse), len(values))
        self.assertGreater(len(coarse), 300)


class Hdr(Written):
    """The log of histograms."""

    def lines(self):
        """(fields, base64) of each line of the log that has a histogram."""
        text = (self.folder / "a.hdr").read_text("ascii")
        self.assertTrue(text.startswith(
            "#[Histogram log format version 1.3]\n#[StartTime: "))
        return [line.split(",") for line in text.splitlines()
                if line.startswith("Tag=")]

    def test_own_decoder_finds_all_values(self):
        lines = self.lines()
        self.assertEqual(len(lines), 1)  # the second trial has no latencies
        tag, _, length_s, high_ms, text = lines[0]
        self.assertEqual(tag, "Tag=0-60B-500pps")
        self.assertEqual(float(length_s), 2)
        self.assertAlmostEqual(float(high_ms), VALUES[-1] / 1e6, 3)
        counts, digits = decode(text)
        self.assertEqual(digits, 3)
        expected = {}
        for value in VALUES:
            expected[bucket(value)] = expected.get(bucket(value), 0) + 1
        self.assertEqual(counts, expected)

    def test_hdrhistogram_finds_all_values(self):
        if hdrh is None:
            self.skipTest("hdrhistogram is missing")
        reader = hdrh.log.HistogramLogReader(
            str(self.folder / "a.hdr"),
            hdrh.histogram.HdrHistogram(1, 2 ** 40 - 1, 3))
        histogram = reader.get_next_interval_histogram()
        self.assertEqual(histogram.get_total_count(), len(VALUES))
        self.assertTrue(histogram.values_are_equivalent(
            histogram.get_value_at_percentile(50), VALUES[499]))
        self.assertIsNone(reader.get_next_interval_histogram())

    def test_percentile_text(self):
        self.assertFalse((self.folder / "a.hdr.1.hgrm").exists())
        lines = (self.folder / "a.hdr.0.hgrm").read_text("ascii").splitlines()
        table = [line.split() for line in lines[2:] if line[0] != "#"]
        of_json = self.json["trials"][0]["percentiles"]["latency"]
        self.assertEqual(len(table), len(of_json))
        for row, (percentile, ns) in zip(table, of_json):
            self.assertAlmostEqual(float(row[0]), ns / 1000, 3)
            self.assertAlmostEqual(float(row[1]), percentile / 100, 9)
        self.assertEqual(table[-1][2], "1000")
        self.assertRegex(lines[-2], r"#\[Max .*998\.001, Total count .*1000\]")


if __name__ == "__main__":
    SCHEMA, = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
