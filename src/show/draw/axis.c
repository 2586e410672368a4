#include "show/draw/axis.h"

#include <math.h>

#define SIZE        11.0 /* of letters, pixels */
#define TITLE_SIZE  16.0
#define TICK        5.0
#define TICK_ROOM   90.0 /* of one with its value, along the axis */
#define LEGEND_LINE 20.0
#define MARK        12.0

const char *
ls_axis_unit (LsTime largest, LsTime *ret_unit)
{
  static const struct {
    const char *name;
    LsTime unit;
  } units[] = { { "s", LS_S }, { "ms", LS_MS }, { "us", LS_US } };
  for (guint i = 0; i < G_N_ELEMENTS (units); i++)
    if (largest >= units[i].unit) {
      *ret_unit = units[i].unit;
      return units[i].name;
    }
  *ret_unit = LS_NS;
  return "ns";
}

/* 1, 2 or 5 times a power of ten: at most n in the range. */
static double
step_of (double range, double n)
{
  double power = pow (10, floor (log10 (range / n)));
  for (int i = 0; i < 3; i++) {
    double step = power * (i == 0 ? 1 : i == 1 ? 2 : 5);
    if (step * n >= range)
      return step;
  }
  return 10 * power;
}

static void
tick_text (char text[G_ASCII_DTOSTR_BUF_SIZE], double value, double step)
{
  g_ascii_formatd (text, G_ASCII_DTOSTR_BUF_SIZE, "%.10g", fabs (value) < step * 1e-9 ? 0 : value);
}

double
ls_draw_axis_below (LsDrawing *d, double left, double right, double y, const LsDrawnAxis *axis)
{
  const LsStroke stroke = { .layer = LS_LAYER_OVER, .paint = "quiet", .width = 1 };
  double range = axis->to - axis->from, step = step_of (range, fmax (2, (right - left) / TICK_ROOM));
  for (double at = ceil (axis->from / step - 1e-9) * step; at <= axis->to + 1e-9 * range; at += step) {
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    tick_text (text, at, step);
    double x = left + (at - axis->from) / range * (right - left);
    ls_drawing_segment (d, (LsXY) { x, y }, (LsXY) { x, y + TICK }, &stroke);
    bool is_at_edge = x + ls_text_width (text, SIZE) / 2 > right + 16;
    ls_drawing_text (d, x, y + 14, SIZE, is_at_edge ? LS_RIGHT : LS_CENTER, "quiet", text);
  }
  ls_drawing_text (d, left, y + 31, SIZE, LS_LEFT, "quiet", axis->name);
  return 40;
}

void
ls_draw_axis_left (LsDrawing *d, double left, double right, double top, double bottom,
                   const LsDrawnAxis *axis)
{
  const LsStroke stroke = { .layer = LS_LAYER_GROUND, .paint = "line", .width = 1 };
  double range = axis->to - axis->from, step = step_of (range, fmax (2, (bottom - top) / (TICK_ROOM / 2)));
  for (double at = ceil (axis->from / step - 1e-9) * step; at <= axis->to + 1e-9 * range; at += step) {
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    tick_text (text, at, step);
    double y = bottom - (at - axis->from) / range * (bottom - top);
    ls_drawing_segment (d, (LsXY) { left, y }, (LsXY) { right, y }, &stroke);
    ls_drawing_text (d, left - 8, y, SIZE, LS_RIGHT, "quiet", text);
  }
  ls_drawing_text (d, left, top - 12, SIZE, LS_LEFT, "quiet", axis->name);
}

/* Those that the drawing has, behind each other, in as many lines as they need; returns their height. Only
 * measured unless is_drawn. */
static double
lay_legend (LsDrawing *d, double left, double right, double y, const LsLegendEntry *entries, guint n,
            bool is_drawn)
{
  double x = left, line = y;
  for (guint i = 0; i < n; i++) {
    if (!ls_drawing_has (d, entries[i].paint))
      continue;
    double width = MARK + 5 + ls_text_width (entries[i].name, SIZE);
    if (x > left && x + width > right) {
      x = left;
      line += LEGEND_LINE;
    }
    const LsDrawnBox mark = { LS_LAYER_OVER, x, line, MARK, MARK, entries[i].paint, 0, false, NULL };
    if (is_drawn) {
      ls_drawing_box (d, &mark);
      ls_drawing_text (d, x + MARK + 5, line + MARK / 2, SIZE, LS_LEFT, "text", entries[i].name);
    }
    x += width + 18;
  }
  return line + (x > left ? LEGEND_LINE : 0) - y;
}

double
ls_draw_head (LsDrawing *d, double left, double right, const char *title, const char *note,
              const LsLegendEntry *entries, guint n)
{
  double top = note ? 58 : 42, height = top + lay_legend (d, left, right, top, entries, n, false) + 6;
  ls_drawing_shift (d, height);
  ls_drawing_text (d, left, 22, TITLE_SIZE, LS_LEFT, "text", title);
  if (note)
    ls_drawing_text (d, left, 42, SIZE, LS_LEFT, "quiet", note);
  lay_legend (d, left, right, top, entries, n, true);
  return height;
}
