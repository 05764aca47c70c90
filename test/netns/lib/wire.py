# SPDX-License-Identifier: BSD-3-Clause
"""Raw frames in and out of an interface, by AF_PACKET (packet(7))."""
import ctypes
import errno
import select
import socket
import struct
import time

from host import limit

ETH_P_ALL = 0x0003
SO_RCVBUFFORCE = 33
SOL_PACKET = 263
PACKET_STATISTICS = 6
PACKET_AUXDATA = 8
PACKET_IGNORE_OUTGOING = 23
SO_ATTACH_FILTER = 26
TP_STATUS_VLAN_VALID = 1 << 4
# IEEE 802 "local experimental": no kernel answers it.
TEST_TYPE = 0x88b5
RECEIVE_BYTES = 64 << 20


def mac(number):
    """A locally administered address."""
    return b"\x02\x00" + number.to_bytes(4, "big")


BROADCAST = b"\xff" * 6


def frame(n_bytes, number=0, dst=BROADCAST, src=mac(1)):
    """A frame of n_bytes, 14 or more, whose bytes depend on its number."""
    head = dst + src + struct.pack("!H", TEST_TYPE)
    # The number itself first, so that a frame can be told from others.
    body = struct.pack("!I", number) + bytes(
        (number * 31 + i * 7) & 0xff for i in range(max(0, n_bytes - 18)))
    return (head + body)[:n_bytes]


def number_of(data):
    """The number that frame() was given; the frame has 18 bytes or more."""
    return struct.unpack_from("!I", data, 14)[0]


class Wire:
    """One end of an interface, as a raw socket."""

    def __init__(self, namespace, interface, ether_type=ETH_P_ALL):
        with namespace:
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        s = self.socket
        s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BYTES)
        s.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        # Receives see a VLAN tag only beside the frame.
        s.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        if ether_type != ETH_P_ALL:
            self._only(ether_type)
        s.bind((interface, ETH_P_ALL))
        s.setblocking(False)

    def _only(self, ether_type):
        """Keep frames of one type; a test is not to see ARP."""
        # ldh [12]; jeq type ? accept : drop  (classic BPF, filter(7))
        code = struct.pack("HBBI" * 4, 0x28, 0, 0, 12, 0x15, 0, 1, ether_type,
                           0x06, 0, 0, 0x40000, 0x06, 0, 0, 0)
        # A tag is beside the frame by then, so the type is at 12 with it too.
        buffer = ctypes.create_string_buffer(code)
        self.socket.setsockopt(
            socket.SOL_SOCKET, SO_ATTACH_FILTER,
            struct.pack("HxxxxxxP", 4, ctypes.addressof(buffer)))

    def close(self):
        self.socket.close()

    def send(self, data, limit_s=limit(5.0)):
        """Send one frame; waits while the device has no room."""
        end_s = time.monotonic() + limit_s
        while True:
            try:
                self.socket.send(data)
                return
            except OSError as error:
                # ENOBUFS: the queue of the device is full.
                if error.errno not in (errno.EAGAIN, errno.ENOBUFS) or \
                        time.monotonic() > end_s:
                    raise
                time.sleep(0.0005)

    def send_all(self, frames, gap=64, gap_s=0.002):
        """Send frames, with a rest after each `gap`; how many there were.

        A veth holds 256 frames; what a burst of more does is the kernel's
        business, and not what most tests are about.
        """
        n = 0
        for data in frames:
            self.send(data)
            n += 1
            if n % gap == 0:
                time.sleep(gap_s)
        return n

    def _receive_one(self):
        data, ancillary, _, _ = self.socket.recvmsg(70000, 256)
        for level, kind, raw in ancillary:
            if (level, kind) != (SOL_PACKET, PACKET_AUXDATA):
                continue
            status, _, _, _, _, tci, tpid = struct.unpack("IIIHHHH", raw[:20])
            if status & TP_STATUS_VLAN_VALID:
                return data[:12] + struct.pack("!HH", tpid, tci) + data[12:]
        return data

    def receive(self, n, limit_s=limit(5.0)):
        """Up to n frames: all there are when n came or the time is up."""
        frames = []
        end_s = time.monotonic() + limit_s
        while len(frames) < n:
            # Late or not, it looks once more.
            left_s = max(0, end_s - time.monotonic())
            if not select.select([self.socket], [], [], left_s)[0]:
                break
            while len(frames) < n:
                try:
                    frames.append(self._receive_one())
                except BlockingIOError:
                    break
                except OSError as error:
                    if error.errno != errno.ENETDOWN:  # said once, then over
                        raise
        return frames

    def receive_until_quiet(self, quiet_s=2.0, limit_s=limit(20.0)):
        """All frames, until none came for quiet_s."""
        frames = []
        end_s = time.monotonic() + limit_s
        while time.monotonic() < end_s:
            some = self.receive(1, quiet_s)
            if not some:
                break
            frames += some
        return frames

    def lost(self):
        """Frames that this socket had no room for since the last call."""
        raw = self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)
        return struct.unpack("II", raw)[1]


def both(lab, star, ether_type=TEST_TYPE):
    return [lab.closing(Wire(host, "h0", ether_type))
            for host in star.hosts[:2]]
