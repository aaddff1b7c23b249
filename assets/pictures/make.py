"""Runs samara and draws what it printed as a terminal window in SVG.

    cargo build --release && python3 assets/pictures/make.py target/release/samara

Everything in the picture is the output of these commands; long lines are wrapped. Standard library only.
"""

import html
import pathlib
import shlex
import subprocess
import sys
import textwrap

COLUMNS, LINE_HEIGHT, CHARACTER_WIDTH, MARGIN, TOP = 92, 19, 8.43, 20, 44
COMMANDS = [
    'samara generate --prompt "Once upon a time" --seed 7 --max-tokens 120',
    "samara inspect",
]


def run(binary: str, command: str) -> str:
    arguments = shlex.split(command)
    result = subprocess.run([binary, *arguments[1:]], capture_output=True, text=True, check=True)
    return result.stdout.rstrip("\n")


def wrapped(text: str) -> list[str]:
    lines = []
    for line in text.split("\n"):
        lines += textwrap.wrap(line, COLUMNS, drop_whitespace=False, replace_whitespace=False) or [""]
    return lines


def drawn(lines: list[tuple[str, str]]) -> str:
    width = round(COLUMNS * CHARACTER_WIDTH + 2 * MARGIN)
    height = TOP + len(lines) * LINE_HEIGHT + MARGIN
    texts = "\n".join(
        f'<text class="{kind}" x="{MARGIN}" y="{TOP + (i + 1) * LINE_HEIGHT - 5}">{html.escape(line)}</text>'
        for i, (kind, line) in enumerate(lines)
        if line
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" aria-label="A terminal in which samara writes a story and describes its built-in model">
<style>
text {{ font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; fill: #d8dee9 }}
.command {{ fill: #a3be8c; font-weight: 600 }}
</style>
<rect width="{width}" height="{height}" rx="10" fill="#20242c"/>
<g><circle cx="24" cy="22" r="6" fill="#bf616a"/><circle cx="44" cy="22" r="6" fill="#ebcb8b"/><circle cx="64" cy="22" r="6" fill="#a3be8c"/></g>
{texts}
</svg>
"""


def main() -> None:
    lines = []
    for command in COMMANDS:
        lines.append(("command", f"$ {command}"))
        lines += [("output", line) for line in wrapped(run(sys.argv[1], command))]
        lines.append(("output", ""))
    target = pathlib.Path(__file__).with_name("run.svg")
    target.write_text(drawn(lines[:-1]), encoding="utf-8")
    print(target)


main()
