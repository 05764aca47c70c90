# SPDX-License-Identifier: BSD-3-Clause
"""The steps of one driver: a cable, the conformance suite, and what RFC 2544 measures, on each
device under test in turns."""

import shlex
import shutil
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mr_bench.qualify.drivers import DPDK, VFIO, Cores, Driver
from mr_bench.qualify.ports import find_conformance, find_program
from mr_bench.rates import FCS_BYTES
from mr_bench.runner import Device, Step

NOTHING = Device("none")
LOSS_TOLERANCE = "0.1%"  # both ends share a machine, which always disturbs a little
SHARES = 10, 50, 90  # of the throughput, at which latency is measured
CABLE_FRAMES = 200
CONFORMANCE_S = 30
START_S = 1.5  # of a step, and of a device
N_SEARCH, N_LOSS = 11, 6  # trials that they usually take
MOST_TRIAL_S, LEAST_TRIAL_S = 10.0, 0.05
LIMIT = 20  # times what a step should take
# A shared machine may keep a thread waiting.
CALM = ("--max-lag", "0.1", "--unsent-tolerance", "2%")


class NoRate(Exception):
    """A step needs the throughput, and there is none."""


@dataclass(frozen=True)
class Planned:
    """A step whose command may need results of others. Raises NoRate."""

    name: str
    seconds: float  # that it will take
    device: Device
    command: Callable[[], str]

    def step(self) -> Step:
        """Of a runner."""
        return Step(self.name, self.command(), self.device, 60 + LIMIT * self.seconds)


@dataclass(frozen=True)
class Plan:
    """Of all drivers. seconds: of one; sizes: with FCS."""

    seconds: float
    sizes: list[int]
    n_rounds: int
    devices: list[str]
    cores: Cores
    dst_mac: str

    @property
    def trial_s(self) -> float:
        """The length of a trial, so that a driver takes its seconds."""
        n = len(self.sizes)
        n_steps = len(self.devices) * (self.n_rounds + 2 + n)
        n_trials = len(self.devices) * (
            self.n_rounds * n * N_SEARCH + n * N_LOSS + n * len(SHARES) + 2
        )
        trial_s = (self.seconds - 2 * START_S * n_steps) / max(n_trials, 1)
        return min(max(trial_s, LEAST_TRIAL_S), MOST_TRIAL_S)

    def _bench(self, command: str, ports: tuple[str, ...], *words: str) -> str:
        cores = ",".join(map(str, self.cores.tester))
        mac = ["--dst-mac", self.dst_mac] if self.dst_mac and ports[0] == ports[1] else []
        line = [find_program("mr-bench"), command, "--quiet", "--json", "--cores", cores, *mac]
        return shlex.join([*line, *words, *ports]) + ' >"$MR_OUT"'

    def cable(self, driver: Driver) -> Planned:
        """A few frames of each size, both ways."""
        streams = [word for size in self.sizes for word in ("--stream", f"size={size - FCS_BYTES}")]
        words = ["--bidirectional", "--rate", "10k", "--count", str(CABLE_FRAMES), *streams]
        line = self._bench("loop", driver.specs, *words, "--max-lag", "5", "--settle", "1")
        return Planned(f"{driver.name} cable", 2 * START_S, NOTHING, lambda: line)

    def conformance(self, driver: Driver) -> Planned | None:
        """None: it is not installed."""
        program = find_conformance()
        # The device's port is under test. An interface has one channel now.
        lacks = "" if driver.name in (VFIO, DPDK) else "MR_NIC_LACKS=queues "
        words = shlex.join([program, *driver.specs[::-1]])
        # Or errors would come before results.
        by_line = "stdbuf -oL" if shutil.which("stdbuf") else ""
        command = f'{lacks}CMOCKA_MESSAGE_OUTPUT=TAP exec {by_line} {words} >"$MR_OUT" 2>&1'
        name = f"{driver.name} conformance"
        return Planned(name, CONFORMANCE_S, NOTHING, lambda: command) if program else None

    def ready(self, driver: Driver) -> str:
        """A command that succeeds once a device under test forwards."""
        words = ["--rate", "1k", "--count", "20", "--max-lag", "5", "--settle", "0.5"]
        return (
            self._bench("loop", (driver.specs[0],) * 2, *words).partition(" >")[0]
            + " >/dev/null 2>&1"
        )

    def _search(self, driver: Driver, device: Device, n: int) -> Planned:
        sizes = ",".join(map(str, self.sizes))
        words = ["--method", "tst009", "--verify", "1", "--resolution", "1%"]
        words += ["--loss-tolerance", LOSS_TOLERANCE, "--trial", f"{self.trial_s:.3f}"]
        line = self._bench("throughput", (driver.specs[0],) * 2, *CALM, *words, "--sizes", sizes)
        seconds = START_S + N_SEARCH * len(self.sizes) * self.trial_s
        return Planned(f"{device.name} throughput, round {n}", seconds, device, lambda: line)

    def _loss(self, driver: Driver, device: Device) -> Planned:
        sizes = ",".join(map(str, self.sizes))
        words = ["--step", "10%", "--trial", f"{self.trial_s:.3f}", "--sizes", sizes]
        line = self._bench("frameloss", (driver.specs[0],) * 2, *CALM, *words)
        seconds = START_S + N_LOSS * len(self.sizes) * self.trial_s
        return Planned(f"{device.name} frameloss", seconds, device, lambda: line)

    def _latency(self, driver: Driver, device: Device, size: int, rates: "Rates") -> Planned:
        def command() -> str:
            words = ["--rate", f"{rates(device.name, size):.0f}", "--size", str(size)]
            words += ["--shares", ",".join(map(str, SHARES)), "--trial", f"{self.trial_s:.3f}"]
            return self._bench("latency", (driver.specs[0],) * 2, *CALM, *words)

        seconds = START_S + (len(SHARES) + 1) * self.trial_s
        return Planned(f"{device.name} latency, {size} B", seconds, device, command)

    def _cost(self, driver: Driver, device: Device) -> Planned:
        words = ["--rate", "max", "--duration", f"{max(2 * self.trial_s, 0.5):.3f}"]
        line = self._bench("loop", (driver.specs[0],) * 2, *words, "--size", str(self.sizes[0]))
        return Planned(f"{device.name} cost", START_S + 2 * self.trial_s, device, lambda: line)

    def measure(self, driver: Driver, devices: list[Device], rates: "Rates") -> Iterator[Planned]:
        """Rounds in alternating order, so that a drift of the machine meets all alike."""
        for n in range(1, self.n_rounds + 1):
            for device in devices[:: 1 if n % 2 else -1]:
                yield self._search(driver, device, n)
        for device in devices:
            yield self._loss(driver, device)
            for size in self.sizes:
                yield self._latency(driver, device, size, rates)
            yield self._cost(driver, device)


# The throughput of a device for a size. Raises NoRate.
Rates = Callable[[str, int], float]


def found_rate(runs: list[dict[str, Any]], name: str, size: int) -> float:
    """The median of its rounds. Raises NoRate."""
    values = [
        row["value"]
        for run in runs
        if run["kind"] == "throughput" and run["name"].startswith(f"{name} ")
        for row in run["rows"]
        if row["frame_bytes"] == size - FCS_BYTES and row["value"] > 0
    ]
    if not values:
        raise NoRate(f"no throughput of {size} B was found")
    return float(statistics.median(values))
