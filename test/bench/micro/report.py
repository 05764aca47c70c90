# SPDX-License-Identifier: BSD-3-Clause
"""Documents of micro-benchmarks for people, as text."""
from __future__ import annotations

import textwrap
from typing import Any

from micro import goals

Document = dict[str, Any]

BUILDS = ("Millrace is linked statically, and looks for AVX2 and AVX-512 at run time; its calls are not "
          "inlined, except for single pages and bursts of a constant size up to 16. rte_mempool is "
          "inlined, compiled for the -march among the flags. ./mr bench mem --native compiles both "
          "for this machine.")
FEW_CORES = ("So few cores show the first points of the curves over cores (B05, B12, B13, B19), "
             "one pipeline alone in B14, and in B16 beyond as many threads as cores only what "
             "taking turns costs: nothing of many threads or pipelines at once on one depot, of "
             "several last-level caches, or of NUMA nodes.")
ONE_CORE = ("One core: rows of several threads show what taking turns costs, not what sharing "
            "costs.")


def limits(n_cores: int) -> str:
    """What so few cores cannot show; empty if there are enough."""
    return ONE_CORE if n_cores < 2 else FEW_CORES if n_cores < 8 else ""


def plural(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def cores_line(document: Document) -> str:
    m = document["machine"]
    return (f"{m['cpu']}, {document['cores_used']} of {m['cores']} cores, governor "
            f"{m['governor']}, load {m['load']}")


def text_head(document: Document) -> str:
    m = document["machine"]
    lines = [f"mr bench {document['command']}, millrace {m['millrace']}, {m['date']}",
             cores_line(document),
             f"{m['kernel']}, huge pages of 2 MiB: {m['huge_pages']}, free "
             f"{m['huge_pages_free']}",
             f"compiler {m['compiler']}, flags {m['flags']}", BUILDS,
             f"no DPDK rows: {document['why_no_dpdk']}" if document["why_no_dpdk"] else m["dpdk"],
             document["limits"]]
    return "\n".join(line for line in lines if line) + """

ns: median by operation; +-: median distance to it; the ratio, with its 95 %
confidence interval, is a variant's time by that of the first of ours; 7/9: 7 samples of 9
count, the others were disturbed. Counts are of all runs, warm-up included."""


def text_variant(variant: dict[str, Any]) -> str:
    line = f"  {variant['name']:34} "
    if "why_not" in variant:
        return line + f"not run: {variant['why_not']}"
    if "ns" not in variant:
        return line + "no sample"
    ns = variant["ns"]
    line += f"{ns['median']:9.3f} ns +-{ns['mad']:<7.3f}"
    if "ratio_to_ours" in variant:
        r = variant["ratio_to_ours"]
        line += f" x{r['value']:<6.2f} ({r['low']:.2f}..{r['high']:.2f})"
    line += (f"  min {ns['min']:.3f}  {ns['n']}/{variant['samples']}"
             f"{' noisy' if variant['noisy'] else ''}")
    # Keep a name and its value on one line.
    counts = " ".join(f"{name}\0{value:.10g}" for name, value in variant["counts"].items())
    wrapped = textwrap.wrap(counts, 79, initial_indent=" " * 12, subsequent_indent=" " * 12,
                            break_long_words=False, break_on_hyphens=False)
    return "\n".join([line, *wrapped]).replace("\0", " ")


def text_row(row: goals.Row) -> str:
    return "\n".join([f"\n{row['workload']} {row['title']}: {row['name']}  [by {row['unit']}, "
                      f"{plural(row['threads'], 'thread')}]", *map(text_variant, row["players"])])


def text_goal(goal: dict[str, Any]) -> str:
    unit = f"{goal['unit']:2}"
    sign = {"most": "<=", "least": ">="}.get(goal.get("limit_is", ""), "")
    limit = f"{sign} {goal['limit']:4g} {unit}" if sign else " " * 8 + unit
    line = f"  {goal['goal']:38} {limit}"
    if "measured" not in goal:
        return f"{line}  {goal['state']}"
    m = goal["measured"]
    line += f"  {m['value']:8.3f}"
    if m["low"] < m["high"]:
        line += f" ({m['low']:.2f}..{m['high']:.2f})"
    state = "MISSED" if goal["state"] == "missed" else goal["state"]
    return (f"{line}  {state}{', within noise' if goal['within_noise'] else ''}\n"
            f"{'':42}{goal['workload']}/{goal['row']}: {goal['player']}")


def median_of(document: Document, row: dict[str, Any], name: str) -> float:
    """The variant that an entry of best_of_dpdk is about."""
    return next(p["ns"]["median"] for r in document["rows"]
                if (r["workload"], r["name"]) == (row["workload"], row["row"])
                for p in r["players"] if p["name"] == name)


def slower_rows(document: Document) -> list[dict[str, Any]]:
    """An entry with both times, and whether it is within noise."""
    return [{**row, "ns": median_of(document, row, row["player"]),
             "ours_ns": median_of(document, row, row["best_of_ours"]),
             "noise": "within noise" if row["ratio_to_ours"]["high"] >= 1 else ""}
            for row in document["best_of_dpdk"]["slower"]]


def slower_head(slower: list[dict[str, Any]], n_rows: int) -> str:
    """How many rows DPDK wins; a row counts once, however many variants it has."""
    lost = [row for row in slower if row["ns"] < row["ours_ns"]]
    far = [row for row in lost if row["ns"] * 1.15 < row["ours_ns"]]
    n_frags = sum(row["workload"] == "B09" for row in far)
    return (f"Rows in which the best of DPDK is faster than the first of ours: {len(slower)} of "
            f"{n_rows} with both.\nIt is faster than the best of ours in {len(lost)}, in "
            f"{len(far)} by more than 15 %: in {n_frags} with objects of one\nsize against frags "
            f"of any size (B09), and in {len(far) - n_frags} others.")


def text_end(document: Document, is_whole: bool) -> str:
    lines = []
    if document["goals"]:
        lines.append(f"\nGoals{'' if is_whole else ' that this run covers'}, each in the row "
                     "that is the worst for it, pipelines in the median row:")
        lines += map(text_goal, document["goals"])
    slower = slower_rows(document)
    if document["best_of_dpdk"]["rows"]:
        lines.append("\n" + slower_head(slower, document["best_of_dpdk"]["rows"]))
    for row in slower:
        r = row["ratio_to_ours"]
        lines.append(f"  {row['workload']}/{row['row']}: x{r['value']:.2f} ({r['low']:.2f}.."
                     f"{r['high']:.2f}){', ' + row['noise'] if row['noise'] else ''}\n"
                     f"      {row['player']} {row['ns']:.3f} ns; our best is "
                     f"{row['best_of_ours']} with {row['ours_ns']:.3f}")
    variants = [p for row in document["rows"] for p in row["players"]]
    n_noisy = sum(p["noisy"] for p in variants)
    last = (f"\n{len(document['rows'])} rows; {sum(p['disturbed'] for p in variants)} of "
            f"{sum(p['samples'] for p in variants)} samples put aside as disturbed")
    if n_noisy:
        last += (f"; {n_noisy} figures are noisy: too few clean samples were to be had, all "
                 "count")
    lines.append(last + ("" if document["complete"] else "; ended early"))
    return "\n".join(lines)


def text(document: Document, is_whole: bool) -> str:
    """The whole report."""
    return "\n".join([text_head(document), *map(text_row, document["rows"]),
                      text_end(document, is_whole)]) + "\n"
