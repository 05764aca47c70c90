# SPDX-License-Identifier: BSD-3-Clause
"""The page of mr-bench report: one HTML file that needs nothing else, no
script, no network. Each chart is an inline SVG with its figures in a table
below it; a browser prints it as it is, and shows it light or dark."""

import itertools
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jinja2
from markupsafe import Markup

from mr_bench.document import Document, list_of, member, number_of, text_of
from mr_bench.page import loss, rates, times
from mr_bench.page.chart import svg
from mr_bench.page.model import Block, Cell, Shown

MAX_NAME = 60
# Of a machine, what changes between two measurements.
MOVES = {"load", "huge_pages_free", "millrace", "command", "date"}
# Options whose default is 0; of others, as --verify, 0 is an answer.
ZEROS = {"burst", "confirm_s", "count", "duration_s", "loss_tolerance", "page_bytes", "pool_pages"}
ZEROS |= {"queues", "ring", "seed", "settle_s", "size", "workers"}


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


def _still(one: Shown) -> dict[str, Any]:
    """The facts about a machine that do not change."""
    return {key: value for key, value in one.root["machine"].items() if key not in MOVES}


def _same(shown: list[Shown]) -> dict[str, str]:
    """The name of the first document of a machine, by the names of others."""
    first: list[Shown] = []
    same = {}
    for one in shown:
        other = next((other for other in first if _still(other) == _still(one)), None)
        if other is None:
            first.append(one)
        else:
            same[one.name] = other.name
    return same


def _options(values: Any, is_asked: bool) -> list[tuple[str, str]]:
    """What was asked for, or measured beside the results, as JSON has it. What nobody asked for
    is false, empty, or 0."""
    return [
        (key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for key, value in (values if isinstance(values, dict) else {}).items()
        if not (is_asked and (value is False or value in ("", []) or (key in ZEROS and value == 0)))
    ]


def _clock_error(root: Any) -> float:
    """The largest error of a time in its trials."""
    errors = [number_of(trial, "clock_error_ns") for trial in root["trials"]]
    return max([number_of(root, "clock", "error_ns"), *errors])


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
    """One line for all documents with the same note."""
    names: dict[tuple[int, str], list[str]] = {}
    for one in shown:
        for i, note in enumerate(_caveats(one.root)):
            if note:
                names.setdefault((i, note), []).append(one.name)
    return [f"{'; '.join(names[key])}: {key[1]}" for key in sorted(names, key=lambda key: key[0])]


# Parts of the page, in their order.
SECTIONS = {
    "rates": rates.rates,
    "loss": loss.loss,
    "latency": times.latency,
    "results": rates.others,
    "pacing": times.pacing,
}


def _clean(value: Any) -> Any:
    """HTML has no place for control characters."""
    if value is None:
        return ""
    if isinstance(value, str) and not isinstance(value, Markup):
        return re.sub("[\x00-\x08\x0b-\x1f\ud800-\udfff]", "?", value)
    return value


@dataclass(frozen=True)
class Section:
    """A part of the page that is no figure of a document."""

    name: str
    title: str
    text: str
    blocks: list[Block]


def render(documents: list[Document], title: str, first: Sequence[Section] = ()) -> str:
    """The page for documents of the commands that send and receive. first: in front of their
    charts."""
    shown = _shown(documents)
    numbers = itertools.count(1)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mr_bench.page", "."),
        autoescape=True,
        finalize=_clean,
        # Documents may lack anything.
        undefined=jinja2.ChainableUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(
        title=title,
        shown=shown,
        notes=_notes(shown),
        first=first,
        sections=[(name, make(shown)) for name, make in SECTIONS.items() if shown],
        same=_same(shown),
        options=_options,
        clock_error=_clock_error,
        json=json.dumps,
        only_texts=lambda value: [
            one for one in list_of({"x": value}, "x") if isinstance(one, str)
        ],
        cell=lambda value: value if isinstance(value, Cell) else Cell(value),
        svg=lambda chart: svg(chart, next(numbers)),
    )
