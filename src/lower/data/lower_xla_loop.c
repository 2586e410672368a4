/* lower/data/lower_xla_loop.c — the loop over layers that XLA makes (lower_dp_xla.c): its turns, what
 * they gather and when, and what they copy. */
#include "lower/data/lower_xla_loop.h"

/* --- units --------------------------------------------------------------------------- */

#define BEHIND_LAYERS UINT32_MAX

/* Turns of the loop; what stands before it is 0. */
uint32_t
xla_unit_of (const Lower *l, const Chunk *c, guint o)
{
  bool is_grouped = l->s->recompute == LS_RECOMPUTE_FULL && l->s->recompute_method == LS_RECOMPUTE_UNIFORM;
  if (layer_of (c, o) != UINT16_MAX)
    return 1 + layer_of (c, o) / (is_grouped ? l->s->recompute_layers : 1);
  for (guint i = o; i < c->operators->len; i++)
    if (layer_of (c, i) != UINT16_MAX)
      return 0;
  return BEHIND_LAYERS;
}

bool
xla_is_outside (const Chunk *c, guint o)
{
  return layer_of (c, o) == UINT16_MAX;
}

/* Elements that are gathered for an operator. */
uint64_t
xla_cut_numel (const LsOperator *o)
{
  uint64_t n = 0;
  for (uint32_t p = 0; p < o->n_params && !o->param_replicated; p++)
    n += o->param_numel[p];
  return n;
}

/* --- buffers ---------------------------------------------------------------------- */

/* The op to which what an operator leaves behind is tied. */
uint16_t
xla_last_op (Build *b)
{
  if (b->ops->len == 0)
    build_barrier (b);
  return (uint16_t) (b->ops->len - 1);
}

uint16_t
xla_buffer_id (Build *b, const Chunk *c, guint o, bool is_gradient)
{
  return dp_buffer (b, c, is_gradient ? c->operators->len + o : o);
}

void
xla_weight_buffer (Build *b, uint16_t op, const Chunk *c, guint o, bool is_free)
{
  uint64_t bytes = dp_param_bytes (b->l, xla_cut_numel (operator_at (c, o)));
  build_buffer (b, op, xla_buffer_id (b, c, o, false), LS_MEM_UNSHARDED, bytes, is_free);
}

/* Outside of the loop: the head's is there until its gradient has been computed, and so is
 * a word embedding that the head uses too. */
bool
xla_lives_until_backward (const Lower *l, const Chunk *c, guint o)
{
  const LsOperator *at = operator_at (c, o);
  return xla_is_outside (c, o) && (at->n_igrad > 0 || (c->has_head && l->model->tied_embeddings));
}

/* --- gathers ---------------------------------------------------------------------------- */

bool
xla_is_gathered (const Build *b, const Chunk *c, guint o)
{
  const LsOperator *at = operator_at (c, o);
  return xla_cut_numel (at) > 0 && dp_shard (b->l, at->is_expert).n > 1;
}

static void
gather (Build *b, XlaPass *x, const Chunk *c, guint o)
{
  const LsOperator *at = operator_at (c, o);
  if (!xla_is_gathered (b, c, o))
    return;
  x->gathered[o] = build_coll (b, LS_STREAM_GATHER, dp_shard (b->l, at->is_expert).slot, LS_COLL_ALL_GATHER,
                               dp_param_bytes (b->l, xla_cut_numel (at)), b->l->shard.dtype, LS_TAG_SYNC,
                               "weight all-gather");
  g_array_index (b->ops, LsOp, x->gathered[o]).layer = layer_of (c, o);
  if (!b->l->s->dp_overlap)
    build_join (b, x->gathered[o]);
}

/* Products that run again need their weights before those of the gradients. */
bool
xla_multiplies_again (const Lower *l, const Chunk *c, guint o)
{
  return is_recomputed (l, c, o) && !recomputes_no_products (l);
}

/* A backward that runs products again needs their weights in forward order. An executable has its
 * memory laid out: room for all weights of a unit, as it begins. */
