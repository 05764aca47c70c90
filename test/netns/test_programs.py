# SPDX-License-Identifier: BSD-3-Clause
"""XDP programs of others: loaded by the port (prog), attached and shared (map),
or attached and blocking the port."""
import json
import os
import signal
from contextlib import contextmanager
from pathlib import Path

import pytest
from lib import talk
from lib.forwarder import Refused
from lib.namespaces import Star, run, wait_until
from lib.probe import opened
from lib.process import BUILD, PASS_OBJECT, TAG_OBJECT
from lib.wire import TEST_TYPE, Wire, frame
from scapy.all import IP, UDP, Ether

BPFTOOL = "/usr/sbin/bpftool"
VXLAN = BUILD / "examples" / "vxlan.bpf.o"
SHARED = BUILD / "test" / "netns" / "shared.bpf.o"
USERS = BUILD / "test" / "netns" / "users.bpf.o"
WRONG = BUILD / "test" / "netns" / "wrong.bpf.o"

pytestmark = [
    pytest.mark.skipif(not USERS.exists(), reason="no clang: the programs "
                       "are not built"),
    pytest.mark.skipif(not os.path.exists(BPFTOOL), reason="no bpftool"),
]


def attached(star, port="p0"):
    """The id of the program on a port; None: there is none."""
    return star.middle.link(port).get("xdp", {}).get("prog", {}).get("id")


def reflect(probe, wire, frames, port=0):
    """Check that all frames reach the port and come back."""
    probe.begin("forward", port)
    wire.send_all(frames)
    assert wire.receive(len(frames)) == frames
    assert probe.end_forward(port) == len(frames)


def frames_of(n=100):
    return [frame(60 + number, number) for number in range(n)]


@pytest.fixture(name="pins")
def fixture_pins(lab):
    """A folder for pinned programs and maps."""
    folder = lab.tmp_path / "bpf"
    folder.mkdir()
    run("mount", "-t", "bpf", "bpf", folder)
    try:
        yield folder
    finally:
        lab.close()  # whose namespaces have it mounted, too
        run("umount", folder)


def attach(star, pins, *ports, program=SHARED, mode="xdpdrv"):
    """Attach a program with a map, as another user. Returns the map's path."""
    if not (pins / "program").exists():
        run(BPFTOOL, "prog", "load", program, pins / "program", "pinmaps",
            pins)
    for port in ports:
        star.middle.run(BPFTOOL, "net", "attach", mode, "pinned",
                        pins / "program", "dev", port)
    return pins / "xsks_map"


# The program of the option prog.


@pytest.mark.parametrize("mode", ["native", "generic"])
def test_the_example_takes_vxlan_and_leaves_the_rest(lab, star, mode):
    star.middle.ip("address", "add", "10.77.0.9/24", "dev", "p0")
    wire = lab.closing(Wire(star.hosts[0], "h0", 0x0800))
    packet = Ether(src="02:00:00:00:00:01", dst="ff:ff:ff:ff:ff:ff") / IP(
        src="10.77.0.1", dst="10.77.0.9")
    probe = opened(lab, star.middle, f"p0,prog={VXLAN},attach={mode}")
    reflect(probe, wire, [bytes(packet / UDP(sport=i, dport=4789) / bytes(60))
                          for i in range(1, 101)])
    assert talk.ping(star.hosts[0], "10.77.0.9") == 3
    server = talk.Udp(star.middle, "10.77.0.9", 4788)
    wire.send(bytes(packet / UDP(sport=1, dport=4788) / b"kernel"))
    assert server.receive() == b"kernel"
    server.close()
    assert probe.stats()["queues"][0]["rx"]["received"] == 100


@pytest.mark.parametrize("section, options", [
    ("xdp", ""), ("all", ",sg=off"), ("xdp.frags", ",sg=on"),
    ("all_frags", ",mtu=9000")])
def test_a_section_or_a_function_is_chosen(lab, section, options):
    star = Star(lab, mtu=9000 if "9000" in options else None)
    wire = lab.closing(Wire(star.hosts[0], "h0", TEST_TYPE))
    probe = opened(lab, star.middle, f"p0,prog={USERS}:{section}{options}")
    reflect(probe, wire, frames_of())
    probe.do("close", 0)
    assert attached(star) is None


