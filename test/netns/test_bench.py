# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench tx, rx and loop over veth: what was lost is found, to the frame.

The machine may be busy, so how many frames went is not what is tested; what
became of each of them is.
"""
import json
import os
import shutil
import signal

import pytest
from lib.namespaces import wait_until
from lib.process import BUILD, Process
from lib.wire import Wire
from scapy.all import Ether, Raw, wrpcap

BENCH = BUILD / "apps" / "bench" / "mr-bench"
NOBODY = "02:00:00:00:00:99"
TABLE = """table bridge t {{
\tchain c {{
\t\ttype filter hook forward priority 0
\t\tether type ip iifname "p0" numgen inc mod {every} == 0 counter drop
\t}}
}}
"""


@pytest.fixture(name="bridge")
def bridge_between(lab):
    """A tester's namespace with t0 and t1, and a bridge behind them."""
    tester, middle = lab.namespace("t"), lab.namespace("d")
    for i in range(2):
        lab.veth(tester, f"t{i}", middle, f"p{i}")
    middle.ip("link", "add", "br0", "type", "bridge")
    for i in range(2):
        middle.ip("link", "set", f"p{i}", "master", "br0")
    middle.ip("link", "set", "br0", "up")
    wait_until("both ports of the bridge forward", lambda: all(
        middle.link(f"p{i}")["linkinfo"]["info_slave_data"]["state"] ==
        "forwarding" for i in range(2)))
    return tester, middle


@pytest.fixture(name="cable")
def cable_between(lab):
    """Two namespaces, and a cable from t0 to t1."""
    source, sink = lab.namespace("s"), lab.namespace("r")
    lab.veth(source, "t0", sink, "t1")
    return source, sink


class Receiver(Process):
    """mr-bench rx on t1, which is ready."""

    def __init__(self, lab, sink, *options):
        super().__init__(lab, sink, [BENCH, "rx", "--json", *options, "t1"])
        self.sink = sink
        self.says("thread 0")

    def end(self, n):
        """When n frames have come: its trial."""
        wait_until("all have come", lambda: self.sink.link("t1")["stats64"][
            "rx"]["packets"] >= n)
        self.process.send_signal(signal.SIGINT)
        return self.trial()

    def trial(self):
        """What it has received, when it ends."""
        assert self.wait() == 0, self.err.text()
        trial, = json.loads(self.out.text())["trials"]
        return trial


def run(lab, namespace, *arguments, status=0):
    """mr-bench to its end: the document's trial, and stderr."""
    process = Process(lab, namespace, [BENCH, *arguments, "--json"])
    got = process.wait(40)
    assert got == status, (got, process.err.text())
    document = json.loads(process.out.text())
    trial, = document["trials"]
    assert all(port["sends"] or port["receives"]
               for port in document["ports"])
    tx, rx = trial["tx"], trial["rx"]
    assert tx["due"] == tx["sent"] + tx["unsent"]
    assert rx["received"] == rx["foreign"] + rx["unique"] + \
        rx["duplicates"] + rx["too_old"]
    return trial, process.err.text()


def dropped(trial, side):
    """Frames that the ports of that side lost, by their own counters."""
    return sum(drop["n"] for drop in trial["drops"] if drop["side"] == side)


def test_a_bridge_loses_one_in_n(lab, bridge):
    tester, middle = bridge
    if not shutil.which("nft"):
        pytest.skip("nft is missing (package nftables)")
    path = lab.tmp_path / "drop.nft"
    path.write_text(TABLE.format(every=20), encoding="ascii")
    middle.run("nft", "-f", path)
    trial, _ = run(lab, tester, "loop", "--rate", "4k", "--count", "2000",
                   "--max-lag", "5", "--settle", "1", "t0", "t1")
    said = json.loads(middle.run("nft", "-j", "list", "ruleset").stdout)
    lost, = [part["counter"]["packets"] for entry in said["nftables"]
             for part in entry.get("rule", {}).get("expr", [])
             if "counter" in part]
    sent = trial["tx"]["sent"]
    assert sent > 100
    assert lost == sent // 20 + (sent % 20 > 0)
    assert trial["rx"]["lost"] == lost + dropped(trial, "rx") + \
        dropped(trial, "dev")
    assert trial["latency"]["n"] == trial["rx"]["unique"] + \
        trial["rx"]["duplicates"] + trial["rx"]["too_old"]
    assert trial["latency"]["min"] > 500


