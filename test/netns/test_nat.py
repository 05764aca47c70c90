# SPDX-License-Identifier: BSD-3-Clause
"""mr-nat with the kernels of real hosts on both sides."""
import json
import os
import signal
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from lib import invariants, nat, talk
from lib.namespaces import wait_until
from lib.nat import Echo, House, Nat, Talker, ask_all
from lib.process import BUILD, NAT, Process, ask_ctl, environment

RANDOM_PORTS = "ports: {keep_port: no}\n"


@pytest.fixture
def house(lab):
    return House(lab)


@pytest.fixture
def echo(lab, house):
    return lab.closing(Echo(house.server))


@pytest.mark.parametrize("workers, vlan", [(1, None), (2, None), (2, 5)])
@pytest.mark.short
def test_hosts_inside_reach_a_server(lab, workers, vlan, on_vlan):
    house = House(lab, vlan=vlan)
    lab.closing(Echo(house.server))
    translator = Nat(house, "--workers", workers)
    if vlan:
        on_vlan(house.a, house.b, house.server)
    for host in (house.a, house.b):
        assert talk.ping(host, nat.SERVER) == 3
        assert talk.ping(host, nat.SERVER, size=4000) == 3  # fragments
        assert talk.ping(host, nat.INSIDE) == 3
        for _ in range(20):
            talker = lab.closing(Talker(host))
            assert talker.ask()[0] == nat.OUTSIDE
            assert talker.ask(6000)[0] == nat.OUTSIDE
        sender = nat.tcp_between(host, house.server, nat.SERVER, 8080, 8080)
        assert sender[0] == nat.OUTSIDE
    assert talk.ping(house.server, nat.OUTSIDE) == 3
    final = translator.stop()
    assert (sum(w["steered"] for w in final["workers"]) > 0) == (workers > 1)


@pytest.mark.parametrize("queues, why", [
    (1, "worker 0 has no queue of the outside port"),
    (2, "xdp:p1: driver 'veth' has no steering rules")])
def test_it_prints_why_frames_are_handed_over(lab, queues, why):
    """It asks the outside port to steer, which no device here can."""
    house = House(lab, queues)
    if queues > 1:
        for namespace, name in ((house.switch, "u"), (house.middle, "p0"),
                                (house.server, "h0"), (house.middle, "p1")):
            namespace.run("ethtool", "-L", name, "rx", queues, "tx", queues)
    translator = Nat(house, "--workers", 2)
    line = translator.err.wait(lambda line: line.startswith("steering: "), 15)
    assert line.startswith("steering: 2 workers; frames are handed over")
    assert why in line
    assert why in translator.stop()["not_steered"]


def test_with_the_command_line_alone(lab, house, echo):
    process = Process(lab, house.middle, [
        "env", f"RUNTIME_DIRECTORY={lab.tmp_path}", NAT, "--quiet",
        "--inside", f"p0={nat.INSIDE}/24",
        "--outside", f"xdp:p1={nat.OUTSIDE}/24,gw={nat.SERVER}"])
    talker = lab.closing(Talker(house.a))
    wait_until("it is there",
               lambda: talk.ping(house.a, nat.INSIDE, 1, more=["-W", 2]) == 1)
    assert talker.ask()[0] == nat.OUTSIDE
    process.process.terminate()
    assert process.wait() == 0
    assert "accounting invariants hold" in process.out.text()


@pytest.mark.parametrize("workers", [1, 2])
def test_inside_hosts_talk_by_hairpinning(lab, house, echo, workers):
    """Hairpinning between mappings that nobody configured."""
    translator = Nat(house, "--workers", workers, config=RANDOM_PORTS)
    ones, others = ([lab.closing(Talker(host)) for _ in range(5)]
                    for host in (house.a, house.b))
    ends = {talker: talker.ask() for talker in ones + others}
    for one in ones:
        for other in others:
            for sender, receiver in ((one, other), (other, one)):
                sender.socket.sendto(b"hello", ends[receiver])
                assert receiver.socket.recvfrom(100) == (b"hello",
                                                         ends[sender])
    final = translator.stop()
    assert sum(w["hairpinned"] for w in final["workers"]) == 50


