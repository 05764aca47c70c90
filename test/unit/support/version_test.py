# SPDX-License-Identifier: BSD-3-Clause
"""Where the version comes from: git, an archive that git made, or neither; and CHANGES.md.

usage: version_test.py TREE
"""
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TREE = Path()


def run(*command):
    """Its output, without the newline."""
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=True, timeout=60).stdout.removesuffix("\n")


def version_of(tree):
    """What version.sh prints for a tree."""
    return run(TREE / "apps/support/version.sh", "1.2.3", tree)


class Commit(unittest.TestCase):
    """Of a repository in which version.sh and its file are committed."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.tree = Path(self.folder.name, "tree")
        (self.tree / "apps/support").mkdir(parents=True)
        shutil.copy(TREE / "apps/support/commit.txt", self.tree / "apps/support")
        shutil.copy(TREE / ".gitattributes", self.tree)

    def git(self, *words):
        """In the repository."""
        return run("git", "-C", self.tree, "-c", "user.name=a", "-c", "user.email=b", *words)

    def commit(self):
        """Make it one, with a commit and a tag; returns the commit."""
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-qm", "first")
        self.git("tag", "v9")
        return self.git("rev-parse", "HEAD")

    def test_a_tree_without_git_has_a_version(self):
        self.assertEqual(version_of(self.tree), "1.2.3")

    def test_a_folder_of_another_repository_is_not_its_commit(self):
        self.commit()
        inner = self.tree / "inner/apps/support"
        inner.mkdir(parents=True)
        shutil.copy(TREE / "apps/support/commit.txt", inner)
        self.assertEqual(version_of(self.tree / "inner"), "1.2.3")

    def test_a_repository_has_its_commit(self):
        head = self.commit()
        self.assertEqual(version_of(self.tree), f"1.2.3 ({head[:12]})")
        (self.tree / ".gitattributes").write_text("", encoding="utf-8")
        self.assertEqual(version_of(self.tree), f"1.2.3 ({head[:12]}-dirty)")

    def test_an_archive_has_the_commit_that_it_was_made_of(self):
        head = self.commit()
        archive, unpacked = Path(self.folder.name, "a.tar"), Path(self.folder.name, "b")
        self.git("archive", "-o", archive, "HEAD")
        unpacked.mkdir()
        run("tar", "-xf", archive, "-C", unpacked)
        said = version_of(unpacked)
        commit = re.fullmatch(r"1\.2\.3 \(([0-9a-f]{7,})\)", said)
        self.assertTrue(commit and head.startswith(commit[1]), said)


class Release(unittest.TestCase):
    """One version everywhere."""

    def test_changes_begin_with_the_version_of_the_header(self):
        header = (TREE / "lib/include/millrace/api.h").read_text(encoding="utf-8")
        version = ".".join(re.findall(r"#define MR_VERSION_[A-Z]+ (\d+)", header))
        changes = (TREE / "CHANGES.md").read_text(encoding="utf-8")
        self.assertRegex(re.search("(?m)^## (.*)$", changes)[1],
                         rf"^{re.escape(version)}( \(unreleased\)|, \d+ \w+ \d+)$")


if __name__ == "__main__":
    TREE = Path(sys.argv.pop(1))
    unittest.main()
