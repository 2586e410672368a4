/* Pins drawings of boxes: SVG that is well-formed whatever the names, words that do not overprint each other;
 * of a step each pass as a box where its time says, rows for streams, a part of it; of memory areas on top of
 * each other, steps and narrow peaks; of schedules a box for each action, several on one scale. How gnuplot
 * draws: plot_timeline. */
#include "show/draw/pictures.h"

#include <string.h>

#include "ask/schedule.h"
#include "ls_test.h"
#include "pipeline.h"
#include "show/draw/axis.h"
#include "show/draw/palette.h"

static const PipelineShape shape = { 2, 1, 3, 10 * LS_MS, 20 * LS_MS, 0, LS_MS, 2 * LS_MS, LS_MS, 3 * LS_MS };

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

static void
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

static void
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

static void
text_clear (gpointer data)
{
  g_free (((Text *) data)->text);
}

static Drawn
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

static void
drawn_clear (Drawn *d)
{
  g_string_free (d->words, TRUE);
  g_string_free (d->tips, TRUE);
  g_array_unref (d->texts);
  g_ptr_array_unref (d->points);
}

/* Frees it. */
static Drawn
drawn_as_svg (LsDrawing *drawing)
{
  g_autofree char *svg = ls_drawing_to_svg (drawing);
  ls_drawing_free (drawing);
  return drawn_of (svg);
}

static Drawn
draw (const LsTimelinePicture *picture)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  Drawn d = drawn_as_svg (ls_draw_timeline (&p.t, picture));
  pipeline_clear (&p);
  return d;
}

static double
left_of (const Text *t)
{
  double width = ls_text_width (t->text, t->size);
  return t->align == 's' ? t->x : t->align == 'm' ? t->x - width / 2 : t->x - width;
}

/* Words of a line begin behind the end of those before, and in the picture. */
static void
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

static guint
n_of (const char *text, const char *part)
{
  guint n = 0;
  for (const char *at = text; (at = strstr (at, part)); at += strlen (part))
    n++;
  return n;
}

static void
hostile_titles_are_text (void)
{
  Drawn d = draw (&(LsTimelinePicture) { .title = "<script>\"'&]]>\x01\xff", .width = 800 });
  LS_CHECK (strstr (d.words->str, "<script>\"'&]]> ") != NULL);
  drawn_clear (&d);
}

static void
streams_have_rows_of_their_own (void)
{
  Drawn ranks = draw (&(LsTimelinePicture) { .title = "t", .width = 1600 });
  Drawn streams = draw (&(LsTimelinePicture) { .title = "t", .width = 1600, .rows = LS_TIMELINE_STREAMS });
  LS_CHECK (strstr (ranks.words->str, "|rank 0, stage 0|") && strstr (ranks.words->str, "|rank 1, stage 1|"));
  LS_CHECK (!strstr (ranks.words->str, "|compute|") && !strstr (ranks.words->str, "|AR 0|"));
  LS_CHECK (strstr (streams.words->str, "|compute|") && strstr (streams.words->str, "|tp|"));
  LS_CHECK (strstr (streams.words->str, "|F 0|") && strstr (streams.words->str, "|B 2|"));
  LS_CHECK (streams.n_boxes > ranks.n_boxes);
  drawn_clear (&ranks);
  drawn_clear (&streams);
}

/* The first 8 ms are the first forward of rank 0, which fills the picture, and nothing of rank 1. */
static void
a_part_shows_that_part (void)
{
  g_autoptr (GArray) ranks = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_array_append_val (ranks, ((uint32_t[]) { 0 })[0]);
  Drawn d = draw (&(LsTimelinePicture) { .title = "t", .width = 1600, .to = 4 * LS_MS, .ranks = ranks });
  LS_CHECK (!strstr (d.words->str, "rank 1"));
  LS_CHECK (strstr (d.words->str, "of which 0 ps to 4.000 ms") != NULL);
  LS_CHECK_INT (d.n_boxes, ==, 2); /* the forward, and its colour in the legend */
  LS_CHECK (d.right_end > 1579 && d.right_end <= 1580.01);
  drawn_clear (&d);
}

static void
narrow_ops_are_joined (void)
{
  Drawn wide = draw (&(LsTimelinePicture) { .title = "t", .width = 20000, .rows = LS_TIMELINE_STREAMS });
  PipelineShape many = shape;
  many.n_micro_batches = 2000;
  Pipeline p;
  pipeline_init (&p, "gpipe", many);
  Drawn narrow = drawn_as_svg (ls_draw_timeline (&p.t, &(LsTimelinePicture) { .title = "t", .width = 400 }));
  LS_CHECK (p.t.ranks[0].n > 2000);
  LS_CHECK (narrow.n_boxes < 3000);
  LS_CHECK (wide.n_boxes > 20);
  pipeline_clear (&p);
  drawn_clear (&wide);
  drawn_clear (&narrow);
}

