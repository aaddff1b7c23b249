"""Runs samara at a terminal and draws what it printed as SVG.

    cargo build --release && python3 assets/pictures/make.py target/release/samara

Everything in the picture is the output of these commands; long lines are wrapped. Standard library only, Unix only.
"""

import html
import os
import pathlib
import pty
import re
import shlex
import subprocess
import sys

COLUMNS, LINE_HEIGHT, CHARACTER_WIDTH, MARGIN, TOP = 92, 19, 8.43, 20, 44
COMMANDS = [
    'samara generate --prompt "Once upon a time" --seed 7 --max-tokens 120',
    "samara inspect",
]
STYLES = {"\x1b[0m": "plain", "\x1b[2m": "dim"}


def run(binary: str, command: str) -> str:
    """What a command writes to a terminal; its remarks on stderr are left out."""
    terminal, stdout = pty.openpty()
    arguments = [binary, *shlex.split(command)[1:]]
    with subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.DEVNULL) as process:
        os.close(stdout)
        output = b"".join(iter(lambda: read(terminal), b""))
    os.close(terminal)
    if process.returncode != 0:
        sys.exit(f"{command} ended with {process.returncode}")
    return output.decode().replace("\r\n", "\n").rstrip("\n")


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # Linux says so when the other side has closed.
        return b""


def styled_words(line: str, style: str) -> tuple[list[tuple[str, str]], str]:
    """Words and the gaps between them, each with its style, and the style that goes on."""
    words = []
    for part in re.findall(r"\x1b\[\d*m|\s+|[^\s\x1b]+", line):
        if part in STYLES:
            style = STYLES[part]
        else:
            words.append((part, style))
    return words, style


def wrapped(text: str) -> list[list[tuple[str, str]]]:
    lines, style = [], "plain"
    for line in text.split("\n"):
        words, style = styled_words(line, style)
        lines.append([])
        for i, (text, _) in enumerate(words):
            if sum(len(before) for before, _ in lines[-1]) + len(text) > COLUMNS:
                lines.append([])
            is_gap_at_wrap = i > 0 and not lines[-1] and text.isspace()
            if not is_gap_at_wrap:
                lines[-1].append(words[i])
    return lines


def drawn(lines: list[list[tuple[str, str]]]) -> str:
    width = round(COLUMNS * CHARACTER_WIDTH + 2 * MARGIN)
    height = TOP + len(lines) * LINE_HEIGHT + MARGIN
    texts = "\n".join(
        f'<text x="{MARGIN}" y="{TOP + (i + 1) * LINE_HEIGHT - 5}">'
        + "".join(f'<tspan class="{style}">{html.escape(text)}</tspan>' for text, style in merged(line))
        + "</text>"
        for i, line in enumerate(lines)
        if line
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" aria-label="A terminal in which samara writes a story and describes its built-in model">
<style>
text {{ font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; fill: #d8dee9 }}
.command {{ fill: #a3be8c; font-weight: 600 }}
.dim {{ fill: #7b8494 }}
</style>
<rect width="{width}" height="{height}" rx="10" fill="#20242c"/>
<g><circle cx="24" cy="22" r="6" fill="#bf616a"/><circle cx="44" cy="22" r="6" fill="#ebcb8b"/><circle cx="64" cy="22" r="6" fill="#a3be8c"/></g>
{texts}
</svg>
"""


def merged(line: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Neighbours of one style as one piece."""
    pieces = []
    for text, style in line:
        if pieces and pieces[-1][1] == style:
            pieces[-1] = (pieces[-1][0] + text, style)
        else:
            pieces.append((text, style))
    return pieces


def main() -> None:
    lines = []
    for command in COMMANDS:
        lines.append([(f"$ {command}", "command")])
        lines += wrapped(run(sys.argv[1], command))
        lines.append([])
    target = pathlib.Path(__file__).with_name("run.svg")
    target.write_text(drawn(lines[:-1]), encoding="utf-8")
    print(target)


main()
