#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A Markdown page as doxygen is to read it: headings get the IDs that links to
them use, and links to files that are not pages become their text.

usage: site_page.py PAGE
"""
import re
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^ *```", re.MULTILINE)
HEADING = re.compile(r"^(##+ )(.*)$", re.MULTILINE)
LINK = re.compile(r"\[([^][]+)\]\(([^()#:]*)(?:#([\w-]+))?\)")


def heading_id(page, slug):
    """IDs of all pages share one name space."""
    place = page.relative_to(TOP) if page.is_relative_to(TOP) else Path(page.name)
    return "-".join((*place.with_suffix("").parts, slug))


def with_ids(page, text):
    def heading(match):
        slug = re.sub(r"[^\w -]", "", match[2].lower()).replace(" ", "-")
        return f"{match[0]} {{#{heading_id(page, slug)}}}"

    def link(match):
        label, path, slug = match.groups()
        target = (page.parent / path).resolve() if path else page
        if target.suffix != ".md":
            return label
        return f"[{label}](#{heading_id(target, slug)})" if slug else match[0]

    return LINK.sub(link, HEADING.sub(heading, text))


def main():
    page = Path(sys.argv[1]).resolve()
    # What stands between fences is code.
    parts = re.split(r"(^ *```.*?^ *```$)", page.read_text(),
                     flags=re.MULTILINE | re.DOTALL)
    sys.stdout.write("".join(
        part if FENCE.match(part) else with_ids(page, part)
        for part in parts))


main()
