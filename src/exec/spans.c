/* exec/spans.c — recording what happened, two steps deep: the reported step and
 * what overlaps its end. If that would be too much for all ranks, the first rank of
 * each role is recorded and stands for the others (their times are simulated all
 * the same). */
#include "base/digest.h"
#include "exec/rank.h"
#include "exec/state.h"

uint64_t
digest_of (uint64_t what)
{
  LsDigest d;
  ls_digest_init (&d);
  ls_digest_u64 (&d, what);
  return ls_digest_get (&d);
}

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
