#include <math.h>

#include "data/datadir.h"
#include "data/machines/machines.h"

#define OF(key_, member_) key_, LS_FIELD_DOUBLE, offsetof (LsJitter, member_)

const LsField ls_jitter_fields[] = {
  LS_FIELDS_HEADER (LsJitter),
  { OF ("noise", noise), .required = true, .max = 0.5,
    .meaning = "standard deviation of the kernel time of an accelerator in steps of one second, of its mean; "
               "steps of T seconds have it over the root of T" },
  { OF ("spread", spread), .max = 0.2, .default_text = "`clock_spread` of the accelerator",
    .meaning = "standard deviation of the rate of matrix products among accelerators" },
  { OF ("day", day), .max = 0.5, .default_text = "0",
    .meaning = "how much longer steps of all are in the slowest hour of a day than in the fastest" },
  { "sources", LS_FIELD_SOURCES, .default_text = "none", .meaning = "where each figure comes from, by key" },
  { NULL },
};

bool
ls_jitter_read (const LsJsonDoc *doc, LsJitter *ret_jitter, LsDiagList *diags)
{
  LsJitter j = { .spread = NAN };
  bool ok = ls_fields_read_file (ls_jitter_fields, "jitter", doc, &j, diags);
  if (ok)
    *ret_jitter = j;
  else
    ls_jitter_clear (&j);
  return ok;
}

bool
ls_jitter_load (const char *name, LsJitter *ret_jitter, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_JITTER, name, diags);
  return doc && ls_jitter_read (doc, ret_jitter, diags);
}
