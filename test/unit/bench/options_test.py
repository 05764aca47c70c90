# SPDX-License-Identifier: BSD-3-Clause
"""What the front end of mr-bench reads from a command line: shared_options.py, rates.py and
device.py; and relay.py."""
import os
import subprocess
import sys

import pytest

from mr_bench import device, rates
from mr_bench.rates import Rate
from mr_bench.shared_options import read
from mr_support.options import Option, Wrong


@pytest.mark.parametrize("text,rate,printed", [
    ("max", Rate(), "max"),
    ("1000", Rate(1000, "pps"), "1kpps"),
    ("1.2M", Rate(1.2e6, "pps"), "1.2Mpps"),
    ("14.88Mpps", Rate(14.88e6, "pps"), "14.88Mpps"),
    ("10Gbit", Rate(10e9, "bit"), "10Gbit"),
    ("10Gbit-l1", Rate(10e9, "bit"), "10Gbit"),
    ("100Mbit-l2", Rate(100e6, "bit-l2"), "100Mbit-l2"),
    ("25%", Rate(25, "%"), "25%"),
    ("7pps", Rate(7, "pps"), "7pps"),
    (".5e3", Rate(500, "pps"), "500pps"),
])
def test_all_units_of_rates_are_read(text, rate, printed):
    assert (rates.read("rate", text), str(rate)) == (rate, printed)


@pytest.mark.parametrize("text,words", [
    *((text, "is not a rate such as 1.2M") for text in ("", "M", "-1", "0", "nan", "inf", "maxi", "2e6G")),
    *((text, "has no known unit") for text in ("1x", "10Gbyte", "1.2Mb", "5%%", "1kk")),
    ("100G", "for bits, write 100Gbit"), ("101%", "more than the link carries"),
    ("1k%", "more than the link carries"),
])
def test_invalid_rates_are_refused(text, words):
    with pytest.raises(Wrong, match=f"^--rate: .*{words}"):
        rates.read("rate", text)


def test_rates_of_a_wire_are_those_of_ethernet():
    """10 Gbit/s are 14.88 million frames of 64 bytes, 812743 of 1518."""
    assert Rate(10e9, "bit").pps(60, 0) == pytest.approx(14880952.38)
    assert Rate(10e9, "bit").pps(1514, 0) == pytest.approx(812743.82)
    assert Rate(10e9, "bit-l2").pps(60, 0) == 19531250
    assert Rate(25, "%").pps(60, 4e6) == 1e6
    assert Rate(25, "%").pps(60, 0) < 0
    assert Rate().pps(60, 4e6) == 0


@pytest.mark.parametrize("text,found", [
    ("loss=1000", {"loss_every": 1000}), ("dup=2,corrupt=3", {"dup_every": 2, "corrupt_every": 3}),
    ("reorder=3", {"reorder_every": 3, "reorder_by": 1}),
    ("reorder=9/8", {"reorder_every": 9, "reorder_by": 8}), ("delay=500ns", {"delay_ns": 500}),
    ("delay=2.5us", {"delay_ns": 2500}), ("delay=1s", {"delay_ns": 10**9}),
    ("rate=1M,queue=5", {"rate_pps": 1e6, "queue_frames": 5}),
])
def test_a_simulated_device_is_read(text, found):
    assert device.read(text) == found


@pytest.mark.parametrize("text,words", [
    ("loss", "has no value"), ("loss=0", "'loss=0' is not a number from 1 to 4294967295"),
    ("dup=-1", "is not a number"), ("lost=10", "words are loss"), ("delay=5", "not a time"),
    ("delay=2s", "not a time"), ("reorder=3/3", "above BY"), ("reorder=99/65", "from 1 to 64"),
    ("queue=3", "but no rate"), ("rate=1Gbit", "not in frames per second"), ("rate=x", "not a rate"),
    ("rate=1k,queue=65537", "from 1 to 65536"),
])
def test_invalid_simulated_devices_are_refused(text, words):
    with pytest.raises(Wrong, match=f"^--device.*{words}"):
        device.read(text)


def options(*words, ports="pairs", without=()):
    """Of a command with an option of its own."""
    return read("loop", list(words), "usage: mr-bench loop [", [Option("own", "X", "its own")], without, ports)


