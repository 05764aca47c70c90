# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench tx live:IFACE: the kernel's frames are the streams', to the byte.

What a builder of mr-bench makes of a stream goes to a capture; what the BPF
program makes of it arrives at the other end of a cable. Where values vary in
sequence both are the same; random ones are looked at with scapy.
"""
import ctypes
import json
import os
import re
import signal
import struct
import time
from pathlib import Path

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapReader

from host import limit
from lib.namespaces import wait_until
from lib.process import BUILD, PASS_OBJECT, Process
from lib.tap import Tap
from lib.wire import Wire

BENCH = BUILD / "apps/bench/mr-bench"
STAMP_BYTES = 18
MACS = "eth.src=02:00:00:00:00:01 eth.dst=02:00:00:00:00:02"


@pytest.fixture
def cable(lab):
    """A veth from g0 in one namespace to h0 in another, which has NAPI."""
    source, sink = lab.namespace("g"), lab.namespace("s")
    lab.veth(source, "g0", sink, "h0", mtu=3000)
    # A program gives it NAPI, and no GRO, which changes the order of frames.
    sink.ip("link", "set", "h0", "xdpdrv", "object", PASS_OBJECT, "section",
            "xdp")
    sink.run("ethtool", "-K", "h0", "gro", "off")
    return source, lab.closing(Wire(sink, "h0"))


def tx(source, port, streams, *words, status=0):
    """Run it; its document's one trial."""
    named = [word for text in streams for word in ("--stream", text)]
    done = source.run(BENCH, "tx", port, "--quiet", "--json", *named, *words,
                      check=False)
    assert done.returncode == status, done.stdout
    return document_of(done)["trials"][0]


def document_of(done):
    """Its JSON; warnings on stderr are there, too."""
    text = done.stdout
    return json.loads(text[text.index("{"):text.rindex("}") + 1])


def live(cable, streams, count, *words, rate="20k"):
    """What arrives of so many live frames."""
    source, wire = cable
    trial = tx(source, "live:g0", streams, "--count", count, "--rate", rate,
               "--max-lag", 5, *words)
    assert trial["tx"]["sent"] == count
    assert trial["drops"] == []
    return wire.receive(count)


# All IP: the kernel gives a socket other types behind those of a batch.
SAME = {
    "default": [""],
    "one field": ["udp.src=1-7"],
    "an odometer": ["udp.src=1-3 ip.dst=10.0.0.0/30 udp.dst=53,80,443"],
    "steps": ["ip.src=10.0.0.0/24:step=7 ip.ttl=1-200:step=3"],
    "bytes": ["ip.tos=0-255 ip.ttl=3-9"],
    "tag": ["vlan.id=1-9 vlan.pcp=5 udp.src=1-4"],
    "two tags": ["qinq.id=7 vlan.id=1-5"],
    "addresses": ["eth.src=02:00:00:00:00:00/28 udp.src=1-3"],
    "another type": ["eth.type=0x88b5"],
    "tcp": ["tcp tcp.seq=0-100000:step=999 tcp.flags=syn,ack,fin+ack size=64"],
    "icmp": ["icmp icmp.seq=0-70"],
    "no checksum": ["udp.csum=off udp.src=1-3"],
    "IPv6": ["ip6 size=88 udp.src=1-5 ip.dst=2001:db8::1-2001:db8::9"],
    "sizes": ["size=60x3,577,1514 udp.src=1-5"],
    "weights": ["udp.src=1-3 weight=3", "tcp size=72 tcp.dst=5-9",
                "udp.dst=77 size=99 weight=2"],
    "a sum of zero": ["ip.id=0-65535"],
}


@pytest.mark.parametrize("streams", SAME.values(), ids=SAME.keys())
@pytest.mark.short
def test_frames_are_those_of_the_builder(cable, streams, tmp_path):
    count = 300
    # One program for both: nobody's addresses.
    streams = [text if "eth.src" in text else f"{text} {MACS.split()[0]}"
               for text in streams]
    words = ("--unstamped", "--dst-mac", "02:00:00:00:00:02")
    path = tmp_path / "built.pcap"
    tx(cable[0], f"pcap:tx={path}", streams, "--count", count, *words)
    built = [bytes(data) for data, _ in RawPcapReader(str(path))]
    assert len(built) == count
    assert live(cable, streams, count, *words) == built


