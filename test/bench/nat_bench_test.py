#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""nat_bench: its traffic is right, and it counts what it says it counts."""
import json
import subprocess
import sys
import unittest

PROGRAM = sys.argv[1]
PORTS = 65536 - 1024


def run(mode, *options):
    """(exit status, what it printed)."""
    done = subprocess.run([PROGRAM, "--mode", mode, "--seconds", "0.01",
                           *options], text=True, check=False, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.returncode, done.stdout, done.stderr


def sample(mode, *options):
    code, out, err = run(mode, *options)
    assert code == 0, err
    return json.loads(out)


class NatBench(unittest.TestCase):
    def test_all_output_is_right(self):
        for draw in ((), ("--zipf",)):
            taken = sample("check", "--sessions", "3000", "--burst", "100",
                           *draw)
            self.assertEqual(taken["sessions"], 3000)
            self.assertEqual(taken["wrong"], 0)
            self.assertGreater(taken["checked"], 0)
            # The first packets of all sessions, then the packets of the trace.
            self.assertEqual(taken["translated"], 3000 + taken["checked"])

    def test_the_source_alone_translates_nothing(self):
        for mode in ("drop", "forward", "find"):
            taken = sample(mode, "--sessions", "3000")
            self.assertEqual(taken["translated"], 3000)
            self.assertGreater(taken["frames"], 0)

    def test_a_flood_loses_no_packet_and_no_page(self):
        for mode in ("workers", "flood"):
            taken = sample(mode, "--sessions", "3000")
            rounds, left = divmod(taken["translated"] - 3000, 128)
            self.assertEqual(left, 0)
            self.assertGreaterEqual(rounds * 128, taken["frames"])

    def test_rules_change_nothing(self):
        taken = sample("check", "--sessions", "3000", "--rules", "4096")
        self.assertEqual(taken["wrong"], 0)
        self.assertGreater(taken["checked"], 0)

    def test_creates_until_no_port_is_left(self):
        taken = sample("create", "--addresses", "1", "--sessions",
                       str(PORTS + 1000))
        self.assertEqual(taken["ports"], PORTS)
        self.assertEqual(taken["created"], PORTS)
        self.assertEqual(taken["no_port"], 1000)

    def test_ports_come_back_behind_the_hold_down(self):
        taken = sample("sustain", "--addresses", "1", "--sessions", "200000")
        self.assertEqual(taken["lifetime_s"] + taken["hold_down_s"], 420)
        self.assertAlmostEqual(taken["created_per_s"], PORTS / 420, delta=1)

    def test_bad_options_are_named(self):
        for options, word in ((("nat", "--burst", "0"), "0: not a number"),
                              (("fast",), "fast: no such mode"),
                              (("nat", "--addresses", "1"), "--addresses")):
            code, _, err = run(*options)
            self.assertNotEqual(code, 0)
            self.assertIn(word, err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
