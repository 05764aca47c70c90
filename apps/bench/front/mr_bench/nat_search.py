# SPDX-License-Identifier: BSD-3-Clause
"""RFC 9693: how fast a NAT sets connections up and takes them down, and how many it holds. Only
the view from outside counts: a connection exists if the server's frames to it reach the
client."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from mr_bench.search_trials import SearchError

UNSENT_REPEATS = 2
AGAIN = 10  # rounds of sending what did not arrive,
IDLE = 2  # or so many in a row that bring nothing
N_EMPTY = 3  # times that an empty table is emptied
LEAST_SHARE = 100_000  # of the highest rate: the lowest
# A path may lose a frame now and then; a table that is full loses more.
FULL_SHARE = 0.01


@dataclass
class Counts:
    """The result of a phase."""

    sent: int = 0
    arrived: int = 0  # connections seen on the other side
    # Frames that reached the tester's ports and that those dropped, by their own account: so
    # many were not lost by the NAT.
    dropped_here: int = 0
    is_unsent: bool = False  # not at the rate: says nothing of the NAT


class Path(Protocol):
    """What a trial does with a NAT."""

    has_reset: bool

    def establish(self, pps: float, n: int) -> Counts:
        """n new connections, behind those that were made since reset()."""

    def validate(self, pps: float, n_skipped: int) -> Counts:
        """Ask all connections but the first n_skipped, from outside."""

    def again(self, pps: float) -> Counts:
        """Resend the frames of the last of these two that have not arrived, and count those
        that now do."""

    def reset(self) -> float:
        """Empty its table; the seconds that this took."""


@dataclass
class Rate:
    """The set-up rate."""

    pps: float = 0.0  # 0: none
    low: float = 0.0  # held; 0: there was none
    high: float = 0.0  # did not hold
    is_by_sender: bool = False
    # Most of what was missing at high was dropped by the tester's ports.
    is_by_receiver: bool = False
    n_lost_above: int = 0  # at high: never seen outside
    n_stale_above: int = 0  # at high: seen, and gone again
    n_dropped_here: int = 0  # at high, by the tester's ports


@dataclass
class Capacity:
    """The capacity of the table."""

    n: int = 0  # connections that were there at once
    n_made: int = 0  # that it was asked to hold
    is_full: bool = False  # false: (almost) all were there
    is_by_receiver: bool = False  # the tester dropped most of what is missing


@dataclass
class TearDown:
    """The end of all connections at once."""

    n: int  # connections that were there before
    n_after: int  # and after: 0, or the table was not emptied
    seconds: float
    empty_seconds: float  # the same command on an empty table

    @property
    def pps(self) -> float:
        """The NAT's rate is not lower."""
        return self.n / self.seconds if self.seconds > 0 else 0.0

    @property
    def high_pps(self) -> float:
        """The NAT's rate is not higher: without the time of the command itself. 0: unknown."""
        own = self.seconds - self.empty_seconds
        return self.n / own if own > 0 else 0.0


def is_most(n: int, of: int) -> bool:
    """Half, or more."""
    return of > 0 and 2 * n >= of


