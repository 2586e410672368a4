/* Pins the orders of the 1F1B family: against those of other generators (digests
 * always, the orders themselves where the measured data are), against closed forms, and
 * for every small shape against what any schedule must keep. Communication takes no
 * time here. */
#include "base/digest.h"
#include "ls_test.h"
#include "parallel/sched.h"

typedef struct {
  const char *schedule;
  LsSchedShape shape;
  uint64_t digest;
} Golden;

#include "sched_digests.h"

static GArray *
order_of (const char *schedule, const LsSchedShape *shape, uint32_t rank)
{
  GArray *actions = g_array_new (FALSE, FALSE, sizeof (LsAction));
  ls_sched_find (schedule)->order (shape, rank, actions);
  return actions;
}

static const LsAction *
action_at (const GArray *actions, guint i)
{
  return &g_array_index (actions, LsAction, i);
}

static char
letter (uint8_t type)
{
  return "FBIW"[type];
}

/* ---- orders as text: "0F0,0F1,0B0,...", one line per rank ---- */

static char *
order_text (const char *schedule, const LsSchedShape *shape)
{
  GString *text = g_string_new (NULL);
  for (uint32_t rank = 0; rank < shape->pp; rank++) {
    g_autoptr (GArray) actions = order_of (schedule, shape, rank);
    for (guint i = 0; i < actions->len; i++) {
      const LsAction *a = action_at (actions, i);
      g_string_append_printf (text, "%s%u%c%u", i ? "," : "", a->chunk * shape->pp + rank, letter (a->type), a->mb);
    }
    g_string_append_c (text, '\n');
  }
  return g_string_free (text, FALSE);
}

/* For each cell: stage, letter, micro-batch; UINT64_MAX after each rank. */
static uint64_t
text_digest (const char *text)
{
  LsDigest digest;
  ls_digest_init (&digest);
  while (*text) {
    char *p;
    ls_digest_u64 (&digest, g_ascii_strtoull (text, &p, 10));
    ls_digest_u64 (&digest, (uint64_t) *p++);
    ls_digest_u64 (&digest, g_ascii_strtoull (p, &p, 10));
    if (*p == '\n')
      ls_digest_u64 (&digest, UINT64_MAX);
    text = p + 1;
  }
  return ls_digest_get (&digest);
}

static const Golden *
golden_find (const char *schedule, const LsSchedShape *s)
{
  for (guint i = 0; i < G_N_ELEMENTS (goldens); i++) {
    const LsSchedShape *g = &goldens[i].shape;
    if (strcmp (goldens[i].schedule, schedule) == 0 && g->pp == s->pp && g->vpp == s->vpp
        && g->n_micro_batches == s->n_micro_batches && g->group == s->group)
      return &goldens[i];
  }
  return NULL;
}

static void
orders_have_the_digests_of_other_generators (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (goldens); i++) {
    const Golden *g = &goldens[i];
    if (!LS_CHECK (ls_sched_find (g->schedule)->refusal (&g->shape) == NULL))
      continue;
    g_autofree char *text = order_text (g->schedule, &g->shape);
    if (!LS_CHECK (text_digest (text) == g->digest))
      printf ("  %s pp %u vpp %u m %u group %u:\n%s", g->schedule, g->shape.pp, g->shape.vpp,
              g->shape.n_micro_batches, g->shape.group, text);
  }
}

/* The number after key in a file name such as "1f1b_p4_stages4_m8.csv", or 0. */
static uint32_t
number_after (const char *name, const char *key)
{
  const char *p = strstr (name, key);
  return p ? (uint32_t) g_ascii_strtoull (p + strlen (key), NULL, 10) : 0;
}

