# SPDX-License-Identifier: BSD-3-Clause
"""Sizes stay within budget.txt: files, functions, headers, drivers, API."""
import ast
import re

import tree

READING_PATH = ["examples/l2fwd.c", "lib/include/millrace/port.h",
                "drivers/null/null.c", "drivers/xdp/xdp_rx.c"]


def read_budget():
    """{budget: limit} and {(budget, file): limit}."""
    limits, exceptions = {}, {}
    for line in tree.text("test/style/budget.txt").splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] == "except":
            if len(words) < 5:
                raise SystemExit(f"budget.txt: {line}: an exception needs a "
                                 "reason")
            exceptions[words[1], words[2]] = int(words[3])
        else:
            limits[words[0]] = int(words[1])
    return limits, exceptions


class Checker:
    """Compares sizes with limits; remembers which exceptions were used."""

    def __init__(self):
        self.wrong = tree.Complaints()
        self.limits, self.exceptions = read_budget()
        self.n = 0
        self.used = set()

    def check(self, budget, where, size):
        """Complain if size is above the budget."""
        self.n += 1
        key = (budget, str(where))
        limit = self.limits[budget]
        if size > limit and key in self.exceptions:
            self.used.add(key)
            limit = self.exceptions[key]
        if size > limit:
            self.wrong.add(where, f"{budget}: {size}, the budget is {limit}")

    def end(self):
        """Exit. An exception that nobody needs is a budget that was lost."""
        for key in sorted(set(self.exceptions) - self.used):
            self.wrong.add("budget.txt", f"exception {key[0]} of {key[1]} is "
                           "not needed")
        self.wrong.end(self.n, "sizes")


def functions(path):
    """(name, lines, first line) of each function; kernel style has the
    closing brace, and only that one, in column 0."""
    lines = tree.blank_comments(tree.text(path)).splitlines()
    start = None
    for i, line in enumerate(lines):
        if line == "{":
            start = i
        elif line.startswith("}") and start is not None:
            head = start
            while head > 0 and lines[head - 1].strip() and \
                    not lines[head - 1].rstrip().endswith((";", "}")) and \
                    not lines[head - 1].startswith("#"):
                head -= 1
            signature = " ".join(lines[head:start])
            match = re.search(r"(\w+)\s*\(", re.sub(
                r"__attribute__\s*\(\(.*?\)\)", "", signature))
            yield (match.group(1) if match else "?"), i - head + 1, head + 1
            start = None


def code_lines(path):
    """Lines that are neither blank nor comment."""
    return sum(1 for line in
               tree.blank_comments(tree.text(path)).splitlines()
               if line.strip())


def check_python(checker, path):
    """Python functions count too."""
    for node in ast.walk(ast.parse(tree.text(path))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            checker.check("lines_per_function", f"{path}:{node.name}",
                          node.end_lineno - node.lineno + 1)


def check_file(checker, path):
    lines = tree.text(path).splitlines()
    if path.parts[:2] == ("lib", "include"):
        checker.check("lines_per_header", path, len(lines))
    elif path.parts[0] == "examples":
        checker.check("lines_per_example", path, len(lines))
    else:
        checker.check("lines_per_file", path, len(lines))
    if path.suffix == ".rs":
        return  # clippy counts functions
    if path.suffix == ".py":
        check_python(checker, path)
        return
    for name, n, _ in functions(path):
        if path.parts[0] == "examples" and name == "main":
            checker.check("lines_of_example_main", f"{path}:main", n)
        else:
            checker.check("lines_per_function", f"{path}:{name}", n)


def main():
    checker = Checker()
    for path in tree.files("*.c", "*.h", "*.py", "*.rs"):
        check_file(checker, path)
    drivers = {path.parts[1] for path in tree.files("drivers/*/*.c")}
    for driver in sorted(drivers):
        sources = [path for path in tree.files("*.c", "*.h")
                   if path.parts[:2] == ("drivers", driver)]
        checker.check("files_per_driver", f"drivers/{driver}",
                      sum(path.suffix == ".c" for path in sources))
        checker.check("lines_per_driver", f"drivers/{driver}",
                      sum(len(tree.text(p).splitlines()) for p in sources))
    checker.check("lines_of_engine", "apps/bench", sum(
        len(tree.text(p).splitlines()) for p in tree.files("apps/bench/*.c", "apps/bench/*.h")))
    checker.check("lines_of_top_meson", "meson.build",
                  len(tree.text("meson.build").splitlines()))
    n_functions = {"public_functions": 0, "flow_functions": 0,
                   "experimental_functions": 0}
    for name, path in tree.public_headers().items():
        kind = "experimental" if name.startswith("experimental/") else \
            "flow" if name == "flow.h" else "public"
        n_functions[kind + "_functions"] += len(tree.exported(path))
    for budget, n in n_functions.items():
        checker.check(budget, tree.PUBLIC, n)
    checker.check("reading_path_lines", "the reading path", sum(
        code_lines(path) for path in READING_PATH
        if (tree.TOP / path).exists()))
    checker.end()


main()
