# SPDX-License-Identifier: BSD-3-Clause
"""Control sockets: their paths and requests. docs/operations.md has the protocol."""

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
QUIET_S = 0.1  # of a stream
Object = dict[str, Any]


class Refused(Exception):
    """The reason why there is no answer, and the remedy, on one line."""


def folder() -> Path:
    """The folder of this user's control sockets, as in listen_folder()."""
    runtime = os.environ.get("RUNTIME_DIRECTORY")
    if runtime is not None:
        return Path(runtime.partition(":")[0])
    if os.geteuid() == 0:
        return Path("/run/millrace")
    users = os.environ.get("XDG_RUNTIME_DIR")
    return Path(users, "millrace") if users is not None else Path(f"/tmp/millrace-{os.geteuid()}")


class Connection:
    """A connection to a program, which answers requests in order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # A non-blocking connect() fails while the backlog is full.
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

    def _send(self, verb: str, args: Object) -> None:
        request = json.dumps({"v": PROTOCOL, "verb": verb, **args}) + "\n"
        try:
            self.socket.sendall(request.encode(), socket.MSG_NOSIGNAL)
        except ConnectionError:
            pass  # the answer says why
        except OSError as error:
            raise Refused(f"{self.path}: the request cannot be sent: {error}") from error

    def _next(self) -> Object:
        try:
            line = self.lines.readline()
        except OSError as error:
            raise Refused(f"{self.path}: no answer: {error}") from error
        if not line.endswith(b"\n"):
            raise Refused(f"{self.path}: the answer is incomplete")
        return self._object(line)

    def _object(self, line: bytes) -> Object:
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise Refused(f"{self.path}: the answer is not a JSON object")
        return answer

    def ask(self, verb: str, **args: Any) -> Iterator[Object]:
        """Yield the objects of the answer; the last one has "end". Raises Refused."""
        self._send(verb, args)
        while True:
            answer = self._next()
            if "error" in answer:
                raise Refused(str(answer["error"]))
            yield answer
            if "end" in answer:
                return

    def stream(self, verb: str, **args: Any) -> Iterator[Object]:
        """ask(), for an answer that goes on until the connection is closed; {} when all that came
        was yielded, and while nothing comes. Raises Refused."""
        self._send(verb, args)
        self.socket.settimeout(QUIET_S)
        rest = b""
        while True:
            try:
                data = self.socket.recv(1 << 16)
            except TimeoutError:
                yield {}
                continue
            except OSError as error:
                raise Refused(f"{self.path}: {error}") from None
            if not data:
                raise Refused(f"{self.path}: the program has ended")
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                answer = self._object(line)
                if "error" in answer:
                    raise Refused(str(answer["error"]))
                if "end" in answer:
                    return
                yield answer
            yield {}

    def ask_one(self, verb: str) -> Object:
        """An answer of one object."""
        first, *_ = self.ask(verb)
        return first


def running() -> Iterator[Object]:
    """The answers to hello of all running instances, each with its "path"."""
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
    """Connect to the named instance, or the only one. Raises Refused."""
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
                f"no instance of this name is running ({at}){_whose()}; see 'mrctl list'"
            ) from None
    found = list(running())
    if len(found) == 1:
        return Connection(Path(found[0]["path"]))
    names = ", ".join(str(one["instance"]) for one in found)
    if found:
        raise Refused(f"several instances are running; use mrctl INSTANCE VERB: {names}")
    raise Refused(f"no instance is running: {folder()} has no live socket{_whose()}")
