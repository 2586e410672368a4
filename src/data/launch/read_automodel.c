/* A configuration of NeMo AutoModel, in YAML. It shards, pipes and accumulates as torchtitan does, by the
 * same classes of PyTorch, in whose options it is said. Keys and defaults are those of
 * nemo_automodel/components/distributed and training/step_scheduler.py of NVIDIA-NeMo/Automodel (36044ad3,
 * August 2026); until late 2025 "distributed" named a class, FSDP2Manager, and until February 2026 the
 * pipeline, experts and checkpointing stood apart. */
#include <string.h>

#include "data/launch/adapters.h"
#include "data/launch/automodel_options.h"
#include "data/launch/hf_rules.h"
#include "data/launch/launch_script.h"
#include "data/launch/program/program_map.h"
#include "data/launch/yaml_config.h"

typedef struct {
  LaunchJob own, torch; /* by its options; by those of torchtitan, the words of which it fills */
  LaunchWords *words;   /* of torch */
} Automodel;

static const char *
text_of (const Automodel *a, const char *name)
{
  return option_text (&a->own, name);
}

static bool
is_on (const Automodel *a, const char *name)
{
  return option_is_on (&a->own, name);
}

static bool
is_off (const Automodel *a, const char *name)
{
  return option_is_off (&a->own, name);
}

static guint64
first_number (const Automodel *a, const char *const *names)
{
  guint64 n = 0;
  for (; *names && n == 0; names++)
    n = option_number (&a->own, *names);
  return n;
}

/* --- in options of torchtitan ---------------------------------------------------------------------- */

static void
say (Automodel *a, const char *name, const char *value)
{
  launch_words_add_value (a->words, name, value);
}

static void
say_recompute (Automodel *a)
{
  const char *how = text_of (a, "distributed.activation_checkpointing");
  option_tell_other (&a->own, "distributed.activation_checkpointing",
                     "full selective true false none yes no on off 0 1", "none");
  bool is_selective = how && strcmp (how, "selective") == 0, is_full = how && strcmp (how, "full") == 0;
  is_full = is_full || (!is_selective && is_on (a, "distributed.activation_checkpointing"));
  launch_words_add_by (a->words, how || is_full || is_off (a, "distributed.activation_checkpointing"),
                       "activation_checkpoint.mode",
                       is_selective  ? "selective"
                           : is_full ? "full"
                                     : "none");
  if (is_selective)
    say (a, "activation_checkpoint.selective_ac_option", "op");
}

/* Models with experts keep their layers gathered unless told otherwise (MoEParallelizerConfig). */
static void
say_reshard (Automodel *a)
{
  static const char *const all = "distributed.reshard_after_forward",
                           *const experts = "distributed.moe.reshard_after_forward";
  bool has_experts = option_number (&a->own, "distributed.ep_size") > 1;
  const char *name = has_experts ? experts : all;
  if (is_on (a, name))
    say (a, "parallelism.fsdp_reshard_after_forward", "always");
  else if (has_experts || is_off (a, name))
    launch_words_add_by (a->words, is_off (a, name), "parallelism.fsdp_reshard_after_forward", "never");
}

static void
say_rest (Automodel *a)
{
  guint64 seq = first_number (a,
                              (const char *const[]) { "packed_sequence.packed_sequence_size",
                                                      "packed_sequence.pack_size", "dataset.seq_len",
                                                      "dataset.seq_length", "dataset.max_length", NULL }),
          batch = first_number (
              a, (const char *const[]) { "distributed.pp_batch_size", "autopipeline.pp_batch_size", NULL });
  g_autofree char *length = g_strdup_printf ("%" G_GUINT64_FORMAT, seq),
                  *local = g_strdup_printf ("%" G_GUINT64_FORMAT, batch);
  if (seq > 0)
    say (a, "training.seq_len", length);
  if (option_number (&a->own, "packed_sequence.packed_sequence_size") > 0
      || option_number (&a->own, "packed_sequence.pack_size") > 0)
    import_open (
        a->own.import, "lengths",
        "packed_sequence: attention is inside documents, whose lengths are not in the file: taken to be "
        "over whole sequences (lengths)");
  if (batch > 0 && !launch_words_find (a->words, "training.local_batch_size"))
    say (a, "training.local_batch_size", local);
  if (option_number (&a->own, "distributed.dp_size") > 0
      && option_number (&a->own, "distributed.dp_replicate_size") <= 1)
    say (a, "parallelism.data_parallel_shard_degree", text_of (a, "distributed.dp_size"));
  say_reshard (a);
  if (!is_on (a, "distributed.sequence_parallel"))
    launch_words_add_by (a->words, is_off (a, "distributed.sequence_parallel"),
                         "parallelism.enable_sequence_parallel", "false");
  say_recompute (a);
}

