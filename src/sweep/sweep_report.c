#include "sweep/sweep_report.h"

#include "data/jobs/read_strategy.h"
#include "data/text/csv.h"
#include "data/text/field.h"

void
ls_sweep_row_clear (LsSweepRow *row)
{
  ls_strategy_clear (&row->strategy);
  g_free (row->knobs);
  g_free (row->why);
  for (guint i = 0; row->also && i < row->also->len; i++) {
    g_free (g_array_index (row->also, LsSweepVariant, i).change);
    g_free (g_array_index (row->also, LsSweepVariant, i).knobs);
  }
  g_clear_pointer (&row->also, g_array_unref);
}

void
ls_sweep_none_free (LsSweepNone *none)
{
  if (!none)
    return;
  for (guint i = 0; i < none->rules->len; i++)
    g_free (g_array_index (none->rules, LsSweepRule, i).text);
  g_array_unref (none->rules);
  ls_memory_advice_free (none->advice);
  g_free (none->nearest);
  g_free (none->headroom);
  g_free (none);
}

char *
ls_sweep_layers_text (const LsStrategy *s)
{
  return ls_field_text (ls_field_find (ls_strategy_fields, "layers_per_chunk"), s, NULL);
}

void
ls_sweep_csv_knobs (GString *out, const LsStrategy *s, bool (*is_left_out) (const char *key))
{
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    if (f->file_only || (is_left_out && is_left_out (f->key)))
      continue;
    g_autofree char *text = s ? ls_field_text (f, s, NULL) : g_strdup (f->key);
    g_string_append_c (out, ',');
    ls_csv_append (out, text);
  }
}
