/* Pins: a plan that is written and read is the same plan, in every member, whether its
 * ranks are written by mesh or one by one; and what is read is written again byte for
 * byte. Plans of random small jobs, and the traces that ship. */
#include "ls_test.h"

#include <stdlib.h>
#include <string.h>

#include "random_job.h"

#include "data/datadir.h"
#include "data/traces/traces.h"
#include "plan/mesh.h"

static bool
same_text (const char *a, const char *b)
{
  return g_strcmp0 (a, b) == 0;
}

static bool
same_kernel (const LsKernel *a, const LsKernel *b)
{
  return same_text (a->name, b->name) && a->kind == b->kind && a->dtype == b->dtype && a->m == b->m
      && a->n == b->n && a->k == b->k && a->batch == b->batch && a->flops == b->flops && a->bytes == b->bytes;
}

static bool
same_lists (const LsOp *a, const LsOp *b)
{
  bool ok = a->n_deps == b->n_deps && a->n_transfers == b->n_transfers && a->n_buffers == b->n_buffers;
  for (uint32_t i = 0; ok && i < a->n_deps; i++)
    ok = a->deps[i].kind == b->deps[i].kind && a->deps[i].index == b->deps[i].index;
  for (uint32_t i = 0; ok && i < a->n_transfers; i++)
    ok = a->transfers[i].bytes == b->transfers[i].bytes && a->transfers[i].slot == b->transfers[i].slot
        && a->transfers[i].is_send == b->transfers[i].is_send;
  for (uint32_t i = 0; ok && i < a->n_buffers; i++)
    ok = a->buffers[i].bytes == b->buffers[i].bytes && a->buffers[i].id == b->buffers[i].id
        && a->buffers[i].category == b->buffers[i].category && a->buffers[i].is_free == b->buffers[i].is_free
        && a->buffers[i].when == b->buffers[i].when;
  return ok;
}

static bool
same_op (const LsOp *a, const LsOp *b)
{
  return a->kind == b->kind && a->stream == b->stream && a->tag == b->tag && a->host == b->host
      && a->slot == b->slot && a->coll == b->coll && a->dtype == b->dtype && a->root == b->root
      && a->layer == b->layer && a->unit == b->unit && a->event == b->event && a->kernel == b->kernel
      && a->recorded == b->recorded && a->repeat == b->repeat && a->bytes == b->bytes
      && same_text (a->name, b->name) && same_lists (a, b);
}

static bool
same_segment (const LsSegment *a, const LsSegment *b)
{
  bool ok = a->n_ops == b->n_ops && same_text (a->name, b->name);
  for (uint32_t i = 0; ok && i < a->n_ops; i++)
    ok = same_op (&a->ops[i], &b->ops[i]);
  return ok;
}

static bool
same_program (const LsProgram *a, const LsProgram *b)
{
  return a->n_instances == b->n_instances && a->n_events == b->n_events && a->stage == b->stage
      && a->n_params == b->n_params && a->n_lead == b->n_lead
      && memcmp (a->static_bytes, b->static_bytes, sizeof a->static_bytes) == 0
      && memcmp (a->instances, b->instances, a->n_instances * sizeof *a->instances) == 0;
}

static bool
same_comm (const LsPlan *a, const LsPlan *b, uint32_t comm)
{
  const LsCommunicator of_a = ls_plan_communicator (a, comm), of_b = ls_plan_communicator (b, comm);
  bool ok = of_a.axis == of_b.axis && of_a.spans_stages == of_b.spans_stages && of_a.n_ranks == of_b.n_ranks;
  for (uint32_t i = 0; ok && i < of_a.n_ranks; i++)
    ok = ls_comm_rank (&of_a, i) == ls_comm_rank (&of_b, i);
  return ok;
}

static bool
same_plan (const LsPlan *a, const LsPlan *b)
{
  bool ok = a->n_ranks == b->n_ranks && a->n_micro_batches == b->n_micro_batches && a->n_chunks == b->n_chunks
      && a->n_segments == b->n_segments && a->n_roles == b->n_roles && a->n_kernels == b->n_kernels
      && a->n_comms == b->n_comms;
  for (uint32_t i = 0; ok && i < a->n_kernels; i++)
    ok = same_kernel (&a->kernels[i], &b->kernels[i]);
  for (uint32_t i = 0; ok && i < a->n_segments; i++)
    ok = same_segment (&a->segments[i], &b->segments[i]);
  for (uint32_t i = 0; ok && i < a->n_roles; i++)
    ok = same_program (&a->programs[i], &b->programs[i]);
  for (uint32_t i = 0; ok && i < a->n_comms; i++)
    ok = same_comm (a, b, i);
  for (uint32_t i = 0; ok && i < a->n_ranks; i++) {
    const LsBinding of_a = ls_plan_binding (a, i), of_b = ls_plan_binding (b, i);
    ok = memcmp (&of_a, &of_b, sizeof of_a) == 0;
  }
  return ok && ls_plan_has_same_gpus (a, b);
}

static LsTrace *
read_text (const char *text, const char *name)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), name, diags);
  LsTrace *trace = doc ? ls_trace_read (doc, 0, diags) : NULL;
  g_autofree char *problems = ls_diag_list_format (diags);
  ls_check_impl (trace && !*problems, __FILE__, __LINE__, "%s", problems);
  return trace;
}

