#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write man pages of all public functions, and millrace(7), which lists them.

usage: man_functions.py INCLUDE VERSION MAN3 MILLRACE.7

MAN3 is a folder, which is made anew.
"""
import re
import shutil
import sys
import textwrap
from pathlib import Path

import docstrings

MADE = '.\\" Made by docs/man_functions.py from {}.\n'
# The labels of a docstring, as CONTRIBUTING.md has them.
LABEL = re.compile(r"(?:^|(?<=\. )|(?<=\.\n))"
                   r"((?:Owner|Thread|Cost|Order|Lost|Source)"
                   r"(?:, (?:thread|cost))*):\s+", re.M)
TAG = re.compile(r"(?:^|(?<=\. )|(?<=\.\n))@(param|return)(?:\[[\w,]+\])?\s+",
                 re.M)
# A line of the list of results.
RESULT = re.compile(r" *(-E\w+(?:, -E\w+)*|others?)\s+(.*)")
# What only the library looks into.
OPAQUE = re.compile(r"mr_(?:cache|ctx|pool|port|region|ring\w*|[rt]xq|queue)$")


def roff(text):
    """Text in a line of roff, with references in their fonts."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    text = re.sub(r"@p (\w+(?:\->\w+)?)", r"\\fI\1\\fP", text)
    text = re.sub(r"\b(mr_\w+)\(\)", r"\\fB\1\\fP(3)", text)
    return r"\&" + text if text[:1] in ("'", ".") else text


def verbatim(text):
    """Lines that keep their breaks and spaces."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    lines = (r"\&" + line if line[:1] in ("'", ".") else line
             for line in text.expandtabs(8).split("\n"))
    return ".nf\n" + "\n".join(lines) + "\n.fi\n"


def indent(line):
    return len(line) - len(line.lstrip())


def listed(lines, i, depth):
    """An entry of a list, which begins at line i; the line after it."""
    end = i + 1
    while end < len(lines) and lines[end] and indent(lines[end]) > depth:
        end += 1
    return " ".join(line.strip() for line in lines[i:end]), end


def body(text):
    """Paragraphs, code (indented by 4), and lists of errors or of dashes."""
    lines, out, i = text.split("\n"), [], 0
    while i < len(lines):
        line, depth = lines[i], indent(lines[i])
        if RESULT.match(line):
            what, i = listed(lines, i, depth)
            tag, what = RESULT.match(what).groups()
            out.append(f".TP\n.B {roff(tag)}\n{roff(what)}\n")
        elif re.match(r" *- ", line):
            what, i = listed(lines, i, depth)
            out.append(f".IP \\- 2\n{roff(what[2:])}\n")
        elif depth >= 4:
            end = i
            while end < len(lines) and (not lines[end] or
                                        indent(lines[end]) >= 4):
                end += 1
            code = "\n".join(x[4:] for x in lines[i:end]).strip("\n")
            out.append(f".PP\n.RS 4\n{verbatim(code)}.RE\n")
            i = end
        elif not line:
            out.append(".PP\n")
            i += 1
        else:
            if out and out[-1].startswith((".TP", ".IP")):
                out.append(".PP\n")
            out.append(roff(line.strip()) + "\n")
            i += 1
    text = re.sub(r"(?:\.PP\n)+(?=\.(?:PP|TP|IP|RE)|$)", "", "".join(out))
    return re.sub(r"^\.PP\n", "", text)


def even(text):
    """Without the indentation that continuation lines share."""
    first, *rest = text.split("\n")
    depth = min((indent(x) for x in rest if x and not
                 re.match(r" *-E", x)), default=0)
    return "\n".join([first.strip(), *(x[depth:] if indent(x) >= depth else
                                       x.strip() for x in rest)])


def parts(doc):
    """What a docstring says: text, parameters, result, labels."""
    params, result, labels = [], "", []
    starts = [*TAG.finditer(doc), *LABEL.finditer(doc)]
    starts.sort(key=lambda match: match.start())
    ends = [match.start() for match in starts] + [len(doc)]
    for match, end in zip(starts, ends[1:]):
        what = even(doc[match.end():end].strip("\n "))
        if match[1] == "param":
            name, _, what = what.partition(" ")
            params.append((name, what.strip()))
        elif match[1] == "return":
            result = what
        else:
            labels.append((match[1], " ".join(what.split())))
    return doc[:ends[0]].strip("\n"), params, result, labels


def brief(text):
    """The first sentence, as a page's NAME has it."""
    text = " ".join(text.split("\n\n")[0].split())
    first = re.match(r"(.*?)(?:[.:;](?:\s|$)|$)", text)[1]
    return re.sub(r"@p (\w+)", r"\1", first)


