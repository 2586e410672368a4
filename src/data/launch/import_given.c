#include "data/launch/import_given.h"

#include <string.h>

#include <lockstep/error.h>

#include "base/suggest.h"
#include "data/jobs/read_model.h"
#include "data/jobs/read_strategy.h"

static void
given_clear (gpointer given)
{
  g_free (((ImportGiven *) given)->name);
  g_free (((ImportGiven *) given)->value);
}

static const LsField *
find (const LsField *fields, const char *key)
{
  const LsField *f = ls_field_find (fields, key);
  return f && !f->file_only ? f : NULL;
}

/* Of a key that both have, that which launch files say: the length of a sequence is the model's. */
static void
set_key (LsImport *import, const LsField *model, const LsField *strategy, const char *value, bool is_quiet,
         LsDiagList *diags)
{
  bool is_model = model && (model->required || !strategy);
  const LsField *f = is_model ? model : strategy;
  g_autoptr (LsDiagList) why = ls_diag_list_new ();
  void *target = is_model ? (void *) &import->model : (void *) &import->strategy;
  if (!ls_field_set_text (is_model ? ls_model_fields : ls_strategy_fields, target, f->key, value, why)) {
    if (!is_quiet)
      ls_diag_add (diags, LS_ERROR_USAGE, import->path, 0, 0, NULL, NULL, NULL,
                   "%s=%s: that is no value for it", f->key, value);
    return;
  }
  g_hash_table_add (is_model ? import->model_said : import->strategy_said, (gpointer) f->key);
  g_hash_table_add (import->given, (gpointer) f->key);
  if (!is_quiet)
    import_infer (import, "%s %s: as given", f->key, value);
}

GArray *
import_take_given (LsImport *import, const GPtrArray *changes, LsDiagList *diags)
{
  GArray *variables = g_array_new (FALSE, TRUE, sizeof (ImportGiven));
  g_array_set_clear_func (variables, given_clear);
  for (guint i = 0; i < changes->len; i++) {
    const char *change = changes->pdata[i];
    bool is_quiet = *change == ':';
    g_auto (GStrv) pair = g_strsplit (change + is_quiet, "=", 2);
    const LsField *model = find (ls_model_fields, pair[0]), *strategy = find (ls_strategy_fields, pair[0]);
    if (model || strategy) {
      set_key (import, model, strategy, pair[1], is_quiet, diags);
      continue;
    }
    const ImportGiven variable = { g_strdup (pair[0]), g_strdup (pair[1]), false, false };
    g_array_append_val (variables, variable);
  }
  return variables;
}

static void
refuse (const char *path, const ImportGiven *g, LsDiagList *diags)
{
  const char *near = ls_field_suggest (ls_model_fields, g->name);
  near = near ? near : ls_field_suggest (ls_strategy_fields, g->name);
  g_autofree char *hint = near && !g->is_lost ? g_strdup_printf ("did you mean %s?", near) : NULL;
  ls_diag_add (diags, LS_ERROR_USAGE, path, 0, 0, NULL, NULL, hint,
               g->is_lost ? "%s=%s: it sets %s itself, whatever is given"
                          : "%s=%s: there is no variable that it asks for, and no key of a model or of a "
                            "strategy, of the name %s",
               g->name, g->value, g->name);
}

bool
import_check_given (const ImportFiles *files, LsDiagList *diags)
{
  bool ok = true;
  for (guint i = 0; i < files->n_given; i++)
    if (!files->given[i].is_used) {
      refuse (files->files[0].path, &files->given[i], diags);
      ok = false;
    }
  return ok;
}
