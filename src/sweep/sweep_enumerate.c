/* sweep/sweep_enumerate.c — all configurations of a sweep gone through: what is legal, may fit, and what it
 * takes at least. */
#include "sweep/sweep_state.h"

#include <string.h>

#include <math.h>

#include "base/order.h"
#include "data/jobs/job_files.h"
#include "data/text/field.h"
#include "job/job_steps.h"
#include "strategy/shard.h"
#include "sweep/idea.h"
#include "sweep/layouts.h"

/* The program decides as it would of a job to be written out, once its layers are known. */
static bool
can_be_emitted (const LsSweepRun *x, const LsStrategy *s, LsDiagList *why)
{
  g_autoptr (GError) error = NULL;
  if (ls_chunks_want_balance (s, &x->model)
      || ls_software_check (x->spec->job.program, &x->model, s, why ? &error : NULL))
    return true;
  if (why)
    ls_diag_add (why, LS_ERROR_UNSUPPORTED, NULL, 0, 0, NULL, NULL, NULL, "%s", error->message);
  return false;
}

/* On GPUs that the cluster has, and as many as it has ranks. */
static bool
can_be_placed (const LsStrategy *s, const LsCluster *cluster, LsDiagList *why)
{
  g_autoptr (GError) error = NULL;
  g_autofree uint32_t *gpus = s->allocation ? ls_job_gpus (s, cluster, why ? &error : NULL) : NULL;
  if (gpus || !s->allocation)
    return true;
  const char *what = why ? error->message : "";
  what += g_str_has_prefix (what, "error: ") ? strlen ("error: ") : 0;
  if (why)
    ls_diag_add (why, LS_ERROR_CONFLICT, NULL, 0, 0, NULL, NULL, NULL, "%s", what);
  return false;
}

int
candidate_dp_kind (const LsSweepRun *x, const LsPoint *p)
{
  LsStrategy s = x->spec->job.strategy; /* borrows all */
  s.dp_kind = (int) ls_space_value (&x->spec->space, p, LS_SPACE_DP_KIND);
  s.zero_stage = ls_space_value (&x->spec->space, p, LS_SPACE_ZERO);
  return ls_strategy_dp_kind (&s);
}

uint64_t
candidate_variant (const LsSweepRun *x, const LsPoint *p)
{
  uint64_t kind = x->spec->job.software ? 0 : (uint64_t) candidate_dp_kind (x, p);
  return ls_space_variant (&x->spec->space, p) * LS_N_DP_KINDS + kind;
}

const LsCluster *
candidate_cluster (const LsSweepRun *x, const LsPoint *p)
{
  LsSpaceAxis axis = ls_space_axis ("placement");
  guint n_placements = ls_space_n (&x->spec->space, axis);
  return g_ptr_array_index (x->clusters, p->at[LS_SPACE_GPUS] * n_placements + p->at[axis]);
}

bool
candidate_strategy (const LsSweepRun *x, const LsPoint *p, LsStrategy *ret_s, LsDiagList *why)
{
  const LsJobSpec *job = &x->spec->job;
  const LsCluster *cluster = candidate_cluster (x, p);
  ls_space_strategy (&x->spec->space, &x->base[candidate_dp_kind (x, p)], p, ret_s);
  if (job->software)
    ls_software_settle (job->software, ret_s);
  g_autoptr (LsDiagList) unheard = why ? NULL : ls_diag_list_new_counting ();
  bool is_legal = ls_strategy_resolve (ret_s, &x->model, ls_cluster_n_taken (cluster),
                                       ls_cluster_common (cluster), why ? why : unheard);
  ls_space_choose_parts (&job->strategy, ret_s);
  return is_legal && can_be_placed (ret_s, cluster, why) && can_be_emitted (x, ret_s, why);
}

uint64_t
candidate_limit (const LsSweepRun *x, const LsStrategy *s)
{
  return x->capacity_bytes - MIN (x->headroom[s->dp_kind].bytes, x->capacity_bytes);
}

void
candidate_strategy_at (const LsSweepRun *x, uint64_t index, LsStrategy *ret_s)
{
  LsPoint p;
  ls_space_point (&x->spec->space, index, &p);
  candidate_strategy (x, &p, ret_s, NULL);
}

/* The first that is not says why, should none be left. */
static bool
is_within_budget (LsSweepRun *x, const LsStrategy *s)
{
  return ls_budget_check_passes (s, &x->model, x->options.max_memory_bytes,
                                 x->over_budget ? NULL : &x->over_budget);
}

static uint32_t
idea_of (LsSweepRun *x, const LsStrategy *s)
{
  g_autofree char *text = ls_idea_text (s);
  gpointer number = g_hash_table_lookup (x->ideas, text);
  if (number)
    return GPOINTER_TO_UINT (number);
  g_hash_table_insert (x->ideas, g_steal_pointer (&text),
                       GUINT_TO_POINTER (g_hash_table_size (x->ideas) + 1));
  return g_hash_table_size (x->ideas);
}

