# SPDX-License-Identifier: BSD-3-Clause
"""The traffic engine: a process that answers requests, one JSON object per line.

begin --> [ open --> trial, alone ... ] --> finish
"""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from types import FrameType
from typing import Any

from mr_bench.explain import Ends, explain, is_silent, tail_text
from mr_bench.percentiles import Times
from mr_bench.percentiles import describe as describe_trial
from mr_bench.rates import WIRE_BYTES
from mr_bench.result import Result, begin, cannot_write, check, complain, describe
from mr_bench.shared_options import Options, read
from mr_support import output, program
from mr_support.options import Option, Wrong

VERSION = 5


class EngineError(Exception):
    """What the engine cannot do, and the exit status for it."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.status = status


@dataclass
class Trial:
    """The result of a trial; due = sent + unsent, sent = unique + lost."""

    due: int = 0
    sent: int = 0
    received: int = 0  # with foreign ones
    unique: int = 0
    lost: int = 0
    duplicates: int = 0
    reordered: int = 0
    foreign: int = 0
    late_p25_ns: int = 0  # of the departure behind the time when it was due
    late_max_ns: int = 0
    tx_pps: float = 0.0
    rx_pps: float = 0.0
    latency: dict[str, int] = field(default_factory=dict)  # ns by point; empty: of no frame
    drops: list[dict[str, Any]] = field(default_factory=list)  # counters of ports that moved
    tail: str = ""  # lines that explain the highest latencies
    is_cut_short: bool = False  # by a signal, or by why_stopped
    why_stopped: str = ""
    why_incomplete: str = ""  # why some requested frames did not leave
    n_dropped: int = 0  # unsent frames that the sending ports dropped
    seen: str = ""  # where frames were seen last, if none came back
    number: int = 0  # in the document


def trial_of(reply: dict[str, Any]) -> Trial:
    """A trial as the engine describes it."""
    trial = reply["trial"]
    counts = trial["tx"] | trial["rx"]
    return Trial(
        **{one.name: counts[one.name] for one in fields(Trial) if one.name in counts},
        tx_pps=trial["tx"]["pps"],
        rx_pps=trial["rx"]["pps"],
        late_p25_ns=reply["late_p25_ns"],
        late_max_ns=(trial["lateness"] or {}).get("max", 0),
        latency=trial["latency"] or {},
        drops=reply["drops"],
        tail=tail_text(trial["tail"], reply["tail_least_ns"]),
        is_cut_short=reply["is_cut_short"],
        why_stopped=trial["why_stopped"],
        why_incomplete=trial["why_incomplete"],
        n_dropped=reply["n_dropped"],
        seen=reply.get("seen", ""),
        number=reply.get("number", 0),
    )


class Engine:
    """The process. A signal that ends this program ends the trial that runs there; the
    second one ends both at once. It ends when this process is killed."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.n_signals = 0
        self.signal = 0  # the first
        self.on_progress: Callable[[dict[str, Any]], bool] | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self.result = Result({}, options.files)
        self.ends = Ends()
        numbers = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
        for number in numbers:
            # nohup(1) is obeyed.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._forward)
        # The engine inherits the mask: a signal waits until the engine reads it, and never kills
        # the engine while it starts.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        try:
            # A separate process group: Ctrl-C reaches it once, through this process.
            self.process = process = subprocess.Popen(
                ["mr-bench", "serve"],
                executable=program.companion(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                process_group=0,
            )
            if self.n_signals:
                process.terminate()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        assert process.stdin is not None and process.stdout is not None
        self.to, self.from_ = process.stdin, process.stdout
        # What is written to one that has ended is no reason to end.
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)

    def begin(self, words: list[str], request: dict[str, Any]) -> None:
        """The first request, and the document. words: the command line. Raises EngineError."""
        begun = self.request("begin", v=VERSION, **request)
        self.result.root = begin(words[0], self.options.label, words, begun["built"]) | {
            "config": self.options.config(begun["config"]),
            "device": self.options.device,
        }
        for path in self.result.files.values():
            try:
                check(path)
            except OSError as error:
                raise EngineError(cannot_write(path, error)) from None

    def _forward(self, number: int, _frame: FrameType | None) -> None:
        self.n_signals += 1
        self.signal = self.signal or number
        if self.process is not None and self.n_signals == 1:
            # To the engine, SIGHUP need not mean the end.
            self.process.send_signal(signal.SIGTERM if number == signal.SIGHUP else number)
        if self.n_signals > 1:
            # It takes signals when it comes to it, which may be never.
            if self.process is not None:
                self.process.kill()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def _send(self, request: dict[str, Any]) -> None:
        with suppress(BrokenPipeError):  # the reply will not come
            self.to.write(json.dumps(request).encode() + b"\n")
            self.to.flush()

    def _end(self) -> int:
        """End the engine; its output after the last reply is for the user."""
        with suppress(BrokenPipeError):
            self.to.close()
        output.copy(self.from_)
        return self._wait()

    def _wait(self) -> int:
        """The exit status; 1: a signal ended it."""
        assert self.process is not None
        status = self.process.wait()
        return status if status >= 0 else 1

    def request(self, name: str, **members: Any) -> dict[str, Any]:
        """The reply. Progress (a line each second) is for on_progress, which returns whether
        the trial goes on."""
        assert self.process is not None
        self._send({"request": name} | members)
        while line := self.from_.readline():
            reply: dict[str, Any] = json.loads(line)
            if reply.get("reply") == "failed":
                raise EngineError(reply["why"], reply["status"])
            if "reply" in reply:
                describe(self.result.root, reply.get("document", {}))
                return reply
            if "latency" in reply:
                latency = Times(reply["latency"])
                reply |= {"latency": latency.summary(), "histogram": latency.coarse()}
            if self.on_progress is not None and not self.on_progress(reply):
                self.process.send_signal(signal.SIGINT)
        status = self._wait()
        raise EngineError(f"the traffic engine ended with status {status}")

    def open(self, **members: Any) -> dict[str, Any]:
        """The ports; the reply, and the document so far."""
        reply = self.request("open", **members)
        root = self.result.root

        def port_of(side: str) -> str:
            """The first; its name has its driver in front, a spec may be the device alone."""
            specs = {"tx": self.options.tx, "rx": self.options.rx}[side]
            if not specs:
                return ""
            spec = specs[0].split(",")[0]
            names = [port["name"] for port in root["ports"]]
            return next((n for n in names if spec in (n, n.partition(":")[2])), spec)

        self.ends = Ends(
            port_of("tx"),
            port_of("rx"),
            not self.options.unstamped,
            any(spec.startswith("live:") for spec in self.options.tx),
        )
        return root | reply | {"raised_bytes": self.options.raised_bytes}

    def _trial(self, name: str, as_bytes: int, members: dict[str, Any]) -> dict[str, Any]:
        reply = self.request(name, **self.options.trial() | members)
        trial = reply["trial"]
        reply["late_p25_ns"] = Times(trial["lateness"]).at(25)
        reply["tail_least_ns"] = trial["tail"].pop("least_ns")
        reply["drops"] = trial["drops"]
        trial["drops"] = [
            {key: drop[key] for key in ("port", "side", "name", "n")} for drop in trial["drops"]
        ]
        reply["buckets"] = describe_trial(trial, as_bytes).counts
        return reply

    def measure(self, as_bytes: int = 0, **members: Any) -> dict[str, Any]:
        """A trial on the ports, which is added to the document. as_bytes: of its frames; 0: a
        mix."""
        reply = self._trial("trial", as_bytes, members)
        buckets = reply.pop("buckets")
        has_log = "hdr" in self.result.files
        reply["number"] = self.result.add_trial(reply["trial"], buckets if has_log else [])
        reply["seen"] = explain(reply["trial"], reply["drops"], reply["pending"], self.ends)
        reply["is_silent"] = is_silent(reply["trial"], self.ends)
        return reply

    def alone(self, **members: Any) -> Trial:
        """A trial of the tester alone."""
        return trial_of(self._trial("alone", 0, members))

    def line_pps(self, mean_bytes: float) -> float:
        """Line rate for frames of that mean length, per second; 0: unknown."""
        line_bps: float = self.result.root["line_bps"]
        return line_bps / (8 * (mean_bytes + WIRE_BYTES))

    def finish(self, is_one_line: bool = False, **found: Any) -> int:
        """Close the ports, and write the document, with these findings; the exit status."""
        output.say("", end="", is_last=True)  # in front of the document
        self._send({"request": "finish"})
        status = self._end()
        self.result.add(**found)
        return self.result.write(self.options.json, is_one_line) or status

    def drop(self) -> int:
        """Close what is open, without a document."""
        return self._end()


def run_command(
    run: Callable[[Engine], int],
    command: str,
    words: list[str],
    usage: str,
    own: Sequence[Option] = (),
    without: Sequence[str] = (),
    ports: str = "pairs",
    is_mix: bool = False,
) -> int:
    """Read a command line, start the engine and run the command; the exit status. What
    run() raises (UsageError, EngineError) ends both, without a document. is_mix: streams are
    mixes, unless they give a size."""
    engine = None
    try:
        options = read(command, words, usage, own, without, ports)
        if options is None:
            return 0
        if is_mix:
            options.streams = [
                text if "size=" in text else f"{text} size=imix".strip()
                for text in options.streams or [""]
            ]
        request = options.request()
        engine = Engine(options)
        engine.begin([command, *words], request)
        return run(engine)
    except (Wrong, EngineError) as error:
        complain(str(error))
        if engine:
            engine.drop()
        return error.status if isinstance(error, EngineError) else 2