static void
compare_file (const char *dir, const char *name, const char *schedule)
{
  LsSchedShape shape = {
    .pp = number_after (name, "_p"),
    .vpp = MAX (number_after (name, "_v"), 1),
    .n_micro_batches = number_after (name, "_m"),
    .group = number_after (name, "_N"),
  };
  g_autofree char *path = g_build_filename (dir, name, NULL);
  g_autofree char *expected = NULL;
  g_autoptr (GError) error = NULL;
  g_file_get_contents (path, &expected, NULL, &error);
  if (!LS_CHECK_NO_ERROR (error))
    return;

  g_autofree char *text = order_text (schedule, &shape);
  LS_CHECK_STR (text, expected);
  const Golden *g = golden_find (schedule, &shape);
  if (LS_CHECK (g != NULL))
    LS_CHECK (text_digest (expected) == g->digest);
}

static void
compare_family (const char *family, const char *schedule, guint n_at_least)
{
  const char *shared = ls_test_shared_data ();
  if (!shared)
    return;
  g_autofree char *path = g_build_filename (shared, "schedules", family, NULL);
  g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
  if (!LS_CHECK (dir != NULL))
    return;

  guint n = 0;
  for (const char *name; (name = g_dir_read_name (dir)); n++)
    compare_file (path, name, schedule);
  LS_CHECK_INT (n, >=, n_at_least);
}

static void
orders_equal_pytorch_1f1b (void)
{
  compare_family ("1f1b", "1f1b", 27);
}

static void
orders_equal_megatron_1f1b (void)
{
  compare_family ("megatron-1f1b", "1f1b", 32);
}

static void
orders_equal_megatron_interleaved (void)
{
  compare_family ("megatron-interleaved", "interleaved-1f1b", 286);
}

/* ---- what any order must keep ---- */

/* Each (chunk, micro-batch) once as F and, later, once as B. Returns the most
 * activations alive, in chunks. */
static uint32_t
check_complete (const LsSchedShape *shape, const GArray *actions)
{
  uint32_t n_cells = shape->vpp * shape->n_micro_batches;
  g_autofree char *state = g_malloc0 (n_cells); /* 0, then F, then B */
  uint32_t n_alive = 0, peak = 0;

  LS_CHECK_INT (actions->len, ==, 2 * n_cells);
  for (guint i = 0; i < actions->len; i++) {
    const LsAction *a = action_at (actions, i);
    if (!LS_CHECK (a->chunk < shape->vpp && a->mb < shape->n_micro_batches))
      return 0;
    char *cell = &state[a->chunk * shape->n_micro_batches + a->mb];
    if (a->type == LS_ACTION_F) {
      LS_CHECK_INT (*cell, ==, 0);
      n_alive++;
    } else {
      LS_CHECK_INT (a->type, ==, LS_ACTION_B);
      LS_CHECK_INT (*cell, ==, 'F');
      n_alive--;
    }
    *cell = letter (a->type);
    peak = MAX (peak, n_alive);
  }
  return peak;
}

/* The number of forwards before the first backward is the warm-up and the forward of
 * the first pair, if there is one. */
static void
check_warmup (const char *schedule, const LsSchedShape *shape, uint32_t rank, const GArray *actions)
{
  uint32_t n_warmup = ls_sched_find (schedule)->n_warmup (shape, rank);
  uint32_t n = shape->vpp * shape->n_micro_batches;
  guint n_forwards = 0;
  while (action_at (actions, n_forwards)->type == LS_ACTION_F)
    n_forwards++;
  LS_CHECK_INT (n_forwards, ==, MIN (n, n_warmup + 1));
}

typedef struct {
  const LsSchedShape *shape;
  int64_t forward, backward; /* time of one chunk */
  GArray **orders;
  guint *next;    /* [pp] */
  int64_t *free_at; /* [pp] */
  int64_t *end;   /* [F | B][global stage][micro-batch], -1: not yet */
} Replay;

static int64_t *
end_of (const Replay *r, uint8_t type, uint32_t stage, uint32_t mb)
{
  uint32_t n_stages = r->shape->pp * r->shape->vpp;
  return &r->end[((uint64_t) (type == LS_ACTION_B) * n_stages + stage) * r->shape->n_micro_batches + mb];
}