/* Counts the point, and keeps it if it may be worth a simulation. */
static void
look_at (LsSweepRun *x, LsBounds *bounds, LsLayouts *layouts, const LsPoint *p, uint64_t index)
{
  const LsCluster *cluster = candidate_cluster (x, p);
  const LsSpace *space = &x->spec->space;
  LsSweepCounts *n = &x->report.counts;
  LsStrategy s;
  if (!ls_space_is_distinct (space, &x->model, &x->spec->job.strategy, p))
    return;
  if (ls_space_is_refused (space, &x->model, &x->spec->job.strategy, p)) {
    n->enumerated++;
    n->illegal++;
    return;
  }
  bool is_legal = candidate_strategy (x, p, &s, NULL)
      && ls_layouts_balance (layouts, &s, cluster, candidate_variant (x, p));
  is_legal = is_legal && can_be_emitted (x, &s, NULL); /* with these layers */
  bool is_repeated = is_legal && !ls_space_has_effect (space, p, &s, &x->model);
  n->enumerated += !is_repeated;
  if (!is_legal || (!is_repeated && !is_within_budget (x, &s)))
    n->illegal++;
  else if (!is_repeated) {
    Candidate c = { .index = index,
                    .bound = ls_bound (bounds, &s, cluster, candidate_variant (x, p)),
                    .goodput = ls_objective_goodput (&x->objective, &x->model, &s, &cluster->spec) };
    bool may_fit
        = x->options.memory.clock != LS_MEMORY_HOST || c.bound.memory_bytes <= candidate_limit (x, &s);
    c.key = c.bound.step;
    c.idea = idea_of (x, &s);
    c.group = p->at[LS_SPACE_GPUS] * space->values[LS_SPACE_GLOBAL_BATCH]->len + p->at[LS_SPACE_GLOBAL_BATCH];
    if (may_fit)
      g_array_append_val (x->candidates, c);
    else {
      n->infeasible++;
      sweep_note_near (x, index, c.bound.memory_bytes, candidate_limit (x, &s));
    }
  }
  ls_strategy_clear (&s);
}

static int
compare_candidates (gconstpointer a, gconstpointer b)
{
  const Candidate *x = a, *y = b;
  LS_SMALLER_FIRST (x->group, y->group);
  LS_SMALLER_FIRST ((double) x->key / x->goodput, (double) y->key / y->goodput);
  return LS_ORDER (x->index, y->index);
}

static void
find_groups (LsSweepRun *x)
{
  const LsSpace *space = &x->spec->space;
  g_array_sort (x->candidates, compare_candidates);
  uint32_t at = 0;
  for (guint g = 0; g < space->values[LS_SPACE_GPUS]->len; g++)
    for (guint b = 0; b < space->values[LS_SPACE_GLOBAL_BATCH]->len; b++) {
      Group group = { g_array_index (space->values[LS_SPACE_GPUS], uint32_t, g),
                      g_array_index (space->values[LS_SPACE_GLOBAL_BATCH], uint32_t, b),
                      at,
                      0,
                      INFINITY,
                      -1 };
      while (at < x->candidates->len && candidate_at (x, at)->group == x->groups->len)
        at++;
      group.n = at - group.first;
      g_array_append_val (x->groups, group);
    }
}

/* The cluster of so many GPUs of a job with that placement; NULL: its own. */
static LsCluster *
build_cluster (const LsSweepRun *x, uint32_t gpus, const char *placement, GError **error)
{
  LsStrategy s;
  ls_strategy_copy (&s, &x->spec->job.strategy);
  s.gpus = gpus;
  bool ok = !placement || ls_field_value_set (ls_field_find (ls_strategy_fields, "placement"), &s, placement);
  g_assert (ok); /* it was read before */
  LsCluster *cluster = s.allocation
      ? ls_job_build_cluster (&s, x->hardware, x->spec->job.n_nodes, error)
      : ls_hardware_build_asked (x->hardware, x->spec->job.n_nodes, gpus, error);
  ls_strategy_clear (&s);
  return cluster;
}

gboolean
sweep_build_clusters (LsSweepRun *x, GError **error)
{
  const LsSpace *space = &x->spec->space;
  LsSpaceAxis axis = ls_space_axis ("placement");
  guint n_placements = ls_space_n (space, axis);
  for (guint i = 0; i < space->values[LS_SPACE_GPUS]->len * n_placements; i++) {
    uint32_t gpus = g_array_index (space->values[LS_SPACE_GPUS], uint32_t, i / n_placements);
    LsCluster *cluster = build_cluster (x, gpus, ls_space_text (space, axis, i % n_placements), error);
    if (!cluster)
      return FALSE;
    g_ptr_array_add (x->clusters, cluster);
  }
  const LsCluster *first = g_ptr_array_index (x->clusters, 0);
  x->capacity_bytes = ls_memory_capacity (&first->spec.gpu);
  return TRUE;
}

void
sweep_enumerate (LsSweepRun *x)
{
  LsSpace *space = &x->spec->space;
  g_autoptr (LsBounds) bounds = ls_bounds_new (&x->model, x->hardware);
  g_autoptr (LsLayouts) layouts = ls_layouts_new (&x->model, x->hardware);
  LsPoint p = { 0 };
  uint64_t index = 0;
  do
    look_at (x, bounds, layouts, &p, index++);
  while (ls_space_next (space, &p) && !(x->is_cut = is_stopped (x)));
  find_groups (x);
  x->n_to_do = x->candidates->len;
}
