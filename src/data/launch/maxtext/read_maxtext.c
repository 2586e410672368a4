/* Configurations of MaxText, and the scripts that launch it with words "key=value". Names, defaults and rules
 * as in src/maxtext/configs of AI-Hypercomputer/maxtext (e591f30cb, August 2026), and of releases since 2023
 * where they differ. */
#include <math.h>
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/launch_script.h"
#include "data/launch/maxtext/maxtext_rules.h"
#include "data/launch/yaml_config.h"
#include "model/compressed.h"

/* per_device_batch_size may be 0.5: a replica of several devices has whole sequences. */
static void
set_batch (LaunchJob *job, guint64 n_copies)
{
  LsImport *import = job->import;
  const LsStrategy *s = &import->strategy;
  guint of_chip = MAX (1, job->of_chip);
  double per_device = maxtext_real (job, "per_device_batch_size", 12) * of_chip,
         of_copy = per_device * s->tp * s->pp * s->cp;
  guint64 n = MAX (1, option_number (job, "gradient_accumulation_steps"));
  if (!option_text (job, "per_device_batch_size") && !maxtext_is_of_base (job, "per_device_batch_size")) {
    if (!launch_words_find (job->words, "per_device_batch_size"))
      import_open (import, "micro_batch", "per_device_batch_size: nothing here says it");
    config_set_batch (job, n_copies, 0);
    return;
  }
  if (maxtext_is_of_base (job, "per_device_batch_size"))
    import_infer (import, "12 sequences of a device: per_device_batch_size of base.yml");
  if (of_chip > 1)
    import_infer (import, "micro_batch: sequences of a chip, on which JAX has %u devices", of_chip);
  if (!(of_copy >= 1) || of_copy > 1 << 20 || of_copy != floor (of_copy)) {
    import_open (import, "micro_batch", "per_device_batch_size: %g sequences of a replica at once", of_copy);
    return;
  }
  import_set_strategy_number (import, "micro_batch", (guint64) of_copy);
  config_set_batch (job, n_copies, n);
}

/* --- the rest ------------------------------------------------------------------------------------- */

/* Products are kept by name, those of experts too (layers/moe.py, checkpoint_name "mlpwi_0" to "mlpwo"); what
 * is between them runs again. */
static void
set_kept_products (LaunchJob *job, const char *policy, const char *parts)
{
  const LsModel *m = &job->import->model;
  bool is_refused = m->n_experts > 0 || ls_model_has_latents (m);
  import_set_strategy (job->import, "recompute_parts", is_refused ? "norm,activation" : parts,
                       "remat_policy");
  if (is_refused)
    import_unknown (
        job->import,
        "remat_policy %s: with experts or latent attention only norms and activations are taken to "
        "run again; there all but products does",
        policy);
}

/* remat_policy custom: of tensors by name, which stay, on the device or the host; base.yml keeps none but the
 * input of a layer. Those of one part stay together: queries, keys and values, or their joint product. */
static const struct {
  const char *tensor, *part;
  guint share; /* of six */
} custom_tensors[] = {
  { "query_proj", "but-qkv", 2 },
  { "key_proj", "but-qkv", 2 },
  { "value_proj", "but-qkv", 2 },
  { "qkv_proj", "but-qkv", 6 },
  { "context", "but-attention", 6 },
  { "out_proj", "but-projection", 6 },
  { "mlpwi_0", "but-up", 3 },
  { "mlpwi_1", "but-up", 3 },
  { "mlpwi", "but-up", 6 },
  { "mlpwo", "but-down", 6 },
  { "moe_mlpwi_0", NULL, 0 },
  { "moe_mlpwi_1", NULL, 0 },
  { "moe_mlpwo", NULL, 0 },
  { "kv_proj", NULL, 0 },
  { "mla_q", NULL, 0 },
  { "mla_kv", NULL, 0 },
  { "engram", NULL, 0 },
  { "query_wa_proj", NULL, 0 },
  { "kv_wa_proj", NULL, 0 },
  { "attention_out", NULL, 0 },
};

static bool
is_kept (LaunchJob *job, const char *tensor)
{
  const char *where = option_text (job, tensor);
  return where && strcmp (where, "remat") != 0;
}

static bool
is_offloaded (LaunchJob *job, const char *tensor)
{
  const char *where = option_text (job, tensor);
  return where && strcmp (where, "offload") == 0;
}

static guint
kept_share (LaunchJob *job, const char *part)
{
  guint share = 0;
  for (guint i = 0; i < G_N_ELEMENTS (custom_tensors); i++)
    if (g_strcmp0 (custom_tensors[i].part, part) == 0 && is_kept (job, custom_tensors[i].tensor))
      share += custom_tensors[i].share;
  return share;
}

