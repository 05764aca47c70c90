#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Keeps docs/nat-compliance.md and the tests of its requirements together.

usage: compliance.py [--write]

People write the requirements of the page, and a result where no test can show
that a requirement is met. The tests and the other results are from a run of
test_rfc*.py, whose plug-in (conftest.py) tells which test is of which
requirement and how it ended; --write writes them. Exit code 1: the page
differs, a test failed, a requirement has no test, or a test claims one that the
page does not have. 77: no pytest or no scapy.
"""
import json
import re
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs/nat-compliance.md"
UNTESTED = ("not met", "not used", "does not apply")
LEVELS = ("MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "RECOMMENDED", "MAY",
          "note")
COUNTS = "| | " + " | ".join(LEVELS) + " | all |"


def run_tests():
    """{requirement: {test: outcome}} as the plug-in wrote it; and pytest's
    status."""
    import pytest

    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        status = pytest.main(
            ["-p", "no:cacheprovider", "--tb=short", "-q", "-rf",
             f"--requirements={results}",
             *map(str, sorted(HERE.glob("test_rfc*.py")))])
        if not results.exists():
            return {}, status
        return json.loads(results.read_text(encoding="utf-8")), status


def result_of(said, outcomes):
    """A requirement's result; said: what the page says. And how it counts."""
    kind, _, why = said.partition(":")
    if any(outcome != "passed" for outcome in outcomes.values()):
        said = kind = "test failed"
    elif kind in UNTESTED and outcomes:
        said = kind = "has a test"
    elif kind not in UNTESTED and not outcomes:
        said = kind = "no test"
    elif not why:
        said = kind = "met"
    return said, kind


def written(text, results):
    """The page with these results, and what is wrong."""
    lines, counts, wrong, known, rfc = [], {}, [], set(), ""
    for line in text.splitlines():
        if line.startswith("## "):
            rfc = line[3:].partition(":")[0]
        cells = re.split(r" ?\| ?", line)
        if len(cells) == 7 and cells[2] in LEVELS:
            _, number, level, asked, _, said, _ = cells
            key = f"{rfc} {number}"
            known.add(key)
            outcomes = results.get(key, {})
            said, kind = result_of(said, outcomes)
            if kind in ("test failed", "has a test", "no test"):
                wrong.append(f"{key}: {kind}")
            counts.setdefault(kind, []).append(level)
            tests = "<br>".join(f"`{test}`" for test in sorted(outcomes))
            line = f"| {number} | {level} | {asked} | {tests} | {said} |"
        lines.append(line)
    at = lines.index(COUNTS) + 2
    lines[at:lines.index("", at)] = [
        f"| {kind} | " + " | ".join(str(levels.count(level) or "")
                                    for level in LEVELS) +
        f" | {len(levels)} |" for kind, levels in counts.items()]
    wrong += [f"{min(results[key])}: there is no requirement {key}"
              for key in results if key not in known]
    return "\n".join(lines) + "\n", wrong


def main():
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(HERE))
    try:
        import pytest  # noqa: F401
        import scapy  # noqa: F401
    except ImportError as missing:
        print(f"{missing.name} is missing (package python3-{missing.name})")
        return 77
    from harness import offload_refusal
    reason = offload_refusal()
    if reason:
        print(reason)
        return 77
    results, status = run_tests()
    before = PAGE.read_text(encoding="utf-8")
    text, wrong = written(before, results)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    elif text != before:
        wrong.append(f"{PAGE.name} is not what the tests say: run "
                     "test/nat/compliance.py --write")
    print("\n".join(wrong))
    return int(bool(wrong or status))


if __name__ == "__main__":
    sys.exit(main())
