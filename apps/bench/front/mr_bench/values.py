# SPDX-License-Identifier: BSD-3-Clause
"""Option values, as people write them. Errors are a UsageError: one line."""

import re
from collections.abc import Sequence

from mr_support.options import Wrong


class UsageError(Wrong):
    """The command line is wrong."""

    status = 2


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def percent(name: str, text: str, most: float = 50) -> float:
    """ "0.5%", as a share of 1."""
    value = _number(text[:-1]) if text.endswith("%") else None
    if value is None or not 0 <= value <= most:
        raise UsageError(
            f"--{name}: '{text}' is not a percentage from 0% to {most:g}%, such as 0.5%"
        )
    return value / 100


def seconds_ns(name: str, text: str) -> int:
    """ "10" or "0.5"; to a millisecond."""
    value = _number(text)
    if value is None or not 0.001 <= value <= 1e9:
        raise UsageError(f"--{name}: '{text}' is not a number of seconds, 0.001 to 1e9")
    return int(value * 1000 + 0.5) * 1_000_000


def whole(name: str, text: str, least: int, most: int) -> int:
    """A whole number."""
    if not re.fullmatch("[0-9]+", text):
        raise UsageError(f"--{name}: '{text}' is not a whole number")
    if len(text) > 20 or not least <= int(text) <= most:
        raise UsageError(f"--{name}: {text} is out of range, {least} to {most}")
    return int(text)


def word(name: str, text: str, words: Sequence[str]) -> str:
    """One of the words."""
    if text not in words:
        raise UsageError(f"--{name}: unknown word '{text}'; valid: {' '.join(words)}")
    return text


def numbers(name: str, text: str, least: float, most: float, room: int) -> list[float]:
    """Numbers separated by commas."""
    parts = text.split(",")
    values = [_number(part) for part in parts]
    for i, value in enumerate(values):
        if value is None or not least <= value <= most:
            raise UsageError(
                f"--{name}: '{','.join(parts[i:])}' is not a number from {least:g} to {most:g}"
            )
    if len(values) > room:
        raise UsageError(f"--{name}: more than {room} numbers")
    return [value for value in values if value is not None]
