/* show/write_sweep.c — what a sweep found; the changes to the files of a job; its rows again. */
#include "show/answers.h"

#include <math.h>
#include <string.h>

#include "job/assumptions.h"

#define LINE_WIDTH 110

/* --- text ------------------------------------------------------------------------------ */

static bool
is_of_group (const LsSweepRow *row, const LsSweepGroup *g)
{
  return row->strategy.gpus == g->gpus && row->strategy.global_batch == g->global_batch;
}

/* Those that are listed; borrowed. */
static GArray *
rows_of_group (const LsSweepReport *r, const LsSweepGroup *g)
{
  GArray *rows = g_array_new (FALSE, FALSE, sizeof (LsSweepRow));
  for (guint i = 0; i < r->best->len; i++)
    if (is_of_group (&g_array_index (r->best, LsSweepRow, i), g))
      g_array_append_vals (rows, &g_array_index (r->best, LsSweepRow, i), 1);
  return rows;
}

static gint
compare_values (gconstpointer a, gconstpointer b)
{
  const LsSweepGroup *x = *(LsSweepGroup *const *) a, *y = *(LsSweepGroup *const *) b;
  return x->first->value < y->first->value ? -1 : x->first->value > y->first->value;
}

/* Those that have a best, by it. */
static GPtrArray *
ranked_groups (const LsSweepReport *r)
{
  GPtrArray *list = g_ptr_array_new ();
  for (guint i = 0; i < r->groups->len; i++)
    if (g_array_index (r->groups, LsSweepGroup, i).first)
      g_ptr_array_add (list, &g_array_index (r->groups, LsSweepGroup, i));
  g_ptr_array_sort (list, compare_values);
  return list;
}

/* How many rules nothing can keep: they come first. */
static guint
n_of_all_rules (const LsSweepNone *none)
{
  guint n = 0;
  while (n < none->rules->len && g_array_index (none->rules, LsSweepRule, n).is_of_all)
    n++;
  return n;
}

/* A variant that was not simulated may be better than one that is listed. */
static bool
has_also (const LsSweepReport *r)
{
  bool is_there = false;
  for (guint i = 0; i < r->best->len; i++)
    is_there |= g_array_index (r->best, LsSweepRow, i).also != NULL;
  return is_there;
}

/* "--tp 8", "training.seq_len = 8192", "--sp"; NULL of NULL. */
static char *
option_text (const LsLaunchChange *c, const char *value)
{
  if (!value)
    return NULL;
  const char *between = g_str_has_prefix (c->option, "-") ? " " : " = ";
  bool is_on = !*value, has_dashes = *c->option == '-';
  return is_on ? g_strconcat (c->option, has_dashes ? "" : " = true", NULL)
               : g_strconcat (c->option, between, value, NULL);
}

#include "show/sweep_text.h"

/* Knobs that the first columns have. */
static bool
is_in_front (const char *key)
{
  g_autofree char *word = g_strdup_printf (" %s ", key);
  return strstr (" gpus tp pp dp cp ep vpp sp zero dp_kind schedule micro_batch global_batch recompute "
                 "tp_overlap layers_per_chunk ",
                 word);
}

/* --- JSON ------------------------------------------------------------------------------ */

/* The rule of thumb is that of the last. */
static const LsSweepGroup *
last_of (const LsSweepReport *r)
{
  return &g_array_index (r->groups, LsSweepGroup, r->groups->len - 1);
}

#include "show/sweep_keys.h"
