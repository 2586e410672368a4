/* The best order so far of an automatic schedule, and small moves that better it.
 *
 * Problem. The rules by which strings are made are global; what is left is local: one
 * symbol too early on one rank. Moves: a symbol goes up to three places later or earlier
 * in its rank's string; a rank takes another rule for its W. A move stays if the largest
 * span falls, or the sum of the spans at the same largest. The moves go on until none
 * helps, the goal is reached or the budget of timed actions is used up: a count, not a
 * clock, so that the result is the same everywhere.
 *
 *     rank 1   F0 F1 I0 ...   ->   F0 I0 F1 ...   if rank 0 waits for I0
 *
 * Deviation: a local optimum; no bound tells how far from the best order. Reference: the
 * neighbourhoods of job-shop scheduling (Nowicki, Smutnicki 1996), here with swaps on
 * all ranks, not only on the critical path. */
#include "schedules/zb.h"

#include <string.h>

#define LS_ZB_MAX_MOVE 3

const LsZbRule ls_zb_rules[] = {
  { LS_ZB_OBEY, 16 },
  { LS_ZB_OBEY_UNTIL_DRAIN, 16 },
  { LS_ZB_OBEY_UNTIL_DRAIN, 8 },
  { LS_ZB_OBEY_UNTIL_DRAIN, 12 },
  { LS_ZB_OBEY_UNTIL_DRAIN, 4 },
  { LS_ZB_OBEY, 12 },
  { LS_ZB_OBEY, 8 },
  { LS_ZB_OBEY, 4 },
  { LS_ZB_IGNORE, 16 },
  { LS_ZB_IGNORE, 12 },
  { LS_ZB_IGNORE, 8 },
  { LS_ZB_IGNORE, 4 },
  { LS_ZB_IGNORE, 1 },
};

guint
ls_zb_n_rules (LsZbRules which, guint *ret_first)
{
  *ret_first = which == LS_ZB_RULES_IGNORE ? 8 : 0;
  return which == LS_ZB_RULES_FEW ? 3 : G_N_ELEMENTS (ls_zb_rules) - *ret_first;
}

void
ls_zb_search_init (LsZbSearch *search, const LsZbJob *job, int64_t budget)
{
  size_t n = job->p * ls_zb_length (job);
  *search = (LsZbSearch) {
    .best = LS_ZB_NEVER,
    .best_string = g_new (uint8_t, n),
    .string = g_new (uint8_t, n),
    .best_rules = g_new0 (LsZbRule, job->p),
    .rules = g_new0 (LsZbRule, job->p),
  };
  ls_zb_run_init (&search->run, job, budget);
  for (uint32_t r = 0; r < job->p; r++)
    search->goal = MAX (search->goal, search->run.work[r]);
}

void
ls_zb_search_clear (LsZbSearch *search)
{
  ls_zb_run_clear (&search->run);
  g_free (search->best_string);
  g_free (search->string);
  g_free (search->best_rules);
  g_free (search->rules);
}

bool
ls_zb_search_is_over (const LsZbSearch *search)
{
  return search->best.span <= search->goal || search->run.budget <= 0;
}

LsZbScore
ls_zb_try (LsZbSearch *search)
{
  const LsZbJob *job = search->run.job;
  LsZbScore score = ls_zb_fill (&search->run, search->string, search->rules, NULL);

  if (ls_zb_is_better (score, search->best)) {
    search->best = score;
    memcpy (search->best_string, search->string, job->p * ls_zb_length (job));
    memcpy (search->best_rules, search->rules, job->p * sizeof *search->rules);
  }
  return score;
}

LsZbScore
ls_zb_try_rules (LsZbSearch *search, LsZbRules which)
{
  LsZbScore best = LS_ZB_NEVER;
  guint first, n = ls_zb_n_rules (which, &first), chosen = first;

  for (guint i = first; i < first + n; i++) {
    for (uint32_t r = 0; r < search->run.job->p; r++)
      search->rules[r] = ls_zb_rules[i];
    LsZbScore score = ls_zb_try (search);
    if (ls_zb_is_better (score, best)) {
      best = score;
      chosen = i;
    }
  }
  for (uint32_t r = 0; r < search->run.job->p; r++)
    search->rules[r] = ls_zb_rules[chosen];
  return best;
}

/* ---- moves ---- */

static bool
is_uniform (const uint8_t *at, uint32_t n)
{
  for (uint32_t k = 1; k < n; k++)
    if (at[k] != at[0])
      return false;
  return true;
}

static void
move_first_to_last (uint8_t *at, uint32_t n)
{
  uint8_t first = at[0];
  memmove (at, at + 1, n - 1);
  at[n - 1] = first;
}

static void
move_last_to_first (uint8_t *at, uint32_t n)
{
  uint8_t last = at[n - 1];
  memmove (at + 1, at, n - 1);
  at[0] = last;
}

static bool
keeps (LsZbSearch *search, LsZbScore *current)
{
  search->run.cutoff = current->span;
  LsZbScore score = ls_zb_try (search);
  search->run.cutoff = INT64_MAX;
  if (!ls_zb_is_better (score, *current))
    return false;
  *current = score;
  return true;
}

/* Both moves over n places; whether one helped. */
static bool
try_moves (LsZbSearch *search, LsZbScore *current, uint8_t *at, uint32_t n)
{
  if (is_uniform (at, n))
    return false;
  move_first_to_last (at, n);
  if (keeps (search, current))
    return true;
  move_last_to_first (at, n);
  if (n == 2)
    return false;
  move_last_to_first (at, n);
  if (keeps (search, current))
    return true;
  move_first_to_last (at, n);
  return false;
}

static bool
polish_strings (LsZbSearch *search, LsZbScore *current)
{
  const LsZbJob *job = search->run.job;
  size_t length = ls_zb_length (job);
  bool helped = false;

  for (uint32_t n = 2; n <= LS_ZB_MAX_MOVE + 1; n++)
    for (uint32_t r = 0; r < job->p; r++)
      for (size_t k = 0; k + n <= length && !ls_zb_search_is_over (search); k++)
        helped |= try_moves (search, current, search->string + r * length + k, n);
  return helped;
}

static bool
polish_rules (LsZbSearch *search, LsZbScore *current)
{
  bool helped = false;
  guint first, n = ls_zb_n_rules (LS_ZB_RULES_ALL, &first);

  for (uint32_t r = 0; r < search->run.job->p; r++)
    for (guint i = first; i < first + n && !ls_zb_search_is_over (search); i++) {
      LsZbRule before = search->rules[r];
      search->rules[r] = ls_zb_rules[i];
      if (keeps (search, current))
        helped = true;
      else
        search->rules[r] = before;
    }
  return helped;
}

void
ls_zb_polish (LsZbSearch *search)
{
  LsZbScore current = ls_zb_try (search);
  bool helped = current.span < INT64_MAX;

  while (helped && !ls_zb_search_is_over (search)) {
    helped = polish_rules (search, &current);
    helped |= polish_strings (search, &current);
  }
}

void
ls_zb_polish_best (LsZbSearch *search)
{
  const LsZbJob *job = search->run.job;
  memcpy (search->string, search->best_string, job->p * ls_zb_length (job));
  memcpy (search->rules, search->best_rules, job->p * sizeof *search->rules);
  ls_zb_polish (search);
}