@pytest.mark.short
def test_a_killed_port_takes_the_program_with_it(lab, star):
    wire = lab.closing(Wire(star.hosts[0], "h0", TEST_TYPE))
    spec = f"p0,prog={USERS}:all"
    first = opened(lab, star.middle, spec)
    first.process.send_signal(signal.SIGKILL)
    first.wait()
    second = opened(lab, star.middle, spec)
    reflect(second, wire, frames_of())


def test_as_many_queues_as_the_port_has(lab):
    """The map in the object has one entry."""
    star = Star(lab, queues=2)
    probe = opened(lab, star.middle, f"p0,prog={USERS}:all,ring=256")
    assert probe.do("info", 0)["rxqs"] == 2


def test_rules_are_refused(lab, star, pins):
    def refuse(option):
        Refused(lab, star.middle, "--offload", "on", f"p0,{option}",
                "p1").check(1, "no rules with 'prog' or 'map'")

    refuse(f"prog={USERS}:all")
    refuse(f"map={attach(star, pins, 'p0')}")


BAD_PROGRAMS = {
    "missing": ("/nope.o", "", ["/nope.o", "No such file"]),
    "no file": ("", "", ["cannot use"]),
    "not ELF": (__file__, "", ["not a BPF object", "clang"]),
    "no section": (f"{USERS}:nope", "", ["no program 'nope'",
                                         "xdp xdp.frags xdp/blind"]),
    "several": (USERS, "", ["several programs 'xdp'", "FILE:SECTION"]),
    "no XDP program": (TAG_OBJECT, "", ["no program 'xdp'", "tc"]),
    "not XDP": (f"{TAG_OBJECT}:tc", "", ["no map 'xsks_map'"]),
    "no map": (PASS_OBJECT, "", ["no map 'xsks_map'", "XSKMAP"]),
    "no XSKMAP": (WRONG, "", ["no map 'xsks_map'", "XSKMAP"]),
    "refused": (f"{USERS}:blind", "", ["verifier refuses", "packet"]),
    "one buffer": (f"{USERS}:all", ",sg=on", ["sg=on", "'xdp.frags'"]),
    "filtered": (USERS, ",ports=53/udp", ["a filter is part of the port's own"]),
    "and a map": (USERS, ",map=/sys/fs/bpf/m", ["mutually exclusive"]),
}


@pytest.mark.parametrize("program, options, parts", BAD_PROGRAMS.values(),
                         ids=BAD_PROGRAMS.keys())
def test_a_bad_program_is_refused(lab, star, program, options, parts):
    before = star.middle.link("p0")["flags"]
    probe = opened(lab, star.middle)
    reason = probe.refused("open", f"p0,prog={program}{options}")
    assert all(part in reason for part in parts), reason
    assert attached(star) is None
    assert star.middle.link("p0")["flags"] == before
    assert b"bpf" not in b"".join(
        os.fsencode(os.readlink(fd))
        for fd in Path(f"/proc/{probe.pid}/fd").iterdir())
    probe.do("open", "p0")


def test_a_program_without_the_capability_is_refused(lab, star):
    Refused(lab, star.middle, f"p0,prog={USERS}:all", "p1",
            wrap=["setpriv", "--bounding-set=-bpf,-sys_admin"]).check(
        1, "CAP_BPF")
    assert attached(star) is None


# The map of a program that somebody else has attached.


@pytest.mark.parametrize("mode", ["xdpdrv", "xdpgeneric"])
@pytest.mark.short
def test_the_map_of_others_is_used_and_left(lab, star, pins, mode):
    wire = lab.closing(Wire(star.hosts[0], "h0", TEST_TYPE))
    path = attach(star, pins, "p0", mode=mode)
    number = attached(star)
    for _ in range(2):
        probe = opened(lab, star.middle, f"p0,map={path}")
        reflect(probe, wire, frames_of())
        probe.close()
        assert attached(star) == number
    # The map is empty again: frames go to the kernel.
    beyond = lab.closing(Wire(star.middle, "p0", TEST_TYPE))
    sent = frames_of()
    wire.send_all(sent)
    assert beyond.receive(len(sent)) == sent


def test_the_place_of_another_socket_is_refused_and_left(lab, star, pins):
    wires = [lab.closing(Wire(host, "h0", TEST_TYPE)) for host in star.hosts]
    path = attach(star, pins, "p0", "p1")
    first = opened(lab, star.middle, f"p0,map={path}")
    second = opened(lab, star.middle)
    assert "already has a socket" in second.refused("open", f"p1,map={path}")
    reflect(first, wires[0], frames_of())
    first.process.send_signal(signal.SIGKILL)
    first.wait()
    second.do("open", f"p1,map={path}")
    reflect(second, wires[1], frames_of())


