# SPDX-License-Identifier: BSD-3-Clause
"""Forwarders between p0 and p1, and how to measure their cost."""
import ipaddress
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

# Last, because this folder has another module named command.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))

# pylint: disable=wrong-import-position
import huge_pages  # noqa: E402
from topology import ROUTER_MAC, BenchError, call, end  # noqa: E402

GENERATOR_CORE, FORWARDER_CORE = 0, 1
MAX_RETRIES = 5       # attempts at an undisturbed sample
MAX_WAITED_PCT = 3.0  # of the time, for a core that others used
WARM_UP_S = 1.0
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def eal_options(vdevs, huge_pages, mib=512):
    """What DPDK's programs here have in common."""
    # Without huge pages EAL refuses --in-memory. Single files, because a
    # vhost-user back end maps eight pieces of memory.
    return [*(["--in-memory", "--single-file-segments", "-m", str(mib)]
              if huge_pages else
              ["--no-huge", "--no-shconf", "-m", str(2 * mib)]),
            "--no-pci", "--no-telemetry", "--file-prefix", f"mrb{os.getpid()}",
            *(word for vdev in vdevs for word in ("--vdev", vdev))]


def testpmd_command(vdevs, *, huge_pages, mode="io", extra=()):
    """Debian's testpmd: one forwarding core, quiet while it runs."""
    return ["dpdk-testpmd", "-l", f"{GENERATOR_CORE},{FORWARDER_CORE}",
            "--main-lcore", str(GENERATOR_CORE),
            *eal_options(vdevs, huge_pages),
            "--", f"--forward-mode={mode}", "--nb-cores=1",
            "--auto-start", *extra]


def testpmd_on_veths(huge_pages, *devs, **how):
    """On interfaces, through net_af_xdp; without names, on p0 and p1."""
    return testpmd_command([f"net_af_xdp{i},iface={dev}" for i, dev in
                            enumerate(devs or ("p0", "p1"))],
                           huge_pages=huge_pages, **how)


def l2fwd_command(build, *options, ports=("xdp:p0", "xdp:p1")):
    """mr-l2fwd with one worker on the forwarder's core."""
    return [str(build / "apps/l2fwd/mr-l2fwd"), "--json", "--cores",
            str(FORWARDER_CORE), *options, *ports]


class Contestant:
    """A forwarder that can be started and stopped any number of times."""

    def __init__(self, name, argv):
        self.name = name
        self.argv = argv

    def start(self, topology):
        return Running(self.name, self.argv, topology)


def family(pid):
    """A process and its children: trafgen forks, mr-bench has an engine."""
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
    """Seconds for which its threads (ran, waited for a core)."""
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    fields = [(task / "schedstat").read_text().split() for task in tasks]
    return (sum(int(field[0]) for field in fields) * 1e-9,
            sum(int(field[1]) for field in fields) * 1e-9)


class Running:
    """A started forwarder."""

    def __init__(self, name, argv, topology):
        self.name = name
        self.log = tempfile.TemporaryFile()
        # testpmd ends when its stdin does.
        self.process = topology.start("f", argv, stdin=subprocess.PIPE,
                                      stdout=self.log,
                                      stderr=subprocess.STDOUT)

    def output(self):
        """What it has written; the place where it writes is the log's, too, so
        that must not move."""
        log = self.log.fileno()
        return os.pread(log, os.fstat(log).st_size, 0).decode()

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
        """End it; return (exit code, output)."""
        code = end(self.process)
        self.process.stdin.close()
        text = self.output()
        self.log.close()
        return code, text


