# SPDX-License-Identifier: BSD-3-Clause
"""A pcapng file, which libmillrace writes. Source: millrace/pcapng.h."""

import ctypes
import os
from ctypes import byref

from mr_ctl.client import Refused
from mr_support import program

INBOUND, OUTBOUND = 1, 2


class _Packet(ctypes.Structure):
    """struct mr_pcapng_packet."""

    _fields_ = [
        ("size", ctypes.c_uint32),
        ("interface", ctypes.c_uint32),
        ("ns", ctypes.c_uint64),
        ("n_bytes", ctypes.c_uint32),
        ("direction", ctypes.c_uint32),
        ("has_queue", ctypes.c_uint32),
        ("queue", ctypes.c_uint32),
        ("n_missed", ctypes.c_uint64),
        ("comment", ctypes.c_char_p),
    ]


class _Frame(ctypes.Structure):
    """struct mr_frame."""

    _fields_ = [("addr", ctypes.c_uint64), ("len", ctypes.c_uint32), ("flags", ctypes.c_uint32)]


class File:
    """Whatever happens, it ends with a complete block. Each function raises Refused."""

    def __init__(self, path: str, application: str) -> None:
        library = program.companion()
        try:
            self._lib = ctypes.CDLL(str(library))
        except OSError as error:
            raise Refused(f"cannot load the library {library}: {error}") from None
        self._path = path
        self._fd = 1 if path == "-" else os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._ctx = ctypes.c_void_p()
        self._file = ctypes.c_void_p()
        self._ports: dict[str, int] = {}
        self._check(self._lib.mr_ctx_create(None, byref(self._ctx), None))
        name = application.encode()
        self._check(self._lib.mr_pcapng_open(self._ctx, self._fd, name, byref(self._file), None))
        self.flush()

    def _check(self, result: int) -> int:
        if result < 0:
            raise Refused(f"{self._path}: {os.strerror(-result)}; the capture has ended")
        return result

    def flush(self) -> None:
        self._check(self._lib.mr_pcapng_flush(self._file))

    def interface(self, port: str) -> int:
        """The number of a port's interface."""
        if port not in self._ports:
            result = self._lib.mr_pcapng_add_interface(self._file, port.encode(), 0)
            self._ports[port] = self._check(result)
        return self._ports[port]

    def write(
        self,
        interface: int,
        ns: int,
        data: bytes,
        *,
        n_bytes: int,
        direction: int,
        queue: int,
        n_missed: int,
        comment: str,
    ) -> None:
        """A packet that was n_bytes long; n_missed: since the previous one."""
        size = ctypes.sizeof(_Packet)
        packet = _Packet(
            size, interface, ns, n_bytes, direction, 1, queue, n_missed, comment.encode()
        )
        frame = _Frame(0, len(data), 0)
        self._check(self._lib.mr_pcapng_write(self._file, data, byref(frame), byref(packet)))
