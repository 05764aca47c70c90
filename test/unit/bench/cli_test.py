# SPDX-License-Identifier: BSD-3-Clause
"""mr-bench as a user meets it: exit codes, one-line errors, forms of output.

No privileges, no huge pages.
"""
import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import time

import pytest

import signals
from bench_program import BENCH, LIMIT_S, complaints
from host import popen

PAIR, LOOP, VIRTUAL = "pair:a pair:b", "pair:a pair:a", "--virtual --trial 0.05"
# What cannot be is refused with one line that names cause and cure.
ERRORS = [
    (2, "no command; valid: tx rx", ""),
    (2, "unknown command 'men'; valid: tx rx", "men"),
    (2, "tx: no port; name one", "tx"),
    (2, "'pair:b' has no partner", "loop pair:b"),
    (2, "has no partner", f"throughput {VIRTUAL} pair:a"),
    (1, "its other end is not open", "tx pair:b"),
    (2, "--rate: '5x' has no known unit", "tx --rate 5x null:"),
    (2, "a rate in % needs a link whose speed is known", "tx -q --rate 5% null:"),
    (2, "--virtual: null: has no simulated clock", "tx --virtual null:"),
    (2, "'5:4' is not a MAC address", "tx --dst-mac 5:4 null:"),
    (2, "--pace: full speed has none", "tx --pace poisson null:"),
    (2, "--pace-frames belongs to --pace bursts",
     "tx --rate 1k --pace-frames 3 null:"),
    (2, "see mr-bench tx --help", "tx --nope"),
    (1, "none of 100 frames came back: 100 frames left pair:a and none "
     "reached pair:b", f"throughput {VIRTUAL} --device loss=1 {PAIR}"),
    (2, "--sizes: 64 bytes: headers and the stamp need 84; rfc2544 takes "
     "these instead",
     f"throughput {VIRTUAL} --stream ip6 --sizes 1518,64 {LOOP}"),
    (2, "need 80 bytes: give such sizes (size=; --size and --sizes from 84 on)",
     f"throughput {VIRTUAL} --stream ip6 --size 64 {LOOP}"),
    (2, "is not a number from 64 to 9728", f"throughput --sizes 12 {PAIR}"),
    (2, "is not a percentage from 0% to 50%", f"throughput --resolution 0.5 {PAIR}"),
    (2, "--method", f"throughput --method linear {PAIR}"),
    (1, "give frames or bits", f"throughput {VIRTUAL} --ceiling 50% {LOOP}"),
    (1, "neither a rate nor a document",
     f"throughput {VIRTUAL} --ceiling /nowhere {LOOP}"),
    # What would not be obeyed.
    (2, "last --trial seconds", f"throughput --duration 9 {PAIR}"),
    (2, "unknown option '--count'", f"throughput --count 9 {PAIR}"),
    (2, "unknown option '--stream'", f"nat --stream udp {PAIR}"),
    (2, "unknown option '--rate'", "rx --rate 1k null:"),
    (2, "unknown option '--settle'", "tx --settle 1 null:"),
    (2, "exclude each other", f"throughput --size 64 --sizes 64 {PAIR}"),
    (2, "has lengths of its own",
     f"throughput --stream size=99 --sizes 64 {PAIR}"),
    (2, "shorter than one --trial",
     f"throughput --method mlr --duration-sum 0.5 {PAIR}"),
    *((2, f"--{option} belongs to --method {methods}; this is {method}",
       f"{command} --method {method} --{option} {value} {PAIR}")
      for command, method, option, value, methods in (
          ("throughput", "mlr", "loss-tolerance", "1%", "binary or tst009"),
          ("imix", "mlr", "confirm", "1", "binary or tst009"),
          ("throughput", "binary", "verify", "0", "tst009"),
          ("latency", "tst009", "pdr", "0.5%", "mlr"),
          ("back2back", "binary", "duration-sum", "21", "mlr"),
          ("selftest", "binary", "exceed-ratio", "50%", "mlr"))),
]
KNOWN = "loop --virtual --rate 1M --duration 0.1 --device loss=1000,delay=50us"


@pytest.mark.parametrize("rc, words, arguments", ERRORS)
def test_an_error_is_one_line_and_an_exit_code(bench, rc, words, arguments):
    done = bench(*arguments.split())
    assert (done.rc, len(done.errors)) == (rc, 1), done.err
    assert re.match("mr-bench( compare| report)?: ", done.errors[0])
    assert words in done.errors[0]


