# SPDX-License-Identifier: BSD-3-Clause
"""The table of drivers and kernels of drivers/xdp/device/known.c, as JSON.

usage: known.py device/known.c
"""

import json
import re
import sys
from pathlib import Path

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{},]|\w+')

text = re.sub(r"/\*.*?\*/", "", Path(sys.argv[1]).read_text("utf-8"), flags=re.DOTALL)
# A kernel's version is a list; 0, for none, is an empty one.
text = re.sub(r"XDP_LINUX\((\w+), (\w+), (\w+)\)", r"{v\1,v\2,v\3}", text)
tokens = TOKEN.findall(text.partition("rows[] = {")[2].partition("\n};")[0])
spelled = [
    {"{": "[", "}": "]", "0": "[]"}.get(
        t, f'"{t}"' if t.startswith("XDP_") else t.removeprefix("v")
    )
    for t in tokens
]
json.dump(json.loads(f"[{''.join(spelled)}]".replace(",]", "]")), sys.stdout)
