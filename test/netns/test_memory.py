# SPDX-License-Identifier: BSD-3-Clause
"""Where frames lie in memory, and what becomes of them on the way out."""
import asyncio
import importlib
import re

import pytest
from lib import invariants
from lib.namespaces import Star
from lib.probe import Probe, opened
from lib.wire import TEST_TYPE, Wire, frame
from scapy.all import IP, UDP, Ether

CHUNK = 4096
PAGE = 16384  # four of them


def pass_from_probe(lab, star, probe, n, n_bytes, *where):
    """The probe sends frames of one entry; host 0 must get them intact."""
    sink = lab.closing(Wire(star.hosts[0], "h0", TEST_TYPE))
    sent = probe.do("send", 0, 0, n, n_bytes, *where)
    probe.do("flush", 0, 2000)
    got = sink.receive(n, 3)
    assert got == [frame(n_bytes, sent["first"] + i) for i in range(n)]
    sink.close()


def no_tx_drop(probe):
    """Nothing was lost on the way out of port 0."""
    assert not any(invariants.drops(probe.stats(0), "tx").values())


def with_large_pages(lab, star, options):
    """A port, and the number of another pool whose pages it has registered."""
    probe = Probe(lab, star.middle)
    probe.do("region")
    probe.do("pool", 4096)
    large = probe.do("pool", 1024, PAGE)["pool"]
    probe.do("open", f"p0,{options},ring=256", 0)
    return probe, large


def test_an_entry_across_a_chunk_edge_is_split(lab, star):
    probe, large = with_large_pages(lab, star, "csum=off,sg=on")
    # (offset in the page, edges that 1400 bytes from there cross)
    for offset, n_edges in ((CHUNK - 700, 1), (CHUNK - 1, 1), (CHUNK, 0),
                            (2 * CHUNK - 1399, 1), (2 * CHUNK - 1400, 0)):
        before = probe.tx_events(0)["edge_split"]
        pass_from_probe(lab, star, probe, 40, 1400, offset, large)
        assert probe.tx_events(0)["edge_split"] == before + 40 * n_edges
    assert probe.tx_events(0)["edge_copied"] == 0
    no_tx_drop(probe)


@pytest.mark.parametrize("options", ["csum=off,sg=off", "csum=off"])
def test_an_entry_across_a_chunk_edge_is_copied_without_sg(lab, star, options):
    probe, large = with_large_pages(lab, star, options)
    assert not probe.do("info", 0)["sg"]
    pass_from_probe(lab, star, probe, 40, 1400, CHUNK - 700, large)
    assert probe.tx_events(0)["edge_copied"] == 40
    assert probe.tx_events(0)["edge_split"] == 0
    no_tx_drop(probe)


@pytest.mark.parametrize("page_bytes", [8192, 32768])
def test_a_pool_of_larger_pages_is_refused_by_their_size(lab, star, page_bytes):
    probe = Probe(lab, star.middle)
    pool = probe.do("pool", 1024, page_bytes)["pool"]
    reason = probe.refused("open", "p0", pool)
    assert "xdp:p0" in reason and "page_bytes" in reason
    assert str(page_bytes) in reason and "2048 or 4096" in reason
    assert not star.has_program("p0")


@pytest.mark.parametrize("options", ["csum=off", "csum=auto"])
def test_a_frame_of_a_later_pool_is_copied_and_counted(lab, star, options):
    probe = opened(lab, star.middle, f"p0,{options},ring=256", pool=(4096,))
    pass_from_probe(lab, star, probe, 30, 1400)
    assert probe.tx_events(0)["foreign_copied"] == 0
    later = probe.do("pool", 1024)["pool"]
    pass_from_probe(lab, star, probe, 30, 1400, 256, later)
    assert probe.tx_events(0)["foreign_copied"] == 30
    no_tx_drop(probe)
    # The pages that were copied from are at home again.
    assert probe.do("pool-stats", later)["in_flight"] == 0
    # A port that is opened now registers them.
    probe.do("open", "p1,csum=off,ring=256")
    probe.do("close", 0)
    assert probe.do("segments")["segments"][-1]["pins"] == 1


