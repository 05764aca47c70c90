# SPDX-License-Identifier: BSD-3-Clause
"""Three network namespaces in a row, and a count of the frames at the end.

    mrb<pid>g           mrb<pid>f            mrb<pid>s
    mr-bench --> g0 ==> p0  forwarder  p1 ==> s0  (sink)

s0 has no address and no program, and no protocol takes its frames: its receive
path is the cheapest on this machine (docs/performance.md has the figures), and
the same for every contestant. It runs on the forwarder's core, because veth
receives on the core that sends.
"""
import ctypes
import os
import pathlib
import signal
import subprocess
import time

PR_SET_PDEATHSIG = 1
PREFIX = "mrb"
VETHS = (("g", "g0"), ("f", "p0"), ("f", "p1"), ("s", "s0"))
ROUTER_MAC = "02:00:00:00:00:02"  # of p0, the generator's destination


class BenchError(Exception):
    """A failure, in one line."""


def die_with_parent():
    """Call this between fork and exec: the child ends when we are killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def call(*argv):
    """Run a command that must succeed; return its stdout."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.PIPE, check=False, timeout=60)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(argv)}: {done.stderr.strip()}")
    return done.stdout


def end(process, *, sig=signal.SIGINT, seconds=15):
    """End a process that we started; return its exit code, -9 if it was
    killed."""
    if process.poll() is None:
        process.send_signal(sig)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def remove_stale():
    """Delete namespaces of benchmarks that were killed."""
    for path in pathlib.Path("/run/netns").glob(PREFIX + "[0-9]*"):
        pid = path.name[len(PREFIX):-1]
        if pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
            call("ip", "netns", "delete", path.name)


class Topology:
    """The namespaces, while the with statement lasts."""

    def __init__(self, is_two=False, sink="s0"):
        self.namespaces = {c: f"{PREFIX}{os.getpid()}{c}" for c in "gfs"}
        if is_two:  # one program uses both ends
            self.namespaces["s"] = self.namespaces["g"]
        self.sink = sink
        self.holder = None

    def __enter__(self):
        remove_stale()
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.holder is not None:
            end(self.holder, sig=signal.SIGKILL)
        for name in self.namespaces.values():
            if os.path.exists(f"/run/netns/{name}"):
                call("ip", "netns", "delete", name)

    def make(self):
        """Create namespaces and cables that send nothing by themselves."""
        ns = self.namespaces
        for name in set(ns.values()):
            call("ip", "netns", "add", name)
        for near, far in (VETHS[0:2], VETHS[3:1:-1]):
            call("ip", "link", "add", near[1], "netns", ns[near[0]],
                 "numtxqueues", "1", "numrxqueues", "1", "type", "veth",
                 "peer", "name", far[1], "netns", ns[far[0]],
                 "numtxqueues", "1", "numrxqueues", "1")
        for key, dev in VETHS:
            self.run(key, "sysctl", "-qw",
                     f"net.ipv6.conf.{dev}.disable_ipv6=1")
            self.run(key, "ip", "link", "set", dev, "arp", "off", "up")
        self.run("f", "ip", "link", "set", "p0", "address", ROUTER_MAC)
        # /proc/PID of this process has the sink's counters.
        self.holder = self.start("s", ["sleep", "infinity"])
        deadline = time.monotonic() + 5
        while self.dev_line() is None:
            if time.monotonic() > deadline:
                raise BenchError("the sink's namespace cannot be seen")
            time.sleep(0.01)

    def run(self, key, *argv):
        """Run a command in a namespace; return its stdout."""
        return call("ip", "netns", "exec", self.namespaces[key], *argv)

    def start(self, key, argv, **kwargs):
        """Start a command in a namespace; the Popen is of the command itself."""
        return subprocess.Popen(
            ["ip", "netns", "exec", self.namespaces[key], *argv],
            preexec_fn=die_with_parent, start_new_session=True, **kwargs)

    def dev_line(self):
        """The sink's fields in /proc/PID/net/dev."""
        path = f"/proc/{self.holder.pid}/net/dev"
        for line in pathlib.Path(path).read_text().splitlines():
            name, _, fields = line.partition(":")
            if name.strip() == self.sink:
                return [int(field) for field in fields.split()]
        return None

    def arrived(self):
        """(monotonic seconds, frames at the sink so far)."""
        fields = self.dev_line()
        return time.monotonic(), fields[1]