@pytest.mark.short
def test_sessions_are_listed_filtered_and_cleared(lab, house, echo):
    translator = Nat(house, config=RANDOM_PORTS)
    talkers = [lab.closing(Talker(host)) for host in (house.a, house.b)]
    seen = [talker.ask() for talker in talkers]
    listed = translator.sessions("proto=udp")
    assert len(listed) == 2
    mine = translator.sessions("inside=10.0.0.2,proto=udp")
    assert [s["outside"] for s in mine] == [f"{seen[0][0]}:{seen[0][1]}"]
    assert mine[0]["remote"] == f"{nat.SERVER}:7777"
    assert (mine[0]["out"], mine[0]["in"]) == (1, 1)
    assert translator.sessions("remote=192.0.2.99") == []
    assert "10.0.0.4" in translator.ask("nat", "sessions")
    assert translator.ask("nat", "clear", "inside=10.0.0.2").strip() == "1 ended"
    assert [s["inside"][:9] for s in translator.sessions("proto=udp")] == [
        "10.0.0.4:"]
    assert talkers[1].ask() == seen[1]
    assert talkers[0].ask() != seen[0]  # in hold-down, and random
    stats = translator.stats()
    assert stats["state"]["mappings"] == 2
    assert translator.ask("nat", "clear", "all").strip() == "2 ended"
    assert "is not a condition" in translator.ask(
        "nat", "sessions", "port", check=False)
    translator.stop()


def test_a_command_is_carried_out_after_its_sender_has_gone(lab, house):
    translator = Nat(house)
    assert talk.ping(house.a, nat.SERVER) == 3
    for _ in range(200):  # a worker ends 64 at a time
        lab.closing(Talker(house.a)).socket.sendto(b"x", (nat.SERVER, 9))
    wait_until("they are there", lambda: len(translator.sessions()) > 64)
    translator.process.send_signal(signal.SIGSTOP)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(lab.tmp_path / "nat.sock"))
        client.sendall(b'{"verb":"nat clear","filter":"all"}\n')
    translator.process.send_signal(signal.SIGCONT)
    wait_until("they are gone", lambda: translator.sessions() == [])
    translator.stop()


def test_a_second_instance_needs_a_name(lab, house):
    translator = Nat(house)
    other = Process(lab, house.middle, [
        *environment(lab), NAT, "--config", translator.config])
    assert other.wait() == 1
    assert "an instance 'nat' is running" in other.err.text()
    assert translator.sessions() == []  # its socket is still there
    translator.stop()
    assert not list(lab.tmp_path.glob("*.sock"))


def test_neighbours_are_listed_and_forgotten(lab, house, echo):
    jsonschema = pytest.importorskip("jsonschema")
    text = ("inside:\n  neighbours: 10.0.0.9 02:00:00:00:00:09\n"
            "  port: p0\n  addresses: 10.0.0.1/24\n"
            "outside: {port: p1, addresses: 192.0.2.1/24, "
            "gateway: 192.0.2.254}\n")
    translator = Nat(house)
    translator.config.write_text(text)
    assert ask_ctl(lab, "apply", translator.config).returncode == 0
    talker = lab.closing(Talker(house.a))
    talker.ask()

    schema = json.loads((BUILD / "apps" /
                         "mr-control.schema.json").read_text())

    def shown():
        done = ask_ctl(lab, "nat", "neighbours", "--json")
        found = [json.loads(line) for line in done.stdout.splitlines()]
        for one in found:
            jsonschema.validate(one, schema)
        return {one["address"]: one for one in found}

    found = shown()
    assert set(found) == {"10.0.0.2", "10.0.0.9", "192.0.2.254"}
    house.switch.ip("link", "set", "u", "down")
    wait_until("the link's neighbours are doubted",
               lambda: shown()["10.0.0.2"]["state"] == "doubtful")
    house.switch.ip("link", "set", "u", "up")
    translator.says("link up")
    talker.ask()
    wait_until("it has answered",
               lambda: shown()["10.0.0.2"]["state"] == "reachable")
    assert found["10.0.0.2"]["mac"] == house.a.link("h0")["address"]
    assert [found[one]["side"] for one in sorted(found)] == [
        "inside", "inside", "outside"]
    assert found["10.0.0.9"]["state"] == "static"
    assert "reachable" in ask_ctl(lab, "nat", "neighbours").stdout
    assert ask_ctl(lab, "nat", "neighbours", "flush", "10.0.0.2").stdout == \
        "1 forgotten\n"
    assert set(shown()) == {"10.0.0.9", "192.0.2.254"}
    talker.ask()  # it is asked for again
    assert set(shown()) == set(found)
    assert ask_ctl(lab, "nat", "neighbours", "flush").stdout == \
        "2 forgotten\n"
    assert set(shown()) == {"10.0.0.9"}
    done = ask_ctl(lab, "nat", "neighbours", "flush", "x")
    assert "'x' is not an IPv4 address" in done.stderr
    translator.stop()


