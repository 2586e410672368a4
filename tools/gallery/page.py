"""The page: one HTML file, which needs no network; and its charts, by gnuplot."""

import base64
import html
import shutil
import subprocess
from xml.sax.saxutils import escape

STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --soft: #5c5c5c; --line: #d5d5d5; --paper: #fff; --tint: #f5f5f2; --bad: #b3261e; --good: #1b6e3c }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --soft: #a5a5a5; --line: #444; --paper: #171717; --tint: #222; --bad: #ff8a80; --good: #7ddc9f } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1100px; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.7em } h2 { margin-top: 2.5em; border-bottom: 1px solid var(--line) } h3 { margin: 2.2em 0 0.2em }
table { border-collapse: collapse; margin: 0.7em 0; font-size: 13px } th, td { padding: 2px 10px; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums } .soft { color: var(--soft) } .FAILS, .misses { color: var(--bad) } .exact, .within, .holds { color: var(--good) }
pre { background: var(--tint); padding: 8px 10px; font-size: 12px; white-space: pre-wrap; overflow-wrap: anywhere } figure { margin: 0.7em 0 } figcaption { font-size: 13px; color: var(--soft) }
img { max-width: 100%; background: #fff; border: 1px solid var(--line) } summary { cursor: pointer; font-size: 13px; color: var(--soft) } a { color: inherit }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def escaped(text):
    return html.escape(str(text))


def number(value):
    """Four digits, or the text itself."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def error(point):
    """Signed, with its unit: percent, or the number's own."""
    if point.verdict == "exact":
        return "0"
    return f"{point.error:+.2g} {point.error_unit}" if abs(point.error) < 10 else f"{point.error:+.0f} {point.error_unit}"


def picture(svg, caption):
    data = base64.b64encode(svg.encode()).decode()
    return f'<figure><img alt="{escaped(caption)}" src="data:image/svg+xml;base64,{data}"><figcaption>{escaped(caption)}</figcaption></figure>'


def shown(wanted, text, pictures):
    """The pictures that a command draws, or the lines that it prints."""
    if pictures:
        return [picture(svg, wanted["caption"]) for svg in pictures]
    lines = text.splitlines()[:wanted["lines"]]
    return [f"<figure><pre>{escaped(chr(10).join(lines))}</pre><figcaption>{escaped(wanted['caption'])}</figcaption></figure>"]


def chart(figure):
    """The series of a figure as gnuplot draws them: lines are ours, points the source's. None without gnuplot."""
    wanted = figure.description.get("chart")
    if not wanted or not shutil.which("gnuplot"):
        return None
    is_bars = wanted.get("bars", False)
    blocks, plots = [], []
    for series in figure.series:
        if "line" in wanted and series["what"] not in wanted["line"]:
            continue
        cases = figure.cases_of(series)
        groups = dict.fromkeys(case.get(wanted.get("by")) for case in cases)
        for group in groups:
            rows = []
            for case in cases:
                if case.get(wanted.get("by")) != group:
                    continue
                theirs = figure.value(series["source"], case) if "source" in series else None
                x = figure.label(case) if is_bars else figure.value(wanted["x"], case)
                rows.append((x, figure.value(series["ours"], case), theirs))
            add_plot(blocks, plots, rows, curve_name(figure, series, group), is_bars)
    return draw(wanted, blocks, plots, is_bars)


def holdings_of(figure):
    """A picture for each case of a figure that shows who holds what."""
    wanted = figure.description.get("holdings")
    if not wanted:
        return []
    drawn = [(figure.label(case), figure.value(wanted["run"], case)) for case in figure.cases]
    return [picture(draw_holdings(label, result, wanted.get("each_round", False)), label) for label, result in drawn]


def curve_name(figure, series, group):
    """What a curve is, without what all curves of its chart are."""
    wanted = figure.description["chart"]
    drawn = [s for s in figure.series if "line" not in wanted or s["what"] in wanted["line"]]
    if group is None:
        return series["what"]
    words = group if isinstance(group, str) else f"{wanted['by']} {group}"
    return words if len(drawn) == 1 else f"{series['what']}, {words}"


def add_plot(blocks, plots, rows, name, is_bars):
    """A block of data "x ours theirs", and what draws it."""
    block = f"$data{len(blocks)}"
    colour = len(blocks) + 1
    text = "\n".join(f'"{x}" {ours:.9g} {"NaN" if theirs is None else format(theirs, ".9g")}' if is_bars else
                     f'{x} {ours:.9g} {"NaN" if theirs is None else format(theirs, ".9g")}' for x, ours, theirs in rows)
    blocks.append(f"{block} << EOD\n{text}\nEOD\n")
    has_source = any(theirs is not None for _, _, theirs in rows)
    quoted = name.replace('"', "'")
    ours = quoted + ": simulated" if has_source else quoted
    if is_bars:
        plots.append(f'{block} using 2:xtic(1) title "{ours}" linecolor {colour}')
        if has_source:
            plots.append(f'{block} using 3 title "{quoted}: source" linecolor {colour} fillstyle pattern 1')
        return
    plots.append(f'{block} using 1:2 with linespoints pointtype 7 pointsize 0.4 linecolor {colour} title "{ours}"')
    if has_source:
        plots.append(f'{block} using 1:3 with points pointtype 6 pointsize 1 linewidth 1.5 linecolor {colour} title "{quoted}: source"')


def draw(wanted, blocks, plots, is_bars):
    lines = ['set terminal svg size 760,400 enhanced background "white" font "sans-serif,12"', "set key outside below", "set grid ytics",
             'set linetype 1 linecolor rgb "#0072b2"', 'set linetype 2 linecolor rgb "#d55e00"', 'set linetype 3 linecolor rgb "#009e73"',
             'set linetype 4 linecolor rgb "#cc79a7"', 'set linetype 5 linecolor rgb "#56b4e9"', 'set linetype 6 linecolor rgb "#e69f00"', "set termoption noenhanced",
             f'set ylabel "{wanted["ylabel"]}"']
    if is_bars:
        lines += ["set style data histograms", "set style fill solid 0.85", "set boxwidth 0.9", "set yrange [*<0:0<*]", "set xtics rotate by -20 scale 0"]
    if "xlabel" in wanted:
        lines.append(f'set xlabel "{wanted["xlabel"]}" offset 0,0.4')
    for axis in wanted.get("log", ""):
        lines.append(f"set logscale {axis} {2 if axis == 'x' else 10}")
    if wanted.get("from_zero"):
        lines.append("set yrange [0:*]")
    script = "\n".join(lines) + "\n" + "".join(blocks) + "plot " + ", \\\n  ".join(plots) + "\n"
    done = subprocess.run(["gnuplot"], input=script, capture_output=True, text=True)
    if done.returncode != 0 or not done.stdout.startswith("<?xml"):
        raise RuntimeError("gnuplot: " + done.stderr)
    return done.stdout


def table(points):
    rows = []
    for p in points:
        theirs = number(p.theirs) if p.theirs is not None else ""
        cells = [f"<td>{escaped(p.what)}<td>{escaped(p.label)}", f"<td class=n>{theirs}<td class=n>{number(p.ours)}<td>{escaped(p.unit)}",
                 f"<td class=n>{error(p)}<td class={p.verdict}>{p.verdict}" if p.theirs is not None else "<td><td>"]
        rows.append("<tr>" + "".join(cells))
    return f"<table><tr><th>What<th>Case<th class=n>Source<th class=n>Simulated<th>Unit<th class=n>Error<th>{''.join(rows)}</table>" if rows else ""


def table_of_points(figure):
    """Those beside a source; the others too, folded if they are many."""
    beside = [p for p in figure.points if p.theirs is not None]
    alone = [p for p in figure.points if p.theirs is None]
    if len(alone) <= 6:
        return table(figure.points)
    return table(beside) + f"<details><summary>{len(alone)} numbers</summary>{table(alone)}</details>"


def causes(figure):
    texts = dict.fromkeys(p.cause for p in figure.points if p.cause)
    return "".join(f'<p><b class=misses>Misses.</b> {escaped(cause)}</p>' for cause in texts)


def tolerances(figure):
    texts = []
    for series in figure.series:
        if "source" in series:
            limit = f"{series['tolerance']} %" if "tolerance" in series else f"{series['points']} {'points' if series.get('unit') == '%' else series.get('unit', '')}"
            texts.append(f"{series['what']}: {series['kind']}, {'exact' if limit.startswith('0 ') else 'within ' + limit}")
    return f'<p class=soft>Source: {escaped("; ".join(dict.fromkeys(texts)))}.</p>' if texts else ""


def section(figure):
    d = figure.description
    parts = [f'<h3 id="{escaped(figure.id)}">{escaped(d["title"])} <span class=soft>{escaped(figure.id)}</span></h3>',
             f'<p>{escaped(d["shows"])} <span class=soft>{escaped(d["source"])}</span></p>']
    if d.get("missing"):
        parts.append(f'<p class=misses>Not simulated: {escaped(d["missing"])}</p>')
    for p in d.get("pictures", []):
        parts += shown(p, figure.results[p["command"]], figure.drawn.get(p["command"], []))
    for command, pictures in figure.drawn.items():
        if command not in {p["command"] for p in d.get("pictures", [])}:
            parts += [picture(svg, command) for svg in pictures]
    parts += holdings_of(figure)
    drawn = chart(figure)
    if drawn:
        parts.append(picture(drawn, d["chart"].get("caption", d["title"])))
    parts += [table_of_points(figure), tolerances(figure)]
    parts += [f'<p><b class={"holds" if holds else "FAILS"}>{"Holds" if holds else "FAILS"}.</b> {escaped(claim)}</p>' for claim, holds in figure.claims]
    parts.append(causes(figure))
    if d.get("note"):
        parts.append(f"<p>{escaped(d['note'])}</p>")
    commands = figure.commands()
    if commands:
        parts.append(f"<details><summary>{len(commands)} command{'s' if len(commands) > 1 else ''}</summary><pre>{escaped(chr(10).join(commands))}</pre></details>")
    return "".join(parts)


def worst(figure):
    """What the table of contents says of a figure: verdict and largest error."""
    if figure.description.get("missing"):
        return "missing", ""
    beside = [p for p in figure.points if p.theirs is not None]
    verdicts = {p.verdict for p in beside} | {"FAILS" for _, holds in figure.claims if not holds}
    verdict = next((v for v in ("FAILS", "misses", "within", "exact") if v in verdicts), "holds" if figure.claims else "drawn")
    largest = max(beside, key=lambda p: abs(p.error), default=None)
    return verdict, error(largest) if largest else ""


def contents(figures):
    rows = []
    for figure in figures:
        verdict, largest = worst(figure)
        n = sum(p.theirs is not None for p in figure.points)
        rows.append(f'<tr><td><a href="#{escaped(figure.id)}">{escaped(figure.id)}</a><td>{escaped(figure.description["title"])}'
                    f"<td class=n>{n or ''}<td class=n>{largest}<td class={verdict}>{verdict}")
    return f"<table><tr><th>Figure<th><th class=n>Numbers<th class=n>Largest error<th>{''.join(rows)}</table>"


def write(figures):
    """The page, as text."""
    body, title = [], None
    for figure in figures:
        if figure.set_title != title:
            title = figure.set_title
            body.append(f"<h2>{escaped(title)}</h2>")
        body.append(section(figure))
    return (f'<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width">'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><title>Lockstep: gallery</title><style>{STYLE}</style>'
            "<h1>Figures and tables, simulated</h1><p>Each figure of lecture notes and papers on training in parallel, by the "
            "commands below it, beside its source's numbers. Every number of ours comes out of a command. <i>Exact</i>: equal; "
            "<i>within</i>: as near as the tolerance that is stated; <i>misses</i>: further, and why.</p>"
            f"{contents(figures)}{''.join(body)}\n")


# --- holdings ---

# Who holds what, drawn from `lockstep collective --messages --json`: a grid of ranks and blocks before and after a
# collective, or after each of its rounds. A block is coloured by the rank whose contribution it is; the sum of all is
# dark; what a round brought has a frame.

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


def draw_holdings(title, result, each_round):
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
