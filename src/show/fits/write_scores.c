#include "show/fits/write_fits.h"

#include <math.h>

#include "show/text_table.h"

/* --- what mechanisms are worth ---------------------------------------------------------------------- */

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

/* --- how well intervals hold ------------------------------------------------------------------------ */

static void
add_percent (LsTextTable *t, double fraction)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  ls_text_table_take (t,
                      isnan (fraction)
                          ? g_strdup ("-")
                          : g_strdup (g_ascii_formatd (text, sizeof text, "%.1f", 100 * fraction)));
}

static void
add_line (LsTextTable *t, const LsCoverageLine *l)
{
  ls_text_table_add (t, "%s\v%u\v%u", l->source, l->n, l->n_unlike);
  add_percent (t, l->covered);
  add_percent (t, l->width);
}

static void
begin_table (LsTextTable *t, const char *first)
{
  ls_text_table_init (t, "lrrrr");
  ls_text_table_add (t, "%s\vn\vunlike\vcovered %%\vmedian width %%", first);
}

void
ls_coverage_to_text (const LsCoverage *c, GString *out)
{
  LsTextTable t;
  g_string_append_printf (out,
                          "\nIntervals of %.0f %%, of each source by what the others measured; unlike: none, "
                          "for want of a run like it\n",
                          100 * c->level);
  begin_table (&t, "source");
  for (guint i = 0; i < c->n_sources; i++)
    add_line (&t, &c->sources[i]);
  add_line (&t, &c->each);
  add_line (&t, &c->rows);
  ls_text_table_print (&t, 0, out);
  if (c->n_left_out == 0)
    return;
  g_string_append (out,
                   "\nThe same of all runs that have something in common, by the runs without; each source "
                   "counts once\n");
  begin_table (&t, "left out");
  for (guint i = 0; i < c->n_left_out; i++)
    add_line (&t, &c->left_out[i]);
  ls_text_table_print (&t, 0, out);
}

/* --- the scoreboard --------------------------------------------------------------------------------- */

/* ---- text ---- */

/* A number with a sign if asked for, or a dash, right-aligned. */
static void
append_number (GString *out, int width, const char *format, double value)
{
  g_autofree char *text = isnan (value) ? g_strdup ("-") : NULL;
  if (!text) {
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];
    text = g_strdup (g_ascii_formatd (buffer, sizeof buffer, format, value));
  }
  g_string_append_printf (out, "%*s", width, text);
}

static int
longest_id (const LsScores *s)
{
  glong width = 6;
  for (guint i = 0; i < s->n_rows; i++)
    width = MAX (width, g_utf8_strlen (s->rows[i].id, -1));
  return (int) width;
}

static void
append_row (GString *out, int id_width, const LsScoreRow *row)
{
  g_string_append_printf (out, "%-*s", id_width, row->id);
  append_number (out, 14, "%.4f", row->measured_s);
  append_number (out, 14, "%.4f", row->predicted_s);
  if (isnan (row->predicted_s))
    g_string_append_printf (out, "   refused: %s\n", row->reason ? row->reason : "");
  else {
    append_number (out, 9, "%+.1f", ls_score_row_error_pct (row));
    g_string_append (out, " %\n");
  }
}

/* ---- by family ---- */

static const struct {
  const char *head, *format;
  int width;
} columns[] = {
  { "n", "%.0f", 6 },        { "refused", "%.0f", 9 },    { "mape %", "%.1f", 9 },
  { "median %", "%.1f", 9 }, { "bias %", "%+.1f", 9 },    { "worst %", "%+.1f", 9 },
  { "tau", "%.3f", 9 },      { "own-mfu %", "%.1f", 11 }, { "any-mfu %", "%.1f", 11 },
};
/* Of a baseline, as a score of its own: mape to tau. */
#define FIRST_OF_BASELINE 2
#define LAST_OF_BASELINE  6

