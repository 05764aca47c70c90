# SPDX-License-Identifier: BSD-3-Clause
"""nat_search.py of mr-bench, on a toy NAT of which everything is known, and how nat.py runs the
command of --reset."""
import os
import signal
import subprocess
from dataclasses import dataclass, field

import pytest

from mr_bench.nat import run_reset
from mr_bench.nat_search import Counts, NatSearch
from mr_bench.search_trials import SearchError

TABLE = 1 << 16
ALL = 2**32


def is_nth(i, n):
    """Of each n; 0: none is."""
    return n != 0 and i % n == n - 1


@dataclass
class Toy:
    """A NAT, with the tester around it. 0 is none, or never."""

    has_reset: bool = True
    capacity: int = TABLE - 1
    evicts: bool = False  # the oldest, when it is full; else it refuses
    max_pps: float = 0  # new ones above are not made
    sender_pps: float = 0  # of the tester
    lose_in: int = 0  # each Nth frame of the path
    lose_out: int = 0
    reset_s: float = 0  # of a full table,
    start_s: float = 0  # and of any
    dropped_here: int = 0  # of those lost outwards in a phase
    dead_every: int = 0  # each Nth number never gets through
    keeps_on_reset: bool = False
    holds_down: bool = False  # no slot is used again, whatever is emptied
    owners: dict[int, int] = field(default_factory=dict)  # of slots
    n_entries: int = 0
    # What the tester knows: slots by number, the last phase.
    slots: dict[int, int] = field(default_factory=dict)
    answered: set[int] = field(default_factory=set)
    n_known: int = 0
    last: range = range(0)
    is_answer: bool = False
    n_frames: int = 0
    n_here_left: int = 0

    def _query(self, number, counts):
        counts.sent += 1
        self.n_frames += 1
        if is_nth(self.n_frames - 1, self.lose_out) or is_nth(number, self.dead_every):
            counts.dropped_here += self.n_here_left > 0
            self.n_here_left -= self.n_here_left > 0
            return
        if self.n_entries >= self.capacity and not self.evicts:
            return
        slot = self.n_entries % self.capacity
        self.owners[slot] = number
        self.n_entries += 1
        self.slots[number] = slot
        counts.arrived += 1

    def _ask(self, number, counts):
        """From outside: an entry that was made again leads to somebody else."""
        counts.sent += 1
        self.n_frames += 1
        slot = self.slots[number]
        if not is_nth(self.n_frames - 1, self.lose_in) and slot < self.n_entries and \
                self.owners[slot] == number:
            self.answered.add(number)
            counts.arrived += 1

    def establish(self, pps, n):
        """The tester's numbers begin again with the first connection after a reset."""
        if self.has_reset and self.n_entries == 0:
            self.n_known = 0
        counts = Counts(is_unsent=0 < self.sender_pps < pps)
        share = self.max_pps / pps if 0 < self.max_pps < pps else 1
        self.last = range(self.n_known, self.n_known + n)
        self.n_known += n
        self.n_here_left, self.is_answer = self.dropped_here, False
        for i, number in enumerate(self.last):
            self.slots.pop(number, None)
            if i < share * n:
                self._query(number, counts)
        counts.sent = n
        return counts

    def validate(self, pps, n_skipped):
        """Those that were seen."""
        assert pps > 0
        counts = Counts()
        self.answered.clear()
        self.is_answer = True
        for number in range(n_skipped, self.n_known):
            if number in self.slots:
                self._ask(number, counts)
        return counts

    def again(self, pps):
        """What is missing of the last phase."""
        assert pps > 0
        counts = Counts()
        self.n_here_left = self.dropped_here
        for number in range(self.n_known) if self.is_answer else ():
            if number in self.slots and number not in self.answered:
                self._ask(number, counts)
        for number in () if self.is_answer else self.last:
            if number not in self.slots:
                self._query(number, counts)
        return counts

    def reset(self):
        """Empties it."""
        seconds = self.start_s + (self.reset_s if self.n_entries else 0)
        if self.holds_down:
            self.capacity -= self.n_entries
        if not self.keeps_on_reset:
            self.n_entries = 0
        return seconds


def search_of(toy, n_max=TABLE):
    """1000 connections in a trial."""
    return NatSearch(toy, 1e6, 0.01, 1000, n_max)


@pytest.mark.parametrize("has_reset", [False, True])
def test_the_set_up_rate_is_found(has_reset):
    rate = search_of(Toy(has_reset, max_pps=123456)).rate()
    assert 123456 * 0.99 <= rate.pps <= 123456
    assert rate.n_lost_above > 0 and rate.n_stale_above == 0
    assert not rate.is_by_sender


def test_a_sender_that_is_too_slow_is_told_from_the_nat():
    rate = search_of(Toy(sender_pps=50000)).rate()
    assert rate.is_by_sender
    assert 49500 <= rate.pps <= 50000


@pytest.mark.parametrize("dropped, is_by_receiver", [(4, False), (5, True)])
def test_a_receiver_that_drops_is_told_from_the_nat(dropped, is_by_receiver):
    """A frame that the tester's own port dropped is no loss of the NAT."""
    rate = search_of(Toy(lose_out=100, dropped_here=dropped)).rate()  # 10 of 1000
    assert (rate.n_lost_above, rate.is_by_receiver) == (10, is_by_receiver)
    assert not rate.is_by_sender


