# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench throughput, imix, frameloss, back2back and latency: what RFC 2544 measures."""

from textwrap import indent

from mr_bench.loss_and_bursts import Bursts, back2back, frame_loss
from mr_bench.rates import WIRE_BYTES
from mr_bench.result import complain
from mr_bench.search_options import Group
from mr_bench.search_trials import Found, Limit, Outcome, SearchError
from mr_bench.session import Command, Session, rate_text

OWN_TRIAL_NS = 1_000_000_000
# Of latencies, as they are shown, and in a trial.
POINTS = {"min": "min", "p50": "p50", "p90": "p90", "p99": "p99", "p99.9": "p999", "max": "max"}


def _noted(note: str) -> str:
    return f"  {note}" if note else ""


def _report_found(session: Session, found: Found) -> int:
    """Return 1 if there is no such rate, or none that may be reported."""
    may_be_reported, is_limited, judged = True, False, ""
    if found.value > 0:
        may_be_reported, is_limited, judged = session.judge(found.value, found.limit)
    if not may_be_reported:
        found.value = found.low = found.high = 0.0
    note = "; ".join(
        text for text in ("" if found.is_complete else "incomplete", found.note, judged) if text
    )
    if not session.rows:
        session.print(
            f"{'frames':7} {'goal':5} {'frames/s':>15} {'layer 1':>13} {'loss':>9} "
            f"{'holds .. does not':>28} {'trials':>7}"
        )
    layer1 = found.value * 8 * (session.mean_bytes + WIRE_BYTES) / 1e9
    high = rate_text(found.high) if found.high > 0 else "-"
    session.print(
        f"{session.size_text:7} {found.goal:5} {rate_text(found.value):>15} "
        f"{layer1:7.3f} Gbit/s {100 * found.loss:7.4f} % {rate_text(found.low):>12} "
        f".. {high:>12} {len(session.search.trials):7}{_noted(note)}"
    )
    session.row(found.goal, "frames/s", found.value, found.low, found.high, is_limited, note)
    return 0 if found.value > 0 and found.is_complete else 1


def throughput(session: Session) -> int:
    """The highest rates that hold."""
    status = 0
    try:
        session.throughput()
    finally:  # also of a search that was ended: what there is
        for found in session.found:
            status |= _report_found(session, found)
    return status


def frameloss(session: Session) -> int:
    """Loss by rate, down to a rate without loss."""
    points: list[Outcome] = []
    try:
        frame_loss(session.search, session.options.step_ratio, points)
    finally:
        for point in points:
            _report_point(session, point)
    return max(_fail_dropped(session, point) for point in points)


def _fail_dropped(session: Session, outcome: Outcome) -> int:
    """The exit status of a point. If the sender dropped frames, the point says nothing."""
    if not outcome.why_dropped:
        return 0
    why = f"at {outcome.asked_pps:.0f} frames/s {outcome.why_dropped}"
    complain(f"{session.size_text}: {why}")
    session.fail(why)
    return 1


def _report_point(session: Session, point: Outcome) -> None:
    share = 100 * point.asked_pps / session.search.max_pps
    if point.is_unsent:
        note = "the sender did not keep up"
    elif point.is_by_receiver:
        note = "the receiver lost frames"
    else:
        note = session.near_ceiling(point.load_pps)
    if not session.rows:
        session.print(
            f"{'frames':7} {'share':>7} {'frames/s':>15} {'sent':>12} {'lost':>12} {'loss':>10}"
        )
    session.print(
        f"{session.size_text:7} {share:5.1f} % {rate_text(point.load_pps):>15} "
        f"{point.n_sent:12} {point.n_lost:12} {100 * point.loss:8.4f} %"
        f"{_noted(note)}"
    )
    session.row(f"loss-at-{share:g}%", "ratio", point.loss, is_limited=bool(note), note=note)


# Notes on bursts: why no buffer fills, and why there are none that are longer.
WHOLE_TRIAL = {
    Limit.HIGHEST: "no loss at the highest rate: no buffer fills, and the burst is as long as "
    "the trial",
    Limit.SENDER: "no loss up to what the sender can do: the burst is as long as the trial",
    Limit.RECEIVER: "above that rate the receiver loses frames: the burst is as long as the trial",
}
LONGER = {
    Limit.DEVICE: "",
    Limit.HIGHEST: "the longest burst was passed",
    Limit.SENDER: "the sender does not keep up with longer ones",
    Limit.RECEIVER: "the receiver loses frames of longer ones",
}


def bursts(session: Session) -> int:
    """The longest burst, and the device's buffer."""
    o, s = session.options, session.search
    found = session.throughput()[0]
    # No buffer fills if the device forwards all that can be sent (RFC 9004, 5.2).
    if found.limit != Limit.DEVICE:
        if found.value <= 0:
            raise SearchError("the receiver loses frames at all rates")
        frames = found.value * o.trial_ns / 1e9
        whole = Bursts(found.value, found.value, [frames], found.limit)
        _report_bursts(session, whole, WHOLE_TRIAL[found.limit])
        return 0
    b = Bursts(s.max_pps, found.value)
    try:
        back2back(s, b, o.tests, o.max_burst_ns, o.verify)
    finally:
        if b.frames:
            _report_bursts(session, b, LONGER[b.limit] if b.is_complete else "incomplete")
    return 0


