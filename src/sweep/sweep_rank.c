/* sweep/sweep_rank.c — the best configurations of a sweep in words and figures, and where the
 * rule of thumb stands among them. */

#include "base/list.h"
#include "base/order.h"
#include "job/assumptions.h"
#include "job/knobs.h"
#include "strategy/shard.h"
#include "sweep/sweep_state.h"

/* --- the rule of thumb ------------------------------------------------------------------------ */

/* TP in the node, PP across, DP the rest (Narayanan et al. 2021, section 3, takeaways 1
 * and 2): the largest tp, then the fewest stages that fit, the least recomputation, micro-batch 1,
 * 1F1B, and the distributed optimizer and sequence parallelism where they can be. With experts EP takes the
 * place of TP (NVIDIA/Megatron-LM, megatron/core/transformer/moe/README.md: ep and tp within NVLink, ep
 * before tp): the smallest tp, and the most ranks of experts that a node holds. */
static bool
follows_rule (const LsStrategy *s, uint32_t tp)
{
  bool is_plain = s->vpp == 1 && s->cp == 1 && !s->mp.tp_overlap && s->micro_batch == 1 && s->zero_stage <= 1;
  bool is_usual = ls_sched_find (s->schedule) == ls_sched_usual (s->pp, 1);
  return is_plain && is_usual && s->tp == tp && ls_dp_traits (s->dp_kind)->keeps_gradients;
}

typedef struct {
  uint32_t candidate, pp, recompute, sp, zero, ep;
  uint32_t across; /* ranks of experts beyond a node; 0: none */
} RuleCase;

static const LsSortKey by_rule[] = { { LS_RISING (RuleCase, across) },
                                     { LS_RISING (RuleCase, pp) },
                                     { LS_RISING (RuleCase, recompute) },
                                     { LS_FALLING (RuleCase, sp) },
                                     { LS_FALLING (RuleCase, zero) },
                                     { LS_FALLING (RuleCase, ep) },
                                     { 0 } };

/* The largest that a node holds; with experts the smallest. */
static uint32_t
tp_of_rule (LsSweepRun *x, const Group *g, uint32_t node)
{
  uint32_t most = 1, least = UINT32_MAX;
  for (uint32_t i = 0; i < g->n; i++) {
    LsPoint p;
    ls_space_point (&x->spec->space, candidate_at (x, g->first + i)->index, &p);
    uint32_t tp = ls_space_value (&x->spec->space, &p, LS_SPACE_TP);
    most = tp <= node ? MAX (most, tp) : most;
    least = MIN (least, tp);
  }
  return x->model.moe.n_experts > 0 ? least : most;
}

static GArray *
rule_cases (LsSweepRun *x, const Group *g)
{
  GArray *cases = g_array_new (FALSE, FALSE, sizeof (RuleCase));
  const LsCluster *cluster = candidate_cluster (x, &(LsPoint) { 0 });
  uint32_t node = cluster->seats.first ? cluster->seats.per_node : ls_cluster_taken (&cluster->spec),
           tp = tp_of_rule (x, g, node);
  for (uint32_t i = g->first; i < g->first + g->n; i++) {
    LsPoint p;
    ls_space_point (&x->spec->space, candidate_at (x, i)->index, &p);
    if (ls_space_value (&x->spec->space, &p, LS_SPACE_TP) != tp
        || ls_space_value (&x->spec->space, &p, LS_SPACE_MICRO_BATCH) != 1)
      continue;
    LsStrategy s;
    candidate_strategy (x, &p, &s, NULL);
    RuleCase c = { i, s.pp, (uint32_t) s.recompute, s.sp, s.zero_stage, s.ep, 0 };
    c.across = (uint64_t) s.ep * s.experts.etp > node ? s.ep : 0;
    if (follows_rule (&s, tp))
      g_array_append_val (cases, c);
    ls_strategy_clear (&s);
  }
  ls_sort_by (cases, by_rule);
  return cases;
}

