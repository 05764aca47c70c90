# SPDX-License-Identifier: BSD-3-Clause
"""What makes AF_XDP fail or run slowly on an interface, each with a command that fixes it.

Facts are from sysfs, ip(8), ss(8) and ethtool(8), and from drivers/xdp/device/known.c.
"""

import json
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from mr_devices.library import Failure
from mr_devices.machine import Machine
from mr_support.text import escape

TOOL_LIMIT_S = 20
# An rx ring holds what arrives while a worker wakes up, up to 100 us: 1488 frames of 64
# bytes at 10 Gbit/s.
RING_ENTRIES = 2048
# A chunk of 4096 bytes, minus 256 of headroom, 320 that drivers reserve for struct
# skb_shared_info, and 22 of Ethernet with a VLAN tag and FCS.
MAX_MTU = 3498
MAX_EXIT_US = 20  # of a C-state; a frame of 64 bytes takes 0.07 us at 10 Gbit/s
MAX_FLUSH_NS = 1_000_000  # five times what busy polling needs (kernel: napi.rst)
MASTERS = ("bond", "bridge", "team", "vlan", "vrf")
OURS = "millrace"  # prefix of our XDP programs' names
XDP_GENERIC = 2  # XDP_ATTACHED_SKB
# Whose VLAN tags ports see outside the frame, from this kernel on (drivers/xdp/README.md).
TELL_TAGS, TELL_TAGS_SINCE = ("veth", "ice", "mlx5_core"), [6, 8]
UNLISTED = "the kernel does not list AF_XDP sockets: modprobe xsk_diag"
XDP_MODES = {1: "xdpdrv", XDP_GENERIC: "xdpgeneric", 3: "xdpoffload"}
FEATURES = {"XDP_ZC": "zero-copy", "XDP_DRV": "native XDP"}


class Finding(NamedTuple):
    """A problem, and a command that fixes it."""

    finding: str
    fix: str


class Unknown(Exception):
    """A check that cannot be made, and why."""


def ask(*words: str) -> str:
    """What a tool prints; "" if it fails, as for what a device lacks. Raises Failure."""
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=TOOL_LIMIT_S,
            check=False,
        )
    except FileNotFoundError:
        package = words[0] if words[0] in ("bpftool", "ethtool") else "iproute2"
        raise Failure(
            f"{words[0]} is not in PATH; run as root, or install the package {package}"
        ) from None
    except subprocess.TimeoutExpired:
        raise Failure(f"'{' '.join(words)}' did not end within {TOOL_LIMIT_S} s") from None
    return done.stdout if done.returncode == 0 else ""


def cores_of(text: str) -> set[int]:
    """Parse a list such as "1,3-5". Raises ValueError."""
    cores: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        cores |= set(range(int(first), int(last or first) + 1))
    return cores


def spell(numbers: Iterable[int]) -> str:
    """Format numbers as such a list."""
    parts: list[list[int]] = []
    for n in sorted(numbers):
        if parts and parts[-1][-1] == n - 1:
            parts[-1] = [parts[-1][0], n]
        else:
            parts.append([n])
    return ",".join("-".join(map(str, part)) for part in parts)