/* "but-qkv,but-projection"; without those of which less than a whole part stays, which are told. */
static char *
custom_parts (LaunchJob *job)
{
  GString *parts = g_string_new (NULL);
  g_autoptr (GString) others = g_string_new (NULL);
  for (guint i = 0; i < G_N_ELEMENTS (custom_tensors); i++) {
    const char *part = custom_tensors[i].part;
    if (!is_kept (job, custom_tensors[i].tensor))
      continue;
    if (!part || kept_share (job, part) < 6)
      g_string_append_printf (others, " %s", custom_tensors[i].tensor);
    else if (!strstr (parts->str, part))
      g_string_append_printf (parts, "%s%s", parts->len > 0 ? "," : "", part);
  }
  if (others->len > 0)
    import_unknown (job->import, "remat_policy custom: it keeps%s, which are taken to run again",
                    others->str);
  return g_string_free (parts, FALSE);
}

/* To the host go all that stay, or none. */
static void
set_custom_offload (LaunchJob *job)
{
  guint n = is_kept (job, "decoder_layer_input"), n_offloaded = is_offloaded (job, "decoder_layer_input");
  for (guint i = 0; i < G_N_ELEMENTS (custom_tensors); i++) {
    n += is_kept (job, custom_tensors[i].tensor);
    n_offloaded += is_offloaded (job, custom_tensors[i].tensor);
  }
  if (n_offloaded > 0 && n_offloaded == n)
    import_set_strategy (job->import, "offload_activations", "1", "remat_policy");
  else if (n_offloaded > 0)
    import_unknown (job->import,
                    "remat_policy custom: some of what stays goes to the host; all is taken to "
                    "stay on the device");
}

static void
set_custom (LaunchJob *job)
{
  g_autofree char *parts = custom_parts (job);
  set_custom_offload (job);
  if (parts[0] == '\0') {
    import_set_strategy (job->import, "recompute", "full", "remat_policy");
    import_infer (job->import, "recompute full: remat_policy custom keeps inputs of layers alone");
    return;
  }
  import_set_strategy (job->import, "recompute", "selective", "remat_policy");
  set_kept_products (job, "custom", parts);
}

/* What is named goes to the host, the inputs of layers stay. */
static void
set_offloaded (LaunchJob *job, const char *policy)
{
  import_set_strategy (job->import, "offload_activations", "1", "remat_policy");
  import_infer (job->import, "offload_activations: remat_policy %s; inputs of layers are taken to go, too",
                policy);
}

/* As MaxText/layers/decoders.py has them (AI-Hypercomputer/maxtext@8b8c39909, get_remat_policy). */
static void
set_recompute (LaunchJob *job)
{
  static const struct {
    const char *policy, *recompute, *parts;
    bool is_offloaded;
  } policies[] = {
    { "full", "full", NULL, false },
    { "none", "none", NULL, false },
    { "minimal", "selective", "dots", false },
    { "minimal_flash", "selective", "dots-flash", false },
    { "minimal_with_context", "selective", "dots-flash", false },
    { "minimal_offloaded", "selective", "dots", true },
    { "save_dot_with_context_except_mlp", "selective", "but-qkv,but-attention,but-projection", false },
    { "save_dot_except_mlpwi", "selective", "but-qkv,but-projection,but-down", false },
    { "save_dot_except_mlp", "selective", "but-qkv,but-projection", false },
    { "save_qkv_proj", "selective", "but-qkv", false },
    { "qkv_proj_offloaded", "selective", "but-qkv", true },
    { "save_out_proj", "selective", "but-projection", false },
  };
  const char *policy = option_text (job, "remat_policy");
  if (option_is_none (job, "remat_policy"))
    policy = "none";
  if (maxtext_is_of_base (job, "remat_policy"))
    import_infer (job->import, "recompute full: remat_policy of base.yml");
  else if (!policy) {
    if (!launch_words_find (job->words, "remat_policy"))
      import_open (job->import, "recompute", "remat_policy: nothing here says it");
    return;
  }
  for (guint i = 0; i < G_N_ELEMENTS (policies); i++)
    if (strcmp (policies[i].policy, policy ? policy : "full") == 0) {
      import_set_strategy (job->import, "recompute", policies[i].recompute, "remat_policy");
      if (policies[i].parts)
        set_kept_products (job, policy, policies[i].parts);
      if (policies[i].is_offloaded)
        set_offloaded (job, policy);
      return;
    }
  if (strcmp (policy, "custom") == 0)
    set_custom (job);
  else
    import_open (job->import, "recompute", "remat_policy %s: what it keeps is no choice here", policy);
}

