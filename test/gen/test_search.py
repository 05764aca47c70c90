# SPDX-License-Identifier: BSD-3-Clause
"""The searches of mr-bench find what a simulated DUT was told to do."""
import ctypes
import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest
from bench_program import BENCH, limit

PORTS = ["pair:a", "pair:b"]
WALL = 0x40000000  # of waitpid(): threads, too
VIRTUAL = ["--virtual", "--trial", "0.05"]


def rows(measured, goal):
    """Values of the rows of a goal, by the length of their frames."""
    return {row["frame_bytes"]: row for row in measured["rows"]
            if row["goal"] == goal}


@pytest.mark.parametrize("method", ["binary", "tst009", "mlr"])
@pytest.mark.parametrize("rate", [200000, 1234567])
def test_a_rate_is_found_within_half_a_per_cent(document, method, rate):
    # Its queue is short beside a trial: what waits there is no rate.
    own = ["--duration-sum", "0.25"] if method == "mlr" else []
    measured = document("throughput", *VIRTUAL, "--method", method, *own,
                        "--device", f"rate={rate},queue=8", *PORTS)
    row = rows(measured, "ndr")[60]
    assert abs(row["value"] - rate) <= 0.005 * rate
    assert row["low"] <= rate * 1.001 and row["high"] >= rate
    assert not row["is_limited_by_tester"]
    assert measured["complete"]
    # The first one looks for the path, and no result rests on it.
    assert row["trials"] == list(range(1, len(measured["trials"])))
    assert measured["config"]["pdr"] == 0.005
    assert measured["config"]["rate"] == "max"
    if method == "mlr":
        partial = rows(measured, "pdr")[60]
        assert abs(partial["value"] - rate) <= 0.01 * rate


def test_loss_that_is_tolerated_and_loss_that_is_not(document):
    loses = ["--device", "loss=1000,rate=500k", *PORTS]
    measured = document("throughput", *VIRTUAL, "--loss-tolerance", "0.15%",
                        *loses)
    assert abs(rows(measured, "pdr")[60]["value"] - 500e3) <= 2500
    # Without any, no trial may be long enough for its 1000th frame.
    measured = document("throughput", *VIRTUAL, *loses)
    assert 0.99 * 20e3 < rows(measured, "ndr")[60]["value"] <= 20e3


def test_sizes_are_with_the_fcs(document):
    measured = document("throughput", *VIRTUAL, "--sizes", "64,1518",
                        "--device", "rate=100k,queue=8", *PORTS)
    found = rows(measured, "ndr")
    assert sorted(found) == [60, 1514]
    assert all(abs(row["value"] - 1e5) <= 500 for row in found.values())
    assert {trial["frame_bytes"] for trial in measured["trials"]} == {60, 1514}


def test_a_mix_of_sizes(document):
    measured = document("imix", *VIRTUAL, "--device", "rate=100k,queue=8",
                        *PORTS)
    assert abs(rows(measured, "ndr")[0]["value"] - 1e5) <= 500
    assert "size=imix" in measured["streams"][0]


@pytest.mark.parametrize("stream, first", [
    ("ip6", 80), ("tcp", 72), ("udp", 60),
    # The most that headers take.
    ("ip.options=40 tcp qinq.id=1 vlan.id=2", 120)])
def test_sizes_of_rfc2544_have_what_headers_need(bench, stream, first):
    done = bench("throughput", *VIRTUAL, "--sizes", "rfc2544", "--stream",
                 stream, "--device", "rate=50k,queue=8", "--rate", "1M",
                 "--json", *PORTS)
    assert done.rc == 0, done.err
    found = json.loads(done.out)["rows"]
    assert [row["frame_bytes"] for row in found] == \
        [first] + [size - 4 for size in (128, 256, 512, 1024, 1280, 1518)]
    said = "frames of 64 bytes are too short for headers and the stamp: " \
        f"{first + 4} instead"
    is_raised = first > 60
    assert [said in row["note"] for row in found] == [is_raised] + 6 * [False]
    assert (f"mr-bench: rfc2544: {said}\n" in done.err) == is_raised


