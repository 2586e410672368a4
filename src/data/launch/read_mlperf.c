/* Scripts of MLPerf Training that only set variables, config_DGXH100_8x8x1xtp4pp1cp2.sh: NVIDIA's NeMo reads
 * them in its configuration. What they mean is said as a configuration of NeMo.
 *
 * Names and defaults are those of conf/custom.yaml (gpt3, llama31_405b, llama31_8b) and of
 * conf/megatron_gpt_peft_tuning_config.yaml (llama2_70b_lora) of NVIDIA in mlcommons/training_results_v4.1
 * and v5.1. */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/adapters.h"
#include "data/launch/launch_script.h"
#include "data/launch/megatron/megatron_rules.h"
#include "data/launch/program/program_map.h"
#include "data/launch/yaml_config.h"

#define AS(variable, option) OPTION_AS_ROW (variable, option)
#define RULE(variable)       OPTION_RULE_ROW (variable)
#define IGNORED(variable)    OPTION_IGNORED_ROW (variable)

static const OptionRow rows[] = {
  AS ("DGXNNODES", "trainer.num_nodes"),
  AS ("DGXNGPU", "trainer.devices"),
  AS ("TENSOR_MODEL_PARALLEL", "model.tensor_model_parallel_size"),
  AS ("PIPELINE_MODEL_PARALLEL", "model.pipeline_model_parallel_size"),
  AS ("INTERLEAVED_PIPELINE", "model.virtual_pipeline_model_parallel_size"),
  AS ("CONTEXT_PARALLEL", "model.context_parallel_size"),
  AS ("EXPERT_PARALLEL", "model.expert_model_parallel_size"),
  AS ("SEQ_PARALLEL", "model.sequence_parallel"),
  AS ("TP", "model.tensor_model_parallel_size"),
  AS ("PP", "model.pipeline_model_parallel_size"),
  AS ("VP", "model.virtual_pipeline_model_parallel_size"),
  AS ("CP", "model.context_parallel_size"),
  AS ("SP", "model.sequence_parallel"),
  AS ("MICRO_BATCH_SIZE", "model.micro_batch_size"),
  AS ("MBS", "model.micro_batch_size"),
  AS ("MAX_SEQLEN", "model.encoder_seq_length"),
  AS ("NUM_LAYERS", "model.num_layers"),
  AS ("HIDDEN_SIZE", "model.hidden_size"),
  AS ("FFN_HIDDEN_SIZE", "model.ffn_hidden_size"),
  AS ("NUM_ATTENTION_HEADS", "model.num_attention_heads"),
  AS ("ACT_CKPT_GRANULARITY", "model.activations_checkpoint_granularity"),
  AS ("ACT_CKPT_METHOD", "model.activations_checkpoint_method"),
  AS ("ACT_CKPT_NUM_LAYERS", "model.activations_checkpoint_num_layers"),
  AS ("ACG", "model.activations_checkpoint_granularity"),
  AS ("ACM", "model.activations_checkpoint_method"),
  AS ("ACL", "model.activations_checkpoint_num_layers"),
  AS ("FP8", "model.fp8"),
  AS ("FP8_HYBRID", "model.fp8_hybrid"),
  AS ("FP8_RECIPE", "model.fp8_recipe"),
  AS ("FP8_PARAM_GATHER", "model.fp8_param_gather"),
  AS ("FP8_PARAMS", "model.fp8_param_gather"),
  AS ("FP8_REDUCE_AMAX", "model.reduce_amax"),
  AS ("FIRST_LAST_LAYERS_BF16", "model.first_last_layers_bf16"),
  AS ("NUM_LAYERS_AT_START_IN_BF16", "model.num_layers_at_start_in_bf16"),
  AS ("NUM_LAYERS_AT_END_IN_BF16", "model.num_layers_at_end_in_bf16"),
  AS ("TP_COMM_OVERLAP", "model.ub_tp_comm_overlap"),
  AS ("OVERLAP_P2P_COMM", "model.overlap_p2p_comm"),
  AS ("BATCH_P2P_COMM", "model.batch_p2p_comm"),
  AS ("ASYM_PP_EMBED", "model.account_for_embedding_in_pipeline_split"),
  AS ("ASYM_PP_LOSS", "model.account_for_loss_in_pipeline_split"),
  AS ("BUCKET_SIZE", "ddp.bucket_size"),
  AS ("OVERLAP_GRAD_REDUCE", "model.optim.overlap_grad_sync"),
  AS ("OVERLAP_PARAM_GATHER", "model.optim.overlap_param_sync"),
  AS ("TRANSFORMER_ENGINE", "model.transformer_engine"),
  RULE ("MINIBS"),
  RULE ("MODEL_SIZE"),
  RULE ("OVERWRITTEN_NUM_LAYERS"),
  RULE ("PRECISION"),
  RULE ("FP4"),
  RULE ("FP8_DPA"),
  RULE ("NVTE_DPA_FP8_RECIPE"),
  RULE ("NVTE_FP8_DPA_BWD"),
  RULE ("NVTE_NORM_*"),
  RULE ("NVTE_FLASH_ATTN"),
  RULE ("NVTE_FUSED_ATTN"),
  RULE ("FP8_ACTIVATION"),
  RULE ("LAYER_CUDA_GRAPH"),
  RULE ("MCORE_CUDA_GRAPH"),
  RULE ("FULL_CUDA_GRAPH"),
  RULE ("USE_DIST_OPTIMIZER"),
  RULE ("BUCKET_CAP_MB"),
  RULE ("LORA_*"),

  /* where and how long it runs, what is logged and saved, which kernels are chosen, how numbers learn */
  IGNORED ("ALIGN_PARAM_GATHER"),
  IGNORED ("ATTEMPT_*"),
  IGNORED ("HANG_MONITOR_*"),
  IGNORED ("*_FPROP_METHOD"), /* how products wait for parts of what is gathered */
  IGNORED ("*_FPROP_SM"),
  IGNORED ("*_DGRAD_METHOD"),
  IGNORED ("*_WGRAD_METHOD"),
  IGNORED ("BINDCMD"),
  IGNORED ("CHECK_COMPLIANCE"),
  IGNORED ("CHECKPOINT*"),
  IGNORED ("CE_FUSION_IMPL"),
  IGNORED ("CUBLAS*"),
  IGNORED ("CUDA_*"),
  IGNORED ("CUDNN_*"),
  IGNORED ("DATESTAMP"),
  IGNORED ("DEFER_EMBEDDING_WGRAD_COMPUTE"),
  IGNORED ("DGXSYSTEM"),
  IGNORED ("DGXHT"),
  IGNORED ("DGXSOCKETCORES"),
  IGNORED ("DGXNSOCKET"),
  IGNORED ("EXTRA_ARGS"),
  IGNORED ("FP8_AMAX_*"),
  IGNORED ("FP4_RECIPE"),
  IGNORED ("FUSED_QKV_ROPE"),
  IGNORED ("GC_*"),
  IGNORED ("GPU_ARCH"),
  IGNORED ("HF_*"),
  IGNORED ("HYDRA_*"),
  IGNORED ("INIT_GLOBAL_STEP"),
  IGNORED ("LEGACY_DATASET"),
  IGNORED ("LIMIT_*"),
  IGNORED ("LOAD_*"),
  IGNORED ("LOG_*"),
  IGNORED ("LOGDIR"),
  IGNORED ("LR"),
  IGNORED ("MAX_STEPS"),
  IGNORED ("MC_TP_*"),
  IGNORED ("MIN_LR"),
  IGNORED ("MLPERF_*"),
  IGNORED ("MODEL_TFLOP_PER_SAMPLE"),
  IGNORED ("NCCL_*"),
  IGNORED ("NEMO_*"),
  IGNORED ("NEXP"),
  IGNORED ("NUM_WORKERS"),
  IGNORED ("NVTE_*"),
  IGNORED ("OPT_*"),
  IGNORED ("OVERLAP_PARAM_GATHER_WITH_OPTIM_STEP"),
  IGNORED ("OVERRIDE_*"),
  IGNORED ("POSSIBLE_USER_WARNINGS"),
  IGNORED ("PROFILE*"),
  IGNORED ("PYTORCH_*"),
  IGNORED ("SBATCH_*"),
  IGNORED ("SEED"),
  IGNORED ("SEGMENT"),
  IGNORED ("SHARP"),
  IGNORED ("SKIP_*"),
  IGNORED ("SLURM_*"),
  IGNORED ("TARGET_*"),
  IGNORED ("TE_UB_*"),
  IGNORED ("TOKENIZERS_*"),
  IGNORED ("TORCH_CPP_*"),
  IGNORED ("TORCH_NCCL_*"),
  IGNORED ("TP_PP_DP_MAPPING"),
  IGNORED ("TQDM_*"),
  IGNORED ("TRAIN_ONLY"),
  IGNORED ("UB_SKIPMC"),
  IGNORED ("UCX_*"),
  IGNORED ("USE_TE_OPS"),
  IGNORED ("VAL_*"),
  IGNORED ("VBOOST_VALUE"),
  IGNORED ("WALLTIME*"),
  IGNORED ("WARMUP*"),
  IGNORED ("WGRAD_DEFERRAL_LIMIT"),
};

