#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Print mr-ports(7), made from docs/port-specs.md and the drivers' pages.

usage: man_ports.py TOP

The table in port-specs.md and the drivers' pages must list the same keys; a key
that is in only one of them is an error.
"""
import re
import sys
from pathlib import Path

HEAD = r""".\" Made by docs/man_ports.py from docs/port-specs.md.
.TH MR-PORTS 7 "" Millrace "Miscellaneous information"
.SH NAME
mr-ports \- port specs of Millrace's programs
.SH SYNOPSIS
.RI [ driver\fB:\fP ] device [\fB,\fP key [\fB=\fP value ]...]
.SH DESCRIPTION
One string names any port, for every program:
.BR xdp:eth0,queues=2 .
Each key below is followed by its values and the default.
"""
TAIL = r""".SH FILES
.TP
.I share/doc/millrace/port-specs.md
The same as one table.
.TP
.IR /run/millrace/xdp\-* ", " /run/millrace\-root/xdp\-*
Changes that open
.B xdp:
ports have made to interfaces; after SIGKILL, the next start undoes them.
.SH SEE ALSO
.BR mr-l2fwd (1),
.BR mr-nat (1),
.BR mr-bench (1),
.BR mr-devices (8)
"""


def roff(text):
    """Turn Markdown's marks into fonts."""
    text = text.strip().replace("\\|", "|").replace("\\", r"\e")
    text = text.replace("-", r"\-")
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`([^`]*)`", r"\\fB\1\\fP", text)
    text = re.sub(r"\*\*([^*]*)\*\*", r"\\fI\1\\fP", text)
    text = re.sub(r"\*([^*]*)\*", r"\\fI\1\\fP", text)
    return r"\&" + text if text[:1] in ("'", ".") else text


def cells(line):
    """The cells of a table row."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def rules(text):
    """The list of port-specs.md as paragraphs."""
    found = re.findall(r"^- (.*(?:\n  .*)*)", text, re.M)
    return "".join(f".PP\n{roff(' '.join(rule.split()))}\n" for rule in found)


def options(page):
    """(key, values, meaning) of the options on a driver's page."""
    section = page.partition("\n## Options\n")[2].partition("\n## ")[0]
    for line in section.splitlines():
        if match := re.match(r"\| `([a-z-]+)` \|", line):
            *values, meaning = cells(line)[1:]
            yield match.group(1), "; ".join(filter(None, values)), meaning


def driver(top, row):
    """The section of the page for a row of port-specs.md."""
    name, device, keys, more = row
    page = (top / "docs" / re.search(r"\((.*)\)", more).group(1)).read_text()
    found = list(options(page))
    listed = set(re.findall(r"`([a-z-]+)(?:=[^`]*)?`", keys))
    if differ := listed ^ {key for key, _, _ in found}:
        raise SystemExit(f"{name}: not both in docs/port-specs.md and on its "
                         f"page: {', '.join(sorted(differ))}")
    text = f".SH {roff(f'{name}: {device}'.replace('`', '')).upper()}\n"
    for key, values, meaning in found:
        tag = f"`{key}` ({values})" if values else f"`{key}`"
        text += f".TP\n{roff(tag)}\n{roff(meaning)}\n"
    return text


def main():
    top = Path(sys.argv[1])
    text = (top / "docs/port-specs.md").read_text(encoding="utf-8")
    rows = [cells(line) for line in text.splitlines()
            if line.startswith("| `")]
    print(HEAD + rules(text) + "".join(driver(top, row) for row in rows)
          + TAIL, end="")


if __name__ == "__main__":
    main()
