/* A script that starts InternEvo: `torchrun --nproc_per_node 8 train.py --config configs/7B_sft.py`, or by
 * srun, whose configuration stands beside the script or behind it (doc/en/usage.md of
 * InternLM/InternEvo@c628a8c8). */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/internevo/internevo_rules.h"
#include "data/launch/launch_script.h"

static bool
is_known (const char *name)
{
  return strcmp (name, "config") == 0;
}

/* A diagnostic; false. */
static bool
refuse (const char *config, const LsImport *import, LsDiagList *diags)
{
  ls_diag_add (diags, LS_ERROR_UNSUPPORTED, import->path, 0, 0, NULL, NULL, NULL,
               "--config %s: it is no configuration of InternEvo, and what else is started so is not known",
               config);
  return false;
}

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  static const LaunchKind kind = { .program = "InternEvo", .is_known = is_known, .n_needed = 1 };
  LaunchScript script;
  bool ok = launch_script_read (files, &kind, &script, import, diags);
  const char *name = ok ? launch_words_text (script.words, "config") : NULL;
  gsize n = 0;
  g_autofree char *text = name ? launch_file_of (files, name, &n) : NULL;
  if (ok && !text)
    ok = launch_refuse_config (name, import, diags);
  else if (ok && !internevo_is_config (text))
    ok = refuse (name, import, diags);
  else if (ok)
    ok = internevo_read_text (files, text, n, name, script.gpus, import, diags);
  launch_script_clear (&script);
  return ok;
}

/* "train.py", and "--config X.py" behind it. */
static bool
is_its (const ImportFile *file)
{
  const char *script = strstr (file->text, "train.py"), *at = script ? strstr (script, "--config") : NULL;
  if (!at || g_ascii_isalpha (at[strlen ("--config")]))
    return false;
  at += strlen ("--config");
  at += strspn (at, " =\"'\\\n");
  gsize n = strcspn (at, " \t\n\"'");
  return n > 3 && strncmp (at + n - 3, ".py", 3) == 0;
}

const ImportReader import_internevo_script = { NULL, is_its, read };
