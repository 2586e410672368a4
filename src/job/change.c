#include "job/change.h"

#include <string.h>

#include "data/jobs/job_files.h"
#include "job/job_from.h"

LsChange *
ls_change_new (const char *idea, const char *cost, bool needs_more)
{
  LsChange *change = g_new (LsChange, 1);
  *change = (LsChange) { idea, cost, needs_more, g_ptr_array_new_with_free_func (g_free) };
  return change;
}

void
ls_change_free (LsChange *change)
{
  if (!change)
    return;
  g_ptr_array_unref (change->settings);
  g_free (change);
}

void
ls_change_set (LsChange *change, const char *key, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  char *value = g_strdup_vprintf (format, args);
  va_end (args);
  for (guint i = 0; i < change->settings->len; i += 2)
    if (strcmp (change->settings->pdata[i], key) == 0) {
      g_free (change->settings->pdata[i + 1]);
      change->settings->pdata[i + 1] = value;
      return;
    }
  g_ptr_array_add (change->settings, g_strdup (key));
  g_ptr_array_add (change->settings, value);
}

/* Both, or the one that there is. */
static const char *
both (const char *a, const char *b)
{
  if (!a || (b && strstr (b, a)))
    return b;
  if (!b || strstr (a, b))
    return a;
  g_autofree char *text = g_strdup_printf ("%s; %s", a, b);
  return g_intern_string (text);
}

void
ls_change_need (LsChange *change, const char *cost)
{
  change->needs_more = true;
  change->cost = both (change->cost, cost);
}

LsChange *
ls_change_join (const LsChange *a, const LsChange *b)
{
  LsChange *change
      = ls_change_new (both (a->idea, b->idea), both (a->cost, b->cost), a->needs_more || b->needs_more);
  const GPtrArray *const parts[] = { a->settings, b->settings };
  for (guint part = 0; part < G_N_ELEMENTS (parts); part++)
    for (guint i = 0; i < parts[part]->len; i += 2)
      ls_change_set (change, parts[part]->pdata[i], "%s", (const char *) parts[part]->pdata[i + 1]);
  return change;
}

/* --- words and deeds ---------------------------------------------------------------------- */

static const LsField *
knob_of (const char *key)
{
  const LsField *field = ls_field_find (ls_strategy_fields, key);
  return field && !field->file_only ? field : ls_field_find (ls_job_fields, key);
}

char *
ls_change_text (const LsChange *change)
{
  GString *out = g_string_new (NULL);
  for (guint i = 0; i < change->settings->len; i += 2) {
    const char *key = change->settings->pdata[i], *value = change->settings->pdata[i + 1];
    g_autofree char *option = ls_field_option (knob_of (key), value);
    g_string_append_printf (out, "%s%s", i > 0 ? " " : "", option);
  }
  return g_string_free (out, FALSE);
}

static int
compare_texts (gconstpointer a, gconstpointer b)
{
  return strcmp (*(char *const *) a, *(char *const *) b);
}

char *
ls_change_key (const LsChange *change)
{
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < change->settings->len; i += 2)
    g_ptr_array_add (parts,
                     g_strdup_printf ("%s %s ", (char *) change->settings->pdata[i],
                                      (char *) change->settings->pdata[i + 1]));
  g_ptr_array_sort (parts, compare_texts);
  g_ptr_array_add (parts, NULL);
  return g_strjoinv (NULL, (char **) parts->pdata);
}

static bool
apply (const LsChange *change, LsJobSpec *spec, LsDiagList *diags)
{
  for (guint i = 0; i < change->settings->len; i += 2) {
    const char *key = change->settings->pdata[i];
    const char *value = change->settings->pdata[i + 1];
    if (strcmp (key, "software") == 0 ? !ls_job_spec_change_software (spec, value, diags)
                                      : !ls_job_spec_set (spec, key, value, diags))
      return false;
  }
  return true;
}

/* A setting of the job again; launch files are read with the change. */
static bool
set_again (const LsChange *change, const char *key, const char *value, LsJobSpec *ret, LsDiagList *diags)
{
  g_autoptr (GString) all = g_string_new (value);
  for (guint k = 0; strcmp (key, "from") == 0 && k < change->settings->len; k += 2)
    ls_job_add_known (all, change->settings->pdata[k], change->settings->pdata[k + 1]);
  return ls_job_spec_set (ret, key, all->str, diags);
}

/* As if its options were appended to those of the job. */
static bool
set_all (const LsChange *change, const LsJobSpec *spec, LsJobSpec *ret, LsDiagList *diags)
{
  for (guint i = 0; i < spec->settings->len; i += 2)
    if (!set_again (change, spec->settings->pdata[i], spec->settings->pdata[i + 1], ret, diags))
      return false;
  return apply (change, ret, diags);
}

bool
ls_change_make_alone (const LsChange *change, const LsJobSpec *spec, bool names_program, LsJobSpec *ret,
                      LsDiagList *diags)
{
  static const char *const names[] = { "model", "for", "software", NULL };
  ls_job_spec_init (ret);
  if (names_program && spec->software_is_from
      && !ls_job_spec_set (ret, "software", spec->software_name, diags))
    return false;
  for (guint i = 0; i < spec->settings->len; i += 2) {
    const char *key = spec->settings->pdata[i], *value = spec->settings->pdata[i + 1];
    const char *known = strcmp (key, "from") == 0 ? strstr (value, "\n:") : NULL;
    g_autofree char *files = known ? g_strndup (value, known - value) : g_strdup (value);
    if ((g_strv_contains (names, key) || strcmp (key, "from") == 0)
        && !set_again (change, key, files, ret, diags))
      return false;
  }
  return apply (change, ret, diags);
}

/* The job of launch files, with the batch as it was. */
static bool
read_again (LsChange *change, const LsJobSpec *spec, LsJobSpec *ret, LsDiagList *diags)
{
  uint32_t batch = spec->strategy.global_batch;
  ls_job_spec_init (ret);
  if (!set_all (change, spec, ret, diags))
    return false;
  if (ret->strategy.global_batch == batch || batch == 0)
    return true;
  ls_job_spec_clear (ret);
  ls_job_spec_init (ret);
  ls_change_set (change, "global_batch", "%u", batch);
  return set_all (change, spec, ret, diags);
}

bool
ls_change_make (LsChange *change, const LsJobSpec *spec, LsJobSpec *ret_changed, LsDiagList *diags)
{
  if (spec->from)
    return read_again (change, spec, ret_changed, diags);
  ls_job_spec_copy (spec, ret_changed);
  return apply (change, ret_changed, diags);
}
