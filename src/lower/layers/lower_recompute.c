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
 *            op, dots, dots-flash: each layer but for some outputs.
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

/* ---- lower recompute op ---- */

/* Layers that run again but for the outputs of some operators, and what
 * early stopping leaves out (lower_recompute.c).
 *
 * op: each layer runs again but for the outputs that were kept of every other matrix product, of
 * flash attention and of reduce-scatters (torchtitan, parallelize_llama.py of December 2024,
 * selective_ac_option "op"). Products are counted as Llama has them, within a layer: q, v, gate
 * and down are kept, k, the projection and up run again. Nothing runs behind what the backward
 * needs, so down does not matter (early stop), but its output is kept. In fp8 those of torchao
 * are the same op, of tensors in fp8 (torch.mm in float8_linear.py); others are not. With latent
 * attention products are q-down, q-up, kv-down, kv-up, the projection; shared experts' follow.
 * The router's product always runs again, and so do grouped products, which are ops of another
 * kind; what exchanges bring stays, and the numbers of tokens that the host has read (torchtitan,
 * distributed/activation_checkpoint.py; pull requests 1672 of September 2025 and 1580: layers of
 * models with experts run again to their end). Deviation: their dense layers stop early. Tokens of experts
 * that are cut are gathered again; what is reduce-scattered behind these is kept.
 * full, stopped early: experts run again to their end, too: where scores multiply what they have made it
 * is needed (Hugging Face; torchtitan but for Llama 4: pull request 4095), elsewhere their last product is an
 * autograd function, which saves its input when it has run. Deviation: of the latter (NVIDIA-NeMo/Automodel)
 * results are not brought back again.
 * keep-qkv, keep-attention, keep-projection, keep-up, keep-down: each layer runs again but for the outputs
 * that are named so, as JAX's policies save them by name (MaxText, layers/decoders.py of August 2025,
 * get_remat_policy: save_qkv_proj, save_out_proj, save_dot_except_mlp, custom; praxis' SAVE_QKV_OUT_PROJ).
 * Products are kept whatever their format, and XLA drops what nobody needs.
 * dots: all products of these (JAX's policy dots_with_no_batch_dims_saveable, praxis'
 * SAVE_DOT_WITH_NO_BATCH_DIM, MaxText's minimal): those of attention have a batch, so attention
 * runs again, fused or not. dots-flash: attention is kept too (MaxText's minimal_flash). */

bool
recomputes_ops (const Lower *l)
{
  return l->s->recompute == LS_RECOMPUTE_SELECTIVE
      && l->s->memory.recompute_parts & LS_RECOMPUTE_BY_OPERATORS;
}

/* Not every other product, but those that are named. */
static bool
keeps_by_name (const Lower *l)
{
  return recomputes_ops (l) && !(l->s->memory.recompute_parts & LS_RECOMPUTE_OP);
}

static bool
is_named (const Lower *l, const LsOperator *o)
{
  bool is_mlp = o->part == LS_MLP_PART_DENSE, is_row = o->tp == LS_TP_ROW;
  uint32_t names[2][2] = { { LS_RECOMPUTE_BUT_QKV, LS_RECOMPUTE_BUT_PROJECTION },
                           { LS_RECOMPUTE_BUT_UP, LS_RECOMPUTE_BUT_DOWN } };
  return l->s->memory.recompute_parts & names[is_mlp][is_row];
}

/* Products of the layer before operator i. */
static uint32_t
n_products_before (const Chunk *c, guint i)
{
  uint32_t n = 0;
  for (guint j = i; !begins_layer (c, j); j--)
    n += operator_at (c, j - 1)->n_products;
  return n;
}

/* As named, or every other one, from the first of the layer on. */
static bool
is_kept_product (const Lower *l, const Chunk *c, guint i, uint32_t product)
{
  return keeps_by_name (l) ? is_named (l, operator_at (c, i)) : (n_products_before (c, i) + product) % 2 == 0;
}

/* Of operator i, columns of products that are kept. */
static uint64_t
kept_columns (const Lower *l, const Chunk *c, guint i)
{
  uint64_t columns = 0;
  for (uint32_t p = 0; p < operator_at (c, i)->n_products; p++)
    columns += is_kept_product (l, c, i, p) ? operator_at (c, i)->product_columns[p] : 0;
  return columns;
}

static bool
is_kept_kind (const Lower *l, const LsKernel *k)
{
  return k->kind == LS_KERNEL_GEMM && (k->dtype != LS_DTYPE_FP8 || l->shard.fp8.linear || keeps_by_name (l));
}

