# SPDX-License-Identifier: BSD-3-Clause
"""What a program of ours says on stderr."""


def errors_of(err):
    """The lines that are errors: on a machine without huge pages there is a
    warning of memory, too."""
    return [line for line in err.splitlines() if ": warning: " not in line]
