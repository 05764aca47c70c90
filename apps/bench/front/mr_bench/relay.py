# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench reflect and replay. The engine runs them; a child process adds the machine to the
document and writes its files."""

import json
import os
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from mr_bench.percentiles import describe as describe_trial
from mr_bench.result import Result, begin, describe
from mr_support import program


def _become(words: list[str]) -> NoReturn:
    """Run the engine in place of this process. Raises OSError."""
    # Python ignores these signals, and exec would keep them ignored.
    for sig in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(sig, signal.SIG_DFL)
    os.execv(program.companion(), ["mr-bench", *words])


@dataclass(frozen=True)
class Command:
    """reflect or replay."""

    name: str

    def _serve(self, peer: socket.socket, words: list[str]) -> int:
        """Serve the engine, one line at a time: complete the document that it begins and send it
        back, also with its trial, and write it to files. Returns the exit status."""
        status = 0
        result = Result({}, {})
        with peer.makefile("rwb") as lines:
            for line in lines:
                found = json.loads(line)
                if "built" in found:
                    built, label = found.pop("built"), found.pop("label")
                    result.root = begin(self.name, label, [self.name, *words], built)
                    describe(result.root, found)
                if "trial" in found:
                    del found["trial"]["tail"]["least_ns"]  # there are no latencies
                    describe_trial(found["trial"], 0)
                    result.add_trial(found["trial"], [])
                if result.root["complete"]:
                    result.add(found.get("why_incomplete", ""))
                if "out" in found:
                    files = {kind: bytes.fromhex(found[kind]) for kind in ("out", "csv")}
                    result.files = {k: os.fsdecode(path) for k, path in files.items() if path}
                    status = result.write()
                lines.write(json.dumps(result.root).encode())
                lines.flush()
        return status

    def main(self, words: list[str]) -> NoReturn:
        """Replace this process with the engine; the child that serves it ends with it. Raises
        OSError."""
        ours, peer = socket.socketpair()
        if os.fork():
            ours.close()
            peer.set_inheritable(True)
            _become([self.name, str(peer.fileno()), *words])
        peer.close()
        # These signals end the engine, which ends this process.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        status = 1
        try:
            with suppress(ConnectionError):  # the engine has ended
                status = self._serve(ours, words)
        finally:
            if sys.exc_info()[0]:
                sys.excepthook(*sys.exc_info())
            os._exit(status)


COMMANDS = {name: Command(name) for name in ("reflect", "replay")}
