# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench plan: a series of measurements from a file."""

import os
import sys
from pathlib import Path

from mr_bench import values
from mr_bench.plan_file import MAX_REPEAT, MAX_STEPS, Plan, parse, steps_of
from mr_bench.series import Journal, Series, SeriesError
from mr_support import options, program
from mr_support.options import Option
from mr_support.text import print_error

USAGE = """\
usage: mr-bench plan [options] FILE
Run all measurements of a plan, starting and stopping its devices under
test. Steps that have a result are skipped, so an interrupted series can be
resumed. The manual page lists the keys of the file.
"""


def complain(text: str, status: int) -> int:
    """Returns the exit status."""
    print_error(f"mr-bench: {text}")
    return status


def program_id() -> str:
    """Identifies the build of mr-bench, by the file system's metadata of its two files."""
    found = [path.stat() for path in (Path(sys.argv[0]), program.companion())]
    return "; ".join(f"{one.st_size} bytes of {one.st_mtime_ns / 1e9:.9f}" for one in found)


def say_end(series: Series) -> int:
    """The exit status."""
    n_left = len(series.steps) - series.n_before - series.n_done - series.n_failed
    n_others = series.journal.count_others({step.name for step in series.steps})
    if not series.is_quiet or series.n_failed:
        print_error(
            f"plan: {series.n_done} steps done, {series.n_before} were already, "
            f"{series.n_failed} failed, {n_left} left"
            f"{'; the same command goes on' if n_left else ''}"
        )
    if not series.is_quiet and not n_left and not series.n_failed:
        print_error(f"plan: mr-bench report {series.journal.folder}/*.json --out report.html")
    if not series.is_quiet and n_others:
        print_error(f"plan: {n_others} results there are of steps that this plan does not have")
    return 1 if series.n_failed or n_left else 0


def run_plan(plan: Plan, is_dry: bool, is_quiet: bool) -> int:
    """The exit status."""
    if plan.count_steps() > MAX_STEPS:
        return complain(f"--repeat {plan.repeat}: more than {MAX_STEPS} steps", 1)
    try:
        journal = Journal(plan.folder, not is_dry)
    except SeriesError as error:
        return complain(str(error), 1)
    try:
        series = Series(plan, list(steps_of(plan)), journal, program_id(), is_quiet)
        if is_dry:
            series.list()
            return 0
        # Devices and prefixes may run it, too: tests of a build that is not installed.
        os.environ["MR_BENCH"] = str(Path(sys.argv[0]).resolve())
        os.environ["MR_FOLDER"] = plan.folder
        series.run()
        return say_end(series)
    except SeriesError as error:
        return complain(str(error), 1)
    finally:
        journal.close()


OPTIONS = [
    Option("dry-run", "", "list the steps and their time without running them"),
    Option("folder", "DIR", "folder for results (default: the plan's)"),
    Option("repeat", "N", "number of rounds (default: the plan's)"),
    Option("quiet", "", "print no progress", letter="q"),
]


def main(words: list[str]) -> int:
    """The exit status."""
    try:
        asked = options.parse(words, USAGE, OPTIONS)
        if asked is None:
            return 0
        given, files = asked
        repeats = [values.whole("repeat", text, 1, MAX_REPEAT) for text in given.get("repeat", [])]
        if len(files) != 1:
            return complain("plan: one FILE is wanted; see mr-bench plan --help", 2)
        plan = parse(files[0], Path(files[0]).read_bytes())
    except OSError as error:
        return complain(f"{error.filename}: {error.strerror}", 2)
    except options.Wrong as error:
        return complain(str(error), 2)
    plan.folder = given.get("folder", [plan.folder])[-1] or plan.folder
    plan.repeat = [plan.repeat, *repeats][-1]
    return run_plan(plan, "dry-run" in given, "quiet" in given)
