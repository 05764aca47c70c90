# SPDX-License-Identifier: BSD-3-Clause
"""Bursts as numpy arrays. Only this module of the package needs numpy.

The arrays hold copies, so they stay valid when the burst is released. Pass `out`
to reuse an array instead of allocating one.
"""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import Burst, Flag
from ._millrace import meta_layout

#: struct mr_frame
ENTRY = np.dtype([("addr", "<u8"), ("len", "<u4"), ("flags", "<u4")])
#: struct mr_meta
META = np.dtype(
    {
        "names": list(meta_layout),
        "formats": [form for form, _ in meta_layout.values()],
        "offsets": [offset for _, offset in meta_layout.values()],
        "itemsize": 64,
    }
)
#: IEEE 802.3, without VLAN tag
ETHERNET = np.dtype([("dst", "u1", 6), ("src", "u1", 6), ("type", ">u2")])
#: RFC 791, without options, after ETHERNET
IPV4 = np.dtype(
    [
        *((name, ETHERNET[name]) for name in ETHERNET.names or ()),
        ("version_ihl", "u1"),
        ("tos", "u1"),
        ("total_bytes", ">u2"),
        ("id", ">u2"),
        ("fragment", ">u2"),
        ("ttl", "u1"),
        ("protocol", "u1"),
        ("checksum", ">u2"),
        ("src_ip", ">u4"),
        ("dst_ip", ">u4"),
    ]
)


def entries(burst: Burst, out: NDArray[Any] | None = None) -> NDArray[Any]:
    """Address in the region, length and flags of each entry."""
    table = np.empty(len(burst), ENTRY) if out is None else out
    return table[: burst.copy_entries(table)]


def begins(burst: Burst) -> NDArray[Any]:
    """Whether each entry begins a frame: the entry before it does not have MORE set."""
    has_more = entries(burst)["flags"] & Flag.MORE != 0
    return np.append(True, ~has_more)[: len(burst)]


def metas(burst: Burst, out: NDArray[Any] | None = None) -> NDArray[Any]:
    """Metadata of the frames, in the rows of their first entries."""
    table = np.empty(len(burst), META) if out is None else out
    return table[: burst.copy_metas(table)]


def headers(burst: Burst, dtype: DTypeLike, out: NDArray[Any] | None = None) -> NDArray[Any]:
    """The first bytes of each entry as a dtype of any size; short entries are zero-padded.

    Entries that continue a frame (the one before has MORE set) also have a row.
    """
    kind = np.dtype(dtype)
    table = np.empty(len(burst), kind) if out is None else out
    return table[: burst.copy_headers(table, kind.itemsize)]
