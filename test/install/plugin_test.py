# SPDX-License-Identifier: BSD-3-Clause
"""A driver built outside the library, against its headers and others: it works,
or it is refused by name.

usage: plugin_test.py FFI.so
"""
import ctypes
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
FFI = Path(sys.argv.pop())
N = 32


class Config(ctypes.Structure):
    """struct mr_port_config"""
    _fields_ = [("size", ctypes.c_uint32), ("n_workers", ctypes.c_uint32),
                ("pool", ctypes.c_void_p)]


def build(folder, edit):
    """Build drivers/null as a plug-in with driver.h edited, and load it."""
    subprocess.run(["cp", "-r", f"{TOP}/lib/include", folder], check=True)
    header = Path(folder, "include/millrace/driver.h")
    before = header.read_text()
    header.write_text(edit(before))
    assert edit is same or header.read_text() != before, "nothing was edited"
    source = Path(folder, "outside.c")
    text = (TOP / "drivers/null/null.c").read_text().replace(
        '.name = "null",', '.name = "outside", .version = MR_DRIVER_VERSION,'
        '.size = sizeof(struct mr_driver),')
    if "hand_over;" not in header.read_text():
        text = text.replace("\t.hand_over = &null_hand_over,\n", "")
    source.write_text(text)
    library = Path(folder, f"{edit.__name__}.so")  # each is loaded
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Werror",
                    "-Wno-unused-const-variable", "-O2",
                    f"-I{folder}/include", source, "-o", library,
                    f"-L{FFI.parent}", "-lmillrace"], check=True)
    return ctypes.CDLL(str(library)).mr_driver_null


def same(text):
    return text


def older(text):
    """driver.h without the members that were added last."""
    return re.sub(r"\n\t/\*\*(?:(?!\n\t/\*\*).)*port_queues\.h.*?\n\};", "\n};",
                  text, count=1, flags=re.S)


def newer(text):
    """driver.h with a member that this library does not know."""
    return re.sub(r"(\bint \(\*unsteer\).*?;\n)", r"\1\tint (*more)(void);\n",
                  text, flags=re.S)


def other(text):
    return re.sub(r"MR_DRIVER_VERSION = \d+", "MR_DRIVER_VERSION = 9", text)


class Plugin(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="mr-plugin-")
        self.addCleanup(self.folder.cleanup)
        self.ffi = ctypes.CDLL(str(FFI), ctypes.RTLD_GLOBAL)
        self.ffi.mr_port_rxq.restype = ctypes.c_void_p
        self.why = ctypes.create_string_buffer(384)
        self.ctx = ctypes.c_void_p()
        self.assertEqual(self.ffi.mr_ctx_create(
            None, ctypes.byref(self.ctx), self.why), 0)
        self.addCleanup(self.ffi.mr_ctx_destroy, self.ctx)

    def add(self, edit):
        """What mr_ctx_add_driver() returns."""
        driver = build(self.folder.name, edit)
        return self.ffi.mr_ctx_add_driver(
            self.ctx, ctypes.byref(ctypes.c_char.from_address(
                ctypes.cast(driver, ctypes.c_void_p).value)), self.why)

    def receive(self):
        """How many entries a port of the plug-in delivers."""
        pool, cache, port = (ctypes.c_void_p() for _ in range(3))
        self.assertEqual(self.ffi.mr_pool_create(
            self.ctx, None, ctypes.byref(pool), self.why), 0, self.why.value)
        self.assertEqual(self.ffi.mr_cache_create(
            pool, ctypes.byref(cache), self.why), 0, self.why.value)
        config = Config(ctypes.sizeof(Config), 0, pool)
        self.assertEqual(self.ffi.mr_port_open(
            self.ctx, b"outside:", ctypes.byref(config), ctypes.byref(port),
            self.why), 0, self.why.value)
        frames = ctypes.create_string_buffer(16 * N)
        rxq = ctypes.c_void_p(self.ffi.mr_port_rxq(port, 0))
        n = self.ffi.mr_rx_burst(rxq, cache, frames, N)
        # Those of experimental headers, which an older one lacks.
        self.ffi.mr_port_unsteer(port, 0, self.why)
        self.assertIn(b"outside:", self.why.value)
        self.ffi.mr_frame_free_bulk(cache, frames, n)
        self.ffi.mr_port_close(port)
        self.ffi.mr_cache_destroy(cache)
        self.assertEqual(self.ffi.mr_pool_destroy(pool, self.why), 0,
                         self.why.value)
        return n

    def test_a_driver_of_these_headers_works(self):
        self.assertEqual(self.add(same), 0, self.why.value)
        self.assertEqual(self.receive(), N)

    def test_one_of_older_headers_works(self):
        self.assertEqual(self.add(older), 0, self.why.value)
        self.assertEqual(self.receive(), N)

    def test_others_are_refused_by_name(self):
        for edit, what in ((other, b"driver outside has version 9"),
                           (newer, b"driver outside: its struct mr_driver")):
            with self.subTest(edit.__name__):
                self.assertLess(self.add(edit), 0)
                self.assertIn(what, self.why.value)


unittest.main()
