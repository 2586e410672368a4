/* A configuration of XTuner in Python, until its v1: mmengine runs a model of Hugging Face, whose layers it
 * leaves as they are, so it is said in options of a Trainer, whose rules are read. Names, defaults and rules
 * are those of xtuner/configs, xtuner/tools/train.py and xtuner/model/sft.py of InternLM/xtuner@b934f462
 * (August 2026). */
#include <string.h>

#include "data/launch/deepspeed_rules.h"
#include "data/launch/hf_rules.h"
#include "data/launch/python/python_names.h"
#include "data/launch/xtuner/xtuner_rules.h"
#include "data/launch/yaml_config.h"

#define AS(option, trainer) OPTION_AS_ROW (option, trainer)
#define RULE(option)        OPTION_RULE_ROW (option)
#define IGNORED(option)     OPTION_IGNORED_ROW (option)

static const OptionRow rows[] = {
  AS ("model.llm.pretrained_model_name_or_path", "model_name_or_path"),
  AS ("train_dataloader.batch_size", "per_device_train_batch_size"),
  AS ("optim_wrapper.accumulative_counts", "gradient_accumulation_steps"),
  AS ("optim_wrapper.optimizer.type", "optim"),
  AS ("sequence_parallel_size", "parallelism_config_cp_size"),
  RULE ("max_length"),
  RULE ("pack_to_max_length"),
  RULE ("use_varlen_attn"),
  RULE ("model.type"),
  RULE ("model.use_varlen_attn"),
  RULE ("model.use_activation_checkpointing"),
  RULE ("model.max_position_embeddings"),
  RULE ("model.llm.torch_dtype"),
  RULE ("model.llm.attn_implementation"),
  RULE ("model.llm.quantization_config.load_in_4bit"),
  RULE ("model.llm.quantization_config.load_in_8bit"),
  RULE ("model.lora.type"),
  RULE ("model.lora.r"),
  RULE ("model.lora.lora_dropout"),
  RULE ("model.lora.target_modules"),
  RULE ("model.lora.modules_to_save"),
  RULE ("optim_wrapper.type"),
  RULE ("optim_wrapper.dtype"),
  RULE ("optim_wrapper.clip_grad.max_norm"),
  RULE ("framework"),
  IGNORED ("model.tokenizer*"),
  IGNORED ("model.peft_model"),
  IGNORED ("model.llm.type"),
  IGNORED ("model.llm.trust_remote_code"),
  IGNORED ("model.llm.quantization_config.*"),
  IGNORED ("model.lora.lora_alpha"),
  IGNORED ("model.lora.bias"),
  IGNORED ("model.lora.task_type"),
  IGNORED ("optim_wrapper.loss_scale"),
  IGNORED ("optim_wrapper.clip_grad.*"),
  IGNORED ("optim_wrapper.optimizer.*"),
  IGNORED ("train_dataloader.*"),
};

static const OptionTable options = { rows, G_N_ELEMENTS (rows), NULL, NULL, NULL };

/* Files of xtuner/configs/deepspeed that a command knows by their names. */
#define AUTO                                                                                                 \
  "\"gradient_accumulation_steps\": \"auto\", \"train_micro_batch_size_per_gpu\": \"auto\", "                \
  "\"gradient_clipping\": \"auto\", \"fp16\": {\"enabled\": \"auto\"}, \"bf16\": {\"enabled\": \"auto\"}"
#define ZERO(stage)   "{" AUTO ", \"zero_optimization\": {\"stage\": " stage ", \"overlap_comm\": true"
#define ON_HOST(what) ", \"" what "\": {\"device\": \"cpu\", \"pin_memory\": true}"

static const HfFile deepspeeds[] = {
  { "deepspeed_zero1", ZERO ("1") "}}" },
  { "deepspeed_zero2", ZERO ("2") "}}" },
  { "deepspeed_zero2_offload", ZERO ("2") ON_HOST ("offload_optimizer") "}}" },
  { "deepspeed_zero3", ZERO ("3") "}}" },
  { "deepspeed_zero3_offload", ZERO ("3") ON_HOST ("offload_optimizer") ON_HOST ("offload_param") "}}" },
};

typedef struct {
  LaunchJob job;        /* by names of the configuration */
  LaunchWords *trainer; /* what they are of a Trainer    */
} Xtuner;

static const char *
text_of (const Xtuner *x, const char *name)
{
  return option_text (&x->job, name);
}

static bool
is_on (const Xtuner *x, const char *name)
{
  return option_is_on (&x->job, name);
}

static void
say (Xtuner *x, const char *name, const char *value)
{
  launch_words_add_value (x->trainer, name, value);
}

static bool
uses_deepspeed (const Xtuner *x)
{
  return launch_words_find (x->trainer, "deepspeed") != NULL;
}

/* --- what a Trainer is told --------------------------------------------------------------------------- */

/* DeepSpeed's is bf16 where a GPU has it (auto_dtype_of_deepspeed_config); else autocast casts, to fp16 where
 * nothing is said. With flash-attn, which is taken where it is installed, weights are in bf16, too
 * (SupervisedFinetune._prepare_for_flash_attn). */
