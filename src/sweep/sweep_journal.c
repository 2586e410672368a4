/* sweep/sweep_journal.c — what a sweep writes down, and takes up again:
 *
 *     try INDEX STATUS PICOSECONDS BYTES LEAST-PICOSECONDS
 *     confirm INDEX STATUS BYTES PICOSECONDS
 */
#include "sweep/sweep_state.h"

#include <inttypes.h>

#include "data/jobs/job_files.h"
#include "data/text/field.h"

/* --- which sweep it is ------------------------------------------------------------------------ */

static void
append_space (GString *out, const LsSpace *space)
{
  for (guint a = 0; a < ls_space_n_axes (); a++) {
    if (space->values[a]->len > 0)
      g_string_append_printf (out, " %s", ls_space_axis_name ((LsSpaceAxis) a));
    for (guint i = 0; i < space->values[a]->len; i++) {
      g_autofree char *value = ls_space_value_text (space, (LsSpaceAxis) a, i);
      g_string_append_printf (out, ",%s", value);
    }
  }
}

static void
append_options (GString *out, const LsSweepRun *x)
{
  const LsRunOptions *o = &x->options;
  g_string_append_printf (out, " nodes %u steps %u network %d memory %d %d", x->spec->job.n_nodes, o->n_steps,
                          (int) o->network, o->memory.clock, o->memory.allocator);
  for (int i = 0; i < LS_N_HOST_COSTS; i++)
    g_string_append_printf (out, " %" PRId64, (int64_t) o->host.cost[i]);
}

/* They decide what fits. */
static void
append_headrooms (GString *out, const LsSweepRun *x)
{
  const LsJobSpec *job = &x->spec->job;
  g_string_append_printf (out, " for %s headroom", job->program ? job->program->name : "any");
  for (int kind = 0; kind < LS_N_DP_KINDS; kind++)
    g_string_append_printf (out, ",%" PRIu64, x->headroom[kind].bytes);
}

/* Model, cluster and calibration by their names, and by what they make of the rule of thumb. */
static char *
key_of (const LsSweepRun *x, const Candidate *rule)
{
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "sweep of %s on %s", x->model.name, x->hardware->spec.name);
  append_space (out, &x->spec->space);
  append_options (out, x);
  append_headrooms (out, x);
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    g_autofree char *text = ls_field_text (f, &x->spec->job.strategy, NULL);
    if (text)
      g_string_append_printf (out, " %s %s", f->key, text);
  }
  if (rule)
    g_string_append_printf (out, " rule %" PRIu64 " %" PRId64 " %" PRIu64, rule->index, (int64_t) rule->step,
                            rule->memory_bytes);
  g_strdelimit (out->str, "\n\r", ' ');
  return g_string_free (out, FALSE);
}

char *
sweep_digest (const LsSweepRun *x)
{
  g_autofree char *key = key_of (x, NULL);
  return g_compute_checksum_for_string (G_CHECKSUM_SHA256, key, -1);
}

/* --- reading ------------------------------------------------------------------------------------ */

static Known *
known_of (LsSweepRun *x, uint64_t index)
{
  Known *k = g_hash_table_lookup (x->known, &index);
  if (k)
    return k;
  k = g_new0 (Known, 1);
  k->index = index;
  g_hash_table_insert (x->known, &k->index, k);
  return k;
}

static gboolean
take_line (const char *text, gpointer run)
{
  LsSweepRun *x = run;
  uint64_t index, bytes;
  int64_t step, least = 0;
  unsigned status;
  int end = 0;
  bool is_try = sscanf (text, "try %" SCNu64 " %u %" SCNd64 " %" SCNu64 " %" SCNd64 "%n", &index, &status,
                        &step, &bytes, &least, &end)
      == 5;
  if (!is_try
      && sscanf (text, "confirm %" SCNu64 " %u %" SCNu64 " %" SCNd64 "%n", &index, &status, &bytes, &step,
                 &end)
          != 4)
    return FALSE;
  if (text[end] != '\0' || index >= x->spec->space.size || status <= TRY_PRUNED || status > TRY_RAN)
    return FALSE;
  Known *k = known_of (x, index);
  *(is_try ? &k->tried : &k->confirmed) = (Found) { true, (uint8_t) status, step, least, bytes };
  return TRUE;
}

gboolean
sweep_journal_open (LsSweepRun *x, const Candidate *rule, GError **error)
{
  g_autofree char *key = key_of (x, rule);
  x->journal = ls_journal_open (x->spec->journal, key, take_line, x, error);
  return x->journal != NULL;
}

const Known *
sweep_known (const LsSweepRun *x, const Candidate *c)
{
  return g_hash_table_lookup (x->known, &c->index);
}

/* --- writing ---------------------------------------------------------------------------------- */

static void
add (LsSweepRun *x, const char *text)
{
  if (x->journal && !x->error)
    ls_journal_add (x->journal, text, &x->error);
}

void
sweep_journal_try (LsSweepRun *x, const Candidate *c)
{
  g_autofree char *text = g_strdup_printf ("try %" PRIu64 " %u %" PRId64 " %" PRIu64 " %" PRId64, c->index,
                                           c->status, (int64_t) c->step, c->memory_bytes, (int64_t) c->least);
  add (x, text);
}

void
sweep_journal_confirm (LsSweepRun *x, const Candidate *c)
{
  g_autofree char *text = g_strdup_printf ("confirm %" PRIu64 " %u %" PRIu64 " %" PRId64, c->index, c->status,
                                           c->memory_bytes, (int64_t) c->step);
  add (x, text);
}

void
sweep_journal_sync (LsSweepRun *x)
{
  if (x->journal && !x->error)
    ls_journal_sync (x->journal, &x->error);
}