static const OptionTable options = { rows, G_N_ELEMENTS (rows) };

typedef struct {
  LaunchJob job; /* by variables */
  cJSON *tree;   /* the configuration of NeMo that they make */
  bool lacks;    /* a script that it sources is not here */
  bool is_lora;  /* variables of llama2_70b_lora, whose names are short */
  bool is_llama; /* of llama31_405b and llama31_8b */
} Mlperf;

static bool
has (const Mlperf *m, const char *variable)
{
  return launch_words_find (m->job.words, variable) != NULL;
}

static bool
is_on (const Mlperf *m, const char *variable)
{
  return option_is_on (&m->job, variable);
}

/* What the configuration of NeMo has where no variable says. */
static void
set_default (Mlperf *m, const char *option, const char *value)
{
  if (yaml_config_find (m->tree, option))
    return;
  yaml_config_set (m->tree, option, value);
  import_infer (m->job.import, "%s %s: the default of its configuration of NeMo", option, value);
}

/* --- variables one by one --------------------------------------------------------------------------- */

static void
take_all (Mlperf *m)
{
  g_autoptr (LaunchWords) nemo = launch_words_new ();
  GHashTableIter iter;
  gpointer name;
  option_translate (&m->job, nemo);
  for (guint i = 0; i < nemo->options->len; i++) {
    const LaunchOption *o = nemo->options->pdata[i];
    yaml_config_set (m->tree, o->name, o->values->len > 0 ? o->values->pdata[0] : "True");
  }
  g_hash_table_iter_init (&iter, nemo->off);
  while (g_hash_table_iter_next (&iter, &name, NULL))
    yaml_config_set (m->tree, name, "False");
}

