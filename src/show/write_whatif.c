#include "show/run/write_run.h"

#include <math.h>

#include "job/assumptions.h"
#include "show/quantity.h"
#include "show/text_table.h"

#define GIB        1073741824.0
#define LEAST_GAIN 5e-4 /* what is shown as 0.0 % is none */

static const LsWhatIfRow *
row_at (const LsWhatIf *w, guint i)
{
  return &g_array_index (w->rows, LsWhatIfRow, i);
}

/* --- text ------------------------------------------------------------------------------ */

typedef bool (*Filter) (const LsWhatIfRow *row);

static bool
gains_and_fits (const LsWhatIfRow *row)
{
  return !row->refused && row->gain >= LEAST_GAIN && row->fits;
}

static bool
gains_without_fitting (const LsWhatIfRow *row)
{
  return !row->refused && row->gain >= LEAST_GAIN && !row->fits;
}

static bool
gains_nothing (const LsWhatIfRow *row)
{
  return !row->refused && row->gain < LEAST_GAIN;
}

static bool
is_refused (const LsWhatIfRow *row)
{
  return row->refused != NULL;
}

static bool
fits (const LsWhatIfRow *row)
{
  return !row->refused && row->fits;
}

static bool
does_not_fit (const LsWhatIfRow *row)
{
  return !row->refused && !row->fits;
}