def test_what_was_dropped_again_does_not_answer():
    """It makes room for new ones: all are seen outside, and some are gone."""
    rate = search_of(Toy(capacity=700, evicts=True)).rate()
    assert (rate.pps, rate.n_lost_above, rate.n_stale_above) == (0, 0, 300)


def test_a_search_that_ends_early_leaves_what_it_found():
    toy = Toy(max_pps=123456)
    search = search_of(toy)

    def end_at_9th(*_):
        end_at_9th.n += 1
        if end_at_9th.n == 9:
            raise SearchError("a signal")
    end_at_9th.n = 0
    search.on_trial = end_at_9th
    with pytest.raises(SearchError, match="a signal"):
        search.rate()
    assert 0 < search.set_up.low == search.set_up.pps <= 123456 < search.set_up.high


@pytest.mark.parametrize("capacity, measure", [
    (2500, NatSearch.rate), (0, lambda s: s.tear_down(1e3)), (0, lambda s: s.capacity(1e3))])
def test_a_trial_that_was_refused_is_an_error(capacity, measure):
    """Ports in hold-down: trials soon find none free, whatever the rate."""
    toy = Toy(max_pps=123456, capacity=capacity, holds_down=True)
    with pytest.raises(SearchError, match="refused all 1000 .*mrctl nat clear all --now"):
        measure(search_of(toy))


@pytest.mark.parametrize("evicts", [False, True])
def test_the_capacity_is_what_answers(evicts):
    c = search_of(Toy(False, capacity=12345, evicts=evicts)).capacity(1000)
    assert (c.n, c.n_made, c.is_full) == (12345, 16000, True)


def test_what_trials_of_the_rate_lost_is_not_missing():
    """Those that were lost at too high a rate never were in the table."""
    toy = Toy(False, max_pps=123456, capacity=34567)
    search = search_of(toy)
    rate = search.rate()
    assert toy.n_entries < search.n_made
    c = search.capacity(rate.pps / 2)
    assert (c.n, c.is_full) == (34567, True)


@pytest.mark.parametrize("lost", [
    {"lose_in": 3}, {"lose_out": 3}, {"lose_in": 997}, {"lose_out": 997}])
def test_frames_lost_on_the_way_do_not_fill_the_table(lost):
    """Each third frame is lost, there or back; each connection is tried again."""
    c = search_of(Toy(False, capacity=5000, dropped_here=ALL, **lost)).capacity(1000)
    # What is missing at the end, the NAT refused.
    assert (c.n, c.n_made, c.is_full, c.is_by_receiver) == (5000, 8000, True, False)


def test_a_few_that_are_missing_do_not_fill_the_table():
    """Half a per cent never gets through: that does not mean a full table."""
    c = search_of(Toy(False, capacity=5000, dead_every=200)).capacity(1000)
    assert (c.n, c.is_full) == (5000, True)


def test_a_table_that_is_never_full_says_so():
    search = search_of(Toy(False), 5000)
    c = search.capacity(1000)
    assert (c.n, c.n_made, c.is_full) == (5000, 5000, False)
    # And there is no room for more, without a reset.
    with pytest.raises(SearchError, match="--reset"):
        search.capacity(1000)


def test_tear_down_is_seen_from_outside():
    # What trials of the rate left is not an empty table.
    toy = Toy(reset_s=0.2, start_s=0.05, n_entries=77)
    toy.owners = dict.fromkeys(range(77), -1)
    search = search_of(toy)
    t = search.tear_down(1000)
    assert (t.n, t.n_after) == (1000, 0)
    assert t.pps == pytest.approx(4000)
    assert t.empty_seconds == pytest.approx(0.05)
    assert t.high_pps == pytest.approx(5000)
    # A command that takes as long for nothing tells no highest rate.
    toy.reset_s = 0
    t = search.tear_down(1000)
    assert t.pps == pytest.approx(20000)
    assert t.high_pps == 0
    # A command that empties nothing is found out.
    toy.keeps_on_reset = True
    assert search.tear_down(1000).n_after > 0
    toy.has_reset = False
    with pytest.raises(SearchError, match="--reset is the command"):
        search.tear_down(1000)


def test_an_empty_table_takes_the_longest_of_some():
    toy = Toy()
    empty, seconds = toy.reset, iter([9, 0.1, 0.3, 0.2, 1])

    def reset():
        empty()
        return next(seconds)
    toy.reset = reset
    t = search_of(toy).tear_down(1000)
    # Nobody knows whether it was empty the first time.
    assert (t.empty_seconds, t.seconds, t.n) == (0.3, 1, 1000)


def test_a_reset_takes_its_time(tmp_path):
    assert 0.1 <= run_reset("sleep 0.1", lambda: False, 30) < 20
    # What it starts, as a NAT, may stay.
    run_reset(f"sleep 60 & echo $! > {tmp_path}/pid", lambda: False)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


@pytest.mark.parametrize("command, is_ending, why", [
    ("echo; exit 3", False, "ended with status 3"),
    # Standard input is not the front end's.
    ("[ $(readlink /proc/$$/fd/0) != /dev/null ]", False, "ended with status 1"),
    ("sleep 71.5; true", False, "'sleep 71.5; true' runs longer than 1 s"),
    ("sleep 71.5; true", True, "ended by a signal")])
def test_a_reset_has_an_end(command, is_ending, why):
    """Its process group is killed as a whole."""
    with pytest.raises(SearchError, match=why):
        run_reset(command, lambda: is_ending, 1)
    assert subprocess.run(["pgrep", "-xf", "sleep 71.5"], check=False).returncode == 1
