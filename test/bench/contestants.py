# SPDX-License-Identifier: BSD-3-Clause
"""What forwards between p0 and p1, and how its cost is read."""
import ipaddress
import json
import os
import pathlib
import subprocess
import tempfile
import time

from topology import BenchError, call, end

GENERATOR_CORE, FORWARDER_CORE = 0, 1
ROUTER_MAC = "02:00:00:00:00:02"  # the generator's destination
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def testpmd_command(vdevs, *, huge_pages, extra=()):
    """Debian's testpmd: one forwarding core, mode io, quiet while it runs."""
    argv = ["dpdk-testpmd", "-l", f"{GENERATOR_CORE},{FORWARDER_CORE}",
            "--main-lcore", str(GENERATOR_CORE), "--no-pci", "--in-memory",
            "--no-telemetry", "-m", "512",
            "--file-prefix", f"mrb{os.getpid()}"]
    if not huge_pages:
        argv.append("--no-huge")
    for vdev in vdevs:
        argv += ["--vdev", vdev]
    return argv + ["--", "--forward-mode=io", "--nb-cores=1", "--auto-start",
                   *extra]


class Contestant:
    """A forwarder that can be started and stopped any number of times."""

    def __init__(self, name, argv):
        self.name = name
        self.argv = argv

    def start(self, topology):
        return Running(self.name, self.argv, topology)


def family(pid):
    """It, and what it started: trafgen forks, mr-bench has an engine."""
    yield pid
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if int(path.name) != pid and os.getsid(int(path.name)) == pid:
                yield int(path.name)
        except ProcessLookupError:
            continue  # it has ended


def cpu_of(pid):
    """(user, system) seconds of all threads so far."""
    text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    fields = text[text.rindex(")") + 2:].split()
    return int(fields[11]) * TICK_S, int(fields[12]) * TICK_S


def scheduled_of(pid):
    """Seconds that its threads (ran, were ready to run and did not)."""
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    fields = [(task / "schedstat").read_text().split() for task in tasks]
    return (sum(int(field[0]) for field in fields) * 1e-9,
            sum(int(field[1]) for field in fields) * 1e-9)


class Running:
    """A started forwarder."""

    def __init__(self, name, argv, topology):
        self.name = name
        self.log = tempfile.TemporaryFile("w+")
        # testpmd ends when its stdin does.
        self.process = topology.start("f", argv, stdin=subprocess.PIPE,
                                      stdout=self.log,
                                      stderr=subprocess.STDOUT)

    def output(self):
        self.log.flush()
        self.log.seek(0)
        return self.log.read()

    def check(self):
        if self.process.poll() is not None:
            tail = self.output().strip().splitlines()[-3:]
            raise BenchError(f"{self.name} ended with "
                             f"{self.process.returncode}: {' | '.join(tail)}")

    def cpu(self):
        times = [cpu_of(pid) for pid in family(self.process.pid)]
        return tuple(map(sum, zip(*times)))

    def scheduled(self):
        times = [scheduled_of(pid) for pid in family(self.process.pid)]
        return tuple(map(sum, zip(*times)))

    def rss_kib(self):
        path = f"/proc/{self.process.pid}/status"
        for line in pathlib.Path(path).read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        return 0

    def stop(self):
        """End it; (exit code, what it printed)."""
        code = end(self.process)
        self.process.stdin.close()
        text = self.output()
        self.log.close()
        return code, text