static double
value_of (const LsFamilyScore *f, guint column)
{
  const LsScore *s = &f->score;
  const double values[] = {
    s->n,
    s->refused,
    s->mape_pct,
    s->median_abs_pct,
    s->bias_pct,
    s->worst_pct,
    s->kendall_tau,
    f->baseline[LS_BASELINE_OWN].mape_pct,
    f->baseline[LS_BASELINE_OTHERS].mape_pct,
  };
  return values[column];
}

static int
longest_family (const LsScores *s)
{
  glong width = 14;
  for (guint i = 0; i < s->n_families; i++)
    width = MAX (width, g_utf8_strlen (s->families[i].family, -1));
  return (int) width;
}

static LsFamilyScore
whole (const LsScores *s)
{
  LsFamilyScore all = { .family = "all", .score = s->total };
  for (LsBaseline b = 0; b < LS_N_BASELINES; b++)
    all.baseline[b] = s->total_baseline[b];
  return all;
}

static void
append_head (GString *out, int width, const char *name, guint first, guint last)
{
  g_string_append_printf (out, "\n%-*s", width, name);
  for (guint c = first; c <= last; c++)
    g_string_append_printf (out, "%*s", columns[c].width, columns[c].head);
  g_string_append_c (out, '\n');
}

static void
append_family (GString *out, int width, const LsFamilyScore *f, guint first, guint last)
{
  g_string_append_printf (out, "%-*s", width, f->family);
  for (guint c = first; c <= last; c++)
    append_number (out, columns[c].width, columns[c].format, value_of (f, c));
  g_string_append_c (out, '\n');
}

static void
append_families (GString *out, const LsScores *s, int width)
{
  guint last = G_N_ELEMENTS (columns) - 1;
  const LsFamilyScore all = whole (s);
  append_head (out, width, "family", 0, last);
  for (guint i = 0; i < s->n_families; i++)
    append_family (out, width, &s->families[i], 0, last);
  append_family (out, width, &all, 0, last);
}

/* The same statistics of a calculator that knows one MFU; nothing where it knows none. */
static void
append_baseline (GString *out, const LsScores *s, int width, LsBaseline baseline, const char *title)
{
  if (s->total_baseline[baseline].n == 0)
    return;
  g_string_append_printf (out, "\n%s", title);
  append_head (out, width, "family", FIRST_OF_BASELINE, LAST_OF_BASELINE);
  for (guint i = 0; i < s->n_families; i++) {
    const LsFamilyScore f = { .family = s->families[i].family, .score = s->families[i].baseline[baseline] };
    append_family (out, width, &f, FIRST_OF_BASELINE, LAST_OF_BASELINE);
  }
  const LsFamilyScore all = { .family = "all", .score = s->total_baseline[baseline] };
  append_family (out, width, &all, FIRST_OF_BASELINE, LAST_OF_BASELINE);
}

char *
ls_scores_refusals (const LsScores *s)
{
  GString *out = g_string_new (NULL);
  for (guint i = 0; i < s->n_refusals; i++)
    g_string_append_printf (out, "%6u  %s  (%s)\n", s->refusals[i].n, s->refusals[i].reason,
                            s->refusals[i].example);
  return g_string_free (out, FALSE);
}

static void
append_refusals (GString *out, const LsScores *s)
{
  if (s->n_refusals == 0)
    return;
  g_string_append_printf (out, "\nrefused: %u of %u rows, ", s->total.refused, s->n_rows);
  append_number (out, 0, "%.1f", 100.0 * s->total.refused / s->n_rows);
  g_string_append (out, " %\n");
  g_autofree char *reasons = ls_scores_refusals (s);
  g_string_append (out, reasons);
}

static void
append_memory_row (GString *out, int width, const LsScoreRow *row)
{
  g_string_append_printf (out, "%-*s", width, row->id);
  append_number (out, 14, "%.2f", row->measured_gib);
  append_number (out, 14, "%.2f", row->predicted_gib);
  append_number (out, 9, "%+.1f", ls_score_row_memory_error_pct (row));
  g_string_append (out, isnan (row->predicted_gib) ? "\n" : " %\n");
}

