/* lower/pipeline/lower_pipedream.c — PipeDream's program: 1F1B without a flush, with weight stashing.
 *
 * Stage s of p keeps w = p - 1 - s micro-batches ahead of the one whose backward it runs, for
 * ever: forwards of the next step fill what a flush would leave idle. So the first step begins
 * with what no other has, w forwards, and a step is
 *
 *     for k = 0 .. m - 1:   F (k + w, modulo m)   B (k)   update of the weights
 *
 * The backward runs with the weights of its forward: of 16-bit weights there are w + 1 = p - s
 * versions; gradients and the optimizer's state are there once. With data parallelism the
 * gradients of each micro-batch are reduced before its update. There is no norm over stages.
 *
 * p2p is in the background, as PipeDream's helper threads do it: a send follows its pass, a
 * forward's receive is posted behind the forward before it, a backward's before the forward
 * beside it, each on the stream of its channel, and the compute stream waits for what it
 * consumes. Ranks then send and receive the same number of messages in each step: rank s has
 * sent w of them ahead, which is w - 1 forwards of rank s + 1 and its first receive.
 *
 * Deviations: versions are switched by pointer; the code of the paper copies them. The optimizer
 * is Adam, as everywhere here.
 *
 * Reference: Narayanan et al., PipeDream: Generalized Pipeline Parallelism for DNN Training,
 * SOSP 2019. */
#include "lower/pipeline/lower_pipe.h"
#include "lower/lower_step.h"
#include "lower/pipeline/lower_order.h"

static bool
has_prev (const Pipe *p)
{
  return p->rank > 0;
}

static bool
has_next (const Pipe *p)
{
  return p->rank + 1 < p->shape.pp;
}

static void
post (Pipe *p, bool is_send, bool is_next, bool is_gradient, uint32_t mb)
{
  Post what = { .is_send = is_send, .is_next = is_next, .is_gradient = is_gradient, .mb = mb };
  if (is_next ? has_next (p) : has_prev (p))
    pipe_add (p, segment_post (p->l, &what), mb, 0);
}

/* The compute stream waits for the last receive on a stream. */
static void
await (Pipe *p, LsStream stream, uint32_t mb)
{
  g_autofree char *name = g_strdup_printf ("wait for %s", ls_stream_name (stream));
  Build b;
  if (build_reuses (&b, p->l, name)) {
    pipe_add (p, b.segment, mb, 0);
    return;
  }
  build_join_stream (&b, stream);
  pipe_add (p, build_finish (&b, name), mb, 0);
}

/* And receives what the next forward needs. */
static void
forward (Pipe *p, const LsAction *action)
{
  if (has_prev (p))
    await (p, LS_STREAM_PP_FWD_RECV, action->mb);
  pipe_add_action (p, action);
  post (p, true, true, false, action->mb);
  post (p, false, false, false, (action->mb + 1) % p->shape.n_micro_batches);
}

static void
backward (Pipe *p, const LsAction *action)
{
  if (has_next (p))
    await (p, LS_STREAM_PP_BWD_RECV, action->mb);
  pipe_add (p, segment_step_begin (p->l, p->rank), action->mb, 0);
  pipe_add_action (p, action);
  post (p, true, false, true, action->mb);
  pipe_add (p, segment_step_end (p->l, p->rank), action->mb, 0);
}

/* Of each type, by micro-batch. */
static const LsAction **
actions_of (const Pipe *p, LsActionType type)
{
  const LsAction **all = g_new (const LsAction *, p->shape.n_micro_batches);
  for (guint i = 0; i < p->actions->len; i++)
    if (pipe_action (p, i)->type == type)
      all[pipe_action (p, i)->mb] = pipe_action (p, i);
  return all;
}

void
pipe_pipedream (Pipe *p)
{
  uint32_t m = p->shape.n_micro_batches, w = p->l->sched->n_versions (&p->shape, p->rank) - 1;
  g_autofree const LsAction **forwards = actions_of (p, LS_ACTION_F),
                            **backwards = actions_of (p, LS_ACTION_B);
  post (p, false, false, false, 0);
  for (uint32_t k = 0; k < w; k++)
    forward (p, forwards[k]);
  p->n_lead = p->instances->len;
  for (uint32_t k = 0; k < m; k++) {
    post (p, false, true, true, k);
    forward (p, forwards[(k + w) % m]);
    backward (p, backwards[k]);
  }
}
