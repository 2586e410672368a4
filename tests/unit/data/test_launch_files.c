/* Pins how much of real users' launch files is read, and read right: every file is read or refused for a
 * reason, and the values that people read out of them are ours, where the files are there; and what
 * configurations in Python say. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "data/launch/import.h"
#include "data/text/csv.h"
#include "import_check.h"

typedef struct {
  guint n_files, n_right, n_wrong, n_missing;
} Count;

/* A column of the table, and the key that it is. */
static const struct {
  const char *column, *key;
  bool is_strategy;
} columns[] = {
  { "layers", "layers", false },
  { "hidden", "hidden", false },
  { "heads", "heads", false },
  { "kv_heads", "kv_heads", false },
  { "head_dim", "head_dim", false },
  { "ffn", "ffn", false },
  { "vocab", "vocab", false },
  { "seq", "seq", false },
  { "experts", "experts", false },
  { "top_k", "top_k", false },
  { "expert_ffn", "expert_ffn", false },
  { "tp", "tp", true },
  { "pp", "pp", true },
  { "cp", "cp", true },
  { "ep", "ep", true },
  { "etp", "etp", true },
  { "zero", "zero", true },
  { "mbs", "micro_batch", true },
  { "gbs", "global_batch", true },
  { "recompute", "recompute", true },
};

static const char *
cell (const LsCsv *csv, guint row, const char *column)
{
  int c = ls_csv_column (csv, column);
  return c < 0 ? "" : ls_csv_cell (csv, row, (guint) c);
}

/* As it stands, but what others copied from a file as it is: "${multiply:4, ${.hidden_size}}" and "4 x hidden" of a
 * width; "None block 0", "None None None", False and True of a recomputation. Newly allocated. */
static char *
meant (const LsCsv *csv, guint row, const char *column)
{
  static const char *const recompute[][2] = { { "None", "none" }, { "False", "none" }, { "True", "full" } };
  const char *theirs = cell (csv, row, column);
  guint64 times = g_str_has_prefix (theirs, "${multiply:") ? 4 : strstr (theirs, " x hidden") ? 0 : 1;
  if (strcmp (column, "ffn") == 0 && times != 1) {
    times = times ? times : g_ascii_strtoull (theirs, NULL, 10);
    return g_strdup_printf ("%" G_GUINT64_FORMAT,
                            times * g_ascii_strtoull (cell (csv, row, "hidden"), NULL, 10));
  }
  if (strcmp (column, "pp") == 0 && strcmp (theirs, "0") == 0)
    return g_strdup ("1"); /* gpt-neox: both are no pipeline */
  for (guint i = 0; i < G_N_ELEMENTS (recompute) && strcmp (column, "recompute") == 0; i++)
    if (g_str_has_prefix (theirs, recompute[i][0]))
      return g_strdup (recompute[i][1]);
  return g_strdup (theirs);
}

/* "full uniform" is full, "8 layers per chunk" no number, {"mode": "full", ...} of torchtitan is full. */
static bool
agrees (const char *ours, const char *theirs)
{
  static const char mode[] = "{\"mode\": \"";
  if (g_str_has_prefix (theirs, mode)) {
    theirs += strlen (mode);
    return strncmp (ours, theirs, strlen (ours)) == 0 && theirs[strlen (ours)] == '"';
  }
  gsize n = strcspn (theirs, " ");
  return strlen (ours) == n && strncmp (ours, theirs, n) == 0;
}

static void
count_one (const LsImport *import, const char *key, const char *ours, const char *theirs, bool is_right,
           Count *count)
{
  guint *which = !ours ? &count->n_missing : is_right ? &count->n_right : &count->n_wrong;
  ++*which;
  if (ours && !is_right && g_getenv ("LS_SHOW"))
    g_print ("%s %s: %s, read by others as %s\n", import->path, key, ours, theirs);
}

/* How the table says what is not a key's own value there: of Megatron-LM, "fp8 hybrid+bf16", sp 1, "8 layers per
 * chunk", "megatron-fsdp optim_grads_params". Newly allocated. */
