/* DeepSpeed's ZeRO stage 3 (runtime/zero/stage3.py): parameters, gradients and optimizer states
 * are cut over the ranks of a shard.
 *
 * Parameters. What is gathered when is below. Gathers are on a stream of their
 * own; compute waits for all of them before an operator that has parameters. A parameter that is
 * waited for leaves an event; where more than two are pending, the host first waits for the
 * oldest. Parameters that were gathered together are copied to tensors of their own.
 *
 *     gather   [AG 0][AG 1    ][AG 2    ]
 *     compute         op 0 .... op 1 ....        fetch 0; prefetch 1 beside op 0
 *
 * Persistent parameters are gathered once, at the end of the step.
 *
 * Gradients. Each is put in a bucket of reduce_bucket elements. The bucket is reduced before the
 * gradient that it would overflow with, on another stream, and the host waits where more than
 * two reductions are pending. Compute waits for none. At the end of each backward the rest is
 * reduced and the host waits for it.
 *
 * Without overlap_comm (dp_overlap 0) all streams are one: compute waits for each reduction.
 *
 * Lists (collective_lists). As in DeepSpeed from March 2021 (v0.3.13 released stage 3) until pull
 * request 1188, which was under review in September: stage3.py with its PrefetchCoordinator;
 * partition_parameters.py, _allgather_param, _allgather_params, _reduce_scatter_gradient. Each
 * parameter is gathered by itself: an array is zeroed, the host waits for the device
 * (torch.cuda.synchronize), then makes a list of n views of it, in Python, one for each rank. c10d
 * (ProcessGroupNCCL::allgather, PyTorch 1.8) gathers into an array of its own and copies that to the
 * views one by one: n launches. When an operator's parameters are there the host waits for the
 * device; nothing is gathered ahead while something is under way; and a release waits for compute
 * (torch.ones (1).to (device)). Each gradient, however small, is reduced by itself: n times two views,
 * n copies in, a reduce-scatter; before a bucket is reduced the host waits for the one before.
 * At the end of a step persistent parameters are gathered together, into a list; then for each
 * parameter and each rank the host makes three views and launches a copy.
 *
 *     host     sync | n views | gather, n copies | op 0 | wait | sync | n views | gather, n copies | op 1
 *     gather                  [AG 1    ][copies]               [   ]            [AG 2    ][copies]
 *     compute                                  [op 0 ....]                                    [op 1 ....
 *
 * Hence a time on the host that grows with n and with the number of parameters. Example: 1,536 ranks,
 * 96 layers of 4 matrices gathered 3 times, a view 2 us, a launch 10 us: 1,152 x 1,536 x 12 us = 21 s.
 * Of 174.6e9 parameters on 384, 768, 1,536 A100 (Narayanan et al. 2021, table 2: 81.6, 66.7, 66.7 s)
 * it makes 70.7, 62.5, 81.0 s out of 56.8, 33.9, 23.7. What stays has the sign of compute that is too
 * fast without tensor parallelism (gpt-1.7b of table 1: -12 %), and of launches that are too dear: with
 * --host-launch 7us the last is 69.7 s. Nothing here was fitted to them.
 *
 * Hooks (hook_calls, gather_calls). Of each module, with weights or without, they run in Python before
 * and after each pass, and look at parameters, streams and events one by one: the host calls so many
 * functions for each visit of a weight's module, and for each weight that is gathered (LS_HOST_PYTHON).
 * Example: 16 layers of 9 weights, two visits of each and one gather of 7: 16 x (2 x 9 x 779 + 7 x 487) =
 * 279,000 calls, 0.28 s, in a step that has 90 ms of kernels. What hooks do at the end of a step is left out.
 *
 * N@G is MiCS: parts are of groups of G ranks, and at the boundary of a step the replicas
 * all-reduce their parts.
 *
 * Memory. A parameter is alive from the issue of its gather to the operator behind which it is
 * released; a gradient until it is in the bucket, which is there throughout.
 *
 * Wire bytes of a rank: (n - 1)/n Psi for each time that parameters are gathered, and once for
 * gradients: k = 3 where each is gathered for its forward and for its backward; fewer where it
 * is reused soon, more where recomputation needs it once more.
 *
 * Deviations. A gather waits for what compute was given before it. In DeepSpeed only its memory
 * ties it to compute: a released parameter's is given to others when compute has passed it, so
 * where memory is full it waits all the same, and where much is free it begins earlier. Kernels
 * of the other streams (average, interleaving) are on the compute stream. The flat array of
 * parameters gathered together is not held beside their tensors. What is pending is counted
 * from the begin of each pass. With 16-bit gradients the copy to the bucket is the operator's
 * accumulation (three passes for two). A weight that selective recomputation needs for a norm
 * only is not gathered for that. With lists: n copies are one op that begins with the first launch
 * (exec/replay/compile.c), other Python of a list's loop is free, c10d's second array is not in memory, a
 * large gradient is reduced at once, and reuse is decided as in newer versions. A copy costs the host
 * what any kernel does; from C++ it is perhaps 7 to 9 us (a cudaMemcpyAsync 5 to 7 us: Wu et al. 2026,
 * arXiv 2602.21548, section 5.2; its dispatch and the view of its source 1 us each). A gather of a small
 * parameter on 8 GPUs took 130 us up to its launch and 250 us for that (DeepSpeed issue 1069); here 36
 * and 100. NVIDIA's containers gathered in place (pytorch pull request 33924) where they were asked to
 * (no_copy, as apex's distributed optimizers do: NVIDIA/apex@02fd7341), which DeepSpeed does not. */
