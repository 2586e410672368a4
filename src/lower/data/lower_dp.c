#include "lower/data/lower_dp.h"
#include "lower/layers/lower_layers.h"

DpTurn *
dp_turns (const Lower *l, uint32_t pp_rank)
{
  DpTurn *turns = g_new (DpTurn, l->n_chunks);
  for (uint32_t c = 0; c < l->n_chunks; c++)
    turns[c] = (DpTurn) { G_MAXUINT, G_MAXUINT };
  if (l->backend->turns)
    l->backend->turns (l, pp_rank, turns);
  return turns;
}

void
dp_cut_nothing (const Lower *l, bool is_expert, uint32_t *ret_params, uint32_t *ret_grads,
                uint32_t *ret_optimizer)
{
  *ret_params = *ret_grads = *ret_optimizer = 1;
}

const DpBackend dp_backend_none = { .name = "none", .cuts = dp_cut_nothing };

/* --- groups ---------------------------------------------------------------------- */

DpGroup
dp_all (const Lower *l, bool is_expert)
{
  if (is_expert)
    return (DpGroup) { LS_SLOT_EDP, l->mesh.tp * l->mesh.cp * l->mesh.dp / (l->mesh.etp * l->mesh.ep) };
  return (DpGroup) { LS_SLOT_DP, l->mesh.dp * l->mesh.cp };
}

DpGroup
dp_shard (const Lower *l, bool is_expert)
{
  if (is_expert || l->s->data.zero_group == 0)
    return dp_all (l, is_expert);
  return (DpGroup) { LS_SLOT_SHARD, l->s->data.zero_group };
}

DpGroup
dp_replica (const Lower *l, bool is_expert)
{
  uint32_t n = dp_all (l, is_expert).n / dp_shard (l, is_expert).n;
  return (DpGroup) { LS_SLOT_REPLICA, n };
}

/* --- sizes ------------------------------------------------------------------------- */

uint64_t
dp_grad_bytes (const Lower *l, uint64_t numel)
{
  return numel * ls_dtype_bytes (l->shard.grad_dtype);
}

/* Megatron-Core copies masters of mxfp8 weights into a 16-bit buffer, gathers that, and casts what comes
 * (core/optimizer/distrib_optimizer.py, _copy_main_params_to_param_buffer). */
bool
dp_gathers_fp8 (const Lower *l)
{
  return l->s->fp8.params && l->s->fp8.recipe != LS_FP8_MXFP8;
}

/* Recipes of scaled formats gather their weights in 16 bits, unless fp8 is all there is. */
uint64_t
dp_param_bytes (const Lower *l, uint64_t numel)
{
  return numel * (dp_gathers_fp8 (l) ? 1 : ls_dtype_bytes (ls_dtype_between (l->shard.dtype)));
}

uint64_t
dp_frozen_bytes (const Lower *l, uint64_t n, uint64_t n_nf4, uint64_t n_scaled)
{
  uint64_t whole = ls_dtype_bytes (ls_dtype_between (l->shard.dtype));
  bool is_fp8 = l->shard.lora.is_fp8;
  uint64_t scaled = is_fp8 ? n_scaled : ls_dtype_array_bytes (l->shard.dtype, 2 * n_scaled);
  return (n - n_nf4 - (is_fp8 ? n_scaled : 0)) * whole + ls_nf4_bytes (n_nf4) + scaled;
}

uint64_t
dp_params_of_rank (const Lower *l, uint32_t pp_rank, bool is_expert)
{
  uint64_t n = 0;
  for (uint32_t c = 0; c < l->n_chunks; c++) {
    const Chunk *chunk = chunk_at (l, pp_rank, c);
    n += is_expert ? chunk->n_expert : chunk->n_params - chunk->n_expert;
  }
  return n;
}

uint64_t
dp_part (uint64_t n, uint32_t parts)
{
  return (n + parts - 1) / parts;
}

uint16_t
dp_last_compute (Build *b)
{
  for (guint i = b->ops->len; i-- > 0;) {
    const LsOp *op = &g_array_index (b->ops, LsOp, i);
    if (op->stream == LS_STREAM_COMPUTE && !ls_op_is_of_host (op->kind))
      return (uint16_t) i;
  }
  build_barrier (b);
  return (uint16_t) (b->ops->len - 1);
}

void
dp_around_again (Build *b, guint o, bool is_before)
{
  const DpBackend *backend = b->pass ? b->pass->backend : &dp_backend_none;
  void (*hook) (Build * b, DpPass * p, guint o) = is_before ? backend->before_again : backend->after_again;
  if (hook)
    hook (b, b->pass, o);
}

uint16_t
dp_buffer (Build *b, const Chunk *c, guint n)
{
  b->is_too_long |= n + buffer_base (c) > UINT16_MAX;
  return (uint16_t) (UINT16_MAX - n);
}

void
dp_average (Build *b, uint64_t numel)
{
  LsDtype dtype = b->l->shard.grad_dtype;
  double bytes = (double) numel * ls_dtype_bytes (dtype);
  LsKernel average = ls_kernel_stream ("grad-average", LS_KERNEL_ELEMENTWISE, dtype, 1, numel, 2 * bytes, 0);
  build_kernel (b, &average, LS_TAG_SYNC);
}
