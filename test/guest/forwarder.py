# SPDX-License-Identifier: BSD-3-Clause
"""mr-l2fwd in a guest."""
import json
import time

from host import limit
from lib import invariants

START_LIMIT_S = limit(120)
LAST_LINE = "grep '^{.*}$' /tmp/l2fwd.json | tail -n 1"


def start_l2fwd(guest, *arguments, program="mr-l2fwd"):
    """It, or another forwarder, in the guest: its pid. Its ports have their
    links: what comes before is lost."""
    status, text = guest.run(
        program + " --json --idle adaptive " + " ".join(arguments) +
        " >/tmp/l2fwd.json 2>/tmp/l2fwd.log & echo $!")
    assert status == 0, text
    deadline = time.monotonic() + START_LIMIT_S
    while not has_links(guest):
        assert time.monotonic() < deadline, guest.run("cat /tmp/l2fwd.log")
        time.sleep(0.2)
    return int(text)


def end_l2fwd(guest, pid, check=invariants.check_final):
    """Its final object, whose invariants hold."""
    guest.run(f"kill -INT {pid}; while kill -0 {pid} 2>/dev/null; "
              "do usleep 10000; done")
    final = json.loads(guest.run("tail -n 1 /tmp/l2fwd.json")[1])
    check(final)
    return final


def has_links(guest):
    """Whether it has printed something, and its links are up in that."""
    text = guest.run(LAST_LINE)[1]
    return text and all(port.get("link", {"up": True})["up"]
                        for port in json.loads(text)["ports"])


def last_snapshot(guest):
    """What it printed last, of once a second."""
    return json.loads(guest.run(LAST_LINE)[1])