static void
say_precision (Xtuner *x)
{
  const char *loaded = text_of (x, "model.llm.torch_dtype"),
             *how = text_of (x, "model.llm.attn_implementation"), *cast = text_of (x, "optim_wrapper.dtype"),
             *wrapper = text_of (x, "optim_wrapper.type");
  bool is_flash = !how || strcmp (how, "flash_attention_2") == 0,
       is_cast = !wrapper || strstr (wrapper, "AmpOptimWrapper") != NULL;
  launch_words_add_by (x->trainer, how, "attn_implementation", how ? how : "flash_attention_2");
  if (is_flash)
    loaded = "bfloat16";
  else if (loaded && strchr (loaded, '.'))
    loaded = strchr (loaded, '.') + 1;
  if (is_flash)
    import_infer (x->job.import,
                  "weights bf16, FlashAttention 2: XTuner takes it where flash-attn is installed");
  launch_words_add_by (x->trainer, text_of (x, "model.llm.torch_dtype"), "torch_dtype",
                       loaded ? loaded : "float32");
  if (uses_deepspeed (x)) {
    launch_words_add_by (x->trainer, false, "bf16", "True");
    import_infer (x->job.import, "dtype bf16: XTuner asks DeepSpeed for it where a GPU has it");
  } else if (is_cast)
    launch_words_add_by (x->trainer, cast, cast && strcmp (cast, "bfloat16") == 0 ? "bf16" : "fp16", "True");
}

/* Several documents in one sequence meet each other, unless attention is told their lengths. */
static void
set_sequence (Xtuner *x)
{
  LsImport *import = x->job.import;
  const char *most = text_of (x, "max_length");
  if (most)
    import_set_model (import, "seq", most, "max_length");
  if (is_on (x, "use_varlen_attn") || is_on (x, "model.use_varlen_attn"))
    import_open (
        import, "lengths",
        "use_varlen_attn: attention is inside documents, whose lengths are not in the file: taken to be "
        "over whole sequences (lengths)");
  else if (most && !is_on (x, "pack_to_max_length"))
    import_unknown (import, "pack_to_max_length is off: sequences are taken to be as long as max_length");
}

/* Norms are clipped where that is said; DeepSpeed clips to 1 by itself (tools/train.py). */
static void
say_rest (Xtuner *x)
{
  const char *clip = text_of (x, "optim_wrapper.clip_grad.max_norm");
  launch_words_add_by (x->trainer, clip, "max_grad_norm", clip ? clip : uses_deepspeed (x) ? "1" : "0");
  bool is_off = option_is_off (&x->job, "model.use_activation_checkpointing");
  launch_words_add_by (x->trainer, is_off || is_on (x, "model.use_activation_checkpointing"),
                       "gradient_checkpointing", is_off ? "False" : "True");
}

/* All linear layers but the head, where none are named (find_all_linear_names). False: there are none. */
static bool
read_adapters (Xtuner *x, LaunchAdapters *ret)
{
  const LaunchOption *modules = launch_words_find (x->job.words, "model.lora.target_modules");
  LsImport *import = x->job.import;
  bool is_4_bit = is_on (x, "model.llm.quantization_config.load_in_4bit");
  if (is_on (x, "model.llm.quantization_config.load_in_8bit"))
    import_unknown (import, "load_in_8bit: frozen weights are taken to be in 16 bits");
  if (!text_of (x, "model.lora.type") && !text_of (x, "model.lora.r"))
    return false;
  if (option_is_there (&x->job, "model.lora.modules_to_save"))
    import_unknown (import, "model.lora.modules_to_save: these are taken to be frozen, too");
  import_unknown (
      import, "%s made fp32 by prepare_model_for_kbit_training: taken to be in 16 bits, half of their memory",
      is_4_bit ? "embedding, norms and head are" : "frozen weights are");
  *ret = (LaunchAdapters) { .option = "model.lora",
                            .rank = option_number (&x->job, "model.lora.r"),
                            .usual_rank = 8,
                            .on = modules ? modules->values : NULL,
                            .dropout = text_of (x, "model.lora.lora_dropout"),
                            .is_nf4 = is_4_bit };
  return true;
}

/* Heads are exchanged (xtuner/parallel/sequence), of sequences that are cut into parts. */
static void
set_context (Xtuner *x, bool has_command)
{
  guint64 size = option_number (&x->job, "sequence_parallel_size");
  if (size <= 1)
    return;
  import_set_strategy (x->job.import, "cp_kind", "ulysses", "sequence_parallel_size");
  if (!uses_deepspeed (x) && has_command)
    import_conflict (x->job.import, "sequence_parallel_size without --deepspeed: XTuner refuses it");
}

/* --- files -------------------------------------------------------------------------------------------- */

