# SPDX-License-Identifier: BSD-3-Clause
"""The command line of mrctl."""

import json
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from mr_ctl import capture, settings, show, trace, watch
from mr_ctl.client import Connection, Object, Refused, connect, running
from mr_support import program
from mr_support.options import Option, Wrong, parse
from mr_support.text import print_error

USAGE = f"""\
usage: mrctl [options] list
       mrctl [options] show WHAT
       mrctl [options] watch
       mrctl [options] set log_level|idle VALUE
       mrctl [options] capture PORT|drops
       mrctl [options] trace [PORT]
       mrctl [options] plan FILE
       mrctl [options] apply FILE
       mrctl [options] dump
       mrctl [options] upgrade
       mrctl [options] nat sessions [FILTER]
       mrctl [options] nat clear FILTER|all
       mrctl [options] nat neighbours [flush [ADDRESS]]
       mrctl [options] l2 fdb
Inspect and control a running mr-l2fwd or mr-nat. If several are running, -n
says which. WHAT is {", ".join(show.SECTIONS)}.
"""
OPTIONS = [
    Option("instance", "NAME", "ask this instance (mrctl list)", letter="n"),
    Option("control", "PATH", "ask the program with this control socket"),
    Option("json", "", "print JSON, one object per line", letter="j"),
    Option("names", "", "list: print only the instances' names"),
    Option("now", "", "nat clear: also release ports in hold-down"),
    Option("interval", "S", "watch: seconds between updates, to 50 (default 1)"),
    Option("count", "N", "watch, capture, trace: end after N updates or frames"),
    Option("filter", "EXPR", "capture, trace: only frames that match (pcap-filter(7))"),
    Option("write", "FILE", "capture: write pcapng; - is standard output"),
    Option("snap", "N", "capture: N bytes of each frame (default all)"),
    Option("binary", "PATH", "upgrade: the file to run (default: the program's path)"),
    Option("sort", "BY", "watch: sort ports by name, rx, tx or drops"),
]
START_S = 45  # for the new program; it has 30 to start
Given = dict[str, list[str]]


def print_json(objects: list[Any]) -> None:
    for one in objects:
        print(json.dumps(one, separators=(",", ":"), ensure_ascii=False))


def _print(given: Given, objects: list[Any], print_it: Callable[[], None]) -> int:
    """Objects as JSON or for people."""
    if "json" in given:
        print_json(objects)
    else:
        print_it()
    return 0


def _show(connection: Connection, given: Given, words: list[str]) -> int:
    """One section of the statistics, or the configuration."""
    what = words[0] if words else "stats"
    if what not in show.SECTIONS:
        raise Wrong(f"show: '{what}' is not one of: {', '.join(show.SECTIONS)}")
    found = connection.ask_one("config" if what == "config" else "stats")
    if what == "stats":
        found |= show.sums(found)
    print_it, member = show.SECTIONS[what]
    if "json" not in given:
        print_it(found)
    elif what == "drops":
        print_json(
            [
                {"where": where, "reason": reason, "frames": n}
                for (where, reason), n in show.drops(found).items()
            ]
        )
    else:
        part = found[member] if member else found
        print_json(part if isinstance(part, list) else [part])
    return 0


def _set(connection: Connection, given: Given, words: list[str]) -> int:
    del given
    list(connection.ask("set", **{words[0]: words[1]}))
    return 0


def _plan(connection: Connection, given: Given, words: list[str]) -> int:
    changes, _ = settings.ask(connection, "plan", words[0])
    lines = [f"{settings.change_line(change)}\n" for change in changes]
    _print(given, changes, lambda: print("".join(lines), end=""))
    n_fixed = sum(change["restart"] for change in changes)
    if n_fixed > 0:
        raise Refused(
            f"{n_fixed} of {len(changes)} changes need a restart, so apply would refuse them"
        )
    return 0