@dataclass(frozen=True)
class Interface:
    """link: as printed by ip(8). cores: of the workers; empty: not given."""

    machine: Machine
    name: str
    cores: set[int]
    link: dict[str, Any]

    @property
    def kind(self) -> str:
        """The kind of a virtual device; "" for a NIC."""
        return str(self.link.get("linkinfo", {}).get("info_kind", ""))

    @property
    def driver(self) -> str:
        """Of the device; the kind of a virtual one."""
        link = f"{self.machine.root}/sys/class/net/{self.name}/device/driver"
        try:
            return os.path.basename(os.readlink(link))
        except OSError:
            return self.kind

    def read(self, path: str) -> str:
        """The first line of a file in its sysfs directory, or ""."""
        return self.machine.read(f"/sys/class/net/{self.name}/{path}")

    def names(self, path: str = "") -> list[str]:
        """Names of files in its sysfs directory."""
        return self.machine.names_if_any(f"/sys/class/net/{self.name}/{path}")

    def number(self, path: str) -> int:
        """The number in a file; 0 if there is none."""
        text = self.read(path)
        return int(text) if text.isdigit() else 0

    def all_cores(self) -> set[int]:
        """All cores of the machine."""
        names = self.machine.names_if_any("/sys/devices/system/cpu")
        return {int(name[3:]) for name in names if re.fullmatch(r"cpu\d+", name)}

    def programs(self) -> list[dict[str, Any]]:
        """XDP programs, and how each is attached."""
        xdp = self.link.get("xdp", {})
        return [xdp] if "prog" in xdp else list(xdp.get("attached", []))

    def sockets(self) -> set[int]:
        """Queues with an AF_XDP socket, if the kernel lists them."""
        queues = rf"(?<!\S){re.escape(self.name)}:q(\d+)"
        return set(map(int, re.findall(queues, ask("ss", "-Hn", "--xdp"))))

    def our_maps(self) -> dict[str, dict[str, Any]]:
        """The maps of our program, by name. Raises Failure."""
        found: dict[str, dict[str, Any]] = {}
        for one in self.programs():
            if one["prog"].get("name", "").startswith(OURS):
                shown = ask("bpftool", "-j", "prog", "show", "id", str(one["prog"].get("id", 0)))
                for number in json.loads(shown or "{}").get("map_ids", []):
                    text = ask("bpftool", "-j", "map", "show", "id", str(number))
                    info = json.loads(text or "{}")
                    found[info.get("name", "")] = info
        return found

    def is_deferring(self) -> bool:
        """Whether interrupts are deferred while a worker polls."""
        return self.number("napi_defer_hard_irqs") > 0 and self.number("gro_flush_timeout") > 0


def kind(i: Interface) -> Iterator[Finding]:
    """Bonds, VLANs and the like."""
    lowers = [name.removeprefix("lower_") for name in i.names() if name.startswith("lower_")]
    if i.kind in MASTERS:
        yield Finding(
            f"it is a {i.kind}, which has no queues of its own for AF_XDP: open a device below it, "
            + (" ".join(f"xdp:{lower}" for lower in lowers) or "but there is none"),
            "; ".join(f"mr-devices doctor {lower}" for lower in lowers) or "ip link",
        )


def use(i: Interface) -> Iterator[Finding]:
    """Interfaces that this machine uses."""
    why = "" if i.machine.root else i.machine.library.why_in_use(i.link["ifindex"])
    if why:
        yield Finding(
            f"it {why}", f"mr-l2fwd xdp:{i.name},force ...  # or filter=, see mr-ports(7)"
        )


def program(i: Interface) -> Iterator[Finding]:
    """XDP programs of others, and our own in generic mode."""
    for one in i.programs():
        name, mode = one["prog"].get("name", "?"), one.get("mode", 0)
        if name == "?" and os.geteuid() != 0:
            raise Unknown("only root sees the names of XDP programs")
        if name.startswith(OURS) and mode == XDP_GENERIC:
            yield Finding(
                "the port's program is attached in generic mode, which copies each frame",
                f"mr-l2fwd xdp:{i.name},attach=native ...  # the error says why it fails",
            )
        # With sockets, a port shares it: prog=, map=. A dispatcher accepts our program.
        elif not name.startswith((OURS, "xdp_dispatcher")) and not i.sockets():
            yield Finding(
                f"another XDP program is attached: {name}, id {one['prog'].get('id', 0)}",
                f"ip link set dev {i.name} {XDP_MODES.get(mode, 'xdp')} off"
                "  # or stop its owner, or share it: prog= and map= in mr-ports(7)",
            )


