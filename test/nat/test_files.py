# SPDX-License-Identifier: BSD-3-Clause
"""The state file and the log: control/save.c and control/log.c, called as they
are."""
import ctypes
import errno
import os
import resource
import time
from calendar import timegm

import pytest

from harness import LIB, RESTS, U64, Event, Session, session

MAPPING_BEGIN, BLOCK_BEGIN = 2, 0
NOW_S = 1000000
TAKE = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p,
                        ctypes.POINTER(Session))


class Save(ctypes.Structure):
    """struct nat_save"""

    _fields_ = [("bytes", ctypes.c_void_p), ("n_bytes", ctypes.c_size_t),
                ("n_max", ctypes.c_size_t), ("n", U64), ("sum", U64),
                ("is_broken", ctypes.c_bool)]


class LogStats(ctypes.Structure):
    """struct nat_log_stats"""

    _fields_ = [("n_written", U64), ("n_lost", U64)]


LIB.nat_log_stats.restype = LogStats
LIB.nat_log_ring.restype = ctypes.c_void_p
LIB.nat_log_flush.restype = ctypes.c_bool


class Failed(Exception):
    """An errno, and the reason as text."""


def check(err, why):
    if err != 0:
        raise Failed(-err, why.value.decode())


def save(path, sessions):
    """Write a state file."""
    made, why = Save(), ctypes.create_string_buffer(400)
    for one in sessions:
        LIB.nat_save_put(ctypes.byref(made), ctypes.byref(one))
    check(LIB.nat_save_end(ctypes.byref(made), str(path).encode(), U64(NOW_S),
                           why), why)


def saved(path, time_s=NOW_S, n_most=99, resumes=False):
    """The sessions of a state file, as dicts; no more than n_most."""
    got, why = [], ctypes.create_string_buffer(400)

    def take(_, one):
        got.append(one.contents.shown())
        return len(got) < n_most

    err = LIB.nat_saved_read(str(path).encode(), U64(time_s), resumes,
                             TAKE(take), None, why)
    assert err == 0 or not got
    check(err, why)
    return got


@pytest.fixture
def some():
    return [session((f"10.0.0.{5 + i}", 100 + i), ("192.0.2.1", 200 + i),
                    ("203.0.113.9", 300 + i), proto=6, tcp_state=2, age_s=i,
                    left_s=10 * (i + 1), n_out=7, n_in=8) for i in range(5)]


@pytest.fixture
def state(tmp_path, some):
    """A state file with some sessions."""
    save(tmp_path / "state", some)
    return tmp_path / "state"


def test_saved_sessions_are_read_back(state, some):
    assert saved(state) == [one.shown() for one in some]
    assert saved(state, n_most=2) == [one.shown() for one in some[:2]]
    # Who talked to whom is nobody else's business.
    assert state.stat().st_mode & 0o777 == 0o600


def test_saved_sessions_age_while_the_program_is_not_running(state):
    """10 and 20 s were left for the first two: they have ended."""
    got = saved(state, NOW_S + 20)
    assert len(got) == 3 and (got[0]["left_s"], got[0]["age_s"]) == (10, 22)
    got = saved(state, 5)  # the clock was set back
    assert len(got) == 5 and got[0]["left_s"] == 10


def resumed(path, time_s):
    """What a start makes of a state file."""
    return saved(path, time_s, resumes=True)


def test_ports_in_hold_down_follow_the_sessions(tmp_path, some):
    held = [session(("10.0.0.5", 0), ("192.0.2.1", 900 + i), flags=RESTS,
                    age_s=age_s, left_s=121 - age_s)
            for i, age_s in enumerate((100, 50))]
    save(tmp_path / "state", [held[0], *some, held[1]])
    assert saved(tmp_path / "state") == [one.shown() for one in some + held]
    got = saved(tmp_path / "state", NOW_S + 30)
    assert [(one["outside_port"], one["age_s"], one["left_s"])
            for one in got] == [(203, 33, 10), (204, 34, 20), (901, 80, 41)]
    # The ports of sessions that have ended since are also in hold-down.
    got = resumed(tmp_path / "state", NOW_S + 30)
    assert [(one["outside_port"], one["flags"], one["age_s"])
            for one in got] == [(203, 0, 33), (204, 0, 34), (200, RESTS, 20),
                                (201, RESTS, 10), (202, RESTS, 0),
                                (901, RESTS, 80)]


def test_a_file_of_the_first_version_is_read(state, some):
    data = bytearray(state.read_bytes())
    assert data[8] == 2
    data[8] = 1
    checked = data[32:-8] + data[:32]
    total = 0
    for i in range(0, len(checked), 8):  # FNV-1a, as save.c has it
        total = (total ^ int.from_bytes(checked[i:i + 8], "little")) * \
            0x100000001b3 % 2 ** 64
        total ^= total >> 32
    data[-8:] = total.to_bytes(8, "little")
    state.write_bytes(data)
    assert saved(state) == [one.shown() for one in some]


def test_each_byte_and_each_length_counts(state):
    data = state.read_bytes()
    assert len(data) == 32 + 5 * 40 + 8
    for i, byte in enumerate(data):
        for wrong, err in (
                (data[:i] + bytes([byte ^ 1]) + data[i + 1:],
                 errno.EINVAL if i < 8 else errno.EBADMSG),
                (data[:i], errno.EBADMSG)):
            state.write_bytes(wrong)
            with pytest.raises(Failed) as failed:
                saved(state)
            assert failed.value.args[0] == err


