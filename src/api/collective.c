/* Collectives: LsCollective of lockstep/lockstep.h. */
#include <lockstep/lockstep.h>

#include "ask/collective.h"
#include "ask/override_notes.h"
#include "show/plot/plot_collective.h"
#include "show/write_collective.h"

struct LsCollective {
  LsCollectiveRun *run;
};

/* All malformed values are reported. */
static gboolean
read_options (const LsCollectiveOptions *o, LsCollectiveSpec *spec, GError **error)
{
  const struct {
    const char *key, *value;
  } knobs[] = {
    { "cluster", o->cluster },
    { "op", o->op },
    { "nodes", o->nodes },
    { "gpus", o->gpus },
    { "algorithm", o->algorithm },
    { "protocol", o->protocol },
    { "network", o->network },
    { "min", o->min },
    { "max", o->max },
    { "factor", o->factor },
    { "compare", o->compare },
    { "trust", o->trust },
    { "slice", o->slice },
    { "nccl", o->nccl },
  };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  for (guint i = 0; i < G_N_ELEMENTS (knobs); i++)
    if (knobs[i].value)
      ls_collective_spec_set (spec, knobs[i].key, knobs[i].value, diags);
  return ls_diag_list_to_error (diags, error);
}

LsCollective *
ls_collective_run (const LsCollectiveOptions *options, GError **error)
{
  g_return_val_if_fail (options, NULL);
  LsCollectiveSpec spec;
  ls_collective_spec_init (&spec);
  spec.progress = (LsProgress) { options->progress, options->progress_data };
  LsCollectiveRun *run = read_options (options, &spec, error) ? ls_collective_run_new (&spec, error) : NULL;
  if (run)
    ls_override_note_collective (&spec, ls_collective_run_table (run), ls_collective_run_notes (run));
  ls_collective_spec_clear (&spec);
  if (!run)
    return NULL;
  LsCollective *collective = g_new0 (LsCollective, 1);
  collective->run = run;
  return collective;
}

void
ls_collective_free (LsCollective *collective)
{
  if (!collective)
    return;
  ls_collective_run_free (collective->run);
  g_free (collective);
}

char *
ls_collective_text (const LsCollective *collective)
{
  g_return_val_if_fail (collective, NULL);
  return ls_collective_to_text (ls_collective_run_table (collective->run));
}

char *
ls_collective_json (const LsCollective *collective)
{
  g_return_val_if_fail (collective, NULL);
  return ls_collective_to_json (ls_collective_run_table (collective->run));
}

char *
ls_collective_csv (const LsCollective *collective)
{
  g_return_val_if_fail (collective, NULL);
  return ls_collective_to_csv (ls_collective_run_table (collective->run));
}

char *
ls_collective_notes (const LsCollective *collective)
{
  g_return_val_if_fail (collective, NULL);
  const GPtrArray *notes = ls_collective_run_notes (collective->run);
  GString *text = g_string_new (NULL);
  for (guint i = 0; i < notes->len; i++)
    g_string_append_printf (text, "%s\n", (const char *) g_ptr_array_index (notes, i));
  return g_string_free (text, FALSE);
}

gboolean
ls_collective_plot (const LsCollective *collective, const char *path, GError **error)
{
  g_return_val_if_fail (collective && path, FALSE);
  return ls_plot_collective (ls_collective_run_table (collective->run), path, error);
}
