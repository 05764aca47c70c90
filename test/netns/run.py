#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run files of these tests under pytest, for meson: run.py [--first] FILE...

--first: of each test that has cases, only the first one. Other options are
pytest's. pytest's exit status, but 77 (skipped) where pytest is missing, no
test ran, or all were skipped: meson counts that, and the summary prints the
reasons.
"""
import sys

SKIPPED = 77


def main():
    sys.dont_write_bytecode = True
    try:
        import pytest
    except ImportError:
        print("pytest is missing (package python3-pytest)")
        return SKIPPED

    arguments = [word for word in sys.argv[1:] if word != "--first"]

    class Outcomes:
        """Counts what was not skipped."""

        n_run = 0

        def pytest_collection_modifyitems(self, items):
            """Called by pytest with all tests, cases in their order."""
            if len(arguments) < len(sys.argv) - 1:
                first = {}
                for item in items:
                    first.setdefault(item.nodeid.partition("[")[0], item)
                items[:] = first.values()

        def pytest_runtest_logreport(self, report):
            """Called by pytest for each phase of each test."""
            if not report.skipped and (report.when == "call" or
                                       report.failed):
                self.n_run += 1

    outcomes = Outcomes()
    status = pytest.main(["-p", "no:cacheprovider", "-rsx", "--tb=short",
                          "-q", *arguments], plugins=[outcomes])
    if status == pytest.ExitCode.NO_TESTS_COLLECTED or \
            (status == 0 and outcomes.n_run == 0):
        return SKIPPED
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
