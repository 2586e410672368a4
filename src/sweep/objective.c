#include "sweep/objective.h"

#include <math.h>
#include <stddef.h>

#include "data/text/field.h"
#include "job/assumptions.h"

static const LsEnumName kinds[] = { { "step", LS_OBJECTIVE_STEP },
                                    { "goodput", LS_OBJECTIVE_GOODPUT },
                                    { "time-to-loss", LS_OBJECTIVE_TIME_TO_LOSS },
                                    { "cost-to-loss", LS_OBJECTIVE_COST_TO_LOSS },
                                    { NULL } };

const char *
ls_objective_name (int kind)
{
  return kinds[kind].name;
}

/* --- what is asked ---------------------------------------------------------------------------------- */

static const LsField fields[] = {
  { "objective", LS_FIELD_ENUM, offsetof (LsObjectiveAsk, kind), .names = kinds },
  { "reliability", LS_FIELD_STRING, offsetof (LsObjectiveAsk, reliability), .required = true },
  { NULL },
};

void
ls_objective_ask_clear (LsObjectiveAsk *ask)
{
  ls_fields_clear (fields, ask);
  ls_loss_ask_clear (&ask->loss);
}

bool
ls_objective_ask_has (const char *key)
{
  return ls_field_find (fields, key) || ls_loss_ask_has (key);
}

gboolean
ls_objective_ask_set (LsObjectiveAsk *ask, const char *key, const char *value, LsDiagList *diags)
{
  if (ls_loss_ask_has (key))
    return ls_loss_ask_set (&ask->loss, key, value, diags);
  return ls_field_set_text (fields, ask, key, value, diags);
}

static bool
is_to_loss (int kind)
{
  return kind == LS_OBJECTIVE_TIME_TO_LOSS || kind == LS_OBJECTIVE_COST_TO_LOSS;
}

static gboolean
check (const LsObjectiveAsk *ask, const LsPrice *price, GError **error)
{
  bool has_end = ask->loss.loss > 0 || ask->loss.tokens > 0;
  bool has_loss = has_end || ask->loss.law || ask->loss.critical_law || ask->loss.critical_batch > 0;
  const LsWrong rows[] = {
    { ask->kind == LS_OBJECTIVE_STEP && ask->reliability,
      "--reliability has no effect on steps: it goes with another --objective" },
    { !is_to_loss (ask->kind) && has_loss,
      "--loss, --tokens, --scaling-law and --critical-batch have no effect here: they go with --objective "
      "time-to-loss or cost-to-loss" },
    { is_to_loss (ask->kind) && !has_end,
      "which loss? expected --loss X, or --tokens N that small batches need" },
    { ask->loss.loss > 0 && ask->loss.tokens > 0, "expected --loss or --tokens; got both" },
    { ask->kind == LS_OBJECTIVE_COST_TO_LOSS && isnan (price->usd_per_gpu_hour),
      "what these accelerators cost is not known: expected --gpu-hour USD" },
  };
  return ls_check (rows, G_N_ELEMENTS (rows), error);
}

/* --- what was found --------------------------------------------------------------------------------- */

void
ls_objective_clear (LsObjective *o)
{
  ls_loss_goal_clear (&o->goal);
  ls_reliability_clear (&o->reliability);
}

gboolean
ls_objective_find (const LsObjectiveAsk *ask, const LsJobSpec *job, const LsClusterSpec *cluster,
                   const LsPrice *price, LsObjective *ret_objective, GError **error)
{
  LsObjective o = { .kind = ask->kind, .reliability_is_assumed = !ask->reliability };
  gboolean ok = check (ask, price, error);
  if (ok && ask->kind != LS_OBJECTIVE_STEP)
    ok = ls_train_load_reliability (ask->reliability, cluster, &o.reliability, error);
  if (ok && is_to_loss (ask->kind))
    ok = ls_loss_goal_find (&ask->loss, job, &o.goal, error);
  if (ok)
    *ret_objective = o;
  else
    ls_objective_clear (&o);
  return ok;
}

void
ls_objective_assume (const LsObjective *o, const LsObjectiveAsk *ask, GArray **assumptions)
{
  static const char train[] = "by default";
  const struct {
    const char *key, *value, *words, *why, *instead;
  } rows[] = {
    { "reliability", o->reliability.name, "failures %s", o->reliability_is_assumed ? "by default" : NULL,
      "--reliability NAME|FILE" },
    { "storage_bandwidth", "150 MB/s for each accelerator", "storage at %s", train,
      "lockstep train --storage-bandwidth RATE" },
    { "checkpoint_every", "the best", "checkpoints at %s interval", train,
      "lockstep train --checkpoint-every N|TIME" },
    { "checkpoint_async", "0", "--checkpoint-async %s", train, "lockstep train --checkpoint-async 1" },
    { "spares", "any", "spare nodes %s", train, "lockstep train --spares N" },
    { "jitter", "off", "jitter %s", "a sweep draws none", "lockstep train --jitter NAME|FILE" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows) && o->kind != LS_OBJECTIVE_STEP; i++)
    ls_assumptions_add (assumptions, rows[i].key, g_strdup (rows[i].value), rows[i].words, rows[i].why,
                        rows[i].instead);
  ls_loss_goal_assume (&o->goal, &ask->loss, assumptions);
}

double
ls_objective_goodput (const LsObjective *o, const LsModel *m, const LsStrategy *s,
                      const LsClusterSpec *cluster)
{
  return o->kind == LS_OBJECTIVE_STEP ? 1 : ls_train_goodput (m, s, cluster, &o->reliability);
}

LsToLoss
ls_objective_figures (const LsObjective *o, const LsPrice *price, const LsStrategy *s, double step_s,
                      double watts, double goodput)
{
  LsToLoss f = { NAN, NAN, NAN, NAN, NAN, NAN };
  if (o->kind != LS_OBJECTIVE_STEP)
    f.goodput = goodput;
  if (!is_to_loss (o->kind))
    return f;
  double per_step = (double) s->global_batch * s->seq, critical = o->goal.critical_batch,
         more = critical > 0 ? 1 + per_step / critical : 1;
  f.steps = ceil (o->goal.tokens * more / per_step);
  f.tokens = f.steps * per_step;
  f.time_s = f.steps * step_s / goodput;
  f.usd = ls_price_usd (price, s->gpus, 1) * f.time_s;
  f.mwh = ls_price_kwh (price, watts, s->gpus, 1) * f.time_s / 1e3;
  return f;
}

double
ls_objective_value (const LsObjective *o, const LsToLoss *f, double tokens_per_s)
{
  switch (o->kind) {
  case LS_OBJECTIVE_GOODPUT:
    return -tokens_per_s * f->goodput;
  case LS_OBJECTIVE_TIME_TO_LOSS:
    return f->time_s;
  case LS_OBJECTIVE_COST_TO_LOSS:
    return f->usd;
  default:
    return -tokens_per_s;
  }
}
