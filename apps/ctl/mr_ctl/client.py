# SPDX-License-Identifier: BSD-3-Clause
"""Control sockets: where they are, and what is asked there. docs/operations.md has the protocol."""

import contextlib
import json
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROTOCOL = 1
LIMIT_S = 10  # for each part of an answer
Object = dict[str, Any]


class Refused(Exception):
    """One line: why there is no answer, and the remedy."""


def folder() -> Path:
    """Where the programs of this user have their sockets: as listen_folder() has it."""
    runtime = os.environ.get("RUNTIME_DIRECTORY")
    if runtime is not None:
        return Path(runtime.partition(":")[0])
    if os.geteuid() == 0:
        return Path("/run/millrace")
    users = os.environ.get("XDG_RUNTIME_DIR")
    return Path(users, "millrace") if users is not None else Path(f"/tmp/millrace-{os.geteuid()}")


class Connection:
    """A connection to a program; requests are answered one after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # While many wait to be accepted, a connect() that may not block fails.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", LIMIT_S, 0))
        try:
            self.socket.connect(os.fsencode(path))
            self.socket.settimeout(LIMIT_S)
        except OSError as error:
            self.socket.close()
            raise Refused(f"{path}: {error.strerror or error}") from error
        self.lines = self.socket.makefile("rb")

    def close(self) -> None:
        self.lines.close()
        self.socket.close()

    def _next(self) -> Object:
        try:
            line = self.lines.readline()
        except OSError as error:
            raise Refused(f"{self.path}: no answer: {error}") from error
        if not line.endswith(b"\n"):
            raise Refused(f"{self.path}: the answer is incomplete")
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise Refused(f"{self.path}: the answer is no JSON object")
        return answer

    def ask(self, verb: str, **args: Any) -> Iterator[Object]:
        """The objects of the answer, the last one with "end". Raises Refused."""
        request = json.dumps({"v": PROTOCOL, "verb": verb, **args}) + "\n"
        with contextlib.suppress(BrokenPipeError):  # it has said why
            self.socket.sendall(request.encode())
        while True:
            answer = self._next()
            if "error" in answer:
                raise Refused(str(answer["error"]))
            yield answer
            if "end" in answer:
                return

    def ask_one(self, verb: str) -> Object:
        """An answer of one object."""
        first, *_ = self.ask(verb)
        return first


def running() -> Iterator[Object]:
    """What those that answer say to hello, and their "path"."""
    with contextlib.suppress(OSError):
        for path in sorted(folder().glob("*.sock"), key=lambda path: path.stem):
            with contextlib.suppress(Refused):
                connection = Connection(path)
                try:
                    yield connection.ask_one("hello") | {"path": str(path)}
                finally:
                    connection.close()


def _whose() -> str:
    return "" if os.geteuid() == 0 else " for this user; sudo asks those of root"


def connect(instance: str | None, path: str | None) -> Connection:
    """To the named instance, or the only one. Raises Refused."""
    if path is not None:
        return Connection(Path(path))
    if instance is not None:
        at = folder() / f"{instance}.sock"
        try:
            return Connection(at)
        except Refused as refused:
            cause = refused.__cause__
            if not isinstance(cause, FileNotFoundError | ConnectionRefusedError):
                raise
            raise Refused(
                f"no instance of this name is running ({at}){_whose()}; 'mrctl list' has the names"
            ) from None
    found = list(running())
    if len(found) == 1:
        return Connection(Path(found[0]["path"]))
    names = ", ".join(str(one["instance"]) for one in found)
    if found:
        raise Refused(f"which instance? mrctl INSTANCE VERB; there are: {names}")
    raise Refused(f"nothing is running here: {folder()} has no live socket{_whose()}")
