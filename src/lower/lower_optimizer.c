/* lower/lower_optimizer.c — the step of an optimizer that is not Adam (model/optimizer_kind.h) on one rank.
 *
 * Which tensors a rank steps on. Without a shared optimizer, or where it is cut by elements and no part of it
 * multiplies matrices, all of its parameters or an equal part of them. Where it does:
 *
 *   elements   Each rank has an equal piece of all parameters, one behind the other. The momentum of all
 *              matrices is gathered in bf16 over the ranks that share them; a rank multiplies those matrices
 *              of which it has a piece (Liu et al. 2025, Muon is scalable for LLM training, algorithm 1:
 *              Distributed Muon. Its gather is at most 2 bytes an element, beside the 4 + 4 of gradients and
 *              parameters in fp32: 1.25 times what AdamW moves).
 *   tensors    Each rank has whole tensors: sorted by size, dealt out from rank 0 to the last and back.
 *              Gradients are all-reduced, parameters all-gathered behind the step (Megatron-Core,
 *              core/optimizer/layer_wise_optimizer.py: LayerWiseDistributedOptimizer; --optimizer dist_muon).
 *              Every rank is taken for the one that has most to do, for which the others wait in the gather;
 *              of memory, for the fullest.
 *
 * Matrices that tensor parallelism cuts (Emerging-Optimizers, orthogonalized_optimizers/muon_utils.py,
 * newton_schulz_tp; Megatron-LM's --muon-tp-mode):
 *
 *   blockwise     a rank multiplies its part as if it were the matrix
 *   duplicated    parts are all-gathered in fp32, and each rank multiplies the whole
 *   distributed   X is turned so that its longer side is the one that is cut, and A = X X^T is
 *                 all-reduced each time
 *
 * A kernel that runs only every so many steps runs in each step for as small a share of the work.
 *
 * Deviations. What is gathered, and what the products write, is not in the memory of the step: activations
 * are gone by then. */
#include "lower/data/lower_deepspeed.h"

#include "lower/data/lower_dp.h"
#include "lower/lower_step.h"
#include "strategy/shard.h"

#define GATHERED_BYTES 2 /* of an element of momentum, bf16 */
#define FP32_BYTES     4

/* A tensor, and of its elements those that this rank steps on. */
typedef struct {
  LsTensor t;
  const LsOptimizerPart *part;
  uint64_t n;
} Owned;

static Owned *
owned_at (const GArray *owned, guint i)
{
  return &g_array_index (owned, Owned, i);
}

static bool
gate_is_apart (const Lower *l)
{
  return !ls_dp_traits (l->s->dp_kind)->is_megatron;
}

/* All parameters of a rank that learn and are, or are not, of experts, in model order; in tiles where the
 * optimizer cuts them. */
static GArray *
tensors_of (const Lower *l, uint32_t pp_rank, bool is_expert)
{
  g_autoptr (GArray) tensors = g_array_new (FALSE, FALSE, sizeof (LsTensor));
  g_autoptr (GArray) tiles = g_array_new (FALSE, FALSE, sizeof (LsTensor));
  GArray *owned = g_array_new (FALSE, FALSE, sizeof (Owned));
  for (uint32_t c = 0; c < l->n_chunks; c++) {
    const Chunk *chunk = chunk_at (l, pp_rank, c);
    for (guint o = 0; o < chunk->operators->len; o++)
      if (operator_at (chunk, o)->params.is_expert == is_expert && !operator_at (chunk, o)->params.is_frozen)
        ls_operator_tensors (operator_at (chunk, o), gate_is_apart (l), tensors);
  }
  for (guint i = 0; i < tensors->len; i++) {
    const LsTensor *t = &g_array_index (tensors, LsTensor, i);
    const LsOptimizerPart *part = ls_optimizer_part (l->s->opt.kind, t);
    g_array_set_size (tiles, 0);
    ls_optimizer_tiles (part, t, tiles);
    for (guint j = 0; j < tiles->len; j++) {
      const LsTensor *tile = &g_array_index (tiles, LsTensor, j);
      const Owned all = { *tile, part, ls_tensor_numel (tile) };
      g_array_append_val (owned, all);
    }
  }
  return owned;
}

/* --- a share of them -------------------------------------------------------------------- */

