# SPDX-License-Identifier: BSD-3-Clause
"""Switches between two guests: testpmd, mr-l2fwd, the kernel's bridge.

    guest 0: nic00 --- sockets --- testpmd  --- sockets --- nic01 :guest 1
             nic10 --- sockets --- mr-l2fwd --- sockets --- nic11
             nic40 --- a tap   --- a bridge --- a tap   --- nic41

Each guest has a NIC for each switch, so that it boots once; the switches that
are not measured are stopped. QEMU itself is the device of the taps: not every
kernel has vhost-net.
"""
import contextlib
import os
import pathlib
import signal
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "guest"))

# pylint: disable=wrong-import-position
import contestants as who  # noqa: E402
import topology  # noqa: E402
import vhost_lab  # noqa: E402
from guest import Nic  # noqa: E402
from topology import call  # noqa: E402

OURS = "mr-l2fwd"
KIND = "vhost-split"


class Switch:
    """The n-th: a forwarder between two sockets, or a bridge."""

    wire = "vhost"

    def __init__(self, name, n):
        self.name, self.n = name, n
        self.paths = [None, None]

    def nic(self, i):
        return Nic(f"nic{self.n}{i}", KIND, self.wire, path=self.paths[i])

    def address(self, i):
        return f"10.78.{self.n}.{i + 1}"

    def pause(self):
        """Use no CPU time."""

    def resume(self):
        """Go on, after pause()."""

    def cpu(self):
        """CPU seconds so far."""
        return 0


class Forwarder(Switch):
    """A program, which ends with the stack."""

    def __init__(self, forwarder, n, args, stack):
        super().__init__(forwarder.name, n)
        where = stack.enter_context(vhost_lab.Lab(args.build))
        self.running = who.Running(
            self.name, forwarder.argv(where, args, "split"), where)
        stack.callback(self.running.stop)
        stack.callback(self.resume)
        where.wait_for_sockets(self.running)
        self.paths = where.sockets

    def pause(self):
        self.running.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.running.process.send_signal(signal.SIGCONT)

    def cpu(self):
        return self.running.scheduled()[0]


class Bridge(Switch):
    """The kernel's, in the namespace of the guests."""

    wire = "tap"

    def __init__(self, n, namespace):
        super().__init__("bridge", n)
        ip = ["ip", "-n", namespace]
        call(*ip, "link", "add", "br0", "type", "bridge")
        call(*ip, "link", "set", "br0", "up")
        for name in f"nic{n}0", f"nic{n}1":
            call(*ip, "tuntap", "add", name, "mode", "tap", "vnet_hdr")
            call(*ip, "link", "set", name, "master", "br0", "up")


@contextlib.contextmanager
def namespace_of_taps():
    """Its name."""
    topology.remove_stale()
    name = f"{topology.PREFIX}{os.getpid()}f"
    call("ip", "netns", "add", name)
    try:
        yield name
    finally:
        call("ip", "netns", "delete", name)


def programs():
    """DPDK's forwarder as its own tests of TCP between guests set it, and ours,
    which polls for a while and then sleeps, never sleeps, sleeps at once."""
    def testpmd(where, args, _):
        # Segments pass with the flags that they arrived with.
        return who.testpmd_command(
            [f"{vdev},tso=1,legacy-ol-flags=1"
             for vdev in vhost_lab.device_vdevs(where.sockets)],
            huge_pages=args.has_huge_pages)

    def millrace(*options):
        return lambda where, args, _: who.l2fwd_command(
            args.build, *options,
            ports=[f"vhost:{path},tso=on" for path in where.sockets])
    return [vhost_lab.Forwarder("testpmd", "device", testpmd),
            vhost_lab.Forwarder(OURS, "device", millrace()),
            *(vhost_lab.Forwarder(idle, "device", millrace("--idle", idle))
              for idle in ("poll", "interrupt"))]


@contextlib.contextmanager
def started(args):
    """(the namespace for the guests, switches, the bridge last)."""
    with contextlib.ExitStack() as stack:
        args.before_each()
        namespace = stack.enter_context(namespace_of_taps())
        yield namespace, [
            *(Forwarder(one, n, args, stack)
              for n, one in enumerate(programs())),
            Bridge(len(programs()), namespace)]
