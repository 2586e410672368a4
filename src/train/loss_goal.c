#include "train/loss_goal.h"

#include <math.h>

#include <lockstep/error.h>

#include "data/datadir.h"
#include "data/jobs/job_files.h"
#include "job/assumptions.h"
#include "job/job_from.h"

/* Its constants give the tokens a parameter that Chinchilla took; those of Hoffmann et al. do not. */
#define DEFAULT_LAW "besiroglu-2024"
#define MAX_TOKENS  1e18

/* --- what is asked ---------------------------------------------------------------------------------- */

bool
ls_count_read (const char *text, void *ret_count)
{
  static const struct {
    char letter;
    double scale;
  } scales[] = { { 'K', 1e3 }, { 'M', 1e6 }, { 'B', 1e9 }, { 'T', 1e12 } };
  char *end;
  double value = g_ascii_strtod (text, &end);
  for (guint i = 0; end != text && i < G_N_ELEMENTS (scales); i++)
    if (g_ascii_toupper (*end) == scales[i].letter) {
      value *= scales[i].scale;
      end++;
      break;
    }
  if (end == text || *end || !(value >= 1 && value <= 1e18))
    return false;
  *(double *) ret_count = value;
  return true;
}

/* A count, or the name of a law: what begins as a number is none. */
static bool
parse_critical (const char *text, void *target)
{
  LsLossAsk *ask = target;
  double count;
  bool is_count = ls_count_read (text, &count);
  if (!is_count && !g_ascii_isalpha (*text) && !ls_data_is_path (text))
    return false;
  g_free (ask->critical_law);
  ask->critical_law = is_count ? NULL : g_strdup (text);
  ask->critical_batch = is_count ? count : 0;
  return true;
}

static const LsField fields[] = {
  { "loss", LS_FIELD_DOUBLE, offsetof (LsLossAsk, loss), .above = true, .max = 100 },
  { "tokens", LS_FIELD_CUSTOM, offsetof (LsLossAsk, tokens), .parse = ls_count_read,
    .expected = LS_COUNT_EXPECTED },
  { "scaling_law", LS_FIELD_STRING, offsetof (LsLossAsk, law), .required = true },
  { "critical_batch", LS_FIELD_CUSTOM, .parse = parse_critical,
    .expected = LS_COUNT_EXPECTED ", or the name of a law" },
  { NULL },
};

void
ls_loss_ask_clear (LsLossAsk *ask)
{
  ls_fields_clear (fields, ask);
  g_clear_pointer (&ask->critical_law, g_free);
}

bool
ls_loss_ask_has (const char *key)
{
  return ls_field_find (fields, key) != NULL;
}

gboolean
ls_loss_ask_set (LsLossAsk *ask, const char *key, const char *value, LsDiagList *diags)
{
  return ls_field_set_text (fields, ask, key, value, diags);
}

bool
ls_loss_ask_needs_law (const LsLossAsk *ask)
{
  return ask->loss > 0 || ask->law || ask->critical_law;
}

void
ls_loss_goal_clear (LsLossGoal *goal)
{
  ls_scaling_law_clear (&goal->law);
  g_free (goal->critical_law);
  *goal = (LsLossGoal) { 0 };
}

double
ls_loss_goal_after (const LsLossGoal *goal, double tokens)
{
  return goal->law.name && tokens > 0 ? ls_scaling_loss (&goal->law, goal->n_params, tokens) : NAN;
}

/* --- what it takes --------------------------------------------------------------------------------- */

static gboolean
load_law (const char *name, LsScalingLaw *ret_law, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  return ls_data_file_load (&ls_scaling_file, name, ret_law, diags) || ls_diag_list_to_error (diags, error);
}

static gboolean
check_model (const LsJobSpec *job, const LsModel *m, GError **error)
{
  const char *what = m->moe.n_experts > 0 ? "experts"
      : m->sides.encoder_layers > 0       ? "an encoder"
      : job->strategy.lora.rank > 0       ? "adapters on frozen weights"
                                          : NULL;
  return !what
      || ls_fail (
          error, LS_ERROR_CONFLICT,
          "laws of loss are of dense decoders of which all learns, not of a model with %s: --tokens says "
          "how many, --critical-batch where batches become too large",
          what);
}

static gboolean
count_params (const LsJobSpec *job, const LsScalingLaw *law, double *ret_n, GError **error)
{
  if (!ls_job_check_named (job, error))
    return FALSE;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsModel model;
  if (!ls_job_load_model (job, ls_job_says, &model, NULL, diags))
    return ls_diag_list_to_error (diags, error);
  gboolean ok = check_model (job, &model, error);
  *ret_n = ls_scaling_params (law, &model);
  ls_model_clear (&model);
  return ok;
}

/* --- tokens and loss -------------------------------------------------------------------------------- */

