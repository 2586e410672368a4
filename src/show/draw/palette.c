/* show/draw/palette.c — the colours of all pictures and pages, by what they stand for.
 *
 * Those of work, lost time, memory and series are Paul Tol's, "Colour schemes", SRON/EPS/TN/09-002, "bright",
 * "vibrant" and "muted", those of parts of machines his "light": people with impaired colour vision tell them
 * apart. Most serve on a light ground and on a dark one. */
#include "show/draw/drawing.h"

#include <math.h>
#include <page_assets.h>
#include <stdio.h>
#include <string.h>

#include "base/handover.h"

/* Those of palette.txt, in its order; made once, then static. */
static const GArray *
all_paints (void)
{
  static GArray *all; /* LsPaint */
  static gsize is_made;
  if (!ls_once_enter (&is_made))
    return all;
  g_autoptr (GBytes) bytes
      = g_resource_lookup_data (page_get_resource (), "/lockstep/page/palette.txt", 0, NULL);
  g_auto (GStrv) lines = g_strsplit (g_bytes_get_data (bytes, NULL), "\n", -1);
  all = g_array_new (FALSE, FALSE, sizeof (LsPaint));
  for (char **line = lines; *line; line++) {
    char name[24] = "";
    guint light = 0, dark = 0;
    int n = **line == '#' ? 0 : sscanf (*line, "%23s %x %x", name, &light, &dark);
    const LsPaint paint = { g_intern_string (name), light, n == 3 ? dark : light };
    if (n >= 2)
      g_array_append_val (all, paint);
  }
  ls_once_leave (&is_made);
  return all;
}

const LsPaint *
ls_palette_find (const char *name)
{
  const GArray *all = all_paints ();
  for (guint i = 0; i < all->len; i++)
    if (strcmp (g_array_index (all, LsPaint, i).name, name) == 0)
      return &g_array_index (all, LsPaint, i);
  return NULL;
}

const LsPaint *
ls_palette_series (guint i)
{
  const GArray *all = all_paints (); /* of which these are the last */
  return &g_array_index (all, LsPaint, all->len - LS_N_SERIES_PAINTS + i % LS_N_SERIES_PAINTS);
}

/* Relative luminance: W3C, Web Content Accessibility Guidelines 2.1, with 2.2 for its curve. */
const char *
ls_palette_ink (guint32 color)
{
  static const double weights[] = { 0.2126, 0.7152, 0.0722 };
  double luminance = 0;
  for (int i = 0; i < 3; i++)
    luminance += weights[i] * pow (((color >> (16 - 8 * i)) & 255) / 255.0, 2.2);
  return luminance > 0.26 ? "black" : "white";
}

guint32
ls_palette_mix (guint32 a, guint32 b, double share)
{
  guint32 out = 0;
  for (int shift = 0; shift <= 16; shift += 8) {
    double x = (a >> shift) & 255, y = (b >> shift) & 255;
    out |= (guint32) (x + (y - x) * share + 0.5) << shift;
  }
  return out;
}

char *
ls_palette_to_css (void)
{
  const GArray *all = all_paints ();
  const LsPaint *paints = (const LsPaint *) (gpointer) all->data;
  GString *out = g_string_new (":root{color-scheme:light dark;");
  for (guint i = 0; i < all->len; i++)
    g_string_append_printf (out, "--%s:#%06x;", paints[i].name, paints[i].light);
  g_string_append (out, "}\n@media (prefers-color-scheme:dark){:root{");
  for (guint i = 0; i < all->len; i++)
    if (paints[i].dark != paints[i].light)
      g_string_append_printf (out, "--%s:#%06x;", paints[i].name, paints[i].dark);
  g_string_append (out, "}}\n");
  return g_string_free (out, FALSE);
}
