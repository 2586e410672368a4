/* lower/lower_step.c — how a step begins and ends on one rank.
 *
 * Begin: the gradients that this rank keeps are zeroed.
 *
 * End: data-parallel reduction finishes (lower_dp.h), then that between the ranks
 * which hold the same stages, where pipes run both ways; with SP the
 * gradients of replicated parameters are all-reduced over tp; tied embeddings;
 * found-inf (fp16) and the gradient norm, whose values the host reads (.item ()),
 * a barrier over the stages; optimizer; parameters gathered. */
#include "lower/data/lower_dp.h"

#include "base/order.h"
#include "lower/layers/lower_layers.h"
#include "lower/lower_build.h"
#include "strategy/shard.h"

/* The step of an optimizer that is not Adam (model/optimizer_kind.h) on one rank.
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

/* All parameters of a rank that learn and are, or are not, of experts, in model order. */
static void
add_tensors (const Lower *l, uint32_t pp_rank, bool is_expert, GArray *tensors)
{
  for (uint32_t c = 0; c < l->n_chunks; c++) {
    const Chunk *chunk = chunk_at (l, pp_rank, c);
    for (guint o = 0; o < chunk->operators->len; o++)
      if (operator_at (chunk, o)->params.is_expert == is_expert && !operator_at (chunk, o)->params.is_frozen)
        ls_operator_tensors (operator_at (chunk, o), !ls_dp_traits (l->s->dp_kind)->is_megatron, tensors);
  }
}

/* The same in tiles where the optimizer cuts them. */
static GArray *
tensors_of (const Lower *l, uint32_t pp_rank, bool is_expert)
{
  g_autoptr (GArray) tensors = g_array_new (FALSE, FALSE, sizeof (LsTensor));
  g_autoptr (GArray) tiles = g_array_new (FALSE, FALSE, sizeof (LsTensor));
  GArray *owned = g_array_new (FALSE, FALSE, sizeof (Owned));
  add_tensors (l, pp_rank, is_expert, tensors);
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
  static const LsSortKey by_size[] = { { LS_RISING (Owned, n) }, { 0 } };
  g_autofree Load *loads = g_new0 (Load, n_ranks);
  uint32_t best = 0;
  ls_sort_by (all, by_size); /* stable */
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
  uint32_t n_ranks = dp_n_parts (l, is_expert, DP_CUT_OPTIMIZER);
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
    build_coll_joined (b, x->stream, x->slot, LS_COLL_ALL_REDUCE,
                       kernel.m * kernel.n * ls_dtype_bytes (kernel.dtype), kernel.dtype, LS_TAG_SYNC,
                       "optimizer product all-reduce");
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
          build_coll_joined (b, x.stream, x.slot, LS_COLL_ALL_GATHER, ls_tensor_numel (&x.t) * FP32_BYTES,
                             LS_DTYPE_FP32, LS_TAG_SYNC, "momentum all-gather");
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
  uint64_t n = 0;
  if (dp_n_parts (l, is_expert, DP_CUT_OPTIMIZER) == 1 || l->s->opt.cut == LS_OPTIMIZER_CUT_TENSORS)
    return;
  g_autoptr (GArray) all = tensors_of (l, pp_rank, is_expert);
  for (guint i = 0; i < all->len; i++)
    n += ls_optimizer_flops (owned_at (all, i)->part, &owned_at (all, i)->t) > 0 ? owned_at (all, i)->n : 0;
  if (n > 0)
    build_coll_joined (b, LS_STREAM_DP, dp_shard (l, is_expert).slot, LS_COLL_ALL_GATHER, n * GATHERED_BYTES,
                       LS_DTYPE_BF16, LS_TAG_SYNC, "momentum all-gather");
}

/* The step, behind norm and clipping. */
static void
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
  return build_behind (b, LS_STREAM_COMPUTE, op);
}

static void
sum_over (Build *b, LsStream stream, LsSlot slot)
{
  build_coll_joined (b, stream, slot, LS_COLL_ALL_REDUCE, STATE_BYTES, LS_DTYPE_FP32, LS_TAG_SYNC,
                     "stage norm all-reduce");
}

/* The optimizer waits for the norm of this stage and those before it only. */
static void
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

/* At the begin of a step: the whole norm, from the last stage to the first; computing does not
 * wait for it. Nothing to do without post-validation. */
