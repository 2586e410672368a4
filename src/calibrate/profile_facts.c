#include "calibrate/calibrate_run.h"

#include <math.h>
#include <string.h>

const LsProfileFact *
ls_profile_fact (const LsProfile *p, const char *group, const char *name)
{
  for (guint i = p->facts->len; i > 0; i--) {
    const LsProfileFact *f = &g_array_index (p->facts, LsProfileFact, i - 1);
    if (strcmp (f->group, group) == 0 && strcmp (f->name, name) == 0)
      return f;
  }
  return NULL;
}

double
ls_profile_noted (const LsProfileFact *f, const char *key)
{
  g_auto (GStrv) words = g_strsplit (f->note ? f->note : "", " ", -1);
  for (char **word = words; *word; word++)
    if (g_str_has_prefix (*word, key) && (*word)[strlen (key)] == '=')
      return g_ascii_strtod (*word + strlen (key) + 1, NULL);
  return NAN;
}

bool
ls_profile_has_word (const LsProfileFact *f, const char *word)
{
  g_auto (GStrv) words = g_strsplit (f->note ? f->note : "", " ", -1);
  return g_strv_contains ((const char *const *) words, word);
}

double
ls_profile_mean_noted (const LsProfile *p, const char *group, const char *name, const char *key)
{
  double sum = 0;
  guint n = 0;
  for (guint i = 0; i < p->facts->len; i++) {
    const LsProfileFact *f = &g_array_index (p->facts, LsProfileFact, i);
    double value
        = strcmp (f->group, group) == 0 && strcmp (f->name, name) == 0 ? ls_profile_noted (f, key) : NAN;
    if (isnan (value))
      continue;
    sum += value;
    n++;
  }
  return n > 0 ? sum / n : NAN;
}
