# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench tx, rx and loop: one trial, shown as it goes."""

import curses
import json
import signal
from dataclasses import dataclass
from typing import Any

from mr_bench import show
from mr_bench.result import complain
from mr_bench.screen import REDRAW_NS, Screen
from mr_bench.session import raised_mix
from mr_bench.shared_options import Options
from mr_bench.traffic import Engine, run_command
from mr_bench.values import UsageError
from mr_support import output
from mr_support.options import Option

OPTIONS = (Option("json-lines", "", "one JSON object per second, then the document"),)


@dataclass(frozen=True)
class Command:
    """One of these commands."""

    name: str
    ports: str
    usage: str
    without: tuple[str, ...] = ()  # shared options that do not apply to it

    def main(self, words: list[str]) -> int:
        """The exit status."""
        return run_command(
            lambda engine: _Run(self.name, engine).run(),
            *(self.name, words, self.usage, OPTIONS, self.without, self.ports),
        )


def _check_pace(options: Options) -> None:
    """Raises UsageError."""
    if options.pace_frames and options.pace != "bursts":
        raise UsageError("--pace-frames belongs to --pace bursts")
    if options.pace != "constant" and not options.rate.unit and not options.virtual:
        raise UsageError("--pace: full speed has none; --rate is missing")


class _Run:
    """A trial, from its ports to its document."""

    def __init__(self, name: str, engine: Engine) -> None:
        self.name, self.engine, self.options = name, engine, engine.options
        self.has_lines = bool(self.options.own)
        self.is_text = not (self.has_lines or self.options.json)
        self.is_quiet = self.options.quiet
        self.n_skipped = 0
        self.opened: dict[str, Any] = {}

    def _write_line(self, line: dict[str, Any]) -> bool:
        """A line of JSON. It is skipped if standard output would block."""
        if not show.can_write():
            self.n_skipped += 1
            return True
        if self.n_skipped:
            line["skipped"] = self.n_skipped
        output.say(json.dumps(line, separators=(",", ":")), is_last=True)
        return not output.is_lost()

    def _point_at_live(self) -> None:
        """Of a software device that takes redirected frames: a socket's are handed over one by
        one, and the kernel copies each."""
        for port in self.opened["ports"]:
            name, nic = port["name"], port["nic"] or {}
            if name.startswith("xdp:") and nic.get("driver") in ("veth", "tun"):
                complain(
                    f"live:{name[4:]} is faster than {name} on this software device, because the "
                    "kernel makes the frames (docs/streams.md lists what can vary)"
                )

    def _trial(self) -> dict[str, Any]:
        """Run the trial, and show progress."""
        longest, mean = self.opened["max_bytes"], self.opened["mean_bytes"]
        options, engine = self.options, self.engine
        pps = options.rate.pps(mean, engine.line_pps(mean))
        if pps < 0:
            raise UsageError(
                "a rate in % needs a link whose speed is known; give it in frames or bits per "
                "second"
            )
        duration_ns = options.duration_ns
        members: dict[str, Any] = {
            "pps": pps,
            "duration_ns": duration_ns,
            "frames": options.count,
            "settle_ns": options.settle_ns,
            "as_bytes": longest if longest == mean else 0,
        }
        if self.is_quiet or not self.is_text:
            engine.on_progress = self._write_line if self.has_lines and not self.is_quiet else None
            return engine.measure(**members)
        try:
            screen = Screen(self.name, mean, duration_ns)
        except curses.error:
            engine.on_progress = show.Lines(mean, duration_ns).show
            return engine.measure(**members)

        engine.on_progress = screen.show
        try:
            return engine.measure(progress_ns=REDRAW_NS, has_latencies=True, **members)
        finally:
            screen.close()

    def _judge(self, reply: dict[str, Any]) -> tuple[int, str]:
        """The exit status, and why the trial is not complete."""
        trial, status, why = reply["trial"], 0, reply["trial"]["why_incomplete"]
        # Without a bound, a user watches it: a signal ends it, and frames may come later.
        is_bounded = self.options.duration_ns or self.options.count
        is_to_end = not is_bounded and self.engine.signal != signal.SIGHUP
        if is_to_end and not trial["why_stopped"] and not reply["n_dropped"]:
            why = ""
        if why:
            status = 1
            complain(why)
        if reply["seen"]:
            complain(reply["seen"])
        if is_bounded and not reply["is_cut_short"] and reply["is_silent"]:
            status, why = 1, why or "nothing came"
        return status, why

    def run(self) -> int:
        """The exit status. Raises UsageError, EngineError."""
        _check_pace(self.options)
        has_tx, has_rx = bool(self.options.tx), bool(self.options.rx)
        self.opened = self.engine.open(has_map=not self.is_quiet)
        if has_tx and self.opened["raised_bytes"]:
            complain(raised_mix(self.opened))
        if not self.is_quiet and not has_rx:
            self._point_at_live()
        reply = self._trial()
        if self.is_text:
            for name, text in show.summary(reply, self.opened, has_tx, has_rx):
                output.say(f"{name:10} {text}")
        status, why = self._judge(reply)
        return self.engine.finish(why_incomplete=why, is_one_line=self.has_lines) or status


COMMANDS = {
    command.name: command
    for command in (
        Command(
            "tx",
            "sends",
            "usage: mr-bench tx [options] PORT...\n"
            "Send frames until Ctrl-C, or as --duration or --count says.\n",
            ("bidirectional", "settle"),
        ),
        Command(
            "rx",
            "receives",
            "usage: mr-bench rx [options] PORT...\n"
            "Receive the frames of mr-bench tx and report losses, up to the last\n"
            "number received. Another program sends, so there are no latencies.\n",
            ("rate", "pace", "pace-frames", "dst-mac", "bidirectional", "max-lag"),
        ),
        Command(
            "loop",
            "pairs",
            "usage: mr-bench loop [options] PORT PORT [PORT PORT...]\n"
            "Send on the first port of each pair and receive on the second, with the\n"
            "device between them: loss, order and latency.\n",
        ),
    )
}
