# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench selftest: whether the tester measures the known behaviour of a simulated device,
and what the tester itself can do on these ports, with nothing between them."""

from collections.abc import Callable
from dataclasses import dataclass

from mr_bench import device
from mr_bench.result import complain
from mr_bench.search_options import Group
from mr_bench.search_trials import Limit
from mr_bench.session import Command, Session, rate_text
from mr_bench.traffic import EngineError, Trial

# Not a multiple: the last frame has none behind it to be overtaken by.
FRAMES = 100050
FRAME_BYTES = 60
PPS = 1e6


@dataclass(frozen=True)
class Case:
    """What is injected, and the tester's stated error for it: 0 is exact."""

    device: str  # as --device takes it
    figure: str
    unit: str
    injected: float
    error: float
    found: Callable[[Trial], float]
    row_unit: str = "frames"  # in a document,
    row_scale: float = 1  # where it is so many times more

    def agrees(self, found: float) -> bool:
        """Whether the tester is right."""
        return abs(found - self.injected) <= self.error


def _median_us(trial: Trial) -> float:
    return trial.latency.get("p50", 0) / 1e3


# Counts are exact. A time is off by the width of a bucket of the histogram, one part in 1024,
# and by the 1 us between two frames, which is how far the clock may move before the device
# looks again.
CASES = (
    Case("loss=1000", "lost", "frames", FRAMES // 1000, 0, lambda t: t.lost),
    Case("dup=500", "duplicates", "frames", FRAMES // 500, 0, lambda t: t.duplicates),
    Case("reorder=200", "reordered", "frames", FRAMES // 200, 0, lambda t: t.reordered),
    Case("delay=50us", "latency, median", "us", 50, 1.1, _median_us, "ns", 1000),
    Case("delay=2ms", "latency, median", "us", 2000, 3, _median_us, "ns", 1000),
    Case("rate=400k", "received", "kframes/s", 400, 2, lambda t: t.rx_pps / 1e3, "frames/s", 1000),
)


def check_known(session: Session) -> int:
    """Compare what is found with what was injected. The exit status."""
    status = 0
    session.frame_bytes = FRAME_BYTES
    session.print(
        f"{'device':12} {'figure':16} {'unit':9} {'injected':>10} {'found':>10} {'error':>10}"
    )
    for case in CASES:
        try:
            trial = session.engine.alone(device=device.read(case.device), pps=PPS, frames=FRAMES)
        except EngineError as error:
            complain(f"{case.device}: {error}")
            return error.status
        found = case.found(trial)
        is_right = case.agrees(found)
        session.print(
            f"{case.device:12} {case.figure:16} {case.unit:9} {case.injected:10.10g} "
            f"{found:10.10g} {case.error:10g}{'' if is_right else '  WRONG'}"
        )
        session.row(
            f"known-{case.device.replace('=', '-')}",
            case.row_unit,
            case.row_scale * found,
            case.row_scale * (case.injected - case.error),
            case.row_scale * (case.injected + case.error),
            note="" if is_right else "wrong",
        )
        if not is_right:
            complain(
                f"{case.device}: {case.injected:g} {case.unit} were injected, and {found:g} found"
            )
            status = 1
    return status


def run(session: Session) -> int:
    """The tester alone: the highest rate at which it loses nothing itself."""
    words = {
        Limit.DEVICE: "",
        Limit.HIGHEST: " (the link)",
        Limit.SENDER: " (the sender)",
        Limit.RECEIVER: " (the receiver)",
    }
    try:
        session.throughput()
    finally:
        found = session.found[0]
        if session.n_done == 0:
            session.print(f"\n{'frames':7} {'ceiling':>15}")
        session.print(
            f"{session.size_text:7} {rate_text(found.value):>15} frames/s{words[found.limit]}"
        )
        session.row(
            "ceiling",
            "frames/s",
            found.value,
            found.low,
            found.high,
            note=found.note if found.is_complete else "incomplete",
        )
    session.selftest.append(
        {
            "frame_bytes": session.frame_bytes,
            "mean_bytes": session.mean_bytes,
            "ceiling_pps": found.value,
        }
    )
    return 0 if found.value > 0 else 1


COMMAND = Command(
    "selftest",
    """\
usage: mr-bench selftest [options] [TX RX]
Verify that the tester measures a simulated DUT correctly. With two ports
connected by a cable, also find the highest rate that the tester itself sends
and receives, for --ceiling of searches.
""",
    Group.SEARCH | Group.SIZES | Group.TRIAL,
    run,
    check_known,
    ports="pairs or none",
)
main = COMMAND.main
