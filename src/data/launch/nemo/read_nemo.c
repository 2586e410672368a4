/* Configurations of NeMo 1, NeMo 2 and Megatron-Bridge: what they mean is said in options of Megatron-LM,
 * whose rules are read then, with what NeMo takes by default where that differs. */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/adapters.h"
#include "data/launch/launch_script.h"
#include "data/launch/megatron/megatron_rules.h"
#include "data/launch/nemo/nemo_rules.h"
#include "data/launch/yaml_config.h"

/* --- what is known then --------------------------------------------------------------------------- */

/* FSDP of PyTorch, version 1, in NeMo 1. */
static void
set_fsdp (Nemo *n)
{
  const char *strategy = nemo_text (n, "model.fsdp_sharding_strategy");
  if (!nemo_is_on (n, "model.fsdp"))
    return;
  import_set_strategy (n->job.import, "dp_kind", "fsdp1", "model.fsdp");
  import_set_strategy (n->job.import, "zero", strategy && strstr (strategy, "grad") ? "2" : "3",
                       "model.fsdp_sharding_strategy model.fsdp");
  if (strategy && strstr (strategy, "hybrid"))
    import_unknown (n->job.import, "model.fsdp_sharding_strategy %s", strategy);
}

static void
set_checks (Nemo *n)
{
  const char *name = n->is_nemo1 ? "model.optim.check_for_nan_in_grad" : "ddp.check_for_nan_in_grad";
  if (n->is_nemo1 || nemo_is_on (n, name) || nemo_is_off (n, name))
    import_set_strategy (n->job.import, "grad_check", nemo_is_on (n, name) ? "1" : "0", name);
}

/* A sequence of the data is not longer than the model's, and what is computed is that. */
static void
check_rest (Nemo *n)
{
  if (nemo_text (n, "model.mm_cfg.vision_encoder.hidden_size"))
    import_unknown (n->job.import,
                    "model.mm_cfg: what turns images into tokens for the decoder: it is left out");
  const char *block = nemo_text (n, "model.transformer_block_type");
  if (block && strcmp (block, "pre_ln") != 0)
    import_unknown (n->job.import, "model.transformer_block_type %s", block);

  guint64 of_data = option_number (&n->job, "model.data.seq_length"), seq = n->job.import->model.seq;
  if (n->is_nemo1 && of_data > 0 && seq > 0 && of_data != seq)
    import_unknown (n->job.import,
                    "model.data.seq_length %" G_GUINT64_FORMAT ", and sequences of %" G_GUINT64_FORMAT,
                    of_data, seq);
}

static void
set_seq (Nemo *n)
{
  static const char *const names[]
      = { "data.seq_length", "dataset.seq_length", "dataset.sequence_length", "model.data.seq_length" };
  for (guint i = 0; i < G_N_ELEMENTS (names) && !launch_words_find (n->megatron, "seq-length"); i++)
    if (nemo_text (n, names[i]))
      nemo_say (n, "seq-length", nemo_text (n, names[i]));
}

/* What changes a recipe may say only a number of layers. */
static bool
has_dimensions (const Nemo *n)
{
  return launch_words_find (n->megatron, "num-layers")
      && (!n->is_bridge || launch_words_find (n->megatron, "hidden-size"));
}

/* A class of NeMo 2, a checkpoint or a recipe of Megatron-Bridge has dimensions that a file of it need not
 * repeat. False: the file has none. */
static bool
has_model (Nemo *n)
{
  const char *dot = n->target ? strrchr (n->target, '.') : NULL;
  if (has_dimensions (n))
    return true;
  if (n->target) {
    g_autofree char *name = g_strconcat ("nemo/", dot ? dot + 1 : n->target, NULL);
    import_model_of_name (n->job.import, name);
  } else if (n->named)
    import_model_of_name (n->job.import, n->named);
  else
    import_unknown (n->job.import, "the model: this file has none");
  return false;
}

static void
set_software (Nemo *n)
{
  if (n->software) {
    import_set_software (n->job.import, n->software);
    return;
  }
  import_set_software (n->job.import, n->is_nemo1 ? "nemo-2024" : "nemo-2025");
  import_infer (n->job.import,
                n->is_nemo1 ? "software nemo-2024: the nearest release of NeMo 1 that is known"
                            : "software nemo-2025: Megatron-Core as of NeMo 25.x");
}

