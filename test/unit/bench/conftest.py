# SPDX-License-Identifier: BSD-3-Clause
"""Where modules of these tests are, fixtures of tests of mr-bench, and mr-bench-engine
without a front end: serve(**members of begin, but for the texts of streams)."""
import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import jsonschema
import pytest

TOP = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(TOP / "test/support"), str(TOP / "apps")]

from bench_program import BENCH, LIMIT_S, bench, document, files  # noqa: E402,F401 pylint: disable=wrong-import-position,unused-import
from mr_bench import stream  # noqa: E402 pylint: disable=wrong-import-position
from schema import expand  # noqa: E402 pylint: disable=wrong-import-position

ENGINE = BENCH.with_name("mr-bench-engine")
SCHEMA = jsonschema.Draft7Validator(expand(json.loads(
    (TOP / "apps/bench/mr-bench-engine.schema.json").read_text())))
BEGIN = {"request": "begin", "v": 5, "tx": ["pair:a"], "rx": ["pair:a"], "is_quiet": True}
# Through the simulated device, by the virtual clock.
VIRTUAL = {"rx": ["pair:b"], "is_virtual": True, "device": {}}


class Serving:
    """An engine, one request at a time."""

    def __init__(self, before=(), streams=(), **begin):
        begin["streams"], self.raised_bytes = stream.read(
            streams, not begin.get("is_unstamped"))
        self.process = subprocess.Popen(
            [*before, ENGINE, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.begun = self.request(**BEGIN | begin)

    def say(self, request):
        """A line."""
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def ask(self, request, **members):
        """A request, as the schema has it."""
        line = json.loads(json.dumps({"request": request, **members}))  # no tuples
        SCHEMA.validate(line)
        self.say(line)

    def line(self):
        """A line of progress, or a reply; None: it has ended."""
        text = self.process.stdout.readline()
        line = json.loads(text) if text else None
        if line is not None:
            SCHEMA.validate(line)
        return line

    def hear(self):
        """The reply, behind any progress."""
        while (reply := self.line()) and "reply" not in reply:
            pass
        return reply

    def request(self, request, **members):
        """The reply to it."""
        self.ask(request, **members)
        return self.hear()

    def trial(self, **members):
        """A trial; its figures must add up."""
        reply = self.request("trial", **members)
        tx, rx = reply["trial"]["tx"], reply["trial"]["rx"]
        assert tx["due"] == tx["sent"] + tx["unsent"]
        assert rx["received"] == sum(
            rx[key] for key in ("foreign", "unique", "duplicates", "too_old"))
        return reply

    def end(self):
        """Exit status, and the rest of what it wrote."""
        out, err = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, out, err

    def finish(self):
        """Its ports closed without a complaint; what it wrote on stderr."""
        self.ask("finish")
        status, out, err = self.end()
        assert (status, out) == (0, ""), err
        return err


@pytest.fixture
def serve():
    """Starts engines, which end with the test."""
    all_of_them = []

    def start(**begin):
        all_of_them.append(Serving(**begin))
        return all_of_them[-1]
    yield start
    for process in (one.process for one in all_of_them):
        process.kill()
        process.wait(LIMIT_S)
        for pipe in (process.stdin, process.stdout, process.stderr):
            with suppress(BrokenPipeError):  # of what it has not read
                pipe.close()
