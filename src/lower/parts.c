#include "lower/parts.h"

#include <string.h>

#include "base/digest.h"
#include "lower/layers/lower_layers.h"
#include "lower/pipeline/lower_pipe.h"
#include "schedules/sched.h"
#include "strategy/shard.h"

/* What parts follow from. No gaps: hashed and compared as bytes. */
typedef struct {
  uint64_t variant;
  uint64_t global_batch; /* of which documents have a mean; 0: they fill sequences */
  uint32_t tp, cp, ep, etp, micro_batch, seq, sp, tp_overlap, ep_overlap, recompute, recompute_parts;
  uint32_t grad_is_cast, grad_is_fresh, has_head_weight, of;
} Key;

typedef struct {
  Key key;
  LsModelParts *parts; /* NULL: it cannot be lowered */
} Entry;

struct LsPartsMemo {
  const LsModel *model;
  guint n_references;
  LsArena *arena;
  GHashTable *entries;
  const Entry *last;      /* that was asked for; NULL: none was */
  GArray *kernels;        /* of all, as Lower has them; NULL: none yet */
  GHashTable *kernel_ids; /* likewise                                  */
};

LS_DEFINE_BYTES_KEY (key, Key)

LsPartsMemo *
ls_parts_memo_new (const LsModel *m)
{
  LsPartsMemo *memo = g_new (LsPartsMemo, 1);
  *memo = (LsPartsMemo) { m, 1, ls_arena_new (), g_hash_table_new (key_hash, key_equal), NULL, NULL, NULL };
  return memo;
}

LsPartsMemo *
ls_parts_memo_ref (LsPartsMemo *memo)
{
  memo->n_references++;
  return memo;
}

void
ls_parts_memo_unref (LsPartsMemo *memo)
{
  if (!memo || --memo->n_references > 0)
    return;
  g_hash_table_unref (memo->entries);
  g_clear_pointer (&memo->kernels, g_array_unref);
  g_clear_pointer (&memo->kernel_ids, g_hash_table_unref);
  ls_arena_free (memo->arena);
  g_free (memo);
}

/* --- one part ----------------------------------------------------------------------------- */

/* ret_kept: bytes of activations that are there after it, less those before; NULL allowed. */
static LsPartPass
lower_pass (LsPartsMemo *memo, Lower *l, const Chunk *c, LsActionType type, uint64_t *ret_kept)
{
  Build b;
  build_init (&b, l);
  build_pass (&b, c, type);
  if (b.next_deps->len > 0)
    build_barrier (&b);
  LsPartOp *ops = ls_arena_new_array (memo->arena, LsPartOp, b.ops->len);
  for (guint i = 0; i < b.ops->len; i++) {
    const LsOp *op = &g_array_index (b.ops, LsOp, i);
    LsDep *deps = op->n_deps > 0 ? ls_arena_new_array (memo->arena, LsDep, op->n_deps) : NULL;
    for (uint16_t d = 0; d < op->n_deps; d++)
      deps[d] = op->deps[d];
    ops[i] = part_op (op);
    ops[i].deps = deps;
    ops[i].n_deps = op->n_deps;
  }
  if (ret_kept)
    *ret_kept = (uint64_t) MAX (0, activations_left (&b));
  const LsPartPass pass = { ops, b.ops->len };
  build_clear (&b);
  return pass;
}

/* Of layers alone, as a first one that nothing is before, and where it is all that runs again. */
static bool
keeps_surely (const Lower *l, int part)
{
  const LsStrategy *s = l->s;
  bool is_alone = s->recompute != LS_RECOMPUTE_FULL
      || (s->memory.recompute_method == LS_RECOMPUTE_UNIFORM && s->memory.recompute_layers == 1);
  return part >= LS_MODEL_LAYER && is_alone && !s->memory.offload_activations;
}

/* What the first operator of a layer need not keep, if what is before it is made again. */
static uint64_t
may_drop (const Lower *l, const Chunk *c)
{
  uint32_t parts = l->s->recompute == LS_RECOMPUTE_SELECTIVE ? l->s->memory.recompute_parts : 0;
  return c->operators->len > 0 && parts & (LS_RECOMPUTE_NORM | LS_RECOMPUTE_ACTIVATION)
      ? operator_at (c, 0)->kept.input_bytes
      : 0;
}

