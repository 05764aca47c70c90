# SPDX-License-Identifier: BSD-3-Clause
"""Blocks of a pcapng file (draft-ietf-opsawg-pcapng)."""

import struct

ETHERNET = 1
INBOUND, OUTBOUND = 1, 2
# Option codes.
COMMENT, FLAGS, DROPS, QUEUE = 1, 2, 4, 6
NAME, RESOLUTION, APPLICATION = 2, 9, 4


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("=HH", code, len(value)) + _padded(value)


def _block(kind: int, body: bytes, options: list[bytes]) -> bytes:
    body += b"".join(options) + bytes(4)
    size = struct.pack("=I", len(body) + 12)
    return struct.pack("=I", kind) + size + body + size


def section(application: str) -> bytes:
    """What a file begins with."""
    body = struct.pack("=IHHq", 0x1A2B3C4D, 1, 0, -1)
    return _block(0x0A0D0D0A, body, [_option(APPLICATION, application.encode())])


def interface(name: str) -> bytes:
    """The next interface; times of its packets are in nanoseconds."""
    options = [_option(NAME, name.encode()), _option(RESOLUTION, b"\x09")]
    return _block(1, struct.pack("=HHI", ETHERNET, 0, 0), options)


def packet(
    interface: int,
    ns: int,
    data: bytes,
    *,
    n_bytes: int,
    direction: int,
    queue: int,
    n_missed: int,
    comment: str,
) -> bytes:
    """A packet that was n_bytes long; n_missed: since the previous one."""
    body = struct.pack("=IIIII", interface, ns >> 32, ns & 0xFFFFFFFF, len(data), n_bytes)
    options = [
        _option(FLAGS, struct.pack("=I", direction)),
        _option(QUEUE, struct.pack("=I", queue)),
    ]
    if n_missed:
        options.append(_option(DROPS, struct.pack("=Q", n_missed)))
    if comment:
        options.append(_option(COMMENT, comment.encode()))
    return _block(6, body + _padded(data), options)
