"""Drawings of boxes, in the house's fonts and colours (theme.py): who holds what, whose gradients go where, and where the
ranks of a job sit."""

from xml.sax.saxutils import escape

from theme import colours

COLOURS = ["series-4", "series-3", "series-2", "series-1", "series-7", "series-0", "series-5", "series-6"]
HEIGHT, GAP, LEFT, TOP, MAX_WIDTH = 24, 34, 62, 62, 1180


class Drawing:
    """An SVG whose colours are names of the palette, light and dark."""

    def __init__(self, title, note=""):
        self.parts, self.used, self.right, self.bottom = [], {"ground", "text", "quiet", "edge"}, 0, 0
        self.title = title
        self.text(12, 24, title, size=18)
        if note:
            self.text(12, 44, note, paint="quiet")

    def grow(self, x, y):
        self.right, self.bottom = max(self.right, x), max(self.bottom, y)

    def box(self, x, y, width, height, paint, frame=None, weight=2, tint=1, corner=2):
        self.used |= {paint, frame or paint}
        stroke = f' stroke="var(--{frame})" stroke-width="{weight}"' if frame else ""
        opacity = f' fill-opacity="{tint}"' if tint < 1 else ""
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{corner}" fill="var(--{paint})"{opacity}{stroke}/>')
        self.grow(x + width, y + height)

    def text(self, x, y, text, size=12, align="start", paint="text", bold=False):
        self.used.add(paint)
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{align}" fill="var(--{paint})"{weight}>{escape(text)}</text>')
        width = (0.68 if bold else 0.6) * size * len(text)
        self.grow(x + (width if align == "start" else width / 2 if align == "middle" else 0), y + 4)

    def arrow(self, x0, y0, x1, y1, paint="edge", weight=1.5, both=False):
        self.used.add(paint)
        ends = [(x1, y1, x0, y0)] + ([(x0, y0, x1, y1)] if both else [])
        self.parts.append(f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" stroke="var(--{paint})" stroke-width="{weight}" fill="none"/>')
        for x, y, fx, fy in ends:
            length = max(((fx - x)**2 + (fy - y)**2)**0.5, 1)
            ux, uy = 7 * (fx - x) / length, 7 * (fy - y) / length
            self.parts.append(f'<path d="M{x:.1f} {y:.1f}L{x + ux - 0.5 * uy:.1f} {y + uy + 0.5 * ux:.1f}L{x + ux + 0.5 * uy:.1f} {y + uy - 0.5 * ux:.1f}Z" fill="var(--{paint})"/>')
            self.grow(x, y)

    def svg(self):
        width, height = self.right + 12, self.bottom + 10
        light, dark = ("".join(f"--{n}:{colours(n)[i]};" for n in sorted(self.used)) for i in (0, 1))
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"><title>{escape(self.title)}</title>'
                f'<style>:root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}text{{font-family:"DejaVu Sans",sans-serif}}</style>'
                f'<rect width="100%" height="100%" fill="var(--ground)"/>{"".join(self.parts)}</svg>')


# --- who holds what, of `collective --messages` ---

def rows_after(result, n):
    """Of each rank the blocks that it holds after n rounds: "0+1", or "-"."""
    held = {h["place"]: h["blocks"].split() for h in result["held"] if h["after_rounds"] == n}
    return [held[str(rank)] for rank in range(result["rows"][0]["n_ranks"])]


def paint_of(text, n_ranks):
    """Of a block: its rank's colour, the sum's, or that of a part of the sum."""
    parts = text.split("+")
    if text == "-":
        return "idle"
    if len(parts) == 1:
        return COLOURS[int(text) % len(COLOURS)]
    return "text" if len(parts) == n_ranks else "bubble"


def ink_on(paint):
    return "ground" if paint == "text" else "text" if paint in ("bubble", "idle") else "on-" + paint


