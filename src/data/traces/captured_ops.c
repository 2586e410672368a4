/* data/traces/captured_ops.c — what a captured rank did, in order, as the ops of a trace. */
#include <math.h>
#include <string.h>

#include "data/traces/captured_read.h"

#define MAX_OPS      50000   /* of a segment: those of a trace are fewer than 60,000 */
#define MOST_OPS     5000000 /* of a rank, as graphs may be launched often */
#define MOST_REPEATS 1e6     /* of what costs the host: a second of calls */
#define LARGEST      1e15    /* number of a file that is taken as it stands: it fits into 64 bits */

bool
captured_complain (CapturedReading *x, const char *file, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *text = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  g_autofree char *path = g_build_filename (x->folder, file, NULL);
  return ls_file_diag (x->diags, LS_ERROR_INPUT, path, NULL, "%s", text);
}

guint
captured_place_in (const GArray *ranks, uint32_t rank)
{
  guint i = 0;
  while (i < ranks->len && g_array_index (ranks, uint32_t, i) != rank)
    i++;
  return i;
}

/* A line of "did"; of a launch, with the operator that it is of. */
typedef struct {
  char what;
  const cJSON *line;
  int64_t row;  /* of "operators"; -1: outside of any */
  guint event;  /* of a record: the number that waits for it have */
  int32_t work; /* of what takes time on a stream: its number; -1: none, or part of a graph */
} Line;

/* -1: there is none. */
static double
number_at (const cJSON *list, int i)
{
  const cJSON *n = cJSON_GetArrayItem (list, i);
  return cJSON_IsNumber (n) ? CLAMP (n->valuedouble, -1, LARGEST) : -1;
}

/* 1 or more. */
static uint64_t
size_at (const cJSON *list, int i)
{
  return (uint64_t) MAX (number_at (list, i), 1);
}

static bool
read_line (const cJSON *each, Line *ret)
{
  const char *what = cJSON_GetStringValue (cJSON_GetArrayItem (each, 0));
  *ret = (Line) { what ? *what : '\0', each, -1, 0, -1 };
  if (what && strchr ("kpdgcfmv", *what))
    ret->row = (int64_t) number_at (each, 1);
  return what && what[0] && !what[1] && strchr ("kpdgcfmvy()rwhea+-bx", *what);
}

/* --- messages ------------------------------------------------------------------------------------------- */

/* ncclDataType_t: int8, uint8, int32, uint32, int64, uint64, fp16, fp32, fp64, bf16, fp8 twice. */
static const struct {
  uint32_t bytes;
  LsDtype dtype;
} types[] = { { 1, LS_DTYPE_BYTE }, { 1, LS_DTYPE_BYTE }, { 4, LS_DTYPE_FP32 }, { 4, LS_DTYPE_FP32 },
              { 8, LS_DTYPE_FP32 }, { 8, LS_DTYPE_FP32 }, { 2, LS_DTYPE_FP16 }, { 4, LS_DTYPE_FP32 },
              { 8, LS_DTYPE_FP32 }, { 2, LS_DTYPE_BF16 }, { 1, LS_DTYPE_FP8 },  { 1, LS_DTYPE_FP8 } };

typedef struct {
  uint32_t stream, group, peer; /* peer: or the root */
  const char *name;             /* "all-reduce", "send" */
  uint64_t bytes;               /* that NCCL's function names */
  LsDtype dtype;
  int64_t row;
  int32_t work;
} Message;

static bool
read_message (const Line *l, const CapturedRole *role, Message *ret)
{
  double stream = number_at (l->line, 2), group = number_at (l->line, 3), n = number_at (l->line, 5),
         type = number_at (l->line, 6), of = number_at (l->line, 7);
  const char *name = cJSON_GetStringValue (cJSON_GetArrayItem (l->line, 4));
  if (!name || stream < 0 || group < 0 || group >= role->groups->len || n < 0 || type < 0
      || type >= G_N_ELEMENTS (types) || of < 0 || of > INT32_MAX)
    return false;
  *ret = (Message) { (uint32_t) stream,
                     (uint32_t) group,
                     (uint32_t) of,
                     name,
                     (uint64_t) n * types[(guint) type].bytes,
                     types[(guint) type].dtype,
                     l->row,
                     l->work };
  return true;
}

static bool
is_to_one (const Message *m)
{
  return strcmp (m->name, "send") == 0 || strcmp (m->name, "receive") == 0;
}

/* Whether a message is not sent at once with those of the batch. */
static bool
is_of_next (const Message *m, const GArray *batch)
{
  const Message *first = batch->len > 0 ? &g_array_index (batch, Message, 0) : NULL;
  return first && (first->group != m->group || !is_to_one (first) || !is_to_one (m));
}

typedef enum { BY_COLLECTIVE, BY_ALL_TO_ALL, BY_NEIGHBOURS, BY_RING, BY_OTHERS } Way;

/* Of messages that are sent at once, all in one group. ret_bytes: of all that are sent, or received if
 * more. */
