#include "show/schema/schemas.h"

#include <stdbool.h>
#include <string.h>

#include <lockstep/error.h>

#include "base/suggest.h"
#include "data/file_schemas.h"
#include "data/text/field_schema.h"
#include "show/schema/result_schema.h"
#include "show/text_table.h"

/* What is written with a schema that is read too has it from the table that reads it. */
static bool
write_schema (const char *name, LsJsonOut *w)
{
  const char *kind;
  for (guint i = 0; (kind = ls_file_schema_kind (i)); i++)
    if (strcmp (kind, name) == 0) {
      ls_file_schema_write (i, w);
      return true;
    }
  g_auto (GStrv) meanings = NULL, names = ls_result_schema_names (&meanings);
  if (!g_strv_contains ((const char *const *) names, name))
    return false;
  ls_result_schema_write (name, w);
  return true;
}

static void
refuse (const char *name, GError **error)
{
  g_auto (GStrv) meanings = NULL, written = ls_result_schema_names (&meanings);
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  const char *kind;
  for (guint i = 0; (kind = ls_file_schema_kind (i)); i++)
    g_ptr_array_add (names, (gpointer) kind);
  for (guint i = 0; written[i]; i++)
    g_ptr_array_add (names, written[i]);
  g_ptr_array_add (names, NULL);
  const char *near = ls_suggest (name, (const char *const *) names->pdata);
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "there is no schema \"%s\"%s%s%s", name,
               near ? "; did you mean \"" : "; lockstep schema lists them", near ? near : "",
               near ? "\"?" : "");
}

char *
ls_schema_to_json (const char *asked, GError **error)
{
  bool is_whole = g_str_has_prefix (asked, "lockstep.") && g_str_has_suffix (asked, "/1");
  const char *begin = asked + (is_whole ? strlen ("lockstep.") : 0);
  g_autofree char *name = g_strndup (begin, strlen (begin) - (is_whole ? strlen ("/1") : 0));
  g_autofree char *id = g_strdup_printf ("urn:lockstep:%s:1", name);
  g_autofree char *title = g_strdup_printf ("lockstep.%s/1", name);
  LsJsonOut w;
  ls_json_out_open (&w);
  ls_json_out_string (&w, "$schema", LS_JSON_SCHEMA_DIALECT);
  ls_json_out_string (&w, "$id", id);
  ls_json_out_string (&w, "title", title);
  bool is_known = write_schema (name, &w);
  g_autofree char *text = ls_json_out_close (&w);
  if (!is_known)
    refuse (name, error);
  return is_known ? g_steal_pointer (&text) : NULL;
}

char *
ls_schemas_list (void)
{
  g_auto (GStrv) meanings = NULL, names = ls_result_schema_names (&meanings);
  GString *out = g_string_new ("read\n");
  LsTextTable table;
  ls_text_table_init (&table, "ll");
  const char *kind;
  for (guint i = 0; (kind = ls_file_schema_kind (i)); i++) {
    ls_text_table_add (&table, "%s", kind);
    ls_text_table_add (&table, "%s", ls_file_schema_meaning (i));
  }
  ls_text_table_print (&table, 2, out);
  g_string_append (out, "\nwritten\n");
  ls_text_table_init (&table, "ll");
  for (guint i = 0; names[i]; i++) {
    ls_text_table_add (&table, "%s", names[i]);
    ls_text_table_add (&table, "%s", meanings[i]);
  }
  ls_text_table_print (&table, 2, out);
  return g_string_free (out, FALSE);
}
