/* lower/layers/lower_recompute.c — what a forward does not keep, and a backward computes again.
 *
 * full       layers run again as a whole. `uniform` keeps the input of every group of
 *            recompute_layers layers and runs a group again before its backward; `block`
 *            runs the first recompute_layers layers of a chunk again, one by one, and keeps
 *            all of the others (Megatron-LM, core/transformer/transformer_block.py).
 * selective  core: the inside of attention (Korthikanti et al. 2022, section 5), of flash attention where
 *            recompute_flash says so: Megatron-Core's checkpoint around core_attention does not ask
 *            which kernel is in it (NVIDIA/Megatron-LM@core_v0.6.0, megatron/core/transformer/attention.py,
 *            _checkpointed_attention_forward). norm,
 *            activation: the output of a norm or of the MLP's activation, which the matrix
 *            product behind it would have kept as its input, is computed again from what
 *            the norm or activation keeps anyway (Megatron-LM's CheckpointWithoutOutput).
 *            mlp, moe, shared: a dense MLP; router, experts, shared experts and exchanges; shared experts
 *            run again from their input, to the last kernel (Megatron-LM's mlp, moe, shared_experts, plain
 *            checkpoints). Deviation: its norm may be one kernel's with the first product of a dense MLP, and
 *            then runs again too, for which nothing but its input is kept.
 *            mla-up: queries, keys and values of latent attention are made again from the latents
 *            before the backward of attention (Megatron-LM's mla_up_proj; DeepSeek-AI 2024,
 *            DeepSeek-V3, section 3.2.3).
 *            op, dots, dots-flash: each layer but for some outputs (lower_recompute_op.c).
 *
 * Early stop: torch.utils.checkpoint without reentrance stops a layer that runs again, or a group, once the
 * last tensor that the backward needs is there (its default since PyTorch 2.1, pytorch/pytorch#96866): the
 * last product of the MLP and what is behind it then run once only.
 *
 * Blocks of multi-token prediction, which are with the head: where layers run again by `uniform` each runs
 * again as a whole, from its norms to the one before its logits, and keeps what goes into these norms; by
 * `block` nothing of them does (NVIDIA/Megatron-LM@d98e8a64, megatron/core/transformer/
 * multi_token_prediction.py, _checkpointed_forward). Parts of them run again as those of layers.
 * Deviation: by operators nothing of them does.
 *
 * Partitioned activations: the kept input of a group is cut over tp, and gathered before the
 * group runs again (Megatron-LM's distribute_saved_activations; Rajbhandari et al. 2020, P_a). */
#include "lower/data/lower_dp.h"
#include "lower/layers/lower_layers.h"

uint32_t
recompute_n_layers (const Lower *l, uint32_t pp_rank, uint32_t n_layers)
{
  const LsStrategy *s = l->s;
  if (s->recompute != LS_RECOMPUTE_FULL)
    return recomputes_ops (l) ? n_layers : 0;
  if (s->recompute_method == LS_RECOMPUTE_UNIFORM)
    return n_layers;
  uint32_t n = s->recompute_stages ? s->recompute_stages[pp_rank]
      : s->recompute_layers        ? s->recompute_layers
                                   : n_layers;
  return MIN (n, n_layers);
}

static bool
runs_blocks_again (const Lower *l)
{
  return l->s->recompute == LS_RECOMPUTE_FULL && l->s->recompute_method == LS_RECOMPUTE_UNIFORM;
}

/* The first operator of layers that run again together, or of a block that does. */
static bool
begins_group (const Lower *l, const Chunk *c, guint i)
{
  if (!is_layer (c, i))
    return runs_blocks_again (l) && operator_at (c, i)->begins_block;
  return begins_layer (c, i) && layer_of (c, i) < c->n_recomputed
      && layer_of (c, i) % recompute_group_size (l) == 0;
}

/* The part that operator i runs again with as a whole, or 0. */
static uint32_t
whole_part (const Lower *l, const Chunk *c, guint i)
{
  static const uint32_t parts[] = {
    [LS_MLP_PART_NONE] = 0,
    [LS_MLP_PART_DENSE] = LS_RECOMPUTE_MLP,
    [LS_MLP_PART_MOE] = LS_RECOMPUTE_MOE,
    [LS_MLP_PART_SHARED] = LS_RECOMPUTE_SHARED | LS_RECOMPUTE_MOE,
  };
  bool is_there = l->s->recompute == LS_RECOMPUTE_SELECTIVE && is_in_layer (c, i);
  return is_there ? l->s->recompute_parts & parts[operator_at (c, i)->part] : 0;
}

