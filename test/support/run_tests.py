#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run tests and count what they did: ./mr test [all | changed | SUITE[:NAME]...].

Without a word, what takes minutes: unit tests, each driver, a scenario of each
feature on real interfaces, installation. `all`: everything, that is, each check
in each build that can find something with it. Suites that wait (for interfaces,
processes, clocks) run on the programs as they are installed; meanwhile, the
others run under AddressSanitizer and UBSan, and of those the programs that
start threads once more under ThreadSanitizer. `changed` runs what the files
that differ from the main branch can break, and names those that no test is
known for; SUITE:NAME are tests of a suite whose names begin so.

meson.build says which tests `./mr test` leaves out (suite `long`), and which
stand there for a selection of others, and are no part of `all` (`short`).

A test that needs what the machine lacks is skipped and says why. Limits of time
grow with the share of the CPU time that the host takes, which is measured
first. The last line of output counts passed, failed and skipped tests.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import host
import results
from command import Commands
from results import Result

TOP = Path(__file__).resolve().parents[2]
# meson's options for each build; "" is the build of ./mr build. Compiling takes
# as long as the tests, so debugging information is limited to line numbers.
# Warnings are errors in the build of ./mr build alone.
QUICK = ["-Dbuildtype=plain", "-Doptimization=1", "-Ddebug=true",
         "-Dc_args=-g1", "-Dwerror=false"]
BUILDS = {
    "asan": ["-Db_sanitize=address,undefined", *QUICK],
    "tsan": ["-Db_sanitize=thread", *QUICK],
    "libfuzzer": ["-Db_sanitize=address,undefined", "-Dlibfuzzer=true",
                  *QUICK, "-Ddrivers=null,intel,pcap,virtio"],
}


class Suite(NamedTuple):
    """How a suite is run."""

    build: str = ""
    of_meson: tuple[str, ...] = ()  # its own name
    lane: str = "works"  # one of LANES
    is_short: bool = False  # run by `./mr test`
    time_factor: float = 1.0
    n_at_once: int = 0  # meson's own number

    @property
    def waits(self):
        """Whether it waits more than it works."""
        return self.lane != "works"