def test_a_mix_is_as_short_as_headers_let_it_be(document, bench):
    search = ["imix", *VIRTUAL, "--device", "rate=100k,queue=8", *PORTS]
    measured = document(*search, "--stream", "ip6 udp.dst=1-9")
    assert measured["streams"] == ["ip6 udp.dst=1-9 size=80x7,566x4,1514x1"]
    said = "frames of 64 bytes are too short for headers and the stamp: 84 " \
        "instead"
    assert said in measured["rows"][0]["note"]
    # It is what it says that it is.
    again = document(*search, "--stream", measured["streams"][0])
    assert again["rows"][0]["note"] == ""
    assert again["rows"][0]["value"] == measured["rows"][0]["value"]
    done = bench("tx", "--count", "12", "--stream", "ip6 size=imix", "null:")
    assert (done.rc, done.errors.count("mr-bench: " + said)) == (0, 1)
    done = bench("tx", "--count", "12", "--stream", "ip6 size=imix",
                 "--stream", "size=imix", "null:")
    assert "stamp: up to 84 instead\n" in done.err


def test_the_loss_curve(document):
    measured = document("frameloss", *VIRTUAL, "--rate", "1M", "--device",
                        "rate=650k,queue=8", *PORTS)
    got = [round(row["value"], 3) for row in measured["rows"]]
    assert [row["goal"] for row in measured["rows"]] == \
        [f"loss-at-{share}%" for share in (100, 90, 80, 70, 60, 50)]
    want = [1 - 0.65 / share for share in (1, 0.9, 0.8, 0.7)]
    assert got[:4] == pytest.approx(want, abs=0.002)
    assert got[4:] == [0, 0]


def test_bursts_tell_how_long_the_queue_is(document):
    """512 frames wait, at 2 million a second: 34.4 us of a 10 Gbit/s line."""
    measured = document("back2back", *VIRTUAL, "--tests", "2", "--resolution",
                        "0.1%", "--device", "rate=2M,queue=512", *PORTS)
    frames = rows(measured, "back2back")[60]
    line = 10e9 / 8 / 84
    assert frames["value"] == pytest.approx(512 / (1 - 2e6 / line), rel=0.01)
    assert rows(measured, "buffer-time")[60]["value"] == \
        pytest.approx(512 / line, rel=0.01)


def test_latency_at_shares_of_a_rate(document):
    measured = document("latency", *VIRTUAL, "--rate", "1M", "--shares",
                        "10,50", "--device", "delay=40us", *PORTS)
    for share in (10, 50):
        for point in ("min", "p50", "p99", "max"):
            value = rows(measured, f"latency-{point}-at-{share}%")[60]["value"]
            assert value == pytest.approx(40000, rel=0.002)
    assert [round(t["asked_pps"]) for t in measured["trials"][-2:]] == \
        [100000, 500000]
    assert [row["trials"] for row in measured["rows"]] == \
        6 * [[1]] + 6 * [[2]]


def test_a_rate_that_the_sender_missed_is_marked(bench):
    """No memory carries a thousand million frames per second."""
    done = bench("latency", "--rate", "1G", "--shares", "100", "--trial",
                 "0.1", "pair:a", "pair:a")
    assert done.rc == 0, done.err
    row = next(line for line in done.out.splitlines()
               if line.startswith("64 B "))
    assert "asked frames/s   sent frames/s" in done.out
    # Less than 900 M, in whatever unit.
    assert re.match(r"64 B +100.0 % +1000.0000 M +"
                    r"(\d{1,2}\.\d+ M|[1-8]\d\d\.\d+ M|\d+\.\d+ k?) ", row), row
    assert row.endswith("the sender missed its rate")


def test_the_tester_alone_has_no_known_device(bench):
    done = bench("latency", "--rate", "10k", "--shares", "10", "--trial",
                 "0.1", "--device", "delay=1us", *PORTS)
    assert done.rc == 0, done.err
    assert done.err.count("the tester alone") + \
        done.out.count("the tester alone") == 1