@pytest.mark.parametrize("ports,words,tx,rx", [
    ("sends", ["a", "b"], ["a", "b"], []), ("receives", ["a"], [], ["a"]),
    ("pairs", ["a", "b", "c", "d"], ["a", "c"], ["b", "d"]),
    ("pairs", ["--bidirectional", "a", "b"], ["a", "b"], ["b", "a"]),
    ("pairs or none", [], [], []),
])
def test_words_after_the_options_are_ports(ports, words, tx, rx):
    found = options(*words, ports=ports)
    assert (found.tx, found.rx) == (tx, rx)


@pytest.mark.parametrize("words,why", [
    ([], "loop: no port; name one"), (["a"], "'a' has no partner"), (["a"] * 10, "10 ports"),
    (["--size", "17", "a", "b"], "--size: 17 is out of range, 18 to 32772"),
    (["--pace", "fast", "a", "b"], "--pace: unknown word 'fast'"),
    (["--seed", str(2**64), "a", "b"], "out of range"),
    (["--duration", "0", "a", "b"], "--duration: '0' is not a number of seconds"),
    (["--own", os.fsdecode(b"\xff"), "a", "b"], "--own: not UTF-8"),
    (["null:", "pair:a", "pair:a", "pair:b", "null:", "pair:c"],
     "null: is named twice among the ports that send"),
    (["pair:a", "null:", "pair:b", "pair:a", "pair:c", "null:"],
     "null: is named twice among the ports that receive"),
    (["--virtual", "pair:a", "null:"], "--virtual: null: has no simulated clock; only pair: ports"),
    (["--virtual", "live:g0", "pair:a"], "--virtual: live:g0 has no simulated clock"),
    (["--device", "loss=3", "pair:a", "pair:a"], "--device needs two pair:"),
    (["--device", "loss=3", "pair:a", "null:"], "--device needs two pair:"),
])
def test_impossible_values_are_refused(words, why):
    with pytest.raises(Wrong, match=why):
        options(*words)


def test_a_command_has_only_its_options():
    assert options("--own", "1", "--own", "2", "a", "b").own == [("own", "1"), ("own", "2")]
    with pytest.raises(Wrong, match="option '--quiet' takes no value"):
        options("--quiet=1", "a", "b")
    with pytest.raises(Wrong, match="option '--co' is ambiguous; it may be: --count, --cores"):
        options("--co", "1", "a", "b")
    with pytest.raises(Wrong, match="unknown option '--count'; see mr-bench loop --help"):
        options("--count", "1", "a", "b", without=("count",))


def test_the_engine_gets_the_options():
    name = os.fsdecode(b"pair:\xff\xc3\xa4")
    found = options("-vv", "--burst", "8", "--seed", str(2**64 - 1), "--dst-mac",
                    "02:00:00:00:00:0A", "--device", "loss=2", "--stream", "tcp", "--stream",
                    f"pcap={name}", "pair:a", name)
    request = found.request()
    assert (request["tx"], request["rx"]) == (["pair:a"], ["pair:\xff\xc3\xa4"])
    assert [stream["capture"] for stream in request["streams"]] == [None, "pair:\xff\xc3\xa4"]
    assert (request["seed"], request["dst_mac"]) == (-1, 0x02000000000A)
    assert (request["verbose"], request["plane"]) == (2, [("burst", "8")])
    assert request["device"] == {"loss_every": 2}
    assert found.config({"burst": 8})["dst_mac"] == "02:00:00:00:00:0a"


def test_failures_outside_the_engine_are_reported():
    """Nobody else can: its exit status is all that the engine has of it."""
    done = subprocess.run([sys.executable, "-c", "if True:\n"
                           " import os\n from mr_bench import relay\n"
                           " relay._become = lambda _: os._exit(os.wait()[1] >> 8)\n"
                           " relay.Command._serve = lambda *_: 1 / 0\n"
                           " relay.COMMANDS['replay'].main([])\n"],
                          env={"PYTHONPATH": os.pathsep.join(sys.path)}, text=True,
                          capture_output=True, timeout=60, check=False)
    assert done.returncode == 1 and "division by zero" in done.stderr