static void
count_params (const LsOperator *o, LsPartSizes *p)
{
  for (uint32_t n = 0; n < o->params.n && o->params.is_frozen; n++) {
    p->n_frozen += o->params.numel[n];
    p->n_frozen_experts += o->params.is_expert ? o->params.numel[n] : 0;
    p->n_nf4 += o->params.is_nf4 && n == 0 ? o->params.numel[n] : 0;
  }
  p->n_params += trained_params (o);
  p->n_expert += o->params.is_expert ? trained_params (o) : 0;
}

/* Counts, and leaves out operators that LS_PARTS_LEAST has not, if asked to. */
static void
keep_least (const Lower *l, Chunk *c, bool is_least, LsPartSizes *size)
{
  for (guint i = c->operators->len; i-- > 0;) {
    const LsOperator *o = operator_at (c, i);
    bool is_uneven
        = (l->s->experts.load && o->params.is_expert) || (l->s->docs.lengths && ls_operator_is_flash (o)),
        is_at_end = c->n_layers > 0 && !is_layer (c, i);
    if (!is_at_end)
      count_params (o, size);
    if (!is_least || (!is_uneven && !is_at_end))
      continue;
    g_ptr_array_remove_index (c->operators, i);
    g_array_remove_index (c->layer_of, i);
  }
}

static bool
runs_only_blocks_again (const LsStrategy *s)
{
  return s->recompute == LS_RECOMPUTE_FULL && s->memory.recompute_method != LS_RECOMPUTE_UNIFORM;
}

/* An embedding, a layer or a head. */
static void
lower_part (LsPartsMemo *memo, Lower *l, LsPartsOf of, uint32_t layer, int number, LsModelPart *part)
{
  Chunk c;
  uint64_t kept;
  uint32_t n_layers = number >= LS_MODEL_LAYER;
  chunk_init (l, &c, layer, n_layers, number == LS_MODEL_EMBEDDING, number == LS_MODEL_HEAD);
  keep_least (l, &c, of != LS_PARTS_USUAL, &part->size);
  c.n_recomputed
      = of != LS_PARTS_USUAL && runs_only_blocks_again (l->s) ? 0 : recompute_n_layers (l, 0, n_layers);
  recompute_prepare (l, &c);
  bool is_split = of == LS_PARTS_LEAST_SPLIT;
  part->pass[LS_PARTS_FORWARD] = lower_pass (memo, l, &c, LS_ACTION_F, &kept);
  part->pass[LS_PARTS_BACKWARD] = lower_pass (memo, l, &c, is_split ? LS_ACTION_I : LS_ACTION_B, NULL);
  if (is_split)
    part->pass[LS_PARTS_WEIGHTS] = lower_pass (memo, l, &c, LS_ACTION_W, NULL);
  part->size.kept = keeps_surely (l, number) ? kept - MIN (kept, may_drop (l, &c)) : 0;
  chunk_clear (&c);
}

/* --- all of them ---------------------------------------------------------------------------- */

/* The memo's kernels are those of each that is lowered. */
static void
share_kernels (LsPartsMemo *memo, Lower *l)
{
  if (!memo->kernels) {
    memo->kernels = g_array_ref (l->kernels);
    memo->kernel_ids = g_hash_table_ref (l->kernel_ids);
    return;
  }
  g_array_unref (l->kernels);
  g_hash_table_unref (l->kernel_ids);
  l->kernels = g_array_ref (memo->kernels);
  l->kernel_ids = g_hash_table_ref (memo->kernel_ids);
}

static LsModelParts *
lower_parts (LsPartsMemo *memo, const LsStrategy *s, LsPartsOf of, GError **error)
{
  Lower l;
  LsModelParts *parts = NULL;
  if (lower_begin (&l, memo->model, s, NULL, error)) {
    parts = ls_arena_new_array (memo->arena, LsModelParts, 1);
    share_kernels (memo, &l);
    l.shard.fp8.bf16_first = l.shard.fp8.bf16_last = 0;
    if (of != LS_PARTS_USUAL) {
      l.shard.grad.is_fresh |= l.shard.grad.is_own;
      l.cp_rank = 0;
    }
    uint32_t first[LS_MAX_MODEL_KINDS], n = ls_model_first_of_kinds (memo->model, first);
    parts->n = LS_MODEL_LAYER + n;
    parts->part = ls_arena_new_array (memo->arena, LsModelPart, parts->n);
    for (uint32_t i = 0; i < parts->n; i++)
      lower_part (memo, &l, of, i < LS_MODEL_LAYER ? 0 : first[i - LS_MODEL_LAYER], (int) i, &parts->part[i]);
  }
  lower_clear (&l);
  return parts;
}