/* Boxes too narrow for the number of their micro-batch have none. */
static void
numbers_stand_where_they_fit (void)
{
  static const PipelineShape narrow
      = { 2, 1, 3, 10 * LS_US, 20 * LS_US, 0, LS_US, 2 * LS_US, 1000 * LS_MS, 3 * LS_US };
  const PipelineShape *const shapes[] = { &shape, &narrow };
  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++) {
    Pipeline p;
    pipeline_init (&p, "1f1b", *shapes[i]);
    Drawn d = drawn_as_svg (ls_draw_timeline (&p.t, &(LsTimelinePicture) { .title = "t", .width = 1600 }));
    LS_CHECK ((strstr (d.words->str, "|2|2|") != NULL) == (i == 0));
    drawn_clear (&d);
    pipeline_clear (&p);
  }
}

static guint
n_points_of (const Drawn *d, const char *start_of_it)
{
  guint n = 0;
  for (guint i = 0; i < d->points->len; i++)
    n += g_str_has_prefix (d->points->pdata[i], start_of_it);
  return n;
}

/* Three micro-batches, to the second stage and back, and nothing unless it is asked for. Of streams also what
 * waits for what. */
static void
arrows_are_messages_and_waits (void)
{
  LsTimelinePicture picture = { .title = "t", .width = 1600 };
  Drawn none = draw (&picture);
  LS_CHECK_INT (n_points_of (&none, "polyline l text "), ==, 0);
  picture.has_arrows = true;
  Drawn ranks = draw (&picture);
  LS_CHECK_INT (n_points_of (&ranks, "polyline l text "), ==, 6);
  LS_CHECK (strstr (ranks.words->str, "arrows: 6 messages between these ranks, 0 ops") != NULL);
  LS_CHECK (strstr (ranks.tips->str, "|message of micro-batch 2, rank 0 to rank 1: 2.000 ms") != NULL);
  drawn_clear (&none);
  drawn_clear (&ranks);
}

static void
waits_go_from_stream_to_stream (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  guint n = 0;
  for (uint32_t rank = 0; rank < p.t.n_ranks; rank++)
    for (uint32_t i = 0; i < p.t.ranks[rank].n; i++) {
      const LsSpan *s = &p.t.ranks[rank].spans[i];
      const LsSpan *cause = s->cause == LS_SPAN_NONE ? NULL : &p.t.ranks[rank].spans[s->cause];
      n += cause && ls_span_op (&p.t, rank, s)->stream != ls_span_op (&p.t, rank, cause)->stream;
    }
  Drawn d = drawn_as_svg (ls_draw_timeline (
      &p.t,
      &(LsTimelinePicture) { .title = "t", .width = 1600, .rows = LS_TIMELINE_STREAMS, .has_arrows = true }));
  g_autofree char *told
      = g_strdup_printf ("6 messages between these ranks, %u ops that waited for another stream", n);
  LS_CHECK_INT (n, >, 6 + 12); /* a pass for its message, its collective for it, it for that */
  LS_CHECK (strstr (d.words->str, told) != NULL);
  LS_CHECK (strstr (d.tips->str, "|all-reduce waited for forward") != NULL);
  drawn_clear (&d);
  pipeline_clear (&p);
}

/* The first of two stages has two micro-batches under way, the second one. */
static void
micro_batches_under_way_have_lines (void)
{
  Drawn d = draw (&(LsTimelinePicture) { .title = "t", .width = 1600, .rows = LS_TIMELINE_MICRO_BATCHES });
  Drawn ranks = draw (&(LsTimelinePicture) { .title = "t", .width = 1600 });
  LS_CHECK_INT (n_of (d.tips->str, "|micro-batch 1 under way: "), ==, 2);
  LS_CHECK_NEAR (d.height - ranks.height, (2 + 1) * 13 + 2 * 6, 1e-9);
  drawn_clear (&d);
  drawn_clear (&ranks);
}

/* Ops by themselves: two kernels and an all-reduce of a pass are not one box. */
static void
ops_have_their_own_names (void)
{
  Drawn d = draw (&(LsTimelinePicture) { .title = "t", .width = 1600, .rows = LS_TIMELINE_OPS });
  LS_CHECK (strstr (d.words->str, "|forward|forward|") && strstr (d.words->str, "|all-reduce|"));
  LS_CHECK (!strstr (d.words->str, "|F 0|"));
  drawn_clear (&d);
}