/* What changes a recipe of Megatron-Bridge, which is Python, says nothing of what it leaves as it is. */
static bool
is_change (const Nemo *n)
{
  return n->is_bridge && !n->is_whole && !has_dimensions (n);
}

/* Its name sets all of it, whatever the recipe has (megatron/bridge/training/mixed_precision.py). */
static bool
has_precision (const Nemo *n)
{
  return nemo_text (n, "mixed_precision") || nemo_text (n, "mixed_precision.precision");
}

/* What is set by itself and stands in the recipe too, which may set it once more. */
static void
tell_changes (Nemo *n)
{
  static const char *const names[] = { "ddp.overlap_grad_reduce",
                                       "ddp.overlap_param_gather",
                                       "ddp.grad_reduce_in_fp32",
                                       "ddp.use_distributed_optimizer",
                                       "dist.use_torch_fsdp2",
                                       "optimizer.use_distributed_optimizer",
                                       "model.attention_backend",
                                       "model.fp8",
                                       "model.fused_single_qkv_rope",
                                       "mixed_precision.fp8",
                                       "mixed_precision.grad_reduce_in_fp32",
                                       "peft.dim" };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    bool is_there = launch_words_find (n->job.words, names[i]) || nemo_is_off (n, names[i]),
         is_read = strcmp (names[i], "peft.dim") == 0
        ? nemo_text (n, "peft._target_") != NULL
        : g_str_has_prefix (names[i], "mixed_precision.") && has_precision (n);
    if (is_there && !is_read)
      import_unknown (n->job.import, "%s: not followed; what the recipe says is taken", names[i]);
  }
}

/* moe_router_fusion is off by default (transformer_config.py): scores are then made by many kernels.
 * cross_entropy_loss_fusion is on in Megatron-Bridge (models/gpt_provider.py): its implementation decides.
 * Parts that only recipes of Megatron-Bridge tell. */
static void
append_bridge_kernels (const Nemo *n, GString *out)
{
  const char *loss = nemo_text (n, "model.cross_entropy_fusion_impl");
  bool has_fuser = nemo_is_on (n, "model.use_transformer_engine_op_fuser"),
       has_router = n->job.import->strategy.ep > 1 && !nemo_is_on (n, "model.moe_router_fusion"),
       has_stash = has_fuser && nemo_is_on (n, "model.moe_paged_stash"),
       has_padding = nemo_is_on (n, "model.moe_router_padding_for_quantization")
      || nemo_is_on (n, "model.moe_router_padding_for_fp8"),
       has_loss = g_strcmp0 (loss, "te") == 0 && !nemo_is_off (n, "model.cross_entropy_loss_fusion");
  if (!has_router && !has_loss && !has_stash && !has_padding)
    return;
  g_string_append (out,
                   has_fuser        ? "megatron-core-op-fuser"
                       : has_router ? "megatron-core-unfused-router"
                                    : "megatron-core");
  g_string_append (out, has_fuser && has_router ? "+megatron-core-unfused-router" : "");
  g_string_append (out, has_loss ? "+megatron-core-te-loss" : "");
  g_string_append (out, has_stash ? "+megatron-core-paged-stash" : "");
  g_string_append (out, has_padding ? "+megatron-core-router-padding" : "");
}

static void
set_kernels (Nemo *n)
{
  g_autoptr (GString) kernels = g_string_new (NULL);
  append_bridge_kernels (n, kernels);
  if (kernels->len == 0)
    return;
  if (nemo_is_on (n, "model.fused_single_qkv_rope"))
    g_string_append (kernels, "+megatron-core-fused-rope");
  import_set_strategy (n->job.import, "kernels", kernels->str,
                       "model.use_transformer_engine_op_fuser model.moe_router_fusion model.moe_paged_stash "
                       "model.moe_router_padding_for_quantization model.moe_router_padding_for_fp8 "
                       "model.cross_entropy_fusion_impl model.cross_entropy_loss_fusion "
                       "model.fused_single_qkv_rope");
}