def test_the_file_says_how_the_data_plane_runs(lab, house, echo):
    place = lab.tmp_path / "metrics.sock"
    text = ("dataplane: {workers: 2, ring: 256, idle: interrupt}\n"
            f"metrics: 'unix:{place}'\n")
    for options, n in ([], 2), (["--workers", "1", "--idle", "poll"], 1):
        translator = Nat(house, *options, config=text)
        config = json.loads(ask_ctl(lab, "show", "config", "--json").stdout)
        assert (len(config["cores"]), config["log_level"]) == (n, "warning")
        assert config["idle"] == ("poll" if options else "interrupt")
        assert place.exists()
        lab.closing(Talker(house.a)).ask()
        # An option stands for its key in what is applied, too.
        house.write(text.replace("interrupt", "adaptive"))
        assert ask_ctl(lab, "apply", translator.config).returncode == 0
        config = json.loads(ask_ctl(lab, "show", "config", "--json").stdout)
        assert config["idle"] == ("poll" if options else "adaptive")
        house.write(text.replace("256", "512"))
        done = ask_ctl(lab, "apply", translator.config)
        assert done.returncode == 1 and "restart" in done.stderr
        translator.stop()


@pytest.mark.short
def test_a_reload_loses_no_session(lab, house, echo):
    translator = Nat(house, "--workers", 2, config=RANDOM_PORTS)
    talkers = [lab.closing(Talker(host))
               for host in (house.a, house.b) for _ in range(10)]
    seen = [talker.ask() for talker in talkers]
    assert "reload: done" in translator.reload(
        RANDOM_PORTS + "timeouts: {udp: 10m}\n"
        "forwards: [{outside: '192.0.2.1:8001', inside: '10.0.0.4:81'}]\n")
    assert [talker.ask() for talker in talkers] == seen
    assert nat.tcp_between(house.server, house.b, nat.OUTSIDE, 8001, 81)
    # What makes no sense leaves everything as it was, and says why.
    said = translator.reload("tiemouts: {}\n")
    assert "nat.yaml:3: unknown key 'tiemouts'; did you mean 'timeouts'" in said
    assert "nothing has changed" in said
    said = translator.reload(RANDOM_PORTS, port="p9")
    assert "outside: port: cannot change at run time" in said
    assert [talker.ask() for talker in talkers] == seen
    assert nat.tcp_between(house.server, house.b, nat.OUTSIDE, 8001, 81)
    final = translator.stop()
    assert final["operation"]["reloads"] == 1
    assert final["operation"]["reloads_refused"] == 2


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.short
def test_sessions_live_through_a_restart(lab, house, echo, workers):
    state = lab.tmp_path / "state"
    config = RANDOM_PORTS + f"state: {state}\n"
    translator = Nat(house, "--workers", workers, config=config)
    talkers = [lab.closing(Talker(host))
               for host in (house.a, house.b) for _ in range(10)]
    seen = ask_all(talkers, translator)
    translator.stop()
    translator = Nat(house, "--workers", workers, config=config)
    translator.says("20 sessions restored, 0 not")
    assert ask_all(talkers, translator) == seen
    translator.stop()


def test_a_killed_nat_loses_sessions_newer_than_its_snapshot(lab, house, echo):
    state = lab.tmp_path / "state"
    config = RANDOM_PORTS + f"state: {state}\nstate_interval: 1s\n"
    translator = Nat(house, "--workers", 2, config=config)
    talkers = [lab.closing(Talker(host)) for host in (house.a, house.b)]
    seen = [talker.ask() for talker in talkers]
    written_s = time.time()
    for _ in range(2):  # the first may have been begun before
        wait_until("a snapshot",
                   lambda: state.stat().st_mtime > written_s)
        written_s = state.stat().st_mtime
    translator.kill()
    translator = Nat(house, "--workers", 2, config=config)
    translator.says("2 sessions restored, 0 not")
    assert [talker.ask() for talker in talkers] == seen
    # What was cleared does not come back, however soon the end comes.
    config = RANDOM_PORTS + f"state: {state}\nstate_interval: 1h\n"
    translator.reload(config)
    assert translator.ask("nat", "clear", "inside=10.0.0.2").strip() == "1 ended"
    translator.kill()
    translator = Nat(house, "--workers", 2, config=config)
    translator.says("1 sessions restored, 0 not")
    assert talkers[1].ask() == seen[1]
    translator.kill()
    # An interval of an hour: the file is the one of the start, read once.
    translator = Nat(house, "--workers", 2, config=config)
    translator.says("1 sessions restored, 0 not")
    # A reload may name another file.
    other = lab.tmp_path / "other"
    translator.reload(RANDOM_PORTS + f"state: {other}\n")
    wait_until("it is written, and the old one gone",
               lambda: other.exists() and not state.exists())
    translator.reload(RANDOM_PORTS)
    wait_until("none is left", lambda: not other.exists())
    translator.stop()