#include <string.h>

#include "lower/data/lower_dp.h"

/* ---- lower zero3 ---- */

/* Which parameters ZeRO-3 gathers and releases, and when, as
 * PartitionedParameterCoordinator of DeepSpeed does (partitioned_param_coordinator.py)
 * once it has recorded a forward and a backward.
 *
 * Problem. A rank has a part of each parameter; an operator needs all of its own whole.
 *
 * Model. The trace lists visits of operators that have parameters, of one forward, then its backward
 * (with what runs again). A queue lists their parameters in this order. At a visit:
 *
 *     fetch      its parameters that are not there are gathered, together
 *     wait       compute waits for all gathers so far
 *     queue      its parameters leave the queue, unless a prefetch took them out before
 *     prefetch   parameters are taken from the queue while those gathered so, which were not
 *                there, have fewer elements than both prefetch_bucket and what max_live_params
 *                leaves: the last may go beyond. They are gathered together
 *     release    behind the operator, its parameters go, unless they are persistent (at most
 *                persistence_threshold elements, never cut), a prefetch has passed over a
 *                later use of them, or fewer than max_reuse_distance elements are
 *                visited before their next use
 *
 * With collective_lists (DeepSpeed of spring 2021) a wait is for all that is under way, and nothing
 * is gathered ahead while something is.
 *
 * Worked example. Three operators of 10 elements, prefetch_bucket 15, nothing reused soon:
 * visit 0 fetches 0 and prefetches 1 and 2 (10 < 15); visits 1 and 2 fetch nothing.
 *
 * Deviations. Every trace is complete (DeepSpeed records in its first iteration). A module is an
 * operator: norms, matrix products, embeddings. Nothing is external: a tied
 * embedding is gathered for the logits as for any other use. */

/* Parameters are numbered through the chunk: that many for each operator. */
#define ZERO3_PARAM(o, i) ((o) *LS_OPERATOR_MAX_PARAMS + (i))

/* Of Zero3.params: guint, numbers of parameters. */
typedef struct {
  guint first, n;
} Zero3List;

typedef struct {
  guint operator_;
  bool is_again; /* its forward runs again */
  Zero3List fetch, prefetch, release;
  guint n_waits; /* parameters of this visit that were under way */
} Zero3Visit;

typedef struct {
  GArray *visits;  /* Zero3Visit                                 */
  guint n_forward; /* of these, the first so many are of the forward */
  GArray *params;  /* guint, see Zero3List                       */
} Zero3;

/* --- the trace: a forward and a backward that only take notes --------------------- */

static bool
is_tied_logits (const Lower *l, const Chunk *c, guint o)
{
  return l->model->tied_embeddings && c->has_embedding && c->has_head && operator_at (c, o)->is_logits
      && operator_at (c, o)->params.n == 0;
}

static guint
uses_of (const Lower *l, const Chunk *c, guint o, guint ret_params[LS_OPERATOR_MAX_PARAMS])
{
  guint n = 0;
  for (uint32_t i = 0; i < operator_at (c, o)->params.n; i++)
    ret_params[n++] = ZERO3_PARAM (o, i);
  if (is_tied_logits (l, c, o))
    ret_params[n++] = ZERO3_PARAM (0, 0);
  return n;
}

static void
note_visit (Build *b, DpPass *p, guint o, bool is_again)
{
  guint params[LS_OPERATOR_MAX_PARAMS];
  Zero3Visit v = { .operator_ = o, .is_again = is_again };
  if (uses_of (b->l, p->c, o, params) > 0)
    g_array_append_val ((GArray *) p->state, v);
}