/* Whether coordinates say all of its communicators, and its roles. */
static bool
follows_from_mesh (const LsPlan *plan, const LsMesh *mesh)
{
  if (plan->n_roles != mesh->pp)
    return false;
  for (uint32_t r = 0; r < plan->n_ranks; r++)
    for (int s = 0; s < LS_SLOT_PREV; s++)
      if (ls_plan_comm_of (plan, r, s) != UINT32_MAX && !(LS_MESH_SLOTS & LS_SLOT_BIT (s)))
        return false;
  return true;
}

static void
check_round_trip (const Job *j, const LsMesh *mesh, guint seed)
{
  LsTraceHead head
      = { .name = "t", .source = "a test", .mesh = mesh, .model = &j->model, .strategy = &j->strategy };
  g_autoptr (GError) error = NULL;
  g_autofree char *text = ls_trace_format (j->plan, &head, &error);
  LS_CHECK_NO_ERROR (error);
  g_autoptr (LsTrace) trace = text ? read_text (text, "t.json") : NULL;
  if (!trace)
    return;
  ls_check_impl (same_plan (j->plan, trace->plan), __FILE__, __LINE__, "seed %u: another plan", seed);
  bool has_mesh = strstr (text, "\"mesh\"") != NULL;
  ls_check_impl (has_mesh == (mesh && follows_from_mesh (j->plan, mesh)), __FILE__, __LINE__, "seed %u: mesh",
                 seed);
  head.model = &trace->model;
  head.strategy = &trace->strategy;
  g_autofree char *again = ls_trace_format (trace->plan, &head, &error);
  ls_check_impl (same_text (text, again), __FILE__, __LINE__, "seed %u: another text", seed);
}

static void
what_is_written_is_read (void)
{
  guint n = ls_test_cases (20, 40);
  for (guint seed = 1; seed <= n; seed++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
    Job j;
    if (job_init (&j, rand)) {
      const LsMesh mesh = { j.strategy.tp, j.strategy.cp, j.strategy.dp, j.strategy.pp };
      check_round_trip (&j, &mesh, seed);
      check_round_trip (&j, NULL, seed);
    }
    job_clear (&j);
  }
}

static void
shipped_traces_are_read_and_written (void)
{
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_TRACES);
  LS_CHECK_INT (entries->len, >=, 4);
  for (guint i = 0; i < entries->len; i++) {
    const LsDataEntry *entry = entries->pdata[i];
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (LsTrace) first = ls_trace_load (entry->path, 0, diags);
    if (!ls_check_impl (first != NULL, __FILE__, __LINE__, "%s: wrong", entry->path))
      continue;
    const LsTraceHead head = { .name = first->name, .source = first->source, .mesh = &first->mesh };
    g_autofree char *text = ls_trace_format (first->plan, &head, NULL);
    g_autoptr (LsTrace) again = read_text (text, entry->path);
    LS_CHECK (again && same_plan (first->plan, again->plan));
  }
}

/* Any member may be the root, however many there are. */
static void
roots_are_written_and_read (void)
{
  enum { N = 400 };
  g_autoptr (GString) text = g_string_new (NULL);
  g_string_append (
      text,
      "{ \"schema\": \"lockstep.trace/1\", \"name\": \"t\", \"source\": \"a test\", \"segments\": ["
      " { \"name\": \"s\", \"ops\": [ { \"op\": \"collective\", \"coll\": \"gather\", \"slot\": \"world\","
      " \"root\": 399, \"bytes\": \"8B\" } ] } ], \"roles\": [ { \"instances\": [ [0] ] } ],"
      " \"communicators\": [ { \"axis\": \"dp\", \"ranks\": [");
  for (int i = 0; i < N; i++)
    g_string_append_printf (text, "%s%d", i > 0 ? ", " : "", i);
  g_string_append (text, "] } ], \"ranks\": [");
  for (int i = 0; i < N; i++)
    g_string_append_printf (text, "%s{ \"role\": 0, \"world\": 0 }", i > 0 ? ", " : "");
  g_string_append (text, "] }");
  g_autoptr (LsTrace) first = read_text (text->str, "t.json");
  if (!first)
    return;
  LS_CHECK_INT (first->plan->segments[0].ops[0].root, ==, N - 1);
  const LsTraceHead head = { .name = "t", .source = "a test" };
  g_autofree char *written = ls_trace_format (first->plan, &head, NULL);
  g_autoptr (LsTrace) again = read_text (written, "t.json");
  LS_CHECK (again && same_plan (first->plan, again->plan));
}

/* A plan in code may hold more than a file can say. */
static void
what_cannot_be_said_is_refused (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  Job j;
  if (!job_init (&j, rand))
    return;
  const LsTraceHead head = { .name = "t", .source = "a test" };
  g_autoptr (GError) error = NULL;
  j.plan->kernels[0].bytes = 0.5;
  LS_CHECK (!ls_trace_format (j.plan, &head, &error)
            && g_error_matches (error, LS_ERROR, LS_ERROR_UNSUPPORTED));
  job_clear (&j);
}

LS_TEST_SUITE (LS_TEST (what_is_written_is_read), LS_TEST (shipped_traces_are_read_and_written),
               LS_TEST (roots_are_written_and_read), LS_TEST (what_cannot_be_said_is_refused))
