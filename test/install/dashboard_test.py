# SPDX-License-Identifier: BSD-3-Clause
"""Prometheus scrapes mr-l2fwd and mr-nat, and answers each query of the Grafana
dashboard from what it scraped.

usage: dashboard_test.py BUILD

A Prometheus that is not installed is unpacked from Debian's package, into the
cache of the guests, since an installed one would run as a service.
"""
import ctypes
import http
import json
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import ExitStack
from pathlib import Path

sys.dont_write_bytecode = True
TEST = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TEST / "support"), str(TEST / "guest")]

import fetch  # noqa: E402 pylint: disable=wrong-import-position
from host import limit  # noqa: E402 pylint: disable=wrong-import-position

CLONE_NEWNET = 0x40000000
LINKS = """link set lo up
link add h0 type veth peer name p0
link add h1 type veth peer name p1
"""
DASHBOARD = TEST.parent / "config/grafana/millrace.json"
CONFIG = """global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: millrace
    static_configs: [{{targets: {targets}}}]
"""


def tools():
    """Paths of prometheus and promtool."""
    names = "prometheus", "promtool"
    found = [shutil.which(name) for name in names]
    return found if all(found) else [
        fetch.Cache().unpacked("prometheus") / "usr/bin" / name
        for name in names]


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}",
                                timeout=limit(10)) as answer:
        return answer.read()


def queries():
    """A query with variables replaced; drops include those that are 0."""
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            yield target["expr"].replace("$__rate_interval", "1m").replace(
                "$instance", ".*").removesuffix(" > 0")


def is_answered(port, query):
    words = urllib.parse.urlencode({"query": query})
    try:
        answer = json.loads(get(port, f"/api/v1/query?{words}"))
    except urllib.error.HTTPError as error:
        if error.code == http.HTTPStatus.SERVICE_UNAVAILABLE:
            return False  # it reads its data
        sys.exit(f"{query}: {error.read().decode()}")
    except OSError:
        return False  # it is starting
    return bool(answer["data"]["result"])


def await_answers(port):
    """A rate needs two scrapes."""
    open_, end_s = list(queries()), time.monotonic() + limit(30)
    n = len(open_)
    while open_:
        if time.monotonic() > end_s:
            sys.exit("no data for: " + "; ".join(open_))
        open_ = [query for query in open_ if not is_answered(port, query)]
        time.sleep(0.2)
    return n


def main():
    try:
        prometheus, promtool = tools()
    except fetch.Missing as why:
        print(f"skipped: {why}")
        return 77
    if ctypes.CDLL(None).unshare(CLONE_NEWNET) != 0:
        print("skipped: needs root, for a network namespace")
        return 77
    subprocess.run(["ip", "-batch", "-"], input=LINKS, text=True, check=True)
    build = Path(sys.argv[1])
    l2fwd, nat, server = 9101, 9102, 9090
    with tempfile.TemporaryDirectory(prefix="mr-dashboard-") as folder, \
            ExitStack() as stack:
        config = Path(folder) / "prometheus.yml"
        config.write_text(CONFIG.format(targets=json.dumps(
            [f"127.0.0.1:{port}" for port in (l2fwd, nat)])))
        for command in (
                [build / "apps/l2fwd/mr-l2fwd", "--quiet", "--mode", "learn",
                 "--metrics", f"tcp:127.0.0.1:{l2fwd}", "--control",
                 f"{folder}/l2fwd.sock", "xdp:p0", "xdp:p1"],
                [build / "apps/nat/mr-nat", "--quiet", "--cores", "1",
                 "--inside", "null:=10.0.0.1/24",
                 "--outside", "null:=192.0.2.1/24,gw=192.0.2.254",
                 "--metrics", f"tcp:127.0.0.1:{nat}", "--control",
                 f"{folder}/nat.sock"],
                [prometheus, f"--config.file={config}",
                 f"--storage.tsdb.path={folder}/data", "--log.level=error",
                 f"--web.listen-address=127.0.0.1:{server}"]):
            process = stack.enter_context(subprocess.Popen(
                command, stdout=subprocess.DEVNULL))
            stack.callback(process.terminate)
        print(await_answers(server), "queries have data")
        for port in l2fwd, nat:
            done = subprocess.run(
                [promtool, "check", "metrics"], input=get(port, "/metrics"),
                capture_output=True, check=False, timeout=limit(30))
            assert (done.returncode, done.stdout + done.stderr) == (0, b"")
    return 0


if __name__ == "__main__":
    sys.exit(main())