static gboolean
find_tokens (const LsScalingLaw *law, LsLossGoal *goal, GError **error)
{
  goal->tokens = ls_scaling_tokens (law, goal->n_params, goal->loss);
  if (isinf (goal->tokens))
    return ls_fail (error, LS_ERROR_CONFLICT,
                    "a loss of %.12g is never reached: by %s %.4g parameters stay above %.6g nats per token, "
                    "whatever they are trained on",
                    goal->loss, law->name, goal->n_params, goal->floor);
  return (goal->tokens >= 1 && goal->tokens <= MAX_TOKENS)
      || ls_fail (error, LS_ERROR_LIMIT,
                  "a loss of %.12g takes %.3g tokens by %s with %.4g parameters, which stay above %.6g",
                  goal->loss, goal->tokens, law->name, goal->n_params, goal->floor);
}

static gboolean
follow_law (const LsLossAsk *ask, const LsJobSpec *job, const LsScalingLaw *law, LsLossGoal *goal,
            GError **error)
{
  if (!ls_scaling_has_loss (law))
    return ls_fail (error, LS_ERROR_USAGE, "%s says nothing of the loss: --critical-batch takes it",
                    law->name);
  if (!count_params (job, law, &goal->n_params, error))
    return FALSE;
  goal->law = *law;
  goal->law.name = g_strdup (law->name);
  goal->law.source = g_strdup (law->source);
  goal->law_is_assumed = !ask->law;
  goal->floor = ls_scaling_floor (law, goal->n_params);
  if (ask->loss > 0)
    return find_tokens (law, goal, error);
  goal->loss = ls_scaling_loss (law, goal->n_params, goal->tokens);
  return TRUE;
}

/* --- batches --------------------------------------------------------------------------------------- */

static gboolean
find_critical (const LsLossAsk *ask, const LsScalingLaw *law, LsLossGoal *goal, GError **error)
{
  if (ask->critical_law && !ls_scaling_has_critical (law))
    return ls_fail (error, LS_ERROR_USAGE, "%s says nothing of the critical batch", law->name);
  if (!ls_scaling_has_critical (law))
    return TRUE;
  goal->critical_law = g_strdup (law->name);
  goal->critical_batch = ls_scaling_critical (law, goal->loss, goal->tokens);
  return goal->critical_batch >= 1
      || ls_fail (error, LS_ERROR_LIMIT, "by %s the critical batch is %.3g tokens there: less than one",
                  law->name, goal->critical_batch);
}

static gboolean
find_all (const LsLossAsk *ask, const LsJobSpec *job, const LsScalingLaw *law, const LsScalingLaw *critical,
          LsLossGoal *goal, GError **error)
{
  bool needs_loss = ask->loss > 0 || ask->law || (critical && critical->critical.of == LS_CRITICAL_OF_LOSS);
  if (needs_loss && !follow_law (ask, job, law, goal, error))
    return FALSE;
  return ask->critical_batch > 0 || find_critical (ask, critical ? critical : law, goal, error);
}

gboolean
ls_loss_goal_find (const LsLossAsk *ask, const LsJobSpec *job, LsLossGoal *ret_goal, GError **error)
{
  LsLossGoal goal = { .n_params = NAN,
                      .floor = NAN,
                      .loss = ask->loss > 0 ? ask->loss : NAN,
                      .tokens = ask->tokens,
                      .critical_batch = ask->critical_batch };
  LsScalingLaw law = { 0 }, critical = { 0 };
  gboolean ok = TRUE;
  if (ls_loss_ask_needs_law (ask)) {
    if (ask->loss == 0 && ask->tokens == 0)
      ok = ls_fail (error, LS_ERROR_USAGE, "a law of loss or batch needs --loss X or --tokens N");
    ok = ok && load_law (ask->law ? ask->law : DEFAULT_LAW, &law, error)
        && (!ask->critical_law || load_law (ask->critical_law, &critical, error))
        && find_all (ask, job, &law, ask->critical_law ? &critical : NULL, &goal, error);
  }
  ls_scaling_law_clear (&law);
  ls_scaling_law_clear (&critical);
  if (ok)
    *ret_goal = goal;
  else
    ls_loss_goal_clear (&goal);
  return ok;
}

void
ls_loss_goal_assume (const LsLossGoal *goal, const LsLossAsk *ask, GArray **all)
{
  bool is_given = ask->critical_batch > 0 || ask->critical_law, has_one = goal->critical_batch > 0;
  const char *whence = has_one ? "the law of the loss" : "by default";
  g_autofree char *n = g_strdup_printf ("%.6g", goal->critical_batch);
  if (goal->tokens > 0 || goal->counts_tokens)
    ls_assumptions_add (all, "critical_batch", g_strdup (has_one ? n : "none"), "critical batch %s",
                        is_given ? NULL : whence, "--critical-batch TOKENS|NAME|FILE");
  if (goal->law.name)
    ls_assumptions_add (all, "scaling_law", g_strdup (goal->law.name), "loss by %s",
                        goal->law_is_assumed ? "by default" : NULL, "--scaling-law NAME|FILE");
}
