#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench upgrade: how long frames wait while a program is upgraded.

mrctl upgrade replaces mr-l2fwd, and mr-nat with sessions, by a process of the
same version. The gap is the time from when the old workers stop until the new
ones start. Sessions come from a state file.
crash: mr-l2fwd is killed and started again at once. The gap is the longest time
without a frame at 10,000/s, with its ports in an fd store, and without. Needs
root.
"""
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time

import command
import contestants as who
import crash_gap
import report
from topology import BenchError, Topology, end

NAT_YAML = """\
inside: {port: "xdp:p0", addresses: 100.64.0.1/10}
outside: {port: "xdp:p1", addresses: 192.0.2.1/24, gateway: 192.0.2.254}
pool: [198.51.100.0/27]
limits: {mappings: 2097152, sessions: 2097152, per_subscriber: 65535}
state: STATE
"""
# (sessions, goal in ms)
NATS = ((1000, 20), (1000000, 100))
L2FWD_GOAL_MS = 20
CRASH_GOAL_MS = 200
MASK = 2**64 - 1
PORTS = range(1024, 65536)
HEAD, RECORD = struct.Struct("<8sIIQQ"), struct.Struct(">IIIHHHBBBBHIIII")


def parse():
    return command.parse(command.parser("upgrade", __doc__, (
        ("upgrades", 15, 5, "of each program"),), "l2fwd,nat,crash", True))


def add_sum(total, data):
    """The checksum of a state file: apps/nat/control/save.c."""
    for (word,) in struct.iter_unpack("<Q", data):
        total = ((total ^ word) * 0x100000001b3) & MASK
        total ^= total >> 32
    return total


def record(i):
    """A UDP session of one of 256 hosts; each has its own outside port."""
    inside = (100 << 24) + (64 << 16) + 256 + i % 256
    outside = (198 << 24) + (51 << 16) + (100 << 8) + i // len(PORTS)
    port = PORTS[i % len(PORTS)]
    raw = RECORD.pack(inside, outside, (203 << 24) + 1, 1024 + i // 256, port, 53,
                      17, 0, 0, 0, 0, 0, 0, 1, 1)
    age, left = struct.pack("<I", 1), struct.pack("<I", 86400)
    return raw[:24] + age + left + raw[32:]


def write_state(path, n):
    """A state file of version 2 with n sessions."""
    body = b"".join(map(record, range(n)))
    head = HEAD.pack(b"mr-nat\n\0", 2, RECORD.size, int(time.time()), n)
    path.write_bytes(head + body + struct.pack("<Q", add_sum(add_sum(0, body), head)))


class Program:
    """A running program, and the processes that follow it."""

    def __init__(self, args, folder, topology, name, *words):
        self.environment = os.environ | {"RUNTIME_DIRECTORY": str(folder)}
        self.ctl = [str(args.build / "apps/ctl/mrctl"), "-n", "bench", "--json"]
        self.first = topology.start(
            "f", [str(args.build / f"apps/{name.partition('-')[2]}/{name}"), "--quiet",
                  "--instance", "bench", "--cores", str(who.FORWARDER_CORE), *words],
            env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.pid = self.first.pid
        self.wait()

    def ask(self, *words):
        return subprocess.run([*self.ctl, *words], env=self.environment, text=True,
                              capture_output=True, check=False, timeout=120)

    def wait(self):
        end_s = time.monotonic() + 60
        while self.ask("show", "config").returncode != 0:
            if self.first.poll() is not None or time.monotonic() > end_s:
                raise BenchError(f"it did not start: {self.first.stderr.read()}")
            time.sleep(0.1)

    def upgrade(self):
        """The gap in ms."""
        done = self.ask("upgrade")
        if done.returncode != 0:
            raise BenchError(done.stderr.strip())
        answer = json.loads(done.stdout)
        self.pid = answer["pid"]
        self.wait()
        return answer["gap_us"] / 1000

    def stop(self):
        try:
            os.kill(self.pid, signal.SIGINT)
            end_s = time.monotonic() + 30
            while os.path.exists(f"/proc/{self.pid}") and time.monotonic() < end_s:
                if self.pid == self.first.pid and self.first.poll() is not None:
                    break
                time.sleep(0.05)
        except ProcessLookupError:
            pass
        end(self.first)


def measure(args, topology, folder, name, *words):
    program = Program(args, folder, topology, name, *words)
    try:
        return [program.upgrade() for _ in range(args.upgrades)]
    finally:
        program.stop()


def measure_all(args, topology, folder):
    """Rows: name, goal, gaps."""
    rows = []
    if "l2fwd" in args.parts:
        rows.append(("mr-l2fwd", L2FWD_GOAL_MS,
                     measure(args, topology, folder, "mr-l2fwd", "p0", "p1")))
    for n, goal in NATS if "nat" in args.parts else ():
        state, config = folder / f"state-{n}", folder / "nat.yaml"
        write_state(state, n)
        config.write_text(NAT_YAML.replace("STATE", str(state)))
        rows.append((f"mr-nat, {n} sessions", goal,
                     measure(args, topology, folder, "mr-nat", "--config", str(config))))
    if "crash" in args.parts:
        kept, anew = crash_gap.measure(args, topology, folder)
        rows += [("killed, ports kept", CRASH_GOAL_MS, kept),
                 ("killed, ports anew", None, anew)]
    return rows


def show(result):
    report.show_machine(result)
    print(f"\n{'gap, ms':26} {'median':>8} {'lowest':>8} {'highest':>8}")
    for row in result["rows"]:
        gaps = sorted(row["gaps_ms"])
        print(f"{row['program']:26} {gaps[len(gaps) // 2]:8.1f} {gaps[0]:8.1f} {gaps[-1]:8.1f}")
    report.show_goals([
        report.at_most(f"{row['program']}: median gap, ms",
                       sorted(row["gaps_ms"])[len(row["gaps_ms"]) // 2], row["goal_ms"])
        for row in result["rows"] if row["goal_ms"] is not None])


def main():
    args = parse()
    command.need_root()
    result = command.document()
    with tempfile.TemporaryDirectory() as folder, Topology() as topology:
        rows = measure_all(args, topology, pathlib.Path(folder))
    result["rows"] = [{"program": name, "goal_ms": goal, "gaps_ms": gaps}
                      for name, goal, gaps in rows]
    show(result)
    command.write_json(args.json, result)
    return 0


if __name__ == "__main__":
    sys.exit(command.run("upgrade", main))
