/* show/draw/palette.c — the colours of all pictures and pages, by what they stand for.
 *
 * Those of work, lost time, memory and series are Paul Tol's, "Colour schemes", SRON/EPS/TN/09-002, "bright",
 * "vibrant" and "muted", those of parts of machines his "light": people with impaired colour vision tell them
 * apart. Most serve on a light ground and on a dark one. */
#include "show/draw/drawing.h"

#include <math.h>
#include <string.h>

#define BOTH(name, color)                                                                                    \
  {                                                                                                          \
    name, color, color                                                                                       \
  }

static const LsPaint paints[] = {
  { "ground", 0xffffff, 0x14181c },
  { "raised", 0xf6f7f8, 0x1d2329 },
  { "line", 0xd5d9dd, 0x38414a },
  { "text", 0x1c2126, 0xe6e9ec },
  { "quiet", 0x5a646e, 0x9aa6b1 },
  { "accent", 0x004488, 0x7fb3e6 },
  { "good", 0x00796b, 0x4db6a6 },
  { "bad", 0xb3261e, 0xf2867e },
  { "idle", 0xeceef0, 0x262d34 },
  { "edge", 0x666666, 0x8a949e },
  BOTH ("black", 0x111111),
  BOTH ("white", 0xffffff),
  /* work: I of split backwards, W alone */
  BOTH ("forward", 0x4477aa),
  BOTH ("backward", 0xddaa33),
  BOTH ("input", 0xeedd88),
  BOTH ("weight", 0x009988),
  BOTH ("recompute", 0x66ccee),
  BOTH ("optimizer", 0x777777),
  BOTH ("slowdown", 0xbbbb44),
  BOTH ("micro-batch", 0x9fb8cf),
  /* communication, and what else a rank did not compute for */
  BOTH ("tp", 0xee6677),
  BOTH ("dp", 0xee7733),
  BOTH ("pp", 0xaa3377),
  BOTH ("cp", 0x228833),
  BOTH ("ep", 0xee3377),
  BOTH ("copy", 0xaa4499),
  { "bubble", 0xc3c9cf, 0x56616c },
  { "skew", 0x8d99a5, 0x8d99a5 },
  BOTH ("host", 0x5a4fcf),
  { "other", 0x444444, 0xb0b8c0 },
  /* memory */
  BOTH ("parameters", 0x4477aa),
  BOTH ("gradients", 0x66ccee),
  BOTH ("optimizer-states", 0x228833),
  BOTH ("activations", 0xccbb44),
  BOTH ("unsharded", 0xee6677),
  BOTH ("comm-buffers", 0xaa3377),
  { "workspace", 0xbbbbbb, 0x8a949e },
  /* parts of machines */
  BOTH ("gpu", 0xbbcc33),
  BOTH ("nvswitch", 0x44bb99),
  BOTH ("pcie-switch", 0xeedd88),
  BOTH ("cpu", 0xee8866),
  BOTH ("cpu-memory", 0xffaabb),
  BOTH ("drive", 0xdddddd),
  BOTH ("nic", 0x77aadd),
  BOTH ("switch", 0x99ddff),
  { "node", 0xeeeeee, 0x2a323a },
  /* links: "bright", and what is quieter */
  BOTH ("link-nvlink", 0x228833),
  BOTH ("link-c2c", 0x44bb99),
  BOTH ("link-pcie", 0x999999),
  BOTH ("link-cpu", 0xee6677),
  BOTH ("link-memory", 0xaa3377),
  BOTH ("link-drive", 0xbbbbbb),
  BOTH ("link-nic", 0x4477aa),
  BOTH ("link-fabric", 0x66aacc),
  { "link-many", 0xb8d4e0, 0x3d5866 },
  { "link-back", 0x99bb99, 0x5c7a5c },
  /* from idle to full */
  { "use-0", 0xbbbbbb, 0x4d5862 },
  BOTH ("use-1", 0x88ccee),
  BOTH ("use-2", 0x44aa99),
  BOTH ("use-3", 0xddaa33),
  BOTH ("use-4", 0xee7733),
  BOTH ("use-5", 0xcc3311),
  /* "muted", whose sand, too pale for points, is the orange of "vibrant" */
  { "series-0", 0x332288, 0x8f7fe0 },
  BOTH ("series-1", 0xcc6677),
  { "series-2", 0x117733, 0x3fa966 },
  BOTH ("series-3", 0xee7733),
  BOTH ("series-4", 0x88ccee),
  { "series-5", 0x882255, 0xc45c92 },
  BOTH ("series-6", 0x44aa99),
  BOTH ("series-7", 0x999933),
  BOTH ("series-8", 0xaa4499),
};

const LsPaint *
ls_palette_find (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (paints); i++)
    if (strcmp (paints[i].name, name) == 0)
      return &paints[i];
  return NULL;
}

const LsPaint *
ls_palette_series (guint i)
{
  return &paints[G_N_ELEMENTS (paints) - LS_N_SERIES_PAINTS + i % LS_N_SERIES_PAINTS];
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
ls_palette_tint (guint32 color, double share)
{
  guint32 out = 0;
  for (int shift = 0; shift <= 16; shift += 8)
    out |= (guint32) (255 - (255 - (double) ((color >> shift) & 255)) * share + 0.5) << shift;
  return out;
}

char *
ls_palette_to_css (void)
{
  GString *out = g_string_new (":root{color-scheme:light dark;");
  for (guint i = 0; i < G_N_ELEMENTS (paints); i++)
    g_string_append_printf (out, "--%s:#%06x;", paints[i].name, paints[i].light);
  g_string_append (out, "}\n@media (prefers-color-scheme:dark){:root{");
  for (guint i = 0; i < G_N_ELEMENTS (paints); i++)
    if (paints[i].dark != paints[i].light)
      g_string_append_printf (out, "--%s:#%06x;", paints[i].name, paints[i].dark);
  g_string_append (out, "}}\n");
  return g_string_free (out, FALSE);
}
