# SPDX-License-Identifier: BSD-3-Clause
"""Micro-benchmarks as a user meets them: exit codes, errors, forms of output.

usage: micro_test.py MR_MICRO SCHEMA     (no privileges, no huge pages)
"""
import json
import os
import pathlib
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))

import signals  # noqa: E402 pylint: disable=wrong-import-position
from errors import errors_of  # noqa: E402 pylint: disable=wrong-import-position
from host import limit  # noqa: E402 pylint: disable=wrong-import-position

try:
    import jsonschema
except ImportError:
    jsonschema = None

FRONT: list[str] = []
SCHEMA = ""
LIMIT_S = limit(60)
QUICK = ["mem", "--quick", "--samples", "3", "--sample-ms", "1"]


def run(*arguments):
    """Run to the end: exit code, stdout, stderr."""
    done = subprocess.run([*FRONT, *arguments], capture_output=True,
                          text=True, check=False, timeout=LIMIT_S)
    return done.returncode, done.stdout, done.stderr


class Errors(unittest.TestCase):
    """Wrong options are refused in one line that names the cause and the
    remedy."""

    CASES = [
        (2, "unrecognized arguments: --nope", ["mem", "--nope"]),
        (2, "no row has such a name", ["mem", "--only-ours", "B99"]),
        (2, "mr bench flow --list has them", ["flow", "B01"]),
        (2, "no row has such a name and a variant of --only",
         ["mem", "--only", "malloc", "B18"]),
        (2, "not a whole number from 1 to 512", ["mem", "--samples", "513"]),
        (2, "not a whole number from 1 to 10000", ["mem", "--sample-ms", "10001"]),
        (2, "--only: 'our' is not one of: ours, dpdk, kernel, plain, malloc",
         ["mem", "--only", "our"]),
        (2, "--cores: 'all' is not a list of cores such as 1,3-5",
         ["mem", "--cores", "all"]),
        (2, "core 1000 is not there", ["mem", "--cores", "1000"]),
        (1, "/nowhere/x: No such file",
         [*QUICK, "--only", "plain", "--out", "/nowhere/x", "B01/1 core"]),
    ]

    def test_one_line_and_the_exit_code(self):
        for code, words, arguments in self.CASES:
            with self.subTest(arguments):
                got, _, err = run(*arguments)
                self.assertEqual(got, code, err)
                errors = errors_of(err)
                self.assertEqual(len(errors), 1, err)
                self.assertRegex(errors[0], "^mr bench( mem)?: ")
                self.assertIn(words, errors[0])

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run(
                [*FRONT, *QUICK, "--json", "--only", "plain", "B01/1 core"],
                stdout=full, stderr=subprocess.PIPE, text=True, check=False,
                timeout=LIMIT_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write to stdout", done.stderr)


class Output(unittest.TestCase):
    """All forms of output agree."""

    def test_list_has_workloads_and_rows(self):
        code, out, _ = run("mem", "--list", "--only", "ours,plain")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"(?m)^B01  baseline ")
        self.assertRegex(out, r"(?m)^  B06/from=depot bulk=64$")

    def test_table(self):
        code, out, _ = run(*QUICK, "--only", "ours,plain",
                           "from=depot bulk=64")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"(?m)^B06 bulk: from=depot bulk=64  \[by page")
        self.assertRegex(out, r"(?m)^  array +\d+\.\d+ ns .* x1\.00 ")
        self.assertRegex(out, r"(?m)^  plain stack +\d+\.\d+ ns .* x\d+\.\d")
        self.assertIn("left out by --only", out)
        self.assertRegex(out, r"1 rows; \d+ of \d+ samples put aside")
        self.assertRegex(out, r"(?m)^  2: array of 64 from the depot +ns +\d")

    def check(self, result):
        """Lines of --json match the schema."""
        schema = json.loads(pathlib.Path(SCHEMA).read_text(encoding="utf-8"))
        if jsonschema is None:
            self.skipTest("python3-jsonschema is missing")
        jsonschema.Draft7Validator.check_schema(schema)
        validator = jsonschema.Draft7Validator(schema)
        self.assertEqual([error.message for error in
                          validator.iter_errors(result)], [])
        # A schema that allows everything would accept that.
        self.assertTrue(list(validator.iter_errors({**result, "v": 2})))
        del result["rows"][0]["players"]
        self.assertTrue(list(validator.iter_errors(result)))

    def test_json_is_as_its_schema_says(self):
        code, out, _ = run("mem", "--quick", "--json", "B01",
                           "B06/from=cache bulk=32", "from=depot bulk=32")
        self.assertEqual(code, 0)
        result = json.loads(out)
        self.assertIs(result["complete"], True)
        self.assertEqual(len(result["rows"]), 1 + 2)
        self.assertTrue(result["machine"]["command"].endswith(
            "--json B01 'B06/from=cache bulk=32' 'from=depot bulk=32'"))
        for row in result["rows"]:
            for variant in row["players"]:
                if "why_not" in variant:
                    continue
                ns = variant["ns"]
                self.assertLessEqual(ns["min"], ns["median"])
                self.assertLessEqual(ns["low"], ns["median"])
                self.assertLessEqual(ns["median"], ns["high"])
                self.assertGreaterEqual(variant["operations"], 64)
        array = result["rows"][2]["players"][0]
        self.assertEqual(array["name"], "array")
        # 512 pages per magazine: 1000 pages need 1.95.
        self.assertAlmostEqual(array["counts"]["refill_per_1000"], 1.95, 2)
        goals = {goal["goal"]: goal for goal in result["goals"]}
        goal = goals["burst of 32 by address"]
        cached = result["rows"][1]["players"][0]
        self.assertEqual(goal["measured"]["value"], cached["ns"]["median"])
        self.assertEqual(goal["state"], "reported")
        self.check(result)

    def test_the_machine_is_the_one_the_kernel_describes(self):
        _, out, _ = run(*QUICK, "--json", "--only", "plain", "B01/1 core")
        machine = json.loads(out)["machine"]
        def text(path):
            file = pathlib.Path(path)
            return file.read_text(encoding="utf-8").strip() \
                if file.exists() else ""
        cpus = "/sys/devices/system/cpu"
        self.assertEqual(machine["kernel_words"], text("/proc/cmdline"))
        self.assertEqual(machine["kernel"],
                         f"{platform.system()} {platform.release()}")
        self.assertEqual(machine["isolated"], text(f"{cpus}/isolated"))
        self.assertEqual(machine["smt"], text(f"{cpus}/smt/active") == "1")
        self.assertEqual(machine["cores"], os.cpu_count())
        self.assertIn(f"[{machine['thp']}]",
                      text("/sys/kernel/mm/transparent_hugepage/enabled"))
        affected = [file for file in pathlib.Path(
            f"{cpus}/vulnerabilities").glob("*")
            if text(file) != "Not affected"]
        self.assertEqual([line.split(":")[0] for line in
                          machine["vulnerabilities"]],
                         sorted(file.name for file in affected))
        self.assertEqual("virtual machine" in machine["guest"],
                         " hypervisor" in text("/proc/cpuinfo"))

    def test_goals_lists_those_that_were_not_run(self):
        code, out, err = run(*QUICK, "--goals", "--json", "--only-ours",
                             "from=depot bulk=64")
        self.assertEqual(code, 0, err)
        result = json.loads(out)
        states = {goal["goal"]: goal["state"] for goal in result["goals"]}
        self.assertEqual(states.pop("2: array of 64 from the depot"),
                         "reported")
        self.assertEqual(set(states.values()), {"not run"})
        self.assertNotIn("bulk lookup of 1 M: rte_hash by ours", states)
        self.check(result)

    def test_goals_runs_fewer_rows_and_players(self):
        _, rows, _ = run("mem", "--goals", "--list")
        self.assertIn("  B13/22.11 keep=32 get=32 put=32 threads=1\n", rows)
        self.assertNotIn("  B13/22.11 keep=32 get=1 put=1 threads=1\n", rows)
        code, _, err = run("mem", "--goals", "--only-ours", "--quick",
                           "B06/from=pages bulk=2")
        self.assertEqual(code, 2, err)
        code, out, err = run(*QUICK, "--goals", "--json", "--only-ours",
                             "B17/burst=32 pools=1 owners=1 threads_per_core=1")
        self.assertEqual(code, 0, err)
        self.assertEqual(
            [variant["name"] for variant in json.loads(out)["rows"][0]["players"]
             if variant["name"].startswith("ours")], ["ours"])

    def test_frames_of_two_pools_are_of_two_pools(self):
        code, out, err = run(*QUICK, "--json", "--only-ours",
                             "22.11 keep=32 get=32 put=32 threads=1",
                             "22.11 keep=32 get=1 put=1 threads=1")
        self.assertEqual(code, 0, err)
        result = json.loads(out)
        self.check(json.loads(out))
        for row in result["rows"]:
            counts = row["players"][-1]["counts"]
            self.assertGreater(counts["fast_of_pool_2_per_1000"], 400)
            self.assertGreater(counts["fast_per_1000"], 400)

    def test_rows_with_latencies_are_as_the_schema_says(self):
        for name in ("B17/burst=32 pools=1 owners=1 threads_per_core=1",
                     "B19/threads_per_core=1"):
            with self.subTest(name):
                code, out, err = run(*QUICK, "--json", "--only-ours", name)
                self.assertEqual(code, 0, err)
                result = json.loads(out)
                counts = result["rows"][0]["players"][0]["counts"]
                self.assertLessEqual(counts["p50_ns"], counts["p99.9_ns"])
                self.assertLessEqual(counts["huge_percent"], 100)
                self.check(result)

    def test_both_sides_have_small_pages_if_one_has(self):
        nobody = {"user": 65534, "extra_groups": []} \
            if os.geteuid() == 0 else {}
        try:
            done = subprocess.run(
                [*FRONT, *QUICK, "--json", "--only", "ours,dpdk",
                 "B06/from=cache bulk=32"], capture_output=True, text=True,
                check=False, timeout=LIMIT_S, **nobody)
        except PermissionError:
            self.skipTest("nobody may run mr-bench there")
        if "Permission denied" in done.stderr:
            self.skipTest("nobody may not read this checkout")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        if result["why_no_dpdk"]:
            self.skipTest(result["why_no_dpdk"])
        self.assertIn("4 KiB pages", result["machine"]["dpdk"])
        for variant in result["rows"][0]["players"]:
            if variant["side"] == "ours":
                self.assertEqual(variant["counts"]["huge_percent"], 0)

    def test_out_has_tables(self):
        with tempfile.TemporaryDirectory() as folder:
            code, _, err = run(*QUICK, "--only", "ours,plain,malloc",
                               "--out", folder, "B01/1 core", "B06/from=depot")
            self.assertEqual(code, 0, err)
            top = pathlib.Path(folder)
            self.assertEqual(sorted(p.name for p in top.iterdir()),
                             ["report.json", "report.txt"])
            text = (top / "report.txt").read_text(encoding="utf-8")
            self.assertEqual(len(re.findall(r"(?m)^B06 bulk: from=depot", text)),
                             9)
            self.assertRegex(text, r"10 rows; \d+ of \d+ samples put aside")
            result = json.loads((top / "report.json").read_text(
                encoding="utf-8"))
            self.assertEqual(len(result["rows"]), 10)


