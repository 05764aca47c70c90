# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench qualify on a veth whose ends are both in one namespace.

Rates are the machine's affair, so nothing here depends on them.
"""
import json
import os
import re
import signal
from pathlib import Path

import jsonschema
import pytest
from host import limit
from lib.namespaces import run, wait_until
from lib.process import BUILD, Process

BENCH = BUILD / "apps/bench/mr-bench"
SCHEMA = jsonschema.Draft7Validator(json.loads(
    (BUILD / "apps/mr-bench-qualify.schema.json").read_text()))
# As short as it can be.
SHORT = ("--quick", "--seconds", "1", "--sizes", "64", "--devices", "mr-l2fwd",
         "--drivers", "xdp-copy")
LIMIT_S = 180


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
        assert status == rc, process.out.text() + process.err.text()
        return self.document()

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
    assert root["complete"] and not any(cable.steps().values())
    driver, = root["drivers"]
    assert driver["conformance"]["status"] in ("passed", "not run")
    assert [port["mode"] for port in driver["ports"]] == ["copy", "copy"]
    kinds = [run["kind"] for run in root["runs"]]
    assert kinds == ["throughput", "frameloss", "latency", "loop"]
    for run in root["runs"]:
        assert run["rows"] or run["trials"], run
    for trial in root["runs"][2]["trials"]:
        points = [trial["latency"][key] for key in ("min", "p50", "p99", "max")]
        assert points == sorted(points) and points[0] > 0
    units = {row["unit"] for row in root["runs"][3]["rows"]}
    assert "ns/frame" in units
    page = cable.out.with_suffix(".html").read_text()
    for text in ("xdp-copy", "mr-l2fwd", "software device", "Checks"):
        assert text in page
    assert "UP" not in cable.place.link("v0")["flags"]
    assert not cable.out.with_suffix(".logs").exists()
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
    cable.place.ip("route", "add", "default", "dev", "v1")
    refused(cable, 1, "v1: it carries the default route.*name two ports",
            "v0", "v1")