static Way
way_of (const GArray *batch, const CapturedRole *role, uint64_t *ret_bytes)
{
  const Message *m = (const Message *) (const void *) batch->data;
  const CapturedGroup *g = role->groups->pdata[m->group];
  guint n = g->ranks->len, me = captured_place_in (g->ranks, role->rank), n_sent = 0, n_received = 0;
  uint64_t sent = 0, received = 0;
  bool to_self = false, is_near = true;
  if (!is_to_one (m))
    return BY_COLLECTIVE;
  for (guint i = 0; i < batch->len; i++) {
    bool is_send = strcmp (m[i].name, "send") == 0;
    *(is_send ? &sent : &received) += m[i].bytes;
    n_sent += is_send;
    n_received += !is_send;
    to_self |= m[i].peer == me;
    is_near &= m[i].peer < n && (m[i].peer == (me + 1) % n || me == (m[i].peer + 1) % n);
  }
  *ret_bytes = MAX (sent, received);
  if (to_self || (n > 2 && (n_sent >= n - 1 || n_received >= n - 1)))
    return BY_ALL_TO_ALL;
  if (!is_near)
    return BY_OTHERS;
  return role->pipe < 0 || role->pipe == (int) m->group ? BY_NEIGHBOURS : BY_RING;
}

/* --- what is looked at first: which groups are used, and what each stream is for ------------------------ */

typedef struct {
  uint64_t n_work;
  int group; /* -1: none */
  bool has_peers;
} Stream;

static Stream *
stream_at (GArray *streams, double number)
{
  if (!(number >= 0 && number < 4096))
    return NULL;
  while (streams->len <= (guint) number) {
    const Stream blank = { 0, -1, false };
    g_array_append_val (streams, blank);
  }
  return &g_array_index (streams, Stream, (guint) number);
}

static bool
is_of_pipe (const CapturedGroup *g)
{
  g_autofree char *name = g_ascii_strdown (g->name, -1);
  return strstr (name, "pp") || strstr (name, "pipe");
}

static bool
note_batch (GArray *batch, CapturedRole *role, GArray *streams)
{
  const Message *m = (const Message *) (const void *) batch->data;
  if (batch->len == 0)
    return true;
  CapturedGroup *g = role->groups->pdata[m->group];
  uint64_t bytes;
  Stream *s = stream_at (streams, m->stream);
  int pipe = role->pipe;
  role->pipe = -1;
  Way way = way_of (batch, role, &bytes);
  role->pipe = pipe;
  g->is_used |= way == BY_COLLECTIVE || way == BY_ALL_TO_ALL;
  if (way == BY_NEIGHBOURS) {
    g->has_peers = true;
    if (pipe < 0 || (is_of_pipe (g) && !is_of_pipe (role->groups->pdata[pipe])))
      role->pipe = (int) m->group;
  }
  if (s) {
    s->group = (int) m->group;
    s->has_peers |= way == BY_NEIGHBOURS;
  }
  g_array_set_size (batch, 0);
  return s != NULL;
}

/* That with most kernels is for computing; messages of a pipeline, and each other stream, have one of those
 * that are left: one with messages the first, one with kernels and copies alone the last. */
static void
name_streams (const GArray *streams, CapturedRole *role)
{
  static const LsStream others[]
      = { LS_STREAM_GATHER,      LS_STREAM_DP,     LS_STREAM_TP,      LS_STREAM_CP,     LS_STREAM_EP,
          LS_STREAM_REPLICA,     LS_STREAM_GLOBAL, LS_STREAM_SHARED,  LS_STREAM_PP_FWD, LS_STREAM_PP_FWD_RECV,
          LS_STREAM_PP_BWD_RECV, LS_STREAM_PP_BWD, LS_STREAM_COPY_IN, LS_STREAM_COPY,   LS_STREAM_GATHER_IN };
  const guint n = G_N_ELEMENTS (others);
  guint compute = 0;
  for (guint i = 0; i < streams->len; i++)
    compute = g_array_index (streams, Stream, i).n_work > g_array_index (streams, Stream, compute).n_work
        ? i
        : compute;
  uint32_t taken = 1u << LS_STREAM_COMPUTE;
  for (guint turn = 0; turn < 2; turn++)
    for (guint i = 0; i < streams->len; i++) {
      const Stream *s = &g_array_index (streams, Stream, i);
      bool is_of_pipeline = s->has_peers && s->group == role->pipe;
      if (i == compute || is_of_pipeline == (turn > 0))
        continue;
      uint32_t stream = LS_STREAM_PP_FWD, at = 0;
      while (at < n && (taken >> stream & 1 || (at == 0 && !is_of_pipeline))) {
        stream = others[s->group >= 0 ? at : n - 1 - at];
        at++;
      }
      taken |= 1u << stream;
      role->streams[i] = (uint8_t) stream;
    }
}