def test_help_and_version(bench):
    done = bench("--help")
    assert (done.rc, done.err) == (0, "")
    assert done.out.startswith("usage: mr-bench COMMAND ")
    assert re.search(r"(?m)^  tx +send frames", done.out)
    done = bench("--version")
    assert (done.rc, done.err) == (0, "")
    assert re.fullmatch(r"mr-bench \d+\.\d+\.\d+( \([0-9a-f]{9,}(-dirty)?\))?\n", done.out)


def test_a_known_device_is_found_out(bench):
    done = bench(*KNOWN.split(), *PAIR.split())
    assert done.rc == 0, done.err
    for line in (
            r"sent +100000 frames in 0\.100 s: 1\.000 Mframes/s, "
            r"672\.0 Mbit/s .* 512\.0 Mbit/s .*",
            r"asked +1\.000 Mframes/s; unsent 0 of 100000",
            r"received +99900: .* lost 100 \(0\.1 %\).*",
            r"latency +min 50\.00 us .* max 50\.00 us",
            r"device +there: received 100000, forwarded 99900, lost 100,.*"):
        assert re.search(f"(?m)^{line}$", done.out), line
    assert re.search(r"(?m)^port pair:a +mode memory", done.err)


def test_quiet_is_quiet(bench):
    done = bench("tx", "--quiet", "--count", "1000", "null:")
    assert (done.rc, done.err) == (0, "")
    assert re.match(r"sent +1000 frames ", done.out)


@pytest.mark.parametrize("words, streams", [
    ([], ["udp ip.src=198.18.0.1 ip.dst=198.19.0.1 udp.src=1024 udp.dst=9"]),
    (["--stream", "size=99", "--stream", "tcp"], ["size=99", "tcp"])])
def test_a_document_has_what_was_sent(document, words, streams):
    found = document("tx", "-q", "--count", "10", *words, "null:")
    assert found["streams"] == streams


def test_json_lines_are_as_the_schema_says(bench):
    done = bench("loop", "--json-lines", "--rate", "1k", "-d", "2.2", "--max-lag",
                 "5", "--device", "loss=10", *PAIR.split())
    assert done.rc == 0, done.err
    *lines, document = [json.loads(line) for line in done.out.splitlines()]
    assert document["trials"][0]["tx"]["due"] == 2200
    assert len(lines) in (1, 2) and lines[0]["t"] >= 1
    assert "lost" not in lines[0]["rx"]
    for now, then in zip(lines[1:] + [document["trials"][0]], lines):
        assert now["tx"]["sent"] > then["tx"]["sent"]
        assert now["rx"]["unique"] > then["rx"]["unique"]
    assert complaints(document) == []
    assert [complaints(line, within="line") for line in lines] == [
        []] * len(lines)
    done = bench("tx", "--json-lines", "--quiet", "--count", "10", "null:")
    assert done.out.count("\n") == 1


def test_lines_that_are_not_read_do_not_hold_up_signals():
    out, stdout = os.pipe()
    fcntl.fcntl(stdout, fcntl.F_SETPIPE_SZ, 4096)
    os.write(stdout, b"\n" * 4096)
    with popen([BENCH, "tx", "--json-lines", "--rate", "1k", "null:"],
               stdout=stdout) as process:
        signals.await_sigint(process)
        time.sleep(1.5)  # the first line is due
        end_s = time.monotonic() + 60
        # The first ends the trial, the second one the last document.
        while process.poll() is None and time.monotonic() < end_s:
            process.send_signal(signal.SIGINT)
            time.sleep(0.05)
        process.kill()
    os.close(out)
    os.close(stdout)
    assert process.returncode == -signal.SIGINT


@pytest.mark.parametrize("words", [[], ["--json-lines"]])
def test_without_a_reader_it_ends_with_its_files(tmp_path, words):
    path = tmp_path / "out.json"
    out, stdout = os.pipe()
    os.close(out)
    with popen([BENCH, "tx", *words, "--rate", "1k", "--out", path, "null:"],
               stdout=stdout, text=True, stderr=subprocess.PIPE) as process:
        os.close(stdout)
        _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 1
    assert "mr-bench: standard output: Broken pipe\n" in err
    assert json.loads(path.read_text())["trials"][0]["tx"]["sent"] > 0


