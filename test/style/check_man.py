# SPDX-License-Identifier: BSD-3-Clause
"""A man page has the same options as --help, and is well-formed and complete.

usage: check_man.py PROGRAM PAGE
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

import tree
from tree import limit


def options_of(text):
    """Long options, without their values."""
    return set(re.findall(r"(?<![\w-])--([a-z][\w-]*)", text))


def help_of(program):
    """What --help says, that of each of its commands included."""
    def ask(*words):
        return subprocess.run([program, *words, "--help"], capture_output=True,
                              text=True, check=True, timeout=limit(20)).stdout
    text = ask()
    listing = text.partition("\nCommands")[2].partition("\n\n")[0]
    commands = re.findall(r"^  ([a-z]\w*) ", listing, re.M)
    return text + "".join(ask(command) for command in commands)


@tree.check("options")
def main(wrong):
    program, page = sys.argv[1:]
    help_text = help_of(program)
    text = re.sub(r"\\f[A-Z]", "", Path(page).read_text().replace(r"\-", "-"))
    in_help, in_page = options_of(help_text), options_of(text)
    for name in sorted(in_help - in_page):
        wrong.add(page, f"--{name} is missing")
    for name in sorted(in_page - in_help):
        wrong.add(page, f"--{name} is not in --help")
    for section in "EXIT STATUS", "FILES", "SEE ALSO":
        if not re.search(rf"^\.SH \"?{section}", text, re.M | re.I):
            wrong.add(page, f"no section {section}")
    if not re.search(r"\bmr-ports ?\(7\)", text):
        wrong.add(page, "does not refer to mr-ports(7), the port specs")
    if shutil.which("groff"):
        said = subprocess.run(["groff", "-mandoc", "-ww", "-z", page],
                              capture_output=True, text=True, check=False)
        for line in said.stderr.splitlines():
            wrong.add(page, line)
    return len(in_help)
