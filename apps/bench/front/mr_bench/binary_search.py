# SPDX-License-Identifier: BSD-3-Clause
"""RFC 2544, 26.1: halve the interval between a rate that holds and one that does not, with
or without loss verification (NFV-TST009, 12.3.3)."""

import math

from mr_bench.search_trials import Found, Limit, Outcome, Search, Unsteady

MAX_STEPS_DOWN = 10


class BinarySearch:
    """n_verify: a trial with loss is repeated up to this many times, and one without loss is
    enough. The rate found has to hold once more, for confirm_ns (0: the length of a trial);
    if it does not, it is lowered by a step.

    found has the result so far, even if run() raises."""

    def __init__(self, search: Search, n_verify: int = 0, confirm_ns: int = 0) -> None:
        self.search, self.n_verify = search, n_verify
        self.confirm_ns = confirm_ns or search.trial_ns
        self.found = Found("pdr" if search.loss_tolerance_ratio > 0 else "ndr")

    def _try(self, pps: float, duration_ns: int) -> tuple[bool, Outcome]:
        """Whether the rate holds, and the last trial of it."""
        found = self.found
        for _ in range(1 + self.n_verify):
            outcome = self.search.trial(pps, duration_ns)
            holds = not outcome.is_unsent and outcome.loss <= self.search.loss_tolerance_ratio
            if holds or outcome.is_unsent:
                break
        if holds:
            found.low, found.value, found.loss = pps, outcome.load_pps, outcome.loss
            if found.high <= 0:
                found.limit = Limit.HIGHEST
        else:
            found.high, found.limit = pps, outcome.limit
        return holds, outcome

    def _time_left(self, pps: float) -> float:
        """Bisect, then confirm."""
        s = self.search
        n = math.log2(max(1, (pps - self.found.low) / (s.resolution_ratio * pps)))
        return math.ceil(n) * (s.trial_ns + s.settle_ns) + self.confirm_ns + s.settle_ns

    def _halve(self) -> None:
        """The highest rate first; then bisect."""
        s, found = self.search, self.found
        pps = s.max_pps
        while True:
            s.left_ns = self._time_left(pps)
            self._try(pps, s.trial_ns)
            if (
                found.high <= 0
                or found.high <= s.min_pps
                or found.high - found.low <= s.resolution_ratio * found.high
            ):
                return
            pps = (found.low + found.high) / 2

    def _complain_of_sender(self) -> Unsteady:
        return Unsteady(
            f"the sender kept no rate up, down to {self.found.high:.0f} frames/s: "
            "other load on its cores (--cores, --max-lag, --unsent-tolerance)"
        )

    def _confirm(self) -> None:
        """A rate that held has to hold once more, or it is lowered."""
        s, found = self.search, self.found
        first, is_by_sender = found.low, True
        for i in range(MAX_STEPS_DOWN):
            pps = first * (1 - s.resolution_ratio) ** i
            if pps < s.min_pps:
                break
            s.left_ns = self.confirm_ns + s.settle_ns
            holds, outcome = self._try(pps, self.confirm_ns)
            if holds:
                if i > 0:
                    found.note = f"{i} steps below a rate that held only once"
                return
            found.low = found.value = 0.0
            is_by_sender &= outcome.is_unsent
        if is_by_sender:
            raise self._complain_of_sender()
        raise Unsteady(
            f"the search does not converge: {first:.0f} frames/s passed once, and "
            f"none of up to {MAX_STEPS_DOWN} steps below it again; the device is "
            "not steady, --method mlr is made for that"
        )

    def run(self) -> Found:
        """Raises SearchError."""
        found = self.found
        try:
            self._halve()
            if found.low > 0:
                self._confirm()
            elif found.limit == Limit.SENDER:
                raise self._complain_of_sender()
            else:
                found.note = (
                    f"more than the tolerated loss at all rates down to {found.high:.0f} frames/s"
                )
        finally:
            self.search.left_ns = 0
        found.is_complete = True
        return found
