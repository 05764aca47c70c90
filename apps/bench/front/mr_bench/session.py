# SPDX-License-Identifier: BSD-3-Clause
"""A command that searches, from its options to its files: a traffic engine, the sizes one
after another, the rows of the document, the table for people, progress, and what the
tester itself can do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mr_bench.binary_search import BinarySearch
from mr_bench.ceiling import read_ceiling
from mr_bench.mlr_search import Goal, MlrSearch
from mr_bench.progress import Progress
from mr_bench.rates import FCS_BYTES
from mr_bench.result import complain
from mr_bench.search_options import ROWS, Group, describe, read_options
from mr_bench.search_trials import SECOND, Found, Limit, Search, SearchError, Wanted
from mr_bench.traffic import Engine, EngineError, Trial, run_command, trial_of
from mr_bench.values import UsageError
from mr_support import output

SETTLE_NS = SECOND  # it ends sooner, when all have come
FULL_SPEED_NS = SECOND // 5  # to see what the sender can do
LEAST_BYTES = 60  # of a frame
# If neither --rate nor the link gives the highest rate.
VIRTUAL_PPS = 10_000_000
LEAST_SHARE = 100_000  # of the highest rate: the lowest
NEAR = 0.95  # of a ceiling: results from here on may be the tester's own
# A trial has its own length, and without stamps nothing is told of frames.
WITHOUT = ("count", "unstamped")


@dataclass(frozen=True)
class Command:
    """A command that searches."""

    name: str
    usage: str  # in front of the options
    groups: Group
    # Called once per size. Returns 0, or 1 if the goal was missed; raises SearchError.
    run: Callable[[Session], int]
    # Before ports are opened, with a document: the exit status.
    before: Callable[[Session], int] | None = None
    ports: str = "pairs"  # or "pairs or none": without any, before() is all there is
    is_mix: bool = False  # imix: streams are mixes

    def main(self, words: list[str]) -> int:
        """The exit status."""
        rows = [row for row in ROWS if row.groups & self.groups]
        return run_command(
            lambda engine: _run(Session(self, engine)),
            *(self.name, words, self.usage, rows, WITHOUT, self.ports, self.is_mix),
        )


def rate_text(pps: float) -> str:
    """ "1.2345 M", for "frame/s" behind it."""
    if pps >= 1e6:
        return f"{pps / 1e6:.4f} M"
    return f"{pps / 1e3:.3f} k" if pps >= 1e3 else f"{pps:.1f} "


def raised_text(from_bytes: int, to_bytes: int) -> str:
    """The note on frames that are longer than requested."""
    return (
        f"frames of {from_bytes + FCS_BYTES} bytes are too short for headers and the "
        f"stamp: {to_bytes + FCS_BYTES} instead"
    )


def raised_mix(opened: dict[str, Any]) -> str:
    """The note on an imix whose shortest frames are longer than usual."""
    text = raised_text(LEAST_BYTES, opened["raised_bytes"])
    return text.replace(": ", ": up to ") if len(opened["streams"]) > 1 else text


class Session:
    """The state of a command."""

    def __init__(self, command: Command, engine: Engine) -> None:
        self.command, self.engine = command, engine
        self.shared = engine.options
        self.options = read_options(command.name, command.groups, self.shared)
        self.settle_ns = self.shared.settle_ns or SETTLE_NS
        self.progress = Progress(self.shared.quiet)
        self.opened: dict[str, Any] = {}
        self.rows: list[dict[str, Any]] = []
        self.selftest: list[dict[str, Any]] = []
        self.measured: dict[str, float] = {}
        self.why_incomplete = ""
        # Of the current size.
        self.frame_bytes = 0  # 0: a mix
        self.mean_bytes = 0.0
        self.size_text = ""  # "64 B"
        self.asked_bytes = 0  # 0: as the streams are
        self.search = Search(self._run_trial, 0)
        self.ceiling_pps = 0.0  # of the tester for it; 0: not known
        self.is_own_ceiling = False  # the highest rate is what the sender can do
        self.last = Trial()
        self.n_done = 0  # sizes
        self.raised = ""  # why it is not what the list has
        self.found: Sequence[Found] = []  # of throughput()

    def print(self, text: str, end: str = "\n") -> None:
        """Text for people, unless the output is JSON."""
        if not self.shared.json:
            output.say(text, end)

    def fail(self, why: str) -> None:
        """Mark the document as incomplete. The first reason stays."""
        self.why_incomplete = self.why_incomplete or why

    def _run_trial(self, wanted: Wanted) -> Trial:
        """A trial with the current size."""
        return trial_of(
            self.engine.measure(
                pps=wanted.pps,
                duration_ns=wanted.duration_ns,
                frames=wanted.frames,
                settle_ns=wanted.settle_ns,
                frame_bytes=self.asked_bytes,
                as_bytes=self.frame_bytes,
            )
        )

    def _on_trial(self, search: Search, trial: Trial) -> None:
        self.last = trial
        left_s = search.left_ns / 1e9
        n_begun = self.n_done + 1
        # The sizes to come take as long as those that were, and this one.
        if left_s > 0 and len(self.options.sizes) > n_begun:
            left_s += (
                (self.progress.seconds + left_s) / n_begun * (len(self.options.sizes) - n_begun)
            )
        loss = 100 * trial.lost / trial.sent if trial.sent else 0
        self.progress.show(
            left_s,
            f"{self.size_text}: trial {len(search.trials)}, "
            f"{rate_text(trial.tx_pps)}frame/s, lost {loss:.4f} %",
        )

    def _take_size(self, asked_bytes: int) -> None:
        """Use frames of this size, or 0: those of the streams."""
        options = self.options
        self.asked_bytes = asked_bytes
        self.mean_bytes = asked_bytes or self.opened["mean_bytes"]
        self.frame_bytes = int(self.mean_bytes)
        if not asked_bytes and abs(self.mean_bytes - self.opened["max_bytes"]) > 0.01:
            self.frame_bytes = 0
        self.size_text = f"{self.frame_bytes + FCS_BYTES} B" if self.frame_bytes else "mix"
        self.search = Search(
            self._run_trial,
            0,
            trial_ns=options.trial_ns,
            settle_ns=self.settle_ns,
            resolution_ratio=options.resolution_ratio,
            loss_tolerance_ratio=options.loss_tolerance_ratio,
            unsent_tolerance_ratio=options.unsent_tolerance_ratio,
            on_trial=self._on_trial,
        )

    def _find_highest(self) -> None:
        """The highest rate of the search: what was asked for, else what the link takes, else
        what the sender reaches at full speed, which is measured."""
        s = self.search
        line_pps = self.engine.line_pps(self.mean_bytes)
        s.max_pps = self.shared.rate.pps(self.mean_bytes, line_pps)
        self.is_own_ceiling = False
        if s.max_pps < 0:
            raise SearchError(
                "--rate in % of a link of unknown speed: give frames or bits per second"
            )
        if s.max_pps == 0 and self.shared.virtual:
            s.max_pps = line_pps or VIRTUAL_PPS
        if s.max_pps == 0:
            full = s.trial(0, FULL_SPEED_NS)
            # Within 2 %, it is the link that ends it.
            self.is_own_ceiling = line_pps <= 0 or full.load_pps < 0.98 * line_pps
            s.max_pps = full.load_pps if self.is_own_ceiling else line_pps
        s.min_pps = s.max_pps / LEAST_SHARE

    def _run_size(self, asked_bytes: int) -> int:
        self._take_size(asked_bytes)
        self.ceiling_pps = 0.0
        if self.options.ceiling:
            self.ceiling_pps = read_ceiling(
                self.options.ceiling, self.opened, self.frame_bytes, self.mean_bytes
            )
        try:
            self.search.check_path()
            self._find_highest()
            # No result depends on the trials so far.
            self.search.trials.clear()
            return self.command.run(self)
        finally:
            self.progress.clear()

    def _fit_sizes(self) -> None:
        """Headers may need more than a size has. One that was named is the user's own; those
        of RFC 2544 were made for IPv4 and UDP: the shortest possible stands for their first,
        and the second has room for all headers. Streams, which say no lengths, were opened
        with the shortest."""
        sizes, needed = self.options.sizes, self.opened["max_bytes"]
        least = min(sizes, default=needed)
        if not sizes and self.opened["raised_bytes"]:
            # Streams may have a mix, and that another one than was asked for.
            self.raised = raised_mix(self.opened)
            complain(f"imix: {self.raised}")
        if least >= needed:
            return
        if not self.options.is_rfc2544:
            raise UsageError(
                f"--sizes: {least + FCS_BYTES} bytes: headers and the stamp need "
                f"{needed + FCS_BYTES}; rfc2544 takes these instead"
            )
        self.raised = raised_text(least, needed)
        complain(f"rfc2544: {self.raised}")
        sizes[0] = needed

    def run_sizes(self) -> int:
        """The exit status."""
        status = 0
        try:
            self._fit_sizes()
        except UsageError as error:
            self.fail(str(error))
            complain(str(error))
            return 2
        for size in self.options.sizes or [0]:
            try:
                status |= self._run_size(size)
            except (SearchError, EngineError) as error:
                self.fail(str(error))
                complain(f"{self.size_text}: {error}")
                return error.status
            self.n_done += 1
            self.raised = ""
        return status

    # What is found.

    def throughput(self) -> Sequence[Found]:
        """Search for the rates that hold, by the method asked for. found has what there is of
        them, also where this raises."""
        o = self.options
        if o.method == "mlr":
            shared = o.exceed_ratio, o.resolution_ratio, o.trial_ns, o.duration_sum_ns
            goals = [Goal("ndr", 0, *shared), Goal("pdr", o.pdr_ratio, *shared)]
            if o.pdr_ratio <= 0:
                goals.pop()
            mlr = MlrSearch(self.search, goals, o.trial_ns)
            self.found = mlr.found
            return mlr.run()
        binary = BinarySearch(self.search, o.verify if o.method == "tst009" else 0, o.confirm_ns)
        self.found = [binary.found]
        return [binary.run()]

    def near_ceiling(self, pps: float) -> str:
        """The note on a load that is close to the ceiling, or above it; else ""."""
        ceiling = self.ceiling_pps
        if ceiling <= 0 or pps < NEAR * ceiling:
            return ""
        return f"{'above' if pps > ceiling else 'near'} the tester's ceiling of {ceiling:.0f}"

    def judge(self, pps: float, limit: Limit) -> tuple[bool, bool, str]:
        """Whether the figure may be reported, whether it is the tester's rather than the
        device's, and the note on that. One above the ceiling is refused."""
        ceiling, highest = self.ceiling_pps, self.search.max_pps
        # Each of the two searches ends within its resolution of a limit.
        if 0 < ceiling * (1 + 2 * self.options.resolution_ratio) < pps:
            note = f"{pps:.0f} frames/s are more than the tester's own ceiling of {ceiling:.0f}"
            return False, True, f"refused: {note}"
        if limit == Limit.SENDER:
            return True, True, "above, the sender does not keep up"
        if limit == Limit.RECEIVER:
            return True, True, "above, the receiver loses frames"
        if note := self.near_ceiling(pps):
            return True, True, note
        if self.is_own_ceiling and pps >= NEAR * highest:
            return True, True, f"near what the sender can do, {highest:.0f}"
        return True, False, "no loss at the highest rate" if limit == Limit.HIGHEST else ""

    def row(
        self,
        goal: str,
        unit: str,
        value: float,
        low: float = 0.0,
        high: float = 0.0,
        is_limited: bool = False,
        note: str = "",
        trials: Sequence[int] | None = None,
    ) -> None:
        """A row of the document."""
        self.rows.append(
            {
                "frame_bytes": self.frame_bytes,
                "goal": goal,
                "value": value,
                "unit": unit,
                "low": low,
                "high": high,
                "is_limited_by_tester": is_limited,
                "trials": list(self.search.trials if trials is None else trials),
                "note": "; ".join(text for text in (note, self.raised) if text),
            }
        )

    def finish(self) -> int:
        """The document; the exit status."""
        return self.engine.finish(
            config=describe(self.options, self.command.groups) | {"settle_s": self.settle_ns / 1e9},
            rows=self.rows,
            measured=self.measured,
            selftest=self.selftest,
            why_incomplete=self.why_incomplete,
        )


def _run(session: Session) -> int:
    """The exit status. Raises EngineError."""
    status = 0
    if session.command.before is not None:
        status = session.command.before(session)
        if status != 0:
            session.fail("the check of the tester failed")
            return session.finish() or status
    if session.shared.tx:
        session.opened = session.engine.open()
        status = session.run_sizes()
    return session.finish() or status