bool
captured_read_used (CapturedReading *x, const char *file, const cJSON *root, CapturedRole *role)
{
  g_autoptr (GArray) streams = g_array_new (FALSE, FALSE, sizeof (Stream)),
                     batch = g_array_new (FALSE, FALSE, sizeof (Message));
  const cJSON *each;
  bool is_open = false;
  guint n = 0;
  cJSON_ArrayForEach (each, cJSON_GetObjectItemCaseSensitive (root, "did")) {
    Line l;
    Message m;
    bool ok = read_line (each, &l);
    Stream *s = ok && strchr ("kpdgcfrwh", l.what)
        ? stream_at (streams, number_at (each, strchr ("rwh", l.what) ? 1 : 2))
        : NULL;
    ok = ok && (s || strchr ("mvy()ea+-bx", l.what));
    if (ok && strchr ("kpd", l.what))
      s->n_work++;
    if (ok && l.what == 'm') {
      ok = read_message (&l, role, &m) && stream_at (streams, m.stream);
      if (ok && is_of_next (&m, batch))
        ok = note_batch (batch, role, streams);
      if (ok)
        g_array_append_val (batch, m);
    }
    is_open = ok && (l.what == '(' || (is_open && l.what != ')'));
    if (ok && !is_open)
      ok = note_batch (batch, role, streams);
    if (!ok)
      return captured_complain (x, file, "did: line %u is not one", n);
    n++;
  }
  role->n_streams = streams->len;
  role->streams = g_new0 (uint8_t, streams->len + 1);
  for (guint i = 0; i < role->groups->len; i++) {
    CapturedGroup *g = role->groups->pdata[i];
    g->is_used |= g->has_peers && (int) i != role->pipe; /* a ring beside the pipeline */
  }
  name_streams (streams, role);
  return true;
}

/* --- ops ------------------------------------------------------------------------------------------------ */

/* Of each stream the last op on it that is waited for; -1: none. */
typedef struct {
  int64_t last[LS_N_STREAMS];
} Points;

static const Points no_points = { { -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 } };
G_STATIC_ASSERT (LS_N_STREAMS == 16);

typedef struct {
  CapturedReading *x;
  CapturedRole *role;
  GPtrArray *rows, *kinds, *kernels, *modules; /* cJSON by place */
  double *threads;                             /* of all that each row launches */
  double *pairs;                               /* of each row's attention; 0: it has none, or nobody knows */
  GArray *ops;                                 /* TraceOp, of the open segment */
  int64_t n_ops, base;                         /* of all, and before the open segment */
  Points issued, waits[LS_N_STREAMS], waited[LS_N_STREAMS];
  GArray *events;     /* Points */
  int64_t next_row;   /* the first operator that has not begun */
  GHashTable *graphs; /* GArray of Line of each */
  guint n_records;    /* of events so far, in the file */
  GArray *open;       /* graph that is being captured; NULL: none */
  bool is_in_graph;
  bool is_after_backward;
  LsSite site;          /* of the last operator in a module */
  double made;          /* bytes that were allocated since the last launch */
  int32_t n_work, work; /* lines of work so far; that of which ops are written */
} Writing;

/* Of cJSON. */
static GPtrArray *
places_of (const cJSON *root, const char *key)
{
  const cJSON *each;
  GPtrArray *places = g_ptr_array_new ();
  cJSON_ArrayForEach (each, cJSON_GetObjectItemCaseSensitive (root, key))
    g_ptr_array_add (places, (gpointer) each);
  return places;
}

/* NULL: there is none at that place. */
static const cJSON *
at_place (const GPtrArray *places, double place)
{
  return place >= 0 && place < places->len ? places->pdata[(guint) place] : NULL;
}

static const cJSON *
kind_of (const Writing *w, int64_t row)
{
  return at_place (w->kinds, number_at (at_place (w->rows, (double) row), 0));
}

static const char *
operator_of (const Writing *w, int64_t row)
{
  return ls_json_text (kind_of (w, row), "name");
}

static const char *
module_of (const Writing *w, int64_t row)
{
  const char *name
      = cJSON_GetStringValue (at_place (w->modules, number_at (at_place (w->rows, (double) row), 3)));
  return name ? name : "";
}

static int64_t
caller_of (const Writing *w, int64_t row)
{
  double caller = number_at (at_place (w->rows, (double) row), 1);
  return caller < (double) row ? (int64_t) caller : -1;
}

static bool
is_aten (const Writing *w, int64_t row)
{
  const char *name = operator_of (w, row);
  return name && g_str_has_prefix (name, "aten::");
}

/* The operator of PyTorch that Python, or autograd, has called. */
static int64_t
outermost (const Writing *w, int64_t row)
{
  int64_t found = -1;
  for (; row >= 0; row = caller_of (w, row))
    if (is_aten (w, row))
      found = row;
  return found;
}

/* What PyTorch's ways to be data parallel do stands in ranges of theirs. */
static bool
is_of_data (const Writing *w, int64_t row)
{
  static const char *const ranges[]
      = { "FSDP::", "fsdp::", "FullyShardedDataParallel._", "c10d::", "torch::distributed::reducer::" };
  for (; row >= 0; row = caller_of (w, row))
    for (guint i = 0; i < G_N_ELEMENTS (ranges); i++)
      if (g_str_has_prefix (operator_of (w, row) ? operator_of (w, row) : "", ranges[i]))
        return true;
  return false;
}

/* What autograd calls, and what a module's forward does, is sure. Of others, what follows a backward pass
 * belongs to the optimizer, such as the norm of gradients, but for the last reductions; what follows a
 * module to the forward, such as the loss. */