@pytest.mark.short
def test_both_ways_over_a_cable(lab):
    namespace = lab.namespace("t")
    lab.veth(namespace, "t0", namespace, "t1", queues=2)
    trial, _ = run(lab, namespace, "loop", "--bidirectional", "--queues", "2",
                   "--rate", "10k", "--count", "4000", "--max-lag", "5",
                   "--settle", "1", "--stream", "udp.src=1024-1279", "t0",
                   "t1")
    lost = trial["rx"]["lost"]
    assert trial["tx"]["sent"] > 100
    assert lost == dropped(trial, "rx") + dropped(trial, "dev")
    assert trial["rx"]["duplicates"] == trial["rx"]["reordered"] == 0
    there, back = trial["directions"]
    assert (there["from"], back["from"]) == ("xdp:t0", "xdp:t1")
    assert (there["to"], back["to"]) == ("xdp:t1", "xdp:t0")
    for side, key in (("tx", "sent"), ("tx", "unsent"), ("rx", "unique"),
                      ("rx", "lost")):
        assert there[key] + back[key] == trial[side][key], key


def test_tx_and_rx_are_two_programs(lab, cable):
    source, sink = cable
    receiver = Receiver(lab, sink)
    trial, _ = run(lab, source, "tx", "--rate", "5k", "--count", "2000",
                   "--max-lag", "5", "t0")
    got = receiver.end(trial["tx"]["sent"])
    lost = dropped(got, "rx") + dropped(got, "dev")
    assert got["rx"]["unique"] + lost == trial["tx"]["sent"] > 100
    # What is missing behind the last one that came nobody can know.
    assert got["rx"]["lost"] <= lost
    assert got["latency"] is None


def test_a_receiver_that_is_away_loses_nothing(lab, cable):
    """More frames than a driver's rings have room for by themselves."""
    source, sink = cable
    receiver = Receiver(lab, sink, "--queues", "1")
    os.kill(receiver.child(), signal.SIGSTOP)
    trial, _ = run(lab, source, "tx", "--rate", "100k", "--count", "10000",
                   "--max-lag", "9", "t0")
    os.kill(receiver.child(), signal.SIGCONT)
    got = receiver.end(trial["tx"]["sent"])
    assert trial["tx"]["sent"] == 10000 == got["rx"]["unique"], got


def test_runs_of_tx_are_told_apart(lab):
    source, sink = lab.namespace("s"), lab.namespace("r")
    lab.veth(source, "t0", sink, "t1", queues=2)
    receiver = Receiver(lab, sink, "--queues", "2")
    sent = []
    for port in ("t0", "t0", "live:t0"):
        trial, _ = run(lab, source, "tx", "--rate", "2k", "--count", "600",
                       "--max-lag", "5", "--stream", "udp.src=1024-1279",
                       port)
        sent.append(trial["tx"]["sent"])
    got = receiver.end(sum(sent))
    rx = got["rx"]
    assert rx["runs"] == 3
    assert rx["duplicates"] == rx["too_old"] == 0
    assert rx["unique"] + dropped(got, "rx") + dropped(got, "dev") == \
        sum(sent) == 1800
    runs = {stream["run"] for stream in got["streams"]}
    assert runs == {1, 2, 3}
    for i in runs:
        streams = [s for s in got["streams"] if s["run"] == i]
        assert sum(s["unique"] + s["lost"] for s in streams) <= sent[i - 1]


def test_rx_ends_when_enough_has_come_from_anybody(lab, cable):
    source, sink = cable
    receiver = Receiver(lab, sink, "--count", "50")
    run(lab, source, "tx", "--rate", "2k", "--count", "500", "--max-lag", "5",
        "--unstamped", "t0")
    got = receiver.trial()
    assert json.loads(receiver.out.text())["streams"] == []
    assert got["rx"]["foreign"] == got["rx"]["received"] >= 50