def test_a_bad_map_is_refused(lab, pins):
    star = Star(lab, queues=2)
    path = attach(star, pins, "p0")
    run(BPFTOOL, "map", "create", pins / "array", "type", "array", "key", 4,
        "value", 4, "entries", 64, "name", "array")
    file = lab.tmp_path / "file"
    file.write_text("no map")
    number = attached(star)
    probe = opened(lab, star.middle)
    for bad, parts in (
            (pins / "nope", ["No such file"]),
            (file, ["not in a bpf file system", "/sys/fs/bpf"]),
            (pins / "array", ["not a map of type BPF_MAP_TYPE_XSKMAP"]),
            (pins / "program", ["not a map of type BPF_MAP_TYPE_XSKMAP"]),
            (path, ["has 1 entries", "too few for queue 1"])):
        reason = probe.refused("open", f"p0,ring=256,map={bad}")
        assert all(part in reason for part in parts), reason
        assert "the port attaches no program" in probe.refused(
            "open", f"p0,ring=256,map={bad},attach=native")
    assert "no XDP program is attached" in probe.refused(
        "open", f"p1,ring=256,map={path}")
    assert attached(star) == number
    probe.do("open", f"p0,ring=256,map={path},queues=1,partial")


def test_a_map_that_may_not_be_opened_is_refused(lab, star, pins):
    path = attach(star, pins, "p0")
    path.chmod(0)
    Refused(lab, star.middle, f"p0,map={path}", "p1",
            wrap=["setpriv", "--bounding-set=-dac_override"]).check(
        1, str(path), "cannot be opened", "root")


# A program that blocks the port.


@contextmanager
def blocked(lab, star):
    """A probe that cannot open p0 as long as the block lasts."""
    probe = opened(lab, star.middle)
    yield lambda: probe.refused("open", "p0")
    probe.do("open", "p0")


@pytest.mark.parametrize("mode", ["xdp", "xdpgeneric"])
def test_a_program_without_an_owner_is_named(lab, star, pass_object, mode):
    star.middle.run("ip", "link", "set", "dev", "p0", mode, "obj",
                    pass_object, "sec", "xdp")
    with blocked(lab, star) as refuse:
        reason = refuse()
        assert f"'pass' (id {attached(star)})" in reason, reason
        remedy = reason.split("'")[3]
        assert remedy == f"ip link set dev p0 {mode} off", reason
        star.middle.run(*remedy.split())


def test_a_program_of_a_process_names_it(lab, star):
    owner = opened(lab, star.middle, f"p0,prog={USERS}:all")
    with blocked(lab, star) as refuse:
        reason = refuse()
        assert f"'all' (id {attached(star)})" in reason, reason
        assert f"by netns-probe (pid {owner.pid}): stop it" in reason, reason
        owner.close()


def test_only_root_sees_the_process(lab, star):
    opened(lab, star.middle, f"p0,prog={USERS}:all")
    Refused(lab, star.middle, "p0", "p1",
            wrap=["setpriv", "--bounding-set=-sys_admin"]).check(
        1, f"(id {attached(star)})", "only root can see its owner")


def test_another_port_of_ours_names_its_process(lab, star):
    owner = opened(lab, star.middle, "p0")
    with blocked(lab, star) as refuse:
        reason = refuse()
        assert "another program that uses Millrace" in reason, reason
        assert f"by netns-probe (pid {owner.pid})" in reason, reason
        owner.close()


def test_a_pinned_link_is_named(lab, star, pins):
    owner = opened(lab, star.middle, f"p0,prog={USERS}:all")
    links = json.loads(run(BPFTOOL, "-j", "link", "list").stdout)
    number = next(link["id"] for link in links
                  if link.get("prog_id") == attached(star))
    run(BPFTOOL, "link", "pin", "id", number, pins / "link")
    owner.process.send_signal(signal.SIGKILL)
    owner.wait()
    with blocked(lab, star) as refuse:
        reason = refuse()
        assert f"'bpftool link detach id {number}'" in reason, reason
        run(BPFTOOL, "link", "detach", "id", number)
        wait_until("it is detached", lambda: attached(star) is None)
