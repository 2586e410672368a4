/* Pins the orders of the fixed schedules: against those of other generators (digests
 * always, the orders themselves where the measured data are); the registry; and what is
 * refused. */
#include <string.h>

#include "base/digest.h"
#include "ls_test.h"
#include "schedules/sched.h"

typedef struct {
  uint32_t pp, vpp, m, group;
  uint64_t digest;
} Golden;

#include "sched_digests.h"

typedef struct {
  const char *name; /* of its folder */
  const char *schedule;
  LsRounds rounds;
  const Golden *goldens;
  guint n;
} Family;

#define FAMILY(name, schedule, rounds, goldens)                                                              \
  {                                                                                                          \
    name, schedule, rounds, goldens, G_N_ELEMENTS (goldens)                                                  \
  }

static const Family families[] = {
  FAMILY ("1f1b", "1f1b", 0, goldens_1f1b),
  FAMILY ("megatron-1f1b", "1f1b", 0, goldens_megatron_1f1b),
  FAMILY ("gpipe", "gpipe", 0, goldens_gpipe),
  FAMILY ("interleaved-1f1b", "interleaved-1f1b", LS_ROUNDS_PYTORCH, goldens_interleaved_1f1b),
  FAMILY ("megatron-interleaved", "interleaved-1f1b", LS_ROUNDS_MEGATRON, goldens_megatron_interleaved),
  FAMILY ("looped-bfs", "looped-bfs", 0, goldens_looped_bfs),
  FAMILY ("interleaved-zb", "interleaved-zb", 0, goldens_interleaved_zb),
  FAMILY ("zbv", "zbv", 0, goldens_zbv),
  FAMILY ("dualpipe", "dualpipe", 0, goldens_dualpipe),
  FAMILY ("dualpipev", "dualpipev", 0, goldens_dualpipev),
};

static LsSchedShape
golden_shape (const Family *f, const Golden *g)
{
  return (LsSchedShape) {
    .pp = g->pp,
    .vpp = g->vpp,
    .n_micro_batches = g->m,
    .group = g->group,
    .rounds = f->rounds,
  };
}

static char *
order_text (const char *schedule, const LsSchedShape *shape)
{
  g_autoptr (LsOrders) orders = ls_sched_orders (ls_sched_find (schedule), shape);
  GString *text = g_string_new (NULL);
  for (uint32_t rank = 0; rank < shape->pp; rank++) {
    ls_orders_append_rank (orders, rank, text);
    g_string_append_c (text, '\n');
  }
  return g_string_free (text, FALSE);
}

static uint64_t
digest_of (const char *text)
{
  LsDigest digest;
  ls_digest_init (&digest);
  ls_digest_bytes (&digest, text, strlen (text));
  return ls_digest_get (&digest);
}

static void
orders_have_the_digests_of_other_generators (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (families); i++)
    for (guint k = 0; k < families[i].n; k++) {
      const Family *f = &families[i];
      LsSchedShape shape = golden_shape (f, &f->goldens[k]);
      const char *rule = ls_sched_refusal (ls_sched_find (f->schedule), &shape);
      LS_CHECK_STR (rule, NULL);
      if (rule)
        continue;
      g_autofree char *text = order_text (f->schedule, &shape);
      if (!LS_CHECK (digest_of (text) == f->goldens[k].digest))
        printf ("  %s pp %u vpp %u m %u group %u\n", f->name, shape.pp, shape.vpp, shape.n_micro_batches,
                shape.group);
    }
}

/* ---- the orders themselves ---- */

/* The number after key in a file name such as "1f1b_p4_stages4_m8.csv", or 0. */
static uint32_t
number_after (const char *name, const char *key)
{
  const char *p = strstr (name, key);
  return p ? (uint32_t) g_ascii_strtoull (p + strlen (key), NULL, 10) : 0;
}

static LsSchedShape
shape_of_file (const Family *f, const char *name)
{
  uint32_t pp = number_after (name, "_p");
  uint32_t vpp = number_after (name, "_v");
  return (LsSchedShape) {
    .pp = pp,
    .vpp = vpp ? vpp : number_after (name, "_stages") / pp,
    .n_micro_batches = number_after (name, "_m"),
    .group = number_after (name, "_N"),
    .rounds = f->rounds,
  };
}