static void
note (Build *b, DpPass *p, guint o)
{
  note_visit (b, p, o, false);
}

static void
note_again (Build *b, DpPass *p, guint o)
{
  note_visit (b, p, o, true);
}

static const DpBackend notes = { .before_again = note_again, .after = note };

static void
trace_pass (Lower *l, const Chunk *c, LsActionType type, GArray *visits)
{
  Build b;
  build_init (&b, l);
  DpPass p = { .c = c, .type = type, .state = visits };
  build_pass_by (&b, &p, &notes);
  build_clear (&b);
}

/* --- the coordinator -------------------------------------------------------------- */

typedef struct {
  guint param;
  int64_t step; /* of the visit */
} InQueue;

typedef struct {
  const Lower *l;
  const Chunk *c;
  Zero3 *z;
  GArray *queue; /* InQueue                                           */
  guint head;
  guint n_params;
  bool *is_there, *is_under_way; /* [n_params]                               */
  int64_t *fetched_for;          /* [n_params] latest use that left the queue         */
  uint64_t *distance;            /* [n_visits + 1] elements visited before            */
  guint *next_use;               /* [queue] index of the visit; G_MAXUINT: none        */
  uint64_t n_available;
} Coordinator;

static uint64_t
zero3_numel (const Chunk *c, guint param)
{
  return operator_at (c, param / LS_OPERATOR_MAX_PARAMS)->params.numel[param % LS_OPERATOR_MAX_PARAMS];
}

static bool
is_expert_param (const Chunk *c, guint param)
{
  return operator_at (c, param / LS_OPERATOR_MAX_PARAMS)->params.is_expert;
}

static bool
zero3_is_persistent (const Lower *l, uint64_t numel)
{
  return numel <= l->s->data.persistence_threshold;
}

static void
gather (Coordinator *k, Zero3List *list, guint param)
{
  g_array_append_val (k->z->params, param);
  list->n++;
  k->is_there[param] = k->is_under_way[param] = true;
  k->n_available += zero3_numel (k->c, param);
}

static void
prefetch (Coordinator *k, Zero3Visit *v)
{
  v->prefetch.first = k->z->params->len;
  for (guint i = 0; k->l->s->data.collective_lists && i < k->n_params; i++)
    if (k->is_under_way[i])
      return;
  uint64_t live = k->l->s->data.max_live_params, numel = 0;
  uint64_t limit = MIN (live - MIN (live, k->n_available), k->l->s->data.prefetch_bucket);
  while (k->head < k->queue->len && numel < limit) {
    const InQueue *next = &g_array_index (k->queue, InQueue, k->head++);
    k->fetched_for[next->param] = MAX (k->fetched_for[next->param], next->step);
    if (k->is_there[next->param])
      continue;
    numel += zero3_numel (k->c, next->param);
    gather (k, &v->prefetch, next->param);
  }
}

/* Visit of the next use of a parameter behind visit t, or G_MAXUINT. */
static guint
next_use (const Coordinator *k, guint param, guint t, guint first_in_queue)
{
  for (guint i = first_in_queue; i < k->queue->len; i++) {
    const InQueue *q = &g_array_index (k->queue, InQueue, i);
    if (q->param == param && q->step == t)
      return k->next_use[i];
  }
  g_assert_not_reached ();
}

static bool
is_kept (const Coordinator *k, guint param, guint t, guint first_in_queue)
{
  if (zero3_is_persistent (k->l, zero3_numel (k->c, param)) || k->fetched_for[param] > (int64_t) t + 1)
    return true;
  guint next = next_use (k, param, t, first_in_queue);
  return next != G_MAXUINT && k->distance[next] - k->distance[t + 1] < k->l->s->data.max_reuse_distance;
}

static void
release (Coordinator *k, Zero3Visit *v, guint t, const guint *params, guint n, guint first_in_queue)
{
  v->release.first = k->z->params->len;
  for (guint i = 0; i < n; i++) {
    if (is_kept (k, params[i], t, first_in_queue))
      continue;
    g_array_append_val (k->z->params, params[i]);
    v->release.n++;
    k->is_there[params[i]] = false;
    k->n_available -= zero3_numel (k->c, params[i]);
  }
}