/* --- what they mean together ------------------------------------------------------------------------ */

static void
set_degrees (Mlperf *m)
{
  set_default (m, "trainer.devices", "8");
  set_default (m, "trainer.num_nodes", "1");
  if (m->is_lora) {
    if (!m->lacks)
      set_default (m, "model.sequence_parallel", "False");
    set_default (m, "model.encoder_seq_length", "8192");
    return;
  }
  const cJSON *pp = yaml_config_find (m->tree, "model.pipeline_model_parallel_size");
  if (cJSON_IsNumber (pp) && pp->valuedouble > 1 && !m->lacks)
    set_default (m, "model.virtual_pipeline_model_parallel_size", "12");
  if (m->is_llama && !m->lacks)
    set_default (m, "model.context_parallel_size", "4");
  set_default (m, "model.sequence_parallel", "True");
  set_default (m, "model.encoder_seq_length", m->is_llama ? "8192" : "2048");
}

static guint64
degree (const Mlperf *m, const char *option)
{
  const cJSON *node = yaml_config_find (m->tree, option);
  return cJSON_IsNumber (node) && node->valuedouble >= 1 && node->valuedouble < 1 << 24
      ? (guint64) node->valuedouble
      : 1;
}

/* MINIBS are the sequences of a copy of the model. */
static void
set_batch (Mlperf *m)
{
  guint64 each = option_number (&m->job, "MINIBS"),
          of_model = import_times (degree (m, "model.tensor_model_parallel_size")
                                       * degree (m, "model.pipeline_model_parallel_size"),
                                   degree (m, "model.context_parallel_size")),
          gpus = degree (m, "trainer.devices") * degree (m, "trainer.num_nodes");
  if (import_is_given (m->job.import, "gpus"))
    gpus = m->job.import->strategy.gpus;
  if (each == 0)
    import_open (m->job.import, "global_batch", "MINIBS: the sequences of each copy are not said");
  else if (gpus >= of_model && of_model < G_MAXUINT32) {
    g_autofree char *batch
        = g_strdup_printf ("%" G_GUINT64_FORMAT, MIN (each * (gpus / of_model), G_MAXUINT32));
    yaml_config_set (m->tree, "model.global_batch_size", batch);
    import_infer (m->job.import, "global_batch %s: MINIBS for each of %" G_GUINT64_FORMAT " copies", batch,
                  gpus / of_model);
    import_follows_gpus (m->job.import, "global_batch");
  }
}

