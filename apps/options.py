# SPDX-License-Identifier: BSD-3-Clause
r"""What --help says, as a section of a man page or for a shell's completion.

usage: options.py man PROGRAM PAGE.in
       options.py bash|zsh|fish PROGRAM

The table of options is the program's; --help prints it. In PAGE.in, a line
.\" OPTIONS COMMAND... becomes the list of those of the commands, or of the
program where it names none, that no list before it has. What follows a line
.\" --name before it is added to that option and goes on from its help. **Text**
is bold, *text* italic.

A program with an option --names prints with "list --names" the values of its
option --instance; completion asks it.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROW = re.compile(r"^  (?:-(\w), |    )--([\w-]+)(?: ([A-Z]\S*|\S+\|\S+))?(?:\n {25}| +)(\S.*)$",
                 re.M)
BOLD = re.compile(r"(?<![\w*-])\*\*(?=[^\s*])([^*]+)\*\*")
ITALIC = re.compile(r"(?:(?<=\\fR)|(?<![\w*-]))\*(?=[^\s*])([^*]+)\*")
NOTE = re.compile(r"^\.\\\" (OPTIONS.*|--[\w-]+)\n", re.M)


class Option(NamedTuple):
    """A row of the table."""

    letter: str
    name: str
    value: str  # "": it has none
    help: str

    def spellings(self) -> list[str]:
        """-c and --cores."""
        return ([f"-{self.letter}"] if self.letter else []) + [f"--{self.name}"]


def sentence(text: str) -> str:
    """Help as a sentence of a page."""
    return text[0].upper() + text[1:].replace("\\", "\\e") + "."


def help_of(*words: str) -> str:
    """What it prints."""
    return subprocess.run([*words, "--help"], capture_output=True, text=True,
                          check=True, timeout=60).stdout


def options_of(text: str) -> list[Option]:
    """Of what --help says."""
    return [Option(*match) for match in ROW.findall(text)]


def roff(page: str) -> str:
    """With its marks as requests for fonts. Bold words are to be typed."""
    page = BOLD.sub(lambda m: r"\fB" + m[1].replace("-", r"\-") + r"\fR", page)
    return ITALIC.sub(r"\\fI\1\\fR", page)


def man(path: str, page: str) -> str:
    """The page with its lists of options."""
    parts = NOTE.split(roff(page))
    text, notes, listed = parts[0], {}, set()
    for mark, more in zip(parts[1::2], parts[2::2]):
        if mark.startswith("--"):
            notes[mark] = more
            continue
        for option in [option for command in mark.split()[1:] or [""]
                       for option in options_of(help_of(path, *command.split()))]:
            if option.name in listed:
                continue
            listed.add(option.name)
            names = ", ".join(option.spellings()).replace("-", r"\-")
            value = rf" \fI{option.value}\fR" if option.value else ""
            text += f".TP\n\\fB{names}\\fR{value}\n{sentence(option.help)}\n"
            text += notes.pop(f"--{option.name}", "")
        if notes:
            sys.exit(f"no such options: {', '.join(sorted(notes))}")
        text += more
    return text


def asks(options: list[Option]) -> bool:
    """Whether the program knows the running instances."""
    return any(option.name == "names" for option in options)


def bash(program: str, options: list[Option], verbs: list[str]) -> str:
    """Words, or files."""
    words = [word for option in options for word in option.spellings()]
    if asks(options):
        return (f"_{program}() {{\n    local words=\"{' '.join(verbs + words)}\"\n"
                f"    case $3 in -n|--instance) words=$({program} list --names 2>/dev/null) ;; esac\n"
                f"    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$2\")\n}}\n"
                f"complete -o default -F _{program} {program}\n")
    return f"complete -o default -W '{' '.join(verbs + words)}' {program}\n"


def zsh(program: str, options: list[Option], verbs: list[str]) -> str:
    """Words with their help."""
    lines = [f"#compdef {program}", "_arguments -S \\"]
    for option in options:
        names = option.spellings()
        text = re.sub(r"([\[\]:'])", "", option.help)
        value = f":{option.value}:_files" if option.value else ""
        if option.name == "instance" and asks(options):
            value = f":{option.value}:{{_values name $({program} list --names 2>/dev/null)}}"
        spelled = "{" + ",".join(names) + "}" if len(names) > 1 else names[0]
        lines.append(f"  {spelled}'[{text}]{value}' \\")
    return "\n".join([*lines, f"  '*:word:({' '.join(verbs)})'\n"])


def fish(program: str, options: list[Option], verbs: list[str]) -> str:
    """The same."""
    lines = [f"complete -c {program} -n __fish_use_subcommand -a '{verb}'"
             for verb in verbs]
    for option in options:
        letter = f" -s {option.letter}" if option.letter else ""
        value = " -r" if option.value else ""
        if option.name == "instance" and asks(options):
            value = f" -x -a '({program} list --names 2>/dev/null)'"
        text = option.help.replace("'", "")
        lines.append(f"complete -c {program}{letter} -l {option.name}{value}"
                     f" -d '{text}'")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print it."""
    form, path, *page = sys.argv[1:]
    if form == "man":
        print(man(path, Path(page[0]).read_text("utf-8")), end="")
        return
    program, text = Path(path).name, help_of(path)
    usage = text.partition("\n\n")[0]
    verbs = list(dict.fromkeys(re.findall(
        rf"{program} (?:\[options\] )?\[?(?!options)([a-z]\w*)\b", usage)))
    print({"bash": bash, "zsh": zsh, "fish": fish}[form](
        program, options_of(text), verbs), end="")


main()
