/* show/write_compare.c — results, or measured and predicted spans, side by side: two in full, more in
 * columns. */
#include "show/answers.h"

#include <lockstep/units.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/order.h"
#include "data/text/json_out.h"
#include "job/assumptions.h"
#include "show/text_table.h"
#include "show/run/write_run.h"

#define MAX_LINKS  10 /* of a text */
#define NAME_WIDTH 28

static double
percent (double a, double b)
{
  return a == 0 || isnan (a) || isnan (b) ? NAN : 100 * (b / a - 1);
}

/* ---- results ---- */

static const struct {
  const char *key, *title;
  double scale; /* to the unit of the text */
} sections[] = {
  [LS_RESULT_STEP] = { "step", "step", 1 },
  [LS_RESULT_BREAKDOWN] = { "breakdown_s", "breakdown, ms", 1e3 },
  [LS_RESULT_BUBBLES] = { "bubble_parts_s", "bubble, ms", 1e3 },
  [LS_RESULT_PATH] = { "critical_path_ps", "critical path, ms", 1e-9 },
  [LS_RESULT_MEMORY] = { "memory_bytes", "memory, MiB", 1.0 / (1 << 20) },
  [LS_RESULT_LINKS] = { "links", "busiest links, %", 100 },
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
  const char *key, *title;
  size_t list; /* its place in LsResultFile */
  const char *(*value) (const GPtrArray *list, const char *name);
  bool of_differing; /* shown: else all of them */
} Texts;

static const Texts options
    = { "options", "options that differ", offsetof (LsResultFile, options), ls_result_option, true };
static const Texts assumptions
    = { "rests_on", "what they rest on", offsetof (LsResultFile, assumptions), ls_result_assumption, false };
static const Texts origins
    = { "origins", "whence that is", offsetof (LsResultFile, origins), ls_result_assumption, false };

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
is_shown (LsResultFile *const *files, guint n, const Texts *t, const char *name)
{
  for (guint i = 1; i < n && t->of_differing; i++)
    if (g_strcmp0 (text_of (files[i], t, name), text_of (files[0], t, name)) != 0)
      return true;
  return !t->of_differing;
}

static bool
has_text (const GPtrArray *names, const char *name)
{
  return g_ptr_array_find_with_equal_func ((GPtrArray *) names, name, g_str_equal, NULL);
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
      if (!has_text (names, name) && is_shown (files, n, t, name))
        g_ptr_array_add (names, (gpointer) name);
    }
  return names;
}

/* "the model's", or where these differ "A: given; B: the model's". Newly allocated. */
static char *
origins_of (LsResultFile *const *files, guint n, const char *name)
{
  GString *out = g_string_new (NULL);
  bool differs = false;
  for (guint i = 1; i < n; i++)
    differs |= g_strcmp0 (text_of (files[i], &origins, name), text_of (files[0], &origins, name)) != 0;
  for (guint i = 0; i < (differs ? n : 1); i++) {
    const char *why = text_of (files[i], &origins, name);
    g_autofree char *column = column_name (i);
    g_string_append_printf (out, "%s%s%s%s", i > 0 ? "; " : "", differs ? column : "", differs ? ": " : "",
                            why ? why : "-");
  }
  return g_string_free (out, FALSE);
}

