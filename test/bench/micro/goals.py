# SPDX-License-Identifier: BSD-3-Clause
"""The goals of the memory layer, and which of them a run reached. A document
is what `./mr bench mem --json` prints."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

Row = dict[str, Any]
Player = dict[str, Any]


# Which side is compared with our first variant, by the kind of a goal.
PEERS = {"dpdk": "dpdk", "typical": "dpdk", "kernel": "kernel"}


@dataclass(frozen=True)
class Goal:
    """A limit of a figure in each of some rows; the worst row counts, unless
    the kind says otherwise. Times in ns mean little on other CPUs, so most
    have no limit.

    kind: what is compared with the limit.
        ns      a variant's time; at most
        count   a figure beside the time; at most
        ratio   a variant's time divided by that of our first; at most
        gain    the same; at least
        dpdk    the time of DPDK's best divided by that of our first; at least
        typical the same; the median of the rows, not the worst
        kernel  the same with the kernel's model; at least
        growth  a variant's time divided by its own on one thread, in the row
                of the same plot; at most
    """
    what: str
    rows: str  # like "B06/from=depot bulk=64"; may have wildcards
    variant: str | None  # likewise; None: the first of ours
    kind: str
    limit: float = 0  # 0: the figure is only reported
    count: str = ""

    @property
    def is_at_most(self) -> bool:
        return self.kind != "gain" and self.kind not in PEERS

    @property
    def unit(self) -> str:
        return {"ns": "ns", "count": ""}.get(self.kind, "x")


# Each figure that the founding documents set for the memory layer; then
# rte_mempool's own workload; then flow tables and frames.
GOALS = (
    Goal("1: frag over a ring: kernel's by ours", "B09/* threads=2 hop=1 *", None, "kernel", 1.2),
    Goal("1: the same, in bursts", "B09/* threads=2 hop=32 *", None, "kernel", 1.5),
    Goal("1: frag over a ring, one at a time", "B09/* threads=2 hop=1 *", "frag cache*", "ns"),
    Goal("1: frag over a ring, in bursts", "B09/* threads=2 hop=32 *", "frag cache*", "ns"),
    Goal("1: aligned frag by unaligned", "B09/*", "frag cache, aligned", "ratio", 1),
    Goal("2: single from the cache", "B06/from=cache bulk=1", "single", "ns"),
    Goal("2: single from the page allocator", "B06/from=pages bulk=1", "single", "ns"),
    Goal("2: array of 64 from the depot", "B06/from=depot bulk=64", "array", "ns"),
    Goal("2: the same: DPDK's best by ours", "B06/from=depot bulk=64", None, "dpdk", 1),
    Goal("2: array of 64 from a fresh segment", "B06/from=fresh bulk=64", "array", "ns"),
    Goal("2: single by array of 64, allocator", "B06/from=pages bulk=64", "single", "gain"),
    Goal("2: list by array of 64, allocator", "B06/from=pages bulk=64", "list", "gain"),
    Goal("2: single by array, SUNRPC", "B07/*", "single", "gain"),
    Goal("2: drop of 64: DPDK's best by ours", "B08/drop burst=64", None, "dpdk", 1.2),
    Goal("2: drop of 64 frames: DPDK's by ours", "B08/frames burst=64", None, "dpdk", 1.2),
    Goal("3: page allocator by recycling", "B08/ladder*", "no recycling", "gain", 1),
    Goal("3: through the depot by direct", "B08/ladder*", "recycling through the depot", "gain"),
    Goal("3: outlined by inlined", "B08/ladder*", "recycling, outlined", "gain"),
    Goal("3: in bursts by one by one", "B08/ladder*", "recycling, 32 at a time", "ratio"),
    Goal("3: cross-core return, one by one", "B05/* bulk=1", None, "ns"),
    Goal("3: cross-core return, 32 in bulk", "B05/* bulk=32", None, "ns"),
    Goal("4: failed CAS by 1000 pages", "B17/*", None, "count", 1, "cas_failed_per_1000"),
    Goal("4: depot operations by 32 pages", "B17/*", None, "count", 1, "depot_ops_per_32"),
    Goal("4: p99.9 of a completion", "B17/*threads_per_core=1", None, "count", 0, "p99.9_ns"),
    Goal("4: the same, 4 threads per core", "B17/*threads_per_core=4", None, "count", 0,
         "p99.9_ns"),
    Goal("4: p99.9 of take and return", "B19/threads_per_core=1", None, "count", 0, "p99.9_ns"),
    Goal("4: the same, 4 threads per core", "B19/threads_per_core=4", None, "count", 0,
         "p99.9_ns"),
    Goal("4: pages in flight, ring of 64", "B14/ring=64 *", None, "count", 0, "in_flight"),
    Goal("4: pages in flight, ring of 4096", "B14/ring=4096 *", None, "count", 0, "in_flight"),
    Goal("4: a page in 512 of another pool", "B18/burst=32", "one page in 512*", "ratio", 1.1),
    Goal("4: after the pool grew", "B18/burst=32", "pages that the pool grew by", "ratio", 1.1),
    Goal("5: objects: malloc by ours", "B12/*", "malloc", "gain", 1),
    Goal("5: objects: more threads by one", "B12/*", "millrace objects*", "growth", 1.25),
    Goal("burst of 32 by address", "B06/from=cache bulk=32", "array", "ns"),
    Goal("burst of 32: DPDK's best by ours", "B06/from=cache bulk=32", None, "dpdk", 1),
    Goal("22.11's test by address, 32", "B13/22.11 keep=32 get=32 put=32 *=1", "addresses", "ns"),
    Goal("the same, owners on", "B13/22.11 keep=32 get=32 put=32 *=1", "addresses, owners on",
         "ns"),
    Goal("the same, mixed frames of 2 pools", "B13/22.11 keep=32 get=32 put=32 *=1",
         "frames of 2 pools, owners on", "ns"),
    Goal("its rows: DPDK's best by ours", "B13/*", None, "dpdk", 1),
    Goal("pipeline: DPDK's best by ours", "B14/pages=*", None, "typical", 1.5),
    Goal("bulk lookup of 1 M: rte_hash by ours", "F01/uniform burst=32 records=1000000", None,
         "dpdk", 1.5),
    Goal("6: frame built and sent, one field", "W02/fields=1", "*", "ns", 10),
    Goal("6: the same, four fields", "W02/fields=4", "*", "ns", 25),
)

# What --goals runs. Of dozens of similar rows, those that a goal names, or one
# in the middle; rows drawn in docs/performance.md are complete.
WANTED_ROWS = (
    "B05/*", "B06/from=cache *", "B06/from=depot *", "B06/from=pages bulk=1",
    "B06/from=pages bulk=64", "B06/from=fresh bulk=64", "B07/*", "B08/*",
    "B09/* threads=2 hop=1 alloc", "B09/* threads=2 hop=32 alloc", "B12/*",
    "B13/22.11 keep=* get=32 put=32 *", "B13/22.11 keep=* constant=32 *",
    "B13/26.11 keep=32768 *=32 *", "B14/*",
    "B17/burst=32 *", "B18/burst=32", "B19/threads_per_core=[14]",
    "F01/uniform burst=32 records=1000000", "W02/*",
)

# Left out to save time: similar ones stay.
UNWANTED_PLAYERS = ("rte_mempool * c0*", "rte_mempool bucket c256*",
                    "rte_mempool lf_stack c256*", "*, magazines of 64")


def name_of(row: Row) -> str:
    """The name in goals and options: "B06/from=depot bulk=64"."""
    return f"{row['workload']}/{row['name']}"


def is_wanted(name: str) -> bool:
    """Whether --goals runs the row of this name."""
    return any(fnmatchcase(name, pattern) for pattern in WANTED_ROWS)


def first_of_ours(row: Row) -> Player | None:
    return next((p for p in row["players"] if p["side"] == "ours" and "ns" in p), None)


def best_of(row: Row, side: str) -> Player | None:
    """The fastest of a side; for ours, not always the first."""
    variants = [p for p in row["players"] if p["side"] == side and "ns" in p]
    return min(variants, key=lambda p: p["ns"]["median"], default=None)


def best_of_dpdk(row: Row) -> Player | None:
    """None if none of ours took part."""
    return best_of(row, "dpdk") if first_of_ours(row) else None


def ratio(value: float, low: float, high: float) -> dict[str, float]:
    return {"value": value, "low": low, "high": high}


def growth(rows: list[Row], row: Row, variant: Player) -> dict[str, float] | None:
    """Relative to the same variant on one thread; low and high combine both
    intervals."""
    one = next((p for r in rows if r["workload"] == row["workload"] and r["threads"] == 1
                and r.get("plot") == row.get("plot")
                for p in r["players"] if p["name"] == variant["name"]), None)
    if row["threads"] < 2 or one is None or "ns" not in one or one["ns"]["low"] <= 0:
        return None
    now, then = variant["ns"], one["ns"]
    return ratio(now["median"] / then["median"], now["low"] / then["high"],
                 now["high"] / then["low"])


def figure(goal: Goal, rows: list[Row], row: Row, variant: Player) -> dict[str, float] | None:
    """A variant's figure for the goal, with its 95 % interval."""
    if "ns" not in variant:
        return None
    if goal.kind == "ns":
        return ratio(*(variant["ns"][key] for key in ("median", "low", "high")))
    if goal.kind == "growth":
        return growth(rows, row, variant)
    if goal.kind == "count":
        value = variant["counts"].get(goal.count)
        return None if value is None else ratio(value, value, value)
    return variant.get("ratio_to_ours")