static LsTag
tag_of (Writing *w, int64_t row)
{
  static const LsTag tags[] = { LS_TAG_F, LS_TAG_B, LS_TAG_RECOMPUTE, LS_TAG_OPTIMIZER };
  const cJSON *of = at_place (w->rows, (double) row);
  double phase = of ? number_at (of, 2) : 4;
  bool is_sure = phase > 0 ? phase < 4 : *module_of (w, row) != '\0';
  if (is_sure)
    w->is_after_backward = phase == 1 || phase == 2;
  return is_sure && phase >= 0 ? tags[(guint) phase]
      : !w->is_after_backward  ? LS_TAG_F
      : is_of_data (w, row)    ? LS_TAG_B
                               : LS_TAG_OPTIMIZER;
}

static void
close_segment (Writing *w)
{
  const TraceSegment segment = { g_strdup ("step"), w->ops };
  if (w->ops->len > 0) {
    g_array_append_val (w->x->file.segments, segment);
    w->ops = g_array_new (FALSE, TRUE, sizeof (TraceOp));
  } else {
    g_free (segment.name);
  }
  w->base = w->n_ops;
}

/* The op waits for these; of an earlier segment for all that was issued on its stream. */
static void
add_after (const Writing *w, TraceOp *op, const Points *waits, const Points *waited)
{
  for (guint u = 0; u < LS_N_STREAMS; u++) {
    if (waits->last[u] < 0 || (waited && waits->last[u] <= waited->last[u]))
      continue;
    bool is_here = waits->last[u] >= w->base;
    const LsDep dep
        = { is_here ? LS_DEP_END : LS_DEP_STREAM, (uint16_t) (is_here ? waits->last[u] - w->base : u) };
    if (!op->after)
      op->after = g_array_new (FALSE, FALSE, sizeof (LsDep));
    g_array_append_val (op->after, dep);
  }
}

/* Takes the name. What a graph has costs the host nothing but the launch of its first kernel. */
static TraceOp *
add_op (Writing *w, LsOpKind kind, char *name)
{
  if (w->n_ops - w->base >= MAX_OPS)
    close_segment (w);
  g_array_append_vals (w->ops, &ls_trace_op_blank, 1);
  TraceOp *op = &g_array_index (w->ops, TraceOp, w->ops->len - 1);
  op->kind = kind;
  op->name = name;
  op->host = w->is_in_graph ? LS_HOST_FREE : -1;
  int32_t work = kind == LS_OP_HOST_SYNC ? -1 : w->work;
  g_array_append_val (w->role->work, work);
  w->n_ops++;
  return op;
}

/* On a stream of the record, it waits for what the stream has waited for since. */
static TraceOp *
add_op_on (Writing *w, LsOpKind kind, char *name, uint32_t number)
{
  uint8_t s = w->role->streams[number];
  TraceOp *op = add_op (w, kind, name);
  op->stream = s;
  add_after (w, op, &w->waits[s], &w->waited[s]);
  w->waited[s] = w->waits[s];
  w->issued.last[s] = w->n_ops - 1;
  return op;
}

/* The host does `n` times what costs it that. */
static void
write_delay (Writing *w, LsHostCost cost, double n)
{
  if (!(n >= 1) || w->is_in_graph)
    return;
  TraceOp *op = add_op (w, LS_OP_HOST_DELAY, NULL);
  op->recorded = 0;
  op->host = (int) cost;
  op->repeat = (uint32_t) MIN (n, MOST_REPEATS);
}

/* Operators that began since the last launch, and launched nothing. */
static void
write_idle (Writing *w, int64_t row)
{
  if (w->is_in_graph)
    return;
  int64_t of = outermost (w, row);
  uint32_t n = 0;
  for (; w->next_row <= row; w->next_row++)
    n += w->next_row != of && is_aten (w, w->next_row) && !is_aten (w, caller_of (w, w->next_row));
  write_delay (w, LS_HOST_VIEW, n);
}

static char *
title_of (const Writing *w, int64_t row, const char *what)
{
  const char *name = operator_of (w, row), *module = module_of (w, row);
  name = what                             ? what
      : !name                             ? "outside of operators"
      : g_str_has_prefix (name, "aten::") ? name + strlen ("aten::")
                                          : name;
  return *module ? g_strdup_printf ("%s: %s", module, name) : g_strdup (name);
}

/* Words in the names of modules, as models have them (torchtitan, transformers, Megatron-LM, litgpt,
 * nanoGPT), and of operators outside of any. The first row counts; of a module the innermost name that has
 * one. What a layer has is neither embedding nor head. */
static const struct {
  LsSite site;
  bool is_of_layers;
  const char *words[7];
} sites[] = {
  { LS_SITE_LOSS, false, { "loss", "log_softmax", "cross_entropy" } },
  { LS_SITE_NORM, true, { "norm", "ln_" } },
  { LS_SITE_EXPERTS, true, { "expert", "moe", "router" } },
  { LS_SITE_ATTENTION, true, { "attn", "attention", "softmax", "mixer", "rotary" } },
  { LS_SITE_MLP, true, { "mlp", "feed_forward", "ffn" } },
  { LS_SITE_EMBEDDING, false, { "embed", "wte", "wpe" } },
  { LS_SITE_HEAD, false, { "output", "head" } },
};

