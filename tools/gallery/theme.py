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
LETTER = 7.4  # of a tic's number, pixels


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


def light(name):
    return PALETTE[name][0]


WHITE = "#fefefe"  # on a colour, also where the ground is dark


def ink(rgb):
    """What is read best on a colour, by relative luminance (W3C, Web Content Accessibility Guidelines 2.1)."""
    weighted = sum(w * (int(rgb[i:i + 2], 16) / 255)**2.2 for w, i in ((0.2126, 1), (0.7152, 3), (0.0722, 5)))
    return WHITE if weighted < 0.2 else light("black")


def colours(name):
    """(light, dark) of a colour of the palette; of "on-NAME" what is read best on it."""
    return tuple(map(ink, PALETTE[name[3:]])) if name.startswith("on-") else PALETTE[name]


def quoted(text):
    return "'" + str(text).replace("'", "''").replace("\n", " ") + "'"


def number(value):
    """Four digits, of large numbers all before the point; or the text itself."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


# --- dark mode ---

# What gnuplot draws in a colour of these follows the reader's; parts keep theirs. Numbers on a bar that follows are drawn
# in a colour that stands for what is read best on it.
ON = {name: f"#fefe{i:02x}" for i, name in enumerate(SERIES)}
FOLLOWING = {"#ffffff": "ground", "#000000": "text", NOTE: "quiet", GRID: "line", BOUNDARY: "edge", light("bad"): "bad",
             **{light(name): name for name in SERIES}, **{rgb: f"on-{name}" for name, rgb in ON.items()}}
# Lines that pass behind a number leave room for it.
HALO = ",".join(f'[fill="var(--{name})"]>text' for name in ("text", "quiet", *SERIES))


def style_sheet(names):
    def of(place):
        return "".join(f"--{name}:{colours(name)[place]};" for name in sorted(names))
    return (f"<style>:root{{{of(0)}}}@media (prefers-color-scheme:dark){{:root{{{of(1)}}}}}"
            f"{HALO}{{paint-order:stroke;stroke:var(--ground);stroke-width:3px;stroke-linejoin:round}}</style>")


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


def shown_tics(values):
    return "(" + ", ".join(f"'{t:,.6g}' {t:.9g}" for t in values) + ")"


def linear_tics(low, high):
    """Of an axis: some numbers that a person would write."""
    raw = (high - low) / 10
    power = 10.0**math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    return [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def log_tics(low, high):
    each = 3 if high / low < 1e3 else 1
    tics = []
    for decade in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        for times in (1, 2, 5)[:each]:
            if low <= times * 10.0**decade <= high:
                tics.append(times * 10.0**decade)
    return tics


def end_labels(curves, is_log, low, high):
    """(x, y, text) for the last point of each curve, moved apart so that no two touch, and no further than that."""
    room = 15 / ONLY_HEIGHT
    place = (lambda y: math.log(y / low) / math.log(high / low)) if is_log else (lambda y: (y - low) / (high - low))
    back = (lambda p: low * (high / low)**p) if is_log else (lambda p: low + p * (high - low))
    groups = []  # [first place, those in it from below]
    for where, i in sorted((place(c.rows[-1][1]), i) for i, c in enumerate(curves)):
        groups.append([where, [(where, i)]])
        while len(groups) > 1 and groups[-1][0] - groups[-2][0] < room * len(groups[-2][1]):
            members = groups[-2][1] + groups.pop()[1]
            middle = sum(w for w, _ in members) / len(members)
            groups[-1] = [max(room, middle - room * (len(members) - 1) / 2), members]
    return {i: (curves[i].rows[-1][0], back(first + k * room), number(curves[i].rows[-1][1]))
            for first, members in groups for k, (_, i) in enumerate(members)}


def axis(low, high, is_log, size):
    """From a number to pixels from the axis' start."""
    if is_log:
        return lambda v: math.log(v / low) / math.log(high / low) * size
    return lambda v: (v - low) / (high - low) * size