static void
set_precision (LaunchJob *job)
{
  const char *dtype = option_text (job, "dtype"), *quantization = option_text (job, "quantization"),
             *grads = option_text (job, "grad_dtype");
  if (!dtype)
    import_infer (job->import, "dtype bf16: that of base.yml");
  if (option_text (job, "weight_dtype") && strcmp (option_text (job, "weight_dtype"), "float32") != 0)
    import_unknown (job->import, "weight_dtype %s: weights are taken to be kept in fp32 too",
                    option_text (job, "weight_dtype"));
  if (option_text (job, "matmul_precision") && strcmp (option_text (job, "matmul_precision"), "default") != 0)
    import_unknown (job->import, "matmul_precision %s", option_text (job, "matmul_precision"));
  bool is_fp8 = quantization && strstr (quantization, "fp8");
  import_set_strategy (job->import, "dtype", is_fp8 ? "fp8" : dtype ? dtype : "bf16", "dtype quantization");
  if (quantization && strstr (quantization, "current"))
    import_set_strategy (job->import, "fp8_recipe", "current", "quantization");
  else if (quantization && strstr (quantization, "mxfp8"))
    import_set_strategy (job->import, "fp8_recipe", "mxfp8", "quantization");
  else if (quantization && !is_fp8)
    import_unknown (job->import, "quantization %s: products are taken to be of dtype", quantization);
  import_set_strategy (job->import, "grad_dtype", grads ? grads : "fp32", "grad_dtype");
}

static void
set_attention (LaunchJob *job)
{
  const char *attention = option_text (job, "attention");
  bool is_unfused = attention && strcmp (attention, "dot_product") == 0;
  import_set_strategy (job->import, "attention", is_unfused ? "unfused" : "flash", "attention");
}

static void
set_software (LaunchJob *job)
{
  const char *hardware = option_text (job, "hardware"), *attention = option_text (job, "attention");
  bool has_gpu_flags = !hardware && !maxtext_is_of_base (job, "hardware")
      && g_hash_table_contains (job->import->strategy_said, "loop_overlap");
  bool is_gpu = has_gpu_flags || (hardware && g_str_has_prefix (hardware, "gpu"))
      || (attention && strstr (attention, "cudnn"));
  if (!hardware && !is_gpu && !maxtext_is_of_base (job, "hardware"))
    return; /* what does not say its machine is a model alone, or a part of a configuration */
  const char *name = is_gpu ? "maxtext-2024-12-gpu" : "maxtext-2024";
  import_set_software (job->import, name);
  import_infer (job->import, "software %s: the latest release of MaxText %s that is known", name,
                is_gpu ? "on GPUs" : "on TPUs");
  if (is_gpu && option_is_off (job, "scan_layers")) /* no loop: what is kept stays where it was made */
    import_set_strategy (job->import, "loop_copies", "none", "scan_layers");
  if (!is_gpu && g_hash_table_contains (job->import->strategy_said, "loop_overlap")) { /* by flags of GPUs */
    import_set_strategy (job->import, "loop_overlap", "gathers", "hardware");
    import_set_strategy (job->import, "loop_copies", "none", "hardware");
  }
}

/* Rules of its own, which no file of MaxText has but base.yml and those that change them. */
static void
tell_rules (LaunchJob *job)
{
  for (guint i = 0; i < job->words->options->len; i++) {
    const LaunchOption *o = job->words->options->pdata[i];
    if (g_str_has_prefix (o->name, "logical_axis_rules")) {
      import_unknown (job->import,
                      "logical_axis_rules: which axes cut which tensors is taken to be as in base.yml");
      return;
    }
  }
}

static void
read_strategy (LaunchJob *job)
{
  set_batch (job, maxtext_set_mesh (job));
  set_recompute (job);
  set_precision (job);
  set_attention (job);
  if (option_is_on (job, "optimizer_memory_host_offload")
      || option_is_on (job, "parameter_memory_host_offload"))
    import_unknown (job->import, "what is kept in the memory of hosts: nothing is, here");
  tell_rules (job);
}

/* A file of configs/models has nothing of a run. */
static bool
is_run (const LaunchJob *job)
{
  static const char *const marks[]
      = { "per_device_batch_size", "base_config",          "steps", "run_name", "hardware",
          "remat_policy",          "base_output_directory" };
  for (guint i = 0; i < G_N_ELEMENTS (marks); i++)
    if (maxtext_has (job, marks[i]))
      return true;
  return false;
}

static bool
check_kind (const LaunchJob *job, const char *path, LsDiagList *diags)
{
  const char *base = option_text (job, "base_config"), *what = NULL;
  if (base && strstr (base, "inference"))
    what = "base_config: inference";
  else if (option_number (job, "ici_autoregressive_parallelism") > 1)
    what = "ici_autoregressive_parallelism: inference";
  else if (launch_words_find (job->words, "activations_dtype"))
    what = "activations_dtype: MaxDiffusion, which makes images";
  if (what)
    ls_diag_add (diags, LS_ERROR_UNSUPPORTED, path, 0, 0, NULL, NULL, NULL,
                 "%s; a job of Lockstep trains a decoder on the next token", what);
  return !what;
}

