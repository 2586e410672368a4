#include "data/measured/table_facts.h"

#include "data/jobs/read_model.h"
#include "data/jobs/read_strategy.h"
#include "data/text/field_value.h"

static const char *
cell_of (const LsCsv *csv, guint row, const char *column)
{
  int at = ls_csv_column (csv, column);
  return at < 0 ? "" : ls_csv_cell (csv, row, (guint) at);
}

static bool
matches_any (const char *patterns, const char *text)
{
  g_auto (GStrv) all = g_strsplit (patterns, "|", -1);
  bool is_found = false;
  for (char **pattern = all; *pattern; pattern++)
    is_found |= g_pattern_match_simple (*pattern, text);
  return is_found;
}

/* "a|b" lists what the cell may say, ">=8" the least that it may. */
static bool
is_met (const char *wanted, const char *cell)
{
  if (g_str_has_prefix (wanted, ">="))
    return *cell && g_ascii_strtod (cell, NULL) >= g_ascii_strtod (wanted + 2, NULL);
  g_auto (GStrv) choices = g_strsplit (wanted, "|", -1);
  return g_strv_contains ((const char *const *) choices, cell);
}

bool
ls_table_facts_hold (const LsTableFacts *facts, const LsCsv *csv, guint row)
{
  if (!matches_any (facts->of, cell_of (csv, row, "source")))
    return false;
  for (char **condition = facts->when; condition && *condition; condition++) {
    g_auto (GStrv) pair = g_strsplit (*condition, "=", 2);
    if (!is_met (pair[1], cell_of (csv, row, pair[0])))
      return false;
  }
  return true;
}

/* Values were checked when the facts were read. */
static void
set_all (const LsField *fields, char **settings, void *target)
{
  for (char **setting = settings; setting && *setting; setting++) {
    g_auto (GStrv) pair = g_strsplit (*setting, "=", 2);
    ls_field_value_set (ls_field_find (fields, pair[0]), target, pair[1]);
  }
}

void
ls_table_facts_set_model (const LsTableFacts *facts, LsModel *model)
{
  set_all (ls_model_fields, facts->model, model);
}

void
ls_table_facts_set_strategy (const LsTableFacts *facts, LsStrategy *strategy)
{
  set_all (ls_strategy_fields, facts->strategy, strategy);
}
