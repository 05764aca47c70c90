# SPDX-License-Identifier: BSD-3-Clause
"""What the style checks share: the files of the tree, and how to complain."""
import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "test/support"))

from host import limit  # noqa: E402,F401 pylint: disable=wrong-import-position,unused-import

PUBLIC = Path("lib/include/millrace")
# Public headers that programs do not need, and millrace.h does not include.
FOR_DRIVERS = {"driver.h", "driver_base.h", "driver_frame.h", "driver_mem.h",
               "driver_spec.h", "experimental/driver_hand_over.h", "experimental/driver_offload.h",
               "experimental/netlink.h", "experimental/pci.h",
               "experimental/pci_bar.h"}
SKIP = 77  # what meson takes for "skipped"


def files(*patterns):
    """Files of the tree, relative to it, that match one of the globs.

    What git ignores is not of the tree. Without git (a release's archive)
    build folders and caches are left out by name.
    """
    git = subprocess.run(
        ["git", "-C", str(TOP), "ls-files", "-z", "--cached", "--others",
         "--exclude-standard"], capture_output=True, text=True, check=False)
    if git.returncode == 0:
        names = [Path(name) for name in git.stdout.split("\0") if name]
        names = [name for name in names if (TOP / name).is_file()]
    else:
        names = [path.relative_to(TOP) for path in TOP.rglob("*")
                 if path.is_file()]
        names = [name for name in names
                 if not name.parts[0].startswith(("build", ".git"))
                 and "__pycache__" not in name.parts]
    return sorted({name for name in names
                   if not patterns or any(name.match(p) for p in patterns)})


def text(name):
    """The text of a file of the tree."""
    return (TOP / name).read_text(encoding="utf-8")


def public_headers():
    """{what follows <millrace/: file}."""
    return {str(f.relative_to(PUBLIC)): f for f in files("*.h")
            if f.is_relative_to(PUBLIC)}


def exported(header):
    """The functions that a public header declares."""
    return set(re.findall(r"MR_API\b[^;{]*?\b(mr_\w+)\s*\(",
                          blank_comments(text(header))))


def blank_comments(source):
    """The source with comments as blanks; lines keep their numbers."""
    pattern = re.compile(
        r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

    def blank(match):
        token = match.group(0)
        if token[0] in "\"'":
            return token
        return re.sub(r"[^\n]", " ", token)

    return pattern.sub(blank, source)


def blank_strings(source):
    """The source with the insides of string literals as blanks."""
    return re.sub(r'"(?:\\.|[^"\\\n])*"',
                  lambda m: '"' + " " * (len(m.group(0)) - 2) + '"', source)


def skip(why):
    print(why)
    sys.exit(SKIP)


class Complaints:
    """Collects what is wrong; end() is the exit of a check."""

    def __init__(self):
        self.n = 0

    def add(self, where, what):
        """One line for a person: where, and what to do about it."""
        print(f"{where}: {what}")
        self.n += 1

    def end(self, n_checked, of_what):
        """Exit: 1 if there were complaints, or if nothing was looked at."""
        if n_checked == 0:
            print(f"found no {of_what} to check: the check is broken")
            sys.exit(1)
        print(f"{n_checked} {of_what}, {self.n} complaints")
        sys.exit(1 if self.n else 0)


def check(of_what):
    """Run the function below as a check: it is given the Complaints and returns
    how many things it looked at. Exits."""
    def run(function):
        wrong = Complaints()
        wrong.end(function(wrong), of_what)
    return run
