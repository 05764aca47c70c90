# SPDX-License-Identifier: BSD-3-Clause
"""qualify: cores, the output of the conformance suite, and the files in docs/nics."""
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema

from mr_bench import qualify
from mr_bench.qualify import checks, drivers, ports, settings
from mr_bench.qualify.plan import Planned
from mr_bench.qualify.record import Record
from mr_bench.runner import Device

TOP = Path(__file__).resolve().parents[3]
FILES = sorted((TOP / "docs/nics").glob("*.json"))
SCHEMA = jsonschema.Draft7Validator(json.loads(
    (Path(os.environ["MR_BUILD"]) / "apps/mr-bench-qualify.schema.json").read_text()))
TAP = """\
1..4
ok 1 - info_says_what_the_port_is
skipped on xdp: it has one port
not ok 2 # SKIP a_rule_drops
frame 3 is missing
not ok 3 - order_is_kept
# n_kept != n_sent
ok 4 - pages_are_conserved
"""


def topology(folder, n, threads=1, nodes=1):
    """A sysfs of n CPUs."""
    for cpu in range(n):
        place = folder / f"cpu{cpu}"
        (place / "topology").mkdir(parents=True)
        (place / f"node{cpu * nodes // n}").mkdir()
        first = cpu % (n // threads)
        siblings = ",".join(str(first + i * n // threads) for i in range(threads))
        (place / "topology/thread_siblings_list").write_text(siblings)
    return folder


def test_cores_are_near_the_nic_and_apart(tmp_path):
    assert drivers.choose_cores([0], -1, topology(tmp_path / "1", 1)) == \
        drivers.Cores([0], 0)
    assert drivers.choose_cores([0, 1], -1, topology(tmp_path / "2", 2)) == \
        drivers.Cores([0], 1)
    # One thread of each core; the first core is the machine's.
    assert drivers.choose_cores(range(8), 0, topology(tmp_path / "8", 8, threads=2)) == \
        drivers.Cores([1, 2], 3)
    assert drivers.choose_cores(range(8), 1, topology(tmp_path / "n", 8, nodes=2)) == \
        drivers.Cores([5, 6], 7)


def test_a_failed_conformance_test_has_its_name_and_words(tmp_path):
    record = Record(tmp_path / "nic.json", {"steps": [], "ports": []}, False)
    record.file("x conformance", ".json").write_text(TAP)
    found = checks.read_tap(record, "x conformance")
    record.close()
    assert (found["passed"], found["skipped"]) == (2, 1)
    assert found["status"] == "failed"
    assert found["failed"] == [
        {"name": "order_is_kept", "why": "frame 3 is missing n_kept != n_sent"}]


def test_the_cost_is_of_a_device_that_is_ready(tmp_path, monkeypatch):
    """Also if no other step started it. Its threads are not there before."""
    ready, metered = tmp_path / "ready", []

    class Meter:
        def __init__(self, group):
            metered.append((ready.exists(), os.getpgid(group) == group))

        tick = close = lambda self: None

    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(qualify.program, "version", lambda: "")
    monkeypatch.setattr(qualify, "Meter", Meter)
    record = Record(tmp_path / "nic.json", {"steps": [], "runs": []}, False)
    worker = qualify.Worker(record, None, True)
    device = Device("d", "exec sleep 60", f"touch {ready}")
    worker.run_planned([Planned("d cost", 1, device, lambda: 'echo {} >"$MR_OUT"')])
    record.close()
    assert metered == [(True, True)]
    assert worker.meter is None


def test_settings_come_back_or_it_says_why_not(tmp_path, monkeypatch, capsys):
    """The MTU after the NIC, whose driver forgets it."""
    asked = []

    def ask(*words):
        asked.append(words)
        return 1, "", f"{words[0]} failed"

    monkeypatch.setattr(settings, "FOLDER", str(tmp_path))
    monkeypatch.setattr(settings, "sysfs", lambda *_: "9000")
    monkeypatch.setattr(settings, "netdev_of", lambda _: "eth1")
    monkeypatch.setattr(settings, "ask", ask)
    monkeypatch.setattr(settings, "ask_devices", lambda *words: ask("mr-devices", *words))
    changes = settings.Settings()
    changes.bind([ports.Port("eth1", "0000:01:00.0", "", {"pci": None})])
    changes.close()
    assert asked == [
        ("mr-devices", "bind", "0000:01:00.0"), ("mr-devices", "unbind", "0000:01:00.0"),
        ("ip", "link", "set", "dev", "eth1", "mtu", "9000")]
    assert capsys.readouterr().err.splitlines() == [
        "mr-bench: cannot put back bound 0000:01:00.0 eth1: mr-devices failed",
        "mr-bench: cannot put back mtu eth1 9000: ip failed"]
    assert not list(tmp_path.iterdir())


def test_files_of_nics_are_as_the_schema_says_and_are_listed():
    assert FILES
    for path in FILES:
        root = json.loads(path.read_text())
        SCHEMA.validate(root)
        assert root["complete"] and path.stat().st_size < 1 << 16, path
        assert not re.search("([0-9a-f]{2}:){5}", path.read_text()), "a MAC address"
        listed = subprocess.run([sys.executable, TOP / "docs/nics.py", path],
                                capture_output=True, text=True, check=True).stdout
        name = root["label"] or root["ports"][0]["name"]
        assert f"## {name}\n" in listed
        assert ("**Emulated:**" in listed) == any(
            port["emulated"] for port in root["ports"])
        for driver in root["drivers"]:
            assert f"- {driver['name']}: " in listed