static void
send_norm_back (Build *b, uint32_t pp_rank)
{
  const Lower *l = b->l;
  if (!l->s->opt.post_validation || l->mesh.pp == 1)
    return;
  guint n_joins = b->next_deps->len;
  if (pp_rank + 1 < l->mesh.pp) {
    LsDep received
        = { LS_DEP_END, build_transfer (b, LS_STREAM_PP_BWD_RECV, LS_SLOT_NEXT, false, "recv norm") };
    build_event (b, LS_OP_RECORD, LS_STREAM_PP_BWD_RECV, "norm is known", EVENT_NORM, &received);
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
  build_event (&b, LS_OP_WAIT, LS_STREAM_COMPUTE, "wait for the norm", EVENT_NORM, NULL);
  return build_finish (&b, name);
}

/* Of which the parameters of its chunks are. */
static uint64_t
n_tensors (const Lower *l, uint32_t pp_rank)
{
  uint64_t n = 0;
  for (uint32_t c = 0; c < l->n_chunks; c++) {
    const Chunk *chunk = chunk_at (l, pp_rank, c);
    for (guint i = 0; i < chunk->operators->len; i++)
      n += operator_at (chunk, i)->params.is_frozen ? 0 : operator_at (chunk, i)->params.n;
  }
  return n;
}

uint32_t
segment_step_begin (Lower *l, uint32_t pp_rank)
{
  Build b;
  build_init (&b, l);
  uint64_t n = dp_n_kept (l, pp_rank, DP_CUT_GRADS);
  LsKernel zero = ls_kernel_stream ("zero gradients", LS_KERNEL_MEMSET, l->shard.grad_dtype, 1, n,
                                    (double) dp_grad_bytes (l, n), 0);
  if (!ls_strategy_steps_on_weights (l->s)) /* torch sets them to None */
    build_kernel (&b, &zero, LS_TAG_OPTIMIZER);
  if (l->backend->step_begin)
    l->backend->step_begin (&b, pp_rank);
  send_norm_back (&b, pp_rank);
  g_autofree char *name = g_strdup_printf ("begin stage %u", pp_rank);
  return build_finish (&b, name);
}

/* --- end ----------------------------------------------------------------------- */

static void
reduce_replicated (Build *b, uint32_t pp_rank)
{
  Lower *l = b->l;
  uint64_t numel = 0;
  for (uint32_t c = 0; c < l->n_chunks; c++)
    numel += chunk_at (l, pp_rank, c)->n_partial;
  if (l->shard.sp && numel > 0)
    build_coll_joined (b, LS_STREAM_TP, LS_SLOT_TP, LS_COLL_ALL_REDUCE, dp_grad_bytes (l, numel),
                       l->shard.grad_dtype, LS_TAG_SYNC, "layer-norm grad all-reduce");
}

static void
reduce_tied_embedding (Build *b, uint32_t pp_rank)
{
  Lower *l = b->l;
  bool is_end = pp_rank == 0 || pp_rank == last_rank (l) || (l->mesh.split > 0 && pp_rank == l->mesh.split);
  if (!is_tied_over_ranks (l) || !is_end || l->shard.lora.rank > 0)
    return;
  uint64_t words = ls_model_padded_vocab (l->model, l->shard.vocab_multiple, l->mesh.tp) / l->mesh.tp,
           numel = words * l->model->hidden;
  build_coll_joined (b, LS_STREAM_GLOBAL, LS_SLOT_EMBEDDING, LS_COLL_ALL_REDUCE, dp_grad_bytes (l, numel),
                     l->shard.grad_dtype, LS_TAG_SYNC, "embedding grad all-reduce");
}

/* The communicator over which all parameters of the model are spread. */
static bool
norm_slot (const Lower *l, LsSlot *ret_slot)
{
  bool is_sharded = (l->s->zero_stage > 0 && dp_all (l, false).n > 1) || l->mesh.ep > 1;
  *ret_slot = is_sharded ? LS_SLOT_WORLD : LS_SLOT_MODEL;
  return l->mesh.tp * l->mesh.pp > 1 || is_sharded;
}

/* Weights of products in this scaled format, but those that their layers cast. */
static uint64_t
n_scaled (const Lower *l, uint32_t pp_rank, LsDtype dtype, DpCut cut)
{
  bool is_nvfp4 = dtype == LS_DTYPE_NVFP4;
  uint64_t n = 0;
  for (uint32_t c = 0; c < l->n_chunks && !l->shard.fp8.linear; c++)
    for (int is_expert = 0; is_expert < 2; is_expert++)
      n += dp_part (chunk_at (l, pp_rank, c)->n_scaled[is_expert][is_nvfp4], dp_n_parts (l, is_expert, cut));
  return n;
}

static const LsDtype scaled_dtypes[] = { LS_DTYPE_FP8, LS_DTYPE_NVFP4 };

/* Frozen weights in 16 bits, which Transformer Engine casts at the first micro-batch of a step all the same;
 * those in fp8 alone are as they are. */
static uint64_t
n_frozen_cast (const Lower *l, uint32_t pp_rank)
{
  uint64_t n = 0;
  for (uint32_t c = 0; c < l->n_chunks && !l->shard.lora.is_fp8; c++)
    n += chunk_at (l, pp_rank, c)->n_frozen_scaled;
  return n;
}

/* Elements that the rank's optimizer steps on. */
static uint64_t
n_stepped (const Lower *l, uint32_t pp_rank)
{
  bool is_dealt = l->s->opt.kind && l->s->opt.cut == LS_OPTIMIZER_CUT_TENSORS;
  return is_dealt ? n_dealt (l, pp_rank) : dp_n_kept (l, pp_rank, DP_CUT_OPTIMIZER);
}

static GArray *
optimizer_kernels (const Lower *l, uint32_t pp_rank, LsStepped *ret_stepped)
{
  uint64_t n = n_stepped (l, pp_rank);
  GArray *kernels = g_array_new (FALSE, FALSE, sizeof (LsKernel));
  LsStepped stepped = ls_strategy_optimizer_kernels (l->s, n, kernels);
  stepped.n_tensors = l->backend->n_tensors ? l->backend->n_tensors (l, pp_rank) : n_tensors (l, pp_rank);
  for (guint i = 0; i < G_N_ELEMENTS (scaled_dtypes) && !l->backend->steps_on_shards; i++) {
    LsDtype dtype = scaled_dtypes[i];
    ls_weight_cast_kernels (
        n_scaled (l, pp_rank, dtype, dp_gathers_fp8 (l) ? DP_CUT_OPTIMIZER : DP_CUT_PARAMS)
            + (dtype == l->shard.dtype ? n_frozen_cast (l, pp_rank) : 0),
        dtype, kernels);
  }
  ls_optimizer_as_launched (l->shard.recipes, l->model, stepped, kernels);
  *ret_stepped = stepped;
  return kernels;
}

/* DeepSpeed steps on so many elements of a rank's part at a time (zero/config.py: sub_group_size of stage 3).
 */
#define SUB_GROUP UINT64_C (1000000000)

/* What the step holds besides the states, and gradients that are there all along. DeepSpeed's is on an fp32
 * copy of those in 16 bits, which are laid flat first, and gone behind it, with those of other ranks' parts
 * (zero/stage_1_and_2.py, step; stage3.py, _prepare_fp32_grad_for_sub_group). */
static uint64_t
step_bytes (const Lower *l, uint32_t pp_rank, LsStepped stepped)
{
  bool copies = l->backend->copies_gradients && l->s->zero_stage > 0
      && ls_dtype_bytes (l->shard.grad_dtype) < 4 && l->s->memory.offload == LS_OFFLOAD_NONE;
  if (copies && l->s->zero_stage == 3)
    stepped.n_params = MIN (stepped.n_params, SUB_GROUP);
  uint64_t held = ls_optimizer_held_bytes (l->shard.recipes, l->model, stepped),
           own = dp_grad_bytes (l, stepped.n_params),
           all = dp_grad_bytes (l, dp_n_kept (l, pp_rank, DP_CUT_GRADS));
  if (!copies)
    return held;
  uint64_t most = 4 * stepped.n_params + MAX (own, held > own ? held - own : 0),
           gone = l->s->zero_stage == 1 && all > own ? all - own : 0;
  return most > gone ? most - gone : 0;
}

static void
hold_step (Build *b, uint64_t bytes, uint16_t first)
{
  build_buffer (b, first, UINT16_MAX, LS_MEM_WORKSPACE, bytes, false);
  build_buffer (b, (uint16_t) (b->ops->len - 1), UINT16_MAX, LS_MEM_WORKSPACE, bytes, true);
}

/* fp32 copies of narrower states live from the first cast to the last. */
static void
hold_scratch (Build *b, uint32_t pp_rank, uint16_t first, bool is_free)
{
  const LsAdamStates states = ls_strategy_adam (b->l->s);
  build_buffer (b, first, UINT16_MAX, LS_MEM_WORKSPACE,
                n_stepped (b->l, pp_rank) * ls_adam_scratch_bytes (&states), is_free);
}

/* Of an optimizer that goes through its tensors in Python, and of what clips their gradients. */
static void
call_step (Build *b, uint32_t pp_rank)
{
  const Lower *l = b->l;
  g_autoptr (GArray) tensors = g_array_new (FALSE, FALSE, sizeof (LsTensor));
  for (int is_expert = 0; l->s->launch.step_calls > 0 && is_expert < 2; is_expert++)
    add_tensors (l, pp_rank, is_expert, tensors);
  if (tensors->len > 0)
    build_host_calls (b, LS_TAG_OPTIMIZER, LS_HOST_PYTHON, (uint64_t) tensors->len * l->s->launch.step_calls,
                      "step of the optimizer");
}

static void
optimizer (Build *b, uint32_t pp_rank)
{
  Lower *l = b->l;
  LsStepped stepped;
  g_autoptr (GArray) kernels = optimizer_kernels (l, pp_rank, &stepped);
  uint16_t last_cast = NO_OP, first_step = NO_OP;
  bool held = false;
  LsSlot slot;
  bool is_spread = norm_slot (l, &slot), is_offloaded = l->s->memory.offload != LS_OFFLOAD_NONE;
  for (guint i = 0; i < kernels->len; i++) {
    const LsKernel *k = &g_array_index (kernels, LsKernel, i);
    bool is_norm = k->kind == LS_KERNEL_REDUCTION;
    bool finds_inf = k->role == LS_ROLE_UNSCALE;
    if ((is_norm && !l->s->opt.grad_norm) || (is_offloaded && !is_norm))
      continue;
    if (l->s->opt.kind && k->role == LS_ROLE_STEP) {
      build_optimizer_step (b, pp_rank);
      continue;
    }
    bool casts = k->role == LS_ROLE_CAST_STATE;
    uint16_t op = build_kernel (b, k, LS_TAG_OPTIMIZER);
    first_step = first_step == NO_OP && !is_norm && !finds_inf ? op : first_step;
    if (casts && !held)
      hold_scratch (b, pp_rank, op, false);
    last_cast = casts ? op : last_cast;
    held |= casts;
    if (!is_norm && !finds_inf)
      continue;
    if (l->s->opt.post_validation) {
      if (is_norm)
        pass_norm_on (b, pp_rank);
      continue;
    }
    if (is_spread && l->s->opt.grad_norm)
      build_coll_joined (b, LS_STREAM_GLOBAL, slot, LS_COLL_ALL_REDUCE, 4, LS_DTYPE_FP32, LS_TAG_SYNC,
                         is_norm ? "grad-norm all-reduce" : "found-inf all-reduce");
    if (!finds_inf && ls_strategy_steps_on_weights (l->s))
      continue;
    if (b->next_deps->len > 0)
      build_barrier (b);
    build_device_sync (b); /* the host reads it */
  }
  if (held)
    hold_scratch (b, pp_rank, last_cast, true);
  else if (first_step != NO_OP)
    hold_step (b, step_bytes (l, pp_rank, stepped), first_step);
  if (is_offloaded)
    offload_optimizer (b, pp_rank);
}

uint32_t
segment_step_end (Lower *l, uint32_t pp_rank)
{
  Build b;
  build_init (&b, l);
  b.is_end = true;
  if (l->backend->reduce_rest)
    l->backend->reduce_rest (&b, pp_rank);
  reduce_pipes (&b, pp_rank);
  reduce_replicated (&b, pp_rank);
  reduce_tied_embedding (&b, pp_rank);
  call_step (&b, pp_rank);
  optimizer (&b, pp_rank);
  forget_gradients (&b, pp_rank);
  if (l->backend->step_end)
    l->backend->step_end (&b, pp_rank);
  g_autofree char *name = g_strdup_printf ("end stage %u", pp_rank);
  return build_finish (&b, name);
}

/* Nothing but the last stage has a loss; others make one of a number on the host, which they wait for
 * (torchtitan/trainer.py, pp_forward_backward_step; nemo_automodel/recipes/llm/train_ft.py). */
uint32_t
segment_flush (Lower *l, uint32_t pp_rank, bool is_first)
{
  Build b;
  build_init (&b, l);
  if (l->backend->reduce_flush && l->s->data.grad_sync == LS_GRAD_SYNC_FLUSH)
    l->backend->reduce_flush (&b, pp_rank, is_first);
  if (pp_rank != last_rank (l))
    build_compute_sync (&b, "stand-in of a loss");
  g_autofree char *name = g_strdup_printf ("%s stage %u", is_first ? "flush" : "flush again", pp_rank);
  return build_finish (&b, name);
}

uint32_t
segment_by (Lower *l, bool hook (Build *b, uint32_t pp_rank, uint32_t chunk), const char *what,
            uint32_t pp_rank, uint32_t chunk)
{
  Build b;
  build_init (&b, l);
  if (!hook || !hook (&b, pp_rank, chunk)) {
    build_clear (&b);
    return UINT32_MAX;
  }
  g_autofree char *name = g_strdup_printf ("%s stage %u chunk %u", what, pp_rank, chunk);
  return build_finish (&b, name);
}

/* Weights of fp8 or nvfp4 products are there in both layouts, beside 16 bits or instead of them. */
static uint64_t
weight_bytes (const Lower *l, uint32_t pp_rank)
{
  uint64_t bytes = dp_n_kept (l, pp_rank, DP_CUT_PARAMS) * ls_dtype_bytes (ls_strategy_weights (l->s));
  for (guint i = 0; i < G_N_ELEMENTS (scaled_dtypes) && !l->s->fp8.params; i++)
    bytes += ls_dtype_array_bytes (scaled_dtypes[i],
                                   2 * n_scaled (l, pp_rank, scaled_dtypes[i], DP_CUT_PARAMS));
  return bytes;
}

/* Of weights that do not learn, cut as all parameters are: they need no more than what is computed with. */
static uint64_t
frozen_bytes (const Lower *l, uint32_t pp_rank)
{
  uint64_t bytes = 0;
  for (uint32_t c = 0; c < l->n_chunks; c++) {
    const Chunk *chunk = chunk_at (l, pp_rank, c);
    for (int is_expert = 0; is_expert < 2; is_expert++)
      bytes += dp_part (dp_frozen_bytes (l, chunk->n_frozen[is_expert], is_expert ? 0 : chunk->n_nf4,
                                         is_expert ? 0 : chunk->n_frozen_scaled),
                        dp_n_parts (l, is_expert, DP_CUT_PARAMS));
  }
  return bytes;
}

/* One weight at a time is written in 16 bits: the largest. */
static uint64_t
dequantised_bytes (const Lower *l, uint32_t pp_rank)
{
  uint64_t most = 0;
  for (uint32_t c = 0; c < l->n_chunks; c++) {
    const Chunk *chunk = chunk_at (l, pp_rank, c);
    for (guint i = 0; i < chunk->operators->len; i++) {
      const LsOperator *o = operator_at (chunk, i);
      most = o->params.is_nf4 ? MAX (most, o->params.numel[0]) : most;
    }
  }
  return dp_param_bytes (l, most);
}

static uint64_t
states (const uint64_t bytes[LS_N_MEM])
{
  return bytes[LS_MEM_PARAMETERS] + bytes[LS_MEM_GRADIENTS] + bytes[LS_MEM_OPTIMIZER];
}

/* Master weights, momentum and variance, as wide as they are; fp32 training has no extra master. */
static uint64_t
optimizer_bytes (const Lower *l, uint32_t pp_rank)
{
  const LsAdamStates states = ls_strategy_adam (l->s);
  if (!l->s->opt.kind)
    return dp_n_kept (l, pp_rank, DP_CUT_OPTIMIZER) * ls_adam_bytes (&states, l->shard.dtype);
  bool has_master = l->shard.dtype != LS_DTYPE_FP32 && !l->shard.grad.is_own;
  return optimizer_state_bytes (l, pp_rank, has_master ? 4 : 0);
}

void
step_static_memory (const Lower *l, uint32_t pp_rank, LsProgram *p)
{
  uint64_t *bytes = p->static_bytes;
  bytes[LS_MEM_PARAMETERS] = weight_bytes (l, pp_rank);
  bytes[LS_MEM_GRADIENTS]
      = grads_come_and_go (l) ? 0 : dp_grad_bytes (l, dp_n_kept (l, pp_rank, DP_CUT_GRADS));
  bytes[LS_MEM_OPTIMIZER] = optimizer_bytes (l, pp_rank);
  bytes[LS_MEM_WORKSPACE] = placeholder_bytes (l, pp_rank) + dequantised_bytes (l, pp_rank);
  uint64_t all = states (bytes);
  if (l->backend->static_memory)
    l->backend->static_memory (l, pp_rank, bytes);
  bytes[LS_MEM_PARAMETERS] += frozen_bytes (l, pp_rank);
  if (l->s->memory.offload != LS_OFFLOAD_NONE)
    *(l->s->memory.offload_to == LS_OFFLOAD_TO_NVME ? &p->nvme_bytes : &p->host_bytes) = all - states (bytes);
  p->host_bytes += activations_in_host (l, p);
}
