# SPDX-License-Identifier: BSD-3-Clause
"""Results of meson's tests: counts, reasons for skips, failures."""
import re

# If more tests are skipped for one reason, only their number is printed.
MAX_NAMES = 3
# The summary quotes the output of a failed test: its last lines, the lines
# before each complaint, and the stack after a complaint of a sanitizer. If these
# are too many, the first and the last of them.
MAX_SAID_LINES = 40
N_LINES_BEFORE, N_LAST_LINES = 4, 12
MAX_LINE = 300
COMPLAINT = re.compile(r"\[ +(?:FAILED|ERROR) +\]|^E +assert |Error\b|error:")
# A test of cmocka: its output, which ends with the reason of a skip, and how it
# ended. The format of the totals differs between versions of cmocka.
CMOCKA = re.compile(
    r"^\[ RUN +\] (?P<name>.+)\n(?P<said>(?:(?!\[ +(?:RUN|OK|SKIPPED|FAILED"
    r"|ERROR) +\]).*\n)*)(?:\[ +(?P<end>OK|SKIPPED|FAILED|ERROR) +\])?", re.M)
PYTEST_END = re.compile(
    r"^(?:=+ )?((?:\d+ (?:passed|failed|skipped|errors?|xfailed|xpassed"
    r"|deselected|warnings?)(?:, )?)+) in [\d.]+s", re.M)
# [how often] place: reason; the place is a line of the test.
PYTEST_SKIPPED = re.compile(r"^SKIPPED \[(\d+)\] (\S+:\d+): (.*)$", re.M)


def said_of_failure(output):
    """The most informative lines of a failed test's output."""
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
    """The result of one meson test, which may be many tests."""

    def __init__(self, suite, record):
        self.test = record["name"].split("/")[-1].strip()
        self.name = f"{suite}/{self.test}"
        self.first = None  # the result before this one, which failed
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

    def after(self, first):
        """This result, of a test that had failed before."""
        if not self.failed:
            self.first = first
        return self

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


def report_skips(results):
    """Print each reason once per meson test, with the tests it holds for,
    without those that ThreadSanitizer's run repeats."""
    if not any(result.why for result in results):
        return
    print("\nSkipped, and why:")
    seen = set()
    for result in results:
        name = result.name.partition("/")[2]
        tests_by_reason = {}
        for reason, test in result.why:
            reason = re.sub(r"^skipped(?: on \w+)?: *", "", reason)
            if (name, reason, test) not in seen:
                tests_by_reason.setdefault(reason, []).append(test)
        for reason, tests in tests_by_reason.items():
            seen.update((name, reason, test) for test in tests)
            if len(tests) > MAX_NAMES:
                tests = [f"{len(tests)} tests"]
            tests = ", ".join(filter(None, tests))
            print(f"  {result.name}: {reason}" + (f" ({tests})" if tests
                                                  else ""))


def report(results_by_suite, seconds_by_suite, all_s):
    """Print the summary. seconds_by_suite: (seconds, of them CPU time) of each
    suite and build; all_s: of the whole run. The exit status."""
    width = max(map(len, [*results_by_suite, *seconds_by_suite]))
    print(f"\n{'':{width}}  passed  failed  skipped  seconds  CPU seconds")
    total = [0, 0, 0]
    for label in seconds_by_suite | results_by_suite:
        counts = [sum(getattr(r, what) for r in results_by_suite.get(label, []))
                  for what in ("passed", "failed", "skipped")]
        total = [a + b for a, b in zip(total, counts)]
        wall_s, cpu_s = seconds_by_suite.get(label, (0, 0))
        print(f"{label:{width}}  "
              + (f"{counts[0]:6}  {counts[1]:6}  {counts[2]:7}"
                 if label in results_by_suite else f"{'':23}")
              + f"  {wall_s:7.0f}  {cpu_s:11.0f}")
    print(f"{'':{width}}  {'':23}  {all_s:7.0f}  "
          f"{sum(cpu_s for _, cpu_s in seconds_by_suite.values()):11.0f}")
    everything = [r for results in results_by_suite.values() for r in results]
    report_skips(everything)
    for title, failures in (
            ("Passed only when run again, after", [r.first for r in everything
                                                   if r.first]),
            ("Failed", [r for r in everything if r.failed])):
        if failures:
            print(f"\n{title}:")
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