static void
try_rule (LsSweepRun *x, Group *g)
{
  g_autoptr (GArray) cases = rule_cases (x, g);
  for (guint i = 0; i < cases->len && g->rule < 0 && !is_stopped (x); i++) {
    uint32_t at = g_array_index (cases, RuleCase, i).candidate;
    Candidate *c = candidate_at (x, at);
    workers_do (x, WORK_TRY, &c, 1);
    if (c->status == TRY_DONE || c->status == TRY_RAN)
      workers_do (x, WORK_CONFIRM, &c, 1);
    if (c->is_confirmed)
      g->rule = at;
  }
}

Candidate *
sweep_rule (LsSweepRun *x)
{
  for (guint i = 0; i < x->groups->len; i++)
    try_rule (x, &g_array_index (x->groups, Group, i));
  const Group *last = &g_array_index (x->groups, Group, x->groups->len - 1);
  return last->rule < 0 ? NULL : candidate_at (x, (guint) last->rule);
}

/* --- why not the first --------------------------------------------------------------------------- */

#define N_REASONS 2

/* What takes longer than in the best with its GPUs and batch, and formats that differ; not what is gained. */
static char *
explain (const LsSweepRow *row, const LsSweepRow *best)
{
  bool is_said[LS_N_PARTS] = { false };
  char slower[G_ASCII_DTOSTR_BUF_SIZE];
  g_ascii_formatd (slower, sizeof slower, "%.1f",
                   100 * (best->tokens_per_s * best->goodput / (row->tokens_per_s * row->goodput) - 1));
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "%s %% slower", slower);
  if (row->strategy.dtype != best->strategy.dtype)
    g_string_append_printf (out, ", in %s", ls_dtype_name ((LsDtype) row->strategy.dtype));
  if (row->strategy.opt.grad_dtype != best->strategy.opt.grad_dtype)
    g_string_append_printf (out, ", gradients in %s", ls_dtype_name ((LsDtype) row->strategy.opt.grad_dtype));
  for (int n = 0; n < N_REASONS; n++) {
    int worst = -1;
    double most = 0;
    for (int p = 0; p < LS_N_PARTS; p++) {
      double more = row->breakdown_s[p] - best->breakdown_s[p];
      if (!is_said[p] && more > most) {
        most = more;
        worst = p;
      }
    }
    if (worst < 0)
      break;
    is_said[worst] = true;
    g_autofree char *time = ls_format_time (ls_time_from_s (most));
    g_autofree char *name = g_strdelimit (g_strdup (ls_part_names[worst]), "_", ' ');
    g_string_append_printf (out, "%s%s more %s", n == 0 ? ": " : ", ", time, name);
  }
  return g_string_free (out, FALSE);
}

/* --- the ranking ------------------------------------------------------------------------------ */

static const LsSortKey by_value[]
    = { { LS_RISING (LsSweepRow, value) }, { LS_RISING (LsSweepRow, knobs) }, { 0 } };

static const LsCluster *
cluster_at (const LsSweepRun *x, uint64_t index)
{
  LsPoint p;
  ls_space_point (&x->spec->space, index, &p);
  return candidate_cluster (x, &p);
}

