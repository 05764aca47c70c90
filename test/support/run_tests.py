#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run the test suites and count what they did: ./mr test [SUITE...].

Every suite that meson knows is run but for the benchmarks, and three more that
are builds: asan and tsan run the unit, conformance and fuzz tests of a build
under the sanitizers, libfuzzer the fuzz tests with libFuzzer. The nat suite is
run by asan. A test that needs what the machine lacks is skipped and says why;
the last line of output counts passed, failed and skipped tests.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
# The packets of nat go through the build under ASan alone, which is no slower.
NOT_BY_DEFAULT = {"bench", "nat"}
# What runs first tells most about what comes after it.
FIRST = ["style", "unit", "conformance", "install", "fuzz", "netns"]
# Builds of their own: what meson is told, the suites run.
BUILDS = {
    "asan": (["-Db_sanitize=address,undefined"],
             ["unit", "conformance", "fuzz", "nat"]),
    "libfuzzer": (["-Db_sanitize=address,undefined", "-Dlibfuzzer=true",
                   "-Dbuildtype=plain", "-Doptimization=1", "-Ddebug=true",
                   "-Dwerror=false", "-Ddrivers=null,intel,pcap,virtio"],
                  ["fuzz"]),
    "tsan": (["-Db_sanitize=thread"], ["unit", "conformance", "fuzz"]),
}
# A suite that takes longer than this hangs: no wait without a deadline.
SUITE_LIMIT_S = 1200
# Of tests that are skipped for one reason; above that, how many.
MAX_NAMES = 3
# Of what a failed test said, at the end of all output, where people look and
# what is kept of a long log: its end, and the lines before each complaint, or
# the stack behind a sanitizer's. Of too many, the first and the last.
MAX_SAID_LINES = 40
N_LINES_BEFORE, N_LAST_LINES = 4, 12
MAX_LINE = 300
COMPLAINT = re.compile(r"\[ +(?:FAILED|ERROR) +\]|^E +assert |Error\b|error:")
# Sanitizers slow a test down by this much, about.
SANITIZER_TIME_FACTOR = 4
# Emulated machines: beside other work, and how many at once. They wait for
# their links more than they work.
GUEST_TIME_FACTOR = 3
N_GUESTS = 3

# A test of cmocka: how it ended, and what it said before, for a skip the reason.
# The totals at the end look different in each version of cmocka.
CMOCKA = re.compile(
    r"^\[ RUN +\] (?P<name>.+)\n(?P<said>(?:(?!\[ +(?:RUN|OK|SKIPPED|FAILED"
    r"|ERROR) +\]).*\n)*)(?:\[ +(?P<end>OK|SKIPPED|FAILED|ERROR) +\])?", re.M)
PYTEST_END = re.compile(
    r"^(?:=+ )?((?:\d+ (?:passed|failed|skipped|errors?|xfailed|xpassed"
    r"|deselected|warnings?)(?:, )?)+) in [\d.]+s", re.M)
# [how often] place: reason; the place is a line of the test.
PYTEST_SKIPPED = re.compile(r"^SKIPPED \[(\d+)\] (\S+:\d+): (.*)$", re.M)


def said_of_failure(output):
    """The lines of a failed test's output that say most."""
    lines = output.rstrip().splitlines()
    n = len(lines)
    wanted = set(range(max(0, n - N_LAST_LINES), n))
    for i, line in enumerate(lines):
        if "Sanitizer:" in line:
            wanted.update(range(i, min(n, i + N_LAST_LINES)))
        elif COMPLAINT.search(line):
            wanted.update(range(max(0, i - N_LINES_BEFORE), i + 1))
    places = sorted(wanted)
    if len(places) > MAX_SAID_LINES:
        half = MAX_SAID_LINES // 2
        places = places[:half] + places[-half:]
    return [lines[i][:MAX_LINE] for i in places]


