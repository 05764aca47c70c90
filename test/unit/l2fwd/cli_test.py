# SPDX-License-Identifier: BSD-3-Clause
"""mr-l2fwd as a user meets it: exit codes, one-line errors, forms of output.

usage: cli_test.py MR_L2FWD      (no privileges, no interfaces)
"""
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
TOP = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(TOP / folder) for folder in ("test/support", "apps/ctl", "apps/support")]

import signals  # noqa: E402 pylint: disable=wrong-import-position
from errors import errors_of  # noqa: E402 pylint: disable=wrong-import-position
from host import limit, popen  # noqa: E402 pylint: disable=wrong-import-position
from mr_ctl.client import Connection  # noqa: E402 pylint: disable=wrong-import-position

PROGRAM = ""
LIMIT_S = limit(30)


def run(*arguments, **options):
    """Run to the end: exit code, stdout, stderr."""
    done = subprocess.run([PROGRAM, *arguments], capture_output=True,
                          text=True, check=False, timeout=LIMIT_S, **options)
    return done.returncode, done.stdout, done.stderr


class Errors(unittest.TestCase):
    """What cannot be is refused with one line that names cause and cure."""

    # (exit code, what the line says, arguments)
    CASES = [
        (2, "no driver 'nope'; this build has:", ["nope:", "null:"]),
        (2, "has no option 'nope'; it has: queues", ["null:,nope=1", "null:"]),
        (2, "eth0 is given twice", ["eth0", "xdp:eth0"]),
        (2, "core 1000 does not exist or may not be used; this process may use:",
         ["--cores", "1000", "null:", "null:"]),
        (2, "out of range, 14 to", ["null:,len=13", "null:"]),
        (2, "is too small: the ports' rings",
         ["--pool-pages", "5", "null:", "null:"]),
        (2, "--mtu: no port has this option",
         ["--mtu", "1500", "null:", "null:"]),
        (2, "needs at least 18",
         ["--burst", "17", "pair:a,sg=on", "pair:b"]),
        (2, "33 ports are more than 32", ["--mode", "learn", *33 * ["null:"]]),
        (1, "pair:t already has both ends", ["--mode", "learn", *3 * ["pair:t"]]),
        (1, "no such network interface", ["xdp:lo:1", "null:"]),
        (1, "No such file or directory", ["pcap:rx=/nowhere/x", "null:"]),
    ]
    # Of the command line alone: (what the line says, the command line)
    WRONG = [
        ("no ports: mode patch needs two", ""),
        ("too few ports: mode patch needs two", "a"),
        ("no ports: mode drop needs one", "--mode drop"),
        ("no ports: mode macswap needs one", "--mode macswap"),
        ("needs pairs", "a b c"),
        ("needs pairs", "--mode macswap a b c"),
        ("a is given twice", "a a"),
        ("--mode: 'bridge' is not one of: patch, macswap", "--mode bridge a b"),
        ("--burst: '0' is not a whole number from 1 to 256", "--burst 0 a b"),
        ("--burst: '257' is not a whole number from 1 to 256", "--burst 257 a b"),
        ("--page-bytes: 3000 is not a power of two", "--page-bytes 3000 a b"),
        ("--ring: 1000 is not a power of two", "--ring 1000 a b"),
        ("--safety: 'most' is not one of: counts, states, poison",
         "--safety most a b"),
        *((option, f"--{option} {value} a b") for option, values in {
            "queues": ["0", "65"], "workers": ["0", "65"],
            "ring": ["63", "32769"], "pool-pages": ["0", "67108865"],
            "page-bytes": ["2047", "32769"], "mtu": ["67", "65536"],
            "promisc": ["maybe"], "idle": ["never"], "cores": [","],
        }.items() for value in values),
        ("--duration: '0' is not a number of seconds", "--duration 0 a b"),
        ("--count: '0' is not a whole number above 0", "--count 0 a b"),
        ("--count: '-1' is not", "--count=-1 a b"),
        ("--count: '18446744073709551616' is not",
         "--count 18446744073709551616 a b"),
        ("--cores: more than 64 cores", "--cores 0-64 a b"),
        ("--workers: 2, but only 1 cores are listed", "--cores 1 --workers 2 a b"),
        ("--fdb-limit: '0' is not a whole number from 1 to", "--fdb-limit 0 a b"),
        ("--age: '0' is not a time", "--age 0 a b"),
        ("unknown option '--nonsense'; see mr-l2fwd", "--nonsense a b"),
        ("option '--quiet' takes no value", "--quiet=1 a b"),
        ("option '--con' is ambiguous; it may be: --config --control",
         "--con x a b"),
    ]

    def test_one_line_and_the_exit_code(self):
        drivers = run("nope:", "null:")[2].split("has:")[1].split()
        wrong = [(2, words, line.split()) for words, line in self.WRONG]
        for code, words, arguments in [*self.CASES, *wrong]:
            if "xdp:lo:1" in arguments and "xdp" not in drivers:
                continue
            with self.subTest(arguments):
                got, out, err = run(*arguments)
                errors = errors_of(err)
                self.assertEqual(got, code, err)
                self.assertEqual(out, "")
                self.assertEqual(len(errors), 1, err)
                self.assertRegex(errors[0], "^mr-l2fwd: ")
                self.assertIn(words, errors[0])


