"""The page: one HTML file, which needs no network."""

import base64
import html
import re

import boxes
import theme

STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --soft: #5c5c5c; --line: #d5d5d5; --paper: #fff; --tint: #f5f5f2; --bad: #b3261e; --good: #1b6e3c }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --soft: #a5a5a5; --line: #444; --paper: #171717; --tint: #222; --bad: #ff8a80; --good: #7ddc9f } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1220px; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.7em } h2 { margin-top: 2.5em; border-bottom: 1px solid var(--line) } h3 { margin: 2.2em 0 0.2em }
table { border-collapse: collapse; margin: 0.7em 0; font-size: 13px } th, td { padding: 2px 10px; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums } .soft { color: var(--soft) } .FAILS, .misses { color: var(--bad) } .exact, .within, .holds { color: var(--good) }
pre { background: var(--tint); padding: 8px 10px; font-size: 12px; white-space: pre-wrap; overflow-wrap: anywhere } figure { margin: 0.7em 0 } figcaption { font-size: 13px; color: var(--soft) }
img { max-width: 100%; border: 1px solid var(--line); border-radius: 6px } summary { cursor: pointer; font-size: 13px; color: var(--soft) } a { color: inherit }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def escaped(text):
    return html.escape(str(text))


number = theme.number


def prose(text):
    """Escaped, with `commands` as such."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped(text))


def error(point):
    """Signed, with its unit: percent, or the number's own."""
    if point.verdict == "exact":
        return "0"
    return f"{point.error:+.2g} {point.error_unit}" if abs(point.error) < 10 else f"{point.error:+.0f} {point.error_unit}"


def picture(svg, caption, says_itself=False):
    """says_itself: the caption stands in the picture too."""
    data = base64.b64encode(svg.encode()).decode()
    return f'<figure><img alt="{escaped(caption)}" src="data:image/svg+xml;base64,{data}">{"" if says_itself else f"<figcaption>{prose(caption)}</figcaption>"}</figure>'


def shown(wanted, text, pictures):
    """The pictures that a command draws, or the lines that it prints."""
    if pictures:
        return [picture(svg, wanted["caption"]) for svg in pictures]
    lines = text.splitlines()[:wanted["lines"]]
    return [f"<figure><pre>{escaped(chr(10).join(lines))}</pre><figcaption>{escaped(wanted['caption'])}</figcaption></figure>"]


def charts_of(figure):
    """(caption, picture) of each chart as gnuplot draws it (theme.py). None without gnuplot."""
    wanted = figure.description.get("chart", [])
    wanted = wanted if isinstance(wanted, list) else [wanted]
    return [(w.get("caption", figure.description["title"]), chart(figure, w)) for w in wanted if theme.has_gnuplot()]


def chart(figure, wanted):
    title, note = wanted.get("title", figure.description["title"]), wanted.get("caption", "")
    if "bars" in wanted:
        return theme.draw_bars(title, note, *bars_of(figure, wanted), wanted)
    return theme.draw_curves(title, note, curves_of(figure, wanted), wanted)


def bars_of(figure, wanted):
    """Rows of (label, parts, the source's number), (name, paint) of the parts, which are series that are stacked or the one,
    and what the source's number is."""
    stack = wanted.get("stack")
    drawn = [s for s in figure.series if s["what"] in (stack or wanted.get("line", [figure.series[0]["what"]]))]
    total = next((s for s in figure.series if s["what"] == wanted.get("sum")), None if stack else drawn[0])
    rows = []
    for case in figure.cases_of(drawn[0]):
        parts = [figure.value(s["ours"], case) for s in drawn]
        theirs = figure.value(total["source"], case) if total and "source" in total else None
        rows.append((figure.label(case), parts, theirs))
    return rows, [(s["what"], stack[s["what"]] if stack else "forward") for s in drawn], source_name(total)


def source_name(series):
    return "formula" if series and series.get("kind") == "formula" else "source"


def curves_of(figure, wanted):
    curves = []
    for series in figure.series:
        if "line" in wanted and series["what"] not in wanted["line"]:
            continue
        cases = [case for case in figure.cases_of(series) if "where" not in wanted or figure.value(wanted["where"], case)]
        for group in dict.fromkeys(case.get(wanted.get("by")) for case in cases):
            chosen = [case for case in cases if case.get(wanted.get("by")) == group]
            rows = [(figure.value(wanted["x"], case), figure.value(series["ours"], case),
                     figure.value(series["source"], case) if "source" in series else None) for case in chosen]
            curves.append(theme.Curve(curve_name(figure, wanted, series, group), rows, source_name(series)))
    return curves


def drawings_of(figure):
    """Pictures of boxes: who holds what, whose gradients go where, where ranks sit."""
    d, drawn = figure.description, []
    if "holdings" in d:
        wanted = d["holdings"]
        drawn += [(figure.label(case), boxes.draw_holdings(figure.label(case), figure.value(wanted["run"], case), wanted.get("each_round", False)))
                  for case in figure.cases]
    for flow in d.get("flows", []):
        columns = [(column, figure.value(column["run"], {})) for column in flow["columns"]]
        owner = boxes.owners(figure.value(flow["owners"], {}))
        drawn.append((flow["title"], boxes.draw_flow(flow["title"], flow.get("note", ""), columns, owner)))
    for blocks in d.get("blocks", []):
        drawn.append((blocks["title"], boxes.draw_blocks(blocks["title"], blocks.get("note", ""), figure.value(blocks["run"], {}))))
    return [picture(svg, caption, True) for caption, svg in drawn]


