# SPDX-License-Identifier: BSD-3-Clause
"""What systemd does for a unit with FileDescriptorStoreMax=."""
import os
import socket
import threading

# Put the fds at 3 and above, and run the program with the same pid.
EXEC = """
import os, sys
names, first = sys.argv[1], int(sys.argv[2])
for i in range(len(names.split(":")) if names else 0):
    os.dup2(first + i, 3 + i, inheritable=True)
    os.close(first + i)
if names:
    os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDNAMES=names,
                      LISTEN_FDS=str(len(names.split(":"))))
os.execvp(sys.argv[3], sys.argv[3:])
"""
FIRST = 200  # of the fds that are passed, out of the way


class Keeper:
    """Its socket, and the fds that a service has stored in it."""

    def __init__(self, folder):
        self.path = folder / "notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.path))
        self.store = {}  # fds by name
        self.passed = []  # to the service that runs
        self.changed = threading.Condition()
        threading.Thread(target=self._serve, daemon=True).start()

    def forget(self):
        """Close all fds, as systemd does when the unit is stopped."""
        with self.changed:
            for fd in [*self.store.values(), *self.passed]:
                os.close(fd)
            self.store, self.passed = {}, []

    def close(self):
        self.forget()
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def _serve(self):
        while True:
            try:
                data, fds, _, _ = socket.recv_fds(self.socket, 4096, 4)
            except OSError:
                return
            if not data:
                return
            self._take(dict(line.split("=", 1) for line in data.decode().splitlines()), fds)

    def _take(self, said, fds):
        with self.changed:
            if "FDSTOREREMOVE" in said and said["FDNAME"] in self.store:
                os.close(self.store.pop(said["FDNAME"]))
            elif "FDSTORE" in said:
                assert said["FDPOLL"] == "0"  # or systemd drops it when the service dies
                # As in systemd, the last one comes first.
                self.store = {said["FDNAME"]: fds.pop(), **self.store}
            for fd in fds:
                os.close(fd)
            self.changed.notify_all()

    def wait_for(self, pid, limit_s):
        """Until the process has stored what the next one needs."""
        with self.changed:
            assert self.changed.wait_for(lambda: f"millrace-{pid}" in self.store, limit_s)

    def start(self):
        """How to run the service once more: what to put before its command, and the fds that it
        inherits. As in systemd, they stay in the store."""
        with self.changed:
            for fd in self.passed:
                os.close(fd)
            self.passed = [os.dup2(fd, FIRST + i)
                           for i, fd in enumerate(self.store.values())]
            return (["env", f"NOTIFY_SOCKET={self.path}", "/usr/bin/python3", "-c", EXEC,
                     ":".join(self.store), FIRST], self.passed)
