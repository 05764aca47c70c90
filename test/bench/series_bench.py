#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench series: throughput and latency of devices under test.

mr-l2fwd, mr-nat, dpdk-testpmd, the kernel's bridge and its NAT between two
namespaces, measured by mr-bench by the plan series.yaml; a report, a table and
a document of each step. Interrupted, it goes on where it was. Needs root.
"""
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys

import command
import contestants as who
import nat_wire
from topology import Topology, call

HERE = pathlib.Path(__file__).resolve().parent
NS_PER_US = 1000
# Of the rows of a latency document: what its columns are called.
LATENCY = {"latency-p50-at-100%": "p50", "latency-p99-at-100%": "p99"}


def parse():
    parser = command.parser("series", __doc__,
                            (("repeat", 3, 1, "rounds of all devices"),))
    parser.add_argument("--folder", help="of results; default: "
                        "BUILD/series")
    parser.add_argument("--dry-run", action="store_true",
                        help="list the steps and their time")
    parser.add_argument("--plan", default=str(HERE / "series.yaml"))
    args = command.parse(parser)
    args.folder = pathlib.Path(args.folder or args.build / "series").resolve()
    return args


def done(folder):
    """The documents of the steps that ended well."""
    journal = folder / "plan.journal"
    if not journal.exists():
        return []
    steps = json.loads(journal.read_text())["steps"]
    return [path for path in sorted(folder.glob("*.json"))
            if steps.get(path.stem, {}).get("status") == 0]


def builds(args):
    """What the programs are that are measured and that measure, and the plan,
    whose steps may have had other names."""
    programs = ("apps/bench/mr-bench", "apps/bench/mr-bench-engine",
                "apps/l2fwd/mr-l2fwd", "apps/nat/mr-nat",
                "lib/link/libmillrace.so.0")
    found = [(args.build / name).stat() for name in programs]
    found.append(pathlib.Path(args.plan).stat())
    return [[one.st_size, one.st_mtime_ns] for one in found]


def forget_other_builds(args):
    """The plan knows mr-bench alone; of another device nothing is done."""
    path = args.folder / "builds"
    now = json.dumps(builds(args))
    if path.exists() and path.read_text() != now:
        (args.folder / "plan.journal").unlink(missing_ok=True)
    path.write_text(now)


def documents(folder):
    """(device, measure, document) of each step that was done."""
    for path in done(folder):
        device, measure = path.stem.split("+")[:2]
        yield device, measure, json.loads(path.read_text(encoding="utf-8"))


def spread(rows, scale, digits, bound):
    """Median and all that there was; bound: what a row that the tester limited
    says of the device."""
    values = [row["value"] / scale for row in rows]
    mark = (bound + " " if any(row["is_limited_by_tester"] for row in rows)
            else "")
    return (f"{mark}{statistics.median(values):.{digits}f} "
            f"({min(values):.{digits}f} to {max(values):.{digits}f})")


def rows_of(folder):
    """Rows by device and column: a frame size, or a percentile."""
    found = {}
    for device, measure, document in documents(folder):
        for row in document["rows"]:
            column = (row["frame_bytes"] if measure == "throughput" else
                      LATENCY.get(row["goal"]))
            if column and row["value"] > 0:
                found.setdefault(device, {}).setdefault(column, []).append(row)
    return found


def table(folder):
    found = rows_of(folder)
    sizes = sorted({column for columns in found.values() for column in columns
                    if isinstance(column, int)})
    times = list(LATENCY.values())
    lines = ["| device | " + " | ".join(
        [f"{size + 4} B, Mpps" for size in sizes] +
        [f"{column}, µs" for column in times]) + " |",
             "|---|" + "---|" * (len(sizes) + len(times))]
    for device, columns in found.items():
        cells = [spread(columns[column], *how) if column in columns else ""
                 for column, how in
                 [(size, (1e6, 3, "≥")) for size in sizes] +
                 [(time, (NS_PER_US, 1, "≤")) for time in times]]
        lines.append(f"| {device} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def environment(args, topology, folder):
    config = folder / "nat.yaml"
    config.write_text(nat_wire.NAT_YAML, encoding="ascii")
    return dict(os.environ, MRS_TESTER=topology.namespaces["g"],
                MRS_DUT=topology.namespaces["f"], MRS_BUILD=str(args.build),
                MRS_DEVICE=str(HERE / "series_device.py"),
                MRS_NAT_CONFIG=str(config))


def run_plan(args, env):
    """The plan's exit status; it draws its own progress."""
    argv = [args.bench, "plan", "--folder", str(args.folder), "--repeat",
            str(args.repeat)]
    if args.dry_run:
        argv.append("--dry-run")
    with subprocess.Popen([*argv, args.plan], env=env) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                # From a terminal it got that, too; from kill it did not.
                process.send_signal(signal.SIGINT)


def write_report(args):
    """The page and the table, from what is there."""
    files = [str(path) for path in done(args.folder)]
    if not files:
        return
    call(args.bench, "report", *files, "--out",
         str(args.folder / "report.html"), "--title",
         "Devices under test, one beside the other")
    text = table(args.folder)
    (args.folder / "table.md").write_text(text + "\n", encoding="utf-8")
    print(f"\n{text}\n\n{args.folder}/report.html, table.md, and a document "
          "of each step")


def measure(args):
    if args.dry_run:
        return run_plan(args, dict(os.environ))
    args.folder.mkdir(parents=True, exist_ok=True)
    forget_other_builds(args)
    with who.HugePages() as huge_pages, Topology(is_two=True) as topology:
        huge_pages.top_up()
        status = run_plan(args, environment(args, topology, args.folder))
    write_report(args)
    return status


def main():
    args = parse()
    if not args.dry_run:
        command.need_root()
    return measure(args)


if __name__ == "__main__":
    sys.exit(command.run("series", main))
