#include "exec/replay/timeline.h"

#include <math.h>
#include <string.h>

#include "exec/replay/state.h"

void
ls_timeline_free (LsTimeline *t)
{
  if (t)
    ls_arena_free (t->arena);
}

/* UINT32_MAX: another stands for that rank. O(log rows). */
static uint32_t
row_of (const LsTimeline *t, uint32_t rank)
{
  uint32_t from = 0, to = t->n_rows;
  if (!t->rank_of_row)
    return rank;
  while (from < to) {
    uint32_t mid = from + (to - from) / 2;
    if (t->rank_of_row[mid] < rank)
      from = mid + 1;
    else
      to = mid;
  }
  return from < t->n_rows && t->rank_of_row[from] == rank ? from : UINT32_MAX;
}

const LsRankSpans *
ls_timeline_spans (const LsTimeline *t, uint32_t rank)
{
  static const LsRankSpans none = { .tail_cause = LS_SPAN_NONE };
  uint32_t row = row_of (t, rank);
  return row == UINT32_MAX ? &none : &t->ranks[row];
}

uint32_t
ls_timeline_multiplicity (const LsTimeline *t, uint32_t rank)
{
  uint32_t row = row_of (t, rank);
  return row == UINT32_MAX ? 0 : t->multiplicity[row];
}

const LsInstance *
ls_span_instance (const LsTimeline *t, uint32_t rank, const LsSpan *span)
{
  return &t->plan->programs[ls_plan_role (t->plan, rank)].instances[span->instance];
}

const LsOp *
ls_span_op (const LsTimeline *t, uint32_t rank, const LsSpan *span)
{
  return &t->plan->segments[ls_span_instance (t, rank, span)->segment].ops[span->op];
}

const char *
ls_span_name (const LsTimeline *t, uint32_t rank, const LsSpan *span)
{
  const LsOp *op = ls_span_op (t, rank, span);
  if (op->name)
    return op->name;
  if (ls_op_has (op->kind, LS_HAS_KERNEL) && op->kernel != UINT32_MAX)
    return t->plan->kernels[op->kernel].name;
  if (ls_op_has (op->kind, LS_HAS_CALL))
    return ls_coll_kind_name ((LsCollKind) op->coll);
  return ls_op_is_of_host (op->kind) ? "host" : ls_op_kind_names[op->kind].name;
}

const char *const ls_cause_names[] = {
  [LS_CAUSE_NONE] = "none",
  [LS_CAUSE_STREAM] = "stream",
  [LS_CAUSE_DEP] = "dep",
  [LS_CAUSE_HOST] = "host",
};

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
collect_rank (Run *x, Rank *r, LsRankSpans *to, uint32_t reported, LsArena *arena)
{
  LsCause kind;
  SpanRef span;
  blocked_by (x, r, &kind, &span);
  group_hide_partial_matches (r);
  uint32_t n_reported = n_spans_of (r, reported), n_next = n_spans_of (r, reported + 1);
  to->n = to->cap = n_reported + n_next;
  to->spans = g_renew (LsSpan, g_steal_pointer (&r->spans[reported & 1]), MAX (1, to->n));
  ls_arena_own (arena, to->spans, g_free);
  map_causes (to->spans, n_reported, reported, reported, n_reported);
  if (n_next > 0)
    memcpy (to->spans + n_reported, r->spans[(reported + 1) & 1], n_next * sizeof (LsSpan));
  map_causes (to->spans + n_reported, n_next, reported + 1, reported, n_reported);
  if (x->options.checks)
    run_check_spans (to);
  to->tail_cause_kind = (uint8_t) kind;
  to->tail_cause = index_in_window (span, reported + 1, reported, n_reported);
}

/* Each class stands for its ranks; where only one rank of each role is recorded, that one
 * for all of its role. */
static void
represent (Run *x, LsTimeline *t)
{
  Whole *w = x->whole;
  g_autofree uint32_t *first = g_new (uint32_t, x->plan->n_roles); /* class */
  g_autofree uint32_t *n_of_class = g_new0 (uint32_t, t->n_classes + 1);
  uint32_t n_ranks = 0;
  t->rank_of_class = ls_arena_new_array (t->arena, uint32_t, t->n_classes + 1);
  for (uint32_t i = t->n_classes; i-- > 0;)
    first[ls_plan_role (x->plan, i)] = i;
  for (uint32_t i = 0; i < t->n_classes; i++) {
    bool stands = x->keeps_all_spans && x->ranks[i].keeps_spans;
    uint32_t class = stands ? i : first[ls_plan_role (x->plan, i)];
    t->rank_of_class[i] = whole_rank (w, class);
    n_of_class[class] += whole_n_of_rank (w, i);
  }
  t->classes = ls_arena_own (t->arena, g_steal_pointer (&w->classes), (GDestroyNotify) ls_rank_classes_free);
  t->rank_of_row = ls_arena_new_array (t->arena, uint32_t, t->n_classes + 1);
  t->ranks = ls_arena_new_array (t->arena, LsRankSpans, t->n_classes + 1);
  t->multiplicity = ls_arena_new_array (t->arena, uint32_t, t->n_classes + 1);
  for (uint32_t i = 0; i < t->n_classes; i++) {
    if (n_of_class[i] == 0)
      continue;
    t->rank_of_row[t->n_rows] = whole_rank (w, i);
    t->ranks[t->n_rows].tail_cause = LS_SPAN_NONE;
    t->multiplicity[t->n_rows++] = n_of_class[i];
    n_ranks += n_of_class[i];
  }
  g_assert (n_ranks == t->n_ranks);
  if (t->n_rows == t->n_ranks)
    t->rank_of_row = NULL;
}

