# SPDX-License-Identifier: BSD-3-Clause
"""The conformance suite on the kernel's igb driver, in zero-copy mode.

At the other end of the cable is a NIC that the guest's kernel drives.
"""
import re

import pytest

from conftest import CONFORMANCE, boot
from guest import Nic

# Most of it is opening: igb needs 1.5 s for its link each time.
LIMIT_S = 400


def test_igb_zero_copy():
    """Every test of the suite passes, and the IOMMU has seen no fault."""
    if not CONFORMANCE.exists():
        pytest.skip(f"{CONFORMANCE} is not built")
    cable = [Nic("nic0", "igb", hub=0), Nic("far0", "virtio-net-pci", hub=0)]
    with boot(cable, programs=[CONFORMANCE]) as guest:
        status, text = guest.run(
            "MR_NIC=nic0 MR_NIC_FAR=far0 MR_NIC_OPTIONS=mode=zc "
            "conformance nic 2>&1", LIMIT_S)
        log = guest.run("dmesg | grep -e DMAR: -e WARNING: -e BUG:")[1]
    passed = sum(int(n) for n in re.findall(r"PASSED +\] (\d+) test", text))
    assert status == 0, text
    assert passed > 30, text
    assert "fault" not in log and "BUG" not in log, log
