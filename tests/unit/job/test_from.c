/* Pins that a job which is written for Megatron-LM and read again by --from takes the same step, to the
 * picosecond, for whatever a generator draws and the writer accepts; and what is asked of, and told about, jobs
 * of launch files. */
#include "ls_test.h"

#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "data/jobs/emit.h"
#include "data/jobs/job_files.h"
#include "data/launch/import.h"
#include "data/text/field.h"
#include "job/job.h"
#include "job/job_from.h"
#include "job/softwares.h"
#include "random_job.h"

#define CLUSTER "dgx-a100-80g"

/* The choices of a user that are drawn, over the defaults of the program. */
static bool
draw (GRand *rand, const LsSoftwareSpec *software, const LsModel *m, LsStrategy *ret)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsStrategy drawn;
  random_strategy (rand, &drawn);
  ls_strategy_copy (ret, &software->defaults);
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    g_autofree char *value
        = f->file_only || ls_field_is_of_program (f) ? NULL : ls_field_text (f, &drawn, NULL);
    if (value)
      ls_field_set_text (ls_strategy_fields, ret, f->key, value, diags);
  }
  ret->zero_group = drawn.zero_group;
  ret->grad_dtype = LS_DTYPE_FP32;
  if (ret->vpp == 1)
    ret->p2p = ret->pp > 1 ? LS_P2P_BATCHED : ret->p2p;
  ls_strategy_clear (&drawn);
  return ls_strategy_resolve (ret, m, ret->gpus, 8, diags) && ls_strategy_balance (ret, m, NULL, NULL);
}

static char *
write_script (const char *fragment, guint gpus)
{
  char *path = NULL;
  g_autofree char *text = g_strdup_printf (
      "%s\ntorchrun --nproc_per_node %u --nnodes 1 pretrain_gpt.py ${MEGATRON_ARGS[@]}\n", fragment, gpus);
  close (g_file_open_tmp ("job-XXXXXX.sh", &path, NULL));
  g_file_set_contents (path, text, -1, NULL);
  return path;
}

static LsTime
step_of (const LsJobResult *r)
{
  return r ? r->timeline->window_end - r->timeline->window_start : -1;
}

static bool
set (LsJobSpec *spec, const char *key, const char *value)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  bool ok = ls_job_spec_set (spec, key, value, diags);
  g_autofree char *text = ls_diag_list_format (diags);
  ls_check_impl (ok, __FILE__, __LINE__, "%s=%s: %s", key, value, text);
  return ok;
}

static LsTime
step_from (const char *path, GError **error)
{
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  g_autoptr (LsJobResult) r
      = set (&spec, "from", path) && set (&spec, "cluster", CLUSTER) ? ls_job_spec_run (&spec, error) : NULL;
  ls_job_spec_clear (&spec);
  return step_of (r);
}

/* Returns whether it could be written. */
static bool
check_one (guint seed, const LsSoftwareSpec *software, const LsHardware *hardware)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
  LsModel m = small_model (rand);
  LsStrategy s;
  LsRunOptions options;
  bool ok = draw (rand, software, &m, &s);
  const LsEmitJob job = { .model = &m, .strategy = &s, .title = "small" };
  g_autofree char *notes = NULL, *fragment = ok ? ls_emit (&job, "megatron", &notes, NULL) : NULL;
  if (fragment) {
    g_autoptr (GError) error = NULL, again_error = NULL;
    g_autofree char *path = write_script (fragment, s.gpus);
    ls_run_options_init (&options);
    ls_softwares_settle (software, hardware, NULL, &s);
    g_autoptr (LsJobResult) r = ls_job_simulate (&m, hardware, 0, &s, &options, &error);
    LsTime was = step_of (r), is = step_from (path, &again_error);
    ls_check_impl (was == is, __FILE__, __LINE__,
                   "seed %u: %" G_GINT64_FORMAT " ps, read again %" G_GINT64_FORMAT " ps; %s; %s\n%s", seed,
                   was, is, error ? error->message : "", again_error ? again_error->message : "", fragment);
    g_unlink (path);
  }
  ls_strategy_clear (&s);
  return fragment != NULL;
}

static void
what_is_written_takes_the_same_picoseconds (void)
{
  const char *cases = g_getenv ("LS_CASES");
  guint n = cases ? (guint) g_ascii_strtoull (cases, NULL, 10) : 300, n_written = 0;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsSoftwareSpec software;
  g_autoptr (LsHardware) hardware = ls_hardware_load (CLUSTER, diags);
  if (!LS_CHECK (hardware && ls_software_load ("megatron", &software, diags)))
    return;
  for (guint seed = 1; seed <= n; seed++)
    n_written += check_one (seed, &software, hardware);
  LS_CHECK_INT (n_written, >=, n / 10);
  ls_software_clear (&software);
}

#define AUTOMODEL                                                                                            \
  "step_scheduler: { global_batch_size: 16, local_batch_size: 1 }\n"                                         \
  "model: { _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained,\n"                            \
  "         pretrained_model_name_or_path: %s }\n"                                                           \
  "distributed: { strategy: fsdp2, dp_size: 8 }\n"                                                           \
  "fp8: { enabled: true, enable_fsdp_float8_all_gather: true }\n"
#define ACCELERATE                                                                                           \
  "distributed_type: FSDP\nmixed_precision: fp8\nnum_processes: 8\nmodel_name: %s\n"                         \
  "fp8_config: { backend: AO }\nfsdp_config: { fsdp_version: 2, fsdp_reshard_after_forward: true }\n"

/* A file that names one model, run with another: what its program makes of fp8. */
static void
check_model (const char *text, const char *named, const char *model, bool has_experts)
{
  char *path = NULL;
  g_auto (GStrv) parts = g_strsplit (text, "%s", 2);
  g_autofree char *whole = g_strjoinv (named, parts);
  LsJobSpec spec;
  close (g_file_open_tmp ("job-XXXXXX.yaml", &path, NULL));
  g_file_set_contents (path, whole, -1, NULL);
  ls_job_spec_init (&spec);
  LS_CHECK (set (&spec, "model", model) && set (&spec, "from", path));
  ls_check_impl (spec.strategy.bf16_experts == has_experts && spec.strategy.fp8_params == !has_experts,
                 __FILE__, __LINE__, "%s with %s: bf16_experts %d, fp8_params %d\n%s", named, model,
                 spec.strategy.bf16_experts, spec.strategy.fp8_params, whole);
  for (guint i = 0; i < spec.from->unknown->len; i++)
    ls_check_impl (!strstr (spec.from->unknown->pdata[i], named), __FILE__, __LINE__, "%s",
                   (char *) spec.from->unknown->pdata[i]);
  ls_job_spec_clear (&spec);
  g_unlink (path);
  g_free (path);
}

/* torchao's linear layers leave experts in 16 bits, and then nothing is gathered in 8: a rule that asks the model
 * that runs, whether the file's is known or not. */
static void
rules_ask_the_model_that_runs (void)
{
  static const char *const texts[] = { AUTOMODEL, ACCELERATE },
                           *const named[] = { "acme/unheard-of", "Qwen/Qwen3-30B-A3B", "Qwen/Qwen3-8B" };
  for (guint t = 0; t < G_N_ELEMENTS (texts); t++)
    for (guint i = 0; i < G_N_ELEMENTS (named); i++) {
      check_model (texts[t], named[i], "mixtral-8x7b", true);
      check_model (texts[t], named[i], "llama3.1-8b", false);
    }
}

LS_TEST_SUITE (LS_TEST (rules_ask_the_model_that_runs), LS_TEST (what_is_written_takes_the_same_picoseconds))
