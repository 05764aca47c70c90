# SPDX-License-Identifier: BSD-3-Clause
"""Running programs, asked: mrctl, the lines of the protocol, and metrics."""
import contextlib
import importlib.util
import json
import os
import pty
import select
import socket
import subprocess
import time

import pytest
from host import limit
from lib import nat, talk
from lib.forwarder import Bridge, Forwarder, Refused
from lib.namespaces import wait_until
from lib.nat import Echo, House, Nat, Talker
from lib.process import BUILD, CTL, ask_ctl
from lib.wire import mac

SCHEMA = BUILD / "apps" / "mr-control.schema.json"
N_FRAMES = 500


def ask(lab, *words):
    """What mrctl says, in the folder of this test."""
    done = ask_ctl(lab, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(lab, *words):
    return [json.loads(line)
            for line in ask(lab, *words, "--json").splitlines()]


def get(path, accept="text/plain"):
    """The body of /metrics on a Unix socket."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(limit(10))
        client.connect(str(path))
        client.sendall(b"GET /metrics HTTP/1.0\r\nAccept: " +
                       accept.encode() + b"\r\n\r\n")
        data = b""
        while piece := client.recv(1 << 16):
            data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200") or head.startswith(b"HTTP/1.0 200")
    return body.decode()


def samples(text):
    """{name and labels: value}; no sample is there twice."""
    lines = [line.rpartition(" ") for line in text.splitlines()
             if not line.startswith("#")]
    found = {name: float(value) for name, _, value in lines}
    assert len(found) == len(lines)
    return found


def check_format(path):
    """Both formats, by those who read them."""
    text = get(path)
    opened = get(path, "application/openmetrics-text;version=1.0.0")
    assert opened.endswith("# EOF\n")
    parser = pytest.importorskip("prometheus_client.openmetrics.parser",
                                 reason="no python3-prometheus-client")
    families = list(parser.text_string_to_metric_families(opened))
    assert {sample.name for family in families for sample in family.samples} \
        == {name.partition("{")[0] for name in samples(text)}
    return text


@pytest.fixture
def bridge(lab, star):
    """A learning bridge with a control socket and metrics; its two hosts."""
    return Bridge(lab, star, "--mode", "learn", "--instance", "br",
                  "--metrics", f"unix:{lab.tmp_path}/metrics")


@pytest.mark.short
def test_totals_are_those_of_json(lab, bridge):
    bridge.exchange(N_FRAMES)
    bridge.next_snapshot()  # the link's own frames, if any, are over
    for _ in range(5):
        before = bridge.next_snapshot()
        metrics = samples(get(lab.tmp_path / "metrics"))
        shown, = objects(lab, "show", "stats")
        after = bridge.next_snapshot()
        if before["ports"] == after["ports"]:
            break  # nobody sent in between
    assert before["ports"] == after["ports"] == shown["ports"]
    n_checked = 0
    for port in before["ports"]:
        labels = f'port="{port["port"]}",queue="0"'
        rx, tx = port["queues"][0]["rx"], port["queues"][0]["tx"]
        for name, value in {
                "rx_frames": rx["delivered"], "rx_bytes": rx["bytes"],
                "rx_received_frames": rx["received"],
                "tx_frames": tx["accepted"], "tx_bytes": tx["bytes"],
                "tx_completed_frames": tx["completed"]}.items():
            assert metrics[f"millrace_{name}_total{{{labels}}}"] == value
            n_checked += value
        for way, drops in ("rx", rx["drops"]), ("tx", tx["drops"]):
            for reason, n in drops.items():
                assert metrics[f"millrace_{way}_drops_total{{{labels},"
                               f'reason="{reason}"}}'] == n
    assert n_checked > 4 * N_FRAMES
    for name, value in before["fdb"].items():
        suffix = "" if name == "entries" else "_total"
        assert metrics[f"millrace_l2fwd_fdb_{name}{suffix}"] == value
    assert metrics["millrace_pool_page_bytes"] == before["pool"]["page_bytes"]
    bridge.stop()


@pytest.mark.short
def test_each_line_matches_the_schema(lab, bridge):
    jsonschema = pytest.importorskip("jsonschema")
    check = jsonschema.Draft7Validator(json.loads(SCHEMA.read_text()))
    bridge.exchange(N_FRAMES)
    lines = []
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(limit(10))
        client.connect(str(lab.tmp_path / "br.sock"))
        reader = client.makefile("r")
        for request in (
                {"v": 1, "verb": "hello"}, {"verb": "stats"},
                {"verb": "config"}, {"verb": "set", "log_level": "info"},
                {"verb": "set", "log_level": "warning", "idle": "poll"}, {"verb": "l2 fdb"},
                {"verb": "l2 fdb", "x": 1}):
            client.sendall((json.dumps(request) + "\n").encode())
            if "x" not in request:
                lines.append(request)
            line = {}
            while not {"end", "error"} & set(line):
                line = json.loads(reader.readline())
                lines.append(line)
    for line in lines:
        check.validate(line)
    assert "error" in lines[-1]
    assert {line["mac"] for line in lines if "mac" in line} >= {
        mac(i).hex(":") for i in range(2)}
    bridge.stop()


def test_mrctl_shows_what_runs(lab, bridge):
    bridge.exchange(N_FRAMES)
    assert ask(lab, "list", "--names") == "br\n"
    known, = objects(lab, "list")
    assert (known["program"], known["pid"]) == ("mr-l2fwd", bridge.pid)
    for what in "stats", "ports", "queues", "workers", "pool", "config":
        assert ask(lab, "-n", "br", "show", what).strip()
        assert objects(lab, "show", what)
    assert "xdp:p0" in ask(lab, "show", "ports")
    assert "no drops" in ask(lab, "show", "drops") or \
        "workers" in ask(lab, "show", "drops")
    assert len(ask(lab, "l2", "fdb").splitlines()) >= 3
    look, = objects(lab, "watch", "--count", "1", "--interval", "0.2")
    assert [port["port"] for port in look["ports"]] == ["xdp:p0", "xdp:p1"]
    ask(lab, "set", "log_level", "debug")
    ask(lab, "set", "idle", "interrupt")
    config, = objects(lab, "show", "config")
    assert (config["log_level"], config["idle"]) == ("debug", "interrupt")
    bridge.exchange(N_FRAMES)  # from frame to frame it sleeps
    for words, text in ((["watch", "--count", "1.5"], "is not a whole number"),
                        (["watch", "--interval", "60"], "from 0.1 to 50")):
        done = ask_ctl(lab, *words)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert text in done.stderr
    for words, text in ((["-n", "x", "show"], "no instance of this name"),
                        (["nat", "sessions"], "unknown verb"),
                        (["set", "log_level", "x"], "is not one of: none, error, warning"),
                        (["set", "foo", "x"], "unknown setting 'foo'; valid: log_level, idle")):
        done = ask_ctl(lab, *words)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert text in done.stderr
    bridge.stop()
    assert not list(lab.tmp_path.glob("*.sock"))
    assert not (lab.tmp_path / "metrics").exists()


@pytest.mark.skipif(not importlib.util.find_spec("rich"),
                    reason="no python3-rich")
def test_watch_draws_on_a_terminal(lab, bridge):
    """With colours and graphs; s sorts, q ends it."""
    del bridge  # it runs
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(RUNTIME_DIRECTORY=str(lab.tmp_path), TERM="xterm",
                          COLUMNS="150", LINES="50")
        os.execv(CTL, ["mrctl", "--instance", "br", "watch", "--interval", "0.2"])
    seen, end_s = b"", time.monotonic() + limit(20)
    try:
        while b"ports by rx" not in seen:
            assert time.monotonic() < end_s, seen.decode()
            if select.select([terminal], [], [], 0.2)[0]:
                seen += os.read(terminal, 1 << 16)
            if b"ports by name" in seen:
                os.write(terminal, b"s")
        os.write(terminal, b"q")
        with contextlib.suppress(OSError):  # its end closes the terminal
            while os.read(terminal, 1 << 16):
                pass
    finally:
        os.close(terminal)
        _, status = os.waitpid(pid, 0)
    assert status == 0
    text = seen.decode(errors="replace")  # it may end within a character
    assert "xdp:p1" in text and "in and out" in text


def test_completion_offers_running_instances(lab, bridge):
    del bridge
    done = subprocess.run(
        ["bash", "-c", f"source {BUILD}/apps/mrctl; _mrctl mrctl b -n; "
         "echo ${COMPREPLY[@]}; _mrctl mrctl wa mrctl; echo ${COMPREPLY[@]}"],
        env={"PATH": f"{CTL.parent}:{os.environ['PATH']}",
             "RUNTIME_DIRECTORY": str(lab.tmp_path)},
        capture_output=True, text=True, check=True, timeout=limit(20))
    assert done.stdout == "br\nwatch\n"


PLANTED = r"""
mount -t tmpfs none /run && mkdir -m 1777 /run/millrace
setpriv --reuid=65534 --clear-groups /usr/bin/python3 -c '
import socket
socket.socket(socket.AF_UNIX).bind("/run/millrace/nat.sock")'
("$1" -n nat show stats; "$1" list; "$1" list --names) 2>&1
"""


def test_a_socket_that_another_user_planted_is_not_asked():
    """The group of /run/millrace can add sockets there."""
    environment = {key: value for key, value in os.environ.items()
                   if key != "RUNTIME_DIRECTORY"}
    done = subprocess.run(
        ["timeout", "--foreground", "--signal=KILL", str(limit(30)), "unshare",
         "-mpf", "--kill-child", "sh", "-c", PLANTED, "sh", CTL],
        capture_output=True, text=True, check=False, env=environment)
    refused = ("mrctl: /run/millrace/nat.sock: its program runs as user 65534; "
               "--control PATH asks it anyway")
    assert done.stdout.splitlines() == [
        refused, refused, "mrctl: nothing is running", refused], done


def test_an_instance_may_be_called_as_a_verb(lab, star):
    forwarder = Forwarder(
        lab, star.middle, *star.ports, options=["--instance", "show"],
        wrap=["env", f"RUNTIME_DIRECTORY={lab.tmp_path}"])
    for words in ["-n", "show", "show", "pool"], ["show", "pool"]:
        assert "n_pages" in ask(lab, *words)
    forwarder.stop()


def test_a_port_in_use_is_refused_with_the_remedy(lab, star):
    with talk.socket_in(star.middle, socket.SOCK_STREAM, "127.0.0.1",
                        9100) as used:
        used.listen()
        Refused(lab, star.middle, "--metrics", "tcp:127.0.0.1:9100",
                *star.ports, wrap=["env", f"RUNTIME_DIRECTORY={lab.tmp_path}"]
                ).check(1, "metrics: 127.0.0.1:9100", "choose another")
    assert not list(lab.tmp_path.glob("*.sock"))


def test_idle_and_garbage_do_not_disturb(lab, bridge):
    """500 connections to each socket that say nothing, or nonsense."""
    idle = []
    for name in "br.sock", "metrics":
        for i in range(500):
            client = lab.closing(socket.socket(socket.AF_UNIX))
            client.setblocking(False)
            try:
                client.connect(str(lab.tmp_path / name))
                client.send((b"", b"\0\xff garbage", b"GET /met")[i % 3])
            except OSError:
                pass  # the queue of those to be accepted is full
            idle.append(client)
    bridge.exchange(N_FRAMES)
    assert objects(lab, "show", "config")
    for client in idle:
        client.close()

    def is_served():
        try:
            return "millrace_build_info" in get(lab.tmp_path / "metrics")
        except OSError:
            return False  # those that were closed are still in the queue
    wait_until("metrics are served again", is_served)
    bridge.stop()


def test_a_request_of_any_length_is_answered(lab, bridge):
    for n_bytes, status in (1000, 200), (30_000, 200), (100_000, 431):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(limit(10))
            client.connect(str(lab.tmp_path / "metrics"))
            with contextlib.suppress(BrokenPipeError):
                client.sendall(b"GET /metrics HTTP/1.0\r\nX: " +
                               b"a" * n_bytes + b"\r\n\r\n")
            assert client.recv(1 << 16).split(b" ")[1] == b"%d" % status
    bridge.stop()


def test_a_file_may_say_where_metrics_are_served(lab, star):
    file, places = lab.tmp_path / "br.yaml", [lab.tmp_path / n for n in "ab"]
    file.write_text(f"ports: [p0, p1]\nmetrics: 'unix:{places[0]}'\n")
    for options, place in ([], 0), (["--metrics", f"unix:{places[1]}"], 1):
        bridge = Forwarder(lab, star.middle, options=[
            "--config", file, *options],
            wrap=["env", f"RUNTIME_DIRECTORY={lab.tmp_path}"])
        assert b"millrace" in get(places[place]).encode()
        assert not places[1 - place].exists()
        bridge.stop()


@pytest.mark.parametrize("request_text", [b"", b"GET /met"])
def test_connections_that_wait_do_not_keep_others_out(lab, bridge, request_text):
    """The oldest makes room; those that stay are ended after a while."""
    clients = []
    for _ in range(100):
        client = lab.closing(socket.socket(socket.AF_UNIX))
        client.settimeout(limit(20))
        client.connect(str(lab.tmp_path / "metrics"))
        with contextlib.suppress(OSError):
            client.send(request_text)
        clients.append(client)
        assert len(clients) % 20 or "millrace_build_info" in get(
            lab.tmp_path / "metrics")
    end_s = time.monotonic() + limit(20)
    while time.monotonic() < end_s:
        try:  # a byte now and then is not enough
            clients[-1].send(b"x")
        except OSError:
            break
        time.sleep(0.05)
    for client in clients:
        with contextlib.suppress(ConnectionResetError):
            while client.recv(4096):
                pass
    bridge.stop()


def test_metrics_of_both(lab, bridge):
    bridge.exchange(N_FRAMES)
    check_format(lab.tmp_path / "metrics")
    bridge.stop()
    house = House(lab)
    lab.closing(Echo(house.server))
    translator = Nat(house, "--metrics", f"unix:{lab.tmp_path}/nat-metrics")
    assert lab.closing(Talker(house.a)).ask()[0] == nat.OUTSIDE
    # A worker publishes what it has every 100 ms.
    wait_until("its mapping is counted",
               lambda: translator.stats()["state"]["mappings"] == 1)
    more = check_format(lab.tmp_path / "nat-metrics")
    assert samples(more)["millrace_nat_state_mappings"] == 1
    assert 0 < samples(more)["millrace_nat_state_ports_used"] <= \
        samples(more)["millrace_nat_state_ports"]
    assert [one["inside"] for one in objects(lab, "-n", "nat", "nat", "sessions")] \
        == [one["inside"] for one in translator.sessions()]
    translator.stop()