static char *
meant_of_megatron (const LsImport *import, const char *column, const char *theirs)
{
  guint64 layers = g_ascii_strtoull (theirs, NULL, 10);
  if (strcmp (column, "sp") == 0)
    return g_strdup (strcmp (theirs, "1") == 0 ? "true" : "false");
  if (strcmp (column, "vpp") == 0)
    return g_strdup_printf ("%u", import->model.n_layers / import->strategy.pp / (guint) MAX (layers, 1));
  if (g_str_has_prefix (theirs, "megatron-fsdp"))
    return g_strdup ("fsdp2");
  return g_strndup (theirs, strcspn (theirs, " "));
}

static void
judge_megatron (const LsImport *import, const LsCsv *csv, guint row, Count *count)
{
  static const char *const names[][2] = { { "vpp", "vpp" },
                                          { "sp", "sp" },
                                          { "precision", "dtype" },
                                          { "schedule", "schedule" },
                                          { "dp_kind", "dp_kind" } };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    const char *said = cell (csv, row, names[i][0]);
    if (!*said)
      continue;
    g_autofree char *ours = ls_import_strategy_value (import, names[i][1]),
                    *theirs = meant_of_megatron (import, names[i][0], said);
    count_one (import, names[i][1], ours, theirs, g_strcmp0 (ours, theirs) == 0, count);
  }
}

static void
judge (const LsImport *import, const LsCsv *csv, guint row, Count *count)
{
  for (guint i = 0; i < G_N_ELEMENTS (columns); i++) {
    g_autofree char *theirs = meant (csv, row, columns[i].column);
    if (!*theirs)
      continue;
    g_autofree char *ours = columns[i].is_strategy ? ls_import_strategy_value (import, columns[i].key)
                                                   : ls_import_model_value (import, columns[i].key);
    count_one (import, columns[i].key, ours, theirs, ours && agrees (ours, theirs), count);
  }
  if (g_str_has_prefix (cell (csv, row, "framework"), "megatron"))
    judge_megatron (import, csv, row, count);
  const char *time = cell (csv, row, "measured_iteration_s");
  if (*time && import->measured.step_s > 0)
    ++*(fabs (import->measured.step_s / g_ascii_strtod (time, NULL) - 1) < 0.002 ? &count->n_right
                                                                                 : &count->n_wrong);
}

/* Of a script with several jobs, the one that it has as it stands. */
static bool
is_default (const char *variant)
{
  return !*variant || strstr (variant, "default") || strcmp (variant, "log") == 0;
}

static void
judge_table (const char *folder, const char *frameworks, Count *count)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *path = g_build_filename (folder, "oracle.csv", NULL);
  g_autoptr (LsCsv) csv = ls_csv_load (path, diags);
  for (guint row = 0; csv && row < ls_csv_n_rows (csv); row++) {
    g_autoptr (LsDiagList) why = ls_diag_list_new ();
    g_autofree char *file = g_build_filename (folder, cell (csv, row, "file"), NULL);
    const char *const paths[] = { file, NULL };
    LsImport import;
    if (!strstr (frameworks, cell (csv, row, "framework")) || !is_default (cell (csv, row, "variant"))
        || !ls_import_load (paths, &import, why))
      continue;
    count->n_files++;
    judge (&import, csv, row, count);
    ls_import_clear (&import);
  }
}

static char *
launch_folder (void)
{
  const char *shared = ls_test_shared_data ();
  return shared ? g_build_filename (shared, "launch", NULL) : NULL;
}

static void
check_values (const char *frameworks, guint n_files, guint n_right, guint n_wrong)
{
  g_autofree char *folder = launch_folder ();
  Count count = { 0 };
  if (!folder || !g_file_test (folder, G_FILE_TEST_IS_DIR))
    return;
  judge_table (folder, frameworks, &count);
  g_print ("%s: %u files: %u values right, %u others, %u missing\n", frameworks, count.n_files, count.n_right,
           count.n_wrong, count.n_missing);
  LS_CHECK_INT (count.n_files, >=, n_files);
  LS_CHECK_INT (count.n_right, >=, n_right);
  LS_CHECK_INT (count.n_wrong, <=, n_wrong);
}

/* The few that differ mean another thing: vocabularies with their padding, heads of latent attention that count
 * their rotated part, Megatron-FSDP with optim_grads_params, which shards parameters whatever
 * --use-distributed-optimizer says, a dump without DeepSpeed, chunks that a script has only if it is asked, and
 * schedules of layouts with more chunks than stages, which are interleaved (megatron/training/arguments.py), and a
 * length of sequences that is shorter than the table of positions. */