@pytest.mark.parametrize("option", ["--size", "--sizes"])
def test_sizes_on_the_command_line_include_the_fcs(document, option):
    measured = document("frameloss", *VIRTUAL.split(), "--rate", "1k", option, "128",
                        "--device", "delay=1us", *PAIR.split())
    assert {row["frame_bytes"] for row in measured["rows"]} == {124}


def test_nothing_received_is_explained(bench):
    done = bench("loop", "-q", "--virtual", "--rate", "1M", "--count", "100",
                 "--device", "loss=1", *PAIR.split())
    assert done.rc == 1
    assert re.match("mr-bench: 100 frames left pair:a and none reached "
                    "pair:b.* there is no path", done.err)


def test_a_bounded_run_that_receives_nothing_has_failed(bench):
    # Its other end is there, and silent.
    done = bench("rx", "-q", "--json", "--duration", "0.2",
                 "pcap:tx=/dev/null")
    assert done.rc == 1, done.err
    assert re.fullmatch(r"mr-bench: pcap:\S* received nothing in 0\.\d+ s: "
                        r"is the sender running.*\n", done.err)
    found = json.loads(done.out)
    assert not found["complete"]
    assert found["why_incomplete"] == "nothing came"


def test_what_figures_depend_on_is_in_the_document(document):
    found = document(
        *"loop --count 100 --rate 10k --max-lag 5 --cores 0 --dst-mac 02:00:00:00:00:0A "
        "--page-bytes 8192 --pool-pages 9000".split(), *LOOP.split())
    assert {"cores": [0], "dst_mac": "02:00:00:00:00:0a", "page_bytes": 8192,
            "pool_pages": 9000, "promisc": "auto"}.items() <= \
        found["config"].items()
    assert found["cores"] == [0]
    assert found["trials"][0]["clock_error_ns"] > 0
    found = document(*KNOWN.split(), *PAIR.split())
    assert found["config"]["dst_mac"] == "auto"
    assert (found["config"]["cores"], len(found["cores"])) == ([], 1)
    assert found["trials"][0]["clock_error_ns"] == 0


def test_a_terminal_has_a_live_view_and_q_ends_it():
    master, slave = pty.openpty()
    with popen([BENCH, "loop", "--rate", "10k", *LOOP.split()], stdin=slave,
               stdout=slave, stderr=subprocess.DEVNULL,
               env={**os.environ, "TERM": "xterm"}) as process:
        os.close(slave)
        said, has_quit = b"", False
        begin = time.monotonic()
        while time.monotonic() < begin + LIMIT_S:
            try:
                said += os.read(master, 65536)
            except OSError:  # all has been read, and it has ended
                break
            # What is redrawn comes in pieces: only the title is sure.
            if b"q ends" in said and not has_quit and \
                    time.monotonic() - begin > 1:
                os.write(master, b"q")
                has_quit = True
    os.close(master)
    assert process.returncode == 0
    assert b"q ends" in said
    # The terminal is as it was, and the summary stays on it.
    assert b"\x1b[?1049l" in said
    assert re.search(rb"sent +\d+ frames in", said.rpartition(b"\x1b[?1049l")[2])


@pytest.mark.parametrize("number, words, rc, why", [
    (signal.SIGINT, (), 0, ""), (signal.SIGTERM, (), 0, ""),
    (signal.SIGHUP, (), 1, "ended by a signal"),
    (signal.SIGINT, ("-d", "600"), 1, "ended by a signal"),
    (signal.SIGTERM, ("--count", "1000000"), 1, "ended by a signal")])
def test_a_signal_is_success_only_for_a_run_without_an_end(
        tmp_path, number, words, rc, why):
    path = tmp_path / "out.json"
    # CI may ignore it, and so would its children.
    with popen(["env", "--default-signal=INT,TERM,HUP", BENCH, "tx", "-q",
                "--rate", "1k", "--max-lag", "60", "--out", path, *words,
                "null:"], text=True, stdout=subprocess.PIPE,
               stderr=subprocess.PIPE) as process:
        # Its engine may not have started yet.
        signals.await_sigint(process)
        process.send_signal(number)
        _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == rc, err
    found = json.loads(path.read_text())
    assert (found["complete"], found["why_incomplete"]) == (not why, why)


def test_sigint_ends_tx_with_its_figures():
    with popen([BENCH, "tx", "null:"], text=True, stdout=subprocess.PIPE,
               stderr=subprocess.PIPE) as process:
        assert "tx" in process.stdout.readline()  # the first second's line
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, err
    assert re.search(r"(?m)^sent +[1-9]\d* frames ", out)
