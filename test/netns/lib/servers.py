# SPDX-License-Identifier: BSD-3-Clause
"""Servers that real clients talk to, and where the clients are from."""
import http.server
import importlib.util
import shutil
import socketserver
import subprocess
import sys
import threading

import pytest
from host import limit

from .process import Process

LIMIT_S = limit(15.0)
BODY = bytes(i * 7 % 251 for i in range(1 << 20))


def need(program, package):
    """Skip the test where a program is not installed."""
    if not shutil.which(program):
        pytest.skip(f"{program} is missing (package {package})")


class _Handler(http.server.BaseHTTPRequestHandler):
    """/body is BODY, /who the address of the client, /meet the same as soon
    as all that the server waits for are there."""

    def do_GET(self):  # pylint: disable=invalid-name
        """Answer."""
        address, port = self.client_address
        body = f"{address}:{port}\n".encode()
        if self.path.startswith("/meet"):
            try:
                self.server.meeting.wait(LIMIT_S)
            except threading.BrokenBarrierError:
                self.send_error(503)
                return
        elif self.path == "/body":
            body = BODY
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        """Be silent."""


class Web(socketserver.ThreadingTCPServer):
    """A web server in a namespace; n_meet requests for /meet wait for one
    another."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, namespace, port, n_meet=1):
        self.meeting = threading.Barrier(n_meet)
        with namespace:
            super().__init__(("0.0.0.0", port), _Handler)
        self.thread = threading.Thread(target=self.serve_forever,
                                       args=(0.05,), daemon=True)
        self.thread.start()

    def close(self):
        self.shutdown()
        self.server_close()
        self.thread.join(LIMIT_S)


def ftp(lab, namespace, folder):
    """An FTP server for anonymous clients, on port 21."""
    if not importlib.util.find_spec("pyftpdlib"):
        pytest.skip("pyftpdlib is missing (package python3-pyftpdlib)")
    server = Process(lab, namespace, [sys.executable, "-m", "pyftpdlib",
                                      "--port", 21, "--directory", folder])
    server.says("starting FTP server", LIMIT_S)


def dnsmasq(lab, namespace, *options):
    """A server of names or leases, by options of dnsmasq."""
    need("dnsmasq", "dnsmasq-base")
    server = Process(lab, namespace, [
        "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null",
        "--no-resolv", "--no-hosts", "--pid-file", "--user=root",
        "--log-facility=-", "--edns-packet-max=4096", *options])
    server.says("started, version", LIMIT_S)


def iperf3(lab, namespace):
    need("iperf3", "iperf3")
    server = Process(lab, namespace, ["iperf3", "--server", "--one-off",
                                      "--forceflush"])
    assert server.out.wait(lambda line: "Server listening" in line, LIMIT_S)


def sshd(lab, namespace, key):
    """An SSH server on port 22 that admits root with this key, made here."""
    need("/usr/sbin/sshd", "openssh-server")
    need("ssh-keygen", "openssh-client")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key],
                   check=True, timeout=LIMIT_S)
    options = {"HostKey": key, "AuthorizedKeysFile": f"{key}.pub",
               "PermitRootLogin": "prohibit-password", "StrictModes": "no",
               "UsePAM": "no", "PidFile": "none"}
    server = Process(lab, namespace, [
        "unshare", "-m", "sh", "-c",  # its folder of privilege separation, and
        "mount -t tmpfs -o mode=755 none /run && mkdir /run/sshd && "
        "echo 'root:*:::::::' >/run/shadow && "  # root may log in here
        "mount --bind /run/shadow /etc/shadow && "
        'exec /usr/sbin/sshd -D -e -f /dev/null "$@"', "sh",
        *[f"-o{name}={value}" for name, value in options.items()]])
    server.says("Server listening on 0.0.0.0 port 22", LIMIT_S)
