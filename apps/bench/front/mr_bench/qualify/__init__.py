# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench qualify: figures of a NIC, from two ports that a cable joins, by one command."""

import importlib
import os
import re
import shlex
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mr_bench import machine, values
from mr_bench.progress import Progress
from mr_bench.qualify import checks, drivers, ports, settings, summary
from mr_bench.qualify.cost import Meter
from mr_bench.qualify.drivers import DEVICES, NAMES, Driver
from mr_bench.qualify.plan import NoRate, Plan, Planned, found_rate
from mr_bench.qualify.record import SCHEMA, VERSION, Record, slim, slim_port
from mr_bench.result import complain
from mr_bench.runner import Device, Runner, RunnerError, Step
from mr_bench.values import UsageError
from mr_support import output, program
from mr_support.options import Option, Wrong, parse

SECONDS, QUICK_SECONDS = 300.0, 40.0
SIZES, QUICK_SIZES = [64, 512, 1518], [64, 1518]
# Words of the kernel's command line that affect figures. Others may be private.
PUBLIC = re.compile(
    "(isolcpus|nohz|rcu_nocb|mitigations|(intel_|amd_)?iommu|(default_)?hugepage|idle|nosmt|"
    "processor|intel_(idle|pstate)|cpuidle|irqaffinity|tsc|skew_tick|nosoftlockup|pcie?)"
)
USAGE = """\
usage: mr-bench qualify [options] PORT PORT
Measure two ports that a cable joins: what slows the machine down, whether each
driver conforms, and throughput, loss and latency with each driver that can
open the ports. The tester uses the first port; a program on the second sends
frames back. Both run on this machine.

PORT is an interface, such as eth1, or a PCI address. No other program may use
it. Needs root, and puts the settings that it changes back at the end.
"""
OPTIONS = [
    Option("out", "FILE", "the document (default qualify-HOST-NIC.json; the page: .html)"),
    Option("resume", "", "continue the run of a document that ended early"),
    Option("seconds", "S", "time for each driver (default 300)"),
    Option("quick", "", "one round of two sizes, 40 s for each driver"),
    Option("sizes", "LIST", "sizes of frames, with FCS (default 64,512,1518)"),
    Option("drivers", "LIST", f"of {','.join(NAMES)} (default: all)"),
    Option("devices", "LIST", f"of {','.join(DEVICES)} (default: both)"),
    Option("label", "TEXT", "the title on the page and in the list of NICs"),
    Option("quiet", "", "print no progress", letter="q"),
]


class Worker(Runner):
    """A runner that shows progress, and keeps why something failed."""

    def __init__(self, record: Record, plan: Plan, is_quiet: bool) -> None:
        super().__init__(record, program.version())
        self.record, self.plan = record, plan
        self.progress = Progress(is_quiet)
        self.meter: Meter | None = None
        self.planned: Planned | None = None  # that runs now
        self.left_s = 0.0  # of the steps behind it
        self.on_wait = self._tick
        record.on_step = self._take

    def _tick(self) -> None:
        planned = self.planned
        if planned is None:
            return
        if self.meter:
            self.meter.tick()
        spent_s = time.monotonic() - self.record.begun_s
        self.progress.show(max(planned.seconds - spent_s, 0) + self.left_s, planned.name)

    def _measure(self, step: Step) -> int | None:
        """With the device's threads, which all run once it is ready."""
        if step.name.endswith(" cost") and self.child:
            self.meter = Meter(self.child.process.pid)
        return super()._measure(step)

    def complain(self, name: str, what: str) -> None:
        """Keep the first reason: of a program that failed, what it said last."""
        said = self.record.last_line(name)
        why = said if said and what.startswith("exit status") else f"{what} {said}".strip()
        self.record.whys.setdefault(name, why)

    def _cost(self, run: dict[str, Any]) -> list[dict[str, Any]]:
        """Rows of what the meter saw. With loss the device was busy all the time."""
        meter, self.meter = self.meter, None
        if meter is None:
            return []
        meter.close()
        trial = run["trials"][-1]
        pps = trial["rx"]["unique"] / trial["duration_s"]
        is_busy = trial["rx"]["lost"] > 0
        note = "" if is_busy else "at most: the tester kept it less than busy"
        return [
            {
                "frame_bytes": trial["frame_bytes"],
                "goal": goal,
                "value": each / pps,
                "unit": unit,
                "low": 0,
                "high": 0,
                "is_limited_by_tester": not is_busy,
                "note": note,
                "trials": [],
            }
            for goal, unit, each in zip(
                ("core-time", "cycles"),
                ("ns/frame", "cycles/frame"),
                meter.busiest(trial["duration_s"] / 2),
                strict=True,
            )
            if each > 0 and pps > 0
        ]

    def _take(self, name: str) -> None:
        """The result of a step that has ended."""
        found = self.record.result(name)
        driver, _, kind = name.partition(" ")
        if kind == "conformance":
            self._driver(driver)["conformance"] = checks.read_tap(self.record, name)
        elif kind == "cable":
            self._driver(driver)["ports"] = [slim_port(port) for port in found.get("ports", [])]
            step = self.record.step(name)
            if step is not None and found.get("trials"):
                step["why"] = checks.cable(found, step["why"])
        elif found and found.get("complete"):
            run = slim(found)
            if kind == "cost":
                run["trials"] = []
                run["rows"] = self._cost(found)
            self.record.put("runs", {"name": name} | run)
        if self.meter:  # of a step that failed
            self.meter.close()
            self.meter = None

    def _driver(self, name: str) -> dict[str, Any]:
        return next(one for one in self.record.root["drivers"] if one["name"] == name)

    def run_planned(self, steps: list[Planned]) -> None:
        """All that can be run; of the others, why not."""

        def each() -> Iterator[Step]:
            for i, planned in enumerate(steps):
                self.planned = planned
                self.left_s = sum(later.seconds for later in steps[i + 1 :])
                try:
                    yield planned.step()
                except NoRate as why:
                    self.record.whys[planned.name] = str(why)
                    self.record.note(planned.name, {}, 1)

        self.run(each())
        self.planned = None
        self.progress.clear()
        for planned in steps:
            if not self.ending.is_set and self.record.step(planned.name) is None:
                why = self.record.whys.get(planned.device.name, "")
                self.record.whys[planned.name] = f"{planned.device.name}: {why or 'not run'}"
                self.record.note(planned.name, {}, 1)