@dataclass
class NatSearch:
    """Measures the NAT of a path."""

    path: Path
    max_pps: float  # of setting up
    resolution_ratio: float  # share of the rate
    n: int  # connections of a trial of the rate
    n_max: int  # that are ever made: room for their tuples
    # Is called before each trial: what is tried, and how many more like it there are at most;
    # 0: not known.
    on_trial: Callable[[str, float, int], None] = lambda what, value, n_left: None
    n_made: int = 0  # since the last reset
    set_up: Rate = field(default_factory=Rate)

    def _reset(self) -> float:
        seconds = 0.0
        if self.path.has_reset:
            seconds = self.path.reset()
            self.n_made = 0
        return seconds

    def _establish(self, pps: float, n: int) -> Counts:
        if n > self.n_max - self.n_made:
            raise SearchError(
                f"more than {self.n_max} connections: give --reset, so that the "
                "table can be emptied, or more --max-connections"
            )
        made = self.path.establish(pps, n)
        self.n_made += n
        return made

    def _check_refused(self, pps: float, made: Counts) -> None:
        """Raises SearchError if no connection got through: the table is full, at any rate."""
        if (
            made.sent == 0
            or made.arrived > 0
            or made.is_unsent
            or is_most(made.dropped_here, made.sent)
        ):
            return
        cure = (
            "--reset must empty its table and free the ports, as 'mrctl nat clear all --now' does"
            if self.path.has_reset
            else "its table is full, or ports are in hold-down; give --reset"
        )
        raise SearchError(
            f"the NAT refused all {made.sent} connections of a trial at {pps:.0f} "
            f"connections/s: {cure}"
        )

    def _try_rate(self, pps: float) -> tuple[Counts, Counts]:
        """n new connections, then each asked from outside."""
        for _ in range(1 + UNSENT_REPEATS):
            self._reset()
            made = self._establish(pps, self.n)
            if not made.is_unsent:
                break
        self._check_refused(pps, made)
        if made.is_unsent:
            return made, Counts()
        # Answers need no new entry: at half of the rate they get through.
        return made, self.path.validate(pps / 2, self.n_made - self.n)

    def _halvings(self, rate: Rate) -> int:
        """Until the interval is as narrow as the resolution; one, where it is not known that
        there are more."""
        n, width = 1, rate.high - rate.low
        while rate.low > 0 and width > self.resolution_ratio * rate.high:
            width /= 2
            n += 1
        return n

    def rate(self) -> Rate:
        """RFC 9693, 4.5: binary search for the rate at which n new connections are all seen
        outside, and all of them answer from there afterwards. set_up has what was
        found, also if a trial raises."""
        rate, pps = self.set_up, self.max_pps
        while True:
            self.on_trial("set-up rate, connections per second", pps, self._halvings(rate))
            made, valid = self._try_rate(pps)
            if not made.is_unsent and valid.arrived == self.n:
                rate.pps = rate.low = pps
            else:
                rate.high = pps
                # What a trial that did not hold says of the rates above.
                rate.is_by_sender = made.is_unsent
                rate.n_lost_above = made.sent - made.arrived
                rate.n_stale_above = 0 if made.is_unsent else made.arrived - valid.arrived
                rate.n_dropped_here = made.dropped_here + valid.dropped_here
                rate.is_by_receiver = is_most(
                    rate.n_dropped_here, rate.n_lost_above + rate.n_stale_above
                )
            if (
                rate.high <= 0
                or rate.high <= self.max_pps / LEAST_SHARE
                or rate.high - rate.low <= self.resolution_ratio * rate.high
            ):
                return rate
            pps = (rate.low + rate.high) / 2

    def _insist(self, pps: float, n_expected: int, counts: Counts) -> Counts:
        """Resend what did not arrive: the path may have lost it. It does not matter if the
        sender is late: no frame is due at a given time."""
        n_idle = 0
        for _ in range(AGAIN):
            if n_idle >= IDLE or counts.arrived >= n_expected:
                break
            more = self.path.again(pps)
            n_idle = 0 if more.arrived > 0 else n_idle + 1
            counts.arrived += more.arrived
            counts.dropped_here = more.dropped_here
        return counts

    def capacity(self, pps: float) -> Capacity:
        """RFC 9693, 4.8, from outside: the number of connections doubles until more than 1 % no
        longer answer. Those that do are the table's capacity, whether it refuses new ones or
        drops old ones. Before that, frames that do not arrive are resent. If nothing empties
        the table, it begins with those of earlier trials that answer."""
        self._reset()
        found, n = Capacity(), self.n
        # Without a reset: what trials at too high a rate left, if anything.
        if self.n_made > 0:
            found.n = self._insist(pps, self.n_made, self.path.validate(pps, 0)).arrived
        found.n_made = found.n
        while True:
            self.on_trial("table capacity, connections", self.n_made + n, 0)
            n_expected = found.n + n
            made = self._insist(pps, n, self._establish(pps, n))
            if found.n == 0:
                self._check_refused(pps, made)
            valid = self._insist(pps, n_expected, self.path.validate(pps, 0))
            found.n = valid.arrived
            found.n_made += n
            found.is_by_receiver = is_most(
                made.dropped_here + valid.dropped_here, n_expected - found.n
            )
            found.is_full = found.n < (1 - FULL_SHARE) * n_expected
            if found.is_full or self.n_made == self.n_max:
                return found
            n = min(found.n_made, self.n_max - self.n_made)

    def tear_down(self, pps: float) -> TearDown:
        """RFC 9693, 4.7: n connections by the time that emptying the table takes. What the
        command takes of it for itself is not the NAT's, so that the rate lies between pps and
        high_pps."""
        if not self.path.has_reset:
            raise SearchError(
                "tear-down is emptying the table: --reset is the command that does it"
            )
        self.on_trial("tear-down, connections", self.n, 0)
        # What emptying takes where nothing is in the table: the longest of some.
        self._reset()
        empty_seconds = max(self._reset() for _ in range(N_EMPTY))
        self._check_refused(pps, self._establish(pps, self.n))
        n = self.path.validate(pps, 0).arrived
        seconds = self.path.reset()
        # The tuples are still known: nothing may come through them.
        n_after = self.path.validate(pps, 0).arrived
        self.n_made = 0
        return TearDown(n, n_after, seconds, empty_seconds)
