/* A test of Megatron-LM: its arguments in YAML, and what it measured.
 *
 *     MODEL_ARGS:
 *       --num-layers: 32
 *       --use-distributed-optimizer: true
 *
 * A second file of it has golden values, JSON: { "iteration-time": { "values": { "5": 3.80, ... } }, ... },
 * seconds by the number of the iteration, and bytes by that of "mem-max-allocated-bytes"; "nan" where nothing
 * was logged. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/megatron/megatron_rules.h"
#include "base/order.h"
#include "data/text/yaml.h"

#define ARGS       "MODEL_ARGS"
#define MAX_VALUES 1000000

/* --- arguments ------------------------------------------------------------------------------------- */

/* "MODE: inference", "MODE: rl"; a test without it trains. */
static bool
check_mode (const cJSON *tree, const char *path, LsDiagList *diags)
{
  const cJSON *mode = cJSON_GetObjectItemCaseSensitive (tree, "MODE");
  bool is_other = cJSON_IsString (mode) && strcmp (mode->valuestring, "pretraining") != 0;
  if (is_other)
    ls_diag_add (diags, LS_ERROR_UNSUPPORTED, path, 0, 0, NULL, NULL, NULL,
                 "MODE: %s: a job of Lockstep trains a decoder on the next token", mode->valuestring);
  return !is_other;
}

static bool
read_args (const ImportFile *file, LaunchWords *words, LsDiagList *diags)
{
  cJSON *tree = ls_yaml_parse (file->text, file->n, file->path, NULL, diags);
  const cJSON *args = tree ? cJSON_GetObjectItemCaseSensitive (tree, ARGS) : NULL;
  bool is_read = args && check_mode (tree, file->path, diags);
  if (is_read)
    launch_words_add_tree (words, args);
  else if (tree && !args)
    ls_diag_add (diags, LS_ERROR_INPUT, file->path, 0, 0, NULL, NULL, NULL, "it has no " ARGS);
  cJSON_Delete (tree);
  return is_read;
}

/* --- golden values --------------------------------------------------------------------------------- */

/* The numbers of a metric, in order; text "nan" is none. */
static GArray *
values_of (const cJSON *root, const char *metric)
{
  GArray *values = g_array_new (FALSE, FALSE, sizeof (double));
  const cJSON *all
      = cJSON_GetObjectItemCaseSensitive (cJSON_GetObjectItemCaseSensitive (root, metric), "values"),
      *one;
  cJSON_ArrayForEach (one, all)
  {
    double value
        = cJSON_IsString (one) ? g_ascii_strtod (one->valuestring, NULL) : cJSON_GetNumberValue (one);
    if (isfinite (value) && value > 0 && values->len < MAX_VALUES)
      g_array_append_val (values, value);
  }
  return values;
}

/* The median of the later half. */
static void
measure (const cJSON *root, LsImport *import)
{
  LsImportMeasured *m = &import->measured;
  g_autoptr (GArray) times = values_of (root, "iteration-time"),
                     bytes = values_of (root, "mem-max-allocated-bytes");
  m->n_lines = times->len;
  if (times->len > 1)
    g_array_remove_range (times, 0, times->len / 2);
  m->n_steady = times->len;
  g_array_sort (times, ls_compare_doubles);
  if (times->len > 0) {
    m->step_s = g_array_index (times, double, times->len / 2);
    import_infer (import, "measured.iteration_s: the median of the last %u of %u golden values", m->n_steady,
                  m->n_lines);
  }
  for (guint i = 0; i < bytes->len; i++)
    m->allocated_bytes = MAX (m->allocated_bytes, g_array_index (bytes, double, i));
}

static bool
read_golden (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  for (guint i = 1; i < files->n; i++) {
    cJSON *root = cJSON_ParseWithLength (files->files[i].text, files->files[i].n);
    bool is_golden = root && cJSON_HasObjectItem (root, "iteration-time");
    if (is_golden)
      measure (root, import);
    else
      ls_diag_add (diags, LS_ERROR_INPUT, files->files[i].path, 0, 0, NULL, NULL, NULL,
                   "these are no golden values of such a test");
    cJSON_Delete (root);
    if (!is_golden)
      return false;
  }
  return true;
}

/* --- the whole ------------------------------------------------------------------------------------- */

static bool
read (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  g_autoptr (LaunchWords) words = launch_words_new ();
  import->program = "Megatron-LM";
  if (!read_args (&files->files[0], words, diags))
    return false;
  if (!megatron_trains_decoder (words, NULL, files->files[0].path, diags))
    return false;
  LaunchJob job = { .import = import, .words = words };
  megatron_read (&job);
  return read_golden (files, import, diags);
}

/* A mapping of options below that key. */
static bool
is_its (const ImportFile *file)
{
  const char *at = g_str_has_prefix (file->text, ARGS ":") ? file->text : strstr (file->text, "\n" ARGS ":");
  return at && strstr (at, "\n  --");
}

const ImportReader import_megatron_test = { "a test of Megatron-LM", is_its, read };
