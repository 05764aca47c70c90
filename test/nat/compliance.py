#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs/nat-compliance.md from the results of the tests of requirements.

usage: compliance.py [--write]

Runs the tests test_rfc*.py, whose plug-in (conftest.py) tells which test is of
which requirement and how it ended, and compares the page with that; --write
writes it. Exit code 1: the page differs, a test failed, a requirement of
requirements.txt has no test, or a test claims one that is not there. 77: no
pytest or no scapy.
"""
import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs/nat-compliance.md"
UNTESTED = ("not met", "not used", "does not apply")
PARTLY = "partly"
LEVELS = ("MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "RECOMMENDED", "MAY",
          "note")
HEAD = """# What the RFCs ask of a NAT, and what `mr-nat` does

Made from the results of the tests in `test/nat` by `test/nat/compliance.py
--write`; `meson test -C build --suite nat` fails where it differs from them.
The requirements are paraphrased. Each test sends packets through the
translator with a simulated clock, and checks that it does what the requirement
says, and nothing that it rules out; and does so again with the XDP program of
`--offload` before it. *met*: all of its tests passed. *partly*, *not met*: the
reason is beside it. *not used*: something that is allowed, and not done.
Settings are the defaults unless the test says otherwise.
"""


class Requirement:
    """One line of requirements.txt."""

    def __init__(self, rfc, number, level, text):
        self.rfc, self.number = rfc, number
        self.level, self.text = level, text
        self.result, self.why = None, None  # where a test is not all

    @property
    def key(self):
        """As tests name it."""
        return f"{self.rfc} {self.number}"


def read_requirements():
    """{key: Requirement} and {RFC: title}, in their order."""
    requirements, titles, rfc, last = {}, {}, None, None
    path = HERE / "requirements.txt"
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("RFC "):
            rfc, _, titles_text = line.partition(": ")
            titles[rfc] = titles_text
        elif line.startswith("  ! "):
            last.result, last.why = line[4:].split(" | ")
            assert last.result in UNTESTED + (PARTLY,), line
        else:
            last = Requirement(rfc, *line.split(" | "))
            assert last.level in LEVELS and last.key not in requirements, line
            requirements[last.key] = last
    return requirements, titles


def run_tests():
    """{key: {test: outcome}} as the plug-in wrote it; and pytest's status."""
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


def complaints(requirements, results):
    """What does not belong together."""
    for key in results:
        if key not in requirements:
            yield f"{sorted(results[key])[0]}: there is no requirement {key}"
    for key, requirement in requirements.items():
        if requirement.result in UNTESTED and key in results:
            yield f"{key} is {requirement.result}, and has a test"
        elif requirement.result not in UNTESTED and key not in results:
            yield f"{key}: no test has it"


def result_of(requirement, outcomes):
    """The cell of a requirement."""
    if any(outcome != "passed" for outcome in outcomes.values()):
        return "**test failed**"
    if requirement.result:
        return f"{requirement.result}: {requirement.why}"
    return "met" if outcomes else "**no test**"


def kind_of(cell):
    """A word to count by."""
    return cell.partition(":")[0].strip("*")


def page(requirements, titles, results):
    """The page."""
    parts, counts = [], {}
    for rfc, title in titles.items():
        parts += [f"\n## {rfc}: {title}\n", "| requirement | level | what is "
                  "asked | test | result |", "|---|---|---|---|---|"]
        for key, r in requirements.items():
            if r.rfc != rfc:
                continue
            outcomes = results.get(key, {})
            cell = result_of(r, outcomes)
            kinds = counts.setdefault(kind_of(cell), {})
            kinds[r.level] = kinds.get(r.level, 0) + 1
            tests = "<br>".join(f"`{t}`" for t in sorted(outcomes))
            parts.append(f"| {r.number} | {r.level} | {r.text} | {tests} | "
                         f"{cell} |")
    table = ["\n| | " + " | ".join(LEVELS) + " | all |",
             "|---|" + "---|" * (len(LEVELS) + 1)]
    for kind, kinds in counts.items():
        table.append(f"| {kind} | " + " | ".join(
            str(kinds.get(level, "")) for level in LEVELS) +
            f" | {sum(kinds.values())} |")
    return HEAD + "\n".join(table + parts) + "\n"


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
    requirements, titles = read_requirements()
    results, status = run_tests()
    wrong = list(complaints(requirements, results))
    text = page(requirements, titles, results)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        wrong.append(f"{PAGE.name} is not what the tests say: run "
                     "test/nat/compliance.py --write")
    print("\n".join(wrong))
    return int(bool(wrong or status))


if __name__ == "__main__":
    sys.exit(main())
