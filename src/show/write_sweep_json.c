/* What a sweep found, for programs: see answers.h. */
#include <math.h>

#include "data/text/json_out.h"
#include "show/answers.h"
#include "show/run/write_run.h"

static void
write_config (LsJsonOut *w, const LsStrategy *s)
{
  ls_json_out_begin_object (w, "config");
  ls_json_out_uint (w, "gpus", s->gpus);
  ls_json_out_uint (w, "tp", s->tp);
  ls_json_out_uint (w, "pp", s->pp);
  ls_json_out_uint (w, "dp", s->dp);
  ls_json_out_uint (w, "cp", s->cp);
  ls_json_out_uint (w, "ep", s->ep);
  ls_json_out_uint (w, "vpp", s->vpp);
  ls_json_out_bool (w, "sp", s->sp);
  ls_json_out_uint (w, "zero", s->zero_stage);
  ls_json_out_string (w, "dp_kind", ls_dp_kind_name (s->dp_kind));
  ls_json_out_string (w, "schedule", s->schedule);
  ls_json_out_uint (w, "micro_batch", s->micro_batch);
  ls_json_out_uint (w, "global_batch", s->global_batch);
  ls_json_out_string (w, "recompute", ls_recompute_name (s->recompute));
  ls_json_out_bool (w, "tp_overlap", s->tp_overlap);
  g_autofree char *layers = ls_sweep_layers_text (s);
  ls_json_out_string (w, "layers_per_chunk", layers);
  ls_json_out_end_object (w);
}