def sums_are_right(data):
    given = Ether(data)
    layer = UDP if UDP in given else TCP
    computed = given.copy()
    del computed[IP].chksum
    del computed[layer].chksum
    computed = Ether(bytes(computed))
    return (computed[IP].chksum == given[IP].chksum and
            computed[layer].chksum == given[layer].chksum)


def stamp_of(data):
    """(magic, lane, sequence number, due) at the end of a frame."""
    magic, lane = struct.unpack("!IH", data[-STAMP_BYTES:-12])
    return (magic, lane, int.from_bytes(data[-12:-6], "big"),
            int.from_bytes(data[-6:], "big"))


@pytest.mark.parametrize("size", [60, 61, 1021])
def test_stamps_count_and_have_the_time_of_their_rate(cable, size):
    frames = live(cable, [f"udp.src=1-9 size={size}"], 200, rate="10k")
    stamps = [stamp_of(data) for data in frames]
    assert len({magic for magic, _, _, _ in stamps}) == 1
    assert {lane for _, lane, _, _ in stamps} == {0}
    assert [seq for _, _, seq, _ in stamps] == list(range(200))
    due = [due for _, _, _, due in stamps]
    assert {b - a for a, b in zip(due, due[1:])} == {100_000}
    assert all(sums_are_right(data) for data in frames)


def test_stamps_of_a_mix_of_sizes_do_not_stay_in_longer_frames(cable):
    frames = live(cable, ["size=60x7,576x4,1514 udp.src=1-9"], 1200)
    assert len(frames) == 1200
    assert all(sums_are_right(data) for data in frames)
    assert {len(data) for data in frames} == {60, 576, 1514}
    for data in frames:
        assert not any(data[42:-STAMP_BYTES])
    assert [stamp_of(data)[2] for data in frames] == list(range(1200))


def test_each_stream_has_its_own_numbers(cable):
    frames = live(cable, ["udp.dst=1 weight=2", "udp.dst=2"], 300)
    for port, lane, n in ((1, 0, 200), (2, 1, 100)):
        stamps = [stamp_of(data) for data in frames
                  if Ether(data)[UDP].dport == port]
        assert [(where, seq) for _, where, seq, _ in stamps] == [
            (lane, seq) for seq in range(n)]


def test_random_values_are_all_there_and_in_their_range(cable):
    frames = live(cable, ["ip.src=10.0.0.0/29:random udp.src=7,9,11:random "
                          "udp.dst=0-65535:random"], 2000, rate="50k")
    packets = [Ether(data) for data in frames]
    assert {p[IP].src for p in packets} == {f"10.0.0.{i}" for i in range(8)}
    assert {p[UDP].sport for p in packets} == {7, 9, 11}
    assert len({p[UDP].dport for p in packets}) > 1900
    assert all(sums_are_right(data) for data in frames)


CANNOT = {
    "udp.src=1-9:zipf": "'udp.src' varies by Zipf's law",
    "size=3200": "a frame of 3200 bytes",
    "ip.src=10.0.0.0/20,11.0.0.0/20": "more than 4096 values in sets",
    "tcp size=72x1,73,74,75,76,77,78,79,80": "of more than 8 sizes",
}


@pytest.mark.parametrize("stream,why", CANNOT.items())
def test_unsupported_options_are_named(cable, stream, why):
    source, _ = cable
    done = source.run(BENCH, "tx", "live:g0", "--count", 1, "--stream", stream,
                      check=False)
    assert done.returncode == 1
    assert "live frames, stream 1: " in done.stdout
    assert why in done.stdout
    assert "use an xdp: port" in done.stdout


def test_longer_than_the_mtu_is_refused(lab):
    """The kernel would refuse them one by one, in the middle of a mix."""
    source, sink = lab.namespace("g"), lab.namespace("s")
    lab.veth(source, "g0", sink, "h0")
    done = source.run(BENCH, "tx", "live:g0", "--quiet", "--count", 10,
                      "--stream", "size=60,2000", check=False)
    assert done.returncode == 2
    assert "frames are longer than its MTU allows" in done.stdout


