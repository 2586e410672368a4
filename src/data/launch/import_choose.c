/* Which program's files these are. */
#include <string.h>

#include "data/datadir.h"
#include "data/launch/import_reader.h"
#include "data/launch/launch_script.h"
#include "data/launch/program/program_map.h"
#include "data/text/read_file.h"

/* --- the registry ----------------------------------------------------------------------------------- */

/* A map in strategies/programs/, by its name, that is asked whose file it is. */
typedef struct {
  const char *map;
  bool unwraps; /* files that wrap a script, which others then read */
  bool is_last; /* files of the map that it wants to be asked for so */
  bool is_own;  /* of the user, or none of the list */
} Asked;

/* In this order: a log has words of a script too. */
static const Asked shipped[] = {
  { "megatron" },
  { "deepspeed" },
  { "transformers" },
  { "primus" },
  { "primus-torchtitan" },
  { "torchtitan" },
  { "internevo" },
  { "xtuner-1" },
  { "xtuner" },
  { "litgpt" },
  { "torchtune" },
  { "nanochat" },
  { "picotron" },
  { "nanotron" },
  { "lingua" },
  { "olmo" },
  { "llm-foundry" },
  { "maxtext" },
  { "levanter" },
  { "veomni" },
  { "nemo" },
  { "nemo-automodel" },
  { "gpt-neox" },
  { "axolotl" },
  { "oumi" },
  /* programs around a Trainer, in the order in which they are asked whose command it is */
  { "ms-swift" },
  { "llama-factory" },
  { "llama-factory-v1" },
  { "deepspeed-chat" },
  { "openrlhf" },
  { "trl" },
  { "deepspeed", .is_last = true },
  { "accelerate" },
  { "verl" },
  { "megatron-swift" },
  { "trainer" },
  { "mlperf" },
  { "megatron-bridge" },
  { "megatron", .is_last = true },
  { "peft" }, /* these have parts and tables alone */
  { "environment" },
  { "starters" },
  { "written" },
  { "optimizers" },
  { "skypilot", .unwraps = true },
  { "kubernetes", .unwraps = true },
  { "strangers" },
};

/* A user's own maps, which come first: those that lie in their folders, and what else the list has not. */
static bool
is_own (const LsDataEntry *entry)
{
  for (guint k = 0; k < G_N_ELEMENTS (shipped); k++)
    if (strcmp (shipped[k].map, entry->name) == 0)
      return strcmp (entry->from, ".") == 0 || strcmp (entry->from, "user") == 0;
  return true;
}

/* In that order; the last has no name. */
static const Asked *
all_asked (void)
{
  static GArray *all; /* kept */
  static gsize is_made;
  if (g_once_init_enter (&is_made)) {
    g_autoptr (GPtrArray) maps = ls_data_list (LS_DATA_PROGRAMS);
    all = g_array_new (TRUE, FALSE, sizeof (Asked));
    for (guint i = 0; i < maps->len; i++) {
      const char *name = g_intern_string (((const LsDataEntry *) maps->pdata[i])->name);
      const Asked own = { .map = name, .unwraps = true, .is_own = true };
      if (is_own (maps->pdata[i]))
        g_array_append_val (all, own);
    }
    g_array_append_vals (all, shipped, G_N_ELEMENTS (shipped));
    g_once_init_leave (&is_made, 1);
  }
  return (const Asked *) (gpointer) all->data;
}

bool
import_maps_are_right (LsDiagList *diags)
{
  bool ok = true;
  for (const Asked *a = all_asked (); a->map; a++) {
    g_autoptr (ProgramMap) map
        = a->is_own && !program_map_get (a->map) ? program_map_load (a->map, diags) : NULL;
    ok = ok && (!a->is_own || program_map_get (a->map));
  }
  return ok;
}

bool
import_unwrap (ImportFile *file, GPtrArray *told, LsDiagList *diags)
{
  bool ok = true;
  for (const Asked *a = all_asked (); ok && (a->map); a++)
    ok = !a->unwraps || program_unwrap (a->map, file, told, diags);
  return ok;
}

static bool
reader_of (const ImportFile *file, ProgramReader *ret_reader)
{
  bool is_found = false;
  for (const Asked *a = all_asked (); !is_found && a->map; a++)
    is_found = program_reader_of (a->map, a->is_own, a->is_last, file, ret_reader);
  return is_found;
}

/* By a script that lies beside and is named: one that only submits it says nothing of the job itself. False:
 * none of another program than `first` is known. */
