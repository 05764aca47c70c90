# SPDX-License-Identifier: BSD-3-Clause
"""Loss by rate (RFC 2544, 26.3), and the longest burst without loss (26.4, as RFC 9004 has
it).

The device forwards while a burst comes in, so that the burst is longer than its buffer;
RFC 9004 takes off what was forwarded meanwhile.
"""

import math
import statistics
from dataclasses import dataclass, field

from mr_bench.search_trials import Limit, Outcome, Search, SearchError, Unsteady

MAX_POINTS = 64
FIRST_BURST = 64


def frame_loss(search: Search, step: float, points: list[Outcome]) -> None:
    """From the highest rate down in steps until two in turn lose nothing. Adds to points,
    which has those so far if it raises."""
    n_steps = min(int(1 / step + 0.5), MAX_POINTS)
    n_clean = 0
    for i in range(n_steps):
        search.left_ns = (n_steps - i) * (search.trial_ns + search.settle_ns)
        point = search.trial(search.max_pps * (1 - i * step), search.trial_ns)
        points.append(point)
        n_clean = n_clean + 1 if point.n_lost == 0 and not point.is_unsent else 0
        if n_clean == 2:
            break
    search.left_ns = 0


@dataclass
class Bursts:
    """Tests so far, and their result."""

    max_pps: float
    throughput_pps: float = 0.0  # 0: not known, no corrected time
    frames: list[float] = field(default_factory=list)  # of the longest burst, by test
    # DEVICE only if it ended each test; HIGHEST: the longest burst was passed.
    limit: Limit = Limit.DEVICE
    is_complete: bool = False

    @property
    def mean(self) -> float:
        """Frames."""
        return statistics.fmean(self.frames)

    @property
    def sd(self) -> float:
        """Frames."""
        return statistics.stdev(self.frames) if len(self.frames) > 1 else 0.0

    @property
    def implied_s(self) -> float:
        """The buffer's length as time, if nothing were forwarded meanwhile."""
        return self.mean / self.max_pps

    @property
    def corrected_s(self) -> float:
        """The same, less what was forwarded meanwhile."""
        return self.implied_s * (1 - self.throughput_pps / self.max_pps)


def _burst_limit(search: Search, frames: int, n_verify: int) -> Limit | None:
    """What limits the burst; None: it holds."""
    for _ in range(1 + n_verify):
        outcome = search.trial(search.max_pps, frames=frames)
        if outcome.n_lost == 0 and not outcome.is_unsent:
            return None
    return outcome.limit


def _longest_burst(search: Search, longest: int, n_verify: int) -> tuple[int, Limit]:
    """One test: bursts double until one loses a frame; then the interval is halved."""
    low, high, n, limit = 0, longest + 1, FIRST_BURST, Limit.HIGHEST
    while True:
        n = min(n, longest)
        failed = _burst_limit(search, n, n_verify)
        if failed is None:
            low = n
        else:
            high, limit = n, failed
        if high - low <= 1 or (high <= longest and high - low <= search.resolution_ratio * high):
            break
        n = 2 * n if high > longest else low + (high - low) // 2
    if low == 0 and limit == Limit.SENDER:
        raise Unsteady(
            f"the sender sends no burst at {search.max_pps:.0f} frames/s; give a lower --rate"
        )
    return low, limit


def back2back(
    search: Search, bursts: Bursts, n_tests: int, max_burst_ns: int, n_verify: int
) -> None:
    """n_tests tests (50 in the RFC), with loss verification (RFC 9004, 5.4). Adds to bursts,
    which has those so far if it raises."""
    longest = int(search.max_pps * max_burst_ns / 1e9)
    if longest == 0:
        raise SearchError(f"--max-burst is shorter than one frame at {search.max_pps:.0f} frames/s")
    n_halvings = max(1.0, -math.log2(search.resolution_ratio))
    for i in range(n_tests):
        search.left_ns = (n_tests - i) * n_halvings * search.settle_ns
        search.n_before = len(search.trials)
        frames, limit = _longest_burst(search, longest, n_verify)
        bursts.frames.append(frames)
        if bursts.limit == Limit.DEVICE:
            bursts.limit = limit
    search.left_ns = 0
    bursts.is_complete = True
