# SPDX-License-Identifier: BSD-3-Clause
"""The version of api.h is that of the crates, and CHANGES.md begins with it.

pkg-config, packages, the wheel and --version take theirs from api.h.
"""
import re

import tree

# What precedes the version in each file.
PLACES = {
    "CHANGES.md": r"## ",
    "bindings/rust/Cargo.toml": r'version = "',
    "bindings/rust/millrace/Cargo.toml": r'millrace-sys = {.* version = "',
    "bindings/rust/millrace-sys/build.rs": r"libmillrace-ffi >= ",
}


@tree.check("versions")
def main(wrong):
    version = ".".join(re.findall(r"#define MR_VERSION_\w+ (\d+)",
                                  tree.text("lib/include/millrace/api.h")))
    for place, before in PLACES.items():
        found = re.search(before + r"([\d.]+)", tree.text(place))
        if found is None or found[1] != version:
            wrong.add(place, f"{found and found[1]}, api.h has {version}")
    return len(PLACES)