static void
fill_row (const LsSweepRun *x, const Candidate *c, const Figures *f, LsSweepRow *ret_row)
{
  LsActivities activities = ls_activities_of (f->breakdown_s);
  double watts = ls_price_step_watts (&x->report.price, &activities);
  *ret_row = (LsSweepRow) {
    .step = c->step,
    .index = c->index,
    .slice = ls_slice_text (&cluster_at (x, c->index)->spec),
    .memory_bytes = c->memory_bytes,
    .tokens_per_s = f->tokens_per_s,
    .mfu = f->mfu,
    .bubble_s = f->breakdown_s[LS_PART_BUBBLE],
    .usd_per_trillion = 1e12 * ls_price_usd (&x->report.price, f->n_ranks, f->tokens_per_s),
    .kwh_per_trillion = 1e12 * ls_price_kwh (&x->report.price, watts, f->n_ranks, f->tokens_per_s),
    .gpu_watts = watts,
    .low_s = f->low * ls_time_to_s (c->step),
    .high_s = f->high * ls_time_to_s (c->step),
  };
  candidate_settled (x, c, &ret_row->strategy);
  ret_row->goodput = c->goodput;
  ret_row->to_loss = ls_objective_figures (&x->objective, &x->report.price, &ret_row->strategy,
                                           ls_time_to_s (c->step), watts, c->goodput);
  ret_row->value = ls_objective_value (&x->objective, &ret_row->to_loss, f->tokens_per_s);
  ret_row->knobs = ls_job_knobs (&x->spec->job, &x->model, false, &ret_row->strategy);
  ret_row->command = ls_job_command (&x->spec->job, &x->model, &ret_row->strategy);
  ret_row->headroom_bytes = x->headroom[ret_row->strategy.dp_kind].bytes;
  ret_row->free_bytes = x->capacity_bytes - MIN (c->memory_bytes, x->capacity_bytes);
  for (int i = 0; i < LS_N_PARTS; i++)
    ret_row->breakdown_s[i] = f->breakdown_s[i];
  for (int i = LS_PART_EXPOSED_TP; i <= LS_PART_EXPOSED_COPY; i++)
    ret_row->exposed_s += f->breakdown_s[i];
}

static const Figures *
figures_of (const LsSweepRun *x, const Candidate *c)
{
  const Confirmation *known = sweep_answer (x, c);
  return known && known->status == TRY_DONE ? &known->figures : NULL;
}

/* Of the same group and idea. */
static void
add_variant (const LsSweepRun *x, LsSweepRow *row, const Candidate *c)
{
  LsStrategy s;
  candidate_settled (x, c, &s);
  char *knobs = ls_job_knobs (&x->spec->job, &x->model, false, &s);
  LsSweepVariant v = { ls_idea_difference (&row->strategy, &s), knobs, c->step, c->memory_bytes, c->goodput };
  ls_strategy_clear (&s);
  if (!row->also)
    row->also = ls_list_new (sizeof v, ls_clear_2_texts);
  g_array_append_val (row->also, v);
}

static void
add_variants (LsSweepRun *x, const Candidate *best, LsSweepRow *row)
{
  const Group *g = &g_array_index (x->groups, Group, best->group);
  g_autoptr (GPtrArray) done = sweep_ranking (x, g);
  guint n = 0;
  for (guint i = 0; i < done->len && n < N_VARIANTS; i++) {
    const Candidate *c = done->pdata[i];
    if (c == best || c->idea != best->idea || !c->is_confirmed)
      continue;
    add_variant (x, row, c);
    n++;
  }
}

/* What a journal says was confirmed runs again for its figures. */
static void
add_rows (LsSweepRun *x, GArray *rows, const GPtrArray *list, bool has_variants)
{
  g_autoptr (GPtrArray) unknown = g_ptr_array_new ();
  for (guint i = 0; i < list->len; i++)
    if (!figures_of (x, list->pdata[i]))
      g_ptr_array_add (unknown, list->pdata[i]);
  workers_do (x, WORK_REPORT, (Candidate **) unknown->pdata, unknown->len);
  for (guint i = 0; i < list->len; i++) {
    const Figures *f = figures_of (x, list->pdata[i]);
    LsSweepRow row;
    if (!f)
      continue;
    fill_row (x, list->pdata[i], f, &row);
    if (has_variants)
      add_variants (x, list->pdata[i], &row);
    g_array_append_val (rows, row);
  }
}

/* The best of each idea that is ranked; of a group that was stopped those that are known. */
static void
add_best (LsSweepRun *x, const Group *g, GPtrArray *list)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
  g_autoptr (GPtrArray) done = sweep_ranking (x, g);
  for (guint i = 0; i < done->len && g_hash_table_size (seen) < x->spec->top; i++) {
    Candidate *c = done->pdata[i];
    if (c->is_confirmed && g_hash_table_add (seen, GUINT_TO_POINTER (c->idea)))
      g_ptr_array_add (list, c);
  }
}

