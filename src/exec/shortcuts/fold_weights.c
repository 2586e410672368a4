/* exec/shortcuts/fold_weights.c — by what the members of a class count in the digest.
 *
 * Problem. The digest is a sum of weights times powers of times (replay/spans.h), so a class counts by the
 * sum of the weights of all its ranks, as they do one by one. A million ranks have a few classes, in long
 * runs: a sum over a run must not take each of them.
 *
 * Equation. The weight of rank r for a thing of kind w is a product of two words that look random,
 *
 *     weight (r, w) = f(r / B, w) g(r mod B),  B = 4096, f and g of SplitMix64,
 *
 * so the ranks from a up to b - 1 sum up to
 *
 *     G(b') f(b / B, w) - G(a') f(a / B, w) + G(B) sum of f(k, w) over a / B <= k < b / B,
 *     where G(i) = g(0) + ... + g(i - 1), a' = a mod B, b' = b mod B.
 *
 * Two ranks that change places differ in the sum, as in a sum of single words; four in a rectangle of two
 * blocks do too, by (f - f') (g - g').
 *
 * Worked example. Ranks 4,000 to 9,000, B = 4096: G(808) f(2) - G(4000) f(0) + G(4096) (f(0) + f(1)): that is
 * 96 of block 0, all of block 1 and 808 of block 2, where 9,000 itself is left out.
 *
 * Reference. Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014. */
#include "exec/shortcuts/fold.h"
#include "exec/shortcuts/shapes.h"
#include "exec/replay/state.h"

/* What the ranks of a role do, to the next and to the previous. */
typedef struct {
  bool sends[2], copies;
} RoleWork;

typedef struct {
  Fold *f;
  RoleWork *works; /* [roles] */
  uint64_t *sum;   /* [n + 1] G (i), of the n ranks of a block, or of all if these are fewer */
} Weights;

static RoleWork *
role_works_new (const LsPlan *plan, const RoleCalls *roles)
{
  RoleWork *works = g_new0 (RoleWork, plan->n_roles + 1);
  for (uint32_t r = 0; r < plan->n_roles; r++) {
    for (int d = 0; d < LS_N_COPY_DIRECTIONS; d++)
      works[r].copies = works[r].copies || roles[r].id[COPIES + d] != 0;
    for (int p = 0; p < 2; p++)
      works[r].sends[p] = roles[r].id[SENDS + 1 - p] != 0;
  }
  return works;
}

static uint64_t *
sums_new (uint32_t n_ranks)
{
  uint32_t n = MIN (n_ranks, DIGEST_RANKS_PER_BLOCK);
  uint64_t *sum = g_new (uint64_t, (gsize) n + 1);
  sum[0] = 0;
  for (uint32_t i = 0; i < n; i++)
    sum[i + 1] = sum[i] + digest_word_of_rank (i);
  return sum;
}

/* Of ranks that follow each other: from the first up to the one before `end`. */
static uint64_t
weight_of (const Weights *w, uint64_t what, uint32_t first, uint32_t end)
{
  uint32_t block = first / DIGEST_RANKS_PER_BLOCK, last = end / DIGEST_RANKS_PER_BLOCK;
  uint64_t sum = -w->sum[first % DIGEST_RANKS_PER_BLOCK] * digest_word_of_block (what, block);
  for (; block < last; block++)
    sum += w->sum[DIGEST_RANKS_PER_BLOCK] * digest_word_of_block (what, block);
  return sum + w->sum[end % DIGEST_RANKS_PER_BLOCK] * digest_word_of_block (what, last);
}

/* Those of a role are of one stage, so in a mesh their neighbours are at one distance. */
static uint32_t
end_of_alike (const Fold *f, uint32_t first)
{
  const LsPlan *plan = f->whole.plan;
  return plan->bindings
      ? first + 1
      : MIN (ls_plan_end_of_role (plan, first), ls_rank_classes_end (f->whole.classes, first));
}

/* Returns the first behind those that are alike. */
static uint32_t
weigh_alike (Weights *w, uint32_t first)
{
  Fold *f = w->f;
  const RoleWork *work = &w->works[ls_plan_role (f->whole.plan, first)];
  uint32_t class = ls_rank_class (f->whole.classes, first), end = end_of_alike (f, first);
  g_assert (end > first && class < f->quotient->n_ranks);
  if (work->copies)
    f->whole.copy_weight[class] += weight_of (w, DIGEST_COPY, first, end);
  for (uint32_t p = 0; p < 2; p++)
    if (work->sends[p])
      f->whole.channel_weight[2 * class + p]
          += weight_of (w, ls_plan_peer (f->whole.plan, first, 1 - p) - first, first, end);
  return end;
}

void
fold_weigh (Fold *f, const Run *x, const uint32_t *class_of_comm)
{
  const LsPlan *plan = f->whole.plan;
  uint32_t n_ranks = f->quotient->n_ranks;
  Weights w = { .f = f, .works = role_works_new (plan, x->role_calls), .sum = sums_new (plan->n_ranks) };
  f->whole.comm_weight = g_new0 (uint64_t, (gsize) f->quotient->n_comms + 1);
  f->whole.channel_weight = g_new0 (uint64_t, 2 * (gsize) n_ranks);
  f->whole.copy_weight = g_new0 (uint64_t, n_ranks);
  for (uint32_t i = 0; i < plan->n_comms; i++)
    f->whole.comm_weight[class_of_comm[i]] += digest_of (i);
  for (uint32_t i = 0; i < plan->n_ranks;)
    i = weigh_alike (&w, i);
  g_free (w.works);
  g_free (w.sum);
}
