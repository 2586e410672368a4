/* A configuration of DeepSpeed, in JSON, with a model beside it: a file of a model behind it, ours or the
 * config.json of Hugging Face. */
#include <lockstep/error.h>
#include <math.h>
#include <string.h>

#include "data/jobs/job_files.h"
#include "data/launch/deepspeed_rules.h"
#include "data/launch/hf_rules.h"
#include "data/launch/program/program_map.h"
#include "data/launch/log_steps.h"

/* What of a model's file is no length of a sequence, which it only bounds. */
static bool
read_model (const ImportFile *file, LsImport *import, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (file->text, file->n, file->path, diags);
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  LsModel m;
  if (!doc || !ls_model_read (doc, &m, notes, diags))
    return false;
  import_model (import, &m, file->path);
  for (guint i = 0; i < notes->len; i++)
    import_infer (import, "%s: %s", file->path, (const char *) notes->pdata[i]);
  ls_model_clear (&m);
  return true;
}

static bool has_key (const char *text, const char *key);

/* What a file says of activation_checkpointing configures deepspeed.checkpointing, which a model's code calls
 * or does not. Models of Hugging Face do not: theirs is torch.utils.checkpoint, by gradient_checkpointing
 * (transformers 4.31 to 5, modeling_utils.py, gradient_checkpointing_enable). */
static void
keep_activations (LsImport *import)
{
  static const char *const keys[] = { "partition_activations", "offload_activations" };
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++)
    if (import_has_strategy (import, keys[i]))
      import_set_strategy (import, keys[i], "0", "activation_checkpointing.*");
  import_infer (import,
                "recompute none: models of Hugging Face do not ask activation_checkpointing, but "
                "gradient_checkpointing, which is not said here; where it is on, --recompute full");
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  const ImportFile *file = &files->files[0];
  g_autoptr (LaunchWords) words = launch_words_new ();
  import->program = "DeepSpeed";
  if (!deepspeed_add_json (words, file->text, file->n, file->path, diags))
    return false;
  if (files->n > 1 && !read_model (&files->files[1], import, diags))
    return false;
  if (files->n > 1)
    import_use_file (&files->files[1]);
  LaunchJob job = { .import = import, .words = words };
  program_run_map ("deepspeed", "buckets", &job, NULL, NULL);
  if (files->n == 1 && !import->model_is_given)
    import_unknown (import,
                    "the model: a configuration of DeepSpeed names none; its file may stand behind it");
  if (!import_has_model (import, "seq"))
    import_open (import, "seq", "how long a sequence is: nothing here says");
  bool asks_in_vain = files->n > 1 && has_key (files->files[1].text, "\"model_type\"")
      && has_key (file->text, "\"activation_checkpointing\"");
  if (asks_in_vain)
    import_set_strategy (import, "recompute", "none", "activation_checkpointing.*");
  deepspeed_read (&job);
  if (asks_in_vain)
    keep_activations (import);
  return true;
}

/* Keys that nearly every configuration has one of. */
/* Behind a string or a comment that begins at p; p: none does. */
static const char *
behind_text (const char *p)
{
  if (*p == '#' || (p[0] == '/' && p[1] == '/'))
    return p + strcspn (p, "\n");
  if (p[0] == '/' && p[1] == '*') {
    const char *end = strstr (p, "*/");
    return end ? end + 2 : p + strlen (p);
  }
  if (*p != '"')
    return p;
  for (p++; *p && *p != '"'; p++)
    p += p[0] == '\\' && p[1];
  return p + (*p == '"');
}

/* Whether an object has a key itself, and not another object in it. The text may be a template. */
static bool
has_key (const char *text, const char *key)
{
  gsize n = strlen (key);
  int depth = 0;
  for (const char *p = text; *p;) {
    if (depth == 1 && strncmp (p, key, n) == 0)
      return true;
    const char *next = behind_text (p);
    depth += next == p ? (*p == '{' || *p == '[') - (*p == '}' || *p == ']') : 0;
    p = next == p ? p + 1 : next;
  }
  return false;
}

static bool
is_its (const ImportFile *file)
{
  static const char *const marks[]
      = { "\"zero_optimization\"", "\"train_micro_batch_size_per_gpu\"", "\"train_batch_size\"" };
  const char *p = file->text + strspn (file->text, " \t\r\n");
  for (guint i = 0; i < G_N_ELEMENTS (marks) && (*p == '{' || *p == '/' || *p == '#'); i++)
    if (has_key (file->text, marks[i]) && !g_str_has_prefix (p, "#!"))
      return true;
  return false;
}