def _apply(connection: Connection, given: Given, words: list[str]) -> int:
    _, end = settings.ask(connection, "apply", words[0])
    return _print(given, [end], lambda: print(f"{end['changes']} changed"))


def _dump(connection: Connection, given: Given, words: list[str]) -> int:
    del words
    found = connection.ask_one("dump")["settings"]
    return _print(given, [found], lambda: print("\n".join(settings.document(found))))


def _upgrade(connection: Connection, given: Given, words: list[str]) -> int:
    del words
    args = {}
    if "binary" in given:
        args["binary"] = os.path.abspath(given["binary"][-1])
    (end,) = connection.ask("upgrade", START_S, **args)
    return _print(
        given,
        [end],
        lambda: print(f"process {end['pid']} goes on after {end['gap_us'] / 1000:.1f} ms"),
    )


def _sessions(connection: Connection, given: Given, words: list[str]) -> int:
    args = {"filter": words[0]} if words else {}
    *sessions, _ = connection.ask("nat sessions", **args)
    return _print(given, sessions, lambda: show.print_sessions(sessions))


def _clear(connection: Connection, given: Given, words: list[str]) -> int:
    end = list(connection.ask("nat clear", filter=words[0], now="now" in given))[-1]
    _print(given, [end], lambda: print(f"{end['cleared']} ended"))
    if not end.get("saved", True):
        print_error(
            "mrctl: the state file could not be written: after a crash these sessions may return"
        )
    return 0


def _neighbours(connection: Connection, given: Given, words: list[str]) -> int:
    if words and words[0] != "flush":
        raise Wrong(f"nat neighbours: '{words[0]}' is not flush")
    if words:
        args = {"address": words[1]} if len(words) > 1 else {}
        (end,) = connection.ask("nat neighbours flush", **args)
        return _print(given, [end], lambda: print(f"{end['cleared']} forgotten"))
    *found, _ = connection.ask("nat neighbours")
    return _print(given, found, lambda: show.print_neighbours(found))


def _fdb(connection: Connection, given: Given, words: list[str]) -> int:
    del words
    *entries, _ = connection.ask("l2 fdb")
    return _print(given, entries, lambda: show.print_fdb(entries))


def _watch(connection: Connection, given: Given, words: list[str]) -> int:
    del words
    return watch.run(
        connection,
        watch.Wanted(
            interval_s=_interval_s(given),
            n_updates=_count(given),
            is_json="json" in given,
            sort=given.get("sort", ["name"])[-1],
        ),
    )


def _wanted(given: Given, words: list[str]) -> Object:
    wanted: Object = {"filter": given["filter"][-1]} if "filter" in given else {}
    if n_frames := _count(given):
        wanted["count"] = n_frames
    if words:
        wanted["port"] = words[0]
    return wanted


def _capture(connection: Connection, given: Given, words: list[str]) -> int:
    wanted = _wanted(given, words)
    if words[0] == "drops":
        del wanted["port"]
        wanted["drops"] = True
    if "snap" in given:
        wanted["snap"] = _whole("snap", given["snap"][-1])
    print_it = (lambda line: print_json([line])) if "json" in given else None
    return capture.run(connection, wanted, given.get("write", [None])[-1], print_it)


def _trace(connection: Connection, given: Given, words: list[str]) -> int:
    def print_object(number: int, path: trace.Path) -> None:
        print_json([trace.as_object(number, path)])

    print_it = print_object if "json" in given else trace.print_path
    return trace.run(connection, _wanted(given, words), print_it, _count(given))


def _interval_s(given: Given) -> float:
    """Shorter than the 60 s after which a program hangs up."""
    text = given.get("interval", ["1"])[-1]
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0.1 <= value <= 50:
        raise Wrong(f"--interval: '{text}' is not a number from 0.1 to 50")
    return value


def _whole(option: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) == 0:
        raise Wrong(f"--{option}: '{text}' is not a whole number above 0")
    return int(text)


