#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""./mr bench mempool: DPDK's own mempool_perf_autotest on our handler.

The distribution's dpdk-test runs it once per round and handler, in turn, with
that handler below all of its mempools: without a cache, with rte_mempool's, and
with one that the caller owns. Rows are shortened (test/dpdk/shim.c); what is
timed is as the distribution compiled it. A row is a case: cores, bulk of get
and of put, objects kept. Its figure is the median of all its samples, in ns per
object got and put back, and on two cores that of the two together.
"""
import collections
import math
import os
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "dpdk"))

# pylint: disable=wrong-import-position
import command  # noqa: E402
import dpdk  # noqa: E402
from topology import BenchError  # noqa: E402

OURS = "millrace"
THEIRS = ["ring_mp_mc", "ring_mt_rts", "ring_mt_hts", "stack", "lf_stack"]
# All rows, and the start of the program.
N_ROWS, START_S = 720, 60


def parse():
    parser = command.parser("mempool", __doc__, (
        ("rounds", 3, 3, "of all handlers in turn"),
        ("row-ms", 50, 50, "how long a row takes; as it is, 5000")),
        is_nice=True)
    parser.add_argument("--handlers", default=",".join(THEIRS),
                        help="to compare with")
    parser.add_argument("--all", action="store_true",
                        help="each row, not only the summary")
    return command.parse(parser)


def cache_of(row):
    """Which cache is used in front of the handler."""
    if "user-owned" in row["section"]:
        return "user-owned"
    return "rte_mempool's" if row["cache"] else "none"


def case_of(row):
    """The key of a case, the same for all handlers: another pool without a
    cache counts as one, and on two cores all are for two."""
    return (cache_of(row), row["cores"], row["get"], row["put"], row["keep"],
            row["constant"])


def measure(args, handlers):
    """Return {case: {handler: [objects/s]}}.

    A handler of DPDK that fails its own test is left out of all rounds.
    """
    samples = collections.defaultdict(lambda: collections.defaultdict(list))
    for i in range(args.rounds):
        with dpdk.HugePages() as pages:
            if not pages.are_there(dpdk.NEEDED_MIB):
                print("no huge pages to be had: 4 KiB pages", file=sys.stderr)
            # The order alternates, so that a drift affects all equally.
            for handler in handlers[i % len(handlers):] + \
                    handlers[:i % len(handlers)]:
                if handler not in handlers:
                    continue
                print(f"round {i + 1} of {args.rounds}: {handler}",
                      file=sys.stderr, flush=True)
                status, output = dpdk.autotest(
                    "mempool_perf_autotest", pages, handler,
                    N_ROWS * args.row_ms / 1000 * 3 + START_S,
                    LD_PRELOAD=str(dpdk.SHIM), MR_SHIM_HANDLER=handler,
                    MR_SHIM_ROW_MS=str(args.row_ms))
                rows = dpdk.rows(output, args.row_ms)
                if status != 0 or not rows:
                    leave_out(handler, handlers, output)
                    continue
                for row in rows:
                    samples[case_of(row)][handler].append(row["rate"])
    return samples


def leave_out(handler, handlers, output):
    """Continue without a handler on which dpdk-test failed, unless it is ours.
    """
    handlers.remove(handler)
    if handler == OURS or len(handlers) == 1:
        raise BenchError(f"dpdk-test failed on {handler}:\n{output[-2000:]}")
    print(f"dpdk-test failed on {handler}, which is left out: "
          f"{' '.join(output[-80:].split())}", file=sys.stderr)


def table(samples, handlers):
    """One dict per case: ns per object and core, by handler."""
    found = []
    for case, by_handler in sorted(samples.items()):
        ns = {handler: 1e9 * case[1] / statistics.median(by_handler[handler])
              for handler in handlers}
        best = min((h for h in handlers if h != OURS), key=ns.get)
        found.append({
            **dict(zip(("cache", "cores", "get", "put", "keep", "constant"),
                       case)),
            "ns": ns, "best_other": best, "speed_up": ns[best] / ns[OURS],
            "n_samples": {h: len(by_handler[h]) for h in handlers}})
    return found


def geometric(values):
    return math.exp(statistics.fmean(math.log(v) for v in values))


def show_rows(rows, handlers):
    print(f"{'cache':14} cores get put keep const  " +
          " ".join(f"{h:>11}" for h in handlers) + "  against best")
    for row in rows:
        print(f"{row['cache']:14} {row['cores']:5} {row['get']:3} "
              f"{row['put']:3} {row['keep']:4} {row['constant']:5}  " +
              " ".join(f"{row['ns'][h]:11.2f}" for h in handlers) +
              f"  {row['speed_up']:6.2f} x {row['best_other']}")


def show_summary(rows, handlers):
    print("\nns per object got and put, geometric mean of the cases; and how "
          "many times as fast\nas the best other handler of each case: lowest, "
          "mean, highest")
    print(f"{'cache':14} cores cases  " +
          " ".join(f"{h:>11}" for h in handlers) + "   low  mean  high")
    for cache in ("none", "rte_mempool's", "user-owned"):
        for cores in sorted({row["cores"] for row in rows}):
            part = [row for row in rows
                    if (row["cache"], row["cores"]) == (cache, cores)]
            gains = [row["speed_up"] for row in part]
            print(f"{cache:14} {cores:5} {len(part):5}  " +
                  " ".join(f"{geometric(r['ns'][h] for r in part):11.2f}"
                           for h in handlers) +
                  f" {min(gains):5.2f} {geometric(gains):5.2f} "
                  f"{max(gains):5.2f}")


def main():
    args = parse()
    why = dpdk.why_not("dpdk-test")
    if not why and not dpdk.PLUGIN.exists():
        why = f"{dpdk.PLUGIN} is not built (is libdpdk there?)"
    if why:
        raise BenchError(why)
    handlers = [OURS] + [h for h in args.handlers.split(",") if h != OURS]
    result = command.document(rounds=args.rounds, row_ms=args.row_ms)
    if args.nice:
        os.nice(args.nice)
    samples = measure(args, handlers)
    rows = table(samples, handlers)
    if args.all:
        show_rows(rows, handlers)
    show_summary(rows, handlers)
    command.write_json(args.json, result | {"rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(command.run("mempool", main))
