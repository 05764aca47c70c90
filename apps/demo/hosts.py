# SPDX-License-Identifier: BSD-3-Clause
"""Hosts of the demo: network namespaces that nobody has to clean up.

A namespace has no name here. It lives as long as the process that holds it,
and that process dies with the demo, however the demo ends. The kernel then
deletes the namespace with its interfaces, routes and XDP programs. A name in
/run/netns would stay behind after a kill -9 of the demo.
"""
import ctypes
import os
import select
import signal
import subprocess

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)
LIMIT_S = 10


def die_with_parent():
    """Run in a child before exec: SIGKILL when the demo is gone."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def popen(command, **options):
    """Popen of a child that a Ctrl-C does not reach and that dies with us."""
    return subprocess.Popen([str(word) for word in command],
                            preexec_fn=die_with_parent,
                            start_new_session=True, **options)


def end(process, sig=signal.SIGTERM, limit_s=LIMIT_S):
    """End a child; its exit status."""
    if process.poll() is None:
        process.send_signal(sig)
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


class Namespace:
    """A network namespace, and a way to run commands in it."""

    def __init__(self, label):
        self.label = label
        # unshare becomes cat: one process, which waits for its input to end.
        self.holder = popen(["unshare", "--net", "sh", "-c",
                             "echo ready && exec cat"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)
        ready, _, _ = select.select([self.holder.stdout], [], [], LIMIT_S)
        if not ready or self.holder.stdout.readline() != b"ready\n":
            raise OSError(f"{label}: no network namespace: "
                          f"{self.holder.stderr.readline().decode().strip()}")
        self.run("ip", "link", "set", "lo", "up")

    def command(self, *words):
        """The command line that runs `words` in this namespace."""
        return ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net", *words]

    def run(self, *words, limit_s=LIMIT_S):
        """Run a command that must succeed; what it printed."""
        done = subprocess.run([str(w) for w in self.command(*words)],
                              capture_output=True, text=True, timeout=limit_s,
                              check=False, preexec_fn=die_with_parent)
        if done.returncode != 0:
            raise OSError(f"{self.label}: {' '.join(map(str, words))}: "
                          f"{done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def popen(self, *words, **options):
        """Start a command."""
        return popen(self.command(*words), **options)

    def close(self):
        """Delete it, by ending what holds it."""
        end(self.holder, signal.SIGKILL)
        for stream in (self.holder.stdin, self.holder.stdout,
                       self.holder.stderr):
            stream.close()


def wire(host, interface, address, forwarder, port):
    """A veth pair: `interface` in host, its other end `port` of forwarder."""
    # The root namespace never sees it: it is made in the forwarder's.
    forwarder.run("ip", "link", "add", port, "type", "veth", "peer", "name",
                  interface, "netns", host.holder.pid)
    host.run("ip", "addr", "add", address, "dev", interface)
    host.run("ip", "link", "set", interface, "up")
    forwarder.run("ip", "link", "set", port, "up")


def is_root():
    """Whether namespaces and XDP programs may be made."""
    return os.geteuid() == 0
