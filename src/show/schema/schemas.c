#include "show/schema/schemas.h"

#include <gio/gio.h>
#include <stdbool.h>
#include <string.h>

#include <lockstep/error.h>

#include "base/suggest.h"
#include "data/inspect.h"
#include "data/text/field.h"
#include "show/text_table.h"

GResource *schema_get_resource (void); /* of schema.gresource.xml */

/* Of all that is written "run: results of lockstep run", a line break, and the schema; newly allocated. */
static char **
written_schemas (void)
{
  g_autoptr (GBytes) bytes = g_resource_lookup_data (
      schema_get_resource (), "/lockstep/schema/result_schemas.txt", G_RESOURCE_LOOKUP_FLAGS_NONE, NULL);
  g_assert (bytes);
  gsize size;
  const char *text = g_bytes_get_data (bytes, &size);
  gsize head = strlen ("== ");
  g_autofree char *all = g_strndup (text + head, size - head);
  return g_strsplit (g_strchomp (all), "\n== ", -1);
}

/* That of a name, newly allocated; NULL: there is none. */
static char *
written_schema (const char *name)
{
  g_auto (GStrv) all = written_schemas ();
  g_autofree char *head = g_strconcat (name, ": ", NULL);
  for (guint i = 0; all[i]; i++)
    if (g_str_has_prefix (all[i], head))
      return g_strconcat (strchr (all[i], '\n') + 1, "\n", NULL);
  return NULL;
}

/* --- a schema by its name --------------------------------------------------------------------------- */

static void
refuse (const char *name, GError **error)
{
  g_auto (GStrv) written = written_schemas ();
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  const char *kind;
  for (guint i = 0; (kind = ls_file_schema_kind (i)); i++)
    g_ptr_array_add (names, (gpointer) kind);
  for (guint i = 0; written[i]; i++) {
    *strchr (written[i], ':') = '\0';
    g_ptr_array_add (names, written[i]);
  }
  g_ptr_array_add (names, NULL);
  const char *near = ls_suggest (name, (const char *const *) names->pdata);
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "there is no schema \"%s\"%s%s%s", name,
               near ? "; did you mean \"" : "; lockstep schema lists them", near ? near : "",
               near ? "\"?" : "");
}

/* Of what is read; newly allocated. */
static char *
read_schema (guint i)
{
  const char *name = ls_file_schema_kind (i);
  g_autofree char *id = g_strdup_printf ("urn:lockstep:%s:1", name);
  g_autofree char *title = g_strdup_printf ("lockstep.%s/1", name);
  LsJsonOut w;
  ls_json_out_open (&w);
  ls_json_out_string (&w, "$schema", LS_JSON_SCHEMA_DIALECT);
  ls_json_out_string (&w, "$id", id);
  ls_json_out_string (&w, "title", title);
  ls_file_schema_write (i, &w);
  return ls_json_out_close (&w);
}

/* What is written with a schema that is read too has it from the table that reads it. */
char *
ls_schema_to_json (const char *asked, GError **error)
{
  bool is_whole = g_str_has_prefix (asked, "lockstep.") && g_str_has_suffix (asked, "/1");
  const char *begin = asked + (is_whole ? strlen ("lockstep.") : 0);
  g_autofree char *name = g_strndup (begin, strlen (begin) - (is_whole ? strlen ("/1") : 0));
  const char *kind;
  for (guint i = 0; (kind = ls_file_schema_kind (i)); i++)
    if (strcmp (kind, name) == 0)
      return read_schema (i);
  char *text = written_schema (name);
  if (!text)
    refuse (name, error);
  return text;
}

char *
ls_schemas_list (void)
{
  g_auto (GStrv) written = written_schemas ();
  GString *out = g_string_new ("read\n");
  LsTextTable table;
  ls_text_table_init (&table, "ll");
  const char *kind;
  for (guint i = 0; (kind = ls_file_schema_kind (i)); i++)
    ls_text_table_add (&table, "%s\v%s", kind, ls_file_schema_meaning (i));
  ls_text_table_print (&table, 2, out);
  g_string_append (out, "\nwritten\n");
  ls_text_table_init (&table, "ll");
  for (guint i = 0; written[i]; i++) {
    int n = (int) strcspn (written[i], ":"), end = (int) strcspn (written[i], "\n");
    ls_text_table_add (&table, "%.*s\v%.*s", n, written[i], end - n - 2, written[i] + n + 2);
  }
  ls_text_table_print (&table, 2, out);
  return g_string_free (out, FALSE);
}
