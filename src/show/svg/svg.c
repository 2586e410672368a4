#include "show/svg/svg.h"

#include <string.h>

struct LsSvg {
  GString *out;
};

static const char style[]
    = "text{font:11px system-ui,sans-serif;fill:#1c2126}.title{font-size:16px;font-weight:600}"
      ".quiet{fill:#5a646e}.name{font-size:10px;fill:#fff;pointer-events:none}.dark-name{font-size:10px;"
      "fill:#111;pointer-events:none}.page{fill:#fff}.idle{fill:#eceef0}line{stroke:#d5d9dd}"
      ".forward{fill:#4477aa}.backward{fill:#ddaa33}.weight{fill:#009988}.recompute{fill:#66ccee}"
      ".optimizer{fill:#777}.tp{fill:#ee6677}.dp{fill:#ee7733}.pp{fill:#aa3377}.cp{fill:#228833}"
      ".ep{fill:#ee3377}.copy{fill:#aa4499}.bubble{fill:#c3c9cf}.skew{fill:#8d99a5}.host{fill:#5a4fcf}"
      ".other{fill:#444}@media(prefers-color-scheme:dark){text{fill:#e6e9ec}.quiet{fill:#9aa6b1}"
      ".page{fill:#14181c}.idle{fill:#262d34}line{stroke:#38414a}}";

/* In the C locale, with two decimals, of which zeros at the end are left out. */
static void
append_number (GString *out, const char *name, double value)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  g_ascii_formatd (text, sizeof text, "%.2f", value);
  gsize n = strlen (text);
  while (text[n - 1] == '0')
    text[--n] = '\0';
  if (text[n - 1] == '.')
    text[n - 1] = '\0';
  g_string_append_printf (out, " %s=\"%s\"", name, text);
}

/* Control characters, which XML does not have, become spaces. */
static void
append_escaped (GString *out, const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  for (char *c = valid; *c; c++)
    if ((guchar) *c < ' ' && *c != '\n')
      *c = ' ';
  g_autofree char *escaped = g_markup_escape_text (valid, -1);
  g_string_append (out, escaped);
}

LsSvg *
ls_svg_new (double width, double height, const char *title)
{
  LsSvg *s = g_new (LsSvg, 1);
  s->out = g_string_new ("<svg xmlns=\"http://www.w3.org/2000/svg\"");
  append_number (s->out, "width", width);
  append_number (s->out, "height", height);
  g_string_append_printf (s->out, " viewBox=\"0 0 %d %d\">\n<title>", (int) width, (int) height);
  append_escaped (s->out, title);
  g_string_append_printf (s->out, "</title>\n<style>%s</style>\n", style);
  ls_svg_box (s, &(LsSvgBox) { .width = width, .height = height, .class = "page" });
  return s;
}

void
ls_svg_box (LsSvg *s, const LsSvgBox *b)
{
  g_string_append_printf (s->out, "<rect class=\"%s\"", b->class);
  append_number (s->out, "x", b->x);
  append_number (s->out, "y", b->y);
  append_number (s->out, "width", b->width);
  append_number (s->out, "height", b->height);
  if (b->opacity > 0 && b->opacity < 1)
    append_number (s->out, "fill-opacity", b->opacity);
  if (!b->tip) {
    g_string_append (s->out, "/>\n");
    return;
  }
  g_string_append (s->out, "><title>");
  append_escaped (s->out, b->tip);
  g_string_append (s->out, "</title></rect>\n");
}

void
ls_svg_line (LsSvg *s, double x0, double y0, double x1, double y1, const char *class)
{
  g_string_append_printf (s->out, "<line class=\"%s\"", class);
  append_number (s->out, "x1", x0);
  append_number (s->out, "y1", y0);
  append_number (s->out, "x2", x1);
  append_number (s->out, "y2", y1);
  g_string_append (s->out, "/>\n");
}

void
ls_svg_text (LsSvg *s, double x, double y, LsSvgAnchor anchor, const char *class, const char *text)
{
  static const char *const anchors[] = { "", " text-anchor=\"middle\"", " text-anchor=\"end\"" };
  g_string_append_printf (s->out, "<text class=\"%s\"%s", class, anchors[anchor]);
  append_number (s->out, "x", x);
  append_number (s->out, "y", y);
  g_string_append_c (s->out, '>');
  append_escaped (s->out, text);
  g_string_append (s->out, "</text>\n");
}

char *
ls_svg_finish (LsSvg *s)
{
  g_string_append (s->out, "</svg>\n");
  char *text = g_string_free (s->out, FALSE);
  g_free (s);
  return text;
}

double
ls_svg_text_width (const char *text, double size)
{
  return 0.57 * size * (double) g_utf8_strlen (text, -1);
}
