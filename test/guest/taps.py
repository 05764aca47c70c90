# SPDX-License-Identifier: BSD-3-Clause
"""Taps as wires of a guest: several queues, sums and segments left to the
device. They need root."""
import os

import pytest
from lib import namespaces
from lib.wire import Wire


def new_lab(tmp_path):
    """A place for namespaces, or a skip that says what is missing."""
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        pytest.skip("no tap interfaces: not root, or no /dev/net/tun")
    return namespaces.Lab(tmp_path)


def make_tap(namespace, name):
    namespace.ip("tuntap", "add", name, "mode", "tap", "multi_queue",
                 "vnet_hdr")
    namespace.ip("link", "set", name, "up")


class TapWire:
    """A tap of ours as a wire: what is sent on it, the guest receives."""

    def __init__(self, namespace, name):
        make_tap(namespace, name)
        self.socket = Wire(namespace, name).socket

    def try_send(self, frame):
        """As guest.Wire."""
        try:
            self.socket.send(frame)
            return True
        except OSError:  # no room now; what is lost for good is missed later
            return False

    def receive(self, _limit_s=0):
        """As guest.Wire."""
        try:
            return self.socket.recv(65536)
        except BlockingIOError:
            return None

    def close(self):
        """As guest.Wire."""
        self.socket.close()
