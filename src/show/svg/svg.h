/* show/svg/svg.h — drawings of boxes, lines and words as SVG: every box may tell what it is (<title>),
 * classes have their colours from one style sheet, and a reader's dark mode is followed. Pixels from the top
 * left corner; what is added later lies above.
 *
 * Colours: Paul Tol, "Colour schemes", SRON/EPS/TN/09-002, "bright" and "vibrant", which people with impaired
 * colour vision tell apart.
 *
 * Reference. W3C, Scalable Vector Graphics 1.1, 2011. */
#ifndef LS_SHOW_SVG_SVG_H
#define LS_SHOW_SVG_SVG_H

#include <glib.h>

typedef struct LsSvg LsSvg;

typedef enum { LS_SVG_START, LS_SVG_MIDDLE, LS_SVG_END } LsSvgAnchor;

typedef struct {
  double x, y, width, height;
  const char *class; /* of the style sheet: "forward" */
  double opacity;    /* 0: 1                          */
  const char *tip;   /* NULL: none                    */
} LsSvgBox;

LsSvg *ls_svg_new (double width, double height, const char *title);
void ls_svg_box (LsSvg *svg, const LsSvgBox *box);
void ls_svg_line (LsSvg *svg, double x0, double y0, double x1, double y1, const char *class);
/* y: of the base line. */
void ls_svg_text (LsSvg *svg, double x, double y, LsSvgAnchor anchor, const char *class, const char *text);
/* Frees it; the file, newly allocated. */
char *ls_svg_finish (LsSvg *svg);

/* About how wide a text is; size of the letters in pixels. */
double ls_svg_text_width (const char *text, double size);

#endif
