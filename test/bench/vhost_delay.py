# SPDX-License-Identifier: BSD-3-Clause
"""Delays of ./mr bench vhost: of frames through a back end, and of the first
frame after one side was killed. The tester has two virtio-user: ports on the
core of the peer."""
import json
import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import time

import contestants as who
import report
import vhost_lab
from topology import BenchError

RATES = {"10k": "10%", "100k": "100%"}  # frames/s
POINTS = ("p50", "p99", "p99.9")
FRAME = bytes.fromhex("0200000000020200000000010800") + bytes(46)


def front_ends(where):
    return [f"virtio-user:{path}" for path in where.sockets]


def start(where, forwarder, args):
    """A back end that listens."""
    where.clear()
    args.before_each()
    running = who.Running(forwarder.name,
                          forwarder.argv(where, args, "split"), where)
    try:
        where.wait_for_sockets(running)
    except BaseException:
        running.stop()
        raise
    who.favour([running.process], args.nice)
    return running


def latency(where, forwarder, args):
    """ns, by rate and point."""
    running = start(where, forwarder, args)
    try:
        time.sleep(1)  # testpmd begins to forward
        done = subprocess.run(
            ["nice", "-n", str(args.nice), args.bench, "latency",
             *front_ends(where), "--quiet", "--json",
             "--cores", str(who.GENERATOR_CORE), "--sizes", "64",
             "--rate", "100k", "--shares", "10,100",
             "--trial", str(args.seconds), "--settle", "0.2"],
            capture_output=True, text=True, check=False, timeout=120)
    finally:
        running.stop()
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise BenchError(f"{forwarder.name}: mr-bench: {lines[-1]}")
    values = {row["goal"]: row["value"]
              for row in json.loads(done.stdout)["rows"]}
    return {rate: {point: values[f"latency-{point}-at-{share}"]
                   for point in POINTS} for rate, share in RATES.items()}


def run_tester(where, build, niceness, pipe):
    """Send through one port, receive from the other; write the time of the
    first frame of each connection into the pipe. Never returns."""
    sys.path.insert(0, str(build / "bindings/python"))
    # pylint: disable=import-outside-toplevel,import-error
    from millrace import Pool, Port
    os.sched_setaffinity(0, {who.GENERATOR_CORE})
    os.setpriority(os.PRIO_PROCESS, 0, niceness)
    with Pool() as pool:
        source, sink = [Port(pool, spec) for spec in front_ends(where)]
        is_new = True
        while True:
            source.poll()
            sink.poll()
            is_new = is_new or not sink.link()["is_up"]
            with pool.burst([FRAME]) as burst:
                source.tx().send(burst)
            with sink.rx().receive() as arrived:
                if is_new and len(arrived):
                    pipe.send(time.monotonic())
                    is_new = False
            source.tx().collect()


class Tester:
    """run_tester() in a process of its own."""

    def __init__(self, where, args):
        self.pipe, far = multiprocessing.Pipe()
        self.process = multiprocessing.Process(
            target=run_tester, args=(where, args.build, args.nice, far),
            daemon=True)
        self.process.start()
        far.close()

    def first_after(self, since):
        """Seconds from then to the first frame."""
        while self.pipe.poll(vhost_lab.START_S):
            try:
                at = self.pipe.recv()
            except EOFError:
                break
            if at > since:
                return at - since
        raise BenchError("no frame arrives")

    def kill(self):
        self.process.kill()
        self.process.join()
        self.pipe.close()


def restart(where, forwarder, args):
    """Seconds from a kill of the back end, and of the front end, to the next
    frame; each starts again at once."""
    running, tester = start(where, forwarder, args), Tester(where, args)
    try:
        tester.first_after(0)
        killed = time.monotonic()
        running.process.send_signal(signal.SIGKILL)
        running.process.wait()
        running.stop()
        running = start(where, forwarder, args)
        back_s = tester.first_after(killed)
        killed = time.monotonic()
        tester.kill()
        tester = Tester(where, args)
        return {"back_end_s": back_s, "front_end_s":
                tester.first_after(killed)}
    finally:
        tester.kill()
        running.stop()


def rounds(where, forwarders, args, take, n):
    """n samples of each by name, in alternating order."""
    taken = {one.name: [] for one in forwarders}
    for i in range(n):
        for one in forwarders[::-1 if i % 2 else 1]:
            taken[one.name].append(take(where, one, args))
    return taken


def show_latency(taken):
    print(f"\n{'one way, us':16} {'frames/s':>8} " +
          " ".join(f"{point:>8}" for point in POINTS))
    for name, samples in taken.items():
        for rate in RATES:
            print(f"{name:16} {rate:>8} " + " ".join(
                f"{report.median_of([one[rate] for one in samples], p) / 1e3:8.1f}"
                for p in POINTS))


def show_restart(taken):
    print("\nms from a kill to the next frame, of the back end and of the "
          "front end")
    for name, samples in taken.items():
        print(f"{name:16} " + " ".join(
            f"{1e3 * report.median_of(samples, key):8.0f}"
            for key in ("back_end_s", "front_end_s")))


def goals(result, limit):
    """Ours beside testpmd's, medians of the ratio in each round."""
    found = []
    for part, where in (
            ("latency", [(rate, "p50") for rate in RATES]),
            ("restart", [("back_end_s",), ("front_end_s",)])):
        theirs, ours = list(result.get(part, {}).values())[:2] or ((), ())
        for keys in where if theirs else ():
            ratios = [value_at(b, keys) / value_at(a, keys)
                      for a, b in zip(theirs, ours)]
            found.append(report.at_most(
                f"{part}, {' '.join(keys)}: by testpmd's",
                statistics.median(ratios), limit))
    return found


def value_at(sample, keys):
    for key in keys:
        sample = sample[key]
    return sample
