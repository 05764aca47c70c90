# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench reflect and replay over captures and memory: no privileges.

Covers net/relay.c, net/reflect.c, net/replay.c and net/swap.c.

usage: forward_test.py MR_BENCH SCHEMA NET_SCHEMA
"""
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))

from errors import errors_of  # noqa: E402 pylint: disable=wrong-import-position
from host import limit  # noqa: E402 pylint: disable=wrong-import-position

try:
    from scapy.all import (ARP, Dot1Q, Ether, ICMP, ICMPv6EchoRequest, IP,
                           IPv6, Raw, TCP, UDP, PcapWriter, rdpcap)
except ImportError:
    print("scapy is missing: apt install python3-scapy")
    sys.exit(77)

try:
    import jsonschema
except ImportError:
    jsonschema = None

PROGRAM = SCHEMA = NET_SCHEMA = ""
A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
ETH = Ether(src=A, dst=B)
IP4, IP6 = IP(src="10.0.0.1", dst="10.0.0.2"), IPv6(src="fd00::1", dst="fd00::2")


def run(*arguments, timeout=30):
    """Exit code, stdout, stderr."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True,
                          text=True, check=False, timeout=limit(timeout))
    return done.returncode, done.stdout, done.stderr


def last_object(text):
    """The final one of JSON lines, all of which are as the schema says."""
    objects = [json.loads(line) for line in text.splitlines()]
    if jsonschema:
        schema = json.loads(Path(SCHEMA).read_text("utf-8"))
        for each in objects:
            jsonschema.validate(each, schema)
        jsonschema.validate(objects[-1]["run"],
                            json.loads(Path(NET_SCHEMA).read_text("utf-8")))
    return objects[-1]


def sums_right(frame):
    """The frame with sums as scapy computes them."""
    again = Ether(bytes(frame))
    for layer in again.layers():
        for name in ("chksum", "cksum"):
            if name in again[layer].fields:
                delattr(again[layer], name)
    return bytes(again)