# The lanes run at the same time, the suites of a lane one after another. While
# several lanes run, each has its niceness: tests that compute yield the cores
# to tests that wake up, and so do emulated machines, which wait for longer.
LANES = {"waits": 0, "boots": 5, "works": 10}
# In the order in which they run. A suite that is not listed is in lane "waits".
# `plain` has tests of unit and conformance in which a sanitizer would find
# nothing, or that cannot run with one.
SUITES = {
    "style": Suite(),
    "unit": Suite("asan", is_short=True),
    "conformance": Suite("asan", is_short=True),
    "nat": Suite("asan", is_short=True),
    "fuzz": Suite("asan"),
    "python": Suite("asan"),
    "plain": Suite(is_short=True),
    "rust": Suite(),
    "tsan": Suite("tsan", ("unit", "conformance", "fuzz")),
    "netns": Suite(lane="waits", is_short=True, time_factor=2, n_at_once=4),
    "demo": Suite(lane="waits", is_short=True),
    "install": Suite(lane="waits", is_short=True),
    "gen": Suite(lane="waits", time_factor=2, n_at_once=3),
    "package": Suite(lane="waits"),
    "dpdk": Suite(lane="waits"),
    "faults": Suite(lane="waits"),
    "guest": Suite(lane="boots", is_short=True, time_factor=3, n_at_once=3),
    "libfuzzer": Suite("libfuzzer", ("fuzz",)),
}
# Sanitizers slow a test down by about this factor.
SANITIZER_TIME_FACTOR = 4.0
# A suite that takes longer than this hangs, and is ended.
SUITE_LIMIT_S = 1200
# More failures than this are not run again.
MAX_AGAIN = 3
OTHER = Suite(lane="waits")
# A program that calls one of these starts threads.
STARTS_THREADS = {"pthread_create", "mr_workers_start"}
# The tests that a changed file can break: a suite, or suite:PREFIX for those of
# its tests whose names begin with PREFIX. The first line that matches counts.
# "style" always runs, and alone for the files of the first line.
BREAKS = [
    (r"docs/|.*\.md$|\.|LICENSE$|test/style/|test/mutation/"
     r"|test/support/(?:run_tests|results|command)\.py", ""),
    (r"bindings/python/|examples/python/",
     "python netns:python netns:meta netns:control netns:examples"),
    (r"meson(?:\.build|_options\.txt)$|mr$|config/|apps/[^/]*$|lib/[^/]*$"
     r"|test/install/", "install"),
    (r"examples/", "install netns:examples"),
    (r"test/(?:unit/)?meson\.build|drivers/[^/]*$",
     "unit:base/ conformance:null conformance:pair"),
    (r"lib/include/|lib/base/|test/support/.*\.h",
     "unit:base/ unit:pool/pool unit:port/ conformance:null conformance:pair "
     "rust"),
    (r"test/support/", "unit"),
    (r"(?:lib|test/unit)/flow/", "unit:flow/ unit:nat/"),
    (r"(?:lib|test/unit)/(\w+)/",
     r"unit:\1/ conformance:null conformance:pair"),
    (r"drivers/intel/", "unit:intel/ unit:model/ conformance:igb "
                        "conformance:e1000e"),
    (r"drivers/virtio/", "unit:virtio/ unit:model/virtio conformance:virtio "
                         "guest:vhost"),
    (r"drivers/dpdk/", "plain:dpdk-"),
    (r"drivers/(\w+)/", r"unit:\1/ conformance:\1"),
    (r"plugins/", "dpdk"),
    (r"bindings/rust/", "rust"),
    (r"apps/bench/", "unit:bench/ gen"),
    (r"apps/demo/|test/demo/", "demo"),
    (r"apps/nat/", "unit:nat/ nat"),
    (r"apps/support/.*\.py", "gen unit:bench/ unit:devices/"),
    (r"apps/support/", "unit:support/ unit:nat/cli unit:l2fwd/cli"),
    (r"apps/(\w+)/", r"unit:\1/"),
    (r"test/bench/micro/", "unit:bench/micro plain:bench/micro"),
    (r"test/bench/nat_", "plain:bench/nat"),
    (r"test/bench/", "unit:bench/micro plain:bench/"),
    (r"test/model/", "unit:model/ conformance:igb conformance:virtio"),
    (r"test/conformance/", "conformance:null conformance:pair "
                           "conformance:virtio"),
    (r"test/(nat|fuzz|faults)/", r"\1"),
    (r"test/(netns|guest|gen|dpdk)/test_(\w+)\.py", r"\1:\2"),
    (r"test/dpdk/(\w+)_test\.c", r"dpdk:\1"),
    (r"test/(netns|gen|dpdk)/", r"\1"),
    (r"test/guest/", "guest:fetch guest:machine"),
]


