# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench as a user meets it: exit codes, one-line errors, forms of output.

usage: cli_test.py MR_BENCH NET_SCHEMA     (no privileges, no huge pages)
"""
import fcntl
import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))

import signals  # noqa: E402 pylint: disable=wrong-import-position
from errors import errors_of  # noqa: E402 pylint: disable=wrong-import-position
from host import limit, popen  # noqa: E402 pylint: disable=wrong-import-position

try:
    import jsonschema
except ImportError:
    jsonschema = None

PROGRAM = NET_SCHEMA = ""
LIMIT_S = limit(60)


def run(*arguments):
    """Run to the end: exit code, stdout, stderr."""
    done = subprocess.run([PROGRAM, *arguments], capture_output=True,
                          text=True, check=False, timeout=LIMIT_S)
    return done.returncode, done.stdout, done.stderr


class Errors(unittest.TestCase):
    """What cannot be is refused with one line that names cause and cure."""

    CASES = [
        (2, "no command; there are: tx rx", []),
        (2, "no command 'men'; there are: tx rx", ["men"]),
        (2, "tx: no port; name one", ["tx"]),
        (2, "'pair:b' has no partner", ["loop", "pair:b"]),
        (1, "nobody has its other end", ["tx", "pair:b"]),
        (2, "--rate: '5x' has no known unit", ["tx", "--rate", "5x", "null:"]),
        (2, "a rate in % needs a link whose speed is known",
         ["tx", "-q", "--rate", "5%", "null:"]),
        (2, "--virtual: time stands still for null:",
         ["tx", "--virtual", "null:"]),
        (2, "'5:4' is not a MAC address", ["tx", "--dst-mac", "5:4", "null:"]),
        (2, "--pace: full speed has none",
         ["tx", "--pace", "poisson", "null:"]),
        (2, "--pace-frames belongs to --pace bursts",
         ["tx", "--rate", "1k", "--pace-frames", "3", "null:"]),
        (2, "see mr-bench tx --help", ["tx", "--nope"]),
        (2, "'mem' is './mr bench mem' now", ["mem", "--quick"]),
        *((2, f"-{old} is now --{now}", [command, f"-{old}", "x"])
          for command, letters in (
              ("loop", {"R": "rate", "n": "count", "S": "stream", "z": "size",
                        "B": "bidirectional", "O": "out", "C": "csv"}),
              ("compare", {"b": "baseline", "t": "threshold", "a": "anyway"}),
              ("report", {"o": "out", "t": "title"}),
              ("plan", {"n": "dry-run", "d": "folder", "r": "repeat"}))
          for old, now in letters.items()),
    ]

    def test_one_line_and_the_exit_code(self):
        for code, words, arguments in self.CASES:
            with self.subTest(arguments):
                got, _, err = run(*arguments)
                self.assertEqual(got, code, err)
                errors = errors_of(err)
                self.assertEqual(len(errors), 1, err)
                self.assertRegex(errors[0], "^mr-bench( compare| report)?: ")
                self.assertIn(words, errors[0])


class Output(unittest.TestCase):
    """What is asked for goes to stdout."""

    def test_help_and_version(self):
        code, out, err = run("--help")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"^usage: mr-bench COMMAND ")
        self.assertRegex(out, r"(?m)^  tx +send frames")
        code, out, err = run("--version")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"^mr-bench \d+\.\d+\.\d+\n$")


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
                (["--stream", "size=99", "--stream", "tcp"], ["size=99", "tcp"])):
            code, out, err = run("tx", "-j", "-q", "--count", "10", *words,
                                 "null:")
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
        with popen([PROGRAM, "tx", "--json-lines", "--rate", "1k",
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

    def test_when_nobody_reads_it_any_more_it_ends_with_its_files(self):
        for words in [], ["--json-lines"]:
            out, stdout = os.pipe()
            os.close(out)
            with tempfile.NamedTemporaryFile() as file:
                with popen([PROGRAM, "tx", *words, "--rate", "1k", "--out",
                            file.name, "null:"], stdout=stdout, text=True,
                           stderr=subprocess.PIPE) as process:
                    os.close(stdout)
                    _, err = process.communicate(timeout=LIMIT_S)
                sent = json.loads(pathlib.Path(file.name).read_text(
                    "utf-8"))["trials"][0]["tx"]["sent"]
            self.assertEqual(process.returncode, 1)
            self.assertIn("mr-bench: standard output: Broken pipe\n", err)
            self.assertGreater(sent, 0)

    def test_a_size_that_looks_like_one_with_fcs_is_pointed_at(self):
        for words, hint in ((["--size", "64"], True), (["--size", "60"], False),
                            (["--size", "64", "-q"], False)):
            code, _, err = run("tx", "--count", "10", *words, "null:")
            self.assertEqual(code, 0, err)
            self.assertEqual("--size excludes the FCS: frames have 68 bytes on "
                             "the wire; for 64, give 60\n" in err, hint)

    def test_nothing_received_is_explained(self):
        code, _, err = run("loop", "-q", "--virtual", "--rate", "1M",
                           "--count", "100", "--device", "loss=1",
                           "pair:a", "pair:b")
        self.assertEqual(code, 1)
        self.assertRegex(err, "^mr-bench: 100 frames left pair:a and none "
                         "reached pair:b.* there is no path")

    def test_a_bounded_run_that_receives_nothing_has_failed(self):
        # Its other end is there, and silent.
        code, out, err = run("rx", "-q", "--json", "--duration", "0.2",
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
        with popen([PROGRAM, "loop", "--rate", "10k", "pair:a",
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
        with popen([PROGRAM, "tx", "null:"], text=True,
                   stdout=subprocess.PIPE,
                   stderr=subprocess.PIPE) as process:
            signals.await_sigint(process)
            time.sleep(3)  # 100000 frames, on a busy machine, too
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0, err)
        self.assertRegex(out, r"(?m)^sent +\d{6,} frames ")


if __name__ == "__main__":
    PROGRAM, NET_SCHEMA = sys.argv[1:]
    del sys.argv[1:]
    unittest.main()