/* What ranks are told apart by: what they multiply; then what they keep. */
typedef struct {
  double flops, bytes;
} Load;

static void
add_load (Load *load, const Owned *o)
{
  if (o->n == 0)
    return;
  load->flops += ls_optimizer_flops (o->part, &o->t);
  load->bytes += (double) ls_optimizer_state_bytes (o->part, &o->t, o->n) + FP32_BYTES * (double) o->n;
}

/* Which rank is looked for. */
typedef enum { BUSIEST, FULLEST } Rank;

static bool
is_more (Load a, Load b, Rank which)
{
  bool is_busier = a.flops > b.flops || (a.flops == b.flops && a.bytes > b.bytes);
  return which == BUSIEST ? is_busier : a.bytes > b.bytes;
}

static uint64_t
n_elements (const GArray *owned)
{
  uint64_t n = 0;
  for (guint i = 0; i < owned->len; i++)
    n += owned_at (owned, i)->n;
  return n;
}

/* What of the i-th tensor a rank has, where all are cut in pieces of n elements. */
static GArray *
piece_of (const GArray *all, uint64_t n, uint64_t rank)
{
  GArray *piece = g_array_new (FALSE, FALSE, sizeof (Owned));
  uint64_t from = rank * n, at = 0;
  for (guint i = 0; i < all->len; i++) {
    Owned o = *owned_at (all, i);
    uint64_t first = MAX (at, from), end = MIN (at + o.n, from + n);
    at += o.n;
    o.n = end > first ? end - first : 0;
    if (o.n > 0)
      g_array_append_val (piece, o);
  }
  return piece;
}

/* The first of several. */
static uint64_t
rank_of_pieces (const GArray *all, uint64_t n, uint32_t n_ranks, Rank which)
{
  g_autofree Load *loads = g_new0 (Load, n_ranks);
  uint64_t at = 0, best = 0;
  for (guint i = 0; i < all->len; i++) {
    const Owned *o = owned_at (all, i);
    for (uint64_t r = at / n; r < n_ranks && r * n < at + o->n; r++) {
      Owned part = *o;
      part.n = MIN (at + o->n, (r + 1) * n) - MAX (at, r * n);
      add_load (&loads[r], &part);
    }
    at += o->n;
  }
  for (uint64_t r = 1; r < n_ranks; r++)
    best = is_more (loads[r], loads[best], which) ? r : best;
  return best;
}

static GArray *
cut_elements (GArray *all, uint32_t n_ranks, Rank which)
{
  uint64_t n = MAX (1, dp_part (n_elements (all), n_ranks));
  GArray *piece = piece_of (all, n, rank_of_pieces (all, n, n_ranks, which));
  g_array_unref (all);
  return piece;
}

static gint
by_size (gconstpointer a, gconstpointer b)
{
  uint64_t x = ((const Owned *) a)->n, y = ((const Owned *) b)->n;
  return x < y ? -1 : x > y;
}

/* Of the i-th tensor in order of size, where they are dealt out and back. */
static uint32_t
dealt_to (guint i, uint32_t n_ranks)
{
  guint round = i / n_ranks, place = i % n_ranks;
  return round % 2 == 0 ? place : n_ranks - 1 - place;
}

static GArray *
deal_tensors (GArray *all, uint32_t n_ranks, Rank which)
{
  g_autofree Load *loads = g_new0 (Load, n_ranks);
  uint32_t best = 0;
  g_array_sort (all, by_size); /* stable, as g_array_sort() is a merge sort */
  for (guint i = 0; i < all->len; i++)
    add_load (&loads[dealt_to (i, n_ranks)], owned_at (all, i));
  for (uint32_t r = 1; r < n_ranks; r++)
    best = is_more (loads[r], loads[best], which) ? r : best;
  GArray *own = g_array_new (FALSE, FALSE, sizeof (Owned));
  for (guint i = 0; i < all->len; i++)
    if (dealt_to (i, n_ranks) == best)
      g_array_append_vals (own, owned_at (all, i), 1);
  g_array_unref (all);
  return own;
}

static GArray *
owned_tensors (const Lower *l, uint32_t pp_rank, bool is_expert, Rank which)
{
  uint32_t params, grads, n_ranks;
  l->backend->cuts (l, is_expert, &params, &grads, &n_ranks);
  GArray *all = tensors_of (l, pp_rank, is_expert);
  if (n_ranks == 1)
    return all;
  return l->s->opt.cut == LS_OPTIMIZER_CUT_TENSORS ? deal_tensors (all, n_ranks, which)
                                                   : cut_elements (all, n_ranks, which);
}