static gboolean
has_golden (const Family *f, const LsSchedShape *s, uint64_t digest)
{
  for (guint i = 0; i < f->n; i++) {
    const Golden *g = &f->goldens[i];
    if (g->pp == s->pp && g->vpp == s->vpp && g->m == s->n_micro_batches && g->group == s->group)
      return g->digest == digest;
  }
  return FALSE;
}

static void
compare_file (const char *dir, const char *name, const Family *f)
{
  LsSchedShape shape = shape_of_file (f, name);
  g_autofree char *path = g_build_filename (dir, name, NULL);
  g_autofree char *expected = NULL;
  g_autoptr (GError) error = NULL;
  g_file_get_contents (path, &expected, NULL, &error);
  if (!LS_CHECK_NO_ERROR (error))
    return;
  g_autofree char *text = order_text (f->schedule, &shape);
  LS_CHECK_STR (text, expected);
  LS_CHECK (has_golden (f, &shape, digest_of (expected)));
}

static void
orders_equal_those_of_other_generators (void)
{
  const char *shared = ls_test_shared_data ();
  for (guint i = 0; shared && i < G_N_ELEMENTS (families); i++) {
    g_autofree char *path = g_build_filename (shared, "schedules", families[i].name, NULL);
    g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
    if (!LS_CHECK (dir != NULL))
      return;
    guint n = 0;
    for (const char *name; (name = g_dir_read_name (dir)); n++)
      compare_file (path, name, &families[i]);
    LS_CHECK_INT (n, ==, families[i].n);
  }
}

/* ---- the examples of the headers ---- */

static void
check_text (const char *schedule, LsSchedShape shape, const char *expected)
{
  LS_CHECK_STR (ls_sched_refusal (ls_sched_find (schedule), &shape), NULL);
  g_autofree char *text = order_text (schedule, &shape);
  LS_CHECK_STR (text, expected);
}

static void
orders_are_those_drawn_in_their_files (void)
{
  check_text ("none", (LsSchedShape) { 1, 1, 3 }, "0F0,0B0,0F1,0B1,0F2,0B2\n");
  check_text ("naive", (LsSchedShape) { 2, 1, 2 }, "0F0,0B0,0F1,0B1\n1F0,1B0,1F1,1B1\n");
  check_text ("gpipe", (LsSchedShape) { 2, 1, 3 }, "0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1F1,1F2,1B0,1B1,1B2\n");
  check_text ("gpipe-lifo", (LsSchedShape) { 2, 1, 3 }, "0F0,0F1,0F2,0B2,0B1,0B0\n1F0,1F1,1F2,1B2,1B1,1B0\n");
  check_text ("1f1b", (LsSchedShape) { 2, 1, 3 }, "0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n");
  check_text ("pipedream", (LsSchedShape) { 2, 0, 3 }, "0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n");
  check_text ("interleaved-1f1b", (LsSchedShape) { 2, 2, 2 },
              "0F0,0F1,2F0,2F1,2B0,2B1,0B0,0B1\n1F0,1F1,3F0,3B0,3F1,3B1,1B0,1B1\n");
  check_text ("looped-bfs", (LsSchedShape) { 2, 2, 2 },
              "0F0,0F1,2F0,2F1,2B1,2B0,0B1,0B0\n1F0,1F1,3F0,3F1,3B1,3B0,1B1,1B0\n");
  check_text ("interleaved-zb", (LsSchedShape) { 2, 2, 2 },
              "0F0,0F1,2F0,2F1,2I0,2W0,2I1,2W1,0I0,0W0,0I1,0W1\n"
              "1F0,1F1,3F0,3I0,3F1,3I1,3W0,1I0,3W1,1I1,1W0,1W1\n");
  check_text ("zb-h1", (LsSchedShape) { 2, 1, 3 },
              "0F0,0F1,0I0,0W0,0F2,0I1,0W1,0I2,0W2\n1F0,1I0,1F1,1I1,1W0,1F2,1I2,1W1,1W2\n");
  check_text (
      "zb-h2", (LsSchedShape) { 2, 1, 4 },
      "0F0,0F1,0F2,0I0,0W0,0F3,0I1,0W1,0I2,0W2,0I3,0W3\n1F0,1I0,1F1,1I1,1F2,1I2,1W0,1F3,1I3,1W1,1W2,1W3\n");
  check_text (
      "zbv", (LsSchedShape) { 2, 0, 2 },
      "0F0,0F1,3F0,3I0,3W0,3F1,3I1,3W1,0I0,0W0,0I1,0W1\n1F0,2F0,1F1,2F1,2I0,2W0,1I0,1W0,2I1,2W1,1I1,1W1\n");
  check_text ("dualpipe", (LsSchedShape) { 2, 0, 4 },
              "d0s0F0,d1s1F0,d0s0F1,d1s1B0,(d1s1F1;d0s0B0)OVERLAP_F_B,d1s1B1,d0s0I1,d0s0W1\n"
              "d1s0F0,d0s1F0,d1s0F1,d0s1B0,(d0s1F1;d1s0B0)OVERLAP_F_B,d0s1B1,d1s0I1,d1s0W1\n");
  check_text (
      "dualpipev", (LsSchedShape) { 2, 2, 4 },
      "0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,3B2,(3F3;0B1)OVERLAP_F_B,3B3,"
      "0I2,0W2,0I3,0W3\n"
      "1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0)OVERLAP_F_B,(1F3;2B1)OVERLAP_F_B,(2F3;1B1)OVERLAP_F_B,2B2,1B2,2I3,1I3,"
      "2W3,1W3\n");
  check_text ("chimera", (LsSchedShape) { 2, 0, 2 },
              "d0s0F0,d1s1F0,d1s1B0,d0s0B0\nd1s0F0,d0s1F0,d0s1B0,d1s0B0\n");
  check_text (
      "hanayo", (LsSchedShape) { 2, 0, 2 },
      "0F0,0F1,3F0,3I0,3W0,3F1,3I1,3W1,0I0,0W0,0I1,0W1\n1F0,2F0,1F1,2F1,2I0,2W0,1I0,1W0,2I1,2W1,1I1,1W1\n");
}

