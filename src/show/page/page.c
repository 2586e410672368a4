#include "show/page/page.h"

#include <string.h>

#include <page_assets.h>

#include "data/text/json_out.h"
#include "data/text/write_file.h"
#include "show/draw/palette.h"

typedef struct {
  const char *name; /* static */
  char *text;
  bool is_packed;
} Part;

struct LsPage {
  const char *kind; /* static */
  char *title, *subtitle, *notes;
  GArray *parts; /* Part */
};

static void
part_clear (gpointer part)
{
  g_free (((Part *) part)->text);
}

LsPage *
ls_page_new (const char *kind)
{
  LsPage *p = g_new0 (LsPage, 1);
  p->kind = kind;
  p->parts = g_array_new (FALSE, FALSE, sizeof (Part));
  g_array_set_clear_func (p->parts, part_clear);
  return p;
}

void
ls_page_free (LsPage *p)
{
  if (!p)
    return;
  g_free (p->title);
  g_free (p->subtitle);
  g_free (p->notes);
  g_array_unref (p->parts);
  g_free (p);
}

void
ls_page_set_title (LsPage *p, const char *title, const char *subtitle)
{
  g_free (p->title);
  g_free (p->subtitle);
  p->title = g_strdup (title);
  p->subtitle = g_strdup (subtitle);
}

void
ls_page_set_notes (LsPage *p, const char *notes)
{
  g_free (p->notes);
  p->notes = g_strdup (notes);
}

void
ls_page_take (LsPage *p, const char *name, char *json)
{
  const Part part = { name, json, false };
  g_array_append_val (p->parts, part);
}

void
ls_page_take_packed (LsPage *p, const char *name, char *json)
{
  g_autoptr (GByteArray) packed = ls_gzip (json, strlen (json));
  const Part part = { name, g_base64_encode (packed->data, packed->len), true };
  g_array_append_val (p->parts, part);
  g_free (json);
}

/* --- the file ---------------------------------------------------------------------------------------- */

static void
append_json (GString *out, const char *json)
{
  for (; *json; json++)
    switch (*json) {
    case '<':
      g_string_append (out, "\\u003c");
      break;
    case '>':
      g_string_append (out, "\\u003e");
      break;
    case '&':
      g_string_append (out, "\\u0026");
      break;
    default:
      g_string_append_c (out, *json);
    }
}

static void
append_part (GString *out, const char *name, const char *text, bool is_packed)
{
  g_string_append_printf (out, "<script type=\"%s\" id=\"data-%s\">",
                          is_packed ? "text/plain" : "application/json", name);
  append_json (out, text);
  g_string_append (out, "</script>\n");
}

#include "show/page_keys.h"

static char *
about (const LsPage *p, const char *version, const char *command)
{
  LsJsonOut w;
  g_auto (GStrv) lines = g_strsplit (p->notes ? p->notes : "", "\n", -1);
  ls_json_out_open_as (&w, "page");
  ls_keys_page (&w, p, version, command, lines);
  return ls_json_out_close (&w);
}

static const char *
asset (const char *name)
{
  g_autofree char *path = g_strconcat ("/lockstep/page/", name, NULL);
  g_autoptr (GBytes) bytes
      = g_resource_lookup_data (page_get_resource (), path, G_RESOURCE_LOOKUP_FLAGS_NONE, NULL);
  g_assert (bytes);
  return g_bytes_get_data (bytes, NULL); /* it lies in the program, with a NUL at its end */
}

static void
append_scripts (GString *out)
{
  static const char *const names[] = { "page.js",     "charts.js",     "timeline.js",    "timeline_draw.js",
                                       "view_run.js", "view_sweep.js", "view_others.js", "start.js" };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    g_string_append (out, asset (names[i]));
}

/* page.html has two places to fill. */
static void
append_head (const LsPage *p, const char *command, GString *out)
{
  g_autofree char *title = g_markup_escape_text (p->title ? p->title : command, -1);
  g_auto (GStrv) pieces = g_strsplit (asset ("page.html"), "@@", 3);
  g_assert (g_strv_length (pieces) == 3);
  g_string_append (out, pieces[0]);
  g_string_append (out, title);
  g_string_append (out, pieces[1]);
  g_autofree char *palette = ls_palette_to_css ();
  g_string_append (out, palette);
  g_string_append (out, asset ("page.css"));
  g_string_append (out, pieces[2]);
}

char *
ls_page_format (const LsPage *p, const char *version, const char *command)
{
  GString *out = g_string_new (NULL);
  g_autofree char *head = about (p, version, command);
  append_head (p, command, out);
  append_part (out, "about", head, false);
  for (guint i = 0; i < p->parts->len; i++) {
    const Part *part = &g_array_index (p->parts, Part, i);
    append_part (out, part->name, part->text, part->is_packed);
  }
  g_string_append (out, "<script>\n\"use strict\";\n");
  append_scripts (out);
  g_string_append (out, "</script>\n</body>\n</html>\n");
  return g_string_free (out, FALSE);
}