/* When the input of an action is there; -1: not yet. */
static int64_t
input_at (const Replay *r, uint32_t rank, const LsAction *a)
{
  uint32_t stage = a->chunk * r->shape->pp + rank;
  if (a->type == LS_ACTION_F)
    return stage == 0 ? 0 : *end_of (r, LS_ACTION_F, stage - 1, a->mb);
  if (stage == r->shape->pp * r->shape->vpp - 1)
    return *end_of (r, LS_ACTION_F, stage, a->mb);
  return *end_of (r, LS_ACTION_B, stage + 1, a->mb);
}

static gboolean
advance (Replay *r, uint32_t rank)
{
  gboolean has_moved = FALSE;
  for (; r->next[rank] < r->orders[rank]->len; r->next[rank]++) {
    const LsAction *a = action_at (r->orders[rank], r->next[rank]);
    int64_t input = input_at (r, rank, a);
    if (input < 0)
      break;
    r->free_at[rank] = MAX (r->free_at[rank], input) + (a->type == LS_ACTION_F ? r->forward : r->backward);
    *end_of (r, a->type, a->chunk * r->shape->pp + rank, a->mb) = r->free_at[rank];
    has_moved = TRUE;
  }
  return has_moved;
}

/* Runs the orders; the end of the last action, or -1 if they deadlock. */
static int64_t
makespan (const char *schedule, const LsSchedShape *shape, int64_t forward, int64_t backward)
{
  uint32_t n_ends = 2 * shape->pp * shape->vpp * shape->n_micro_batches;
  g_autoptr (GPtrArray) orders = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);
  for (uint32_t rank = 0; rank < shape->pp; rank++)
    g_ptr_array_add (orders, order_of (schedule, shape, rank));
  g_autofree guint *next = g_new0 (guint, shape->pp);
  g_autofree int64_t *free_at = g_new0 (int64_t, shape->pp);
  g_autofree int64_t *end = g_new (int64_t, n_ends);
  for (uint32_t i = 0; i < n_ends; i++)
    end[i] = -1;

  Replay r = { shape, forward, backward, (GArray **) orders->pdata, next, free_at, end };
  for (gboolean has_moved = TRUE; has_moved;) {
    has_moved = FALSE;
    for (uint32_t rank = 0; rank < shape->pp; rank++)
      has_moved |= advance (&r, rank);
  }

  int64_t last = 0;
  for (uint32_t rank = 0; rank < shape->pp; rank++) {
    if (next[rank] < r.orders[rank]->len)
      return -1;
    last = MAX (last, free_at[rank]);
  }
  return last;
}

/* min (m, p - r) micro-batches kept; (m + p - 1)(F + B). */
static void
every_small_1f1b_keeps_its_closed_forms (void)
{
  for (uint32_t pp = 1; pp <= 9; pp++)
    for (uint32_t m = 1; m <= 20; m++) {
      LsSchedShape shape = { .pp = pp, .vpp = 1, .n_micro_batches = m };
      LS_CHECK (ls_sched_find ("1f1b")->refusal (&shape) == NULL);
      for (uint32_t rank = 0; rank < pp; rank++) {
        g_autoptr (GArray) actions = order_of ("1f1b", &shape, rank);
        LS_CHECK_INT (check_complete (&shape, actions), ==, MIN (m, pp - rank));
        LS_CHECK_INT (ls_sched_find ("1f1b")->n_warmup (&shape, rank), ==, MIN (m, pp - rank - 1));
        check_warmup ("1f1b", &shape, rank, actions);
      }
      LS_CHECK_INT (makespan ("1f1b", &shape, 10, 21), ==, (m + pp - 1) * 31);
    }
}

/* min (m v, (v - 1) N + 2 (p - 1 - r) + 1) chunks kept; with chunk times f and b the
 * step takes (m v + p - 1)(f + b), whatever the legal N. */
