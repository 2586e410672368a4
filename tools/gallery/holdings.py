"""Who holds what, drawn from `lockstep collective --messages --json`: a grid of ranks and blocks before and after a
collective, or after each of its rounds. A block is coloured by the rank whose contribution it is; the sum of all is
dark; what a round brought has a frame."""

from xml.sax.saxutils import escape

COLOURS = ["#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#0072b2", "#d55e00", "#999999"]
SUM, NOTHING, PARTIAL = "#333333", "#f2f2f2", "#c9c9c9"
HEIGHT, GAP, LEFT, TOP, MAX_WIDTH = 22, 34, 56, 30, 1100


def cell_width(blocks):
    return max(26, 14 + 7 * max(len(b) for row in blocks for b in row))


def colour(text, n_ranks):
    parts = text.split("+")
    if text == "-":
        return NOTHING
    if len(parts) == 1:
        return COLOURS[int(text) % len(COLOURS)]
    return SUM if len(parts) == n_ranks else PARTIAL


def grid(x, top, title, rows, before, n_ranks, width, tells_ranks):
    """One grid at x. before: rows of the grid before it, or None."""
    out = [f'<text x="{x}" y="{top - 10}" class="title">{escape(title)}</text>']
    for r, row in enumerate(rows):
        y = top + r * HEIGHT
        if tells_ranks:
            out.append(f'<text x="{x - 6}" y="{y + 15}" text-anchor="end">rank {r}</text>')
        for b, text in enumerate(row):
            fill = colour(text, n_ranks)
            is_new = before is not None and text != before[r][b]
            frame = ' stroke="#d00000" stroke-width="2"' if is_new else ' stroke="#ffffff"'
            ink = "#ffffff" if fill in (SUM, "#0072b2") else "#1a1a1a"
            out.append(f'<rect x="{x + b * width + 1}" y="{y + 1}" width="{width - 2}" height="{HEIGHT - 2}" fill="{fill}"{frame}/>')
            if text != "-":
                out.append(f'<text x="{x + b * width + width / 2}" y="{y + 15}" text-anchor="middle" fill="{ink}">{escape(text)}</text>')
    return out


def draw(title, result, each_round):
    """An SVG of the result of a run with --messages."""
    n_ranks, n_rounds = result["rows"][0]["n_ranks"], result["n_rounds"]

    def rows_after(n):
        held = {h["place"]: h["blocks"].split() for h in result["held"] if h["after_rounds"] == n}
        return [held[str(rank)] for rank in range(n_ranks)]

    shown = list(range(n_rounds + 1)) if each_round else [0, n_rounds]
    width = max(cell_width(rows_after(n)) for n in shown)
    step = max(result["n_blocks"] * width, 80) + GAP
    n_columns = max(1, min(len(shown), MAX_WIDTH // step))
    before, parts = None, []
    for i, n in enumerate(shown):
        name = "before" if n == 0 else f"after round {n}" if each_round else "after"
        x, top = LEFT + i % n_columns * step, TOP + i // n_columns * (TOP + n_ranks * HEIGHT)
        rows = rows_after(n)
        parts += grid(x, top, name, rows, before, n_ranks, width, i % n_columns == 0)
        before = rows if each_round else None
    wide, high = LEFT + n_columns * step, top + n_ranks * HEIGHT + 8
    style = "text { font: 11px sans-serif } .title { font-weight: bold }"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}"><title>{escape(title)}</title>'
            f'<style>{style}</style><rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>')
