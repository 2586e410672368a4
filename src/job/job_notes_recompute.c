/* Notes on what is run again: that it frees nothing, or that there is less of it than was asked for. */
#include "job/job_steps.h"
#include "strategy/shard.h"

/* Where it does not, the option makes no difference, and that is told (strategy_idle.c). */
static void
note_flash_run_again (LsJobResult *r)
{
  const LsStrategy *s = &r->strategy;
  if (ls_strategy_recompute_frees_nothing (s) && s->recompute_flash)
    g_ptr_array_add (
        r->notes,
        g_strdup_printf ("--recompute selective frees next to nothing here: flash attention, which keeps "
                         "no scores, runs again as a whole; %s drops more",
                         s->lora_rank > 0 ? "together with adapters --recompute full"
                                          : "--recompute-parts norm"));
}

/* Of a chunk of a pipeline stage, the most. */
static uint32_t
most_layers_of_chunk (const LsJobResult *r)
{
  uint32_t n = r->strategy.pp * r->strategy.vpp, most = 0;
  g_autofree uint32_t *layers = g_new0 (uint32_t, n);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (!ls_chunk_layers (&r->strategy, &r->model, layers, diags))
    return UINT32_MAX;
  for (uint32_t i = 0; i < n; i++)
    most = MAX (most, layers[i]);
  return most;
}

/* As Megatron-LM takes it: of more layers than there are all run again. */
static void
note_recomputed_layers (LsJobResult *r)
{
  const LsStrategy *s = &r->strategy;
  uint32_t most = most_layers_of_chunk (r), asked = s->recompute_layers;
  for (uint32_t i = 0; s->recompute_stages && i < s->pp; i++)
    asked = MAX (i == 0 ? 0 : asked, s->recompute_stages[i]);
  if (s->recompute == LS_RECOMPUTE_FULL && asked > most)
    g_ptr_array_add (r->notes,
                     g_strdup_printf ("%u layers are to be recomputed, and no stage has more than "
                                      "%u at once: these all are",
                                      asked, most));
}

void
ls_job_note_recompute (LsJobResult *r)
{
  note_flash_run_again (r);
  note_recomputed_layers (r);
}
