# SPDX-License-Identifier: BSD-3-Clause
"""A container that reaches the host only through a switch's socket, as in
docs/containers.md: its own namespaces, no interface, no capability."""
import os
import re
import shutil
import tempfile
from pathlib import Path

import pytest
from lib.broker import NOBODY
from lib.forwarder import Forwarder
from lib.namespaces import wait_until
from lib.process import L2FWD, Process
from lib.wire import TEST_TYPE, Wire, frame, mac

PAGE = Path(__file__).parents[2] / "docs/containers.md"
# What the pod of docs/containers.md has: a folder of the host, at its place.
CONTAINER = """
set -e
mount -t tmpfs none /run
mkdir /run/port
mount --bind -o ro {folder} /run/port
exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs "$@"
"""


def pod():
    """The page's sample with a virtio-user: port."""
    return next(block for block in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(),
                                              re.S) if "virtio-user" in block)


@pytest.fixture
def folder(lab):
    """The socket's folder; its files belong to the pod's group."""
    made = Path(tempfile.mkdtemp(prefix="mrt-pod-"))
    lab.closing(type("Folder", (), {"close": lambda _: shutil.rmtree(made)})())
    os.chown(made, 0, NOBODY)
    made.chmod(0o2750)
    return made


def in_container(lab, namespace, folder):
    """A command in the container."""
    if Process(lab, namespace, ["unshare", "--user", "true"]).wait() != 0:
        pytest.skip("no user namespaces here")
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}",
            "--clear-groups", "--", "unshare", "--user", "--map-root-user",
            "--net", "--mount", "--ipc", "sh", "-c",
            CONTAINER.format(folder=folder), "sh"]


def open_switch(lab, namespace, folder):
    """The host's switch; its group may use the socket, too. The container's
    memory may be of huge pages."""
    return Forwarder(lab, namespace, f"vhost:{folder}/pod.sock,unsealed",
                     "xdp:p0", wrap=["sh", "-c", 'umask 007; exec "$@"', "sh"])


def echo(wire, n=100):
    """Frames go to the container and back."""
    sent = [frame(100 + i, i, dst=mac(2), src=mac(1)) for i in range(n)]
    wire.send_all(sent)
    assert wire.receive(n) == [data[6:12] + data[:6] + data[12:]
                               for data in sent]


@pytest.mark.short
def test_a_pod_needs_only_the_socket(lab, folder):
    """Its port recovers when the switch returns."""
    host, other = lab.namespace("f"), lab.namespace("h")
    lab.veth(host, "p0", other, "h0")
    switch = open_switch(lab, host, folder)
    program = Path(shutil.copy(L2FWD, folder))
    command = re.search(r"command: \[mr-l2fwd, (.*)\]", pod()).group(1)
    running = Forwarder(
        lab, host, *[word.strip(' "') for word in command.split(", ")],
        wrap=in_container(lab, host, folder),
        program=f"/run/port/{program.name}")
    status = Path(f"/proc/{running.pid}/status").read_text()
    assert re.search(r"CapEff:\s+0+$", status, re.M), status
    assert re.search(rf"Uid:\s+{NOBODY}\s", status), status
    wire = lab.closing(Wire(other, "h0", TEST_TYPE))
    for _ in range(2):
        wait_until("the link is up", lambda: running.next_snapshot()[
            "ports"][0]["link"]["up"])
        echo(wire)
        switch.stop(pending=True)
        switch = open_switch(lab, host, folder)
