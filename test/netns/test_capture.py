# SPDX-License-Identifier: BSD-3-Clause
"""mrctl capture and trace: each frame, what became of it, and why."""
import fcntl
import itertools
import json
import struct
import shutil
import signal
import socket
import subprocess
import termios
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from host import limit
from lib import nat
from lib.forwarder import Bridge, frames_of
from lib.namespaces import wait_until
from lib.nat import Echo, House, Nat, Talker
from lib.process import CTL, NAT, Lines, ask_ctl, environment
from lib.wire import TEST_TYPE, Wire, mac, number_of
from scapy.all import IP, TCP, UDP, RawPcapNgReader

EXAMPLES = Path(__file__).parents[2] / "examples" / "bpftrace"
N_FRAMES = 200
N_PLANTED = 1000


class Ctl:
    """An mrctl that runs until it is stopped, or ends by itself."""

    def __init__(self, lab, *words, is_piped=False, wrap=()):
        self.process = lab.popen(
            [*wrap, *environment(lab), CTL, *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.out = None if is_piped else Lines(self.process.stdout)
        self.err = Lines(self.process.stderr)

    def wait(self, status=0):
        """Its last line on stderr."""
        assert self.process.wait(limit(30)) == status, self.err.text()
        return self.err.text().splitlines()[-1]

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        return self.wait()


def is_on(lab):
    """Whether a capture runs: another one is refused for it."""
    done = ask_ctl(lab, "capture", "drops", "--filter", "no such thing")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    return "another capture or trace is running" in done.stderr


def started(lab, *words, **more):
    """A capture or trace that has begun."""
    ctl = Ctl(lab, *words, **more)
    assert ctl.err.wait(lambda line: "capturing" in line, 20), ctl.err.text()
    return ctl


class Packet(NamedTuple):
    """A packet of a pcapng file."""

    interface: str
    data: bytes
    comment: str
    direction: int  # 1: in, 2: out
    queue: int


def options_of(body):
    """{code: value} of a block's options."""
    found = {}
    while len(body) >= 4:
        code, n = struct.unpack_from("=HH", body)
        found[code] = body[4:4 + n]
        body = body[4 + n + -n % 4:]
    return found


def read_pcapng(path):
    """The packets of a file of whole blocks."""
    data, names, packets = path.read_bytes(), [], []
    while data:
        kind, n = struct.unpack_from("=II", data)
        body, end = data[8:n - 4], struct.unpack_from("=I", data, n - 4)
        assert end == (n,) and n % 4 == 0
        data = data[n:]
        if kind == 1:
            names.append(options_of(body[8:])[2].decode())
        elif kind == 6:
            interface, _, _, n_kept = struct.unpack_from("=IIII", body)
            more = options_of(body[20 + n_kept + -n_kept % 4:])
            packets.append(Packet(
                names[interface], body[20:20 + n_kept], more[1].decode(),
                *struct.unpack("=II", more[2] + more[6])))
    # Another reader finds the same.
    assert [raw for raw, _ in RawPcapNgReader(str(path))] == \
        [packet.data for packet in packets]
    return packets


@pytest.mark.short
def test_a_file_has_both_directions_of_a_port(lab, star):
    forwarder = Bridge(lab, star)
    path = lab.tmp_path / "p0.pcapng"
    ctl = started(lab, "capture", star.ports[0], "--write", path, "--filter",
                  f"ether proto {TEST_TYPE}", "--count", 2 * N_FRAMES)
    sent = forwarder.exchange(N_FRAMES)
    assert ctl.wait() == \
        f"mrctl: {2 * N_FRAMES} frames captured, missed none"
    packets = read_pcapng(path)
    assert [packet.data for packet in packets] == sent
    for packet in packets:
        assert (packet.interface, packet.queue) == ("xdp:p0", 0)
        assert packet.comment.startswith("worker 0, queue 0, burst ")
        assert packet.direction == 1 + (number_of(packet.data) >> 16)
    # Nothing is left on: the next one begins, and sees only what it asks for.
    ctl = started(lab, "capture", star.ports[1], "--json", "--filter",
                  f"ether src {mac(1).hex(':')}", "--snap", 20)
    forwarder.exchange(N_FRAMES)
    ctl.out.wait(lambda line: True, limit(10), N_FRAMES - 1)
    assert f"{N_FRAMES} frames captured" in ctl.stop()
    lines = [json.loads(line) for line in ctl.out.text().splitlines()]
    assert {(line["event"], len(line["data"]), line["bytes"])
            for line in lines} == {("rx", 40, 100)}
    wait_until("it is off", lambda: not is_on(lab))
    forwarder.stop()


def test_tshark_shows_frames_while_they_pass(lab, star):
    if not shutil.which("tshark"):
        pytest.skip("no tshark (package tshark)")
    forwarder = Bridge(lab, star)
    ctl = started(lab, "capture", star.ports[0], "--write", "-",
                  is_piped=True)
    shark = lab.popen(["tshark", "-l", "-n", "-r", "-", "-T", "fields", "-e",
                       "frame.interface_name", "-e", "frame.len", "-e",
                       "frame.comment", "-Y", f"eth.type == {TEST_TYPE}"],
                      stdin=ctl.process.stdout, stdout=subprocess.PIPE,
                      stderr=subprocess.DEVNULL)
    ctl.process.stdout.close()
    lines = Lines(shark.stdout)
    forwarder.exchange(10)
    assert lines.wait(lambda line: True, limit(30), 19), lines.text()
    fields = lines.text().splitlines()[0].split("\t")
    assert fields[:2] == ["xdp:p0", "100"] and "queue 0" in fields[2]
    ctl.process.send_signal(signal.SIGINT)
    assert shark.wait(limit(20)) == 0
    forwarder.stop()


def test_a_file_grows_although_frames_keep_coming(lab, star):
    """Slowly: all of them are fewer than mrctl writes at once."""
    forwarder = Bridge(lab, star)
    path = lab.tmp_path / "p0.pcapng"
    ctl = started(lab, "capture", "p0", "--write", path)
    n_empty = path.stat().st_size
    for one in frames_of(0, N_FRAMES):
        forwarder.wires[0].send(one)
        time.sleep(limit(4) / N_FRAMES)
        if path.stat().st_size > n_empty:
            break
    assert path.stat().st_size > n_empty
    ctl.stop()
    forwarder.stop()


def test_a_pipe_gets_whole_blocks_although_a_signal_ends_it(lab, star):
    """The signal comes while mrctl waits for the pipe's reader."""
    forwarder = Bridge(lab, star)
    ctl = started(lab, "capture", "p0", "--write", "-", is_piped=True)
    pipe = ctl.process.stdout

    def fills():
        forwarder.exchange(50, 1500)
        unread = fcntl.ioctl(pipe, termios.FIONREAD, struct.pack("i", 0))
        return struct.unpack("i", unread)[0] > 30000

    wait_until("the pipe fills", fills)
    forwarder.exchange(100, 1500)
    ctl.process.send_signal(signal.SIGINT)
    path = lab.tmp_path / "pipe.pcapng"
    path.write_bytes(pipe.read())
    assert "frames captured" in ctl.wait()
    assert {len(packet.data) for packet in read_pcapng(path)} == {1500}
    forwarder.stop()


def test_frames_forwarded_by_the_kernel_count_as_missed(lab, star):
    for host in star.hosts:  # its end receives what is redirected to it
        host.run("ethtool", "-K", "h0", "gro", "on")
    forwarder = Bridge(lab, star, "--mode", "learn", "--offload", "on")
    forwarder.exchange(10)
    wait_until("both hosts have rules", lambda: forwarder.next_snapshot()
               ["offload"]["rules"] == 2)
    ctl = started(lab, "capture", "p0", "--json")
    forwarder.exchange(N_FRAMES)
    wait_until("all is counted", lambda: forwarder.next_snapshot()
               ["ports"][0]["queues"][0]["rx"]["offloaded"] >= N_FRAMES)
    forwarder.next_snapshot()  # by then, mrctl has been told
    assert f"missed: offloaded {2 * N_FRAMES}" in ctl.stop()
    forwarder.stop()


def test_drops_are_named(lab, star):
    forwarder = Bridge(lab, star, "--mode", "drop")
    path = lab.tmp_path / "drops.pcapng"
    ctl = started(lab, "capture", "drops", "--filter",
                  f"ether proto {TEST_TYPE}", "--write", path, "--count",
                  N_FRAMES)
    frames = frames_of(1, N_FRAMES)
    forwarder.wires[1].send_all(frames)
    ctl.wait()
    packets = read_pcapng(path)
    assert [packet.data for packet in packets] == frames
    assert {packet.interface for packet in packets} == {"xdp:p1"}
    assert all("drop: mode_drop" in packet.comment for packet in packets)
    forwarder.stop()


def test_bad_input_is_one_line(lab, star):
    forwarder = Bridge(lab, star)
    for words, status, text in (
            (["capture"], 2, "needs a port, or drops"),
            (["capture", "nowhere"], 1, "no port 'nowhere'"),
            (["capture", "p0", "--filter", "tcp and"], 1, "syntax error"),
            (["capture", "p0", "--snap", "70000"], 1, "snap"),
            (["capture", "p0", "--count", "0"], 2, "above 0"),
            (["trace", "--filter", "port foo"], 1, "pcap-filter(7)"),
            (["capture", "p0", "--write", lab.tmp_path / "no" / "x"], 1,
             "No such file")):
        done = ask_ctl(lab, *words)
        assert (done.returncode, done.stderr.count("\n")) == (status, 1), \
            done.stderr
        assert text in done.stderr
    ctl = started(lab, "trace")
    kept = lab.tmp_path / "kept.pcapng"
    kept.write_bytes(b"of last night")
    done = ask_ctl(lab, "capture", "p0", "--write", kept)
    assert "another capture or trace is running" in done.stderr
    assert kept.read_bytes() == b"of last night"
    ctl.stop()
    forwarder.stop()


def test_a_full_disk_ends_the_capture_alone(lab, star):
    """The file keeps complete packets; frames pass all the time."""
    forwarder = Bridge(lab, star)
    path = lab.tmp_path / "short.pcapng"
    ctl = started(lab, "capture", "p0", "--write", path,
                  wrap=["prlimit", "--fsize=10000"])
    forwarder.exchange(N_FRAMES)
    assert "File too large; the capture has ended" in ctl.wait(1)
    assert 0 < len(read_pcapng(path)) < N_FRAMES
    done = ask_ctl(lab, "capture", "p0", "--write", "/dev/full")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "/dev/full: No space left on device" in done.stderr
    wait_until("it is off", lambda: not is_on(lab))
    forwarder.exchange(N_FRAMES)
    forwarder.stop()


def test_a_client_that_dies_leaves_nothing(lab, star):
    forwarder = Bridge(lab, star)
    for _ in range(3):
        ctl = started(lab, "capture", "p0", "--json")
        forwarder.exchange(50)
        ctl.process.kill()
        ctl.process.wait(limit(10))
        wait_until("it is off", lambda: not is_on(lab))
    forwarder.stop()


def test_a_client_that_does_not_read_misses_frames_that_are_counted(lab, star):
    """A ring is full after 4 MiB; frames are neither lost nor delayed."""
    forwarder = Bridge(lab, star)
    control, = lab.tmp_path.glob("*.sock")
    with socket.socket(socket.AF_UNIX) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(limit(10))
        client.connect(str(control))
        client.sendall(b'{"verb":"capture","port":"p0"}\n')
        wait_until("the capture runs", lambda: is_on(lab))
        n_sent = 0
        for _ in range(20):
            n_sent += len(forwarder.exchange(200, 1500))
        missed = 0
        with client.makefile("rb") as lines:
            n_seen = 0
            while n_seen + missed < n_sent:
                line = json.loads(lines.readline())
                n_seen += "event" in line
                missed = line.get("missed", {}).get("ring_full", missed)
        assert n_seen + missed == n_sent and missed > 0
    wait_until("it is off", lambda: not is_on(lab))
    forwarder.stop()


IDS = itertools.count(1)


def ip(src, dst, layer4, **more):
    """No two are equal."""
    return IP(src=src, dst=dst, id=next(IDS) & 0xffff, **more) / layer4


def planted(n):
    """Frames 10 n to 10 n + 9: (side that it comes from, what must become of
    it: None is that it is sent, packet)."""
    out = {"src": "10.0.0.2", "dst": nat.SERVER,
           "layer4": UDP(sport=1024 + n, dport=7000)}
    back = {"src": nat.SERVER, "dst": nat.OUTSIDE,
            "layer4": UDP(sport=7000, dport=1024 + n)}
    return [
        (0, None, ip(**out)),
        (0, None, ip(**out)),  # its mapping is there by now
        (0, "ttl", ip(**out, ttl=1)),
        (0, "l4_malformed", ip(**out | {"layer4": UDP(len=3)})),
        (0, "spoofed", ip(**out | {"src": "10.9.0.2"})) if n % 2 else
        (0, "protocol", ip(**out | {"layer4": b""}, proto=99)),
        (0, "martian", ip(**out | {"dst": "127.0.0.1"})),
        (0, "tcp_state", ip(**out | {"layer4": TCP(dport=80, flags="R")})),
        (0, "ether_type", n.to_bytes(60, "big")),
        (1, "no_mapping", ip(**back | {"layer4": UDP(dport=65000)})),
        (1, "not_for_us", ip(**back)),
    ]


def mac_of(host, address):
    """That of a neighbour."""
    words = host.run("ip", "neighbour", "show", address).stdout.split()
    return bytes.fromhex(words[words.index("lladdr") + 1].replace(":", ""))


def check_path(path, side, end):
    """What a trace says about a frame that was planted."""
    last = path["steps"][-1]
    assert path["port"] == f"xdp:p{side}"
    assert path["end"] == ("dropped" if end else "sent"), path
    if end:
        assert last["reason"] == end, path
        return
    assert last["port"] == "xdp:p1" and f"-> {nat.OUTSIDE}:" in last["rewrite"]
    assert "= 192.0.2.1:" in last["note"]
    notes = [path["note"]] + [step.get("note") for step in path["steps"]]
    assert "mapping created" in notes or "mapping found" in notes or \
        path["note"].startswith("mapping "), path


def bpftrace(lab, nat_pid, script):
    """A script of examples/bpftrace that watches a program."""
    traced = lab.popen(["bpftrace", "-B", "line", "-p", nat_pid,
                        EXAMPLES / script], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE)
    lines, errors = Lines(traced.stdout), Lines(traced.stderr)
    if not lines.wait(lambda line: line.startswith("Attaching"), 30):
        pytest.skip(f"bpftrace cannot run here: {errors.text()}")
    return traced, lines


def test_bpftrace_shows_mappings_and_drops(lab):
    if not shutil.which("bpftrace"):
        pytest.skip("no bpftrace (package bpftrace)")
    house = House(lab)
    lab.closing(Echo(house.server))
    translator = Nat(house)
    if "mapping_created" not in subprocess.run(
            ["readelf", "-n", NAT], capture_output=True, text=True,
            check=True).stdout:
        pytest.skip("built without <sys/sdt.h> (package systemtap-sdt-dev)")
    traced = [bpftrace(lab, translator.pid, script)
              for script in ("mappings.bt", "drops.bt")]
    seen = []
    for _ in range(100):  # its probes are in place somewhat later than it says
        seen.append(lab.closing(Talker(house.a)).ask())
        raw = lab.closing(Wire(house.server, "h0"))
        raw.send(mac_of(house.server, nat.OUTSIDE) + mac(7) + b"\x08\0" + bytes(
            ip(nat.SERVER, nat.OUTSIDE, UDP(dport=65000))))
        if all(len(lines.text().splitlines()) > 2 for _, lines in traced):
            break
        time.sleep(0.1)
    assert any(f"+ 17 10.0.0.2:{port} = {nat.OUTSIDE}:{port}"
               in traced[0][1].text() for _, port in seen), \
        traced[0][1].text()
    assert "@drops[no_mapping]" in traced[1][1].text()
    for process, _ in traced:
        process.send_signal(signal.SIGINT)
        process.wait(limit(20))
    translator.stop()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_trace_finds_all_frames_and_their_ends(lab, workers):
    house = House(lab)
    lab.closing(Echo(house.server, 7000))
    translator = Nat(house, "--workers", workers)
    assert lab.closing(Talker(house.a, port=7000)).ask()[0] == nat.OUTSIDE
    macs = mac_of(house.a, nat.INSIDE), mac_of(house.server, nat.OUTSIDE)
    wires = [lab.closing(Wire(host, "h0")) for host in (house.a, house.server)]
    ctl = started(lab, "trace", "--json", "--count", N_PLANTED, "--filter",
                  f"ether src {mac(7).hex(':')}")
    wanted = {}
    for n in range(N_PLANTED // 10):
        for side, end, packet in planted(n):
            kind = TEST_TYPE if end == "ether_type" else 0x0800
            data = (mac(9) if end == "not_for_us" else macs[side]) + \
                mac(7) + struct.pack("!H", kind) + bytes(packet)
            wanted[data.hex()] = side, end
            wires[side].send(data)
    said = ctl.wait()
    assert f"{N_PLANTED} frames traced" in said and "missed none" in said
    paths = [json.loads(line) for line in ctl.out.text().splitlines()]
    assert len(paths) == len(wanted) == N_PLANTED
    for path in paths:
        check_path(path, *wanted.pop(path["data"]))
        # Who receives a frame may not be who has its mapping.
        note = path.get("note", "")
        assert workers == 1 or not note.startswith("no mapping:")
    assert not wanted
    translator.stop()
