/* lower/pipeline/lower_p2p.c — sends and receives for any order of actions.
 *
 * Problem. A send and its receive are posted by two ranks that are busy with other things.
 * Within a channel (a rank and one of its neighbours) they match first come, first served,
 * so both must post in one order, and groups that wait for each other must not close a
 * circle, whatever the schedule.
 *
 * Method. The orders are evaluated with the times of stages (lower_p2p.c). A message has
 * the time t at which the action that makes it ends, and all ranks post by (t, sender, number
 * of its action). A send stands right behind its action; a receive behind the actions of its rank
 * that started before t, or before the last of these where it arrives while that one runs,
 * to move beside it (zero bubble's code places them alike):
 *
 *     action j-1   [ sends of j-1, receives with t <= start of j ]   [ receives with t
 *     inside j ]   action j   ...
 *
 * A pair that runs side by side is one action.
 *
 * Batched: each bracket is a group on one stream. The host never waits; the compute stream
 * waits for the group that brings what an action consumes. Overlapped: each on the stream of
 * its channel.
 *
 * Why nothing deadlocks. Groups of a rank are in order of t, strictly from one to the next. What
 * a transfer waits for, its partner's group, groups before that, actions before these and
 * their inputs, has earlier t, or is a group of the same t whose action is over. As times are
 * positive, t falls along any chain of waits. Actual times differ from evaluated ones, and
 * may make ranks wait longer, but change nobody's order.
 *
 * Scatter-gather (Narayanan et al. 2021, section 4.1): the boundary tensor, equal on all tp
 * ranks, is sent as 1/t slices and gathered over NVLink afterwards. With sequence
 * parallelism it is cut already and nothing changes. */
#include "lower/lower_build.h"

#include <string.h>

#include "base/order.h"
#include "lower/layers/lower_layers.h"
#include "lower/pipeline/lower_pipe.h"

bool
scatters (const Lower *l)
{
  bool has_slices = l->s->mp.p2p == LS_P2P_SCATTER_GATHER || l->s->mp.p2p == LS_P2P_DEEPSPEED;
  return has_slices && l->mesh.tp > 1 && !l->shard.sp;
}

uint64_t
message_bytes (const Lower *l)
{
  return ls_residual_bytes (l->model, &l->shard) / (scatters (l) ? l->mesh.tp : 1);
}

uint32_t
message_tensors (const Lower *l, uint32_t stage, uint64_t ret_bytes[2])
{
  uint32_t layer = 0; /* that the next stage begins with */
  for (uint32_t i = 0; i <= stage && l->shard.sides_are_apart; i++)
    layer += l->chunks[i].n_layers;
  return ls_residual_tensors (l->model, &l->shard, layer, ret_bytes);
}

/* --- who posts what, where ------------------------------------------------------ */

typedef struct {
  LsTime at;
  uint32_t from, action;
  uint32_t to, mb;
  uint16_t from_chunk, to_chunk;
  bool is_gradient;
} Message;

/* The stage to which an action's output goes; false: to none, or to one of the same rank. */
static bool
receiver_of (const LsLayout *l, uint32_t rank, const LsAction *a, LsHome *ret_home)
{
  LsStageRef at = ls_layout_stage (l, rank, a->chunk);
  bool is_forward = a->type == LS_ACTION_F;
  if (a->type == LS_ACTION_W || (is_forward ? at.stage + 1u == l->n_stages : at.stage == 0))
    return false;
  *ret_home = ls_layout_home (l, at.pipe, is_forward ? at.stage + 1u : at.stage - 1u);
  return ret_home->rank != rank;
}

static const LsSortKey in_time[]
    = { { LS_RISING (Message, at) }, { LS_RISING (Message, from) }, { LS_RISING (Message, action) }, { 0 } };

static GArray *
find_messages (const LsOrders *orders, const LsSchedEval *eval)
{
  GArray *messages = g_array_new (FALSE, FALSE, sizeof (Message));
  for (uint32_t r = 0; r < orders->layout.n_ranks; r++)
    for (guint i = 0; i < orders->ranks[r]->len; i++) {
      const LsAction *a = &g_array_index (orders->ranks[r], LsAction, i);
      LsHome to;
      if (!receiver_of (&orders->layout, r, a, &to))
        continue;
      Message m = { .at = eval->times[r][i].end,
                    .from = r,
                    .action = i,
                    .to = to.rank,
                    .mb = a->mb,
                    .from_chunk = a->chunk,
                    .to_chunk = to.chunk,
                    .is_gradient = a->type != LS_ACTION_F };
      g_array_append_val (messages, m);
    }
  ls_sort_by (messages, in_time);
  return messages;
}

