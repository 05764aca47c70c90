# SPDX-License-Identifier: BSD-3-Clause
"""Reads documents from files, which people may have edited or cut off."""

import errno
import json
import os
import re
import sys
from dataclasses import dataclass
from typing import Any

from mr_bench import units
from mr_support.options import Wrong

VERSION = 1
MAX_BYTES = 256 << 20
CURE = "it was changed since mr-bench wrote it: measure again"
WORKLOADS = ("mem", "flow", "fwd")

# Arrays of objects with these members: texts, numbers, objects.
Shapes = dict[str, tuple[list[str], list[str], list[str]]]
NET_SHAPES: Shapes = {
    "rows": (["goal", "unit"], ["frame_bytes", "value", "low", "high"], []),
    "trials": (
        [],
        ["frame_bytes", "asked_pps", "start_s", "duration_s"],
        ["tx", "rx", "percentiles", "histogram"],
    ),
    "selftest": ([], ["frame_bytes", "ceiling_pps"], []),
    "ports": (["name", "mode"], [], []),
}
WORKLOAD_SHAPES: Shapes = {"rows": (["workload", "name", "unit"], [], [])}


def member(value: Any, *keys: str) -> Any:
    """value[key][key]...; None if missing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def text_of(value: Any, *keys: str) -> str:
    """A member; "" if it is missing or not text."""
    found = member(value, *keys)
    return found if isinstance(found, str) else ""


def number_of(value: Any, *keys: str) -> float:
    """A member; 0 if it is missing or not a number."""
    return number(member(value, *keys))


def number(value: Any) -> float:
    """0 if it is not a number."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number else 0.0


def list_of(value: Any, *keys: str) -> list[Any]:
    """A member; [] if it is missing or not an array."""
    found = member(value, *keys)
    return found if isinstance(found, list) else []


def at(array: list[Any], i: Any) -> Any:
    """An entry; None if there is none."""
    return array[i] if isinstance(i, int) and 0 <= i < len(array) else None


@dataclass(frozen=True)
class Document:
    """is_net: of the commands that send and receive; else of mem, flow, fwd.
    Arrays of root are arrays of objects; rows have a goal, a unit and a
    number."""

    name: str
    is_net: bool
    root: dict[str, Any]


def _check_shapes(name: str, root: dict[str, Any], shapes: Shapes) -> None:
    if not isinstance(root.get("machine"), dict):
        raise Wrong(f'{name}: it has no "machine"; measure again')
    for array, (texts, numbers, objects) in shapes.items():
        if not isinstance(root.get(array), list):
            raise Wrong(f'{name}: it has no "{array}"; measure again')
        for i, entry in enumerate(root[array]):
            where = f"{name}: {array}[{i}]"
            if not isinstance(entry, dict):
                raise Wrong(f"{where} is not an object; {CURE}")
            for keys, kind, what in (
                (texts, str, "text"),
                (numbers, (int, float), "a number"),
                (objects, dict, "an object"),
            ):
                for key in keys:
                    value = entry.get(key)
                    if not isinstance(value, kind) or isinstance(value, bool):
                        raise Wrong(f"{where}.{key} is not {what}; {CURE}")


def _check_units(name: str, rows: list[dict[str, Any]]) -> None:
    for i, row in enumerate(rows):
        if units.direction(row["unit"]) == 0:
            raise Wrong(
                f'{name}: rows[{i}].unit "{row["unit"][:40]}" is '
                "unknown to this program; measure again"
            )


def _check(name: str, root: Any) -> Document:
    schema = text_of(root, "schema")
    is_net = schema == "mr-bench-net"
    if not is_net and (schema or text_of(root, "command") not in WORKLOADS):
        raise Wrong(f"{name}: not a document of mr-bench --json")
    if number_of(root, "v") != VERSION:
        raise Wrong(
            f"{name}: version {number_of(root, 'v'):.0f} of the "
            f"schema, and this program reads {VERSION}; use the "
            "mr-bench that wrote it "
            f"({text_of(root, 'millrace')[:20]})"
        )
    _check_shapes(name, root, NET_SHAPES if is_net else WORKLOAD_SHAPES)
    if is_net:
        _check_units(name, root["rows"])
    return Document(name, is_net, root)


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice in an object")
    return found


def _finite(text: str) -> float:
    value = float(text)
    if abs(value) == float("inf"):
        raise ValueError("a number is too large")
    return value


def _whole(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise ValueError("a number is too large")
    return int(text)


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is not a number")


def read_bytes(name: str, data: bytes) -> Document:
    """Parse the contents of a file of that name. Raises Wrong."""
    try:
        root = json.loads(
            data.decode(),
            object_pairs_hook=_no_duplicates,
            parse_float=_finite,
            parse_int=_whole,
            parse_constant=_no_constant,
        )
        # Half of a surrogate pair cannot be printed again.
        if re.search(rb"\\u[dD][89a-fA-F]", data):
            json.dumps(root, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        where = (
            f"line {error.lineno}: {error.msg}"
            if isinstance(error, json.JSONDecodeError)
            else str(error)
        )
        raise Wrong(f"{name}: {where[:120]}; it is truncated or not JSON: measure again") from None
    return _check(name, root)


def read(path: str) -> Document:
    """A file; "-": standard input. Raises Wrong."""
    try:
        if path == "-":
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    except OSError as error:
        raise Wrong(f"{path}: {error.strerror}") from None
    return read_bytes("standard input" if path == "-" else path, data)
