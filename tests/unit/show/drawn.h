/* What a drawing has as SVG, for tests of what draws: boxes, words, tips, points of lines and areas. */
#ifndef LS_TEST_DRAWN_H
#define LS_TEST_DRAWN_H

#include <string.h>

#include "ls_test.h"
#include "show/draw/drawing.h"

typedef struct {
  double x, y, size;
  char align; /* 's', 'm', 'e' */
  char *text;
} Text;

/* What was drawn. */
typedef struct {
  guint n_boxes;
  GString *words;    /* "|forward|0|..."                  */
  GString *tips;     /* the same                          */
  GArray *texts;     /* Text                              */
  GPtrArray *points; /* char *: "polygon activations 1,2 3,4" */
  double right_end;  /* of any box but the ground         */
  double width, height;
} Drawn;

static inline void
start (GMarkupParseContext *c, const char *element, const char **names, const char **values, gpointer data,
       GError **error)
{
  Drawn *d = data;
  const char *class = "", *anchor = "start", *points = NULL;
  double x = 0, y = 0, width = 0, size = 11;
  for (; *names; names++, values++) {
    class = g_str_equal (*names, "class") ? *values : class;
    anchor = g_str_equal (*names, "text-anchor") ? *values : anchor;
    points = g_str_equal (*names, "points") ? *values : points;
    x = g_str_equal (*names, "x") ? g_ascii_strtod (*values, NULL) : x;
    y = g_str_equal (*names, "y") ? g_ascii_strtod (*values, NULL) : y;
    size = g_str_equal (*names, "font-size") ? g_ascii_strtod (*values, NULL) : size;
    width = g_str_equal (*names, "width") ? g_ascii_strtod (*values, NULL) : width;
    if (g_str_equal (element, "svg") && g_str_equal (*names, "height"))
      d->height = g_ascii_strtod (*values, NULL);
  }
  if (g_str_equal (element, "svg"))
    d->width = width;
  if (g_str_equal (element, "rect") && !g_str_equal (class, "ground") && !g_str_equal (class, "idle")) {
    d->n_boxes++;
    d->right_end = MAX (d->right_end, x + width);
  }
  const Text text = { x, y, size, *anchor, NULL };
  if (g_str_equal (element, "text"))
    g_array_append_val (d->texts, text);
  if (points)
    g_ptr_array_add (d->points, g_strdup_printf ("%s %s %s", element, class, points));
}

static inline void
text (GMarkupParseContext *c, const char *words, gsize n, gpointer data, GError **error)
{
  Drawn *d = data;
  const char *element = g_markup_parse_context_get_element (c);
  if (g_str_equal (element, "title"))
    g_string_append_printf (d->tips, "|%.*s", (int) n, words);
  if (!g_str_equal (element, "text"))
    return;
  g_string_append_printf (d->words, "|%.*s", (int) n, words);
  g_array_index (d->texts, Text, d->texts->len - 1).text = g_strndup (words, n);
}

static inline void
text_clear (gpointer data)
{
  g_free (((Text *) data)->text);
}

static inline Drawn
drawn_of (const char *svg)
{
  static const GMarkupParser parser = { start, NULL, text, NULL, NULL };
  Drawn d = { .words = g_string_new (NULL),
              .tips = g_string_new (NULL),
              .texts = g_array_new (FALSE, FALSE, sizeof (Text)),
              .points = g_ptr_array_new_with_free_func (g_free) };
  g_array_set_clear_func (d.texts, text_clear);
  g_autoptr (GError) error = NULL;
  GMarkupParseContext *c = g_markup_parse_context_new (&parser, 0, &d, NULL);
  LS_CHECK (g_markup_parse_context_parse (c, svg, (gssize) strlen (svg), &error));
  LS_CHECK (g_markup_parse_context_end_parse (c, &error));
  LS_CHECK_NO_ERROR (error);
  g_markup_parse_context_free (c);
  g_string_append_c (d.words, '|');
  return d;
}

static inline void
drawn_clear (Drawn *d)
{
  g_string_free (d->words, TRUE);
  g_string_free (d->tips, TRUE);
  g_array_unref (d->texts);
  g_ptr_array_unref (d->points);
}

/* Frees it. */
static inline Drawn
drawn_as_svg (LsDrawing *drawing)
{
  g_autofree char *svg = ls_drawing_to_svg (drawing);
  ls_drawing_free (drawing);
  return drawn_of (svg);
}

static inline double
left_of (const Text *t)
{
  double width = ls_text_width (t->text, t->size);
  return t->align == 's' ? t->x : t->align == 'm' ? t->x - width / 2 : t->x - width;
}

/* Words of a line begin behind the end of those before, and in the picture. */
static inline void
check_words_apart (const Drawn *d)
{
  for (guint i = 0; i < d->texts->len; i++) {
    const Text *a = &g_array_index (d->texts, Text, i);
    LS_CHECK (a->y > 0 && a->y < d->height && a->x >= 0 && a->x <= d->width);
    for (guint k = 0; k < d->texts->len; k++) {
      const Text *b = &g_array_index (d->texts, Text, k);
      if (k != i && ABS (a->y - b->y) < 8 && left_of (a) < left_of (b))
        LS_CHECK (left_of (a) + ls_text_width (a->text, a->size) <= left_of (b) + 1);
    }
  }
}

static inline guint
n_of (const char *text, const char *part)
{
  guint n = 0;
  for (const char *at = text; (at = strstr (at, part)); at += strlen (part))
    n++;
  return n;
}

static inline guint
n_points_of (const Drawn *d, const char *start_of_it)
{
  guint n = 0;
  for (guint i = 0; i < d->points->len; i++)
    n += g_str_has_prefix (d->points->pdata[i], start_of_it);
  return n;
}

#endif
