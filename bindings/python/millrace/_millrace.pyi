# SPDX-License-Identifier: BSD-3-Clause
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Self, TypedDict, final, type_check_only

from _typeshed import ReadableBuffer

BURST_MAX: int
MORE: int
version: str

class Error(OSError): ...

@type_check_only
class Link(TypedDict):
    is_up: bool
    speed_mbps: int
    is_gone: bool
    is_ended: bool

@type_check_only
class PortInfo(TypedDict):
    name: str
    mode: str
    why: str
    n_rxqs: int
    n_txqs: int
    mtu_bytes: int
    has_sg: bool
    numa_node: int
    locked_bytes: int
    kernel_bytes: int
    mac: bytes

@type_check_only
class RxStats(TypedDict):
    received: int
    delivered: int
    offloaded: int
    passed_to_kernel: int
    bytes: int
    drops: dict[str, int]
    events: dict[str, int]

@type_check_only
class TxStats(TypedDict):
    accepted: int
    completed: int
    pending: int
    bytes: int
    drops: dict[str, int]
    events: dict[str, int]

@type_check_only
class _Closing:
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Pool(_Closing):
    def __new__(cls, n_pages: int = 0, *, page_bytes: int = 0, safety: int = 0) -> Self: ...
    def burst(self, frames: Iterable[ReadableBuffer], /) -> Burst: ...
    def stats(self) -> dict[str, int]: ...
    def close(self) -> None: ...

class Port(_Closing):
    def __new__(cls, pool: Pool, spec: str) -> Self: ...
    def rx(self, i: int = 0, /) -> RxQueue: ...
    def tx(self, i: int = 0, /) -> TxQueue: ...
    def poll(self) -> int: ...
    def fileno(self) -> int: ...
    def link(self) -> Link: ...
    def info(self) -> PortInfo: ...
    def close(self) -> None: ...

class Queue(_Closing):
    def release(self) -> None: ...
    def arm(self) -> bool: ...
    def fileno(self) -> int: ...
    def stats(self) -> RxStats | TxStats: ...

@final
class RxQueue(Queue):
    def receive(self, n: int = 256, /) -> Burst: ...
    def stats(self) -> RxStats: ...

@final
class TxQueue(Queue):
    def send(self, burst: Burst, /) -> int: ...
    def collect(self) -> None: ...
    def stats(self) -> TxStats: ...

@final
class Burst(_Closing):
    def __len__(self) -> int: ...
    def __getitem__(self, i: int, /) -> memoryview: ...
    def __iter__(self) -> Iterator[memoryview]: ...
    def keep(self, mask: Any, /) -> None: ...
    # Arrays are writable buffers, but numpy's types do not say so yet.
    def copy_entries(self, array: Any, /) -> int: ...
    def copy_headers(self, array: Any, n_bytes: int, /) -> int: ...
    def release(self) -> None: ...