bool
maxtext_read_tree (cJSON *tree, const char *path, const LaunchScript *script, LsImport *import,
                   LsDiagList *diags)
{
  import->program = "MaxText";
  g_autoptr (LaunchWords) words = yaml_config_words (tree);
  LaunchJob job = { .import = import, .words = words, .table = &maxtext_options };
  if (script) {
    job.gpus = script->slices.chips;
    job.slices = script->slices.slices;
    job.of_chip = script->slices.of_chip;
  }
  if (!check_kind (&job, path, diags))
    return false;
  bool has_run = is_run (&job);
  option_read_all (&job);
  maxtext_model (&job);
  if (has_run)
    read_strategy (&job);
  set_software (&job);
  import_set_optimizer (import, option_text (&job, "opt_type"), 0, "opt_type");
  g_hash_table_unref (job.open);
  return true;
}

/* --- scripts -------------------------------------------------------------------------------------- */

static bool
is_known (const char *name)
{
  const OptionRow *row = option_find (&maxtext_options, name);
  return row && row->kind != OPTION_IGNORED;
}

/* The configuration that a command names, of the files that were given; base.yml is known. */
static bool
add_config (cJSON *tree, const char *word, const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  g_autofree char *name = g_path_get_basename (word);
  for (guint i = 1; i < files->n; i++)
    if (g_str_has_suffix (files->files[i].path, name))
      return yaml_config_add (tree, &files->files[i], import, diags);
  if (strcmp (name, "base.yml") == 0)
    yaml_config_set (tree, "base_config", name);
  else
    import_unknown (import, "what %s says: it is not here; give it too, behind the script", name);
  return true;
}

static bool
read_script (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  static const LaunchKind kind
      = { .program = "MaxText", .is_known = is_known, .n_needed = 2, .has_pairs = true, .has_te = true };
  LaunchScript script;
  bool ok = launch_script_read (files, &kind, &script, import, diags);
  cJSON *tree = cJSON_CreateObject ();
  GPtrArray *words = ok ? script.words->others : NULL;
  for (guint i = 0; ok && i < words->len; i++)
    if (!strchr (words->pdata[i], '=') && g_str_has_suffix (words->pdata[i], ".yml"))
      ok = add_config (tree, words->pdata[i], files, import, diags);
  for (guint i = 1; ok && i < files->n; i++) /* a file of configs/models */
    if (strstr (files->files[i].text, "base_emb_dim"))
      ok = yaml_config_add (tree, &files->files[i], import, diags);
  if (ok && !yaml_config_find (tree, "run_name"))
    yaml_config_set (tree, "run_name", "run");
  for (guint i = 0; ok && i < words->len; i++)
    yaml_config_set_pair (tree, words->pdata[i]);
  if (ok)
    ok = maxtext_read_tree (tree, files->files[0].path, &script, import, diags);
  else
    cJSON_Delete (tree);
  launch_script_clear (&script);
  return ok;
}

static bool
fits (const cJSON *tree)
{
  static const char *const own[]
      = { "base_emb_dim",         "per_device_batch_size",  "ici_fsdp_parallelism",
          "dcn_data_parallelism", "decoder_block",          "max_target_length",
          "remat_policy",         "ici_tensor_parallelism", "dcn_fsdp_parallelism" };
  for (guint i = 0; i < G_N_ELEMENTS (own); i++)
    if (yaml_config_find (tree, own[i]))
      return true;
  return yaml_config_find (tree, "base_config") && yaml_config_find (tree, "model_name");
}

static bool
is_config (const ImportFile *file)
{
  return yaml_config_is (file, "_", fits);
}

static bool
is_script (const ImportFile *file)
{
  static const char *const marks[] = { "per_device_batch_size=", "_parallelism=", "model_name=" };
  g_autofree char *low = strstr (file->text, ".yml") ? g_ascii_strdown (file->text, -1) : NULL;
  for (guint i = 0; i < G_N_ELEMENTS (marks) && low; i++)
    if (strstr (low, marks[i]) && strstr (low, "maxtext"))
      return true;
  return false;
}

static bool
is_its (const ImportFile *file)
{
  return is_script (file) || is_config (file);
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  if (!is_config (&files->files[0]))
    return read_script (files, import, diags);
  cJSON *tree = yaml_config_load (files, import, diags);
  return tree && maxtext_read_tree (tree, files->files[0].path, NULL, import, diags);
}

const ImportReader import_maxtext = { "a configuration or a script of MaxText", is_its, read };
