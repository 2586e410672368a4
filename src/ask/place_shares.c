/* ask/place_shares.c — layers of stages, and micro-batches of replicas, by the speed of the nodes that they
 * are on.
 *
 * Problem. Of stages, or of data-parallel replicas, with equal shares on GPUs of several kinds the slowest
 * sets the pace of all.
 *
 * Method. A micro-batch takes T_s (kind) on stage s: the kernels of its program alone, one after the other,
 * on a GPU of that kind, over its micro-batches. A layer of it takes t_s = max over the ranks of the stage
 * of T_s (kind) / L_s, with L_s the layers that it has now: stages get layers in proportion to 1 / t_s, what
 * is left by the largest remainder, at least one each. A micro-batch of replica d takes u_d = max over its
 * ranks of T_s (kind), times the layers that the candidate gives s over L_s: one by one each goes to the
 * replica where it is done first, (n_d + 1) u_d. From there one layer, or one micro-batch, at a time moves
 * from a stage or replica to another, by simulation, as long as one gains: that finds what embedding, head,
 * fill of pipelines and communication cost.
 *
 * Worked examples. 32 layers on two stages, a layer of 4 ms on the first and of 8 ms on the second: 21.3 and
 * 10.7 by proportion, 21 and 11. 16 micro-batches on two replicas of 3 and 5 ms: 10 and 6, 30 ms both; 8 and
 * 8 take 40.
 *
 * Deviations. Layers move in pipelines of one chunk per rank only. Layers and micro-batches by speed are not
 * dealt together; moves find what both give. That gradients stay right with unequal numbers is up to the
 * framework: each replica adds up its micro-batches, all divide by the global batch. Whale (USENIX ATC 2022)
 * balances data parallelism over unlike GPUs; Megatron-LM, torchtitan and DeepSpeed have one number. */
#include <math.h>
#include <string.h>

#include "ask/place_search.h"

#include "plan/mesh.h"
#include "strategy/shard.h"

#define MOST_PARTS 8 /* of which all moves are tried; else those from the slowest */

char *
shares_text (const uint32_t *shares, uint32_t n)
{
  if (!shares)
    return NULL;
  GString *out = g_string_new (NULL);
  for (uint32_t i = 0; i < n; i++)
    g_string_append_printf (out, "%s%u", i > 0 ? "," : "", shares[i]);
  return g_string_free (out, FALSE);
}

/* [n_stages] of the job as it is. */
static bool
layers_of (const LsJobResult *now, uint32_t *ret_layers)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  return ls_chunk_layers (&now->strategy, &now->model, ret_layers, diags);
}

/* --- speeds -------------------------------------------------------------------------------- */

/* Kernels of a program, one after the other. */
static double
program_s (const LsPlan *plan, const LsProgram *p, const LsCalibration *calibration, const LsGpu *gpu)
{
  double sum = 0;
  g_autofree double *of_segment = g_new (double, plan->n_segments + 1);
  for (uint32_t s = 0; s < plan->n_segments; s++)
    of_segment[s] = -1;
  for (uint32_t i = 0; i < p->n_instances; i++) {
    uint32_t id = p->instances[i].segment;
    const LsSegment *seg = &plan->segments[id];
    if (of_segment[id] < 0) {
      of_segment[id] = 0;
      for (uint32_t o = 0; o < seg->n_ops; o++)
        if (ls_op_takes (seg->ops[o].kind, LS_TAKES_GPU) && seg->ops[o].kernel < plan->n_kernels)
          of_segment[id] += MAX (1, seg->ops[o].repeat)
              * ls_time_to_s (ls_kernel_cost (calibration, gpu, &plan->kernels[seg->ops[o].kernel]).alone);
    }
    sum += of_segment[id];
  }
  return sum;
}

/* Of the stages of the first replica, on GPUs of each kind. */
static void
find_speeds (Search *x, const LsHardware *hardware)
{
  const LsJobResult *now = x->p->now;
  const LsMesh mesh = ls_strategy_mesh (&now->strategy);
  uint32_t n_kinds = ls_cluster_spec_n_kinds (&now->cluster->spec);
  x->stage_s = g_new0 (double, now->strategy.pp *n_kinds);
  for (uint32_t stage = 0; stage < now->strategy.pp; stage++) {
    uint32_t rank = ls_mesh_rank (&mesh, (LsCoord) { .pp = stage });
    const LsProgram *p = &now->plan->programs[ls_plan_role (now->plan, rank)];
    for (uint32_t k = 0; k < n_kinds; k++) {
      const LsGpu *gpu = &ls_cluster_spec_of_kind (&now->cluster->spec, k)->gpu;
      LsCalibration room;
      const LsCalibration *calibration = ls_calibration_of_kind (&hardware->calibration, k, gpu, &room);
      x->stage_s[stage * n_kinds + k]
          = program_s (now->plan, p, calibration, gpu) / ls_strategy_micro_batches (&now->strategy, 0);
    }
  }
}

