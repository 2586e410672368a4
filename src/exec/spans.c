/* exec/spans.c — recording what happened, two steps deep: the reported step and
 * what overlaps its end. If that would be too much for all ranks, the first rank of
 * each role is recorded and stands for the others (their times are simulated all
 * the same). */
#include "exec/state.h"

#include <math.h>
#include <string.h>

uint64_t
digest_of (uint64_t what)
{
  LsDigest d;
  ls_digest_init (&d);
  ls_digest_u64 (&d, what);
  return ls_digest_get (&d);
}

void
digest_add (Run *x, uint32_t step, LsTime at, uint64_t weight)
{
  uint64_t *sum = x->digest[step & 1], t = (uint64_t) at;
  for (int p = 0; p < N_DIGEST_POWERS; p++, weight *= t)
    sum[p] += weight;
}

/* sum w (t - s)^p, from sum w t^k (binomially): the same wherever the step lies in time. */
static uint64_t
shifted (const uint64_t *sum, int p, uint64_t s)
{
  static const uint64_t binomial[N_DIGEST_POWERS][N_DIGEST_POWERS]
      = { { 1 }, { 1, 1 }, { 1, 2, 1 }, { 1, 3, 3, 1 } };
  uint64_t total = 0, power = 1;
  for (int k = p; k >= 0; k--, power *= -s)
    total += binomial[p][k] * sum[k] * power;
  return total;
}

uint64_t
digest_of_step (const Run *x, uint32_t step)
{
  LsTime start = step > 0 ? x->step_end[step - 1] : 0;
  LsDigest d;
  ls_digest_init (&d);
  ls_digest_u64 (&d, (uint64_t) (x->step_end[step] - start));
  for (int p = 0; p < N_DIGEST_POWERS; p++)
    ls_digest_u64 (&d, shifted (x->digest[step & 1], p, (uint64_t) start));
  return ls_digest_get (&d);
}

static void
begin_step (Run *x, Rank *r, uint32_t step)
{
  uint32_t i = step & 1;
  if (!r->spans[i])
    r->spans[i] = g_new (LsSpan, MAX (1, x->spans_of_role[r->binding->role]));
  r->n_spans[i] = 0;
  r->span_step[i] = step + 1;
}

SpanRef
span_add (Run *x, Rank *r, const Frame *f, uint16_t op, LsTime start, LsTime matched, LsTime end,
          LsCause kind, SpanRef cause)
{
  if (!r->keeps_spans)
    return LS_SPAN_NONE;
  uint32_t i = f->step & 1;
  if (r->span_step[i] != f->step + 1)
    begin_step (x, r, f->step);
  r->spans[i][r->n_spans[i]] = (LsSpan) {
    .start = start,
    .issued = f->time[op],
    .end = end,
    .matched = matched,
    .instance = f->instance_id,
    .cause = span_known (cause, f->step),
    .op = op,
    .cause_kind = (uint8_t) kind,
    .step = (uint8_t) f->step,
  };
  return span_ref (f->step, r->n_spans[i]++);
}

LsSpan *
span_at (Rank *r, SpanRef span)
{
  return span == LS_SPAN_NONE ? NULL : &r->spans[SPAN_PARITY (span)][SPAN_INDEX (span)];
}

/* --- the window ----------------------------------------------------------- */

/* Spans of the reported step come first, then those of the next. What a span of
 * the reported step waited for may lie in the step before: outside the window. */
static uint32_t
index_in_window (SpanRef ref, uint32_t of_step, uint32_t reported, uint32_t n_reported)
{
  if (span_is_of (ref, reported))
    return SPAN_INDEX (ref);
  return of_step == reported || !span_is_of (ref, reported + 1) ? LS_SPAN_NONE
                                                                : SPAN_INDEX (ref) + n_reported;
}

static void
map_causes (LsSpan *spans, uint32_t n, uint32_t step, uint32_t reported, uint32_t n_reported)
{
  for (uint32_t i = 0; i < n; i++)
    spans[i].cause = index_in_window (spans[i].cause, step, reported, n_reported);
}

static uint32_t
n_spans_of (const Rank *r, uint32_t step)
{
  return r->span_step[step & 1] == step + 1 ? r->n_spans[step & 1] : 0;
}

