# SPDX-License-Identifier: BSD-3-Clause
"""The ways to open the ports, and the devices under test: what runs on the second port."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mr_bench.qualify.ports import Port, ask_devices, find_program
from mr_bench.qualify.settings import Settings
from mr_bench.runner import Device

XDP_COPY, XDP_ZC, VFIO, DPDK = NAMES = ("xdp-copy", "xdp-zc", "vfio", "dpdk")
L2FWD, TESTPMD = DEVICES = ("mr-l2fwd", "testpmd")
# Their PMDs work beside the kernel's driver.
BIFURCATED = ("mlx4_core", "mlx5_core")
GET_TESTPMD = "install dpdk-dev (on Fedora, dpdk)"
N_MBUFS = 32768  # testpmd's default takes twice the memory that a small machine can spare
CPUS = Path("/sys/devices/system/cpu")


@dataclass(frozen=True)
class Cores:
    """Of the tester, and of the device under test."""

    tester: list[int]
    device: int

    @property
    def is_shared(self) -> bool:
        """Whether both have to use one."""
        return self.device in self.tester


def choose_cores(allowed: Sequence[int], node: int, cpus: Path = CPUS) -> Cores:
    """One thread of each core, near the NIC where there are enough; the first core is left to the
    machine where it can be spared."""

    def first_thread(core: int) -> int:
        try:
            text = (cpus / f"cpu{core}/topology/thread_siblings_list").read_text()
        except OSError:
            return core
        return int(text.replace("-", ",").partition(",")[0])

    own = list({first_thread(core): core for core in reversed(allowed)}.values())[::-1]
    own = sorted(own) if len(own) > 1 else sorted(allowed)
    near = [core for core in own if (cpus / f"cpu{core}/node{node}").exists()]
    if node >= 0 and len(near) >= 3:
        own = near
    if len(own) > 3:
        own = own[1:]
    *others, device = own
    return Cores(others[:2] or [device], device)


@dataclass(frozen=True)
class Driver:
    """specs: of the ports. eal: testpmd's device; "": it has none for that."""

    name: str
    specs: tuple[str, str] = ("", "")
    eal: str = ""
    why: str = ""  # it cannot open the ports

    @property
    def is_packet_socket(self) -> bool:
        """Where DPDK has no driver of its own."""
        return "net_af_packet" in self.eal

    def cannot(self, why: str) -> "Driver":
        """The same, which is not possible here."""
        return replace(self, why=why)


def _look_xdp(name: str, ports: list[Port]) -> Driver:
    driver = Driver(name)
    if vfio := next((port for port in ports if not port.netdev), None):
        return driver.cannot(
            f"{vfio.name} has no interface; 'mr-devices unbind {vfio.bdf}' returns it to the kernel"
        )
    mode = name.removeprefix("xdp-")
    a, b = (f"xdp:{port.netdev},mode={mode}" for port in ports)
    copy = ",force_copy=1" if name == XDP_COPY else ""
    return replace(driver, specs=(a, b), eal=f"--vdev=net_af_xdp0,iface={ports[1].netdev}{copy}")


def _why_not_bound(ports: list[Port]) -> str:
    """Why the kernel has to keep them."""
    for port in ports:
        if not port.bdf:
            return f"{port.name} is not a PCI device"
        if port.addresses():
            return (
                f"{port.name} has the address {port.addresses()[0]}, which would be lost: "
                f"'ip address flush dev {port.name}'"
            )
    return ""


def _look_vfio(ports: list[Port]) -> Driver:
    driver = Driver(VFIO)
    if why := _why_not_bound(ports):
        return driver.cannot(why)
    for port in ports:
        found, why = ask_devices("info", "--json", port.bdf)[1:]
        if found is None or not found["devices"][0]["driver"]:
            ids = ":".join(port.nic["pci"][key].removeprefix("0x") for key in ("vendor", "device"))
            return driver.cannot(
                why or f"Millrace has no driver of its own for {port.name} ({ids})"
            )
    a, b = (f"vfio:{port.bdf}" for port in ports)
    return replace(driver, specs=(a, b), eal=f"--allow={ports[1].bdf}")


def _look_dpdk(ports: list[Port]) -> Driver:
    driver = Driver(DPDK)
    if all(port.bdf for port in ports):
        if not _is_bifurcated(ports) and (why := _why_not_bound(ports)):
            return driver.cannot(why)
        a, b = (f"dpdk:{port.bdf}" for port in ports)
        return replace(driver, specs=(a, b), eal=f"--allow={ports[1].bdf}")
    if not all(port.netdev for port in ports):
        return driver.cannot("one port is a PCI device, and one is an interface without one")
    # Without a PCI device: through a packet socket.
    a, b = (f"net_af_packet{i}\\,iface={port.netdev}" for i, port in enumerate(ports))
    eal = b.replace("\\", "")
    return replace(driver, specs=(f"dpdk:{a}", f"dpdk:{b}"), eal=f"--vdev={eal}")


def _is_bifurcated(ports: list[Port]) -> bool:
    return all((port.nic["pci"] or {}).get("driver") in BIFURCATED for port in ports)


def look(name: str, ports: list[Port]) -> Driver:
    """A driver for these ports, or why not, as far as that is known before it is tried."""
    if name == VFIO:
        return _look_vfio(ports)
    return _look_dpdk(ports) if name == DPDK else _look_xdp(name, ports)


def prepare(driver: Driver, ports: list[Port], settings: Settings) -> Driver:
    """Give the driver the NICs, and huge pages if DPDK runs."""
    needs_vfio = driver.name == VFIO or (
        driver.name == DPDK and ports[0].bdf and not _is_bifurcated(ports)
    )
    why = settings.bind(ports) if needs_vfio else ""
    return driver.cannot(why) if why else driver


def _l2fwd(driver: Driver, cores: Cores) -> list[str]:
    # Polling, as testpmd does, where nobody else needs the core.
    idle = [] if cores.is_shared else ["--idle", "poll"]
    words = [find_program("mr-l2fwd"), "--mode", "macswap", "--promisc", "on", "--quiet"]
    return [*words, "--workers", "1", "--cores", str(cores.device), *idle, driver.specs[1]]


def _testpmd(driver: Driver, cores: Cores, has_huge_pages: bool) -> list[str]:
    memory = ["--in-memory"] if has_huge_pages else ["--no-huge", "--no-shconf"]
    no_pci = [] if driver.eal.startswith("--allow") else ["--no-pci"]
    words = ["dpdk-testpmd", f"--lcores=0@{cores.tester[0]},1@{cores.device}", *memory, *no_pci]
    words += ["-m", "512", "--no-telemetry", "--file-prefix", "mr-qualify", driver.eal]
    # Without the period it ends with its standard input.
    words += ["--", "--forward-mode=macswap", "--nb-cores=1", "--auto-start"]
    return [*words, f"--total-num-mbufs={N_MBUFS}", "--stats-period=3600"]


def device(name: str, driver: Driver, cores: Cores, ready: str, has_huge_pages: bool) -> Device:
    """A device under test. ready: a command that succeeds when it forwards."""
    if name == L2FWD:
        words = _l2fwd(driver, cores)
    else:
        words = _testpmd(driver, cores, has_huge_pages)
    return Device(f"{driver.name}-{name}", f"exec {shlex.join(words)}", ready)