/* A file, or one of XTuner's own by its name. False: with a diagnostic. */
static bool
take_deepspeed (Xtuner *x, const ImportFiles *files, const LaunchScript *script, HfJob *hf, LsDiagList *diags)
{
  const char *name = script ? launch_words_text (script->words, "deepspeed") : NULL;
  gsize n = 0;
  g_autofree char *text = NULL;
  if (!name)
    return true;
  say (x, "deepspeed", name);
  for (guint i = 0; i < G_N_ELEMENTS (deepspeeds) && !text; i++)
    if (strcmp (name, deepspeeds[i].name) == 0) {
      text = g_strdup (deepspeeds[i].text);
      n = strlen (text);
    }
  text = text ? text : launch_file_of (files, name, &n);
  if (!text)
    return true;
  hf->deepspeed = launch_words_new ();
  if (deepspeed_add_json (hf->deepspeed, text, n, name, diags))
    return true;
  launch_words_free (hf->deepspeed);
  return false;
}

static bool
read_words (const ImportFiles *files, const LaunchWords *words, const LaunchScript *script, LsImport *import,
            LsDiagList *diags)
{
  g_autoptr (LaunchWords) trainer = launch_words_new ();
  Xtuner x = { { .import = import, .words = words, .table = &options }, trainer };
  HfJob hf = { .job = { .import = import, .words = trainer, .gpus = script ? script->gpus : 0 },
               .has_trainer = true,
               .release = { HF_RELEASE_4, "transformers 4.56 (requirements/runtime.txt)", false } };
  if (!hf_read_model (files, import, diags) || !take_deepspeed (&x, files, script, &hf, diags))
    return false;
  option_translate (&x.job, trainer);
  say_precision (&x);
  say_rest (&x);
  set_sequence (&x);
  set_context (&x, script != NULL);
  if (!script)
    import_unknown (import, "whether DeepSpeed shards: --deepspeed says so to xtuner train; taken to be DDP");
  if (text_of (&x, "model.max_position_embeddings"))
    import_infer (import, "model.max_position_embeddings: positions are scaled, which takes no time");
  LaunchAdapters adapters;
  hf.adapters = read_adapters (&x, &adapters) ? &adapters : NULL;
  hf_read (&hf);
  return true;
}

/* Sections that mmengine builds from; other names are of the file alone. */
static void
drop_variables (cJSON *tree)
{
  static const char *const sections[]
      = { "model",      "optim_wrapper",      "train_dataloader", "framework",
          "max_length", "pack_to_max_length", "use_varlen_attn",  "sequence_parallel_size",
          NULL };
  for (cJSON *item = tree->child, *next; item; item = next) {
    next = item->next;
    if (!g_strv_contains (sections, item->string))
      cJSON_Delete (cJSON_DetachItemViaPointer (tree, item));
  }
  cJSON *dataset = yaml_config_find (tree, "train_dataloader.dataset");
  if (dataset)
    cJSON_Delete (cJSON_DetachItemViaPointer (yaml_config_find (tree, "train_dataloader"), dataset));
}

static bool
check_task (const cJSON *tree, const LsImport *import, LsDiagList *diags)
{
  const cJSON *type = yaml_config_find (tree, "model.type"),
              *framework = yaml_config_find (tree, "framework");
  const char *name = cJSON_IsString (type) ? type->valuestring : "a model without a type";
  if (cJSON_IsString (framework) && g_ascii_strcasecmp (framework->valuestring, "huggingface") == 0)
    return import_refuse_task (import->path, diags, "framework huggingface, a Trainer in Python");
  return strcmp (name, "SupervisedFinetune") == 0
      || import_refuse_task (import->path, diags, "model.type %s", name);
}

bool
xtuner_read_text (const ImportFiles *files, const char *text, gsize n, const char *name,
                  const LaunchScript *script, LsImport *import, LsDiagList *diags)
{
  import->program = "XTuner";
  cJSON *tree = python_names_of (files, text, n, name, import, diags);
  if (tree)
    python_names_forget_calls (tree);
  const LaunchOption *changes = script ? launch_words_find (script->words, "cfg-options") : NULL;
  for (guint i = 0; tree && changes && i < changes->values->len; i++)
    yaml_config_set_pair (tree, changes->values->pdata[i]);
  bool ok = tree && check_task (tree, import, diags);
  g_autoptr (LaunchWords) words = launch_words_new ();
  if (ok) {
    drop_variables (tree);
    launch_words_add_tree (words, tree);
  }
  cJSON_Delete (tree);
  return ok && read_words (files, words, script, import, diags);
}

bool
xtuner_is_config (const char *text)
{
  return launch_has_line (text, "from xtuner.") && !strstr (text, "from xtuner.v1")
      && launch_has_line (text, "model = dict(")
      && (strstr (text, "optim_wrapper") || strstr (text, "training_args"));
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  const ImportFile *file = &files->files[0];
  return xtuner_read_text (files, file->text, file->n, file->path, NULL, import, diags);
}

static bool
is_its (const ImportFile *file)
{
  return xtuner_is_config (file->text);
}

const ImportReader import_xtuner = { "a configuration or a script of XTuner", is_its, read };
