/* Automatic zero bubble with one chunk per rank: ZB-1p, ZB-2p and what lies between.
 *
 * Problem. Given F, I, W, comm and a limit of memory, order each rank such that it waits
 * least. Rank r runs c(r) forwards, then pairs (I, F), then the I that are left; the W fill
 * the waits (schedules/zb_fill.c). c(r) = p - r is 1F1B's; every forward more in advance
 * fills the wait for the first I, and costs memory. Search: lines
 * c(r) = min (cap, 1 + (p - 1 - r) slope) for each cap that the memory allows and slopes
 * from 1 to 2.5, each with each rule for the W; then, from the best of these, single c(r),
 * all before or behind a rank, and the rules of ranks are changed while that helps; then
 * single symbols are moved (schedules/zb_search.c).
 *
 *     p = 2, m = 3, F = I = W = 1, memory 2:   c = 2 1, span 10 = 9 + (p - 1)(F + I - W)
 *     rank 0   F0 F1 .  I0 W0 F2 I1 W1 I2 W2
 *     rank 1      F0 I0 F1 I1 W0 F2 I2 W1 W2
 *
 * 1F1B with each W right after its I is tried first, so the result is never later than that.
 *
 * Deviations: sends do not occupy a rank; no integer program.
 *
 * Reference: Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 3.1. */
#include "schedules/zb.h"

#include <string.h>

#define N_SLOPES 13

typedef struct {
  LsZbScore score;
  uint32_t *warmup; /* [p] */
  LsZbRule *rules;  /* [p] */
} Line;

static void
line_clear (gpointer data)
{
  Line *line = data;
  g_free (line->warmup);
  g_free (line->rules);
}

static void
write_string (LsZbSearch *search, const uint32_t *warmup)
{
  const LsZbJob *job = search->run.job;
  for (uint32_t r = 0; r < job->p; r++) {
    uint8_t *at = search->string + r * ls_zb_length (job);
    for (uint32_t k = 0; k < job->m + warmup[r]; k++) {
      if (k >= warmup[r])
        *at++ = LS_ZB_I;
      if (k < job->m)
        *at++ = LS_ZB_F;
    }
    memset (at, LS_ZB_W, job->m);
  }
}

/* 1F1B, each W right after its I: what the result must not be worse than. */
static void
try_1f1b (LsZbSearch *search)
{
  const LsZbJob *job = search->run.job;
  for (uint32_t r = 0; r < job->p; r++) {
    uint32_t warmup = MIN (job->p - r, MIN (job->m, job->limit / ls_zb_takes (job)));
    uint8_t *at = search->string + r * ls_zb_length (job);
    for (uint32_t k = 0; k < job->m + warmup; k++) {
      if (k >= warmup) {
        *at++ = LS_ZB_I;
        *at++ = LS_ZB_W;
      }
      if (k < job->m)
        *at++ = LS_ZB_F;
    }
  }
  ls_zb_try_rules (search, LS_ZB_RULES_FEW);
}

/* ---- from global rules ---- */

static gint
by_score (gconstpointer a, gconstpointer b)
{
  const Line *x = a, *y = b;
  return ls_zb_is_better (x->score, y->score) ? -1 : ls_zb_is_better (y->score, x->score) ? 1 : 0;
}

static void
try_line (LsZbSearch *search, const uint32_t *warmup, GArray *lines)
{
  uint32_t p = search->run.job->p;
  write_string (search, warmup);
  Line best = { .score = ls_zb_try_rules (search, LS_ZB_RULES_IGNORE) };
  if (best.score.span == INT64_MAX)
    return;
  best.warmup = g_memdup2 (warmup, p * sizeof *warmup);
  best.rules = g_memdup2 (search->rules, p * sizeof *search->rules);
  g_array_append_val (lines, best);
}

static void
try_lines (LsZbSearch *search, uint32_t most, int64_t reserve, GArray *lines)
{
  uint32_t p = search->run.job->p;
  g_autofree uint32_t *warmup = g_new (uint32_t, p);
  uint32_t n_caps = MIN (most, 3 * p), step = 1 + n_caps / 32;

  for (uint32_t below = 0; below < n_caps; below += step)
    for (uint32_t q = 0; q < N_SLOPES; q++) {
      if (ls_zb_search_is_over (search) || (lines->len > 0 && search->run.budget < reserve))
        return;
      /* eighths from 1 to 2.5, 1F1B's and ZB-2p's first */
      uint32_t slope = 8 + q * 8 % N_SLOPES;
      for (uint32_t r = 0; r < p; r++)
        warmup[r] = MIN (1 + ((p - 1 - r) * slope + 4) / 8, most - below);
      try_line (search, warmup, lines);
    }
}