static void
values_of_megatron_files_are_right (void)
{
  check_values ("megatron-lm megatron-deepspeed", 55, 780, 15);
}

/* The one that differs: every second layer is recomputed as a whole, which is full of half of them here. */
static void
values_of_torchtitan_files_are_right (void)
{
  check_values ("torchtitan", 30, 190, 1);
}

static void
check_family (const char *folder, const char *framework, guint n_files, guint n_right, guint n_wrong)
{
  Count count = { 0 };
  judge_table (folder, framework, &count);
  g_print ("%s: %u files, %u values right, %u others, %u missing\n", framework, count.n_files, count.n_right,
           count.n_wrong, count.n_missing);
  LS_CHECK_INT (count.n_files, >=, n_files);
  LS_CHECK_INT (count.n_right, >=, n_right);
  LS_CHECK_INT (count.n_wrong, <=, n_wrong);
  LS_CHECK_INT (count.n_missing, ==, 0);
}

/* The two that differ are widths of gpt-neox, of which a file names three times as much: two matrices of a gate in
 * two thirds of it. */
static void
values_of_yaml_files_are_right (void)
{
  g_autofree char *folder = launch_folder ();
  if (!folder || !g_file_test (folder, G_FILE_TEST_IS_DIR))
    return;
  check_family (folder, "gpt-neox", 21, 180, 2);
  check_family (folder, "llm-foundry", 8, 64, 0);
  check_family (folder, "nanotron", 26, 350, 0);
  check_family (folder, "nemo 1", 28, 330, 0);
}

static void
every_file_is_read_or_refused_for_a_reason (void)
{
  g_autofree char *folder = launch_folder (),
                  *path = folder ? g_build_filename (folder, "index.csv", NULL) : NULL;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  guint n_read = 0;
  if (!path || !g_file_test (path, G_FILE_TEST_IS_REGULAR))
    return;
  g_autoptr (LsCsv) csv = ls_csv_load (path, diags);
  for (guint row = 0; csv && row < ls_csv_n_rows (csv); row++) {
    g_autoptr (LsDiagList) why = ls_diag_list_new ();
    g_autofree char *file = g_build_filename (folder, cell (csv, row, "file"), NULL);
    const char *const paths[] = { file, NULL };
    LsImport import;
    bool ok = ls_import_load (paths, &import, why);
    ls_check_impl (ok || ls_diag_list_n (why) > 0, __FILE__, __LINE__, "%s: refused without a word", file);
    if (ok)
      ls_import_clear (&import);
    n_read += ok;
  }
  g_print ("%u files are read\n", n_read);
  LS_CHECK_INT (n_read, >=, 367);
}

/* --- configurations of torchtitan in Python --------------------------------------------------------- */

/* In a folder of the module's name. */
static void
check_titan (const char *body, const char *expected)
{
  g_autofree char *text = g_strconcat ("from torchtitan.trainer import Trainer\n"
                                       "from . import model_registry\n\ndef f() -> Trainer.Config:\n",
                                       body, NULL);
  g_auto (GStrv) all = g_strsplit (expected, "; ", -1);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsImport import;
  bool ok = ls_import_read (text, strlen (text), "models/llama3/config_registry.py", &import, diags);
  g_autofree char *said = ls_diag_list_format (diags);
  if (*expected == '#') {
    ls_check_impl (!ok && strstr (said, expected + 1), __FILE__, __LINE__, "%s\n%s", said, expected);
    if (ok)
      ls_import_clear (&import);
    return;
  }
  ls_check_impl (ok, __FILE__, __LINE__, "%s\n%s", text, said);
  for (char **one = all; ok && *one; one++)
    check_one (&import, *one, text);
  if (ok)
    ls_import_clear (&import);
}

#define TITAN(more) "  return Trainer.Config(model_spec=model_registry('8B'" more