def test_an_old_file_stays_until_the_new_one_is_whole(state, some):
    """As after a crash in the middle of writing."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(Failed) as failed:
            save(state, some[:1] * 5)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert failed.value.args[0] == errno.EFBIG
    assert str(state) in failed.value.args[1]
    assert len(saved(state)) == 5
    assert [path.name for path in state.parent.iterdir()] == ["state"]
    save(state, [])
    assert saved(state) == []


def test_the_temporary_file_is_ours_alone(state, some):
    """What is at PATH.new already is neither followed nor left readable."""
    new = state.with_suffix(".new")
    new.symlink_to("victim")
    with pytest.raises(Failed) as failed:
        save(state, some)
    assert failed.value.args[0] == errno.ELOOP
    new.touch()
    new.chmod(0o666)
    save(state, some)
    assert state.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("act", [lambda path: save(path, []), saved])
def test_a_state_file_that_cannot_be(act):
    with pytest.raises(Failed, match="/nowhere/x") as failed:
        act("/nowhere/x")
    assert failed.value.args[0] == errno.ENOENT


def test_a_fifo_as_state_file_is_refused_at_once(tmp_path):
    """A FIFO would block, with signals blocked as well."""
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", "/dev/null"):
        with pytest.raises(Failed, match="was not written by mr-nat") as failed:
            saved(path)
        assert failed.value.args[0] == errno.EINVAL


class Log:
    """Of two workers, begun at tick 100."""

    def __init__(self, path):
        self.path = path
        self.ctx, self.log = ctypes.c_void_p(), ctypes.c_void_p()
        why = ctypes.create_string_buffer(400)
        assert LIB.mr_ctx_create(None, ctypes.byref(self.ctx), why) == 0
        err = LIB.nat_log_create(self.ctx, str(path).encode(), 2,
                                 ctypes.byref(self.log), why)
        if err != 0:
            LIB.mr_ctx_destroy(self.ctx)
        check(err, why)

    def put(self, worker=0, n=1, **event):
        event = Event(**{"what": MAPPING_BEGIN, "now_s": 100, "proto": 17,
                         **event})
        ring = ctypes.c_void_p(LIB.nat_log_ring(self.log, worker))
        for _ in range(n):
            LIB.nat_log_put(ring, ctypes.byref(event))

    def write(self, now_s=100):
        """Whether the file takes all."""
        why = ctypes.create_string_buffer(400)
        return LIB.nat_log_flush(self.log, now_s, why)

    def stats(self):
        stats = LIB.nat_log_stats(self.log)
        return stats.n_written, stats.n_lost

    def close(self):
        LIB.nat_log_destroy(self.log)
        LIB.mr_ctx_destroy(self.ctx)


@pytest.fixture
def log_of():
    made = []

    def make(path):
        made.append(Log(path))
        return made[-1]

    yield make
    for log in made:
        log.close()


@pytest.fixture
def log(log_of, tmp_path):
    return log_of(tmp_path / "log")


def test_events_become_lines(log):
    ends = {name: getattr(session(("10.0.0.5", 1234), ("192.0.2.1", 5678)),
                          name) for name in
            ("inside", "inside_port", "outside", "outside_port")}
    log.put(1, **ends)
    log.put(0, what=BLOCK_BEGIN, n_ports=512, **ends)
    assert log.write()
    first, second = log.path.read_text().splitlines()
    assert first.startswith('{"t":"20') and first.endswith(
        '"event":"block_begin","proto":17,"inside":"10.0.0.5",'
        '"outside":"192.0.2.1","first_port":5678,"n_ports":512}')
    assert '"mapping_begin"' in second  # of the ring of worker 1
    assert log.stats() == (2, 0)


def test_events_that_do_not_fit_are_counted_and_logged(log):
    """Each event has its line, or is in the line about the lost ones."""
    log.put(n=20000)
    n_lost = log.stats()[1]
    assert 0 < n_lost < 20000
    for _ in range(2):
        assert log.write()
        assert log.path.read_text().count("\n") == 20000 - n_lost + 1


def test_a_full_log_file_is_reported_once(log_of):
    with pytest.raises(Failed) as failed:
        log_of("/nowhere/x")
    assert failed.value.args == (
        errno.ENOENT, "log: /nowhere/x: No such file or directory")
    log = log_of("/dev/full")
    for is_good in (False, True):
        log.put()
        assert log.write() == is_good
    assert log.stats() == (0, 2)


def test_a_fifo_needs_a_reader(log_of, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(Failed, match="start its reader first") as failed:
        log_of(tmp_path / "fifo")
    assert failed.value.args[0] == errno.ENXIO
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    log = log_of(tmp_path / "fifo")
    log.put()
    assert log.write() and os.read(reader, 1000).endswith(b"}\n")
    os.close(reader)


def test_a_line_has_the_time_of_the_clock_now(log):
    """Between ticks 100 and 500, the clock was set back: no 400 s passed."""
    log.put(now_s=500)
    assert log.write(500)
    said = log.path.read_text()[len('{"t":"'):][:20]
    said_s = timegm(time.strptime(said, "%Y-%m-%dT%H:%M:%SZ"))
    assert 0 <= time.time() - said_s < 100


@pytest.mark.parametrize("before, after", [(None, 0o600), (0o644, 0o640),
                                           (0o660, 0o660)])
def test_others_cannot_read_the_log(log_of, tmp_path, before, after):
    """A file that is there keeps its group."""
    path = tmp_path / "log"
    if before:
        path.touch()
        path.chmod(before)
    log_of(path)
    assert path.stat().st_mode & 0o777 == after
