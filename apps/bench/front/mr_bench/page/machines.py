# SPDX-License-Identifier: BSD-3-Clause
"""What the figures belong to: enough to measure them again."""

import json
from typing import Any

from mr_bench.document import list_of, member, number_of, text_of
from mr_bench.page.model import Facts, Section, Shown

# Of a machine, what changes between two measurements.
MOVES = {"load", "huge_pages_free", "millrace", "command", "date"}
# Options whose default is 0; of others, as --verify, 0 is an answer.
ZEROS = {
    "burst",
    "confirm_s",
    "count",
    "duration_s",
    "loss_tolerance",
    "page_bytes",
    "pool_pages",
    "queues",
    "ring",
    "seed",
    "settle_s",
    "size",
    "workers",
}

Fact = tuple[str, str]


def _texts(value: Any, key: str) -> list[str]:
    return [text if isinstance(text, str) else "" for text in list_of(value, key)]


def _machine(m: Any) -> list[Fact]:
    def text(key: str, without: str = "") -> str:
        return text_of(m, key) or without

    def count(key: str) -> str:
        return f"{number_of(m, key):.0f}"

    threads = "two threads" if member(m, "smt") is True else "one thread"
    return [
        ("Processor", f"{text('cpu')}, microcode {text('microcode')}"),
        (
            "Cores",
            (
                f"{count('cores')}, {threads} to a core; governor {text('governor')}; "
                f"NUMA nodes {count('numa_nodes')}"
            ),
        ),
        ("Isolated", f"{text('isolated', 'none')}; without a tick: {text('nohz_full', 'none')}"),
        ("Runs in", text("guest", "nothing that shows")),
        ("Kernel", text("kernel")),
        ("Its command line", text("kernel_words")),
        ("Vulnerabilities", "; ".join(_texts(m, "vulnerabilities"))),
        (
            "Huge pages",
            (
                f"{count('huge_pages')} of 2 MiB, "
                f"{count('huge_pages_free')} free; transparent: {text('thp')}"
            ),
        ),
        ("Load before", text("load")),
        ("Compiled", f"{text('compiler')}, {text('flags')}"),
    ]


def _nic(nic: Any) -> str:
    """A NIC and its slot, as far as the kernel knows."""

    def pair(key: str, a: str, b: str) -> str:
        return f"{number_of(nic, key, a):.0f} and {number_of(nic, key, b):.0f}"

    pci = member(nic, "pci")
    parts = [
        (
            f"driver {text_of(nic, 'driver')} "
            f"{text_of(nic, 'driver_version')}, firmware "
            f"{text_of(nic, 'firmware') or 'unknown'}"
        )
    ]
    if isinstance(member(nic, "rings"), dict):
        parts.append(f"rings {pair('rings', 'rx', 'tx')}")
    if isinstance(member(nic, "coalesce"), dict):
        parts.append(f"interrupts wait {pair('coalesce', 'rx_us', 'tx_us')} us")
    if isinstance(pci, dict):
        parts.append(
            f"slot {text_of(pci, 'link_speed')} x{text_of(pci, 'link_width')} "
            f"of {text_of(pci, 'max_link_speed')} "
            f"x{text_of(pci, 'max_link_width')}, NUMA node "
            f"{number_of(nic, 'numa_node'):.0f}, distance "
            f"{number_of(nic, 'numa_distance'):.0f}"
        )
    return "; ".join(parts)


def _port(port: Any) -> Fact:
    why, mbps = text_of(port, "why"), number_of(port, "link_mbps")
    mtu = number_of(port, "mtu")
    parts = [
        f"mode {text_of(port, 'mode')}{f' ({why})' if why else ''}",
        f"{mbps:.0f} Mbit/s" if mbps > 0 else "link unknown",
        (
            f"queues {number_of(port, 'rx_queues'):.0f} and "
            f"{number_of(port, 'tx_queues'):.0f}"
            f"{f', MTU {mtu:.0f}' if mtu > 0 else ''}"
        ),
    ]
    if isinstance(member(port, "nic"), dict):
        parts.append(_nic(port["nic"]))
    return text_of(port, "name"), "; ".join(parts)


def _is_default(key: str, value: Any) -> bool:
    """What nobody asked for is false, empty, or 0."""
    is_number = isinstance(value, (int, float)) and value is not False
    return value is False or value in ("", []) or (key in ZEROS and is_number and value == 0)


def _config(values: Any, is_asked: bool) -> list[Fact]:
    """What was asked for, or measured beside the results, as JSON has it."""
    return [
        (key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for key, value in (values if isinstance(values, dict) else {}).items()
        if not (is_asked and _is_default(key, value))
    ]


def _still(one: Shown) -> dict[str, Any]:
    return {key: value for key, value in one.root["machine"].items() if key not in MOVES}


def _clock(root: Any) -> str:
    """A time of any of its trials may be wrong by that."""
    most = max(
        [
            number_of(root, "clock", "error_ns"),
            *(number_of(trial, "clock_error_ns") for trial in root["trials"]),
        ]
    )
    return f"{text_of(root, 'clock', 'source')}, times are within {most:.0f} ns"


def _facts(one: Shown, before: list[Shown]) -> Facts:
    root, cores = one.root, list_of(one.root, "cores")
    facts: list[Fact] = [
        ("Command line", text_of(root, "command")),
        ("File", one.file),
        ("Date", f"{text_of(root, 'date')}, Millrace {text_of(root, 'millrace')}"),
    ]
    same = next((other for other in before if _still(other) == _still(one)), None)
    facts += (
        _machine(root["machine"])
        if same is None
        else [("Machine", f"that of {same.name}; load before: {text_of(root, 'machine', 'load')}")]
    )
    if isinstance(member(root, "clock"), dict):
        facts.append(("Clock", _clock(root)))
    if cores:
        facts.append(("Cores of the tester", json.dumps(cores, separators=(",", ":"))))
    facts += [_port(port) for port in root["ports"]]
    facts.append(("Known device", text_of(root, "device")))
    facts.append(("Streams", "\n".join(_texts(root, "streams")) or "the default one"))
    facts += _config(member(root, "config"), True)
    facts += _config(member(root, "measured"), False)
    return Facts(one.name, [fact for fact in facts if fact[1]])


def machines(shown: list[Shown]) -> Section:
    """Machine, ports and options of each document."""
    return Section(
        "machines",
        "What it was measured on",
        "Machine, ports and options, to measure it again. Options "
        "that do not stand here had their defaults.",
        [_facts(one, shown[:i]) for i, one in enumerate(shown)],
    )