static void
visit (Coordinator *k, guint t, guint first_in_queue)
{
  Zero3Visit *v = &g_array_index (k->z->visits, Zero3Visit, t);
  guint params[LS_OPERATOR_MAX_PARAMS], n = uses_of (k->l, k->c, v->operator_, params), n_queued = 0;
  v->fetch.first = k->z->params->len;
  for (guint i = 0; i < n; i++)
    if (!k->is_there[params[i]])
      gather (k, &v->fetch, params[i]);
  for (guint i = 0; i < n; i++) {
    v->n_waits += k->is_under_way[params[i]];
    k->is_under_way[params[i]] = false;
    n_queued += k->fetched_for[params[i]] < (int64_t) t;
  }
  if (k->l->s->data.collective_lists && v->n_waits > 0)
    memset (k->is_under_way, 0, k->n_params * sizeof *k->is_under_way);
  for (; n_queued > 0 && k->head < k->queue->len; n_queued--) {
    const InQueue *q = &g_array_index (k->queue, InQueue, k->head++);
    k->fetched_for[q->param] = q->step;
  }
  prefetch (k, v);
  release (k, v, t, params, n, first_in_queue);
}

/* Queue, distances, and each use's next one, from the back. */
static void
coordinator_init (Coordinator *k, guint n_params)
{
  GArray *visits = k->z->visits;
  k->queue = g_array_new (FALSE, FALSE, sizeof (InQueue));
  k->distance = g_new0 (uint64_t, visits->len + 1);
  k->n_params = n_params;
  k->is_there = g_new0 (bool, n_params);
  k->is_under_way = g_new0 (bool, n_params);
  k->fetched_for = g_new (int64_t, n_params);
  for (guint t = 0; t < visits->len; t++) {
    guint params[LS_OPERATOR_MAX_PARAMS];
    guint n = uses_of (k->l, k->c, g_array_index (visits, Zero3Visit, t).operator_, params);
    k->distance[t + 1] = k->distance[t];
    for (guint i = 0; i < n; i++) {
      k->distance[t + 1] += zero3_numel (k->c, params[i]);
      InQueue use = { params[i], t };
      g_array_append_val (k->queue, use);
    }
  }
  k->next_use = g_new (guint, MAX (1, k->queue->len));
  g_autofree guint *later = g_new (guint, n_params);
  for (guint i = 0; i < n_params; i++) {
    later[i] = G_MAXUINT;
    k->fetched_for[i] = INT64_MIN;
  }
  for (guint i = k->queue->len; i-- > 0;) {
    const InQueue *q = &g_array_index (k->queue, InQueue, i);
    k->next_use[i] = later[q->param];
    later[q->param] = (guint) q->step;
  }
}

static void
coordinator_clear (Coordinator *k)
{
  g_array_unref (k->queue);
  g_free (k->distance);
  g_free (k->is_there);
  g_free (k->is_under_way);
  g_free (k->fetched_for);
  g_free (k->next_use);
}

static Zero3 *
zero3_new (Lower *l, const Chunk *c)
{
  Zero3 *z = g_new0 (Zero3, 1);
  z->visits = g_array_new (FALSE, TRUE, sizeof (Zero3Visit));
  z->params = g_array_new (FALSE, FALSE, sizeof (guint));
  trace_pass (l, c, LS_ACTION_F, z->visits);
  z->n_forward = z->visits->len;
  trace_pass (l, c, l->has_split ? LS_ACTION_I : LS_ACTION_B, z->visits);

  Coordinator k = { .l = l, .c = c, .z = z };
  guint n_params = c->operators->len * LS_OPERATOR_MAX_PARAMS;
  coordinator_init (&k, n_params);
  for (guint i = 0; i < n_params; i++)
    k.is_there[i] = zero3_is_persistent (l, zero3_numel (c, i));
  guint in_queue = 0;
  for (guint t = 0; t < z->visits->len; t++) {
    guint params[LS_OPERATOR_MAX_PARAMS];
    guint n = uses_of (l, c, g_array_index (z->visits, Zero3Visit, t).operator_, params);
    visit (&k, t, in_queue);
    in_queue += n;
  }
  coordinator_clear (&k);
  return z;
}

static void
zero3_free (Zero3 *z)
{
  g_array_unref (z->visits);
  g_array_unref (z->params);
  g_free (z);
}

