/* Pins that a job which is written for Megatron-LM and read again by --from takes the same step, to the
 * picosecond, for whatever a generator draws and the writer accepts; and what is asked of, and told about, jobs
 * of launch files. */
#include "ls_test.h"

#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "data/jobs/emit.h"
#include "data/jobs/job_files.h"
#include "data/jobs/imported.h"
#include "data/text/csv.h"
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
        = f->file_only || f->set_only || f->of_program ? NULL : ls_field_text (f, &drawn, NULL);
    if (value)
      ls_field_set_text (ls_strategy_fields, ret, f->key, value, diags);
  }
  ret->data.zero_group = drawn.data.zero_group;
  ret->opt.grad_dtype = LS_DTYPE_FP32;
  if (ret->vpp == 1)
    ret->mp.p2p = ret->pp > 1 ? LS_P2P_BATCHED : ret->mp.p2p;
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
  guint n = ls_test_cases (100, 300), n_written = 0;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsSoftwareSpec software;
  g_autoptr (LsHardware) hardware = ls_hardware_load (CLUSTER, diags);
  if (!LS_CHECK (hardware && ls_software_load ("megatron", &software, diags)))
    return;
  for (guint seed = 1; seed <= n; seed++)
    n_written += check_one (seed, &software, hardware);
  LS_CHECK_INT (n_written, >=, n / 15);
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
  ls_check_impl (spec.strategy.fp8.bf16_experts == has_experts && spec.strategy.fp8.params == !has_experts,
                 __FILE__, __LINE__, "%s with %s: bf16_experts %d, fp8_params %d\n%s", named, model,
                 spec.strategy.fp8.bf16_experts, spec.strategy.fp8.params, whole);
  for (guint i = 0; i < spec.from->remarks->len; i++) {
    const LsRemark *r = &g_array_index (spec.from->remarks, LsRemark, i);
    ls_check_impl (r->kind != LS_REMARK_UNKNOWN || !strstr (r->text, named), __FILE__, __LINE__, "%s",
                   r->text);
  }
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

/* --- run by another program ------------------------------------------------------------------------- */

#define SIZES                                                                                                \
  "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 512 --vocab-size 1000 "             \
  "--micro-batch-size 1 --global-batch-size 8 --max-position-embeddings 512 "
#define MEGATRON                                                                                             \
  "torchrun --nproc_per_node 8 pretrain_gpt.py " SIZES                                                       \
  "--tensor-model-parallel-size 2 --bf16 --use-distributed-optimizer --recompute-activations\n"
#define TORCHTITAN                                                                                           \
  "[model]\nname = 'llama3'\nflavor = '8B'\n[training]\nlocal_batch_size = 1\nseq_len = 1024\n"              \
  "[parallelism]\ndata_parallel_shard_degree = 4\ntensor_parallel_degree = 2\n"                              \
  "[activation_checkpoint]\nmode = 'full'\n"
#define DEEPSPEED                                                                                            \
  "{\"train_micro_batch_size_per_gpu\": 1, \"train_batch_size\": 8, \"bf16\": {\"enabled\": true}, "         \
  "\"zero_optimization\": {\"stage\": 2}}"
#define TRAINER                                                                                              \
  "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen3-8B --output_dir o --bf16 "           \
  "--torch_dtype bfloat16 --per_device_train_batch_size 1 --gradient_checkpointing True\n"
#define AXOLOTL                                                                                              \
  "base_model: Qwen/Qwen3-8B\nmicro_batch_size: 1\ngradient_accumulation_steps: 1\nsequence_len: 1024\n"     \
  "datasets:\n  - path: x\n    type: alpaca\n"

/* program: that of a file that names none. */
static const struct {
  const char *text, *name, *program;
  bool is_whole; /* it says all that is needed to run it */
} jobs[] = {
  { MEGATRON, "job-XXXXXX.sh", NULL, true },     { TORCHTITAN, "job-XXXXXX.toml", NULL, true },
  { DEEPSPEED, "job-XXXXXX.json", "deepspeed" }, { TRAINER, "job-XXXXXX.sh", NULL },
  { AXOLOTL, "job-XXXXXX.yaml", NULL },
};

/* software NULL: none is named. The caller clears *ret. */
static void
read_for (const char *text, const char *name, const char *software, LsJobSpec *ret)
{
  char *path = NULL;
  close (g_file_open_tmp (name, &path, NULL));
  g_file_set_contents (path, text, -1, NULL);
  ls_job_spec_init (ret);
  LS_CHECK ((!software || set (ret, "software", software)) && set (ret, "from", path));
  g_unlink (path);
  g_free (path);
}

