# SPDX-License-Identifier: BSD-3-Clause
"""virtio-user: ports with DPDK's net_vhost as the back end, which may go at any
time and return."""
import signal
import socket
import sys
import time

import pytest
from lib.namespaces import wait_until
from lib.process import BUILD, L2FWD, Process

sys.path.insert(0, str(BUILD / "bindings/python"))

from millrace import Error, Pool, Port  # noqa: E402

MODULE = BUILD / "lib/link/libmillrace-dpdk.so"

FRAME = bytes.fromhex("0200000000020200000000010800") + bytes(50)


class BackEnd(Process):
    """Sends each frame back to where it came from."""

    def __init__(self, lab, path, is_client=False):
        device = rf"dpdk:net_vhost0\,iface={path}\,client={int(is_client)}"
        if not is_client:
            path.unlink(missing_ok=True)
        super().__init__(lab, lab.namespace("vhost"),
                         [L2FWD, "--mode", "macswap", "--quiet", device])
        if not is_client:
            wait_until("the back end listens", path.exists)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Talk:
    """A port, and frames that come back."""

    def __init__(self, path, options=""):
        self.path, self.options = path, options

    def __enter__(self):
        self.pool = Pool()
        self.port = Port(self.pool, f"virtio-user:{self.path}{self.options}")
        return self

    def __exit__(self, *error):
        self.port.close()
        stats = self.pool.stats()
        assert stats["n_free"] == stats["n_pages"], stats
        self.pool.close()

    def echo(self, n):
        """Frames that come back within a second, of n."""
        tx, rx = self.port.tx(), self.port.rx()
        n_back, end_s = 0, time.monotonic() + 1
        with self.pool.burst([FRAME] * n) as burst:
            while n_back < n and time.monotonic() < end_s:
                self.port.poll()
                tx.send(burst)
                with rx.receive() as arrived:
                    n_back += len(arrived)
                tx.collect()
        return n_back

    def settle(self):
        wait_until("frames come back", lambda: self.echo(8) == 8)


@pytest.fixture
def path(tmp_path):
    if not MODULE.exists():
        pytest.skip("the dpdk driver is not built (libdpdk?)")
    return tmp_path / "vm.sock"


@pytest.mark.parametrize("options", [
    "packed=off", "packed=on", "packed=on,server=on"])
def test_port_goes_on_when_its_back_end_returns(lab, path, options):
    is_client = "server" in options
    back_end = BackEnd(lab, path, is_client)
    with Talk(path, f",{options}") as talk:
        talk.settle()
        for _ in range(5):
            back_end.kill()
            wait_until("the link is down", lambda: (
                talk.port.poll(), not talk.port.link()["is_up"])[1])
            assert talk.echo(4) == 0
            back_end = BackEnd(lab, path, is_client)
            talk.settle()
    assert not is_client or not path.exists()


def listen_silently(path):
    """A socket on which nobody accepts; one connection waits, others block."""
    path.unlink(missing_ok=True)
    silent = socket.socket(socket.AF_UNIX)
    silent.bind(str(path))
    silent.listen(0)
    return silent


def test_open_gives_up_on_a_back_end_that_accepts_no_connection(lab, tmp_path):
    path = tmp_path / "vm.sock"
    with listen_silently(path), Pool() as pool:
        for _ in range(3):
            with pytest.raises(Error, match="does not answer"):
                Port(pool, f"virtio-user:{path}")


def test_poll_is_short_while_a_returned_back_end_is_silent(lab, path):
    back_end = BackEnd(lab, path)
    with Talk(path) as talk:
        talk.settle()
        back_end.kill()
        with listen_silently(path):
            longest_s, end_s = 0, time.monotonic() + 5
            while time.monotonic() < end_s:
                start_s = time.monotonic()
                talk.port.poll()
                longest_s = max(longest_s, time.monotonic() - start_s)
        assert longest_s < 1
        back_end = BackEnd(lab, path)
        talk.settle()
