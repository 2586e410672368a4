/* data/traces/trace_read.c — text -> TraceFile -> plan. */
#include "data/traces/trace_read.h"

#include <lockstep/error.h>

#include "data/datadir.h"
#include "data/jobs/job_files.h"
#include "data/traces/captured_trace.h"
#include "data/traces/chakra.h"

void
ls_trace_free (LsTrace *trace)
{
  if (!trace)
    return;
  ls_plan_free (trace->plan);
  ls_model_clear (&trace->model);
  ls_strategy_clear (&trace->strategy);
  g_free (trace->name);
  g_free (trace->source);
  g_free (trace);
}

static const cJSON *
member (const TraceReading *r, const char *key)
{
  return cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (r->doc), key);
}

static void G_GNUC_PRINTF (3, 4) refuse (TraceReading *r, LsErrorCode code, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  ls_diag_add (r->diags, code, ls_json_doc_name (r->doc), 0, 0, NULL, NULL, NULL, "%s", message);
  r->ok = false;
}

/* --- ranks -------------------------------------------------------------------------- */

/* A degree that the file leaves out is 1. */
static LsMesh
mesh_of (const TraceFile *file)
{
  const LsMesh *m = &file->mesh;
  return (LsMesh) { MAX (m->tp, 1), MAX (m->cp, 1), MAX (m->dp, 1), MAX (m->pp, 1) };
}

/* Replicas that exchange nothing would be no data parallelism, and what is reduced
 * over dp takes two. */
static void
check_dp (TraceReading *r, bool has_mesh, uint32_t file_dp, uint32_t dp)
{
  bool reduces = ls_trace_uses_slot (r, LS_SLOT_DP) || ls_trace_uses_slot (r, LS_SLOT_WORLD);
  if (dp == 0 || dp == file_dp)
    return;
  if (!has_mesh)
    refuse (r, LS_ERROR_CONFLICT, "--dp %u: the trace lists its ranks; only a mesh can be scaled", dp);
  else if (!reduces)
    refuse (r, LS_ERROR_CONFLICT, "--dp %u: no rank of the trace has a collective over dp", dp);
  else if (dp == 1)
    refuse (r, LS_ERROR_CONFLICT,
            "--dp 1: the ranks of the trace have collectives over dp, which take 2 or more");
}

static void
read_who (TraceReading *r, uint32_t dp, LsMesh *ret_mesh)
{
  const cJSON *mesh = member (r, "mesh"), *ranks = member (r, "ranks");
  if (!mesh == !ranks) {
    ls_trace_complain (r, ls_json_doc_root (r->doc), NULL, TRACE_ALL,
                       "expected either \"mesh\" or \"ranks\"");
    return;
  }
  if (mesh && r->file->communicators)
    ls_trace_complain (r, member (r, "communicators"), NULL, TRACE_ALL,
                       "means nothing with a mesh, which has its own");
  if (ranks && r->file->slots)
    ls_trace_complain (r, member (r, "slots"), NULL, TRACE_ALL,
                       "means nothing with \"ranks\", which say their slots");
  LsMesh m = mesh_of (r->file);
  check_dp (r, mesh != NULL, m.dp, dp);
  if (!r->ok)
    return;
  if (ranks) {
    ls_trace_read_ranks (r);
    return;
  }
  m.dp = dp > 0 ? dp : m.dp;
  ls_trace_read_mesh (r, &m);
  *ret_mesh = m;
}

/* --- model and strategy ---------------------------------------------------------------- */

/* What a data file may leave out too. */
static void
complete_model (LsModel *m)
{
  m->n_kv_heads = m->n_kv_heads ? m->n_kv_heads : m->n_heads;
  m->ffn = m->ffn ? m->ffn : 4 * m->hidden;
  m->head_dim = m->head_dim ? m->head_dim : MAX (1, m->hidden / m->n_heads);
}

static void
check_degrees (TraceReading *r, const LsStrategy *s, const LsMesh *mesh)
{
  const struct {
    const char *key;
    uint32_t said, is;
  } degrees[] = {
    { "tp", s->tp, mesh->tp }, { "cp", s->cp, mesh->cp }, { "pp", s->pp, mesh->pp }, { "dp", s->dp, mesh->dp }
  };
  for (guint i = 0; i < G_N_ELEMENTS (degrees); i++)
    if (degrees[i].said > 0 && degrees[i].said != degrees[i].is)
      ls_trace_complain (r, member (r, "strategy"), degrees[i].key, TRACE_ALL,
                         "%u, but that of the mesh is %u", degrees[i].said, degrees[i].is);
}

/* More replicas work on as many more sequences. */
static void
scale_batch (TraceReading *r, LsStrategy *s, uint32_t from_dp, uint32_t to_dp)
{
  uint64_t batch = (uint64_t) s->global_batch / from_dp * to_dp;
  if (from_dp == to_dp)
    return;
  if (s->micro_batches_per_replica)
    refuse (r, LS_ERROR_CONFLICT, "--dp %u: the trace says how many micro-batches each of %u replicas has",
            to_dp, from_dp);
  else if (s->global_batch % from_dp != 0 || batch > INT32_MAX)
    refuse (r, LS_ERROR_CONFLICT, "--dp %u: a global batch of %u for dp %u does not scale to it", to_dp,
            s->global_batch, from_dp);
  else
    s->global_batch = (uint32_t) batch;
}

