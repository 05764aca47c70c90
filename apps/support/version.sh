#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Print what --version prints: VERSION (COMMIT). The commit comes from the tree's
# git repository, or from the archive that git made. Without either, print only
# the version.
#
# usage: version.sh VERSION TREE
set -u

commit=$(git --git-dir="$2/.git" --work-tree="$2" describe --always --dirty \
	--abbrev=12 --exclude='*' 2>/dev/null) ||
	commit=$(sed -n 's/^commit \([0-9a-f]*\)$/\1/p' "$2/apps/support/commit.txt")
echo "$1${commit:+ ($commit)}"