/* Most of the least are as all are. */
static LsPartsOf
as_lowered (const LsModel *m, const LsStrategy *s, const LsShard *shard, LsPartsOf of)
{
  bool is_apart = (shard->grad.is_own && !shard->grad.is_fresh) || runs_only_blocks_again (s)
      || ls_context_is_uneven (shard) || s->experts.load || s->docs.lengths || m->sides.encoder_layers > 0;
  return of == LS_PARTS_LEAST && !is_apart ? LS_PARTS_USUAL : of;
}

static void
fill_key (Key *key, const LsModel *m, const LsStrategy *s, LsPartsOf of)
{
  const LsShard shard = ls_strategy_shard (s, m);
  const LsSched *sched = ls_sched_find (s->schedule);
  bool ends_where_it_begins = s->pp == 1 || sched->placement == LS_PLACE_PIPES
      || (sched->placement == LS_PLACE_WAVE && s->vpp % 2 == 0);
  memset (key, 0, sizeof *key);
  key->global_batch = s->docs.lengths ? s->global_batch : 0;
  key->tp = s->tp, key->cp = s->cp, key->ep = s->ep, key->etp = s->experts.etp;
  key->micro_batch = s->micro_batch, key->seq = s->seq, key->sp = s->sp;
  key->tp_overlap = s->mp.tp_overlap, key->ep_overlap = (uint32_t) s->mp.ep_overlap;
  key->recompute = (uint32_t) s->recompute, key->recompute_parts = s->memory.recompute_parts;
  key->grad_is_cast = shard.grad.is_cast, key->grad_is_fresh = shard.grad.is_fresh;
  key->has_head_weight = !m->tied_embeddings || !ends_where_it_begins;
  key->of = as_lowered (m, s, &shard, of);
}

const LsModelParts *
ls_parts_of (LsPartsMemo *memo, const LsStrategy *s, uint64_t variant, LsPartsOf of, GError **error)
{
  Key key;
  fill_key (&key, memo->model, s, of);
  key.variant = variant;
  if (!memo->last || !key_equal (&memo->last->key, &key))
    memo->last = g_hash_table_lookup (memo->entries, &key);
  if (memo->last)
    return memo->last->parts;
  Entry *e = ls_arena_new_array (memo->arena, Entry, 1);
  *e = (Entry) { key, lower_parts (memo, s, (LsPartsOf) key.of, error) };
  g_hash_table_insert (memo->entries, &e->key, e);
  return e->parts;
}

const LsKernel *
ls_parts_kernel (const LsPartsMemo *memo, uint32_t kernel)
{
  return &g_array_index (memo->kernels, LsKernel, kernel);
}

static LsTime
time_of (const LsPartsMemo *memo, const LsPartPass *pass, const LsLowerCosts *costs)
{
  LsTime sum = 0;
  for (uint32_t i = 0; i < pass->n_ops; i++)
    sum += part_op_time (costs, &pass->ops[i], (const LsKernel *) (gpointer) memo->kernels->data);
  return MAX (sum, 1);
}

LsPartTimes
ls_part_times (const LsPartsMemo *memo, const LsModelParts *parts, const LsLowerCosts *costs)
{
  LsTime time[LS_N_MODEL_PARTS] = { 0 };
  for (uint32_t i = 0; i < parts->n; i++)
    time[i] = time_of (memo, &parts->part[i].pass[LS_PARTS_FORWARD], costs)
        + time_of (memo, &parts->part[i].pass[LS_PARTS_BACKWARD], costs);
  LsPartTimes times = { .embedding = time[LS_MODEL_EMBEDDING], .head = time[LS_MODEL_HEAD] };
  memcpy (times.layer, &time[LS_MODEL_LAYER], sizeof times.layer);
  return times;
}
