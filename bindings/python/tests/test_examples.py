# SPDX-License-Identifier: BSD-3-Clause
"""The examples run, and notice what is wrong."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from host import limit

from millrace import Pool, Port

TOP = Path(__file__).resolve().parents[3]
EXAMPLES = TOP / "examples/python"


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-B", *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        timeout=limit(60),
    )


def test_replay(pool: Pool, tmp_path: Path) -> None:
    frames = [b"%100d" % i for i in range(5000)]
    with Port(pool, f"pcap:tx={tmp_path}/in.pcap") as port:
        for i in range(0, 5000, 250):
            port.tx().send(pool.burst(frames[i : i + 250]))
    done = run(EXAMPLES / "replay.py", tmp_path / "in.pcap", f"pcap:tx={tmp_path}/out.pcap")
    assert done.stdout.startswith("5000 frames sent"), done.stderr
    with Port(pool, f"pcap:rx={tmp_path}/out.pcap") as port:
        got: list[bytes] = []
        while len(got) < 5000:
            with port.rx().receive() as burst:
                got += map(bytes, burst)
    assert got == frames


def test_rates(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    pytest.importorskip("matplotlib")
    done = run(EXAMPLES / "rates.py", "null:", 1, tmp_path / "chart.png")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 4
    bits, rate = done.stdout.split()[:2]
    assert bits == "bits/s"
    assert int(rate.replace(",", "")) > 1e6
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


def test_firewall(pool: Pool, tmp_path: Path) -> None:
    """With captures; on real interfaces: test/netns."""
    pytest.importorskip("numpy")
    frames = [bytes(12) + b"\x08\0" + bytes([*[0] * 12, 10, 0, i % 3, 1, i]) for i in range(240)]
    with Port(pool, f"pcap:tx={tmp_path}/in.pcap") as port:
        port.tx().send(pool.burst(frames))
    (tmp_path / "list").write_text("10.0.1.0/24 # one in three\n")
    places = (f"pcap:rx={tmp_path}/in.pcap", f"pcap:tx={tmp_path}/out.pcap")
    done = run(EXAMPLES / "firewall.py", tmp_path / "list", *places)
    assert done.stdout == "160 passed, 80 listed, 0 not sent\n", done.stderr
    with Port(pool, f"pcap:rx={tmp_path}/out.pcap") as port, port.rx().receive() as burst:
        assert list(map(bytes, burst)) == [frame for i, frame in enumerate(frames) if i % 3 != 1]
    done = run(EXAMPLES / "firewall.py", tmp_path / "list", "nothing:", "null:")
    assert done.returncode == 1
    assert "no driver 'nothing'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_l2fwd() -> None:
    with subprocess.Popen(
        [sys.executable, "-B", EXAMPLES / "l2fwd.py", "null:", "null:"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "forwarding\n"
        process.send_signal(signal.SIGINT)
        text, _ = process.communicate(timeout=limit(60))
    assert process.returncode == 0
    counters = dict(line.rsplit(" ", 1) for line in text.splitlines())
    assert int(counters["worker 0 rounds"]) >= 0


def test_device_test() -> None:
    """A pair is a device that forwards all of it."""
    pytest.importorskip("scapy")
    done = run(EXAMPLES / "device_test.py", "pair:x", "pair:x")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("5 of 5") == 12


def test_device_test_notices() -> None:
    """What null: receives was not sent."""
    pytest.importorskip("scapy")
    done = run(EXAMPLES / "device_test.py", "null:len=14", "null:len=14")
    assert done.returncode == 1
    assert done.stdout.count(" 0 of 5") == 12
    assert "not sent" in done.stdout


@pytest.mark.parametrize("name", ["replay", "rates", "device_test"])
def test_reasons_are_printed(name: str) -> None:
    if name != "replay":
        pytest.importorskip("numpy" if name == "rates" else "scapy")
    done = run(EXAMPLES / f"{name}.py", "nothing:", "1")
    assert done.returncode == 1
    assert done.stderr.startswith(f"{name}: "), done.stderr
    assert len(done.stderr.splitlines()) == 1
