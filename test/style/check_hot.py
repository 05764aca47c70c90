# SPDX-License-Identifier: BSD-3-Clause
"""The hot path of the linked library: no lock, no futex, no system call.

usage: check_hot.py LIBRARY.so

What allocating, freeing and completing reach is disassembled. FAST serves from
the caller's cache, and has no atomic instruction either. The rest meets the
depot, with compare-and-swap. It may leave at EXITS alone, which run when cache
and depot cannot serve.
"""
import re
import shutil
import subprocess
import sys

import tree

ROOTS = ("mr_frag_alloc_bulk", "mr_frag_free_bulk", "mr_frame_free_bulk",
         "mr_cache_flush", "mr_obj_alloc_bulk", "mr_obj_free_bulk",
         "mr_frag_cache_alloc", "mr_frag_cache_alloc_bulk",
         "mr_frag_cache_alloc_prepare", "mr_frag_cache_probe",
         "mr_frag_cache_commit", "mr_frag_cache_commit_noref",
         "mr_frag_cache_abort", "mr_frag_cache_abort_ref",
         "mr_frag_cache_drain", "mri_cache_alloc_pages", "mri_cache_put")
FAST = ("mr_frag_alloc_bulk", "mr_frag_free_bulk", "mr_frame_free_bulk",
        "alloc_wide", "free_addrs", "free_wide", "free_frames")
# The entries to the page allocator, the cold tier: it serves from under a lock,
# and is met for whole magazines or blocks, where the depot has nothing left or
# no place. The walk stops at them, so a lock anywhere else is reached.
EXITS = {"mri_page_take_bulk", "mri_page_back_bulk", "mri_page_alloc_blocks",
         "mri_pool_put_pages", "mri_block_reclaim", "mri_pool_grow_if_empty"}
# All that is left of mri_lock_take() where it is inlined.
LOCK = "mri_lock_wait"
# The members of a pool's table of checks that a function calls. ROOTS has those
# functions in the table of an unchecked pool that do something.
BY_TABLE = {"mr_frag_alloc_bulk": {"alloc"}, "alloc_other": {"alloc"},
            "mri_block_fetch_page": {"alloc"}, "mri_cache_put": {"free"},
            "free_not_simple": {"free"}, "put_one": {"page_in", "invalid"},
            "mri_block_start": {"out"}, "mri_block_restart": {"again"},
            "mri_block_back": {"page_in", "in"}}
# Its call is all that it does with a pool, and shows where a pool has the table.
SHOWS_TABLE = "free_not_simple"
# Small loops that the C library has without any system call.
PLAIN = {"memcpy", "memmove", "memset", "__stack_chk_fail"}
ATOMIC = re.compile(r"\block\b|\bxchg\b.*\(")
SYSTEM = re.compile(r"\b(syscall|sysenter|int\s+\$0x80)\b")
CALL = re.compile(r"\b(?:call|jmp|j[a-z]+)\s+([0-9a-f]+) <([^>+]+)>")
INDIRECT = re.compile(r"\b(?:call|jmp)\s+\*(.+)")
PLACE = re.compile(r"(?:0x([0-9a-f]+))?\((%\w+)\)$")


def disassemble(library):
    """Name and instructions by address: two files may have a refill()."""
    done = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", library],
        capture_output=True, text=True, check=True)
    functions, lines = {}, None
    # mold calls the entries of the PLT otherwise.
    for line in done.stdout.replace("$plt", "@plt").splitlines():
        head = re.match(r"([0-9a-f]+) <(.+)>:$", line)
        if head:
            lines = []
            functions[int(head.group(1), 16)] = (head.group(2), lines)
        elif lines is not None and "\t" in line:
            lines.append(line.split("\t", 1)[1].strip())
    return functions


def base(name):
    """The function's name in the source, without gcc's .part.0 and so on."""
    return name.split(".")[0].split("@")[0]


def place_of(lines, operand):
    """(offset, register) of the memory that an operand was loaded from, and
    the lines before that; None if it is no load."""
    if operand.startswith("%"):
        written = [i for i, line in enumerate(lines)
                   if line.endswith("," + operand)
                   and not line.startswith(("cmp", "test"))]
        if not written or not lines[written[-1]].startswith("mov "):
            return None
        operand = lines[written[-1]].split()[1].removesuffix("," + operand)
        lines = lines[:written[-1]]
    match = PLACE.match(operand)
    return match and (int(match[1] or "0", 16), match[2], lines)


def table_call(lines, operand):
    """(offset in a pool, offset in the table there) of an indirect call's
    target, called after the lines; None if it comes from elsewhere."""
    member = place_of(lines, operand)
    table = member and place_of(member[2], member[1])
    return table and (table[0], member[0])


def table_of_checks(functions):
    """The target of each call through the table, as table_call() has it, and
    the name of the table's member."""
    struct = re.search(r"^struct mri_checks \{\n(.*?)^\};", tree.text(
        "lib/pool/pool.h"), re.M | re.S)[1]
    lines, = (lines for name, lines in functions.values()
              if base(name) == SHOWS_TABLE)
    at, = (table_call(lines[:i], INDIRECT.search(line)[1])[0]
           for i, line in enumerate(lines) if INDIRECT.search(line))
    return {(at, 8 * i): name for i, name in enumerate(
        re.findall(r"\(\*(\w+)\)\(", struct))}


def look(functions, address, table, wrong):
    """Complain about a function; where it goes on to."""
    name, lines = functions[address]
    reached = set()
    for i, line in enumerate(lines):
        if SYSTEM.search(line):
            wrong.add(name, f"system call: {line}")
        match = INDIRECT.search(line)
        if match and table.get(table_call(lines[:i], match[1])) not in \
                BY_TABLE.get(base(name), ()):
            wrong.add(name, f"calls nobody knows what: {line}")
        if base(name) in FAST and ATOMIC.search(line):
            wrong.add(name, f"atomic instruction: {line}")
        match = CALL.search(line)
        if match and base(match.group(2)) == LOCK:
            wrong.add(name, "takes a lock")
            continue
        if not match or base(match.group(2)) in EXITS:
            continue
        if not match.group(2).endswith(("@plt", "$plt")):
            reached.add(int(match.group(1), 16))
        elif base(match.group(2)) not in PLAIN:
            wrong.add(name, f"calls {match.group(2)}")
    return reached


@tree.check("functions")
def main(wrong):
    library = sys.argv[1]
    if shutil.which("objdump") is None:
        tree.skip("objdump is missing: apt install binutils")
    functions = disassemble(library)
    names = subprocess.run(["nm", "-D", library], capture_output=True,
                           text=True, check=True).stdout
    roots = [a for a, (name, _) in functions.items() if name in ROOTS]
    if "%rdi" not in str(functions[roots[0]]) or "__tsan" in names or \
            "__asan" in names or "__gcov" in names:
        tree.skip("instrumented, or not x86-64: its code differs")
    table = table_of_checks(functions)
    seen, queue = set(), roots
    while queue:
        address = queue.pop()
        if address not in seen:
            seen.add(address)
            queue += look(functions, address, table, wrong)
    reached = {base(functions[address][0]) for address in seen}
    # A look that reaches nothing finds nothing: these must be there.
    for name in (*ROOTS, "refill", "make_room", "mri_stack_pop", "mri_stack_push",
                 "mri_outbox_put"):
        if name not in reached:
            wrong.add("lib/pool", f"{name} is not reached any more; has it "
                      "another name?")
    print("looked at:", *sorted(reached))
    return len(seen)