/* "tp 2; sp true; ": all knobs, or those that the file says. */
static char *
knobs_of (const LsJobSpec *spec, bool has_program)
{
  GString *all = g_string_new (NULL);
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    bool is_wanted = has_program || ls_json_doc_at (spec->from->strategy, f->key);
    g_autofree char *value = is_wanted && !f->file_only ? ls_field_text (f, &spec->strategy, NULL) : NULL;
    if (value)
      g_string_append_printf (all, "%s %s; ", f->key, value);
  }
  return g_string_free (all, FALSE);
}

/* Of a file that does not name its program, such as one of DeepSpeed, what it says. */
static void
its_own_program_changes_nothing (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (jobs); i++) {
    LsJobSpec alone, named;
    read_for (jobs[i].text, jobs[i].name, NULL, &alone);
    bool has_program = alone.software != NULL;
    read_for (jobs[i].text, jobs[i].name, has_program ? alone.software->name : jobs[i].program, &named);
    g_autofree char *a = knobs_of (&alone, has_program), *b = knobs_of (&named, has_program);
    LS_CHECK_STR (b, a);
    LS_CHECK (!named.given_up);
    ls_job_spec_clear (&alone);
    ls_job_spec_clear (&named);
  }
}

/* expected: "key=value" with blanks between them, and "?words" of a note. */
static void
check_under (const char *text, const char *name, const char *software, const char *expected)
{
  LsJobSpec spec;
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  g_auto (GStrv) all = g_strsplit (expected, "; ", -1);
  read_for (text, name, software, &spec);
  ls_job_from_notes (&spec, notes);
  g_ptr_array_add (notes, NULL);
  g_autofree char *told = g_strjoinv ("\n", (char **) notes->pdata);
  for (char **one = all; *one; one++) {
    g_auto (GStrv) pair = g_strsplit (*one, "=", 2);
    const LsField *f = pair[1] ? ls_field_find (ls_strategy_fields, pair[0]) : NULL;
    g_autofree char *value = f ? ls_field_text (f, &spec.strategy, NULL) : NULL;
    bool is_so = f ? g_strcmp0 (value, pair[1]) == 0 : strstr (told, *one + 1) != NULL;
    ls_check_impl (is_so, __FILE__, __LINE__, "%s under %s: expected %s, found %s\n%s", text, software, *one,
                   value ? value : "nothing", told);
  }
  ls_job_spec_clear (&spec);
}

/* What the file says holds, what only follows from rules of its program is as the other has it: sequence
 * parallelism, who reduces gradients, masters, recomputation by default. */
static void
another_program_has_what_the_file_does_not_say (void)
{
  check_under (
      MEGATRON, jobs[0].name, "torchtitan",
      "tp=2; micro_batch=1; global_batch=8; dtype=bf16; recompute=selective; sp=true; dp_kind=fsdp2; "
      "zero=auto; dp_overlap=true; recompute_parts=op; ?a stage of ZeRO that torchtitan does not have; "
      "?dp_kind fsdp2 (was megatron)");
  check_under (MEGATRON, jobs[0].name, "pytorch-ddp", "dp_kind=ddp; zero=auto; master=weights; sp=false");
  check_under (TORCHTITAN, jobs[1].name, "megatron",
               "tp=2; sp=false; dp_kind=megatron; zero=auto; recompute=full; attention=auto; "
               "kernels=megatron-core; ?taken from megatron: sp false (was true)");
  check_under (TORCHTITAN, jobs[1].name, "torchtune-2025",
               "dp_kind=fsdp2; zero=3; master=none; grad_dtype=bf16; grad_norm=false; recompute=full");
  check_under (DEEPSPEED, jobs[2].name, "torchtitan", "dp_kind=fsdp2; zero=2; dtype=bf16; grad_norm=true");
  check_under (DEEPSPEED, jobs[2].name, "megatron",
               "dp_kind=megatron; zero=auto; ?a stage of ZeRO that megatron does not have");
  check_under (TRAINER, jobs[3].name, "megatron",
               "dp_kind=megatron; master=fp32; grad_dtype=fp32; recompute=full; dtype=bf16");
  check_under (TRAINER, jobs[3].name, "hf-trainer-2026", "dp_kind=ddp; master=none; recompute=full");
  check_under (AXOLOTL, jobs[4].name, "torchtitan", "dp_kind=fsdp2; master=fp32; micro_batch=1");
}

