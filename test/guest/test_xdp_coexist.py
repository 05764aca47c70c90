# SPDX-License-Identifier: BSD-3-Clause
"""AF_XDP beside what else uses an interface, on veths of a distribution's
kernel: bonds and VLANs, which other kernels may lack."""
import pytest

from conftest import boot
from probe import opened


@pytest.fixture(name="guest", scope="module")
def fixture_guest():
    with boot((), modules=["bonding", "8021q"]) as guest:
        for words in ("link add v0 type veth peer name w0",
                      "link add v1 type veth peer name w1",
                      "link add bond9 type bond",
                      "link set v0 master bond9",
                      "link add link v1 name v1.5 type vlan id 5"):
            status, text = guest.run(f"/bin/ip {words}")
            assert status == 0, text
        yield guest


@pytest.mark.parametrize("name, parts", [
    ("bond9", ["is a bond", "instead: xdp:v0,force"]),
    ("v1.5", ["is a VLAN", "instead: xdp:v1;", "have a tag"]),
])
def test_what_lies_on_others_is_refused(guest, name, parts):
    """Also with force; what the message names can be opened."""
    with opened(guest, pool=16384) as probe:
        for options in ("", ",force"):
            reason = probe.refused("open", f"xdp:{name}{options}")
            assert all(part in reason for part in parts), reason
        lower = reason.partition("instead: ")[2].partition(";")[0]
        probe.do("open", lower)
