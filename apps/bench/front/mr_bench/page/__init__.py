# SPDX-License-Identifier: BSD-3-Clause
"""The page of mr-bench report: one HTML file that needs nothing else, no
script, no network. Each chart is an inline SVG with its figures in a table
below it; a browser prints it as it is, and shows it light or dark."""

import itertools
import os
import re
from collections.abc import Iterator
from typing import Any

import jinja2
from markupsafe import Markup

from mr_bench.document import Document, member, text_of
from mr_bench.page import loss, machines, rates, times
from mr_bench.page.chart import svg
from mr_bench.page.model import Cell, Section, Shown, Table

MAX_NAME = 60


def _names(documents: list[Document]) -> list[str]:
    """The label, or the file's name; what tells it from others of that name:
    the command, or else a number."""
    names: list[str] = []
    for document in documents:
        base = (text_of(document.root, "label") or os.path.basename(document.name))[:MAX_NAME]
        kind = text_of(document.root, "kind")[:12]
        wanted = itertools.chain(
            [base, f"{base} {kind}"], (f"{base} ({k})" for k in itertools.count(2))
        )
        names.append(next(name for name in wanted if name not in names))
    return names


def _shown(documents: list[Document]) -> list[Shown]:
    colours: dict[str, int] = {}
    return [
        Shown(
            document.root,
            document.name,
            name,
            colours.setdefault(name.partition(", round ")[0], len(colours)),
        )
        for document, name in zip(documents, _names(documents))
    ]


def _summary(shown: list[Shown]) -> Table:
    return Table(
        "What was measured",
        ["Name", "Command", "Date", "Millrace", "Trials"],
        [
            [
                one.name,
                *(text_of(one.root, key) for key in ("kind", "date", "millrace")),
                str(len(one.root["trials"])),
            ]
            for one in shown
        ],
    )


def _caveats(root: Any) -> list[str]:
    """What a reader must know before the figures; "": nothing of that
    kind."""
    is_limited = any(row.get("is_limited_by_tester") is True for row in root["rows"])
    return [
        f"not complete: {text_of(root, 'why_incomplete')[:200]}"
        if root.get("complete") is False
        else "",
        "values with \u2265 or \u2264 are where the tester's own limit was; "
        "the device may do better"
        if is_limited
        else "",
        "a virtual clock: figures of a calculation, not of a machine"
        if member(root, "clock", "source") == "virtual"
        else "",
    ]


def _notes(shown: list[Shown]) -> list[str]:
    """One line for all documents that it is true of."""
    names: dict[tuple[int, str], list[str]] = {}
    for one in shown:
        for i, note in enumerate(_caveats(one.root)):
            if note:
                names.setdefault((i, note), []).append(one.name)
    return [f"{'; '.join(names[key])}: {key[1]}" for key in sorted(names, key=lambda key: key[0])]


def _sections(shown: list[Shown]) -> Iterator[Section]:
    """Those that have something to show."""
    for make in (
        rates.rates,
        loss.loss,
        times.latency,
        rates.others,
        loss.over_time,
        times.pacing,
        machines.machines,
    ):
        section = make(shown)
        if section:
            yield section


def _clean(value: Any) -> Any:
    """HTML has no place for control characters."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return re.sub("[\x00-\x08\x0b-\x1f\ud800-\udfff]", "?", value)
    return value


def render(documents: list[Document], title: str) -> str:
    """The whole; documents of the commands that send and receive."""
    shown = _shown(documents)
    numbers = itertools.count(1)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mr_bench.page", "."),
        autoescape=True,
        finalize=_clean,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(
        title=title,
        summary=_summary(shown),
        notes=_notes(shown),
        sections=_sections(shown),
        cell=lambda value: value if isinstance(value, Cell) else Cell(value),
        svg=lambda chart: svg(chart, next(numbers)),
    )
