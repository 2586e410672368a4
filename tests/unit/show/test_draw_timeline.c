/* Pins the picture of a step: SVG that is well-formed whatever the names, words that do not overprint each other,
 * each pass as a box where its time says, rows for streams, ops and micro-batches, arrows, a part of it. How
 * gnuplot draws: plot_timeline. */
#include "drawn.h"
#include "pipeline.h"
#include "show/draw/pictures.h"

static const PipelineShape shape = { 2, 1, 3, 10 * LS_MS, 20 * LS_MS, 0, LS_MS, 2 * LS_MS, LS_MS, 3 * LS_MS };

static Drawn
draw (const LsTimelinePicture *picture)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  Drawn d = drawn_as_svg (ls_draw_timeline (&p.t, picture));
  pipeline_clear (&p);
  return d;
}

static void
hostile_titles_are_text (void)
{
  Drawn d = draw (&(LsTimelinePicture) { .title = "<script>\"'&]]>\x01\xef\xbf\xbe\xff", .width = 800 });
  LS_CHECK (strstr (d.words->str, "<script>\"'&]]>  ") != NULL);
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

LS_TEST_SUITE (LS_TEST (hostile_titles_are_text), LS_TEST (streams_have_rows_of_their_own),
               LS_TEST (a_part_shows_that_part), LS_TEST (narrow_ops_are_joined),
               LS_TEST (numbers_stand_where_they_fit), LS_TEST (words_do_not_overprint),
               LS_TEST (arrows_are_messages_and_waits), LS_TEST (waits_go_from_stream_to_stream),
               LS_TEST (micro_batches_under_way_have_lines), LS_TEST (ops_have_their_own_names))
