/* data/launch/program/program_doors.c — functions of higher files, called by lower ones (program_map.h). */
#include "data/launch/program/program_map.h"

const ProgramDoors *program_doors;

const ProgramFunction *
program_function_find (const char *name)
{
  return program_doors->function_find (name);
}

const ProgramMap *
program_map_get (const char *name)
{
  return program_doors->map_get (name);
}

bool
program_run_with (const char *name, const char *part, const ProgramWith *with, LaunchJob *job,
                  const ImportFiles *files, LsDiagList *diags)
{
  return program_doors->run_with (name, part, with, job, files, diags);
}

bool
program_run_rules (ProgramRun *run, const cJSON *rules)
{
  return program_doors->run_rules (run, rules);
}

bool
program_read_tree (const char *name, cJSON *tree, const char *path, const ProgramTold *told, LsImport *import,
                   LsDiagList *diags)
{
  return program_doors->read_tree (name, tree, path, told, import, diags);
}

void
import_maps_each (void (*call) (const char *name, bool is_own, gpointer data), gpointer data)
{
  program_doors->maps_each (call, data);
}

bool
import_is_log_of (const ImportFile *file, const char *map)
{
  return program_doors->is_log_of (file, map);
}

bool
import_measure_log (const char *text, LsImport *import)
{
  return program_doors->measure_log (text, import);
}

bool
import_log_alone (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  return program_doors->log_alone (files, import, diags);
}

/* --- by these ------------------------------------------------------------------------------------------ */

const OptionTable *
program_table_find (const char *name)
{
  const ProgramMap *map = name ? program_map_get (name) : NULL;
  return map && map->table.n > 0 ? &map->table : NULL;
}

bool
program_run_map (const char *name, const char *part, LaunchJob *job, const ImportFiles *files,
                 LsDiagList *diags)
{
  return program_run_with (name, part, &(ProgramWith) { NULL }, job, files, diags);
}
