# SPDX-License-Identifier: BSD-3-Clause
"""Messages of our programs on stderr."""


def errors_of(err):
    """The lines that are errors: a machine without huge pages also causes a
    warning about memory."""
    return [line for line in err.splitlines() if ": warning: " not in line]
