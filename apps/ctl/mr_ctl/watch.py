# SPDX-License-Identifier: BSD-3-Clause
"""Rates between two snapshots of a program, once per interval."""

import contextlib
import json
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from typing import Any, NamedTuple

from mr_ctl import show
from mr_ctl.client import Connection, Object
from mr_support.options import Wrong

BARS = "▁▂▃▄▅▆▇█"
N_BARS = 40
# A port's column by which rows are sorted; the largest first.
SORTS = {"name": "", "rx": "rx_frames", "tx": "tx_frames", "drops": "drops"}
POOL = ("n_pages", "n_free", "n_in_flight", "n_cached", "n_depot")
# For the tables of programs: members that are levels, and those shown as rates.
TABLES = {
    "state": (("mappings", "sessions", "subscribers"), ("created", "expired")),
    "fdb": (("entries",), ("learned", "moved")),
}
MIN_BARS = 8  # a shorter graph is left out


class Wanted(NamedTuple):
    """What the command line says."""

    interval_s: float
    n_updates: int  # 0: no end
    is_json: bool
    sort: str


def difference(now: Any, before: Any) -> Any:
    """Of all numbers."""
    if isinstance(now, dict):
        return {key: difference(value, before.get(key, 0)) for key, value in now.items()}
    return now - before if isinstance(now, int) and not isinstance(now, bool) else now


def table(now: Object, before: Object, seconds: float) -> Object:
    """Mappings and sessions of a NAT, addresses of a bridge."""
    found: Object = {}
    for name, (levels, flows) in TABLES.items():
        if name in now:
            found |= {one: now[name][one] for one in levels}
            for one in flows:
                n = now[name][one] - before[name][one]
                found[f"{one}/s"] = round(n / seconds, 1)
    return found


def rates(now: Object, before: Object) -> Object:
    """Changes between two snapshots, per second: the object of --json."""
    seconds = max(now["t"] - before["t"], 1e-3)
    ports = []
    for port, old in zip(now["ports"], before["ports"], strict=True):
        counts = difference(show.port_rates(port), show.port_rates(old))
        each = {name: round(n / seconds, 1) for name, n in counts.items()}
        lost = each["rx_drops"] + each["tx_drops"] + each["device_drops"]
        ports.append({"port": port["port"], "link": show.link(port), **each, "drops": lost})
    old_drops = show.drops(before)
    pool = difference(now["pool"], before["pool"])
    taken = [max(pool[f"from_{place}"], 0) for place in ("cache", "depot", "allocator")]
    rules = difference(now.get("offload", {}), before.get("offload", {}))
    return {
        "t": now["t"],
        "ports": ports,
        "offload": {
            "rules": now["offload"]["rules"],
            "frames": round(rules["attempted"] / seconds, 1),
        }
        if rules
        else {},
        "table": table(now, before, seconds),
        "workers": [
            dict(zip(show.WORKER_HEADS, show.worker_row(worker), strict=True))
            for worker in (
                difference(one, old) | {"core": one["core"]}
                for one, old in zip(now["workers"], before["workers"], strict=True)
            )
        ],
        "drops": [
            {"where": where[0], "reason": where[1], "frames": round(lost / seconds, 1)}
            for where, n in show.drops(now).items()
            if (lost := n - old_drops.get(where, 0))
        ],
        "pool": {name: now["pool"][name] for name in POOL}
        | {"cache %": round(100 * taken[0] / sum(taken), 1) if sum(taken) else 100.0},
    }


def scaled(value: float) -> str:
    """12.3 M for 12300000."""
    for unit in ("", " k", " M", " G"):
        if abs(value) < 1000:
            return f"{value:.0f}{unit}" if unit == "" else f"{value:.1f}{unit}"
        value /= 1000
    return f"{value:.1f} T"


def graph(history: list[float]) -> str:
    """A bar per interval, scaled to the port's own maximum."""
    top = max(history, default=0)
    return "".join(BARS[round(7 * value / top)] if top else BARS[0] for value in history)


def port_rows(shown: Object, sort: str) -> list[tuple[int, Object]]:
    """Ports with their indices, by name, or the largest first."""
    ports: list[tuple[int, Object]] = list(enumerate(shown["ports"]))
    if sort == "name":
        return sorted(ports, key=lambda row: str(row[1]["port"]))
    return sorted(ports, key=lambda row: -all_frames(row[1], SORTS[sort]))


def all_frames(port: Object, name: str) -> float:
    """A port's rate; rates of frames include those that rules forwarded."""
    by_rules = {"rx_frames": "rx_offloaded", "tx_frames": "tx_offloaded"}
    return float(port[name] + (port[by_rules[name]] if name in by_rules else 0))


def port_heads(shown: Object) -> list[str]:
    heads = ["port", "link", "rx fr/s", "rx bit/s", "tx fr/s", "tx bit/s"]
    return heads + (["rx offl/s", "tx offl/s"] if shown["offload"] else []) + ["drops/s"]


def short(link: str) -> str:
    """up 10G for "up 10000 Mb/s"."""
    state, _, speed = link.partition(" ")
    if not speed:
        return state
    mbps = int(speed.split()[0])
    return f"{state} {mbps / 1000:g}G" if mbps >= 1000 else f"{state} {mbps}M"


def port_cells(shown: Object, port: Object) -> list[str]:
    rates = [port["rx_frames"], 8 * port["rx_bytes"], port["tx_frames"], 8 * port["tx_bytes"]]
    if shown["offload"]:
        rates += [port["rx_offloaded"], port["tx_offloaded"]]
    return [port["port"], short(port["link"]), *map(scaled, [*rates, port["drops"]])]


