/* A configuration of LitGPT, in YAML: `litgpt pretrain`, `finetune_full` or `finetune_lora` with --config.
 * Rules are those of litgpt/pretrain.py and litgpt/finetune (Lightning-AI/litgpt@26857050, June 2026), and of
 * the strategies of Lightning Fabric that they ask for: on one GPU none.
 *
 *     precision      weights   gathered   gradients   reduced in
 *     X-true         X         X          X           X
 *     bf16-mixed     fp32      fp32       fp32        bf16 by FSDP1, fp32 by FSDP2
 *
 * (lightning/fabric/plugins/precision/fsdp.py and strategies/model_parallel.py of
 * Lightning-AI/pytorch-lightning@00608a38; FSDP2 is given no policy of mixed precision.) */
#include <string.h>

#include "data/jobs/job_files.h"
#include "data/launch/adapters.h"
#include "data/launch/hf_rules.h"
#include "data/launch/litgpt/litgpt_rules.h"
#include "data/launch/yaml_config.h"

typedef struct {
  LaunchJob job;
  const LitgptCommand *command;
  guint64 block; /* the longest sequence of the model; 0: not known */
} Litgpt;

static const char *
text_of (const Litgpt *g, const char *name)
{
  return option_text (&g->job, name);
}

static bool
is_on (const Litgpt *g, const char *name)
{
  return option_is_on (&g->job, name);
}

static bool
is_sharded (const Litgpt *g)
{
  return !import_has_strategy (g->job.import, "gpus") || g->job.import->strategy.gpus > 1;
}

/* Behind the last c. */
static const char *
behind (const char *text, char c)
{
  const char *at = text ? strrchr (text, c) : NULL;
  return at ? at + 1 : text;
}

/* --- the model --------------------------------------------------------------------------------------- */

/* "checkpoints/meta-llama/Llama-3.2-1B", "meta-llama/Llama-3.2-1B", "Llama-3.2-1B": what a name of
 * litgpt/config.py, or of its hub, stands for. */
static void
set_named (Litgpt *g, const char *said)
{
  LsImport *import = g->job.import;
  g_autofree char *trimmed = g_strdup (said);
  while (g_str_has_suffix (trimmed, "/"))
    trimmed[strlen (trimmed) - 1] = '\0';
  g_autofree char *name = g_strconcat ("litgpt/", behind (trimmed, '/'), NULL);
  LsModel m = { 0 };
  bool is_decoder, is_known = ls_model_of_name (name, &m, &is_decoder);
  if (!is_known && !import->model_is_given)
    import_unknown (
        import, "model %s: its dimensions are in no file here; its model_config.yaml may stand behind", said);
  if (!is_known)
    return;
  import_model (import, &m, name);
  import_infer (import, "model %s: %s", name, m.source);
  g->block = m.seq;
  ls_model_clear (&m);
}

/* Only pretrain can share the weights of the embedding, whatever a model's file says. */
static void
set_head (Litgpt *g)
{
  LsImport *import = g->job.import;
  bool is_tied = is_on (g, "train.tie_embeddings");
  import_set_model (import, "tied_embeddings", is_tied ? "1" : "0", "train.tie_embeddings");
  if (!is_tied)
    import_infer (import,
                  "the head has weights of its own: LitGPT shares them by train.tie_embeddings alone");
}

static void
set_model (Litgpt *g)
{
  LsImport *import = g->job.import;
  const char *said = text_of (g, g->command->model);
  if (import_has_model (import, "layers") && (!import->model_is_given || g->block > 0))
    return;
  if (text_of (g, "model_config.n_layer")) {
    litgpt_set_dimensions (&g->job);
    g->block = option_number (&g->job, "model_config.block_size");
    g->block = g->block ? g->block : 4096;
  } else if (said)
    set_named (g, said);
  else if (!import->model_is_given)
    import_unknown (import, "the model: %s is not said", g->command->model);
}