class Result:
    """What one meson test, which may be many tests, came to."""

    def __init__(self, suite, record):
        self.name = f"{suite}/{record['name'].split('/')[-1].strip()}"
        self.passed = self.failed = self.skipped = 0
        self.why = []  # of skips: (reason, test within this one or '')
        output = (record.get("stdout") or "") + (record.get("stderr") or "")
        self._count(output)
        outcome = record["result"]
        if outcome == "SKIP":
            self.passed = 0
            if self.skipped == 0:
                self.skipped = 1
                lines = output.strip().splitlines()
                self.why = [(lines[-1] if lines else "no reason given", "")]
        elif outcome in ("OK", "EXPECTEDFAIL"):
            if self.passed + self.skipped == 0:
                self.passed = 1
        elif self.failed == 0:  # it crashed, hung, or ended with an error
            self.failed = 1
            self.name += f" ({outcome.lower()})"
        self.said = said_of_failure(output) if self.failed else []

    def _count(self, output):
        for match in CMOCKA.finditer(output):
            if match.group("end") == "OK":
                self.passed += 1
            elif match.group("end") == "SKIPPED":
                self.skipped += 1
                said = match.group("said").strip().splitlines()
                self.why.append((said[-1] if said else "no reason given",
                                 match.group("name")))
            else:  # None: it never ended
                self.failed += 1
        for summary in PYTEST_END.findall(output):
            for n, word in re.findall(r"(\d+) (\w+)", summary):
                if word in ("passed", "xfailed"):
                    self.passed += int(n)
                elif word == "skipped":
                    self.skipped += int(n)
                elif word in ("failed", "error", "errors", "xpassed"):
                    self.failed += int(n)
        self.why += [(why, place) for n, place, why in
                     PYTEST_SKIPPED.findall(output) for _ in range(int(n))]


def introspect(build, what):
    """What meson knows of a build."""
    return json.loads(subprocess.run(
        ["meson", "introspect", "--" + what, str(build)],
        check=True, capture_output=True, text=True).stdout)


def is_in(test, suites):
    """Whether a test of introspect() is in one of the suites."""
    return any(suite.split(":")[-1] in suites for suite in test["suite"])


def suites_of(build):
    """The suites that a build has tests in."""
    return {suite.split(":")[-1] for test in introspect(build, "tests")
            for suite in test["suite"]}


def built(label, command, environment=None):
    """Run a command of a build; what went wrong, as a list of Results."""
    done = subprocess.run(command, capture_output=True, text=True,
                          env=environment, check=False, timeout=SUITE_LIMIT_S)
    if done.returncode == 0:
        return []
    print(done.stdout[-4000:], done.stderr[-4000:], sep="")
    return [Result(label, {"name": " ".join(command[:2]), "result": "ERROR"})]


def build_suites(build, suites, label):
    """Build what the tests of some suites need; as built()."""
    needed = {target for test in introspect(build, "tests")
              if is_in(test, suites) for target in test["depends"]}
    files = [os.path.relpath(name, build)
             for target in introspect(build, "targets")
             if target["id"] in needed for name in target["filename"]]
    print(f"\n=== {label}: building", flush=True)
    return built(label, ["ninja", "-C", str(build),
                         *([] if label in BUILDS else ["programs"]), *files])


def run_suite(build, meson_suites, label, factor=1, prefix=(), words=()):
    """Run suites of a build, with more words for meson; a list of Results."""
    failed = build_suites(build, meson_suites, label)
    if failed:
        return failed
    log = build / "meson-logs" / f"{label}.json"
    log.unlink(missing_ok=True)
    command = [*prefix, "meson", "test", "-C", str(build), "--no-rebuild",
               "--print-errorlogs", "--logbase", label, "-t", str(factor),
               *words]
    for suite in meson_suites:
        command += ["--suite", suite]
    print(f"\n=== {label}", flush=True)
    start_s = time.monotonic()
    try:
        subprocess.run(command, timeout=SUITE_LIMIT_S * factor, check=False)
    except subprocess.TimeoutExpired:
        print(f"=== {label}: stopped after {SUITE_LIMIT_S * factor} s")
        return [Result(label, {"name": "the whole suite",
                               "result": "TIMEOUT"})]
    print(f"=== {label}: {time.monotonic() - start_s:.0f} s", flush=True)
    if not log.exists():
        return [Result(label, {"name": "meson test", "result": "ERROR"})]
    return [Result(label, json.loads(line))
            for line in log.read_text().splitlines()]


def has_libfuzzer():
    """Whether clang is here, and its runtimes, which are another package."""
    return shutil.which("clang") is not None and subprocess.run(
        ["clang", "-fsanitize=fuzzer,address,undefined", "-x", "c", "-",
         "-o", "/dev/null"],
        input="int LLVMFuzzerTestOneInput(void) { return 0; }\n",
        capture_output=True, text=True, check=False).returncode == 0