/* Of a part of a name. */
static LsSite
site_by_word (const char *name, bool is_of_layer)
{
  g_autofree char *lower = g_ascii_strdown (name, -1);
  for (guint i = 0; i < G_N_ELEMENTS (sites); i++)
    for (const char *const *word = sites[i].words; *word; word++)
      if ((sites[i].is_of_layers || !is_of_layer) && strstr (lower, *word))
        return sites[i].site;
  return LS_SITE_OTHER;
}

/* What autograd does outside of modules, as adding up gradients, is of the one that it has just left. What a
 * recomputed layer does itself has no name in front of it. */
static LsSite
site_of (Writing *w, int64_t row)
{
  const char *module = module_of (w, row), *name = operator_of (w, row);
  g_auto (GStrv) parts = g_strsplit (module, ".", -1);
  guint n = g_strv_length (parts);
  LsTag tag = tag_of (w, row);
  bool is_of_layer = tag == LS_TAG_RECOMPUTE || module[strcspn (module, "0123456789")] != '\0';
  LsSite site = LS_SITE_OTHER;
  if (is_of_data (w, row))
    return LS_SITE_DATA;
  for (guint i = n; i-- > 0 && site == LS_SITE_OTHER;)
    site = site_by_word (parts[i], is_of_layer);
  if (site == LS_SITE_OTHER && n > 0 && is_of_layer && (n == 1 || g_ascii_isdigit (*parts[n - 1])))
    site = LS_SITE_RESIDUAL;
  else if (site == LS_SITE_OTHER && !is_of_layer)
    site = site_by_word (name ? name : "", false);
  if (site == LS_SITE_OTHER && !is_of_layer && w->site == LS_SITE_HEAD)
    return LS_SITE_LOSS; /* what follows the head, and its gradient */
  if (site == LS_SITE_OTHER && !*module && tag == LS_TAG_B)
    return w->site;
  w->site = site == LS_SITE_OTHER || !*module ? w->site : site;
  return site;
}

/* The first number in a module's name, as layers.3.mlp has it. */
static uint32_t
layer_of (const Writing *w, int64_t row)
{
  const char *name = module_of (w, row);
  name += strcspn (name, "0123456789");
  guint64 layer = *name ? g_ascii_strtoull (name, NULL, 10) : UINT16_MAX;
  return layer < UINT16_MAX ? (uint32_t) layer : LS_TRACE_ABSENT;
}

/* Its place in the trace, where each stands once; of a product FLOPs and bytes follow from its sizes. */
static uint32_t
kernel_number (CapturedReading *x, const LsKernel *from, const char *name)
{
  LsKernel k = ls_trace_kernel_blank;
  k.kind = from->kind;
  k.dtype = from->dtype;
  k.m = MAX (from->m, 1);
  k.n = MAX (from->n, 1);
  k.k = from->k;
  k.batch = MAX (from->batch, 1);
  k.access = from->access;
  k.is_guess = from->is_guess;
  k.attention = from->attention;
  k.masked = from->masked;
  if (!ls_kernel_is_gemm (k.kind)) {
    k.flops = from->flops > 0 ? from->flops : -1;
    k.bytes = rint (from->bytes);
  }
  k.name = g_strdup (name);
  return ls_trace_place (x->kernel_index, ls_trace_kernel_fields, x->file.kernels, &k, NULL);
}

static double
threads_of (const Line *l)
{
  double threads = 1;
  for (int i = 4; i < 10; i++)
    threads *= (double) size_at (l->line, i);
  return threads;
}

static void
note_unknown (Writing *w, const char *name, guint n)
{
  guint before = GPOINTER_TO_UINT (g_hash_table_lookup (w->x->unknown, name));
  g_hash_table_replace (w->x->unknown, g_strdup (name), GUINT_TO_POINTER (before + n));
  w->role->n_unknown += n;
}

/* Whether an operator that does not change its inputs has its only output among them, at the end:
 * aten::mul.out, whose overload no event says. */
static bool
is_into (const Writing *w, int64_t row, const cJSON *outputs)
{
  const char *op = operator_of (w, row);
  const cJSON *of = cJSON_GetArrayItem (at_place (w->rows, (double) row), 4);
  int n = cJSON_GetArraySize (of);
  return op && !g_str_has_suffix (op, "_") && cJSON_GetArraySize (outputs) == 1 && n >= 2
      && number_at (of, n - 1) == number_at (of, n - 2);
}