static bool
reader_beside (const ImportFile *file, const ProgramFile *first, ProgramReader *ret_reader)
{
  static const char *const own[] = { "--num-layers", "--tensor-model-parallel-size", "pretrain_" };
  bool is_found = false;
  for (guint i = 0; i < G_N_ELEMENTS (own); i++)
    if (strstr (file->text, own[i]))
      return false;
  g_auto (GStrv) words = g_strsplit_set (file->text, " \t\n\r\"'`;&|()=/", -1);
  g_autofree char *folder = g_path_get_dirname (file->path), *self = g_path_get_basename (file->path);
  for (char **word = words; *word && !is_found; word++) {
    if (!launch_has_end (*word, ".sh .bash .slurm .sbatch") || strcmp (*word, self) == 0)
      continue;
    g_autofree char *path = g_build_filename (folder, *word, NULL);
    g_autoptr (LsDiagList) none = ls_diag_list_new ();
    size_t n = 0;
    g_autofree char *text = g_file_test (path, G_FILE_TEST_IS_REGULAR)
        ? ls_read_file (path, LAUNCH_MAX_BESIDE, &n, none)
        : NULL;
    ImportYaml yaml = { 0 };
    const ImportFile other = { .path = path, .text = text, .n = n, .yaml = &yaml };
    is_found = text && reader_of (&other, ret_reader) && ret_reader->file != first;
    cJSON_Delete (yaml.tree);
  }
  return is_found;
}

bool
import_choose (const ImportFiles *files, ProgramReader *ret_reader)
{
  ProgramReader first = { NULL };
  bool is_known = reader_of (&files->files[0], &first),
       is_script = first.is_last && g_str_has_prefix (files->files[0].text, "#!");
  for (guint i = 1; i < files->n && is_script; i++)
    if (g_str_has_prefix (files->files[i].text, "#!") && reader_of (&files->files[i], ret_reader)
        && ret_reader->file != first.file)
      return true;
  if ((is_script || !is_known) && reader_beside (&files->files[0], first.file, ret_reader))
    return true;
  *ret_reader = first;
  return is_known;
}

void
engine_maps_each (void (*call) (const char *name, bool is_own, gpointer data), gpointer data)
{
  for (const Asked *a = all_asked (); a->map; a++)
    if (!a->is_last)
      call (a->map, a->is_own, data);
}

/* --- logs beside a job's files -------------------------------------------------------------------- */

static bool
find_log (const char *text, ProgramLog *ret_log)
{
  for (const Asked *a = all_asked (); a->map; a++) {
    const ProgramMap *map = program_map_get (a->map);
    if (map && program_log_of (map, text, ret_log))
      return true;
  }
  return false;
}

const char *
import_log_what (const ImportFile *file)
{
  ProgramLog log;
  return find_log (file->text, &log) ? program_log_what (&log) : NULL;
}

bool
engine_is_log_of (const ImportFile *file, const char *map)
{
  ProgramLog log;
  return find_log (file->text, &log) && strcmp (log.map->name, map) == 0;
}

bool
engine_measure_log (const char *text, LsImport *import)
{
  ProgramLog log;
  bool is_log = find_log (text, &log);
  if (is_log)
    program_log_measure (&log, text, import);
  return is_log;
}

bool
engine_log_alone (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  ProgramLog log;
  bool is_log = find_log (files->files[0].text, &log);
  if (is_log)
    program_log_read_alone (&log, &files->files[0], import);
  else
    ls_diag_add (diags, LS_ERROR_INPUT, files->files[0].path, 0, 0, NULL, NULL, NULL,
                 "this log has no line of a step, nor what it says when it starts");
  return is_log;
}

guint
import_set_logs_apart (ImportFile *files, guint n)
{
  ProgramReader reader;
  g_autofree ImportFile *logs = g_new0 (ImportFile, n);
  guint n_files = 0, n_logs = 0;
  for (guint i = 0; i < n; i++)
    if (n > 1 && import_log_what (&files[i]) && (i > 0 || !reader_of (&files[i], &reader)))
      logs[n_logs++] = files[i];
    else
      files[n_files++] = files[i];
  memcpy (files + n_files, logs, n_logs * sizeof *logs);
  return n_files;
}

/* --- what lower files call of all this (program/program_doors.c) -------------------------------------- */

static void __attribute__ ((constructor)) open_doors (void)
{
  static const ProgramDoors doors = {
    .function_find = engine_function_find,
    .map_get = engine_map_get,
    .run_with = engine_run_with,
    .run_rules = engine_run_rules,
    .read_tree = engine_read_tree,
    .maps_each = engine_maps_each,
    .is_log_of = engine_is_log_of,
    .measure_log = engine_measure_log,
    .log_alone = engine_log_alone,
  };
  program_doors = &doors;
}
