/* Runs a string of symbols and lets the weight gradients fill the waits.
 *
 * Problem. Where the F and I of each rank are ordered, the W are free: whatever a W delays
 * must be weighed against the wait that it fills. Rule: before a symbol whose input arrives
 * after the rank is free, W that are due run while they fit (or nearly: LsZbRule); before
 * an F for which there is no memory, or an I that keeps more than it frees, they run until there is; the
 * rest runs at the end. A
 * W that the string itself asks for runs there, unless one ran early in its place.
 *
 * All inputs are known when a symbol is placed, as ranks are advanced as far as they go and
 * woken by whoever feeds them: O(1) an action, and the order does not matter.
 *
 *     F = I = 2, W = 1, string F F I I, inputs of the I at 4 and 9:
 *     F 0-2, F 2-4, I 4-6, W 6-7, idle, I 9-11, W 11-12
 *
 * Deviations: as in schedules/sched_eval.h. Reference: Qi et al., Zero Bubble Pipeline
 * Parallelism, ICLR 2024 (W fills the bubbles). */
#include "schedules/zb.h"

void
ls_zb_run_init (LsZbRun *run, const LsZbJob *job, int64_t budget)
{
  size_t n = (size_t) job->p * job->v * job->m;
  *run = (LsZbRun) {
    .job = job,
    .ranks = g_new (LsZbRank, job->p),
    .end = { g_new (LsTime, n), g_new (LsTime, n) },
    .w_chunks = g_new (uint8_t, n),
    .heap = g_new (uint32_t, 2 * (size_t) job->p),
    .work = g_new0 (LsTime, job->p),
    .cutoff = INT64_MAX,
    .budget = budget,
  };
  for (uint32_t s = 0; s < job->p * job->v; s++)
    run->work[ls_zb_rank (job, s)] += job->m * (job->f[s] + job->i[s] + job->w[s]);
}

void
ls_zb_run_clear (LsZbRun *run)
{
  g_free (run->ranks);
  g_free (run->end[0]);
  g_free (run->end[1]);
  g_free (run->w_chunks);
  g_free (run->heap);
  g_free (run->work);
}

void
ls_zb_run_reset (LsZbRun *run)
{
  const LsZbJob *job = run->job;
  size_t n = (size_t) job->p * job->v * job->m;

  for (size_t k = 0; k < n; k++)
    run->end[0][k] = run->end[1][k] = -1;
  for (uint32_t r = 0; r < job->p; r++)
    run->ranks[r] = (LsZbRank) { .first = -1 };
}

LsTime
ls_zb_arrival (const LsZbRun *run, uint32_t rank, uint32_t kind)
{
  const LsZbJob *job = run->job;
  const LsTime *end_f = run->end[0], *end_i = run->end[1];
  uint32_t n_stages = job->p * job->v;
  uint32_t s = ls_zb_stage (job, rank, kind & 1), k = run->ranks[rank].n[kind];
  bool is_f = kind < LS_ZB_I;

  if (is_f && s == 0)
    return 0;
  if (!is_f && end_f[(size_t) s * job->m + k] < 0)
    return -1;
  if (!is_f && s == n_stages - 1)
    return end_f[(size_t) s * job->m + k];

  uint32_t from = is_f ? s - 1 : s + 1;
  LsTime at = (is_f ? end_f : end_i)[(size_t) from * job->m + k];
  return at < 0 || ls_zb_rank (job, from) == rank ? at : at + job->comm;
}

uint32_t
ls_zb_do (LsZbRun *run, uint32_t rank, uint32_t kind, LsTime at)
{
  const LsZbJob *job = run->job;
  LsZbRank *a = &run->ranks[rank];
  uint32_t chunk = kind & 1, s = ls_zb_stage (job, rank, chunk);
  bool is_f = kind < LS_ZB_I;

  if (a->first < 0)
    a->first = at;
  a->t = at + (is_f ? job->f : job->i)[s];
  run->end[!is_f][(size_t) s * job->m + a->n[kind]++] = a->t;
  if (is_f) {
    a->mem += ls_zb_takes (job);
    return s + 1 < job->p * job->v ? ls_zb_rank (job, s + 1) : job->p;
  }
  a->mem = a->mem + ls_zb_kept (job, s) - ls_zb_takes (job);
  run->w_chunks[(size_t) rank * job->v * job->m + a->n_i++] = (uint8_t) chunk;
  return s > 0 ? ls_zb_rank (job, s - 1) : job->p;
}

static uint32_t
next_w_chunk (const LsZbRun *run, uint32_t rank)
{
  return run->w_chunks[(size_t) rank * run->job->v * run->job->m + run->ranks[rank].n_w];
}