def _renderer() -> Callable[[dict[str, Any]], str] | None:
    """What makes the page; None: a package is missing."""
    try:
        return importlib.import_module("mr_bench.page.qualified").render_qualified  # type: ignore[no-any-return]
    except ModuleNotFoundError:
        return None


class Qualification:
    """A run, from the check of the ports to the page."""

    def __init__(self, given: dict[str, list[str]], words: list[str], line: list[str]) -> None:
        self.given, self.render = given, _renderer()
        is_quick = "quick" in given
        self.drivers = _list(given, "drivers", NAMES)
        devices = _list(given, "devices", DEVICES)
        self.why_no_testpmd = ""
        if drivers.TESTPMD in devices and not shutil.which("dpdk-testpmd"):
            self.why_no_testpmd = "dpdk-testpmd is not installed"
            devices.remove(drivers.TESTPMD)
        if not devices:
            raise ports.Refused(f"{self.why_no_testpmd}: {drivers.GET_TESTPMD}")
        sizes = QUICK_SIZES if is_quick else SIZES
        if text := given.get("sizes", [""])[-1]:
            sizes = [int(size) for size in values.numbers("sizes", text, 64, 9216, 8)]
        seconds = QUICK_SECONDS if is_quick else SECONDS
        if text := given.get("seconds", [""])[-1]:
            seconds = values.seconds_ns("seconds", text) / 1e9
        self.ports, self.doctored = ports.read(words)
        cores = drivers.choose_cores(
            sorted(os.sched_getaffinity(0)), self.ports[0].nic["numa_node"]
        )
        self.plan = Plan(seconds, sizes, 1 if is_quick else 2, devices, cores, self.ports[1].mac)
        self.root = self._begin(line)
        self.path = Path(given.get("out", [self._name()])[-1])
        if self.path.suffix == ".html":
            raise UsageError("--out: the page has that name; give the document's, such as nic.json")
        self.record = Record(self.path, self.root, "resume" in given)

    def _name(self) -> str:
        host = re.sub("[^A-Za-z0-9.-]", "-", socket.gethostname().partition(".")[0]) or "host"
        return f"qualify-{host}-{self.ports[0].kind}.json"

    def _begin(self, line: list[str]) -> dict[str, Any]:
        """The document before the first step."""
        command = shlex.join(["mr-bench", "qualify", *line])
        looked = machine.look({}, command)
        date = looked.pop("date")
        del looked["command"]
        words = looked["kernel_words"].split()
        looked["kernel_words"] = " ".join(word for word in words if PUBLIC.match(word))
        cores = self.plan.cores
        return {
            "schema": SCHEMA,
            "v": VERSION,
            "label": self.given.get("label", [""])[-1],
            "date": date,
            "command": command,
            "millrace": program.version(),
            "complete": False,
            "why_incomplete": "not at its end yet",
            "seconds": self.plan.seconds,
            "sizes": self.plan.sizes,
            "machine": looked,
            "cores": {"tester": cores.tester, "device": cores.device, "shared": cores.is_shared},
            "ports": [port.describe() for port in self.ports],
            "findings": [
                {"port": port.name, **one}
                for port, doctored in zip(self.ports, self.doctored, strict=True)
                for one in doctored["findings"]
            ]
            + [
                {"port": "", "check": "peer", "finding": one, "fix": drivers.GET_TESTPMD}
                for one in [self.why_no_testpmd]
                if one
            ],
            "drivers": [],
            "steps": [],
            "runs": [],
        }

    def _devices(self, driver: Driver, has_huge_pages: bool) -> list[Device]:
        ready = self.plan.ready(driver)
        return [
            drivers.device(name, driver, self.plan.cores, ready, has_huge_pages)
            for name in self.plan.devices
        ]

    def _run_driver(self, worker: Worker, name: str, changes: settings.Settings) -> None:
        """All steps of a driver. What it changes is put back."""
        n_changes = len(changes.changes)
        driver = drivers.look(name, self.ports)
        if not driver.why:
            driver = drivers.prepare(driver, self.ports, changes)
        entry: dict[str, Any] = {"name": name, "why": "", "ports": [], "conformance": None}
        for old in self.root["drivers"]:
            entry |= old if old["name"] == name else {}
        self.record.put("drivers", entry | {"why": driver.why})
        try:
            if not driver.why:
                self._run_steps(worker, driver, changes)
        finally:
            changes.restore(n_changes)
            self.record.write()

    def _run_steps(self, worker: Worker, driver: Driver, changes: settings.Settings) -> None:
        cable, conformance = self.plan.cable(driver), self.plan.conformance(driver)
        has_testpmd = drivers.TESTPMD in self.plan.devices
        devices = self._devices(driver, has_testpmd and changes.add_huge_pages())
        runs = self.root["runs"]
        steps = list(
            self.plan.measure(driver, devices, lambda device, size: found_rate(runs, device, size))
        )
        worker.run_planned([cable])
        step = self.record.step(cable.name)
        entry = next(one for one in self.root["drivers"] if one["name"] == driver.name)
        if step and step["why"] and not entry["ports"]:
            entry["why"] = step["why"]
            return
        if step and step["why"]:
            entry["conformance"] = checks.EMPTY | {"why": "frames are lost on the way"}
            return
        if driver.is_packet_socket:
            entry["conformance"] = checks.EMPTY | {"why": checks.NO_NIC}
        elif conformance is None:
            entry["conformance"] = checks.EMPTY | {"why": checks.NO_SUITE}
        elif not worker.ending.is_set:
            worker.run_planned([conformance])
        worker.run_planned(steps)

    def run(self) -> int:
        """The exit status. Raises Wrong, OSError."""
        changes = settings.Settings()
        worker = Worker(self.record, self.plan, "quiet" in self.given)
        why = "it failed; --resume goes on"
        try:
            changes.set_up(self.ports)
            for name in self.drivers:
                if not worker.ending.is_set:
                    self._run_driver(worker, name, changes)
            why = "ended by a signal; --resume goes on" if worker.ending.is_set else ""
        finally:
            changes.close()
            self.root |= {"complete": not why, "why_incomplete": why}
            self.record.write()
        return self._finish(why)

    def _finish(self, why: str) -> int:
        page = self.path.with_suffix(".html")
        for line in summary.text(self.root):
            output.say(line)
        output.say(f"\n{self.path}", end="")
        if self.render is None:
            output.say("; no page: install python3-jinja2 and python3-matplotlib, then --resume")
        else:
            output.write(str(page), self.render(self.root))
            output.say(f", and as a page {page}")
        if why:
            complain(why)
        failed = any(check.is_failed for check in checks.of(self.root))
        self.record.close()
        if not failed and not why:
            self.record.clear()
        return 1 if why or failed else 0


def _list(given: dict[str, list[str]], name: str, words: tuple[str, ...]) -> list[str]:
    """The words that an option names, in their order; without it, all."""
    text = given.get(name, [""])[-1]
    asked = text.split(",") if text else list(words)
    for word in asked:
        if word not in words:
            raise UsageError(f"--{name}: '{word}' is not one of: {', '.join(words)}")
    return [word for word in words if word in asked]


def main(line: list[str]) -> int:
    """The exit status."""
    try:
        asked = parse(line, USAGE, OPTIONS)
        if asked is None:
            return 0
        return Qualification(*asked, line).run()
    except (Wrong, RunnerError) as error:
        complain(str(error))
        return 2 if isinstance(error, UsageError) or type(error) is Wrong else 1