def live_streams(flows, ethertype):
    """Streams with exactly this number of flows, by ports and addresses."""
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
    """Sends live XDP frames from g0, on a core of its own, until stop(). size:
    without the FCS."""

    def __init__(self, bench, topology, ethertype=0x0800, size=60, flows=1):
        self.process = topology.start(
            "g", [bench, "tx", "live:g0", "--cores", str(GENERATOR_CORE),
                  "--size", str(size + 4), "--unstamped", "--json", "--quiet",
                  "--dst-mac", ROUTER_MAC,
                  "--stream", live_streams(flows, ethertype)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def stop(self):
        """End it; return the number of frames that it sent."""
        code = end(self.process)
        text = self.process.stdout.read()
        self.process.stdout.close()
        if code != 0:
            raise BenchError(f"mr-bench tx ended with {code}")
        return json.loads(text)["trials"][0]["tx"]["sent"]


def is_kernel_thread(pid):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() == b""


def favour(processes, niceness):
    """Give all threads of processes, and of their children, priority over
    other programs.

    With autogroups (CONFIG_SCHED_AUTOGROUP), niceness compares programs of one
    session only; sessions have a niceness of their own, and the kernel's
    threads have no session.
    """
    for pid in [pid for process in processes for pid in family(process.pid)]:
        autogroup = pathlib.Path(f"/proc/{pid}/autogroup")
        if autogroup.exists() and not is_kernel_thread(pid):
            autogroup.write_text(str(niceness))
        for task in os.listdir(f"/proc/{pid}/task"):
            os.setpriority(os.PRIO_PROCESS, int(task), niceness)


def steal_ticks():
    """Ticks that the hypervisor took so far from all cores."""
    with open("/proc/stat", encoding="ascii") as stat:
        return int(stat.readline().split()[8])


def wait_until_attached(topology, running, n_devs=2, seconds=20):
    """Wait until p0 and p1 have XDP programs, and half a second for the rest.

    Frames sent before that are lost in the cable, where no forwarder counts
    them.
    """
    deadline = time.monotonic() + seconds
    while True:
        links = json.loads(call("ip", "-n", topology.namespaces["f"], "-j",
                                "link", "show"))
        if sum("xdp" in link for link in links) == n_devs:
            break
        running.check()
        if time.monotonic() > deadline:
            raise BenchError(f"{running.name}: no XDP program on p0 and p1")
        time.sleep(0.05)
    time.sleep(0.5)


def wait_for_traffic(topology, running, seconds=20):
    """Wait until frames arrive at the sink."""
    deadline = time.monotonic() + seconds
    _, first = topology.arrived()
    while topology.arrived()[1] < first + 1000:
        running.check()
        if time.monotonic() > deadline:
            raise BenchError(f"{running.name}: nothing arrives at the sink")
        time.sleep(0.05)


def window(topology, running, seconds):
    """A sample: what happens in a period of time."""
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


def sample(topology, contestant, args, traffic):
    """Start a forwarder, warm up, measure, stop it.

    traffic: arguments for the Generator; None: the contestant itself sends.
    """
    args.before_each()
    running = contestant.start(topology)
    generator = None
    try:
        if traffic is not None:
            generator = Generator(args.bench, topology, **traffic)
        wait_for_traffic(topology, running)
        favour([one.process for one in (running, generator) if one], args.nice)
        time.sleep(getattr(args, "warm_up", min(WARM_UP_S, args.seconds / 2)))
        return window(topology, running, args.seconds)
    finally:
        if generator is not None:
            generator.stop()
        running.stop()


def undisturbed(topology, contestant, args, traffic, take=sample):
    """A sample that neither the hypervisor nor another program disturbed;
    after MAX_RETRIES, the least disturbed one, marked as such."""
    tried = []
    for _ in range(MAX_RETRIES):
        taken = take(topology, contestant, args, traffic)
        taken["disturbed"] = (taken["steal_ticks"] > 0 or
                              taken["waited_pct"] > MAX_WAITED_PCT)
        if not taken["disturbed"]:
            return taken
        tried.append(taken)
        args.n_disturbed += 1
    return min(tried, key=lambda t: (t["waited_pct"], t["steal_ticks"]))


def turns(topology, contestants, n, args, traffic, take=undisturbed):
    """n samples of each contestant, by name. The order is reversed each round,
    so that a drift affects all of them equally."""
    taken = {one.name: [] for one in contestants}
    for i in range(n):
        for one in contestants[::-1 if i % 2 else 1]:
            taken[one.name].append(take(topology, one, args, traffic))
        print(f"  round {i + 1:2}/{n}: " + ", ".join(
            f"{name} {samples[-1]['mpps']:.3f}"
            for name, samples in taken.items()) + " Mpps", flush=True)
    return taken


def count_system_calls(syscount, topology, running, seconds):
    """System calls per frame, counted in a run of its own by a BPF program on
    sys_enter."""
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


class HugePages(huge_pages.HugePages):
    """The huge pages of testpmd. Other programs may take free ones at any
    time, so call top_up() before each use."""

    N_MIB = 600  # testpmd's 512, and some more

    def top_up(self):
        """Return whether there are enough."""
        return self.are_there(self.N_MIB)