/* ---- the registry and its refusals ---- */

static void
registry_finds_each_schedule_by_its_name (void)
{
  static const char *const names[] = {
    "none",       "naive",          "gpipe", "gpipe-lifo", "1f1b", "pipedream", "interleaved-1f1b",
    "looped-bfs", "interleaved-zb", "zb-h1", "zb-h2",      "zbv",  "dualpipe",  "dualpipev",
    "chimera",    "hanayo",
  };
  const LsSched *s;
  for (guint i = 0; (s = ls_sched_at (i)); i++)
    LS_CHECK (ls_sched_find (s->name) == s && !(s->order && s->orders));
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    LS_CHECK (ls_sched_find (names[i]) != NULL);
  LS_CHECK (ls_sched_find ("zb-9p") == NULL);
  LS_CHECK (ls_sched_find ("DAPPLE") == ls_sched_find ("1f1b")); /* a paper's name */
}

static void
pipedream_keeps_a_version_per_micro_batch_in_flight (void)
{
  /* ../shared/reference/schedule-formulas.csv: p, stage, versions */
  static const uint32_t rows[][3] = { { 2, 0, 2 }, { 4, 0, 4 }, { 4, 2, 2 }, { 8, 1, 7 }, { 6, 5, 1 } };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    LsSchedShape shape = { rows[i][0], 1, 16 };
    LS_CHECK_INT (ls_sched_find ("pipedream")->n_versions (&shape, rows[i][1]), ==, rows[i][2]);
  }
}