uint64_t
optimizer_state_bytes (const Lower *l, uint32_t pp_rank, uint32_t master_bytes)
{
  uint64_t bytes = 0;
  for (int is_expert = 0; is_expert < 2; is_expert++) {
    g_autoptr (GArray) owned = owned_tensors (l, pp_rank, is_expert, FULLEST);
    for (guint i = 0; i < owned->len; i++) {
      const Owned *o = owned_at (owned, i);
      bytes += ls_optimizer_state_bytes (o->part, &o->t, o->n) + master_bytes * o->n;
    }
  }
  return bytes;
}

uint64_t
n_dealt (const Lower *l, uint32_t pp_rank)
{
  uint64_t n = 0;
  for (int is_expert = 0; is_expert < 2; is_expert++) {
    g_autoptr (GArray) owned = owned_tensors (l, pp_rank, is_expert, BUSIEST);
    n += n_elements (owned);
  }
  return n;
}

/* --- its kernels ---------------------------------------------------------------------------- */

/* The matrix that is multiplied for a tensor, and over which ranks it is cut while it is. */
typedef struct {
  LsTensor t;
  LsTensorCut held; /* LS_TENSOR_WHOLE: nobody else has a part */
  uint32_t tp;
  LsSlot slot;
  LsStream stream;
} Multiplied;

static Multiplied
multiplied (const Lower *l, const LsTensor *t)
{
  bool is_tp = !t->is_expert || l->mesh.etp == l->mesh.tp;
  Multiplied x = { .t = *t,
                   .tp = t->is_expert ? l->mesh.etp : l->mesh.tp,
                   .slot = is_tp ? LS_SLOT_TP : LS_SLOT_ETP,
                   .stream = is_tp ? LS_STREAM_TP : LS_STREAM_EP };
  if (t->cut == LS_TENSOR_WHOLE || x.tp == 1 || l->s->opt.tp == LS_OPTIMIZER_TP_BLOCKWISE)
    x.tp = 1;
  else if (l->s->opt.tp == LS_OPTIMIZER_TP_DISTRIBUTED)
    x.held = t->cut;
  else if (t->cut == LS_TENSOR_ROWS)
    x.t.rows *= x.tp;
  else
    x.t.columns *= x.tp;
  return x;
}

static void
launch_stream (Build *b, const LsOptimizerKernel *k, const LsTensor *t, uint64_t n)
{
  LsKernel kernel = ls_optimizer_stream (k, t, n);
  build_kernel (b, &kernel, LS_TAG_OPTIMIZER);
}

static void
launch_product (Build *b, const LsOptimizerKernel *k, const Multiplied *x)
{
  LsKernel kernel = ls_optimizer_product (k, &x->t, x->held);
  build_kernel (b, &kernel, LS_TAG_OPTIMIZER);
  if (k->sums && x->held != LS_TENSOR_WHOLE)
    build_join (b,
                build_coll (b, x->stream, x->slot, LS_COLL_ALL_REDUCE,
                            kernel.m * kernel.n * ls_dtype_bytes (kernel.dtype), kernel.dtype, LS_TAG_SYNC,
                            "optimizer product all-reduce"));
}

/* Of the tensors of a part, which run which kernel. */
typedef struct {
  GPtrArray *owned; /* Owned, borrowed */
  bool *runs;       /* kernel by kernel */
} PartStep;