/* Scores that are capped are no work for FlashAttention, and neither is a mask, which is made anew in each
 * layer, row by row (litgpt/model.py, CausalSelfAttention; of what is published Gemma 2 caps both). */
static void
set_attention (Litgpt *g)
{
  LsImport *import = g->job.import;
  bool is_capped = text_of (g, "model_config.n_layer")
      ? text_of (g, "model_config.attention_logit_softcapping") != NULL
      : import->model.logit_cap;
  if (is_capped) {
    import_set_strategy (import, "attention", "unfused", "--");
    import_infer (import, "attention unfused: scores are capped, for which LitGPT multiplies by itself");
  }
  if (import->model.window > 0)
    import_unknown (
        import,
        "window %u: LitGPT makes its mask by a loop of the host over the sequence, in each layer, "
        "which is left out%s",
        import->model.window, is_capped ? "" : "; kernels are taken to be those of FlashAttention");
}

/* A batch is padded to its longest; pretraining has whole sequences, one token of the next one with each. */
static void
set_sequence (Litgpt *g)
{
  LsImport *import = g->job.import;
  guint64 most = option_number (&g->job, "train.max_seq_length");
  if (g->block > 0 && most > g->block)
    import_conflict (import,
                     "train.max_seq_length %" G_GUINT64_FORMAT
                     " is above the model's block_size %" G_GUINT64_FORMAT ", which LitGPT refuses",
                     most, g->block);
  if (most > 0)
    import_set_model_number (import, "seq", most);
  if (g->command->trains_whole_sequences) {
    if (most == 0 && g->block > 0) {
      import_set_model_number (import, "seq", g->block);
      import_infer (import,
                    "seq %" G_GUINT64_FORMAT ": the model's block_size, as train.max_seq_length is not said",
                    g->block);
    }
  } else if (most == 0)
    import_open (import, "seq",
                 "how long a sequence is: as the longest of the data, unless train.max_seq_length says");
  else
    import_infer (import, "seq %u: the most that there may be; a batch is as long as its longest sequence",
                  import->model.seq);
}

/* --- how it is run ----------------------------------------------------------------------------------- */

/* 0: all GPUs of a node, however many it has. */
static guint64
devices_of (Litgpt *g)
{
  const char *said = text_of (g, "devices");
  if (said && (strcmp (said, "auto") == 0 || strcmp (said, "-1") == 0))
    return 0;
  if (!said && g->command->devices == 0)
    return 0;
  return config_number_or (&g->job, "devices", "devices", g->command->devices);
}

/* Of the global batch whole micro-batches of each GPU are taken (litgpt/args.py,
 * gradient_accumulation_iters). */
static void
set_steps (Litgpt *g, guint64 gpus, guint64 all, guint64 each)
{
  LsImport *import = g->job.import;
  guint64 n = all / gpus / each, taken = n * gpus * each;
  if (n == 0)
    import_conflict (import,
                     "train.global_batch_size %" G_GUINT64_FORMAT
                     " is less than a micro-batch of %" G_GUINT64_FORMAT " on each of %" G_GUINT64_FORMAT
                     " GPUs, which LitGPT refuses",
                     all, each, gpus);
  if (n > 0 && taken != all)
    import_infer (import,
                  "global_batch %" G_GUINT64_FORMAT ": of train.global_batch_size %" G_GUINT64_FORMAT
                  " whole micro-batches of each GPU",
                  taken, all);
  if (n > 0)
    config_set_batch (&g->job, gpus, n);
}

