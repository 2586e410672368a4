"""How charts look: as lockstep's own (src/show/plot), of whose theme the sizes, fonts, weights and markers here are a copy
that test_gallery.py compares; colours are read from its palette, and follow a reader's dark mode."""

import math
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# src/show/plot/plot_collective.c
ONLY_WIDTH, ONLY_HEIGHT, TOP, LEFT, BOTTOM, KEY_WIDTH = 860, 430, 94, 76, 62, 220
MARKERS = [7, 5, 9, 13, 11]  # open: one less
# src/show/text/picture_text.txt, plot_collective_text.txt
FONT, TITLE_FONT = "DejaVu Sans,12", ",18"
NOTE, GRID, BOUNDARY = "#555555", "#e6e6e6", "#999999"
BOX, GAP = 22, 10  # a bar and the room to the next, pixels


def read_palette():
    """{name: (light, dark)} as "#rrggbb"."""
    palette = {}
    for line in (ROOT / "src/show/draw/palette.txt").read_text(encoding="utf-8").splitlines():
        found = re.fullmatch(r"(\S+)\s+([0-9a-f]{6})(?:\s+([0-9a-f]{6}))?", line)
        if found:
            palette[found[1]] = ("#" + found[2], "#" + (found[3] or found[2]))
    return palette


PALETTE = read_palette()
SERIES = [f"series-{i}" for i in range(9)]
DARK = {"series-0", "series-2", "series-5", "parameters", "optimizer-states", "forward", "text"}  # white is read best on them


def light(name):
    return PALETTE[name][0]


def quoted(text):
    return "'" + str(text).replace("'", "''").replace("\n", " ") + "'"


