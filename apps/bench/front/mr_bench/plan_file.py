# SPDX-License-Identifier: BSD-3-Clause
"""The plan file of a series: its keys, the constraints between them, and the resulting
steps.

Each step is one mr-bench command with a file for its result, so that a series that
was interrupted goes on where it was.
"""

import difflib
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from mr_support.options import Wrong

MAX_BYTES = 1 << 20
MAX_STEPS = 10000
MAX_REPEAT = 100
NAME_CHARS = 32
TEXT_CHARS = 1024
MAX_YEAR_S = 31536000
# Commands that write no document of one measurement with --out.
WITHOUT_DOCUMENT = ("mem", "flow", "fwd", "plan", "compare", "report", "reflect")
# These are quoted with '?': a message is one line, of characters that there are.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class PlanError(Wrong):
    """A plan that cannot be used: one line with the file, its line and the remedy."""


def whole_number(text: str, least: int, most: int) -> int:
    """A number of the file. ValueError has what is wrong."""
    if re.fullmatch("[0-9]{1,10}", text) and least <= int(text) <= most:
        return int(text)
    raise ValueError(f"'{text:.40}' is not a whole number from {least} to {most}")


def duration_s(text: str) -> int:
    """Seconds, from units: 90, 90s, 5m, 2h4m, 1d."""
    seconds = 0
    found = re.fullmatch(
        r"([0-9]+)|(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?", text, re.ASCII
    )
    if found and len(text) < 60:
        seconds = sum(
            int(n or 0) * unit for n, unit in zip(found.groups(), (1, 86400, 3600, 60, 1))
        )
    if not 1 <= seconds <= MAX_YEAR_S:
        raise ValueError(f"'{text:.40}' is not a time from 1s to 365d, such as 90s, 5m or 2h4m")
    return seconds


def name_of(text: str) -> str:
    """Names are parts of file names."""
    if not 0 < len(text) < NAME_CHARS or text[0] == ".":
        raise ValueError(
            f"'{text:.40}' is no name of 1 to {NAME_CHARS - 1} letters, digits, '-', '_' or '.'"
        )
    for char in text:
        if not re.match("[a-zA-Z0-9_.-]", char):
            raise ValueError(
                f"'{text:.40}' has '{char}' in it; letters, digits, '-', '_' and '.' make a name"
            )
    return text


def size_of(text: str) -> int:
    """Of a frame."""
    return whole_number(text, 14, 65535)


def rate_of(text: str) -> str:
    """What a rate is, the command that gets it knows."""
    if len(text) >= NAME_CHARS or not re.fullmatch("[a-zA-Z0-9.%-]+", text):
        raise ValueError(f"'{text:.40}' is not a rate such as 1.2M, 10Gbit or 25%")
    return text


def text_of(text: str) -> str:
    """A command, or a folder."""
    if not text or len(text) >= TEXT_CHARS:
        raise ValueError(f"empty, or longer than {TEXT_CHARS - 1} bytes")
    if re.search("[\0\ud800-\udfff]", text):
        raise ValueError("a NUL, or half of a character, which no command has")
    return text


def key(read: Callable[[str], Any], default: Any = "") -> Any:
    """A member that is a key of the file, and what reads its text. Where that is in a list, so is
    the value; a class in a list: each item is a mapping."""
    return field(default=default, metadata={"read": read})


@dataclass
class Device:
    """What is measured: commands of a shell. "" is none."""

    name: str = key(name_of)
    start: str = key(text_of)  # runs until it is stopped, or ends with 0 and has set something up
    ready: str = key(text_of)  # asked until it succeeds
    stop: str = key(text_of)  # undoes what start did
    wait: int = key(duration_s, 0)  # seconds after ready; before it, if there is none
    line: int = 0


@dataclass
class Measure:
    """How it is measured: the words behind "mr-bench", with {size} and {rate} in them."""

    name: str = key(name_of)
    run: str = key(text_of)
    sizes: list[int] = field(default_factory=list, metadata={"read": [size_of]})
    rates: list[str] = field(default_factory=list, metadata={"read": [rate_of]})
    time: int = key(duration_s, 0)  # seconds that a step takes, about
    limit: int = key(duration_s, 0)  # timeout in seconds
    line: int = 0


@dataclass
class Plan:
    """All that the file says."""

    folder: str = key(text_of)  # of results
    before: str = key(text_of)
    after: str = key(text_of)
    prefix: str = key(text_of)  # of each mr-bench command
    repeat: int = key(lambda text: whole_number(text, 1, MAX_REPEAT), 1)
    devices: list[Device] = field(default_factory=list, metadata={"read": [Device]})
    measures: list[Measure] = field(default_factory=list, metadata={"read": [Measure]})

    def count_steps(self) -> int:
        """May be more than MAX_STEPS."""
        n = sum(max(len(m.sizes), 1) * max(len(m.rates), 1) for m in self.measures)
        return n * len(self.devices) * self.repeat