def test_a_software_device_is_pointed_at_live_frames(lab, cable):
    source, sink = cable
    words = ("tx", "--count", "10", "--rate", "1k", "--max-lag", "5", "t0")
    _, err = run(lab, source, *words)
    assert err.count("mr-bench: live:t0 is faster than xdp:t0") == 1
    _, err = run(lab, source, *words, "--quiet")
    assert "live:" not in err


LONG = ("--rate", "1k", "--max-lag", "5")


@pytest.mark.parametrize("words", [
    ("tx", "--count", "100", "--size", "3000", *LONG, "t0"),
    ("tx", "--count", "100", "--size", "3000", "t0"),
    ("loop", "--count", "100", "--size", "3000", *LONG, "t0", "t1")])
def test_frames_that_the_port_drops_were_not_sent(lab, words):
    """They are longer than its MTU: the port takes them, and drops them."""
    namespace = lab.namespace("t")
    lab.veth(namespace, "t0", namespace, "t1")
    trial, err = run(lab, namespace, *words, status=1)
    tx = trial["tx"]
    assert (tx["due"], tx["sent"], tx["unsent"], tx["bytes"]) == (100, 0, 100, 0)
    assert trial["rx"]["lost"] == 0
    why = "100 of 100 frames did not leave: xdp:t0 dropped 100 (too_long)"
    assert (trial["complete"], trial["why_incomplete"]) == (False, why)
    assert err.count("did not leave") == 1
    assert f"mr-bench: {why}" in err.splitlines()


def test_drops_of_the_port_are_not_losses_of_the_device(lab):
    """The stream with frames that are too long has all drops, and each direction
    has its own."""
    namespace = lab.namespace("t")
    lab.veth(namespace, "t0", namespace, "t1")
    trial, _ = run(lab, namespace, "loop", "--bidirectional", "--count", "400",
                   *LONG, "--stream", "size=60", "--stream", "size=3000", "t0",
                   "t1", status=1)
    short, long_ = trial["streams"]
    assert (short["sent"], short["unique"], short["lost"]) == (200, 200, 0)
    assert (long_["sent"], long_["unique"], long_["lost"]) == (0, 0, 0)
    assert trial["tx"]["sent"] == trial["tx"]["unsent"] == 200
    assert trial["tx"]["bytes"] > 0 == trial["rx"]["lost"]
    assert [(way["sent"], way["unsent"], way["lost"])
            for way in trial["directions"]] == [(100, 100, 0)] * 2


def capture_of(path, sizes):
    """Frames of these sizes, a millisecond apart."""
    frames = [Ether(dst="02:00:00:00:00:02") / Raw(bytes(n - 14))
              for n in sizes]
    for i, frame in enumerate(frames):
        frame.time = 1 + i / 1000
    wrpcap(str(path), frames)
    return path


@pytest.mark.parametrize("is_up, sizes, n_sent, name", [
    (True, (60, 3000, 3000), 1, "too_long"), (False, (60, 60), 0, "device")])
def test_a_replay_reports_unsent_frames(lab, is_up, sizes, n_sent, name):
    tester, middle = lab.namespace("t"), lab.namespace("d")
    lab.veth(tester, "t0", middle, "p0")
    if not is_up:
        middle.ip("link", "set", "p0", "down")
    path = capture_of(lab.tmp_path / "in.pcap", sizes)
    out = lab.tmp_path / "out.json"
    process = Process(lab, tester, [BENCH, "replay", "--max-lag", "60", "--out",
                                    out, path, "t0"])
    assert process.wait(30) == 1  # it waits for its link, process.err.text()
    document = json.loads(out.read_text())
    trial, = document["trials"]
    n = len(sizes)
    assert (trial["tx"]["due"], trial["tx"]["sent"]) == (n, n_sent)
    why = (f"{n - n_sent} of {n} frames did not leave: xdp:t0 dropped "
           f"{n - n_sent} ({name})")
    assert document["why_incomplete"] == trial["why_incomplete"] == why
    assert f"mr-bench replay: {why}" in process.err.text().splitlines()