/* --- what is known then ---------------------------------------------------------------------------- */

/* The GPUs of a node are said where it is submitted, if at all. */
static void
set_gpus (Automodel *a)
{
  guint64 nodes
      = first_number (a, (const char *const[]) { "slurm.nodes", "benchmark.num_nodes", "ci.nodes", NULL }),
      each = first_number (a, (const char *const[]) { "slurm.ntasks_per_node", "ci.nproc_per_node", NULL });
  a->torch.gpus = MIN (nodes * each, G_MAXUINT32);
  if (nodes > 0 && each == 0)
    import_infer (a->own.import, "it runs on %" G_GUINT64_FORMAT " nodes; how many GPUs each has is not said",
                  nodes);
}

static void
set_model (Automodel *a)
{
  const char *name = text_of (a, "model.pretrained_model_name_or_path");
  name = name ? name : text_of (a, "model.config.pretrained_model_name_or_path");
  name = name ? name : text_of (a, "model.config");
  if (import_has_model (a->own.import, "layers"))
    return;
  if (name)
    import_model_of_name (a->own.import, name);
  else
    import_unknown (a->own.import, "the model: no name of one is given; its file may stand behind this one");
}

/* As many chunks as so many layers make, rounded to a multiple of the stages if that is asked for; 0: a
 * conflict, or it does not say. */
static guint64
count_chunks (Automodel *a, guint64 layers, guint64 pp)
{
  guint64 each = first_number (a,
                               (const char *const[]) { "distributed.pipeline.layers_per_stage",
                                                       "autopipeline.layers_per_stage", NULL });
  const char *round = text_of (a, "distributed.pipeline.round_virtual_stages_to_pp_multiple");
  round = round ? round : text_of (a, "autopipeline.round_virtual_stages_to_pp_multiple");
  if (each == 0)
    return a->own.import->strategy.vpp * pp;
  guint64 n = (layers + each - 1) / each, over = n % pp;
  if (over > 0 && round)
    n = strcmp (round, "up") == 0 ? n + pp - over : n - over;
  if (n > 0 && n % pp == 0 && n <= layers && n <= 4096 * pp)
    return n;
  import_stages_conflict (a->own.import,
                          "layers_per_stage %" G_GUINT64_FORMAT ": %" G_GUINT64_FORMAT
                          " chunks of %" G_GUINT64_FORMAT " layers over %" G_GUINT64_FORMAT " stages",
                          each, n, layers, pp);
  return 0;
}

/* Embedding and head count as nothing; layers that are over go to the first chunks
 * (components/distributed/pipelining/functional.py). */
static void
set_chunks (Automodel *a)
{
  LsImport *import = a->own.import;
  guint64 layers = import->model.n_layers, pp = import->strategy.pp;
  guint64 n = pp > 1 && layers > 0 ? count_chunks (a, layers, pp) : 0;
  if (n == 0)
    return;
  GString *list = g_string_new (NULL);
  for (guint64 i = 0; i < n; i++)
    g_string_append_printf (list, "%s%" G_GUINT64_FORMAT, i > 0 ? "," : "", layers / n + (i < layers % n));
  import_set_strategy_number (import, "vpp", n / pp);
  import_set_strategy (import, "layers_per_chunk", list->str, "distributed.pipeline.layers_per_stage");
  g_string_free (list, TRUE);
}