def n_unserved(maps: dict[str, dict[str, Any]]) -> int:
    """Frames that our program has dropped on queues without a socket."""
    if "unserved" not in maps:
        return 0
    text = ask("bpftool", "-j", "map", "dump", "id", str(maps["unserved"]["id"]))
    (entry,) = json.loads(text or '[{"value": []}]')
    return int.from_bytes(bytes(int(byte, 16) for byte in entry["value"]), sys.byteorder)


def queues(i: Interface) -> Iterator[Finding]:
    """Queues without a socket that RSS feeds."""
    sockets = i.sockets()
    n = sum(name.startswith("rx-") for name in i.names("queues"))
    table = re.findall(r"^ *\d+:((?: +\d+)+)$", ask("ethtool", "-x", i.name), re.MULTILINE)
    fed = {int(word) for row in table for word in row.split()} or set(range(n))
    if not sockets and any(one["prog"].get("name", "").startswith(OURS) for one in i.programs()):
        # The map has no entries for later queues; earlier ones may also lack a socket.
        try:
            maps = i.our_maps()
            sockets = set(range(maps.get("sockets", {}).get("max_entries", 0)))
            n_lost = n_unserved(maps)
        except Failure as error:
            raise Unknown(f"{UNLISTED}; {error}") from None
        if n_lost:
            yield Finding(
                f"{n_lost} frames arrived on queues without an AF_XDP socket and were dropped",
                f"mrctl show queues  # then give {i.name} as many: ethtool -L",
            )
        if n_lost or not fed - sockets or not sockets:
            raise Unknown(UNLISTED)
    if not sockets:
        return
    # This mends both, so that only one of them is said.
    first, end = min(sockets), max(sockets) + 1
    share = f"ethtool -X {i.name} start {first} equal {len(sockets)}"
    if end - first > len(sockets):
        weights = " ".join(str(int(queue in sockets)) for queue in range(end))
        share = f"ethtool -X {i.name} weight {weights}"
    if fed - sockets:
        channels = "rx" if i.kind == "veth" else "combined"
        yield Finding(
            f"queues {spell(fed - sockets)} have no AF_XDP socket: no program gets their frames",
            share if table else f"ethtool -L {i.name} {channels} {len(sockets)}",
        )
    elif sockets - fed:
        yield Finding(
            f"RSS sends no frames to queues {spell(sockets - fed)}, which have AF_XDP sockets",
            share,
        )


def rings(i: Interface) -> Iterator[Finding]:
    """Rings that overflow while a worker wakes up."""
    sizes = re.findall(r"^RX:\s+(\d+)$", ask("ethtool", "-g", i.name), re.MULTILINE)
    most, now = map(int, sizes) if len(sizes) == 2 else (0, 0)
    if now < min(most, RING_ENTRIES):
        yield Finding(
            f"the rx ring has {now} entries, which overflow while a worker wakes up",
            f"ethtool -G {i.name} rx {min(most, RING_ENTRIES)}",
        )


def offloads(i: Interface) -> Iterator[Finding]:
    """LRO, GRO in hardware, VLAN tags outside the frame."""
    text = ask("ethtool", "--json", "-k", i.name)
    features = json.loads(text)[0] if text else {}
    active = {k for k, v in features.items() if isinstance(v, dict) and v["active"]}
    joined = "merges frames before XDP sees them: many drivers then refuse XDP"
    for feature, flag, why in (
        ("large-receive-offload", "lro", f"LRO {joined}"),
        ("rx-gro-hw", "rx-gro-hw", f"GRO in hardware {joined}"),
    ):
        if feature in active:
            yield Finding(why, f"ethtool -K {i.name} {flag} off")
    if i.driver in TELL_TAGS and kernel_now(i.machine) >= TELL_TAGS_SINCE:
        return
    lost = "strips VLAN tags from frames, so AF_XDP does not see them"
    peer = i.link.get("link", "")
    if i.kind != "veth" and "rx-vlan-offload" in active:
        yield Finding(f"the NIC {lost}", f"ethtool -K {i.name} rxvlan off")
    elif i.kind == "veth" and peer and "tx-vlan-offload: on" in ask("ethtool", "-k", peer):
        yield Finding(f"the peer {peer} {lost}", f"ethtool -K {peer} txvlan off")