def number(value):
    """Three digits, of large numbers all before the point and one after it."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) >= 100 else f"{value:.3g}" if value else "0"


# --- dark mode ---

# What gnuplot draws in a colour of these follows the reader's; series and parts keep theirs.
WHITE = "#fefefe"  # on a colour: white on any ground
FOLLOWING = {"#ffffff": "ground", "#000000": "text", NOTE: "quiet", GRID: "line", BOUNDARY: "edge", light("bad"): "bad",
             **{light(name): name for name in SERIES}}


def style_sheet(names):
    def of(place):
        return "".join(f"--{name}:{PALETTE[name][place]};" for name in sorted(names))
    return f"<style>:root{{{of(0)}}}@media (prefers-color-scheme:dark){{:root{{{of(1)}}}}}</style>"


def follow_dark_mode(svg):
    """Colours that gnuplot wrote as variables of a style sheet."""
    used = set()

    def variable(rgb, otherwise):
        name = FOLLOWING.get(rgb)
        if name is None:
            return otherwise
        used.add(name)
        return f"var(--{name})"

    svg = re.sub(r"rgb\( *(\d+), *(\d+), *(\d+)\)", lambda m: variable("#%02x%02x%02x" % tuple(map(int, m.groups())), m[0]), svg)
    svg = re.sub(r'"(#[0-9a-fA-F]{6})"', lambda m: '"' + variable(m[1].lower(), m[1]) + '"', svg)
    svg = re.sub(r'(["\s:])black(["\s;])', lambda m: m[1] + variable("#000000", "black") + m[2], svg)
    return re.sub(r"(<svg[^>]*>)", lambda m: m[1] + style_sheet(used), svg, count=1)


# --- gnuplot ---

def has_gnuplot():
    return shutil.which("gnuplot") is not None


def head(title, note, width, height, left):
    """The terminal, a title and a note below it."""
    lines = ["set encoding utf8", f"set terminal svg name 'Lockstep' enhanced size {width:.0f},{height:.0f} dynamic font '{FONT}' background '#ffffff'",
             f"set label 1 {quoted(title)} at screen {left / width:.6f}, screen {1 - 26 / height:.6f} left noenhanced font '{TITLE_FONT}'"]
    if note:
        lines.append(f"set label 2 {quoted(note)} at screen {left / width:.6f}, screen {1 - 50 / height:.6f} left noenhanced textcolor rgb '{NOTE}'")
    return lines


def margins(left, top, panel_width, panel_height, width, height):
    return [f"set lmargin at screen {left / width:.6f}", f"set rmargin at screen {(left + panel_width) / width:.6f}",
            f"set tmargin at screen {1 - top / height:.6f}", f"set bmargin at screen {1 - (top + panel_height) / height:.6f}"]


def key(left, top, width, height):
    return f"set key at screen {left / width:.6f}, screen {1 - top / height:.6f} left top Left reverse vertical maxcolumns 1 samplen 2 spacing 1.25 noenhanced"


def key_width(names):
    return max(KEY_WIDTH, 50 + max(7.4 * len(name) for name in names))


AXES = [f"set border 3 linecolor rgb '{NOTE}'", f"set grid ytics linetype 1 linecolor rgb '{GRID}' linewidth 1", "set tics out nomirror"]


def run(lines):
    done = subprocess.run(["gnuplot"], input="\n".join(lines) + "\n", capture_output=True, text=True)
    if done.returncode != 0 or not done.stdout.startswith("<?xml"):
        raise RuntimeError("gnuplot: " + done.stderr)
    return follow_dark_mode(done.stdout)


def block(name, rows):
    return [f"${name} << EOD", *(" ".join(f'"{v}"' if isinstance(v, str) else "NaN" if v is None else f"{v:.9g}" for v in row) for row in rows), "EOD"]


# --- curves ---

class Curve:
    """What one line shows: points (x, ours, the source's or None)."""

    def __init__(self, name, rows, source_name="source"):
        self.name, self.rows, self.source_name = name, [row for row in rows if row[1] is not None], source_name

    def source(self):
        return [(x, theirs) for x, _, theirs in self.rows if theirs is not None]


def bounds(values, is_log):
    """Of an axis: room around the outermost points."""
    low, high = min(values), max(values)
    if is_log:
        return low / 1.25, high * 1.25
    return low - 0.04 * (high - low), high + 0.04 * (high - low)


def tics_of(values):
    """Every value of x, or powers of two if they are many; with their texts."""
    values = sorted(set(values))
    if len(values) > 12:
        values = values[::2]
    return "(" + ", ".join(f"'{number(v) if v < 1 or v != int(v) else format(int(v), ',')}' {v}" for v in values) + ")"


def log_tics(low, high):
    each = 3 if high / low < 1e3 else 1
    tics = []
    for decade in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        for times in (1, 2, 5)[:each]:
            if low <= times * 10.0**decade <= high:
                tics.append(times * 10.0**decade)
    return "(" + ", ".join(f"'{t:,g}' {t:.9g}" for t in tics) + ")"


def end_labels(curves, is_log, low, high):
    """(x, y, text) for the last point of each curve, moved apart so that no two touch."""
    room = 15 / ONLY_HEIGHT
    place = (lambda y: math.log(y / low) / math.log(high / low)) if is_log else (lambda y: (y - low) / (high - low))
    back = (lambda p: low * (high / low)**p) if is_log else (lambda p: low + p * (high - low))
    ends = sorted((place(c.rows[-1][1]), i) for i, c in enumerate(curves))
    at, labels = -1.0, {}
    for where, i in ends:
        at = max(where, at + room)
        labels[i] = (curves[i].rows[-1][0], back(at), number(curves[i].rows[-1][1]))
    return labels


def is_above(a, b):
    """Of two curves, by what they share."""
    heights = dict(row[:2] for row in b.rows)
    return sum(y - heights[x] for x, y, *_ in a.rows if x in heights) > 0


def draw_curves(title, note, curves, wanted):
    """Lines are ours, open marks the source's; a number at each point, or at the last of each line where they are many."""
    curves = [c for c in curves if c.rows]
    names = [c.name + suffix for c in curves for suffix in ((": simulated", ": " + c.source_name) if c.source() else ("",))]
    width, height = LEFT + ONLY_WIDTH + 60 + key_width(names), TOP + ONLY_HEIGHT + BOTTOM
    is_log = "y" in wanted.get("log", "")
    xs = [row[0] for c in curves for row in c.rows]
    ys = [y for c in curves for row in c.rows for y in row[1:] if y is not None]
    low, high = bounds(ys, is_log)
    low = low if is_log else 0 if wanted.get("from_zero", True) and min(ys) >= 0 else low
    x_low, x_high = bounds(xs, "x" in wanted.get("log", ""))
    if "limit" in wanted:
        high = max(high, wanted["limit"]["at"] * 1.06)
    lines = head(title, note, width, height, LEFT) + margins(LEFT, TOP, ONLY_WIDTH, ONLY_HEIGHT, width, height) + AXES
    lines += [key(LEFT + ONLY_WIDTH + 62, TOP - 6, width, height), f"set xrange [{x_low:.9g}:{x_high:.9g}]", f"set yrange [{low:.9g}:{high:.9g}]",
              f"set ylabel {quoted(wanted['ylabel'])} noenhanced offset 0.5", f"set xlabel {quoted(wanted.get('xlabel', ''))} noenhanced offset 0,0.3"]
    if "x" in wanted.get("log", ""):
        lines.append("set logscale x 2")
    lines.append(f"set xtics out nomirror {tics_of(xs)}")
    if is_log:
        lines += ["set logscale y 10", f"set ytics out nomirror {log_tics(low, high)}"]
    for at, name in wanted.get("marks", []):
        lines += [f"set arrow from {at}, graph 0 to {at}, graph 1 nohead back linewidth 1 dashtype (6,4) linecolor rgb '{BOUNDARY}'",
                  f"set label {quoted(name)} at {at}, graph 1 offset 0, character 0.6 center noenhanced textcolor rgb '{NOTE}'"]
    if "limit" in wanted:
        at = wanted["limit"]["at"]
        lines += [f"set arrow from graph 0, first {at} to graph 1, first {at} nohead back linewidth 1 dashtype (6,4) linecolor rgb '{BOUNDARY}'",
                  f"set label {quoted(wanted['limit']['name'])} at graph 0, first {at} offset character 1, character 0.6 left noenhanced textcolor rgb '{NOTE}'"]
    plots, n_points = [], sum(len(c.rows) for c in curves)
    shows_all = wanted.get("numbers", "all" if n_points <= 10 or len(curves) == 1 else "ends") == "all"
    ends = end_labels(curves, is_log, low, high)
    for i, c in enumerate(curves):
        colour, marker = light(SERIES[i % len(SERIES)]), MARKERS[i % len(MARKERS)]
        lines += block(f"curve{i}", [(*row, number(row[1])) for row in c.rows])
        name = c.name + (": simulated" if c.source() else "")
        plots.append(f"$curve{i} using 1:2 with linespoints linewidth 2 pointtype {marker} pointsize 0.9 linecolor rgb '{colour}' title {quoted(name)}")
        if c.source():
            plots.append(f"$curve{i} using 1:3 with points pointtype {marker - 1} pointsize 1.4 linewidth 2 linecolor rgb '{colour}' title {quoted(c.name + ': ' + c.source_name)}")
        if shows_all:
            is_below = len(curves) == 2 and is_above(curves[1 - i], c)
            plots.append(f"$curve{i} using 1:2:4 with labels offset 0,{-0.9 if is_below else 0.9} font ',10' textcolor rgb '{NOTE}' noenhanced notitle")
        else:
            x, y, text = ends[i]
            lines.append(f"set label {quoted(text)} at {x:.9g},{y:.9g} left offset character 1,0 font ',10' textcolor rgb '{colour}' noenhanced")
    return run([*lines, "plot " + ", \\\n  ".join(plots)])


# --- bars ---

def draw_bars(title, note, rows, names, source_name, wanted):
    """rows: (label, parts, the source's number of their sum or None); parts are drawn one after the other. A number at the
    end of each bar; a mark where the source's is."""
    label_width = max(60, 7.2 * max(len(label) for label, _, _ in rows) + 12)
    left = 8 + label_width
    panel_height = len(rows) * (BOX + GAP) + GAP
    panel = ONLY_WIDTH + LEFT - left
    width, height = left + panel + 24 + key_width([name for name, _ in names] if len(names) > 1 else [""]), TOP + panel_height + BOTTOM
    sums = [sum(parts) for _, parts, _ in rows]
    numbers = sums + [t for _, _, t in rows if t is not None] + ([wanted["limit"]["at"] * 1.04] if "limit" in wanted else [])
    low, high = min(0, min(numbers)), max(0, max(numbers))
    room = 0.16 * (high - low)
    low, high = low - (room if low < 0 else 0), high + (room if high > 0 else 0)
    lines = head(title, note, width, height, 8) + margins(left, TOP, panel, panel_height, width, height)
    lines += [f"set border 1 linecolor rgb '{NOTE}'", f"set grid xtics linetype 1 linecolor rgb '{GRID}' linewidth 1", "set tics out nomirror", "set ytics scale 0",
              key(left + panel + 20, TOP - 6, width, height), f"set xrange [{low:.9g}:{high:.9g}]", f"set yrange [{len(rows) - 0.5 + 0.1}:-0.6]",
              f"set xlabel {quoted(wanted['ylabel'])} noenhanced offset 0,0.3",
              "set ytics (" + ", ".join(f"{quoted(label)} {i}" for i, (label, _, _) in enumerate(rows)) + ") noenhanced",
              f"set arrow from 0, graph 0 to 0, graph 1 nohead front linewidth 1 linecolor rgb '{NOTE}'"]
    if "limit" in wanted:
        at = wanted["limit"]["at"]
        lines += [f"set arrow from {at}, graph 0 to {at}, graph 1 nohead front linewidth 1.5 dashtype (6,4) linecolor rgb '{light('bad')}'",
                  f"set label {quoted(wanted['limit']['name'])} at {at}, graph 1 offset 0, character 0.6 center noenhanced textcolor rgb '{light('bad')}'"]
    half = BOX / 2 / (BOX + GAP)
    plots = []
    for k, (name, paint) in enumerate(names):
        data = []
        for i, (_, parts, _) in enumerate(rows):
            start = sum(parts[:k])
            data.append((start + parts[k] / 2, i, start, start + parts[k], i - half, i + half))
        lines += block(f"part{k}", data)
        plots.append(f"$part{k} using 1:2:3:4:5:6 with boxxyerror fillstyle solid 1.0 noborder linecolor rgb '{light(paint)}' title {quoted(name if len(names) > 1 else 'simulated')}")
        inside = [((d[2] + d[3]) / 2, d[1], number(rows[d[1]][1][k]), WHITE if paint in DARK else light("black"))
                  for d in data if len(names) > 1 and (d[3] - d[2]) / (high - low) * panel > 40]
        for x, y, text, ink in inside:
            lines.append(f"set label {quoted(text)} at {x:.9g},{y} center front font ',10' textcolor rgb '{ink}' noenhanced")
    theirs = [(t, i) for i, (_, _, t) in enumerate(rows) if t is not None]
    if theirs:
        lines += block("source", theirs)
        plots.append(f"$source using 1:2 with points pointtype 12 pointsize 1.3 linewidth 2 linecolor rgb '#000000' title {quoted(source_name)}")
    for i, ((_, _, t), total) in enumerate(zip(rows, sums)):
        text = number(total) + (f"  ({number(t)})" if t is not None else "")
        end = max([total, 0] + ([t] if t is not None else [])) if total >= 0 else min([total] + ([t] if t is not None else []))
        side = "left offset character 1.5,0" if total >= 0 else "right offset character -1.5,0"
        lines.append(f"set label {quoted(text)} at {end:.9g},{i} {side} front font ',11' noenhanced")
    return run([*lines, "plot " + ", \\\n  ".join(plots)])
