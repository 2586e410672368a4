/* lower/layers/lower_shared.c — shared experts beside the exchange of tokens, on a stream of their own, as
 * Megatron-LM's moe_shared_expert_overlap has them (core/transformer/moe, shared_experts.py and
 * token_dispatcher.py, 2026):
 *
 *     forward     compute    router  permute |          | sort  experts  sort |         | unpermute  add
 *                 exchange                   | dispatch |                     | combine |
 *                 shared             gather  | fc1  act |                     | fc2  scatter
 *
 *     backward    compute    unpermute |         | sort  experts  sort |          | permute  router  add
 *                 exchange             | combine |                     | dispatch |
 *                 shared               | gather  fc2                   | act  fc1  scatter
 *
 * A piece begins when all that the compute stream has before the exchange is over, is issued behind the
 * exchange, and nothing waits for it but `add`. gather and scatter, with sequence parallelism, are over tp;
 * the gathered input is kept, so that the backward gathers none. With DeepEP, Megatron-LM's flex dispatcher,
 * the first gather is behind dispatch.
 *
 * A GPU runs one kernel at a time: one of the compute stream that gets ready while a shared expert's runs
 * waits for it (exec/replay/rank.c).
 *
 * Deviation. With sequence parallelism, where the gathered input is kept, the output of the norm before it
 * stays too, also with the recompute part norm. */
#include "lower/layers/lower_layers.h"

/* From here on kernels are on their stream; the first waits for all that computes so far. What the compute
 * stream has joined is returned. */
static GArray *
enter (Build *b)
{
  LsDep compute = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  GArray *joins = b->next_deps;
  b->next_deps = g_array_copy (joins);
  g_array_append_val (b->next_deps, compute);
  b->stream = LS_STREAM_SHARED;
  return joins;
}

static void
leave (Build *b, GArray *joins)
{
  if (b->next_deps->len > 0)
    build_barrier (b);
  g_array_unref (b->next_deps);
  b->next_deps = joins;
  b->stream = LS_STREAM_COMPUTE;
}

static void
gather_beside (Build *b, const SharedExperts *s)
{
  if (b->l->shard.sends_tokens_once || !b->l->shard.sp)
    return;
  GArray *joins = enter (b);
  build_gather (b, s->c, s->first, s->tag);
  leave (b, joins);
}

static void
build_one (Build *b, const SharedExperts *s, guint i)
{
  if (s->pass != LS_ACTION_F) {
    build_backward_here (b, s->c, i, s->pass);
    return;
  }
  if (b->l->shard.sends_tokens_once)
    build_gather (b, s->c, i, s->tag);
  build_forward_here (b, s->c, i, s->tag, s->keeps);
}

static void
operators_beside (Build *b, const SharedExperts *s, LsBeside beside)
{
  guint end = s->first;
  while (runs_beside (s->c, end))
    end++;
  GArray *joins = enter (b);
  for (guint k = 0; k < end - s->first; k++) {
    guint i = s->pass == LS_ACTION_F ? s->first + k : end - 1 - k;
    if (operator_at (s->c, i)->beside == beside)
      build_one (b, s, i);
  }
  leave (b, joins);
}

void
build_shared_beside (Build *b, LsBeside what)
{
  const SharedExperts s = b->shared;
  if (what == LS_BESIDE_GATHER)
    gather_beside (b, &s);
  else
    operators_beside (b, &s, what);
}
