/* sweep/sweep_list.c — every configuration that a sweep simulated, as CSV. What was not run with its times
 * recorded has a lower bound of its memory and no peak (exec/memory/memory.h). */
#include <inttypes.h>

#include "job/knobs.h"
#include "sweep/sweep_state.h"

static int
compare_indices (gconstpointer a, gconstpointer b)
{
  const Candidate *x = *(Candidate *const *) a, *y = *(Candidate *const *) b;
  return x->index < y->index ? -1 : x->index > y->index;
}

static void
append_row (GString *out, const LsSweepRun *x, const Candidate *c)
{
  LsStrategy s;
  candidate_strategy_at (x, c->index, &s);
  g_autofree char *knobs = ls_knobs_format (&s);
  g_string_append_printf (out, "%" PRId64 ",", (int64_t) c->step);
  if (c->is_confirmed)
    g_string_append_printf (out, "%" PRIu64, c->memory_bytes);
  g_string_append_printf (out, ",\"%s\",%s,%" PRIu64, knobs, c->is_confirmed ? "peak" : "at least",
                          c->memory_bytes);
  ls_sweep_csv_knobs (out, &s, NULL);
  g_string_append_c (out, '\n');
  ls_strategy_clear (&s);
}

char *
ls_sweep_run_list (const LsSweepRun *x)
{
  g_autoptr (GPtrArray) done = g_ptr_array_new ();
  GString *out = g_string_new ("step_time_ps,memory_bytes,knobs,memory_is,memory_at_least_bytes");
  ls_sweep_csv_knobs (out, NULL, NULL);
  g_string_append_c (out, '\n');
  for (guint i = 0; i < x->candidates->len; i++)
    if (candidate_at (x, i)->status == TRY_DONE)
      g_ptr_array_add (done, candidate_at (x, i));
  g_ptr_array_sort (done, compare_indices);
  for (guint i = 0; i < done->len; i++)
    append_row (out, x, done->pdata[i]);
  return g_string_free (out, FALSE);
}