/* Without a pipeline the last micro-batch alone reduces, unless defer_fsdp_grad_sync is off
 * (components/distributed/utils.py, get_sync_ctx; before December 2025 always). With one its own models,
 * which have experts, reduce once a step (components/moe/fsdp_mixin.py). */
static void
set_sharding (Automodel *a)
{
  LsImport *import = a->own.import;
  const char *how = text_of (a, "distributed.strategy"), *class = text_of (a, "distributed._target_");
  option_tell_other (&a->own, "distributed.strategy", "fsdp2 ddp megatron_fsdp", "fsdp2");
  how = how ? how : class ? class : "fsdp2";
  if (g_ascii_strcasecmp (how, "ddp") == 0 || strstr (how, "DDPManager"))
    import_set_strategy (import, "dp_kind", "ddp", "distributed.strategy");
  else if (strstr (how, "egatron"))
    import_unknown (import, "distributed.strategy %s: taken for FSDP2", how);
  if (is_off (a, "distributed.sequence_parallel")
      || !launch_words_find (a->own.words, "distributed.sequence_parallel"))
    import_set_strategy (import, "sp", "0", "distributed.sequence_parallel");
  if (import->strategy.cp > 1)
    import_set_strategy (import, "cp_kind",
                         g_strcmp0 (text_of (a, "model.backend.attn"), "te") == 0 ? "ring" : "all-gather",
                         "model.backend.attn");
  if (is_off (a, "distributed.defer_fsdp_grad_sync"))
    import_set_strategy (import, "grad_sync", "each", "distributed.defer_fsdp_grad_sync");
  else if (import->strategy.pp <= 1 || import->strategy.ep > 1)
    import_set_strategy (import, "grad_sync", "last", "distributed.defer_fsdp_grad_sync");
}

/* The loop of its benchmarks steps without a norm (recipes/llm/benchmark.py). Every other computes it: it
 * clips to 1.0 where a file says nothing, and did so before it could be said (recipes/llm/train_ft.py). */
static void
set_clipping (Automodel *a)
{
  const char *recipe = text_of (a, "recipe");
  if (recipe ? strstr (recipe, "Benchmark") != NULL
             : launch_words_find (a->own.words, "benchmark.warmup_steps") != NULL)
    import_set_strategy (a->own.import, "grad_norm", "0", "--");
}

/* The fake gate deals experts out in turn (components/moe/layers.py, FakeBalancedGate); with noise it draws
 * them. DeepEP is what a model with experts has by itself (components/models/common/utils.py,
 * BackendConfig); "torch" gathers the tokens of all ranks. */
static void
set_exchange (Automodel *a)
{
  LsImport *import = a->own.import;
  const char *how = text_of (a, "model.backend.dispatcher");
  guint64 n_sms = option_number (&a->own, "model.backend.dispatcher_num_sms");
  if (import->strategy.ep <= 1)
    return;
  how = how ? how : is_off (a, AUTOMODEL_EARLY_DEEPEP) ? "torch" : "deepep";
  bool is_known = strcmp (how, "deepep") == 0 || strcmp (how, "hybridep") == 0,
       is_torch = strcmp (how, "torch") == 0;
  if (is_torch)
    import_unknown (import, "model.backend.dispatcher torch: a gather, here an all-to-all");
  else if (!is_known)
    import_unknown (import, "model.backend.dispatcher %s: taken for DeepEP", how);
  import_set_strategy (import, "dispatcher",
                       is_known       ? how
                           : is_torch ? "all-to-all"
                                      : "deepep",
                       "model.backend.dispatcher " AUTOMODEL_EARLY_DEEPEP);
  if (n_sms > 0 && !is_torch)
    import_set_strategy_count (import, "dispatch_sms", n_sms, "model.backend.dispatcher_num_sms");
  if (!is_on (a, "model.backend.fake_balanced_gate"))
    return;
  const char *noise = text_of (a, "model.backend.fake_gate_noise");
  if (noise && g_ascii_strtod (noise, NULL) > 0)
    import_unknown (import, "model.backend.fake_gate_noise: tokens are taken to fall evenly");
  else if (!is_torch)
    import_set_strategy (import, "expert_load", "round-robin", "model.backend.fake_balanced_gate");
}