def free_side(text, at, is_below, taken):
    """On which side of its point a number touches nothing that is there, (x, y, half width, half height) each, which it then
    is too. Above or below as is wished, else the other way, else to the side that is nearer."""
    half, near = 3.2 * len(text), 3
    sides = [("center offset 0,0.9", 0, 15), ("center offset 0,-0.9", 0, -15), ("left offset 1.2,0", 10 + half, 0), ("right offset -1.2,0", -10 - half, 0)]
    sides = sides[:2][::-1 if is_below else 1] + sides[2:][::-1 if at[0] < ONLY_WIDTH / 2 else 1]

    def is_free(side):
        x, y = at[0] + side[1], at[1] + side[2]
        return not any(abs(x - tx) < half + tw - near and abs(y - ty) < 6 + th - near for tx, ty, tw, th in taken)
    words, dx, dy = next(filter(is_free, sides), sides[0])
    taken.append((at[0] + dx, at[1] + dy, half, 6))
    return words


def is_above(a, b):
    """Of two curves, by what they share."""
    heights = dict(row[:2] for row in b.rows)
    return sum(y - heights[x] for x, y, *_ in a.rows if x in heights) > 0


def draw_curves(title, note, curves, wanted):
    """Lines are ours, open marks the source's; a number at each point, or at the last of each line where they are many."""
    curves = [c for c in curves if c.rows]
    names = [c.name + suffix for c in curves for suffix in ((": simulated", ": " + c.source_name) if c.source() else ("",))]
    is_log = "y" in wanted.get("log", "")
    xs = [row[0] for c in curves for row in c.rows]
    ys = [y for c in curves for row in c.rows for y in row[1:] if y is not None]
    low, high = bounds(ys, is_log)
    low = low if is_log else 0 if wanted.get("from_zero", True) and min(ys) >= 0 else low
    x_low, x_high = bounds(xs, "x" in wanted.get("log", ""))
    if "limit" in wanted:
        high = max(high, wanted["limit"]["at"] * 1.06)
        low = min(low, wanted["limit"]["at"])
    y_tics = log_tics(low, high) if is_log else linear_tics(low, high)
    left = LEFT + LETTER * max(0, max(len(f"{t:,.6g}") for t in y_tics) - 3)
    width, height = left + ONLY_WIDTH + 60 + key_width(names), TOP + ONLY_HEIGHT + BOTTOM
    lines = head(title, note, width, height, left) + margins(left, TOP, ONLY_WIDTH, ONLY_HEIGHT, width, height) + AXES
    lines += [key(left + ONLY_WIDTH + 62, TOP - 6, width, height), f"set xrange [{x_low:.9g}:{x_high:.9g}]", f"set yrange [{low:.9g}:{high:.9g}]",
              f"set ylabel {quoted(wanted['ylabel'])} noenhanced offset 0.5", f"set xlabel {quoted(wanted.get('xlabel', ''))} noenhanced offset 0,0.3"]
    if "x" in wanted.get("log", ""):
        lines.append("set logscale x 2")
    lines += [f"set xtics out nomirror {tics_of(xs)}", f"set ytics out nomirror {shown_tics(y_tics)}"]
    if is_log:
        lines.append("set logscale y 10")
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
    across, up = axis(x_low, x_high, "x" in wanted.get("log", ""), ONLY_WIDTH), axis(low, high, is_log, ONLY_HEIGHT)

    def spot(x, y):
        return across(x), up(y)
    taken = [(*spot(x, y), 7, 7) for c in curves for x, *both in c.rows for y in both if y is not None]
    for i, c in enumerate(curves):
        colour, marker = light(SERIES[i % len(SERIES)]), MARKERS[i % len(MARKERS)]
        lines += block(f"curve{i}", c.rows)
        name = c.name + (": simulated" if c.source() else "")
        plots.append(f"$curve{i} using 1:2 with linespoints linewidth 2 pointtype {marker} pointsize 0.9 linecolor rgb '{colour}' title {quoted(name)}")
        if c.source():
            plots.append(f"$curve{i} using 1:3 with points pointtype {marker - 1} pointsize 1.4 linewidth 2 linecolor rgb '{colour}' title {quoted(c.name + ': ' + c.source_name)}")
        if shows_all:
            is_lower = len(curves) == 2 and is_above(curves[1 - i], c)
            for x, ours, theirs in c.rows:
                at, is_below = spot(x, ours), is_lower if theirs is None or theirs == ours else theirs > ours
                offset = free_side(number(ours), at, is_below, taken)
                lines.append(f"set label {quoted(number(ours))} at {x:.9g},{ours:.9g} {offset} front font ',10' textcolor rgb '{NOTE}' noenhanced")
        else:
            x, y, text = ends[i]
            lines.append(f"set label {quoted(text)} at {x:.9g},{y:.9g} left offset character 1,0 font ',10' textcolor rgb '{colour}' noenhanced")
    return run([*lines, "plot " + ", \\\n  ".join(plots)])