static void
gather_unit (Build *b, XlaPass *x, const DpPass *p, guint o)
{
  const Chunk *c = p->c;
  uint32_t unit = xla_unit_of (b->l, c, o);
  guint first = o, last = o;
  while (first > 0 && xla_unit_of (b->l, c, first - 1) == unit)
    first--;
  while (last + 1 < c->operators->len && xla_unit_of (b->l, c, last + 1) == unit)
    last++;
  bool is_forward = p->type == LS_ACTION_F || xla_multiplies_again (b->l, c, first);
  build_barrier (b);
  for (guint i = first; i <= last; i++)
    if (xla_is_gathered (b, c, i))
      xla_weight_buffer (b, xla_last_op (b), c, i, false);
  for (guint i = 0; i <= last - first; i++)
    gather (b, x, c, is_forward ? first + i : last - i);
}

/* The unit that follows in the order of a pass; false: o's is the last. */
static bool
next_unit (const Lower *l, const DpPass *p, guint o, guint *ret_o)
{
  const Chunk *c = p->c;
  uint32_t unit = xla_unit_of (l, c, o);
  guint step = p->type == LS_ACTION_F ? 1 : G_MAXUINT, i = o;
  do
    i += step;
  while (i < c->operators->len && xla_unit_of (l, c, i) == unit);
  *ret_o = i;
  return i < c->operators->len;
}

/* A kernel that reads and writes so many bytes; none: no kernel. */
static void
copy (Build *b, uint64_t bytes, LsTag tag, const char *name)
{
  if (bytes == 0)
    return;
  LsKernel k = ls_kernel_stream (name, LS_KERNEL_ELEMENTWISE, b->l->act, 1,
                                 bytes / ls_dtype_bytes (b->l->act), 2.0 * (double) bytes, 0);
  build_kernel (b, &k, tag);
}

static void
copy_weights (Build *b, const DpPass *p, guint o)
{
  const Chunk *c = p->c;
  guint step = p->type == LS_ACTION_F ? 1 : G_MAXUINT;
  uint64_t bytes = 0;
  for (guint i = o; i < c->operators->len && xla_unit_of (b->l, c, i) == xla_unit_of (b->l, c, o); i += step)
    bytes += xla_is_gathered (b, c, i) ? dp_param_bytes (b->l, xla_cut_numel (operator_at (c, i))) : 0;
  copy (b, bytes, p->type == LS_ACTION_F ? LS_TAG_F : LS_TAG_B, "gathered weights copy");
}

/* Of the unit that begins at o; pipelined: that of the first turn, and of the next. */
void
xla_gather_for (Build *b, XlaPass *x, const DpPass *p, guint o)
{
  guint next;
  bool is_pipelined = ls_strategy_loop_overlap (b->l->s) == LS_LOOP_OVERLAP_PIPELINED;
  if (!is_pipelined || !x->has_begun)
    gather_unit (b, x, p, o);
  else if (b->l->s->loop_copies == LS_LOOP_COPIES_WEIGHTS)
    copy_weights (b, p, o);
  x->has_begun = true;
  if (is_pipelined && next_unit (b->l, p, o, &next)
      && (p->type == LS_ACTION_F || !xla_is_outside (p->c, next)))
    gather_unit (b, x, p, next);
}

/* --- copies ----------------------------------------------------------------------------- */

void
xla_copy_to_arrays (Build *b, const Chunk *c, guint o)
{
  if (b->l->s->loop_copies != LS_LOOP_COPIES_NONE)
    copy (b, recompute_product_bytes (b->l, c, o), LS_TAG_F, "kept output copy");
}

/* Kernels of flash attention read nothing but whole arrays. */
void
xla_copy_from_arrays (Build *b, const Chunk *c, guint o)
{
  if (b->l->s->loop_copies != LS_LOOP_COPIES_NONE && o > 0 && ls_operator_is_flash (operator_at (c, o)))
    copy (b, recompute_product_bytes (b->l, c, o - 1), LS_TAG_B, "kept output slice");
}
