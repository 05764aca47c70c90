# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the translator's tests, and which requirements they are about."""
import json

import pytest

from harness import Nat, offload_refusal


def pytest_addoption(parser):
    """--requirements FILE: write {requirement: {test: outcome}} there."""
    parser.addoption("--requirements", metavar="FILE")


def pytest_configure(config):
    """The marker that @requirement() sets (rfc.py)."""
    config.addinivalue_line("markers", "requirement(key): of an RFC")
    config.requirement_results = {}


def pytest_collection_modifyitems(items):
    """Skip all if the XDP program is asked for and cannot be loaded."""
    reason = offload_refusal()
    for item in items if reason else []:
        item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """The outcome of each test, of its worst case where it has several."""
    report = (yield).get_result()
    if report.when != "call" and not report.failed:
        return
    for marker in item.iter_markers("requirement"):
        tests = item.config.requirement_results.setdefault(marker.args[0], {})
        name = item.originalname
        if tests.get(name, "passed") == "passed":
            tests[name] = report.outcome


def pytest_sessionfinish(session):
    """Results for compliance.py."""
    path = session.config.getoption("--requirements")
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(session.config.requirement_results, file, indent=1)


@pytest.fixture
def nat_of():
    """nat_of(**options): a Nat, closed and checked when the test has ended."""
    made = []

    def make(**options):
        made.append(Nat(**options))
        return made[-1]

    yield make
    for nat in made:
        nat.close()


@pytest.fixture
def nat(nat_of):
    """A Nat with all defaults."""
    return nat_of()