/* Six entries of a legend and the ticks of an axis in 400 pixels. */
static void
words_do_not_overprint (void)
{
  static const guint widths[] = { 400, 700, 1600 };
  for (guint i = 0; i < G_N_ELEMENTS (widths); i++) {
    Drawn d = draw (&(LsTimelinePicture) { .title = "t", .width = widths[i], .rows = LS_TIMELINE_STREAMS });
    check_words_apart (&d);
    LS_CHECK (strstr (d.words->str, "|time from the start of the step (ms)|") != NULL);
    drawn_clear (&d);
  }
}

/* --- memory ------------------------------------------------------------------------------------------ */

#define GIB (UINT64_C (1) << 30)

static void
add_sample (GArray *samples, LsTime at, uint64_t parameters, uint64_t activations)
{
  LsMemorySample s = { .at = at };
  s.alive[LS_MEM_PARAMETERS] = parameters;
  s.alive[LS_MEM_ACTIVATIONS] = activations;
  g_array_append_val (samples, s);
}

static Drawn
draw_memory (const GArray *samples)
{
  const LsMemoryPlot plot = { .title = "<b> {a} job",
                              .note = "rank 0",
                              .samples = samples,
                              .window = 100 * LS_MS,
                              .capacity_bytes = 8 * GIB };
  return drawn_as_svg (ls_draw_memory (&plot));
}

/* x and y of the points of an area, in turn; none: it is not there. */
static GArray *
points_of (const Drawn *d, const char *paint)
{
  g_autofree char *start_of_it = g_strdup_printf ("polygon %s ", paint);
  GArray *points = g_array_new (FALSE, FALSE, sizeof (double));
  for (guint i = 0; i < d->points->len; i++) {
    const char *rest = d->points->pdata[i];
    if (!g_str_has_prefix (rest, start_of_it))
      continue;
    for (char *at = (char *) rest + strlen (start_of_it); *at; at += *at != '\0') {
      double value = g_ascii_strtod (at, &at);
      g_array_append_val (points, value);
    }
  }
  return points;
}

static double
point_at (const GArray *points, guint i)
{
  return g_array_index (points, double, i);
}

/* 2 GiB of 8 all the time, and 3 above from 40 ms of 100: a rectangle, and a step on it. */
static void
areas_lie_on_top_of_each_other (void)
{
  g_autoptr (GArray) samples = g_array_new (FALSE, FALSE, sizeof (LsMemorySample));
  add_sample (samples, 0, 2 * GIB, 0);
  add_sample (samples, 40 * LS_MS, 2 * GIB, 3 * GIB);
  Drawn d = draw_memory (samples);
  g_autoptr (GArray) parameters = points_of (&d, "parameters"), activations = points_of (&d, "activations");
  if (LS_CHECK (parameters->len >= 8) && LS_CHECK_INT (activations->len, ==, 4 * 2 * 3)) {
    double top = point_at (parameters, 1), bottom = point_at (parameters, parameters->len - 1);
    double left = point_at (parameters, 0), right = point_at (activations, 10);
    LS_CHECK_NEAR (point_at (activations, 1), top, 1e-3); /* nothing of it before 40 ms */
    LS_CHECK_NEAR (point_at (activations, 8), left + 0.4 * (right - left), 1e-3);
    LS_CHECK_NEAR ((bottom - point_at (activations, 9)) / (bottom - top), 2.5, 1e-3);
    LS_CHECK_NEAR (point_at (activations, activations->len - 1), top, 1e-3); /* it stands on them */
  }
  LS_CHECK (strstr (d.words->str, "|activations|") && !strstr (d.words->str, "|gradients|"));
  LS_CHECK (strstr (d.words->str, "|held (GiB)|") && strstr (d.words->str, "|<b> {a} job|"));
  LS_CHECK (strstr (d.tips->str, "|activations, at most 3.0 GiB") != NULL);
  check_words_apart (&d);
  drawn_clear (&d);
}

