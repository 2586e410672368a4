/* data/jobs/without_launch.c — launch/ where it is left out: what other programs' files say is not read, and
 * nothing is written for them. */
#include <lockstep/error.h>

#include "data/jobs/emit.h"
#include "data/jobs/imported.h"

#define WHY                                                                                                  \
  "this Lockstep was built without readers and writers of other programs' files; give the job by --model "   \
  "and options, or build with -Dlaunch=enabled"

const LsField ls_program_fields[] = { { NULL } };

bool
ls_import_load (const char *const *paths, const LsModel *model, LsImported *ret_import, LsDiagList *diags)
{
  return ls_file_diag (diags, LS_ERROR_UNSUPPORTED, paths[0], NULL, WHY);
}

bool
ls_import_read (const char *text, gsize n, const char *name, const LsModel *model, LsImported *ret_import,
                LsDiagList *diags)
{
  return ls_file_diag (diags, LS_ERROR_UNSUPPORTED, name, NULL, WHY);
}

char *
ls_import_of_run (const LsImported *import, bool (*is_given) (gconstpointer of, const char *option),
                  gconstpointer of)
{
  return NULL;
}

GPtrArray *
ls_launch_changes (const LsImported *import, const char *now, const char *wanted)
{
  return g_ptr_array_new ();
}

char *
ls_program_inspect (const LsJsonDoc *doc, LsDiagList *diags)
{
  ls_file_diag (diags, LS_ERROR_UNSUPPORTED, ls_json_doc_name (doc), NULL, WHY);
  return NULL;
}

/* --- writers ------------------------------------------------------------------------------------------- */

const char *const *
ls_emit_targets (void)
{
  static const char *const none[] = { NULL };
  return none;
}

/* A file of software may name one. */
gboolean
ls_emit_check_target (const char *target, GError **error)
{
  return TRUE;
}

gboolean
ls_emit_check (const LsEmitJob *job, const char *target, GError **error)
{
  return ls_fail (error, LS_ERROR_UNSUPPORTED, "%s", WHY);
}

char *
ls_emit (const LsEmitJob *job, const char *target, char **ret_notes, GError **error)
{
  ls_emit_check (job, target, error);
  return NULL;
}
