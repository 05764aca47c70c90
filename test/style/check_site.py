# SPDX-License-Identifier: BSD-3-Clause
"""The documentation builds without warnings, and its links have targets.

usage: check_site.py DOXYFILE
"""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import unquote

import tree
from tree import limit


def links(pages, wrong):
    """Links between pages; those to other hosts are not followed."""
    texts = {page.name: page.read_text(errors="replace") for page in pages}
    ids = {name: set(re.findall(r' (?:id|name)="([^"]+)"', text))
           for name, text in texts.items()}
    for name, text in texts.items():
        for link in set(re.findall(r'(?:href|src)="([^"]+)"', text)):
            if re.match(r"\w+:", link):
                continue
            path, _, anchor = unquote(link).partition("#")
            target = pages[0].parent / (path or name)
            if not target.exists() or (
                    anchor and anchor not in ids.get(target.name, [anchor])):
                wrong.add(name, f"dead link to {link}")


@tree.check("pages of the documentation")
def main(wrong):
    if not shutil.which("doxygen"):
        tree.skip("doxygen is missing")
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(sys.argv[1]).read_text() + \
            f"\nOUTPUT_DIRECTORY = {folder}\n"
        done = subprocess.run(["doxygen", "-"], input=settings, text=True,
                              capture_output=True, check=False,
                              timeout=limit(120))
        for line in done.stderr.splitlines():
            if "warning:" in line or "error:" in line:
                wrong.add("doxygen", line)
        if done.returncode != 0 and wrong.n == 0:
            wrong.add("doxygen", f"exit status {done.returncode}: "
                      f"{done.stderr}")
        pages = list(Path(folder).glob("html/*.html"))
        if pages:
            links(pages, wrong)
    return len(pages)