/* A key that is left open is asked for, however many lines are told before it. */
static void
what_is_open_is_asked_for_behind_many_lines (void)
{
  LsJobSpec spec;
  g_autoptr (GError) error = NULL;
  GString *text
      = g_string_new ("torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 512 "
                      "--num-attention-heads 8 --seq-length 512 --vocab-size 1000 --bf16");
  for (guint i = 0; i < 2100; i++)
    g_string_append_printf (text, " --what-is-%u 1", i);
  g_string_append (text, " --micro-batch-size $MBS --global-batch-size 8\n");
  read_for (text->str, "job-XXXXXX.sh", NULL, &spec);
  LS_CHECK (set (&spec, "cluster", CLUSTER) && !ls_job_spec_prepare (&spec, &error));
  LS_CHECK (error
            && strstr (error->message, "its value is $MBS, which is not said here: give it by --micro"));
  ls_job_spec_clear (&spec);
  g_string_free (text, TRUE);
}

/* --- one road ---------------------------------------------------------------------------------------- */

#define FASTER "dgx-h100"

/* What is prepared ends in a result; NULL: the job is not whole. Clears the spec. */
static LsJobResult *
run_and_clear (LsJobSpec *spec)
{
  spec->network = LS_JOB_NETWORK_ALPHABETA;
  LsJobResult *r = set (spec, "cluster", FASTER) ? ls_job_spec_run (spec, NULL) : NULL;
  ls_job_spec_clear (spec);
  return r;
}

/* Writes a document to a folder; its path. */
static char *
write_document (const char *folder, const LsJsonDoc *doc, const char *name)
{
  g_autofree char *text = ls_import_text (doc, NULL, name), *file = g_strconcat (name, ".json", NULL);
  char *path = g_build_filename (folder, file, NULL);
  LS_CHECK (g_file_set_contents (path, text, -1, NULL));
  return path;
}

/* The job of launch files, and that of the documents which `lockstep import` writes of them. Returns whether
 * it is a whole job. */
static bool
check_documents (const char *path)
{
  LsJobSpec from, ours;
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  ls_job_spec_init (&from);
  ls_job_spec_init (&ours);
  if (!ls_job_spec_set (&from, "from", path, none)) {
    ls_job_spec_clear (&from);
    return false;
  }
  g_autofree char *folder = g_dir_make_tmp ("job-XXXXXX", NULL),
                  *model = write_document (folder, from.from->model, "mine-model"),
                  *strategy = write_document (folder, from.from->strategy, "mine");
  g_autoptr (LsJobResult) a = run_and_clear (&from);
  bool is_set = !a || (set (&ours, "model", model) && set (&ours, "strategy", strategy));
  g_autoptr (LsJobResult) b = a && is_set ? run_and_clear (&ours) : NULL;
  if (a)
    ls_check_impl (b && step_of (a) == step_of (b) && a->report.digest == b->report.digest
                       && a->report.needed_bytes == b->report.needed_bytes,
                   __FILE__, __LINE__, "%s: %" G_GINT64_FORMAT " ps, by its documents %" G_GINT64_FORMAT,
                   path, step_of (a), step_of (b));
  g_unlink (model);
  g_unlink (strategy);
  g_rmdir (folder);
  return a != NULL;
}

static void
a_job_of_files_is_that_of_their_documents (void)
{
  const char *shared = ls_test_shared_data ();
  for (guint i = 0; i < G_N_ELEMENTS (jobs); i++) {
    char *path = NULL;
    close (g_file_open_tmp (jobs[i].name, &path, NULL));
    g_file_set_contents (path, jobs[i].text, -1, NULL);
    LS_CHECK_INT (check_documents (path), ==, jobs[i].is_whole);
    g_unlink (path);
    g_free (path);
  }
  g_autofree char *table = shared ? g_build_filename (shared, "launch", "index.csv", NULL) : NULL;
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  g_autoptr (LsCsv) csv = table ? ls_csv_parse (table, NULL, -1, none) : NULL;
  guint n = ls_test_cases (30, 400), n_whole = 0;
  for (guint row = 0; csv && row < ls_csv_n_rows (csv); row++) {
    g_autofree char *path = g_build_filename (shared, "launch", ls_csv_cell (csv, row, 0), NULL);
    n_whole += row * 7 % ls_csv_n_rows (csv) < n && check_documents (path);
  }
  if (csv)
    LS_CHECK_INT (n_whole, >=, n / 20);
}

LS_TEST_SUITE (LS_TEST (a_job_of_files_is_that_of_their_documents),
               LS_TEST (another_program_has_what_the_file_does_not_say),
               LS_TEST (its_own_program_changes_nothing), LS_TEST (rules_ask_the_model_that_runs),
               LS_TEST (what_is_open_is_asked_for_behind_many_lines),
               LS_TEST (what_is_written_takes_the_same_picoseconds))
