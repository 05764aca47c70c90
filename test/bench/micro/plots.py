# SPDX-License-Identifier: BSD-3-Clause
"""Charts of micro-benchmarks as SVG files.

Rows of one plot are points of lines, by their x; other rows have no chart. The
legend stands in the order of the lines' right ends, and repeats colour, dashes
and marks: a chart must be readable without seeing colours.
"""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402 pylint: disable=wrong-import-position

# By side. Okabe and Ito's, which colour-blind readers can tell apart.
COLOURS = {"ours": "#0072b2", "dpdk": "#d55e00", "kernel": "#009e73", "plain": "#555555",
           "malloc": "#cc79a7"}
DASHES = ("-", "--", ":", "-.")

Series = dict[str, list[tuple[float, float]]]


def value_of(variant: dict[str, Any], count: str) -> float | None:
    """The time, or a figure beside it."""
    if "ns" not in variant:
        return None
    return variant["counts"].get(count) if count else variant["ns"]["median"]


def draw_lines(axes: Any, rows: list[dict[str, Any]], count: str) -> None:
    series: Series = {}
    sides: dict[str, str] = {}
    for row in rows:
        best: dict[str, float] = {}
        for variant in row["players"]:
            value = value_of(variant, count)
            if not value:
                continue
            series.setdefault(variant["name"], []).append((row["x"], value))
            sides[variant["name"]] = variant["side"]
            if variant["side"] == "dpdk":
                best["best of DPDK"] = min(value, best.get("best of DPDK", value))
        for name, value in best.items() if not count else ():
            series.setdefault(name, []).append((row["x"], value))
            sides[name] = "dpdk"
    ranks: dict[str, int] = {}
    # Of DPDK's many the best is drawn, and the others palely behind it.
    for name in sorted(series, key=lambda n: -series[n][-1][1]):
        side = sides[name]
        is_pale = side == "dpdk" and name != "best of DPDK" and "best of DPDK" in series
        rank = ranks[side] = ranks.get(side, -1) + (not is_pale)
        x, y = zip(*sorted(series[name]))
        axes.plot(x, y, color=COLOURS[side], linestyle=DASHES[rank % len(DASHES)], marker="o",
                  markersize=4, linewidth=2.6 if side == "ours" else 1.6,
                  alpha=0.3 if is_pale else 1, label=f"{name}: {y[-1]:.4g}", gid=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel(rows[0]["x_name"])
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.grid(True, color="#e4e4e4")
    axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), frameon=False)


def write(document: dict[str, Any], rows: list[dict[str, Any]], count: str, what: str,
          folder: Path) -> None:
    """One chart, named after the plot."""
    row, machine = rows[0], document["machine"]
    words = " ".join(filter(None, [row["plot"], count]))
    if not any(value_of(p, count) for r in rows for p in r["players"]):
        return
    figure, axes = plt.subplots(figsize=(9.4, 4.8))
    unit = f"ns by {row['unit']}" if not count else \
        f"{row['unit']}s {'in flight' if count == 'in_flight' else count}"
    draw_lines(axes, rows, count)
    axes.set_ylabel(unit)
    figure.suptitle(f"{row['workload']} {row['title']}: {words}", fontweight="bold")
    axes.set_title(f"{what}; {machine['cpu']}, {machine['cores']} cores; {machine['date'][:10]}",
                   fontsize="small", color="#555555")
    name = re.sub(r"[^A-Za-z0-9.]", "-", f"{row['workload']}-{words[:90]}")
    figure.savefig(folder / f"{name}.svg", bbox_inches="tight")
    plt.close(figure)


def write_all(document: dict[str, Any], about: dict[str, dict[str, Any]], folder: Path) -> None:
    """about: of each workload, what it is."""
    plt.rcParams.update({"svg.hashsalt": "millrace", "font.size": 9})
    charts: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in document["rows"]:
        if "plot" in row:
            charts.setdefault((row["workload"], row["plot"]), []).append(row)
    for (workload, plot), rows in charts.items():
        what = about[workload]["what"]
        write(document, rows, "", what, folder)
        count = about[workload]["plot_counts"].get(plot)
        if count:
            write(document, rows, count, what, folder)
