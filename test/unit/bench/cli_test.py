# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench as a user meets it: exit codes, one-line errors, forms of output.

usage: cli_test.py MR_BENCH SCHEMA NET_SCHEMA     (no privileges, no huge pages)
"""
import fcntl
import json
import os
import pathlib
import pty
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.dom.minidom

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import signals  # noqa: E402 pylint: disable=wrong-import-position
from errors import errors_of  # noqa: E402 pylint: disable=wrong-import-position

try:
    import jsonschema
except ImportError:
    jsonschema = None

PROGRAM = SCHEMA = NET_SCHEMA = ""
LIMIT_S = 60
QUICK = ["mem", "--quick", "--samples", "3", "--sample-ms", "1"]


def run(*arguments):
    """Run to the end: exit code, stdout, stderr."""
    done = subprocess.run([PROGRAM, *arguments], capture_output=True,
                          text=True, check=False, timeout=LIMIT_S)
    return done.returncode, done.stdout, done.stderr


class Errors(unittest.TestCase):
    """What cannot be is refused with one line that names cause and cure."""

    CASES = [
        (2, "no command; there are: mem flow", []),
        (2, "no command 'men'; there are: mem flow", ["men"]),
        (2, "tx: no port; name one", ["tx"]),
        (2, "'pair:b' has no partner", ["loop", "pair:b"]),
        (1, "nobody has its other end", ["tx", "pair:b"]),
        (2, "--rate: '5x' ends in no unit", ["tx", "--rate", "5x", "null:"]),
        (2, "a rate in % needs a link whose speed is known",
         ["tx", "-Q", "--rate", "5%", "null:"]),
        (2, "--virtual: time stands still for null:",
         ["tx", "--virtual", "null:"]),
        (2, "'5:4' is no MAC address", ["tx", "--dst-mac", "5:4", "null:"]),
        (2, "--pace: full speed has none",
         ["tx", "--pace", "poisson", "null:"]),
        (2, "--pace-frames belongs to --pace bursts",
         ["tx", "--rate", "1k", "--pace-frames", "3", "null:"]),
        (2, "mr-bench tx --help lists them", ["tx", "--nope"]),
        (2, "no command '--quick'", ["--quick", "mem"]),
        (2, "no option '--nope'", ["mem", "--nope"]),
        (2, "no row has such a name", ["mem", "--only-ours", "B99"]),
        (2, "mr-bench flow --list has them", ["flow", "B01"]),
        (2, "no row has such a name and a player of --only",
         ["mem", "--only", "malloc", "B18"]),
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
                self.assertRegex(errors[0], "^mr-bench: ")
                self.assertIn(words, errors[0])

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run(
                [PROGRAM, *QUICK, "--json", "--only", "plain", "B01/1 core"],
                stdout=full, stderr=subprocess.PIPE, text=True, check=False,
                timeout=LIMIT_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write to stdout", done.stderr)


class Output(unittest.TestCase):
    """Each form says the same."""

    def test_help_and_version(self):
        code, out, err = run("--help")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"^usage: mr-bench COMMAND ")
        self.assertRegex(out, r"(?m)^  mem +the memory layer")
        code, out, err = run("mem", "--help")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"^usage: mr-bench mem\|flow\|fwd ")
        code, out, err = run("--version")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"^mr-bench \d+\.\d+\.\d+\n$")

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
        self.assertRegex(out, r"(?m)^  2: array of 64 from the depot +<= +1 ns ")

    def check(self, result):
        """An object of --json is as the schema says."""
        schema = json.loads(pathlib.Path(SCHEMA).read_text(encoding="utf-8"))
        if jsonschema is None:
            self.skipTest("python3-jsonschema is missing")
        jsonschema.Draft7Validator.check_schema(schema)
        validator = jsonschema.Draft7Validator(schema)
        self.assertEqual([error.message for error in
                          validator.iter_errors(result)], [])
        # A schema that allows everything would have passed that.
        self.assertTrue(list(validator.iter_errors({**result, "v": 2})))
        del result["rows"][0]["players"]
        self.assertTrue(list(validator.iter_errors(result)))

    def test_json_is_as_its_schema_says(self):
        code, out, _ = run("mem", "--quick", "--json", "B01",
                           "B06/from=cache bulk=32", "from=depot bulk=32")
        self.assertEqual(code, 0)
        result = json.loads(out)
        self.assertIs(result["complete"], True)
        self.assertEqual(len(result["rows"]), 2 + 2)
        self.assertTrue(result["machine"]["command"].endswith(
            "--json B01 'B06/from=cache bulk=32' 'from=depot bulk=32'"))
        for row in result["rows"]:
            for player in row["players"]:
                if "why_not" in player:
                    continue
                ns = player["ns"]
                self.assertLessEqual(ns["min"], ns["median"])
                self.assertLessEqual(ns["low"], ns["median"])
                self.assertLessEqual(ns["median"], ns["high"])
                self.assertGreaterEqual(player["operations"], 64)
        array = result["rows"][3]["players"][0]
        self.assertEqual(array["name"], "array")
        # 512 pages by magazine: 1000 pages need 1.95.
        self.assertAlmostEqual(array["counts"]["refill_per_1000"], 1.95, 2)
        goals = {goal["goal"]: goal for goal in result["goals"]}
        goal = goals["burst of 32 by address"]
        cached = result["rows"][2]["players"][0]
        self.assertEqual(goal["measured"]["value"], cached["ns"]["median"])
        self.assertEqual(goal["state"], "reached"
                         if cached["ns"]["median"] <= 0.6 else "missed")
        self.check(result)

    def test_the_machine_is_the_one_the_kernel_describes(self):
        _, out, _ = run(*QUICK, "--json", "--only", "plain", "B01/1 core")
        machine = json.loads(out)["machine"]
        def text(path):
            file = pathlib.Path(path)
            return file.read_text(encoding="utf-8").strip() \
                if file.exists() else ""
        cpus = "/sys/devices/system/cpu"
        self.assertEqual(machine["kernel_words"], text("/proc/cmdline")[:1023])
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
        self.assertIn(states.pop("2: array of 64 from the depot"),
                      ("reached", "missed"))
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
            [player["name"] for player in json.loads(out)["rows"][0]["players"]
             if player["name"].startswith("return=")],
            ["return=local", "return=home"])

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
                [PROGRAM, *QUICK, "--json", "--only", "ours,dpdk",
                 "B06/from=cache bulk=32"], capture_output=True, text=True,
                check=False, timeout=LIMIT_S, **nobody)
        except PermissionError:
            self.skipTest("nobody may run mr-bench there")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        if result["why_no_dpdk"]:
            self.skipTest(result["why_no_dpdk"])
        self.assertIn("4 KiB pages", result["machine"]["dpdk"])
        for player in result["rows"][0]["players"]:
            if player["side"] == "ours":
                self.assertEqual(player["counts"]["huge_percent"], 0)

    def test_out_has_tables_and_charts(self):
        with tempfile.TemporaryDirectory() as folder:
            code, _, err = run(*QUICK, "--only", "ours,plain,malloc",
                               "--out", folder, "B01/1 core", "B06/from=depot")
            self.assertEqual(code, 0, err)
            top = pathlib.Path(folder)
            self.assertEqual(sorted(p.name for p in top.iterdir()),
                             ["B01-1-core.svg", "B06-from-depot.svg",
                              "report.json", "report.md"])
            for path in top.glob("*.svg"):
                root = xml.dom.minidom.parse(str(path)).documentElement
                self.assertEqual(root.tagName, "svg")
                self.assertTrue(root.getElementsByTagName("rect"))
            chart = (top / "B06-from-depot.svg").read_text(encoding="utf-8")
            self.assertEqual(chart.count("<circle"), 4 * (9 + 1))
            table = (top / "report.md").read_text(encoding="utf-8")
            self.assertEqual(len(re.findall(r"(?m)^### from=depot", table)), 9)
            widths = {line.count("|") for line in table.splitlines()
                      if line.startswith("|")}
            self.assertEqual(len(widths), 1, "a table has ragged lines")
            result = json.loads((top / "report.json").read_text(
                encoding="utf-8"))
            self.assertEqual(len(result["rows"]), 10)


class Traffic(unittest.TestCase):
    """tx and loop without any device."""

    KNOWN = ["loop", "--virtual", "--rate", "1M", "--duration", "0.1",
             "--device", "loss=1000,delay=50us", "pair:a", "pair:b"]

    def test_a_known_device_is_found_out(self):
        code, out, err = run(*self.KNOWN)
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"(?m)^sent +100000 frames in 0\.100 s: "
                         r"1\.000 Mframes/s, 672\.0 Mbit/s .* 512\.0 Mbit/s ")
        self.assertRegex(out, r"(?m)^asked +1\.000 Mframes/s; unsent 0 of 100000$")
        self.assertRegex(out, r"(?m)^received +99900: .* lost 100 \(0\.1 %\)")
        self.assertRegex(out, r"(?m)^latency +min 50\.00 us .* max 50\.00 us$")
        self.assertRegex(out, r"(?m)^device +there: received 100000, "
                         r"forwarded 99900, lost 100,")
        self.assertRegex(err, r"(?m)^port pair:a +mode memory")

    def test_quiet_is_quiet(self):
        code, out, err = run("tx", "--quiet", "--count", "1000", "null:")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"^sent +1000 frames ")

    def test_a_document_has_what_was_sent(self):
        for words, streams in (
                ([], ["udp ip.src=198.18.0.1 ip.dst=198.19.0.1 udp.src=1024 "
                      "udp.dst=9"]),
                (["-S", "size=99", "-S", "tcp"], ["size=99", "tcp"])):
            code, out, err = run("tx", "-j", "-Q", "-n", "10", *words, "null:")
            self.assertEqual((code, err), (0, ""))
            self.assertEqual(json.loads(out)["streams"], streams)

    def test_json_lines_are_as_the_schema_says(self):
        code, out, err = run("loop", "--json-lines", "--rate", "1k", "-d",
                             "2.2", "--device", "loss=10", "pair:a", "pair:b")
        self.assertEqual(code, 0, err)
        *lines, document = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(document["trials"][0]["tx"]["due"], 2200)
        self.assertIn(len(lines), (1, 2))
        self.assertGreaterEqual(lines[0]["t"], 1)
        self.assertNotIn("lost", lines[0]["rx"])
        for now, then in zip(lines[1:] + [document["trials"][0]], lines):
            self.assertGreater(now["tx"]["sent"], then["tx"]["sent"])
            self.assertGreater(now["rx"]["unique"], then["rx"]["unique"])
        if jsonschema:
            schema = json.loads(pathlib.Path(NET_SCHEMA).read_text("utf-8"))
            jsonschema.validate(document, schema)
            for line in lines:
                jsonschema.validate(line, {
                    "$schema": schema["$schema"],
                    "allOf": [{"$ref": "#/definitions/line"}],
                    "definitions": schema["definitions"]})
        code, out, _ = run("tx", "--json-lines", "--quiet", "--count", "10",
                           "null:")
        self.assertEqual(out.count("\n"), 1)

    def test_lines_that_are_not_read_do_not_hold_up_signals(self):
        out, stdout = os.pipe()
        fcntl.fcntl(stdout, fcntl.F_SETPIPE_SZ, 4096)
        os.write(stdout, b"\n" * 4096)
        with subprocess.Popen([PROGRAM, "tx", "--json-lines", "--rate", "1k",
                               "null:"], stdout=stdout) as process:
            signals.await_sigint(process)
            time.sleep(1.5)  # the first line is due
            end_s = time.monotonic() + 60
            # The first ends the trial, the second one the last document.
            while process.poll() is None and time.monotonic() < end_s:
                process.send_signal(signal.SIGINT)
                time.sleep(0.05)
            process.kill()
        os.close(out)
        os.close(stdout)
        self.assertEqual(process.returncode, -signal.SIGINT)

    def test_a_size_that_looks_like_one_with_fcs_is_pointed_at(self):
        for words, hint in ((["--size", "64"], True), (["--size", "60"], False),
                            (["--size", "64", "-Q"], False)):
            code, _, err = run("tx", "--count", "10", *words, "null:")
            self.assertEqual(code, 0, err)
            self.assertEqual("--size is without the FCS: frames of 68 bytes on "
                             "the wire; 60 makes those of 64\n" in err, hint)

    def test_nothing_received_is_explained(self):
        code, _, err = run("loop", "-Q", "--virtual", "--rate", "1M",
                           "--count", "100", "--device", "loss=1",
                           "pair:a", "pair:b")
        self.assertEqual(code, 1)
        self.assertRegex(err, "^mr-bench: 100 frames left pair:a and none "
                         "reached pair:b.* there is no path")

    def test_a_bounded_run_that_receives_nothing_has_failed(self):
        # Its other end is there, and silent.
        code, out, err = run("rx", "-Q", "--json", "--duration", "0.2",
                             "pcap:tx=/dev/null")
        self.assertEqual(code, 1, err)
        self.assertRegex(err, r"^mr-bench: pcap:\S* received nothing in "
                         r"0\.\d+ s: is the sender running.*\n$")
        document = json.loads(out)
        self.assertEqual((document["complete"], document["why_incomplete"]),
                         (False, "nothing came"))

    def test_what_figures_depend_on_is_in_the_document(self):
        code, out, err = run("loop", "--json", "--count", "100", "--rate",
                             "10k", "--cores", "0", "--dst-mac",
                             "02:00:00:00:00:0A", "--page-bytes", "8192",
                             "--pool-pages", "9000", "pair:a", "pair:a")
        self.assertEqual(code, 0, err)
        document = json.loads(out)
        config = document["config"]
        self.assertEqual(
            [config[key] for key in ("cores", "dst_mac", "page_bytes",
                                     "pool_pages", "promisc")],
            [[0], "02:00:00:00:00:0a", 8192, 9000, "auto"])
        self.assertEqual(document["cores"], [0])
        self.assertGreater(document["trials"][0]["clock_error_ns"], 0)
        code, out, err = run(*self.KNOWN, "--json")
        self.assertEqual(code, 0, err)
        document = json.loads(out)
        self.assertEqual(document["config"]["dst_mac"], "auto")
        self.assertEqual(document["config"]["cores"], [])
        self.assertEqual(len(document["cores"]), 1)
        self.assertEqual(document["trials"][0]["clock_error_ns"], 0)

    def test_a_terminal_has_a_live_view_and_q_ends_it(self):
        master, slave = pty.openpty()
        with subprocess.Popen([PROGRAM, "loop", "--rate", "10k", "pair:a",
                               "pair:a"], stdin=slave, stdout=slave,
                              stderr=subprocess.DEVNULL,
                              env={**os.environ, "TERM": "xterm"}) as process:
            os.close(slave)
            said, has_quit = b"", False
            begin = time.monotonic()
            deadline = begin + LIMIT_S
            while time.monotonic() < deadline:
                try:
                    said += os.read(master, 65536)
                except OSError:  # all has been read, and it has ended
                    break
                # What is redrawn comes in pieces: only the title is sure.
                if b"q ends" in said and not has_quit and \
                        time.monotonic() - begin > 1:
                    os.write(master, b"q")
                    has_quit = True
        os.close(master)
        self.assertEqual(process.returncode, 0)
        self.assertIn(b"q ends", said)
        # The terminal is as it was, and the summary stays on it.
        self.assertIn(b"\x1b[?1049l", said)
        self.assertRegex(said.rpartition(b"\x1b[?1049l")[2],
                         rb"sent +\d+ frames in")

    def test_sigint_ends_tx_with_its_figures(self):
        with subprocess.Popen([PROGRAM, "tx", "null:"], text=True,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            signals.await_sigint(process)
            time.sleep(3)  # 100000 frames, on a busy machine, too
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0, err)
        self.assertRegex(out, r"(?m)^sent +\d{6,} frames ")


class Signals(unittest.TestCase):
    """Ctrl-C reports what was measured."""

    def interrupted(self, *arguments):
        """The report, and the seconds from SIGINT to the end."""
        with subprocess.Popen([PROGRAM, "mem", "--json", *arguments],
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
        self.assertLess(seconds, 5)
        self.assertNotIn("ns", result["rows"][0]["players"][-1])


if __name__ == "__main__":
    PROGRAM, SCHEMA, NET_SCHEMA = sys.argv[1:]
    del sys.argv[1:]
    unittest.main()