def print_plain(shown: Object, sort: str) -> None:
    print(f"{shown['t']:.1f} s")
    rows = [port_cells(shown, port) for _, port in port_rows(shown, sort)]
    show.print_table(port_heads(shown), rows)
    show.print_table(show.WORKER_HEADS, [list(one.values()) for one in shown["workers"]])
    for drop in shown["drops"]:
        print(f"{drop['where']}: {drop['reason']} {scaled(drop['frames'])}/s")
    print(*lines(shown), sep="\n")
    print(flush=True)


def lines(shown: Object) -> list[str]:
    """The lines below the tables: the pool, and the sizes of the program's table."""
    parts = {"pool": shown["pool"], "table": shown["table"]}
    return [
        f"{name}: " + ", ".join(f"{one} {show.cell(n)}" for one, n in part.items())
        for name, part in parts.items()
        if part
    ]


def port_table(shown: Object, sort: str, graphs: list[list[float]], n_columns: int) -> Any:
    """A table with whole names. Graphs get the remaining width; too short ones are left out."""
    from rich.table import Table
    from rich.text import Text

    heads = port_heads(shown)
    rows = [(i, port, port_cells(shown, port)) for i, port in port_rows(shown, sort)]
    lengths = [max(map(len, column)) for column in zip(heads, *(r[2] for r in rows), strict=True)]
    n_bars = n_columns - sum(lengths) - 2 * len(heads) - 2
    table = Table(box=None, header_style="underline", padding=(0, 2, 0, 0), pad_edge=False)
    for head, length in zip(heads, lengths, strict=True):
        table.add_column(
            head,
            justify="left" if head in ("port", "link") else "right",
            no_wrap=True,
            min_width=length if head == "port" else None,
        )
    if n_bars >= MIN_BARS:
        table.add_column("in and out")
    for i, port, (name, link, *cells, lost) in rows:
        table.add_row(
            Text(name),
            Text(link, "green" if link.startswith("up") else "yellow"),
            *cells,
            Text(lost, "red" if port["drops"] else "dim"),
            *([Text(graph(graphs[i][-n_bars:]), "cyan")] if n_bars >= MIN_BARS else []),
        )
    return table


def screen(shown: Object, sort: str, graphs: list[list[float]], title: str, n_columns: int) -> Any:
    """The same with colours and graphs."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    workers = Table()
    for head in show.WORKER_HEADS:
        workers.add_column(head, justify="right")
    for worker in shown["workers"]:
        workers.add_row(*[show.cell(value) for value in worker.values()])
    drops = Table("where", "reason", "frames/s")
    for drop in sorted(shown["drops"], key=lambda one: -float(one["frames"])):
        drops.add_row(Text(drop["where"]), Text(drop["reason"], "red"), scaled(drop["frames"]))
    parts: list[Any] = [
        Text(title, "italic"),
        port_table(shown, sort, graphs, n_columns),
        workers,
        *([drops] if shown["drops"] else []),
        *map(Text, lines(shown)),
    ]
    return Group(*parts, Text("s: sort by the next column  q: quit", "dim"))


@contextlib.contextmanager
def keys() -> Iterator[None]:
    """Read keys as they are pressed."""
    before = termios.tcgetattr(0)
    tty.setcbreak(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSANOW, before)


def looks(connection: Connection, wanted: Wanted) -> Iterator[Object]:
    """Yield rates, forever or as often as wanted; the caller sleeps."""
    before = connection.ask_one("stats")
    n = 0
    while wanted.n_updates == 0 or n < wanted.n_updates:
        yield {}
        now = connection.ask_one("stats")
        yield rates(now, before)
        before = now
        n += 1


def _on_screen(connection: Connection, wanted: Wanted) -> int:
    from rich.live import Live

    hello = connection.ask_one("hello")
    graphs: list[list[float]] = []
    sort = wanted.sort
    with keys(), Live(auto_refresh=False, screen=True) as live:
        shown: Object = {}
        for look in looks(connection, wanted):
            if look:
                shown = look
                graphs = graphs or [[] for _ in look["ports"]]
                for history, port in zip(graphs, look["ports"], strict=True):
                    history.append(all_frames(port, "rx_frames") + all_frames(port, "tx_frames"))
                    del history[:-N_BARS]
            end_s = time.monotonic() + (0 if look else wanted.interval_s)
            while True:
                if shown:
                    title = f"{hello['program']} {hello['instance']}, ports by {sort}"
                    width = live.console.width
                    live.update(screen(shown, sort, graphs, title, width), refresh=True)
                left_s = end_s - time.monotonic()
                if left_s <= 0 or not select.select([0], [], [], left_s)[0]:
                    break
                key = os.read(0, 1)
                if key in (b"q", b""):
                    return 0
                names = list(SORTS)
                if key == b"s":
                    sort = names[(names.index(sort) + 1) % len(names)]
    return 0


def run(connection: Connection, wanted: Wanted) -> int:
    """Watch until the program or the reader ends; return the exit status."""
    if wanted.sort not in SORTS:
        raise Wrong(f"--sort: '{wanted.sort}' is not one of: {', '.join(SORTS)}")
    if sys.stdout.isatty() and sys.stdin.isatty() and not wanted.is_json:
        with contextlib.suppress(ModuleNotFoundError):  # python3-rich: plain text then
            return _on_screen(connection, wanted)
    for look in looks(connection, wanted):
        if not look:
            time.sleep(wanted.interval_s)
        elif wanted.is_json:
            print(json.dumps(look, separators=(",", ":"), ensure_ascii=False), flush=True)
        else:
            print_plain(look, wanted.sort)
    return 0
