# SPDX-License-Identifier: BSD-3-Clause
"""Units of results: which direction is better, and how to print them."""

COUNTS = ("", "k", "M", "G", "T")
TIMES = ("ns", "us", "ms", "s")

# A difference of this many lost frames may be chance.
FLOOR_FRAMES = 10

# Unit: 1 if more of it is better, or -1; changes up to this count as none,
# whatever their share.
_UNITS = {
    "frames/s": (1, 1.0),
    "bit/s": (1, 1.0),
    "frames": (1, 1.0),
    "connections/s": (1, 1.0),
    "connections": (1, 1.0),
    "ns": (-1, 1.0),
    "ns/frame": (-1, 0.0),
    "cycles/frame": (-1, 0.0),
    "s": (-1, 1e-9),
    "ratio": (-1, 1e-9),
    "frames lost": (-1, FLOOR_FRAMES),
}


def direction(unit: str) -> int:
    """1: more of it is better; -1: less; 0: no such unit."""
    return _UNITS.get(unit, (0, 0.0))[0]


def floor(unit: str) -> float:
    """Changes up to this count as none."""
    return _UNITS.get(unit, (0, 0.0))[1]


def _scaled(value: float, unit: str) -> tuple[float, str]:
    """The number to print, and its prefix."""
    if unit == "ratio":
        return value / 0.01, ""
    if unit in ("ns/frame", "cycles/frame"):
        return value, ""
    prefixes = TIMES if unit in ("ns", "s") else COUNTS
    scale, i = (1e-9 if unit == "s" else 1.0), 0
    while i + 1 < len(prefixes) and abs(value) >= scale * 999.95:
        scale, i = scale * 1000, i + 1
    return value / scale, prefixes[i]


def _with(number: str, behind: str) -> str:
    return f"{number} {behind}" if behind else number


def number(value: float, unit: str) -> str:
    """With four or more digits, and its prefix: "1.235 M"."""
    scaled, prefix = _scaled(value, unit)
    if unit == "ratio":
        return f"{scaled:.3g}"
    size = abs(scaled)
    digits = 0 if size == 0 else 1 if size >= 100 else 2 if size >= 10 else 3
    return _with(f"{scaled:.{digits}f}", prefix)


def short(value: float, unit: str) -> str:
    """For an axis: "20 us"."""
    scaled, prefix = _scaled(value, unit)
    return _with(f"{scaled:.4g}", prefix)


def text(value: float, unit: str) -> str:
    """With the unit: "1.235 Mframes/s", "0.5 %"."""
    shown = number(value, unit)
    name = {"ratio": "%", "ns": "", "s": ""}.get(unit, unit)
    return shown + name if " " in shown else _with(shown, name)
