# SPDX-License-Identifier: BSD-3-Clause
"""No surprise calls: tokens that a folder may not use.

A line that has to break a rule says why in a comment that starts with
"style:" and names the token, on the line or the one above it.
"""
import re

import tree

LIBRARY = r"^(lib|drivers)/"
DATA_PATH = r"^(drivers/.*_[rt]x\.c|lib/ring/.*\.c)$"
CALL = r"\s*\("

# (what, where, where not, why)
RULES = [
    (rf"\b(?:v?f?printf|puts|putchar|perror|v?dprintf){CALL}", LIBRARY, None,
     "the library prints nothing; log through the context"),
    (rf"\b(?:exit|_exit|abort|quick_exit){CALL}", LIBRARY, None,
     "the library ends no program"),
    (rf"\b(?:getenv|secure_getenv){CALL}", LIBRARY, None,
     "configuration comes from the caller"),
    (rf"\b(?:signal|sigaction|sigprocmask|pthread_sigmask){CALL}", LIBRARY,
     None, "signals are the program's"),
    (rf"\b(?:pthread_create|fork|clone){CALL}", LIBRARY, r"^lib/worker/",
     "threads are the caller's"),
    (rf"\b(?:malloc|calloc|realloc|free|strdup|mmap|munmap){CALL}", DATA_PATH,
     None, "no memory is made on the data path"),
    (r"\bpthread_mutex_", r"^drivers/.*_[rt]x\.c$", None,
     "no lock on the data path"),
    (r"\bvolatile\b", r"^(lib|drivers|apps|test)/", r"^lib/base/|\.bpf\.[ch]$",
     "use atomics; volatile orders nothing"),
    (r"\batomic_thread_fence\b|\b__atomic_thread_fence\b|"
     r"\b__sync_synchronize\b", r"", r"^lib/base/",
     "order belongs on the atomic access"),
    (r"#\s*pragma\s+once", r"", None, "use include guards"),
    (r"\b(?:sprintf|strcpy|strcat|gets|strncpy)" + CALL, r"", r"^test/unit/",
     "has no bound, or a bound that lies; use snprintf()"),
    (r"\batoi\s*\(|\batol\s*\(", r"", None,
     "cannot tell 0 from an error; use strtoul()"),
    (r"(?ms)^BED_TEST\((?=\w+\)\n\{(?:(?!^\}).)*\bpthread_create\b)",
     r"^test/conformance/", None,
     "ThreadSanitizer's build has only tests with threads: BED_TEST_MT()"),
    (r"\bTODO\b|\bFIXME\b|\bXXX\b", r"", None,
     "an issue is where work is kept"),
]

# Calls that make an fd, and what makes it CLOEXEC.
CLOEXEC = {
    "open": "O_CLOEXEC", "openat": "O_CLOEXEC", "socket": "SOCK_CLOEXEC",
    "socketpair": "SOCK_CLOEXEC", "accept4": "SOCK_CLOEXEC",
    "memfd_create": "MFD_CLOEXEC", "eventfd": "EFD_CLOEXEC",
    "epoll_create1": "EPOLL_CLOEXEC", "timerfd_create": "TFD_CLOEXEC",
    "signalfd": "SFD_CLOEXEC", "pipe2": "O_CLOEXEC",
    "inotify_init1": "IN_CLOEXEC",
}
NEVER = {"epoll_create": "epoll_create1", "accept": "accept4",
         "pipe": "pipe2", "dup": "fcntl(F_DUPFD_CLOEXEC)",
         "inotify_init": "inotify_init1", "creat": "open"}


def excused(raw_lines, i, token):
    """Whether a "style:" comment on this line or above names the token."""
    token = re.match(r"\w+", token.strip("# ")).group(0)
    return any("style:" in line and token in line
               for line in raw_lines[max(0, i - 1):i + 1])


def check_rules(wrong, path, code, raw_lines):
    """Tokens that a folder may not use."""
    name = str(path)
    for pattern, where, where_not, why in RULES:
        if not re.search(where, name) or \
                (where_not and re.search(where_not, name)):
            continue
        # Left-over work hides in comments; everything else is code.
        text = "\n".join(raw_lines) if "TODO" in pattern else code
        for match in re.finditer(pattern, text):
            i = text.count("\n", 0, match.start())
            if not excused(raw_lines, i, match.group(0)):
                wrong.add(f"{path}:{i + 1}", f"{match.group(0).strip(' (')}: "
                          f"{why}")


def check_cloexec(wrong, path, code, raw_lines):
    """Calls that make an fd that a child would inherit."""
    if path.parts[0] == "test":  # its processes end with it
        return
    for match in re.finditer(r"(?<![\w.>])(\w+)\s*\(", code):
        call = match.group(1)
        i = code.count("\n", 0, match.start())
        if call in NEVER and not excused(raw_lines, i, call):
            wrong.add(f"{path}:{i + 1}", f"{call}: use {NEVER[call]}, for "
                      "CLOEXEC")
        if call not in CLOEXEC or excused(raw_lines, i, call):
            continue
        depth, end = 0, match.end() - 1
        while end < len(code):
            depth += {"(": 1, ")": -1}.get(code[end], 0)
            if depth == 0:
                break
            end += 1
        # The flags may be in a variable: look from the function's start.
        start = code.rfind("\n{", 0, match.start())
        if CLOEXEC[call] not in code[start:end]:
            wrong.add(f"{path}:{i + 1}", f"{call} without {CLOEXEC[call]}")
    for match in re.finditer(r"\bfopen\s*\(", "\n".join(raw_lines)):
        i = "\n".join(raw_lines).count("\n", 0, match.start())
        mode = re.search(r'fopen\s*\([^;]*,\s*"(\w+)"',
                         "\n".join(raw_lines[i:i + 3]))
        if path.parts[0] in ("lib", "drivers") and \
                not (mode and "e" in mode.group(1)):
            wrong.add(f"{path}:{i + 1}", 'fopen without "e" (CLOEXEC)')


@tree.check("files")
def main(wrong):
    paths = tree.files("*.c", "*.h")
    for path in paths:
        source = tree.text(path)
        code = tree.blank_strings(tree.blank_comments(source))
        raw_lines = source.splitlines()
        check_rules(wrong, path, code, raw_lines)
        check_cloexec(wrong, path, code, raw_lines)
    return len(paths)
