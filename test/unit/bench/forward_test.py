# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench reflect and replay over captures and memory: no privileges.

Covers net/relay.c, net/reflect.c, net/replay.c and net/swap.c.
"""
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import time

import pytest

import signals
from bench_program import BENCH, LIMIT_S, complaints, run
from host import popen

pytest.importorskip("scapy")
from scapy.all import (Dot1Q, Ether, ICMP, ICMPv6EchoRequest, IP, IPv6,  # noqa: E402
                       Raw, TCP, UDP, PcapWriter, rdpcap)

A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
ETH = Ether(src=A, dst=B)
IP4, IP6 = IP(src="10.0.0.1", dst="10.0.0.2"), IPv6(src="fd00::1", dst="fd00::2")
FRAMES = [ETH / IP4 / UDP(sport=i + 1) / Raw(bytes(range(i % 200)))
          for i in range(60)]


def last_object(text):
    """The final one of JSON lines, all of which are as the schema says."""
    objects = [json.loads(line) for line in text.splitlines()]
    for each in objects:
        assert complaints(each, "mr-bench-forward") == []
    assert complaints(objects[-1]["run"]) == []
    return objects[-1]


def sums_right(frame):
    """The frame with sums as scapy computes them."""
    again = Ether(bytes(frame))
    for layer in again.layers():
        for name in ("chksum", "cksum"):
            if name in again[layer].fields:
                delattr(again[layer], name)
    return bytes(again)


class Capture:
    """A capture goes in, one comes out."""

    def __init__(self, folder):
        # What a port spec takes for its own is only a name here.
        self.inp = folder / "in,a=b\\c.pcap"
        self.out = folder / "out.pcap"

    def write(self, frames, gap_s=0.001, start_s=1000.0):
        """Frames, gap_s after each other."""
        writer = PcapWriter(str(self.inp), nano=True, sync=True)
        for i, frame in enumerate(frames):
            frame.time = start_s + i * gap_s
            writer.write(frame)
        writer.close()

    def turned(self, frames, *options):
        """Those that came back, and the final report."""
        self.write(frames)
        path = str(self.inp).replace("\\", "\\\\").replace(",", "\\,") \
            .replace("=", "\\=")
        code, out, err = run("reflect", "-j", "-d", "0.3", *options,
                             f"pcap:rx={path},tx={self.out}")
        assert code == 0, err
        return list(rdpcap(str(self.out))), last_object(out)

    def replayed(self, *options, code=0):
        """What was sent, and the final report."""
        got, out, err = run("replay", "-j", *options, self.inp,
                            f"pcap:tx={self.out}")
        assert got == code, err
        return list(rdpcap(str(self.out))), last_object(out)


@pytest.fixture
def capture(tmp_path):
    return Capture(tmp_path)


def test_layers(capture):
    frame = Ether(bytes(ETH / Dot1Q(vlan=7) / IP4 /
                        UDP(sport=1, dport=2) / Raw(b"stamp" * 5)))
    for layer in (2, 3, 4):
        back = capture.turned([frame], "--layer", layer)[0][0]
        assert (back.src, back.dst) == (B, A)
        assert back[IP].src == ("10.0.0.2" if layer > 2 else "10.0.0.1")
        assert back[UDP].sport == (2 if layer > 3 else 1)
        assert bytes(back) == sums_right(back)
        assert back[Raw].load == b"stamp" * 5


def test_protocols(capture):
    frames = [Ether(bytes(f)) for f in (
        ETH / IP4 / TCP(sport=80, dport=81, flags="S"),
        ETH / IP6 / TCP(sport=80, dport=81),
        ETH / IP6 / UDP(sport=5, dport=6) / Raw(b"odd"),
        ETH / IP4 / ICMP(type=8, id=7, seq=9) / Raw(b"ping"),
        ETH / IP6 / ICMPv6EchoRequest(id=3) / Raw(b"ping6"),
        ETH / IP(src="10.0.0.1", dst="10.0.0.2", frag=5, proto=17) /
        Raw(b"not a port"))]
    back = capture.turned(frames)[0]
    assert len(back) == len(frames)
    for was, now in zip(frames, back):
        assert (now.src, now.dst) == (was.dst, was.src)
        layer = IP if IP in was else IPv6
        assert (now[layer].src, now[layer].dst) == (was[layer].dst,
                                                    was[layer].src)
        assert bytes(now) == sums_right(now)
    assert (back[0][TCP].sport, back[0][TCP].dport) == (81, 80)
    assert back[2][UDP].dport == 5
    assert back[3][ICMP].type == 0
    assert bytes(back[4])[54] == 129
    assert bytes(back[5])[34:] == bytes(frames[5])[34:]


def test_the_last_line_says_what_it_ran_on(capture):
    run_of = capture.turned([Ether(bytes(ETH / Raw(bytes(50))))], "--layer",
                         2, "--cores", 0)[1]["run"]
    assert run_of["kind"] == "reflect"
    assert "reflect -j -d 0.3 --layer 2 --cores 0 " in run_of["command"]
    assert run_of["machine"]["kernel"] == f"Linux {os.uname().release}"
    assert run_of["cores"] == [0]
    assert run_of["config"]["layer"] == 2
    assert [p["sends"] and p["receives"] for p in run_of["ports"]] == [True]
    assert run_of["trials"] == []


def test_groups_are_dropped_by_name(capture):
    frames = [Ether(src=A, dst="ff:ff:ff:ff:ff:ff") / Raw(bytes(50)),
              Ether(src=A, dst="01:00:5e:00:00:01") / Raw(bytes(50)),
              ETH / Raw(bytes(50))]
    back, final = capture.turned(frames)
    assert len(back) == 1
    assert final["workers"][0]["drops"]["group"] == 2


def test_a_port_without_address_answers_no_arp(capture):
    done = run("reflect", "--arp", "null:")
    assert done.rc == 2
    assert done.errors == [
        "mr-bench reflect: --arp: null: has no MAC address to answer with"]


def test_bytes_and_gaps(capture):
    capture.write(FRAMES, gap_s=0.01)
    sent, final = capture.replayed("--max-lag", 5)
    assert [bytes(f) for f in sent] == [bytes(f) for f in FRAMES]
    assert final["replay"]["unsent"] == 0
    assert final["replay"]["paced"] == 60
    assert final["replay"]["passes"] == 1
    assert final["replay"]["late_p50_ns"] <= final["replay"]["late_max_ns"]
    # None is early; late ones are as late as the report says.
    late = final["replay"]["late_max_ns"] / 1e9 + 0.005
    for i, frame in enumerate(sent):
        after = float(frame.time - sent[0].time)
        assert after > i * 0.01 - late
        assert after < i * 0.01 + late


def test_its_document_is_as_of_the_others(capture):
    capture.write(FRAMES, gap_s=0.001)
    out = capture.out.with_name("a.json")
    table = capture.out.with_name("a.csv")
    _, final = capture.replayed("--max-lag", 5, "--speed", 0.5, "--out", out,
                             "--csv", table, "--label", "as it was")
    document = json.loads(out.read_text("utf-8"))
    assert document["machine"] == final["run"]["machine"]
    assert document["trials"][0]["tx"]["sent"] == \
        final["run"]["trials"][0]["tx"]["sent"]
    assert (document["kind"], document["label"]) == ("replay", "as it was")
    assert document["complete"]
    assert document["trials"][0]["complete"]
    assert [(p["sends"], p["receives"]) for p in document["ports"]] == \
        [(False, True), (True, False)]
    assert document["config"]["speed"] == 0.5
    assert document["config"]["file"] == str(capture.inp)
    trial, = document["trials"]
    assert [trial["tx"][key] for key in ("due", "sent", "unsent")] == [60, 60, 0]
    assert trial["tx"]["bytes"] == sum(len(bytes(f)) for f in FRAMES)
    # A frame each 2 ms.
    assert trial["asked_pps"] == pytest.approx(500, abs=1)
    assert trial["duration_s"] >= 0.118
    assert trial["lateness"]["max"] == final["replay"]["late_max_ns"]
    assert trial["clock_error_ns"] > 0
    assert len(table.read_text("utf-8").splitlines()) == 2
    code, said, err = run("compare", "--threshold", 50, "--baseline", out,
                          "--baseline", out, out, out)
    assert code == 0, err
    assert "mix at 500 frames/s: late p99" in said


def test_what_cannot_be_written_is_an_error(capture):
    capture.write(FRAMES[:1])
    code, _, err = run("replay", "-q", "--out", "/nowhere/x", capture.inp,
                       "null:")
    assert code == 1
    assert "/nowhere/x" in err


def test_speed(capture):
    capture.write(FRAMES, gap_s=0.01)
    for speed, seconds in (("2", 0.295), ("0.5", 1.18)):
        start = time.monotonic()
        sent, _ = capture.replayed("--speed", speed, "--max-lag", 5)
        assert len(sent) == 60
        took = float(sent[-1].time - sent[0].time)
        assert took > seconds * 0.7
        assert took < time.monotonic() - start


def test_full_speed_and_passes(capture):
    capture.write(FRAMES, gap_s=10)
    sent, final = capture.replayed("--speed", "max", "--loop", 30)
    assert [bytes(f) for f in sent] == [bytes(f) for f in FRAMES] * 30
    assert final["replay"]["passes"] == 30
    assert final["replay"]["paced"] == 0


def test_passes_of_one_time(capture):
    """Where nothing but the end of a burst tells a pass from the next."""
    for n, burst in ((1, 64), (7, 64), (36, 18), (64, 64)):
        capture.write([ETH / IP4 / UDP()] * n, gap_s=0)
        sent, final = capture.replayed("--loop", 10, "--burst", burst,
                                    "--max-lag", 5)
        assert len(sent) == 10 * n
        assert final["replay"]["passes"] == 10, (n, burst)
    # Of several entries each: a burst ends where the next has no room.
    capture.write([ETH / IP4 / UDP() / bytes(9000)] * 50, gap_s=0)
    sent, final = capture.replayed("--loop", 4, "--max-lag", 5)
    assert len(sent) == 200
    assert final["replay"]["passes"] == 4


def test_passes_of_one_frame_are_paced(capture):
    capture.write(FRAMES[:1])
    code, said, err = run("replay", "-q", "--loop", 0, "-d", 0.5, capture.inp,
                          "null:")
    assert code == 0
    assert int(re.search(r"tx (\d+) frames", said)[1]) <= 502
    assert "it has no gaps, so a pass begins 1 ms after the last one" in err


def write_times(path, times):
    """A capture of frames of these times, in seconds."""
    path.write_bytes(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1) + b"".join(
        struct.pack("<IIII", int(t), round(t % 1 * 1e6), 60, 60) + bytes(ETH) + bytes(46)
        for t in times))


@pytest.mark.parametrize("times, words, at_s, key, line", [
    ([100, 101, 100, 101.1], (), [0, 1, 1, 1.1], "", ""),
    ([9100, 9100.1, 100, 100.1, 100.2], (), [0, .1, .1, .2, .3], "steps_back",
     "the clock was set back during the capture: times count from there"),
    ([0, 1.7e9, 1.7e9 + .1], (), [0, 0, .1], "untimed",
     "records without a time are sent right after their predecessors"),
    ([0, .1, .2], (), [0, .1, .2], "", ""),
    ([100, 100.1, 1.7e9, 1.7e9 + .1], ("--max-gap", .3), [0, .1, .4, .5], "shortened", "")])
def test_odd_capture_times_are_corrected(capture, times, words, at_s, key, line):
    write_times(capture.inp, times)
    code, out, err = run("replay", "-j", "--max-lag", 5, *words, capture.inp,
                         f"pcap:tx={capture.out}")
    assert code == 0, err
    replayed = last_object(out)["replay"]
    sent = [float(frame.time) for frame in rdpcap(str(capture.out))]
    late = replayed["late_max_ns"] / 1e9 + 0.01
    for found, due in zip(sent, at_s, strict=True):
        assert due - late < found - sent[0] < due + late
    assert [k for k in ("untimed", "steps_back", "shortened") if replayed[k]] == \
        [key] * bool(key)
    assert line in err and (f"{capture.inp}: " in err) == bool(line)


def test_a_long_wait_is_announced(capture):
    write_times(capture.inp, [100, 900])
    code, _, err = run("replay", "-q", "-d", 2.5, capture.inp, "null:")
    assert code == 0
    assert err.count("the next frame is due 800 s after the first; --max-gap") == 1


def test_the_last_gap_is_between_passes(capture):
    capture.write(FRAMES[:3], gap_s=0.05)
    sent, _ = capture.replayed("--loop", 4, "--max-lag", 5)
    assert len(sent) == 12
    assert float(sent[-1].time - sent[0].time) > 0.45


def test_frames_given_up_are_counted(capture):
    # An end before the time of most of them.
    capture.write(FRAMES, gap_s=1)
    out = capture.out.with_name("a.json")
    sent, final = capture.replayed("-d", 0.5, "--max-lag", 0.4, "--out", out)
    assert len(sent) == 1
    document = json.loads(out.read_text("utf-8"))
    assert not document["complete"]
    assert document["why_incomplete"] == "ended before the capture"
    assert not document["trials"][0]["complete"]
    assert final["replay"]["unsent"] == 59
    assert final["workers"][0]["drops"]["shutdown"] == 59


def test_frames_that_the_port_drops_are_unsent(capture):
    """A port without a file to write drops all that it takes."""
    capture.write(FRAMES)
    other = capture.out.with_name("other.pcap")
    shutil.copy(capture.inp, other)
    out = capture.out.with_name("a.json")
    code, said, err = run("replay", "-q", "--speed", "max", "--out", out,
                          capture.inp, f"pcap:rx={other}")
    assert code == 1
    why = r"60 of 60 frames did not leave: pcap:\S+ dropped 60 \(device\)"
    assert re.fullmatch(f"mr-bench replay: {why}\n", err)
    document = json.loads(out.read_text("utf-8"))
    assert re.fullmatch(why, document["why_incomplete"])
    trial, = document["trials"]
    assert not trial["complete"]
    assert [trial["tx"][key] for key in ("due", "sent", "unsent", "bytes")] == \
        [60, 0, 60, 0]
    assert "60 unsent" in said


def block(kind, body):
    """Of pcapng."""
    n = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + n + body + n


def test_the_reason_names_another_link_type(capture):
    capture.inp.write_bytes(
        block(0x0a0d0d0a, struct.pack("<IHHq", 0x1a2b3c4d, 1, 0, -1)) +
        b"".join(block(1, struct.pack("<HHI", link, 0, 65535)) for link in (1, 113)) +
        block(6, struct.pack("<IIIII", 0, 0, 1, 60, 60) + bytes(60)) * 3)
    out = capture.out.with_name("a.json")
    code, _, err = run("replay", "-q", "--out", out, capture.inp, "null:")
    assert code == 1
    why = "3 records of the capture are after an interface of another link type"
    assert re.search(r"3 records cannot be read: they are after an interface of link type "
                     r"LINUX_SLL \(113\)", err)
    assert f"not all of the capture was sent: {why}" in err and "damaged" not in err
    document = json.loads(out.read_text("utf-8"))
    assert document["why_incomplete"] == f"{why} and were not sent"


@pytest.mark.parametrize("loops, rc, why", [(1, 1, "ended by a signal"), (0, 0, "")])
def test_a_signal_fails_only_a_replay_that_has_an_end(capture, loops, rc, why):
    capture.write(FRAMES, gap_s=1)
    out = capture.out.with_name("a.json")
    with popen([BENCH, "replay", "-q", "--max-lag", "60", "--loop", str(loops), "--out", out,
                capture.inp, "null:"], text=True, stdout=subprocess.PIPE,
               stderr=subprocess.PIPE) as process:
        signals.await_sigint(process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == rc, err
    document = json.loads(out.read_text("utf-8"))
    assert (document["complete"], document["why_incomplete"]) == (not why, why)


def test_an_endless_replay_is_whole_at_any_time(capture):
    capture.write(FRAMES, gap_s=0.001)
    out = capture.out.with_name("a.json")
    capture.replayed("-d", 0.2, "--loop", 0, "--out", out)
    document = json.loads(out.read_text("utf-8"))
    assert document["complete"]
    assert document["trials"][0]["complete"]


def test_a_damaged_capture_is_not_whole(capture):
    out = capture.out.with_name("a.json")
    for n, loops in ((60, 3), (1, 0)):
        capture.write(FRAMES[:n], gap_s=0)
        os.truncate(capture.inp, capture.inp.stat().st_size - 1)
        code, _, err = run("replay", "--speed", "max", "--loop", loops,
                           "--out", out, capture.inp, f"pcap:tx={capture.out}")
        assert code == 1
        assert err.count("the capture is damaged") == 1, err
        assert "not all of the capture was sent" in err
        assert len(rdpcap(str(capture.out))) == (n - 1) * loops
        document = json.loads(out.read_text("utf-8"))
        assert not document["complete"]
        assert "damaged" in document["why_incomplete"]


def test_older_frames_follow_at_once(capture):
    capture.write(FRAMES[:5], gap_s=-0.01)
    sent, _ = capture.replayed("--max-lag", 5)
    assert len(sent) == 5


def test_errors(capture):
    capture.write(FRAMES[:1])
    for arguments, code, line in (
            (["no.pcap", "null:"], 1, "cannot read 'no.pcap'"),
            ([capture.inp], 2, "give a file and a port: mr-bench replay FILE PORT"),
            (["--speed", "fast", capture.inp, "null:"], 2,
             "--speed: 'fast' is neither max nor a factor"),
            (["--speed", "0", capture.inp, "null:"], 2, "--speed: '0'"),
            (["a" * 2000, "null:"], 2, "the file's name is too long")):
        done = run("replay", *arguments)
        assert (done.rc, len(done.errors)) == (code, 1), done.err
        assert line in done.errors[0]