/* Down the ranks, or from the last to the first. Waves come back up in every second chunk, and
 * every second pipe runs up. */
static bool
goes_to_next (const Lower *l, const Message *m)
{
  bool goes_down = l->sched->placement == LS_PLACE_LOOP || m->from_chunk % 2 == 0;
  return goes_down != m->is_gradient;
}

static void
append_post (Lower *l, uint32_t rank, const Post *post)
{
  GArray *posts = l->posts[rank];
  if (posts->len > 0) {
    const Post *last = &g_array_index (posts, Post, posts->len - 1);
    g_assert (last->before < post->before
              || (last->before == post->before && last->is_beside <= post->is_beside));
  }
  g_array_append_val (posts, *post);
}

/* The number behind an action, and behind its partner if it is one of a pair. */
static uint32_t
number_behind (const GArray *actions, uint32_t action)
{
  return action + (g_array_index (actions, LsAction, action).is_paired ? 2 : 1);
}

/* The same number, or that of the first of the pair whose second it is. */
static uint32_t
number_of_first (const GArray *actions, uint32_t action)
{
  return action - (action > 0 && g_array_index (actions, LsAction, action - 1).is_paired ? 1 : 0);
}

/* n_started: actions of the receiver that started before; moves on. */
static void
append_receive (Lower *l, const Message *m, const LsActionTime *times, uint32_t *n_started)
{
  while (*n_started < l->orders->ranks[m->to]->len && times[*n_started].start < m->at)
    (*n_started)++;
  bool is_beside = *n_started > 0 && times[*n_started - 1].end > m->at;
  append_post (
      l, m->to,
      &(Post) { .before = is_beside ? number_of_first (l->orders->ranks[m->to], *n_started - 1) : *n_started,
                .is_beside = is_beside,
                .is_next = !goes_to_next (l, m),
                .is_gradient = m->is_gradient,
                .mb = m->mb,
                .chunk = m->to_chunk });
}

static void
posts_init (Lower *l, const LsSchedTimes *times)
{
  uint32_t pp = l->mesh.pp;
  g_autoptr (LsSchedEval) eval = ls_orders_eval (l->orders, times);
  g_autoptr (GArray) messages = find_messages (l->orders, eval);
  g_autofree uint32_t *n_started = g_new0 (uint32_t, pp);
  l->posts = g_new (GArray *, pp);
  for (uint32_t r = 0; r < pp; r++)
    l->posts[r] = g_array_new (FALSE, FALSE, sizeof (Post));
  for (guint i = 0; i < messages->len; i++) {
    const Message *m = &g_array_index (messages, Message, i);
    append_post (l, m->from,
                 &(Post) { .before = number_behind (l->orders->ranks[m->from], m->action),
                           .is_send = true,
                           .is_next = goes_to_next (l, m),
                           .is_gradient = m->is_gradient,
                           .mb = m->mb,
                           .chunk = m->from_chunk });
    append_receive (l, m, eval->times[m->to], &n_started[m->to]);
  }
}

/* Fills in posts, those of a rank in the order in which they are issued. */
static void
posts_clear (Lower *l)
{
  for (uint32_t r = 0; l->posts && r < l->mesh.pp; r++)
    g_array_unref (l->posts[r]);
  g_free (l->posts);
}

/* --- their segments ---------------------------------------------------------------- */

/* In Megatron-LM's order: send previous, receive previous, send next, receive next. */
enum { SEND_PREV, RECV_PREV, SEND_NEXT, RECV_NEXT, N_KINDS };

static const struct {
  const char *name;
  LsStream stream;
} kinds[N_KINDS] = {
  [SEND_PREV] = { "send to previous", LS_STREAM_PP_BWD },
  [RECV_PREV] = { "recv from previous", LS_STREAM_PP_FWD_RECV },
  [SEND_NEXT] = { "send to next", LS_STREAM_PP_FWD },
  [RECV_NEXT] = { "recv from next", LS_STREAM_PP_BWD_RECV },
};

static int
kind_of (const Post *post)
{
  return post->is_next ? (post->is_send ? SEND_NEXT : RECV_NEXT) : post->is_send ? SEND_PREV : RECV_PREV;
}

