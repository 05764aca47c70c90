# SPDX-License-Identifier: BSD-3-Clause
"""Build the package for the libmillrace that pkg-config finds: pip install .

meson builds the same for the libmillrace of its tree; ./mr package wheel makes
wheels that bring the library along.
"""

import subprocess
from pathlib import Path

from setuptools import Extension, setup


def pkg_config(option: str) -> list[str]:
    command = ["pkg-config", option, "libmillrace"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


setup(
    version=pkg_config("--modversion")[0],
    ext_modules=[
        Extension(
            "millrace._millrace",
            sorted(map(str, Path("src").glob("*.c"))),
            define_macros=[("Py_LIMITED_API", "0x030b0000")],
            extra_compile_args=["-std=gnu11", "-fvisibility=hidden", *pkg_config("--cflags")],
            extra_link_args=pkg_config("--libs"),
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