/* ---- from one line to a better ---- */

typedef enum { ONE, UP_TO, FROM, N_GROUPS } Group;

static bool
is_in (Group group, uint32_t rank, uint32_t pivot)
{
  return group == ONE ? rank == pivot : group == UP_TO ? rank <= pivot : rank >= pivot;
}

static bool
shift_warmup (Line *to, const Line *from, uint32_t p, Group group, uint32_t pivot, int by, uint32_t most)
{
  for (uint32_t r = 0; r < p; r++) {
    int64_t c = (int64_t) from->warmup[r] + (is_in (group, r, pivot) ? by : 0);
    if (c < 1 || c > most)
      return false;
    to->warmup[r] = (uint32_t) c;
  }
  memcpy (to->rules, from->rules, p * sizeof *to->rules);
  return true;
}

static void
set_rules (Line *to, const Line *from, uint32_t p, Group group, uint32_t pivot, LsZbRule rule)
{
  memcpy (to->warmup, from->warmup, p * sizeof *to->warmup);
  for (uint32_t r = 0; r < p; r++)
    to->rules[r] = is_in (group, r, pivot) ? rule : from->rules[r];
}

static bool
adopt_if_better (LsZbSearch *search, Line *line, const Line *other)
{
  uint32_t p = search->run.job->p;
  write_string (search, other->warmup);
  memcpy (search->rules, other->rules, p * sizeof *search->rules);
  search->run.cutoff = line->score.span;
  LsZbScore score = ls_zb_try (search);
  search->run.cutoff = INT64_MAX;
  if (!ls_zb_is_better (score, line->score))
    return false;
  line->score = score;
  memcpy (line->warmup, other->warmup, p * sizeof *line->warmup);
  memcpy (line->rules, other->rules, p * sizeof *line->rules);
  return true;
}

static bool
climb_at (LsZbSearch *search, Line *line, Line *other, uint32_t pivot, uint32_t most)
{
  uint32_t p = search->run.job->p;
  bool helped = false;
  guint first, n = ls_zb_n_rules (LS_ZB_RULES_IGNORE, &first);

  for (Group group = ONE; group < N_GROUPS; group++) {
    for (int by = -2; by <= 2; by++)
      if (by != 0 && shift_warmup (other, line, p, group, pivot, by, most))
        helped |= adopt_if_better (search, line, other);
    for (guint i = first; i < first + n; i++) {
      set_rules (other, line, p, group, pivot, ls_zb_rules[i]);
      helped |= adopt_if_better (search, line, other);
    }
  }
  return helped;
}

static void
climb (LsZbSearch *search, Line *line, uint32_t most)
{
  uint32_t p = search->run.job->p;
  Line other = { .warmup = g_new (uint32_t, p), .rules = g_new (LsZbRule, p) };

  for (bool helped = true; helped;) {
    helped = false;
    for (uint32_t r = 0; r < p && !ls_zb_search_is_over (search); r++)
      helped |= climb_at (search, line, &other, r, most);
  }
  line_clear (&other);
}

void
ls_zb_search_line (LsZbSearch *search)
{
  const LsZbJob *job = search->run.job;
  uint32_t most = MIN (job->m, job->limit / ls_zb_takes (job));
  int64_t budget = search->run.budget;
  g_autoptr (GArray) lines = g_array_new (FALSE, FALSE, sizeof (Line));
  g_array_set_clear_func (lines, line_clear);

  try_1f1b (search);
  try_lines (search, most, budget * 2 / 3, lines);
  g_array_sort (lines, by_score);
  LsZbScore last = LS_ZB_NEVER;
  for (guint i = 0; i < lines->len && search->run.budget > budget / 8; i++) {
    Line *line = &g_array_index (lines, Line, i);
    LsZbScore start = line->score;
    if (start.span == last.span && start.sum == last.sum)
      continue;
    last = start;
    climb (search, line, most);
  }
  ls_zb_polish_best (search);
}
