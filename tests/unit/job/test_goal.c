/* Pins GOAL files of many kinds of jobs: every send has one receive of the same bytes and tag and the other
 * way round, what a node requires stands before it, all ranks come to their end when a receive waits for
 * its send, and the calcs of a rank add up to what its plan computes. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <string.h>

#include "compute/cost.h"
#include "exec/replay/calls.h"
#include "job/job.h"

/* --- the file, by a reader of its own ----------------------------------------------------- */

typedef enum { CALC, SEND, RECV } Kind;

typedef struct {
  Kind kind;
  uint32_t rank;
  uint64_t n; /* nanoseconds or bytes */
  uint64_t peer, tag;
  uint32_t n_waits; /* for how many nodes it waits */
  GArray *next;     /* guint: nodes that wait for it; NULL: none */
} Node;

typedef struct {
  uint32_t n_ranks, rank;
  guint first; /* node of the rank */
  GArray *nodes;
  uint64_t calc_ns[64];
} File;

static void
clear_node (gpointer node)
{
  g_clear_pointer (&((Node *) node)->next, g_array_unref);
}

static void
wait_for (File *f, guint waits, guint other)
{
  Node *n = &g_array_index (f->nodes, Node, other);
  if (!n->next)
    n->next = g_array_new (FALSE, FALSE, sizeof (guint));
  g_array_append_val (n->next, waits);
  g_array_index (f->nodes, Node, waits).n_waits++;
}

/* One line; false: it is none of the grammar. */
static bool
read_line (File *f, const char *line)
{
  unsigned label, other, peer, tag, cpu;
  guint64 n;
  char end;
  Node node = { .rank = f->rank };
  if (sscanf (line, "l%u requires l%u%c", &label, &other, &end) == 2) {
    guint at = f->first + label - 1, to = f->first + other - 1;
    LS_CHECK (at < f->nodes->len && to < at);
    wait_for (f, at, to);
    return true;
  }
  if (sscanf (line, "l%u: calc %" G_GUINT64_FORMAT " cpu %u%c", &label, &n, &cpu, &end) == 3)
    node.kind = CALC;
  else if (sscanf (line, "l%u: send %" G_GUINT64_FORMAT "b to %u tag %u cpu %u%c", &label, &n, &peer, &tag,
                   &cpu, &end)
           == 5)
    node.kind = SEND;
  else if (sscanf (line, "l%u: recv %" G_GUINT64_FORMAT "b from %u tag %u cpu %u%c", &label, &n, &peer, &tag,
                   &cpu, &end)
           == 5)
    node.kind = RECV;
  else
    return line[0] == '\0' || g_str_has_prefix (line, "//") || strcmp (line, "}") == 0
        || sscanf (line, "num_ranks %u%c", &f->n_ranks, &end) == 1;
  LS_CHECK_INT (f->first + label, ==, f->nodes->len + 1);
  node.n = n;
  if (node.kind == CALC)
    f->calc_ns[f->rank] += n;
  else {
    LS_CHECK (peer < f->n_ranks && peer != f->rank && n > 0);
    node.peer = peer;
    node.tag = tag;
  }
  g_array_append_val (f->nodes, node);
  return true;
}

static void
read_goal (File *f, const char *path)
{
  g_autofree char *text = NULL;
  *f = (File) { .nodes = g_array_new (FALSE, FALSE, sizeof (Node)) };
  g_array_set_clear_func (f->nodes, clear_node);
  if (!LS_CHECK (g_file_get_contents (path, &text, NULL, NULL)))
    return;
  for (char *line = text, *end = text; end; line = end + 1) {
    end = strchr (line, '\n');
    if (end)
      *end = '\0';
    unsigned rank;
    char brace;
    if (sscanf (line, "rank %u %c", &rank, &brace) == 2 && brace == '{') {
      LS_CHECK (rank < f->n_ranks && rank < G_N_ELEMENTS (f->calc_ns));
      f->rank = rank;
      f->first = f->nodes->len;
    } else if (!read_line (f, line))
      ls_check_impl (false, __FILE__, __LINE__, "not of the grammar: %s", line);
    if (!end)
      break;
  }
}