def offload(i: Interface) -> Iterator[Finding]:
    """Veths to which rules cannot send frames."""
    if i.kind != "veth":
        return
    peer = i.link.get("link", "")
    if not peer:
        raise Unknown(
            "the peer is in another network namespace; offload needs 'ethtool -K PEER gro on' there"
        )
    links = json.loads(ask("ip", "-json", "-details", "link", "show", "dev", peer) or "[]")
    has_xdp = any("xdp" in link for link in links)
    if not has_xdp and "generic-receive-offload: off" in ask("ethtool", "-k", peer):
        yield Finding(
            f"its peer {peer} has GRO off, so it does not receive redirected frames: "
            "no offload to this port",
            f"ethtool -K {peer} gro on",
        )


def irqs(i: Interface) -> Iterator[Finding]:
    """Interrupts on the cores of workers."""
    if not i.cores:
        raise Unknown("the workers' cores are not given: --cores")
    affinities = {}
    for irq in i.names("device/msi_irqs") or i.names("device/../msi_irqs"):
        folder = f"/proc/irq/{irq}"
        text = i.machine.read(f"{folder}/effective_affinity_list")
        affinities[int(irq)] = cores_of(text or i.machine.read(f"{folder}/smp_affinity_list"))
    shared = [irq for irq, cores in affinities.items() if cores & i.cores]
    others = spell(i.all_cores() - i.cores)
    if shared and others and not i.is_deferring():
        yield Finding(
            f"interrupts {spell(shared)} are handled on the workers' cores, which delays "
            "the workers",
            "; ".join(f"echo {others} > /proc/irq/{irq}/smp_affinity_list" for irq in shared),
        )


def numa(i: Interface) -> Iterator[Finding]:
    """Workers on another NUMA node than the NIC."""
    if not i.cores:
        raise Unknown("the workers' cores are not given: --cores")
    node = i.read("device/numa_node") or i.read("device/../numa_node")
    cpus = f"/sys/devices/system/node/node{node}/cpulist"
    far = i.cores - cores_of(i.machine.read(cpus)) if node.isdigit() else set()
    if far:
        yield Finding(
            f"cores {spell(far)} are not on NUMA node {node}, where the NIC is",
            f"cat {cpus}  # choose --cores from these",
        )


def frequency(i: Interface) -> Iterator[Finding]:
    """Cores that lower their clock."""
    cpu = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor"
    governors = {core: i.machine.read(cpu.format(core)) for core in i.cores or i.all_cores()}
    slow = {core: word for core, word in governors.items() if word not in ("", "performance")}
    if slow:
        yield Finding(
            f"cores {spell(slow)} have the governor {', '.join(sorted(set(slow.values())))}, "
            "which lowers their clock",
            f"cpupower -c {spell(slow)} frequency-set -g performance",
        )


def c_states(i: Interface) -> Iterator[Finding]:
    """Cores that take long to wake up."""
    deep: dict[int, int] = {}
    for core in i.cores or i.all_cores():
        folder = f"/sys/devices/system/cpu/cpu{core}/cpuidle"
        for state in i.machine.names_if_any(folder):
            exit_us = int(i.machine.read(f"{folder}/{state}/latency") or 0)
            if exit_us >= MAX_EXIT_US and i.machine.read(f"{folder}/{state}/disable") != "1":
                deep[core] = max(exit_us, deep.get(core, 0))
    if deep:
        yield Finding(
            f"cores {spell(deep)} take up to {max(deep.values())} us to leave their C-state",
            f"cpupower -c {spell(deep)} idle-set -D {MAX_EXIT_US}",
        )