static uint16_t
build_group (Build *b, LsStream stream, const char *name, const uint32_t n_of[N_KINDS], uint64_t bytes)
{
  const Lower *l = b->l;
  uint32_t n = 0;
  for (int k = 0; k < N_KINDS; k++)
    n += n_of[k];
  LsTransfer *all = ls_arena_new_array (l->plan->arena, LsTransfer, n), *t = all;
  for (int k = 0; k < N_KINDS; k++)
    for (uint32_t i = 0; i < n_of[k]; i++)
      *t++ = (LsTransfer) { bytes, k < SEND_NEXT ? LS_SLOT_PREV : LS_SLOT_NEXT,
                            k == SEND_PREV || k == SEND_NEXT, (uint8_t) l->s->mp.pp_max_ctas };
  return build_transfers (b, stream, all, (uint16_t) n, name);
}

uint16_t
pipe_build_group (Build *b, LsStream stream, uint32_t what, uint64_t bytes, const char *name)
{
  const uint32_t n_of[N_KINDS] = { [SEND_PREV] = (what & SEND_B) != 0,
                                   [RECV_PREV] = (what & RECV_F) != 0,
                                   [SEND_NEXT] = (what & SEND_F) != 0,
                                   [RECV_NEXT] = (what & RECV_B) != 0 };
  return build_group (b, stream, name, n_of, bytes);
}

uint32_t
segment_posts (Lower *l, const Post *posts, guint n)
{
  uint32_t n_of[N_KINDS] = { 0 };
  for (guint i = 0; i < n; i++)
    n_of[kind_of (&posts[i])]++;
  g_autofree char *name = g_strdup_printf ("p2p previous %u out %u in, next %u out %u in", n_of[SEND_PREV],
                                           n_of[RECV_PREV], n_of[SEND_NEXT], n_of[RECV_NEXT]);
  Build b;
  if (build_reuses (&b, l, name))
    return b.segment;
  build_group (&b, LS_STREAM_PP_FWD, n > 1 ? "p2p group" : kinds[kind_of (posts)].name, n_of,
               message_bytes (l));
  return build_finish (&b, name);
}

uint32_t
segment_post (Lower *l, const Post *post)
{
  int kind = kind_of (post);
  Build b;
  if (build_reuses (&b, l, kinds[kind].name))
    return b.segment;
  uint32_t n_of[N_KINDS] = { 0 };
  n_of[kind] = 1;
  build_group (&b, kinds[kind].stream, kinds[kind].name, n_of, message_bytes (l));
  return build_finish (&b, kinds[kind].name);
}

static uint32_t
segment_event (Lower *l, const char *name, LsOpKind kind, LsStream stream, uint16_t event, bool gathers)
{
  Build b;
  if (build_reuses (&b, l, name))
    return b.segment;
  build_event (&b, kind, stream, kind == LS_OP_RECORD ? "received" : "wait for what was received", event,
               NULL);
  if (gathers)
    build_coll_joined (&b, LS_STREAM_TP, LS_SLOT_TP, LS_COLL_ALL_GATHER,
                       ls_residual_bytes (l->model, &l->shard), l->shard.dtype, LS_TAG_SYNC,
                       "boundary all-gather");
  return build_finish (&b, name);
}

uint32_t
segment_received (Lower *l, const Post *post, bool is_alone)
{
  LsStream stream = is_alone ? kinds[kind_of (post)].stream : LS_STREAM_PP_FWD;
  g_autofree char *name = g_strdup_printf (
      "received %s on %s", post->is_gradient ? "gradients" : "activations", ls_stream_names[stream].name);
  return segment_event (l, name, LS_OP_RECORD, stream, post->is_gradient ? EVENT_RECV_B : EVENT_RECV_F,
                        false);
}

uint32_t
segment_await (Lower *l, bool is_gradient)
{
  return segment_event (l, is_gradient ? "wait for gradients" : "wait for activations", LS_OP_WAIT,
                        LS_STREAM_COMPUTE, is_gradient ? EVENT_RECV_B : EVENT_RECV_F, scatters (l));
}

/* What each pipeline rank does in which order, and how long the
 * passes of a stage take: an automatic schedule is searched for these times, and receives
 * are posted by them (lower_p2p.c).
 *
 * A pass takes the sum of its kernels and tensor-parallel collectives alone. Without costs
 * a kernel takes its FLOPs at 100 TFLOP/s: only ratios count then. Deviation: a collective
 * that runs beside a GEMM counts in full, but moves of rings, which kernels should hide, not at
 * all. */

#define FLOPS_PER_PS 100

LsPartOp
part_op (const LsOp *op)
{
  LsPartOp part = { .stream = op->stream, .slot = op->slot, .coll = op->coll, .kind = op->kind };
  if (ls_op_takes (op->kind, LS_TAKES_GPU))
    part.kernel = op->kernel;
  else
    part.bytes = op->bytes;
  return part;
}

