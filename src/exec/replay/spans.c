/* exec/replay/spans.c — recording what happened, two steps deep: the reported step and
 * what overlaps its end. If that would be too much for all ranks, the first rank of
 * each role is recorded and stands for the others (their times are simulated all
 * the same).
 *
 * Which step is reported is known when it is over. The first of several never is: no step
 * before it could be as it was (replay.c). Of it only the last spans are kept, those of a
 * segment, which a hook may read when it is over; they take the places of earlier
 * ones, so that its memory is written again and again. */
#include "exec/replay/state.h"

void
digest_add (XJob *job, uint32_t step, LsTime at, uint64_t weight)
{
  uint64_t *sum = job->digest[step & 1], t = (uint64_t) at;
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
digest_of_step (const XJob *job, uint32_t step)
{
  LsTime start = step > 0 ? job->step_end[step - 1] : job->start;
  LsDigest d;
  ls_digest_init (&d);
  ls_digest_u64 (&d, (uint64_t) (job->step_end[step] - start));
  for (int p = 0; p < N_DIGEST_POWERS; p++)
    ls_digest_u64 (&d, shifted (job->digest[step & 1], p, (uint64_t) start));
  return ls_digest_get (&d);
}

static bool
may_be_reported (const Run *x, uint32_t step)
{
  return step > 0 || x->n_steps == 1;
}

/* What ranks have begun of the step behind it joins a reported one (timeline.c): room for it. */
static size_t
room_of (const Run *x, const Rank *r)
{
  size_t n = x->spans_of_role[r->binding->role];
  return n + n / 8 + 1;
}

/* A step that is kept as a whole begins with room for an eighth of it: of the one behind the last, ranks only
 * do the beginning. */
static void
begin_step (Run *x, Rank *r, uint32_t step)
{
  uint32_t i = step & 1, mask = may_be_reported (x, step) ? UINT32_MAX : x->last_spans - 1;
  if (!r->spans[i] || r->span_mask[i] != mask) {
    g_free (r->spans[i]);
    r->span_mask[i] = mask;
    r->span_room[i] = mask == UINT32_MAX ? (uint32_t) (room_of (x, r) / 8 + 1) : UINT32_MAX;
    r->spans[i] = g_new (LsSpan, mask == UINT32_MAX ? r->span_room[i] : x->last_spans);
  }
  g_assert (step + 1 > r->span_step[i]);
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
  if (G_UNLIKELY (r->n_spans[i] == r->span_room[i]))
    r->spans[i] = g_renew (LsSpan, r->spans[i], r->span_room[i] = (uint32_t) room_of (x, r));
  r->spans[i][r->n_spans[i] & r->span_mask[i]] = (LsSpan) {
    .start = start,
    .issued = f->issued[op],
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
  if (span == LS_SPAN_NONE)
    return NULL;
  uint32_t i = SPAN_PARITY (span), index = SPAN_INDEX (span), mask = r->span_mask[i];
  return r->n_spans[i] - index - 1 > mask ? NULL : &r->spans[i][index & mask];
}

bool
spans_skip (Run *x, Rank *r, uint32_t step, uint32_t n, uint32_t *ret_first)
{
  uint32_t i = step & 1;
  if (!r->keeps_spans || may_be_reported (x, step))
    return false;
  if (r->span_step[i] != step + 1)
    begin_step (x, r, step);
  *ret_first = r->n_spans[i];
  r->n_spans[i] += n;
  return true;
}
