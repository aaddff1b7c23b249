"""Draws the losses of tests/facts/smollm2.log as SVG.

    python3 assets/pictures/loss.py
"""

import pathlib
import re

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 720, 260, 56, 40, 34, 16
ROOT = pathlib.Path(__file__).parents[2]


def main() -> None:
    log = (ROOT / "tests/facts/smollm2.log").read_text()
    losses = [float(loss) for loss in re.findall(r"^step \d+/\d+: loss ([\d.]+)", log, re.M)]
    exact = re.findall(r"^(\d+ of \d+) answers are exact", log, re.M)
    highest = max(losses)
    x = lambda step: LEFT + (step - 1) / (len(losses) - 1) * (WIDTH - LEFT - RIGHT)
    y = lambda loss: HEIGHT - BOTTOM - loss / highest * (HEIGHT - BOTTOM - TOP)
    points = " ".join(f"{x(step):.1f},{y(loss):.1f}" for step, loss in enumerate(losses, 1))
    grid = "".join(
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(loss):.1f}" y2="{y(loss):.1f}" class="grid"/>'
        f'<text x="{LEFT - 8}" y="{y(loss) + 4:.1f}" text-anchor="end">{loss}</text>'
        for loss in range(0, int(highest) + 1, 2)
    )
    steps = "".join(
        f'<text x="{x(step):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{step}</text>'
        for step in range(1, len(losses) + 1)
        if step == 1 or step % 5 == 0
    )
    title = f"Loss by step: QLoRA of SmolLM2-135M on 4-bit weights. Held-out facts: {exact[-1]} before, {exact[0]} after."
    svg = f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">
<style>text{{font:12px ui-sans-serif,system-ui,sans-serif;fill:#57606a}}.grid{{stroke:#d0d7de}}.line{{fill:none;stroke:#2f6f4f;stroke-width:2.5}}</style>
<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#ffffff"/>
<text x="{LEFT}" y="20">{title}</text>
{grid}{steps}
<polyline class="line" points="{points}"/>
</svg>
"""
    (ROOT / "assets/pictures/loss.svg").write_text(svg)


if __name__ == "__main__":
    main()
