#include "io/write_nccl.h"

#include <string.h>

#include "io/json_out.h"

/* ---- what the fit reached ---- */

static void
append_error (GString *out, const LsFitError *e)
{
  if (e->n > 0)
    g_string_append_printf (out, " %5u %8.2f %+8.2f", e->n, 100 * e->mape, 100 * e->bias);
  else
    g_string_append_printf (out, " %5u %8s %8s", e->n, "-", "-");
}

static void
append_line (GString *out, const char *name, const LsFitError error[2], const char *note)
{
  g_string_append_printf (out, "%-44s", name);
  append_error (out, &error[0]);
  g_string_append_c (out, ' ');
  append_error (out, &error[1]);
  g_string_append_printf (out, "%s\n", note);
}

static void
append_kept (GString *out, const LsNcclFitReport *r)
{
  for (guint i = 0; i < r->kept->len; i++) {
    const LsNcclKept *k = &g_array_index (r->kept, LsNcclKept, i);
    g_string_append_printf (out, "%-22s %14s %14s          -  kept: %s\n", k->key, k->value, k->value, k->why);
  }
  if (r->changes->len == 0)
    g_string_append (out, "nothing was fitted: all figures stay\n");
}

char *
ls_nccl_report_to_text (const LsNcclFitReport *r)
{
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "NCCL on %s\n", r->cluster);
  for (guint i = 0; i < r->files->len; i++)
    g_string_append_printf (out, "  %s\n", (const char *) g_ptr_array_index (r->files, i));
  g_string_append_printf (out, "\n%-22s %14s %14s %10s\n", "figure", "before", "now", "std error");
  for (guint i = 0; i < r->changes->len; i++) {
    const LsNcclChange *c = &g_array_index (r->changes, LsNcclChange, i);
    g_string_append_printf (out, "%-22s %14s %14s", c->key, c->was, c->now);
    if (c->is_derived)
      g_string_append (out, "          -  follows\n");
    else
      g_string_append_printf (out, " %8.1f %%  fitted\n", 100 * c->error);
  }
  append_kept (out, r);
  g_string_append_printf (out, "\n%-44s %23s  %23s\n", "", "< 1 MiB", ">= 1 MiB");
  g_string_append_printf (out, "%-44s %5s %8s %8s  %5s %8s %8s\n", "curve", "n", "mape %", "bias %", "n", "mape %", "bias %");
  for (guint i = 0; i < r->curves->len; i++) {
    const LsNcclFitCurve *c = &g_array_index (r->curves, LsNcclFitCurve, i);
    append_line (out, c->name, c->error, c->held_out ? "  held out" : "");
  }
  append_line (out, "all that were fitted", r->all[0], "");
  append_line (out, "all that were held out", r->all[1], "");
  return g_string_free (out, FALSE);
}

/* ---- as a file ---- */

static void
append_text (GString *out, const char *text)
{
  LsJsonOut w;
  ls_json_out_init (&w, out, 0);
  ls_json_out_string (&w, NULL, text);
}

static void append_value (GString *out, const cJSON *node);

static void
append_object (GString *out, const cJSON *object)
{
  g_string_append (out, "{ ");
  for (const cJSON *node = object->child; node; node = node->next) {
    append_text (out, node->string);
    g_string_append (out, ": ");
    append_value (out, node);
    g_string_append (out, node->next ? ", " : " }");
  }
}

static void
append_value (GString *out, const cJSON *node)
{
  char number[G_ASCII_DTOSTR_BUF_SIZE];
  if (cJSON_IsObject (node))
    append_object (out, node);
  else if (cJSON_IsString (node))
    append_text (out, node->valuestring);
  else if (cJSON_IsNumber (node))
    g_string_append (out, g_ascii_formatd (number, sizeof number, "%.15g", node->valuedouble));
  else
    g_string_append (out, cJSON_IsTrue (node) ? "true" : cJSON_IsFalse (node) ? "false" : "null");
}

static const LsNcclChange *
change_of (const GArray *changes, const char *key)
{
  for (guint i = 0; i < changes->len; i++)
    if (strcmp (g_array_index (changes, LsNcclChange, i).key, key) == 0)
      return &g_array_index (changes, LsNcclChange, i);
  return NULL;
}

static void
begin_member (GString *out, guint indent, const char *key, bool is_first)
{
  g_string_append_printf (out, "%s\n%*s", is_first ? "" : ",", (int) indent, "");
  append_text (out, key);
  g_string_append (out, ": ");
}

/* Of the base, with a reason for each change in the place of that which was there. */
static void
append_sources (GString *out, const cJSON *base, const GArray *changes, const char *why)
{
  bool is_first = true;
  g_string_append_c (out, '{');
  for (const cJSON *node = base ? base->child : NULL; node; node = node->next) {
    if (change_of (changes, node->string))
      continue;
    begin_member (out, 4, node->string, is_first);
    append_value (out, node);
    is_first = false;
  }
  for (guint i = 0; i < changes->len; i++) {
    const LsNcclChange *c = &g_array_index (changes, LsNcclChange, i);
    g_autofree char *text = g_strconcat (c->is_derived ? "follows from what was fitted: " : "fitted: ", why, NULL);
    begin_member (out, 4, c->key, is_first);
    append_text (out, text);
    is_first = false;
  }
  g_string_append (out, "\n  }");
}

static void
append_change (GString *out, const LsNcclChange *c)
{
  if (c->is_number)
    g_string_append (out, c->now);
  else
    append_text (out, c->now);
}

char *
ls_nccl_rewrite (const LsJsonDoc *base, const char *name, const char *source, const GArray *changes, const char *why)
{
  GString *out = g_string_new ("{");
  const cJSON *root = ls_json_doc_root (base), *sources = cJSON_GetObjectItemCaseSensitive (root, "sources");
  bool is_first = true;
  for (const cJSON *node = root->child; node; node = node->next) {
    const LsNcclChange *change = change_of (changes, node->string);
    if (node == sources)
      continue;
    begin_member (out, 2, node->string, is_first);
    is_first = false;
    if (change)
      append_change (out, change);
    else if (strcmp (node->string, "name") == 0)
      append_text (out, name);
    else if (strcmp (node->string, "source") == 0)
      append_text (out, source);
    else
      append_value (out, node);
  }
  for (guint i = 0; i < changes->len; i++) /* keys that the base leaves to their defaults */
    if (!cJSON_GetObjectItemCaseSensitive (root, g_array_index (changes, LsNcclChange, i).key)) {
      begin_member (out, 2, g_array_index (changes, LsNcclChange, i).key, false);
      append_change (out, &g_array_index (changes, LsNcclChange, i));
    }
  begin_member (out, 2, "sources", false);
  append_sources (out, sources, changes, why);
  g_string_append (out, "\n}\n");
  return g_string_free (out, FALSE);
}
