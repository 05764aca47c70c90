# SPDX-License-Identifier: BSD-3-Clause
"""Every part has its tests and its page.

usage: check_mapping.py DRIVER...      (the drivers that were built)

lib/M/x.c, also in a folder of lib/M (but for lib/link, which has no code of its
own), has test/unit/M/x_test.c, or another test
there says in its head that it covers x.c, and so has apps/support/x.c; drivers
are in the conformance list and have a README with Options, Limits and Maturity,
whose options are those in the code.
"""
import re
import sys

import tree

KEYS = re.compile(r"static const char \*const \w+_keys\[\] = \{(.*?)\}", re.S)
# Of the applications, what they share.
SHARED = ("apps", "support")
HEADINGS = ["Options", "Limits", "Maturity"]
# Fewer than this many bytes of test are a stub, whatever their name is.
LEAST_BYTES = 300


def unit_tests(module):
    """{name without _test.c: text} of a module's unit tests."""
    return {path.name.removesuffix("_test.c"): tree.text(path)
            for path in tree.files("*_test.c")
            if path.parts[:3] == ("test", "unit", module)}


def check_modules(wrong):
    """Each .c of lib/ and apps/support is tested. How many there are."""
    sources = [path for path in tree.files("*.c")
               if path.parts[:-1] == SHARED or
               path.parts[0] == "lib" and path.parts[1] != "link"]
    for path in sources:
        module, name = path.parts[1], path.stem
        tests = unit_tests(module)
        covered = name in tests and len(tests[name]) >= LEAST_BYTES
        for text in tests.values():
            head = text[:text.find("#include")]
            covered = covered or re.search(rf"\b{name}\.c\b", head)
        if not covered:
            wrong.add(path, f"no test/unit/{module}/{name}_test.c, and no "
                      f"other test there names {name}.c in its head")
    return len(sources)


def check_options(wrong, driver, page):
    """The table of options has the keys that the driver knows."""
    source = "".join(tree.text(path) for path in
                     tree.files(f"drivers/{driver}/*.c"))
    in_code = set(re.findall(r'"([\w-]+)"', "".join(KEYS.findall(source))))
    section = re.search(r"^#+ Options\b(.*?)(?=^#+ |\Z)", page, re.M | re.S)
    in_page = set(re.findall(r"^\| `([\w-]+)`", section.group(1), re.M)) \
        if section else set()
    for key in sorted(in_code ^ in_page):
        wrong.add(f"drivers/{driver}/README.md", f"option {key} is only in "
                  f"the {'code' if key in in_code else 'README'}")


def check_drivers(wrong, drivers):
    """Each driver that was built has a page and is in the conformance list."""
    listing = "\n".join(tree.text(p) for p in tree.files("*.c", "*.h", "*.py",
                                                         "meson.build")
                        if p.parts[:2] == ("test", "conformance"))
    for driver in drivers:
        page = tree.TOP / "drivers" / driver / "README.md"
        if not page.exists():
            wrong.add(f"drivers/{driver}", "no README.md")
        else:
            for heading in HEADINGS:
                if not re.search(rf"^#+ {heading}\b", page.read_text(), re.M):
                    wrong.add(f"drivers/{driver}/README.md",
                              f"no heading {heading}")
            check_options(wrong, driver, page.read_text())
        if not re.search(rf"\b{driver}\b", listing):
            wrong.add(f"drivers/{driver}", "not in test/conformance")


@tree.check("modules and drivers")
def main(wrong):
    drivers = sys.argv[1:]
    n = check_modules(wrong)
    check_drivers(wrong, drivers)
    return n + len(drivers)
