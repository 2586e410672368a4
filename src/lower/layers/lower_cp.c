/* lower/layers/lower_cp.c — attention over sequences that are cut over cp ranks: what moves
 * between its kernels (model/operators_attention.c).
 *
 * Ring, as Transformer Engine issues it (AttnFuncWithCPAndKVP2P in
 * attention/dot_product_attention/context_parallel.py): in step i keys and values go on to
 * the next rank while the attention over them runs; step i + 1 waits for those that come.
 *
 *     forward   cp - 1 times K and V
 *     backward  begins with those that the forward held last, and goes back the way they came:
 *               K and V; then cp - 2 times these and dK, dV of the step before; dK, dV. So they
 *               end where they belong, after cp - 1 moves of each
 *
 * In the forward, steps alternate between two streams, and a step's K and V are sent from its
 * stream: behind the attention of two steps before. In the backward a step adds what it has to
 * the dK, dV that come, before they go on.
 *
 * All-gather (AttnFuncWithCPAndKVAllGather; Llama 3): K, then V, of all ranks; nothing runs
 * beside. Where ranks have two parts of a sequence, a copy puts them in order. The
 * backward gathers again, and reduce-scatters dK and dV.
 *
 * Ulysses (DeepSpeed sequence/layer.py; AttnFuncWithCPAndQKVOA2A): all-to-all of Q, K, V, and
 * of the context; a copy before and after puts what goes to one rank together. The backward is
 * its mirror image. Nothing runs beside.
 *
 * PyTorch's ring (cp_steps) sends behind all compute before it: keys and values to the next rank in
 * each step, or all of them gathered beside the first, which the second waits for. The backward goes
 * the same way again, with the first step first; dK and dV in fp32 go on behind each step and are
 * added to behind the next, c moves.
 *
 * While it runs it holds, with q the bytes of Q and kv those of K and V of a rank:
 *
 *     ring        forward: K and V of all steps, c kv, and their partial results; backward:
 *                 two buffers of K, V and their gradients, and those of a step, q + 5 kv
 *     all-gather  K and V of all, c kv, once more in order if balanced; backward: and gradients
 *     PyTorch's   K and V of all if gathered, else two of them, those joined, and the sums in fp32; backward:
 *                 dK, dV as they come and go, dQ, and those of a step, 3 q + 5 kv
 *     ulysses     Q, K, V or their gradients as they came, q + kv
 *
 * Deviations. Transformer Engine overlaps the all-to-alls of Q, K and V with each other's
 * copies. The loss that Megatron-LM adds up over cp to report it, a few bytes, is left out. */
#include "lower/layers/lower_layers.h"

static LsContextStep
step_of (const Build *b, uint32_t step)
{
  const Lower *l = b->l;
  const LsContextPlace place = { .layer_kind = b->layer_kind, .cp_rank = l->cp_rank, .step = step };
  LsShard shard = l->shard;
  LsContextStep s;
  shard.documents = b->documents;
  ls_context_step (l->model, &shard, place, &s);
  return s;
}

static uint16_t
build_cp (Build *b, int coll, uint64_t bytes, LsTag tag, const char *name)
{
  return build_coll (b, LS_STREAM_CP, LS_SLOT_CP, coll, bytes, b->l->shard.dtype, tag, name);
}

static void
build_cp_sync (Build *b, int coll, uint64_t bytes, LsTag tag, const char *name)
{
  build_join (b, build_cp (b, coll, bytes, tag, name));
}

static uint16_t
build_copy (Build *b, const char *name, uint64_t bytes, LsTag tag)
{
  LsKernel copy = ls_context_copy (&b->l->shard, name, bytes);
  return build_kernel (b, &copy, tag);
}

static LsContextBytes
bytes_of (const Lower *l)
{
  return ls_context_bytes (l->model, &l->shard);
}

/* Of this rank. */
static uint64_t
kv_bytes (const Lower *l)
{
  return bytes_of (l).k + bytes_of (l).v;
}

/* --- ring --------------------------------------------------------------------------- */

/* K and V go on, when op `after` is over; all compute so far for the first ones. */
static uint16_t
send_on (Build *b, uint32_t step, uint16_t after, LsTag tag)
{
  if (step == 0)
    return build_cp (b, LS_COLL_PERMUTE, kv_bytes (b->l), tag, "kv permute");
  const LsDep dep = { LS_DEP_END, after };
  return build_coll_after (b, LS_STREAM_CP, LS_SLOT_CP, LS_COLL_PERMUTE, kv_bytes (b->l), b->l->shard.dtype,
                           tag, "kv permute", after == NO_OP ? NULL : &dep);
}