class Folder(unittest.TestCase):
    """A capture goes in, one comes out."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        # What a port spec takes for its own is only a name here.
        self.inp = Path(folder.name) / "in,a=b\\c.pcap"
        self.out = Path(folder.name) / "out.pcap"

    def write(self, frames, gap_s=0.001, start_s=1000.0):
        """Frames, gap_s after each other."""
        writer = PcapWriter(str(self.inp), nano=True, sync=True)
        for i, frame in enumerate(frames):
            frame.time = start_s + i * gap_s
            writer.write(frame)
        writer.close()


class Reflect(Folder):
    """What came goes back."""

    def turned(self, frames, *options):
        """Those that came back, and the final report."""
        self.write(frames)
        path = str(self.inp).replace("\\", "\\\\").replace(",", "\\,") \
            .replace("=", "\\=")
        code, out, err = run("reflect", "-j", "-d", "0.3", *options,
                             f"pcap:rx={path},tx={self.out}")
        self.assertEqual(code, 0, err)
        return list(rdpcap(str(self.out))), last_object(out)

    def test_layers(self):
        frame = Ether(bytes(ETH / Dot1Q(vlan=7) / IP4 /
                            UDP(sport=1, dport=2) / Raw(b"stamp" * 5)))
        for layer in (2, 3, 4):
            back = self.turned([frame], "--layer", layer)[0][0]
            self.assertEqual((back.src, back.dst), (B, A))
            self.assertEqual(back[IP].src,
                             "10.0.0.2" if layer > 2 else "10.0.0.1")
            self.assertEqual(back[UDP].sport, 2 if layer > 3 else 1)
            self.assertEqual(bytes(back), sums_right(back))
            self.assertEqual(back[Raw].load, b"stamp" * 5)

    def test_protocols(self):
        frames = [Ether(bytes(f)) for f in (
            ETH / IP4 / TCP(sport=80, dport=81, flags="S"),
            ETH / IP6 / TCP(sport=80, dport=81),
            ETH / IP6 / UDP(sport=5, dport=6) / Raw(b"odd"),
            ETH / IP4 / ICMP(type=8, id=7, seq=9) / Raw(b"ping"),
            ETH / IP6 / ICMPv6EchoRequest(id=3) / Raw(b"ping6"),
            ETH / IP(src="10.0.0.1", dst="10.0.0.2", frag=5, proto=17) /
            Raw(b"not a port"))]
        back = self.turned(frames)[0]
        self.assertEqual(len(back), len(frames))
        for was, now in zip(frames, back):
            self.assertEqual((now.src, now.dst), (was.dst, was.src))
            layer = IP if IP in was else IPv6
            self.assertEqual((now[layer].src, now[layer].dst),
                             (was[layer].dst, was[layer].src))
            self.assertEqual(bytes(now), sums_right(now))
        self.assertEqual((back[0][TCP].sport, back[0][TCP].dport), (81, 80))
        self.assertEqual(back[2][UDP].dport, 5)
        self.assertEqual(back[3][ICMP].type, 0)
        self.assertEqual(bytes(back[4])[54], 129)
        self.assertEqual(bytes(back[5])[34:], bytes(frames[5])[34:])

    def test_the_last_line_says_what_it_ran_on(self):
        run_of = self.turned([Ether(bytes(ETH / Raw(bytes(50))))], "--layer",
                             2, "--cores", 0)[1]["run"]
        self.assertEqual(run_of["kind"], "reflect")
        self.assertIn("reflect -j -d 0.3 --layer 2 --cores 0 ",
                      run_of["command"])
        self.assertEqual(run_of["machine"]["kernel"],
                         f"Linux {os.uname().release}")
        self.assertEqual(run_of["cores"], [0])
        self.assertEqual(run_of["config"]["layer"], 2)
        self.assertEqual([p["sends"] and p["receives"]
                          for p in run_of["ports"]], [True])
        self.assertEqual(run_of["trials"], [])

    def test_groups_are_dropped_by_name(self):
        frames = [Ether(src=A, dst="ff:ff:ff:ff:ff:ff") / Raw(bytes(50)),
                  Ether(src=A, dst="01:00:5e:00:00:01") / Raw(bytes(50)),
                  ETH / Raw(bytes(50))]
        back, final = self.turned(frames)
        self.assertEqual(len(back), 1)
        self.assertEqual(final["workers"][0]["drops"]["group"], 2)

    def test_a_port_without_address_answers_no_arp(self):
        code, _, err = run("reflect", "--arp", "null:")
        self.assertEqual(code, 2)
        self.assertEqual(errors_of(err), ["mr-bench reflect: --arp: null: "
                                          "has no address to answer with"])


class Replay(Folder):
    """Frames as they are, at the times that the capture says."""

    FRAMES = [ETH / IP4 / UDP(sport=i + 1) / Raw(bytes(range(i % 200)))
              for i in range(60)]

    def replayed(self, *options, code=0):
        """What was sent, and the final report."""
        got, out, err = run("replay", "-j", *options, self.inp,
                            f"pcap:tx={self.out}")
        self.assertEqual(got, code, err)
        return list(rdpcap(str(self.out))), last_object(out)

    def test_bytes_and_gaps(self):
        self.write(self.FRAMES, gap_s=0.01)
        sent, final = self.replayed("--max-lag", 5)
        self.assertEqual([bytes(f) for f in sent],
                         [bytes(f) for f in self.FRAMES])
        self.assertEqual(final["replay"]["unsent"], 0)
        self.assertEqual(final["replay"]["paced"], 60)
        self.assertEqual(final["replay"]["passes"], 1)
        self.assertLessEqual(final["replay"]["late_p50_ns"],
                             final["replay"]["late_max_ns"])
        # None is early; late ones are as late as the report says.
        late = final["replay"]["late_max_ns"] / 1e9 + 0.005
        for i, frame in enumerate(sent):
            after = float(frame.time - sent[0].time)
            self.assertGreater(after, i * 0.01 - late)
            self.assertLess(after, i * 0.01 + late)

    def test_its_document_is_as_of_the_others(self):
        self.write(self.FRAMES, gap_s=0.001)
        out = self.out.with_name("a.json")
        table = self.out.with_name("a.csv")
        _, final = self.replayed("--max-lag", 5, "--speed", 0.5, "--out", out,
                                 "--csv", table, "--label", "as it was")
        document = json.loads(out.read_text("utf-8"))
        self.assertEqual(document["machine"], final["run"]["machine"])
        self.assertEqual(document["trials"][0]["tx"]["sent"],
                         final["run"]["trials"][0]["tx"]["sent"])
        self.assertEqual((document["kind"], document["label"]),
                         ("replay", "as it was"))
        self.assertTrue(document["complete"])
        self.assertTrue(document["trials"][0]["complete"])
        self.assertEqual([(p["sends"], p["receives"])
                          for p in document["ports"]],
                         [(False, True), (True, False)])
        self.assertEqual(document["config"]["speed"], 0.5)
        self.assertEqual(document["config"]["file"], str(self.inp))
        trial, = document["trials"]
        self.assertEqual((trial["tx"]["due"], trial["tx"]["sent"],
                          trial["tx"]["unsent"]), (60, 60, 0))
        self.assertEqual(trial["tx"]["bytes"],
                         sum(len(bytes(f)) for f in self.FRAMES))
        # A frame each 2 ms.
        self.assertAlmostEqual(trial["asked_pps"], 500, delta=1)
        self.assertGreaterEqual(trial["duration_s"], 0.118)
        self.assertEqual(trial["lateness"]["max"],
                         final["replay"]["late_max_ns"])
        self.assertGreater(trial["clock_error_ns"], 0)
        self.assertEqual(len(table.read_text("utf-8").splitlines()), 2)
        code, said, err = run("compare", "--threshold", 50, "--baseline", out,
                              "--baseline", out, out, out)
        self.assertEqual(code, 0, err)
        self.assertRegex(said, r"mix at 500 frames/s: late p99")

    def test_what_cannot_be_written_is_an_error(self):
        self.write(self.FRAMES[:1])
        code, _, err = run("replay", "-q", "--out", "/nowhere/x", self.inp,
                           "null:")
        self.assertEqual(code, 1)
        self.assertIn("/nowhere/x", err)

    def test_speed(self):
        self.write(self.FRAMES, gap_s=0.01)
        for speed, seconds in (("2", 0.295), ("0.5", 1.18)):
            start = time.monotonic()
            sent, _ = self.replayed("--speed", speed, "--max-lag", 5)
            self.assertEqual(len(sent), 60)
            took = float(sent[-1].time - sent[0].time)
            self.assertGreater(took, seconds * 0.7)
            self.assertLess(took, time.monotonic() - start)

    def test_full_speed_and_passes(self):
        self.write(self.FRAMES, gap_s=10)
        sent, final = self.replayed("--speed", "max", "--loop", 30)
        self.assertEqual([bytes(f) for f in sent],
                         [bytes(f) for f in self.FRAMES] * 30)
        self.assertEqual(final["replay"]["passes"], 30)
        self.assertEqual(final["replay"]["paced"], 0)

    def test_passes_of_one_time(self):
        """Where nothing but the end of a burst tells a pass from the next."""
        for n, burst in ((1, 64), (7, 64), (36, 18), (64, 64)):
            self.write([ETH / IP4 / UDP()] * n, gap_s=0)
            sent, final = self.replayed("--loop", 10, "--burst", burst,
                                        "--max-lag", 5)
            self.assertEqual(len(sent), 10 * n)
            self.assertEqual(final["replay"]["passes"], 10, (n, burst))
        # Of several entries each: a burst ends where the next has no room.
        self.write([ETH / IP4 / UDP() / bytes(9000)] * 50, gap_s=0)
        sent, final = self.replayed("--loop", 4, "--max-lag", 5)
        self.assertEqual(len(sent), 200)
        self.assertEqual(final["replay"]["passes"], 4)

    def test_the_last_gap_is_between_passes(self):
        self.write(self.FRAMES[:3], gap_s=0.05)
        sent, _ = self.replayed("--loop", 4, "--max-lag", 5)
        self.assertEqual(len(sent), 12)
        self.assertGreater(float(sent[-1].time - sent[0].time), 0.45)

    def test_what_is_given_up_is_counted(self):
        # An end before the time of most of them.
        self.write(self.FRAMES, gap_s=1)
        out = self.out.with_name("a.json")
        sent, final = self.replayed("-d", 0.5, "--max-lag", 0.4, "--out", out)
        self.assertEqual(len(sent), 1)
        document = json.loads(out.read_text("utf-8"))
        self.assertEqual((document["complete"], document["why_incomplete"]),
                         (False, "ended before the capture"))
        self.assertFalse(document["trials"][0]["complete"])
        self.assertEqual(final["replay"]["unsent"], 59)
        self.assertEqual(final["workers"][0]["drops"]["shutdown"], 59)

    def test_what_has_no_end_is_whole_at_any_time(self):
        self.write(self.FRAMES, gap_s=0.001)
        out = self.out.with_name("a.json")
        self.replayed("-d", 0.2, "--loop", 0, "--out", out)
        document = json.loads(out.read_text("utf-8"))
        self.assertTrue(document["complete"])
        self.assertTrue(document["trials"][0]["complete"])

    def test_a_damaged_capture_is_not_whole(self):
        out = self.out.with_name("a.json")
        for n, loops in ((60, 3), (1, 0)):
            self.write(self.FRAMES[:n], gap_s=0)
            os.truncate(self.inp, self.inp.stat().st_size - 1)
            code, _, err = run("replay", "--speed", "max", "--loop", loops,
                               "--out", out, self.inp, f"pcap:tx={self.out}")
            self.assertEqual(code, 1)
            self.assertEqual(err.count("the capture is damaged"), 1, err)
            self.assertIn("not all of the capture was sent", err)
            self.assertEqual(len(rdpcap(str(self.out))), (n - 1) * loops)
            document = json.loads(out.read_text("utf-8"))
            self.assertFalse(document["complete"])
            self.assertIn("damaged", document["why_incomplete"])

    def test_older_frames_follow_at_once(self):
        self.write(self.FRAMES[:5], gap_s=-0.01)
        sent, final = self.replayed()
        self.assertEqual(len(sent) + final["replay"]["unsent"], 5)

    def test_errors(self):
        self.write(self.FRAMES[:1])
        for arguments, code, line in (
                (["no.pcap", "null:"], 1, "cannot read 'no.pcap'"),
                ([self.inp], 2, "two words: mr-bench replay FILE PORT"),
                (["--speed", "fast", self.inp, "null:"], 2,
                 "--speed: 'fast' is neither max nor a factor"),
                (["--speed", "0", self.inp, "null:"], 2, "--speed: '0'"),
                (["a" * 2000, "null:"], 2, "the file's name is too long")):
            with self.subTest(line):
                got, _, err = run("replay", *arguments)
                self.assertEqual(got, code, err)
                errors = errors_of(err)
                self.assertEqual(len(errors), 1, err)
                self.assertIn(line, errors[0])


if __name__ == "__main__":
    PROGRAM, SCHEMA, NET_SCHEMA = (sys.argv.pop(1) for _ in range(3))
    unittest.main()