/* --- what must be true of it ---------------------------------------------------------------- */

/* Each send has its receive, which waits for it. */
static void
match (File *f)
{
  g_autoptr (GHashTable) sends = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  guint n_left = 0;
  for (int kind = SEND; kind <= RECV; kind++)
    for (guint i = 0; i < f->nodes->len; i++) {
      const Node *n = &g_array_index (f->nodes, Node, i);
      if (n->kind != (Kind) kind)
        continue;
      uint64_t from = kind == SEND ? n->rank : n->peer, to = kind == SEND ? n->peer : n->rank;
      char *key
          = g_strdup_printf ("%u %u %u %" G_GUINT64_FORMAT, (guint) from, (guint) to, (guint) n->tag, n->n);
      guint send = GPOINTER_TO_UINT (g_hash_table_lookup (sends, key));
      if (kind == SEND) {
        n_left += send == 0;
        LS_CHECK (g_hash_table_insert (sends, key, GUINT_TO_POINTER (i + 1)));
        continue;
      }
      if (send == 0)
        ls_check_impl (false, __FILE__, __LINE__, "a receive without a send: %s", key);
      else
        wait_for (f, i, send - 1);
      n_left -= g_hash_table_remove (sends, key);
      g_free (key);
    }
  LS_CHECK_INT (n_left, ==, 0);
}

static void
run_to_the_end (File *f)
{
  g_autoptr (GArray) ready = g_array_new (FALSE, FALSE, sizeof (guint));
  for (guint i = 0; i < f->nodes->len; i++)
    if (g_array_index (f->nodes, Node, i).n_waits == 0)
      g_array_append_val (ready, i);
  for (guint i = 0; i < ready->len; i++) {
    const Node *n = &g_array_index (f->nodes, Node, g_array_index (ready, guint, i));
    for (guint k = 0; n->next && k < n->next->len; k++) {
      guint other = g_array_index (n->next, guint, k);
      if (--g_array_index (f->nodes, Node, other).n_waits == 0)
        g_array_append_val (ready, other);
    }
  }
  LS_CHECK_INT (ready->len, ==, f->nodes->len);
}

static LsTime
time_of (const LsJobResult *r, const LsOp *op, uint32_t rank, LsArena *arena)
{
  LsTime each = op->recorded;
  if (op->kind != LS_OP_KERNEL && op->kind != LS_OP_COPY && op->kind != LS_OP_HOST_DELAY)
    return 0;
  if (each == LS_TIME_NEVER && op->kind == LS_OP_COPY)
    each = ls_coll_time_alone (r->cluster,
                               ls_copy_plan (r->cluster, ls_plan_gpu (r->plan, rank),
                                             (LsCopyDirection) op->direction, op->bytes, LS_NETWORK_ALPHABETA,
                                             arena));
  else if (each == LS_TIME_NEVER)
    each = ls_kernel_cost (&r->hardware->calibration, &r->cluster->spec.gpu, &r->plan->kernels[op->kernel])
               .alone;
  return each * MAX (op->repeat, 1);
}

static void
check_calcs (const File *f, const LsJobResult *r)
{
  for (uint32_t rank = 0; rank < r->plan->n_ranks; rank++) {
    g_autoptr (LsArena) arena = ls_arena_new ();
    const LsProgram *p = &r->plan->programs[ls_plan_role (r->plan, rank)];
    LsTime sum = 0;
    for (uint32_t i = 0; i < p->n_instances; i++) {
      const LsSegment *s = &r->plan->segments[p->instances[i].segment];
      for (uint32_t o = 0; o < s->n_ops; o++)
        sum += time_of (r, &s->ops[o], rank, arena);
    }
    LS_CHECK_INT (f->calc_ns[rank], ==, (uint64_t) ((sum + LS_NS / 2) / LS_NS));
    LS_CHECK (sum > 0);
  }
}

