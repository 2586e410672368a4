#include "validate/baseline.h"

#include <math.h>
#include <stdbool.h>

/* A row that may teach. */
typedef struct {
  guint row;
  double mfu;
  const char *family;
} Lesson;

static int
compare_mfu (gconstpointer a, gconstpointer b)
{
  double x = ((const Lesson *) a)->mfu, y = ((const Lesson *) b)->mfu;
  return (x > y) - (x < y);
}

/* Sorted by MFU. */
static GArray *
lessons_of (const LsScoreRow *rows, guint n)
{
  GArray *lessons = g_array_new (FALSE, FALSE, sizeof (Lesson));
  for (guint i = 0; i < n; i++) {
    Lesson lesson = { i, rows[i].ideal_s / rows[i].measured_s, rows[i].family };
    if (!isnan (rows[i].predicted_s) && isfinite (lesson.mfu))
      g_array_append_val (lessons, lesson);
  }
  g_array_sort (lessons, compare_mfu);
  return lessons;
}

static bool
teaches (const Lesson *lesson, guint row, const char *family, LsBaseline baseline)
{
  bool is_own = g_str_equal (lesson->family, family);
  return baseline == LS_BASELINE_OWN ? is_own && lesson->row != row : !is_own;
}

/* The median; NaN: nobody teaches. chosen: room for as many as there are lessons. */
static double
learn_mfu (const GArray *lessons, guint row, const char *family, LsBaseline baseline, double *chosen)
{
  guint n = 0;
  for (guint i = 0; i < lessons->len; i++) {
    const Lesson *lesson = &g_array_index (lessons, Lesson, i);
    if (teaches (lesson, row, family, baseline))
      chosen[n++] = lesson->mfu;
  }
  return n > 0 ? (chosen[(n - 1) / 2] + chosen[n / 2]) / 2 : NAN;
}

void
ls_baseline (LsScoreRow *rows, guint n)
{
  g_autoptr (GArray) lessons = lessons_of (rows, n);
  g_autofree double *room = g_new (double, lessons->len);
  for (guint i = 0; i < n; i++) {
    double own = learn_mfu (lessons, i, rows[i].family, LS_BASELINE_OWN, room);
    double others = learn_mfu (lessons, i, rows[i].family, LS_BASELINE_OTHERS, room);
    double ideal_s = isnan (rows[i].predicted_s) ? NAN : rows[i].ideal_s;
    rows[i].baseline_s[LS_BASELINE_OWN] = ideal_s / (isnan (own) ? others : own);
    rows[i].baseline_s[LS_BASELINE_OTHERS] = ideal_s / others;
  }
}