class Runner:
    """Builds, runs suites, and keeps the results."""

    def __init__(self, time_factor):
        self.time_factor = time_factor
        self.commands = Commands()
        self.results = {}
        self.seconds = {}
        self.introspected = {}
        self.nice = {}  # of lanes, beside others

    def execute(self, label, command, limit_s, env=None, shown=None, nice=0):
        """Run a command, print its lines that match; (status, output).

        Its time counts for the label.
        """
        def on_line(line):
            if shown and shown.search(line):
                print(f"{label}: {line.strip()}", flush=True)
        start_s = time.monotonic()
        done = self.commands.run(command, limit_s, on_line, env, nice)
        wall_s, cpu_s = self.seconds.get(label, (0, 0))
        self.seconds[label] = (wall_s + time.monotonic() - start_s,
                               cpu_s + done.cpu_s)
        return done.status, done.output

    def built(self, label, command, env=None):
        """Run a command of a build, and print its output if it fails. Returns
        whether it succeeded."""
        label = f"building {label or 'programs'}"
        status, output = self.execute(
            label, command, SUITE_LIMIT_S * self.time_factor, env,
            nice=self.nice.get("works", 0))
        if status != 0:
            print(output[-8000:])
            self.results[label] = [Result(label, {
                "name": " ".join(map(str, command[:2])), "result": "ERROR"})]
        return status == 0

    def introspect(self, build, what):
        if (build, what) not in self.introspected:
            self.introspected[build, what] = json.loads(subprocess.run(
                ["meson", "introspect", "--" + what, str(build)],
                check=True, capture_output=True, text=True).stdout)
        return self.introspected[build, what]

    def tests(self, build, suites):
        """Tests of suites."""
        return [test for test in self.introspect(build, "tests")
                if suites_of(test) & set(suites)]

    def names_by_suite(self, is_short):
        """Names of the tests of each suite; is_short: for `./mr test`."""
        build = TOP / "build"
        known = {suite for test in self.introspect(build, "tests")
                 for suite in suites_of(test)} | {
                     label for label, suite in SUITES.items() if suite.build}
        return {label: [test["name"] for test in self.tests(
            build, SUITES.get(label, OTHER).of_meson or (label,))
                        if not {"long" if is_short else "short"}
                        & suites_of(test)]
                for label in known - {"long", "short"}
                if not is_short or SUITES.get(label, OTHER).is_short}

    def files(self, build, tests):
        """The files that tests depend on, as paths in the build."""
        needed = {target for test in tests for target in test["depends"]}
        return [os.path.relpath(name, build)
                for target in self.introspect(build, "targets")
                if target["id"] in needed for name in target["filename"]]

    def starts_threads(self, build, test):
        """Whether a program of a test that was built starts threads."""
        programs = [build / name for name in self.files(build, [test])]
        done = subprocess.run(
            ["nm", "-D", "--undefined-only",
             *[p for p in programs if p.suffix == "" and p.is_file()]],
            capture_output=True, text=True, check=False)
        return not STARTS_THREADS.isdisjoint(
            re.findall(r" U (\w+)", done.stdout))

    def configured(self, label):
        """Configure a build. Returns its folder; None if that failed, or if
        something that it needs is missing."""
        if not label:
            return TOP / "build"
        build = TOP / f"build-{label}"
        env = dict(os.environ)
        if label == "libfuzzer":
            if not has_libfuzzer():
                self.results[label] = [Result(label, {
                    "name": "clang", "result": "SKIP", "stdout":
                    "clang or its libFuzzer (libclang-rt-dev) is missing"})]
                return None
            env["CC"] = "clang"
        command = ["meson", "setup", build, TOP, "-Db_lundef=false",
                   *BUILDS[label]]
        if (build / "build.ninja").exists():  # meson.build may have changed
            command = ["ninja", "-C", build, "build.ninja"]
        return build if self.built(label, command, env) else None

    def threaded(self, suite, names):
        """The names of tests that start threads; None if the build failed."""
        build = self.configured("asan")
        if build is None:
            return None
        tests = [test for test in self.tests(build, suite.of_meson)
                 if test["name"] in names]
        if not self.built("asan", ["ninja", "-C", build,
                                   *self.files(build, tests)]):
            return None
        return [t["name"] for t in tests if self.starts_threads(build, t)]

    def run(self, label, names):
        """Build what tests of a suite need, and run them."""
        suite = SUITES.get(label, OTHER)
        build = None if self.commands.is_over else self.configured(suite.build)
        if build is None:
            return
        if label == "tsan":
            names = self.threaded(suite, names)
            if names is None:
                return
        tests = [test for test in self.tests(build, suite.of_meson or (label,))
                 if test["name"] in names]
        if not tests:
            print(f"=== {label}: no test has such a name" if label != "tsan"
                  else "=== tsan: none of them starts threads", flush=True)
            return
        if suite.build:
            print(f"=== {label}: building", flush=True)
            if not self.built(suite.build, ["ninja", "-C", build,
                                            *self.files(build, tests)]):
                return
        self.run_tests(label, suite, build, tests)

    def run_tests(self, label, suite, build, tests):
        """Run tests of a suite that are built. Of a suite that waits, a few
        that fail are run again, alone: the host may have stopped them. The
        summary names those that passed only then."""
        print(f"=== {label}: {len(tests)} tests", flush=True)
        found = self.meson_test(label, suite, build, len(tests),
                                sorted({t["name"] for t in tests}))
        failed = [r for r in found if r.failed]
        if (suite.waits and 0 < len(failed) <= MAX_AGAIN
                and not self.commands.is_over):
            print(f"=== {label}: {len(failed)} failed, run again", flush=True)
            again = {r.test: r for r in self.meson_test(
                label, suite._replace(n_at_once=1), build, len(failed),
                [r.test for r in failed])}
            found = [again[r.test].after(r) if r.failed and r.test in again
                     else r for r in found]
        print("=== {}: {:.0f} s, of CPU {:.0f} s".format(
            label, *self.seconds[label]), flush=True)
        self.results[label] = found

    def meson_test(self, label, suite, build, n_tests, names):
        """Results of tests of a suite."""
        factor = self.time_factor * suite.time_factor
        env, prefix = dict(os.environ), []
        if suite.build:
            factor *= SANITIZER_TIME_FACTOR
            # A finding must fail the test, even if the test ignores it.
            env |= {"ASAN_OPTIONS": "detect_leaks=1:halt_on_error=1",
                    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
                    "TSAN_OPTIONS":
                    "halt_on_error=1:second_deadlock_stack=1"}
            # TSan of GCC 12 and 13 fails if the kernel randomizes too many
            # bits of addresses (vm.mmap_rnd_bits above 28).
            prefix = ["setarch", "-R"] if shutil.which("setarch") else []
        env["MR_TIME_FACTOR"] = f"{factor:.2f}"
        log = build / "meson-logs" / f"{label}.json"
        log.unlink(missing_ok=True)
        command = [*prefix, "meson", "test", "-C", build, "--no-rebuild",
                   "--logbase", label, "-t", f"{factor:.2f}"]
        if suite.n_at_once:
            command += ["--num-processes", suite.n_at_once]
        for name in suite.of_meson or (label,):
            command += ["--suite", name]
        status, output = self.execute(
            label, [*command, *names], SUITE_LIMIT_S * factor, env,
            re.compile(r"^ *\d+/\d+ "), self.nice.get(suite.lane, 0))
        return results_of(label, log.read_text() if log.exists() else "",
                          n_tests, status, output)

    def run_all(self, chosen):
        """Run {suite: names of tests}, lanes side by side."""
        build = TOP / "build"
        plain = [test for label, names in chosen.items()
                 if not SUITES.get(label, OTHER).build
                 for test in self.tests(build, (label,))
                 if test["name"] in names]
        if not self.built("", ["ninja", "-C", build, "programs",
                               *self.files(build, plain)]):
            return
        order = [*SUITES, *sorted(set(chosen) - set(SUITES))]
        lanes = {lane: labels for lane in LANES if (labels := [
            label for label in order if label in chosen
            and SUITES.get(label, OTHER).lane == lane])}
        self.nice = LANES if len(lanes) > 1 else {}
        with ThreadPoolExecutor(len(LANES)) as pool:
            for _ in pool.map(lambda labels: [self.run(label, chosen[label])
                                              for label in labels],
                              lanes.values()):
                pass