static void
set_batch (Litgpt *g)
{
  LsImport *import = g->job.import;
  guint64 all
      = config_number_or (&g->job, "train.global_batch_size", "global_batch", g->command->global_batch),
      each = config_number_or (&g->job, "train.micro_batch_size", "micro_batch", g->command->micro_batch),
      nodes = config_number_or (&g->job, "num_nodes", "num_nodes", 1), devices = devices_of (g);
  if (each > 0)
    import_set_strategy_number (import, "micro_batch", each);
  if (import_is_given (import, "gpus"))
    devices = import->strategy.gpus / MAX (1, nodes);
  guint64 gpus = devices * nodes;
  if (gpus > G_MAXUINT32 || all > G_MAXUINT32 || each > G_MAXUINT32)
    import_conflict (import, "devices, num_nodes or a batch: too large");
  else if (gpus > 0 && each > 0 && all > 0)
    set_steps (g, gpus, all, each);
  else if (all > 0) {
    import_set_strategy_number (import, "global_batch", all);
    import_open (import, "gpus", "how many GPUs: devices auto takes all that a node has");
  }
  if (g->command->is_within_node && nodes > 1 && devices > 1 && gpus <= G_MAXUINT32) {
    g_autofree char *zero = g_strdup_printf ("3@%" G_GUINT64_FORMAT, devices);
    import_set_strategy (import, "zero", zero, "--");
    import_infer (import, "zero %s: HYBRID_SHARD shards within a node", zero);
  }
}

/* "bf16-true", and the names that Fabric has for others (fabric/connector.py). */
typedef struct {
  const char *name, *format;
  bool is_mixed;
} Precision;

static const Precision precisions[]
    = { { "bf16-mixed", "bf16", true }, { "bf16-true", "bf16", false }, { "16-mixed", "fp16", true },
        { "16-true", "fp16", false },   { "32-true", "fp32", false },   { "bf16", "bf16", true },
        { "16", "fp16", true },         { "32", "fp32", false } };

static const Precision *
precision_of (Litgpt *g)
{
  LsImport *import = g->job.import;
  const char *said = text_of (g, "precision");
  for (guint i = 0; said && i < G_N_ELEMENTS (precisions); i++)
    if (strcmp (said, precisions[i].name) == 0)
      return &precisions[i];
  if (said)
    import_unknown (import, "precision %s: taken for bf16-mixed", said);
  else
    import_infer (import, "precision bf16-mixed: the default on GPUs that have bf16");
  return &precisions[0];
}

static void
set_sharded (Litgpt *g, const Precision *p)
{
  LsImport *import = g->job.import;
  bool is_wide = strcmp (p->format, "fp32") == 0;
  import_set_strategy (import, "dp_kind", g->command->dp_kind, "--");
  import_set_strategy (import, "recompute", g->command->recomputes ? "full" : "none", "--");
  import_set_strategy (import, "narrow_shards", p->is_mixed || is_wide ? "0" : "1", "--");
  import_set_strategy (import, "grad_dtype", p->is_mixed ? "fp32" : p->format, "--");
  if (p->is_mixed)
    import_unknown (import,
                    "precision %s: weights are gathered in fp32%s, and cast for each product: they are taken "
                    "to be gathered in 16 bits%s",
                    p->name, g->command->reduces_as_wide ? "" : " and gradients reduced in 16 bits",
                    g->command->reduces_as_wide ? "" : ", and gradients reduced in fp32");
}

static void
set_precision (Litgpt *g)
{
  LsImport *import = g->job.import;
  const Precision *p = precision_of (g);
  const char *software = is_sharded (g) ? g->command->sharded
      : p->is_mixed                     ? g->command->mixed
                                        : g->command->whole;
  import_set_software (import, software);
  import_infer (import, "software %s: the release of LitGPT that is known", software);
  import_set_strategy (import, "dtype", p->format, "precision");
  if (is_sharded (g))
    set_sharded (g, p);
  else {
    import_set_strategy (import, "recompute", "none", "--");
    if (strcmp (p->format, "fp32") != 0)
      import_set_strategy (import, "master", p->is_mixed ? "weights" : "none", "--");
  }
  if (strcmp (p->format, "fp32") == 0)
    import_unknown (import,
                    "precision %s: products are in TF32 (set_float32_matmul_precision high); they are taken "
                    "to be in fp32",
                    p->name);
  if (g->command->has_adapters && p->is_mixed)
    import_unknown (
        import,
        "precision %s: frozen weights are in fp32; they are taken to be in 16 bits, half of their "
        "memory",
        p->name);
}