/* The first of such a part, whose input stays. */
static bool
begins_part (const Lower *l, const Chunk *c, guint i)
{
  uint32_t part = whole_part (l, c, i);
  return part && (begins_layer (c, i) || whole_part (l, c, i - 1) != part) && !drops_input (l, c, i)
      && operator_at (c, i)->input_bytes > 0;
}

/* What it multiplies is what is between two layers itself, neither cast nor gathered. */
static bool
takes_input_as_is (const Lower *l, const Chunk *c, guint i)
{
  const LsOperator *o = operator_at (c, i);
  bool is_gathered = o->tp == LS_TP_COLUMN && l->shard.sp && (l->shard.sp_save_gathered || o->beside);
  return !gathers_scaled (l, o) && !is_gathered;
}

bool
keeps_part_input (const Lower *l, const Chunk *c, guint i)
{
  return begins_part (l, c, i) && takes_input_as_is (l, c, i);
}

static bool
makes_latents_again (const Lower *l)
{
  return l->s->recompute == LS_RECOMPUTE_SELECTIVE && (l->s->recompute_parts & LS_RECOMPUTE_MLA_UP);
}

/* Queries, keys and values. */
static bool
is_made_again (const Lower *l, const Chunk *c, guint i)
{
  return makes_latents_again (l) && operator_at (c, i)->is_latent_up
      && operator_at (c, i)->saved_bytes > operator_at (c, i)->input_bytes;
}

bool
is_recomputed (const Lower *l, const Chunk *c, guint i)
{
  if (is_made_again (l, c, i))
    return true;
  if (operator_at (c, i)->is_in_block && runs_blocks_again (l))
    return true;
  if (!is_in_layer (c, i))
    return false;
  if (recomputes_ops (l))
    return is_layer (c, i);
  if (l->s->recompute == LS_RECOMPUTE_SELECTIVE)
    return whole_part (l, c, i)
        || ((l->s->recompute_parts & LS_RECOMPUTE_CORE) && operator_at (c, i)->attention_core);
  return layer_of (c, i) < c->n_recomputed;
}

/* It is no output of the norm before it. */
static bool
keeps_gathered_input (const Lower *l, const Chunk *c, guint i)
{
  const LsOperator *o = operator_at (c, i);
  return o->beside && o->tp == LS_TP_COLUMN && l->shard.sp;
}

bool
drops_input (const Lower *l, const Chunk *c, guint i)
{
  if (l->s->recompute != LS_RECOMPUTE_SELECTIVE || i == 0 || !is_in_layer (c, i)
      || operator_at (c, i)->input_bytes == 0 || keeps_gathered_input (l, c, i)
      || (makes_latents_again (l) && operator_at (c, i)->is_latent_up))
    return false;
  const LsOperator *source = operator_at (c, i - 1);
  return (source->is_norm && (l->s->recompute_parts & LS_RECOMPUTE_NORM))
      || (source->is_activation && (l->s->recompute_parts & LS_RECOMPUTE_ACTIVATION));
}

/* --- inputs of groups ---------------------------------------------------------------- */

static uint16_t
group_buffer (const Chunk *c, guint i)
{
  return (uint16_t) (is_layer (c, i) ? c->operators->len + layer_of (c, i) : block_buffer_base (c) + i);
}

/* What is partitioned of the inputs of a group: the first. */
static uint64_t
group_bytes (const Lower *l)
{
  return ls_residual_bytes (l->model, &l->shard) / (l->s->partition_activations ? l->mesh.tp : 1);
}

/* Of a block the other: the embeddings of the next tokens. */
static uint64_t
second_input_bytes (const Lower *l, const Chunk *c, guint i)
{
  return is_layer (c, i) ? 0 : ls_boundary_bytes (l->model, &l->shard);
}

void
keep_group_input (Build *b, uint16_t op, const Chunk *c, guint i, bool is_free)
{
  if (begins_part (b->l, c, i) && !takes_input_as_is (b->l, c, i))
    build_buffer (b, op, group_buffer (c, i), LS_MEM_ACTIVATIONS,
                  ls_boundary_bytes (b->l->model, &b->l->shard), is_free);
  if (!begins_group (b->l, c, i))
    return;
  uint64_t bytes = group_bytes (b->l) + second_input_bytes (b->l, c, i)
      + (recomputes_ops (b->l) ? recompute_needless_bytes (b->l, c, i) : 0);
  build_buffer (b, op, group_buffer (c, i), LS_MEM_ACTIVATIONS, bytes, is_free);
}

