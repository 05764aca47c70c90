# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's own tests of mempools, the distribution's binary, on our handler."""
import re

import dpdk
import pytest
from host import limit

# Of mempool_perf_autotest: 4 x 4 bulks and 4 of constant n, 3 n_keep, on 1, 2
# and all lcores.
ROWS_PER_SECTION = (4 * 4 + 4) * 3 * 3


@pytest.fixture(autouse=True)
def program():
    """Skip where there is no dpdk-test."""
    why = dpdk.why_not("dpdk-test")
    if why:
        pytest.skip(why)


def test_functional(pages):
    """mempool_autotest passes, on our handler and on nothing else."""
    status, output = dpdk.autotest("mempool_autotest", pages, "millrace",
                                   limit(60))
    assert status == 0, output[-4000:]
    assert "Test OK" in output
    # It dumps the mempools that it goes through; the default one is ours.
    used = re.findall(r"mempool <(\w+)>@.*?ops_name: <(\w+)>", output, re.S)
    assert ("default_pool", "millrace") in used, used


def test_functional_everywhere(pages):
    """The same, with our handler below its other mempools too."""
    status, output = dpdk.autotest(
        "mempool_autotest", pages, "millrace", limit(60),
        LD_PRELOAD=str(dpdk.SHIM), MR_SHIM_HANDLER="millrace")
    assert status == 0, output[-4000:]
    used = dict(re.findall(r"mempool <(\w+)>@.*?ops_name: <(\w+)>", output,
                           re.S))
    # But for the mempools that ask for a stack by name.
    ours = {mempool for mempool, handler in used.items()
            if handler == "millrace"}
    assert {"test_nocache", "test_cache", "default_pool"} <= ours, used


def test_speed(pages):
    """mempool_perf_autotest goes through all of its rows, shortened; between
    two rows it insists on a full mempool."""
    row_ms = 10
    status, output = dpdk.autotest(
        "mempool_perf_autotest", pages, "millrace", limit(110),
        LD_PRELOAD=str(dpdk.SHIM), MR_SHIM_ROW_MS=str(row_ms))
    assert status == 0, output[-4000:]
    rows = [row for row in dpdk.rows(output, row_ms)
            if row["section"] == "for millrace (without cache)"]
    assert len(rows) == ROWS_PER_SECTION, output[-4000:]
    assert {row["cores"] for row in rows} == {1, 2}
    assert all(row["rate"] > 0 for row in rows)


def test_memory_in_small_pages():
    """Without huge pages, the memory comes in many chunks."""
    status, output = dpdk.autotest("mempool_autotest", dpdk.SmallPages(),
                                   "millrace", limit(60))
    assert status == 0, output[-4000:]
