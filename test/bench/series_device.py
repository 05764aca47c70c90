#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A device under test of ./mr bench series, until SIGINT.

usage: series_device.py testpmd|bridge|nftables

In the namespace $MRS_DUT, between p0 and p1, on the forwarder's core.
"""
import os
import signal
import sys
import types

import contestants as who
from nat_wire import Router, napi_threads
from topology import ROUTER_MAC, BenchError, call


class Bridge:
    """The kernel's, which works in p0's NAPI thread, on one core."""

    def __init__(self, namespace):
        self.namespace = namespace
        before = napi_threads()
        # What is for the router's address would stay here.
        self.shell("ip link set p0 address 02:00:00:00:00:98 && "
                   "ethtool -K p0 gro on && "
                   "echo 1 > /sys/class/net/p0/threaded && "
                   "ip link add br0 type bridge mcast_snooping 0 && "
                   "ip link set p0 master br0 && "
                   "ip link set p1 master br0 && ip link set br0 up")
        for thread in napi_threads() - before:
            os.sched_setaffinity(thread, {who.FORWARDER_CORE})

    def shell(self, command):
        return call("ip", "netns", "exec", self.namespace, "sh", "-c", command)

    def stop(self):
        self.shell("ip link delete br0; echo 0 > /sys/class/net/p0/threaded; "
                   "ethtool -K p0 gro off; "
                   f"ip link set p0 address {ROUTER_MAC}")


def exec_testpmd(namespace):
    """Become testpmd; it ends when its stdin does, so it gets another."""
    argv = who.testpmd_on_veths(
        who.huge_pages.free_mib() >= who.HugePages.N_MIB)
    reader, writer = os.pipe()
    os.dup2(reader, sys.stdin.fileno())
    os.set_inheritable(writer, True)  # open as long as testpmd runs
    os.execvp("ip", ["ip", "netns", "exec", namespace, *argv])


def main():
    namespace = os.environ["MRS_DUT"]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    device = sys.argv[1]
    try:
        if device == "testpmd":
            signal.pthread_sigmask(signal.SIG_UNBLOCK,
                                   {signal.SIGINT, signal.SIGTERM})
            exec_testpmd(namespace)
        if device == "bridge":
            running = Bridge(namespace)
        else:
            running = Router("nftables", types.SimpleNamespace(
                namespaces={"f": namespace}))
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
        running.stop()
    except BenchError as error:
        print(f"{device}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