/* A member of an open object: names and values, as a and b of two files. */
static void
write_texts (LsJsonOut *w, LsResultFile *const *files, guint n, const Texts *t)
{
  g_autoptr (GPtrArray) names = compare_names (files, n, t);
  ls_json_out_begin_array (w, t->key);
  for (guint k = 0; k < names->len; k++) {
    const char *name = g_ptr_array_index (names, k);
    ls_json_out_begin_object (w, NULL);
    ls_json_out_string (w, "name", name);
    if (n > 2)
      ls_json_out_begin_array (w, "values");
    for (guint i = 0; i < n; i++)
      ls_json_out_string (w, n > 2 ? NULL : i == 0 ? "a" : "b", text_of (files[i], t, name));
    if (n > 2)
      ls_json_out_end_array (w);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
}

/* --- numbers --- */

static bool
says_something (LsResultFile *const *files, guint n, int section, const char *name)
{
  for (guint i = 0; i < n; i++) {
    double value = ls_compare_number (files[i], section, name);
    if (!isnan (value) && value != 0)
      return true;
  }
  return false;
}

/* What any file has of a section, of what some file has more than 0 of. */
static GPtrArray *
names_that_say (LsResultFile *const *files, guint n, int section)
{
  GPtrArray *names = ls_compare_names (files, n, section);
  for (guint i = names->len; i-- > 0;)
    if (!says_something (files, n, section, names->pdata[i]))
      g_ptr_array_remove_index (names, i);
  return names;
}

/* What two files have of one name; NaN: that file lacks it. */
typedef struct {
  const char *name;
  double a, b;
} Row;

static Row
row_of (LsResultFile *const *files, int section, const char *name)
{
  return (Row) { name, ls_compare_number (files[0], section, name),
                 ls_compare_number (files[1], section, name) };
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

/* Row: of a section of two files, as far as a text shows them. */
static GArray *
shown_rows (LsResultFile *const *files, int section)
{
  GArray *rows = g_array_new (FALSE, FALSE, sizeof (Row));
  g_autoptr (GPtrArray) names = names_that_say (files, 2, section);
  for (guint i = 0; i < names->len; i++) {
    const Row row = row_of (files, section, names->pdata[i]);
    if (section != LS_RESULT_LINKS || moved (&row) > 0)
      g_array_append_val (rows, row);
  }
  if (section == LS_RESULT_LINKS) {
    g_array_sort (rows, by_move); /* stable: equal ones stay in the order of the file */
    g_array_set_size (rows, MIN (rows->len, MAX_LINKS));
  }
  return rows;
}

#include "show/compare_text.h"

/* --- for programs ----------------------------------------------------------------------------------- */

/* Of two files with their difference, of more with a value of each. */
static void
write_row (LsJsonOut *w, LsResultFile *const *files, guint n, int section, const char *name)
{
  const Row row = row_of (files, section, name);
  ls_json_out_begin_object (w, NULL);
  ls_json_out_string (w, "name", name);
  if (n > 2) {
    ls_json_out_begin_array (w, "values");
    for (guint i = 0; i < n; i++)
      ls_json_out_double (w, NULL, ls_compare_number (files[i], section, name));
    ls_json_out_end_array (w);
  } else {
    ls_json_out_double (w, "a", row.a);
    ls_json_out_double (w, "b", row.b);
    ls_json_out_double (w, "delta", row.b - row.a);
    ls_json_out_double (w, "change_pct", percent (row.a, row.b));
  }
  ls_json_out_end_object (w);
}

static void
write_section (LsJsonOut *w, LsResultFile *const *files, guint n, int section)
{
  g_autoptr (GPtrArray) names = ls_compare_names (files, n, section);
  ls_json_out_begin_array (w, sections[section].key);
  for (guint k = 0; k < names->len; k++)
    write_row (w, files, n, section, names->pdata[k]);
  ls_json_out_end_array (w);
}

#include "show/compare_keys.h"

/* ---- what single changes gain, as text, JSON, CSV ---- */

#define LEAST_GAIN 5e-4 /* what is shown as 0.0 % is none */

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
  return row->refused              ? REFUSED
      : !(row->gain >= LEAST_GAIN) ? (row->fits ? LOSES : LOSES_SHORT)
      : row->fits                  ? GAINS
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

/* Whether an hour of all GPUs costs something else than now; false where a price is not known. */
static bool
has_other_price (const LsWhatIf *w, const LsWhatIfRow *row)
{
  double now = w->now.usd_per_million_tokens * w->now.tokens_per_s,
         then = row->usd_per_million_tokens * row->tokens_per_s;
  return fabs (then - now) > 1e-9 * now;
}

#include "show/whatif_text.h"

/* --- JSON ------------------------------------------------------------------------------ */

#include "show/whatif_keys.h"

void
ls_json_what_if (LsJsonOut *w, const LsWhatIf *what_if)
{
  ls_keys_whatif (w, what_if);
}
