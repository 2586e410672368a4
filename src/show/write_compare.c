/* show/write_compare.c — results, or measured and predicted spans, side by side: two in full, more in
 * columns. */
#include "show/answers.h"

#include <lockstep/units.h>
#include <math.h>
#include <string.h>

#include "base/order.h"
#include "job/assumptions.h"
#include "show/text_table.h"

#define MAX_LINKS   10 /* of a text */
#define NAME_WIDTH  28
#define VALUE_WIDTH 14

static double
percent (double a, double b)
{
  return a == 0 || isnan (a) || isnan (b) ? NAN : 100 * (b / a - 1);
}

/* ---- results ---- */

static const struct {
  const char *title;
  double scale; /* to the unit of the text */
} sections[] = {
  [LS_RESULT_STEP] = { "step", 1 },
  [LS_RESULT_BREAKDOWN] = { "breakdown, ms", 1e3 },
  [LS_RESULT_BUBBLES] = { "bubble, ms", 1e3 },
  [LS_RESULT_PATH] = { "critical path, ms", 1e-9 },
  [LS_RESULT_MEMORY] = { "memory, MiB", 1.0 / (1 << 20) },
  [LS_RESULT_LINKS] = { "busiest links, %", 100 },
};

/* A launch file gives its name to its model: by that it is not known to be another one. */
static bool
may_be_one_model (const LsResultFile *a, const LsResultFile *b)
{
  return (a->model_is_of_file || b->model_is_of_file) && a->params == b->params;
}

static bool
is_mixed (LsResultFile *const *files, guint n)
{
  bool is_other = false;
  for (guint i = 1; i < n; i++)
    is_other |= g_strcmp0 (ls_result_option (files[i]->options, "--software"),
                           ls_result_option (files[0]->options, "--software"))
        != 0;
  return is_other;
}

/* --- options that differ, and more than two results in columns ----------------------------------- */

/* "A" to "Z", then "27" */
static char *
column_name (guint i)
{
  return i < 26 ? g_strdup_printf ("%c", 'A' + (int) i) : g_strdup_printf ("%u", i + 1);
}

/* --- options, and what numbers rest on --- */

/* A list of texts that each file has. */
typedef struct {
  const char *title;
  size_t list; /* its place in LsResultFile */
  const char *(*value) (const GPtrArray *list, const char *name);
  bool of_differing; /* shown: else all of them */
} Texts;

static const Texts options
    = { "options that differ", offsetof (LsResultFile, options), ls_result_option, true };
static const Texts assumptions
    = { "what they rest on", offsetof (LsResultFile, assumptions), ls_result_assumption, false };
static const Texts origins
    = { "whence that is", offsetof (LsResultFile, origins), ls_result_assumption, false };

static const GPtrArray *
list_of (const LsResultFile *file, const Texts *t)
{
  return *(GPtrArray *const *) ((const char *) file + t->list);
}

static const char *
text_of (const LsResultFile *file, const Texts *t, const char *name)
{
  return t->value (list_of (file, t), name);
}

static bool
differs (LsResultFile *const *files, guint n, const Texts *t, const char *name)
{
  for (guint i = 1; i < n; i++)
    if (g_strcmp0 (text_of (files[i], t, name), text_of (files[0], t, name)) != 0)
      return true;
  return false;
}

/* The first file that has the same text of that name. */
static guint
first_alike (LsResultFile *const *files, const Texts *t, const char *name, guint i)
{
  guint first = 0;
  while (g_strcmp0 (text_of (files[first], t, name), text_of (files[i], t, name)) != 0)
    first++;
  return first;
}

/* Names (char *, borrowed) of those that are shown, in the order in which they appear; where a file does not
 * say its own, none. n > 0. Free with g_ptr_array_unref(). */
static GPtrArray *
compare_names (LsResultFile *const *files, guint n, const Texts *t)
{
  GPtrArray *names = g_ptr_array_new ();
  for (guint i = 0; i < n; i++)
    if (list_of (files[i], t)->len == 0)
      return names;
  for (guint i = 0; i < n; i++)
    for (guint k = 0; k < list_of (files[i], t)->len; k++) {
      const char *name = ((const LsResultOption *) g_ptr_array_index (list_of (files[i], t), k))->name;
      if (!g_ptr_array_find_with_equal_func (names, name, g_str_equal, NULL)
          && (!t->of_differing || differs (files, n, t, name)))
        g_ptr_array_add (names, (gpointer) name);
    }
  return names;
}

