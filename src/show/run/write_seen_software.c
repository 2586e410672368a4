#include "show/run/write_run.h"

#include <lockstep/error.h>

static const LsSeenKey *
key_at (const LsSeenReport *r, guint i)
{
  return &g_array_index (r->keys, LsSeenKey, i);
}

void
ls_seen_report_append (const LsSeenReport *r, GString *out)
{
  g_string_append (out, "\nsoftware, as the trace shows it\n");
  for (guint i = 0; i < r->keys->len; i++)
    if (key_at (r, i)->value)
      g_string_append_printf (out, "  %s %s: %s\n", key_at (r, i)->key, key_at (r, i)->value,
                              key_at (r, i)->why);
  for (guint i = 0; i < r->keys->len; i++)
    if (!key_at (r, i)->value)
      g_string_append_printf (out, "  %s left: %s\n", key_at (r, i)->key, key_at (r, i)->why);
}

static void
write_defaults (const LsSeenReport *r, const char *key, LsJsonOut *w)
{
  ls_json_out_begin_object (w, key);
  for (guint i = 0; i < r->keys->len; i++)
    if (key_at (r, i)->value)
      ls_json_out_string (w, key_at (r, i)->key, key_at (r, i)->value);
  ls_json_out_end_object (w);
}

void
ls_seen_report_write (const LsSeenReport *r, LsJsonOut *w)
{
  ls_json_out_begin_object (w, "software");
  ls_json_out_string (w, "based_on", r->based_on);
  write_defaults (r, "defaults", w);
  ls_json_out_begin_object (w, "left");
  for (guint i = 0; i < r->keys->len; i++)
    if (!key_at (r, i)->value)
      ls_json_out_string (w, key_at (r, i)->key, key_at (r, i)->why);
  ls_json_out_end_object (w);
  ls_json_out_end_object (w);
}

/* ---- the file ---- */

static char *
source_of (const LsSeenReport *r)
{
  g_autofree char *profile = g_path_get_basename (r->profile);
  GString *s = g_string_new (NULL);
  g_string_append_printf (s, "lockstep calibrate --pytorch-trace: %s of %s%s%s", r->step, profile,
                          r->gpu ? " on " : "", r->gpu ? r->gpu : "");
  for (guint i = 0; i < r->keys->len; i++)
    g_string_append_printf (s, "; %s%s: %s", key_at (r, i)->key, key_at (r, i)->value ? "" : " left",
                            key_at (r, i)->why);
  return g_string_free (s, FALSE);
}

char *
ls_seen_report_file (const LsSeenReport *r, const char *name, GError **error)
{
  guint n = 0;
  for (guint i = 0; i < r->keys->len; i++)
    n += key_at (r, i)->value != NULL;
  if (n == 0) {
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT,
                 "%s: the trace shows nothing of its software that a file could hold", r->profile);
    return NULL;
  }
  g_autofree char *source = source_of (r);
  LsJsonOut w;
  ls_json_out_open_as (&w, "software");
  ls_json_out_string (&w, "name", name);
  ls_json_out_string (&w, "source", source);
  if (r->based_on)
    ls_json_out_string (&w, "based_on", r->based_on);
  ls_json_out_string (&w, "program", r->program);
  write_defaults (r, "defaults", &w);
  return ls_json_out_close (&w);
}
