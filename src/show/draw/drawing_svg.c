/* A drawing as SVG. */
#include <math.h>
#include <string.h>

#include "show/draw/drawing.h"
#include "show/draw/palette.h"

#define RADIUS 4.0 /* of corners, pixels */
#define SIZE   11  /* of words that say no other */

/* In the C locale, with two decimals, of which zeros at the end are left out. */
static char *
number (double value)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  g_ascii_formatd (text, sizeof text, "%.2f", value);
  gsize n = strlen (text);
  while (text[n - 1] == '0')
    text[--n] = '\0';
  if (text[n - 1] == '.')
    text[n - 1] = '\0';
  return g_strdup (strcmp (text, "-0") == 0 ? "0" : text);
}

/* What XML does not have, control characters and U+FFFE and U+FFFF, become spaces. */
static char *
escaped (const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  g_autoptr (GString) kept = g_string_new (NULL);
  for (const char *c = valid; *c; c = g_utf8_next_char (c)) {
    gunichar letter = g_utf8_get_char (c);
    bool is_in_xml = letter == '\n' || (letter >= ' ' && letter != 0xfffe && letter != 0xffff);
    g_string_append_unichar (kept, is_in_xml ? letter : ' ');
  }
  return g_markup_escape_text (kept->str, -1);
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
compare_paints (gconstpointer a, gconstpointer b)
{
  return strcmp ((*(const LsPaint *const *) a)->name, (*(const LsPaint *const *) b)->name);
}

/* LsPaint of these names, in their order. */
static GPtrArray *
sorted_paints (GHashTable *names)
{
  GPtrArray *paints = g_ptr_array_new ();
  GHashTableIter iter;
  gpointer name;
  g_hash_table_iter_init (&iter, names);
  while (g_hash_table_iter_next (&iter, &name, NULL))
    g_ptr_array_add (paints, (gpointer) ls_palette_find (name));
  g_ptr_array_sort (paints, compare_paints);
  return paints;
}

#include "show/drawing_svg_text.h"
