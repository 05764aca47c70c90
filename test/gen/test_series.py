# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench series: its table is made of what the documents found."""
import json
import sys
import types

from bench_program import TOP

sys.path.insert(0, str(TOP / "test/bench"))
import series_bench  # noqa: E402 pylint: disable=wrong-import-position


def row(goal, value, frame_bytes=60, is_limited=False):
    return {"goal": goal, "value": value, "frame_bytes": frame_bytes,
            "is_limited_by_tester": is_limited}


def write(folder, documents, failed=()):
    for name, rows in documents.items():
        # The path check is a trial, too, and nothing of it is a result.
        check = {"asked_pps": 1000, "latency": {"p50": 9e6, "p99": 9e6}}
        (folder / f"{name}.json").write_text(
            json.dumps({"rows": rows, "trials": [check]}))
    (folder / "plan.journal").write_text(json.dumps({"steps": {
        name: {"status": int(name in failed)} for name in documents}}))


def cells(folder):
    lines = series_bench.table(folder).splitlines()[2:]
    return {line.split(" | ")[0].strip("| "):
            [cell.strip(" |") for cell in line.split(" | ")[1:]]
            for line in lines}


def test_latency_is_what_was_found_not_the_path_check(tmp_path):
    write(tmp_path, {f"d+latency+{i}": [
        row("latency-p50-at-100%", 10e3 + i), row("latency-p99-at-100%", 20e3),
        row("latency-max-at-100%", 30e3)] for i in (1, 2, 3)})
    assert cells(tmp_path) == {
        "d": ["10.0 (10.0 to 10.0)", "20.0 (20.0 to 20.0)"]}


def test_what_the_tester_limits_is_marked(tmp_path):
    write(tmp_path, {
        "a+throughput+64+1": [row("ndr", 1e6)],
        "a+throughput+64+2": [row("ndr", 2e6)],
        "b+throughput+64+1": [row("ndr", 3e6, is_limited=True)],
        "b+latency+1": [row("latency-p50-at-100%", 5e3, is_limited=True)]})
    assert cells(tmp_path) == {
        "a": ["1.500 (1.000 to 2.000)", "", ""],
        "b": ["≥ 3.000 (3.000 to 3.000)", "≤ 5.0 (5.0 to 5.0)", ""]}


def test_of_another_build_nothing_is_done(tmp_path):
    args = types.SimpleNamespace(build=tmp_path / "b", folder=tmp_path,
                                 plan=tmp_path / "plan.yaml")
    (tmp_path / "plan.yaml").write_text("repeat: 3")
    names = ["apps/bench/mr-bench", "apps/bench/mr-bench-engine",
             "apps/l2fwd/mr-l2fwd", "apps/nat/mr-nat",
             "lib/link/libmillrace.so.0"]
    for name in names:
        (args.build / name).parent.mkdir(parents=True, exist_ok=True)
        (args.build / name).write_text("1")
    journal = tmp_path / "plan.journal"
    journal.write_text("{}")
    for _ in range(2):
        series_bench.forget_other_builds(args)
        assert journal.exists()
    (args.build / names[1]).write_text("22")
    series_bench.forget_other_builds(args)
    assert not journal.exists()
    journal.write_text("{}")
    (tmp_path / "plan.yaml").write_text("repeat: 30")
    series_bench.forget_other_builds(args)
    assert not journal.exists()


def test_what_failed_and_what_is_0_is_no_figure(tmp_path):
    write(tmp_path, {
        "a+throughput+64+1": [row("ndr", 1e6)],
        "a+throughput+64+2": [row("ndr", 9e6)],
        "a+latency+1": [row("latency-p50-at-100%", 0)]},
        failed=["a+throughput+64+2"])
    assert cells(tmp_path) == {"a": ["1.000 (1.000 to 1.000)", "", ""]}
    assert [path.stem for path in series_bench.done(tmp_path)] == [
        "a+latency+1", "a+throughput+64+1"]
