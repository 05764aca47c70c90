# SPDX-License-Identifier: BSD-3-Clause
"""A start that fails says why, and leaves nothing behind."""
import json
import os
import shutil
import subprocess

import pytest
from host import limit
from lib.broker import BROKERD, rule
from lib.namespaces import wait_until
from lib.process import L2FWD, NAT, ask_ctl, environment

PORTS = {L2FWD: ["pair:a", "pair:b"],
         NAT: ["--inside", "pair:a=10.0.0.1/24", "--outside",
               "pair:b=192.0.2.1/24,gw=192.0.2.254"]}


def failed(*command, **options):
    """The last line of a program that does not start."""
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          timeout=limit(20), **options)
    assert done.returncode == 1, done
    return done.stderr.splitlines()[-1]


@pytest.fixture
def broker(lab):
    """The command of a broker, whose socket is in the test's folder."""
    (lab.tmp_path / "rules.yaml").write_text(rule())
    return [BROKERD, "--rules", lab.tmp_path / "rules.yaml", "--socket",
            lab.tmp_path / "sock"]


def left(lab):
    return sorted(path.name for path in lab.tmp_path.iterdir()
                  if path.name != "rules.yaml")


@pytest.mark.parametrize("call", ["chmod", "listen", "epoll_ctl"])
def test_a_socket_is_removed_if_a_call_fails(lab, broker, call):
    if not shutil.which("strace"):
        pytest.skip("strace is missing")
    path = lab.tmp_path / "sock"
    commands = [broker] if call != "epoll_ctl" else []
    commands += [[L2FWD, "--control", path, *PORTS[L2FWD]],
                 [NAT, "--control", path, *PORTS[NAT]],
                 [L2FWD, "--metrics", f"unix:{path}", "--control",
                  lab.tmp_path / "control", *PORTS[L2FWD]]]
    for command in commands:
        said = failed("strace", "-f", "-o", "/dev/null", "-e", f"trace={call}",
                      "-e", f"inject={call}:error=EADDRINUSE", *command)
        assert "Address already in use" in said
        assert left(lab) == []


def test_a_broker_without_a_capability_leaves_no_socket(lab, broker):
    assert "CAP_BPF is missing" in failed(
        "setpriv", "--bounding-set=-bpf", "--inh-caps=-bpf", *broker)
    assert left(lab) == []


@pytest.mark.parametrize("program", PORTS)
@pytest.mark.short
def test_too_few_file_descriptors_are_reported_with_the_remedy(lab, program):
    n, status = 4, 1
    while status != 0:
        n += 1
        done = subprocess.run(
            [*environment(lab), "bash", "-c", f'ulimit -n {n}; exec "$@"', "sh",
             program, "--quiet", "--duration", "0.01", "--control",
             lab.tmp_path / "sock", *PORTS[program]],
            capture_output=True, text=True, check=False, timeout=limit(20))
        status = done.returncode
        assert status in (0, 1), done
        assert status == 0 or "ulimit -n" in done.stderr.splitlines()[-1], done
        assert left(lab) == []
    assert n > 8


@pytest.mark.parametrize("program", PORTS)
def test_unread_reports_are_counted(lab, program):
    """mrctl shows the number."""
    read_fd, write_fd = os.pipe()
    os.set_blocking(write_fd, False)
    os.write(write_fd, b"x" * (1 << 20))  # as much as it takes
    os.set_blocking(write_fd, True)
    process = lab.popen([*environment(lab), program, "--json", "--instance",
                         "mute", *PORTS[program]], stdout=write_fd,
                        stderr=subprocess.DEVNULL)
    os.close(write_fd)

    def skipped():
        done = ask_ctl(lab, "-n", "mute", "show", "stats", "--json")
        return done.returncode == 0 and json.loads(
            done.stdout.splitlines()[0])["skipped"]
    wait_until("they are counted", lambda: skipped() > 0, limit_s=20)
    os.close(read_fd)
    process.terminate()
    process.wait(limit(30))


def test_an_ignored_sighup_is_noted_at_start(lab, broker):
    """As nohup leaves it."""
    config = lab.tmp_path / "nat.yaml"
    config.write_text(
        "inside: {port: 'pair:a', addresses: [10.0.0.1/24]}\n"
        "outside: {port: 'pair:b', addresses: [192.0.2.1/24]}\n", "ascii")
    for command in [*environment(lab), NAT, "--quiet", "--config", config], broker:
        process = lab.popen(["sh", "-c", 'trap "" HUP; exec "$@"', "sh",
                             *command], stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)
        assert any("SIGHUP was ignored at the start" in line
                   for line in process.stderr)
        process.terminate()
        assert process.wait(limit(20)) == 0