/* FlexAttention reaches 0.90 of FlashAttention-2 forward and 0.85 backward (PyTorch's blog, August 2024), and
 * not cuDNN's rates. Rotary embeddings are fused since January 2026, where a file says so or by itself; a
 * "distributed" that names no class is later. */
static void
set_kernels (Automodel *a)
{
  LsImport *import = a->own.import;
  const char *how = text_of (a, "model.attn_implementation");
  bool is_late = !text_of (a, "distributed._target_")
      && !launch_words_find (a->own.words, AUTOMODEL_EARLY_DEEPEP) && !is_off (a, AUTOMODEL_EARLY_DEEPEP);
  if (is_on (a, "model.backend.rope_fusion") || (is_late && !is_off (a, "model.backend.rope_fusion")))
    import_set_strategy (import, "kernels", "nemo-automodel-2026", "--");
  if (g_strcmp0 (text_of (a, "model.backend.attn"), "flex") == 0) {
    import_set_strategy (import, "attention_kernel", "fa2", "model.backend.attn");
    import_unknown (import,
                    "model.backend.attn flex: FlexAttention is taken to be as fast as FlashAttention-2");
  }
  import_set_strategy (import, "attention", how && strcmp (how, "eager") == 0 ? "unfused" : "flash",
                       "model.attn_implementation");
  if (how && strcmp (how, "flash_attention_2") == 0 && !text_of (a, "model.backend.attn"))
    import_set_strategy (import, "attention_kernel", "fa2", "model.attn_implementation");
  if (is_on (a, "compile.enabled"))
    import_unknown (import, "compile.enabled: layers are taken to run eagerly");
  if (is_on (a, "model.use_liger_kernel"))
    import_unknown (import, "model.use_liger_kernel: taken to be off");
}

/* dim 8 and no modules are the defaults of its PeftConfig. */
static void
set_adapters (Automodel *a)
{
  const LaunchOption *modules = launch_words_find (a->own.words, "peft.target_modules");
  if (!text_of (a, "peft._target_"))
    return;
  launch_set_adapters (
      a->own.import,
      &(LaunchAdapters) { .option = "peft",
                          .rank = option_number (&a->own, "peft.dim"),
                          .usual_rank = 8,
                          .on = modules && !is_on (a, "peft.match_all_linear") ? modules->values : NULL,
                          .is_nf4 = is_on (a, "quantization.load_in_4bit") });
}

/* A loss that is fused with the head keeps no logits; what is frozen has neither gradients nor states. */
static void
tell_rest (Automodel *a)
{
  static const char *const frozen[]
      = { "freeze_config.freeze_embeddings", "freeze_config.freeze_language_model" };
  const char *loss = text_of (a, "loss_fn._target_");
  if (loss && strstr (loss, "Linear"))
    import_unknown (a->own.import, "loss_fn._target_ %s: logits are taken to be whole", loss);
  for (guint i = 0; i < G_N_ELEMENTS (frozen); i++)
    if (is_on (a, frozen[i]))
      import_unknown (a->own.import, "%s: all weights are taken to be trained", frozen[i]);
}

