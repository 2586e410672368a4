/* What is legal with a mixture of experts and with latent attention. */
#include "model/expert_load.h"
#include "strategy/strategy_rules.h"

void
check_experts (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  if (m->n_experts == 0) {
    if (s->ep > 1)
      conflict (diags, "/ep", "expected 1, as the model has no experts; got %u", s->ep);
    if (s->etp != s->tp)
      conflict (diags, "/etp", "expected tp = %u or nothing, as the model has no experts; got %u", s->tp,
                s->etp);
    if (s->expert_capacity > 0)
      conflict (diags, "/expert_capacity", "expected none, as the model has no experts; got %g",
                s->expert_capacity);
    if (s->expert_load)
      conflict (diags, "/expert_load", "expected none, as the model has no experts; got \"%s\"",
                s->expert_load);
    return;
  }
  if (s->tp > 1 && !s->sp)
    conflict (
        diags, "/sp",
        "expected 1 with experts and tp %u, as Megatron-LM trains them no other way: each rank routes its own"
        " tokens; got 0",
        s->tp);
  if (m->shared_ffn % s->tp != 0)
    conflict (diags, "/tp", "expected a divisor of the shared experts' ffn width %u; got %u", m->shared_ffn,
              s->tp);
  uint64_t n = s->tp * n_copies (s);
  if (m->n_experts % s->ep != 0)
    conflict (diags, "/ep", "expected a divisor of the model's %u experts; got %u", m->n_experts, s->ep);
  if (n > 0 && n % ((uint64_t) s->ep * s->etp) != 0)
    conflict (diags, "/ep", "expected ep * etp to divide tp * cp * dp = %" G_GUINT64_FORMAT "; got %u * %u",
              n, s->ep, s->etp);
  if (m->expert_ffn % s->etp != 0)
    conflict (diags, "/etp", "expected a divisor of the experts' ffn width %u; got %u", m->expert_ffn,
              s->etp);
  g_autofree char *why = NULL;
  g_free (ls_expert_shares (s->expert_load, m, &why));
  if (why)
    conflict (diags, "/expert_load", "%s", why);
  if (s->dp_kind == LS_DP_FSDP2 && s->reshard_after_forward != LS_RESHARD_AUTO && s->reshard_after_forward > 1
      && s->ep > 1)
    conflict (diags, "/reshard_after_forward",
              "expected 0 or 1 with ep %u: experts and the rest would be cut in different groups; got %u",
              s->ep, s->reshard_after_forward);
  if (s->zero_group > 0 && s->ep > 1)
    conflict (diags, "/zero",
              "expected no groups with ep %u: experts and the rest would be cut in different ones; got %u@%u",
              s->ep, s->zero_stage, s->zero_group);
}

void
check_latent_attention (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  if (m->kv_lora == 0)
    return;
  if (s->attention == LS_ATTENTION_UNFUSED)
    conflict (diags, "/attention", "expected flash with latent attention; got unfused");
  if (s->cp > 1)
    unsupported (diags, "/cp", "context parallelism of latent attention is not modelled; expected 1, got %u",
                 s->cp);
}