@dataclass(frozen=True)
class Step:
    """One command of a series."""

    plan: Plan
    device: Device
    measure: Measure
    size: int | None
    rate: str | None
    round: int

    @property
    def name(self) -> str:
        """Of its files, without the end."""
        parts = (self.device.name, self.measure.name, self.size, self.rate, self.round + 1)
        return "+".join(str(part) for part in parts if part not in (None, ""))

    @property
    def words(self) -> str:
        """The words behind "mr-bench", with sizes and rates put in."""
        sized = self.measure.run.replace("{size}", str(self.size or 0))
        return sized.replace("{rate}", self.rate or "")

    @property
    def setup(self) -> str:
        """What else its result hangs on: the commands around it, in one text."""
        plan, device = self.plan, self.device
        return (
            f"before: {plan.before}; prefix: {plan.prefix}; start: {device.start}; "
            f"ready: {device.ready}; wait: {device.wait}s"
        )

    @property
    def title(self) -> str:
        """For people: "mr-l2fwd, throughput, 60 bytes, round 1"."""
        parts = [self.device.name, self.measure.name]
        if self.size is not None:
            parts.append(f"{self.size} bytes")
        parts.append(self.rate or "")
        if self.plan.repeat > 1:
            parts.append(f"round {self.round + 1}")
        return ", ".join(part for part in parts if part)


def steps_of(plan: Plan) -> Iterator[Step]:
    """All steps in their order: rounds, in each all devices, there and back, so that a
    drift of the machine is the same for all; in each all measures."""
    for number in range(plan.repeat):
        for device in plan.devices if number % 2 == 0 else reversed(plan.devices):
            for measure in plan.measures:
                for size, rate in itertools.product(
                    measure.sizes or (None,), measure.rates or (None,)
                ):
                    yield Step(plan, device, measure, size, rate, number)


class Reader:
    """Reads mappings of a file by tables of keys."""

    def __init__(self, file: str) -> None:
        self.file = file

    def wrong(self, line: int, text: str) -> PlanError:
        """The one line, whatever bytes the file has."""
        return PlanError(CONTROL.sub("?", f"{self.file:.120}:{line}: {text:.240}"))

    def scalar(self, node: yaml.Node, what: str) -> str:
        """The text of a value."""
        if not isinstance(node, yaml.ScalarNode):
            kind = "mapping" if isinstance(node, yaml.MappingNode) else "list"
            raise self.wrong(line_of(node), f"{what}: must be one value, not a {kind}")
        return str(node.value)

    def value(self, node: yaml.Node, name: str, read: Callable[[str], Any]) -> Any:
        """A value, by the function that reads its text."""
        text = self.scalar(node, name)
        try:
            return read(text)
        except ValueError as error:
            raise self.wrong(line_of(node), f"{name}: {error}") from None

    def items(self, node: yaml.Node, name: str, most: int) -> list[yaml.Node]:
        """A list with one item may be written without brackets."""
        items = list(node.value) if isinstance(node, yaml.SequenceNode) else [node]
        if not items:
            raise self.wrong(line_of(node), f"{name}: empty; remove it")
        if len(items) > most:
            raise self.wrong(line_of(node), f"{name}: {len(items)} entries, more than {most}")
        return items

    def keys(self, node: yaml.Node, to: Any) -> Any:
        """Fill an object whose members are keys from a mapping."""
        table = {one.name: one.metadata["read"] for one in fields(to) if one.metadata}
        if not isinstance(node, yaml.MappingNode):
            raise self.wrong(
                line_of(node), f"must be a mapping, such as '{next(iter(table))}: ...'"
            )
        seen: dict[str, int] = {}
        for name_node, value in node.value:
            name, line = self.scalar(name_node, "a key"), line_of(name_node)
            if name not in table:
                near = difflib.get_close_matches(name, table, 1, 0.5)
                cure = f"did you mean '{near[0]}'?" if near else "valid: " + ", ".join(table)
                raise self.wrong(line, f"unknown key '{name:.40}'; {cure}")
            if name in seen:
                raise self.wrong(line, f"'{name}' is given twice, first on line {seen[name]}")
            seen[name] = line
            setattr(to, name, self.member(value, name, table[name]))
        return to

    def member(self, node: yaml.Node, name: str, read: Any) -> Any:
        """The value of a key."""
        if not isinstance(read, list):
            return self.value(node, name, read)
        return [
            self.keys(item, read[0](line=line_of(item)))
            if isinstance(read[0], type)
            else self.value(item, name, read[0])
            for item in self.items(node, name, 64)
        ]