LsTime
part_op_time (const LsLowerCosts *costs, const LsPartOp *op, const LsKernel *kernels)
{
  bool is_hidden = op->coll == LS_COLL_PERMUTE || op->coll == LS_COLL_COPY_PERMUTE;
  if (ls_op_has (op->kind, LS_HAS_CALL))
    return costs && !is_hidden ? costs->collective (op->slot, op->coll, op->bytes, costs->data) : 0;
  if (!ls_op_takes (op->kind, LS_TAKES_GPU))
    return 0;
  const LsKernel *k = &kernels[op->kernel];
  return costs ? costs->kernel (k, costs->data) : (LsTime) (k->flops / FLOPS_PER_PS);
}

static LsTime
sum_of_pass (Lower *l, const Chunk *c, LsActionType pass, bool only_exchanges)
{
  Build b;
  build_init (&b, l);
  build_pass (&b, c, pass);
  LsTime sum = 0;
  for (guint i = 0; i < b.ops->len; i++) {
    const LsOp *op = &g_array_index (b.ops, LsOp, i);
    const LsPartOp alone = part_op (op);
    if (!only_exchanges || (op->stream == LS_STREAM_EP && op->coll == LS_COLL_ALL_TO_ALL))
      sum += part_op_time (l->costs, &alone, (const LsKernel *) (gpointer) l->kernels->data);
  }
  build_clear (&b);
  return sum;
}

LsTime
pass_time (Lower *l, const Chunk *c, LsActionType pass)
{
  return MAX (sum_of_pass (l, c, pass, false), 1);
}

/* A forward and a backward side by side: kernels and exchanges each one after the other, and the
 * kernels of one hide the exchanges of the other. */
static LsTime
pair_time (Lower *l, const Chunk *c, const LsChunkTimes *t)
{
  if (!l->s->mp.ep_overlap)
    return t->f + t->b;
  LsTime exchanges = sum_of_pass (l, c, LS_ACTION_F, true) + sum_of_pass (l, c, LS_ACTION_B, true);
  return MAX (t->f + t->b - exchanges, exchanges);
}

static bool
is_alike (const Chunk *a, const Chunk *b)
{
  return strcmp (a->holds, b->holds) == 0 && a->n_recomputed == b->n_recomputed;
}

static void
times_init (Lower *l)
{
  uint32_t n = l->n_stages;
  if (l->times)
    return;
  l->times = g_new0 (LsChunkTimes, n);
  for (uint32_t i = 0; i < n; i++) {
    Chunk *c = &l->chunks[i];
    if (i > 0 && is_alike (c, c - 1))
      l->times[i] = l->times[i - 1];
    else {
      l->times[i] = (LsChunkTimes) { .f = pass_time (l, c, LS_ACTION_F),
                                     .i = pass_time (l, c, LS_ACTION_I),
                                     .w = pass_time (l, c, LS_ACTION_W),
                                     .b = pass_time (l, c, LS_ACTION_B) };
      l->times[i].fb = pair_time (l, c, &l->times[i]);
    }
  }
}

double
activations_left (const Build *b)
{
  double left = 0;
  for (guint i = 0; i < b->ops->len; i++) {
    const LsOp *op = &g_array_index (b->ops, LsOp, i);
    for (uint32_t k = 0; k < op->n_buffers; k++)
      if (op->buffers[k].category == LS_MEM_ACTIVATIONS)
        left += (op->buffers[k].is_free ? -1.0 : 1.0) * (double) op->buffers[k].bytes;
  }
  return left;
}

/* Of a pass. */
static double
bytes_left (Lower *l, const Chunk *c, LsActionType pass)
{
  Build b;
  build_init (&b, l);
  build_pass (&b, c, pass);
  double left = activations_left (&b);
  build_clear (&b);
  return left;
}

/* What is there between I and W, inputs of products and gradients of their outputs, over what a forward
 * of the first stage keeps: 32 s b h of a GPT's 34 s b h, and 5 a s^2 b without flash attention (Qi et al.
 * 2024, Zero Bubble Pipeline Parallelism, section 2; sail-sg/zero-bubble-pipeline-parallelism,
 * megatron/core/pipeline_parallel/zerobubble/runtime.py, f_mem_approx and w_mem_approx). With sequence
 * parallelism gradients behind a row-parallel product are whole on each rank, and W has more than the
 * forward. The head's logits go before its I ends: a forward is taken to hold as much on each stage. */