static uint64_t
kept_output_bytes (const Lower *l, const Chunk *c, guint i)
{
  const LsOperator *o = operator_at (c, i);
  for (uint32_t k = 0; k < o->n_igrad && o->n_products > 0; k++)
    if (is_kept_kind (l, &o->igrad[k]))
      return kept_columns (l, c, i) * o->igrad[k].m * ls_dtype_bytes (l->act);
  return 0;
}

static bool
keeps_attention (const Lower *l)
{
  return l->s->memory.recompute_parts & (LS_RECOMPUTE_OP | LS_RECOMPUTE_BUT_ATTENTION);
}

/* What an operator keeps is an output of its own, or of the one before it. */
uint64_t
recompute_kept_bytes (const Lower *l, const Chunk *c, guint i)
{
  const LsOperator *o = operator_at (c, i), *before = i > 0 ? operator_at (c, i - 1) : NULL;
  if (ls_operator_is_flash (o))
    return keeps_attention (l) ? o->kept.saved_bytes : 0;
  if (before && ls_operator_is_flash (before) && keeps_attention (l))
    return o->kept.input_bytes;
  if (before && o->kept.is_activation)
    return MIN (o->kept.saved_bytes, kept_output_bytes (l, c, i - 1));
  return MIN (o->kept.saved_bytes - o->kept.input_bytes, kept_output_bytes (l, c, i));
}

/* Its output is for the next layer only. */
static bool
is_behind_all (const Chunk *c, guint i)
{
  bool is_needed = operator_at (c, i)->kept.saved_bytes != operator_at (c, i)->kept.input_bytes;
  for (guint j = i + 1; j < c->operators->len && layer_of (c, j) == layer_of (c, i); j++)
    is_needed |= operator_at (c, j)->kept.saved_bytes > 0;
  return !is_needed;
}

uint64_t
recompute_product_bytes (const Lower *l, const Chunk *c, guint i)
{
  const LsOperator *o = operator_at (c, i);
  uint64_t columns = 0;
  if (!is_layer (c, i) || is_behind_all (c, i) || o->n_igrad == 0)
    return 0;
  if (recomputes_ops (l))
    return kept_output_bytes (l, c, i);
  for (uint32_t p = 0; p < o->n_products; p++)
    columns += l->s->recompute == LS_RECOMPUTE_NONE ? o->product_columns[p] : 0;
  return columns * o->igrad[0].m * ls_dtype_bytes (l->act);
}

/* Kept outputs of the layer that begins at i which are nobody's input: of its row-parallel products, of
 * the reduce-scatters behind them and of exchanges; where all products are kept, of those whose output
 * something needs. */
static uint64_t
recompute_needless_bytes (const Lower *l, const Chunk *c, guint i)
{
  uint64_t bytes = 0, scattered = l->shard.sp && l->mesh.tp > 1 ? ls_boundary_bytes (l->model, &l->shard) : 0;
  for (uint16_t layer = layer_of (c, i); i < c->operators->len && layer_of (c, i) == layer; i++) {
    const LsOperator *o = operator_at (c, i);
    bool is_kept = !keeps_by_name (l) || is_named (l, o);
    if (o->tp == LS_TP_ROW && !(keeps_by_name (l) && is_behind_all (c, i)))
      bytes += kept_output_bytes (l, c, i) + (is_kept ? scattered : 0);
    else if (o->ep == LS_EP_COMBINE && l->mesh.etp > 1)
      bytes += o->comm.etp_bytes / l->mesh.etp;
    else if (l->mesh.ep > 1)
      bytes += o->comm.brought_bytes;
  }
  return bytes;
}

static bool
ends_group (const Lower *l, const Chunk *c, guint i)
{
  return (layer_of (c, i) + 1u) % recompute_group_size (l) == 0 || layer_of (c, i) + 1u == c->n_recomputed;
}

/* What experts have made is multiplied by their scores, or saved by an op that has run by then. */
static bool
is_stopped_before (const Lower *l, const Chunk *c, guint i)
{
  if (!is_layer (c, i) || !is_behind_all (c, i) || operator_at (c, i)->part == LS_MLP_PART_MOE)
    return false;
  return recomputes_ops (l) || ends_group (l, c, i);
}