def cell(d, x, y, width, text, paint, frame=None, ink=None):
    d.box(x + 1, y + 1, width - 2, HEIGHT - 2, paint, frame)
    if text:
        d.text(x + width / 2, y + 16, text, size=11, align="middle", paint=ink or ink_on(paint))


def draw_holdings(title, result, each_round):
    """A grid of ranks and blocks before and after, or after each round; framed is what the round brought."""
    n_ranks, n_rounds = result["rows"][0]["n_ranks"], result["n_rounds"]
    is_left = [not each_round and 1 < len(block.split("+")) < n_ranks for row in rows_after(result, n_rounds) for block in row]
    d = Drawing(title, "a row is a rank, a cell a block: the ranks whose part it holds; framed: new" + ("; grey: parts of sums that the rounds leave" if any(is_left) else ""))
    shown = list(range(n_rounds + 1)) if each_round else [0, n_rounds]
    width = max(max(30, 14 + 7.2 * len(b)) for n in shown for row in rows_after(result, n) for b in row)
    step = max(result["n_blocks"] * width, 110) + GAP
    n_columns = max(1, min(len(shown), int(MAX_WIDTH // step)))
    before = None
    for i, n in enumerate(shown):
        x, top = LEFT + i % n_columns * step, TOP + 20 + i // n_columns * (TOP + n_ranks * HEIGHT)
        rows = rows_after(result, n)
        d.text(x, top - 8, "before" if n == 0 else f"after round {n}" if each_round else "after", bold=True)
        for r, row in enumerate(rows):
            if i % n_columns == 0:
                d.text(x - 8, top + r * HEIGHT + 16, f"rank {r}", align="end")
            for b, text in enumerate(row):
                is_new = before is not None and text != before[r][b]
                is_rest = not each_round and paint_of(text, n_ranks) == "bubble"
                cell(d, x + b * width, top + r * HEIGHT, width, "" if text == "-" else text, "idle" if is_rest else paint_of(text, n_ranks),
                     "bad" if is_new and not is_rest else None, "quiet" if is_rest else None)
        before = rows
    return d.svg()


# --- whose gradients go where: the same, chained, with owners ---

def owners(result):
    """Of each block the one rank that holds its sum in the end, or None where several do."""
    n_ranks = result["rows"][0]["n_ranks"]
    rows = rows_after(result, result["n_rounds"])
    found = []
    for b in range(result["n_blocks"]):
        holders = [r for r in range(n_ranks) if len(rows[r][b].split("+")) == n_ranks]
        found.append(holders[0] if len(holders) == 1 else None)
    return found


def flow_cell(text, block, rank, owner, column, n_ranks):
    """(words, paint, frame) of a block in a column of a flow."""
    is_own, letter = owner[block] == rank, column["letter"]
    is_reduced = block >= column.get("reduced_from", len(owner)) or len(text.split("+")) == n_ranks
    if block < column.get("from_block", 0) or text == "-" or ((column.get("keep") == "own" or block >= column.get("reduced_from", len(owner))) and not is_own):
        return "", "idle", None
    frame = "bad" if is_own and column.get("frame", True) else None
    if letter == "G" and is_reduced:
        return f"ΣG{block}", "text", frame
    if letter == "G":
        return f"G{block}", COLOURS[rank % len(COLOURS)], frame
    return f"{letter}{block}", COLOURS[block % len(COLOURS)], frame


def draw_flow(title, note, columns, owner):
    """columns: (description, its result); of each rank a row of blocks. Framed: what the rank owns."""
    n_ranks = columns[0][1]["rows"][0]["n_ranks"]
    d = Drawing(title, note)
    width, x, top = 40, LEFT, TOP + 38
    for i, (column, result) in enumerate(columns):
        n = result["n_rounds"] if column["after"] == "end" else 0
        words = column["name"].split("\n")
        for k, line in enumerate(words):
            d.text(x, top - 8 - 15 * (len(words) - 1 - k), line, bold=k == 0)
        for r, row in enumerate(rows_after(result, n)):
            if i == 0:
                d.text(x - 8, top + r * HEIGHT + 16, f"rank {r}", align="end")
            for b, text in enumerate(row):
                cell(d, x + b * width, top + r * HEIGHT, width, *flow_cell(text, b, r, owner, column, n_ranks))
        end = x + result["n_blocks"] * width
        if i + 1 < len(columns):
            d.arrow(end + 8, top + n_ranks * HEIGHT / 2, end + 38, top + n_ranks * HEIGHT / 2, paint="text", weight=2)
        x = end + max(46, 46 + 7.2 * max(map(len, words)) - result["n_blocks"] * width)
    return d.svg()


# --- where the ranks of a job sit: of `run --show-placement` ---

def read_placement(text):
    """The table: a dictionary of numbers for each rank."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if line.split()[:3] == ["rank", "node", "gpu"])
    names = lines[first].split()
    rows = []
    for line in lines[first + 1:]:
        words = line.split()
        if len(words) != len(names) or not all(w.isdigit() or w == "-" for w in words):
            break
        rows.append({n: int(w) if w.isdigit() else None for n, w in zip(names, words)})
    return rows


def draw_blocks(title, note, text):
    """A row for each replica, a block for each stage in it, a cell for each rank of tensor parallelism in that; nodes are
    named, arrows go from stage to stage and join replicas."""
    rows = read_placement(text)
    n_pp, n_dp, n_tp = (1 + max(r[a] for r in rows) for a in ("pp", "dp", "tp"))
    d = Drawing(title, note)
    cell_width, gap, high = 46, 42, 78
    block, left, top = n_tp * cell_width + 12, 96, TOP + 34
    for s in range(n_pp):
        d.text(left + s * (block + gap) + block / 2, top - 10, f"stage {s}", align="middle", bold=True)
    for replica in range(n_dp):
        y = top + replica * (high + 44)
        d.text(12, y + high / 2 + 4, f"replica {replica}", bold=True)
        for s in range(n_pp):
            x = left + s * (block + gap)
            ranks = sorted((r for r in rows if r["dp"] == replica and r["pp"] == s), key=lambda r: r["tp"])
            nodes = sorted({r["node"] for r in ranks})
            d.box(x, y, block, high, "idle", "edge", 1, corner=5)
            d.text(x + 8, y + 18, "node " + ", ".join(map(str, nodes)), size=11, paint="quiet")
            for k, r in enumerate(ranks):
                d.box(x + 6 + k * cell_width + 2, y + 28, cell_width - 4, 42, COLOURS[s % len(COLOURS)], "edge", 1, corner=4)
                ink = ink_on(COLOURS[s % len(COLOURS)])
                d.text(x + 6 + (k + 0.5) * cell_width, y + 45, f"{r['rank']}", align="middle", paint=ink, bold=True)
                d.text(x + 6 + (k + 0.5) * cell_width, y + 61, f"tp {r['tp']}", size=10, align="middle", paint=ink)
            if s + 1 < n_pp:
                d.arrow(x + block + 4, y + high / 2, x + block + gap - 4, y + high / 2, paint="pp", weight=2, both=True)
            if replica + 1 < n_dp:
                d.arrow(x + block / 2, y + high + 4, x + block / 2, y + high + 40, paint="dp", weight=2, both=True)
    y = top + n_dp * (high + 44) - 20
    for i, (paint, words) in enumerate([("pp", "pipeline: activations and their gradients"), ("dp", "data: gradients of the same stage and tp rank"), ("idle", "tensor: all-reduces inside a block")]):
        x, row = (left + i * 330, 0) if n_pp > 2 else (left, i * 18)
        d.box(x, y + row - 10, 12, 12, paint, "edge", 1)
        d.text(x + 18, y + row, words, size=11)
    return d.svg()