def deferral(i: Interface) -> Iterator[Finding]:
    """Deferral of interrupts that has no effect, or is too long."""
    names = "napi_defer_hard_irqs", "gro_flush_timeout"
    n, flush_ns = map(i.number, names)
    zero = "; ".join(f"echo 0 > /sys/class/net/{i.name}/{name}" for name in names)
    if (n > 0) != (flush_ns > 0):
        one, other = names if n > 0 else names[::-1]
        yield Finding(f"{one} is set and {other} is not: interrupts are not deferred", zero)
    elif flush_ns > MAX_FLUSH_NS:
        yield Finding(
            f"interrupts are deferred for up to {n * flush_ns // 1000} us: a worker that "
            "sleeps wakes up that late",
            zero,
        )


def mtu(i: Interface) -> Iterator[Finding]:
    """Frames of several buffers."""
    if i.link["mtu"] > MAX_MTU:
        yield Finding(
            f"MTU {i.link['mtu']}: frames need several buffers, which is slower, and which some "
            "drivers refuse",
            f"ip link set dev {i.name} mtu {MAX_MTU}",
        )


def kernel_now(machine: Machine) -> list[int]:
    """Its version; releases of Debian and Ubuntu end in .0 whatever it is. Empty: unknown."""
    now = os.uname()
    for pattern, text in (
        (r"Debian (\d+)\.(\d+)\.?(\d*)", now.version),
        (r"Ubuntu \S+ (\d+)\.(\d+)\.(\d+)", machine.read("/proc/version_signature")),
        (r"^(\d+)\.(\d+)\.?(\d*)", now.release),
    ):
        if match := re.search(pattern, text):
            return [int(number or 0) for number in match.groups()]
    return []


def driver(i: Interface) -> Iterator[Finding]:
    """Known problems of the driver in this kernel."""
    name, now = i.driver, kernel_now(i.machine)
    rows = json.loads(pkgutil.get_data("mr_devices", "xdp_known.json") or b"[]")
    for of, feature, verdict, since, until, what, source in rows if now else []:
        if of == name and since <= now and (not until or now < until):
            lacks = "is missing" if verdict == "XDP_ABSENT" else "is broken"
            version = ".".join(map(str, until)).removesuffix(".0")
            yield Finding(
                f"driver {name} in Linux {'.'.join(map(str, now))}: {FEATURES[feature]} {lacks}"
                f"{what and ': '}{what} ({source})",
                f"uname -r  # install Linux {version}, or later"
                if until
                else "ip link  # choose an interface of another driver",
            )


# In output order. If kind() finds something, the others are skipped.
CHECKS: tuple[Callable[[Interface], Iterator[Finding]], ...] = (
    kind,
    use,
    program,
    queues,
    rings,
    offloads,
    offload,
    irqs,
    numa,
    frequency,
    c_states,
    deferral,
    mtu,
    driver,
)


def examine(machine: Machine, name: str, cores: set[int]) -> dict[str, Any]:
    """Version 1 of mr-devices-doctor.schema.json. Raises Failure."""
    links = ask("ip", "-json", "-details", "link", "show", "dev", name)
    if not links:
        raise Failure(f"no interface {name}; 'ip link' lists them")
    interface = Interface(machine, name, cores, json.loads(links)[0])
    findings: list[dict[str, str]] = []
    unknown: list[dict[str, str]] = []
    for check in CHECKS:
        word = check.__name__.replace("_", "-")
        try:
            for found in check(interface):
                findings.append({"check": word, **found._asdict()})
        except Unknown as why:
            unknown.append({"check": word, "why": str(why)})
        if check is kind and findings:
            break
    return {"v": 1, "interface": name, "findings": findings, "unknown": unknown}


def print_findings(shown: dict[str, Any]) -> None:
    """Print findings as text."""
    for found in shown["findings"]:
        print(escape(f"{found['check']}: {found['finding']}"))
        print(escape(f"    {found['fix']}"))
    for other in shown["unknown"]:
        print(escape(f"{other['check']}: not checked: {other['why']}"))
    if not shown["findings"]:
        n = len(shown["unknown"])
        but = f" by the other {len(CHECKS) - n} checks" if n else ""
        print(escape(f"{shown['interface']}: nothing found{but}"))
