# SPDX-License-Identifier: BSD-3-Clause
"""More than one gateway: config/scale-out, docs/scale-out.md.

With -s, the figures of docs/scale-out.md are printed.
"""
import signal

import pytest
from lib import servers
from lib.site import GOAL_S, N_HOSTS, Site, Talk, connect_all, host_address, \
    hosts_of, seconds_until_left

IDLE_S = 1  # until the buckets of hosts that pause may move


@pytest.fixture
def site(lab):
    """Two gateways in use."""
    servers.need("bird", "bird2")
    made = Site(lab)
    for gateway in made.gateways:
        gateway.start()
    made.start_routers(IDLE_S)
    made.wait_for({1, 2})
    return made


def shares_of(seen):
    return [len(hosts_of(seen, n)) for n in sorted(set(seen.values()))]


def fail(gateway, how):
    if how == "cut off":
        gateway.cut_off()
    elif how == "link down":
        gateway.namespace.ip("link", "set", "eth0", "down")
    else:
        gateway.nat.process.send_signal(signal.Signals[how])


def check_left(site, how, hosts):
    """New connections of the hosts of gateway 1 use gateway 2."""
    fail(site.gateways[0], how)
    left_s, pause_s, gateways = seconds_until_left(site, hosts)
    print(f"\n{how}: left after {left_s:.2f} s (goal: {GOAL_S} s), of which "
          f"this test was paused up to {pause_s:.2f} s")
    assert gateways == {2}


@pytest.mark.parametrize("how", ["SIGKILL", "SIGSTOP", "cut off", "link down"])
@pytest.mark.short
def test_a_gateway_that_fails_is_left(site, how):
    before = connect_all(site)
    shares = shares_of(before)
    print(f"\nconnections of each gateway: {shares}")
    assert len(shares) == 2 and max(shares) <= 1.1 * N_HOSTS / 2
    assert Talk(site).ask() == before  # each host keeps its gateway
    for gateway in site.gateways:
        sessions = gateway.ask("nat", "sessions")
        assert {one["inside"].partition(":")[0] for one in sessions} == {
            host_address(i) for i in hosts_of(before, gateway.n)}
        assert all(one["in"] > 0 for one in sessions)
    kept = Talk(site, hosts_of(before, 2), is_kept=True)
    kept.ask()
    conversations = kept.seen
    check_left(site, how, sorted(hosts_of(before, 1))[:20])
    assert set(Talk(site).ask().values()) == {2}
    kept.ask()
    assert kept.seen == conversations
    if how == "SIGKILL":  # and it returns
        site.gateways[0].nat.wait()
        site.gateways[0].start_nat()
        site.wait_for({1, 2})
        assert len(shares_of(Talk(site).ask())) == 2
