/* Functions of expressions about what a file leaves open or refuses, and about what names alone tell. */
#include <math.h>
#include <string.h>

#include "data/launch/launch_script.h"
#include "data/launch/program/program_map.h"
#include "data/shell/shell.h"

static const LaunchJob *
job_of (const ProgramRun *run, const ProgramArgument *a)
{
  return a->is_other ? &run->other : run->job;
}

/* Off, or there and not on. */
static ProgramValue
f_refused (ProgramRun *run, const ProgramArgument *a)
{
  const LaunchJob *job = job_of (run, a);
  return program_number (option_is_off (job, a[0].word)
                         || (launch_words_find (job->words, a[0].word) && !option_is_on (job, a[0].word)));
}

/* What its value leaves open, in words; none: nothing. */
static ProgramValue
f_leaves (ProgramRun *run, const ProgramArgument *a)
{
  const LaunchOption *o = launch_words_find (job_of (run, a)->words, a[0].word);
  bool is_open = o && o->values->len > 0 && ls_shell_has_hole (o->values->pdata[0]);
  return is_open ? (ProgramValue) { ls_shell_hole_names (o->values->pdata[0]), NAN } : program_none ();
}

/* Of "$HOME/models/Qwen/Qwen3-32B" what is known, behind the last hole, where it is whole folders. */
static ProgramValue
f_path_end (ProgramRun *run, const ProgramArgument *a)
{
  const char *text = launch_words_text (job_of (run, a)->words, a[0].word),
             *end = text ? strrchr (text, LS_SHELL_HOLE_END) : NULL;
  return end && end[1] == '/' && end[2] ? program_text (end + 1) : program_none ();
}

/* Whether the program has such an option. */
static ProgramValue
f_is_option (ProgramRun *run, const ProgramArgument *a)
{
  const OptionTable *table = a->is_other ? run->other.table : &run->map->table;
  return program_number (option_find (table, a[0].word) != NULL);
}

/* What the program is called in what is told. */
static ProgramValue
f_called (ProgramRun *run, const ProgramArgument *a)
{
  return program_text (run->job->import->program);
}

/* Whether words that the file does not say may be options. */
static ProgramValue
f_may_have_more (ProgramRun *run, const ProgramArgument *a)
{
  return program_number (run->job->import->may_have_more);
}

/* A value that is left open, for that. */
static ProgramValue
f_left_to (ProgramRun *run, const ProgramArgument *a)
{
  g_autofree char *text = program_value_text (&a[0].value);
  return (ProgramValue) { g_strdup_printf ("%c%s%c", LS_SHELL_HOLE, text, LS_SHELL_HOLE_END), NAN };
}

/* By the name of a script: it learns from rewards or preferences; it generates or evaluates. */
static ProgramValue
f_learns (ProgramRun *run, const ProgramArgument *a)
{
  return program_number (a[0].value.text && launch_learns (a[0].value.text));
}

static ProgramValue
f_uses_model (ProgramRun *run, const ProgramArgument *a)
{
  return program_number (a[0].value.text && launch_uses_model (a[0].value.text));
}

const ProgramFunction program_open_functions[] = {
  { "refused", "o", f_refused },
  { "leaves", "o", f_leaves },
  { "path_end", "o", f_path_end },
  { "is_option", "o", f_is_option },
  { "called", "", f_called },
  { "may_have_more", "", f_may_have_more },
  { "left_to", "v", f_left_to, true },
  { "learns", "v", f_learns, true },
  { "uses_model", "v", f_uses_model, true },
  { NULL },
};
