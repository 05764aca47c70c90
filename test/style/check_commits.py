# SPDX-License-Identifier: BSD-3-Clause
"""Form of the commits that upstream does not have yet, or of the last one.

Subject "area: what" without a period at the end, an empty second line, a body
where lib/ changed, and CHANGES.md touched by a commit that changes the public
interface (its comments are free).
"""
import re
import subprocess

import tree

HEADERS = "lib/include/millrace/"
SUBJECT_LIMIT = 72


def git(*arguments):
    """What git prints, or None if it fails."""
    done = subprocess.run(["git", "-C", str(tree.TOP), *arguments],
                          capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def commits():
    """What would be pushed: commits upstream lacks; or the last one."""
    for upstream in ("@{upstream}", "origin/HEAD", "origin/main", "main"):
        ids = git("rev-list", "--no-merges", f"{upstream}..HEAD")
        if ids is not None:
            break
    return (ids or "").split() or (git("rev-list", "-1", "HEAD") or "").split()


def header_code(commit, name):
    """The header as of a commit, without comments and blank lines."""
    text = git("show", f"{commit}:{name}")
    if text is None:
        return ""
    return " ".join(tree.blank_comments(text).split())


def check(wrong, commit):
    message = (git("log", "-1", "--format=%B", commit) or "").split("\n")
    changed = (git("show", "--format=", "--name-only", commit) or "").split()
    subject, where = message[0], commit[:10]
    if not re.match(r"[\w./-]+(, [\w./-]+)*: \S", subject):
        wrong.add(where, f"subject '{subject}' is not 'area: what'")
    if subject.endswith("."):
        wrong.add(where, "period at the end of the subject")
    if len(subject) > SUBJECT_LIMIT:
        wrong.add(where, f"subject of {len(subject)} characters")
    if len(message) > 1 and message[1]:
        wrong.add(where, "second line is not empty")
    if any(name.startswith("lib/") for name in changed) and \
            not "".join(message[2:]).strip():
        wrong.add(where, f"'{subject}' changes lib/ and does not say why")
    headers = [name for name in changed if name.startswith(HEADERS)]
    if any(header_code(commit, name) != header_code(f"{commit}^", name)
           for name in headers) and "CHANGES.md" not in changed:
        wrong.add(where, f"'{subject}' changes the public interface and not "
                  "CHANGES.md")


@tree.check("commits")
def main(wrong):
    if git("rev-parse", "HEAD") is None:
        tree.skip("not a git checkout")
    ids = commits()
    for commit in ids:
        check(wrong, commit)
    return len(ids)
