#include "show/answers.h"

#include <math.h>
#include <string.h>

#include "show/quantity.h"
#include "show/text_table.h"

static void
append_head (GString *out, const LsSweepChanges *c)
{
  g_autofree char *best = ls_text_time (c->best_s), *now = ls_text_time (c->now_s);
  g_string_append_printf (out, "\n%s as it is: ", c->path);
  if (isnan (c->now_s))
    g_string_append_printf (out, "not simulated (%s)", c->now_refused);
  else
    g_string_append_printf (out, "%s%s", now, c->now_fits ? "" : ", and does not fit");
  g_string_append_printf (out, "; the first: %s", best);
  if (!isnan (c->now_s))
    g_string_append_printf (out, ", %+.1f %%", 100 * (c->best_s / c->now_s - 1));
  if (c->now_gpus > 0 && c->now_gpus != c->best_gpus)
    g_string_append_printf (out, ", on %u for %u", c->best_gpus, c->now_gpus);
  if (c->changes->len == 0)
    g_string_append (out, "\nIts options are those of the first: nothing is to be changed\n");
  else
    g_string_append_printf (out, "\nTo get there, change %u %s of it:\n", c->changes->len,
                            c->changes->len == 1 ? "option" : "options");
}

/* "--tp 8", "training.seq_len = 8192", "--sp" */
static char *
option_text (const LsLaunchChange *c, const char *value)
{
  const char *between = g_str_has_prefix (c->option, "-") ? " " : " = ";
  bool is_on = !*value, has_dashes = *c->option == '-';
  return is_on ? g_strconcat (c->option, has_dashes ? "" : " = true", NULL)
               : g_strconcat (c->option, between, value, NULL);
}

static void
add_row (LsTextTable *t, const LsLaunchChange *c)
{
  g_autofree char *before = c->before ? option_text (c, c->before) : NULL,
                  *after = c->after ? option_text (c, c->after) : NULL;
  bool is_changed = before && after;
  ls_text_table_add (t, "%s\v%s%s%s",
                     !before      ? "add"
                         : !after ? "remove"
                                  : "change",
                     before ? before : after, is_changed ? " -> " : "",
                     is_changed ? (*c->after ? c->after : "true") : "");
  if (!c->file)
    ls_text_table_add (t, "%s", "");
  else
    ls_text_table_add (t, "%s:%u%s%s", c->file, c->line, c->through ? ", " : "",
                       c->through ? c->through : "");
}

void
ls_sweep_changes_print (const LsSweepChanges *c, GString *out)
{
  LsTextTable t;
  append_head (out, c);
  ls_text_table_init (&t, "lll");
  for (guint i = 0; i < c->changes->len; i++)
    add_row (&t, c->changes->pdata[i]);
  ls_text_table_print (&t, 2, out);
}

/* --- the rows again --------------------------------------------------------------------------------- */

static bool
is_of_group (const LsSweepRow *row, const LsSweepGroup *g)
{
  return row->strategy.gpus == g->gpus && row->strategy.global_batch == g->global_batch;
}

void
ls_sweep_again_print (const LsSweepReport *r, GString *out)
{
  if (r->best->len > 1)
    g_string_append (out, "\nThe others again: the command of the first, and behind it\n");
  guint n = 0;
  for (guint k = 0; k < r->groups->len; k++)
    for (guint i = 0; i < r->best->len; i++) {
      const LsSweepRow *row = &g_array_index (r->best, LsSweepRow, i);
      n += is_of_group (row, &g_array_index (r->groups, LsSweepGroup, k));
      if (i > 0 && is_of_group (row, &g_array_index (r->groups, LsSweepGroup, k)))
        g_string_append_printf (out, "  number %u: %s\n", n, row->instead);
    }
  g_string_append_printf (out, "\nThe first again:\n  %s\n", r->command);
}