static void
kept_init (Lower *l)
{
  if (l->kept || !l->sched->is_split)
    return;
  l->has_split = true;
  l->kept = g_new0 (double, l->n_stages);
  double first = bytes_left (l, &l->chunks[0], LS_ACTION_F);
  for (uint32_t i = 0; i < l->n_stages && first > 0; i++) {
    Chunk *c = &l->chunks[i];
    if (i > 0 && is_alike (c, c - 1))
      l->kept[i] = l->kept[i - 1];
    else
      l->kept[i] = MAX (0, bytes_left (l, c, LS_ACTION_F) + bytes_left (l, c, LS_ACTION_I)) / first;
  }
}

/* New; the same orders so many times, one behind the other. */
static LsOrders *
orders_repeated (const LsOrders *once, uint32_t n)
{
  const LsLayout *l = &once->layout;
  LsOrders *all
      = ls_orders_new (l->n_ranks, l->n_chunks, l->n_pipes, l->n_stages, l->n_micro_batches * n, l->stages);
  for (uint32_t r = 0; r < l->n_ranks; r++)
    for (uint32_t k = 0; k < n; k++)
      for (guint i = 0; i < once->ranks[r]->len; i++) {
        LsAction a = g_array_index (once->ranks[r], LsAction, i);
        a.mb += k * l->n_micro_batches;
        g_array_append_val (all->ranks[r], a);
      }
  return all;
}

/* Pairs that do not run side by side are executed one after the other (lower_pipe.c): what the forward
 * needs is there before it begins, and what the backward needs may come until that begins. */
static void
look_through (Lower *l)
{
  l->has_split |= l->s->mp.delay_wgrad;
  for (uint32_t r = 0; r < l->orders->layout.n_ranks; r++)
    for (guint i = 0; i < l->orders->ranks[r]->len; i++) {
      LsAction *a = &g_array_index (l->orders->ranks[r], LsAction, i);
      a->is_paired &= l->s->mp.ep_overlap != 0;
      l->has_split |= a->type == LS_ACTION_I;
    }
}

/* Of the present number of micro-batches. */
static void
init_present (Lower *l, const LsOrders *given)
{
  bool has_recipe
      = l->sched->recipe == LS_RECIPE_UNFLUSHED || (l->sched->recipe == LS_RECIPE_MEGATRON && !given);
  bool has_messages = !has_recipe && l->mesh.pp > 1;
  LsSchedShape shape = ls_strategy_sched_shape (l->s, l->n_micro_batches);
  if (has_messages || ls_sched_is_searched (l->sched)) {
    times_init (l);
    if (ls_sched_is_searched (l->sched))
      kept_init (l);
    shape.times.stages = l->times;
    shape.times.kept = l->kept;
    shape.times.comm = l->costs ? l->costs->send (message_bytes (l), l->costs->data) : 0;
  }
  l->orders = given ? orders_repeated (given, 1) : ls_sched_orders (l->sched, &shape);
  look_through (l);
  if (has_messages)
    posts_init (l, &shape.times);
  l->n_flushes = l->n_micro_batches / shape.n_micro_batches;
  if (l->n_flushes > 1) {
    g_autoptr (LsOrders) once = l->orders;
    l->orders = orders_repeated (once, l->n_flushes);
  }
}

void
orders_init (Lower *l, const LsOrders *given)
{
  const uint32_t *counts = l->s->layout.micro_batches_per_replica;
  l->n_copies = counts ? l->n_dp_roles : 1;
  l->copies = g_new0 (CopyOrders, l->n_copies);
  for (uint32_t i = 0, dp_rank = 0; i < l->n_copies; i++) {
    while (counts && l->dp_role[dp_rank] != i)
      dp_rank++;
    l->n_micro_batches = counts ? counts[dp_rank] : l->n_micro_batches;
    l->posts = NULL;
    init_present (l, given);
    l->copies[i] = (CopyOrders) { l->n_micro_batches, l->n_flushes, l->orders, l->posts };
  }
}

void
orders_use (Lower *l, uint32_t dp_role)
{
  const CopyOrders *of = &l->copies[l->n_copies > 1 ? dp_role : 0];
  l->n_micro_batches = of->n_micro_batches;
  l->n_flushes = of->n_flushes;
  l->orders = of->orders;
  l->posts = of->posts;
}

uint32_t
orders_most_micro_batches (const Lower *l)
{
  uint32_t most = 0;
  for (uint32_t i = 0; i < l->n_copies; i++)
    most = MAX (most, l->copies[i].orders->layout.n_micro_batches);
  return most;
}

void
orders_clear (Lower *l)
{
  for (uint32_t i = 0; i < l->n_copies; i++) {
    orders_use (l, i);
    ls_orders_free (l->orders);
    posts_clear (l);
  }
  g_free (l->times);
  g_free (l->kept);
  g_free (l->copies);
}
