#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr test runs what it was told to, and counts what it could not run."""
import io
import os
import sys
import time
import unittest
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "test/support"))

import command  # noqa: E402 pylint: disable=wrong-import-position
import run_tests  # noqa: E402 pylint: disable=wrong-import-position
from host import limit  # noqa: E402 pylint: disable=wrong-import-position

NAMES = {"unit": ["pool/a", "pool/b", "bench/mlr"], "plain": ["bench/micro"],
         "netns": ["nat"], "style": ["text"], "tsan": ["pool/a"]}
OK = '{"name": "a", "result": "OK"}\n'
FAILED = '{"name": "b", "result": "FAIL"}\n'


class Results(unittest.TestCase):
    """What meson did not run has not passed."""

    def failed(self, log, n_tests, status):
        return [result for result in run_tests.results_of(
            "unit", log, n_tests, status, "meson's words\n") if result.failed]

    def test_meson_that_dies_midway_has_failed(self):
        for log, n_tests, status in (
                (OK, 2, 1), (OK, 2, 0), (OK, 1, 1), ("", 1, 0), ("", 1, -9),
                (OK + OK[:9], 2, 1)):
            with self.subTest(log=log, n_tests=n_tests, status=status):
                one, = self.failed(log, n_tests, status)
                self.assertIn("meson test", one.name)
                self.assertIn("meson's words", one.said)
                self.assertRegex(one.said[-1],
                                 f"status {status}, . of {n_tests} tests")

    def test_a_failed_test_is_reported_alone(self):
        self.assertEqual(self.failed(OK, 1, 0), [])
        self.assertEqual([r.name for r in self.failed(OK + FAILED, 2, 1)],
                         ["unit/b (fail)"])


class Names(unittest.TestCase):
    """A name that matches nothing is not all."""

    def test_words_choose_beginnings_of_names(self):
        for words, chosen, useless in (
                (["unit"], {"unit": None, "plain": None}, []),
                (["unit:pool/"], {"unit": ["pool/"]}, []),
                (["unit:bench/"], {"unit": ["bench/"], "plain": ["bench/"]},
                 []),
                (["unit:bench/mi"], {"plain": ["bench/mi"]}, []),
                (["unit:pool/", "unit"], {"unit": None, "plain": None}, []),
                (["netns", "netns:nat"], {"netns": None}, []),
                (["netns:typo", "style"], {"style": None}, ["netns:typo"]),
                (["tsan:flow/"], {}, ["tsan:flow/"])):
            self.assertEqual(run_tests.chosen_by(words, NAMES),
                             (chosen, useless), words)

    def test_nothing_that_matches_is_an_error(self):
        for words, said, error in (
                (["netns:typo"], "=== netns:typo: no test has such a name",
                 "nothing is run"),
                (["nets"], "", "no suite nets; there are: all, changed, netns")):
            out, err = io.StringIO(), io.StringIO()
            with redirect_stdout(out), redirect_stderr(err):
                self.assertIsNone(run_tests.choose(words, NAMES))
            self.assertIn(said, out.getvalue())
            self.assertIn(error, err.getvalue())

    def test_no_names_are_no_tests(self):
        runner = run_tests.Runner(1)
        tests = [{"name": name, "suite": ["millrace:unit"]}
                 for name in NAMES["unit"]]
        with mock.patch.object(runner, "introspect", return_value=tests):
            for names, n in ((None, 3), ([], 0), (["pool/"], 2)):
                self.assertEqual(
                    len(runner.tests(Path(), ("unit",), names)), n, names)


class Changed(unittest.TestCase):
    """Each file has tests, or is named."""

    def test_files_have_the_tests_that_they_can_break(self):
        for name, words in (
                ("test/support/host.py", "unit"),
                ("test/support/test.c", "unit"),
                ("test/support/unit.h", "unit:base/"),
                ("test/bench/micro/front.py", "plain:bench/micro"),
                ("test/demo/demo_test.py", "demo"),
                ("apps/demo/demo.py", "demo"),
                ("apps/bench/front/mr_bench/mlr.py", "gen"),
                ("apps/support/mr_support/text.py", "unit:devices/"),
                ("test/install/install_test.py", "install"),
                ("test/dpdk/driver_test.c", "dpdk:driver"),
                ("test/netns/lib/nat.py", "netns"),
                ("test/netns/test_tap.py", "netns:tap"),
                ("test/unit/pool/frag_test.c", "unit:pool/"),
                ("meson.build", "install"), ("mr", "install"),
                ("apps/options.py", "install"),
                ("config/nat/home.yaml", "install"),
                ("plugins/dpdk/mempool.c", "dpdk")):
            broken, unknown = run_tests.broken_by([name])
            self.assertIn(words, broken, name)
            self.assertIn("style", broken, name)
            self.assertEqual(unknown, [])

    def test_a_file_that_no_test_is_known_for_is_named(self):
        self.assertEqual(run_tests.broken_by(["docs/tour.md", "new/file.c"]),
                         (["style"], ["new/file.c"]))


class Deadline(unittest.TestCase):
    """A limit of time ends a command and all that it started."""

    def run_it(self, script, limit_s):
        lines = []
        with mock.patch.object(command, "END_S", 1.0):
            start_s = time.monotonic()
            done = command.Commands().run(["sh", "-c", script], limit_s,
                                          lines.append)
        self.assertLess(time.monotonic() - start_s, limit(20))
        return done, lines

    def test_a_command_that_ends(self):
        done, lines = self.run_it("echo a; echo b; printf c; exit 3", 60)
        self.assertEqual((done.status, done.output), (3, "a\nb\nc"))
        self.assertEqual(lines, ["a", "b"])

    def test_one_that_does_not_has_failed(self):
        for script in ("trap '' TERM; sleep 60 & sleep 60; sleep 60",
                       "trap 'exit 0' TERM; sleep 60 & wait", "sleep 60"):
            done, _ = self.run_it(script, 0.5)
            self.assertNotEqual(done.status, 0, script)
            self.assertIn("did not end within", done.output)

    def test_who_holds_the_pipe_does_not_keep_it(self):
        for script in ("sleep 60 & echo $!", "setsid sleep 60 & echo $!"):
            done, lines = self.run_it(script, 60)
            self.assertEqual(done.status, 0)
            if script.startswith("setsid"):
                os.kill(int(lines[0]), 9)

    def test_what_runs_ends_with_us(self):
        commands = command.Commands()
        done = commands.run(["sh", "-c", "echo a; exec sleep 60"], 60,
                            lambda _: commands.end())
        self.assertEqual(done.status, -15)
        self.assertEqual(commands.run(["true"], 60).status, -15)


if __name__ == "__main__":
    unittest.main()