def test_gaps_have_a_bound(cable):
    """Of what is due at once, not of frames; Poisson's are longer at times."""
    source, _ = cable
    trial = tx(source, "live:g0", [""], "--count", 100, "--rate", "10",
               "--pace", "bursts", "--pace-frames", 100, "--max-lag", 5)
    assert trial["tx"]["sent"] == 100
    for words, seconds in ((["--rate", "0.01"], 60),
                           (["--rate", "0.1", "--pace", "poisson"], 8)):
        done = source.run(BENCH, "tx", "live:g0", "--quiet", "--count", 1,
                          *words, check=False)
        assert done.returncode == 2
        assert f"due {seconds} seconds or more apart" in done.stdout


def test_no_such_interface(cable):
    done = cable[0].run(BENCH, "tx", "live:g7", check=False)
    assert done.returncode == 1
    assert "live:g7: no such network interface here" in done.stdout


def test_a_device_that_takes_none_is_not_sent_to(lab):
    source, sink = lab.namespace("g"), lab.namespace("s")
    lab.veth(source, "g0", sink, "h0")
    sink.run("ethtool", "-K", "h0", "gro", "off")
    trial = tx(source, "live:g0", [""], "--count", 500, "--rate", "20k",
               "--max-lag", 5, status=1)
    assert trial["tx"]["sent"] == 0
    assert "live:g0 dropped 500 (no_xdp_xmit)" in trial["why_incomplete"]
    assert trial["tx"]["unsent"] == 500
    assert {d["name"]: d["n"] for d in trial["drops"]} == {"no_xdp_xmit": 500}


@pytest.mark.short
def test_sent_frames_are_received_and_timed(lab):
    here = lab.namespace("h")
    lab.veth(here, "g0", here, "h0")
    done = here.run(BENCH, "loop", "live:g0", "xdp:h0", "--rate", "20k",
                    "--duration", 1, "--json", "--quiet", "--stream",
                    "udp.src=1-1000 size=60x3,500", "--settle", 3,
                    "--max-lag", 5, check=False)
    trial = document_of(done)["trials"][0]
    assert done.returncode == (trial["tx"]["unsent"] > 0), done.stdout
    assert trial["tx"]["due"] == 20000
    assert trial["rx"]["unique"] > 0
    # What was due while a call was set up, or had no room in the ring of a
    # veth, where the machine is busy, has not been sent.
    assert trial["rx"]["lost"] == sum(d["n"] for d in trial["drops"]
                                      if d["side"] != "tx")
    assert trial["rx"]["duplicates"] == 0
    assert trial["rx"]["reordered"] == 0
    assert 0 < trial["latency"]["p50"] < trial["latency"]["max"]
    assert trial["latency"]["max"] < trial["whole_s"] * 1e9
    assert trial["lateness"]["n"] == trial["tx"]["sent"]


def test_a_loss_of_the_receiver_is_not_one_of_the_sender(lab):
    """Both ends have the same number, and one task runs both programs."""
    source, sink = lab.namespace("g"), lab.namespace("s")
    lab.veth(source, "g0", sink, "h0")
    assert source.link("g0")["ifindex"] == sink.link("h0")["ifindex"]
    receiver = Process(lab, sink, [BENCH, "rx", "xdp:h0"])
    wait_until("the receiver has its program",
               lambda: sink.link("h0").get("xdp"))
    receiver.says("thread 0")
    os.kill(receiver.child(), signal.SIGSTOP)  # its fill ring runs empty
    trial = tx(source, "live:g0", [""], "--count", 30000, "--rate", "50k",
               "--max-lag", 5)
    os.kill(receiver.child(), signal.SIGCONT)
    assert trial["tx"]["sent"] == 30000
    assert trial["drops"] == []