/* --- jobs ------------------------------------------------------------------------------------- */

#define MAX_KNOBS 8

static void
check_job (const char *const knobs[MAX_KNOBS][2])
{
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  spec.no_notes = true;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  for (int i = 0; i < MAX_KNOBS && knobs[i][0]; i++)
    LS_CHECK (ls_job_spec_set (&spec, knobs[i][0], knobs[i][1], diags));
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *folder = g_dir_make_tmp ("goal-XXXXXX", NULL),
                  *path = g_build_filename (folder, "job.goal", NULL);
  gboolean ok = ls_job_spec_export (&spec, "goal", "job", path, notes, &error);
  LS_CHECK_NO_ERROR (error);
  g_autoptr (LsJobResult) r = ok ? ls_job_spec_prepare (&spec, &error) : NULL;
  if (r) {
    File f;
    read_goal (&f, path);
    LS_CHECK_INT (f.n_ranks, ==, r->plan->n_ranks);
    check_calcs (&f, r);
    match (&f);
    run_to_the_end (&f);
    g_array_unref (f.nodes);
  }
  g_unlink (path);
  g_rmdir (folder);
  ls_job_spec_clear (&spec);
}

#define DENSE                                                                                                \
  { "model", "llama3.1-8b:layers=4" },                                                                       \
  {                                                                                                          \
    "cluster", "dgx-h100"                                                                                    \
  }
#define MOE                                                                                                  \
  { "model", "mixtral-8x7b:layers=4" },                                                                      \
  {                                                                                                          \
    "cluster", "dgx-h100"                                                                                    \
  }

static void
messages_match_and_all_ranks_end (void)
{
  static const char *const jobs[][MAX_KNOBS][2] = {
    { DENSE, { "gpus", "8" }, { "tp", "2" }, { "global-batch", "8" } },
    { DENSE, { "gpus", "16" }, { "tp", "8" }, { "sp", "1" }, { "global-batch", "4" } },
    { DENSE, { "gpus", "8" }, { "pp", "4" }, { "global-batch", "8" } },
    { DENSE, { "gpus", "8" }, { "pp", "2" }, { "vpp", "2" }, { "global-batch", "16" } },
    { DENSE, { "gpus", "4" }, { "pp", "2" }, { "schedule", "zbv" }, { "global-batch", "8" } },
    { DENSE, { "gpus", "4" }, { "pp", "4" }, { "schedule", "dualpipe" }, { "global-batch", "16" } },
    { DENSE, { "gpus", "16" }, { "dp-kind", "fsdp2" }, { "global-batch", "16" } },
    { DENSE, { "gpus", "8" }, { "dp-kind", "deepspeed" }, { "zero", "3" }, { "global-batch", "8" } },
    { DENSE,
      { "gpus", "4" },
      { "dp-kind", "deepspeed" },
      { "zero", "2" },
      { "offload", "optimizer" },
      { "global-batch", "4" } },
    { DENSE, { "gpus", "8" }, { "cp", "4" }, { "tp", "2" }, { "global-batch", "4" } },
    { MOE, { "gpus", "16" }, { "pp", "2" }, { "ep", "8" }, { "global-batch", "16" } },
    { MOE, { "gpus", "16" }, { "ep", "8" }, { "dispatcher", "deepep" }, { "global-batch", "16" } },
    { { "model", "llama3.1-8b:layers=4" },
      { "cluster", "tpu-v5e" },
      { "slice", "4x4" },
      { "dp", "16" },
      { "global-batch", "16" } },
    { { "trace", "1f1b-four-stages" }, { "cluster", "dgx-h100" } },
    { { "trace", "late-rank" }, { "cluster", "dgx-h100" } },
    { { "trace", "two-ranks" }, { "cluster", "dgx-a100-80g" }, { "dp", "24" } },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (jobs); i++)
    check_job (jobs[i]);
}

LS_TEST_SUITE (LS_TEST (messages_match_and_all_ranks_end))
