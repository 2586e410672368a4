/* A configuration of DeepSpeed, in JSON, with a model next to it: a file of a model behind it, ours or the
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
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  const ImportFile *file = &files->files[0], *model = files->n > 1 ? &files->files[1] : NULL;
  g_autoptr (LaunchWords) words = launch_words_new ();
  import->program = "DeepSpeed";
  if (!deepspeed_add_json (words, file->text, file->n, file->path, diags)
      || (model && !read_model (model, import, diags)))
    return false;
  if (model)
    import_use_file (model);
  bool asks_in_vain = model && has_key (model->text, "\"model_type\"")
      && has_key (file->text, "\"activation_checkpointing\"");
  const ProgramTold told[] = { { "alone", "configuration" },
                               { "model", model ? model->path : NULL },
                               { "in_vain", asks_in_vain ? "1" : NULL },
                               { NULL } };
  LaunchJob job = { .import = import, .words = words };
  return program_run_with ("deepspeed", NULL, &(ProgramWith) { .told = told }, &job, NULL, diags);
}

/* Keys that nearly every configuration has one of. */
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
  const guint64 world = printed_number (file->text, "world_size");
  g_autofree char *gpus = world > 0 ? g_strdup_printf ("%" G_GUINT64_FORMAT, world) : NULL;
  const ProgramTold told[] = { { "alone", "log" }, { "world_size", gpus }, { NULL } };
  LaunchJob job = { .import = import, .words = words };
  program_run_with ("deepspeed", NULL, &(ProgramWith) { .told = told }, &job, NULL, diags);
  import_measure_log (file->text, import);
  return true;
}

static bool
is_its_log (const ImportFile *file)
{
  return find_json (file->text) != NULL;
}

const ImportReader import_deepspeed_log = { "a log of DeepSpeed", is_its_log, read_log };