def thread_of(pid):
    """The thread that is in the kernel: it alone takes SIGALRM."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        status = (task / "status").read_text("ascii")
        blocked = int(re.search(r"SigBlk:\s*(\w+)", status)[1], 16)
        if int(task.name) != pid and not blocked >> signal.SIGALRM - 1 & 1:
            return int(task.name)
    return None


def test_frames_due_during_a_setup_call_are_named(lab, cable):
    """As after 2^32 rounds, some minutes: the call ends, the next one begins,
    and what is due meanwhile is given up."""
    source, wire = cable
    process = Process(lab, source, [BENCH, "tx", "live:g0", "--json", "--quiet",
                                    "--rate", "100k", "-d", 3, "--max-lag",
                                    "0.001"])
    wait_until("the engine runs", process.child)
    engine = process.child()
    wait_until("it is in the kernel", lambda: thread_of(engine))
    thread = thread_of(engine)
    assert wire.receive(1, limit(30))  # its first call has begun
    for _ in range(3):
        ctypes.CDLL(None).tgkill(engine, thread, signal.SIGALRM)
        time.sleep(0.2)
    assert process.wait() == 1, process.err.text()
    trial, = json.loads(process.out.text())["trials"]
    assert trial["tx"]["due"] == 300000
    drops = {drop["name"]: drop["n"] for drop in trial["drops"]}
    # A call is set up in more than 3 ms.
    assert 300 < drops["kernel_set_up"] <= trial["tx"]["unsent"]


def test_frames_due_at_the_end_are_counted(lab, cable):
    source, wire = cable
    bench = Process(lab, source, [BENCH, "tx", "live:g0", "--json", "--quiet",
                                  "--rate", "10k", "--pace", "bursts",
                                  "--pace-frames", 5000])
    assert wire.receive(1, limit(30))
    bench.process.send_signal(signal.SIGINT)
    assert bench.wait() == 0, bench.err.text()
    tx, = (trial["tx"] for trial in json.loads(bench.out.text())["trials"])
    assert tx["due"] % 5000 == 0
    assert tx["due"] == tx["sent"] + tx["unsent"]


NEEDS = {
    "no CAP_PERFMON": ["setpriv", "--bounding-set=-perfmon,-sys_admin",
                       "--inh-caps=-perfmon,-sys_admin"],
    "no BTF": ["sh", "-c", "mount --bind /dev/null /sys/kernel/btf/vmlinux && "
               "exec \"$@\"", "sh"],
}


@pytest.mark.parametrize("without", NEEDS.values(), ids=NEEDS.keys())
def test_a_missing_requirement_is_named(cable, without):
    source, _ = cable
    done = source.run(*without, BENCH, "tx", "live:g0", "--quiet", "--count",
                      100, check=False)
    assert done.returncode == 1
    assert "CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, and a kernel with BTF" in \
        done.stdout


def n_forwarded(router):
    """Packets that its kernel has passed on."""
    lines = router.run("grep", "^Ip:", "/proc/net/snmp").stdout.splitlines()
    names, values = lines
    return int(dict(zip(names.split(), values.split()))["ForwDatagrams"])


def test_a_page_that_a_router_changed_is_sent_as_the_first_time(lab):
    source, router, sink = (lab.namespace(label) for label in "grs")
    lab.veth(source, "g0", router, "h0")
    lab.veth(router, "k0", sink, "s0")
    router.run("ethtool", "-K", "h0", "gro", "on")
    router.ip("link", "set", "h0", "address", "02:00:00:00:00:02")
    router.ip("address", "add", "198.18.0.254/24", "dev", "h0")
    router.ip("address", "add", "198.19.0.254/24", "dev", "k0")
    router.ip("neighbour", "add", "198.19.0.1", "lladdr", "02:00:00:00:00:99",
              "dev", "k0", "nud", "permanent")
    router.sysctl("net.ipv4.ip_forward", 1)
    before = n_forwarded(router)
    tx(source, "live:g0", [""], "--count", 20000, "--dst-mac",
       "02:00:00:00:00:02")
    received = router.link("h0")["stats64"]["rx"]["packets"]
    assert received > 1000
    wait_until("all of them have been forwarded",
               lambda: n_forwarded(router) - before == received)


def test_a_taps_reader_gets_them(lab):
    """As a virtual machine behind it would."""
    if not os.path.exists("/dev/net/tun"):
        pytest.skip("no /dev/net/tun")
    source = lab.namespace("g")
    tap = lab.closing(Tap(source, "t0"))
    trial = tx(source, "live:t0", [f"udp.src=1-9 size=99 {MACS}"], "--count",
               200, "--rate", "10k", "--max-lag", 5)
    assert trial["tx"]["sent"] == 200
    assert trial["drops"] == []
    # The kernel's own (router solicitations) are between them.
    frames = [data for data, _ in tap.receive(400, limit_s=1)
              if data[6:12] == bytes.fromhex("020000000001")]
    assert [stamp_of(data)[2] for data in frames] == list(range(200))
    assert [Ether(data)[UDP].sport for data in frames] == \
        [1 + i % 9 for i in range(200)]
    assert all(len(data) == 99 and sums_are_right(data) for data in frames)