static void
ring_forward (Build *b, LsTag tag)
{
  uint32_t n = b->l->mesh.cp;
  uint16_t last = NO_OP, before_last = NO_OP,
           coming = NO_OP; /* ends of steps i - 1, i - 2; K and V of step i */
  for (uint32_t i = 0; i < n; i++) {
    LsContextStep s = step_of (b, i);
    uint16_t sent = i + 1 < n ? send_on (b, i, before_last, tag) : NO_OP;
    build_join (b, coming);
    coming = sent;
    before_last = last;
    if (s.is_idle)
      continue;
    build_kernel (b, &s.fwd, tag);
    last = build_kernel (b, &s.merge, tag);
  }
}

static uint64_t
moved_back (const Lower *l, uint32_t i)
{
  bool has_kv = i + 1 < l->mesh.cp, has_grad = i > 0;
  return (uint64_t) (has_kv + has_grad) * kv_bytes (l);
}

static void
ring_backward (Build *b)
{
  uint32_t n = b->l->mesh.cp;
  for (uint32_t i = 0; i < n; i++) {
    LsContextStep s = step_of (b, n - 1 - i);
    const char *name = i == 0 ? "kv permute" : i + 1 == n ? "kv grad permute" : "kv and grad permute";
    uint16_t moved = build_cp (b, LS_COLL_PERMUTE, moved_back (b->l, i), LS_TAG_B, name);
    if (!s.is_idle)
      build_kernel (b, &s.bwd, LS_TAG_I);
    if (i > 0)
      build_join (b, moved); /* dK and dV, to add to */
    if (!s.is_idle)
      build_kernel (b, &s.merge_grad, LS_TAG_I);
    if (i == 0)
      build_join (b, moved);
  }
}

/* --- PyTorch's ring ----------------------------------------------------------------- */

/* Before a step but the last; eagerly keys and values are joined each time. */
static uint16_t
exchange_kv (Build *b, uint32_t step, LsTag comm_tag, LsTag tag)
{
  const Lower *l = b->l;
  bool is_gathered = l->shard.cp_kind == LS_CP_ALL_GATHER;
  if (step == 0 || l->shard.cp_steps == LS_CP_STEPS_PYTORCH)
    build_copy (b, "kv-join", kv_bytes (l), tag);
  if (is_gathered && step > 0)
    return NO_OP;
  return is_gathered ? build_cp (b, LS_COLL_ALL_GATHER, kv_bytes (l) * l->mesh.cp, comm_tag, "kv all-gather")
                     : build_cp (b, LS_COLL_PERMUTE, kv_bytes (l), comm_tag, "kv permute");
}

static void
pytorchs_forward (Build *b, LsTag tag)
{
  uint32_t n = b->l->mesh.cp;
  uint16_t coming = NO_OP;
  for (uint32_t i = 0; i < n; i++) {
    LsContextStep s = step_of (b, i);
    build_join (b, coming);
    coming = i + 1 < n ? exchange_kv (b, i, tag, tag) : NO_OP;
    if (s.is_idle)
      continue;
    build_kernel (b, &s.fwd, tag);
    if (s.merge.bytes > 0)
      build_kernel (b, &s.merge, tag);
  }
}

static void
pytorchs_backward (Build *b)
{
  uint32_t n = b->l->mesh.cp;
  uint16_t coming = NO_OP, grads = NO_OP;
  for (uint32_t i = 0; i < n; i++) {
    LsContextStep s = step_of (b, i);
    build_join (b, coming);
    coming = i + 1 < n ? exchange_kv (b, i, LS_TAG_B, LS_TAG_I) : NO_OP;
    if (!s.is_idle)
      build_kernel (b, &s.bwd, LS_TAG_I);
    build_join (b, grads);
    if (!s.is_idle)
      build_kernel (b, &s.merge_grad, LS_TAG_I);
    grads = build_cp (b, LS_COLL_PERMUTE, 2 * kv_bytes (b->l), LS_TAG_B, "kv grad permute");
  }
  build_join (b, grads);
  build_copy (b, "kv-grad-cast", kv_bytes (b->l) * 3 / 2, LS_TAG_I); /* from fp32 */
}

/* --- all-gather ---------------------------------------------------------------------- */