static void
configurations_of_torchtitan_in_python_are_read (void)
{
  check_titan (
      TITAN ("), training=TrainingConfig(num_tokens_per_microbatch_per_dp_rank=2 * 8192,\n"
             "    max_context_length=8192, num_tokens_per_train_step=64 * 8192),\n"
             "    parallelism=ParallelismConfig(tensor_parallel_degree=4, data_parallel_shard_degree=2),\n"
             "    activation_checkpoint=FullAC.Config(), optimizer=default_adamw(lr=3e-4))\n"),
      "layers=32; seq=8192; tp=4; gpus=8; micro_batch=2; global_batch=64; recompute=full; sp=true; "
      "cuda_graphs=step; optimizer=adam; software=torchtitan; ~cuda_graphs step");
  check_titan (
      TITAN (", moe_comm_backend='hybridep'),\n"
             "    training=TrainingConfig(num_tokens_per_microbatch_per_dp_rank=8192,\n"
             "    max_context_length=8192), parallelism=ParallelismConfig(expert_parallel_degree=4,\n"
             "    data_parallel_shard_degree=8))\n"),
      "ep=4; dispatcher=hybridep");
  check_titan (TITAN (", attn_backend='varlen', converters=[Float8LinearConverter.Config()]),\n"
                      "    loss=ChunkedLossWrapper.Config(loss_fn=CrossEntropyLoss.Config()),\n"
                      "    training=TrainingConfig(num_tokens_per_microbatch_per_dp_rank=8192,\n"
                      "    max_context_length=4096, disable_cuda_graphs=True),\n"
                      "    parallelism=ParallelismConfig(enable_sequence_parallel=False,\n"
                      "    pipeline_parallel_degree=2, num_pp_microbatches=4, tensor_parallel_degree=2,\n"
                      "    data_parallel_shard_degree=1, context_parallel_degree=2,\n"
                      "    context_parallel_load_balancer=None),\n"
                      "    compile=CompileConfig(enable=True, enable_async_tensor_parallel=True))\n"),
               "dtype=fp8; micro_batch=2; global_batch=8; gpus=8; sp=false; recompute=selective; "
               "recompute_parts=op; tp_overlap=true; cp_balance=false; cuda_graphs; ?ChunkedLossWrapper; "
               "?inside documents; ~that compile.enable runs");
  check_titan (
      "  c = Trainer.Config(model_spec=model_registry('70B', converters=[NVFP4LinearConverter.Config()]),\n"
      "    training=TrainingConfig(local_batch_size=2, seq_len=4096),\n"
      "    activation_checkpoint=ActivationCheckpointConfig(mode='none'))\n"
      "  c.parallelism.data_parallel_shard_degree = 16\n  c.training.local_batch_size = 3\n  return c\n",
      "layers=80; dtype=nvfp4; micro_batch=3; gpus=16; recompute=none; cuda_graphs; "
      "?NVFP4LinearConverter leaves in bf16");
  check_titan (TITAN ("), activation_checkpoint=None, optimizer=muon(a=1))\n"),
               "recompute=none; ?optimizer.name muon; ?how many GPUs");
  check_titan (TITAN ("), training=TrainingConfig(local_batch_size=4 // 2, seq_len=pick(8192)))\n"),
               "micro_batch=2; ?training.seq_len: its value is pick(...)");
}

static void
other_configurations_in_python_are_refused (void)
{
  check_titan (
      "  return Controller.Config(model_spec=model_registry('8B'), trainer=PolicyTrainer.Config())\n",
      "#f returns what Controller.Config makes");
  check_titan (
      "  c = to_graph_trainer_config(llama3_8b())\n  c.model_spec = model_registry('8B')\n  return c\n",
      "#f returns what to_graph_trainer_config makes");
  check_titan ("  pass\ndef g():\n  return 1\n", "#it has several configurations: f, g");
  check_titan ("  return Trainer.Config(\n", "#a bracket does not end");
  check_titan (TITAN ("))\n  if x:\n") "def _(x):\n  pass\n", "layers=32; gpus");
  check_titan ("  return Trainer.Config(model_spec=model_registry(x))\n", "?model llama3/x");
  check_titan (
      "  c = Trainer.Config(model_spec=model_registry(x))\n  if d:\n    c.y = 1\n  return c\n",
      "#it computes its configuration: models/llama3/config_registry.py:4 \"def f() -> Trainer.Config:\"\n"
      "note: run it, by \"python -m lockstep.dump torchtitan MODULE:FUNCTION > job.json\"");
}

