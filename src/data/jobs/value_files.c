#include "data/jobs/value_files.h"

#include <string.h>

#include "data/jobs/job_files.h"
#include "data/jobs/read_placement.h"
#include "data/jobs/strategy_values.h"
#include "data/text/json_doc.h"

static void
read_kernels (const char *text, LsDiagList *diags)
{
  ls_recipes_unref (ls_recipes_load (text, diags));
}

static void
read_optimizer (const char *text, LsDiagList *diags)
{
  ls_optimizer_kind_unref (ls_optimizer_load (text, diags));
}

static void
read_placement (const char *text, LsDiagList *diags)
{
  ls_allocation_unref (ls_placement_load (text, diags));
}

static void
read_lengths (const char *text, LsDiagList *diags)
{
  ls_lengths_unref (strategy_load_lengths (text, diags));
}

static const struct {
  const char *key, *prefix; /* what stands before the name of a file */
  void (*read) (const char *text, LsDiagList *diags);
} kinds[] = { { "kernels", "", read_kernels },
              { "optimizer", "", read_optimizer },
              { "placement", "", read_placement },
              { "lengths", LS_LENGTHS_FILE, read_lengths } };

/* A mistake that has a place: one of a value that is no file, or of a name that no file has, has none. */
static bool
is_in_file (const LsDiagList *diags)
{
  return ls_diag_list_n_kept (diags) > 0 && ls_diag_list_at (diags, 0).file;
}

bool
ls_value_file_check (const char *key, const char *text, LsDiagList *diags)
{
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++) {
    g_autoptr (LsDiagList) found = ls_diag_list_new ();
    gsize n = strlen (kinds[i].prefix);
    if (strcmp (kinds[i].key, key) != 0 || strncmp (text, kinds[i].prefix, n) != 0 || ls_json_is_given (text))
      continue;
    kinds[i].read (text + n, found);
    if (!is_in_file (found))
      continue;
    kinds[i].read (text + n, diags);
    return false;
  }
  return true;
}