/* Kernels in order; those that follow each other and run as often, in turns. */
static void
step_on_tensor (Build *b, const PartStep *p, guint i)
{
  const Owned *o = p->owned->pdata[i];
  const Multiplied x = multiplied (b->l, &o->t);
  const GArray *kernels = o->part->kernels;
  bool gathers = x.held == LS_TENSOR_WHOLE && x.tp > 1;
  for (guint from = 0, end; from < kernels->len; from = end) {
    const LsOptimizerKernel *first = &g_array_index (kernels, LsOptimizerKernel, from);
    for (end = from + 1; end < kernels->len; end++)
      if (g_array_index (kernels, LsOptimizerKernel, end).times != first->times)
        break;
    for (uint32_t turn = 0; turn < first->times; turn++)
      for (guint j = from; j < end; j++) {
        const LsOptimizerKernel *k = &g_array_index (kernels, LsOptimizerKernel, j);
        if (!p->runs[j * p->owned->len + i])
          continue;
        if (gathers && (k->whole || k->bytes == 0)) {
          build_join (b,
                      build_coll (b, x.stream, x.slot, LS_COLL_ALL_GATHER,
                                  ls_tensor_numel (&x.t) * FP32_BYTES, LS_DTYPE_FP32, LS_TAG_SYNC,
                                  "momentum all-gather"));
          gathers = false;
        }
        if (k->bytes == 0)
          launch_product (b, k, &x);
        else
          launch_stream (b, k, &x.t, k->whole ? ls_tensor_numel (&x.t) : o->n);
      }
  }
}

static void
step_on_each (Build *b, const LsOptimizerPart *part, GPtrArray *owned)
{
  g_autofree bool *runs = g_new (bool, part->kernels->len * owned->len);
  g_autofree const LsTensor **tensors = g_new (const LsTensor *, owned->len);
  for (guint i = 0; i < owned->len; i++)
    tensors[i] = &((const Owned *) owned->pdata[i])->t;
  for (guint j = 0; j < part->kernels->len; j++)
    ls_optimizer_runs (part, &g_array_index (part->kernels, LsOptimizerKernel, j), tensors, owned->len,
                       runs + j * owned->len);
  const PartStep step = { owned, runs };
  for (guint i = 0; i < owned->len; i++)
    step_on_tensor (b, &step, i);
}

static void
step_on_part (Build *b, const LsOptimizerPart *part, const GArray *all)
{
  uint64_t n = 0;
  g_autoptr (GPtrArray) owned = g_ptr_array_new ();
  for (guint i = 0; i < all->len; i++)
    if (owned_at (all, i)->part == part) {
      g_ptr_array_add (owned, owned_at (all, i));
      n += owned_at (all, i)->n;
    }
  if (part->by_tensor && owned->len > 0)
    step_on_each (b, part, owned);
  for (guint i = 0; !part->by_tensor && n > 0 && i < part->kernels->len; i++)
    launch_stream (b, &g_array_index (part->kernels, LsOptimizerKernel, i), NULL, n);
}

/* Of all matrices that this optimizer multiplies, which are cut by elements. */
static void
gather_momentum (Build *b, uint32_t pp_rank, bool is_expert)
{
  const Lower *l = b->l;
  uint32_t params, grads, n_ranks;
  uint64_t n = 0;
  l->backend->cuts (l, is_expert, &params, &grads, &n_ranks);
  if (n_ranks == 1 || l->s->opt.cut == LS_OPTIMIZER_CUT_TENSORS)
    return;
  g_autoptr (GArray) all = tensors_of (l, pp_rank, is_expert);
  for (guint i = 0; i < all->len; i++)
    n += ls_optimizer_flops (owned_at (all, i)->part, &owned_at (all, i)->t) > 0 ? owned_at (all, i)->n : 0;
  if (n > 0)
    build_join (b,
                build_coll (b, LS_STREAM_DP, dp_shard (l, is_expert).slot, LS_COLL_ALL_GATHER,
                            n * GATHERED_BYTES, LS_DTYPE_BF16, LS_TAG_SYNC, "momentum all-gather"));
}

void
build_optimizer_step (Build *b, uint32_t pp_rank)
{
  const LsOptimizerKind *kind = b->l->s->opt.kind;
  for (int is_expert = 0; is_expert < 2; is_expert++) {
    g_autoptr (GArray) owned = owned_tensors (b->l, pp_rank, is_expert, BUSIEST);
    gather_momentum (b, pp_rank, is_expert);
    for (guint p = 0; p < kind->parts->len; p++)
      step_on_part (b, &g_array_index (kind->parts, LsOptimizerPart, p), owned);
  }
}

/* ---- lower validation ---- */