/* Elements that stay gathered, of experts or of others; copies out of the parts of ranks that they take. */
static uint64_t
zero3_n_persistent (const Lower *l, uint32_t pp_rank, bool is_expert, uint64_t *ret_n_copies)
{
  uint64_t n = 0, n_copies = 0, n_ranks = dp_shard (l, is_expert).n;
  for (uint32_t c = 0; c < l->n_chunks; c++) {
    const Chunk *chunk = chunk_at (l, pp_rank, c);
    for (guint param = 0; param < chunk->operators->len * LS_OPERATOR_MAX_PARAMS; param++) {
      uint64_t numel = is_expert_param (chunk, param) == is_expert ? zero3_numel (chunk, param) : 0;
      if (numel == 0 || !zero3_is_persistent (l, numel))
        continue;
      uint64_t part = (numel + n_ranks - 1) / n_ranks;
      n += numel;
      n_copies += (numel + part - 1) / part;
    }
  }
  if (ret_n_copies)
    *ret_n_copies = n_copies;
  return n;
}

#define MAX_PENDING 2 /* max_ongoing_fetch_events, max_param_reduce_events */

typedef struct {
  Zero3 *zero3;
  guint visit;     /* the next of zero3->visits            */
  bool is_fetched; /* what it needs                        */
  bool must_wait;  /* compute, for the gather stream        */
  GArray *gathers; /* uint16_t: ops of this pass            */
  GArray *events;  /* guint: gathers at which the host may wait, oldest first */
  GArray *to_copy; /* uint64_t: elements gathered together, not in tensors yet */
  uint64_t elements[2];
  guint n_params[2];  /* gradients in the bucket               */
  GArray *sizes[2];   /* uint64_t: theirs                      */
  GArray *reductions; /* uint16_t: ops of this pass            */
} Stage3;

static bool
fetches (const DpPass *p)
{
  return p->type != LS_ACTION_W;
}

static char *
variant (const Lower *l, const DpPass *p)
{
  return dp_has_weights (p)
      ? g_strconcat (" reduces", p->is_last ? " last" : "", offload_variant (l, p), NULL)
      : NULL;
}

/* --- parameters -------------------------------------------------------------------- */

static guint
param_at (const Stage3 *s, Zero3List list, guint i)
{
  return g_array_index (s->zero3->params, guint, list.first + i);
}

static uint64_t
gathered_bytes (const Lower *l, const Chunk *c, guint param)
{
  uint32_t n = dp_shard (l, operator_at (c, param / LS_OPERATOR_MAX_PARAMS)->params.is_expert).n;
  return dp_param_bytes (l, dp_part (zero3_numel (c, param), n) * n);
}

/* One gather of the parameters of a list that have the same group. */
static void
gather_some (Build *b, DpPass *p, Zero3List list, bool is_expert)
{
  Stage3 *s = p->state;
  const Lower *l = b->l;
  DpGroup shard = dp_shard (l, is_expert);
  uint64_t numel = 0;
  guint n = 0;
  for (guint i = 0; i < list.n; i++)
    if (is_expert_param (p->c, param_at (s, list, i)) == is_expert) {
      numel += dp_part (zero3_numel (p->c, param_at (s, list, i)), shard.n) * shard.n;
      n++;
    }
  if (n == 0)
    return;
  uint16_t from = offloads_parameters (l) ? offload_fetch (b, numel / shard.n) : NO_OP;
  uint16_t op = deepspeed_gather (b, numel, is_expert, from);
  if (op == NO_OP)
    op = from;
  if (op == NO_OP)
    return;
  s->must_wait = true;
  g_array_append_val (s->gathers, op);
  if (n > 1)
    g_array_append_val (s->to_copy, numel);
  for (guint i = 0; i < list.n; i++) {
    guint param = param_at (s, list, i);
    if (is_expert_param (p->c, param) == is_expert)
      build_buffer (b, op, dp_buffer (b, p->c, param), LS_MEM_UNSHARDED, gathered_bytes (l, p->c, param),
                    false);
  }
}

/* Each parameter by itself, into an array of zeros that must be there. */
static void
gather_one_by_one (Build *b, DpPass *p, Zero3List list)
{
  const Lower *l = b->l;
  for (; list.n > 0; list.first++, list.n--) {
    guint param = param_at (p->state, list, 0);
    uint64_t bytes = gathered_bytes (l, p->c, param);
    if (dp_shard (l, is_expert_param (p->c, param)).n > 1) {
      LsKernel zero = ls_kernel_stream ("zero parameter", LS_KERNEL_MEMSET, l->shard.dtype, 1,
                                        zero3_numel (p->c, param), (double) bytes, 0);
      build_kernel_on (b, LS_STREAM_GATHER, &zero, p->type == LS_ACTION_F ? LS_TAG_F : LS_TAG_B, NULL, 0);
      deepspeed_sync_host (b);
    }
    gather_some (b, p, (Zero3List) { list.first, 1 }, is_expert_param (p->c, param));
  }
}

