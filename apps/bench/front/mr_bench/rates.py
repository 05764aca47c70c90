# SPDX-License-Identifier: BSD-3-Clause
"""Rates: the notation for users ("1.2M", "10Gbit", "10Gbit-l2", "25%" or "max"), and frames per
second."""

import re
from dataclasses import dataclass

from mr_bench.values import UsageError

# Overhead of a frame on the wire (IEEE 802.3, clause 4.2).
FCS_BYTES = 4
WIRE_BYTES = 24  # preamble 8, FCS 4, gap 12
MOST_PPS, MOST = 1e9, 1e15
NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
PREFIXES = ("", "k", "M", "G", "T")
# "bit" includes preamble, FCS and gap; "bit-l2" the FCS; "%" is a share of the link.
UNITS = {"": "pps", "pps": "pps", "bit": "bit", "bit-l1": "bit", "bit-l2": "bit-l2", "%": "%"}


@dataclass(frozen=True)
class Rate:
    """unit: one of UNITS; empty: full speed."""

    value: float = 0.0
    unit: str = ""

    def __str__(self) -> str:
        """In the notation of read()."""
        value, prefix = self.value, 0
        if not self.unit:
            return "max"
        # Only if no digit is lost.
        while self.unit != "%" and prefix < 4 and value >= 1000 and value % 10 == 0:
            value, prefix = value / 1000, prefix + 1
        return f"{value:.12g}{PREFIXES[prefix]}{self.unit}"

    def pps(self, mean_bytes: float, line_pps: float) -> float:
        """Frames per second, for frames of mean_bytes without FCS; line_pps: line rate, 0: unknown.
        Returns 0 for full speed; -1 for a share of a link of unknown speed."""
        if self.unit == "%":
            return self.value / 100 * line_pps if line_pps > 0 else -1
        bits = {"bit": mean_bytes + WIRE_BYTES, "bit-l2": mean_bytes + FCS_BYTES}
        return self.value / (8 * bits[self.unit]) if self.unit in bits else self.value


def read(name: str, text: str) -> Rate:
    """Parse the value of an option. Raises UsageError."""
    if text == "max":
        return Rate()
    number = NUMBER.match(text)
    unit = text[number.end() :] if number else ""
    prefix = PREFIXES.index(unit[0]) if unit[:1] in PREFIXES[1:] else 0
    value = float(number[0]) * 1000.0**prefix if number else 0
    if not 0 < value <= MOST:
        raise UsageError(
            f"--{name}: '{text}' is not a rate such as 1.2M (frames per second), 10Gbit, 10Gbit-l2, "
            "25% or max"
        )
    word = UNITS.get(unit[1:] if prefix else unit)
    if word is None:
        raise UsageError(
            f"--{name}: '{text}' has no known unit; use pps, bit, bit-l2 or %, with k, M or G "
            "in front"
        )
    if word == "pps" and value > MOST_PPS:
        raise UsageError(
            f"--{name}: '{text}' is more than 1G frames per second; for bits, write {text}bit"
        )
    if word == "%" and (prefix or value > 100):
        raise UsageError(f"--{name}: '{text}' is more than the link carries")
    return Rate(value, word)
