# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench nat: RFC 9693 on a NAT between two ports."""

import ipaddress
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from mr_bench import values
from mr_bench.nat_search import Counts, NatSearch, Rate
from mr_bench.progress import Progress
from mr_bench.result import complain
from mr_bench.search_trials import SearchError
from mr_bench.shared_options import Row, as_it_is, whole
from mr_bench.traffic import Engine, EngineError, run_command
from mr_bench.values import UsageError
from mr_support import output

FRAME_BYTES = 60
# Of the established rate, so that the table alone is the limit.
SAFE_SHARE = 2
# Of the time that emptying takes: more is the command's figure, not the NAT's.
OWN_SHARE = 0.1
RESET_S = 60  # for the command to end
DEFAULT_PPS = 1e6

USAGE = """\
usage: mr-bench nat [options] INSIDE OUTSIDE
Measure a NAT between two ports (RFC 9693): how fast it sets up and tears
down connections, and how many it can hold.
"""


def _address(name: str, text: str) -> str:
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError:
        raise UsageError(f"--{name} {text}: not an IPv4 address") from None


def _word(name: str, text: str) -> str:
    return values.word(name, text, ("udp", "tcp"))


_COUNT = whole(100, 1 << 24)
OPTIONS = (
    Row("client", "ADDR", "first client's address (default 10.0.0.2)", _address),
    Row("clients", "N", "number of client addresses (default 16)", whole(1, 65536)),
    Row("gateway", "ADDR", "the NAT's inside address (default 10.0.0.1)", _address),
    Row("server", "ADDR", "the server's outside address (default 192.0.2.2)", _address),
    Row("protocol", "udp|tcp", "udp (default), or tcp: SYN and its answer", _word),
    Row("connections", "N", "connections per trial of the rate (default 10000)", _COUNT),
    Row("max-connections", "N", "most connections at once (default 1048576)", _COUNT),
    Row("reset", "COMMAND", "empties the NAT's table, e.g. 'mrctl nat clear all --now'", as_it_is),
    Row("resolution", "P%", "share of the rate found (default 1%)", values.percent),
)
# The RFC says what is sent, when, and by whom.
WITHOUT = [
    "pace",
    "pace-frames",
    "duration",
    "count",
    "stream",
    "size",
    "dst-mac",
    "unstamped",
    "seed",
    "settle",
    "max-lag",
    "bidirectional",
    "device",
    "virtual",
    "workers",
    "burst",
    "hdr",
]


@dataclass
class Options:
    """The options of this command."""

    client: str = "10.0.0.2"
    clients: int = 16
    gateway: str = "10.0.0.1"
    server: str = "192.0.2.2"
    protocol: str = "udp"
    connections: int = 10000
    max_connections: int = 1 << 20
    reset: str = ""
    resolution_ratio: float = 0.01


def run_reset(command: str, is_ending: Callable[[], bool], limit_s: float = RESET_S) -> float:
    """Run the command that empties the table; the seconds that it took. What it starts may stay,
    unless it fails. Raises SearchError."""
    begun = time.monotonic()
    why = ""
    # In a process group of its own. What it prints is not in the way of a document.
    with subprocess.Popen(
        command, shell=True, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno(), process_group=0
    ) as process:
        # Its end is seen at once, for the time until then is a figure.
        pidfd = os.pidfd_open(process.pid)
        while not why and not select.select([pidfd], [], [], 0.1)[0]:
            if is_ending():
                why = "ended by a signal"
            elif time.monotonic() > begun + limit_s:
                why = f"--reset '{command}' runs longer than {limit_s} s"
        seconds = time.monotonic() - begun
        os.close(pidfd)
        if why:
            os.killpg(process.pid, signal.SIGKILL)
    if status := process.returncode:
        raise SearchError(why or f"--reset '{command}' ended with status {status}")
    return seconds


class EnginePath:
    """Both sides of the NAT, at the engine's ports."""

    def __init__(self, engine: Engine, command: str) -> None:
        self.engine, self.command = engine, command
        self.has_reset, self.is_emptied = bool(command), False

    def _phase(self, name: str, **members: Any) -> Counts:
        reply = self.engine.request(name, **members)
        return Counts(reply["sent"], reply["arrived"], reply["dropped_here"], reply["is_unsent"])

    def establish(self, pps: float, n: int) -> Counts:
        """New connections."""
        is_emptied, self.is_emptied = self.is_emptied, False
        return self._phase("nat-establish", pps=pps, n=n, is_emptied=is_emptied)

    def validate(self, pps: float, n_skipped: int) -> Counts:
        """Query connections from outside."""
        return self._phase("nat-validate", pps=pps, n=n_skipped)

    def again(self, pps: float) -> Counts:
        """Resend what has not arrived."""
        return self._phase("nat-again", pps=pps)

    def reset(self) -> float:
        """Run the command."""
        self.is_emptied = True
        return run_reset(self.command, lambda: self.engine.n_signals > 0)