def test_a_replay_goes_on_if_its_program_is_detached(lab):
    """To send, it needs none; opening the port again would end the trial."""
    tester, middle = lab.namespace("t"), lab.namespace("d")
    lab.veth(tester, "t0", middle, "p0")
    path = capture_of(lab.tmp_path / "in.pcap", (60,) * 3000)
    process = Process(lab, tester, [BENCH, "replay", "--max-lag", "60", path, "t0"])
    process.says("worker 0")
    program = tester.link("t0")["xdp"]["prog"]["id"]
    link, = [one["id"] for one in json.loads(
        tester.run("bpftool", "--json", "link", "show").stdout)
        if one.get("prog_id") == program]
    tester.run("bpftool", "link", "detach", "id", link)
    process.says("mr-bench replay: xdp:t0: another program took its frames")
    assert process.wait(60) == 0, process.err.text()


def macs_from(wire, mac):
    """Wait for a frame from that address; all the destinations it has."""
    found = set()
    wait_until("frames come from it", lambda: found.update(
        frame[:6].hex(":") for frame in wire.receive(100000, 0.2)
        if frame[6:12].hex(":") == mac) or found)
    return found


def test_frames_follow_the_addresses_of_their_ports(lab, cable):
    """The addresses change in the middle of a trial."""
    source, sink = cable
    wire = lab.closing(Wire(sink, "t1", 0x0800))
    process = Process(lab, source, [BENCH, "tx", "--rate", "2k", "--max-lag", "9",
                                    "--dst-mac", NOBODY, "t0"])
    process.says("thread 0")
    for i in range(3):
        mac = f"02:00:00:00:cc:0{i}"
        source.ip("link", "set", "t0", "address", mac)
        assert macs_from(wire, mac) == {NOBODY}
        process.says(f"mr-bench: xdp:t0: MAC address {mac}: frames now use it")
    process.process.terminate()
    assert process.wait() == 0, process.err.text()


def test_frames_are_sent_to_the_address_of_the_receiving_port(lab):
    namespace, other = lab.namespace("t"), lab.namespace("o")
    lab.veth(namespace, "t0", other, "o0")
    lab.veth(namespace, "t1", other, "o1")
    wire = lab.closing(Wire(other, "o0", 0x0800))
    process = Process(lab, namespace, [BENCH, "loop", "--rate", "2k",
                                       "--max-lag", "9", "t0", "t1"])
    process.says("thread 0")
    mac = "02:00:00:00:cc:05"
    namespace.ip("link", "set", "t1", "address", mac)
    wait_until("frames are sent to it", lambda: any(
        frame[:6].hex(":") == mac for frame in wire.receive(100000, 0.2)))
    process.process.terminate()
    assert process.wait() == 0, process.err.text()


def test_a_link_that_is_down_is_refused(lab):
    tester, middle = lab.namespace("t"), lab.namespace("d")
    lab.veth(tester, "t0", middle, "p0")
    middle.ip("link", "set", "p0", "down")
    process = Process(lab, tester, [BENCH, "tx", "t0"])
    assert process.wait(30) == 1  # it waits for its links
    assert process.err.text().splitlines()[-1].startswith(
        "mr-bench: xdp:t0: its link is down; check its cable")
    assert process.out.text() == ""


@pytest.mark.parametrize("how", ["deleted", "down"])
def test_a_run_whose_device_is_removed_ends_with_its_figures(lab, how):
    tester, middle = lab.namespace("t"), lab.namespace("d")
    lab.veth(tester, "t0", middle, "p0")
    process = Process(lab, tester, [BENCH, "tx", "--rate", "1k", "--json",
                                    "t0"])
    process.says("thread 0")
    wait_until("frames have left", lambda: middle.link("p0")["stats64"]["rx"][
        "packets"] > 100)
    if how == "deleted":
        middle.ip("link", "delete", "p0")
    else:
        middle.ip("link", "set", "p0", "down")
    assert process.wait() == 1
    document = json.loads(process.out.text())
    assert document["complete"] is False
    assert document["trials"][0]["tx"]["sent"] > 100
    assert ("is gone" if how == "deleted" else "has lost its link") in \
        document["why_incomplete"]