/* --- rows --- */

/* What files have of one name. */
typedef struct {
  const char *name;
  const Texts *texts; /* NULL: numbers */
  int section;
  double a, b; /* numbers of the first two; NaN: that file lacks it */
} Row;

static GArray *
text_rows (LsResultFile *const *files, guint n, const Texts *t)
{
  GArray *rows = g_array_new (FALSE, FALSE, sizeof (Row));
  g_autoptr (GPtrArray) names = compare_names (files, n, t);
  for (guint i = 0; i < names->len; i++) {
    const Row row = { .name = names->pdata[i], .texts = t };
    g_array_append_val (rows, row);
  }
  return rows;
}

static GArray *
rows_of (LsResultFile *const *files, guint n, int section)
{
  GArray *rows = g_array_new (FALSE, FALSE, sizeof (Row));
  g_autoptr (GPtrArray) names = ls_compare_names (files, n, section);
  for (guint i = 0; i < names->len; i++) {
    const char *name = names->pdata[i];
    const Row row = { name, NULL, section, ls_compare_number (files[0], section, name),
                      ls_compare_number (files[1], section, name) };
    g_array_append_val (rows, row);
  }
  return rows;
}

static bool
says_something (LsResultFile *const *files, guint n, const Row *row)
{
  for (guint i = 0; i < n; i++) {
    double value = ls_compare_number (files[i], row->section, row->name);
    if (!isnan (value) && value != 0)
      return true;
  }
  return false;
}

static double
moved (const Row *row)
{
  return fabs ((isnan (row->b) ? 0 : row->b) - (isnan (row->a) ? 0 : row->a));
}

static int
by_move (gconstpointer a, gconstpointer b)
{
  return LS_ORDER (moved (b), moved (a));
}

/* What some file has more than 0 of; of links those that moved most. */
static GArray *
shown_rows (LsResultFile *const *files, guint n, int section)
{
  GArray *rows = rows_of (files, n, section);
  for (guint i = rows->len; i-- > 0;) {
    const Row *row = &g_array_index (rows, Row, i);
    if (!says_something (files, n, row) || (section == LS_RESULT_LINKS && moved (row) == 0))
      g_array_remove_index (rows, i);
  }
  if (section == LS_RESULT_LINKS) {
    g_array_sort (rows, by_move); /* stable: equal ones stay in the order of the file */
    g_array_set_size (rows, MIN (rows->len, MAX_LINKS));
  }
  return rows;
}

static bool
has_wide_text (LsResultFile *const *files, guint n, const Row *row)
{
  gsize widest = 0;
  for (guint i = 0; i < n && row->texts; i++) {
    const char *text = text_of (files[i], row->texts, row->name);
    widest = MAX (widest, text ? strlen (text) : 0);
  }
  return widest > VALUE_WIDTH;
}

#include "show/compare_text.h"

#include "show/compare_keys.h"

/* ---- what single changes gain, as text, JSON, CSV ---- */

/* What a change comes to, and sets of these. */
typedef enum {
  REFUSED = 1,
  GAINS = 2,       /* and fits */
  GAINS_SHORT = 4, /* of memory */
  LOSES = 8,       /* or gains nothing */
  LOSES_SHORT = 16,
  GAINS_NOTHING = LOSES | LOSES_SHORT,
  FITS = GAINS | LOSES,
  DOES_NOT_FIT = GAINS_SHORT | LOSES_SHORT,
  POSSIBLE = FITS | DOES_NOT_FIT,
} Outcome;

static Outcome
outcome_of (const LsWhatIfRow *row)
{
  return row->refused                 ? REFUSED
      : !(row->gain >= LS_LEAST_GAIN) ? (row->fits ? LOSES : LOSES_SHORT)
      : row->fits                     ? GAINS
                                      : GAINS_SHORT;
}

static guint
count (const LsWhatIf *w, Outcome of)
{
  guint n = 0;
  for (guint i = 0; i < w->rows->len; i++)
    n += (outcome_of (&g_array_index (w->rows, LsWhatIfRow, i)) & of) != 0;
  return n;
}

#include "show/whatif_text.h"

/* --- JSON ------------------------------------------------------------------------------ */

#include "show/whatif_keys.h"

void
ls_json_what_if (LsJsonOut *w, const LsWhatIf *what_if)
{
  ls_keys_whatif (w, what_if);
}