/* Rows whose memory was measured, and their errors in one line. */
static void
append_memory (GString *out, const LsScores *s)
{
  if (s->memory.n + s->memory.refused == 0)
    return;
  int width = longest_id (s);
  g_string_append_printf (out, "\n%-*s%14s%14s%9s\n", width, "memory", "measured GiB", "predicted GiB",
                          "error");
  for (guint i = 0; i < s->n_rows; i++)
    if (s->rows[i].measured_gib > 0)
      append_memory_row (out, width, &s->rows[i]);
  g_string_append_printf (out, "%u rows: mean absolute error ", s->memory.n);
  append_number (out, 0, "%.1f", s->memory.mape_pct);
  g_string_append (out, " %, bias ");
  append_number (out, 0, "%+.1f", s->memory.bias_pct);
  g_string_append (out, " %, worst ");
  append_number (out, 0, "%+.1f", s->memory.worst_pct);
  g_string_append (out, " %\n");
}

static void
append_names (GString *out, const char *title, const char *const *names)
{
  for (guint i = 0; names && names[i]; i++)
    g_string_append_printf (out, "%s%s%s", i == 0 ? "\n" : "", i == 0 ? title : ", ", names[i]);
  if (names && names[0])
    g_string_append_c (out, '\n');
}

char *
ls_scores_to_text (const LsScores *s)
{
  int width = longest_id (s);
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "%-*s%14s%14s%9s\n", width, "id", "measured s", "predicted s", "error");
  for (guint i = 0; i < s->n_rows; i++)
    append_row (out, width, &s->rows[i]);

  width = longest_family (s);
  append_families (out, s, width);
  append_baseline (out, s, width, LS_BASELINE_OWN,
                   "own-mfu: a calculator that knows one MFU, from the other rows of the family");
  append_baseline (out, s, width, LS_BASELINE_OTHERS,
                   "any-mfu: the same, from the rows of all other families");
  append_memory (out, s);
  append_refusals (out, s);
  ls_ablations_to_text (s, out);
  append_names (out, "assumed for every row, whatever it says: ", s->assumed);
  append_names (out,
                "what their tables do not say of these is taken from strategies/software: ", s->own_knobs);
  append_names (out, "clusters of rows that name none, by their hardware: ", s->by_hardware);
  append_names (out, "columns that nothing reads: ", s->ignored);
  if (s->coverage)
    ls_coverage_to_text (s->coverage, out);
  return g_string_free (out, FALSE);
}

/* ---- Markdown ---- */

static void
append_markdown (GString *out, const LsFamilyScore *f)
{
  g_string_append_printf (out, "| %s |", f->family);
  for (guint c = 0; c < G_N_ELEMENTS (columns); c++) {
    g_string_append_c (out, ' ');
    append_number (out, 0, columns[c].format, value_of (f, c));
    g_string_append (out, " |");
  }
  g_string_append_c (out, '\n');
}

char *
ls_scores_to_markdown (const LsScores *s)
{
  GString *out = g_string_new ("| family |");
  const LsFamilyScore all = whole (s);
  for (guint c = 0; c < G_N_ELEMENTS (columns); c++)
    g_string_append_printf (out, " %s |", columns[c].head);
  g_string_append (out, "\n|---|");
  for (guint c = 0; c < G_N_ELEMENTS (columns); c++)
    g_string_append (out, "---:|");
  g_string_append_c (out, '\n');
  for (guint i = 0; i < s->n_families; i++)
    append_markdown (out, &s->families[i]);
  append_markdown (out, &all);
  ls_ablations_to_markdown (s, out);
  return g_string_free (out, FALSE);
}

/* --- the same for programs ------------------------------------------------------------------------- */

#include "show/validate_keys.h"
