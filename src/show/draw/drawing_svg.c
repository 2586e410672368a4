/* A drawing as SVG, with a style sheet of the paints that it uses. */
#include <math.h>
#include <string.h>

#include "show/draw/drawing.h"
#include "show/draw/palette.h"

#define RADIUS 4.0 /* of corners, pixels */
#define SIZE   11  /* of words that say no other */

/* In the C locale, with two decimals, of which zeros at the end are left out. */
static void
append_value (GString *out, double value)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  g_ascii_formatd (text, sizeof text, "%.2f", value);
  gsize n = strlen (text);
  while (text[n - 1] == '0')
    text[--n] = '\0';
  if (text[n - 1] == '.')
    text[n - 1] = '\0';
  g_string_append (out, strcmp (text, "-0") == 0 ? "0" : text);
}

static void
append_number (GString *out, const char *name, double value)
{
  g_string_append_printf (out, " %s=\"", name);
  append_value (out, value);
  g_string_append_c (out, '"');
}

/* What XML does not have, control characters and U+FFFE and U+FFFF, become spaces. */
static void
append_escaped (GString *out, const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  g_autoptr (GString) kept = g_string_new (NULL);
  for (const char *c = valid; *c; c = g_utf8_next_char (c)) {
    gunichar letter = g_utf8_get_char (c);
    bool is_in_xml = letter == '\n' || (letter >= ' ' && letter != 0xfffe && letter != 0xffff);
    g_string_append_unichar (kept, is_in_xml ? letter : ' ');
  }
  g_autofree char *escaped = g_markup_escape_text (kept->str, -1);
  g_string_append (out, escaped);
}

/* --- the style sheet --------------------------------------------------------------------------------- */

typedef struct {
  GHashTable *fills, *strokes; /* names, static */
} Used;

static Used
used_of (const LsDrawing *d)
{
  Used used = { g_hash_table_new (g_str_hash, g_str_equal), g_hash_table_new (g_str_hash, g_str_equal) };
  g_hash_table_add (used.fills, "ground");
  for (int layer = 0; layer < LS_N_LAYERS; layer++)
    for (guint i = 0; i < d->layers[layer]->len; i++) {
      const LsDrawnItem *item = &g_array_index (d->layers[layer], LsDrawnItem, i);
      g_hash_table_add (item->kind == LS_DRAWN_LINE ? used.strokes : used.fills, (gpointer) item->paint);
      if (item->has_edge)
        g_hash_table_add (used.strokes, "edge");
    }
  for (guint i = 0; i < d->words->len; i++)
    g_hash_table_add (used.fills, (gpointer) g_array_index (d->words, LsDrawnWord, i).paint);
  return used;
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (a, b);
}

static void
append_rules (GString *out, GHashTable *names, const char *before, const char *property, bool is_dark)
{
  GList *sorted = g_list_sort (g_hash_table_get_keys (names), compare_names);
  for (const GList *name = sorted; name; name = name->next) {
    const LsPaint *paint = ls_palette_find (name->data);
    if (!is_dark || paint->dark != paint->light)
      g_string_append_printf (out, "%s%s{%s:#%06x}", before, paint->name, property,
                              is_dark ? paint->dark : paint->light);
  }
  g_list_free (sorted);
}

/* "l": what is drawn as a line is not filled; "e": what has an edge. */
static void
append_style (GString *out, const LsDrawing *d)
{
  Used used = used_of (d);
  g_string_append (out, "<style>text{font-family:system-ui,sans-serif}");
  append_rules (out, used.fills, ".", "fill", false);
  append_rules (out, used.strokes, ".l.", "stroke", false);
  g_string_append (out, ".l{fill:none;stroke-linejoin:round}");
  if (g_hash_table_contains (used.strokes, "edge"))
    g_string_append_printf (out, ".e{stroke:#%06x}", ls_palette_find ("edge")->light);
  g_string_append (out, "@media(prefers-color-scheme:dark){");
  append_rules (out, used.fills, ".", "fill", true);
  append_rules (out, used.strokes, ".l.", "stroke", true);
  g_string_append_printf (out, ".e{stroke:#%06x}.l{fill:none}}</style>\n", ls_palette_find ("edge")->dark);
  g_hash_table_unref (used.fills);
  g_hash_table_unref (used.strokes);
}

