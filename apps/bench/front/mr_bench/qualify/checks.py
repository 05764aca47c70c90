# SPDX-License-Identifier: BSD-3-Clause
"""What failed, and why: the machine, cables, the conformance suite, and steps without a result."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from mr_bench.qualify.record import Record
from mr_bench.rates import FCS_BYTES

NO_SUITE = "install libmillrace-dev (on Fedora, millrace-devel)"
NO_NIC = "a packet socket is no driver of a NIC: it has one queue, and no interrupts"
EMPTY: dict[str, Any] = {"status": "not run", "why": "", "passed": 0, "skipped": 0, "failed": []}
MOST_TEXT = 400


class Check(NamedTuple):
    """is_failed: else it is a remark."""

    what: str
    why: str
    is_failed: bool = True


def read_tap(record: Record, name: str) -> dict[str, Any]:
    """The conformance suite's output: the failed tests by name, with what they said, before and
    after their result."""
    step = record.step(name)
    why = step["why"] if step else ""
    found = EMPTY | {"status": "failed" if why else "passed", "failed": []}
    said: list[str] = []
    is_failing = False
    for line in record.text(name).splitlines():
        result = re.match(r"(ok|not ok) \d+ (- |# SKIP )(\S+)", line)
        if result is None:
            if is_failing and line.startswith("#"):
                found["failed"][-1]["why"] += f" {line.strip('# ')}"
            else:
                said.append(line.strip("# "))
            continue
        is_skipped = "SKIP" in result[2]
        is_failing = result[1] == "not ok" and not is_skipped
        if is_failing:
            found["status"] = "failed"
            found["failed"].append({"name": result[3], "why": " ".join(said)})
        else:
            found["skipped" if is_skipped else "passed"] += 1
        said = []
    for one in found["failed"]:
        one["why"] = one["why"].strip()[:MOST_TEXT]
    if why and not found["failed"]:
        found["why"] = f"{why}: {' '.join(said)}"[:MOST_TEXT]
    return found


def cable(document: dict[str, Any], why: str) -> str:
    """What a cable loses, by the size of frames; "": nothing. why: what the tester said."""
    lost = []
    for stream in document["trials"][0]["streams"]:
        size = re.search(r"size=(\d+)", document["streams"][stream["stream"]])
        if stream["sent"] > stream["unique"] and size:
            gone = stream["sent"] - stream["unique"]
            lost.append(f"{gone} of {stream['sent']} frames of {int(size[1]) + FCS_BYTES} B")
    mtu = min(port["mtu"] or 1500 for port in document["ports"])
    if not lost:
        return why
    some_came = document["trials"][0]["rx"]["unique"] > 0
    hint = (
        f"is the MTU lower somewhere on the way, or here ({mtu})?"
        if some_came
        else "does a cable join the ports, or a switch that forwards as soon as the link is up?"
    )
    return f"lost {', '.join(lost)}: {hint}"


def _of_driver(driver: dict[str, Any]) -> Iterator[Check]:
    name, conformance = driver["name"], driver["conformance"]
    if driver["why"]:
        # Not every driver fits every port.
        yield Check(f"{name} cannot open the ports", driver["why"], False)
    if not conformance:
        return
    if conformance["status"] == "not run":
        yield Check(f"{name} conformance: not run", conformance["why"], False)
    for one in conformance["failed"]:
        yield Check(f"{name} conformance: {one['name']}", one["why"])
    if conformance["status"] == "failed" and not conformance["failed"]:
        yield Check(f"{name} conformance", conformance["why"])


def of(root: dict[str, Any]) -> list[Check]:
    """All of a document."""
    found = [
        Check(f"{one['port']} {one['check']}".strip(), f"{one['finding']}; {one['fix']}", False)
        for one in root["findings"]
    ]
    closed = [one["name"] for one in root["drivers"] if one["why"]]
    for driver in root["drivers"]:
        found += _of_driver(driver)
    found += [
        Check(step["name"], step["why"])
        for step in root["steps"]
        if step["why"]
        and not step["name"].endswith(" conformance")
        and step["name"].partition(" ")[0] not in closed
    ]
    if not any(driver["ports"] and not driver["why"] for driver in root["drivers"]):
        found.append(Check("drivers", "none could open both ports"))
    return found