def test_selftest_finds_what_was_injected(bench):
    done = bench("selftest")
    assert done.rc == 0, done.err
    lines = re.findall(r"^(\w+=\S+) .* (\S+) +(\S+) +(\S+)$", done.out, re.M)
    assert len(lines) >= 5
    for device, injected, found, error in lines:
        assert abs(float(injected) - float(found)) <= float(error), device


def test_selftest_without_ports_writes_what_it_found(document):
    """A document is a document, also of the simulated DUTs alone."""
    found = {row["goal"]: row for row in document("selftest", "-q")["rows"]}
    assert found["known-loss-1000"]["value"] == 100
    assert found["known-loss-1000"]["unit"] == "frames"
    assert found["known-delay-2ms"]["unit"] == "ns"
    assert found["known-rate-400k"]["value"] == pytest.approx(4e5, rel=0.005)
    for row in found.values():
        assert row["low"] <= row["value"] <= row["high"]


def test_a_ceiling_marks_and_refuses(document, bench, tmp_path):
    search = ["throughput", *VIRTUAL, "--device", "rate=100k,queue=8", *PORTS]
    row = rows(document(*search, "--ceiling", "103k"), "ndr")[60]
    assert row["is_limited_by_tester"]
    assert "near the tester's ceiling" in row["note"]
    done = bench(*search, "--ceiling", "90k")
    assert done.rc == 1
    assert "refused" in done.out
    # What selftest writes is such a ceiling: here that of the virtual line.
    path = tmp_path / "self.json"
    assert bench("selftest", *VIRTUAL, "--out", path, "pair:a",
                 "pair:a").rc == 0
    line = 10e9 / 8 / 84
    ceiling = json.loads(path.read_text())["selftest"]
    assert ceiling == [{"frame_bytes": 60, "mean_bytes": 60,
                        "ceiling_pps": pytest.approx(line)}]
    row = rows(document(*search, "--ceiling", path), "ndr")[60]
    assert not row["is_limited_by_tester"]
    done = bench(*search, "--sizes", "128", "--ceiling", path)
    assert done.rc == 1
    assert "no ceiling for frames of 124 bytes" in done.err


@pytest.mark.parametrize("change,words", [
    (lambda d: d["machine"].update(cpu="Z80"),
     "is from another machine, with a 'Z80'"),
    (lambda d: d["config"].update(workers=7), "is from other --workers (7"),
    (lambda d: d["ports"][0].update(mode="copy") or
     d["ports"][1].update(mode="copy"), "no port of the mode"),
    (lambda d: [port.update(tx_queues=4) for port in d["ports"]],
     "driver and queues of pair:a"),
])
def test_a_ceiling_of_another_tester_is_refused(bench, tmp_path, change,
                                                words):
    path = tmp_path / "self.json"
    assert bench("selftest", *VIRTUAL, "--out", path, "pair:a",
                 "pair:a").rc == 0
    measured = json.loads(path.read_text())
    change(measured)
    path.write_text(json.dumps(measured))
    done = bench("throughput", *VIRTUAL, "--ceiling", path, "--device",
                 "rate=100k,queue=8", *PORTS)
    assert done.rc == 1
    assert words in done.err and "mr-bench selftest" in done.err
    assert len(done.errors) == 1


def test_a_ceiling_marks_losses_and_bursts(document):
    loses = [*VIRTUAL, "--rate", "1M", "--device", "rate=650k,queue=8", *PORTS]
    measured = document("frameloss", "--ceiling", "800k", *loses)
    limited = [row["is_limited_by_tester"] for row in measured["rows"]]
    assert limited == [True, True, True, False, False, False]
    assert measured["rows"][0]["note"] == \
        "above the tester's ceiling of 800000"
    for ceiling, is_limited in (("2M", False), ("1M", True)):
        measured = document("back2back", "--tests", "1", "--ceiling", ceiling,
                            *loses)
        assert {row["is_limited_by_tester"]
                for row in measured["rows"]} == {is_limited}


