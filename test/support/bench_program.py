# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests of mr-bench: run it, read what it says.

Nothing here needs root or interfaces.
"""
import functools
import json
import os
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from errors import errors_of
from host import limit

sys.dont_write_bytecode = True

TOP = Path(__file__).resolve().parents[2]
for folder in "apps/bench/front", "apps/support":
    sys.path.insert(0, str(TOP / folder))

BENCH = Path(os.environ.get("MR_BUILD", TOP / "build")) / "apps/bench/mr-bench"
LIMIT_S = limit(60)


class Done(namedtuple("Done", "rc out err")):
    """How a program ended, and what it wrote."""

    @property
    def errors(self):
        """Its lines on stderr except warnings."""
        return errors_of(self.err)


def run(*arguments, timeout_s=LIMIT_S, **more):
    """Run mr-bench until it ends: exit status, stdout, stderr."""
    done = subprocess.run([BENCH, *map(str, arguments)], text=True,
                          capture_output=True, check=False,
                          timeout=timeout_s, **more)
    return Done(done.returncode, done.stdout, done.stderr)


def complaints(document, schema="mr-bench-net", within=None):
    """What a schema has against a document; within: one of its definitions."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((BENCH.parents[1] / f"{schema}.schema.json").read_text(
        encoding="utf-8"))
    if within:
        schema = {"$ref": f"#/definitions/{within}",
                  "definitions": schema["definitions"]}
    return [f"{'/'.join(map(str, error.absolute_path))}: {error.message}"
            for error in jsonschema.Draft7Validator(schema).iter_errors(
                document)]


@pytest.fixture
def bench():
    """Runs mr-bench: bench("tx", "null:", ...).rc, .out, .err."""
    return run


def saved(folder, *documents):
    """Documents in files of a folder: their paths."""
    paths = []
    for document in documents:
        paths.append(folder / f"{len(list(folder.iterdir()))}.json")
        paths[-1].write_text(json.dumps(document), encoding="utf-8")
    return paths


@pytest.fixture
def files(tmp_path):
    """Writes documents: files(a, b, ...) are their paths."""
    return functools.partial(saved, tmp_path)


@pytest.fixture
def document():
    """Runs mr-bench with --json and returns what it measured, which is as the
    schema says. rc: the exit status that it must have."""
    def measure(*arguments, rc=0, **more):
        done = run(*arguments, "--json", **more)
        assert done.rc == rc, done.err
        measured = json.loads(done.out)
        assert complaints(measured) == []
        return measured
    return measure