void
shares_init (Search *x)
{
  const LsJobResult *now = x->p->now;
  const LsStrategy *s = &now->strategy;
  LsHardware chosen;
  if (!now->cluster->kind_of_host || x->spec->trace)
    return;
  ls_hardware_for_job (now->hardware, s, s->gpus, &chosen);
  x->own_layers = g_new0 (uint32_t, s->pp * s->vpp);
  x->n_stages = s->pp > 1 && s->vpp == 1 && layers_of (now, x->own_layers) ? s->pp : 0;
  x->n_replicas = s->dp > 1 && !ls_strategy_why_even (s, &now->model) ? s->dp : 0;
  if (x->n_stages > 0 || x->n_replicas > 0)
    find_speeds (x, &chosen);
}

void
shares_clear (Search *x)
{
  g_clear_pointer (&x->stage_s, g_free);
  g_clear_pointer (&x->own_layers, g_free);
}

/* What a micro-batch takes at least on the slowest rank of each stage, [n_stages] for a layer of it, or of
 * each replica, [n_replicas]; the other NULL. */
static void
paces_of (const Search *x, const Candidate *c, double *ret_of_stage, double *ret_of_replica)
{
  const LsCluster *cluster = x->p->now->cluster;
  uint32_t n_kinds = ls_cluster_spec_n_kinds (&cluster->spec);
  LsMesh mesh = ls_strategy_mesh (&x->p->now->strategy);
  if (!c->is_own_order)
    mesh.order = c->order;
  for (uint32_t i = 0; ret_of_stage && i < x->n_stages; i++)
    ret_of_stage[i] = 0;
  for (uint32_t i = 0; ret_of_replica && i < x->n_replicas; i++)
    ret_of_replica[i] = 0;
  for (uint32_t r = 0; r < x->n_ranks; r++) {
    LsCoord at = ls_mesh_coord (&mesh, r);
    uint32_t kind = ls_cluster_kind_of (cluster, ls_cluster_host_of (cluster, c->gpus[r]));
    double pace = x->stage_s[at.pp * n_kinds + kind],
           of_layer = x->n_stages > 0 ? pace / MAX (1, x->own_layers[at.pp]) : 0;
    if (ret_of_stage)
      ret_of_stage[at.pp] = fmax (ret_of_stage[at.pp], of_layer);
    if (ret_of_replica)
      ret_of_replica[at.dp] = fmax (ret_of_replica[at.dp], c->layers ? of_layer * c->layers[at.pp] : pace);
  }
}

/* --- shares -------------------------------------------------------------------------------- */

/* Of n layers by 1 / pace: whole numbers of at least 1, the largest remainders up. */
static void
deal (uint32_t n, const double *pace, uint32_t n_stages, uint32_t *ret_layers)
{
  double sum = 0;
  uint32_t n_dealt = 0;
  g_autofree double *rest = g_new (double, n_stages);
  for (uint32_t i = 0; i < n_stages; i++)
    sum += 1 / pace[i];
  for (uint32_t i = 0; i < n_stages; i++) {
    double share = n / pace[i] / sum;
    ret_layers[i] = (uint32_t) fmax (1, floor (share));
    rest[i] = share - ret_layers[i];
    n_dealt += ret_layers[i];
  }
  for (; n_dealt != n; n_dealt += n_dealt < n ? 1 : -1) {
    uint32_t at = 0;
    for (uint32_t i = 1; i < n_stages; i++)
      if (n_dealt < n ? rest[i] > rest[at] : ret_layers[i] > 1 && (ret_layers[at] == 1 || rest[i] < rest[at]))
        at = i;
    ret_layers[at] += n_dealt < n ? 1 : -1;
    rest[at] += n_dealt < n ? -1 : 1;
  }
}

/* Of n micro-batches, one by one to where it is done first; at least 1 each. */
static void
deal_counts (uint32_t n, const double *pace, uint32_t n_replicas, uint32_t *ret_counts)
{
  for (uint32_t i = 0; i < n_replicas; i++)
    ret_counts[i] = 1;
  for (uint32_t k = n_replicas; k < n; k++) {
    uint32_t first = 0;
    for (uint32_t i = 1; i < n_replicas; i++)
      if ((ret_counts[i] + 1) * pace[i] < (ret_counts[first] + 1) * pace[first])
        first = i;
    ret_counts[first]++;
  }
}

static uint32_t
sum_of (const uint32_t *shares, uint32_t n)
{
  uint32_t sum = 0;
  for (uint32_t i = 0; i < n; i++)
    sum += shares[i];
  return sum;
}

static uint32_t *
own_counts (const Search *x)
{
  uint32_t *counts = g_new (uint32_t, x->n_replicas + 1);
  for (uint32_t d = 0; d < x->n_replicas; d++)
    counts[d] = ls_strategy_micro_batches (&x->p->now->strategy, d);
  return counts;
}

