# SPDX-License-Identifier: BSD-3-Clause
"""vhost: ports, with virtio-user: ports of another process as the drivers."""
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from lib.namespaces import wait_until
from lib.process import BUILD, L2FWD, Process

sys.path.insert(0, str(BUILD / "bindings/python"))

from millrace import Error, Pool, Port  # noqa: E402

FRAME = bytes.fromhex("0200000000020200000000010800") + bytes(50)


ADD_MEM_REG = 37
MEMORY_BYTES = 2 << 20
MFD_HUGETLB = 4


class Driver(Process):
    """Sends each frame back to the device."""

    def __init__(self, lab, path, options=""):
        super().__init__(lab, lab.namespace("driver"),
                         [L2FWD, "--mode", "macswap", "--quiet",
                          f"virtio-user:{path}{options}"])


class TestPmd(Process):
    """DPDK's driver, which sends each frame back. Its memory is not sealed."""

    __test__ = False

    def __init__(self, lab, path, is_packed):
        prefix = f"vhost{os.getpid()}"
        self.files = Path("/var/run/dpdk") / prefix
        super().__init__(lab, lab.namespace("testpmd"), [
            "dpdk-testpmd", "--no-huge", "-m", "128", "--no-pci", "-l", "0,1",
            f"--file-prefix={prefix}", "--vdev",
            f"net_virtio_user0,path={path},packed_vq={is_packed}",
            "--", "--forward-mode=io", "--port-topology=loop", "--nb-cores=1",
            "--total-num-mbufs=4096", "--no-flush-rx"], stdin=subprocess.PIPE)

    def kill(self):
        super().kill()
        shutil.rmtree(self.files)


class Device:
    """A port, and frames that return to it."""

    def __init__(self, pool, path, options=""):
        self.pool = pool
        self.port = Port(pool, f"vhost:{path}{options}")

    def is_up(self):
        self.port.poll()
        return self.port.link()["is_up"]

    def echo(self, n, queue=0):
        """How many of n frames return while the port is polled, up to 0.2 s."""
        n_back, end_s = 0, time.monotonic() + 0.2
        with self.pool.burst([FRAME] * n) as burst:
            self.port.tx(queue).send(burst)
        while n_back < n and time.monotonic() < end_s:
            self.port.poll()
            for i in range(self.port.info()["n_rxqs"]):
                with self.port.rx(i).receive() as arrived:
                    n_back += len(arrived)
        return n_back


@contextmanager
def device_at(path, options=",unsealed"):
    """A device; unsealed, since its drivers may have huge pages."""
    with Pool() as pool:
        device = Device(pool, path, options)
        with device.port:
            yield device
        stats = pool.stats()
        assert stats["n_free"] == stats["n_pages"], stats


@pytest.mark.parametrize("ring", ["packed=off", "packed=on"])
def test_all_tx_queues_send_to_a_driver_with_fewer(lab, tmp_path, ring):
    path = tmp_path / "vm.sock"
    with device_at(path, ",queues=4,unsealed") as device:
        Driver(lab, path, f",queues=2,{ring}")
        wait_until("the link is up", device.is_up)
        wait_until("both queues run", lambda: device.echo(8) == 8)
        for queue in range(4):
            assert device.echo(8, queue) == 8


@pytest.mark.parametrize("ring", ["packed=off", "packed=on"])
def test_drivers_come_and_go(lab, tmp_path, ring):
    path = tmp_path / "vm.sock"
    with device_at(path) as device:
        for _ in range(20):
            driver = Driver(lab, path, f",{ring}")
            wait_until("the link is up", device.is_up)
            wait_until("frames come back", lambda: device.echo(8) == 8)
            driver.kill()
            wait_until("the link is down", lambda: not device.is_up())
            assert device.echo(8) == 0
    assert not path.exists()


@pytest.mark.parametrize("is_packed", [0, 1])
def test_drivers_of_dpdk_come_and_go(lab, tmp_path, is_packed):
    if not shutil.which("dpdk-testpmd"):
        pytest.skip("dpdk-testpmd is missing (package dpdk-dev)")
    path = tmp_path / "vm.sock"
    with device_at(path, ",unsealed") as device:
        for _ in range(3):
            driver = TestPmd(lab, path, is_packed)
            wait_until("the link is up", device.is_up)
            wait_until("frames come back", lambda: device.echo(8) == 8)
            driver.kill()
            wait_until("the link is down", lambda: not device.is_up())


def test_path_in_use_is_refused(tmp_path):
    path = tmp_path / "vm.sock"
    with device_at(path), device_at(tmp_path / "other.sock") as other, \
            pytest.raises(Error, match="another process listens there"):
        Port(other.pool, f"vhost:{path}")


def test_socket_of_a_dead_process_is_replaced(lab, tmp_path):
    path = tmp_path / "vm.sock"
    dead = Process(lab, lab.namespace("dead"),
                   [L2FWD, "--quiet", f"vhost:{path}", "null:"])
    wait_until("it listens", path.exists)
    dead.kill()
    assert path.exists()
    with device_at(path) as device:
        Driver(lab, path)
        wait_until("the link is up", device.is_up)


def share_memory(path, fd):
    """A peer that shares a file and does nothing else."""
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(str(path))
    message = struct.pack("<IIIQQQQQ", ADD_MEM_REG, 1, 40, 0, 0, MEMORY_BYTES,
                          0x10000, 0)
    socket.send_fds(peer, [message], [fd])
    return peer


def test_peer_that_speaks_another_protocol_is_dropped(lab, tmp_path):
    path = tmp_path / "vm.sock"
    device = Process(lab, lab.namespace("device"),
                     [L2FWD, "--quiet", f"vhost:{path}", "null:"])
    wait_until("it listens", path.exists)
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(path))
        peer.send(b"GET / HTTP/1.1\r\n\r\n")
        device.says("does not speak vhost-user")


def unsealed_file():
    fd = os.open("/dev/shm", os.O_TMPFILE | os.O_RDWR, 0o600)
    os.ftruncate(fd, MEMORY_BYTES)
    return fd


def sealed_huge_pages():
    fd = os.memfd_create("guest", MFD_HUGETLB | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, MEMORY_BYTES)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    return fd


@pytest.mark.parametrize("make", [unsealed_file, sealed_huge_pages])
def test_memory_that_may_vanish_is_refused(lab, tmp_path, make):
    path = tmp_path / "vm.sock"
    device = Process(lab, lab.namespace("device"),
                     [L2FWD, "--quiet", f"vhost:{path}", "null:"])
    wait_until("it listens", path.exists)
    fd = make()
    with share_memory(path, fd) as peer:
        assert peer.recv(1) == b"", "the connection ends"
    os.close(fd)
    assert device.says("`unsealed` takes")


def test_memory_that_may_vanish_is_taken_if_trusted(tmp_path):
    path = tmp_path / "vm.sock"
    fd = unsealed_file()
    with device_at(path, ",unsealed") as device, share_memory(path, fd) as peer:
        device.is_up()
        device.is_up()
        peer.setblocking(False)
        with pytest.raises(BlockingIOError):
            peer.recv(1)
    os.close(fd)