static void
collect_rank (Run *x, Rank *r, LsRankSpans *to, uint32_t reported)
{
  LsCause kind;
  SpanRef span;
  blocked_by (x, r, &kind, &span);
  group_hide_partial_matches (r);
  uint32_t n_reported = n_spans_of (r, reported), n_next = n_spans_of (r, reported + 1);
  to->n = to->cap = n_reported + n_next;
  to->spans = g_renew (LsSpan, g_steal_pointer (&r->spans[reported & 1]), MAX (1, to->n));
  map_causes (to->spans, n_reported, reported, reported, n_reported);
  if (n_next > 0)
    memcpy (to->spans + n_reported, r->spans[(reported + 1) & 1], n_next * sizeof (LsSpan));
  map_causes (to->spans + n_reported, n_next, reported + 1, reported, n_reported);
  to->tail_cause_kind = (uint8_t) kind;
  to->tail_cause = index_in_window (span, reported + 1, reported, n_reported);
}

/* Each class stands for its ranks; where only one rank of each role is recorded, that one
 * for all of its role. */
static void
represent (Run *x, LsTimeline *t)
{
  const Fold *f = x->fold;
  g_autofree uint32_t *first = g_new (uint32_t, x->plan->n_roles); /* class */
  for (uint32_t i = x->plan->n_ranks; i-- > 0;)
    first[x->plan->bindings[i].role] = i;
  for (uint32_t i = 0; i < t->n_ranks; i++) {
    uint32_t class = f->class_of_rank[i];
    if (!x->keeps_all_spans || !x->ranks[class].keeps_spans)
      class = first[x->plan->bindings[class].role];
    t->representative[i] = f->rank[class];
    t->multiplicity[f->rank[class]]++;
  }
}

static double *
count_bytes (const Run *x, uint32_t step)
{
  const Fold *f = x->fold;
  uint32_t n = ls_cluster_n_resources (x->cluster), parity = step & 1;
  g_autofree ExactBytes *of_class = g_new0 (ExactBytes, f->n_resources);
  double *bytes = g_new0 (double, n);
  for (uint32_t i = 0; i < x->plan->n_comms; i++)
    calls_count_bytes (x->comms[i].calls, step, of_class);
  for (uint32_t i = 0; i < 2 * x->plan->n_ranks; i++)
    calls_count_bytes (x->channels[i].calls, step, of_class);
  copies_count_bytes (x, step, of_class);
  for (uint32_t i = 0; i < n; i++) {
    if (f->class_of_resource[i] != UINT32_MAX)
      bytes[i] = ldexp ((double) of_class[f->class_of_resource[i]], -40);
    if (x->message_step[parity] == step + 1)
      bytes[i] += x->message_bytes[parity][i];
  }
  return bytes;
}

LsTimeline *
spans_collect (Run *x)
{
  LsTimeline *t = g_new0 (LsTimeline, 1);
  uint32_t step = x->last_step;
  t->plan = x->fold->plan;
  t->n_ranks = t->plan->n_ranks;
  t->n_classes = x->fold->n_ranks;
  t->window_start = step > 0 ? x->step_end[step - 1] : 0;
  t->window_end = x->step_end[step];
  t->first_step = x->begins_at_quiescence ? 0 : x->step_end[0];
  t->n_steps = step + 1;
  t->is_periodic = x->is_periodic;
  t->ranks = g_new0 (LsRankSpans, t->n_ranks);
  t->multiplicity = g_new0 (uint32_t, t->n_ranks);
  t->representative = g_new (uint32_t, t->n_ranks);
  t->is_sampled = !x->keeps_all_spans;
  represent (x, t);
  for (uint32_t i = 0; i < t->n_ranks; i++)
    t->ranks[i].tail_cause = LS_SPAN_NONE;
  for (uint32_t i = 0; i < x->plan->n_ranks; i++)
    if (x->ranks[i].keeps_spans)
      collect_rank (x, &x->ranks[i], &t->ranks[x->fold->rank[i]], step);
  t->n_resources = ls_cluster_n_resources (x->cluster);
  t->resource_bytes = count_bytes (x, step);
  t->digest = x->last_digest;
  t->n_events = x->engine.n_events;
  t->n_solves = ls_flow_net_n_solves (x->net);
  t->n_ops = x->n_ops;
  t->n_segments = x->n_segments;
  t->n_coarse = x->n_coarse;
  return t;
}
