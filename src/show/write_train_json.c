#include <math.h>

#include "data/text/csv.h"
#include "data/text/json_out.h"
#include "show/run/write_run.h"
#include "show/answers.h"

/* --- JSON ------------------------------------------------------------------------------ */

static void
json_spread (LsJsonOut *out, const char *key, const LsOverSeeds *s)
{
  ls_json_out_begin_object (out, key);
  ls_json_out_double (out, "mean", s->mean);
  ls_json_out_double (out, "p5", s->low);
  ls_json_out_double (out, "p95", s->high);
  ls_json_out_double (out, "standard_error", s->error);
  ls_json_out_end_object (out);
}

static void
json_phases (LsJsonOut *out, const LsTrainReport *r)
{
  ls_json_out_begin_array (out, "phases");
  for (guint i = 0; i < r->phases->len; i++) {
    const LsTrainPhase *p = &g_array_index (r->phases, LsTrainPhase, i);
    ls_json_out_begin_object (out, NULL);
    ls_json_out_string (out, "name", p->name);
    ls_json_out_double (out, "tokens", p->tokens);
    ls_json_out_double (out, "steps", p->n_steps);
    ls_json_out_uint (out, "global_batch", p->global_batch);
    ls_json_out_uint (out, "seq", p->seq);
    ls_json_out_double (out, "step_time_s", p->step_s);
    if (r->step_spread)
      ls_json_out_double (out, "mean_step_time_s", p->step_s * (1 + p->longer));
    ls_json_out_double (out, "mfu", p->mfu);
    ls_json_out_uint (out, "checkpoint_steps", p->every);
    ls_json_out_bool (out, "fits", p->fits);
    ls_json_out_end_object (out);
  }
  ls_json_out_end_array (out);
}

static void
json_checkpoint (LsJsonOut *out, const LsTrainCheckpoint *c)
{
  ls_json_out_begin_object (out, "checkpoint");
  ls_json_out_double (out, "bytes", c->bytes);
  ls_json_out_double (out, "save_s", c->times.save_s);
  ls_json_out_double (out, "write_s", c->times.write_s);
  ls_json_out_double (out, "read_s", c->times.read_s);
  ls_json_out_double (out, "frozen_read_s", c->times.frozen_s);
  ls_json_out_double (out, "storage_bytes_per_s", c->storage_bytes_per_s);
  ls_json_out_double (out, "interval_s", c->interval_s);
  ls_json_out_double (out, "young_s", c->young_s);
  ls_json_out_double (out, "daly_s", c->daly_s);
  ls_json_out_double (out, "best_s", c->best_s);
  ls_json_out_double (out, "expected_goodput", c->expected_goodput);
  ls_json_out_end_object (out);
}

static void
json_failures (LsJsonOut *out, const LsTrainReport *r)
{
  ls_json_out_begin_object (out, "failures");
  ls_json_out_string (out, "reliability", r->reliability);
  ls_json_out_string (out, "source", r->reliability_source);
  ls_json_out_bool (out, "assumed", r->reliability_is_assumed);
  ls_json_out_double (out, "mtbf_s", r->checkpoint.mtbf_s);
  ls_json_out_double (out, "restart_s", r->checkpoint.restart_s);
  ls_json_out_begin_array (out, "causes");
  for (guint i = 0; i < r->causes->len; i++) {
    const LsTrainCause *c = &g_array_index (r->causes, LsTrainCause, i);
    ls_json_out_begin_object (out, NULL);
    ls_json_out_string (out, "name", c->name);
    ls_json_out_double (out, "n", c->n);
    ls_json_out_double (out, "lost_s", c->lost_s);
    ls_json_out_end_object (out);
  }
  ls_json_out_end_array (out);
  ls_json_out_end_object (out);
}

static void
json_spares (LsJsonOut *out, uint32_t spares)
{
  if (spares == LS_SPARES_ANY)
    ls_json_out_null (out, "spares");
  else
    ls_json_out_uint (out, "spares", spares);
}