def suites_of(test):
    """The suites of a test, by meson.build's names."""
    return {suite.split(":")[-1] for suite in test["suite"]}


def results_of(label, log, n_tests, status, output):
    """The results that meson wrote; if some are missing, one more failure."""
    found = []
    for line in log.splitlines():
        try:
            found.append(Result(label, json.loads(line)))
        except ValueError:  # meson died while it wrote this line
            break
    if len(found) < n_tests or (status != 0
                                and not any(r.failed for r in found)):
        said = "\n".join(output.splitlines()[-results.N_LAST_LINES + 1:])
        found.append(Result(label, {
            "name": "meson test", "result": "ERROR", "stdout":
            f"{said}\nmeson ended with status {status}, {len(found)} of "
            f"{n_tests} tests have a result"}))
    return found


def has_libfuzzer():
    """Whether clang and its runtimes, a separate package, are installed."""
    return shutil.which("clang") is not None and subprocess.run(
        ["clang", "-fsanitize=fuzzer,address,undefined", "-x", "c", "-",
         "-o", "/dev/null"],
        input="int LLVMFuzzerTestOneInput(void) { return 0; }\n",
        capture_output=True, text=True, check=False).returncode == 0


def chosen_by(words, names_by_suite):
    """The tests that words select, as {suite: names}, and the words that select
    none. `unit` includes `plain`."""
    chosen, useless = {}, []
    for word in words:
        suite, _, beginning = word.partition(":")
        found = {label: names for label in {suite, "plain"}
                 if label == suite or suite == "unit"
                 if (names := {name for name in names_by_suite.get(label, ())
                               if name.startswith(beginning)})}
        for label, names in found.items():
            chosen.setdefault(label, set()).update(names)
        if not found:
            useless.append(word)
    return chosen, useless