/* The optimizer without a barrier: post-validation.
 *
 * The norm of the gradients and a found-inf concern all stages, but clipping and skipped updates
 * are rare. So nobody waits for all of it:
 *
 *     end of a step     a stage sums up its own part over its ranks, adds what the stages
 *                       before it have, passes the sum on, and updates by that
 *     begin of the next the last stage has the whole and sends it back, stage by stage;
 *                       each checks what it did, at the latest before its first backward
 *
 *     rank 0   .. B | norm >  update | F F ..  . < check  B ..
 *     rank 1     .. B | > norm >  update | F F . <check>  B ..
 *     rank 2       .. B | > norm  update | <  F .. B ..
 *
 * The messages are 4 bytes each way, in the order of all others on their channel. A rank's
 * first backward follows one of the last stage, which has sent its answer before, so the check
 * costs no waiting to speak of. The host reads nothing.
 *
 * Assumption: every check succeeds; an update is never rolled back and done again.
 *
 * Reference: Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 4. */

#define STATE_BYTES 4 /* one fp32 */

/* Waits for the compute stream, and for what the next op on it would wait for. */
static uint16_t
build_transfer (Build *b, LsStream stream, LsSlot slot, bool is_send, const char *name)
{
  LsTransfer *t = ls_arena_new_array (b->l->plan->arena, LsTransfer, 1);
  *t = (LsTransfer) { STATE_BYTES, (uint8_t) slot, is_send, (uint8_t) b->l->s->mp.pp_max_ctas };
  LsOp op = ls_op_blank (LS_OP_P2P, stream, LS_TAG_SYNC, name);
  op.host = LS_HOST_COMM;
  op.dtype = LS_DTYPE_FP32;
  op.transfers = t;
  op.n_transfers = 1;
  g_autoptr (GArray) deps = g_array_copy (b->next_deps);
  LsDep compute = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  g_array_append_val (deps, compute);
  return build_op (b, op, (const LsDep *) deps->data, (uint16_t) deps->len);
}

static void
sum_over (Build *b, LsStream stream, LsSlot slot)
{
  build_join (b,
              build_coll (b, stream, slot, LS_COLL_ALL_REDUCE, STATE_BYTES, LS_DTYPE_FP32, LS_TAG_SYNC,
                          "stage norm all-reduce"));
}

void
pass_norm_on (Build *b, uint32_t pp_rank)
{
  const Lower *l = b->l;
  if (l->mesh.tp > 1)
    sum_over (b, LS_STREAM_TP, LS_SLOT_TP);
  if ((l->s->zero_stage > 0 || l->mesh.ep > 1) && dp_all (l, false).n > 1)
    sum_over (b, LS_STREAM_DP, LS_SLOT_DP);
  if (pp_rank > 0)
    build_join (b, build_transfer (b, LS_STREAM_PP_FWD_RECV, LS_SLOT_PREV, false, "recv norm so far"));
  if (pp_rank + 1 < l->mesh.pp)
    build_transfer (b, LS_STREAM_PP_FWD, LS_SLOT_NEXT, true, "send norm so far");
}

void
send_norm_back (Build *b, uint32_t pp_rank)
{
  const Lower *l = b->l;
  if (!l->s->opt.post_validation || l->mesh.pp == 1)
    return;
  guint n_joins = b->next_deps->len;
  if (pp_rank + 1 < l->mesh.pp) {
    LsDep received
        = { LS_DEP_END, build_transfer (b, LS_STREAM_PP_BWD_RECV, LS_SLOT_NEXT, false, "recv norm") };
    LsOp record = ls_op_blank (LS_OP_RECORD, LS_STREAM_PP_BWD_RECV, LS_TAG_SYNC, "norm is known");
    record.event = EVENT_NORM;
    build_op (b, record, &received, 1);
    build_join (b, received.index);
  }
  if (pp_rank > 0)
    build_transfer (b, LS_STREAM_PP_BWD, LS_SLOT_PREV, true, "send norm");
  g_array_set_size (b->next_deps, n_joins); /* computing does not wait for it */
}

uint32_t
segment_check_norm (Lower *l, uint32_t pp_rank)
{
  static const char name[] = "check norm";
  if (!l->s->opt.post_validation || pp_rank + 1 >= l->mesh.pp)
    return UINT32_MAX;
  Build b;
  if (build_reuses (&b, l, name))
    return b.segment;
  LsOp wait = ls_op_blank (LS_OP_WAIT, LS_STREAM_COMPUTE, LS_TAG_SYNC, "wait for the norm");
  wait.event = EVENT_NORM;
  build_op (&b, wait, NULL, 0);
  return build_finish (&b, name);
}
