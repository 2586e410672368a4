/* Pins the picture of a step as SVG: it is well-formed whatever the title, each pass is a box where its time says,
 * streams have rows of their own with named ops, a part of the step shows that part only, and narrow ops are
 * joined. */
#include "show/svg/svg_timeline.h"

#include <string.h>

#include "ls_test.h"
#include "pipeline.h"

static const PipelineShape shape = { 2, 1, 3, 10 * LS_MS, 20 * LS_MS, 0, LS_MS, 2 * LS_MS, LS_MS, 3 * LS_MS };

/* What was drawn. */
typedef struct {
  guint n_boxes, n_texts;
  GString *texts;   /* "|forward|0|..." */
  double right_end; /* of any box but the ground */
  char class[32];
} Drawn;

static void
start (GMarkupParseContext *c, const char *element, const char **names, const char **values, gpointer data,
       GError **error)
{
  Drawn *d = data;
  const char *class = "";
  double x = 0, width = 0;
  for (; *names; names++, values++) {
    class = g_str_equal (*names, "class") ? *values : class;
    x = g_str_equal (*names, "x") ? g_ascii_strtod (*values, NULL) : x;
    width = g_str_equal (*names, "width") ? g_ascii_strtod (*values, NULL) : width;
  }
  if (g_str_equal (element, "rect") && !g_str_equal (class, "page") && !g_str_equal (class, "idle")) {
    d->n_boxes++;
    d->right_end = MAX (d->right_end, x + width);
  }
  d->n_texts += g_str_equal (element, "text");
}

static void
text (GMarkupParseContext *c, const char *words, gsize n, gpointer data, GError **error)
{
  if (g_str_equal (g_markup_parse_context_get_element (c), "text"))
    g_string_append_printf (((Drawn *) data)->texts, "|%.*s", (int) n, words);
}

/* Free texts. */
static Drawn
drawn_of (const char *svg)
{
  static const GMarkupParser parser = { start, NULL, text, NULL, NULL };
  Drawn d = { .texts = g_string_new (NULL) };
  g_autoptr (GError) error = NULL;
  GMarkupParseContext *c = g_markup_parse_context_new (&parser, 0, &d, NULL);
  LS_CHECK (g_markup_parse_context_parse (c, svg, (gssize) strlen (svg), &error));
  LS_CHECK (g_markup_parse_context_end_parse (c, &error));
  LS_CHECK_NO_ERROR (error);
  g_markup_parse_context_free (c);
  g_string_append_c (d.texts, '|');
  return d;
}

static Drawn
draw (const LsTimelinePicture *picture)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  g_autofree char *svg = ls_svg_timeline (&p.t, picture);
  pipeline_clear (&p);
  return drawn_of (svg);
}

static void
hostile_titles_are_text (void)
{
  Drawn d = draw (&(LsTimelinePicture) { .title = "<script>\"'&]]>\x01\xff", .width = 800 });
  LS_CHECK (strstr (d.texts->str, "<script>\"'&]]> ") != NULL);
  g_string_free (d.texts, TRUE);
}

static void
streams_have_rows_of_their_own (void)
{
  Drawn ranks = draw (&(LsTimelinePicture) { .title = "t", .width = 1600 });
  Drawn streams = draw (&(LsTimelinePicture) { .title = "t", .width = 1600, .rows = LS_TIMELINE_STREAMS });
  LS_CHECK (strstr (ranks.texts->str, "|rank 0, stage 0|") && strstr (ranks.texts->str, "|rank 1, stage 1|"));
  LS_CHECK (!strstr (ranks.texts->str, "|compute|") && !strstr (ranks.texts->str, "|AR 0|"));
  LS_CHECK (strstr (streams.texts->str, "|compute|") && strstr (streams.texts->str, "|tp|"));
  LS_CHECK (strstr (streams.texts->str, "|F 0|") && strstr (streams.texts->str, "|B 2|"));
  LS_CHECK (streams.n_boxes > ranks.n_boxes);
  g_string_free (ranks.texts, TRUE);
  g_string_free (streams.texts, TRUE);
}

/* The first 8 ms are the first forward of rank 0, which fills the picture, and nothing of rank 1. */
static void
a_part_shows_that_part (void)
{
  g_autoptr (GArray) ranks = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_array_append_val (ranks, ((uint32_t[]) { 0 })[0]);
  Drawn d = draw (&(LsTimelinePicture) { .title = "t", .width = 1600, .to = 4 * LS_MS, .ranks = ranks });
  LS_CHECK (!strstr (d.texts->str, "rank 1"));
  LS_CHECK (strstr (d.texts->str, "of which 0 ps to 4.000 ms") != NULL);
  LS_CHECK_INT (d.n_boxes, ==, 2); /* the forward, and its colour in the legend */
  LS_CHECK (d.right_end > 1579 && d.right_end <= 1580.01);
  g_string_free (d.texts, TRUE);
}

static void
narrow_ops_are_joined (void)
{
  Drawn wide = draw (&(LsTimelinePicture) { .title = "t", .width = 20000, .rows = LS_TIMELINE_STREAMS });
  PipelineShape many = shape;
  many.n_micro_batches = 2000;
  Pipeline p;
  pipeline_init (&p, "gpipe", many);
  g_autofree char *svg = ls_svg_timeline (&p.t, &(LsTimelinePicture) { .title = "t", .width = 400 });
  Drawn narrow = drawn_of (svg);
  LS_CHECK (p.t.ranks[0].n > 2000);
  LS_CHECK (narrow.n_boxes < 3000);
  LS_CHECK (wide.n_boxes > 20);
  pipeline_clear (&p);
  g_string_free (wide.texts, TRUE);
  g_string_free (narrow.texts, TRUE);
}

LS_TEST_MAIN ("show/svg_timeline", LS_TEST (hostile_titles_are_text),
              LS_TEST (streams_have_rows_of_their_own), LS_TEST (a_part_shows_that_part),
              LS_TEST (narrow_ops_are_joined))