def changed_files():
    """Files that differ from where this branch left main, new ones too."""
    def git(*words):
        return subprocess.run(["git", "-C", TOP, *words], capture_output=True,
                              text=True, check=False).stdout.split()
    base = (git("merge-base", "HEAD", "origin/main")
            or git("merge-base", "HEAD", "main") or ["HEAD"])[0]
    return {*git("diff", "--name-only", base),
            *git("ls-files", "--others", "--exclude-standard")}


def broken_by(files):
    """The words of BREAKS for changed files, and the files without any."""
    words, unknown = ["style"], []
    for name in sorted(files):
        for pattern, broken in BREAKS:
            if match := re.match(pattern, name):
                words += match.expand(broken).split()
                break
        else:
            unknown.append(name)
    return list(dict.fromkeys(words)), unknown


def choose(wanted, names_by_suite):
    """The tests to run for the words of the command line; None if there are
    none, which was reported."""
    if wanted == ["changed"]:
        words, unknown = broken_by(changed_files())
        for name in unknown:
            print(f"no test is known for {name}")
        # Some of these tests may not exist on this machine.
        return chosen_by(words, names_by_suite)[0]
    if wanted in ([], ["all"]):
        return names_by_suite
    if unknown := sorted({word.partition(":")[0] for word in wanted}
                         - set(names_by_suite)):
        print(f"no suite {', '.join(unknown)}; there are: all, changed, "
              f"{', '.join(sorted(names_by_suite))}", file=sys.stderr)
        return None
    chosen, useless = chosen_by(wanted, names_by_suite)
    for word in useless:
        print(f"=== {word}: no test has such a name", flush=True)
    if not chosen:
        print("no test has a name that begins so; nothing is run",
              file=sys.stderr)
        return None
    return chosen


def main(wanted):
    if {"-h", "--help"} & set(wanted):
        print(__doc__.strip())
        return 0
    # Packages of PyPI that ./mr installed for tests.
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    os.environ["PYTHONPATH"] = os.pathsep.join([
        *filter(None, [os.environ.get("PYTHONPATH")]),
        *map(str, cache.glob("millrace/python/*"))])
    share, time_factor = host.measure()
    runner = Runner(time_factor)
    # Tests and targets are asked for by name: meson.build may have changed.
    if not runner.built("", ["ninja", "-C", TOP / "build", "build.ninja"]):
        return results.report(runner.results, runner.seconds, 0)
    chosen = choose(wanted, runner.names_by_suite(is_short=not wanted))
    if chosen is None:
        return 2
    print(f"the host takes {share:.0%} of the CPU time: limits of time times "
          f"{time_factor:.1f}", flush=True)
    start_s = time.monotonic()
    # Commands are in sessions of their own: Ctrl-C reaches only us.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, runner.commands.end)
    runner.run_all(chosen)
    status = results.report(runner.results, runner.seconds,
                            time.monotonic() - start_s)
    return 130 if runner.commands.is_over else status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