def run_build(label):
    """Build as BUILDS says and run what can be run there."""
    build = TOP / f"build-{label}"
    flags, suites = BUILDS[label]
    environment = dict(os.environ)
    if label == "libfuzzer":
        if not has_libfuzzer():
            return [Result(label, {"name": "clang", "result": "SKIP",
                                   "stdout": "clang or its libFuzzer "
                                   "(libclang-rt-dev) is missing"})]
        environment["CC"] = "clang"
    if not (build / "build.ninja").exists():
        failed = built(label, ["meson", "setup", str(build), str(TOP),
                               "-Dbuildtype=debugoptimized",
                               "-Db_lundef=false", *flags], environment)
        if failed:
            return failed
    wanted = [s for s in suites if s in suites_of(build)]
    if not wanted:
        return [Result(label, {"name": "tests", "result": "SKIP",
                               "stdout": "no test is in a suite for it"})]
    # A finding must fail the test, whatever the test makes of it.
    os.environ["ASAN_OPTIONS"] = "detect_leaks=1:halt_on_error=1"
    os.environ["UBSAN_OPTIONS"] = "halt_on_error=1:print_stacktrace=1"
    os.environ["TSAN_OPTIONS"] = "halt_on_error=1:second_deadlock_stack=1"
    # For tests that have to know: they run slower, or memory is not theirs.
    os.environ["MR_TEST_SANITIZER"] = label
    # TSan of GCC 12 and 13 gives up where the kernel moves addresses about too
    # much (vm.mmap_rnd_bits above 28); without randomization it never does.
    prefix = ["setarch", "-R"] if shutil.which("setarch") else []
    return run_suite(build, wanted, label, SANITIZER_TIME_FACTOR, prefix)


def report_skips(results):
    """Each reason once per meson test, with the tests that it holds for;
    what the sanitizers only say again is left out."""
    if not any(result.why for result in results):
        return
    print("\nSkipped, and why:")
    seen, n_again = set(), 0
    for result in results:
        suite, _, name = result.name.partition("/")
        tests_by_reason = {}
        for reason, test in result.why:
            reason = re.sub(r"^skipped(?: on \w+)?: *", "", reason)
            if suite in BUILDS and (name, reason, test) in seen:
                n_again += 1
                continue
            seen.add((name, reason, test))
            tests_by_reason.setdefault(reason, []).append(test)
        for reason, tests in tests_by_reason.items():
            if len(tests) > MAX_NAMES:
                tests = [f"{len(tests)} tests"]
            tests = ", ".join(filter(None, tests))
            print(f"  {result.name}: {reason}" + (f" ({tests})" if tests
                                                  else ""))
    if n_again:
        print(f"  and {n_again} of these again under the sanitizers")


def report(results_by_suite):
    """Print the summary. The exit status."""
    width = max(len(label) for label in results_by_suite)
    print(f"\n{'':{width}}  passed  failed  skipped")
    total = [0, 0, 0]
    for label, results in results_by_suite.items():
        counts = [sum(getattr(r, what) for r in results)
                  for what in ("passed", "failed", "skipped")]
        total = [a + b for a, b in zip(total, counts)]
        print(f"{label:{width}}  {counts[0]:6}  {counts[1]:6}  {counts[2]:7}")
    everything = [r for results in results_by_suite.values() for r in results]
    report_skips(everything)
    failures = [r for r in everything if r.failed]
    if failures:
        print("\nFailed:")
        for failure in failures:
            print(f"  {failure.name}")
            for line in failure.said:
                print(f"    | {line}")
    if total[0] == 0 and total[1] == 0:
        print("\nnothing was tested")
        total[1] = 1
    print(f"\n{total[0]} passed, {total[1]} failed, {total[2]} skipped",
          flush=True)
    return 1 if total[1] else 0


def main(wanted):
    if {"-h", "--help"} & set(wanted):
        print(__doc__.strip())
        return 0
    build = TOP / "build"
    known = suites_of(build) | set(BUILDS)
    unknown = [suite for suite in wanted if suite not in known]
    if unknown:
        print(f"no suite {', '.join(unknown)}; there are: "
              f"{', '.join(sorted(known))}", file=sys.stderr)
        return 2
    if not wanted:
        rest = sorted(known - set(FIRST) - set(BUILDS) - NOT_BY_DEFAULT)
        wanted = [s for s in FIRST if s in known] + rest + sorted(BUILDS)
    results = {}
    for suite in wanted:
        if suite in BUILDS:
            results[suite] = run_build(suite)
        elif suite == "guest":
            results[suite] = run_suite(
                build, [suite], suite, GUEST_TIME_FACTOR,
                words=["--num-processes", str(N_GUESTS)])
        else:
            results[suite] = run_suite(build, [suite], suite)
    return report(results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