static void
write_launch (Writing *w, const Line *l)
{
  const cJSON *kind = kind_of (w, l->row);
  LsCapturedLaunch launch = { .work = (LsCapturedWork) l->what,
                              .op = operator_of (w, l->row),
                              .inputs = cJSON_GetObjectItemCaseSensitive (kind, "inputs"),
                              .outputs = cJSON_GetObjectItemCaseSensitive (kind, "outputs"),
                              .made = w->made,
                              .pairs = l->row >= 0 ? w->pairs[l->row] : 0,
                              .share = 1 };
  launch.is_into = is_into (w, l->row, launch.outputs);
  w->made = 0;
  if (l->what == 'k') {
    launch.kernel = cJSON_GetStringValue (at_place (w->kernels, number_at (l->line, 3)));
    launch.threads = threads_of (l);
    launch.blocks = (double) (size_at (l->line, 4) * size_at (l->line, 5) * size_at (l->line, 6));
    launch.share = l->row >= 0 ? launch.threads / w->threads[l->row] : 1;
  } else if (l->what == 'p' || l->what == 'd') {
    int first = l->what == 'p' ? 3 : 5;
    launch.m = size_at (l->line, first);
    launch.n = size_at (l->line, first + 1);
    launch.k = size_at (l->line, first + 2);
    launch.batch = size_at (l->line, l->what == 'p' ? 6 : 4);
    launch.compute = l->what == 'p' ? (uint32_t) CLAMP (number_at (l->line, 7), 0, 3) : 0;
    launch.products = l->what == 'd' ? number_at (l->line, 3) : 0;
    launch.is_masked = l->what == 'd' && number_at (l->line, 8) > 0;
    launch.all_bytes = l->what == 'd' ? number_at (l->line, 9) : 0;
  } else {
    launch.bytes = (double) size_at (l->line, 3);
  }
  LsKernel kernel;
  w->role->n_launches++;
  const char *op = launch.op ? launch.op : "outside of operators";
  const char *name = g_str_has_prefix (op, "aten::") ? op + strlen ("aten::") : op;
  kernel.is_guess = !ls_captured_kernel (&launch, &kernel);
  if (kernel.is_guess)
    note_unknown (w, name, 1);
  TraceOp *to = add_op_on (w, LS_OP_KERNEL, title_of (w, l->row, NULL), (uint32_t) number_at (l->line, 2));
  to->tag = (int) tag_of (w, l->row);
  to->layer = layer_of (w, l->row);
  to->site = (uint8_t) (to->tag == LS_TAG_OPTIMIZER ? LS_SITE_OPTIMIZER : site_of (w, l->row));
  to->kernel = kernel_number (w->x, &kernel, name);
}

static void
write_copy (Writing *w, const Line *l)
{
  int way = (int) number_at (l->line, 4);
  if (way == 0) {
    write_launch (w, l);
    return;
  }
  TraceOp *op = add_op_on (w, LS_OP_COPY, title_of (w, l->row, NULL), (uint32_t) number_at (l->line, 2));
  op->direction = way == 1 ? LS_COPY_TO_DEVICE : LS_COPY_TO_HOST;
  op->bytes = size_at (l->line, 3);
}

/* Its kernels are not in the record: it takes what the stand-ins' clock says. */
static void
write_unknown_graph (Writing *w, const Line *l)
{
  double n = CLAMP (number_at (l->line, 4), 0, 1e6), ps = MAX (number_at (l->line, 6), 0);
  TraceOp *op = add_op_on (w, LS_OP_KERNEL, g_strdup ("a graph of CUDA"), (uint32_t) number_at (l->line, 2));
  op->tag = (int) tag_of (w, l->row);
  op->recorded = (LsTime) rint (ps);
  w->role->n_launches += (uint32_t) n;
  note_unknown (w, "a graph of CUDA", (guint) n);
}

/* The bytes of the segment's last op are those of the rank that sends most. */
static void
note_exchange (Writing *w, CapturedGroup *g, uint64_t bytes)
{
  CapturedReading *x = w->x;
  GString *key = g_string_new (NULL);
  for (guint i = 0; i < g->ranks->len; i++)
    g_string_append_printf (key, "%u,", g_array_index (g->ranks, uint32_t, i));
  g_string_append_printf (key, ":%u", g->n_exchanges++);
  guint place = GPOINTER_TO_UINT (g_hash_table_lookup (x->exchange_of, key->str));
  if (place == 0) {
    g_array_append_val (x->exchanges, bytes);
    place = x->exchanges->len;
    g_hash_table_insert (x->exchange_of, g_strdup (key->str), GUINT_TO_POINTER (place));
  }
  uint64_t *most = &g_array_index (x->exchanges, uint64_t, place - 1);
  *most = MAX (*most, bytes);
  const CapturedExchange op = { w->ops, w->ops->len - 1, place - 1 };
  g_array_append_val (x->exchange_ops, op);
  g_string_free (key, TRUE);
}

static bool
write_collective (Writing *w, const Message *m, const char *coll, uint64_t bytes)
{
  CapturedGroup *g = w->role->groups->pdata[m->group];
  TraceOp *op = add_op_on (w, LS_OP_COLLECTIVE, title_of (w, m->row, coll), m->stream);
  op->slot = g->slot;
  op->dtype = (int) m->dtype;
  op->bytes = MAX (bytes, 1);
  if (!ls_field_value_set (ls_field_find (ls_trace_op_fields, "coll"), op, coll))
    return false;
  if (op->coll == LS_COLL_ALL_TO_ALL)
    note_exchange (w, g, op->bytes);
  if ((op->coll == LS_COLL_BROADCAST || op->coll == LS_COLL_REDUCE) && m->peer < g->ranks->len)
    op->root = m->peer;
  return true;
}

