# SPDX-License-Identifier: BSD-3-Clause
"""What README, CONTRIBUTING and docs/ name exists.

usage: check_readme.py [PROGRAM...]

Commands in sh blocks and in `ticks`: ./mr COMMAND is one of ./mr help, options
of the programs and of ./mr demo are in their --help. Paths in ticks and links
are in the tree. C blocks are parts of a file of examples/, word for word.
"""
import re
import subprocess
import sys
from pathlib import Path

import tree
from tree import limit

PAGES = ["README.md", "CONTRIBUTING.md", "docs/start.md", "docs/port-specs.md",
         "docs/benchmarking.md",
         "docs/embedding.md", "bindings/python/README.md",
         "drivers/README.md", "plugins/dpdk/README.md"]
MATURITIES = ("Experimental", "Tested", "Measured")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
TICKS = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
# Roots of the tree; other paths, such as /sys and /etc, are the system's.
ROOTS = ("lib/", "drivers/", "bindings/", "plugins/", "apps/", "examples/", "config/",
         "test/", "docs/")


def help_of(*command):
    done = subprocess.run([str(word) for word in command], text=True,
                          cwd=tree.TOP, capture_output=True, check=False,
                          timeout=limit(20))
    return done.stdout + done.stderr


class Checker:
    """Knows the commands, looks at the pages."""

    def __init__(self, programs):
        self.wrong = tree.Complaints()
        self.n = 0
        mr_help = help_of("./mr", "help")
        self.mr_commands = set(re.findall(r"^  (\w+)", mr_help, re.M))
        self.options = {
            "./mr demo": help_of("/usr/bin/python3", "apps/demo/demo.py",
                                 "--help"),
        }
        for program in programs:
            self.options[program.name] = help_of(program, "--help")

    def command(self, where, line):
        line = line.split("#")[0].removeprefix("$ ").strip()
        match = re.search(r"(?:^|\s)\./mr (\w+)", line)
        if match:
            self.n += 1
            if match.group(1) not in self.mr_commands:
                self.wrong.add(where, f"./mr has no command {match.group(1)}")
        for name, help_text in self.options.items():
            if not re.search(rf"(?:^|[\s/]){re.escape(name)}\b", line):
                continue
            for option in re.findall(r"\s(--[\w-]+)", line.split(name)[1]):
                self.n += 1
                if not re.search(rf"{option}\b", help_text):
                    self.wrong.add(where, f"{name} has no option {option}")

    def path(self, where, name):
        if not name.startswith(ROOTS) or "<" in name or "NNNN" in name:
            return
        self.n += 1
        name = name.rstrip("/")
        found = list(tree.TOP.glob(name))
        if not found:
            self.wrong.add(where, f"there is no {name}")

    def c_block(self, where, block):
        """A C block is somewhere in examples/."""
        self.n += 1
        wanted = [line.strip() for line in block.splitlines() if line.strip()]
        for path in tree.files("examples/*.c"):
            lines = [line.strip() for line in tree.text(path).splitlines()
                     if line.strip()]
            if any(lines[i:i + len(wanted)] == wanted
                   for i in range(len(lines))):
                return
        self.wrong.add(where, f"the C block '{wanted[0]}' is in no example")

    def page(self, name):
        text = tree.text(name)
        for language, block in FENCE.findall(text):
            if language == "c":
                self.c_block(name, block)
            elif language in ("sh", "console"):
                for line in block.splitlines():
                    if language == "sh" or line.startswith("$ "):
                        self.command(name, line)
        prose = FENCE.sub("", text)
        for ticked in TICKS.findall(prose):
            self.command(name, ticked)
            self.path(name, ticked)
        base = (tree.TOP / name).parent
        for target in LINK.findall(prose):
            self.n += 1
            if not (base / target).exists():
                self.wrong.add(name, f"broken link {target}")


def check_maturity(checker, readme):
    """The README's table says what each driver's own README says."""
    for path in tree.files("drivers/*/README.md"):
        driver = path.parts[1]
        page = re.search(r"^#+ Maturity\s+(\w+)", tree.text(path), re.M)
        # Behind vfio: are several drivers, a row for each.
        row = re.search(rf"^\| `({driver}:|vfio:.*\bdrivers/{driver}\b).*"
                        r"\| (\w+)[^|]*\|$", readme, re.M)
        checker.n += 1
        if not page or page.group(1) not in MATURITIES:
            checker.wrong.add(path, "Maturity begins with none of "
                              f"{', '.join(MATURITIES)}")
        elif not row or row.group(2).lower() != page.group(1).lower():
            checker.wrong.add("README.md", f"{driver}: is "
                              f"{page.group(1).lower()} in {path}")


def main():
    # meson passes a path that is relative to the build folder.
    checker = Checker([Path(name).resolve() for name in sys.argv[1:]])
    for name in PAGES:
        if (tree.TOP / name).exists():
            checker.page(name)
        else:
            checker.wrong.add(name, "is missing")
    readme = tree.text("README.md") if (tree.TOP / "README.md").exists() else ""
    for path in ("examples/l2fwd.c", "lib/include/millrace/port.h",
                 "drivers/null/null.c", "drivers/xdp/socket/rx.c"):
        if path not in readme:
            checker.wrong.add("README.md", f"reading path: {path} is not named")
    check_maturity(checker, readme)
    checker.wrong.end(checker.n, "commands, paths and code blocks")


main()