static void
set_precision (Mlperf *m)
{
  bool is_said = has (m, "FP8") || has (m, "FP4") || has (m, "PRECISION") || !m->lacks;
  const char *precision = option_text (&m->job, "PRECISION");
  if (is_on (m, "FP4"))
    yaml_config_set (m->tree, "model.fp4", "e2m1");
  if (precision)
    yaml_config_set (m->tree, "trainer.precision", precision);
  else
    set_default (m, "trainer.precision", m->is_lora ? "bf16-mixed" : "bf16");
  if (!is_said)
    import_open (m->job.import, "dtype", "FP8: whether it is on is said by a file that is not here");
  if (is_on (m, "FP8_ACTIVATION"))
    import_unknown (m->job.import, "FP8_ACTIVATION: activations are taken to be kept in bf16");
}

static void
set_optimizer (Mlperf *m)
{
  bool is_off = option_is_off (&m->job, "USE_DIST_OPTIMIZER");
  yaml_config_set (m->tree, "model.transformer_engine", "True");
  if (m->is_lora)
    return;
  set_default (m, "model.optim.grad_sync_dtype", "bf16");
  set_default (m, "model.optim.name", is_off ? "fused_adam" : "distributed_fused_adam");
  if (m->is_llama) {
    set_default (m, "model.optim.overlap_grad_sync", "True");
    set_default (m, "model.optim.overlap_param_sync", "True");
    set_default (m, "ddp.bucket_size", "134217728");
  }
  if (has (m, "BUCKET_CAP_MB"))
    import_unknown (m->job.import, "BUCKET_CAP_MB: buckets of apex's distributed optimizer");
}

static void
set_graphs (const Mlperf *m)
{
  const char *graphs = is_on (m, "FULL_CUDA_GRAPH")                    ? "step"
      : is_on (m, "LAYER_CUDA_GRAPH") || is_on (m, "MCORE_CUDA_GRAPH") ? "layer"
                                                                       : NULL;
  if (graphs)
    import_set_strategy (m->job.import, "cuda_graphs", graphs, "LAYER_CUDA_GRAPH");
}

/* Attention in fp8, by the way that Transformer Engine is told for it, else that of linear layers; F16
 * switches it off (transformer_engine/pytorch/attention/dot_product_attention/dot_product_attention.py). */
static void
set_fp8_attention (const Mlperf *m)
{
  static const char *const ways[][2] = { { "DelayedScaling", "delayed" },
                                         { "Float8CurrentScaling", "current" },
                                         { "MXFP8BlockScaling", "mxfp8" } };
  LsImport *import = m->job.import;
  const char *told = option_text (&m->job, "NVTE_DPA_FP8_RECIPE"), *way = "recipe";
  if (!is_on (m, "FP8_DPA") || g_strcmp0 (told, "F16") == 0)
    return;
  if (import->strategy.cp > 1) {
    import_unknown (import, "FP8_DPA with parts of a sequence: attention is taken to be computed in bf16");
    return;
  }
  if (option_is_off (&m->job, "NVTE_FP8_DPA_BWD"))
    import_unknown (import, "NVTE_FP8_DPA_BWD: attention's backward is taken to be in fp8 too");
  for (guint i = 0; i < G_N_ELEMENTS (ways); i++)
    if (g_strcmp0 (told, ways[i][0]) == 0)
      way = ways[i][1];
  import_set_strategy (import, "fp8_attention", way, "FP8_DPA");
}

/* --- the benchmark ---------------------------------------------------------------------------------- */

/* A name in a path or a text, not part of a longer one. */
static bool
has_name (const char *text, const char *name)
{
  gsize n = strlen (name);
  for (const char *p = strstr (text, name); p; p = strstr (p + 1, name))
    if ((p == text || !g_ascii_isalnum (p[-1])) && !g_ascii_isalnum (p[n]))
      return true;
  return false;
}

/* Static; NULL: nothing says. */
static const char *
find_benchmark (const Mlperf *m, const ImportFile *file)
{
  static const struct {
    const char *name, *size, *common;
  } all[] = { { "mlperf/llama31_405b", "405b", "config_common_405b.sh" },
              { "mlperf/llama31_8b", "8b", "config_common_8b.sh" },
              { "mlperf/llama2_70b_lora", NULL, NULL },
              { "mlperf/gpt3", NULL, NULL } };
  const char *size = option_text (&m->job, "MODEL_SIZE");
  for (guint i = 0; i < G_N_ELEMENTS (all); i++)
    if (size ? g_strcmp0 (size, all[i].size) == 0 : all[i].common && strstr (file->text, all[i].common))
      return all[i].name;
  for (guint i = 0; i < G_N_ELEMENTS (all); i++)
    if (has_name (file->path, all[i].name + strlen ("mlperf/"))) {
      import_infer (m->job.import, "the benchmark %s: by the name of its folder",
                    all[i].name + strlen ("mlperf/"));
      return all[i].name;
    }
  return NULL;
}