/* --- what is drawn ----------------------------------------------------------------------------------- */

static void
append_end (GString *out, const char *element, const char *tip)
{
  if (!tip) {
    g_string_append (out, "/>\n");
    return;
  }
  g_string_append (out, "><title>");
  append_escaped (out, tip);
  g_string_append_printf (out, "</title></%s>\n", element);
}

static void
append_box (GString *out, const LsDrawnItem *b)
{
  g_string_append_printf (out, "<rect class=\"%s%s\"", b->paint, b->has_edge ? " e" : "");
  append_number (out, "x", b->x);
  append_number (out, "y", b->y);
  append_number (out, "width", b->width);
  append_number (out, "height", b->height);
  if (b->has_edge)
    append_number (out, "rx", fmin (RADIUS, fmin (b->width, b->height) / 3));
  if (b->tint < 1)
    g_string_append_printf (out, " style=\"fill:#%06x\"",
                            ls_palette_tint (ls_palette_find (b->paint)->light, b->tint));
  if (b->opacity < 1)
    append_number (out, "fill-opacity", b->opacity);
  append_end (out, "rect", b->tip);
}

static void
append_points (GString *out, const LsDrawing *d, const LsDrawnItem *item)
{
  g_string_append (out, " points=\"");
  for (guint i = 0; i < item->n_points; i++) {
    const LsXY *p = &g_array_index (d->points, LsXY, item->first_point + i);
    if (i > 0)
      g_string_append_c (out, ' ');
    append_value (out, p->x);
    g_string_append_c (out, ',');
    append_value (out, p->y);
  }
  g_string_append_c (out, '"');
}

static void
append_item (GString *out, const LsDrawing *d, const LsDrawnItem *item)
{
  if (item->kind == LS_DRAWN_BOX) {
    append_box (out, item);
    return;
  }
  const char *element = item->kind == LS_DRAWN_LINE ? "polyline" : "polygon";
  g_string_append_printf (out, "<%s class=\"%s%s\"", element, item->kind == LS_DRAWN_LINE ? "l " : "",
                          item->paint);
  append_points (out, d, item);
  if (item->kind == LS_DRAWN_LINE && item->width != 1)
    append_number (out, "stroke-width", item->width);
  if (item->is_dashed)
    g_string_append (out, " stroke-dasharray=\"6 4\"");
  append_end (out, element, item->tip);
}

/* Words do not take the pointer from what is below them. */
static void
append_word (GString *out, const LsDrawnWord *w)
{
  static const char *const anchors[] = { "", " text-anchor=\"middle\"", " text-anchor=\"end\"" };
  g_string_append_printf (out, "<text class=\"%s\"%s", w->paint, anchors[w->align]);
  append_number (out, "x", w->x);
  append_number (out, "y", w->y + 0.35 * w->size);
  if (w->size != SIZE)
    append_number (out, "font-size", w->size);
  g_string_append_c (out, '>');
  append_escaped (out, w->text);
  g_string_append (out, "</text>\n");
}

char *
ls_drawing_to_svg (const LsDrawing *d)
{
  GString *out = g_string_new ("<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\"");
  int width = (int) ceil (d->width), height = (int) ceil (d->height);
  g_string_append_printf (out, " width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" font-size=\"%d\">\n<title>",
                          width, height, width, height, SIZE);
  append_escaped (out, d->title);
  g_string_append (out, "</title>\n");
  append_style (out, d);
  g_string_append_printf (out, "<rect class=\"ground\" width=\"%d\" height=\"%d\"/>\n", width, height);
  for (int layer = 0; layer < LS_N_LAYERS; layer++)
    for (guint i = 0; i < d->layers[layer]->len; i++)
      append_item (out, d, &g_array_index (d->layers[layer], LsDrawnItem, i));
  g_string_append (out, "<g pointer-events=\"none\">\n");
  for (guint i = 0; i < d->words->len; i++)
    append_word (out, &g_array_index (d->words, LsDrawnWord, i));
  g_string_append (out, "</g>\n</svg>\n");
  return g_string_free (out, FALSE);
}