static void
read_megatron (Nemo *n)
{
  LaunchJob job = { .import = n->job.import, .words = n->megatron, .gpus = n->job.gpus };
  bool is_whole = !is_change (n);
  job.table = &megatron_options;
  option_read_all (&job);
  if (has_model (n))
    megatron_model (&job);
  else
    megatron_predictions (&job);
  if (is_whole)
    megatron_strategy (&job);
  else {
    megatron_changes (&job);
    if (has_precision (n))
      megatron_precision (&job);
    tell_changes (n);
    import_unknown (n->job.import,
                    "what this file leaves as it is: the recipe says it, which is launched with it");
  }
  megatron_optimizer (&job);
  megatron_dispatcher (&job);
  megatron_graphs (&job);
  if (is_whole)
    megatron_fused_rope (&job);
  if (is_whole && n->is_bridge)
    set_kernels (n);
  if (is_whole)
    megatron_engine (&n->job);
  g_hash_table_unref (job.open);
}

/* In NeMo 1 a scheme with its settings; later an object, by itself of rank 32 on all linear layers
 * (NVIDIA-NeMo/Megatron-Bridge@067f987d, peft/lora.py). */
static void
set_adapters (Nemo *n)
{
  const char *prefix = n->is_nemo1 ? "model.peft.lora_tuning." : "peft.",
             *kind = nemo_text (n, n->is_nemo1 ? "model.peft.peft_scheme" : "peft._target_");
  g_autofree char *rank = g_strconcat (prefix, n->is_nemo1 ? "adapter_dim" : "dim", NULL),
                  *on = g_strconcat (prefix, "target_modules", NULL),
                  *dropout = g_strconcat (prefix, n->is_nemo1 ? "adapter_dropout" : "dropout", NULL),
                  *lower = kind ? g_ascii_strdown (kind, -1) : NULL;
  const LaunchOption *modules = launch_words_find (n->job.words, on);
  if (!lower || strcmp (lower, "none") == 0)
    return;
  if (!g_str_has_suffix (lower, "lora")) {
    import_unknown (n->job.import, "adapters %s: all weights are taken to be trained", kind);
    return;
  }
  launch_set_adapters (n->job.import,
                       &(LaunchAdapters) { .option = "peft",
                                           .rank = option_number (&n->job, rank),
                                           .usual_rank = 32,
                                           .on = modules ? modules->values : NULL,
                                           .dropout = option_text (&n->job, dropout) });
}

/* Recipes shard all where they are told to use Megatron-FSDP (megatron/bridge/recipes/common.py). */
static void
say_change (Nemo *n)
{
  if (has_precision (n))
    nemo_say_precision (n);
  if (nemo_is_on (n, "ddp.use_megatron_fsdp") && !nemo_text (n, "ddp.data_parallel_sharding_strategy")) {
    nemo_say (n, "data-parallel-sharding-strategy", "optim_grads_params");
    import_infer (n->job.import, "zero 3: ddp.data_parallel_sharding_strategy of recipes");
  }
}

static void
read_options (Nemo *n)
{
  import_set_software (n->job.import, "megatron"); /* its rules ask for it */
  set_seq (n);
  if (!is_change (n)) {
    nemo_say_model (n);
    nemo_say_strategy (n);
  } else
    say_change (n);
  read_megatron (n);
  if (!is_change (n)) {
    set_fsdp (n);
    set_checks (n);
    check_rest (n);
  }
  nemo_set_margin (n);
  nemo_set_amax_reduction (n);
  nemo_set_offload (n);
  set_adapters (n);
  set_software (n);
}

/* --- files ---------------------------------------------------------------------------------------- */

/* What one side says, the other says too: it is that of the model. */
static void
join_sides (cJSON *tree, LsImport *import)
{
  static const char *const ways[][2]
      = { { "model.encoder", "encoder" }, { "model", "encoder" }, { "encoder", "model" } };
  for (guint i = 0; i < G_N_ELEMENTS (ways); i++) /* what is there already holds: the encoder's keys */
    yaml_config_move (tree, ways[i][0], ways[i][1]);
  const cJSON *item;
  cJSON_ArrayForEach (item, yaml_config_find (tree, "model.decoder"))
  {
    g_autofree char *path = g_strconcat ("model.", item->string, NULL);
    bool is_count = strcmp (item->string, "num_layers") == 0;
    if (!is_count && !cJSON_Compare (item, yaml_config_find (tree, path), true))
      import_unknown (import, "model.decoder.%s: taken for that of the encoder", item->string);
  }
}