void
ls_zb_do_w (LsZbRun *run, uint32_t rank)
{
  LsZbRank *a = &run->ranks[rank];
  uint32_t s = ls_zb_stage (run->job, rank, next_w_chunk (run, rank));
  a->t += run->job->w[s];
  a->n_w++;
  a->mem -= ls_zb_kept (run->job, s);
}

static void
emit (LsZbRun *run, uint32_t rank, uint32_t symbol, uint8_t *out)
{
  if (out)
    out[rank * ls_zb_length (run->job) + run->ranks[rank].n_out++] = (uint8_t) symbol;
}

static void
run_w (LsZbRun *run, uint32_t rank, uint8_t *out)
{
  emit (run, rank, LS_ZB_W + next_w_chunk (run, rank), out);
  ls_zb_do_w (run, rank);
}

/* A W of the string. */
static void
meet_w (LsZbRun *run, uint32_t rank, LsZbRule rule, uint8_t *out)
{
  LsZbRank *a = &run->ranks[rank];
  bool is_drain = a->n[run->job->v - 1] == run->job->m;

  if (rule.obey == LS_ZB_IGNORE || (rule.obey == LS_ZB_OBEY_UNTIL_DRAIN && is_drain))
    return;
  if (a->n_w > a->n_w_seen) {
    a->n_w_seen++;
  } else if (a->n_w < a->n_i) {
    run_w (run, rank, out);
    a->n_w_seen++;
  }
}

/* W before a symbol that takes so much memory, whose input arrives at `at`. */
static void
fill_wait (LsZbRun *run, uint32_t rank, uint32_t needs, LsTime at, uint8_t sixteenths, uint8_t *out)
{
  const LsZbJob *job = run->job;
  LsZbRank *a = &run->ranks[rank];

  while (a->n_w < a->n_i) {
    if (needs == 0 || a->mem + needs <= job->limit) {
      LsTime w = job->w[ls_zb_stage (job, rank, next_w_chunk (run, rank))];
      if (at <= a->t || (double) (at - a->t) * 16 < (double) sixteenths * (double) w)
        return;
    }
    run_w (run, rank, out);
  }
}

static void
push (LsZbRun *run, uint32_t rank, uint32_t *n_stack)
{
  if (!run->ranks[rank].is_queued) {
    run->ranks[rank].is_queued = true;
    run->heap[(*n_stack)++] = rank;
  }
}

/* Advances a rank until an input is not known or its string ends; false if it cannot. */
static bool
advance (LsZbRun *run, uint32_t rank, const uint8_t *string, LsZbRule rule, uint8_t *out, uint32_t *n_stack)
{
  LsZbRank *a = &run->ranks[rank];
  size_t n = ls_zb_length (run->job);

  for (; a->pos < n; a->pos++) {
    uint32_t kind = string[rank * n + a->pos];
    if (kind >= LS_ZB_W) {
      meet_w (run, rank, rule, out);
      continue;
    }
    bool is_f = kind < LS_ZB_I;
    LsTime at = ls_zb_arrival (run, rank, kind);
    if (at < 0)
      return is_f || a->n[kind] < a->n[kind - LS_ZB_I];
    uint32_t needs = ls_zb_needs (run->job, ls_zb_stage (run->job, rank, kind & 1), is_f);
    fill_wait (run, rank, needs, at, rule.sixteenths, out);
    if (is_f && a->mem + needs > run->job->limit)
      return false;
    if (at > a->t && a->first >= 0)
      a->idle += at - a->t;
    if (a->idle > run->cutoff - run->work[rank])
      return false;
    emit (run, rank, kind, out);
    uint32_t next = ls_zb_do (run, rank, kind, MAX (at, a->t));
    if (next < run->job->p && next != rank)
      push (run, next, n_stack);
  }
  return true;
}

LsZbScore
ls_zb_fill (LsZbRun *run, const uint8_t *string, const LsZbRule *rules, uint8_t *out)
{
  const LsZbJob *job = run->job;
  uint32_t n_stack = 0;
  LsZbScore score = { 0, 0 };

  ls_zb_run_reset (run);
  for (uint32_t r = job->p; r-- > 0;)
    push (run, r, &n_stack);
  while (n_stack > 0) {
    uint32_t r = run->heap[--n_stack];
    run->ranks[r].is_queued = false;
    size_t before = run->ranks[r].pos;
    bool is_ok = advance (run, r, string, rules[r], out, &n_stack);
    run->budget -= (int64_t) (run->ranks[r].pos - before);
    if (!is_ok)
      return LS_ZB_NEVER;
  }
  for (uint32_t r = 0; r < job->p; r++) {
    LsZbRank *a = &run->ranks[r];
    if (a->pos < ls_zb_length (job))
      return LS_ZB_NEVER;
    while (a->n_w < a->n_i)
      run_w (run, r, out);
    score.span = MAX (score.span, a->t - a->first);
    score.sum += a->t - a->first;
  }
  return score;
}