static void
place_rule (LsSweepRun *x, const Group *g, LsSweepGroup *ret)
{
  Candidate *rule = g->rule < 0 ? NULL : candidate_at (x, (guint) g->rule);
  if (!rule)
    return;
  ret->rule_rank = 1;
  ret->is_rule_rank_exact
      = !is_stopped (x) && (x->spec->no_prune || rule->step <= sweep_step_limit (x, rule));
  for (uint32_t i = g->first; i < g->first + g->n; i++) {
    const Candidate *c = candidate_at (x, i);
    ret->rule_rank += c->status == TRY_DONE && sweep_paced (c) < sweep_paced (rule);
  }
  const Figures *f = figures_of (x, rule);
  g_assert (f); /* it is never taken from a journal */
  ret->rule = g_new0 (LsSweepRow, 1);
  fill_row (x, rule, f, ret->rule);
}

static void
group_clear (gpointer data)
{
  LsSweepGroup *g = data;
  if (g->rule)
    ls_sweep_row_clear (g->rule);
  g_free (g->rule);
  g_clear_pointer (&g->rests_on, g_array_unref);
  g_clear_pointer (&g->knobs, g_array_unref);
}

/* The first of those ranked with its GPUs and batch, and what the others lack. */
static void
explain_group (LsSweepRun *x, LsSweepGroup *g)
{
  for (guint i = 0; i < x->report.best->len; i++) {
    LsSweepRow *row = &g_array_index (x->report.best, LsSweepRow, i);
    if (row->strategy.gpus != g->gpus || row->strategy.global_batch != g->global_batch)
      continue;
    if (g->first)
      row->why = explain (row, g->first);
    else
      g->first = row;
  }
  if (g->rule && g->first)
    g->rule->why = explain (g->rule, g->first);
}

static void
fill_groups (LsSweepRun *x)
{
  x->report.groups = ls_list_new (sizeof (LsSweepGroup), group_clear);
  for (guint i = 0; i < x->groups->len; i++) {
    const Group *from = &g_array_index (x->groups, Group, i);
    LsSweepGroup g = { .gpus = from->gpus, .global_batch = from->global_batch };
    place_rule (x, from, &g);
    explain_group (x, &g);
    g_array_append_val (x->report.groups, g);
  }
  sweep_scaling (&x->report);
}

static void
count (LsSweepRun *x)
{
  LsSweepCounts *n = &x->report.counts;
  for (guint i = 0; i < x->candidates->len; i++) {
    uint8_t status = candidate_at (x, i)->status;
    n->illegal += status == TRY_ILLEGAL;
    n->infeasible += status == TRY_INFEASIBLE;
    n->pruned += status == TRY_PRUNED;
    n->simulated += status == TRY_DONE;
    n->left += status == TRY_PENDING;
  }
}

/* What is said of a knob that the sweep goes through; of one value that was given no more than that. */
static const char *
whence_of_axis (const char *knob, gconstpointer space_of)
{
  const LsSpace *space = space_of;
  LsSpaceAxis axis = ls_space_axis (knob);
  if (g_str_equal (knob, "dp"))
    return "what the other degrees leave";
  bool is_axis = axis < LS_N_SPACE_AXES || (axis < LS_MAX_SPACE_AXES && space->is_given[axis]);
  bool is_one = is_axis && ls_space_n (space, axis) == 1; /* else as of any job */
  return !is_axis || (is_one && !space->is_given[axis]) ? NULL : is_one ? "given" : "of the sweep";
}