static void
read_options (Automodel *a)
{
  option_translate (&a->own, a->words);
  say_rest (a);
  set_gpus (a);
  a->torch.words = a->words;
  a->torch.table = program_table_find ("torchtitan");
  import_set_software (a->own.import, "nemo-automodel-2025");
  import_infer (a->own.import, "software nemo-automodel-2025: the release of it that is known");
  option_read_all (&a->torch);
  set_model (a);
  if (!import_has_model (a->own.import, "seq"))
    import_open (a->own.import, "seq", "how long a sequence is: nothing here says");
  program_run_map ("torchtitan", "strategy", &a->torch, NULL, NULL);
  set_chunks (a);
  set_sharding (a);
  set_clipping (a);
  set_exchange (a);
  set_kernels (a);
  set_adapters (a);
  automodel_formats (&a->own);
  tell_rest (a);
  g_hash_table_unref (a->torch.open);
}

/* Sections that are one since February 2026, each key under the name that it has now. */
static void
join_sections (LaunchWords *words)
{
  static const struct {
    const char *old, *now;
  } keys[] = {
    { "distributed_config._target_", "distributed._target_" },
    { "distributed_config.activation_checkpointing", "distributed.activation_checkpointing" },
    { "distributed_config.defer_fsdp_grad_sync", "distributed.defer_fsdp_grad_sync" },
    { "distributed_config.sequence_parallel", "distributed.sequence_parallel" },
    { "moe_config.activation_checkpointing", "distributed.activation_checkpointing" },
    { "moe_config.reshard_after_forward", "distributed.moe.reshard_after_forward" },
    { "parallelizer.activation_checkpointing", "distributed.activation_checkpointing" },
    { "parallelizer.reshard_after_forward", "distributed.moe.reshard_after_forward" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++) {
    const LaunchOption *old = launch_words_find (words, keys[i].old);
    if (old && !launch_words_find (words, keys[i].now))
      launch_words_add_renamed (words, keys[i].now, old);
  }
}

/* --- files ------------------------------------------------------------------------------------------ */

/* Of the model's classes those that learn the next token. */
static bool
check_task (const cJSON *tree, LsImport *import, LsDiagList *diags)
{
  static const char *const others[] = { "flow_matching", "diffusion", "recipe_args", "retrieval", "dllm" };
  const cJSON *class = yaml_config_find (tree, "model._target_");
  const char *name = cJSON_IsString (class) ? class->valuestring : "CausalLM", *other = NULL;
  for (guint i = 0; i < G_N_ELEMENTS (others) && !other; i++)
    other = yaml_config_find (tree, others[i]) ? others[i] : NULL;
  if (!other && (strstr (name, "Encoder") || strstr (name, "Classification") || strstr (name, "Diffusion")))
    other = name;
  if (other)
    return import_refuse_task (import->path, diags, "%s", other);
  if (!strstr (name, "CausalLM") && (strstr (name, "Image") || strstr (name, "Multimodal")))
    import_unknown (import, "%s: what sees or hears is left out", name);
  return true;
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  cJSON *tree = cJSON_CreateObject ();
  import->program = "NeMo AutoModel";
  bool ok = yaml_config_add (tree, &files->files[0], import, diags) && check_task (tree, import, diags)
      && hf_read_model (files, import, diags);
  if (!ok) {
    cJSON_Delete (tree);
    return false;
  }
  g_autoptr (LaunchWords) words = yaml_config_words (tree), torch = launch_words_new ();
  join_sections (words);
  read_options (&(Automodel) { .own = { .import = import, .words = words, .table = &automodel_options },
                               .torch = { .import = import },
                               .words = torch });
  return true;
}

static bool
fits (const cJSON *tree)
{
  const cJSON *class = yaml_config_find (tree, "model._target_");
  bool is_own = cJSON_IsString (class) && strstr (class->valuestring, "nemo_automodel");
  return (is_own || yaml_config_find (tree, "step_scheduler"))
      && cJSON_IsObject (yaml_config_find (tree, "model"))
      && (yaml_config_find (tree, "distributed") || yaml_config_find (tree, "dist_env")
          || yaml_config_find (tree, "step_scheduler.local_batch_size"));
}

static bool
is_its (const ImportFile *file)
{
  return yaml_config_is (file, "model", fits);
}

const ImportReader import_automodel = { "a configuration of NeMo AutoModel", is_its, read };