def prototype(declaration):
    """A declaration on lines of at most 76 columns, broken after commas."""
    head, _, rest = " ".join(declaration.removeprefix("static inline ")
                             .split()).partition("(")
    line = f"{head}({rest};".replace(" ", "\0").replace(",\0", ", ")
    return "\n".join(textwrap.wrap(
        line, 76, break_long_words=False,
        subsequent_indent=" " * (len(head) + 1))).replace("\0", " ")


def structs(source, declaration):
    """The definitions in this header of the structs that a function takes."""
    for name in dict.fromkeys(re.findall(r"struct (mr_\w+)", declaration)):
        if OPAQUE.match(name):
            continue
        if found := re.search(rf"^struct {name} {{.*?^}}[^;]*;", source,
                              re.M | re.S):
            yield found[0]


def page(function, header, source, version):
    doc = function.doc
    text, params, result, labels = parts(doc)
    name = function.name
    out = [MADE.format(header),
           f'.TH {name.upper()} 3 "" "Millrace {version}" '
           '"Library functions"\n',
           f".SH NAME\n{name} \\- {roff(brief(text or result))}\n",
           f".SH SYNOPSIS\n.B #include <{header}>\n.PP\n",
           verbatim(prototype(function.declaration))]
    for struct in structs(source, function.declaration):
        out.append(".PP\n" + verbatim(struct))
    if text:
        out.append(f".SH DESCRIPTION\n{body(text)}")
    for tag, what in params:
        out.append(f".TP\n.I {roff(tag)}\n{body(what)}")
    if result:
        out.append(f".SH RETURN VALUE\n{body(result)}")
    if labels:
        out.append(".SH ATTRIBUTES\n")
        for tag, what in labels:
            out.append(f".TP\n{tag}\n{roff(what)}\n")
    also = sorted(set(re.findall(r"\b(mr_\w+)\(\)", doc)) - {name})
    out.append(".SH SEE ALSO\n" + "".join(f".BR {x} (3),\n" for x in also) +
               ".BR millrace (7)\n")
    return "".join(out)


def overview(headers, version):
    """millrace(7): every header, and its functions."""
    out = [MADE.format("the headers"),
           f'.TH MILLRACE 7 "" "Millrace {version}" '
           '"Miscellaneous information"\n',
           ".SH NAME\nmillrace \\- packet I/O past the kernel\n",
           ".SH SYNOPSIS\n.B #include <millrace/millrace.h>\n.PP\n",
           ".B cc program.c "
           "$(pkg\\-config \\-\\-cflags \\-\\-libs libmillrace)\n",
           ".SH DESCRIPTION\n"
           "Ports bring frames from devices into the memory of the program, "
           "and send them from there:\n"
           "AF_XDP sockets, NICs through vfio, TAP devices, files, DPDK's "
           "ports.\nTheir buffers are pages of a pool, which recycles them.\n"
           "Headers below\n.I millrace/experimental\n"
           "may still change between versions.\n"]
    for header, about, functions in headers:
        out.append(f".SS <{header}>\n{body(about)}")
        for name, what in functions:
            out.append(f".TP\n.BR {name} (3)\n{roff(what)}\n")
    out.append(".SH SEE ALSO\n.BR mr-ports (7),\n.BR mr-l2fwd (1),\n"
               ".BR mr-devices (8)\n")
    return "".join(out)


def main():
    include, version, man3, man7 = sys.argv[1:]
    shutil.rmtree(man3, ignore_errors=True)
    Path(man3).mkdir()
    headers = []
    for path in sorted(Path(include).rglob("*.h"),
                       key=lambda path: (len(path.parts), path.name)):
        source, header = path.read_text(), str(path.relative_to(include))
        briefs = []
        for function in docstrings.functions(source):
            (Path(man3) / f"{function.name}.3").write_text(
                page(function, header, source, version))
            text, _, result, _ = parts(function.doc)
            briefs.append((function.name, brief(text or result)))
        if briefs:
            headers.append((header, docstrings.about(source), briefs))
    Path(man7).write_text(overview(headers, version))


if __name__ == "__main__":
    main()
