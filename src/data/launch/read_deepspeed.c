/* A configuration of DeepSpeed, in JSON, with a model beside it: a file of a model behind it, ours or the
 * config.json of Hugging Face. */
#include <string.h>

#include <lockstep/error.h>

#include "data/jobs/read_model.h"
#include "data/launch/deepspeed_rules.h"

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
  if (files->n == 1)
    import_unknown (import,
                    "the model: a configuration of DeepSpeed names none; its file may stand behind it");
  if (!import_has_model (import, "seq"))
    import_open (import, "seq", "how long a sequence is: nothing here says");
  LaunchJob job = { .import = import, .words = words };
  deepspeed_read (&job);
  return true;
}

/* Keys that nearly every configuration has one of. */
static bool
is_its (const ImportFile *file)
{
  static const char *const marks[]
      = { "\"zero_optimization\"", "\"train_micro_batch_size_per_gpu\"", "\"train_batch_size\"" };
  const char *p = file->text + strspn (file->text, " \t\r\n");
  for (guint i = 0; i < G_N_ELEMENTS (marks) && (*p == '{' || *p == '/' || *p == '#'); i++)
    if (strstr (file->text, marks[i]) && !g_str_has_prefix (p, "#!"))
      return true;
  return false;
}

const ImportReader import_deepspeed = { "a configuration of DeepSpeed", is_its, read };
