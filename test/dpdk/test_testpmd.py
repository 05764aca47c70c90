# SPDX-License-Identifier: BSD-3-Clause
"""dpdk-testpmd, the distribution's, forwards on our pool."""
import re
import signal
import subprocess
import time

import dpdk
import pytest
from host import limit

MIB = 512  # of memory for testpmd
SECONDS = limit(20)  # until traffic must have been seen, or the program be gone


@pytest.fixture(autouse=True)
def program():
    """Skip where there is no dpdk-testpmd."""
    why = dpdk.why_not("dpdk-testpmd")
    if why:
        pytest.skip(why)


def forward(pages, handler, tmp_path, vdevs, extra):
    """Forward until frames were counted: (exit status, output)."""
    words = dpdk.argv("dpdk-testpmd", pages, handler, mib=MIB, n_lcores=3,
                      extra=[f"--vdev={vdev}" for vdev in vdevs])
    # Its default is 400 MiB of them, for 32 ports.
    words += ["--", "--auto-start", "--stats-period=1",
              "--total-num-mbufs=8192", *extra]
    log = tmp_path / "testpmd.log"
    deadline = time.monotonic() + SECONDS
    with open(log, "wb") as out:
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out,
                              stderr=subprocess.STDOUT,
                              env=dpdk.environment()) as process:
            try:
                # Three lines of statistics per port: it goes on forwarding.
                while process.poll() is None and \
                        time.monotonic() < deadline and \
                        len(counts(log.read_text(errors="replace"))) < 6:
                    time.sleep(0.1)
                if process.poll() is None:
                    process.send_signal(signal.SIGINT)
                process.wait(SECONDS)
            finally:
                if process.poll() is None:
                    process.kill()
    output = log.read_text(errors="replace")
    if dpdk.PAGES_GONE in output and not isinstance(pages, dpdk.SmallPages):
        return forward(dpdk.SmallPages(), handler, tmp_path, vdevs, extra)
    return process.returncode, output


def counts(output):
    """(received, sent) of each report of each port."""
    return [(int(rx), int(tx)) for rx, tx in re.findall(
        r"RX-packets: (\d+) .*?TX-packets: (\d+) ", output, re.S)]


@pytest.mark.parametrize("vdev, extra", [
    # Each frame is allocated, and freed, through our handler alone,
    ("net_null", ["--mbcache=0"]),
    # below rte_mempool's own cache,
    ("net_null", ["--mbcache=250"]),
    # and by two lcores, on a pool that two ports' queues nearly empty.
    ("net_null", ["--mbcache=0", "--nb-cores=2", "--total-num-mbufs=1200"]),
    # The same mbufs go round for ever.
    ("net_ring", ["--mbcache=0", "--nb-cores=2", "--tx-first"]),
])
def test_forwards(pages, tmp_path, vdev, extra):
    """Frames are received and sent, and the program ends well."""
    status, output = forward(pages, "millrace", tmp_path,
                             [f"{vdev}0", f"{vdev}1"], extra)
    assert status == 0, output[-4000:]
    assert "preferred mempool ops selected: millrace" in output
    seen = counts(output)
    assert len(seen) >= 6, output[-4000:]
    assert all(rx > 0 and tx > 0 for rx, tx in seen[-2:]), seen


def test_fails_without_plugin(tmp_path):
    """The name alone is not enough: what the others measured was ours."""
    words = dpdk.argv("dpdk-testpmd", dpdk.SmallPages(), None, mib=MIB, extra=[
        "--vdev=net_null0", "--mbuf-pool-ops-name=millrace"])
    with open(tmp_path / "log", "wb") as log:
        done = subprocess.run(words + ["--", "--auto-start"],
                              stdin=subprocess.DEVNULL, stdout=log,
                              stderr=subprocess.STDOUT, timeout=SECONDS,
                              env=dpdk.environment(), check=False)
    output = (tmp_path / "log").read_text(errors="replace")
    assert done.returncode != 0
    assert "mbuf" in output and "millrace" in output, output[-2000:]