/* What a resolved strategy has and a hand-written one may lack. */
static void
complete_strategy (LsStrategy *s, const LsModel *m)
{
  s->seq = s->seq ? s->seq : m->seq;
  s->attention = s->attention == LS_ATTENTION_AUTO ? (int) m->attention : s->attention;
  s->grad_dtype = s->grad_dtype == LS_DTYPE_AUTO ? s->dtype : s->grad_dtype;
  if (!s->schedule)
    s->schedule = g_strdup (s->pp > 1 ? "1f1b" : "none");
}

static void
read_work (TraceReading *r, LsTrace *t)
{
  const cJSON *model = member (r, "model"), *strategy = member (r, "strategy");
  LsMesh file_mesh = mesh_of (r->file);
  if (!model != !strategy)
    ls_trace_complain (r, ls_json_doc_root (r->doc), NULL, TRACE_ALL,
                       "\"model\" and \"strategy\" go together");
  if (!r->ok || !model)
    return;
  r->ok = ls_fields_read (ls_model_fields, r->doc, model, &t->model, NULL, r->diags) && r->ok;
  r->ok = ls_fields_read (ls_strategy_fields, r->doc, strategy, &t->strategy, NULL, r->diags) && r->ok;
  if (!t->model.name)
    ls_trace_complain (r, model, NULL, TRACE_ALL, "missing key \"name\"");
  if (t->strategy.global_batch == 0)
    ls_trace_complain (r, strategy, NULL, TRACE_ALL, "missing key \"global_batch\" (sequences of one step)");
  if (!r->ok)
    return;
  if (t->mesh.tp > 0) {
    check_degrees (r, &t->strategy, &file_mesh);
    scale_batch (r, &t->strategy, file_mesh.dp, t->mesh.dp);
  }
  complete_model (&t->model);
  complete_strategy (&t->strategy, &t->model);
  t->has_model = true;
}

/* --- the whole --------------------------------------------------------------------------- */

/* The op in the file: it stands once, in its segment, whoever runs it. */
static const cJSON *
node_of (const TraceReading *r, LsOpPlace at)
{
  uint32_t segment = r->plan->programs[at.role].instances[at.instance].segment;
  const cJSON *node = cJSON_GetArrayItem (member (r, "segments"), (int) segment);
  return cJSON_GetArrayItem (cJSON_GetObjectItemCaseSensitive (node, "ops"), (int) at.op);
}

/* What only shows when all is put together: events, buffers, calls and messages of
 * ranks that do not fit each other. */
static void
check_plan (TraceReading *r)
{
  g_autoptr (GError) error = NULL;
  LsOpPlace at;
  if (ls_plan_check_at (r->plan, &at, &error))
    return;
  if (at.role == UINT32_MAX)
    refuse (r, (LsErrorCode) error->code, "%s", error->message);
  else
    ls_trace_complain (r, node_of (r, at), NULL, TRACE_ALL, "%s", error->message);
}

static void
read_plan (TraceReading *r, LsTrace *t, uint32_t dp)
{
  ls_trace_read_kernels (r);
  ls_trace_read_segments (r);
  if (r->ok)
    ls_trace_read_roles (r);
  if (r->ok)
    read_who (r, dp, &t->mesh);
  if (r->ok)
    check_plan (r);
  if (r->ok)
    read_work (r, t);
}

LsTrace *
ls_trace_read (const LsJsonDoc *doc, uint32_t dp, LsDiagList *diags)
{
  TraceFile file = ls_trace_file_blank;
  TraceReading r = { .doc = doc, .file = &file, .diags = diags };
  g_autoptr (LsTrace) t = g_new0 (LsTrace, 1);
  r.plan = t->plan = g_new0 (LsPlan, 1);
  t->plan->arena = ls_arena_new ();
  ls_strategy_init (&t->strategy);
  r.ok = ls_fields_read_file (ls_trace_fields, "trace", doc, &file, diags);
  if (r.ok)
    read_plan (&r, t, dp);
  if (t->mesh.tp > 0) {
    t->strategy.tp = t->mesh.tp;
    t->strategy.cp = t->mesh.cp;
    t->strategy.dp = t->mesh.dp;
    t->strategy.pp = t->mesh.pp;
  }
  t->strategy.gpus = t->plan->n_ranks;
  t->name = g_strdup (file.name);
  t->source = g_strdup (file.source);
  ls_fields_clear (ls_trace_fields, &file);
  return r.ok ? g_steal_pointer (&t) : NULL;
}

LsTrace *
ls_trace_load (const char *name, uint32_t dp, LsDiagList *diags)
{
  bool is_folder = g_file_test (name, G_FILE_TEST_IS_DIR);
  g_autoptr (LsJsonDoc) doc = is_folder && ls_captured_trace_is (name) ? ls_captured_trace_load (name, diags)
      : is_folder                                                      ? ls_chakra_load (name, diags)
                  : ls_data_load (LS_DATA_TRACES, name, diags);
  return doc ? ls_trace_read (doc, dp, diags) : NULL;
}
