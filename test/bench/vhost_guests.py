# SPDX-License-Identifier: BSD-3-Clause
"""Guests of ./mr bench vhost: TCP and pings between two emulated machines,
through each switch of vhost_switches.py in turn."""
import contextlib
import json
import pathlib
import re
import shutil
import statistics

import contestants as who
import report
from topology import BenchError
from vhost_switches import KIND, OURS, started

# pylint: disable=wrong-import-order
from fetch import Missing  # of test/guest
from guest import Guest, Nic

PING_INTERVAL_S = 0.02
MEMORY_MB = 256
# Whose CPU seconds: the switch's; those of QEMU's main loops, which are the
# devices of taps and only pass on the interrupts of the others; all.
CPU = ("switch", "main_loops", "all")


def need_machine():
    """Fetch what guests are made of, before anything is measured."""
    try:
        guest = Guest([Nic("nic0", KIND, "vhost")])
    except Missing as why:
        raise BenchError(str(why)) from why
    if not guest.nics:
        raise BenchError(f"QEMU {guest.qemu_version} is too old for guests")


def answer(guest, command):
    """The output of a command in a guest."""
    status, text = guest.run(command)
    if status != 0:
        raise BenchError(f"in a guest: {command}: {status}: {text.strip()}")
    return text


def configure(guests, switches):
    """Addresses, and a server in guest 1."""
    for i, guest in enumerate(guests):
        for switch in switches:
            answer(guest, f"ip address add {switch.address(i)}/24 dev "
                          f"nic{switch.n}{i}")
    answer(guests[1], "iperf3 --server --daemon")


def cpu_of(switch, guests):
    """CPU seconds so far, as CPU."""
    pids = [guest.process.pid for guest in guests]
    loops = [pathlib.Path(f"/proc/{pid}/task/{pid}/schedstat").read_text()
             for pid in pids]
    middle = switch.cpu()
    return (middle, sum(int(text.split()[0]) for text in loops) * 1e-9,
            middle + sum(who.scheduled_of(pid)[0] for pid in pids))


def arrived(switch, guest):
    """(bytes, frames) that guest 1 has received so far."""
    folder = f"/sys/class/net/nic{switch.n}1/statistics"
    text = answer(guest, f"cat {folder}/rx_bytes {folder}/rx_packets")
    return [int(word) for word in text.split()]


def transfer(switch, guests, n_bytes):
    """TCP from guest 0 to guest 1: Gbit/s, the mean frame (segments are not cut
    into frames), and CPU seconds per GB."""
    first, before = arrived(switch, guests[1]), cpu_of(switch, guests)
    done = json.loads(answer(
        guests[0], f"iperf3 --client {switch.address(1)} --json --bytes "
                   f"{n_bytes}"))
    after = cpu_of(switch, guests)
    got = done["end"]["sum_received"]
    frame = [b - a for a, b in zip(first, arrived(switch, guests[1]))]
    return {"gbit_per_s": got["bits_per_second"] / 1e9,
            "frame_bytes": frame[0] / frame[1]} | {
        f"{key}_s_per_gb": (b - a) / got["bytes"] * 1e9
        for key, a, b in zip(CPU, before, after)}


def ping(switch, guests, n):
    """Round trips in us, sorted; those of all n."""
    text = answer(guests[0], f"ping -c {n} -i {PING_INTERVAL_S} "
                             f"{switch.address(1)}")
    found = sorted(1e3 * float(ms) for ms in re.findall(r"time=(\S+) ms",
                                                        text))
    if len(found) < n:
        raise BenchError(f"{switch.name}: {n - len(found)} pings of {n} lost")
    return found


def sample(switch, guests, args):
    switch.resume()
    try:
        ping(switch, guests, 3)  # they learn their addresses
        taken = transfer(switch, guests, args.tcp_mib << 20)
        trips = ping(switch, guests, args.pings)
    finally:
        switch.pause()
    return taken | {"ping_p50_us": statistics.median(trips),
                    "ping_p99_us": trips[int(0.99 * len(trips))]}


def take_turns(switches, guests, args):
    taken = {switch.name: [] for switch in switches}
    for i in range(args.pairs):
        for switch in switches[::-1 if i % 2 else 1]:
            taken[switch.name].append(sample(switch, guests, args))
        print(f"  round {i + 1:2}/{args.pairs}: " + ", ".join(
            f"{name} {samples[-1]['gbit_per_s']:.2f}"
            for name, samples in taken.items()) + " Gbit/s", flush=True)
    return taken


@contextlib.contextmanager
def connected(args):
    """(switches, running guests)."""
    with started(args) as (namespace, switches), contextlib.ExitStack() as stack:
        guests = [stack.enter_context(Guest(
            [switch.nic(i) for switch in switches], [shutil.which("iperf3")],
            memory_mb=MEMORY_MB, prefix=["ip", "netns", "exec", namespace]))
            for i in range(2)]
        configure(guests, switches)
        who.favour([one.process for one in guests] +
                   [one.running.process for one in switches[:-1]], args.nice)
        for switch in switches:
            switch.pause()
        yield switches, guests


def measure(args):
    """Samples by the name of the switch, and ratios of our rate to theirs."""
    print("guests", flush=True)
    with connected(args) as (switches, guests):
        taken = take_turns(switches, guests, args)
    return {"samples": taken, "ratios": {
        name: report.ratio_of([(a["gbit_per_s"], b["gbit_per_s"]) for a, b in
                               zip(samples, taken[OURS])])
        for name, samples in taken.items() if name != OURS}}


def show(result):
    print(f"\n{'TCP, guest to guest':19} {'bytes per':>9} "
          f"{'CPU seconds per GB':^22} {'ping, us':^11} {OURS} by it\n"
          f"{'':10} {'Gbit/s':>8} {'frame':>9} {'switch':>7} {'QEMU':>6} "
          f"{'all':>7} {'p50':>5} {'p99':>5} {'ratio':>6} {'95 %':>15}")
    for name, samples in result["samples"].items():
        middle, *more = (report.median_of(samples, f"{key}_s_per_gb")
                         for key in CPU)
        line = f"{name:10} {report.median_of(samples, 'gbit_per_s'):8.2f} " \
               f"{report.median_of(samples, 'frame_bytes'):9.0f} " + \
               (f"{middle:7.2f} " if middle else f"{'-':>7} ") + \
               "{:6.2f} {:7.2f} ".format(*more) + " ".join(
                   f"{report.median_of(samples, f'ping_{point}_us'):5.0f}"
                   for point in ("p50", "p99"))
        ratio = result["ratios"].get(name)
        print(line + (f" {ratio['median']:6.2f} {ratio['low']:6.2f} to "
                      f"{ratio['high']:.2f}" if ratio else ""))
    print("QEMU: its main loops, which are the devices of the taps; the bridge "
          "runs in them")


def goals(result, limit):
    """The goals in docs/performance.md."""
    return [report.at_least(f"guests, TCP: by {name}'s",
                            result["ratios"][name]["median"], limit)
            for name in ("testpmd", "bridge")]
