# SPDX-License-Identifier: BSD-3-Clause
"""Tables and lines for people, from the objects of the control socket."""

from collections.abc import Iterator, Sequence
from typing import Any

from mr_ctl.client import Object
from mr_support.text import escape

Row = Sequence[Any]
# Members of a worker that are not frame counts, or whose sum means nothing.
NO_SUMS = {"core", "numa_node", "drops", "bursts", "entries", "rounds", "empty_rounds", "sleeps"}


def cell(value: Any) -> str:
    """A number with separators, or text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else escape(str(value))


def print_table(heads: Sequence[str], rows: Sequence[Row]) -> None:
    """Print a table: numbers right-aligned, text left-aligned."""
    lines = [list(heads)] + [[cell(value) for value in row] for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    right = [all(isinstance(row[i], int | float) for row in rows) for i in range(len(heads))]
    for line in lines:
        texts = [
            text.rjust(width) if is_right and rows else text.ljust(width)
            for text, width, is_right in zip(line, widths, right, strict=True)
        ]
        print("  ".join(texts).rstrip())


def total(counts: Object) -> int:
    """Of named counts."""
    return sum(counts.values())


def sums(stats: Object) -> Object:
    """Sums over the workers: the program's own counters, and "drops" by name."""
    found: Object = {}
    drops: dict[str, int] = {}
    for worker in stats["workers"]:
        for name, value in worker.items():
            if name not in NO_SUMS and not name.endswith("_ns"):
                found[name] = found.get(name, 0) + value
        for name, value in worker["drops"].items():
            drops[name] = drops.get(name, 0) + value
    return found | {"drops": drops}


def port_rates(port: Object) -> dict[str, int]:
    """The sums of a port's queues; frames that rules forwarded are separate."""
    rx = [queue["rx"] for queue in port["queues"] if "rx" in queue]
    tx = [queue["tx"] for queue in port["queues"] if "tx" in queue]
    return {
        "rx_frames": sum(queue["delivered"] for queue in rx),
        "rx_bytes": sum(queue["bytes"] for queue in rx),
        "rx_drops": sum(total(queue["drops"]) for queue in rx),
        "tx_frames": sum(queue["accepted"] for queue in tx),
        "tx_bytes": sum(queue["bytes"] for queue in tx),
        "tx_drops": sum(total(queue["drops"]) for queue in tx),
        "device_drops": total(port["device_drops"]),
        "rx_offloaded": sum(queue["offloaded"] for queue in rx),
        "tx_offloaded": port["tx_offloaded"],
    }


def drops(stats: Object) -> dict[tuple[str, str], int]:
    """Frames lost, by place and reason, including zeros."""
    found: dict[tuple[str, str], int] = {}
    for port in stats["ports"]:
        for queue in port["queues"]:
            for way in "rx", "tx":
                for name, n in queue.get(way, {"drops": {}})["drops"].items():
                    key = (port["port"], f"{way} {name}")
                    found[key] = found.get(key, 0) + n
        for name, n in port["device_drops"].items():
            found[(port["port"], f"device {name}")] = n
    for name, n in sums(stats)["drops"].items():
        found[("workers", name)] = n
    return found


def link(port: Object) -> str:
    """up 10000 Mb/s."""
    state = port.get("link")
    if state is None:
        return "-"
    if state["gone"]:
        return "gone"
    speed = f" {state['mbps']} Mb/s" if state["mbps"] else ""
    return f"{'up' if state['up'] else 'down'}{speed}"