def curve_name(figure, wanted, series, group):
    """What a curve is, without what all curves of its chart are."""
    drawn = [s for s in figure.series if "line" not in wanted or s["what"] in wanted["line"]]
    if group is None:
        return series["what"]
    words = wanted.get("names", {}).get(str(group)) or (group if isinstance(group, str) else f"{wanted['by']} {group}")
    return words if len(drawn) == 1 else f"{series['what']}, {words}"


def table(points):
    rows = []
    for p in points:
        theirs = number(p.theirs) if p.theirs is not None else ""
        cells = [f"<td>{escaped(p.what)}<td>{escaped(p.label)}", f"<td class=n>{theirs}<td class=n>{number(p.ours)}<td>{escaped(p.unit)}",
                 f"<td class=n>{error(p)}<td class={p.verdict}>{p.verdict}" if p.theirs is not None else "<td><td>"]
        rows.append("<tr>" + "".join(cells))
    return f"<table><tr><th>What<th>Case<th class=n>Source<th class=n>Simulated<th>Unit<th class=n>Error<th>{''.join(rows)}</table>" if rows else ""


def table_of_cases(figure):
    """A row for each case, a column for each number, and before them for those variables of the cases that are words."""
    words = figure.description["table"]
    head = "".join(f"<th>{escaped(name)}" for name in words) + "".join(f"<th class=n>{escaped(s['what'])}{', ' + escaped(s['unit']) if s.get('unit') else ''}" for s in figure.series)
    rows = [f"<tr><td>{escaped(figure.label(case))}" + "".join(f"<td>{escaped(case[name])}" for name in words)
            + "".join(f"<td class=n>{number(figure.value(s['ours'], case))}" for s in figure.series)
            for case in figure.cases]
    return f"<table><tr><th>{head}{''.join(rows)}</table>"


def table_of_points(figure):
    """Those with a source; the others too, folded if they are many."""
    if figure.description.get("table"):
        return table_of_cases(figure)
    sourced = [p for p in figure.points if p.theirs is not None]
    charts = figure.description.get("chart", [])
    stacked = {name for c in (charts if isinstance(charts, list) else [charts]) for name in c.get("stack", ())}
    alone = [p for p in figure.points if p.theirs is None and (p.ours != 0 or p.what not in stacked)]
    if len(alone) <= 6:
        return table([p for p in figure.points if p in sourced or p in alone])
    return table(sourced) + f"<details><summary>{len(alone)} numbers</summary>{table(alone)}</details>"


def causes(figure):
    texts = dict.fromkeys(p.cause for p in figure.points if p.cause)
    return "".join(f'<p><b class=misses>Misses.</b> {escaped(cause)}</p>' for cause in texts)


def tolerances(figure):
    texts = []
    for series in figure.series:
        if "source" in series:
            limit = series["tolerance"] if "tolerance" in series else series["points"]
            unit = "%" if "tolerance" in series else ("point" if limit == 1 else "points") if series.get("unit") == "%" else series.get("unit", "")
            texts.append(f"{series['what']}: {series['kind']}, {f'within {limit} {unit}'.strip() if limit else 'exact'}")
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
    parts += drawings_of(figure)
    parts += [picture(svg, caption, True) for caption, svg in charts_of(figure)]
    parts += [table_of_points(figure), tolerances(figure)]
    parts += [f'<p><b class={"holds" if holds else "FAILS"}>{"Holds" if holds else "FAILS"}.</b> {escaped(claim)}</p>' for claim, holds in figure.claims]
    parts.append(causes(figure))
    if d.get("note"):
        parts.append(f"<p>{prose(d['note'])}</p>")
    commands = figure.commands()
    if commands:
        parts.append(f"<details><summary>{len(commands)} command{'s' if len(commands) > 1 else ''}</summary><pre>{escaped(chr(10).join(commands))}</pre></details>")
    return "".join(parts)


def worst(figure):
    """What the table of contents says of a figure: verdict and largest error."""
    if figure.description.get("missing"):
        return "missing", ""
    sourced = [p for p in figure.points if p.theirs is not None]
    verdicts = {p.verdict for p in sourced} | {"FAILS" for _, holds in figure.claims if not holds}
    verdict = next((v for v in ("FAILS", "misses", "within", "exact") if v in verdicts), "holds" if figure.claims else "drawn")
    largest = max(sourced, key=lambda p: abs(p.error), default=None)
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
            "commands below it, next to its source's numbers. Every number of ours comes out of a command. <i>Exact</i>: equal; "
            "<i>within</i>: as near as the tolerance that is stated; <i>misses</i>: further, and why.</p>"
            f"{contents(figures)}{''.join(body)}\n")
