# SPDX-License-Identifier: BSD-3-Clause
"""JSON schemas, from a notation that lists the members of an object once.

usage: schema.py FILE...      (the result is on stdout)

Of several files, objects and lists are merged. Then, in place of a schema:
    "TYPE"              the type, or the definition of that name
    [SCHEMA, "TEXT"]    SCHEMA with a description
    {"members": {...}}  an object of these members and no others; "NAME?" is optional
"""

import json
import sys
from functools import reduce
from pathlib import Path
from typing import Any

TYPES = ("boolean", "integer", "null", "number", "object", "string")
# Keys with one schema, with schemas by name, and with a list of them.
ONE, NAMED, LISTED = ("additionalProperties", "items"), ("definitions", "properties"), ("oneOf",)


def merge(common: Any, own: Any) -> Any:
    """Objects and lists of both; else what is the program's own."""
    if isinstance(common, dict):
        return common | {key: merge(common[key], value) if key in common else value
                         for key, value in own.items()}
    return common + own if isinstance(common, list) else own


def expand(schema: Any) -> Any:
    """A schema without the notation."""
    if isinstance(schema, str):
        return {"type": schema} if schema in TYPES else {"$ref": f"#/definitions/{schema}"}
    if isinstance(schema, list):
        return {"description": schema[1]} | expand(schema[0])
    if not isinstance(schema, dict):
        return schema
    if "members" in schema:
        members = schema["members"]
        schema = {key: value for key, value in schema.items() if key != "members"} | {
            "type": "object", "required": [name for name in members if name[-1] != "?"],
            "properties": {name.rstrip("?"): one for name, one in members.items()},
            "additionalProperties": False}
    for key, value in schema.items():
        if key in LISTED or (key == "items" and isinstance(value, list)):
            schema = schema | {key: [expand(one) for one in value]}
        elif key in ONE:
            schema = schema | {key: expand(value)}
        elif key in NAMED:
            schema = schema | {key: {name: expand(one) for name, one in value.items()}}
    return schema


if __name__ == "__main__":
    files = [json.loads(Path(name).read_text("utf-8")) for name in sys.argv[1:]]
    print(json.dumps(expand(reduce(merge, files)), indent=2))
