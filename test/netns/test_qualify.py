# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench qualify on a veth whose ends are both in one namespace.

Rates are the machine's affair, so nothing here depends on them.
"""
import json
import os
import re
import shutil
import signal
from pathlib import Path

import jsonschema
import pytest
from host import limit
from lib.namespaces import run, wait_until
from lib.process import BUILD, L2FWD, Process

BENCH = BUILD / "apps/bench/mr-bench"
SCHEMA = jsonschema.Draft7Validator(json.loads(
    (BUILD / "apps/mr-bench-qualify.schema.json").read_text()))
# As short as it can be.
SHORT = ("--quick", "--seconds", "1", "--sizes", "64", "--devices", "mr-l2fwd",
         "--drivers", "xdp-copy")
LIMIT_S = 180
# Where others take the time of the cores away, a search says so.
BUSY = re.compile("the sender |does not converge|no throughput|more than the "
                  "tolerated loss|exit status 1$|not sent")
MEASURED = ("throughput, round 1", "frameloss", "latency, 64 B", "cost")


class Cable:
    """Two ports and what a run on them leaves."""

    def __init__(self, lab):
        self.lab, self.place = lab, lab.namespace("q")
        lab.veth(self.place, "v0", self.place, "v1")
        self.out = Path(lab.tmp_path) / "nic.json"

    def start(self, *words):
        # Not through run(): signals go to it alone.
        return Process(self.lab, self.place,
                       [BENCH, "qualify", "--out", self.out, *words])

    def run(self, *words, rc=0):
        """A run to its end; its document."""
        process = self.start(*words, "v0", "v1")
        status = process.wait(LIMIT_S)
        self.check_status(process, status, rc)
        return self.document()

    def check_status(self, process, status, rc=0):
        """It is as expected, unless the machine was too busy to measure."""
        why = [why for why in self.steps().values() if why]
        if rc == 0 and why and all(map(BUSY.search, why)):
            rc = 1
        assert status == rc, (why, process.out.text(), process.err.text())

    def check_runs(self):
        """Each step that measured has a result."""
        names = {run["name"] for run in self.document()["runs"]}
        assert names == {name for name, why in self.steps().items()
                         if name.endswith(MEASURED) and not why}
        return {run["kind"]: run for run in self.document()["runs"]}

    def document(self):
        root = json.loads(self.out.read_text())
        SCHEMA.validate(root)
        return root

    def steps(self):
        """Names of steps that were run so far, and why they failed."""
        root = json.loads(self.out.read_text()) if self.out.exists() else {}
        return {step["name"]: step["why"] for step in root.get("steps", [])}

    def programs(self):
        """Processes in the namespace, and its file of changes."""
        number = os.stat(f"/run/netns/{self.place.name}").st_ino
        pids = run("ip", "netns", "pids", self.place.name).stdout.split()
        return pids, Path(f"/run/millrace/qualify-{number}")

    def check_nothing_is_left(self):
        wait_until("all programs have ended", lambda: not self.programs()[0])
        assert not self.programs()[1].exists()
        assert "xdp" not in self.place.link("v1")


@pytest.fixture
def cable(lab):
    return Cable(lab)


def refused(cable, status, text, *words):
    process = cable.start(*words)
    assert process.wait() == status
    line, = process.err.text().splitlines()
    assert re.search(text, line), line
    assert not cable.out.exists()


@pytest.mark.short
def test_a_run_has_all_figures_and_puts_everything_back(cable):
    cable.place.ip("link", "set", "v0", "down")
    root = cable.run(*SHORT)
    assert root["complete"]
    assert cable.place.link("v1")["address"] not in cable.out.read_text()
    driver, = root["drivers"]
    assert driver["conformance"]["status"] in ("passed", "not run")
    assert [port["mode"] for port in driver["ports"]] == ["copy", "copy"]
    runs = cable.check_runs()
    for run in runs.values():
        assert run["rows"] or run["trials"], run
    for trial in runs.get("latency", {"trials": []})["trials"]:
        points = [trial["latency"][key] for key in ("min", "p50", "p99", "max")]
        assert points == sorted(points) and points[0] > 0
    assert {row["unit"] for row in runs["loop"]["rows"]} >= {"ns/frame"}
    page = cable.out.with_suffix(".html").read_text()
    for text in ("xdp-copy", "mr-l2fwd", "software device", "Checks"):
        assert text in page
    assert "UP" not in cable.place.link("v0")["flags"]
    assert cable.out.with_suffix(".logs").exists() == \
        any(cable.steps().values())
    cable.check_nothing_is_left()


def test_nonsense_is_refused_with_a_reason(cable):
    refused(cable, 2, "1 ports; name two that a cable joins", "v0")
    refused(cable, 2, "'v 9/' is not an interface", "v0", "v 9/")
    refused(cable, 1, "no interface or PCI device v9; 'ip link'", "v0", "v9")
    refused(cable, 2, "are the same port", "v0", "xdp:v0")
    refused(cable, 2, "--drivers: 'netmap' is not one of: xdp-copy",
            "--drivers", "netmap", "v0", "v1")
    refused(cable, 1, "--resume: .*No such file.*start without it", "--resume",
            "v0", "v1")
    refused(cable, 2, "--seconds", "--seconds", "soon", "v0", "v1")
    refused(cable, 2, "--out: the page has that name", "--out", "nic.html",
            "v0", "v1")
    cable.place.ip("route", "add", "default", "dev", "v1")
    refused(cable, 1, "v1: it carries the default route.*name two ports",
            "v0", "v1")


def test_a_switch_that_drops_long_frames_is_found(lab, cable):
    """The ports are on a bridge with a lower MTU."""
    switch = lab.namespace("s")
    switch.ip("link", "add", "br0", "type", "bridge", "forward_delay", "0")
    for i in range(2):
        lab.veth(cable.place, f"w{i}", switch, f"s{i}")
        switch.ip("link", "set", f"s{i}", "master", "br0")
    switch.ip("link", "set", "br0", "up")
    switch.ip("link", "set", "s1", "mtu", "600")
    process = cable.start(*SHORT, "--sizes", "64,1518", "w0", "w1")
    assert process.wait(LIMIT_S) == 1
    root = cable.document()
    why = cable.steps()["xdp-copy cable"]
    assert re.search(r"lost (\d+) of \1 frames of 1518 B: is the MTU", why), why
    assert " 64 B" not in why
    assert f"FAILED: xdp-copy cable: {why}" in process.out.text()
    assert not root["runs"] and root["complete"]
    assert why.partition(":")[0] in cable.out.with_suffix(".html").read_text()
    # What the steps wrote stays for whoever looks for the fault.
    assert list(cable.out.with_suffix(".logs").glob("*cable*"))


def test_a_port_that_another_program_has_is_named(cable):
    holder = Process(cable.lab, cable.place, [L2FWD, "--mode", "drop", "v1"])
    holder.says("worker ", 15)
    driver, = cable.run(*SHORT, rc=1)["drivers"]
    assert re.search(rf"xdp:v1: another program .*pid {holder.pid}",
                     driver["why"]), driver
    assert not driver["ports"]


def test_a_device_that_does_not_start_is_named(cable, monkeypatch):
    """A dpdk-testpmd that ends, on PATH before any other."""
    folder = Path(cable.lab.tmp_path) / "bin"
    folder.mkdir()
    (folder / "dpdk-testpmd").write_text(
        "#!/bin/sh\necho 'EAL: no memory for it' >&2\nexit 1\n")
    (folder / "dpdk-testpmd").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    root = cable.run(*SHORT, "--devices", "testpmd", rc=1)
    why = cable.steps()["xdp-copy-testpmd throughput, round 1"]
    assert why == "xdp-copy-testpmd: EAL: no memory for it"
    assert root["complete"] and not root["runs"]
    cable.check_nothing_is_left()


def wait_for_step(cable, text):
    wait_until(f"{text} runs", lambda: any(text in name for name in cable.steps()),
               LIMIT_S)


def test_killed_it_leaves_nothing_and_goes_on_where_it_was(cable):
    cable.place.ip("link", "set", "v0", "down")
    killed = cable.start(*SHORT, "v0", "v1")
    wait_for_step(cable, "throughput")
    killed.kill()
    wait_until("all programs have ended", lambda: not cable.programs()[0])
    assert cable.programs()[1].exists()
    done = dict(cable.steps())
    before = json.loads(cable.out.read_text())
    assert not before["complete"]
    again = cable.start(*SHORT, "--resume", "v0", "v1")
    cable.check_status(again, again.wait(LIMIT_S))
    assert "putting back what a run that was killed" in again.err.text()
    root = cable.document()
    assert root["complete"]
    # What was done is not done again.
    assert [step for step in root["steps"] if step["name"] in done and
            not done[step["name"]]] == \
        [step for step in before["steps"] if not step["why"]]
    cable.check_runs()
    assert "UP" not in cable.place.link("v0")["flags"]
    cable.check_nothing_is_left()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_everything_is_put_back(cable, number):
    cable.place.ip("link", "set", "v0", "down")
    process = cable.start(*SHORT, "v0", "v1")
    wait_for_step(cable, "cable")
    process.process.send_signal(number)
    assert process.wait(30) == 1
    assert process.err.text().strip().endswith(
        "ended by a signal; --resume goes on")
    assert not cable.document()["complete"]
    assert "UP" not in cable.place.link("v0")["flags"]
    cable.check_nothing_is_left()


def test_each_driver_that_opens_the_ports_is_measured_beside_testpmd(cable):
    """And each other one has its reason. Whether the machine was too busy for a
    figure is no matter here."""
    if not shutil.which("dpdk-testpmd"):
        pytest.skip("dpdk-testpmd is missing (package dpdk-dev)")
    process = cable.start("--quick", "--seconds", "1", "--sizes", "64",
                          "--devices", "testpmd", "v0", "v1")
    assert process.wait(LIMIT_S) in (0, 1), process.err.text()
    why = {driver["name"]: driver["why"]
           for driver in cable.document()["drivers"]}
    assert "zero-copy" in why["xdp-zc"] and "not a PCI" in why["vfio"]
    names = {name.partition(" ")[0] for name in cable.steps()
             if "throughput" in name}
    expected = {"xdp-copy-testpmd"}
    if (BUILD / "lib/link/libmillrace-dpdk.so").exists():
        assert why["dpdk"] == ""
        expected.add("dpdk-testpmd")
    assert names == expected
    cable.check_nothing_is_left()