double
ls_timeline_bytes (const LsTimeline *t, uint32_t resource)
{
  if (!t->places)
    return t->resource_bytes[resource];
  uint32_t class = place_classes_of (t->places, resource);
  return class == NO_CLASS ? 0 : t->bytes_at[class];
}

const uint32_t *
ls_timeline_places (const LsTimeline *t)
{
  return t->places && t->places->at.n_hosts > 1 ? t->places->class_of_place : NULL;
}

/* What one of each class carries, newly allocated: [classes of resources]. */
static double *
bytes_of_classes (const Run *x, const XJob *job, uint32_t step)
{
  uint32_t n = x->whole->n_resources;
  g_autofree ExactBytes *of_class = g_new0 (ExactBytes, n);
  double *bytes = g_new (double, n);
  for (uint32_t i = 0; i < x->plan->n_comms; i++)
    if (x->ranks[ls_plan_member (x->plan, i, 0)].job == job)
      calls_count_bytes (x->comms[i].calls, step, of_class);
  for (uint32_t i = 0; i < x->plan->n_ranks; i++) {
    bool is_own = x->ranks[i].job == job;
    for (uint32_t k = 0; k < 2 && is_own; k++)
      calls_count_bytes (x->channels[2 * i + k].calls, step, of_class);
    for (uint32_t k = 0; k < LS_N_COPY_DIRECTIONS && is_own; k++)
      calls_count_bytes (x->copies[LS_N_COPY_DIRECTIONS * i + k].calls, step, of_class);
  }
  for (uint32_t c = 0; c < n; c++)
    bytes[c] = ldexp ((double) of_class[c], -40);
  return bytes;
}

double *
timeline_count_bytes (const Run *x, const XJob *job, uint32_t step)
{
  uint32_t n = ls_cluster_n_resources (x->cluster);
  double *bytes = bytes_of_classes (x, job, step);
  const PlaceClasses *places = x->whole->places;
  if (places) {
    g_autofree double *of_class = bytes;
    bytes = g_new (double, n);
    for (uint32_t i = 0; i < n; i++) {
      uint32_t class = place_classes_of (places, i);
      bytes[i] = class == NO_CLASS ? 0 : of_class[class];
    }
  }
  if (x->hooks.add_bytes)
    x->hooks.add_bytes (x, step, bytes);
  return bytes;
}

/* By class where classes are places: a cluster has many resources. Then nothing goes message by message. */
static void
collect_bytes (Run *x, const XJob *job, uint32_t step, LsTimeline *t)
{
  t->n_resources = ls_cluster_n_resources (x->cluster);
  if (x->whole->places) {
    t->bytes_at = ls_arena_own (t->arena, bytes_of_classes (x, job, step), g_free);
    t->places
        = ls_arena_own (t->arena, g_steal_pointer (&x->whole->places), (GDestroyNotify) place_classes_free);
  } else {
    t->resource_bytes = ls_arena_own (t->arena, timeline_count_bytes (x, job, step), g_free);
  }
}

LsTimeline *
timeline_collect (Run *x)
{
  LsArena *arena = ls_arena_new ();
  LsTimeline *t = ls_arena_new_array (arena, LsTimeline, 1);
  uint32_t step = x->last_step;
  const XJob *job = x->jobs;
  t->arena = arena;
  t->plan = x->whole->plan;
  t->n_ranks = t->plan->n_ranks;
  t->n_classes = x->plan->n_ranks;
  t->window_start = step > 0 ? job->step_end[step - 1] : 0;
  t->window_end = job->step_end[step];
  g_assert (t->window_end >= t->window_start && job->step_n_done[step] == job->n_ranks);
  t->first_step = x->begins_late ? 0 : job->step_end[0];
  t->n_steps = step + 1;
  t->is_periodic = x->is_periodic;
  t->is_sampled = !x->keeps_all_spans;
  represent (x, t);
  for (uint32_t i = 0; i < x->plan->n_ranks; i++)
    if (x->ranks[i].keeps_spans)
      collect_rank (x, &x->ranks[i], &t->ranks[row_of (t, whole_rank (x->whole, i))], step, arena);
  collect_bytes (x, job, step, t);
  t->digest = job->last_digest;
  t->n_events = x->engine.n_events;
  t->n_solves = ls_flow_net_n_solves (x->net);
  t->n_ops = x->n_ops;
  t->n_segments = x->n_segments;
  return t;
}