def line_of(node: yaml.Node) -> int:
    """From 1 on."""
    return int(node.start_mark.line) + 1


def misfit(measure: Measure) -> str:
    """What is wrong with a measure, and the cure. {size} is in the command if there are
    sizes, and only then."""
    has_size, has_rate = "{size}" in measure.run, "{rate}" in measure.run
    objections = (
        (not measure.name, "a measure without a name; add 'name: ...'"),
        (not measure.run, "a measure that runs nothing; add 'run: throughput ...'"),
        (
            measure.run.split(" ")[0] in WITHOUT_DOCUMENT,
            (
                "run: that command writes no document of what was measured; a plan has tx, rx, "
                "loop, replay, nat, selftest and those that search"
            ),
        ),
        ("--out" in measure.run, "run: --out is set here; leave it out"),
        (
            has_size and not measure.sizes,
            "run has {size}, but there are none; add 'sizes: [60, 1514]'",
        ),
        (
            has_rate and not measure.rates,
            "run has {rate}, but there are none; add 'rates: [1M, 2M]'",
        ),
        (
            measure.sizes and not has_size,
            "there are sizes, but run has no {size}, as in '--size {size}'",
        ),
        (
            measure.rates and not has_rate,
            "there are rates, but run has no {rate}, as in '--rate {rate}'",
        ),
        (
            len(set(measure.sizes)) < len(measure.sizes)
            or len(set(measure.rates)) < len(measure.rates),
            "a size or a rate is there twice; use 'repeat' to measure again",
        ),
    )
    return next((text for is_wrong, text in objections if is_wrong), "")


def check(plan: Plan, reader: Reader) -> None:
    """What is read key by key, and does not go together; sets what is left out."""
    plan.prefix = plan.prefix.replace("\n", " ")
    if not plan.measures:
        raise reader.wrong(
            1,
            "nothing is measured; add 'measures: [{name: throughput, run: throughput PORT PORT}]'",
        )
    names: set[str] = set()
    for measure in plan.measures:
        # Words of one command: over several lines in the file, on one to the shell.
        measure.run = measure.run.replace("\n", " ").lstrip(" ")
        objection = misfit(measure)
        if not objection and measure.name in names:
            objection = "two measures have this name; give each its own"
        if objection:
            raise reader.wrong(measure.line, objection)
        names.add(measure.name)
        measure.time = measure.time or 60
        measure.limit = measure.limit or 10 * measure.time + 60
    names = set()
    for device in plan.devices:
        if not device.name:
            raise reader.wrong(device.line, "a device without a name; add 'name: ...'")
        if not device.start and (device.ready or device.stop):
            raise reader.wrong(
                device.line, "a device with ready or stop, but without start; add 'start: ...'"
            )
        if device.name in names:
            raise reader.wrong(device.line, "two devices have this name; give each its own")
        names.add(device.name)
    plan.devices = plan.devices or [Device()]
    if plan.count_steps() > MAX_STEPS:
        raise reader.wrong(1, f"more than {MAX_STEPS} steps; split the plan")


def compose(reader: Reader, text: bytes) -> yaml.Node | None:
    """The one document of a file."""
    if len(text) > MAX_BYTES:
        raise reader.wrong(1, "the file is larger than 1 MiB")
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        what = f"not valid YAML: {', '.join(filter(None, (error.problem, error.context)))}"
        if "single document" in (error.context or ""):
            what = "a second document begins here; only one is allowed, so remove the '---'"
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise reader.wrong(line, what) from None
    except yaml.reader.ReaderError as error:
        raise reader.wrong(
            text[: error.position].count(b"\n") + 1, f"not valid YAML: {error.reason}"
        ) from None
    except (ValueError, OverflowError):
        # The one number of a file that it reads itself.
        raise reader.wrong(
            loader.line + 1, "not valid YAML: '\\U...' above '\\U0010FFFF'"
        ) from None
    except RecursionError:
        raise reader.wrong(1, "not valid YAML: nested too deeply") from None
    return root


def parse(file: str, text: bytes) -> Plan:
    """Read a plan. file is its name, for messages and for the folder. Raises PlanError."""
    reader = Reader(file)
    root = compose(reader, text)
    plan = Plan()
    if root is not None:
        reader.keys(root, plan)
    check(plan, reader)
    # By default, results go beside the plan, in a folder of its name.
    plan.folder = plan.folder or f"{Path(file).with_suffix('')}.results"
    return plan
