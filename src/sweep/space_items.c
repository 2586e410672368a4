/* sweep/space_items.c — the values of an axis in a text: between commas, doublings spelt out. */
#include <string.h>

#include "base/doublings.h"
#include "data/jobs/job_files.h"
#include "sweep/space.h"

/* Commas are part of a value. */
static bool
has_commas (LsSpaceAxis axis)
{
  const char *const keys[] = { "recompute_parts",
                               "layers_per_chunk",
                               "micro_batches_per_replica",
                               "recompute_stages",
                               "expert_load",
                               "lora_modules",
                               NULL };
  return g_strv_contains (keys, ls_space_axis_name (axis));
}

/* What ends the first value: no comma in brackets, as in "node[0-3,7]". NULL: it is the last. */
static const char *
end_of_value (LsSpaceAxis axis, const char *text)
{
  int depth = 0;
  char separator = has_commas (axis) ? '/' : ',';
  for (; *text != '\0' && (*text != separator || depth > 0); text++)
    depth += (*text == '[') - (*text == ']');
  return *text != '\0' ? text : NULL;
}

/* "1..8": of whole numbers. */
static bool
is_doublings (LsSpaceAxis axis, const char *text)
{
  const LsField *f = ls_field_find (ls_strategy_fields, ls_space_axis_name (axis));
  return f->kind == LS_FIELD_UINT && strstr (text, "..");
}

bool
ls_space_is_list (LsSpaceAxis axis, const char *text)
{
  return end_of_value (axis, text) || is_doublings (axis, text);
}

static void
add_items (LsSpaceAxis axis, const char *part, GPtrArray *items)
{
  g_autoptr (GArray) values = g_array_new (FALSE, FALSE, sizeof (guint32));
  if (!is_doublings (axis, part) || !ls_doublings_add (part, G_MAXUINT32, values))
    g_ptr_array_add (items, g_strdup (part));
  for (guint k = 0; k < values->len; k++)
    g_ptr_array_add (items, g_strdup_printf ("%u", g_array_index (values, guint32, k)));
}

GPtrArray *
ls_space_items (LsSpaceAxis axis, const char *text)
{
  GPtrArray *items = g_ptr_array_new_with_free_func (g_free);
  for (const char *end; text; text = end ? end + 1 : NULL) {
    end = end_of_value (axis, text);
    g_autofree char *part = end ? g_strndup (text, (gsize) (end - text)) : g_strdup (text);
    add_items (axis, part, items);
  }
  return items;
}
