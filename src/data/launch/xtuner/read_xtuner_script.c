/* A script that starts XTuner: `NPROC_PER_NODE=8 xtuner train CONFIG --deepspeed deepspeed_zero2`, whose
 * configuration, a path or a name of xtuner/configs, stands beside the script or behind it
 * (xtuner/entry_point.py of InternLM/xtuner@b934f462). */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/xtuner/xtuner_rules.h"

static bool
is_known (const char *name)
{
  return strcmp (name, "deepspeed") == 0 || strcmp (name, "cfg-options") == 0;
}

static bool
starts (char *const *words, guint n)
{
  for (guint i = 1; i < n; i++)
    if (strcmp (words[i - 1], "xtuner") == 0 && strcmp (words[i], "train") == 0)
      return true;
  return false;
}

/* One process, unless a variable says, or something else starts it. */
static void
set_gpus (LaunchScript *script, LsImport *import)
{
  if (script->gpus > 0 || !script->front || script->front->len > 0)
    return;
  script->gpus = 1;
  import_infer (import, "1 GPU: NPROC_PER_NODE is not set");
}

/* No value of --cfg-options. */
static bool
is_no_pair (const char *word)
{
  return !strchr (word, '=');
}

static bool
read_job (const ImportFiles *files, LaunchScript *script, LsImport *import, LsDiagList *diags)
{
  const char *said = launch_words_alone (script->words, is_no_pair);
  g_autofree char *name = said ? g_strconcat (said, g_str_has_suffix (said, ".py") ? "" : ".py", NULL) : NULL;
  gsize n = 0;
  g_autofree char *text = name ? launch_file_of (files, name, &n) : NULL;
  set_gpus (script, import);
  return text ? xtuner_read_text (files, text, n, name, script, import, diags)
              : launch_refuse_config (name, import, diags);
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  static const LaunchKind kind
      = { .program = "XTuner", .is_known = is_known, .n_needed = 1, .starts = starts };
  LaunchScript script;
  bool ok
      = launch_script_read (files, &kind, &script, import, diags) && read_job (files, &script, import, diags);
  launch_script_clear (&script);
  return ok;
}

static bool
is_its (const ImportFile *file)
{
  return strstr (file->text, "xtuner train") != NULL;
}

const ImportReader import_xtuner_script = { NULL, is_its, read };