def test_a_ceiling_is_of_one_mix(bench, tmp_path):
    path = tmp_path / "self.json"
    mix = ["--stream", "size=60x1,1514x1"]
    assert bench("selftest", *VIRTUAL, *mix, "--out", path, "pair:a",
                 "pair:a").rc == 0
    search = ["imix", *VIRTUAL, "--device", "rate=100k,queue=8", "--ceiling",
              path, *PORTS]
    done = bench(*search, *mix)
    assert done.rc == 0, done.err
    done = bench(*search)
    assert done.rc == 1
    assert "bytes on average" in done.err


@pytest.mark.parametrize("option", ["--out", "--csv", "--hdr"])
def test_an_unwritable_file_is_refused_at_once(bench, tmp_path, option):
    for path in (tmp_path / "none/x.json", tmp_path):
        done = bench("throughput", option, path, *PORTS, timeout_s=limit(20))
        assert (done.rc, done.out) == (1, "")
        assert re.fullmatch(f"mr-bench: cannot write {path}: .*\n", done.err)
    done = bench("frameloss", "--virtual", "--trial", "0.1", "--rate", "1k",
                 option, "/dev/null", "--device", "delay=1us", *PORTS)
    assert done.rc == 0, done.err


def read_terminal(terminal, until=None):
    """Read what a terminal shows, until these words or its end."""
    said = b""
    end_s = time.monotonic() + limit(60)
    while until is None or until not in said:
        left_s = max(0, end_s - time.monotonic())
        assert select.select([terminal], [], [], left_s)[0], said
        try:
            said += os.read(terminal, 65536)
        except OSError:  # all is read, and the program has ended
            assert until is None, said
            break
    return said


def test_a_terminal_has_a_line_with_the_time_left():
    """Of all sizes, not of the one at hand."""
    master, slave = pty.openpty()
    with subprocess.Popen([BENCH, "frameloss", "--trial", "0.2", "--rate",
                           "1k", "--settle", "0.1", "--sizes", "64,128,256",
                           # A busy machine is not what is tested.
                           "--max-lag", "0.9", "--unsent-tolerance", "50%",
                           "--json", "pair:a", "pair:a"], stderr=slave,
                          stdout=subprocess.DEVNULL) as process:
        os.close(slave)
        said = read_terminal(master)
    os.close(master)
    assert process.returncode == 0
    left = [int(n) for n in re.findall(rb"about (\d+) s left", said)]
    # Ten steps of 0.3 s each are the most that the first size may have.
    assert max(left) >= 4 and left[-1] <= 4, left
    assert b"64 B: trial 1" in said and b"256 B: trial 2" in said


def stop_thread(tid):
    """That one alone, which no signal does. False: it is not allowed."""
    seize, interrupt = 0x4206, 0x4207
    return all(ctypes.CDLL(None).ptrace(request, tid, None, None) == 0
               for request in (seize, interrupt))


