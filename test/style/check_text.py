# SPDX-License-Identifier: BSD-3-Clause
"""Text: SPDX first, no stray blanks, no tabs in Python, our words, spelling, and
short examples."""
import re
import shutil
import subprocess

import tree

SPDX = "SPDX-License-Identifier: "
LICENCES = {"BSD-3-Clause"}
BPF_LICENCES = {"BSD-3-Clause OR GPL-2.0-only", "GPL-2.0-only OR BSD-3-Clause",
                "(GPL-2.0-only OR BSD-3-Clause)"}
# Formats that have no comments, and texts that are read as a page.
NO_SPDX = {".md", ".json", ".pcap", ".map", ".abi", ".txt", ".typed", ""}
NO_SPDX_NAMES = {".clang-format", ".editorconfig", ".gitignore", "LICENSE"}
BINARY = {".pcap", ".png", ".bin"}
# Zero-width and direction-changing characters: text that is not what it
# looks like (CVE-2021-42574).
INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u00ad]")
# Other projects' words for things that have a name here (docs/glossary.md). An
# option of theirs is called what they call it.
WORDS = re.compile(r"(?<!--)\b(mbufs?|packet buffers?|umem frames?|rte_mbuf)\b", re.I)
# Lines of a C program in examples/, which is read from top to bottom.
EXAMPLE_LINES = 160
OTHER_LINES = {"l2fwd.c": 45, "l3fwd.c": 300, "lb.c": 240, "lwip.c": 300}
# A word of mdoc(7), a member of libbpf's, and what Rust calls a package.
CODESPELL = ["--ignore-words-list", "nd,mmaped,crate,iif"]


def check_spdx(wrong, path, lines):
    """The licence is on the first line, or the second behind #!."""
    if path.suffix in NO_SPDX and not (lines and lines[0].startswith("#!")):
        return
    if path.name in NO_SPDX_NAMES:
        return
    i = 1 if lines and lines[0].startswith("#!") else 0
    # A configure_file template and man pages begin with their own comment.
    line = lines[i] if i < len(lines) else ""
    if SPDX not in line:
        wrong.add(path, "no SPDX-License-Identifier on the first line")
        return
    licence = line.split(SPDX)[1].replace("*/", "").strip().strip('"')
    allowed = BPF_LICENCES if path.name.endswith((".bpf.c", ".bpf.h")) else LICENCES
    if licence not in allowed:
        wrong.add(path, f"licence {licence}; {path.name} has "
                  f"{' or '.join(sorted(allowed))}")


def check_lines(wrong, path, text):
    """Blanks, tabs, invisible characters, words."""
    if text and not text.endswith("\n"):
        wrong.add(path, "no newline at the end")
    if text.endswith("\n\n"):
        wrong.add(path, "blank lines at the end")
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{path}:{number}"
        if line != line.rstrip():
            wrong.add(where, "blanks at the end of the line")
        if path.suffix == ".py" and "\t" in line:
            wrong.add(where, "a tab in Python")
        if path.suffix in (".c", ".h") and re.match(r" {8}", line):
            wrong.add(where, "indented with blanks; C uses tabs")
        if INVISIBLE.search(line):
            wrong.add(where, "an invisible character")


def check_length(wrong, path, lines):
    """An example is short."""
    limit = OTHER_LINES.get(path.name, EXAMPLE_LINES)
    if path.parts[0] == "examples" and path.suffix == ".c" and len(lines) > limit:
        wrong.add(path, f"{len(lines)} lines; at most {limit}")


def check_words(wrong, path, text):
    """Other projects' words; a line that cites its source may use them, and so
    may files that are about DPDK."""
    if path.suffix not in (".c", ".h", ".md", ".rs") or "dpdk" in str(path) or \
            path.name == "glossary.md":
        return
    for number, line in enumerate(text.splitlines(), 1):
        match = WORDS.search(line)
        if match and not re.search(r"DPDK|kernel|Source|\bVPP\b", line):
            wrong.add(f"{path}:{number}", f"{match.group(0)}: see "
                      "docs/glossary.md for our word")


def check_spelling(wrong, paths):
    """codespell over all of it. Whether it could be run."""
    if not shutil.which("codespell"):
        return False
    done = subprocess.run(
        ["codespell", *CODESPELL, *map(str, paths)], cwd=tree.TOP,
        capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        where, _, what = line.partition(": ")
        wrong.add(where, what)
    return True


@tree.check("files")
def main(wrong):
    paths = [p for p in tree.files() if p.suffix not in BINARY
             and "corpus" not in p.parts]
    for path in paths:
        text = tree.text(path)
        check_spdx(wrong, path, text.splitlines())
        check_lines(wrong, path, text)
        check_length(wrong, path, text.splitlines())
        check_words(wrong, path, text)
    if not check_spelling(wrong, paths) and wrong.n == 0:
        tree.skip("codespell is missing: spelling was not checked, the rest "
                  "is fine")
    return len(paths)