class Output(unittest.TestCase):
    """Each form says the same, and adds up."""

    def test_help_and_version(self):
        code, out, err = run("--help")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, "^usage: mr-l2fwd")
        self.assertLessEqual(max(map(len, out.splitlines())), 80)
        code, out, err = run("--version")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"^mr-l2fwd \d+\.\d+\.\d+( \([0-9a-f]{9,}(-dirty)?\))?\n$")

    def test_quiet_json_is_the_final_object(self):
        code, out, _ = run("--json", "--quiet", "-d", "1.3", "null:", "null:")
        self.assertEqual(code, 0)
        self.assertEqual(out.count("\n"), 1)
        final = json.loads(out)
        self.assertTrue(final["final"] and final["invariants_hold"]
                        and final["conserved"])
        rx = sum(q["rx"]["delivered"] for p in final["ports"]
                 for q in p["queues"])
        tx = sum(q["tx"]["accepted"] for p in final["ports"]
                 for q in p["queues"])
        drops = sum(sum(w["drops"].values()) for w in final["workers"])
        self.assertGreater(rx, 1000000)
        self.assertEqual(rx, tx + drops)

    def test_text_has_a_line_per_second_and_a_summary(self):
        code, out, err = run("-d", "1.3", "null:", "null:")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"(?m)^ +1\.0 s  rx \S+ \S+ .* idle \d+ %, awake \d+ %$")
        self.assertRegex(out, r"(?m)^accounting invariants hold$")
        pages = re.search(r"(?m)^pages: (\d+) of (\d+) came back$", out)
        self.assertEqual(pages[1], pages[2])
        self.assertRegex(err, "(?m)^" + 2 * (
            "port null:  mode memory, 1 rx, 1 tx queues\n"
        ) + r"worker 0: core \d+.*, rx null:/0 null:/0")

    def test_the_pool_it_sizes_is_large_enough_for_every_page(self):
        for page_bytes in ("2048", "4096", "8192", "32768"):
            code, _, err = run("--page-bytes", page_bytes, "--workers", "1",
                               "--count", "1000", "--quiet",
                               "null:", "pair:a")
            self.assertEqual(code, 0, f"{page_bytes}: {err}")

    def test_pools_that_check_find_nothing_wrong(self):
        _, text, _ = run("--help")
        shown = re.search(r"--safety LEVEL\s+pool checks: ([^-]*)", text)[1]
        levels = re.findall(r"[a-z]+", shown.replace("(default)", ""))
        self.assertEqual(levels, ["counts", "states", "poison"])
        for safety in levels:
            code, out, err = run("--safety", safety, "--workers", "2",
                                 "--count", "20000", "--quiet",
                                 "null:", "pair:a")
            self.assertEqual(code, 0, f"{safety}: {err}")
            # The other end of the pair is not open.
            self.assertEqual(err, "mr-l2fwd: pair:a: link down\n", safety)
            pages = re.search(r"(?m)^pages: (\d+) of (\d+) came back$", out)
            self.assertEqual(pages[1], pages[2])

    def test_count_ends_it_within_a_burst(self):
        code, out, _ = run("--json", "--quiet", "--count", "10000", "-w", "1",
                           "--mode", "drop", "null:")
        self.assertEqual(code, 0)
        n_frames = json.loads(out)["workers"][0]["drops"]["mode_drop"]
        self.assertIn(n_frames, range(10000, 10000 + 256))

    def test_signals_end_it_with_a_summary(self):
        for number in signal.SIGINT, signal.SIGTERM:
            with self.subTest(number), popen(
                    [PROGRAM, "--quiet", "pair:a", "pair:b"],
                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                    text=True) as process:
                signals.await_sigint(process)  # all three are blocked at once
                process.send_signal(number)
                out, _ = process.communicate(timeout=LIMIT_S)
                self.assertEqual(process.returncode, 0)
                self.assertIn("accounting invariants hold", out)

    def test_sighup_ends_it_with_its_terminal_only(self):
        pid, master = pty.fork()
        if pid == 0:  # the terminal is its controlling one
            os.execv(PROGRAM, [PROGRAM, "--json", "pair:a", "pair:b"])
        said = b""
        while b"\nworker 0" not in said:
            said += os.read(master, 65536)
        os.kill(pid, signal.SIGHUP)
        while b"no configuration" not in said:
            said += os.read(master, 65536)
        self.assertEqual(os.waitpid(pid, os.WNOHANG), (0, 0))
        os.close(master)  # the kernel sends SIGHUP
        self.assertEqual(os.waitpid(pid, 0)[0], pid)

    def test_captures_that_are_read_end_it(self):
        frame = bytes(range(60))
        with tempfile.TemporaryDirectory() as folder:
            captures = [f"{folder}/{name}" for name in "abcd"]
            for path in captures[:2]:
                with open(path, "wb") as capture:
                    capture.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0,
                                              0, 65535, 1))
                    capture.write(100 * (struct.pack("<IIII", 0, 0, 60, 60) +
                                         frame))
            a, b, c, d = captures
            for ports, n in (((f"pcap:rx={a}", f"pcap:tx={c}"), 100),
                             ((f"pcap:rx={a},tx={c}",
                               f"pcap:rx={b},tx={d}"), 200)):
                code, out, err = run("--json", "--quiet", *ports)
                self.assertEqual((code, err), (0, ""))
                final = json.loads(out)
                self.assertEqual(sum(port["queues"][0]["tx"]["completed"]
                                     for port in final["ports"]), n)


class Terminal(unittest.TestCase):

    def test_a_terminal_that_is_stopped_holds_up_nothing(self):
        master, slave = pty.openpty()
        before = termios.tcgetattr(slave)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = Path(folder.name, "x.sock")
        with popen([PROGRAM, "--control", str(path), "null:", "null:"],
                   stdin=slave, stdout=slave, stderr=slave,
                   env=os.environ | {"TERM": "xterm"}) as process:
            shown = b""
            while b"awake" not in shown:
                shown += os.read(master, 65536)
            termios.tcflow(slave, termios.TCOOFF)  # as ^S does
            connection = Connection(path)
            end_s = time.monotonic() + LIMIT_S
            while not (n_skipped := connection.ask_one("stats")["skipped"]) \
                    and time.monotonic() < end_s:
                time.sleep(0.05)
            connection.close()
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(LIMIT_S), 1)
        self.assertGreater(n_skipped, 0)
        self.assertEqual(termios.tcgetattr(slave), before)
        os.close(master)
        os.close(slave)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
