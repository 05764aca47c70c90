# SPDX-License-Identifier: BSD-3-Clause
"""The page of mr-bench qualify: what the ports are, the figures, what failed; then the charts of
all its measurements."""

import re
from typing import Any

from mr_bench.document import Document
from mr_bench.page import Section, render
from mr_bench.page.model import Cell, Note, Table
from mr_bench.qualify import checks, summary

SHARED = "The tester and the device share a core: the device is slower than it would be alone."
ONE_MACHINE = "Tester and device run on this machine, and share its caches and memory."


def _documents(root: dict[str, Any]) -> list[Document]:
    """Runs as documents of their own; latencies of all sizes are one."""
    ports = {one["name"]: one["ports"] for one in root["drivers"]}
    found: dict[str, Document] = {}
    for run in root["runs"]:
        driver = next((name for name in ports if run["name"].startswith(f"{name}-")), "")
        label = re.sub(r",? \d+ B$", "", run["name"])
        if label in found:
            found[label].root["trials"] += run["trials"]
            continue
        own = {
            "millrace": root["millrace"],
            "machine": root["machine"],
            "label": label,
            "config": {},
            "measured": {},
            "streams": [],
            "device": "",
        }
        more = {"ports": ports.get(driver, []), "trials": list(run["trials"])}
        found[label] = Document(label, True, own | run | more)
    return list(found.values())


def _texts(*values: str) -> list[Any]:
    return [values[0], *(Cell(value, is_text=True) for value in values[1:])]


def _ports(root: dict[str, Any]) -> Table:
    rows = []
    for port in root["ports"]:
        nic = port["nic"]
        pci = nic["pci"] or {}
        ids = f"{pci['vendor']}:{pci['device']}" if pci else ""
        driver = f"{nic.get('driver', pci.get('driver', ''))} {nic.get('firmware', '')}".strip()
        rows.append(
            _texts(port["name"], port["model"] or ids or "not a PCI device", driver,
                   port["emulated"] or "hardware")
        )  # fmt: skip
    return Table("The ports", _texts("Port", "Device", "Driver, firmware", "Kind"), rows)


def _drivers(root: dict[str, Any]) -> Table:
    rows = []
    for one in root["drivers"]:
        port = one["ports"][-1] if one["ports"] else {}
        why = f" ({port['why']})" if port.get("why") else ""
        suite = one["conformance"] or {"status": "not run", "passed": 0, "skipped": 0, "failed": []}
        counts = f"{suite['passed']} passed, {len(suite['failed'])} failed"
        rows.append(
            _texts(one["name"], one["why"] or f"{port.get('mode', '')}{why}",
                   ", ".join(port.get("offloads", [])) or "none",
                   f"{suite['status']}: {counts}, {suite['skipped']} skipped")
        )  # fmt: skip
    head = _texts("Driver", "Mode, or why it cannot open the ports", "Offloads", "Conformance")
    return Table("The drivers", head, rows)


def _checks(root: dict[str, Any]) -> Table:
    rows = [
        _texts(one.what, "failed" if one.is_failed else "note", one.why) for one in checks.of(root)
    ]
    return Table("Checks", _texts("What", "Result", "Why"), rows)


def render_qualified(root: dict[str, Any]) -> str:
    """The page of a document."""
    kernel, cores = root["machine"]["kernel"], root["cores"]
    where = f"{root['machine']['cpu']}, {kernel}, Millrace {root['millrace']}, {root['date']}"
    tester = " and ".join(map(str, cores["tester"]))
    note = f"The tester has core {tester}, the device core {cores['device']}. "
    note += SHARED if cores["shared"] else ONE_MACHINE
    if not root["complete"]:
        note = f"Not complete: {root['why_incomplete']}. {note}"
    figures = Table(
        "Frames per second with at most 0.1 % lost (the median of the rounds; \u2265: the tester's "
        "limit), latency of a round trip at half of that, and what a frame costs the device",
        summary.HEAD,
        [summary.cells(row) for row in summary.rows(root)],
    )
    names = " and ".join(port["model"] or port["name"] for port in root["ports"])
    return render(
        _documents(root),
        root["label"] or f"Millrace on {names}",
        [
            Section(
                "ports", "What was measured", where, [Note(note), _ports(root), _drivers(root)]
            ),
            Section("figures", "Figures", "All ways to open the ports, side by side.", [figures]),
            Section(
                "checks", "Checks", "What failed, and what slows the machine down.", [_checks(root)]
            ),
        ],
    )