static void
check_interleaved (const LsSchedShape *shape)
{
  uint32_t group = shape->group ? shape->group : shape->pp;
  uint32_t n = shape->n_micro_batches * shape->vpp;
  for (uint32_t rank = 0; rank < shape->pp; rank++) {
    uint32_t n_warmup = (shape->vpp - 1) * group + 2 * (shape->pp - 1 - rank);
    g_autoptr (GArray) actions = order_of ("interleaved-1f1b", shape, rank);
    LS_CHECK_INT (check_complete (shape, actions), ==, MIN (n, n_warmup + 1));
    LS_CHECK_INT (ls_sched_find ("interleaved-1f1b")->n_warmup (shape, rank), ==, MIN (n, n_warmup));
    check_warmup ("interleaved-1f1b", shape, rank, actions);
  }
  LS_CHECK_INT (makespan ("interleaved-1f1b", shape, 10, 21), ==, (n + shape->pp - 1) * 31);
}

static void
every_small_interleaved_keeps_its_closed_forms (void)
{
  for (uint32_t pp = 2; pp <= 6; pp++)
    for (uint32_t vpp = 2; vpp <= 4; vpp++)
      for (uint32_t m = 1; m <= 18; m++)
        for (uint32_t group = 0; group <= m + 1; group++) {
          LsSchedShape shape = { pp, vpp, m, group };
          uint32_t n = group ? group : pp;
          gboolean is_legal = pp <= n && n <= m && (m % n == 0 || m % n >= pp);
          LS_CHECK_INT (ls_sched_find ("interleaved-1f1b")->refusal (&shape) == NULL, ==, is_legal);
          if (is_legal)
            check_interleaved (&shape);
        }
}

static void
without_a_pipeline_each_backward_follows_its_forward (void)
{
  LsSchedShape shape = { .pp = 1, .vpp = 1, .n_micro_batches = 3 };
  g_autofree char *text = order_text ("none", &shape);
  LS_CHECK_STR (text, "0F0,0B0,0F1,0B1,0F2,0B2\n");
  LS_CHECK_INT (ls_sched_find ("none")->n_warmup (&shape, 0), ==, 0);
}

/* ---- the registry and its refusals ---- */

static void
registry_finds_each_schedule_by_its_name (void)
{
  guint n = 0;
  for (const LsSched *s; (s = ls_sched_at (n)); n++)
    LS_CHECK (ls_sched_find (s->name) == s);
  LS_CHECK_INT (n, ==, 3);
  LS_CHECK (ls_sched_find ("zb-9p") == NULL);
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
    { "1f1b", { 4, 2, 8 }, "vpp must be 1: several chunks per rank need interleaved-1f1b" },
    { "interleaved-1f1b", { 1, 2, 8 }, "pp must be greater than 1" },
    { "interleaved-1f1b", { 4, 1, 8 }, "vpp must be greater than 1: one chunk per rank is 1f1b" },
    { "interleaved-1f1b", { 4, 2, 3 }, "there must be at least pp micro-batches" },
    { "interleaved-1f1b", { 4, 2, 6 }, "the number of micro-batches must be a multiple of pp" },
    { "interleaved-1f1b", { 4, 2, 8, 3 }, "the micro-batch group must not be smaller than pp" },
    { "interleaved-1f1b", { 4, 2, 8, 9 }, "the micro-batch group must not exceed the number of micro-batches" },
    { "interleaved-1f1b", { 4, 2, 8, 5 }, "the last micro-batch group must be full or hold at least pp" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    LS_CHECK_STR (ls_sched_find (cases[i].schedule)->refusal (&cases[i].shape), cases[i].rule);
}

LS_TEST_MAIN ("sched", LS_TEST (orders_have_the_digests_of_other_generators), LS_TEST (orders_equal_pytorch_1f1b),
              LS_TEST (orders_equal_megatron_1f1b), LS_TEST (orders_equal_megatron_interleaved),
              LS_TEST (every_small_1f1b_keeps_its_closed_forms),
              LS_TEST (every_small_interleaved_keeps_its_closed_forms),
              LS_TEST (without_a_pipeline_each_backward_follows_its_forward),
              LS_TEST (registry_finds_each_schedule_by_its_name),
              LS_TEST (illegal_shapes_are_refused_with_their_rule))
