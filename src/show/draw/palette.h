/* show/draw/palette.h — the colours of all pictures and pages, by what they stand for.
 *
 * Those of work, lost time, memory and series are Paul Tol's, "Colour schemes", SRON/EPS/TN/09-002, "bright",
 * "vibrant" and "muted", those of parts of machines his "light": people with impaired colour vision tell them
 * apart. Most serve on a light ground and on a dark one. */
#ifndef LS_SHOW_DRAW_PALETTE_H
#define LS_SHOW_DRAW_PALETTE_H

#include <glib.h>
#include <stdbool.h>

/* 0xrrggbb. */
typedef struct {
  const char *name; /* "forward": of classes in SVG and of variables in CSS */
  guint32 light, dark;
} LsPaint;

#define LS_N_SERIES_PAINTS 9

/* NULL: none of that name. */
const LsPaint *ls_palette_find (const char *name);
/* Of the i-th of things that have no colour of their own; they repeat. */
const LsPaint *ls_palette_series (guint i);
/* The name of the paint that is read best on a colour: black or white. */
const char *ls_palette_ink (guint32 color);
/* `share` of a colour, the rest white. */
guint32 ls_palette_tint (guint32 color, double share);
/* A style sheet with a variable for each, newly allocated: ":root{--forward:#4477aa;...}". */
char *ls_palette_to_css (void);

#endif
