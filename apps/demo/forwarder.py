# SPDX-License-Identifier: BSD-3-Clause
"""mr-l2fwd as a child: its JSON lines, the live display, the summary."""
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time

from hosts import end, popen

START_LIMIT_S = 20
STOP_LIMIT_S = 20


class Failed(Exception):
    """The demo cannot go on; the text is for a person."""


class Forwarder:
    """A running mr-l2fwd; `lines` is what it has said so far."""

    def __init__(self, command, into=lambda *words: list(words)):
        self.errors = tempfile.TemporaryFile("w+")
        self.lines = []
        self.process = popen(into(*command), stdout=subprocess.PIPE,
                             stderr=self.errors, text=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            try:
                self.lines.append(json.loads(line))
            except ValueError:
                self.errors.write(line)

    def why_ended(self):
        """What it said last, for a person."""
        self.errors.flush()
        self.errors.seek(0)
        said = self.errors.read().strip().splitlines()
        return said[-1] if said else "no output"

    def check(self):
        """Raise Failed if it is not running."""
        status = self.process.poll()
        if status is None:
            return
        if status < 0:
            raise Failed(f"the forwarder was killed by "
                         f"{signal.Signals(-status).name}")
        raise Failed(f"the forwarder ended with {status}: {self.why_ended()}")

    def wait_ready(self):
        """Wait for its first line: the ports are open then."""
        limit_s = time.monotonic() + START_LIMIT_S
        while not self.lines:
            self.check()
            if time.monotonic() > limit_s:
                raise Failed("no output from the forwarder for "
                             f"{START_LIMIT_S} s: {self.why_ended()}")
            time.sleep(0.05)
        return self.lines[-1]

    def stop(self):
        """Ask it to end; its final object."""
        self.check()
        status = end(self.process, signal.SIGINT, STOP_LIMIT_S)
        return self.final(status)

    def wait(self, limit_s):
        """Its final object, once it has ended by itself (as captures do)."""
        try:
            return self.final(self.process.wait(limit_s))
        except subprocess.TimeoutExpired:
            raise Failed(f"the forwarder is still running after {limit_s} s") \
                from None

    def final(self, status):
        """Its final object, once it has ended."""
        self.reader.join(STOP_LIMIT_S)
        if status != 0:
            raise Failed(f"the forwarder ended with {status}: "
                         f"{self.why_ended()}")
        if not self.lines or not self.lines[-1].get("final"):
            raise Failed("the forwarder ended without its final object")
        return self.lines[-1]

    def close(self):
        """End it, whatever state it is in."""
        end(self.process, signal.SIGKILL)
        self.reader.join(STOP_LIMIT_S)
        self.process.stdout.close()
        self.errors.close()


def label_ports(line):
    """(label, port) of each port; two ports may have one name."""
    seen = {}
    for port in line["ports"]:
        name = port["port"]
        seen[name] = seen.get(name, 0) + 1
        yield name + (f" ({seen[name]})" if seen[name] > 1 else ""), port


def port_totals(port):
    """Sums over the queues of one port."""
    sums = {"received": 0, "completed": 0, "tx_bytes": 0, "drops": {}}
    for queue in port["queues"]:
        rx, tx = queue.get("rx", {}), queue.get("tx", {})
        sums["received"] += rx.get("received", 0)
        sums["completed"] += tx.get("completed", 0)
        sums["tx_bytes"] += tx.get("bytes", 0)
        for side, counters in (("rx", rx), ("tx", tx)):
            for name, n in counters.get("drops", {}).items():
                key = f"{side} {name}"
                sums["drops"][key] = sums["drops"].get(key, 0) + n
    for name, n in port.get("device_drops", {}).items():
        sums["drops"][f"device {name}"] = n
    return sums


def totals(line):
    """{label: sums} of the ports of a line."""
    return {label: port_totals(port) for label, port in label_ports(line)}


def worker_drops(line):
    """What the forwarder itself dropped: {name: n}."""
    drops = {}
    for worker in line.get("workers", []):
        for name, n in worker.get("drops", {}).items():
            drops[name] = drops.get(name, 0) + n
    return drops


def difference(last, first):
    """Counters that grew, as text; '-' if none did."""
    grown = {name: n - first.get(name, 0) for name, n in last.items()}
    return ", ".join(f"{name} {n:,}" for name, n in grown.items() if n) or "-"


def rates(before, after):
    """{label: (rx frames/s, tx frames/s, tx bit/s)} between two lines."""
    seconds = max(after["t"] - before["t"], 1e-9)
    first, last = totals(before), totals(after)
    return {label: tuple(
        (last[label][name] - first[label][name]) * factor / seconds
        for name, factor in (("received", 1), ("completed", 1),
                             ("tx_bytes", 8)))
            for label in last if label in first}


class Display:
    """The live display: redrawn in place on a terminal, else line by line."""

    def __init__(self):
        self.is_tty = sys.stdout.isatty()
        self.n_lines = 0

    def show(self, before, after):
        """One second of traffic."""
        rows = [f"  {after['t']:5.1f} s       {'rx frames/s':>13} "
                f"{'tx frames/s':>13} {'tx Gbit/s':>10}   drops"]
        last, first = totals(after), totals(before)
        for label, (rx, tx, bits) in rates(before, after).items():
            drops = difference(last[label]["drops"], first[label]["drops"])
            rows.append(f"  {label:14}{rx:13,.0f} {tx:13,.0f} "
                        f"{bits / 1e9:10.3f}   {drops}")
        drops = difference(worker_drops(after), worker_drops(before))
        rows.append(f"  {'forwarder':52}   {drops}")
        if self.is_tty and self.n_lines:
            sys.stdout.write(f"\x1b[{self.n_lines}A\x1b[J")
        print("\n".join(rows), flush=True)
        self.n_lines = len(rows)

    def run(self, forwarder, seconds, is_over=lambda: False):
        """Show lines as they come for that long. The first and last one."""
        limit_s = time.monotonic() + seconds
        shown = first = len(forwarder.lines) - 1
        while time.monotonic() < limit_s and not is_over():
            time.sleep(0.05)
            forwarder.check()
            if len(forwarder.lines) - 1 > shown:
                self.show(forwarder.lines[shown], forwarder.lines[shown + 1])
                shown += 1
        return forwarder.lines[first], forwarder.lines[-1]


def summary(before, after, final):
    """What a person wants to know at the end."""
    seconds = after["t"] - before["t"]
    rows = rates(before, after)
    print(f"\nSummary of {seconds:.0f} s at full speed")
    print(f"  {'forwarded':14}{sum(row[1] for row in rows.values()):,.0f} "
          f"frames/s, {sum(row[2] for row in rows.values()) / 1e9:.3f} Gbit/s")
    print(f"  {'arrived':14}{sum(row[0] for row in rows.values()):,.0f} "
          "frames/s; the excess is dropped, by name")
    print("since the start")
    for label, port in label_ports(final):
        why = f": {port['why']}" if port.get("why") else ""
        print(f"  {label:14}mode {port['mode']}{why}")
        print(f"  {'':14}drops: {difference(port_totals(port)['drops'], {})}")
    print(f"  {'forwarder':14}drops: {difference(worker_drops(final), {})}")
    pool = final["pool"]
    print(f"  {'pages':14}{after['pool']['n_in_flight']:,} in flight under "
          f"load, {pool['n_in_flight']} at the end, of {pool['n_pages']:,}")
    if not (final.get("laws_hold", True) and final.get("conserved", True)):
        raise Failed("the accounting invariants do not hold, or pages are missing")
