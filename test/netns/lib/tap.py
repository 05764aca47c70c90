# SPDX-License-Identifier: BSD-3-Clause
"""A tap device: what is written to its file comes in, what it sends is read.

Source: linux/Documentation/networking/tuntap.rst, linux/if_tun.h,
linux/virtio_net.h.
"""
import fcntl
import os
import select
import struct
import time

from host import limit

TUNSETIFF = 0x400454ca
TUNSETOFFLOAD = 0x400454d0
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
TUN_F_CSUM = 0x01
VNET_HEADER = struct.Struct("=BBHHHH")  # flags, gso type, 3 lengths, offset
NEEDS_CSUM = 1


class Tap:
    """A tap device of a namespace, up.

    has_header: each frame has a virtio_net_hdr in front, and the reader has
    said that it finishes sums. has_wait: writes wait; the kernel takes
    those another way (native XDP) than those that do not (generic).
    """

    def __init__(self, namespace, name, has_header=False, has_wait=True):
        flags = IFF_TAP | IFF_NO_PI | (IFF_VNET_HDR if has_header else 0)
        with namespace:  # the device is made where the file was opened
            self.fd = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC |
                              (0 if has_wait else os.O_NONBLOCK))
        fcntl.ioctl(self.fd, TUNSETIFF,
                    struct.pack("16sH22x", name.encode(), flags))
        if has_header:
            fcntl.ioctl(self.fd, TUNSETOFFLOAD, TUN_F_CSUM)
        self.has_header = has_header
        namespace.ip("link", "set", name, "up")

    def close(self):
        """Close the file, and with it the device is gone."""
        os.close(self.fd)

    def send(self, data):
        if self.has_header:
            data = bytes(VNET_HEADER.size) + data
        assert os.write(self.fd, data) == len(data)

    def receive(self, n, limit_s=limit(3.0)):
        """Up to n frames, each with its virtio_net_hdr as a tuple, or None."""
        frames = []
        end_s = time.monotonic() + limit_s
        while len(frames) < n and select.select(
                [self.fd], [], [], max(0, end_s - time.monotonic()))[0]:
            data = os.read(self.fd, 70000)
            if self.has_header:
                frames.append((data[VNET_HEADER.size:],
                               VNET_HEADER.unpack_from(data)))
            else:
                frames.append((data, None))
        return frames