/* Products one by one: those that are kept do not run again. */
static void
drop_products (const Lower *l, LsOperator *o, const Chunk *c, guint i)
{
  uint8_t n = 0, product = 0;
  for (uint32_t k = 0; k < o->n_fwd; k++)
    if (!is_kept_kind (l, &o->fwd[k]) || !is_kept_product (l, c, i, product++))
      o->fwd[n++] = o->fwd[k];
  o->n_fwd = n;
}

/* Of a joint product fewer columns run again. */
static void
narrow_product (const Lower *l, LsOperator *o, uint64_t kept)
{
  uint8_t n = 0;
  for (uint32_t k = 0; k < o->n_fwd; k++) {
    bool is_product = is_kept_kind (l, &o->fwd[k]) && kept > 0;
    if (is_product && kept == o->fwd[k].n)
      continue;
    o->fwd[n++] = is_product ? ls_kernel_gemm_columns (&o->fwd[k], o->fwd[k].n - kept) : o->fwd[k];
  }
  o->n_fwd = n;
}

static void
narrow_forward (const Lower *l, LsOperator *o, const Chunk *c, guint i)
{
  uint32_t n_gemms = 0;
  for (uint32_t k = 0; k < o->n_fwd; k++)
    n_gemms += o->fwd[k].kind == LS_KERNEL_GEMM;
  if (n_gemms == o->n_products)
    drop_products (l, o, c, i);
  else
    narrow_product (l, o, kept_columns (l, c, i));
  ls_scaled_drop_casts (&l->shard, o);
}

/* What attention made is kept; copies around it run again. */
static void
drop_attention (LsOperator *o)
{
  uint8_t n = 0;
  for (uint32_t k = 0; k < o->n_fwd; k++)
    if (o->fwd[k].kind != LS_KERNEL_ATTENTION_FWD)
      o->fwd[n++] = o->fwd[k];
  o->n_fwd = n;
  o->comm.is_context_parallel = false;
}

static void
drop_all (LsOperator *o)
{
  o->n_fwd = 0;
  o->comm.is_context_parallel = false;
  o->comm.cp.n = 0;
}

void
recompute_prepare (const Lower *l, Chunk *c)
{
  if ((!recomputes_ops (l) && !l->s->memory.recompute_early_stop) || c->again)
    return;
  c->again = ls_operators_new ();
  g_array_set_size (c->again, c->operators->len);
  c->again_at = pointers_to (c->again);
  for (guint i = 0; i < c->operators->len; i++) {
    LsOperator *o = c->again_at->pdata[i];
    bool has_ops = recomputes_ops (l) && is_layer (c, i), is_stopped = is_stopped_before (l, c, i);
    if (!has_ops && !is_stopped && operator_at (c, i)->n_fwd > 0) {
      c->again_at->pdata[i] = c->operators->pdata[i];
      continue;
    }
    ls_operator_copy (o, operator_at (c, i));
    if (has_ops && o->n_products > 0)
      narrow_forward (l, o, c, i);
    if (has_ops && ls_operator_is_flash (o) && keeps_attention (l))
      drop_attention (o);
    if (has_ops)
      o->ep = o->ep == LS_EP_DISPATCH && l->mesh.etp > 1 ? LS_EP_GATHER : LS_EP_NONE;
    if (is_stopped)
      drop_all (o);
    if (o->n_fwd == 0 || (has_ops && o->tp == LS_TP_ROW && l->shard.sp))
      o->tp = LS_TP_NONE;
    o->kept.saved_bytes -= has_ops ? recompute_kept_bytes (l, c, i) : 0;
  }
}

uint32_t
recompute_n_layers (const Lower *l, uint32_t pp_rank, uint32_t n_layers)
{
  const LsStrategy *s = l->s;
  if (s->recompute != LS_RECOMPUTE_FULL)
    return recomputes_ops (l) ? n_layers : 0;
  if (s->memory.recompute_method == LS_RECOMPUTE_UNIFORM)
    return n_layers;
  uint32_t n = s->memory.recompute_stages ? s->memory.recompute_stages[pp_rank]
      : s->memory.recompute_layers        ? s->memory.recompute_layers
                                          : n_layers;
  return MIN (n, n_layers);
}

static bool
runs_blocks_again (const Lower *l)
{
  return l->s->recompute == LS_RECOMPUTE_FULL && l->s->memory.recompute_method == LS_RECOMPUTE_UNIFORM;
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
  return is_there ? l->s->memory.recompute_parts & parts[operator_at (c, i)->part] : 0;
}

