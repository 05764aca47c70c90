# SPDX-License-Identifier: BSD-3-Clause
"""Control sockets: their paths and requests. docs/operations.md has the protocol."""

import contextlib
import json
import os
import pwd
import socket
import struct
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mr_support.text import print_error

PROTOCOL = 1
LIMIT_S = 10  # for each object of an answer
MAX_LINE = 16 << 20  # bytes
HELLO_S = 5  # for one of several instances
QUIET_S = 0.1  # of a stream
Object = dict[str, Any]
PEER = struct.Struct("iii")  # pid, uid, gid: struct ucred
HELLO = {"instance": str, "program": str, "version": str, "pid": int, "verbs": list}


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


def _owners() -> set[int] | None:
    """Users whose programs are asked by name, because others can add sockets to the folder. None:
    all, because the caller chose the folder."""
    if "RUNTIME_DIRECTORY" in os.environ:
        return None
    owners = {0, os.geteuid()}
    with contextlib.suppress(KeyError):
        owners.add(pwd.getpwnam("millrace").pw_uid)  # the user of the systemd units
    return owners


class Connection:
    """A connection to a program, which answers requests in order. If owners are given, programs
    of other users are refused."""

    def __init__(
        self, path: Path, owners: set[int] | None = None, limit_s: float = LIMIT_S
    ) -> None:
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # A non-blocking connect() fails while the backlog is full.
        limit = struct.pack("ll", *divmod(int(max(limit_s, 0.001) * 1e6), 1000000))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        try:
            self._check(os.lstat(path).st_uid, owners)  # before it can keep us waiting
            self.socket.connect(os.fsencode(path))
        except OSError as error:
            self.socket.close()
            raise Refused(f"{path}: {error.strerror or error}") from error
        found = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size)
        _, uid, _ = PEER.unpack(found)
        self._check(uid, owners)
        self.lines: deque[bytes] = deque()  # of answers; rest: the part of the next one
        self.rest = b""

    def _check(self, uid: int, owners: set[int] | None) -> None:
        if owners is not None and uid not in owners:
            self.socket.close()
            raise Refused(
                f"{self.path}: its program runs as user {uid}; --control PATH asks it anyway"
            )

    def close(self) -> None:
        self.socket.close()

    def _send(self, verb: str, args: Object) -> None:
        request = json.dumps({"v": PROTOCOL, "verb": verb, **args}) + "\n"
        self.socket.settimeout(LIMIT_S)
        try:
            self.socket.sendall(request.encode(), socket.MSG_NOSIGNAL)
        except ConnectionError:
            pass  # the answer says why
        except OSError as error:
            raise Refused(f"{self.path}: the request cannot be sent: {error}") from error

    def _take(self, data: bytes) -> None:
        *lines, self.rest = (self.rest + data).split(b"\n")
        self.lines.extend(lines)
        if len(self.rest) > MAX_LINE:
            raise Refused(f"{self.path}: the answer has a line of more than {MAX_LINE} bytes")

    def _next(self, end_s: float) -> Object:
        """The next object. Raises Refused if it is not complete by end_s."""
        while not self.lines:
            left_s = end_s - time.monotonic()
            try:
                if left_s < 0:
                    raise TimeoutError("timed out")
                self.socket.settimeout(max(left_s, 0.001))
                data = self.socket.recv(1 << 16)
            except OSError as error:
                raise Refused(f"{self.path}: no answer: {error}") from error
            if not data:
                raise Refused(f"{self.path}: the answer is incomplete")
            self._take(data)
        return self._object(self.lines.popleft())

    def _object(self, line: bytes) -> Object:
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise Refused(f"{self.path}: the answer is not a JSON object")
        return answer

    def ask(self, verb: str, limit_s: float = LIMIT_S, /, **args: Any) -> Iterator[Object]:
        """Yield the objects of the answer; the last one has "end". Raises Refused, also if one
        takes longer than limit_s."""
        self._send(verb, args)
        while True:
            answer = self._next(time.monotonic() + limit_s)
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
            self._take(data)
            while self.lines:
                answer = self._object(self.lines.popleft())
                if "error" in answer:
                    raise Refused(str(answer["error"]))
                if "end" in answer:
                    return
                yield answer
            yield {}

    def ask_one(self, verb: str, limit_s: float | None = None) -> Object:
        """An answer that has one object. Raises Refused, also after limit_s."""
        end_s = time.monotonic() + (LIMIT_S if limit_s is None else limit_s)
        self._send(verb, {})
        first = self._next(end_s)
        if "error" in first:
            raise Refused(str(first["error"]))
        if "end" not in first and "end" not in self._next(end_s):
            raise Refused(f"{self.path}: the answer has more than one object")
        return first

    def hello(self, limit_s: float) -> Object:
        """The answer to hello. Raises Refused, also if a member is missing."""
        found = self.ask_one("hello", limit_s)
        for name, kind in HELLO.items():
            if not isinstance(found.get(name), kind):
                raise Refused(f"{self.path}: the answer has no '{name}'")
        return found | {"path": str(self.path)}


def running() -> Iterator[Object]:
    """The answers to hello of all running instances, each with its "path". Sockets of programs
    that have ended are skipped, others that do not answer are named on standard error."""
    end_s = time.monotonic() + 2 * HELLO_S
    with contextlib.suppress(OSError):
        for path in sorted(folder().glob("*.sock"), key=lambda path: path.stem):
            try:
                # Each one that does not answer leaves less time for the others.
                connection = Connection(path, _owners(), (end_s - time.monotonic()) / 2)
                try:
                    found = connection.hello((end_s - time.monotonic()) / 2)
                finally:
                    connection.close()
            except Refused as refused:
                if not isinstance(refused.__cause__, FileNotFoundError | ConnectionRefusedError):
                    print_error(f"mrctl: {refused}")
                continue
            yield found


def _whose() -> str:
    return "" if os.geteuid() == 0 else " for this user; sudo asks those of root"


def connect(instance: str | None, path: str | None) -> Connection:
    """Connect to the named instance, or the only one. Raises Refused."""
    if path is not None:
        return Connection(Path(path))
    if instance is not None:
        at = folder() / f"{instance}.sock"
        try:
            return Connection(at, _owners())
        except Refused as refused:
            cause = refused.__cause__
            if not isinstance(cause, FileNotFoundError | ConnectionRefusedError):
                raise
            raise Refused(
                f"no instance of this name is running ({at}){_whose()}; see 'mrctl list'"
            ) from None
    found = list(running())
    if len(found) == 1:
        return Connection(Path(found[0]["path"]), _owners())
    names = ", ".join(str(one["instance"]) for one in found)
    if found:
        raise Refused(f"several instances are running; choose one with -n: {names}")
    raise Refused(f"no instance is running: {folder()} has no live socket{_whose()}")
