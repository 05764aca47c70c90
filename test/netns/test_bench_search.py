# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench's searches through mr-l2fwd and mr-nat: counts that agree.

Rates are the machine's affair, so nothing here depends on them.
"""
import json
import re

import pytest
from lib.namespaces import wait_until
from lib.process import BUILD, CTL, L2FWD, NAT, Process, environment

BENCH = BUILD / "apps" / "bench" / "mr-bench"
# A shared machine sends late, or not at all, so no trial is repeated.
CALM = ["--trial", "0.5", "--max-lag", "10", "--unsent-tolerance", "50%"]


class Wire:
    """Two interfaces of the tester, and two of the device under test.

        tester: t0 --- d0 :device: d1 --- t1
    """

    def __init__(self, lab, queues=1):
        self.lab = lab
        self.tester, self.device = lab.namespace("t"), lab.namespace("d")
        for i in range(2):
            lab.veth(self.tester, f"t{i}", self.device, f"d{i}", queues)

    def bench(self, *words, rc=0):
        """mr-bench with --json; what it measured."""
        # Not through run(): the document is stdout alone.
        process = Process(self.lab, self.tester, [BENCH, *words, "--json"])
        status = process.wait(100)
        assert status == rc, process.err.text()
        return json.loads(process.out.text())


@pytest.fixture
def wire(lab):
    return Wire(lab)


@pytest.fixture
def l2fwd(wire):
    process = Process(wire.lab, wire.device, [L2FWD, "d0", "d1"])
    process.says("worker ", 15)
    return process


def total(measured, side, name):
    return sum(trial[side][name] for trial in measured["trials"])


def check_counts(measured, l2fwd):
    """What the tester and the device counted is the same."""
    sent, received = (total(measured, "tx", "sent"),
                      total(measured, "rx", "received"))
    for trial in measured["trials"]:
        assert trial["tx"]["due"] == trial["tx"]["sent"] + trial["tx"]["unsent"]
        assert trial["tx"]["sent"] == trial["rx"]["unique"] + \
            trial["rx"]["lost"]
    l2fwd.process.terminate()
    assert l2fwd.wait() == 0
    text = l2fwd.out.text() + l2fwd.err.text()
    forwarded = int(re.search(r"forwarded (\d+) frames", text).group(1))
    assert received <= forwarded <= sent
    assert "accounting invariants hold" in text
    return sent, forwarded, received


@pytest.mark.short
def test_throughput_through_a_bridge(wire, l2fwd):
    measured = wire.bench("throughput", *CALM, "--rate", "2k", "--sizes",
                          "64,1518", "--loss-tolerance", "50%", "t0", "t1")
    assert [row["frame_bytes"] for row in measured["rows"]] == [60, 1514]
    # Nothing is lost at so little, so the highest rate is the result and has
    # no bound above; unless the host has kept the device waiting.
    for row in measured["rows"]:
        assert (row["low"] == 2000) == (row["high"] == 0), row
        assert 0 < row["value"] <= row["low"]
    check_counts(measured, l2fwd)
    # The path and the two trials of each size.
    assert total(measured, "tx", "due") >= 2 * (100 + 1000 + 1000)


def test_latency_through_a_bridge(wire, l2fwd):
    measured = wire.bench("latency", *CALM, "--rate", "2k", "--shares",
                          "10,50", "t0", "t1")
    for share in (10, 50):
        values = [row["value"] for row in measured["rows"]
                  if row["goal"].endswith(f"-at-{share}%")]
        assert len(values) == 6
        assert values == sorted(values)
        assert values[0] > 0
    for trial in measured["trials"]:
        assert trial["latency"]["n"] == trial["rx"]["unique"]
        tail = trial["tail"]
        assert tail["waited_ns"] + tail["still_ns"] + tail["called_ns"] <= \
            tail["late_ns"]
    own = [measured["measured"][f"own_{point}_ns"]
           for point in ("p50", "p99", "p999", "max")]
    assert 0 < own[0] and own == sorted(own)
    check_counts(measured, l2fwd)


def test_nothing_forwards(wire):
    process = Process(wire.lab, wire.tester,
                      [BENCH, "throughput", *CALM, "t0", "t1"])
    assert process.wait(60) == 1
    assert re.fullmatch(r"mr-bench: 64 B: none of 100 frames came back: "
                        r"100 frames left xdp:t0 and none reached xdp:t1.*",
                        process.err.text().strip().splitlines()[-1])


@pytest.mark.parametrize("words", [("throughput", "--sizes", "3000"),
                                   ("latency", "--size", "3000", "--rate", "1k",
                                    "--shares", "100")])
def test_a_search_fails_if_its_port_drops_all_frames(wire, words):
    process = Process(wire.lab, wire.tester, [BENCH, *words, "--max-lag", "10", "t0", "t1"])
    assert process.wait(60) == 1
    assert re.search(r"nothing was sent: 100 of 100 frames did not leave: "
                     r"xdp:t0 dropped 100 \(too_long\)", process.err.text())


class Translator(Process):
    """mr-nat between d0 and d1 of a wire."""

    def __init__(self, wire, *options, more):
        config = wire.lab.tmp_path / "nat.yaml"
        config.write_text("inside: {port: d0, addresses: 10.0.0.1/24}\n"
                          "outside: {port: d1, addresses: 192.0.2.1/24, "
                          f"gateway: 192.0.2.2}}\n{more}\n")
        self.environment = environment(wire.lab)
        super().__init__(wire.lab, wire.device, [
            *self.environment, NAT, "--json", "--config", config,
            *options])
        assert self.err.wait(lambda line: line.startswith("worker "), 15)

    def clear(self, *options):
        """A command line that ends all sessions."""
        return " ".join(map(str, [*self.environment, CTL, "nat", "clear", "all",
                                  *options, ">/dev/null"]))

    def stop(self):
        self.process.terminate()
        assert self.wait() == 0


@pytest.mark.parametrize("now", [False, True])
def test_ports_in_hold_down_are_no_rate(lab, now):
    """One address of 300 ports: clear alone leaves them in hold-down."""
    wire = Wire(lab, 1)
    translator = Translator(wire, more="ports: {range: 2000-2299}")
    options = ["--rate", "1k", "--connections", "200", "--resolution", "50%",
               "--max-connections", "2000", "--clients", "1", "--reset",
               translator.clear(*["--now"] * now), "t0", "t1"]
    if now:
        rows = {row["goal"]: row["value"]
                for row in wire.bench("nat", *options)["rows"]}
        assert rows["table-capacity"] == 300 and rows["set-up-rate"] > 0
    else:
        bench = Process(wire.lab, wire.tester, [BENCH, "nat", *options])
        assert bench.wait(60) == 1
        assert "refused all 200" in bench.err.text()
        assert "--now" in bench.err.text()
    translator.stop()


def test_new_mac_addresses_are_announced_to_the_nat(lab):
    """Both ports announce theirs before they send more frames."""
    wire = Wire(lab, 1)
    translator = Translator(wire, more="limits: {mappings: 1500}")
    process = Process(wire.lab, wire.tester, [
        BENCH, "nat", "--json", "--rate", "2k", "--connections", "400",
        "--resolution", "50%", "--max-connections", "4000", "--reset",
        translator.clear(), "t0", "t1"])
    wait_until("it sends", lambda: wire.device.link("d0")["stats64"]["rx"][
        "packets"] > 50)
    for name, mac in (("t0", "02:00:00:00:dd:00"), ("t1", "02:00:00:00:dd:01")):
        wire.tester.ip("link", "set", name, "address", mac)
        process.says(f"mr-bench: xdp:{name}: MAC address {mac}: announced to its link")
    assert process.wait(100) == 0, process.err.text()
    rows = {row["goal"]: row for row in json.loads(process.out.text())["rows"]}
    assert rows["table-capacity"]["value"] == 1500
    translator.stop()


@pytest.mark.parametrize("protocol,queues", [("udp", 1), ("tcp", 1),
                                             ("udp", 2)])
def test_the_table_of_a_nat(lab, protocol, queues):
    """With two queues, half of the connections have the other worker."""
    wire = Wire(lab, queues)
    translator = Translator(wire, "--workers", queues,
                            more="limits: {mappings: 1500}")
    measured = wire.bench("nat", "--protocol", protocol, "--rate", "2k",
                          "--connections", "400", "--resolution", "50%",
                          "--max-connections", "4000", "--reset",
                          translator.clear(), "t0", "t1")
    ports = measured["ports"]
    assert [port["name"] for port in ports] == ["xdp:t0", "xdp:t1"]
    for port in ports:
        assert port["mode"] == "copy" and port["rx_queues"] == queues
        assert port["nic"]["driver"] == "veth" and port["link_mbps"] > 0
    assert measured["clock"]["source"] in ("tsc", "CLOCK_MONOTONIC")
    rows = {row["goal"]: row for row in measured["rows"]}
    assert rows["table-capacity"]["value"] == 1500
    assert not rows["table-capacity"]["is_limited_by_tester"]
    assert 0 < rows["set-up-rate"]["value"] <= 2000
    down = rows["tear-down-rate"]
    assert 0 < down["value"]
    assert down["low"] == (down["value"] if down["high"] > 0 else 0)
    # The command starts a program: that takes longer than 400 connections.
    assert down["is_limited_by_tester"]
    translator.stop()
