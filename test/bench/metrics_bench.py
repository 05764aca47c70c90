# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench metrics: the cost of scraping to a forwarder.

mr-l2fwd forwards between null: ports. Intervals with 10 scrapes of all metrics
per second alternate with intervals without. Rates are frames per second of the
worker's CPU time, so other programs do not affect them. Needs no root.
"""
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

import command
import contestants as who
import report
from topology import BenchError, die_with_parent, end

SCRAPES_PER_S = 10


class Forwarder:
    """A running mr-l2fwd, and the clocks of its threads."""

    def __init__(self, args, folder):
        self.metrics = folder / "metrics"
        self.process = subprocess.Popen(
            [*who.l2fwd_command(args.build, "--metrics", f"unix:{self.metrics}",
                                "--control", str(folder / "control"),
                                ports=("null:", "null:"))],
            preexec_fn=die_with_parent, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if line.startswith("worker "):
                break
        else:
            raise BenchError("mr-l2fwd did not start")

    def scrape(self):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.metrics))
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            return b"".join(iter(lambda: client.recv(1 << 16), b"")).decode()

    def n_frames(self):
        return sum(int(n) for n in re.findall(
            r"(?m)^millrace_rx_frames_total\{.*\} (\d+)$", self.scrape()))

    def cpu_ns(self, is_worker):
        """CPU time of the worker, or of the main thread."""
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task")
        name = "mr-worker-0" if is_worker else "mr-l2fwd"
        for task in tasks.iterdir():
            if (task / "comm").read_text().strip() == name:
                return int((task / "schedstat").read_text().split()[0])
        raise BenchError(f"mr-l2fwd has no thread {name}")

    def interval(self, seconds, is_scraped):
        """(frames per CPU second of the worker, CPU ns of the main thread)"""
        n = self.n_frames()
        worker, main = self.cpu_ns(True), self.cpu_ns(False)
        for _ in range(round(seconds * SCRAPES_PER_S)):
            time.sleep(1 / SCRAPES_PER_S)
            if is_scraped:
                self.scrape()
        main = self.cpu_ns(False) - main
        n = self.n_frames() - n
        return n / (self.cpu_ns(True) - worker) * 1e9, main


def main():
    args = command.parse(command.parser("metrics", __doc__, (
        ("rounds", 40, 5, "pairs of intervals"),
        ("seconds", 1.0, 0.5, "of an interval"))))
    pairs, scraped_ns, idle_ns = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        forwarder = Forwarder(args, pathlib.Path(folder))
        try:
            for i in range(args.rounds):
                found = {}
                for is_scraped in (False, True)[::-1 if i % 2 else 1]:
                    found[is_scraped] = forwarder.interval(args.seconds,
                                                           is_scraped)
                pairs.append((found[False][0], found[True][0]))
                idle_ns.append(found[False][1])
                scraped_ns.append(found[True][1])
        finally:
            end(forwarder.process)
    ratio = report.ratio_of(pairs)
    per_scrape_us = report.statistics.median(
        a - b for a, b in zip(scraped_ns, idle_ns)) / (
            round(args.seconds * SCRAPES_PER_S) * 1000)
    print(f"frames per CPU second with {SCRAPES_PER_S} scrapes a second, of "
          f"those without: {ratio['median']:.4f} ({ratio['low']:.4f} to "
          f"{ratio['high']:.4f}) of {ratio['n_pairs']} pairs; goal 0.99\n"
          f"a scrape takes the main thread {per_scrape_us:.0f} us of CPU time")
    result = command.document(pairs=pairs, main_ns=[idle_ns, scraped_ns])
    report.show_machine(result)
    command.write_json(args.json, result)
    return 0


if __name__ == "__main__":
    sys.exit(command.run("metrics", main))
