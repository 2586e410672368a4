/* How a field is typed on the command line. */
#include "data/text/field.h"

#include <string.h>

bool
ls_field_is_switch (const LsField *f)
{
  return f->kind == LS_FIELD_BOOL && !f->argument && !f->set_only;
}

char *
ls_field_flag (const LsField *f)
{
  return f->set_only ? g_strconcat ("--set ", f->key, NULL)
                     : g_strdelimit (g_strconcat ("--", f->key, NULL), "_", '-');
}

const char *
ls_field_typed (const LsField *f, const char *value)
{
  if (f->kind != LS_FIELD_BOOL)
    return value;
  return strcmp (value, "true") == 0 ? "1" : strcmp (value, "false") == 0 ? "0" : value;
}

char *
ls_field_option (const LsField *f, const char *value)
{
  g_autofree char *flag = ls_field_flag (f);
  const char *typed = ls_field_typed (f, value);
  if (ls_field_is_switch (f) && strcmp (typed, "1") == 0)
    return g_steal_pointer (&flag);
  return g_strconcat (flag, f->set_only ? "=" : " ", typed, NULL);
}

const char *
ls_field_argument (const LsField *f)
{
  if (f->argument)
    return f->argument;
  switch (f->kind) {
  case LS_FIELD_BOOL:
    return f->set_only ? "0|1" : NULL;
  case LS_FIELD_UINT:
  case LS_FIELD_UINT64:
    return "N";
  case LS_FIELD_DOUBLE:
    return "X";
  case LS_FIELD_TIME:
    return "TIME";
  case LS_FIELD_BYTES:
    return "SIZE";
  case LS_FIELD_ENUM:
    return "KIND";
  default:
    return "NAME";
  }
}

bool
ls_field_is_of_program (const LsField *f)
{
  return f->set_only || f->of_program;
}
