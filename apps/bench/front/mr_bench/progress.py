# SPDX-License-Identifier: BSD-3-Clause
"""Progress of a long measurement, on stderr: on a terminal, one line that is rewritten; in a
log, a line now and then."""

import sys
import time

from mr_support import output

LOG_S = 10  # between two lines of a log


class Progress:
    """Since it was made."""

    def __init__(self, is_quiet: bool) -> None:
        self.is_quiet = is_quiet
        self.is_terminal = sys.stderr.isatty()
        self.start_s = time.monotonic()
        # What is over before is no line in a log.
        self.next_s = self.start_s + (0 if self.is_terminal else LOG_S)

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self.start_s

    def show(self, left_s: float, text: str) -> None:
        """left_s: 0 or less is not known."""
        now_s = time.monotonic()
        if self.is_quiet or now_s < self.next_s:
            return
        left = f", about {left_s:.0f} s left" if left_s > 0 else ""
        if self.is_terminal:
            output.tell(f"\r\033[K{text}{left}", end="")
        else:
            self.next_s = now_s + LOG_S
            output.tell(f"mr-bench: {text}{left}")

    def clear(self) -> None:
        """Take the line away, before others write."""
        if self.is_terminal and not self.is_quiet:
            output.tell("\r\033[K", end="")