def has_gap_before(probe, segment):
    """Whether nothing lies right before a segment, by its number."""
    segments = probe.do("segments")["segments"]
    end = 0 if segment == 0 else (segments[segment - 1]["addr"] +
                                  segments[segment - 1]["bytes"])
    return segments[segment]["addr"] > end


def refuse_behind_gap(star, probe, pool):
    """A port on that pool is refused, and takes nothing."""
    reason = probe.refused("open", "p1,mtu=1400,ring=256", pool)
    assert "xdp:p1" in reason and "behind a gap" in reason
    assert not star.has_program("p1")
    assert star.middle.link("p1")["mtu"] == 1500
    stats = probe.do("pool-stats", pool)
    assert stats["in_flight"] == 0 and stats["free"] == stats["population"]


def test_a_port_on_a_pool_behind_a_gap_is_refused(lab, star):
    """A small pool; the next begins where a huge page could."""
    probe = Probe(lab, star.middle)
    probe.do("region")  # else it would go with its first pool
    first = probe.do("pool", 1, 2048)["pool"]
    behind = probe.do("pool", 4096)["pool"]
    assert has_gap_before(probe, 1)
    refuse_behind_gap(star, probe, behind)
    # Nor without any pool before it; the first of a region is none such.
    probe.do("destroy-pool", first)
    refuse_behind_gap(star, probe, behind)
    probe.do("destroy-pool", behind)
    again = probe.do("pool", 4096)["pool"]
    assert not has_gap_before(probe, 0)
    probe.do("open", "p0,csum=off,ring=256", again)
    pass_from_probe(lab, star, probe, 10, 1000)
    probe.do("close", 0)
    probe.do("destroy-pool", again)
    probe.do("destroy-region")


def test_frames_from_behind_a_gap_are_copied_and_leave(lab, star):
    probe = opened(lab, star.middle, pool=(4096,))
    between = probe.do("pool", 4096)["pool"]
    behind = probe.do("pool", 2048)["pool"]
    probe.do("destroy-pool", between)
    assert has_gap_before(probe, 1)
    refuse_behind_gap(star, probe, behind)
    probe.do("open", "p0,csum=off,ring=256")
    pins = [s["pins"] for s in probe.do("segments")["segments"]]
    assert pins == [1, 0]
    pass_from_probe(lab, star, probe, 30, 1400)
    assert probe.tx_events(0)["foreign_copied"] == 0
    pass_from_probe(lab, star, probe, 30, 1400, 256, behind)
    assert probe.tx_events(0)["foreign_copied"] == 30
    no_tx_drop(probe)
    # Its pages are at home again, and the device never had them.
    probe.do("destroy-pool", behind)


def pass_through(lab, star, probe, sizes):
    """From host 0 to host 1 through both ports; each frame intact."""
    source = lab.closing(Wire(star.hosts[0], "h0"))
    sink = lab.closing(Wire(star.hosts[1], "h0", TEST_TYPE))
    sent = [frame(n_bytes, i) for i, n_bytes in enumerate(sizes)]
    probe.begin("forward", 0, 1)
    got = []
    for i in range(0, len(sent), 32):
        source.send_all(sent[i:i + 32])
        got += sink.receive(len(sent[i:i + 32]), 3)
    probe.end_forward(1)
    assert got == sent
    source.close()
    sink.close()


def open_both(probe):
    """The two ports of the star; segments that they register are pinned."""
    for port in ("p0", "p1"):
        probe.do("open", f"{port},csum=off,ring=256")


def test_a_pool_does_not_shrink_under_a_bound_port(lab, star):
    probe = opened(lab, star.middle, pool=(4096, 4096, 0, 16384))
    probe.do("grow", 0, 4096)
    open_both(probe)
    probe.do("grow", 0, 4096)  # this one is registered by nobody
    before = probe.do("segments")["segments"]
    reason = probe.refused("shrink", 0, 0)
    assert "xdp:p" in reason and "registered" in reason
    after = probe.do("segments")["segments"]
    assert after == before[:-1]
    # The kernel would have delivered zeros.
    pass_through(lab, star, probe, range(60, 1500, 7))
    probe.do("close", 0)
    assert "xdp:p1" in probe.refused("shrink", 0, 0)
    probe.do("close", 1)
    assert probe.do("shrink", 0, 0)["n"] == 4096


