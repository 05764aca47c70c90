# SPDX-License-Identifier: BSD-3-Clause
"""The faults of the simulated DUT, as --device describes them:
"loss=1000,dup=N,corrupt=N,reorder=N/BY,delay=50us,rate=1M,queue=64"."""

import re
from collections.abc import Callable

from mr_bench import rates
from mr_bench.values import UsageError

# As the engine expects it: a missing member means no such fault.
Device = dict[str, float]
MOST, MOST_BY, MOST_QUEUE = 2**32 - 1, 64, 65536
NS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def _wrong(word: str, what: str) -> UsageError:
    return UsageError(f"--device: '{word}' {what}")


def _count(word: str, text: str, most: int = MOST) -> int:
    if not re.fullmatch("[0-9]{1,10}", text) or not 0 < int(text) <= most:
        raise _wrong(word, f"is not a number from 1 to {most}")
    return int(text)


def _reorder(word: str, text: str) -> Device:
    """ "N/BY": the next BY frames overtake every Nth."""
    every_text, slash, by_text = text.partition("/")
    by = _count(word, by_text, MOST_BY) if slash else 1
    every = _count(word, every_text)
    if every <= by:
        raise _wrong(word, "holds one frame at a time: N must be above BY")
    return {"reorder_every": every, "reorder_by": by}


def _delay(word: str, text: str) -> Device:
    number = rates.NUMBER.match(text)
    ns = float(number[0]) * NS.get(text[number.end() :], 0) if number else 0
    if not 0 < ns <= 1e9:
        raise _wrong(word, "is not a time up to 1s such as 500ns, 50us or 2ms")
    return {"delay_ns": int(ns + 0.5)}


def _rate(_: str, text: str) -> Device:
    rate = rates.read("device rate", text)
    if rate.unit != "pps":
        raise _wrong(text, "is not in frames per second")
    return {"rate_pps": rate.value}


READERS: dict[str, Callable[[str, str], Device]] = {
    "loss": lambda word, text: {"loss_every": _count(word, text)},
    "dup": lambda word, text: {"dup_every": _count(word, text)},
    "corrupt": lambda word, text: {"corrupt_every": _count(word, text)},
    "reorder": _reorder,
    "delay": _delay,
    "rate": _rate,
    "queue": lambda word, text: {"queue_frames": _count(word, text, MOST_QUEUE)},
}


def read(text: str) -> Device:
    """Parse --device. Raises UsageError, which names the wrong word."""
    device: Device = {}
    for word in filter(None, text.split(",")):
        name, equals, value = word.partition("=")
        if not equals:
            raise _wrong(word, "has no value; write, for example, loss=1000")
        if name not in READERS:
            raise _wrong(
                word, "is unknown; the words are loss, dup, corrupt, reorder, delay, rate and queue"
            )
        device |= READERS[name](word, value)
    if "queue_frames" in device and "rate_pps" not in device:
        raise _wrong(text, "has a queue but no rate, so no frame would wait")
    return device