/* Files that Hydra reads too. */
static void
tell_defaults (const cJSON *tree, LsImport *import)
{
  const cJSON *item;
  cJSON_ArrayForEach (item, yaml_config_find (tree, "defaults"))
  {
    const cJSON *pair = cJSON_IsObject (item) ? item->child : NULL;
    const char *name = pair ? pair->string : cJSON_IsString (item) ? item->valuestring : "_self_";
    bool is_absent = strcmp (name, "_self_") == 0 || (pair && cJSON_IsNull (pair));
    if (!is_absent && !strstr (name, "ub_tp_comm_overlap_cfg"))
      import_unknown (import, "defaults: %s: a file that is not here", name);
  }
}

static bool
is_nemo1 (const cJSON *tree)
{
  return yaml_config_find (tree, "trainer") && !yaml_config_find (tree, "trainer.strategy._target_")
      && !yaml_config_find (tree, "train") && !yaml_config_find (tree, "model._target_");
}

/* *n: what is known of it before. */
static bool
read_tree (Nemo *n, cJSON *tree, const ImportFile *file, const char *program, LsImport *import,
           LsDiagList *diags)
{
  n->is_nemo1 = is_nemo1 (tree);
  n->is_bridge = yaml_config_find (tree, "train") != NULL;
  import->program = program ? program : n->is_nemo1 ? "NeMo" : n->is_bridge ? "Megatron-Bridge" : "NeMo 2";
  if (!nemo_check_kind (tree, file->path, diags)) {
    cJSON_Delete (tree);
    return false;
  }
  tell_defaults (tree, import);
  const cJSON *target = yaml_config_find (tree, "model.config._target_");
  target = target ? target : yaml_config_find (tree, "model._target_");
  n->target = cJSON_IsString (target) ? g_strdup (target->valuestring) : NULL;
  yaml_config_move (tree, "model.config", "model");
  if (nemo_has_sides (tree))
    join_sides (tree, import);
  yaml_config_move (tree, "trainer.strategy.ddp", "ddp");
  yaml_config_move (tree, "trainer.strategy", "model");
  n->job = (LaunchJob) { .import = import, .table = &nemo_options };
  g_autoptr (LaunchWords) words = yaml_config_words (tree), megatron = launch_words_new ();
  n->job.words = words;
  n->megatron = megatron;
  option_translate (&n->job, megatron);
  read_options (n);
  g_free (n->target);
  return true;
}

bool
nemo_read_tree (cJSON *tree, const ImportFile *file, const char *program, const char *named,
                const char *software, LsImport *import, LsDiagList *diags)
{
  Nemo n = { .named = named, .software = software };
  return read_tree (&n, tree, file, program, import, diags);
}

bool
nemo_read_recipe (cJSON *tree, const ImportFile *file, const char *named, bool is_whole, LsImport *import,
                  LsDiagList *diags)
{
  g_autofree char *software = bridge_software (file->path, import);
  Nemo n = { .named = named, .software = software, .is_whole = is_whole };
  return read_tree (&n, tree, file, "Megatron-Bridge", import, diags);
}

/* --- scripts -------------------------------------------------------------------------------------- */

/* NeMo's launcher has all of a job under "training". */
static const char *
bare_name (const char *name)
{
  return g_str_has_prefix (name, "training.") ? name + strlen ("training.") : name;
}

static bool
is_known (const char *name)
{
  const OptionRow *row = option_find (&nemo_options, bare_name (name));
  return row && row->kind != OPTION_IGNORED;
}

/* The configuration that --config-name names is one of the files that were given: without it a script says
 * only what differs from it. */
