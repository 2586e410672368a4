/* analysis/breakdown.c — where the time of a rank went: kernels
 * at the time that they take alone, what sharing added to them, and the
 * idle intervals between them as idle.c explains them. Integers throughout, so
 * the parts sum to the window to the picosecond. */
#include "analysis/idle.h"

const char *
ls_part_name (LsPart part)
{
  static const char *const names[LS_N_PARTS] = {
    [LS_PART_FORWARD] = "forward",
    [LS_PART_BACKWARD] = "backward",
    [LS_PART_RECOMPUTE] = "recompute",
    [LS_PART_OPTIMIZER] = "optimizer",
    [LS_PART_SLOWDOWN] = "slowdown",
    [LS_PART_EXPOSED_TP] = "exposed_tp",
    [LS_PART_EXPOSED_DP] = "exposed_dp",
    [LS_PART_EXPOSED_PP] = "exposed_pp",
    [LS_PART_EXPOSED_CP] = "exposed_cp",
    [LS_PART_EXPOSED_EP] = "exposed_ep",
    [LS_PART_EXPOSED_COPY] = "exposed_copy",
    [LS_PART_BUBBLE] = "bubble",
    [LS_PART_SKEW] = "skew",
    [LS_PART_HOST] = "host",
    [LS_PART_OTHER] = "other",
  };
  return names[part];
}

static LsPart
kernel_part (LsTag tag)
{
  static const LsPart parts[LS_N_TAGS] = {
    [LS_TAG_F] = LS_PART_FORWARD,           [LS_TAG_I] = LS_PART_BACKWARD,
    [LS_TAG_W] = LS_PART_BACKWARD,          [LS_TAG_B] = LS_PART_BACKWARD,
    [LS_TAG_RECOMPUTE] = LS_PART_RECOMPUTE, [LS_TAG_OPTIMIZER] = LS_PART_OPTIMIZER,
    [LS_TAG_SYNC] = LS_PART_OPTIMIZER,
  };
  return parts[tag];
}

/* How much of its time alone a kernel has behind it at instant `at`. Rounding
 * down at both edges of a cut makes the pieces of two windows add up. A kernel
 * that never finished ran at full speed as far as anybody knows. */
static LsTime
alone_by (const LsSpan *s, LsTime at)
{
  if (s->end == LS_TIME_NEVER)
    return MIN (at - s->start, s->matched);
  LsTime duration = s->end - s->start;
  if (duration <= s->matched)
    return at - s->start;
  return (LsTime) ((__int128) s->matched * (at - s->start) / duration);
}

void
ls_kernel_times_parts (const LsTimeline *t, uint32_t rank, const GArray *kernels, LsTime parts[LS_N_PARTS])
{
  for (guint i = 0; i < kernels->len; i++) {
    const LsKernelTime *k = &g_array_index (kernels, LsKernelTime, i);
    const LsSpan *s = &t->ranks[rank].spans[k->span];
    LsTime from = MAX (k->from, t->window_start), to = MIN (k->to, t->window_end);
    if (from >= to)
      continue;
    LsTime alone = alone_by (s, to) - alone_by (s, from);
    parts[kernel_part (ls_span_op (t, rank, s)->tag)] += alone;
    parts[LS_PART_SLOWDOWN] += to - from - alone;
  }
}

static void
add_idle (const LsIdlePiece *piece, void *data)
{
  ((LsTime *) data)[piece->part] += piece->to - piece->from;
}

void
ls_breakdown_rank (const LsTimeline *t, uint32_t rank, LsTime ret_rank[LS_N_PARTS])
{
  LsTime parts[LS_N_PARTS] = { 0 };
  g_autoptr (GArray) kernels = ls_kernel_times_new (t, rank);
  ls_kernel_times_parts (t, rank, kernels, parts);
  ls_idle_each (t, rank, kernels, add_idle, parts);

  LsTime sum = 0;
  for (int part = 0; part < LS_N_PARTS; part++) {
    sum += parts[part];
    ret_rank[part] = parts[part];
  }
  g_assert_cmpint (sum, ==, t->window_end - t->window_start);
}

void
ls_breakdown (const LsTimeline *t, LsTime ret_sum[LS_N_PARTS])
{
  for (int part = 0; part < LS_N_PARTS; part++)
    ret_sum[part] = 0;
  for (uint32_t rank = 0; rank < t->n_ranks; rank++) {
    if (t->multiplicity[rank] == 0)
      continue;
    LsTime parts[LS_N_PARTS];
    ls_breakdown_rank (t, rank, parts);
    for (int part = 0; part < LS_N_PARTS; part++)
      ret_sum[part] += parts[part] * t->multiplicity[rank];
  }
}