static guint
count (const LsWhatIf *w, Filter filter)
{
  guint n = 0;
  for (guint i = 0; i < w->rows->len; i++)
    n += filter (row_at (w, i));
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

/* What the change takes beside memory that is there. */
static char *
cost_of (const LsWhatIf *w, const LsWhatIfRow *row)
{
  GString *out = g_string_new (row->cost);
  g_autofree char *then = ls_text_money (row->usd_per_million_tokens),
                  *now = ls_text_money (w->now.usd_per_million_tokens);
  if (!row->fits)
    g_string_append_printf (out, "%s%.2f GiB too much", out->len > 0 ? "; " : "",
                            (double) row->short_bytes / GIB);
  else if (row->lacking_bytes > 0)
    g_string_append_printf (out, "%s%.2f GiB of the headroom", out->len > 0 ? "; " : "",
                            (double) row->lacking_bytes / GIB);
  if (has_other_price (w, row))
    g_string_append_printf (out, "%s%s a million tokens, now %s", out->len > 0 ? "; " : "", then, now);
  return g_string_free (out, FALSE);
}

static void
add_row (LsTextTable *table, const LsWhatIf *w, const LsWhatIfRow *row, bool has_saving)
{
  if (has_saving)
    ls_text_table_add (table, "%.2f GiB", ((double) w->now.needed_bytes - (double) row->needed_bytes) / GIB);
  ls_text_table_add (table, "%+.1f %%", 100 * row->gain);
  ls_text_table_take (table, ls_text_time (row->step_time_s));
  ls_text_table_add (table, "%.2f GiB\v%s", (double) row->needed_bytes / GIB, row->change);
  ls_text_table_take (table, cost_of (w, row));
}

/* At most `top` rows of a kind; 0: all. */
static void
append_rows (GString *out, const LsWhatIf *w, Filter filter, guint top, bool has_saving)
{
  static const char *const heads[] = { "saves", "tokens/s", "step", "memory", "change", "takes" };
  LsTextTable table;
  ls_text_table_init (&table, has_saving ? "rrrrll" : "rrrll");
  for (guint i = has_saving ? 0 : 1; i < G_N_ELEMENTS (heads); i++)
    ls_text_table_add (&table, "%s", i == 1 && isnan (w->now.tokens_per_s) ? "steps/s" : heads[i]);
  guint n = 0;
  for (guint i = 0; i < w->rows->len; i++)
    if (filter (row_at (w, i)) && (top == 0 || n++ < top))
      add_row (&table, w, row_at (w, i), has_saving);
  ls_text_table_print (&table, 2, out);
}

void
ls_what_if_print_savings (const LsWhatIf *w, bool that_fit, guint top, GString *out)
{
  append_rows (out, w, that_fit ? fits : does_not_fit, top, true);
}

static void
append_refused (GString *out, const LsWhatIf *w)
{
  for (guint i = 0; i < w->rows->len; i++)
    if (row_at (w, i)->refused)
      g_string_append_printf (out, "  %s\n    %s\n", row_at (w, i)->change, row_at (w, i)->refused);
}

static void
append_section (GString *out, const LsWhatIf *w, Filter filter, guint top, const char *heading)
{
  guint n = count (w, filter);
  if (n == 0)
    return;
  g_string_append_printf (out, "\n%s", heading);
  if (top > 0 && n > top)
    g_string_append_printf (out, ": the first %u of %u", top, n);
  g_string_append_c (out, '\n');
  append_rows (out, w, filter, top, false);
}

void
ls_what_if_print_gains (const LsWhatIf *w, guint top, GString *out)
{
  if (count (w, gains_and_fits) + count (w, gains_without_fitting) == 0)
    g_string_append (out, "\nNo single change makes it faster.\n");
  append_section (out, w, gains_and_fits, top, "Single changes that make it faster; gains do not add up");
  append_section (out, w, gains_without_fitting, top, "Faster, but does not fit");
}

/* Those that the short form leaves out. */
static void
append_rest (GString *out, const LsWhatIf *w, bool is_all)
{
  guint n_none = count (w, gains_nothing), n_refused = count (w, is_refused);
  if (is_all) {
    append_section (out, w, gains_nothing, 0, "These gain nothing");
    if (n_refused > 0)
      g_string_append (out, "\nThese are not possible\n");
    append_refused (out, w);
    return;
  }
  g_string_append_printf (out,
                          "\n%u more gain nothing, %u are not possible: --all lists them with the reasons.\n",
                          n_none, n_refused);
}

static bool
is_possible (const LsWhatIfRow *row)
{
  return !row->refused;
}

static void
append_softwares (GString *out, const LsWhatIf *w)
{
  g_string_append (out,
                   "\nThese mix programs: in each the job has that one's kernels, formats and habits.\n");
  append_rows (out, w, is_possible, 0, false);
  if (count (w, is_refused) > 0)
    g_string_append (out, "\nThese cannot run it\n");
  append_refused (out, w);
}

char *
ls_what_if_to_text (const LsWhatIf *w, const LsWhatIfText *text)
{
  GString *out = g_string_new (NULL);
  const LsWhatIfRow *now = &w->now;
  g_string_append_printf (out, "%s\n%s\n\n", text->title, text->subtitle);
  g_autofree char *step = ls_text_time (now->step_time_s), *tokens = ls_text_count (now->tokens_per_s);
  g_string_append_printf (out, "  now  step %s%s%s%s, %.2f of %.2f GiB%s\n", step,
                          isnan (now->tokens_per_s) ? "" : ", ", isnan (now->tokens_per_s) ? "" : tokens,
                          isnan (now->tokens_per_s) ? "" : " tokens/s", (double) now->needed_bytes / GIB,
                          (double) now->capacity_bytes / GIB, now->fits ? "" : ": does not fit");
  if (w->mixes_programs) {
    append_softwares (out, w);
    return g_string_free (out, FALSE);
  }
  if (count (w, gains_and_fits) == 0)
    g_string_append (out, "\nNo single change that fits makes it faster.\n");
  append_section (out, w, gains_and_fits, text->top,
                  "Single changes that make it faster; gains do not add up");
  append_section (out, w, gains_without_fitting, text->top, "Faster, but does not fit");
  append_rest (out, w, text->top == 0);
  if (w->left_out)
    g_string_append_printf (out, "\n%s\n", w->left_out);
  return g_string_free (out, FALSE);
}

/* --- JSON ------------------------------------------------------------------------------ */

#include "show/whatif_keys.h"

void
ls_json_what_if (LsJsonOut *w, const LsWhatIf *what_if)
{
  ls_keys_whatif (w, what_if);
}