static bool
add_configs (cJSON *tree, const ImportFiles *files, const LaunchWords *words, LsImport *import,
             LsDiagList *diags)
{
  const char *said = launch_words_text (words, "config-name"), *name = said ? said : "of its program";
  for (guint i = 1; i < files->n; i++)
    if (!yaml_config_add (tree, &files->files[i], import, diags))
      return false;
  if (files->n == 1)
    ls_diag_add (diags, LS_ERROR_INPUT, files->files[0].path, 0, 0, NULL, NULL,
                 "give that file too, behind the script",
                 "this script changes the configuration %s, which is not here", name);
  return files->n > 1;
}

static bool
read_script (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  static const LaunchKind kind
      = { .program = "NeMo", .is_known = is_known, .n_needed = 2, .has_pairs = true, .has_te = true };
  LaunchScript script;
  cJSON *tree = cJSON_CreateObject ();
  bool ok = launch_script_read (files, &kind, &script, import, diags)
      && add_configs (tree, files, script.words, import, diags);
  for (guint i = 0; ok && i < script.words->others->len; i++) {
    const char *word = script.words->others->pdata[i];
    yaml_config_set_pair (tree, bare_name (word + strspn (word, "+")));
  }
  launch_script_clear (&script);
  if (ok)
    return nemo_read_tree (tree, &files->files[0], NULL, NULL, NULL, import, diags);
  cJSON_Delete (tree);
  return false;
}

/* --- files ---------------------------------------------------------------------------------------- */

static bool
has_all (const cJSON *tree, const char *const *paths)
{
  for (; *paths; paths++)
    if (!yaml_config_find (tree, *paths))
      return false;
  return true;
}

/* Others have "model" and "train" as well: VeOmni, and NxD Training for Trainium. */
static bool
is_of_another (const cJSON *tree)
{
  static const char *const marks[] = { "distributed_strategy", "model.model_path",
                                       "model.config_path",    "data.train_path",
                                       "train.accelerator",    "train.data_parallel_mode",
                                       "train.output_dir",     "train.gradient_checkpointing",
                                       "model.model_name" };
  for (guint i = 0; i < G_N_ELEMENTS (marks); i++)
    if (yaml_config_find (tree, marks[i]))
      return true;
  return false;
}

/* NeMo has models of speech too, which have a trainer, an optimizer and layers. */
static bool
fits (const cJSON *tree)
{
  static const char *const own[][4] = {
    { "trainer", "model.tensor_model_parallel_size", "model.micro_batch_size" },
    { "trainer", "model.num_layers", "model.hidden_size", "model.num_attention_heads" },
    { "trainer", "model.restore_from_path", "model.tensor_model_parallel_size", "model.global_batch_size" },
    { "trainer.strategy._target_", "model.config" },
    { "trainer.strategy.tensor_model_parallel_size" },
    { "train.global_batch_size", "model" },
    { "train.train_iters", "model" },
  };
  bool fits = false;
  for (guint i = 0; i < G_N_ELEMENTS (own); i++) {
    const char *const paths[] = { own[i][0], own[i][1], own[i][2], own[i][3], NULL };
    fits = fits || has_all (tree, paths);
  }
  return fits && !is_of_another (tree);
}

static bool
is_config (const ImportFile *file)
{
  return yaml_config_is (file, "model", fits);
}

/* Words "model.x=..." and "trainer.y=..." behind a script of Python: a trainer of Lightning, as other
 * programs have one with other options. */
static bool
is_its (const ImportFile *file)
{
  static const char *const own[] = { "trainer.devices",   "trainer.num_nodes",  "trainer.precision",
                                     "trainer.max_steps", "trainer.max_epochs", "trainer.strategy" };
  bool has_pairs = false;
  for (guint i = 0; i < G_N_ELEMENTS (own); i++)
    has_pairs = has_pairs || strstr (file->text, own[i]);
  has_pairs = has_pairs && strstr (file->text, "model.") && strstr (file->text, ".py")
      && strstr (file->text, "_size=");
  return has_pairs || is_config (file);
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  if (!is_config (&files->files[0]))
    return read_script (files, import, diags);
  cJSON *tree = yaml_config_load (files, import, diags);
  return tree && nemo_read_tree (tree, &files->files[0], NULL, NULL, NULL, import, diags);
}

const ImportReader import_nemo
    = { "a configuration or a script of NeMo, or a configuration of Megatron-Bridge", is_its, read };
