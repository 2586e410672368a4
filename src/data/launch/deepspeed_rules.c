#include "data/launch/deepspeed_rules.h"

#include <string.h>

#include "data/launch/program/program_map.h"
#include "data/shell/shell.h"
#include "data/text/json_scan.h"
#include "strategy/strategy.h"

/* --- the file -------------------------------------------------------------------------------------- */

static void
open_values (LaunchWords *words)
{
  for (guint i = 0; i < words->options->len; i++) {
    const LaunchOption *o = words->options->pdata[i];
    for (guint k = 0; k < o->values->len; k++) {
      char *value = o->values->pdata[k];
      bool is_hole = strcmp (value, "auto") == 0 || *value == '$';
      if (!is_hole)
        continue;
      o->values->pdata[k] = g_strdup_printf ("%c%s%c", LS_SHELL_HOLE, value, LS_SHELL_HOLE_END);
      g_free (value);
    }
  }
}

bool
deepspeed_add_json (LaunchWords *words, const char *text, gsize n, const char *path, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = relaxed_json_parse (text, n, path, diags);
  if (!doc)
    return false;
  launch_words_add_tree (words, ls_json_doc_root (doc));
  open_values (words);
  return true;
}

/* --- what they mean together ------------------------------------------------------------------------ */

void
deepspeed_read_engine (LaunchJob *job)
{
  const OptionTable *table = job->import->table;
  program_run_map ("deepspeed", "engine", job, NULL, NULL);
  job->import->table = table;
}

void
deepspeed_pipeline_shards (LaunchJob *job)
{
  LsImport *import = job->import;
  const LsStrategy *s = &import->strategy;
  bool is_whole = import_has_strategy (import, "zero") && s->zero_stage == 0,
       is_bf16 = import_has_strategy (import, "dtype") && s->dtype == LS_DTYPE_BF16;
  if (!is_whole || !is_bf16 || import_is_given (import, "zero"))
    return;
  import_set_strategy (import, "zero", "1", "--");
  import_set_strategy (import, "grad_dtype", "fp32", "--");
  import_infer (import,
                "zero 1, gradients in fp32: with weights in bf16 and stage 0 DeepSpeed's pipeline has "
                "an optimizer that shards its state (runtime/bf16_optimizer.py)");
}

void
deepspeed_read (LaunchJob *job)
{
  program_run_map ("deepspeed", NULL, job, NULL, NULL);
}