static void
in_order (Build *b, const char *name, LsTag tag)
{
  const Lower *l = b->l;
  if (l->shard.cp_balance)
    build_copy (b, name, kv_bytes (l) * l->mesh.cp, tag);
}

static void
gather_kv (Build *b, LsTag comm_tag, LsTag tag)
{
  LsContextBytes own = bytes_of (b->l);
  build_cp_sync (b, LS_COLL_ALL_GATHER, own.k * b->l->mesh.cp, comm_tag, "k all-gather");
  build_cp_sync (b, LS_COLL_ALL_GATHER, own.v * b->l->mesh.cp, comm_tag, "v all-gather");
  in_order (b, "kv-reorder", tag);
}

static void
gathered_forward (Build *b, LsTag tag)
{
  LsContextStep s = step_of (b, 0);
  gather_kv (b, tag, tag);
  build_kernel (b, &s.fwd, tag);
}

static void
gathered_backward (Build *b)
{
  LsContextBytes own = bytes_of (b->l);
  LsContextStep s = step_of (b, 0);
  gather_kv (b, LS_TAG_B, LS_TAG_I);
  build_kernel (b, &s.bwd, LS_TAG_I);
  in_order (b, "kv-grad-reorder", LS_TAG_I);
  build_cp_sync (b, LS_COLL_REDUCE_SCATTER, own.k * b->l->mesh.cp, LS_TAG_B, "k grad reduce-scatter");
  build_cp_sync (b, LS_COLL_REDUCE_SCATTER, own.v * b->l->mesh.cp, LS_TAG_B, "v grad reduce-scatter");
}

/* --- Ulysses ------------------------------------------------------------------------- */

/* Q, K and V, or their gradients. */
static void
exchange_qkv (Build *b, LsTag comm_tag, LsTag tag)
{
  LsContextBytes own = bytes_of (b->l);
  build_copy (b, "ulysses-pack", own.q + own.k + own.v, tag);
  build_cp_sync (b, LS_COLL_ALL_TO_ALL, own.q, comm_tag, "q all-to-all");
  build_cp_sync (b, LS_COLL_ALL_TO_ALL, own.k, comm_tag, "k all-to-all");
  build_cp_sync (b, LS_COLL_ALL_TO_ALL, own.v, comm_tag, "v all-to-all");
  build_copy (b, "ulysses-unpack", own.q + own.k + own.v, tag);
}

static void
exchange_context (Build *b, LsTag comm_tag, LsTag tag)
{
  uint64_t bytes = bytes_of (b->l).context;
  build_copy (b, "ulysses-pack", bytes, tag);
  build_cp_sync (b, LS_COLL_ALL_TO_ALL, bytes, comm_tag, "context all-to-all");
  build_copy (b, "ulysses-unpack", bytes, tag);
}

static void
ulysses_forward (Build *b, LsTag tag)
{
  LsContextStep s = step_of (b, 0);
  exchange_qkv (b, tag, tag);
  build_kernel (b, &s.fwd, tag);
  exchange_context (b, tag, tag);
}

static void
ulysses_backward (Build *b)
{
  LsContextStep s = step_of (b, 0);
  exchange_context (b, LS_TAG_B, LS_TAG_I);
  build_kernel (b, &s.bwd, LS_TAG_I);
  exchange_qkv (b, LS_TAG_B, LS_TAG_I);
}

/* --- what it holds ----------------------------------------------------------------------- */

/* When; an id of its own for each. */
typedef enum { IN_FORWARD, IN_RECOMPUTE, IN_BACKWARD } Time; /* N_CP_BUFFERS of them */

static uint64_t
partial_results (const Build *b)
{
  const Lower *l = b->l;
  uint64_t rows = 0, all = l->shard.seq / l->mesh.cp;
  for (uint32_t i = 0; i < l->mesh.cp; i++)
    rows += step_of (b, i).fwd.m;
  return bytes_of (l).context / all * rows;
}

static uint64_t
held_bytes (const Build *b, Time time)
{
  const Lower *l = b->l;
  uint64_t q = bytes_of (l).q, kv = kv_bytes (l), gathered = kv * l->mesh.cp;
  if (ls_context_is_pytorchs (&l->shard)) {
    uint64_t others = (l->shard.cp_kind == LS_CP_ALL_GATHER ? gathered : 2 * kv) + kv;
    return others + (time == IN_BACKWARD ? 3 * q + 5 * kv : 2 * bytes_of (l).context);
  }
  switch (l->shard.cp_kind) {
  case LS_CP_RING:
    return time == IN_BACKWARD ? q + 5 * kv : gathered + partial_results (b);
  case LS_CP_ALL_GATHER:
    return gathered * (1 + l->shard.cp_balance + (time == IN_BACKWARD));
  default:
    return q + kv;
  }
}