static guint
layers_by_speed (const Search *x, const Candidate *c, Candidate *ret_other)
{
  uint32_t n = x->n_stages > 0 ? sum_of (x->own_layers, x->n_stages) : 0;
  if (x->n_stages == 0 || n < x->n_stages)
    return 0;
  g_autofree double *pace = g_new (double, x->n_stages);
  g_autofree uint32_t *layers = g_new (uint32_t, x->n_stages);
  paces_of (x, c, pace, NULL);
  deal (n, pace, x->n_stages, layers);
  if (memcmp (layers, x->own_layers, x->n_stages * sizeof *layers) == 0)
    return 0;
  *ret_other = candidate_copy (x, c);
  ret_other->layers = g_steal_pointer (&layers);
  return 1;
}

static guint
counts_by_speed (const Search *x, const Candidate *c, Candidate *ret_other)
{
  if (x->n_replicas == 0)
    return 0;
  g_autofree double *pace = g_new (double, x->n_replicas);
  g_autofree uint32_t *counts = g_new (uint32_t, x->n_replicas), *own = own_counts (x);
  paces_of (x, c, NULL, pace);
  deal_counts (sum_of (own, x->n_replicas), pace, x->n_replicas, counts);
  if (memcmp (counts, own, x->n_replicas * sizeof *counts) == 0)
    return 0;
  *ret_other = candidate_copy (x, c);
  ret_other->counts = g_steal_pointer (&counts);
  return 1;
}

guint
shares_by_speed (const Search *x, const Candidate *c, Candidate *ret_others)
{
  guint n = layers_by_speed (x, c, ret_others);
  return n + counts_by_speed (x, c, ret_others + n);
}

/* --- moves --------------------------------------------------------------------------------- */

/* Layers of stages, or micro-batches of replicas, of a candidate. */
static uint32_t **
shares_of (Candidate *c, bool is_of_layers)
{
  return is_of_layers ? &c->layers : &c->counts;
}

static uint32_t
slowest_of (const uint32_t *shares, const double *pace, uint32_t n)
{
  uint32_t slowest = 0;
  for (uint32_t i = 1; i < n; i++)
    if (pace[i] * shares[i] > pace[slowest] * shares[slowest])
      slowest = i;
  return slowest;
}

/* Whether a part before this one has the same share and pace: a move of either is the other's. */
static bool
is_repeated (const uint32_t *shares, const double *pace, uint32_t at)
{
  for (uint32_t i = 0; i < at; i++)
    if (shares[i] == shares[at] && pace[i] == pace[at])
      return true;
  return false;
}

/* One round: whether it gained, in place. */
static bool
try_moves (Search *x, Candidate *best, bool is_of_layers)
{
  uint32_t n_parts = is_of_layers ? x->n_stages : x->n_replicas, *shares = *shares_of (best, is_of_layers);
  g_autofree double *pace = g_new (double, n_parts);
  paces_of (x, best, is_of_layers ? pace : NULL, is_of_layers ? NULL : pace);
  uint32_t slowest = slowest_of (shares, pace, n_parts);
  g_autoptr (GArray) moves = g_array_new (FALSE, FALSE, sizeof (Candidate));
  for (uint32_t from = 0; from < n_parts; from++)
    for (uint32_t to = 0; to < n_parts; to++) {
      bool is_known = !is_of_layers && (is_repeated (shares, pace, from) || is_repeated (shares, pace, to));
      if (from == to || shares[from] < 2 || is_known || (n_parts > MOST_PARTS && from != slowest))
        continue;
      Candidate c = candidate_copy (x, best);
      (*shares_of (&c, is_of_layers))[from]--;
      (*shares_of (&c, is_of_layers))[to]++;
      g_array_append_val (moves, c);
    }
  guint n = moves->len;
  Candidate *batch = (Candidate *) (gpointer) moves->data;
  x->limit = best->step;
  try_batch (x, batch, n);
  guint found = fastest_of (batch, n, best->step);
  if (found < n) {
    Candidate old = *best;
    *best = batch[found];
    batch[found] = old;
  }
  for (guint i = 0; i < n; i++)
    candidate_clear (&batch[i]);
  return found < n;
}

static void
search_shares (Search *x, Candidate *best, bool is_of_layers)
{
  uint32_t n_parts = is_of_layers ? x->n_stages : x->n_replicas;
  bool is_own = !*shares_of (best, is_of_layers), has_gained = false;
  if (n_parts == 0)
    return;
  if (is_own)
    *shares_of (best, is_of_layers)
        = is_of_layers ? g_memdup2 (x->own_layers, n_parts * sizeof *x->own_layers) : own_counts (x);
  while (try_moves (x, best, is_of_layers))
    has_gained = true;
  if (is_own && !has_gained)
    g_clear_pointer (shares_of (best, is_of_layers), g_free);
}

void
shares_search (Search *x, Candidate *best)
{
  search_shares (x, best, true);
  search_shares (x, best, false);
}