/* The first of such a part, whose input stays. */
static bool
begins_part (const Lower *l, const Chunk *c, guint i)
{
  uint32_t part = whole_part (l, c, i);
  return part && (begins_layer (c, i) || whole_part (l, c, i - 1) != part) && !drops_input (l, c, i)
      && operator_at (c, i)->kept.input_bytes > 0;
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
  return l->s->recompute == LS_RECOMPUTE_SELECTIVE && (l->s->memory.recompute_parts & LS_RECOMPUTE_MLA_UP);
}

/* Queries, keys and values. */
static bool
is_made_again (const Lower *l, const Chunk *c, guint i)
{
  return makes_latents_again (l) && operator_at (c, i)->kept.is_latent_up
      && operator_at (c, i)->kept.saved_bytes > operator_at (c, i)->kept.input_bytes;
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
        || ((l->s->memory.recompute_parts & LS_RECOMPUTE_CORE) && operator_at (c, i)->kept.is_core);
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
      || operator_at (c, i)->kept.input_bytes == 0 || keeps_gathered_input (l, c, i)
      || (makes_latents_again (l) && operator_at (c, i)->kept.is_latent_up))
    return false;
  const LsOperator *source = operator_at (c, i - 1);
  return (source->kept.is_norm && (l->s->memory.recompute_parts & LS_RECOMPUTE_NORM))
      || (source->kept.is_activation && (l->s->memory.recompute_parts & LS_RECOMPUTE_ACTIVATION));
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
  return ls_residual_bytes (l->model, &l->shard) / (l->s->memory.partition_activations ? l->mesh.tp : 1);
}

void
keep_group_input (Build *b, uint16_t op, const Chunk *c, guint i, bool is_free)
{
  if (begins_part (b->l, c, i) && !takes_input_as_is (b->l, c, i))
    build_buffer (b, op, group_buffer (c, i), LS_MEM_ACTIVATIONS,
                  ls_boundary_bytes (b->l->model, &b->l->shard), is_free);
  if (!begins_group (b->l, c, i))
    return;
  /* The second input of a block: the embeddings of the next tokens. */
  uint64_t bytes = group_bytes (b->l) + (is_layer (c, i) ? 0 : ls_boundary_bytes (b->l->model, &b->l->shard))
      + (recomputes_ops (b->l) ? recompute_needless_bytes (b->l, c, i) : 0);
  build_buffer (b, op, group_buffer (c, i), LS_MEM_ACTIVATIONS, bytes, is_free);
}

