# SPDX-License-Identifier: BSD-3-Clause
"""What ./mr bench mem, flow and fwd do: choose rows, let mr-micro measure
them, and report. mr-micro prints a line of JSON with the samples of each row.
"""
from __future__ import annotations

import argparse
import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "apps/bench/front"))

# pylint: disable=wrong-import-position
from micro import goals, report, stats  # noqa: E402
from mr_bench import machine  # noqa: E402

GOALS_LIMIT_S = 660
LINE_S = 10  # without a terminal (in a log), a line of progress now and then


class MicroError(Exception):
    """A usage error in one line; the second argument is the exit status."""


class Parser(argparse.ArgumentParser):
    """Print an error in one line."""

    def error(self, message: str) -> NoReturn:
        raise MicroError(message, 2)


def parser(command: str) -> argparse.ArgumentParser:
    p = Parser(
        prog=f"mr bench {command}", allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="NAME is a workload, as B06, or a part of a row's name, as B06/from=depot;\n"
               "without any, all are run.")
    add = p.add_argument
    add("names", nargs="*", metavar="NAME")
    add("--list", action="store_true", help="say what could be run, and run nothing")
    add("--samples", metavar="N", help="per variant and row (31)")
    add("--sample-ms", metavar="MS", help="length of one (50)")
    add("--quick", action="store_true", help="7 samples of 5 ms: a look, not a result")
    add("--goals", action="store_true", help="the rows of the goals, in 11 minutes at most")
    add("--only", metavar="SIDES", help="of ours,dpdk,kernel,plain,malloc; as ours,dpdk")
    add("--only-ours", action="store_const", dest="only", const="ours",
        help="the same as --only ours")
    add("-c", "--cores", metavar="LIST", help="cores to use in that order, as 1,3-5")
    add("-j", "--json", action="store_true", help="one JSON object on stdout, and no table")
    add("--out", metavar="DIR", type=Path, help="write report.json and report.txt there")
    add("-q", "--quiet", action="store_true", help="no progress on stderr")
    return p


def engine_words(program: str, command: str, options: argparse.Namespace) -> list[str]:
    """mr-micro's command line, without the rows; it checks the values."""
    quick = options.quick
    words = [program, command,
             "--samples", options.samples or ("7" if quick else "15" if options.goals else "31"),
             "--sample-ms",
             options.sample_ms or ("5" if quick else "20" if options.goals else "50")]
    for name in ("only", "cores"):
        if getattr(options, name):
            words += [f"--{name}", getattr(options, name)]
    for pattern in goals.UNWANTED_PLAYERS if options.goals else ():
        words += ["--without", pattern]
    return words


def is_asked_for(row: dict[str, Any], options: argparse.Namespace) -> bool:
    name = goals.name_of(row)
    if options.goals and not goals.is_wanted(name):
        return False
    return not options.names or any(asked == row["workload"] or asked in name
                                    for asked in options.names)


def listed(words: list[str]) -> list[dict[str, Any]]:
    done = subprocess.run([*words, "--list"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)  # it has printed the reason
    return [json.loads(line) for line in done.stdout.splitlines()]


def print_list(rows: list[dict[str, Any]]) -> None:
    before = ""
    for row in rows:
        if row["workload"] != before:
            print(f"{row['workload']:4} {row['title']:14} {row['what']} ({row['source']})")
            before = row["workload"]
        print(f"  {goals.name_of(row)}")


class Progress:
    """Print on stderr which row is measured, and the remaining time."""

    def __init__(self, rows: list[dict[str, Any]], is_quiet: bool) -> None:
        self.rows, self.is_quiet = rows, is_quiet
        self.is_terminal = sys.stderr.isatty()
        self.start_s, self.line_s = time.monotonic(), 0.0
        self.n_jobs, self.n_done = sum(row["players"] for row in rows), 0

    def begin(self, i: int) -> None:
        now_s = time.monotonic() - self.start_s
        if self.is_quiet or i >= len(self.rows) or not (
                self.is_terminal or now_s >= self.line_s + LINE_S):
            return
        self.line_s = now_s
        left = int(now_s / self.n_done * (self.n_jobs - self.n_done)) if self.n_done else 0
        line = (f"{self.rows[i]['workload']} {self.rows[i]['name']}, {self.n_done} of "
                f"{self.n_jobs}, {left // 60}:{left % 60:02} left")
        print(f"\r\033[K{line}" if self.is_terminal else line, file=sys.stderr, flush=True,
              end="" if self.is_terminal else "\n")

    def end(self, i: int) -> None:
        if not self.is_quiet and self.is_terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        self.n_done += self.rows[i]["players"]


@contextmanager
def engine(words: list[str]) -> Iterator[subprocess.Popen[str]]:
    """Pass signals on: at the first, mr-micro ends soon, with what there is;
    at the second, at once."""
    # A group of its own, or Ctrl-C in a terminal would reach it twice.
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True,
                          start_new_session=True) as process:
        def pass_on(number: int, _frame: object) -> None:
            process.send_signal(number)
        before = [(n, signal.signal(n, pass_on)) for n in (signal.SIGINT, signal.SIGTERM)]
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
            for number, handler in before:
                signal.signal(number, handler)