static void
gather_list (Build *b, DpPass *p, Zero3List list)
{
  if (b->l->s->data.collective_lists) {
    gather_one_by_one (b, p, list);
    return;
  }
  gather_some (b, p, list, false);
  gather_some (b, p, list, true);
}

/* For each parameter waited for an event, behind what was gathered so far. */
static void
throttle (Build *b, Stage3 *s, guint n_waits)
{
  LsDep oldest = { LS_DEP_END, NO_OP };
  for (guint i = 0; i < n_waits && s->gathers->len > 0; i++) {
    if (s->events->len > MAX_PENDING) {
      oldest.index = g_array_index (s->gathers, uint16_t, g_array_index (s->events, guint, 0));
      g_array_remove_index (s->events, 0);
    }
    guint event = s->gathers->len - 1;
    g_array_append_val (s->events, event);
  }
  if (oldest.index == NO_OP)
    return;
  LsOp op = ls_op_blank (LS_OP_HOST_SYNC, LS_STREAM_COMPUTE, LS_TAG_SYNC,
                         "wait for a fetch"); /* free: most are over */
  build_op (b, op, &oldest, 1);
}

static void
copy_out (Build *b, Stage3 *s, LsTag tag)
{
  const Lower *l = b->l;
  for (guint i = 0; i < s->to_copy->len; i++) {
    uint64_t numel = g_array_index (s->to_copy, uint64_t, i);
    LsKernel copy = ls_kernel_stream ("parameter-copy-out", LS_KERNEL_ELEMENTWISE, l->shard.dtype, 1, numel,
                                      2.0 * (double) dp_param_bytes (l, numel), 0);
    build_kernel (b, &copy, tag);
  }
  g_array_set_size (s->to_copy, 0);
}

/* The next visit, if it is that one. */
static const Zero3Visit *
next_visit (const DpPass *p, guint o, bool is_again)
{
  const Stage3 *s = p->state;
  if (!fetches (p) || s->visit >= s->zero3->visits->len)
    return NULL;
  const Zero3Visit *v = &g_array_index (s->zero3->visits, Zero3Visit, s->visit);
  return v->operator_ == o && v->is_again == is_again ? v : NULL;
}

/* Tensors that a program has apart, as Q, K and V, which one operator computes; or its modules, of which a
 * bias is none, unless an operator adds it that has no other tensor. */
static uint64_t
n_tensors (const LsOperator *op, bool of_modules)
{
  g_autoptr (GArray) tensors = g_array_new (FALSE, FALSE, sizeof (LsTensor));
  ls_operator_tensors (op, true, tensors);
  uint64_t n = 0;
  for (guint i = 0; i < tensors->len; i++)
    n += !of_modules || g_array_index (tensors, LsTensor, i).kind != LS_TENSOR_VECTOR;
  return MAX (n, 1);
}

static uint64_t
n_gathered (const DpPass *p, Zero3List list)
{
  uint64_t n = 0;
  for (guint i = 0; i < list.n; i++) {
    const LsOperator *op = operator_at (p->c, param_at (p->state, list, i) / LS_OPERATOR_MAX_PARAMS);
    n += n_tensors (op, false) / op->params.n;
  }
  return n;
}

/* What hooks of Python cost the host at a visit. */
static void
run_hooks (Build *b, const DpPass *p, const Zero3Visit *v)
{
  const LsDataParallel *d = &b->l->s->data;
  uint64_t n = d->hook_calls * n_tensors (operator_at (p->c, v->operator_), true)
      + d->gather_calls * (n_gathered (p, v->fetch) + n_gathered (p, v->prefetch));
  if (n > 0)
    build_host_calls (b, LS_TAG_SYNC, LS_HOST_PYTHON, n, "hooks of modules");
}

static void
fetch (Build *b, DpPass *p, guint o, bool is_again, LsTag tag)
{
  Stage3 *s = p->state;
  const Zero3Visit *v = next_visit (p, o, is_again);
  if (!v || s->is_fetched)
    return;
  s->is_fetched = true;
  run_hooks (b, p, v);
  gather_list (b, p, v->fetch);
  bool is_blocking = b->l->s->data.collective_lists;
  if (is_blocking && v->n_waits > 0)
    deepspeed_sync_host (b);
  else if (!is_blocking)
    throttle (b, s, v->n_waits);
  if (s->must_wait && !is_blocking) {
    build_join_stream (b, LS_STREAM_GATHER);
    if (offloads_parameters (b->l))
      build_join_stream (b, LS_STREAM_COPY_IN);
    build_barrier (b);
    copy_out (b, s, tag);
    s->must_wait = false;
  }
  gather_list (b, p, v->prefetch);
}