def variants_of(goal: Goal, row: Row) -> Iterator[Player]:
    if goal.kind in PEERS:
        one = best_of(row, PEERS[goal.kind]) if first_of_ours(row) else None
        yield from [one] if one else []
    elif goal.variant is None:
        one = first_of_ours(row)
        yield from [one] if one else []
    else:
        yield from (p for p in row["players"] if fnmatchcase(p["name"], goal.variant))


def look_at(goal: Goal, rows: list[Row]) -> dict[str, Any]:
    """A goal as documents have it."""
    among = [row for row in rows if fnmatchcase(name_of(row), goal.rows)]
    found = {"goal": goal.what, "unit": goal.unit, "state": "not run", "rows": len(among)}
    if goal.limit:
        found |= {"limit_is": "most" if goal.is_at_most else "least", "limit": goal.limit}
    figures = [{"measured": now, "workload": row["workload"], "row": row["name"],
                "player": variant["name"]}
               for row in among for variant in variants_of(goal, row)
               if (now := figure(goal, rows, row, variant)) is not None]
    if not figures:
        return found
    figures.sort(key=lambda f: f["measured"]["value"], reverse=goal.is_at_most)  # worst first
    one = figures[(len(figures) - 1) // 2 if goal.kind == "typical" else 0]
    now = one["measured"]
    is_reached = now["value"] <= goal.limit if goal.is_at_most else now["value"] >= goal.limit
    state = "reported" if not goal.limit else "reached" if is_reached else "missed"
    is_close = goal.limit > 0 and now["low"] < now["high"] and \
        now["low"] <= goal.limit <= now["high"]
    return found | one | {"state": state, "within_noise": is_close}


def look(rows: list[Row], command: str, is_whole: bool) -> list[dict[str, Any]]:
    """Goals that the rows can show. is_whole: list all goals of the command,
    by the first letter of their workloads."""
    letter = {"flow": "F", "fwd": "W"}.get(command, "B")
    found = [(goal, look_at(goal, rows)) for goal in GOALS]
    return [g for goal, g in found if "measured" in g or (is_whole and goal.rows[0] == letter)]


def slower(rows: list[Row]) -> dict[str, Any]:
    """Rows in which DPDK's best is faster than our first."""
    pairs = [(row, best) for row in rows if (best := best_of_dpdk(row))]
    return {"rows": len(pairs),
            "slower": [{"workload": row["workload"], "row": row["name"],
                        "player": best["name"], "ratio_to_ours": best["ratio_to_ours"],
                        "best_of_ours": (best_of(row, "ours") or {})["name"]}
                       for row, best in pairs if best["ratio_to_ours"]["value"] < 1]}