class Run:
    """What is measured, with its rows."""

    def __init__(self, engine: Engine, options: Options, max_pps: float) -> None:
        self.engine, self.options = engine, options
        self.progress = Progress(engine.options.quiet)
        self.n_told = 0
        self.rows: list[dict[str, Any]] = []
        self.search = NatSearch(
            EnginePath(engine, options.reset),
            max_pps,
            options.resolution_ratio,
            options.connections,
            options.max_connections,
            self._show,
        )

    def _show(self, what: str, value: float, n_left: int) -> None:
        left_s = self.progress.seconds / self.n_told * n_left if self.n_told else 0
        self.progress.show(left_s, f"trial {self.n_told + 1}: {what} {value:.0f}")
        self.n_told += 1

    def _say(self, what: str, value: float, unit: str, note: str) -> None:
        self.progress.clear()
        if not self.engine.options.json:
            output.say(f"{what:24} {value:14.0f} {unit:13} {note}")

    def _tell(
        self,
        what: str,
        value: float,
        bounds: tuple[float, float],
        unit: str,
        is_limited: bool,
        note: str,
    ) -> None:
        """Print a figure, and add its row."""
        self._say(what, value, unit, note)
        row = {"goal": what.replace(" ", "-"), "value": value, "unit": unit, "note": note}
        row |= zip(("low", "high"), bounds, strict=True)
        row |= {"frame_bytes": FRAME_BYTES, "is_limited_by_tester": is_limited, "trials": []}
        self.rows.append(row)

    def _measure_rate(self) -> Rate:
        rate, is_complete = self.search.set_up, False
        try:
            self.search.rate()
            is_complete = True
        finally:
            note = self._note_rate(rate, is_complete)
        if rate.pps <= 0:
            raise SearchError(f"no rate at which all connections are set up: {note}")
        return rate

    def _note_rate(self, rate: Rate, is_complete: bool) -> str:
        """Also what a search found that ended early. The note on it."""
        if not is_complete:
            note = "incomplete"
        elif rate.is_by_sender:
            note = "above, the sender does not keep up"
        elif rate.is_by_receiver:
            note = (
                f"at {rate.high:.0f}, the tester's own ports dropped {rate.n_dropped_here} "
                "frames: a longer --ring"
            )
        elif rate.high > 0:
            note = (
                f"at {rate.high:.0f}, {rate.n_lost_above} were not seen outside, "
                f"{rate.n_stale_above} did not answer from there"
            )
        else:
            note = "no loss at the highest rate"
        is_limited = rate.is_by_sender or rate.is_by_receiver or rate.high <= 0
        bounds = rate.low, rate.high
        self._tell("set-up rate", rate.pps, bounds, "connections/s", is_limited, note)
        return note

    def _measure_tear_down(self, pps: float) -> None:
        if not self.options.reset:
            self._say(
                "tear-down rate",
                0,
                "connections/s",
                "not measured: --reset is the command that empties the table",
            )
            return
        t = self.search.tear_down(pps)
        if t.n == 0:
            raise SearchError(
                "tear-down rate: no connection is reachable from outside: does the "
                "NAT let packets from --server in?"
            )
        if t.n_after > 0:
            raise SearchError(
                f"--reset does not empty the table: {t.n_after} of {t.n} connections still answer"
            )
        note = (
            f"{t.n} in {t.seconds:.3f} s, of which the command takes up to "
            f"{t.empty_seconds:.3f} s on an empty table"
        )
        # If an empty table takes as long, the rate is unknown.
        bounds = t.pps if t.high_pps > 0 else 0, t.high_pps
        is_limited = t.empty_seconds > OWN_SHARE * t.seconds
        self._tell("tear-down rate", t.pps, bounds, "connections/s", is_limited, note)

    def _measure_capacity(self, pps: float) -> None:
        c = self.search.capacity(pps)
        note = f"answer from outside, of {c.n_made}"
        if c.is_by_receiver:
            note += ": the tester's own ports dropped most of the others; a longer --ring"
        elif not c.is_full:
            note += ": there may be room for more"
        if c.n == 0:
            raise SearchError(
                f"table capacity: none of {c.n_made} connections is reachable from "
                "outside: does the NAT let packets from --server in?"
            )
        is_limited = not c.is_full or c.is_by_receiver
        self._tell("table capacity", c.n, (0, 0), "connections", is_limited, note)

    def measure(self) -> None:
        """All of it. Raises SearchError, EngineError."""
        pps = self._measure_rate().pps / SAFE_SHARE
        self._measure_tear_down(pps)
        self._measure_capacity(pps)

    def config(self) -> dict[str, Any]:
        """The requested options."""
        shared = self.engine.options
        ports = {"inside": shared.tx[0], "outside": shared.rx[0]}
        asked = {key.removesuffix("_ratio"): value for key, value in asdict(self.options).items()}
        return ports | asked | {"rate": str(shared.rate)}


def _open(engine: Engine) -> Run:
    """Read the options and open the ports. Raises UsageError, EngineError."""
    options = Options()
    for name, text in engine.options.own:
        next(row for row in OPTIONS if row.name == name).take(text, options)
    # Finer than rates are reported.
    options.resolution_ratio = max(options.resolution_ratio, 1e-5)
    max_pps = engine.options.rate.pps(FRAME_BYTES, 0)
    if max_pps < 0:
        raise UsageError("--rate: nat takes no %; give frames or bits per second")
    engine.request(
        "nat-open",
        client=int(ipaddress.IPv4Address(options.client)),
        clients=options.clients,
        gateway=int(ipaddress.IPv4Address(options.gateway)),
        server=int(ipaddress.IPv4Address(options.server)),
        is_tcp=options.protocol == "tcp",
        room=options.max_connections,
        magic=int(time.time()) % 2**32,
    )
    # The options of nat itself say what is sent.
    engine.result.root["config"].clear()
    return Run(engine, options, max_pps or DEFAULT_PPS)


def _run(engine: Engine) -> int:
    """The exit status. Raises UsageError, EngineError."""
    run, why = _open(engine), ""
    try:
        run.measure()
    except (SearchError, EngineError) as error:
        why = str(error)
    run.progress.clear()
    if why:
        complain(why)
    status = engine.finish(config=run.config(), rows=run.rows, why_incomplete=why)
    return status or bool(why)


def main(words: list[str]) -> int:
    """The exit status."""
    return run_command(_run, "nat", words, USAGE, OPTIONS, WITHOUT)
