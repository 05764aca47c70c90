# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces with veth pairs, and everything that runs in them.

A Lab owns all that a test makes. Lab.close() takes it away again, whatever
the test did; what a killed test run has left behind, the next one sweeps.
"""
import contextlib
import ctypes
import itertools
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from host import limit, popen

PREFIX = "mrt"
NETNS_DIR = Path("/run/netns")
CLONE_NEWNET = 0x40000000
# No wait without a deadline: longer than any command of a test takes.
COMMAND_LIMIT_S = 30

libc = ctypes.CDLL(None, use_errno=True)


def run(*command, check=True, timeout=COMMAND_LIMIT_S, **more):
    """Run a command; its output is in the exception if it fails."""
    # No pipe: virtual machines have lost the wake-up at its end.
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        done = subprocess.run([str(word) for word in command], text=True,
                              stdout=output, stderr=subprocess.STDOUT,
                              timeout=limit(timeout), check=False, **more)
        output.seek(0)
        done.stdout = output.read()
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit status "
                             f"{done.returncode}\n{done.stdout}")
    return done


def setns(fd):
    """Move the calling thread to a network namespace."""
    if libc.setns(fd, CLONE_NEWNET) < 0:
        raise OSError(ctypes.get_errno(), "setns")


def wait_until(what, condition, limit_s=20.0, step_s=0.01):
    """Poll until condition() is true; its value."""
    end_s = time.monotonic() + limit(limit_s)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end_s:
            raise AssertionError(f"not within {limit_s} s: {what}")
        time.sleep(step_s)


def sweep():
    """Delete namespaces of test runs that were killed."""
    for path in NETNS_DIR.glob(PREFIX + "*"):
        match = re.match(PREFIX + r"(\d+)-", path.name)
        if match and not Path(f"/proc/{match.group(1)}").exists():
            run("ip", "netns", "delete", path.name, check=False)


class Namespace:
    """A network namespace. As a context manager: the thread is inside."""

    numbers = itertools.count()

    def __init__(self, label):
        self.name = f"{PREFIX}{os.getpid()}-{next(self.numbers)}{label}"
        self.outside = None
        run("ip", "netns", "add", self.name)
        # The kernel's own frames (router solicitations, DAD) would be counted.
        self.sysctl("net.ipv6.conf.all.disable_ipv6", 1)
        self.sysctl("net.ipv6.conf.default.disable_ipv6", 1)
        self.ip("link", "set", "lo", "up")

    def __enter__(self):
        self.outside = os.open("/proc/thread-self/ns/net",
                               os.O_RDONLY | os.O_CLOEXEC)
        inside = os.open(NETNS_DIR / self.name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            setns(inside)
        finally:
            os.close(inside)
        return self

    def __exit__(self, *exc):
        setns(self.outside)
        os.close(self.outside)

    def sysctl(self, key, value):
        with self:
            Path("/proc/sys", *key.split(".")).write_text(f"{value}\n")

    def ip(self, *words, check=True):
        return run("ip", "-n", self.name, *words, check=check)

    def link(self, name):
        """What ip(8) says about an interface; None if there is none."""
        done = self.ip("-details", "-json", "-statistics", "link", "show",
                       "dev", name, check=False)
        return json.loads(done.stdout)[0] if done.returncode == 0 else None

    def command(self, *words):
        """A command line that runs in this namespace, under its own pid."""
        return ["ip", "netns", "exec", self.name, *map(str, words)]

    def run(self, *words, **more):
        return run(*self.command(*words), **more)

    def delete(self):
        """Delete it, and with it every process and every interface in it."""
        pids = run("ip", "netns", "pids", self.name, check=False).stdout.split()
        for pid in filter(str.isdigit, pids):  # of an upgrade, perhaps
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        run("ip", "netns", "delete", self.name, check=False)


class Lab:
    """All namespaces and processes of one test."""

    def __init__(self, tmp_path):
        self.tmp_path = Path(tmp_path)
        self.namespaces = []
        self.processes = []
        self.closers = []
        self.checks = []  # of check()

    def namespace(self, label):
        namespace = Namespace(label)
        self.namespaces.append(namespace)
        return namespace

    def popen(self, command, **more):
        """Start a process that ends with the lab."""
        process = popen([str(word) for word in command], **more)
        self.processes.append(process)
        return process

    def closing(self, thing):
        self.closers.append(thing)
        return thing

    def check(self):
        """What a test that did not fail must have left in order."""
        while self.checks:
            self.checks.pop()()

    def veth(self, one, name_one, other, name_other, queues=1, mtu=None):
        """A veth pair between two namespaces, both ends up."""
        queues = ["numrxqueues", queues, "numtxqueues", queues]
        one.ip("link", "add", name_one, *queues, "type", "veth", "peer",
               "name", name_other, *queues, "netns", other.name)
        for namespace, name in ((one, name_one), (other, name_other)):
            if mtu:
                namespace.ip("link", "set", name, "mtu", mtu)
            namespace.ip("link", "set", name, "up")

    def close(self):
        """End processes by pid, then delete the namespaces."""
        for thing in reversed(self.closers):
            thing.close()
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait(limit(COMMAND_LIMIT_S))
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe:
                    pipe.close()
        for namespace in self.namespaces:
            namespace.delete()
        left = [n.name for n in self.namespaces
                if (NETNS_DIR / n.name).exists()]
        assert not left, f"namespaces left over: {left}"


class Star:
    """Hosts around one namespace that the forwarder runs in.

        host i: h0, 10.77.0.<i+1> --- veth --- p<i> :forwarder's namespace

    Offloads stay as the kernel sets them.
    """

    def __init__(self, lab, n_hosts=2, queues=1, mtu=None):
        self.middle = lab.namespace("f")
        self.hosts = [lab.namespace(f"h{i}") for i in range(n_hosts)]
        self.ports = [f"p{i}" for i in range(n_hosts)]
        for i, host in enumerate(self.hosts):
            lab.veth(host, "h0", self.middle, self.ports[i], queues, mtu)
            host.ip("address", "add", f"{self.address(i)}/24", "dev", "h0")
            if queues > 1:  # a veth starts with one in use
                for end, name in (host, "h0"), (self.middle, self.ports[i]):
                    end.run("ethtool", "-L", name, "rx", queues, "tx", queues)

    @staticmethod
    def address(i):
        return f"10.77.0.{i + 1}"

    def has_program(self, port):
        """Whether an XDP program is attached to a port."""
        link = self.middle.link(port)
        return bool(link and link.get("xdp"))
