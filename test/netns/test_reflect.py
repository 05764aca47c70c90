# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench reflect on a cable, with the kernel at the other end."""
import json
import signal

import pytest
from lib.namespaces import wait_until
from lib.process import BUILD, Process

BENCH = BUILD / "apps" / "bench" / "mr-bench"


def cable(lab):
    """Two namespaces, and a cable from h0 to p0."""
    host, port = lab.namespace("h"), lab.namespace("p")
    lab.veth(host, "h0", port, "p0")
    return host, port


def end(process):
    """Told to, it ends well; its last JSON object."""
    process.process.send_signal(signal.SIGINT)
    assert process.wait() == 0, process.err.text()
    return json.loads(process.out.text().splitlines()[-1])


def reflector(lab, port, *options):
    """mr-bench reflect on p0, which is ready."""
    process = Process(lab, port, [BENCH, "reflect", "-j", *options, "p0"])
    process.says("worker 0")
    wait_until("the program is there",
               lambda: "xdp" in port.ip("link", "show", "p0").stdout)
    return process


@pytest.mark.short
def test_a_ping_to_any_address_is_answered(lab):
    host, port = cable(lab)
    process = reflector(lab, port, "--arp")
    host.ip("address", "add", "10.9.0.1/24", "dev", "h0")
    for address in ("10.9.0.2", "10.9.0.77"):
        said = host.run("ping", "-c", 5, "-l", 5, "-i", 20, "-W", 20,
                        address).stdout
        assert "5 received" in said
        assert "corrupt" not in said
    final = end(process)
    assert final["workers"][0]["arp_answered"] >= 2
    assert final["ports"][0]["queues"][0]["tx"]["completed"] >= 12


def test_arp_is_answered_with_the_address_that_the_port_has_now(lab):
    host, port = cable(lab)
    process = reflector(lab, port, "--arp")
    mac = "02:00:00:00:bb:01"
    port.ip("link", "set", "p0", "address", mac)
    process.says(f"mr-bench reflect: xdp:p0: MAC address {mac}")
    host.ip("address", "add", "10.9.0.1/24", "dev", "h0")
    assert "1 received" in host.run("ping", "-c", 1, "-W", 20, "10.9.0.2").stdout
    assert mac in host.ip("neigh", "show", "10.9.0.2", "dev", "h0").stdout
    end(process)


def test_round_trips_are_measured(lab, tmp_path):
    """The generator of one end, the reflector at the other."""
    host, port = cable(lab)
    process = reflector(lab, port)
    out = tmp_path / "out.json"
    # However late on a busy machine, all of them.
    host.run(BENCH, "loop", "--out", out, "--rate", "5k", "--count", 2000,
             "--max-lag", 5, "--settle", 2, "h0", "h0", timeout=40)
    end(process)
    trial = json.loads(out.read_text())["trials"][0]
    assert trial["rx"]["unique"] == trial["tx"]["sent"] == 2000
    assert trial["latency"]["n"] == trial["rx"]["unique"]
    assert trial["latency"]["min"] > 0
