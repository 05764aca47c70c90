# SPDX-License-Identifier: BSD-3-Clause
"""A browser without a window, steered over a pipe: Chromium's own protocol.

Messages are JSON with a NUL behind each, on the file descriptors 3 and 4.
"""
import json
import os
import select
import shutil
import subprocess
import time

from host import limit

NAMES = ("chromium", "chromium-browser", "google-chrome")
WAIT_S = limit(30)


def find():
    """The path of a browser, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page in a browser. Everything that it wanted to fetch is in
    requests, and what it complained of in complaints."""

    def __init__(self, profile):
        to_us, from_it = os.pipe()
        to_it, from_us = os.pipe()
        self.out, self.into = from_us, to_us
        self.rest, self.last_id, self.session = b"", 0, None
        self.events, self.requests, self.complaints = [], [], []

        def become_3_and_4():
            # By way of high numbers: either may be 3 or 4 already.
            for fd, high in ((to_it, 103), (from_it, 104)):
                os.dup2(fd, high)
            os.dup2(103, 3)
            os.dup2(104, 4)

        self.process = subprocess.Popen(
            # As root a sandbox of its own is not to be had.
            [find(), "--headless", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
             "--disable-background-networking", "--remote-debugging-pipe",
             f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=become_3_and_4, close_fds=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_it)
        os.close(from_it)
        target = self.ask("Target.createTarget",
                          url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target,
                                flatten=True)["sessionId"]
        for domain in ("Page", "Log", "Network", "Runtime"):
            self.ask(f"{domain}.enable")

    def _next(self, deadline):
        while b"\0" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.into], [], [], left)[0]:
                raise TimeoutError("the browser says nothing")
            read = os.read(self.into, 1 << 20)
            if not read:
                raise EOFError("the browser is gone")
            self.rest += read
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def _note(self, message):
        """Keep what is of interest of an event."""
        method, more = message.get("method"), message.get("params", {})
        self.events.append(method)
        if method == "Network.requestWillBeSent":
            self.requests.append(more["request"]["url"])
        elif method == "Log.entryAdded":
            self.complaints.append(more["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(more["exceptionDetails"]))

    def ask(self, method, **parameters):
        """Call a method, and return its result."""
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + WAIT_S
        while True:
            answer = self._next(deadline)
            if answer.get("id") == self.last_id:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self._note(answer)

    def open(self, url):
        self.events.clear()
        self.ask("Page.navigate", url=url)
        deadline = time.monotonic() + WAIT_S
        while "Page.loadEventFired" not in self.events:
            self._note(self._next(deadline))

    def value(self, expression):
        """What an expression comes to, in the page."""
        answer = self.ask("Runtime.evaluate", expression=expression,
                          returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def resize(self, width, height=900):
        self.ask("Emulation.setDeviceMetricsOverride", width=width,
                 height=height, deviceScaleFactor=1, mobile=False)

    def media(self, media="", scheme="light"):
        """"print" or "", and the colours that the reader likes."""
        self.ask("Emulation.setEmulatedMedia", media=media, features=[
            {"name": "prefers-color-scheme", "value": scheme}])

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.into)