/* Of none the job as it would be by itself, on one accelerator: what all have in common. */
static GArray *
assume_without_best (const LsSweepRun *x)
{
  LsStrategy s;
  g_autoptr (LsDiagList) unheard = ls_diag_list_new ();
  ls_strategy_copy (&s, &x->base[LS_DP_NONE]);
  s.gpus = 1;
  const LsPoint first = { { 0 } };
  s.global_batch = ls_space_value (&x->spec->space, &first, LS_SPACE_GLOBAL_BATCH);
  ls_strategy_resolve (&s, &x->model, 1, 1, unheard);
  GArray *all = ls_assumptions_new (&x->spec->job, &x->model, &s, whence_of_axis, &x->spec->space);
  ls_strategy_clear (&s);
  return all;
}

/* What a configuration rests on; a sentence has not what is a column of the table. */
static GArray *
rests_of (const LsSweepRun *x, const LsSweepRow *row)
{
  GArray *own
      = ls_assumptions_new (&x->spec->job, &x->model, &row->strategy, whence_of_axis, &x->spec->space);
  for (LsAssumption *a = (gpointer) own->data, *end = a + own->len; a < end; a++)
    if (g_str_equal (a->key, "dp_kind") || g_str_equal (a->key, "layers_per_chunk"))
      g_clear_pointer (&a->words, g_free);
  ls_assumptions_add_times (&own, &x->spec->job, x->hardware, NULL, row->strategy.gpus);
  ls_assumptions_add_place (&own, x->spec->job.cluster, &cluster_at (x, row->index)->spec,
                            x->spec->job.segment > 0, "lockstep run ");
  return own;
}

/* All else that has an effect in it; NULL: it is not known. */
static GArray *
knobs_of (const LsSweepRun *x, const LsSweepRow *row)
{
  g_autoptr (LsJobResult) r
      = ls_job_prepare_on (&x->model, x->hardware, cluster_at (x, row->index), &row->strategy, NULL);
  GArray *all
      = r ? ls_assumptions_of_knobs (&x->spec->job, r, x->hardware, whence_of_axis, &x->spec->space) : NULL;
  for (LsAssumption *a = all ? (gpointer) all->data : NULL, *end = all ? a + all->len : a; a < end; a++)
    if (g_str_equal (a->key, "dp")) {
      g_free (a->instead);
      a->instead = g_strdup ("--gpus N");
    }
  return all;
}

static bool
is_told (const GArray *assumptions, const char *key)
{
  for (guint i = 0; i < assumptions->len; i++) {
    const LsAssumption *a = &g_array_index (assumptions, LsAssumption, i);
    if (a->words && g_str_equal (a->key, key))
      return true;
  }
  return false;
}

/* "offload optimizer; cuda-graphs none": its values of what is varied and has no column of the table, if it
 * is the first, else where the first has others. */
static void
tell_varied (const LsSweepRun *x, const LsSweepRow *first, const LsSweepRow *row, GArray **all)
{
  const LsSpace *space = &x->spec->space;
  for (LsSpaceAxis a = LS_N_SPACE_AXES; a < ls_space_n_axes (); a++) {
    const LsField *f = ls_space_axis_field (a);
    if (ls_space_n (space, a) == 1 || a == space->layers_axis || a == space->parts_axis
        || is_told (*all, f->key) || ls_strategy_idle (&row->strategy, &x->model, f->key))
      continue;
    g_autofree char *flag = ls_field_flag (f), *words = g_strconcat (flag + strlen ("--"), " %s", NULL);
    g_autofree char *value = ls_field_text (f, &row->strategy, NULL),
                    *of_first = ls_field_text (f, &first->strategy, NULL);
    if (row->index == first->index || g_strcmp0 (value, of_first) != 0)
      ls_assumptions_add (all, f->key, g_strdup (value ? value : "none"), words, NULL, NULL);
  }
}

static void
describe_row (const LsSweepRun *x, const LsSweepGroup *g, LsSweepRow *row)
{
  g_autoptr (GArray) own = rests_of (x, row), otherwise = NULL;
  ls_assumptions_add_beside (&otherwise, own, g->rests_on);
  tell_varied (x, g->first, row, &otherwise);
  row->rests_on = ls_assumptions_words (otherwise);
}