static void
write_variants (LsJsonOut *w, const GArray *also)
{
  if (!also)
    return;
  ls_json_out_begin_array (w, "also");
  for (guint i = 0; i < also->len; i++) {
    const LsSweepVariant *v = &g_array_index (also, LsSweepVariant, i);
    ls_json_out_begin_object (w, NULL);
    ls_json_out_string (w, "change", v->change);
    ls_json_out_double (w, "step_time_s", ls_time_to_s (v->step));
    ls_json_out_int (w, "step_time_ps", v->step);
    ls_json_out_uint (w, "memory_bytes", v->memory_bytes);
    ls_json_out_string (w, "knobs", v->knobs);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
}

/* Only of what was asked for. */
static void
write_to_loss (LsJsonOut *w, const LsToLoss *f)
{
  if (isnan (f->goodput))
    return;
  ls_json_out_double (w, "goodput", f->goodput);
  if (isnan (f->time_s))
    return;
  ls_json_out_begin_object (w, "to_loss");
  ls_json_out_double (w, "tokens", f->tokens);
  ls_json_out_double (w, "steps", f->steps);
  ls_json_out_double (w, "time_s", f->time_s);
  ls_json_out_double (w, "usd", f->usd);
  ls_json_out_double (w, "mwh", f->mwh);
  ls_json_out_end_object (w);
}

static void
write_row (LsJsonOut *w, const char *key, const LsSweepRow *r)
{
  ls_json_out_begin_object (w, key);
  write_config (w, &r->strategy);
  ls_json_out_double (w, "step_time_s", ls_time_to_s (r->step));
  ls_json_out_int (w, "step_time_ps", r->step);
  ls_json_out_double (w, "low_s", r->low_s);
  ls_json_out_double (w, "high_s", r->high_s);
  ls_json_out_double (w, "tokens_per_s", r->tokens_per_s);
  ls_json_out_double (w, "mfu", r->mfu);
  ls_json_out_uint (w, "memory_bytes", r->memory_bytes);
  ls_json_out_double (w, "exposed_s", r->exposed_s);
  ls_json_out_double (w, "bubble_s", r->bubble_s);
  ls_json_out_double (w, "usd_per_trillion_tokens", r->usd_per_trillion);
  ls_json_out_double (w, "kwh_per_trillion_tokens", r->kwh_per_trillion);
  ls_json_out_double (w, "gpu_watts", r->gpu_watts);
  write_to_loss (w, &r->to_loss);
  ls_json_out_string (w, "command", r->command);
  ls_json_out_string (w, "knobs", r->knobs);
  ls_json_out_uint (w, "headroom_bytes", r->headroom_bytes);
  ls_json_out_uint (w, "free_bytes", r->free_bytes);
  if (r->why)
    ls_json_out_string (w, "why", r->why);
  write_variants (w, r->also);
  ls_json_out_end_object (w);
}

static void
write_rows (LsJsonOut *w, const char *key, const GArray *rows)
{
  ls_json_out_begin_array (w, key);
  for (guint i = 0; i < rows->len; i++)
    write_row (w, NULL, &g_array_index (rows, LsSweepRow, i));
  ls_json_out_end_array (w);
}

static void
write_counts (LsJsonOut *w, const LsSweepCounts *c)
{
  ls_json_out_begin_object (w, "counts");
  ls_json_out_uint (w, "enumerated", c->enumerated);
  ls_json_out_uint (w, "illegal", c->illegal);
  ls_json_out_uint (w, "infeasible", c->infeasible);
  ls_json_out_uint (w, "pruned", c->pruned);
  ls_json_out_uint (w, "simulated", c->simulated);
  if (c->left > 0)
    ls_json_out_uint (w, "left", c->left);
  ls_json_out_end_object (w);
}

/* The rule of thumb is that of the last. */
static void
write_groups (LsJsonOut *w, const GArray *groups, const LsObjective *objective)
{
  bool is_to_loss = objective->goal.tokens > 0;
  const LsSweepGroup *last = &g_array_index (groups, LsSweepGroup, groups->len - 1);
  if (last->rule) {
    write_row (w, "rule_of_thumb", last->rule);
    ls_json_out_uint (w, "rule_of_thumb_rank", last->rule_rank);
    ls_json_out_bool (w, "rule_of_thumb_rank_exact", last->is_rule_rank_exact);
  }
  ls_json_out_begin_array (w, "scaling");
  for (guint i = 0; i < groups->len; i++) {
    const LsSweepGroup *g = &g_array_index (groups, LsSweepGroup, i);
    ls_json_out_begin_object (w, NULL);
    ls_json_out_uint (w, "gpus", g->gpus);
    ls_json_out_uint (w, "global_batch", g->global_batch);
    ls_json_out_double (w, "step_time_s", g->first ? ls_time_to_s (g->first->step) : NAN);
    ls_json_out_double (w, "tokens_per_s", g->first ? g->first->tokens_per_s : NAN);
    ls_json_out_double (w, "tokens_per_s_per_gpu", g->tokens_per_s_per_gpu);
    ls_json_out_double (w, "mfu", g->first ? g->first->mfu : NAN);
    ls_json_out_double (w, "of_fewest_gpus", g->of_fewest_gpus);
    ls_json_out_double (w, "of_largest_batch", g->of_largest_batch);
    if (is_to_loss && g->first)
      ls_json_out_bool (w, "beaten", g->is_beaten);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
}

static void
write_objective (LsJsonOut *w, const LsObjective *o)
{
  if (o->kind == LS_OBJECTIVE_STEP)
    return;
  ls_json_out_begin_object (w, "objective");
  ls_json_out_string (w, "name", ls_objective_name (o->kind));
  ls_json_out_string (w, "reliability", o->reliability.name);
  ls_json_out_bool (w, "reliability_assumed", o->reliability_is_assumed);
  if (o->goal.tokens > 0) {
    ls_json_out_double (w, "small_batch_tokens", o->goal.tokens);
    ls_json_out_double (w, "critical_batch", o->goal.critical_batch > 0 ? o->goal.critical_batch : NAN);
    ls_json_out_string (w, "critical_batch_law", o->goal.critical_law);
    ls_json_out_double (w, "loss", o->goal.loss);
    ls_json_out_string (w, "law", o->goal.law.name);
  }
  ls_json_out_end_object (w);
}

static void
write_untried (LsJsonOut *w, const GPtrArray *untried)
{
  ls_json_out_begin_array (w, "not_tried");
  for (guint i = 0; untried && i < untried->len; i++) {
    const LsSweepUntried *u = untried->pdata[i];
    ls_json_out_begin_object (w, NULL);
    ls_json_out_string (w, "knob", u->knob);
    ls_json_out_string (w, "tried", u->tried);
    ls_json_out_string (w, "option", u->option);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
}

static void
write_none (LsJsonOut *w, const LsSweepNone *none)
{
  if (!none)
    return;
  ls_json_out_begin_object (w, "none");
  ls_json_out_uint (w, "looked_at", none->n_looked_at);
  ls_json_out_begin_array (w, "rules");
  for (guint i = 0; i < none->rules->len; i++) {
    ls_json_out_begin_object (w, NULL);
    ls_json_out_uint (w, "n", g_array_index (none->rules, LsSweepRule, i).n);
    ls_json_out_uint (w, "n_alone", g_array_index (none->rules, LsSweepRule, i).n_alone);
    ls_json_out_bool (w, "of_all", g_array_index (none->rules, LsSweepRule, i).is_of_all);
    ls_json_out_string (w, "rule", g_array_index (none->rules, LsSweepRule, i).text);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
  ls_json_out_string (w, "nearest", none->nearest);
  if (none->nearest) {
    ls_json_out_uint (w, "needed_bytes", none->needed_bytes);
    ls_json_out_uint (w, "capacity_bytes", none->capacity_bytes);
    ls_json_out_uint (w, "headroom_bytes", none->headroom_bytes);
  }
  ls_json_advice (w, none->advice);
  ls_json_out_end_object (w);
}

char *
ls_sweep_to_json (const LsSweepReport *r)
{
  LsJsonOut w;
  ls_json_out_open_as (&w, "sweep");
  ls_json_assumptions (&w, r->assumptions);
  write_counts (&w, &r->counts);
  ls_json_out_string (&w, "software", r->software);
  if (r->has_timing) {
    ls_json_out_double (&w, "wall_s", r->wall_s);
    ls_json_out_double (&w, "simulate_s", r->simulate_s);
  }
  write_objective (&w, r->objective);
  write_rows (&w, "best", r->best);
  if (r->front)
    write_rows (&w, "pareto", r->front);
  write_groups (&w, r->groups, r->objective);
  ls_json_out_begin_object (&w, "price");
  ls_json_out_double (&w, "usd_per_gpu_hour", r->usd_per_gpu_hour);
  ls_json_out_double (&w, "gpu_watts", r->gpu_watts);
  ls_json_out_double (&w, "pue", r->pue);
  ls_json_out_end_object (&w);
  if (r->is_interrupted)
    ls_json_out_bool (&w, "interrupted", true);
  if (r->command)
    ls_json_out_string (&w, "command", r->command);
  if (r->changes)
    ls_sweep_changes_add (r->changes, &w);
  write_untried (&w, r->untried);
  write_none (&w, r->none);
  return ls_json_out_close (&w);
}
