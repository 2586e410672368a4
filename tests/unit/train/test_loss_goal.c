/* Pins laws of loss and batch, and runs that go to a loss: the published worked figures of the shipped laws, that
 * tokens and loss are inverse, which parameters count, and what is refused. */
#include "ls_test.h"

#include <lockstep/error.h>
#include <math.h>

#include "data/jobs/job_files.h"
#include "train/loss_goal.h"

static const char *const shipped[] = { "hoffmann-2022", "besiroglu-2024", "kaplan-2020" };

static void
load (const char *name, LsScalingLaw *law)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (!LS_CHECK (ls_data_file_load (&ls_scaling_file, name, law, diags)))
    g_error ("%s", name);
}

/* --- laws ------------------------------------------------------------------------------ */

/* Losses of published models by the replication (its own arithmetic), Kaplan's steps by hand: model/scaling.h. */
static void
laws_give_the_worked_examples (void)
{
  static const struct {
    double n_params, tokens, loss;
  } cases[] = { { 70e9, 1.4e12, 1.9739 },
                { 280e9, 300e9, 1.9996 },
                { 175e9, 300e9, 2.0085 },
                { 405e9, 15.6e12, 1.8926 },
                { 8e9, 15e12, 2.0221 } };
  LsScalingLaw law;
  load ("besiroglu-2024", &law);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    LS_CHECK_NEAR (ls_scaling_loss (&law, cases[i].n_params, cases[i].tokens), cases[i].loss, 3e-5);
  LS_CHECK_NEAR (ls_scaling_floor (&law, 70e9), 1.899, 3e-4);
  ls_scaling_law_clear (&law);
  load ("kaplan-2020", &law);
  LS_CHECK_NEAR (ls_scaling_critical (&law, 2, NAN), 7.74e6, 1e-4);
  LS_CHECK_NEAR (ls_scaling_tokens (&law, 70e9, 2), 76.7e9, 1e-4);
  LS_CHECK_NEAR (ls_scaling_tokens (&law, 70e9, 2) / ls_scaling_critical (&law, 2, NAN), 9910, 1e-4);
  ls_scaling_law_clear (&law);
}

/* At Chinchilla's 5.76e23 FLOP, 6 N D: what its authors' unrounded exponents ask for, and the replication. */
static double
best_tokens_per_param (const LsScalingLaw *law)
{
  double best = INFINITY, at = 0;
  for (double n = 1e9; n < 1e12; n *= 1.001) {
    double d = 5.76e23 / 6 / n, loss = ls_scaling_loss (law, n, d);
    if (loss < best) {
      best = loss;
      at = d / n;
    }
  }
  return at;
}

static void
laws_share_compute_as_their_constants_say (void)
{
  LsScalingLaw law;
  load ("besiroglu-2024", &law);
  LS_CHECK_NEAR (best_tokens_per_param (&law), 18.4, 5e-3);
  ls_scaling_law_clear (&law);
  load ("hoffmann-2022", &law);
  LS_CHECK_NEAR (best_tokens_per_param (&law), 59.1, 5e-3);
  ls_scaling_law_clear (&law);
}

static void
tokens_and_loss_are_inverse (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (shipped); i++) {
    LsScalingLaw law;
    load (shipped[i], &law);
    for (double n = 1e7; n < 1e13; n *= 7)
      for (double d = 1e9; d < 1e14; d *= 9) {
        double loss = ls_scaling_loss (&law, n, d);
        LS_CHECK (loss > ls_scaling_floor (&law, n));
        LS_CHECK_NEAR (ls_scaling_tokens (&law, n, loss) / d, 1, 1e-6);
      }
    LS_CHECK (isinf (ls_scaling_tokens (&law, 1e9, ls_scaling_floor (&law, 1e9))));
    ls_scaling_law_clear (&law);
  }
}

/* GPT-3's layers are 12 n d^2 but for biases and norms; all parameters have embeddings too. */
static void
each_law_counts_its_parameters (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsModel m;
  if (!LS_CHECK (ls_model_load ("gpt3-175b", &m, NULL, diags)))
    return;
  LsScalingLaw all, layers;
  load ("besiroglu-2024", &all);
  load ("kaplan-2020", &layers);
  LS_CHECK_NEAR (ls_scaling_params (&layers, &m) / (12.0 * 96 * 12288 * 12288), 1, 1e-3);
  LS_CHECK_NEAR (ls_scaling_params (&all, &m) - ls_scaling_params (&layers, &m), 12288.0 * (m.vocab + m.seq),
                 1e-4);
  ls_scaling_law_clear (&all);
  ls_scaling_law_clear (&layers);
  ls_model_clear (&m);
}

