#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The list of NICs, from documents of mr-bench qualify.

usage: nics.py FILE...      (Markdown on stdout)
"""
import json
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TOP / "apps/bench/front"), str(TOP / "apps/support")]
sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
from mr_bench.qualify import checks, summary  # noqa: E402

HEAD = """\
# NICs

What owners measured on their NICs with `mr-bench qualify PORT PORT`. Tester and device under test ran on one machine.
The files are in `docs/nics/`; the README there says how to add yours. **Emulated** devices show that a driver works,
not how fast it is.

The columns: frames per second with at most 0.1 % lost (the median of the rounds; \u2265: the tester was the limit); the
latency of a round trip at half of that rate, for 50, 99 and 99.9 % of the frames; what a frame of the first size costs
the device.
"""


def line(cells):
    """A row of a table."""
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def section(root):
    """The lines of a document."""
    ports = root["ports"]
    name = root["label"] or ports[0]["model"] or ports[0]["name"]
    kinds = sorted({port["emulated"] for port in ports if port["emulated"]})
    yield f"\n## {name}\n"
    if kinds:
        yield f"**Emulated:** {'; '.join(kinds)}.\n"
    machine = root["machine"]
    for port in ports:
        nic = port["nic"]
        driver = nic.get("driver") or (nic["pci"] or {}).get("driver", "")
        firmware = nic.get("firmware") or "unknown"
        pci = nic["pci"]
        ids = f"{pci['vendor'][2:]}:{pci['device'][2:]}" if pci else "no PCI device"
        model = f"{port['model']} ({ids})" if port["model"] else ids
        yield f"- {port['name']}: {model}, driver {driver}, firmware {firmware}"
    yield f"- {machine['cpu']}, {machine['kernel']}{', ' if machine['guest'] else ''}{machine['guest']}"
    yield f"- Millrace {root['millrace']}, {root['date'][:10]}\n"
    yield line(summary.HEAD)
    yield line(["---"] * 2 + ["---:"] * (len(summary.HEAD) - 2))
    yield from (line(summary.cells(row)) for row in summary.rows(root))
    yield ""
    for driver in root["drivers"]:
        opened = driver["ports"][-1] if driver["ports"] else {}
        suite = driver["conformance"] or checks.EMPTY
        counts = f"{suite['passed']} passed, {len(suite['failed'])} failed, {suite['skipped']} skipped"
        if suite["status"] == "not run":
            counts = suite["why"] or "see the failed steps"
        yield f"- {driver['name']}: " + (driver["why"] or (
            f"mode {opened.get('mode', '')}; offloads: {', '.join(opened.get('offloads', [])) or 'none'}; "
            f"conformance {suite['status']}: {counts}"))
    for check in checks.of(root):
        if check.is_failed:
            yield f"- **{check.what}**: {check.why}"


def main():
    lines = [HEAD]
    roots = [json.loads(Path(name).read_text("utf-8")) for name in sys.argv[1:]]
    for root in sorted(roots, key=lambda root: any(p["emulated"] for p in root["ports"])):
        lines += section(root)
    print("\n".join(lines))


main()