/* What the first rests on, and other rows of the group otherwise. */
static void
describe_group (const LsSweepRun *x, LsSweepGroup *g)
{
  GArray *const tables[] = { x->report.best, x->report.front };
  g->rests_on = rests_of (x, g->first);
  g->knobs = knobs_of (x, g->first);
  for (guint i = 0; i < G_N_ELEMENTS (tables); i++)
    for (guint k = 0; tables[i] && k < tables[i]->len; k++) {
      LsSweepRow *row = &g_array_index (tables[i], LsSweepRow, k);
      if (row->strategy.gpus == g->gpus && row->strategy.global_batch == g->global_batch)
        describe_row (x, g, row);
    }
  if (g->rule)
    describe_row (x, g, g->rule);
}

/* What all groups rest on; of each is left what it does otherwise. */
static void
describe_groups (LsSweepRun *x)
{
  LsSweepReport *r = &x->report;
  LsSweepGroup *groups = (gpointer) r->groups->data, *end = groups + r->groups->len;
  for (LsSweepGroup *g = groups; g < end; g++)
    if (g->first) {
      describe_group (x, g);
      ls_assumptions_keep (&r->assumptions, g->rests_on);
      if (g->knobs)
        ls_assumptions_keep (&r->knobs, g->knobs);
    }
  for (LsSweepGroup *g = groups; g < end; g++)
    if (g->first) {
      g_autoptr (GArray) rests = g_steal_pointer (&g->rests_on), knobs = g_steal_pointer (&g->knobs);
      ls_assumptions_add_beside (&g->rests_on, rests, r->assumptions);
      ls_assumptions_add_beside (&g->knobs, knobs, r->knobs);
    }
}

static void
describe_first (LsSweepRun *x)
{
  const LsSweepRow *first = x->report.best->len > 0 ? &g_array_index (x->report.best, LsSweepRow, 0) : NULL;
  sweep_note_untried (x, first ? &first->index : NULL);
  if (!first) {
    x->report.assumptions = assume_without_best (x);
    return;
  }
  const LsStrategy *s = &first->strategy;
  const LsHeadroom *h = &x->headroom[s->dp_kind];
  x->report.command = g_array_index (x->report.best, LsSweepRow, 0).command;
  for (guint i = 1; i < x->report.best->len; i++) {
    LsSweepRow *row = &g_array_index (x->report.best, LsSweepRow, i);
    row->instead = ls_job_knobs_instead (&x->spec->job, &x->model, &row->strategy, s);
  }
  x->report.headroom = h->bytes > 0 ? ls_headroom_text (h) : NULL;
  describe_groups (x);
  /* The text says these below its tables. */
  ls_assumptions_add (&x->report.assumptions, "headroom", ls_headroom_text (h), NULL,
                      x->spec->job.headroom.is_set ? NULL : "its program's", "--headroom SIZE");
  ls_price_assume (&x->report.price, &x->spec->price, true, &x->report.assumptions);
  ls_objective_assume (&x->objective, &x->spec->objective, &x->report.assumptions);
}

void
sweep_rank (LsSweepRun *x)
{
  x->report.best = ls_list_new (sizeof (LsSweepRow), ls_sweep_row_clear);
  g_autoptr (GPtrArray) best = g_ptr_array_new ();
  for (guint i = 0; i < x->groups->len; i++)
    add_best (x, &g_array_index (x->groups, Group, i), best);
  add_rows (x, x->report.best, best, true);
  ls_sort_by (x->report.best, by_value);
  if (x->spec->pareto) {
    x->report.front = ls_list_new (sizeof (LsSweepRow), ls_sweep_row_clear);
    g_autoptr (GPtrArray) front = g_ptr_array_new ();
    for (guint i = 0; i < x->front->len; i++)
      g_ptr_array_add (front, candidate_at (x, g_array_index (x->front, guint, i)));
    add_rows (x, x->report.front, front, false);
    ls_sort_by (x->report.front, by_value);
  }
  fill_groups (x);
  describe_first (x);
  count (x);
}