static void
illegal_shapes_are_refused_with_their_rule (void)
{
  static const struct {
    const char *schedule;
    LsSchedShape shape;
    const char *rule;
  } cases[] = {
    { "none", { 2, 1, 4 }, "without a pipeline schedule pp must be 1" },
    { "none", { 1, 2, 4 }, "without a pipeline schedule vpp must be 1" },
    { "gpipe", { 0, 1, 4 }, "pp must be at least 1" },
    { "gpipe", { 4, 1, 0 }, "there must be at least 1 micro-batch" },
    { "gpipe", { 65536, 1, 4 }, "there may be at most 32768 stages" },
    { "looped-bfs", { 256, 256, 4 }, "there may be at most 32768 stages" },
    { "hanayo",
      { .pp = 2, .n_micro_batches = 2, .waves = UINT32_C (1) << 31 },
      "there may be at most 32768 stages" },
    { "gpipe", { 2, 1, UINT32_MAX }, "there may be at most 2^29 chunk forwards on a rank" },
    { "naive", { 4, 2, 8 }, "vpp must be 1: a rank holds one stage" },
    { "gpipe", { 4, 2, 8 }, "vpp must be 1: a rank holds one stage" },
    { "pipedream", { 4, 2, 8 }, "vpp must be 1: a rank holds one stage" },
    { "zb-h1", { 4, 2, 8 }, "vpp must be 1: a rank holds one stage" },
    { "zb-h2", { 4, 2, 8 }, "vpp must be 1: a rank holds one stage" },
    { "dualpipe", { 4, 2, 8 }, "vpp must be 1: a rank holds one stage" },
    { "chimera", { 4, 2, 8 }, "vpp must be 1: a rank holds one stage" },
    { "1f1b", { 4, 2, 8 }, "vpp must be 1: several chunks per rank need interleaved-1f1b" },
    { "interleaved-1f1b", { 4, 1, 8 }, "vpp must be greater than 1: one chunk per rank is 1f1b" },
    { "interleaved-1f1b", { 4, 2, 3 }, "there must be at least pp micro-batches" },
    { "interleaved-1f1b", { 4, 2, 6 }, "the number of micro-batches must be a multiple of pp" },
    { "interleaved-1f1b", { 4, 2, 8, 3 }, "the micro-batch group must not be smaller than pp" },
    { "interleaved-1f1b",
      { 4, 2, 8, 9 },
      "the micro-batch group must not exceed the number of micro-batches" },
    { "interleaved-1f1b", { 4, 2, 8, 5 }, "the last micro-batch group must be full or hold at least pp" },
    { "interleaved-1f1b",
      { 4, 2, 9, 0, LS_ROUNDS_PYTORCH },
      "the number of micro-batches must be a multiple of the rounds, max (1, micro-batches / pp)" },
    { "interleaved-1f1b",
      { 4, 2, 8, 4, LS_ROUNDS_PYTORCH },
      "with PyTorch's rounds the micro-batch group follows from pp and may not be given" },
    { "interleaved-zb",
      { 4, 2, 9 },
      "the number of micro-batches must be a multiple of the rounds, max (1, micro-batches / pp)" },
    { "interleaved-zb", { 4, 1, 8 }, "vpp must be greater than 1: one chunk per rank is zb-h1" },
    { "looped-bfs", { 4, 1, 8 }, "vpp must be greater than 1: one chunk per rank is gpipe" },
    { "zbv", { 4, 1, 8 }, "vpp must be 2: the model goes down the ranks and back" },
    { "dualpipev", { 4, 3, 8 }, "vpp must be 2: the model goes down the ranks and back" },
    { "dualpipev", { 4, 2, 7 }, "there must be at least 2 pp micro-batches" },
    { "dualpipe", { 3, 0, 8 }, "pp must be even: ranks mirror each other" },
    { "dualpipe",
      { 4, 0, 9 },
      "the number of micro-batches must be even: half of them go in each direction" },
    { "dualpipe", { 4, 0, 6 }, "there must be at least 2 pp micro-batches" },
    { "chimera", { 3, 0, 4 }, "pp must be even: the two directions meet in different halves of the time" },
    { "chimera",
      { .pp = 4, .n_micro_batches = 6, .pipes = 3 },
      "pipes must be even: as many go up as go down" },
    { "chimera", { .pp = 4, .n_micro_batches = 6, .pipes = 6 }, "half the pipes must divide half of pp" },
    { "chimera", { 4, 0, 5 }, "the number of micro-batches must be a multiple of the pipes" },
    { "hanayo", { 4, 3, 8 }, "vpp must be even: a wave has two chunks" },
    { "hanayo", { .pp = 4, .vpp = 2, .n_micro_batches = 8, .waves = 2 }, "vpp must be twice the waves" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    LS_CHECK_STR (ls_sched_refusal (ls_sched_find (cases[i].schedule), &cases[i].shape), cases[i].rule);
}

LS_TEST_SUITE (LS_TEST (orders_have_the_digests_of_other_generators),
               LS_TEST (orders_equal_those_of_other_generators),
               LS_TEST (orders_are_those_drawn_in_their_files),
               LS_TEST (registry_finds_each_schedule_by_its_name),
               LS_TEST (pipedream_keeps_a_version_per_micro_batch_in_flight),
               LS_TEST (illegal_shapes_are_refused_with_their_rule))