def test_a_full_disk_at_the_start_loses_no_sessions(lab, house, echo):
    """The file stays until a snapshot can replace it, and is read again."""
    disk = lab.tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk],
                   check=True)
    lab.closing(ExitStack()).callback(
        subprocess.run, ["umount", "--lazy", disk], check=True)
    state = disk / "state"
    config = f"state: {state}\nstate_interval: 1s\n"
    translator = Nat(house, config=config)
    talker = lab.closing(Talker(house.a))
    seen = talker.ask()
    translator.stop()
    with pytest.raises(OSError), (disk / "fill").open("wb") as file:
        file.write(bytes(1 << 20))
    for _ in range(2):
        translator = Nat(house, config=config)
        translator.says("1 sessions restored, 0 not")
        translator.says("No space left on device")
        translator.says(f"{state} keeps the sessions of the last run")
        assert talker.ask() == seen
        translator.kill()
        assert [path.name for path in disk.iterdir()] in (
            ["state", "fill"], ["fill", "state"])
    translator = Nat(house, config=config)
    before = state.stat().st_ino
    (disk / "fill").unlink()
    wait_until("a snapshot replaces it", lambda: state.stat().st_ino != before)
    # What was cleared must not come back: then the file goes.
    with pytest.raises(OSError), (disk / "fill").open("wb") as file:
        file.write(bytes(1 << 20))
    translator.ask("nat", "clear", "proto=udp", check=False)
    translator.says(f"{state}: moved to {state}.old")
    translator.stop()


@pytest.mark.parametrize("damage, why", [
    (lambda data: b"", "is empty"), (lambda data: data[:-1], "is truncated"),
    (lambda data: data[:-1] + b"?", "is damaged")])
def test_a_damaged_state_is_a_warning(lab, house, damage, why):
    state = lab.tmp_path / "state"
    config = f"state: {state}\n"
    Nat(house, config=config).stop()
    state.write_bytes(damage(state.read_bytes()))
    check = [*environment(lab), NAT, "--check", "--config",
             lab.tmp_path / "nat.yaml"]
    done = house.middle.run(*check, check=False)
    assert done.returncode == 1 and why in done.stdout
    translator = Nat(house, config=config)
    translator.says(f"warning: state: {state} {why}; no sessions")
    assert house.middle.run(*check).returncode == 0
    assert state.with_suffix(".old").exists()
    translator.stop()


def test_the_log_has_a_line_per_mapping(lab, house, echo):
    path = lab.tmp_path / "log"
    config = RANDOM_PORTS + f"log: {{path: {path}, sessions: yes}}\n"
    translator = Nat(house, config=config)
    address, port = lab.closing(Talker(house.a)).ask()
    wait_until("it is in the log", lambda: path.read_text().count("\n") > 0)
    line = json.loads(path.read_text().splitlines()[0])
    schema = json.loads((Path(__file__).parents[2] / "docs" /
                         "nat-log.schema.json").read_text())
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(line, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"t": line["t"], "event": "lost"}, schema)
    assert line["event"] == "mapping_begin" and line["inside"] == "10.0.0.2"
    assert (line["outside"], line["outside_port"]) == (address, port)
    # Moved away, as logrotate does it.
    path.rename(lab.tmp_path / "log.1")
    translator.reload(config)
    lab.closing(Talker(house.b)).ask()
    wait_until("the new one has the next line",
               lambda: path.exists() and "10.0.0.4" in path.read_text())
    assert "10.0.0.4" not in (lab.tmp_path / "log.1").read_text()
    translator.stop()


