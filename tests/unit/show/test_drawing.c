/* Pins drawings in SVG: of steps, memory, schedules. */
#include "drawn.h"
#include "pipeline.h"
#include "tiny_cluster.h"

#include "ask/schedule.h"
#include "show/draw/drawing.h"
#include "show/draw/pictures.h"

/* Pins drawings of boxes but for timelines (draw_timeline): of memory areas on top of each other, steps and narrow
 * peaks; of schedules a box for each action, several on one scale; of machines links in the colour of their
 * use; the palette. */

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
  LS_CHECK (strstr (d.tips->str, "|activations, at most 3.00 GiB") != NULL);
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

static LsScheduleView *
run_of (const char *name, const char *pp, const char *n)
{
  LsScheduleSpec spec;
  ls_schedule_spec_init (&spec);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (ls_schedule_spec_set (&spec, "schedule", name, diags)
            && ls_schedule_spec_set (&spec, "pp", pp, diags)
            && ls_schedule_spec_set (&spec, "micro-batches", n, diags));
  g_autoptr (GError) error = NULL;
  LsScheduleView *run = ls_schedule_view_new (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  ls_schedule_spec_clear (&spec);
  return run;
}

static void
each_action_is_a_box (void)
{
  g_autoptr (LsScheduleView) run = run_of ("dualpipe", "4", "8");
  const LsScheduleView *view = run;
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
  g_autoptr (LsScheduleView) a = run_of ("1f1b", "4", "8"), b = run_of ("zb-h1", "4", "8");
  const LsScheduleView *views[] = { a, b };
  Drawn both = drawn_as_svg (ls_draw_schedules (views, 2, "two")),
        first = drawn_as_svg (ls_draw_schedules (views, 1, "1")),
        second = drawn_as_svg (ls_draw_schedules (views + 1, 1, "2"));
  LS_CHECK (b->eval->makespan < a->eval->makespan);
  LS_CHECK_INT (both.n_boxes, ==, first.n_boxes + second.n_boxes - 1); /* forwards stand in one legend */
  LS_CHECK (strstr (both.words->str, a->title) && strstr (both.words->str, b->title));
  check_words_apart (&both);
  drawn_clear (&both);
  drawn_clear (&first);
  drawn_clear (&second);
}

/* --- machines ---------------------------------------------------------------------------------------- */

static guint
trunk_of (const LsCluster *c, const char *name)
{
  for (guint i = 0; i < c->trunks->len; i++)
    if (g_str_equal (g_array_index (c->trunks, LsTrunk, i).name, name))
      return i;
  LS_CHECK (!"a trunk of that name");
  return 0;
}

/* 30 % in one direction of the NVLinks of GPU 5 of the second node, 3 % in the other, and 0.5 % from a NIC of
 * the first to its leaf: three strokes and a line; the rest is idle. Names are text. */
static void
links_have_the_colour_of_their_use (void)
{
  LsClusterSpec spec = tiny_dgx (3);
  spec.name = (char *) "<b>&\"dgx\"]]>";
  spec.gpu.name = (char *) "<i>";
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCluster) c = ls_cluster_build (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  g_autofree double *bytes = g_new0 (double, c->trunks->len);
  guint nvlink = trunk_of (c, "node1/gpu5>nvswitch"), nic = trunk_of (c, "node0/nic2>leaf2");
  double rate = g_array_index (c->trunks, LsTrunk, nvlink).capacity_bytes_per_s;
  bytes[nvlink] = 0.3 * rate * 2;
  bytes[nvlink ^ 1] = 0.03 * rate * 2;
  bytes[nic] = 0.005 * g_array_index (c->trunks, LsTrunk, nic).capacity_bytes_per_s * 2;
  const LsTimeline t = { .window_end = 2 * LS_S, .n_resources = c->trunks->len, .resource_bytes = bytes };
  g_autoptr (LsTopoMap) map = ls_topo_map_new (c);
  g_autoptr (LsTopoUse) use = ls_topo_use_new (c, &t);
  Drawn d = drawn_as_svg (ls_draw_topology (map, use)), plain = drawn_as_svg (ls_draw_topology (map, NULL));
  LS_CHECK_INT (n_points_of (&d, "polyline l use-4 "), ==, 3 + 1); /* one is in the legend */
  LS_CHECK_INT (n_points_of (&d, "polyline l use-1 "), ==, 1 + 1);
  LS_CHECK_INT (n_points_of (&d, "polyline l use-3 ") + n_points_of (&d, "polyline l use-5 "), ==, 2);
  LS_CHECK (strstr (d.tips->str, "|nvlink: 30 % of its capacity") != NULL);
  LS_CHECK (strstr (d.tips->str, "|nic 2 to leaf 2, 24.2 GB/s: 0.5 % of its capacity") != NULL);
  LS_CHECK_INT (n_points_of (&plain, "polyline l use-"), ==, 0);
  LS_CHECK (strstr (plain.words->str, "|<b>&\"dgx\"]]>|") && strstr (plain.words->str, "8 x <i>"));
  drawn_clear (&d);
  drawn_clear (&plain);
}

/* Later chunks are mixed with white, whatever the ground; numbers on them stay black. */
static void
later_chunks_are_lighter_in_the_dark_too (void)
{
  g_autoptr (LsScheduleView) run = run_of ("zbv", "2", "4");
  const LsScheduleView *view = run;
  g_autoptr (LsDrawing) drawing = ls_draw_schedules (&view, 1, "v");
  g_autofree char *svg = ls_drawing_to_svg (drawing);
  g_autofree char *half = g_strdup_printf (" style=\"fill:#%06x\"", ls_palette_mix (0xffffff, 0x4477aa, 0.5));
  LS_CHECK_INT (n_of (svg, half), ==, 2 * 4); /* forwards of the second chunk */
  LS_CHECK (!strstr (svg, "fill-opacity"));
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
  LS_CHECK_INT (ls_palette_mix (0xffffff, 0x204060, 0.5), ==, 0x90a0b0);
  LS_CHECK (!ls_palette_find ("mauve"));
}

/* Pins the picture of a step: SVG that is well-formed whatever the names, words that do not overprint each other,
 * each pass as a box where its time says, rows for streams, ops and micro-batches, arrows, a part of it. How
 * gnuplot draws: plot_timeline. */

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
  LS_CHECK (strstr (d.words->str, "of which 0 s to 4.000 ms") != NULL);
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

/* A send in a group that ends later: its data are there when the receive says. */
static void
messages_of_groups_have_their_own_times (void)
{
  Pipeline p;
  pipeline_init (&p, "1f1b", shape);
  for (uint32_t rank = 0; rank < p.t.n_ranks; rank++)
    for (uint32_t i = 0; i < p.t.ranks[rank].n; i++) {
      LsSpan *s = &p.t.ranks[rank].spans[i];
      const LsOp *op = ls_span_op (&p.t, rank, s);
      if (op->n_transfers > 0 && op->transfers[0].is_send)
        s->matched = s->end += LS_S;
    }
  Drawn d = drawn_as_svg (
      ls_draw_timeline (&p.t, &(LsTimelinePicture) { .title = "t", .width = 1600, .has_arrows = true }));
  LS_CHECK (strstr (d.words->str, "arrows: 6 messages between these ranks, 0 ops") != NULL);
  drawn_clear (&d);
  pipeline_clear (&p);
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

/* A call whose name has no room has its letters. */
static void
calls_are_brief_where_they_are_narrow (void)
{
  Drawn d = draw (&(LsTimelinePicture) { .title = "t", .width = 1200, .rows = LS_TIMELINE_OPS });
  LS_CHECK (strstr (d.words->str, "|AR|"));
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

LS_TEST_SUITE (LS_TEST (areas_lie_on_top_of_each_other), LS_TEST (narrow_peaks_are_kept),
               LS_TEST (each_action_is_a_box), LS_TEST (schedules_share_a_scale),
               LS_TEST (links_have_the_colour_of_their_use),
               LS_TEST (later_chunks_are_lighter_in_the_dark_too), LS_TEST (colours_are_those_of_the_palette),
               LS_TEST (hostile_titles_are_text), LS_TEST (streams_have_rows_of_their_own),
               LS_TEST (a_part_shows_that_part), LS_TEST (narrow_ops_are_joined),
               LS_TEST (numbers_stand_where_they_fit), LS_TEST (words_do_not_overprint),
               LS_TEST (arrows_are_messages_and_waits), LS_TEST (messages_of_groups_have_their_own_times),
               LS_TEST (calls_are_brief_where_they_are_narrow), LS_TEST (waits_go_from_stream_to_stream),
               LS_TEST (micro_batches_under_way_have_lines), LS_TEST (ops_have_their_own_names))