/* A peak of a nanosecond among thousands of samples. */
static void
narrow_peaks_are_kept (void)
{
  g_autoptr (GArray) samples = g_array_new (FALSE, FALSE, sizeof (LsMemorySample));
  for (int i = 0; i < 20000; i++)
    add_sample (samples, i * 5 * LS_US, GIB, i == 7777 ? 6 * GIB : (uint64_t) (i % 2) * GIB);
  Drawn d = draw_memory (samples);
  g_autoptr (GArray) activations = points_of (&d, "activations"), parameters = points_of (&d, "parameters");
  double highest = INFINITY, bottom = point_at (parameters, parameters->len - 1);
  for (guint i = 1; i < activations->len; i += 2)
    highest = fmin (highest, point_at (activations, i));
  LS_CHECK_NEAR ((bottom - highest) / (bottom - point_at (parameters, 1)), 7, 1e-3);
  LS_CHECK_INT (activations->len, <, 20000); /* as many points as pixels, not as samples */
  drawn_clear (&d);
}

/* --- schedules --------------------------------------------------------------------------------------- */

static LsScheduleRun *
run_of (const char *name, const char *pp, const char *n)
{
  LsScheduleSpec spec;
  ls_schedule_spec_init (&spec);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (ls_schedule_spec_set (&spec, "schedule", name, diags)
            && ls_schedule_spec_set (&spec, "pp", pp, diags)
            && ls_schedule_spec_set (&spec, "micro-batches", n, diags));
  g_autoptr (GError) error = NULL;
  LsScheduleRun *run = ls_schedule_run_new (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  ls_schedule_spec_clear (&spec);
  return run;
}

static void
each_action_is_a_box (void)
{
  g_autoptr (LsScheduleRun) run = run_of ("dualpipe", "4", "8");
  const LsScheduleView *view = &run->view;
  Drawn d = drawn_as_svg (ls_draw_schedules (&view, 1, view->title));
  guint n = 0;
  for (uint32_t rank = 0; rank < view->eval->n_ranks; rank++)
    n += view->orders->ranks[rank]->len;
  LS_CHECK_INT (d.n_boxes, ==, n + 4); /* four kinds of work in the legend */
  LS_CHECK_INT (n_of (d.tips->str, "forward of micro-batch "), ==, 4 * 8);
  check_words_apart (&d);
  drawn_clear (&d);
}

/* GPipe takes as long as 1F1B; without the second half of a pipeline's bubble ZB-H1 is shorter and ends before
 * the picture does. */
static void
schedules_share_a_scale (void)
{
  g_autoptr (LsScheduleRun) a = run_of ("1f1b", "4", "8"), b = run_of ("zb-h1", "4", "8");
  const LsScheduleView *views[] = { &a->view, &b->view };
  Drawn both = drawn_as_svg (ls_draw_schedules (views, 2, "two")),
        first = drawn_as_svg (ls_draw_schedules (views, 1, "1")),
        second = drawn_as_svg (ls_draw_schedules (views + 1, 1, "2"));
  LS_CHECK (b->view.eval->makespan < a->view.eval->makespan);
  LS_CHECK_INT (both.n_boxes, ==, first.n_boxes + second.n_boxes - 1); /* forwards stand in one legend */
  LS_CHECK (strstr (both.words->str, a->view.title) && strstr (both.words->str, b->view.title));
  check_words_apart (&both);
  drawn_clear (&both);
  drawn_clear (&first);
  drawn_clear (&second);
}

/* --- colours ----------------------------------------------------------------------------------------- */

static void
colours_are_those_of_the_palette (void)
{
  g_autofree char *css = ls_palette_to_css ();
  LS_CHECK (strstr (css, "--forward:#4477aa;") && strstr (css, "--series-8:"));
  LS_CHECK_STR (ls_palette_series (9)->name, "series-0");
  LS_CHECK_STR (ls_palette_ink (ls_palette_find ("forward")->light), "white");
  LS_CHECK_STR (ls_palette_ink (ls_palette_find ("backward")->light), "black");
  LS_CHECK_INT (ls_palette_tint (0x204060, 0.5), ==, 0x90a0b0);
  LS_CHECK (!ls_palette_find ("mauve"));
}

LS_TEST_MAIN ("show/drawing", LS_TEST (hostile_titles_are_text), LS_TEST (streams_have_rows_of_their_own),
              LS_TEST (a_part_shows_that_part), LS_TEST (narrow_ops_are_joined),
              LS_TEST (numbers_stand_where_they_fit), LS_TEST (words_do_not_overprint),
              LS_TEST (arrows_are_messages_and_waits), LS_TEST (waits_go_from_stream_to_stream),
              LS_TEST (micro_batches_under_way_have_lines), LS_TEST (ops_have_their_own_names),
              LS_TEST (areas_lie_on_top_of_each_other), LS_TEST (narrow_peaks_are_kept),
              LS_TEST (each_action_is_a_box), LS_TEST (schedules_share_a_scale),
              LS_TEST (colours_are_those_of_the_palette))