static void
write_neighbours (Writing *w, const GArray *batch)
{
  const Message *m = (const Message *) (const void *) batch->data;
  const CapturedGroup *g = w->role->groups->pdata[m->group];
  guint n = g->ranks->len, me = captured_place_in (g->ranks, w->role->rank);
  TraceOp *op = add_op_on (w, LS_OP_P2P, title_of (w, m->row, "send and receive"), m->stream);
  op->transfers = g_array_new (FALSE, FALSE, sizeof (TraceTransfer));
  for (guint i = 0; i < batch->len; i++) {
    bool is_next = n == 2 ? m[i].peer > me : m[i].peer == (me + 1) % n;
    TraceTransfer t = ls_trace_transfer_blank;
    *(strcmp (m[i].name, "send") == 0 ? &t.send : &t.receive) = is_next ? LS_SLOT_NEXT : LS_SLOT_PREV;
    t.bytes = MAX (m[i].bytes, 1);
    g_array_append_val (op->transfers, t);
  }
}

static bool
write_batch (Writing *w, GArray *batch, const char *file)
{
  const Message *m = (const Message *) (const void *) batch->data;
  uint64_t bytes = 0;
  if (batch->len == 0)
    return true;
  const CapturedGroup *g = w->role->groups->pdata[m->group];
  Way way = way_of (batch, w->role, &bytes);
  uint64_t n = g->ranks->len;
  w->work = w->is_in_graph ? w->work : m->work;
  write_idle (w, m->row);
  if (way == BY_OTHERS)
    return captured_complain (
        w->x, file,
        "rank %u sends to rank %u of a group, which is no neighbour there: a trace cannot say that",
        w->role->rank, m->peer);
  if (n > 1 && way == BY_COLLECTIVE) {
    bool is_of_all = strcmp (m->name, "all-gather") == 0 || strcmp (m->name, "reduce-scatter") == 0;
    if (!write_collective (w, m, m->name, m->bytes * (is_of_all ? n : 1)))
      return captured_complain (w->x, file, "did: \"%.40s\" is no collective", m->name);
  } else if (n > 1 && way == BY_NEIGHBOURS) {
    write_neighbours (w, batch);
  } else if (n > 1) {
    write_collective (w, m, way == BY_RING ? "permute" : "all-to-all", bytes);
  }
  g_array_set_size (batch, 0);
  return true;
}

static void
write_sync (Writing *w, const Points *until)
{
  bool is_any = false;
  for (guint u = 0; u < LS_N_STREAMS; u++)
    is_any |= until->last[u] >= 0;
  if (is_any)
    add_after (w, add_op (w, LS_OP_HOST_SYNC, NULL), until, NULL);
}

/* What was given to a stream until now, and what it waits for. */
static Points
until_now (const Writing *w, double number)
{
  uint8_t s = w->role->streams[(guint) number];
  Points points = no_points;
  for (guint u = 0; u < LS_N_STREAMS; u++)
    points.last[u] = w->waits[s].last[u] > w->waited[s].last[u] ? w->waits[s].last[u] : -1;
  points.last[s] = w->issued.last[s];
  return points;
}

static void
add_wait (Writing *w, double number, const Points *points)
{
  uint8_t s = w->role->streams[(guint) number];
  for (guint u = 0; u < LS_N_STREAMS; u++)
    if (u != s)
      w->waits[s].last[u] = MAX (w->waits[s].last[u], points->last[u]);
}

static bool write_graph (Writing *w, const Line *l, const char *file);

static bool
write_line (Writing *w, const Line *l, const char *file)
{
  double event = l->what == 'w' ? number_at (l->line, 2) : l->what == 'e' ? number_at (l->line, 1) : 0;
  if (event < 0 || (strchr ("we", l->what) && event >= w->events->len))
    return captured_complain (w->x, file, "did: an event is waited for that is not recorded before");
  const Points *points = strchr ("we", l->what) ? &g_array_index (w->events, Points, (guint) event) : NULL;
  if (l->what == 'y') {
    w->work = w->is_in_graph ? w->work : w->n_work; /* of what comes next */
    write_delay (w, LS_HOST_PYTHON, number_at (l->line, 1));
    w->role->n_calls += (uint64_t) MAX (number_at (l->line, 1), 0);
  } else if (l->what == '+') {
    w->made += MAX (number_at (l->line, 2), 0);
  } else if (l->what == 'w') {
    add_wait (w, number_at (l->line, 1), points);
  } else if (l->what == 'r') {
    const Points now = until_now (w, number_at (l->line, 1));
    while (w->events->len <= l->event)
      g_array_append_val (w->events, no_points);
    g_array_index (w->events, Points, l->event) = now;
  } else if (l->what == 'e') {
    write_sync (w, points);
  } else if (l->what == 'h') {
    const Points now = until_now (w, number_at (l->line, 1));
    write_sync (w, &now);
  } else if (l->what == 'a') {
    write_sync (w, &w->issued);
  } else if (strchr ("kpdgcf", l->what)) {
    w->work = w->is_in_graph ? w->work : l->work;
    write_idle (w, l->row);
    if (l->what == 'g')
      return write_graph (w, l, file);
    else if (l->what == 'c')
      write_copy (w, l);
    else
      write_launch (w, l);
  }
  return true;
}

