/* Pins that a box of a timeline is work: gaps between kernels stay empty or make it lighter, and what is done for
 * an exchange of gradients is no weight gradient. */
#include "ls_test.h"
#include "pipeline.h"
#include "show/draw/pictures.h"
#include "show/run/timeline_boxes.h"

/* Forwards of 10 ms and backwards of 20 in two kernels each, with an all-reduce of 1 ms between. */
static const PipelineShape shape = { 2, 1, 3, 10 * LS_MS, 20 * LS_MS, 0, LS_MS, 2 * LS_MS, LS_MS, 3 * LS_MS };

static LsTime
work_of (const GArray *boxes)
{
  LsTime sum = 0;
  for (guint i = 0; i < boxes->len; i++)
    sum += g_array_index (boxes, LsTimelineBox, i).work;
  return sum;
}

static LsTime
extent_of (const GArray *boxes)
{
  LsTime sum = 0;
  for (guint i = 0; i < boxes->len; i++)
    sum += g_array_index (boxes, LsTimelineBox, i).to - g_array_index (boxes, LsTimelineBox, i).from;
  return sum;
}

/* Adam takes 1 ms. */
static void
gaps_split_a_box_or_count_as_no_work (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  const LsTime kernels = 3 * 30 * LS_MS + LS_MS, gaps = 6 * LS_MS;
  g_autoptr (GArray) whole = ls_timeline_boxes (&p.t, 0, LS_TIME_NEVER),
                     fine = ls_timeline_boxes (&p.t, 0, 1);
  LS_CHECK_INT (whole->len, ==, 7);
  LS_CHECK_INT (fine->len, ==, 13);
  LS_CHECK_INT (work_of (whole), ==, kernels);
  LS_CHECK_INT (work_of (fine), ==, kernels);
  LS_CHECK_INT (extent_of (whole), ==, kernels + gaps);
  LS_CHECK_INT (extent_of (fine), ==, kernels);
  pipeline_clear (&p);
}

static void
an_exchange_of_gradients_is_no_weight_gradient (void)
{
  static const struct {
    LsTag first, second;
    const char *kind;
  } cases[] = { { LS_TAG_SYNC, LS_TAG_SYNC, "gradient sync" },
                { LS_TAG_I, LS_TAG_SYNC, "backward" },
                { LS_TAG_SYNC, LS_TAG_B, "backward" },
                { LS_TAG_W, LS_TAG_W, "weight gradient" } };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    Pipeline p;
    pipeline_init (&p, "1f1b", shape);
    for (int segment = 4; segment < PIPELINE_FINISH; segment++) {
      p.ops[segment][PIPELINE_FIRST].tag = cases[i].first;
      p.ops[segment][PIPELINE_SECOND].tag = cases[i].second;
    }
    g_autoptr (GArray) boxes = ls_timeline_boxes (&p.t, 0, LS_TIME_NEVER);
    LS_CHECK_STR (ls_box_style (g_array_index (boxes, LsTimelineBox, 2).kind)->name, cases[i].kind);
    pipeline_clear (&p);
  }
}

/* --- what is drawn --- */

/* Of boxes of passes and kernels, weighed by their opacity. */
static void
add_area (GMarkupParseContext *c, const char *element, const char **names, const char **values, gpointer data,
          GError **error)
{
  static const char *const paints[] = { "forward", "backward", "weight", "optimizer", NULL };
  double width = 0, opacity = 1, *sum = data;
  bool is_work = false;
  for (; *names; names++, values++) {
    is_work |= g_str_equal (*names, "class") && g_strv_contains (paints, *values);
    width = g_str_equal (*names, "width") ? g_ascii_strtod (*values, NULL) : width;
    opacity = g_str_equal (*names, "fill-opacity") ? g_ascii_strtod (*values, NULL) : opacity;
  }
  if (is_work && g_str_equal (element, "rect") && width != 12) /* 12: of the legend */
    *sum += width * opacity;
}

/* Pixels that are filled in the bar of a rank and its row "compute", by width of the picture. */
static double
filled (const LsTimeline *t, guint width)
{
  g_autoptr (GArray) ranks = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  const uint32_t rank = 0;
  g_array_append_val (ranks, rank);
  const LsTimelinePicture picture
      = { .title = "x", .width = width, .rows = LS_TIMELINE_STREAMS, .ranks = ranks };
  g_autoptr (LsDrawing) drawing = ls_draw_timeline (t, &picture);
  g_autofree char *svg = ls_drawing_to_svg (drawing);
  const GMarkupParser parser = { .start_element = add_area };
  double sum = 0;
  g_autoptr (GMarkupParseContext) c = g_markup_parse_context_new (&parser, 0, &sum, NULL);
  LS_CHECK (g_markup_parse_context_parse (c, svg, -1, NULL));
  return sum;
}

/* Two rows, each with 91 ms of kernels; boxes leave a line of 0.6 pixels to the next. */
static void
what_is_filled_is_the_time_of_kernels (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  double window = ls_time_to_s (p.t.window_end - p.t.window_start);
  for (guint width = 400; width <= 6400; width *= 4) {
    double scale = (width - 158) / window;
    LS_CHECK_DOUBLE (filled (&p.t, width), <, 2 * 0.091 * scale + 1);
    LS_CHECK_DOUBLE (filled (&p.t, width), >, 2 * 0.091 * scale - 26 * 0.6 - 1);
  }
  pipeline_clear (&p);
}

LS_TEST_SUITE (LS_TEST (gaps_split_a_box_or_count_as_no_work),
               LS_TEST (an_exchange_of_gradients_is_no_weight_gradient),
               LS_TEST (what_is_filled_is_the_time_of_kernels))