/* From the first compute op that it needs them for, of those from op `first` on, to the last: the
 * compute stream allocates them, and uses their memory again. */
static void
hold (Build *b, guint first, const Chunk *c, guint i, Time time, uint64_t bytes)
{
  uint16_t id = (uint16_t) (cp_buffer_base (c) + N_CP_BUFFERS * i + time);
  b->is_too_long |= buffer_base (c) > UINT16_MAX;
  while (first + 1 < b->ops->len && g_array_index (b->ops, LsOp, first).stream != LS_STREAM_COMPUTE)
    first++;
  build_buffer (b, (uint16_t) first, id, LS_MEM_ACTIVATIONS, bytes, false);
  build_buffer (b, (uint16_t) (b->ops->len - 1), id, LS_MEM_ACTIVATIONS, bytes, true);
}

/* --- an exchange between copies -------------------------------------------------------- */

static void
build_kernels (Build *b, const LsKernel *kernels, uint32_t from, uint32_t to, LsTag tag)
{
  for (uint32_t k = from; k < to; k++)
    build_kernel (b, &kernels[k], tag);
}

/* What is sent is held until it is there: so many bytes. */
static uint64_t
exchange (Build *b, const LsOperator *o, Time time, LsTag tag)
{
  bool is_backward = time == IN_BACKWARD;
  const LsExchange *e = &o->comm.cp;
  const LsKernel *kernels = is_backward ? o->igrad : o->fwd;
  uint32_t n = is_backward ? o->n_igrad : o->n_fwd, n_before = e->is_behind_first != is_backward ? 1 : n - 1;
  uint64_t sent = 0;
  build_kernels (b, kernels, 0, n_before, tag);
  for (uint32_t x = 0; x < e->n; x++) {
    build_cp_sync (b, LS_COLL_ALL_TO_ALL, e->bytes[x], is_backward ? LS_TAG_B : tag, "mixer all-to-all");
    sent += e->bytes[x];
  }
  build_kernels (b, kernels, n_before, n, tag);
  return sent;
}

/* --- either ------------------------------------------------------------------------------ */

enum { PYTORCHS = LS_CP_ULYSSES + 1 };

static const struct {
  void (*forward) (Build *b, LsTag tag);
  void (*backward) (Build *b);
} kinds[] = {
  [LS_CP_RING] = { ring_forward, ring_backward },
  [LS_CP_ALL_GATHER] = { gathered_forward, gathered_backward },
  [LS_CP_ULYSSES] = { ulysses_forward, ulysses_backward },
  [PYTORCHS] = { pytorchs_forward, pytorchs_backward },
};

/* What it holds. Kernels of the operator itself are casts of attention in fp8: forward the last, backward all
 * but the first, come after it. */
static uint64_t
attention (Build *b, const LsOperator *o, Time time, LsTag tag)
{
  const LsShard *s = &b->l->shard;
  int kind = ls_context_is_pytorchs (s) ? PYTORCHS : (int) s->cp_kind;
  bool is_backward = time == IN_BACKWARD;
  const LsKernel *casts = is_backward ? o->igrad : o->fwd;
  uint32_t n = is_backward ? o->n_igrad : o->n_fwd, n_before = n == 0 ? 0 : is_backward ? 1 : n - 1;
  build_kernels (b, casts, 0, n_before, tag);
  if (is_backward)
    kinds[kind].backward (b);
  else
    kinds[kind].forward (b, tag);
  build_kernels (b, casts, n_before, n, tag);
  return held_bytes (b, time);
}

uint16_t
build_context (Build *b, const Chunk *c, guint i, LsTag tag)
{
  const LsOperator *o = operator_at (c, i);
  Time time = tag == LS_TAG_I ? IN_BACKWARD : tag == LS_TAG_RECOMPUTE ? IN_RECOMPUTE : IN_FORWARD;
  guint first = b->ops->len;
  b->layer_kind = o->layer_kind;
  uint64_t held = o->comm.is_context_parallel ? attention (b, o, time, tag) : exchange (b, o, time, tag);
  hold (b, first, c, i, time, held);
  return (uint16_t) (b->ops->len - 1);
}