static void
release_operator (Build *b, DpPass *p, guint o, bool is_again)
{
  Stage3 *s = p->state;
  const Zero3Visit *v = next_visit (p, o, is_again);
  if (!v)
    return;
  uint16_t last = dp_last_compute (b);
  for (guint i = 0; i < v->release.n; i++) {
    guint param = param_at (s, v->release, i);
    if (offloads_parameters (b->l) || dp_shard (b->l, is_expert_param (p->c, param)).n > 1)
      build_buffer (b, last, dp_buffer (b, p->c, param), LS_MEM_UNSHARDED, gathered_bytes (b->l, p->c, param),
                    true);
  }
  if (b->l->s->data.collective_lists && v->release.n > 0) {
    LsDep compute = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
    build_host_sync (b, LS_TAG_SYNC, "wait for compute", &compute, 1);
  }
  s->visit++;
  s->is_fetched = false;
}

/* --- gradients ---------------------------------------------------------------------- */

static void
host_waits_for_reduction (Build *b, const Stage3 *s)
{
  guint max_pending = b->l->s->data.collective_lists ? 0 : MAX_PENDING;
  if (s->reductions->len <= max_pending)
    return;
  LsDep oldest
      = { LS_DEP_END, g_array_index (s->reductions, uint16_t, s->reductions->len - 1 - max_pending) };
  build_op (b, ls_op_blank (LS_OP_HOST_SYNC, LS_STREAM_COMPUTE, LS_TAG_SYNC, "wait for a reduction"), &oldest,
            1);
}

static uint16_t
reduce_one_by_one (Build *b, DpPass *p, bool is_expert)
{
  Stage3 *s = p->state;
  uint16_t op = NO_OP;
  for (guint i = 0; i < s->sizes[is_expert]->len; i++)
    op = deepspeed_reduce (b, g_array_index (s->sizes[is_expert], uint64_t, i), is_expert, p->is_last,
                           (uint16_t) s->reductions->len);
  g_array_set_size (s->sizes[is_expert], 0);
  return op;
}

static void
flush (Build *b, DpPass *p, bool is_expert)
{
  Stage3 *s = p->state;
  uint64_t numel = s->elements[is_expert];
  if (numel == 0)
    return;
  host_waits_for_reduction (b, s);
  bool has_lists = b->l->s->data.collective_lists;
  if (s->n_params[is_expert] > 1 && !has_lists)
    dp_pass_gradients (b, "grad-interleave", 2, numel);
  uint16_t op = has_lists ? reduce_one_by_one (b, p, is_expert)
                          : deepspeed_reduce (b, numel, is_expert, p->is_last, (uint16_t) s->reductions->len);
  offload_gradients (b, p, dp_part (numel, dp_shard (b->l, is_expert).n), op);
  s->elements[is_expert] = s->n_params[is_expert] = 0;
  if (op == NO_OP)
    return;
  g_array_append_val (s->reductions, op);
  if (!b->l->s->data.overlap)
    build_join (b, op);
}

/* A gradient that fills a bucket alone stays where it is until it is reduced. */
static void
take (Build *b, DpPass *p, guint o, guint i)
{
  Stage3 *s = p->state;
  const Lower *l = b->l;
  const LsOperator *op = operator_at (p->c, o);
  uint64_t numel = op->params.numel[i];
  if (s->elements[op->params.is_expert] > 0
      && s->elements[op->params.is_expert] + numel > l->s->data.reduce_bucket)
    flush (b, p, op->params.is_expert);
  guint id = (p->c->operators->len + o) * LS_OPERATOR_MAX_PARAMS + i;
  uint64_t bytes = dp_grad_bytes (l, numel);
  build_buffer (b, dp_last_compute (b), dp_buffer (b, p->c, id), LS_MEM_UNSHARDED, bytes, false);
  bool is_alone = numel > l->s->data.reduce_bucket;
  if (!is_alone && ls_dtype_bytes (l->shard.grad_dtype) == 4)
    dp_pass_gradients (b, "grad-to-bucket", 2, numel);
  s->elements[op->params.is_expert] += numel;
  s->n_params[op->params.is_expert]++;
  g_array_append_val (s->sizes[op->params.is_expert], numel);
  if (is_alone)
    flush (b, p, op->params.is_expert);
  uint16_t last = is_alone && s->reductions->len > 0
      ? g_array_index (s->reductions, uint16_t, s->reductions->len - 1)
      : dp_last_compute (b);
  build_buffer (b, last, dp_buffer (b, p->c, id), LS_MEM_UNSHARDED, bytes, true);
}

