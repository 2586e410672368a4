/* lower/layers/lower_recompute_op.c — layers that run again but for the outputs of some operators, and what
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
#include "lower/data/lower_dp.h"
#include "lower/layers/lower_layers.h"

bool
recomputes_ops (const Lower *l)
{
  return l->s->recompute == LS_RECOMPUTE_SELECTIVE && l->s->recompute_parts & LS_RECOMPUTE_BY_OPERATORS;
}

bool
recomputes_no_products (const Lower *l)
{
  return recomputes_ops (l) && (l->s->recompute_parts & LS_RECOMPUTE_DOTS) == LS_RECOMPUTE_DOTS;
}

/* Not every other product, but those that are named. */
static bool
keeps_by_name (const Lower *l)
{
  return recomputes_ops (l) && !(l->s->recompute_parts & LS_RECOMPUTE_OP);
}

static bool
is_named (const Lower *l, const LsOperator *o)
{
  bool is_mlp = o->part == LS_MLP_PART_DENSE, is_row = o->tp == LS_TP_ROW;
  uint32_t names[2][2] = { { LS_RECOMPUTE_BUT_QKV, LS_RECOMPUTE_BUT_PROJECTION },
                           { LS_RECOMPUTE_BUT_UP, LS_RECOMPUTE_BUT_DOWN } };
  return l->s->recompute_parts & names[is_mlp][is_row];
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
  return k->kind == LS_KERNEL_GEMM && (k->dtype != LS_DTYPE_FP8 || l->shard.fp8_linear || keeps_by_name (l));
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
  return l->s->recompute_parts & (LS_RECOMPUTE_OP | LS_RECOMPUTE_BUT_ATTENTION);
}

/* What an operator keeps is an output of its own, or of the one before it. */
uint64_t
recompute_kept_bytes (const Lower *l, const Chunk *c, guint i)
{
  const LsOperator *o = operator_at (c, i), *before = i > 0 ? operator_at (c, i - 1) : NULL;
  if (ls_operator_is_flash (o))
    return keeps_attention (l) ? o->saved_bytes : 0;
  if (before && ls_operator_is_flash (before) && keeps_attention (l))
    return o->input_bytes;
  if (before && o->is_activation)
    return MIN (o->saved_bytes, kept_output_bytes (l, c, i - 1));
  return MIN (o->saved_bytes - o->input_bytes, kept_output_bytes (l, c, i));
}

/* Its output is for the next layer only. */
static bool
is_behind_all (const Chunk *c, guint i)
{
  bool is_needed = operator_at (c, i)->saved_bytes != operator_at (c, i)->input_bytes;
  for (guint j = i + 1; j < c->operators->len && layer_of (c, j) == layer_of (c, i); j++)
    is_needed |= operator_at (c, j)->saved_bytes > 0;
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
uint64_t
recompute_needless_bytes (const Lower *l, const Chunk *c, guint i)
{
  uint64_t bytes = 0, scattered = l->shard.sp && l->mesh.tp > 1 ? ls_boundary_bytes (l->model, &l->shard) : 0;
  for (uint16_t layer = layer_of (c, i); i < c->operators->len && layer_of (c, i) == layer; i++) {
    const LsOperator *o = operator_at (c, i);
    bool is_kept = !keeps_by_name (l) || is_named (l, o);
    if (o->tp == LS_TP_ROW && !(keeps_by_name (l) && is_behind_all (c, i)))
      bytes += kept_output_bytes (l, c, i) + (is_kept ? scattered : 0);
    else if (o->ep == LS_EP_COMBINE && l->mesh.etp > 1)
      bytes += o->etp_bytes / l->mesh.etp;
    else if (l->mesh.ep > 1)
      bytes += o->brought_bytes;
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
  o->context_parallel = false;
}

static void
drop_all (LsOperator *o)
{
  o->n_fwd = 0;
  o->context_parallel = false;
  o->exchange.n = 0;
}

void
recompute_prepare (const Lower *l, Chunk *c)
{
  if ((!recomputes_ops (l) && !l->s->recompute_early_stop) || c->again)
    return;
  c->again = g_array_new (FALSE, FALSE, sizeof (LsOperator));
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
    o->saved_bytes -= has_ops ? recompute_kept_bytes (l, c, i) : 0;
  }
}