/* HybridEP holds 16 SMs where nothing is said (core/transformer/transformer_config.py), DeepEP 20. */
static void
backends_of_the_flex_dispatcher_are_told_apart (void)
{
#define FLEX                                                                                                 \
  "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 4 "      \
  "--num-experts 8 --expert-model-parallel-size 4 --moe-token-dispatcher-type flex "
  check (FLEX, "dispatcher=deepep; dispatch_sms");
  check (FLEX "--moe-deepep-num-sms 24", "dispatcher=deepep; dispatch_sms=24");
  check (FLEX "--moe-flex-dispatcher-backend hybridep --moe-deepep-num-sms 24",
         "dispatcher=hybridep; dispatch_sms=16");
  check (FLEX "--moe-flex-dispatcher-backend hybridep --moe-hybridep-num-sms 32",
         "dispatcher=hybridep; dispatch_sms=32");
  check_read (
      "NeMo",
      "trainer: {devices: 8, num_nodes: 4}\nmodel:\n  tensor_model_parallel_size: 1\n  num_layers: 4\n"
      "  hidden_size: 512\n  num_attention_heads: 8\n  micro_batch_size: 1\n  num_moe_experts: 8\n"
      "  expert_model_parallel_size: 4\n  moe_token_dispatcher_type: flex\n  data: {seq_length: 512}\n"
      "  moe_flex_dispatcher_backend: hybridep\n  moe_hybridep_num_sms: 24\n",
      "dispatcher=hybridep; dispatch_sms=24");
  check (FLEX "--moe-flex-dispatcher-backend other", "dispatcher=deepep; ?moe-flex-dispatcher-backend other");
#undef FLEX
}

/* Megatron-LM, arguments.py of core 0.9: a split rank is the encoder's stages of all, encoder-pipeline-... those
 * before the decoder's. 24 layers and 12. */
static void
stages_of_an_encoder_come_first (void)
{
#define T5                                                                                                   \
  "python pretrain_t5.py --hidden-size 768 --num-attention-heads 12 --micro-batch-size 4 --num-layers 24 "   \
  "--decoder-num-layers 12 --encoder-seq-length 512 --decoder-seq-length 128 "
  check (T5 "--pipeline-model-parallel-size 6 --pipeline-model-parallel-split-rank 2",
         "pp=6; layers_per_chunk=12x2,3x4; schedule=1f1b");
  check (T5 "--pipeline-model-parallel-size 2 --encoder-pipeline-model-parallel-size 3",
         "pp=5; layers_per_chunk=8x3,6x2");
  check (T5 "--pipeline-model-parallel-size 1 --encoder-pipeline-model-parallel-size 1",
         "pp=2; layers_per_chunk=24,12");
  check (T5 "--pipeline-model-parallel-size 4", "pp=4; layers_per_chunk; ?not how many of them");
  check (T5 "--pipeline-model-parallel-size 7 --pipeline-model-parallel-split-rank 2",
         "!do not share 7 stages, of which 2");
  check ("--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 4 "
         "--pipeline-model-parallel-size 4 --pipeline-model-parallel-split-rank 2",
         "pp=4; layers_per_chunk; ?stages of an encoder");
  check_read (
      "NeMo",
      "name: megatron_t5\ntrainer: {devices: 8, num_nodes: 4}\nmodel:\n  tensor_model_parallel_size: 2\n  hidden_size: 512\n"
      "  num_attention_heads: 8\n  micro_batch_size: 1\n  pipeline_model_parallel_size: 4\n"
      "  pipeline_model_parallel_split_rank: 1\n  encoder: {num_layers: 2}\n  decoder: {num_layers: 3}\n"
      "  data: {seq_length: 512, seq_length_dec: 114}\n",
      "pp=4; layers_per_chunk=2,1x3");
#undef T5
}

LS_TEST_SUITE (LS_TEST (backends_of_the_flex_dispatcher_are_told_apart),
               LS_TEST (stages_of_an_encoder_come_first),
               LS_TEST (configurations_of_torchtitan_in_python_are_read),
               LS_TEST (other_configurations_in_python_are_refused),
               LS_TEST (values_of_megatron_files_are_right), LS_TEST (values_of_torchtitan_files_are_right),
               LS_TEST (values_of_yaml_files_are_right), LS_TEST (every_file_is_read_or_refused_for_a_reason))