def lines_of(value: Any, name: str = "") -> Iterator[str]:
    """A line per number, such as "xdp:eth0 queues 0 rx received 7"."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from lines_of(one, f"{name} {key}".strip())
    elif isinstance(value, list):
        for i, one in enumerate(value):
            port = one.get("port") if isinstance(one, dict) else None
            yield from lines_of(one, port or f"{name} {i}")
    elif isinstance(value, int) and not isinstance(value, bool):
        yield f"{escape(name)} {value}"


def print_stats(stats: Object) -> None:
    for line in lines_of(stats):
        print(line)


PORT_HEADS = ["port", "mode", "link", "rx frames", "rx bytes", "rx drops"] + [
    "tx frames",
    "tx bytes",
    "tx drops",
    "device drops",
]
RULE_HEADS = ["rx offloaded", "tx offloaded"]


def print_ports(stats: Object) -> None:
    rows = [
        [port["port"], port["mode"], link(port), *port_rates(port).values()]
        for port in stats["ports"]
    ]
    # A program without rules does not have their columns.
    heads = PORT_HEADS + (RULE_HEADS if "offload" in stats else [])
    print_table(heads, [row[: len(heads)] for row in rows])


def print_queues(stats: Object) -> None:
    rows: list[Row] = []
    for port in stats["ports"]:
        for i, queue in enumerate(port["queues"]):
            for way, members in (
                ("rx", ["received", "delivered", "offloaded", "passed_to_kernel"]),
                ("tx", ["accepted", "completed", "pending"]),
            ):
                if way in queue:
                    found = queue[way]
                    rest = ", ".join(f"{name} {found[name]:,}" for name in members[1:])
                    rows.append(
                        [port["port"], i, way, found[members[0]], found["bytes"]]
                        + [total(found["drops"]), rest]
                    )
    print_table(["port", "queue", "direction", "frames", "bytes", "drops", "of them"], rows)


def worker_row(worker: Object) -> Row:
    """A worker's counts since the start, or in an interval."""
    time_ns = worker["busy_ns"] + worker["idle_ns"]
    return [
        worker["core"],
        round(100 * worker["idle_ns"] / time_ns, 1) if time_ns else 0.0,
        round(100 * (time_ns - worker["asleep_ns"]) / time_ns, 1) if time_ns else 0.0,
        worker["bursts"],
        worker["entries"],
        round(worker["entries"] / worker["bursts"], 1) if worker["bursts"] else 0.0,
        worker["handed_off"],
        total(worker["drops"]),
    ]


WORKER_HEADS = [
    "core",
    "idle %",
    "awake %",
    "bursts",
    "entries",
    "per burst",
    "handed off",
    "drops",
]


def print_workers(stats: Object) -> None:
    print_table(WORKER_HEADS, [worker_row(worker) for worker in stats["workers"]])


def print_pool(stats: Object) -> None:
    print_table(["pool", "pages or events"], list(stats["pool"].items()))


def print_drops(stats: Object) -> None:
    rows = [[*where, n] for where, n in drops(stats).items() if n]
    if rows:
        print_table(["where", "reason", "frames"], rows)
    else:
        print("no drops")


def print_config(config: Object) -> None:
    print("command     ", escape(" ".join(config["command"])))
    print("log level   ", config["log_level"])
    print("idle        ", config["idle"])
    print("cores       ", ", ".join(str(core) for core in config["cores"]))
    print("pool        ", f"{config['pool_pages']:,} pages of {config['page_bytes']:,} bytes")
    heads = ["port", "mode", "rx queues", "tx queues", "mtu", "segments"]
    print_table(heads, [list(port.values()) for port in config["ports"]])


def print_list(found: Sequence[Object]) -> None:
    rows = [[one[name] for name in ("instance", "program", "version")] for one in found]
    pids = [str(one["pid"]) for one in found]
    print_table(
        ["instance", "program", "version", "pid"],
        [[*row, pid] for row, pid in zip(rows, pids, strict=True)],
    )


def session_row(session: Object) -> Row:
    left = f"{session['left_s']} s" if "left_s" in session else "static"
    texts = [str(session.get(name, "")) for name in ("proto", "inside", "outside", "remote")]
    return [*texts, session.get("state", ""), left, session["out"], session["in"]]


SESSION_HEADS = ["proto", "inside", "outside", "remote", "state", "left", "out", "in"]


def print_sessions(sessions: Sequence[Object]) -> None:
    if sessions:
        print_table(SESSION_HEADS, [session_row(session) for session in sessions])


def print_neighbours(neighbours: Sequence[Object]) -> None:
    rows = [
        [one["side"], one["address"], one.get("mac", ""), one["state"]]
        + [f"{one['age_s']} s" if "age_s" in one else ""]
        for one in neighbours
    ]
    if rows:
        print_table(["side", "address", "mac", "state", "for"], rows)


def print_fdb(entries: Sequence[Object]) -> None:
    rows = [[entry["mac"], entry["port"], f"{entry['age_s']} s"] for entry in entries]
    if rows:
        print_table(["address", "port", "last seen"], rows)


# Sections of "show": how to print each, and its member of the statistics.
SECTIONS = {
    "stats": (print_stats, None),
    "ports": (print_ports, "ports"),
    "queues": (print_queues, "ports"),
    "workers": (print_workers, "workers"),
    "pool": (print_pool, "pool"),
    "drops": (print_drops, None),
    "config": (print_config, None),
}