def test_an_unread_log_does_not_block_the_nat(lab, house, echo):
    path = lab.tmp_path / "log"
    os.mkfifo(path)
    fifo = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    n_bytes = os.write(fifo, b"\n" * (1 << 20))  # as much as it takes
    config = RANDOM_PORTS + f"log: {{path: {path}, sessions: yes}}\n"
    translator = Nat(house, config=config)
    talkers = [lab.closing(Talker(house.a)) for _ in range(2)]
    seen = [talkers[0].ask()]
    translator.out.wait(lambda line: False, 2)  # it has tried to write
    seen.append(talkers[1].ask())
    assert len(translator.sessions("proto=udp")) == 2
    while n_bytes > 0:
        n_bytes -= len(os.read(fifo, n_bytes))
    translator.stop()
    lines = os.read(fifo, 1 << 16).decode().splitlines()
    assert [json.loads(line)["outside_port"] for line in lines
            if "mapping_begin" in line] == [port for _, port in seen]
    os.close(fifo)


def test_few_packets_are_lost_when_the_mtu_shrinks(house):
    """The host learns the new MTU from the first packets."""
    translator = Nat(house)
    for _ in range(5):
        house.middle.ip("link", "set", "p1", "mtu", 1500)
        assert talk.ping(house.a, nat.SERVER, size=1400) == 3
        house.middle.ip("link", "set", "p1", "mtu", 1300)
        done = house.a.run("ping", "-n", "-c", 20, "-i", 0.01, "-W", 1, "-M",
                           "do", "-s", 1400, nat.SERVER, check=False)
        assert "mtu=1300" in done.stdout.replace(" ", ""), done.stdout
        house.a.ip("route", "flush", "cache")
    final = translator.stop()
    assert invariants.drops(final["ports"][1], "tx").get("too_long", 0) < 10


@pytest.mark.parametrize("options", [(), ("--workers", 2), ("--offload", "on")],
                         ids=["one", "two", "offload"])
def test_the_mac_address_of_a_port_is_followed(house, echo, lab, options):
    """The new address is announced, and sessions continue."""
    translator = Nat(house, *options)
    talker = lab.closing(Talker(house.a))
    seen = talker.ask()
    for name, mac, host, dev, ours in (
            ("p1", "02:00:00:00:aa:02", house.server, "h0", nat.OUTSIDE),
            ("p0", "02:00:00:00:aa:01", house.a, "h0", nat.INSIDE)):
        house.middle.ip("link", "set", name, "address", mac)
        wait_until("it is announced", lambda h=host, d=dev, o=ours, m=mac:
                   m in h.ip("neigh", "show", o, "dev", d).stdout)
        translator.says(f"MAC address {mac}: announced")
        for _ in range(20):
            assert talker.ask() == seen
        assert talk.ping(house.a, nat.SERVER) == 3
        assert talk.ping(house.server, nat.OUTSIDE) == 3
    translator.stop()


def test_addresses_are_announced_when_a_link_comes_up(house):
    """It starts without a link, and what it announces then is lost."""
    house.server.sysctl("net.ipv4.conf.h0.arp_accept", 1)
    house.server.ip("link", "set", "h0", "down")
    translator = Nat(house)
    house.server.ip("link", "set", "h0", "up")
    translator.says("link up")
    wait_until("it is announced", lambda: "lladdr" in house.server.ip(
        "neigh", "show", nat.OUTSIDE, "dev", "h0").stdout)
    translator.stop()


@pytest.mark.parametrize("options", [(), ("--offload", "on")],
                         ids=["plain", "offload"])
def test_a_new_gateway_is_found_after_the_link_was_down(
        house, echo, lab, options):
    """At once, not when the old address becomes stale."""
    translator = Nat(house, *options)
    talker = lab.closing(Talker(house.a))
    seen = talker.ask()
    house.server.ip("link", "set", "h0", "down")
    translator.says("link down")
    house.server.ip("link", "set", "h0", "address", "02:00:00:00:bb:01")
    house.server.sysctl("net.ipv4.conf.h0.arp_notify", 0)
    house.server.ip("link", "set", "h0", "up")
    translator.says("link up")
    start_s = time.monotonic()
    wait_until("an answer", lambda: house.a.run(
        "ping", "-n", "-c", 1, "-W", 1, nat.SERVER,
        check=False).returncode == 0)
    assert time.monotonic() - start_s < 15  # 30 s without the link's event
    assert talker.ask() == seen
    translator.stop()