/* --- hooks --------------------------------------------------------------------------- */

static void
begin (Build *b, DpPass *p)
{
  Stage3 *s = g_new0 (Stage3, 1);
  s->zero3 = zero3_new (b->l, p->c);
  s->visit = p->type == LS_ACTION_F ? 0 : s->zero3->n_forward;
  s->must_wait = p->type != LS_ACTION_F; /* for what the forward fetched ahead */
  s->gathers = g_array_new (FALSE, FALSE, sizeof (uint16_t));
  s->events = g_array_new (FALSE, FALSE, sizeof (guint));
  s->to_copy = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  s->reductions = g_array_new (FALSE, FALSE, sizeof (uint16_t));
  for (int i = 0; i < 2; i++)
    s->sizes[i] = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  p->state = s;
}

static void
before (Build *b, DpPass *p, guint o)
{
  fetch (b, p, o, false, p->type == LS_ACTION_F ? LS_TAG_F : LS_TAG_B);
}

static void
before_again (Build *b, DpPass *p, guint o)
{
  fetch (b, p, o, true, LS_TAG_RECOMPUTE);
}

static void
after_again (Build *b, DpPass *p, guint o)
{
  release_operator (b, p, o, true);
  fetch (b, p, o, false, LS_TAG_B); /* the last of what runs again is the first of the backward */
}

static void
after (Build *b, DpPass *p, guint o)
{
  release_operator (b, p, o, false);
  const LsOperator *op = operator_at (p->c, o);
  for (guint i = op->params.is_frozen ? 0 : op->params.n; dp_has_weights (p) && i-- > 0;)
    take (b, p, o, i);
}

static void
end (Build *b, DpPass *p)
{
  Stage3 *s = p->state;
  if (dp_has_weights (p)) {
    flush (b, p, false);
    flush (b, p, true);
    if (b->next_deps->len > 0)
      build_barrier (b);
    deepspeed_sync_host (b);
  }
  zero3_free (s->zero3);
  g_array_unref (s->gathers);
  g_array_unref (s->events);
  g_array_unref (s->to_copy);
  g_array_unref (s->reductions);
  g_array_unref (s->sizes[0]);
  g_array_unref (s->sizes[1]);
  g_clear_pointer (&p->state, g_free);
}

/* Persistent parameters are copied out of what was gathered: for each of them and each rank with a part of it
 * three views (two .narrow, a .view) and a copy. */
static void
step_end (Build *b, uint32_t pp_rank)
{
  for (int is_expert = 0; is_expert < 2; is_expert++) {
    uint64_t n_copies, numel = zero3_n_persistent (b->l, pp_rank, is_expert, &n_copies);
    if (numel == 0)
      continue;
    uint32_t n = dp_shard (b->l, is_expert).n;
    uint16_t from = offloads_parameters (b->l) ? offload_fetch (b, dp_part (numel, n)) : NO_OP;
    uint16_t op = deepspeed_gather (b, numel, is_expert, from);
    build_join (b, op != NO_OP ? op : from);
    if (!b->l->s->data.collective_lists)
      continue;
    deepspeed_copies (b, LS_STREAM_COMPUTE, "persistent-copy-out", deepspeed_gathers (b->l), numel, n_copies,
                      LS_TAG_OPTIMIZER);
    build_host_calls (b, LS_TAG_SYNC, LS_HOST_VIEW, 3 * n_copies, VIEWS);
  }
}

/* Persistent parameters whole, and the bucket. */
static void
static_memory (const Lower *l, uint32_t pp_rank, uint64_t bytes[LS_N_MEM])
{
  offload_static_memory (l, pp_rank, bytes);
  for (int is_expert = 0; is_expert < 2; is_expert++)
    if (offloads_parameters (l) || dp_shard (l, is_expert).n > 1)
      bytes[LS_MEM_UNSHARDED] += dp_param_bytes (l, zero3_n_persistent (l, pp_rank, is_expert, NULL));
  bytes[LS_MEM_UNSHARDED] += dp_grad_bytes (l, l->s->data.reduce_bucket);
}

const DpBackend dp_backend_deepspeed3 = {
  .copies_gradients = true,
  .variant = variant,
  .begin = begin,
  .before = before,
  .after = after,
  .end = end,
  .before_again = before_again,
  .after_again = after_again,
  .step_end = step_end,
  .static_memory = static_memory,
};