def test_a_pool_grows_under_a_bound_port(lab, star):
    probe = Probe(lab, star.middle)
    n_pages = 4096
    probe.do("pool", n_pages, 4096, 0, 3 * n_pages)
    open_both(probe)
    pass_through(lab, star, probe, range(60, 1500, 35))
    probe.do("grow", 0, n_pages)
    # Hold what the device can reach, all of it: then only new pages are left.
    source = lab.closing(Wire(star.hosts[0], "h0"))
    while True:
        source.send_all(frame(60, i) for i in range(64))
        if probe.do("hold", 0, 64, 2000)["n"] < 64:
            break
    events = probe.stats(0)["queues"][0]["rx"]["events"]
    assert events["unregistered"] > 0 and events["pool_empty"] > 0
    assert probe.do("pool-stats", 0)["population"] == 2 * n_pages
    source.close()
    probe.do("release")
    probe.do("hold", 0, 1000, 200)  # what was in the ring still
    probe.do("release")
    # Caches have pages of both segments now; what leaves is intact.
    pass_through(lab, star, probe, range(60, 1500, 5))
    pass_from_probe(lab, star, probe, 200, 1400)
    no_tx_drop(probe)


@pytest.mark.short
def test_a_forwarded_frame_keeps_its_place(lab, star):
    """Forwarding copies nothing: no frame is copied or split on the way."""
    probe = opened(lab, star.middle, *(f"{port},csum=off,ring=256"
                                       for port in star.ports))
    source = lab.closing(Wire(star.hosts[0], "h0"))
    sink = lab.closing(Wire(star.hosts[1], "h0", TEST_TYPE))
    probe.begin("forward", 0, 1)
    sent = [frame(60 + i * 14, i) for i in range(100)]
    source.send_all(sent)
    assert sink.receive(100) == sent
    assert probe.end_forward(1) == 100
    events = probe.tx_events(1)
    assert not any(events[name] for name in (
        "foreign_copied", "edge_copied", "edge_split"))


def test_a_copy_without_a_page_is_a_named_drop(lab, star):
    probe = Probe(lab, star.middle)
    # What a port of ring=64 and a cache need, and no more.
    n_pages = 3 * 64 + 256 + 128
    probe.do("pool", n_pages)
    probe.do("open", "p0,csum=off,ring=64")
    later = probe.do("pool", 1024)["pool"]
    source = lab.closing(Wire(star.hosts[0], "h0"))
    # Keep every page of the first pool.
    n_held = 0
    while True:
        source.send_all(frame(60, i) for i in range(32))
        n = probe.do("hold", 0, 32, 2000)["n"]
        n_held += n
        if n < 32:
            break
    assert n_held == n_pages - 64  # the rest is the device's
    probe.do("send", 0, 0, 5, 1000, 256, later)
    drops = invariants.drops(probe.stats(0), "tx")
    assert drops["no_buffer"] == 5
    probe.do("release")
    pass_from_probe(lab, star, probe, 5, 1000, 256, later)
    assert invariants.drops(probe.stats(0), "tx") == drops
    assert probe.do("pool-stats", later)["in_flight"] == 0


def test_closing_waits_for_frames_the_kernel_is_sending(lab, star):
    """Behind the port is one that sends 2000 bytes a second."""
    host = star.hosts[0]
    host.ip("link", "add", "slow0", "type", "veth", "peer", "name", "slow1")
    for name in ("slow0", "slow1"):
        host.ip("link", "set", name, "up")
    host.run("tc", "qdisc", "add", "dev", "slow0", "root", "tbf", "rate",
             "16kbit", "burst", "1600", "latency", "10s")
    host.run("tc", "qdisc", "add", "dev", "h0", "ingress")
    if host.run("tc", "filter", "add", "dev", "h0", "parent", "ffff:",
                "protocol", "all", "u32", "match", "u8", "0", "0", "action",
                "mirred", "egress", "redirect", "dev", "slow0",
                check=False).returncode != 0:
        pytest.skip("no u32 classifier, or no mirred action")
    probe = opened(lab, star.middle, "p0")
    probe.do("send", 0, 0, 2, 1400)
    assert probe.stats(0)["queues"][0]["tx"]["pending"] == 1
    assert probe.do("close", 0)["ms"] > 200
    assert "has not sent" not in probe.err.text()