void
recompute_keep (Build *b, const Chunk *c, guint i, guint first_op)
{
  const Lower *l = b->l;
  if (begins_group (l, c, i) && l->s->partition_activations) {
    double bytes = 2.0 * (double) group_bytes (l);
    LsKernel copy = ls_kernel_stream ("partition-activation", LS_KERNEL_ELEMENTWISE, l->shard.dtype, 1,
                                      group_bytes (l), bytes, 0);
    first_op = build_kernel (b, &copy, LS_TAG_F);
  }
  keep_group_input (b, (uint16_t) first_op, c, i, false);
  if ((recomputes_ops (l) && is_layer (c, i)) || keeps_part_input (l, c, i))
    keep_input (b, (uint16_t) first_op, c, i, false);
}

void
recompute_release (Build *b, const Chunk *c, guint i)
{
  keep_group_input (b, (uint16_t) (b->ops->len - 1), c, i, true);
}

/* --- running again --------------------------------------------------------------------- */

/* First of the neighbouring operators, backwards from i, that run again in one go with i:
 * the group, or the inside of attention. */
static guint
run_start (const Lower *l, const Chunk *c, guint i)
{
  bool is_whole = l->s->recompute == LS_RECOMPUTE_FULL || recomputes_ops (l);
  while (is_whole ? !begins_group (l, c, i) : i > 0 && !begins_layer (c, i) && is_recomputed (l, c, i - 1))
    i--;
  return i;
}

static void
run_again (Build *b, const Chunk *c, guint from, guint to)
{
  const Lower *l = b->l;
  if (l->s->recompute == LS_RECOMPUTE_FULL && l->s->partition_activations)
    build_join (b,
                build_coll (b, LS_STREAM_TP, LS_SLOT_TP, LS_COLL_ALL_GATHER,
                            ls_residual_bytes (l->model, &l->shard), l->shard.dtype, LS_TAG_RECOMPUTE,
                            "activation all-gather"));
  Chunk partly = *c; /* borrows */
  partly.operators = c->again ? c->again_at : c->operators;
  partly.again = NULL;
  for (guint i = from; i <= to; i++) {
    build_at_operator (b, c, i);
    dp_around_again (b, i, true);
    build_forward_operator (b, &partly, i, LS_TAG_RECOMPUTE, true);
    dp_around_again (b, i, false);
  }
  build_at_operator (b, c, to);
}

/* All that makes them runs again, up to what keeps them. */
static void
make_latents_again (Build *b, const Chunk *c, guint attention, guint *done_from)
{
  guint from = attention;
  while (from > 0 && !operator_at (c, from - 1)->is_latent_attention)
    from--;
  for (guint i = from; i < attention; i++) {
    if (!operator_at (c, i)->is_latent_up)
      continue;
    dp_around_again (b, i, true);
    build_forward_operator (b, c, i, LS_TAG_RECOMPUTE, false);
    dp_around_again (b, i, false);
    if (is_made_again (b->l, c, i))
      keep_activation (b, first_op (b, b->ops->len), c, i, false);
    *done_from = MIN (*done_from, i);
  }
}

static void
make_input_again (Build *b, const Chunk *c, guint i)
{
  const LsOperator *source = operator_at (c, i - 1);
  for (uint32_t k = 0; k < source->n_fwd; k++)
    build_operator_kernel (b, source, &source->fwd[k], LS_TAG_RECOMPUTE);
  keep_input (b, first_op (b, b->ops->len), c, i, false);
}

void
recompute_before (Build *b, const Chunk *c, guint i, guint *done_from)
{
  const Lower *l = b->l;
  if (drops_input (l, c, i) && i != *done_from)
    make_input_again (b, c, i);
  if (makes_latents_again (l) && operator_at (c, i)->is_latent_attention)
    make_latents_again (b, c, i, done_from);
  if (!is_recomputed (l, c, i) || i >= *done_from)
    return;
  *done_from = run_start (l, c, i);
  if (*done_from < i && drops_input (l, c, *done_from))
    make_input_again (b, c, *done_from);
  run_again (b, c, *done_from, i);
}
