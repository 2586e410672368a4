/* ask/place_shares.c — layers of stages by the speed of the nodes that they are on.
 *
 * Problem. Of stages with equal shares on GPUs of several kinds the slowest sets the pace of the pipeline.
 *
 * Method. On stage s a layer takes t_s = max over its ranks of T_s (kind) / L_s, with T the kernels of its
 * program alone, one after the other, on a GPU of that kind, and L_s the layers that it has now. Stages get
 * layers in proportion to 1 / t_s, what is left by the largest remainder, at least one each. From there one
 * layer at a time moves from a stage to another, by simulation, as long as one gains: that finds what
 * embedding, head and communication cost.
 *
 * Worked example. 32 layers on two stages, a layer of 4 ms on the first and of 8 ms on the second: 21.3 and
 * 10.7 by proportion, 21 and 11.
 *
 * Deviations. Only pipelines of one chunk per rank. Micro-batches stay the same for all data-parallel ranks:
 * no framework here has other ones, for each averages gradients over equal shares. */
#include <math.h>

#include "ask/place_search.h"

#include "plan/mesh.h"
#include "strategy/chunks.h"

#define MOST_STAGES 8 /* of which all moves are tried; else those from the slowest */

char *
shares_text (const uint32_t *layers, uint32_t n)
{
  GString *out = g_string_new (NULL);
  for (uint32_t i = 0; i < n; i++)
    g_string_append_printf (out, "%s%u", i > 0 ? "," : "", layers[i]);
  return g_string_free (out, FALSE);
}

/* [n_stages] of the job as it is. */
static bool
layers_of (const Search *x, uint32_t *ret_layers)
{
  const LsJobResult *now = x->p->now;
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
        if (seg->ops[o].kind == LS_OP_KERNEL && seg->ops[o].kernel < plan->n_kernels)
          of_segment[id] += MAX (1, seg->ops[o].repeat)
              * ls_time_to_s (ls_kernel_cost (calibration, gpu, &plan->kernels[seg->ops[o].kernel]).alone);
    }
    sum += of_segment[id];
  }
  return sum;
}

void
shares_init (Search *x)
{
  const LsJobResult *now = x->p->now;
  const LsStrategy *s = &now->strategy;
  uint32_t n_kinds = ls_cluster_spec_n_kinds (&now->cluster->spec);
  g_autofree uint32_t *layers = g_new (uint32_t, s->pp * s->vpp);
  LsHardware chosen;
  x->n_stages = now->cluster->kind_of_host && s->pp > 1 && s->vpp == 1 && layers_of (x, layers)
          && ls_hardware_for_job (now->hardware, s->attention_kernel, s->gpus, &chosen, NULL)
      ? s->pp
      : 0;
  x->layer_s = g_new0 (double, x->n_stages *n_kinds + 1);
  const LsMesh mesh = ls_strategy_mesh (s);
  for (uint32_t stage = 0; stage < x->n_stages; stage++) {
    uint32_t rank = ls_mesh_rank (&mesh, (LsCoord) { .pp = stage });
    const LsProgram *p = &now->plan->programs[ls_plan_role (now->plan, rank)];
    for (uint32_t k = 0; k < n_kinds; k++) {
      const LsGpu *gpu = &ls_cluster_spec_of_kind (&now->cluster->spec, k)->gpu;
      const LsCalibration calibration = ls_calibration_of_kind (&chosen.calibration, k, gpu);
      x->layer_s[stage * n_kinds + k] = program_s (now->plan, p, &calibration, gpu) / MAX (1, layers[stage]);
    }
  }
}

void
shares_clear (Search *x)
{
  g_clear_pointer (&x->layer_s, g_free);
}

/* [n_stages] what a layer takes at least on the slowest rank of each. */
static void
paces_of (const Search *x, const Candidate *c, double *ret_pace)
{
  const LsCluster *cluster = x->p->now->cluster;
  uint32_t n_kinds = ls_cluster_spec_n_kinds (&cluster->spec);
  LsMesh mesh = ls_strategy_mesh (&x->p->now->strategy);
  if (!c->is_own_order)
    mesh.order = c->order;
  for (uint32_t stage = 0; stage < x->n_stages; stage++)
    ret_pace[stage] = 0;
  for (uint32_t r = 0; r < x->n_ranks; r++) {
    uint32_t stage = ls_mesh_coord (&mesh, r).pp,
             kind = ls_cluster_kind_of (cluster, ls_cluster_host_of (cluster, c->gpus[r]));
    ret_pace[stage] = fmax (ret_pace[stage], x->layer_s[stage * n_kinds + kind]);
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

guint
shares_by_speed (const Search *x, const Candidate *c, Candidate *ret_other)
{
  if (x->n_stages == 0)
    return 0;
  g_autofree double *pace = g_new (double, x->n_stages);
  g_autofree uint32_t *own = g_new (uint32_t, x->n_stages), *layers = g_new (uint32_t, x->n_stages);
  uint32_t n = 0;
  bool differs = false;
  paces_of (x, c, pace);
  layers_of (x, own);
  for (uint32_t i = 0; i < x->n_stages; i++)
    n += own[i];
  if (n < x->n_stages)
    return 0;
  deal (n, pace, x->n_stages, layers);
  for (uint32_t i = 0; i < x->n_stages; i++)
    differs |= layers[i] != own[i];
  if (!differs)
    return 0;
  *ret_other = *c;
  ret_other->gpus = g_memdup2 (c->gpus, x->n_ranks * sizeof *c->gpus);
  ret_other->layers = g_steal_pointer (&layers);
  return 1;
}

/* --- moves --------------------------------------------------------------------------------- */

static uint32_t
slowest_of (const Search *x, const Candidate *c)
{
  g_autofree double *pace = g_new (double, x->n_stages);
  uint32_t slowest = 0;
  paces_of (x, c, pace);
  for (uint32_t i = 1; i < x->n_stages; i++)
    if (pace[i] * c->layers[i] > pace[slowest] * c->layers[slowest])
      slowest = i;
  return slowest;
}

/* One round: whether it gained, in place. */
static bool
try_moves (Search *x, Candidate *best)
{
  uint32_t n_stages = x->n_stages, slowest = slowest_of (x, best);
  guint n = 0;
  g_autofree Candidate *batch = g_new0 (Candidate, (gsize) n_stages * n_stages);
  for (uint32_t from = 0; from < n_stages; from++)
    for (uint32_t to = 0; to < n_stages; to++) {
      if (from == to || best->layers[from] < 2 || (n_stages > MOST_STAGES && from != slowest))
        continue;
      batch[n] = *best;
      batch[n].step = 0;
      batch[n].gpus = g_memdup2 (best->gpus, x->n_ranks * sizeof *best->gpus);
      batch[n].layers = g_memdup2 (best->layers, n_stages * sizeof *best->layers);
      batch[n].layers[from]--;
      batch[n++].layers[to]++;
    }
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

void
shares_search (Search *x, Candidate *best)
{
  bool is_own = !best->layers, has_gained = false;
  if (x->n_stages == 0)
    return;
  if (is_own) {
    best->layers = g_new (uint32_t, x->n_stages);
    layers_of (x, best->layers);
  }
  while (try_moves (x, best))
    has_gained = true;
  if (is_own && !has_gained)
    g_clear_pointer (&best->layers, g_free);
}