/* Messages are gathered until all that are sent at once are there. */
static bool
take_line (Writing *w, const Line *l, GArray *batch, bool *is_batch, const char *file)
{
  Message m;
  if (l->what == 'm' && read_message (l, w->role, &m)) {
    if (is_of_next (&m, batch) && !write_batch (w, batch, file))
      return false;
    g_array_append_val (batch, m);
  }
  *is_batch = l->what == '(' || (*is_batch && l->what != ')');
  return (*is_batch || write_batch (w, batch, file)) && write_line (w, l, file);
}

/* A line as it stands: those of a graph that is captured are kept for its launches. */
static bool
take_next (Writing *w, const cJSON *each, GArray *batch, bool *is_batch, const char *file)
{
  Line l;
  read_line (each, &l);
  l.row = l.row < w->rows->len ? MAX (l.row, -1) : -1;
  if (l.what == 'r')
    l.event = w->n_records++;
  if (!w->open && strchr ("kpdgcfm", l.what))
    l.work = w->n_work++;
  if (l.what == 'b') {
    w->open = g_array_new (FALSE, FALSE, sizeof (Line));
    g_hash_table_replace (w->graphs, GINT_TO_POINTER ((int) number_at (each, 1)), w->open);
  } else if (l.what == 'x') {
    w->open = NULL;
  } else if (w->open) {
    g_array_append_val (w->open, l);
  } else {
    return take_line (w, &l, batch, is_batch, file);
  }
  return true;
}

/* It begins after what its stream was given before; what the stream is given next comes after all of it. */
static bool
write_graph (Writing *w, const Line *l, const char *file)
{
  const GArray *lines = g_hash_table_lookup (w->graphs, GINT_TO_POINTER ((int) number_at (l->line, 3)));
  double stream = number_at (l->line, 2);
  if (!lines || w->is_in_graph) {
    write_unknown_graph (w, l);
    return true;
  }
  if (w->n_ops + lines->len > MOST_OPS)
    return captured_complain (w->x, file, "its graphs launch more than %d kernels", MOST_OPS);
  g_autoptr (GArray) batch = g_array_new (FALSE, FALSE, sizeof (Message));
  bool ok = true, is_batch = false;
  add_op_on (w, LS_OP_RECORD, g_strdup ("a graph of CUDA"), (uint32_t) stream)->host = LS_HOST_LAUNCH;
  const Points before = until_now (w, stream);
  for (guint u = 0; u < w->role->n_streams; u++)
    add_wait (w, u, &before);
  w->is_in_graph = true;
  for (guint i = 0; ok && i < lines->len; i++)
    ok = take_line (w, &g_array_index (lines, Line, i), batch, &is_batch, file);
  ok = ok && write_batch (w, batch, file);
  w->is_in_graph = false;
  for (guint u = 0; u < w->role->n_streams; u++) {
    const Points now = until_now (w, u);
    add_wait (w, stream, &now);
  }
  return ok;
}

bool
captured_read_ops (CapturedReading *x, const char *file, const cJSON *root, CapturedRole *role)
{
  g_autoptr (GPtrArray) rows = places_of (root, "operators"), kinds = places_of (root, "kinds"),
                        kernels = places_of (root, "kernels"), modules = places_of (root, "modules");
  g_autoptr (GHashTable) graphs = g_hash_table_new_full (NULL, NULL, NULL, (GDestroyNotify) g_array_unref);
  g_autoptr (GArray) events = g_array_new (FALSE, FALSE, sizeof (Points)),
                     batch = g_array_new (FALSE, FALSE, sizeof (Message));
  g_autofree double *threads = g_new0 (double, 2 * (rows->len + 1));
  Writing w = { x,
                role,
                rows,
                kinds,
                kernels,
                modules,
                threads,
                threads + rows->len + 1,
                g_array_new (FALSE, TRUE, sizeof (TraceOp)),
                .issued = no_points,
                .events = events,
                .graphs = graphs };
  const cJSON *did = cJSON_GetObjectItemCaseSensitive (root, "did"), *each;
  bool ok = true, is_open = false;
  for (guint s = 0; s < LS_N_STREAMS; s++)
    w.waits[s] = w.waited[s] = no_points;
  cJSON_ArrayForEach (each, did) {
    Line l;
    bool is_of_row = read_line (each, &l) && l.row >= 0 && l.row < w.rows->len;
    if (is_of_row && l.what == 'k')
      w.threads[l.row] += threads_of (&l);
    if (is_of_row && l.what == 'v')
      w.pairs[l.row] = number_at (l.line, 2);
  }
  cJSON_ArrayForEach (each, did)
    if (!(ok = take_next (&w, each, batch, &is_open, file)))
      break;
  close_segment (&w);
  g_array_unref (w.ops);
  return ok;
}
