#include "data/text/json_out.h"

#include <math.h>

void
ls_json_out_init (LsJsonOut *w, GString *text, int indent)
{
  *w = (LsJsonOut) { .text = text, .indent = indent };
}

static void
break_line (LsJsonOut *w)
{
  if (w->indent > 0)
    g_string_append_printf (w->text, "\n%*s", w->indent * w->depth, "");
}

/* Invalid UTF-8 is replaced, so that what is written can be read. */
static void
append_string (LsJsonOut *w, const char *value)
{
  g_autofree char *valid = value ? g_utf8_make_valid (value, -1) : NULL;
  if (!valid) {
    g_string_append (w->text, "null");
    return;
  }
  g_string_append_c (w->text, '"');
  for (const char *p = valid; *p; p++) {
    if (*p == '"' || *p == '\\')
      g_string_append_printf (w->text, "\\%c", *p);
    else if (*p == '\n')
      g_string_append (w->text, "\\n");
    else if (*p == '\t')
      g_string_append (w->text, "\\t");
    else if ((unsigned char) *p < 0x20)
      g_string_append_printf (w->text, "\\u%04x", (unsigned) *p);
    else
      g_string_append_c (w->text, *p);
  }
  g_string_append_c (w->text, '"');
}

#define FLUSH_BYTES (1 << 20)

static void
flush (LsJsonOut *w)
{
  fwrite (w->text->str, 1, w->text->len, w->file); /* an error stays with the file */
  g_string_truncate (w->text, 0);
}

/* Comma, new line and key: all that stands before a value. */
static void
begin_item (LsJsonOut *w, const char *key)
{
  bool in_object = w->depth > 0 && w->closer[w->depth - 1] == '}';
  g_assert (in_object == (key != NULL));
  if (w->file && w->text->len >= FLUSH_BYTES)
    flush (w);
  if (w->depth > 0) {
    if (w->has_items[w->depth - 1])
      g_string_append_c (w->text, ',');
    w->has_items[w->depth - 1] = true;
    break_line (w);
  }
  if (key) {
    append_string (w, key);
    g_string_append (w->text, w->indent > 0 ? ": " : ":");
  }
}

static void
begin (LsJsonOut *w, const char *key, char opener, char closer)
{
  begin_item (w, key);
  g_assert (w->depth < LS_JSON_OUT_MAX_DEPTH);
  g_string_append_c (w->text, opener);
  w->closer[w->depth] = closer;
  w->outer_indent[w->depth] = w->indent;
  w->has_items[w->depth] = false;
  w->depth++;
}

static void
end (LsJsonOut *w, char closer)
{
  g_assert (w->depth > 0 && w->closer[w->depth - 1] == closer);
  w->depth--;
  if (w->has_items[w->depth])
    break_line (w);
  w->indent = w->outer_indent[w->depth];
  g_string_append_c (w->text, closer);
}

void
ls_json_out_begin_object (LsJsonOut *w, const char *key)
{
  begin (w, key, '{', '}');
}

void
ls_json_out_end_object (LsJsonOut *w)
{
  end (w, '}');
}

void
ls_json_out_open (LsJsonOut *w)
{
  ls_json_out_init (w, g_string_new (NULL), 2);
  ls_json_out_begin_object (w, NULL);
}

void
ls_json_out_schema (LsJsonOut *w, const char *kind)
{
  g_autofree char *schema = g_strdup_printf ("lockstep.%s/1", kind);
  ls_json_out_string (w, "schema", schema);
}

void
ls_json_out_open_as (LsJsonOut *w, const char *kind)
{
  ls_json_out_open (w);
  ls_json_out_schema (w, kind);
}

char *
ls_json_out_close (LsJsonOut *w)
{
  ls_json_out_end_object (w);
  g_string_append_c (w->text, '\n');
  return g_string_free (w->text, FALSE);
}

void
ls_json_out_begin_array (LsJsonOut *w, const char *key)
{
  begin (w, key, '[', ']');
}

void
ls_json_out_end_array (LsJsonOut *w)
{
  end (w, ']');
}

void
ls_json_out_string (LsJsonOut *w, const char *key, const char *value)
{
  begin_item (w, key);
  append_string (w, value);
}

char *
ls_json_string (const char *value)
{
  LsJsonOut w = { .text = g_string_new (NULL) };
  append_string (&w, value);
  return g_string_free (w.text, FALSE);
}

void
ls_json_out_double (LsJsonOut *w, const char *key, double value)
{
  char number[G_ASCII_DTOSTR_BUF_SIZE];
  begin_item (w, key);
  g_string_append (w->text,
                   isfinite (value) ? g_ascii_formatd (number, sizeof number, "%.17g", value) : "null");
}

void
ls_json_out_int (LsJsonOut *w, const char *key, int64_t value)
{
  begin_item (w, key);
  g_string_append_printf (w->text, "%" G_GINT64_FORMAT, (gint64) value);
}

void
ls_json_out_uint (LsJsonOut *w, const char *key, uint64_t value)
{
  begin_item (w, key);
  g_string_append_printf (w->text, "%" G_GUINT64_FORMAT, (guint64) value);
}

void
ls_json_out_bool (LsJsonOut *w, const char *key, bool value)
{
  begin_item (w, key);
  g_string_append (w->text, value ? "true" : "false");
}

void
ls_json_out_null (LsJsonOut *w, const char *key)
{
  begin_item (w, key);
  g_string_append (w->text, "null");
}

void
ls_json_out_node (LsJsonOut *w, const char *key, const cJSON *node)
{
  if (cJSON_IsNumber (node))
    ls_json_out_double (w, key, node->valuedouble);
  else if (cJSON_IsBool (node))
    ls_json_out_bool (w, key, cJSON_IsTrue (node));
  else if (cJSON_IsString (node))
    ls_json_out_string (w, key, cJSON_GetStringValue (node));
  else {
    ls_json_out_begin_array (w, key);
    w->indent = 0;
    for (const cJSON *one = node->child; one; one = one->next)
      ls_json_out_node (w, NULL, one);
    ls_json_out_end_array (w);
  }
}