# --- bars ---

def place_inside(text, start, end, scale, limit):
    """Where the middle of a part's number is, which does not touch the limit's line; None: there is no room."""
    half = (6 * len(text) + 4) / 2 / scale
    tried = [(start + end) / 2] + ([limit - half - 3 / scale, limit + half + 3 / scale] if limit is not None and start < limit < end else [])
    return next((x for x in tried if start + half <= x <= end - half and (limit is None or abs(x - limit) >= half * 0.999)), None)


def draw_bars(title, note, rows, names, source_name, wanted):
    """rows: (label, parts, the source's number of their sum or None); parts are drawn one after the other. A number at the
    end of each bar; a mark where the source's is."""
    label_width = max(60, 7.2 * max(len(label) for label, _, _ in rows) + 20)
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
              f"set xtics {shown_tics(linear_tics(low, high))}", key(left + panel + 20, TOP - 6, width, height), f"set xrange [{low:.9g}:{high:.9g}]", f"set yrange [{len(rows) - 0.5 + 0.1}:-0.6]",
              f"set xlabel {quoted(wanted['ylabel'])} noenhanced offset 0,0.3",
              "set ytics (" + ", ".join(f"{quoted(label)} {i}" for i, (label, _, _) in enumerate(rows)) + ") noenhanced offset -0.8",
              f"set arrow from 0, graph 0 to 0, graph 1 nohead front linewidth 1 linecolor rgb '{NOTE}'"]
    if "limit" in wanted:
        at = wanted["limit"]["at"]
        lines += [f"set arrow from {at}, graph 0 to {at}, graph 1 nohead front {look}"
                  for look in ("linewidth 4 linecolor rgb '#ffffff'", f"linewidth 1.5 dashtype (6,4) linecolor rgb '{light('bad')}'")]
        lines.append(f"set label {quoted(wanted['limit']['name'])} at {at}, graph 1 offset 0, character 0.6 center noenhanced textcolor rgb '{light('bad')}'")
    half = BOX / 2 / (BOX + GAP)
    plots = []
    for k, (name, paint) in enumerate(names):
        data = []
        for i, (_, parts, _) in enumerate(rows):
            start = sum(parts[:k])
            data.append((start + parts[k] / 2, i, start, start + parts[k], i - half, i + half))
        lines += block(f"part{k}", data)
        plots.append(f"$part{k} using 1:2:3:4:5:6 with boxxyerror fillstyle solid 1.0 noborder linecolor rgb '{light(paint)}' title {quoted(name if len(names) > 1 else 'simulated')}")
        for d in data:
            text = number(rows[d[1]][1][k])
            x = place_inside(text, d[2], d[3], panel / (high - low), wanted.get("limit", {}).get("at"))
            if x is not None and sum(part != 0 for part in rows[d[1]][1]) > 1:
                lines.append(f"set label {quoted(text)} at {x:.9g},{d[1]} center front font ',10' textcolor rgb '{ON.get(paint, ink(light(paint)))}' noenhanced")
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