static void
json_choices (LsJsonOut *out, const LsTrainReport *r)
{
  ls_json_out_begin_array (out, "choices");
  for (guint i = 0; i < r->choices->len; i++) {
    const LsTrainChoice *c = &g_array_index (r->choices, LsTrainChoice, i);
    ls_json_out_begin_object (out, NULL);
    ls_json_out_double (out, "interval_s", c->interval_s);
    ls_json_out_uint (out, "checkpoint_steps", c->every);
    json_spares (out, c->spares);
    json_spread (out, "goodput", &c->goodput);
    json_spread (out, "time_s", &c->wall_s);
    ls_json_out_end_object (out);
  }
  ls_json_out_end_array (out);
}

static void
json_batches (LsJsonOut *out, const LsTrainReport *r)
{
  ls_json_out_begin_array (out, "batches");
  for (guint i = 0; i < r->batches->len; i++) {
    const LsTrainBatch *b = &g_array_index (r->batches, LsTrainBatch, i);
    ls_json_out_begin_object (out, NULL);
    ls_json_out_uint (out, "global_batch", b->global_batch);
    ls_json_out_string (out, "refused", b->refused);
    ls_json_out_bool (out, "fits", b->fits);
    ls_json_out_double (out, "tokens", b->tokens);
    ls_json_out_double (out, "steps", b->steps);
    ls_json_out_double (out, "step_time_s", b->step_s);
    ls_json_out_double (out, "time_s", b->wall_s);
    ls_json_out_double (out, "gpu_hours", b->gpu_hours);
    ls_json_out_double (out, "usd", b->usd);
    ls_json_out_end_object (out);
  }
  ls_json_out_end_array (out);
}

static void
json_goal (LsJsonOut *out, const LsTrainReport *r)
{
  const LsLossGoal *g = &r->goal;
  ls_json_out_double (out, "critical_batch", g->critical_batch > 0 ? g->critical_batch : NAN);
  ls_json_out_string (out, "critical_batch_law", g->critical_law);
  if (!g->law.name) {
    ls_json_out_null (out, "loss");
    return;
  }
  ls_json_out_begin_object (out, "loss");
  ls_json_out_double (out, "nats_per_token", r->loss);
  ls_json_out_double (out, "least", g->floor);
  ls_json_out_double (out, "params", g->n_params);
  ls_json_out_double (out, "small_batch_tokens", r->small_tokens);
  ls_json_out_string (out, "law", g->law.name);
  ls_json_out_string (out, "source", g->law.source);
  ls_json_out_bool (out, "assumed", g->law_is_assumed);
  ls_json_out_end_object (out);
}

char *
ls_train_to_json (const LsTrainReport *r)
{
  LsJsonOut out;
  ls_json_out_open_as (&out, "train");
  ls_json_assumptions (&out, r->job->assumptions);
  ls_json_out_uint (&out, "gpus", r->n_gpus);
  ls_json_out_uint (&out, "nodes", r->n_nodes);
  ls_json_out_uint (&out, "seeds", r->n_seeds);
  json_phases (&out, r);
  ls_json_out_double (&out, "ideal_s", r->ideal_s);
  json_spread (&out, "time_s", &r->wall_s);
  json_spread (&out, "goodput", &r->goodput);
  json_spread (&out, "stops", &r->stops);
  json_spread (&out, "steps", &r->steps);
  json_spread (&out, "tokens", &r->tokens);
  json_checkpoint (&out, &r->checkpoint);
  ls_json_out_begin_object (&out, "lost_s");
  for (int k = 0; k < LS_N_LOST; k++)
    if (k != LS_LOST_VARIATION || r->step_spread)
      ls_json_out_double (&out, ls_lost_name ((LsLost) k), r->lost_s[k]);
  ls_json_out_end_object (&out);
  if (r->step_spread)
    ls_spread_to_json (r->step_spread, &out);
  json_failures (&out, r);
  json_choices (&out, r);
  json_goal (&out, r);
  json_batches (&out, r);
  ls_json_out_double (&out, "gpu_hours", r->gpu_hours);
  ls_json_out_double (&out, "usd", r->usd);
  ls_json_out_double (&out, "mwh", r->mwh);
  ls_json_out_begin_object (&out, "mwh_by");
  ls_json_out_double (&out, "computing", r->mwh_by.computing);
  ls_json_out_double (&out, "communicating", r->mwh_by.communicating);
  ls_json_out_double (&out, "idle", r->mwh_by.idle);
  ls_json_out_double (&out, "free", r->mwh_by.free);
  ls_json_out_end_object (&out);
  ls_json_out_double (&out, "gpu_watts", r->gpu_watts);
  ls_json_out_double (&out, "co2_t", r->co2_t);
  return ls_json_out_close (&out);
}