def _report_bursts(session: Session, b: Bursts, why: str) -> None:
    least, most = min(b.frames), max(b.frames)
    # Bursts go at the highest rate.
    near = session.near_ceiling(session.search.max_pps)
    is_limited = bool(near) or b.limit != Limit.DEVICE
    note = "; ".join(text for text in (why, near) if text)
    if not session.rows:
        session.print(
            f"{'frames':7} {'tests':>6} {'mean':>11} {'min':>11} {'max':>11} "
            f"{'deviation':>9} {'implied':>12} {'corrected':>12}"
        )
    session.print(
        f"{session.size_text:7} {len(b.frames):6} {b.mean:11.1f} {least:11.0f} {most:11.0f} "
        f"{b.sd:9.1f} {1e6 * b.implied_s:9.3f} us {1e6 * b.corrected_s:9.3f} us"
        f"{_noted(note)}"
    )
    session.row("back2back", "frames", b.mean, least, most, is_limited, note)
    if b.corrected_s > 0:
        corrected = "corrected as RFC 9004, 6 has it"
        session.row("buffer-time", "s", b.corrected_s, is_limited=is_limited, note=corrected)


def _measure_own(session: Session, pps: float) -> None:
    """The latencies of the tester alone: the same cores and streams, but frames pass through
    memory."""
    own = session.engine.alone(pps=pps, duration_ns=min(session.options.trial_ns, OWN_TRIAL_NS))
    points = {name: own.latency.get(POINTS[name], 0) for name in ("p50", "p99", "p99.9", "max")}
    session.print(
        f"the tester alone, at {rate_text(own.tx_pps)}frame/s: "
        + ", ".join(f"{name} {ns / 1e3:.1f} us" for name, ns in points.items())
    )
    for name, ns in points.items():
        session.measured[f"own_{POINTS[name]}_ns"] = ns
    session.print(indent(own.tail, "        "), end="")


def _report_latency(session: Session, share: float, outcome: Outcome) -> None:
    latency = session.last.latency
    if not session.rows:
        heads = "".join(f" {name:>9} us" for name in POINTS)
        session.print(
            f"{'frames':7} {'share':>7} {'asked frames/s':>15} {'sent frames/s':>15}"
            f"{heads} {'lost':>10}"
        )
    note = ""
    if outcome.is_unsent:
        note = "the sender missed its rate"
    elif outcome.n_lost > 0:
        note = f"of the frames that came; {outcome.n_lost} were lost"
    values = [latency[key] for key in POINTS.values()]
    for name, ns in zip(POINTS, values):
        session.row(
            f"latency-{name}-at-{100 * share:g}%",
            "ns",
            ns,
            is_limited=outcome.is_unsent,
            note=note,
            trials=session.search.trials[-1:],
        )
    cells = "".join(f" {ns / 1e3:12.3f}" for ns in values)
    session.print(
        f"{session.size_text:7} {100 * share:5.1f} % "
        f"{rate_text(outcome.asked_pps):>15} {rate_text(outcome.load_pps):>15}{cells} "
        f"{outcome.n_lost:10}{_noted(note if outcome.is_unsent else '')}"
    )
    session.print(indent(session.last.tail, "        "), end="")


def latency_at_shares(session: Session) -> int:
    """Of --rate, or of what a search finds."""
    o = session.options
    whole = session.search.max_pps
    if not session.shared.rate.unit:
        found = session.throughput()[0]
        whole = found.value
        if whole <= 0:
            raise SearchError(f"no throughput: {found.note}")
    if session.n_done == 0 and not session.shared.virtual:
        _measure_own(session, whole * max(o.shares))
    status = 0
    for share in o.shares:
        outcome = session.search.trial(whole * share, o.trial_ns)
        if not session.last.latency:
            raise SearchError(
                f"none of {outcome.n_sent} frames came back at {outcome.asked_pps:.0f} frames/s"
            )
        _report_latency(session, share, outcome)
        status |= _fail_dropped(session, outcome)
    return status


_RATES = Group.SEARCH | Group.TRIAL | Group.CEILING
COMMANDS = {
    command.name: command
    for command in (
        Command(
            "throughput",
            """\
usage: mr-bench throughput [options] TX RX [TX RX...]
Find the highest rate at which the device between the ports loses nothing.
""",
            _RATES | Group.SIZES,
            throughput,
        ),
        Command(
            "imix",
            """\
usage: mr-bench imix [options] TX RX [TX RX...]
Throughput with a mix of sizes (--stream size=...; default: imix).
""",
            _RATES,
            throughput,
            is_mix=True,
        ),
        Command(
            "frameloss",
            """\
usage: mr-bench frameloss [options] TX RX [TX RX...]
Loss by rate, from --rate or the highest rate down until two steps are clean.
""",
            Group.SIZES | Group.TRIAL | Group.STEP | Group.CEILING,
            frameloss,
        ),
        Command(
            "back2back",
            """\
usage: mr-bench back2back [options] TX RX [TX RX...]
The longest burst at the highest rate without loss (RFC 9004), after a
search for the throughput.
""",
            _RATES | Group.SIZES | Group.BURSTS,
            bursts,
        ),
        Command(
            "latency",
            """\
usage: mr-bench latency [options] TX RX [TX RX...]
Latency at shares of --rate or, without it, of the throughput, which is
searched first. One way; or round trip, if TX and RX are the same port and
mr-bench reflect is its peer.
""",
            Group.SEARCH | Group.SIZES | Group.TRIAL | Group.SHARES,
            latency_at_shares,
        ),
    )
}