def forward_both_ways(lab, star, ports):
    """Frames of many flows, so that they come in by all queues, in Python."""
    hosts = [lab.closing(Wire(host, "h0")) for host in star.hosts]
    frames = [bytes(Ether(dst="02:00:00:00:00:02") / IP(dst="192.0.2.1") /
                    UDP(sport=i, dport=9) / bytes(64)) for i in range(200)]

    async def forward(near, far):
        tx = far.tx()
        async for burst in near:
            while burst:
                tx.send(burst)

    async def bridge():
        both = asyncio.gather(forward(*ports), forward(*ports[::-1]))
        for near, far in hosts, hosts[::-1]:
            for i in range(0, len(frames), 40):
                await asyncio.to_thread(near.send_all, frames[i:i + 40])
            got = await asyncio.to_thread(far.receive, len(frames))
            assert sorted(got) == sorted(frames)
        both.cancel()

    asyncio.run(bridge())


def no_page_was_strange(port):
    """Each frame came and left in memory that the port has registered."""
    stats = port.stats()
    used = [queue["rx"]["received"] > 0 for queue in stats["queues"]]
    assert len(used) == 4 and sum(used) > 1
    for queue in stats["queues"]:
        assert queue["rx"]["events"]["unregistered"] == 0
        assert queue["rx"]["events"]["foreign_copied"] == 0
        assert queue["tx"]["events"]["foreign_copied"] == 0


@pytest.mark.parametrize("is_sized", [True, False])
def test_two_ports_of_four_queues_share_a_pool(lab, python_path, is_sized):
    """One of their size, or one of the default size that grows."""
    if not python_path:
        pytest.skip("the package for Python is not built")
    millrace = importlib.import_module("millrace")
    star = Star(lab, queues=4)
    specs = ["xdp:p0,csum=off", "xdp:p1,csum=off"]
    with star.middle:
        size = millrace.Pool.size_for(specs)
    with millrace.Pool(size if is_sized else 0) as pool:
        with star.middle:
            ports = [millrace.Port(pool, spec) for spec in specs]
        assert pool.stats()["n_pages"] >= size or not is_sized
        forward_both_ways(lab, star, ports)
        for port in ports:
            no_page_was_strange(port)
            with star.middle:
                port.close()


def test_two_default_pools_of_a_region_open_ports(lab, star):
    """The first pool does not keep the second one out of contiguous memory."""
    probe = Probe(lab, star.middle)
    probe.do("region")
    for pool, port in enumerate(("p0", "p1")):
        assert probe.do("pool", 0)["pool"] == pool
    for pool, port in enumerate(("p0", "p1")):
        probe.do("open", f"{port},csum=off,ring=256", pool)
    pass_through(lab, star, probe, range(60, 1500, 35))


def test_growth_says_which_frames_will_be_copied(lab):
    star = Star(lab, queues=4)
    probe = opened(lab, star.middle, "p0,csum=off", "p1,csum=off", pool=(0,))
    said = [line for line in probe.err.text().splitlines() if "has grown" in line]
    assert len(said) == 2 and "copied" not in said[0]
    assert "copied when they leave by xdp:p0, which" in said[1]


def test_an_error_states_how_many_pages_are_enough(lab):
    star = Star(lab, queues=4)
    probe = opened(lab, star.middle, "p0,csum=off", pool=(30000,))
    why = probe.refused("open", "p1,csum=off")
    enough = int(re.search("at least ([0-9]+) pages and has 30000", why)[1])
    probe.close()
    opened(lab, star.middle, "p0,csum=off", "p1,csum=off", pool=(enough,))
