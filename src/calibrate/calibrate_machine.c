#include <string.h>

#include <lockstep/error.h>

#include "calibrate/calibrate_run.h"
#include "data/datadir.h"
#include "data/machines/machines.h"

/* "h100:reserved=2GiB" is an h100. */
static bool
is_same_gpu (const char *a, const char *b)
{
  size_t n = strcspn (a, ":");
  return n == strcspn (b, ":") && strncmp (a, b, n) == 0;
}

static gboolean
check (const LsCalibrateRun *run, GError **error)
{
  const char *name = run->machine_name;
  if (!name)
    g_set_error_literal (error, LS_ERROR, LS_ERROR_USAGE,
                         "expected --cluster: what is measured of links goes into a copy of its file");
  else if (g_str_has_suffix (name, ".xml"))
    g_set_error (error, LS_ERROR, LS_ERROR_UNSUPPORTED,
                 "%s: what is measured goes into a cluster file in JSON, not into XML", name);
  else if (!is_same_gpu (run->machine->spec.gpu.name, run->gpu.name))
    g_set_error (
        error, LS_ERROR, LS_ERROR_CONFLICT,
        "%s has GPUs %s; the files were measured on %s\nnote: one with these is --cluster '%s:gpu=\"%s\"'",
        name, run->machine->spec.gpu.name, run->gpu.name, name, run->gpu.name);
  else
    return TRUE;
  return FALSE;
}

/* As the file at `from` names it: beside it by its name, elsewhere by its whole path. */
static char *
path_from (const char *from, const char *path)
{
  g_autofree char *a = g_canonicalize_filename (from, NULL), *b = g_canonicalize_filename (path, NULL);
  g_autofree char *a_folder = g_path_get_dirname (a), *b_folder = g_path_get_dirname (b),
                  *file = g_path_get_basename (path);
  return strcmp (a_folder, b_folder) == 0 ? g_strconcat ("./", file, NULL) : g_steal_pointer (&b);
}

/* The GPU's NCCL file stays when its calibration does not. */
static void
take_calibration (const LsCalibrateRun *run, GPtrArray *changes, const char *path, const char *calibration)
{
  const LsGpu *gpu = &run->machine->spec.gpu;
  g_autofree char *named = path_from (path, calibration), *nccl = ls_hardware_nccl_name (gpu);
  g_ptr_array_insert (changes, 0, g_strdup_printf ("gpu.calibration=%s", named));
  if (!gpu->nccl && run->machine->spec.interior != LS_INTERIOR_TORUS)
    g_ptr_array_insert (changes, 0, g_strdup_printf ("gpu.nccl=%s", nccl));
}

static char *
source_of (const LsCalibrateRun *run)
{
  g_autoptr (GString) text = g_string_new (NULL);
  g_string_append_printf (text, "%s, with what lockstep calibrate found in", run->machine_name);
  for (guint i = 0; i < run->profiles->len; i++) {
    const LsProfile *p = g_ptr_array_index (run->profiles, i);
    g_autofree char *file = g_path_get_basename (p->path);
    g_string_append_printf (text, "%s %s (sha256 %s)", i > 0 ? "," : "", file, p->sha256);
  }
  g_string_append (text, ":");
  for (guint i = 0; i < run->changes->len; i++)
    if (!strstr (g_ptr_array_index (run->changes, i), ".source="))
      g_string_append_printf (text, " %s", (const char *) g_ptr_array_index (run->changes, i));
  return g_strconcat (text->str, run->changes->len > 0 ? "" : " nothing of its links", NULL);
}

char *
ls_calibrate_run_machine_json (const LsCalibrateRun *run, const char *name, const char *path,
                               const char *calibration, GError **error)
{
  if (!check (run, error))
    return NULL;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) changes = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < run->changes->len; i++)
    g_ptr_array_add (changes, g_strdup (g_ptr_array_index (run->changes, i)));
  if (calibration)
    take_calibration (run, changes, path, calibration);
  LsJsonDoc *base = ls_data_load (LS_DATA_CLUSTERS, run->machine_name, diags);
  base = base && calibration ? ls_cluster_with_own_gpu (base, diags) : base;
  g_autofree char *source = source_of (run);
  char *text = base ? ls_cluster_changed_to_json (base, changes, name, source, diags) : NULL;
  if (!text)
    ls_diag_list_to_error (diags, error);
  return text;
}