static void
set_optimizer (Litgpt *g)
{
  LsImport *import = g->job.import;
  const char *said = text_of (g, "optimizer.class_path"),
             *name = behind (said ? said : text_of (g, "optimizer"), '.'),
             *momentum = text_of (g, "optimizer.init_args.momentum");
  bool is_quantized = text_of (g, "quantize") != NULL;
  if (is_quantized && name && !strstr (name, "AdamW"))
    import_conflict (import, "optimizer %s with quantize: LitGPT takes AdamW alone", name);
  import_set_optimizer (import,
                        is_quantized ? "PagedAdamW"
                            : name   ? name
                                     : "AdamW",
                        momentum ? g_ascii_strtod (momentum, NULL) : 0, "optimizer");
  if (!g->command->trains_whole_sequences && is_on (g, "optimizer.init_args.fused"))
    import_unknown (import, "optimizer.init_args.fused: kernels are taken to be those of foreach");
  import_set_strategy (import, "grad_norm", text_of (g, "train.max_norm") ? "1" : "0", "train.max_norm");
}

/* --- adapters ---------------------------------------------------------------------------------------- */

/* Switches of setup(), and which are on where they are not said. */
static const struct {
  const char *option, *modules;
  bool is_usual;
} adapters[] = {
  { "lora_query", "q_proj", true },
  { "lora_key", "k_proj", false },
  { "lora_value", "v_proj", true },
  { "lora_projection", "o_proj", false },
  { "lora_mlp", "gate_proj,up_proj,down_proj", false },
};

static bool
has_adapter (const Litgpt *g, guint i)
{
  bool is_said = option_is_there (&g->job, adapters[i].option) || option_is_off (&g->job, adapters[i].option);
  return is_said ? is_on (g, adapters[i].option) : adapters[i].is_usual;
}

/* bitsandbytes quantizes all linear layers, the head too (fabric/plugins/precision/bitsandbytes.py). */
static bool
is_in_4_bits (Litgpt *g)
{
  LsImport *import = g->job.import;
  const char *said = text_of (g, "quantize"), *precision = text_of (g, "precision");
  if (!said)
    return false;
  if (is_sharded (g))
    import_conflict (import, "quantize %s on several GPUs: LitGPT refuses it", said);
  if (!precision || strstr (precision, "mixed"))
    import_conflict (import, "quantize %s with mixed precision: LitGPT refuses it", said);
  if (!g_str_has_prefix (said, "bnb.nf4") && !g_str_has_prefix (said, "bnb.fp4")) {
    import_unknown (import, "quantize %s: frozen weights are taken to be in 16 bits", said);
    return false;
  }
  import_infer (import, "quantize %s: taken for NF4; the head, which is in 4 bits too, is taken to be in 16",
                said);
  return true;
}

static void
set_adapters (Litgpt *g)
{
  g_autoptr (GPtrArray) on = g_ptr_array_new ();
  for (guint i = 0; i < G_N_ELEMENTS (adapters); i++)
    if (has_adapter (g, i))
      g_ptr_array_add (on, (gpointer) adapters[i].modules);
  if (on->len == 0) {
    import_unknown (g->job.import, "lora_*: no layer has adapters; all weights are taken to be trained");
    return;
  }
  launch_set_adapters (g->job.import,
                       &(LaunchAdapters) { .option = "lora_*",
                                           .rank = option_number (&g->job, "lora_r"),
                                           .usual_rank = 8,
                                           .on = on,
                                           .dropout = text_of (g, "lora_dropout"),
                                           .is_nf4 = is_in_4_bits (g) });
  if (!text_of (g, "lora_dropout") && !option_is_none (&g->job, "lora_dropout"))
    import_unknown (g->job.import, "lora_dropout 0.05, the default: left out");
  if (is_on (g, "lora_head"))
    import_unknown (g->job.import, "lora_head: the head is taken to have no adapter");
}

/* --- what LitGPT itself refuses (validate_args of each command) ---------------------------------------- */

