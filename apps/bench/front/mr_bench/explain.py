# SPDX-License-Identifier: BSD-3-Clause
"""Where frames were last seen: one line, cause and cure; and what late ones waited for."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ends:
    """The first port that sends, and the first that receives. Empty: none does."""

    sender: str = ""
    receiver: str = ""
    is_stamped: bool = True
    is_live: bool = False  # it has no queue where frames could stay

    @property
    def knows_losses(self) -> bool:
        """Where the frames that are sent here are expected back, and known again."""
        return bool(self.sender and self.receiver and self.is_stamped)


def is_silent(trial: dict[str, Any], ends: Ends) -> bool:
    """Nothing came of what should have: of the frames that are sent here, or, where none are, of
    any."""
    if not ends.receiver or (ends.sender and trial["tx"]["sent"] == 0):
        return False
    return bool(trial["rx"]["unique" if ends.knows_losses else "received"] == 0)


def _is_cause(trial: dict[str, Any], n: int, ends: Ends) -> bool:
    """A counter explains a loss if it has at least half of it. Where nobody knows how many were
    lost, one frame of a thousand is worth a line."""
    lost = trial["rx"]["lost"]
    if ends.knows_losses:
        return bool(lost > 0 and n >= lost - lost // 2)
    return n > 0 and n >= (trial["tx"]["sent"] + trial["rx"]["received"]) // 1000


def _is_loss_of_arrivals(drop: dict[str, Any]) -> bool:
    """Whether a receiving port dropped frames that had left the sender. A device's counters have
    both directions; frames that its sender dropped never left."""
    return bool(drop["is_receivers"] and drop["side"] != "tx" and drop["name"][:2] != "tx")


def _explain_nothing(trial: dict[str, Any], n_pending: int, ends: Ends) -> str:
    sent, foreign = trial["tx"]["sent"], trial["rx"]["foreign"]
    # Other programs always send a few.
    if foreign > sent // 2:
        return (
            f"none of the {sent} frames came back as sent, but {ends.receiver} received {foreign} "
            "without our stamp: the device rewrites the end of frames, or others sent them"
        )
    if not ends.is_live and n_pending >= sent:
        return f"{ends.sender} took {sent} frames and sent none: the device does not transmit"
    return (
        f"{sent - n_pending} frames left {ends.sender} and none reached {ends.receiver}, which "
        "counts no loss: there is no path between them, or the device forwards nothing "
        "(--dst-mac sets the destination)"
    )


def explain(trial: dict[str, Any], drops: list[dict[str, Any]], n_pending: int, ends: Ends) -> str:
    """The line on a trial in which frames were lost or none came, by the ports' counters; empty:
    nothing to say. n_pending: frames that the queues were given and did not send."""
    # The largest that a port counted, if it explains what is missing.
    worst = max(filter(_is_loss_of_arrivals, drops), key=lambda d: int(d["n"]), default=None)
    if worst is not None and _is_cause(trial, worst["n"], ends):
        port, n, name = worst["port"], worst["n"], worst["name"]
        return (
            f"the receiver was slower than the sender: {port} dropped {n} frames ({name}); "
            "more --workers or --queues, or a longer --ring"
        )
    if not is_silent(trial, ends):
        return ""
    if not ends.sender:  # another program sends
        return (
            f"{ends.receiver} received nothing in {trial['whole_s']:.3g} s: is the sender "
            "running, and are its frames for this port (--dst-mac of tx)?"
        )
    return _explain_nothing(trial, n_pending, ends)


def tail_text(tail: dict[str, int], least_ns: int) -> str:
    """Two lines that explain the highest percentiles. least_ns: shorter latencies are not in
    late_ns; 0: all are."""

    def share(*keys: str) -> str:
        return f"{100 * sum(tail[key] for key in keys) / tail['late_ns']:.0f} %"

    text = ""
    if tail["late_ns"]:
        text = (
            f"{f'{least_ns / 1e3:.1f} us' if least_ns else 'p99.9'} and longer: "
            f"{share('waited_ns', 'still_ns', 'called_ns')} of the time the tester was away "
            f"({share('waited_ns')} waiting for a core, {share('still_ns')} stopped by the host, "
            f"{share('called_ns')} in calls)\n"
        )
    return text + (
        f"longest between two polls: {tail['tx_away_ns'] / 1e3:.1f} us sending, "
        f"{tail['rx_away_ns'] / 1e3:.1f} us receiving; in all {tail['all_waited_ns'] / 1e6:.1f} ms "
        f"waiting for cores, {tail['all_still_ns'] / 1e6:.1f} ms stopped by the host\n"
    )
