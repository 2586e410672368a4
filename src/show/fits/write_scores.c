/* show/fits/write_scores.c — the scoreboard of `validate`: what mechanisms are worth, how well intervals
 * hold. */
#include "show/fits/write_fits.h"

#include <math.h>

#include "show/quantity.h"

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
mape (const LsScore *s)
{
  return ls_text_number ("%.1f", s->mape_pct);
}

static char *
bias (const LsScore *s)
{
  return ls_text_number ("%+.1f", s->bias_pct);
}

static int
width_of (const LsScores *s, guint column)
{
  return MAX (MIN_WIDTH, 2 + (int) g_utf8_strlen (name_of (s, column), -1));
}

/* --- the scoreboard --------------------------------------------------------------------------------- */

static int
longest_id (const LsScores *s)
{
  glong width = 6;
  for (guint i = 0; i < s->n_rows; i++)
    width = MAX (width, g_utf8_strlen (s->rows[i].id, -1));
  return (int) width;
}

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

#include "show/scores_text.h"

/* --- the same for programs ------------------------------------------------------------------------- */

#include "show/validate_keys.h"