def takes_signals(pid):
    """Whether it is an engine that reads its signals from a file by now."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    blocked = int(re.search(r"^SigBlk:\s*(\w+)", status, re.M)[1], 16)
    # Before exec() all are blocked.
    return blocked >> (signal.SIGTERM - 1) & 1 and \
        os.readlink(f"/proc/{pid}/exe").endswith("-engine")


def engine_of(process):
    """The process ID of the engine that it has started."""
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    end_s = time.monotonic() + limit(20)
    while not (children := path.read_text().split()) or \
            not takes_signals(children[0]):
        assert time.monotonic() < end_s
        time.sleep(0.05)
    return int(children[0])


def test_results_are_written_if_a_thread_hangs(tmp_path):
    """The process ends under it, but not before the files are written."""
    path = tmp_path / "hung.json"
    master, slave = pty.openpty()
    with subprocess.Popen(
            [BENCH, "frameloss", "--trial", "0.2", "--rate", "1k", "--settle",
             "0.1", "--sizes", "rfc2544", "--max-lag", "0.9",
             "--unsent-tolerance", "50%", "--out", path, "pair:a", "pair:a"],
            stdout=subprocess.PIPE, stderr=slave, text=True) as hung:
        os.close(slave)
        read_terminal(master, b"128 B: trial 1")
        engine = engine_of(hung)
        tids = []
        while not tids:  # each trial has its own
            tids = [int(task.name)
                    for task in Path(f"/proc/{engine}/task").iterdir()
                    if int(task.name) != engine]
        tid = tids[0]
        if not stop_thread(tid):
            hung.kill()
            pytest.skip("no thread of a child can be stopped here")
        # Of a sender that hangs, who waits for it is told by a signal.
        hung.send_signal(signal.SIGINT)
        # A thread that is traced is the tracer's to bury, before its process.
        while os.WIFSTOPPED(os.waitpid(tid, WALL)[1]):
            pass
        out, err = hung.stdout.read(), read_terminal(master).decode()
    os.close(master)
    assert hung.returncode == 1
    measured = json.loads(path.read_text())
    assert not measured["complete"] and measured["trials"]
    assert measured["why_incomplete"] in err
    assert out.count("64 B ") >= 1  # of the table so far


@pytest.mark.parametrize("redirection, why", [
    ("> /dev/full", "No space left on device"),
    ("| true", "Broken pipe"), (">&-", ""), ("2>&-", ""), ("2> /dev/full", "")])
def test_results_are_kept_if_standard_output_fails(tmp_path, redirection, why):
    """A terminal that has gone is no reason to measure again."""
    path = tmp_path / "out.json"
    script = f'set -o pipefail; "$@" {redirection}'
    done = subprocess.run(
        ["bash", "-c", script, "bash", BENCH, "frameloss", "--virtual", "--trial", "0.1",
         "--rate", "1k", "--device", "delay=1us", "--out", path, *PORTS],
        capture_output=True, text=True, check=False, timeout=limit(60))
    assert json.loads(path.read_text())["complete"]
    assert done.returncode == (1 if why else 0), done.stderr
    assert why in done.stderr and "Traceback" not in done.stderr


def test_a_second_signal_ends_an_engine_that_hangs():
    with subprocess.Popen([BENCH, "throughput", "--virtual", "--trial", "0.3", "--device",
                           "rate=2M", *PORTS], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        engine = engine_of(process)
        os.kill(engine, signal.SIGSTOP)
        # Two signals may count as one.
        end_s = time.monotonic() + limit(20)
        while process.poll() is None:
            assert time.monotonic() < end_s
            process.terminate()
            time.sleep(0.05)
    assert process.returncode == -signal.SIGTERM
    # What its parent does not bury is init's, or stays dead.
    status = Path(f"/proc/{engine}/status")
    assert not status.exists() or "State:\tZ" in status.read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_prints_the_results_so_far(tmp_path, number):
    path = tmp_path / "cut.json"
    master, slave = pty.openpty()
    with subprocess.Popen(
            [BENCH, "throughput", "--virtual", "--trial", "0.3", "--out", path,
             "--device", "rate=2M", *PORTS],
            stdout=subprocess.PIPE, stderr=slave, text=True,
            # Or CI ignores it.
            preexec_fn=lambda: signal.signal(number, signal.SIG_DFL)) as cut:
        os.close(slave)
        read_terminal(master, b"trial 2")
        cut.send_signal(number)
        out = cut.communicate(timeout=limit(60))[0]
    err = read_terminal(master).decode()
    os.close(master)
    assert cut.returncode == 1
    assert "ended by a signal" in err
    measured = json.loads(path.read_text())
    assert not measured["complete"] and measured["trials"]
    assert measured["why_incomplete"] == "ended by a signal"
    for row in measured["rows"]:
        assert "incomplete" in row["note"] and "incomplete" in out
