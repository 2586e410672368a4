/* exec/spans.c — recording what happened, two steps deep: the reported step and
 * what overlaps its end. */
#include "exec/state.h"

#include <string.h>

void
digest_add (Run *x, LsTime at, uint64_t what)
{
  LsDigest d;
  ls_digest_init (&d);
  ls_digest_u64 (&d, (uint64_t) at);
  ls_digest_u64 (&d, what);
  x->digest += ls_digest_get (&d);
}

static void
begin_step (Run *x, Rank *r, uint32_t step)
{
  uint32_t i = step & 1;
  if (!r->spans[i])
    r->spans[i] = g_new (LsSpan, MAX (1, run_spans_per_step (x, r->program)));
  r->n_spans[i] = 0;
  r->span_step[i] = step + 1;
}

uint32_t
span_add (Run *x, Rank *r, const Frame *f, uint16_t op, LsTime start, LsTime matched, LsTime end,
          LsCause kind, uint32_t cause)
{
  if (x->options->no_spans)
    return LS_SPAN_NONE;
  uint32_t i = f->step & 1;
  if (r->span_step[i] != f->step + 1)
    begin_step (x, r, f->step);
  r->spans[i][r->n_spans[i]] = (LsSpan) {
    .start = start, .end = end, .matched = matched, .instance = f->instance_id, .cause = cause,
    .op = op, .cause_kind = (uint8_t) kind, .step = (uint8_t) f->step,
  };
  return r->n_spans[i]++;
}

LsSpan *
span_at (Rank *r, uint32_t step, uint32_t span)
{
  return span == LS_SPAN_NONE ? NULL : &r->spans[step & 1][span];
}

/* A cause is an index among the spans of its own step; what ended in an earlier
 * step is outside the window. */
static void
copy_spans (LsRankSpans *to, const Rank *r, uint32_t step, LsTime from, LsTime until)
{
  uint32_t i = step & 1, base = to->n;
  if (r->span_step[i] != step + 1)
    return;
  for (uint32_t k = 0; k < r->n_spans[i]; k++) {
    LsSpan s = r->spans[i][k];
    if (s.cause != LS_SPAN_NONE)
      s.cause += base;
    to->spans[to->n++] = s;
  }
}

static void
collect_rank (Run *x, Rank *r, LsRankSpans *to, uint32_t step, LsTime from, LsTime until)
{
  LsCause kind;
  uint32_t span, span_step;
  blocked_by (x, r, &kind, &span, &span_step);
  uint32_t n_first = r->span_step[step & 1] == step + 1 ? r->n_spans[step & 1] : 0;
  uint32_t n_second = r->span_step[(step + 1) & 1] == step + 2 ? r->n_spans[(step + 1) & 1] : 0;
  to->cap = n_first + n_second;
  if (n_second == 0) {
    to->spans = g_steal_pointer (&r->spans[step & 1]);
    to->n = n_first;
  } else {
    to->spans = g_new (LsSpan, to->cap);
    copy_spans (to, r, step, from, until);
    copy_spans (to, r, step + 1, from, until);
  }
  to->tail_cause_kind = (uint8_t) kind;
  to->tail_cause = span == LS_SPAN_NONE ? LS_SPAN_NONE : span_step == step ? span : span_step == step + 1 ? span + n_first : LS_SPAN_NONE;
}

LsTimeline *
spans_collect (Run *x)
{
  LsTimeline *t = g_new0 (LsTimeline, 1);
  uint32_t step = x->last_step;
  t->plan = x->plan;
  t->n_ranks = x->plan->n_ranks;
  t->window_start = step > 0 ? x->step_end[step - 1] : 0;
  t->window_end = x->step_end[step];
  t->first_step = x->step_end[0];
  t->n_steps = step + 1;
  t->is_periodic = x->is_periodic;
  t->ranks = g_new0 (LsRankSpans, t->n_ranks);
  t->multiplicity = g_new (uint32_t, t->n_ranks);
  for (uint32_t i = 0; i < t->n_ranks; i++) {
    t->multiplicity[i] = 1;
    t->ranks[i].tail_cause = LS_SPAN_NONE;
    if (!x->options->no_spans)
      collect_rank (x, &x->ranks[i], &t->ranks[i], step, t->window_start, t->window_end);
  }
  t->n_resources = ls_cluster_n_resources (x->cluster);
  t->resource_bytes = g_new0 (double, t->n_resources);
  comm_count_bytes (x, step, t->resource_bytes);
  for (uint32_t i = 0; i <= step; i++)
    digest_add (x, x->step_end[i], i);
  t->digest = x->digest;
  t->n_events = x->engine.n_events;
  t->n_solves = ls_flow_net_n_solves (x->net);
  t->n_ops = x->n_ops;
  return t;
}