static const char *
find_software (Mlperf *m, const char *benchmark)
{
  static const char *const newer[]
      = { "CONTEXT_PARALLEL", "MODEL_SIZE", "ASYM_PP_EMBED", "MCORE_CUDA_GRAPH",
          "FULL_CUDA_GRAPH",  "FP8_RECIPE", "FP4",           "CG_WEIGHT_CACHING" };
  const char *why = benchmark && strstr (benchmark, "llama31") ? benchmark : NULL;
  for (guint i = 0; i < G_N_ELEMENTS (newer) && !why; i++)
    why = has (m, newer[i]) ? newer[i] : NULL;
  const char *software = why ? "nemo-mlperf-2025" : "nemo-mlperf-2024";
  if (why)
    import_infer (m->job.import, "software %s: %s is of its time", software, why);
  else
    import_infer (m->job.import, "software %s: no variable is of a later round of MLPerf Training", software);
  return software;
}

/* --- files ------------------------------------------------------------------------------------------ */

/* What a configuration sources is a part of one. */
static bool
check_whole (const Mlperf *m, const char *path, LsDiagList *diags)
{
  bool has_degree = has (m, "TENSOR_MODEL_PARALLEL") || has (m, "TP") || has (m, "MINIBS");
  if (!has_degree || !has (m, "DGXNNODES"))
    ls_diag_add (diags, LS_ERROR_INPUT, path, 0, 0, NULL, NULL, "give it behind the one that sources it",
                 "a part of a configuration of MLPerf Training: it does not say %s",
                 has_degree ? "how many nodes there are (DGXNNODES)" : "how a model is divided, nor a batch");
  return has_degree && has (m, "DGXNNODES");
}

/* Rank 16 on attention (mlcommons/training_policies, training_rules.adoc, llama2_70b_lora). */
static void
set_adapters (LsImport *import)
{
  g_autoptr (GPtrArray) attention = g_ptr_array_new ();
  g_ptr_array_add (attention, (gpointer) "attention");
  launch_set_adapters (import, &(LaunchAdapters) { .option = "LoRA", .usual_rank = 16, .on = attention });
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  const ImportFile *file = &files->files[0];
  Mlperf m = { .job = { .import = import, .table = &options } };
  g_autoptr (LaunchWords) words = launch_script_variables (files, import, &m.lacks, diags);
  m.job.words = words;
  if (!words || !check_whole (&m, file->path, diags))
    return false;
  const char *benchmark = find_benchmark (&m, file), *software = find_software (&m, benchmark);
  m.tree = cJSON_CreateObject ();
  m.is_lora = (!benchmark && has (&m, "TP") && !has (&m, "TENSOR_MODEL_PARALLEL"))
      || g_strcmp0 (benchmark, "mlperf/llama2_70b_lora") == 0;
  m.is_llama = benchmark && strstr (benchmark, "llama31");
  take_all (&m);
  set_degrees (&m);
  set_batch (&m);
  set_precision (&m);
  set_optimizer (&m);
  const ProgramTold told[]
      = { { "program", "NeMo for MLPerf" }, { "named", benchmark }, { "software", software }, { NULL } };
  bool ok = program_read_tree ("nemo", m.tree, file->path, told, import, diags);
  set_graphs (&m);
  set_fp8_attention (&m);
  megatron_engine (&m.job);
  if (ok && m.is_lora)
    set_adapters (import);
  if (ok && import_is_open (import, "dtype"))
    g_hash_table_remove (import->strategy_said, "dtype");
  return ok;
}

static bool
is_its (const ImportFile *file)
{
  static const char *const marks[] = { "export DGXSYSTEM=", "export DGXNNODES=", "export MINIBS=",
                                       "export WALLTIME",   "export FP8_AMAX_",  "export FP8_REDUCE_AMAX" };
  static const char *const launches[] = { "srun", "torchrun", "python", "sbatch", "mpirun" };
  guint n = 0;
  for (guint i = 0; i < G_N_ELEMENTS (launches); i++)
    if (launch_has_line (file->text, launches[i]))
      return false;
  for (guint i = 0; i < G_N_ELEMENTS (marks); i++)
    n += launch_has_line (file->text, marks[i]);
  return n >= 2;
}

const ImportReader import_mlperf
    = { "a configuration of NVIDIA's MLPerf Training (config_*.sh)", is_its, read };