static void
check (Litgpt *g)
{
  static const char *const of_tuning[] = { "train.max_tokens", "train.max_norm", "train.tie_embeddings" };
  static const char *const of_training[] = { "train.epochs" };
  LsImport *import = g->job.import;
  bool is_whole = g->command->trains_whole_sequences;
  for (guint i = 0; i < G_N_ELEMENTS (of_tuning) && !is_whole; i++)
    if (option_is_there (&g->job, of_tuning[i]))
      import_conflict (import, "%s: litgpt %s refuses it", of_tuning[i], g->command->name);
  for (guint i = 0; i < G_N_ELEMENTS (of_training) && is_whole; i++)
    if (option_is_there (&g->job, of_training[i]))
      import_conflict (import, "%s: litgpt %s refuses it", of_training[i], g->command->name);
  if (is_whole && launch_words_find (g->job.words, "train.max_norm") == NULL) {
    import_set_strategy (import, "grad_norm", "1", "train.max_norm");
    import_infer (import, "grad_norm: train.max_norm is 1 by default");
  }
  for (guint i = 0; i < G_N_ELEMENTS (adapters) && !g->command->has_adapters; i++)
    if (launch_words_find (g->job.words, adapters[i].option))
      import_conflict (import, "%s: litgpt %s has no adapters", adapters[i].option, g->command->name);
}

/* --- files ------------------------------------------------------------------------------------------- */

static void
read_options (Litgpt *g)
{
  option_read_all (&g->job);
  set_model (g);
  set_sequence (g);
  set_batch (g);
  set_precision (g);
  set_attention (g);
  set_optimizer (g);
  check (g);
  if (g->command->has_adapters)
    set_adapters (g);
  g_hash_table_unref (g->job.open);
}

static bool
is_model_config (const cJSON *tree)
{
  return yaml_config_find (tree, "n_embd") && yaml_config_find (tree, "n_layer");
}

/* model_config.yaml of a checkpoint, among the files behind the first. */
static void
add_model_config (cJSON *tree, const ImportFiles *files)
{
  for (guint i = 1; i < files->n; i++) {
    const cJSON *own = yaml_config_tree (&files->files[i]);
    if (!cJSON_IsObject (own) || !is_model_config (own))
      continue;
    import_use_file (&files->files[i]);
    cJSON_DeleteItemFromObjectCaseSensitive (tree, "model_config");
    cJSON_AddItemToObject (tree, "model_config", cJSON_Duplicate (own, true));
  }
}

bool
litgpt_read (cJSON *tree, const LitgptCommand *command, const ImportFiles *files, LsImport *import,
             LsDiagList *diags)
{
  import->program = "LitGPT";
  bool ok = !command->refused
      || import_refuse_task (import->path, diags, "litgpt %s %s", command->name, command->refused);
  if (!ok) {
    cJSON_Delete (tree);
    return false;
  }
  add_model_config (tree, files);
  g_autoptr (LaunchWords) words = yaml_config_words (tree);
  Litgpt g = { .job = { .import = import, .words = words, .table = &litgpt_options }, .command = command };
  set_head (&g);
  if (!hf_read_model (files, import, diags))
    return false;
  read_options (&g);
  return true;
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  cJSON *tree = cJSON_CreateObject ();
  if (!yaml_config_add (tree, &files->files[0], import, diags)) {
    cJSON_Delete (tree);
    return false;
  }
  const LitgptCommand *command = litgpt_command_of (tree);
  import_infer (import, "command litgpt %s: by the options that are there", command->name);
  return litgpt_read (tree, command, files, import, diags);
}

static bool
fits (const cJSON *tree)
{
  const cJSON *train = yaml_config_find (tree, "train");
  return cJSON_IsObject (train) && litgpt_command_of (tree)
      && (yaml_config_find (train, "micro_batch_size") || yaml_config_find (train, "global_batch_size"));
}

static bool
is_its (const ImportFile *file)
{
  return yaml_config_is (file, "train:", fits);
}

const ImportReader import_litgpt = { "a configuration or a script of LitGPT", is_its, read };