const ImportReader import_deepspeed = { "a configuration of DeepSpeed", is_its, read };

/* A log of DeepSpeed: the configuration that its engine prints, and lines of steps, with a model's
 * file behind it. */

/* [INFO] [config.py:1001:print] DeepSpeedEngine configuration:
 *     [INFO] [config.py:1005:print]   world_size ................... 8
 *     [INFO] [config.py:991:print_user_config]   json = {
 *         "train_batch_size": 32, ...
 *     }
 *     [INFO] [timer.py:264:stop] epoch=0/micro_step=10/global_step=10, RunningAvgSamplesPerSec=12.1,
 *         CurrSamplesPerSec=12.3, MemAllocated=2.5GB, MaxMemAllocated=12.2GB
 *     steps: 10 loss: 5.0 iter time (s): 1.234 samples/sec: 25.9
 *
 * Formats are those of deepspeed/runtime/config.py, utils/timer.py and runtime/pipe/engine.py, 0.3 to 0.18.
 * Of older lines, "0/10, SamplesPerSec=12.1", the rate is the mean since the start. */

/* --- the configuration ------------------------------------------------------------------------------ */

static const char *
find_json (const char *text)
{
  for (const char *p = strstr (text, "json = {"); p; p = strstr (p + 1, "json = {")) {
    const char *line = p;
    while (line > text && line[-1] != '\n')
      line--;
    if (g_strstr_len (line, p - line, "[config.py:") || g_strstr_len (line, p - line, "print_user_config"))
      return strchr (p, '{');
  }
  return NULL;
}

/* What the engine has made of it, "  world_size ................... 8"; 0: no line says. */
static guint64
printed_number (const char *text, const char *name)
{
  g_autofree char *head = g_strconcat ("  ", name, " ...", NULL);
  const char *p = strstr (text, head);
  guint64 value = 0;
  if (!p)
    return 0;
  p += strlen (head);
  p += strspn (p, ". ");
  g_autofree char *word = g_strndup (p, strspn (p, "0123456789"));
  return g_ascii_string_to_unsigned (word, 10, 0, G_MAXUINT32, &value, NULL) ? value : 0;
}

/* "auto" of the file is a number when it is printed. */
static void
add_printed (const char *text, LaunchWords *words)
{
  static const char *const names[]
      = { "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps" };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    guint64 value = printed_number (text, names[i]);
    g_autofree char *number = g_strdup_printf ("%" G_GUINT64_FORMAT, value);
    if (value > 0)
      launch_words_add_value (words, names[i], number);
  }
}

/* --- the whole -------------------------------------------------------------------------------------- */

/* world_size counts the copies of the model: all GPUs, where nothing else divides it. */
static void
set_gpus (LaunchJob *job, const char *text)
{
  job->gpus = printed_number (text, "world_size");
  if (job->gpus > 0)
    import_infer (job->import, "gpus %" G_GUINT64_FORMAT ": world_size, the copies of the model", job->gpus);
}

static bool
read_log (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  const ImportFile *file = &files->files[0];
  g_autoptr (LaunchWords) words = launch_words_new ();
  const char *json = find_json (file->text), *end = json ? log_object_end (json) : NULL;
  import->program = "DeepSpeed";
  if (!end) {
    ls_diag_add (diags, LS_ERROR_INPUT, file->path, 0, 0, NULL, NULL, NULL,
                 "this log ends within the configuration that DeepSpeed prints");
    return false;
  }
  if (!deepspeed_add_json (words, json, (gsize) (end - json), file->path, diags)
      || !hf_read_model (files, import, diags))
    return false;
  add_printed (file->text, words);
  if (!import_has_model (import, "layers"))
    import_unknown (import, "the model: a log of DeepSpeed names none; its file may stand behind it");
  if (!import_has_model (import, "seq"))
    import_open (import, "seq", "how long a sequence is: nothing here says");
  LaunchJob job = { .import = import, .words = words };
  set_gpus (&job, file->text);
  deepspeed_read (&job);
  import_measure_log (file->text, import);
  return true;
}

static bool
is_its_log (const ImportFile *file)
{
  return find_json (file->text) != NULL;
}

const ImportReader import_deepspeed_log = { "a log of DeepSpeed", is_its_log, read_log };
