/* lower/pipeline/lower_order.c — what each pipeline rank does in which order, and how long the
 * passes of a stage take: an automatic schedule is searched for these times, and receives
 * are posted by them (lower_p2p.c).
 *
 * A pass takes the sum of its kernels and tensor-parallel collectives alone. Without costs
 * a kernel takes its FLOPs at 100 TFLOP/s: only ratios count then. Deviation: a collective
 * that runs beside a GEMM counts in full, but moves of rings, which kernels should hide, not at
 * all. */
#include <string.h>

#include "lower/layers/lower_layers.h"
#include "lower/pipeline/lower_order.h"

#define FLOPS_PER_PS 100

static LsTime
op_time (const Lower *l, const LsOp *op)
{
  bool is_hidden = op->coll == LS_COLL_PERMUTE || op->coll == LS_COLL_COPY_PERMUTE;
  if (ls_op_has (op->kind, LS_HAS_CALL))
    return l->costs && !is_hidden ? l->costs->collective (op->slot, op->coll, op->bytes, l->costs->data) : 0;
  if (!ls_op_takes (op->kind, LS_TAKES_GPU))
    return 0;
  const LsKernel *k = &g_array_index (l->kernels, LsKernel, op->kernel);
  return l->costs ? l->costs->kernel (k, l->costs->data) : (LsTime) (k->flops / FLOPS_PER_PS);
}

static bool
is_exchange (const LsOp *op)
{
  return op->stream == LS_STREAM_EP && op->coll == LS_COLL_ALL_TO_ALL;
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
    if (!only_exchanges || is_exchange (op))
      sum += op_time (l, op);
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
  return a->n_layers == b->n_layers && strcmp (a->kinds, b->kinds) == 0 && a->n_recomputed == b->n_recomputed
      && a->has_embedding == b->has_embedding && a->has_head == b->has_head
      && a->ends_encoder == b->ends_encoder && a->begins_decoder == b->begins_decoder;
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

/* Bytes of activations that are there after a pass, less those before it. */
static double
bytes_left (Lower *l, const Chunk *c, LsActionType pass)
{
  Build b;
  build_init (&b, l);
  build_pass (&b, c, pass);
  double left = 0;
  for (guint i = 0; i < b.ops->len; i++) {
    const LsOp *op = &g_array_index (b.ops, LsOp, i);
    for (uint32_t k = 0; k < op->n_buffers; k++)
      if (op->buffers[k].category == LS_MEM_ACTIVATIONS)
        left += (op->buffers[k].is_free ? -1.0 : 1.0) * (double) op->buffers[k].bytes;
  }
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

static LsOrders *
orders_copy (const LsOrders *o)
{
  const LsLayout *l = &o->layout;
  LsOrders *copy
      = ls_orders_new (l->n_ranks, l->n_chunks, l->n_pipes, l->n_stages, l->n_micro_batches, l->stages);
  for (uint32_t r = 0; r < l->n_ranks; r++)
    g_array_append_vals (copy->ranks[r], o->ranks[r]->data, o->ranks[r]->len);
  return copy;
}

/* The same orders so many times, one behind the other. */
static LsOrders *
orders_repeated (LsOrders *once, uint32_t n)
{
  const LsLayout *l = &once->layout;
  if (n == 1)
    return once;
  LsOrders *all
      = ls_orders_new (l->n_ranks, l->n_chunks, l->n_pipes, l->n_stages, l->n_micro_batches * n, l->stages);
  for (uint32_t r = 0; r < l->n_ranks; r++)
    for (uint32_t k = 0; k < n; k++)
      for (guint i = 0; i < once->ranks[r]->len; i++) {
        LsAction a = g_array_index (once->ranks[r], LsAction, i);
        a.mb += k * l->n_micro_batches;
        g_array_append_val (all->ranks[r], a);
      }
  ls_orders_free (once);
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
  l->orders = given ? orders_copy (given) : ls_sched_orders (l->sched, &shape);
  look_through (l);
  if (has_messages)
    posts_init (l, &shape.times);
  l->n_flushes = l->n_micro_batches / shape.n_micro_batches;
  l->orders = orders_repeated (l->orders, l->n_flushes);
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