def _count(given: Given) -> int:
    """0: no end."""
    return _whole("count", given["count"][-1]) if "count" in given else 0


class Verb(NamedTuple):
    """A verb: the number of words after it, and its options."""

    run: Callable[[Connection, Given, list[str]], int]
    n_least: int = 0
    n_most: int = 0
    lacks: str = ""
    options: tuple[str, ...] = ("json",)


VERBS = {
    ("show",): Verb(_show, 0, 1),
    ("watch",): Verb(_watch, options=("json", "interval", "count", "sort")),
    ("set",): Verb(_set, 2, 2, "needs a name and a value, as in: mrctl set log_level debug", ()),
    ("capture",): Verb(
        _capture,
        1,
        1,
        "needs a port, or drops",
        ("json", "count", "filter", "write", "snap"),
    ),
    ("trace",): Verb(_trace, 0, 1, options=("json", "count", "filter")),
    ("plan",): Verb(_plan, 1, 1, "needs a file"),
    ("apply",): Verb(_apply, 1, 1, "needs a file"),
    ("dump",): Verb(_dump),
    ("upgrade",): Verb(_upgrade, options=("json", "binary")),
    ("nat", "sessions"): Verb(_sessions, 0, 1),
    ("nat", "clear"): Verb(_clear, 1, 1, "needs a filter, or all", ("json", "now")),
    ("nat", "neighbours"): Verb(_neighbours, 0, 2),
    ("l2", "fdb"): Verb(_fdb),
}


def _find(words: list[str]) -> tuple[tuple[str, ...], list[str]]:
    """The verb, and the words after it. Raises Wrong."""
    for n in (2, 1):
        if tuple(words[:n]) in VERBS:
            return tuple(words[:n]), words[n:]
    n_words = 2 if words[0] in {key[0] for key in VERBS} else 1
    verbs = ", ".join(" ".join(key) for key in VERBS)
    raise Wrong(f"no verb '{' '.join(words[:n_words])}'; there are: list, {verbs}")


def _list(given: Given) -> int:
    found: list[Object] = list(running())
    if "json" in given:
        print_json(found)
    elif "names" in given:
        for one in found:
            print(one["instance"])
    elif found:
        show.print_list(found)
    else:
        print_error("mrctl: nothing is running")
    return 0


def _check_options(verb: str, given: Given, known: tuple[str, ...]) -> None:
    """Raises Wrong if an option is not known to the verb."""
    for option in given:
        if option not in known:
            raise Wrong(f"--{option} cannot be used with {verb}")


def _run(words: list[str]) -> int:
    parsed = parse(words, USAGE, OPTIONS)
    if parsed is None:
        return 0
    given, rest = parsed
    if not rest:
        raise Wrong("no verb; see mrctl --help")
    if rest == ["list"]:
        _check_options("list", given, ("json", "names"))
        return _list(given)
    key, words = _find(rest)
    verb, name = VERBS[key], " ".join(key)
    if len(words) < verb.n_least:
        raise Wrong(f"{name}: {verb.lacks}")
    if len(words) > verb.n_most:
        raise Wrong(f"{name}: unexpected word '{words[verb.n_most]}'")
    _check_options(name, given, ("instance", "control", *verb.options))
    if "instance" in given and "control" in given:
        raise Wrong("--instance does not go with --control")
    connection = connect(given.get("instance", [None])[-1], given.get("control", [None])[-1])
    try:
        return verb.run(connection, given, words)
    finally:
        connection.close()


def run(words: list[str]) -> int:
    """Run a command line without the program's name; return the exit status."""
    try:
        return _run(words)
    except Wrong as wrong:
        print_error(f"mrctl: {wrong}")
        return 2
    except Refused as refused:
        print_error(f"mrctl: {refused}")
        return 1
    except KeyError as member:
        print_error(f"mrctl: the answer has no {member}; use the mrctl of the program's version")
        return 1


def main() -> None:
    program.start("mrctl", run)