def live_streams(flows, ethertype):
    """So many flows, and no fewer, by ports and by addresses."""
    if ethertype != 0x0800:
        return f"eth.type={ethertype:#x}"
    ports = max(n for n in range(1, 257) if flows % n == 0)
    words = []
    if ports > 1:
        words.append(f"udp.src=9000-{8999 + ports}")
    if flows > ports:
        first = int(ipaddress.ip_address("198.18.0.1"))
        last = ipaddress.ip_address(first + flows // ports - 1)
        words.append(f"ip.src=198.18.0.1-{last}")
    return " ".join(["ip.dst=198.18.1.1", *words])


class Generator:
    """Live XDP frames from g0, by its core, until stop()."""

    def __init__(self, bench, topology, ethertype=0x0800, size=60, flows=1):
        self.process = topology.start(
            "g", [bench, "tx", "live:g0", "--cores", str(GENERATOR_CORE),
                  "--size", str(size), "--unstamped", "--json", "--quiet",
                  "--dst-mac", ROUTER_MAC,
                  "--stream", live_streams(flows, ethertype)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def stop(self):
        """End it; how many frames it sent."""
        code = end(self.process)
        text = self.process.stdout.read()
        self.process.stdout.close()
        if code != 0:
            raise BenchError(f"mr-bench tx ended with {code}")
        return json.loads(text)["trials"][0]["tx"]["sent"]


def is_kernel_thread(pid):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() == b""


def favour(processes, niceness):
    """Put all threads of processes, and of what they started, before what else
    the machine does.

    With autogroups (CONFIG_SCHED_AUTOGROUP) niceness counts inside a session
    only, and sessions have one of their own; the kernel's threads have none.
    """
    for pid in [pid for process in processes for pid in family(process.pid)]:
        autogroup = pathlib.Path(f"/proc/{pid}/autogroup")
        if autogroup.exists() and not is_kernel_thread(pid):
            autogroup.write_text(str(niceness))
        for task in os.listdir(f"/proc/{pid}/task"):
            os.setpriority(os.PRIO_PROCESS, int(task), niceness)


def steal_ticks():
    """Ticks that the hypervisor took from both cores."""
    with open("/proc/stat", encoding="ascii") as stat:
        return int(stat.readline().split()[8])


def wait_until_attached(topology, running, seconds=20):
    """Until p0 and p1 have XDP programs, and half a second for the rest.

    What is sent before that is lost in the cable, and no count of a forwarder
    can have it.
    """
    deadline = time.monotonic() + seconds
    while True:
        links = json.loads(call("ip", "-n", topology.namespaces["f"], "-j",
                                "link", "show"))
        if sum("xdp" in link for link in links) == 2:
            break
        running.check()
        if time.monotonic() > deadline:
            raise BenchError(f"{running.name}: no XDP program on p0 and p1")
        time.sleep(0.05)
    time.sleep(0.5)


def wait_for_traffic(topology, running, seconds=20):
    """Until frames arrive at the sink, whatever the forwarder's start-up."""
    deadline = time.monotonic() + seconds
    _, first = topology.arrived()
    while topology.arrived()[1] < first + 1000:
        running.check()
        if time.monotonic() > deadline:
            raise BenchError(f"{running.name}: nothing arrives at the sink")
        time.sleep(0.05)


def window(topology, running, seconds):
    """What happens in a window of time: a sample."""
    steal, (ran, waited) = steal_ticks(), running.scheduled()
    begin, frames = topology.arrived()
    user, system = running.cpu()
    time.sleep(seconds)
    finish, frames_after = topology.arrived()
    user_after, system_after = running.cpu()
    ran_after, waited_after = running.scheduled()
    running.check()
    wall, n_frames = finish - begin, frames_after - frames
    if n_frames == 0:
        raise BenchError(f"{running.name}: nothing arrives at the sink")
    return {
        "contestant": running.name,
        "seconds": wall,
        "frames": n_frames,
        "mpps": n_frames / wall / 1e6,
        "user_pct": 100 * (user_after - user) / wall,
        "system_pct": 100 * (system_after - system) / wall,
        "user_ns_per_frame": 1e9 * (user_after - user) / n_frames,
        "steal_ticks": steal_ticks() - steal,
        "core_ns_per_frame": 1e9 * (ran_after - ran) / n_frames,
        "waited_pct": 100 * (waited_after - waited) / wall,
    }


def count_system_calls(syscount, topology, running, seconds):
    """System calls per frame, by a BPF program on sys_enter: its own run."""
    begin, frames = topology.arrived()
    counted = json.loads(subprocess.run(
        [syscount, "--pid", str(running.process.pid),
         "--seconds", str(seconds)],
        check=True, stdout=subprocess.PIPE, text=True).stdout)
    finish, frames_after = topology.arrived()
    frames_per_s = (frames_after - frames) / (finish - begin)
    calls_per_s = counted["total"] / counted["seconds"]
    tx_per_s = counted["calls"].get("44", 0) / counted["seconds"]  # sendto
    return {
        "calls_per_frame": calls_per_s / frames_per_s,
        "tx_calls_per_frame": tx_per_s / frames_per_s,
        "frames_per_tx_call": frames_per_s / tx_per_s if tx_per_s else 0,
        "by_number": counted["calls"],
    }


class HugePages:
    """What testpmd is given, while the with statement lasts.

    Other programs may take free ones at any time, so they are topped up
    before each use. At the end there are as many as before.
    """
    PATH = pathlib.Path("/proc/sys/vm/nr_hugepages")
    N_PAGES = 300  # of 2 MiB: testpmd's 512 MiB and a rest

    def __init__(self):
        self.before = int(self.PATH.read_text())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.PATH.write_text(str(self.before))

    def top_up(self):
        """Whether N_PAGES of them are free now."""
        missing = self.N_PAGES - self.n_free()
        if missing > 0:
            there = int(self.PATH.read_text())
            self.PATH.write_text(str(there + missing))
        return self.n_free() >= self.N_PAGES

    @staticmethod
    def n_free():
        for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("HugePages_Free:"):
                return int(line.split()[1])
        return 0
