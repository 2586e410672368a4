/* What rules of maps name that is in C. */
#include <string.h>

#include "data/launch/program/program_map.h"
#include "data/launch/torchtitan/torchtitan_rules.h"

/* --- programs in whose options others are said ------------------------------------------------------- */

static const struct {
  const char *name;
  const OptionTable *table;
} tables[] = {
  { "torchtitan", &torchtitan_options },
};

const OptionTable *
program_table_find (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (tables); i++)
    if (strcmp (tables[i].name, name) == 0)
      return tables[i].table;
  return NULL;
}

/* --- calculations ------------------------------------------------------------------------------------ */

/* All that was translated and said, by the rows of the other program. */
static void
read_translated (ProgramRun *run)
{
  if (!run->says)
    return;
  g_hash_table_unref (run->job->open);
  option_read_all (&run->other);
  run->job->open = run->other.open;
}

/* Degrees, pipeline, batch and memory, of what was translated. */
static void
set_torchtitan_strategy (ProgramRun *run)
{
  if (run->says)
    torchtitan_strategy (&run->other);
}

static const struct {
  const char *name;
  ProgramCall *call;
} calls[] = {
  { "read_translated", read_translated },
  { "torchtitan_strategy", set_torchtitan_strategy },
};

ProgramCall *
program_call_find (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (calls); i++)
    if (strcmp (calls[i].name, name) == 0)
      return calls[i].call;
  return NULL;
}
