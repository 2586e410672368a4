/* A job that is written for a program that is data: what its options are then, and what it does not have. */
#include "data/launch/emit_target.h"
#include "data/launch/program/program_map.h"

/* --- what rules do ------------------------------------------------------------------------------------- */

/* { "lacks": option of ours, "says": why } */
void
program_lack (ProgramRun *run, ProgramAct *a)
{
  g_autofree char *why = program_fill (run, program_member (a->rule, "says"));
  if (run->emit)
    emit_refuse (run->emit, program_act_text (run, a), "%s", why);
}

void
program_note (ProgramRun *run, ProgramAct *a)
{
  if (run->emit)
    emit_note (run->emit, "%s", program_act_text (run, a));
}

/* { "note_attention": the library that runs it } */
void
program_note_attention (ProgramRun *run, ProgramAct *a)
{
  if (run->emit)
    emit_note_attention (run->emit, a->what->valuestring);
}

/* --- a job --------------------------------------------------------------------------------------------- */

/* A job that rules look at, of which all keys are known, with what is calculated of it. The caller clears
 * it. */
static void
start (ProgramRun *run, const ProgramMap *map, LaunchJob *job, Emit *e)
{
  const cJSON *let = cJSON_GetObjectItemCaseSensitive (map->writes, "let"), *one;
  *run = (ProgramRun) { .map = map, .job = job, .emit = e, .is_written = true };
  cJSON_ArrayForEach (one, let)
  {
    program_let (run, one->string, program_value_of (run, one));
  }
}

char *
program_written (const ProgramMap *map, const char *expression, const LsModel *m, const LsStrategy *s)
{
  LsImport import = { .model = *m, .strategy = *s }; /* theirs: nothing of it is freed */
  LaunchJob job = { .import = &import };
  ProgramRun run;
  start (&run, map, &job, NULL);
  g_auto (ProgramValue) v = program_eval (&run, expression);
  char *text = program_value_is_none (&v) ? NULL : program_value_text (&v);
  program_run_clear (&run);
  return text;
}

void
program_check_written (const char *name, Emit *e)
{
  const ProgramMap *map = program_map_get (name);
  LsImport import = { .model = *e->m, .strategy = *e->s };
  LaunchJob job = { .import = &import };
  ProgramRun run;
  if (!map) {
    emit_refuse (e, "--emit", "your own map of %s is wrong: see lockstep check", name);
    return;
  }
  start (&run, map, &job, e);
  program_run_rules (&run, cJSON_GetObjectItemCaseSensitive (map->writes, "rules"));
  program_run_clear (&run);
}
