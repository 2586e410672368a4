#include "show/fits/write_fits.h"

#include <math.h>

#define LABEL_WIDTH 22
#define MIN_WIDTH   9

/* Column 0 is all rows, the others are families; row 0 has all mechanisms on. */
static const LsScore *
score_at (const LsScores *s, guint row, guint column)
{
  if (row == 0)
    return column == 0 ? &s->total : &s->families[column - 1].score;
  const LsAblationScore *a = &s->ablations[row - 1];
  return column == 0 ? &a->total : &a->families[column - 1];
}

static const char *
label_of (const LsScores *s, guint row)
{
  return row == 0 ? "nothing" : s->ablations[row - 1].label;
}

static const char *
name_of (const LsScores *s, guint column)
{
  return column == 0 ? "all" : s->families[column - 1].family;
}

static char *
number (const char *format, double value)
{
  char buffer[G_ASCII_DTOSTR_BUF_SIZE];
  return g_strdup (isnan (value) ? "-" : g_ascii_formatd (buffer, sizeof buffer, format, value));
}

static char *
mape (const LsScore *s)
{
  return number ("%.1f", s->mape_pct);
}

static char *
bias (const LsScore *s)
{
  return number ("%+.1f", s->bias_pct);
}

static int
width_of (const LsScores *s, guint column)
{
  return MAX (MIN_WIDTH, 2 + (int) g_utf8_strlen (name_of (s, column), -1));
}

static void
append_table (GString *out, const LsScores *s, const char *title, char *(*cell) (const LsScore *) )
{
  g_string_append_printf (out, "\n%s\n%-*s", title, LABEL_WIDTH, "off");
  for (guint c = 0; c <= s->n_families; c++)
    g_string_append_printf (out, "%*s", width_of (s, c), name_of (s, c));
  g_string_append_c (out, '\n');
  for (guint row = 0; row <= s->n_ablations; row++) {
    g_string_append_printf (out, "%-*s", LABEL_WIDTH, label_of (s, row));
    for (guint c = 0; c <= s->n_families; c++) {
      g_autofree char *text = cell (score_at (s, row, c));
      g_string_append_printf (out, "%*s", width_of (s, c), text);
    }
    g_string_append_c (out, '\n');
  }
}

void
ls_ablations_to_text (const LsScores *s, GString *out)
{
  if (s->n_ablations == 0)
    return;
  append_table (out, s, "mape %, with a mechanism off", mape);
  append_table (out, s, "bias %, with a mechanism off", bias);
  for (guint i = 0; i < s->n_ablations; i++)
    if (s->ablations[i].total.n != s->total.n)
      g_string_append_printf (out, "without %s: %u rows instead of %u\n", s->ablations[i].label,
                              s->ablations[i].total.n, s->total.n);
}

void
ls_ablations_to_markdown (const LsScores *s, GString *out)
{
  if (s->n_ablations == 0)
    return;
  g_string_append (out, "\n| off: mape / bias % |");
  for (guint c = 0; c <= s->n_families; c++)
    g_string_append_printf (out, " %s |", name_of (s, c));
  g_string_append (out, "\n|---|");
  for (guint c = 0; c <= s->n_families; c++)
    g_string_append (out, "---:|");
  for (guint row = 0; row <= s->n_ablations; row++) {
    g_string_append_printf (out, "\n| %s |", label_of (s, row));
    for (guint c = 0; c <= s->n_families; c++) {
      g_autofree char *m = mape (score_at (s, row, c)), *b = bias (score_at (s, row, c));
      g_string_append_printf (out, " %s / %s |", m, b);
    }
  }
  g_string_append_c (out, '\n');
}