/* --- CSV ------------------------------------------------------------------------------- */

/* Columns behind the kind of the row and its name; NAN: not of this kind. */
enum { TIMES, LOST, INTERVAL, SPARES, TOKENS, STEPS, STEP, GOODPUT, TIME, GPU_HOURS, USD, N_COLUMNS };

static void
csv_row (GString *out, const char *kind, const char *name, const double values[N_COLUMNS])
{
  g_string_append_printf (out, "%s,", kind);
  ls_csv_append (out, name);
  for (int i = 0; i < N_COLUMNS; i++) {
    char text[G_ASCII_DTOSTR_BUF_SIZE] = "";
    g_string_append_printf (out, ",%s",
                            isnan (values[i]) ? "" : g_ascii_dtostr (text, sizeof text, values[i]));
  }
  g_string_append_c (out, '\n');
}

#define BLANK                                                                                                \
  {                                                                                                          \
    NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN                                                    \
  }

static void
csv_choice (GString *out, const LsTrainChoice *c)
{
  double v[N_COLUMNS] = BLANK;
  g_autofree char *name = c->spares == LS_SPARES_ANY ? g_strdup ("any") : g_strdup_printf ("%u", c->spares);
  v[INTERVAL] = c->interval_s;
  v[SPARES] = c->spares == LS_SPARES_ANY ? NAN : c->spares;
  v[STEPS] = (double) c->every;
  v[GOODPUT] = c->goodput.mean;
  v[TIME] = c->wall_s.mean;
  csv_row (out, "choice", name, v);
}

static void
csv_batch (GString *out, const LsTrainBatch *b)
{
  double v[N_COLUMNS] = BLANK;
  g_autofree char *name = g_strdup_printf ("%u", b->global_batch);
  v[TOKENS] = b->tokens;
  v[STEPS] = b->steps;
  v[STEP] = b->step_s;
  v[TIME] = b->wall_s;
  v[GPU_HOURS] = b->gpu_hours;
  v[USD] = b->usd;
  csv_row (out, "batch", name, v);
}

char *
ls_train_to_csv (const LsTrainReport *r)
{
  GString *out = g_string_new (
      "row,name,times,lost_s,interval_s,spares,tokens,steps,step_time_s,goodput,time_s,gpu_hours,usd\n");
  for (guint i = 0; i < r->causes->len; i++) {
    const LsTrainCause *c = &g_array_index (r->causes, LsTrainCause, i);
    double v[N_COLUMNS] = BLANK;
    v[TIMES] = c->n;
    v[LOST] = c->lost_s;
    csv_row (out, "cause", c->name, v);
  }
  for (guint i = 0; i < r->choices->len; i++)
    csv_choice (out, &g_array_index (r->choices, LsTrainChoice, i));
  for (guint i = 0; i < r->batches->len; i++)
    csv_batch (out, &g_array_index (r->batches, LsTrainBatch, i));
  return g_string_free (out, FALSE);
}
