/* Pins what a profile derived from captured steps promises: of a step that was planned with other values of keys
 * than a profile has, these values come out, and no others; what a step cannot show is not said; keys that the user
 * says are not derived; without a profile the nearest one is found. */
#include "ls_test.h"

#include <string.h>

#include <lockstep/error.h>

#include "ask/derived.h"
#include "data/jobs/job_files.h"

/* Sets "key=value key=value" of a job; programs first. */
static void
set_all (LsJobSpec *spec, const char *knobs)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_auto (GStrv) all = g_strsplit (knobs, " ", -1);
  for (guint i = 0; all[i] && *all[i]; i++) {
    g_auto (GStrv) pair = g_strsplit (all[i], "=", 2);
    bool is_file = strstr (pair[1], "tests/") == pair[1];
    g_autofree char *value
        = is_file ? g_build_filename (g_getenv ("LS_DATA_DIR"), pair[1], NULL) : g_strdup (pair[1]);
    LS_CHECK (ls_job_spec_set (spec, pair[0], value, diags));
  }
}

/* A job whose step is that of the plan with `planted`, planned as of `software` (NULL: none). */
static LsDerivedFrom *
planted_job (const char *software, const char *job, const char *planted)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *program = software ? g_strdup_printf ("software=%s", software) : g_strdup ("");
  LsDerivedFrom *from = g_new0 (LsDerivedFrom, 1);
  LsJobSpec spec;
  from->trace = g_strdup ("planted");
  ls_job_spec_init (&from->spec);
  set_all (&from->spec, program);
  set_all (&from->spec, job);
  ls_job_spec_copy (&from->spec, &spec);
  set_all (&spec, planted);
  from->captured = ls_job_spec_run (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  ls_job_spec_clear (&spec);
  return from;
}

static const LsDerivedKey *
key_of (const LsDerived *d, const char *key)
{
  for (guint i = 0; i < d->keys->len; i++)
    if (strcmp (g_array_index (d->keys, LsDerivedKey, i).key, key) == 0)
      return &g_array_index (d->keys, LsDerivedKey, i);
  return NULL;
}

static LsDerived *
derived_of (LsDerivedFrom *job, const char *software)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) jobs = g_ptr_array_new_with_free_func (ls_derived_from_free);
  g_ptr_array_add (jobs, job);
  LsDerived *d = ls_derived_of (jobs, software, 2, NULL, &error);
  LS_CHECK_NO_ERROR (error);
  return d;
}

#define SMALL "model=tests/golden/data/models/small-llama.json cluster=dgx-h100 gpus=8 "

/* Values of a program that the profile has otherwise. */
static const struct {
  const char *software, *job, *planted;
} planted_cases[] = {
  { "pytorch-ddp", SMALL "grad_norm=1 kernels=hf-transformers-5 optimizer=adam", "attention_kernel=fa3" },
  { "torchtitan-2025-03", SMALL "zero=3", "attention_kernel=cudnn" },
  { "torchtitan-2025-03", SMALL "zero=3", "grad_dtype=bf16 reshard_after_forward=0" },
  { "torchtitan-2025-03", SMALL "zero=3", "kernels=torchtitan-2025-03-compile recompute=selective" },
  { "pytorch-ddp", SMALL, "bucket_view=1 attention_kernel=fa3" },
  { "pytorch-ddp", SMALL, "dp_overlap=0 grad_norm=0" },
  { "pytorch-ddp", SMALL, "bucket_wait=1" },
  { "pytorch-ddp", SMALL, "loss_sync=1 step_calls=12" },
  { "megatron", SMALL "tp=2 zero=1", "tp_async=0" },
  { "megatron", SMALL "tp=2 sp=1 zero=1", "sp_save_gathered=1" },
};

static void
planted_values_come_out_and_no_others (void)
{
  guint n = g_getenv ("LS_ALL_CASES") ? G_N_ELEMENTS (planted_cases) : 1;
  for (guint c = 0; c < n; c++) {
    g_autoptr (LsDerived) d
        = derived_of (planted_job (planted_cases[c].software, planted_cases[c].job, planted_cases[c].planted),
                      planted_cases[c].software);
    g_auto (GStrv) planted = g_strsplit (planted_cases[c].planted, " ", -1);
    guint n_planted = 0, n_others = 0;
    for (guint i = 0; d && planted[i]; i++) {
      g_auto (GStrv) pair = g_strsplit (planted[i], "=", 2);
      const LsField *f = ls_field_find (ls_strategy_fields, pair[0]);
      const LsDerivedKey *key = key_of (d, pair[0]);
      LS_CHECK (key != NULL);
      LS_CHECK_STR (key ? ls_field_typed (f, key->value) : "", pair[1]);
      n_planted += key && key->next; /* of a size there is no next */
    }
    for (guint i = 0; d && i < d->keys->len; i++) {
      const LsDerivedKey *key = &g_array_index (d->keys, LsDerivedKey, i);
      n_others += key->next && g_strcmp0 (key->value, key->was) != 0;
    }
    LS_CHECK_INT (n_others, ==, n_planted);
    for (guint part = 0; d && part < LS_N_FAR; part++)
      LS_CHECK_DOUBLE (g_array_index (d->jobs, LsDerivedJob, 0).derived.part[part], <, 1e-9);
    LS_CHECK (d && (c > 0 || (!key_of (d, "grad_norm") && !key_of (d, "kernels")))); /* which are said */
    LS_CHECK (d && (c > 0 || (!key_of (d, "tp_async") && !key_of (d, "p2p"))));      /* no job shows these */
    LS_CHECK_INT (c > 0 ? 4 : d ? d->ways->len : 0, ==, 4);                          /* tp, pp, cp, ep */
  }
}

static void
without_a_profile_the_nearest_is_found (void)
{
  if (!g_getenv ("LS_ALL_CASES"))
    return;
  LsDerivedFrom *job = planted_job (NULL, SMALL, ""), *other = planted_job ("pytorch-ddp", SMALL, "");
  ls_job_result_free (job->captured);
  job->captured = g_steal_pointer (&other->captured);
  ls_derived_from_free (other);
  g_autoptr (LsDerived) d = derived_of (job, NULL);
  LS_CHECK (d && d->is_nearest);
  for (guint part = 0; d && part < LS_N_FAR; part++)
    LS_CHECK_DOUBLE (g_array_index (d->jobs, LsDerivedJob, 0).derived.part[part], <, 1e-9);
}

static void
a_step_without_parts_of_the_model_is_refused (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) jobs = g_ptr_array_new_with_free_func (ls_derived_from_free);
  LsDerivedFrom *job = planted_job ("pytorch-ddp", SMALL, "");
  g_ptr_array_add (jobs, job);
  for (uint32_t i = 0; i < job->captured->plan->n_segments; i++)
    for (uint32_t o = 0; o < job->captured->plan->segments[i].n_ops; o++)
      job->captured->plan->segments[i].ops[o].site = LS_SITE_OTHER;
  LS_CHECK (!ls_derived_of (jobs, "pytorch-ddp", 1, NULL, &error));
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_UNSUPPORTED));
}

LS_TEST_SUITE (LS_TEST (planted_values_come_out_and_no_others),
               LS_TEST (without_a_profile_the_nearest_is_found),
               LS_TEST (a_step_without_parts_of_the_model_is_refused))
