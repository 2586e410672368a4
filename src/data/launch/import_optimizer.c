/* The optimizer of a job, by what programs and libraries call it. */
#include <string.h>

#include "data/jobs/read_optimizers.h"
#include "data/launch/import_reader.h"
#include "strategy/dp_traits.h"

/* Names of Megatron-LM (--optimizer), transformers (OptimizerNames of training_args.py), DeepSpeed
 * (engine.py, _configure_basic_optimizer), torchtitan, llm-foundry, nanotron, NeMo and MaxText (opt_type),
 * in lower case. */
static const struct {
  const char *theirs, *ours;
} names[] = {
  { "adam", "adam" },
  { "adamw", "adam" },
  { "adam_pax", "adam" },
  { "adamw_torch", "adam" },
  { "adamw_torch_fused", "adam" },
  { "adamw_torch_xla", "adam" },
  { "adamw_hf", "adam" },
  { "adamw_apex_fused", "adam" },
  { "paged_adamw", "adam" },
  { "paged_adamw_32bit", "adam" },
  { "decoupled_adamw", "adam" },
  { "cpu_adam", "adam" },
  { "fused_adam", "adam" },
  { "distributed_fused_adam", "adam" },
  { "adamw_bnb_8bit", "adamw-8bit" },
  { "adamw_8bit", "adamw-8bit" },
  { "paged_adamw_8bit", "adamw-8bit" },
  { "adafactor", "adafactor" },
  { "lion", "lion" },
  { "lion_32bit", "lion" },
  { "paged_lion", "lion" },
  { "paged_lion_32bit", "lion" },
  { "decoupled_lionw", "lion" },
  { "muon", "muon" },
  { "dist_muon", "muon" },
  { "soap", "soap" },
};

static const char *
name_of (const char *theirs, double momentum)
{
  if (g_ascii_strcasecmp (theirs, "sgd") == 0)
    return momentum > 0 ? "sgd-momentum" : "sgd";
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (g_ascii_strcasecmp (theirs, names[i].theirs) == 0)
      return names[i].ours;
  return NULL;
}

/* Ranks have pieces of the matrices that it needs: Megatron-LM's alone deal out whole ones. */
static bool
lacks_matrices (const LsStrategy *s, const char *ours)
{
  bool is_cut = ls_dp_traits (s->dp_kind)->is_fsdp
      || (s->dp_kind == LS_DP_DEEPSPEED && s->zero_stage != LS_ZERO_AUTO && s->zero_stage > 0);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsOptimizerKind) kind
      = is_cut && !ls_optimizer_is_adam (ours) ? ls_optimizer_load (ours, diags) : NULL;
  return kind && (ls_optimizer_multiplies (kind) || ls_optimizer_factors (kind));
}

void
import_set_optimizer (LsImport *import, const char *theirs, double momentum, const char *option)
{
  const char *ours = theirs ? name_of (theirs, momentum) : NULL;
  const LsStrategy *s = &import->strategy;
  if (!theirs)
    return;
  if (!ours)
    import_unknown (import, "%s %s: memory and time are those of Adam", option, theirs);
  else if (lacks_matrices (s, ours))
    import_unknown (
        import,
        "%s %s: how it works on shards of matrices is not known here; memory and time are those of "
        "Adam",
        option, theirs);
  else if (s->offload != LS_OFFLOAD_NONE && !ls_optimizer_is_adam (ours))
    import_unknown (import, "%s %s: on the host memory and time are those of Adam", option, theirs);
  else
    import_set_strategy (import, "optimizer", ours, option);
  if (ours && g_str_has_prefix (theirs, "paged_"))
    import_infer (import, "%s %s: its pages stay on the GPU", option, theirs);
}