def measure(words: list[str], rows: list[dict[str, Any]], options: argparse.Namespace,
            document: dict[str, Any]) -> int:
    """Fill the document, print its text on stdout, return the exit status."""
    progress = Progress(rows, options.quiet)
    with engine(words) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said = json.loads(line)
            if "built" in said:
                cores = said["cores"]
                # load: before the first sample
                document |= {"machine": machine.look(said["built"], "mr bench"),
                             "cores_used": len(cores), "limits": report.limits(len(cores)),
                             "why_no_dpdk": said["why_no_dpdk"]}
                document["machine"]["governor"] = machine.governor(cores)
                if not options.json:
                    print(report.text_head(document), flush=True)
                progress.begin(0)
            elif "complete" in said:
                document.update(said)
            else:
                said.pop("what")
                row = stats.evaluated(said)
                progress.end(len(document["rows"]))
                document["rows"].append(row)
                if not options.json:
                    print(report.text_row(row), flush=True)
                progress.begin(len(document["rows"]))
    return process.returncode


def write_out(document: dict[str, Any], is_whole: bool, folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
        (folder / "report.json").write_text(json.dumps(document, indent=1) + "\n")
        (folder / "report.txt").write_text(report.text(document, is_whole))
    except OSError as why:
        raise MicroError(f"--out: {why.filename}: {why.strerror}", 1) from why


def run(program: str, command: str, words: list[str]) -> int:
    options = parser(command).parse_args(words)
    line = engine_words(program, command, options)
    rows = [row for row in listed(line) if is_asked_for(row, options)]
    if not rows:
        raise MicroError("no row has such a name" +
                         (" and a variant of --only" if options.only else "") +
                         f"; mr bench {command} --list has them", 2)
    if options.list:
        print_list(rows)
        return 0
    if options.goals:
        line += ["--limit", str(GOALS_LIMIT_S)]
    document: dict[str, Any] = {"v": 1, "command": command, "complete": False, "rows": []}
    status = measure([*line, *map(goals.name_of, rows)], rows, options, document)
    if status != 0:
        return status
    document["machine"]["command"] = f"mr bench {command} {shlex.join(words)}"
    document["goals"] = goals.look(document["rows"], command, options.goals)
    document["best_of_dpdk"] = goals.slower(document["rows"])
    if options.json:
        print(json.dumps(document, indent=1))
    else:
        print(report.text_end(document, options.goals))
    sys.stdout.flush()
    if options.out is not None:
        write_out(document, options.goals, options.out)
    return 0


def main(program: str, command: str, words: list[str]) -> int:
    """Run it; the exit status. program: the path of mr-micro."""
    try:
        return run(program, command, words)
    except MicroError as why:
        print(f"mr bench: {why.args[0]}", file=sys.stderr)
        return int(why.args[1])
    except OSError as why:
        sys.stdout = None  # type: ignore[assignment]
        print(f"mr bench: cannot write to stdout: {why.strerror}", file=sys.stderr)
        return 1