/* --- what is asked of them --------------------------------------------------------------- */

typedef struct {
  LsJobSpec job;
  LsLossAsk ask;
} Case;

static Case *
case_new (const char *model)
{
  Case *c = g_new0 (Case, 1);
  ls_job_spec_init (&c->job);
  c->job.model = g_strdup (model);
  c->job.cluster = g_strdup ("dgx-h100");
  return c;
}

static void
case_free (Case *c)
{
  ls_job_spec_clear (&c->job);
  ls_loss_ask_clear (&c->ask);
  g_free (c);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Case, case_free)

static void
set (Case *c, const char *key, const char *value)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (!LS_CHECK (ls_loss_ask_set (&c->ask, key, value, diags)))
    g_printerr ("# %s\n", value);
}

/* The loss that tokens come to takes as many tokens; the critical batch is that of this loss. */
static void
a_goal_says_the_same_from_both_ends (void)
{
  g_autoptr (Case) tokens = case_new ("llama3.1-8b"), loss = case_new ("llama3.1-8b");
  LsLossGoal a, b;
  set (tokens, "tokens", "1T");
  set (tokens, "critical-batch", "kaplan-2020");
  if (!LS_CHECK (ls_loss_goal_find (&tokens->ask, &tokens->job, &a, NULL)))
    return;
  LS_CHECK_STR (a.law.name, "besiroglu-2024");
  LS_CHECK (a.law_is_assumed);
  LS_CHECK_NEAR (a.critical_batch, 2.1e8 * pow (a.loss, -4.7619), 1e-12);
  loss->ask.loss = a.loss;
  set (loss, "critical-batch", "4M");
  if (LS_CHECK (ls_loss_goal_find (&loss->ask, &loss->job, &b, NULL))) {
    LS_CHECK_NEAR (b.tokens / 1e12, 1, 1e-9);
    LS_CHECK_NEAR (ls_loss_goal_after (&b, b.tokens), a.loss, 1e-12);
    LS_CHECK_NEAR (b.critical_batch, 4e6, 0);
    ls_loss_goal_clear (&b);
  }
  ls_loss_goal_clear (&a);
}

static void
check_refused (Case *c, int code, const char *words)
{
  g_autoptr (GError) error = NULL;
  LsLossGoal goal;
  if (LS_CHECK (!ls_loss_goal_find (&c->ask, &c->job, &goal, &error))
      && !LS_CHECK (error->code == code && strstr (error->message, words)))
    g_printerr ("# %s\n", error->message);
}

static void
what_a_law_does_not_know_is_refused (void)
{
  g_autoptr (Case) low = case_new ("llama3.1-8b"), near = case_new ("llama3.1-8b"),
                   experts = case_new ("mixtral-8x7b"), no_batch = case_new ("llama3.1-8b"),
                   nothing = case_new ("llama3.1-8b"), lora = case_new ("llama3.1-8b");
  set (low, "loss", "1.9");
  check_refused (low, LS_ERROR_CONFLICT, "stay above 1.99026");
  set (near, "loss", "1.990261");
  check_refused (near, LS_ERROR_LIMIT, "tokens by besiroglu-2024");
  set (experts, "loss", "2.2");
  check_refused (experts, LS_ERROR_CONFLICT, "experts");
  set (lora, "loss", "2.2");
  lora->job.strategy.lora.rank = 8;
  check_refused (lora, LS_ERROR_CONFLICT, "adapters");
  set (no_batch, "loss", "2.2");
  set (no_batch, "critical-batch", "hoffmann-2022");
  check_refused (no_batch, LS_ERROR_USAGE, "says nothing of the critical batch");
  set (nothing, "scaling-law", "kaplan-2020");
  check_refused (nothing, LS_ERROR_USAGE, "--loss X or --tokens N");
}

LS_TEST_SUITE (LS_TEST (laws_give_the_worked_examples), LS_TEST (laws_share_compute_as_their_constants_say),
               LS_TEST (tokens_and_loss_are_inverse), LS_TEST (each_law_counts_its_parameters),
               LS_TEST (a_goal_says_the_same_from_both_ends), LS_TEST (what_a_law_does_not_know_is_refused))
