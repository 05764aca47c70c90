# SPDX-License-Identifier: BSD-3-Clause
"""The example of mbufs on our handler, in our pages, out of a port of ours."""
import subprocess

import dpdk
import pytest
from host import limit


def test_mbufs():
    """It ends with 1 if none is sent."""
    why = dpdk.why_no_plugin()
    if why:
        pytest.skip(why)
    subprocess.run(
        [dpdk.BUILD / "examples" / "example-mbufs", "-d", dpdk.PLUGIN,
         "--mbuf-pool-ops-name=millrace", "--no-pci", "--no-telemetry",
         "--no-huge", "--no-shconf", "--vdev=net_null0", "--", "null:",
         "1000"], check=True, timeout=limit(60), env=dpdk.environment())