void
recompute_keep (Build *b, const Chunk *c, guint i, guint first_op)
{
  const Lower *l = b->l;
  if (begins_group (l, c, i) && l->s->memory.partition_activations) {
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
  if (l->s->recompute == LS_RECOMPUTE_FULL && l->s->memory.partition_activations)
    build_coll_joined (b, LS_STREAM_TP, LS_SLOT_TP, LS_COLL_ALL_GATHER,
                       ls_residual_bytes (l->model, &l->shard), l->shard.dtype, LS_TAG_RECOMPUTE,
                       "activation all-gather");
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
  while (from > 0 && !operator_at (c, from - 1)->kept.is_latent_attention)
    from--;
  for (guint i = from; i < attention; i++) {
    if (!operator_at (c, i)->kept.is_latent_up)
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
  if (makes_latents_again (l) && operator_at (c, i)->kept.is_latent_attention)
    make_latents_again (b, c, i, done_from);
  if (!is_recomputed (l, c, i) || i >= *done_from)
    return;
  *done_from = run_start (l, c, i);
  if (*done_from < i && drops_input (l, c, *done_from))
    make_input_again (b, c, *done_from);
  run_again (b, c, *done_from, i);
}

/* Kept activations wait in the memory of the host
 * (Transformer Engine's cpu_offload; Rajbhandari et al. 2020, P_a+cpu).
 *
 * Behind a layer's forward what it keeps is copied out, on a stream of its own. Behind the next
 * layer the compute stream waits for that, so that the memory is free for what the host issues
 * from there on, however far it is ahead, and the next copy begins (NVIDIA/TransformerEngine at
 * d0067d0da, pytorch/cpu_offload.py, release_activation_forward_gpu_memory). A layer's copy back
 * begins with the backward of the layer behind it, so that it has that long to arrive. The last
 * layer of a chunk stays: its backward is the first. So do those behind the first offload_layers,
 * if that is said. PCIe is shared with whatever else crosses it.
 *
 * What comes back takes the place of what came before it (Transformer Engine's double
 * buffer), so that its memory is taken when the copy begins, however far the host is ahead.
 *
 * What waits there at once counts in the order of the program: from the copy out to the copy back.
 *
 * Deviations: the bounce buffers of the host's driver cost nothing. Transformer Engine begins to
 * bring some of several layers back while others, which stayed, are run. */

static bool
is_offloaded (const Lower *l, const Chunk *c, uint32_t layer)
{
  uint32_t n = l->s->memory.offload_layers;
  return l->s->memory.offload_activations && layer + 1 < c->n_layers && (n == 0 || layer < n);
}

/* The copy has the bytes of the buffers that it moves. */
static uint16_t
build_copy (Build *b, const Chunk *c, uint32_t layer, LsStream stream, LsCopyDirection direction,
            const LsDep *deps, uint16_t n_deps)
{
  bool is_out = direction == LS_COPY_TO_HOST;
  LsOp copy
      = ls_op_blank (LS_OP_COPY, stream, LS_TAG_SYNC, is_out ? "offload activations" : "reload activations");
  copy.direction = direction;
  copy.host = LS_HOST_LAUNCH;
  copy.is_kept = true;
  uint16_t op = build_op (b, copy, deps, n_deps);
  saved_by_layer (b, op, c, layer, is_out);
  LsOp *made = &g_array_index (b->ops, LsOp, op);
  LsBufferEvent *moved = ls_arena_new_array (b->l->plan->arena, LsBufferEvent, made->n_buffers);
  for (uint16_t i = 0; i < made->n_buffers; i++) {
    moved[i] = made->buffers[i];
    moved[i].when = LS_AT_START;
    made->bytes += moved[i].bytes;
  }
  made->buffers = is_out ? NULL : moved;
  made->n_buffers = is_out ? 0 : made->n_buffers;
  return op;
}

/* The compute stream waits for a copy, and what was copied is free. */
static void
finish_copy (Build *b, const Chunk *c, Offload *o)
{
  if (!o->is_under_way)
    return;
  build_join (b, o->op);
  uint16_t op = build_event (b, LS_OP_RECORD, b->stream, "offloaded", LS_EVENT_NONE, NULL);
  saved_by_layer (b, op, c, o->layer, true);
  o->is_under_way = false;
}

void
offload_behind (Build *b, const Chunk *c, guint i, Offload *o)
{
  bool ends_layer = layer_of (c, i) != UINT16_MAX
      && (i + 1 == c->operators->len || layer_of (c, i + 1) != layer_of (c, i));
  if (!ends_layer)
    return;
  finish_copy (b, c, o);
  if (!is_offloaded (b->l, c, layer_of (c, i)))
    return;
  LsDep done = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  uint16_t op = build_copy (b, c, layer_of (c, i), LS_STREAM_COPY, LS_COPY_TO_HOST, &done, 1);
  *o = (Offload) { .layer = layer_of (c, i), .op = op, .is_under_way = true };
}

void
reload_before (Build *b, const Chunk *c, guint i, Reload *r)
{
  uint32_t layer = layer_of (c, i);
  bool begins = layer != UINT16_MAX && layer != r->layer;
  if (!begins)
    return;
  if (r->is_under_way)
    build_join (b, r->op);
  *r = (Reload) { .layer = layer };
  if (layer == 0 || !is_offloaded (b->l, c, layer - 1))
    return;
  const LsDep deps[] = { { LS_DEP_STREAM, LS_STREAM_COMPUTE }, { LS_DEP_STREAM, LS_STREAM_COPY } };
  r->op = build_copy (b, c, layer - 1, LS_STREAM_COPY_IN, LS_COPY_TO_DEVICE, deps, G_N_ELEMENTS (deps));
  r->is_under_way = true;
}

/* What leaves, and what of it has not come back, at most. */
static void
follow_copies (const LsSegment *seg, uint64_t *bytes, uint64_t *most)
{
  for (uint32_t o = 0; o < seg->n_ops; o++) {
    const LsOp *op = &seg->ops[o];
    if (op->is_kept && op->direction == LS_COPY_TO_HOST)
      *bytes += op->bytes;
    else if (op->is_kept)
      *bytes -= MIN (op->bytes, *bytes);
    *most = MAX (*most, *bytes);
  }
}

uint64_t
activations_in_host (const Lower *l, const LsProgram *p)
{
  uint64_t bytes = 0, most = 0;
  for (uint32_t i = 0; l->s->memory.offload_activations && i < p->n_instances; i++)
    follow_copies (&g_array_index (l->segments, LsSegment, p->instances[i].segment), &bytes, &most);
  return most;
}
