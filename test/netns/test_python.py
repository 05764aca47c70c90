# SPDX-License-Identifier: BSD-3-Clause
"""The package for Python on real interfaces, through its examples."""
import asyncio
import collections
import signal
import sys
from pathlib import Path

import pytest
from lib import talk
from lib.forwarder import Forwarder
from lib.namespaces import Star
from lib.process import Process
from lib.wire import TEST_TYPE, Wire, frame
from scapy.all import IP, UDP, Ether, wrpcap

EXAMPLES = Path(__file__).resolve().parents[2] / "examples/python"


@pytest.fixture
def example(lab, python_path):
    """A function that starts one in a namespace."""
    if not python_path:
        pytest.skip("the package for Python is not built")

    def start(namespace, name, *arguments):
        return Process(lab, namespace, [sys.executable, "-Bu",
                                        EXAMPLES / f"{name}.py", *arguments])
    return start


@pytest.mark.short
def test_segments_of_kernels_pass_uncut(lab, end):
    """Their metadata says how to cut them, and where checksums are due."""
    if not Path("/dev/net/tun").exists():
        pytest.skip("no /dev/net/tun")
    middle, hosts = lab.namespace("f"), [lab.namespace(f"h{i}") for i in "01"]
    ends = [end(middle, "tap:p0,tso")]
    ends.append(end(middle, "tap:p1,tso", ends[0]))
    for i, host in enumerate(hosts):
        middle.ip("link", "set", f"p{i}", "netns", host.name, "name", "h0")
        host.ip("link", "set", "h0", "up")
        host.ip("address", "add", f"{Star.address(i)}/24", "dev", "h0")
    seen = collections.Counter()

    async def forward(near, far):
        async for burst in near.port.bursts(meta=True):
            seen.update(name for i in range(len(burst))
                        for name in burst.meta(i))
            while burst:
                far.port.tx().send(burst)

    async def bridge():
        both = asyncio.gather(forward(*ends), forward(*ends[::-1]))
        talking = asyncio.ensure_future(
            asyncio.to_thread(talk.tcp, *hosts, Star.address(1)))
        await asyncio.wait([both, talking], return_when="FIRST_COMPLETED")
        if not both.cancel():
            both.result()  # raises what ended it
        await talking

    asyncio.run(bridge())
    assert min(seen["gso_bytes"], seen["csum_start_bytes"]) > 0
    for one in ends:
        events = one.port.tx().stats()["events"]
        assert events["csum_device"] > 0 and events["gso_software"] == 0


def test_l2fwd_forwards_until_it_is_interrupted(lab, star, example):
    wires = [lab.closing(Wire(host, "h0", TEST_TYPE))
             for host in star.hosts[:2]]
    forward = example(star.middle, "l2fwd", "p0", "p1")
    assert forward.out.wait("forwarding".__eq__, 15), forward.err.text()
    for near, far in (0, 1), (1, 0):
        frames = [frame(60 + 100 * i, i) for i in range(14)]
        wires[near].send_all(frames)
        assert wires[far].receive(len(frames)) == frames
    forward.process.send_signal(signal.SIGINT)
    assert forward.wait() == 0, forward.err.text()
    assert "worker 0 rounds" in forward.out.text()


def test_device_test_passes_a_forwarder(lab, example):
    tester, middle = lab.namespace("t"), lab.namespace("f")
    for i in range(2):
        lab.veth(tester, f"t{i}", middle, f"p{i}")
    Forwarder(lab, middle, "p0", "p1")
    test = example(tester, "device_test", "t0", "t1")
    assert test.wait() == 0, test.out.text() + test.err.text()
    assert test.out.text().count("5 of 5") == 12


def test_rates_sleep_until_frames_arrive(lab, star, example):
    wire = lab.closing(Wire(star.hosts[0], "h0", TEST_TYPE))
    sample = example(star.middle, "rates", "p0", 60)
    assert sample.out.wait("bits/s 0".__eq__, 15)
    for _ in range(2):
        n_before = sample.out.count()
        wire.send_all(frame(100, i) for i in range(10))
        assert sample.out.wait(lambda line: "other/s" in line, 15, n_before)
        assert sample.out.wait("bits/s 0".__eq__, 15, sample.out.count())


def test_replay_sends_the_frames_of_the_capture(lab, star, example, tmp_path):
    frames = [Ether() / IP(dst="192.0.2.1") / UDP(dport=i + 1) / bytes(64)
              for i in range(500)]
    wrpcap(str(tmp_path / "in.pcap"), frames)
    wire = lab.closing(Wire(star.hosts[0], "h0", 0x0800))
    replay = example(star.middle, "replay", tmp_path / "in.pcap", "p0")
    assert sorted(wire.receive(500)) == sorted(map(bytes, frames))
    assert replay.wait() == 0, replay.err.text()
    assert replay.out.text().startswith("500 frames sent")