class Fwd(unittest.TestCase):
    """Rows and variants are measured, and the report has them."""

    def test_report(self):
        code, out, err = run("fwd", "--quick", "--samples", "3", "--sample-ms",
                             "1", "--only-ours", "--json", "-q",
                             "W02/fields=1")
        self.assertEqual(code, 0, err)
        for row in json.loads(out)["rows"]:
            self.assertEqual([p["name"] for p in row["players"]],
                             ["plain", "stamped"])
            for variant in row["players"]:
                self.assertGreater(variant["ns"]["median"], 0)


class Signals(unittest.TestCase):
    """Ctrl-C reports what was measured."""

    def interrupted(self, *arguments):
        """The report, and the seconds from SIGINT to the end."""
        with subprocess.Popen([*FRONT, "mem", "--json", *arguments],
                              stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL,
                              text=True) as process:
            signals.await_sigint(process)
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            start = time.monotonic()
            out, _ = process.communicate(timeout=LIMIT_S)
            seconds = time.monotonic() - start
        self.assertEqual(process.returncode, 0)
        result = json.loads(out)
        self.assertIs(result["complete"], False)
        return result, seconds

    def test_sigint_ends_it_with_a_report(self):
        result, _ = self.interrupted("--only", "plain")
        self.assertEqual(result["rows"][0]["workload"], "B01")

    def test_a_long_sample_does_not_keep_it_waiting(self):
        result, seconds = self.interrupted(
            "--only", "plain", "--sample-ms", "10000", "B01/1 core")
        # A fraction of a second; the rest is for busy machines.
        self.assertLess(seconds, limit(5))
        self.assertNotIn("ns", result["rows"][0]["players"][-1])


if __name__ == "__main__":
    FRONT = [sys.executable, str(HERE / "run.py"), sys.argv[1]]
    SCHEMA = sys.argv[2]
    del sys.argv[1:]
    unittest.main()
