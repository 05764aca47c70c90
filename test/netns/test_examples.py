# SPDX-License-Identifier: BSD-3-Clause
"""The programs of examples/ on real interfaces."""
import signal
import sys
from pathlib import Path

import pytest
from lib.namespaces import wait_until
from lib.process import BUILD, Process
from lib.wire import TEST_TYPE, Wire, frame
from scapy.all import ARP, IP, UDP, Dot1Q, Ether, IPv6

TOP = Path(__file__).resolve().parents[2]
EXAMPLES = BUILD / "examples"
# The same firewall in several languages: what starts it.
FIREWALLS = {
    "c": [EXAMPLES / "example-firewall"],
    "python": [sys.executable, "-Bu", TOP / "examples/python/firewall.py"],
    "rust": [BUILD / "bindings/rust/release/examples/firewall"],
}
LIST = """# a comment

192.0.2.0/24
 198.51.100.7   # one address
203.0.113.200/25
2001:db8:1::/48
2001:db8:2::7
192.0.2.0/28    # covered by the first
"""
BAD_LINES = ["192.0.2.0/33", "2001:db8::/129", "192.0.2", "192.0.2.0/", "/24",
             "192.0.2.0/24 198.51.100.7", "192.0.2.0/x", "hosts"]
ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
LISTED = ["192.0.2.0", "192.0.2.255", "198.51.100.7", "203.0.113.128",
          "2001:db8:1::", "2001:db8:1:ffff:ffff:ffff:ffff:ffff",
          "2001:db8:2::7"]
OTHERS = ["192.0.1.255", "192.0.3.0", "198.51.100.6", "203.0.113.127",
          "2001:db8:2::", "2001:db8:0:ffff::1", "2001:db8:2::8", "::192.0.2.1"]


def packet(source, below=ETHER):
    """A frame from an address, to one that is listed."""
    ip = IPv6(src=source, dst="2001:db8:1::1") if ":" in source else \
        IP(src=source, dst="192.0.2.1")
    return bytes(below / ip / UDP(sport=source.count("."), dport=9) / bytes(32))


class Example(Process):
    """A running example, in a namespace between two others."""

    def __init__(self, lab, command, *ports):
        self.middle = lab.namespace("f")
        self.hosts = [lab.namespace(f"h{i}") for i in range(len(ports))]
        for host, port in zip(self.hosts, ports):
            lab.veth(host, "h0", self.middle, port)
        self.wires = [lab.closing(Wire(host, "h0")) for host in self.hosts]
        super().__init__(lab, self.middle, [*command, *ports])

    def crosses(self):
        """Wait until frames cross it; how many have."""
        n = 0

        def one_has():
            nonlocal n
            self.wires[0].send(frame(60))
            n += len(self.wires[1].receive(1, 0.2))
            return n > 0 or self.process.poll() is not None
        wait_until("a frame crosses", one_has)
        assert n > 0, self.err.text()
        return n + len(self.wires[1].receive_until_quiet(0.2))

    def stop(self):
        """End it as a person would; what it printed."""
        self.process.send_signal(signal.SIGINT)
        assert self.wait() == 0, self.err.text()
        assert not any(self.middle.link(f"p{i}").get("xdp")
                       for i in range(len(self.hosts)))
        return self.out.text()


@pytest.mark.parametrize("name", ["l2fwd", "epoll"])
def test_forwarders_forward(lab, name):
    example = Example(lab, [EXAMPLES / f"example-{name}"], "p0", "p1")
    example.crosses()
    for near, far in (0, 1), (1, 0):
        frames = [frame(60 + 100 * i, i) for i in range(14)]
        example.wires[near].send_all(frames)
        assert example.wires[far].receive(len(frames)) == frames
    example.stop()


@pytest.fixture(params=FIREWALLS)
def firewall(request, python_path):
    command = FIREWALLS[request.param]
    if not command[-1].exists() or (request.param == "python" and
                                    not python_path):
        pytest.skip(f"no firewall in {request.param} here")
    return command


def test_firewall_drops_what_is_listed(lab, firewall, tmp_path):
    (tmp_path / "list").write_text(LIST)
    example = Example(lab, [*firewall, tmp_path / "list"], "p0", "p1")
    n = example.crosses()
    tagged = ETHER / Dot1Q(vlan=5)
    listed = [packet(source) for source in LISTED]
    listed += [packet("192.0.2.9", tagged), packet("2001:db8:1::9", tagged)]
    others = [packet(source) for source in OTHERS]
    others += [packet("192.0.3.9", tagged), bytes(ETHER / ARP(psrc="192.0.2.1")),
               frame(1514, src=b"\x02\0\xc0\0\2\1")]
    for near, far in (0, 1), (1, 0):
        for data in [*listed, *others]:
            example.wires[near].send(data)
        got = example.wires[far].receive(len(others))
        got += example.wires[far].receive_until_quiet(0.2)
        assert sorted(got) == sorted(others)
    assert example.stop().strip() == (
        f"{n + 2 * len(others)} passed, {2 * len(listed)} listed, 0 not sent")


@pytest.mark.parametrize("prefix", ["0.0.0.0/0", "::/0"])
def test_firewall_of_everything(lab, firewall, prefix, tmp_path):
    """The shortest prefix has no bits, and is of one family."""
    (tmp_path / "list").write_text(prefix)
    example = Example(lab, [*firewall, tmp_path / "list"], "p0", "p1")
    example.crosses()
    packets = [packet("192.0.2.1"), packet("2001:db8::1")]
    for data in packets:
        example.wires[0].send(data)
    assert example.wires[1].receive(1) == [packets[":" not in prefix]]
    assert " 1 listed" in example.stop()


@pytest.mark.parametrize("line", BAD_LINES)
def test_firewall_names_a_bad_line(lab, firewall, line, tmp_path):
    (tmp_path / "list").write_text(f"192.0.2.0/24\n\n{line}\n")
    done = lab.namespace("f").run(*firewall, tmp_path / "list", "p0", "p1",
                                  check=False)
    assert done.returncode == 1 and done.stdout.count("\n") == 1
    assert f"{tmp_path}/list:3: " in done.stdout
    assert "192.0.2.0/24" in done.stdout  # what would be right


def test_firewall_needs_its_list_and_ports(lab, firewall, tmp_path):
    middle = lab.namespace("f")
    done = middle.run(*firewall, tmp_path / "none", "p0", "p1", check=False)
    assert done.returncode == 1 and f"{tmp_path}/none" in done.stdout
    (tmp_path / "list").write_text(LIST)
    done = middle.run(*firewall, tmp_path / "list", "p0", "p1", check=False)
    assert done.returncode == 1 and "p0" in done.stdout
    assert middle.run(*firewall, check=False).returncode == 2
