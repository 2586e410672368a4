/* data/measured/kineto_finish.c — what is known of a profile of Kineto once all events are there; its
 * process groups. */
#include "data/measured/kineto_reader.h"

#include <string.h>

#include "analysis/op_class.h"
#include "base/order.h"

/* --- process groups of a trace of torch.profiler ------------------------------------------------- */

/* Their ranks are "[0, 1, 2, 3]", of more than some thirty "[0, 1, ..., 127]"; newer releases also say
 * "Global rank start" and "Global rank stride". Kept is the rule: start, stride and size. */

#define MAX_GROUPS 4096

/* Ranks at equal steps, of which some in the middle may be left out. */
typedef struct {
  int64_t n, first, last, stride;
  bool is_cut, is_uneven;
} RankList;

static void
add_rank (RankList *l, int64_t rank)
{
  int64_t step = rank - l->last;
  if (l->n == 0)
    l->first = rank;
  else if (l->n == 1)
    l->stride = step;
  else if (!l->is_cut && step != l->stride)
    l->is_uneven = true;
  l->last = rank;
  l->n++;
}

static RankList
parse_ranks (const char *text)
{
  RankList l = { 0 };
  for (const char *c = text; *c;) {
    char *end;
    gint64 rank = g_ascii_isdigit (*c) ? g_ascii_strtoll (c, &end, 10) : -1;
    if (rank >= 0 && rank < G_MAXINT32)
      add_rank (&l, rank);
    else if (strncmp (c, "...", 3) == 0)
      l.is_cut = true;
    c = g_ascii_isdigit (*c) ? end : c + 1;
  }
  return l;
}

/* What the list says of a group of that size. */
static void
take_ranks (LsKinetoGroup *g, const char *text)
{
  RankList l = parse_ranks (text);
  if (l.n == 0)
    return;
  g->start = l.first;
  if (!l.is_cut)
    g->size = l.n;
  bool fits = l.stride > 0 && !l.is_uneven && (l.last - l.first) % l.stride == 0
      && (l.last - l.first) / l.stride == g->size - 1;
  g->stride = l.n == 1 && !l.is_cut ? 1 : fits ? l.stride : 0;
}

static uint32_t
add_group (LsKineto *k, const LsKinetoGroup *g)
{
  for (guint i = 0; i < k->groups->len; i++) {
    const LsKinetoGroup *have = &g_array_index (k->groups, LsKinetoGroup, i);
    if (have->name == g->name && have->what == g->what && have->size == g->size && have->start == g->start
        && have->stride == g->stride)
      return i + 1;
  }
  if (k->groups->len < MAX_GROUPS)
    g_array_append_val (k->groups, *g);
  return k->groups->len < MAX_GROUPS ? k->groups->len : 0;
}

static const LsKinetoGroup *
group_called (const LsKineto *k, const char *name)
{
  for (guint i = 0; *name && i < k->groups->len; i++)
    if (g_array_index (k->groups, LsKinetoGroup, i).name == name)
      return &g_array_index (k->groups, LsKinetoGroup, i);
  return NULL;
}

static int64_t
small (const LsKinetoNumber *n)
{
  return n->is_good && n->value > 0 && n->value < G_MAXINT32 ? n->value : 0;
}

uint32_t
kineto_group_of (LsKineto *k, const LsKinetoEvent *e)
{
  LsKinetoGroup g = { .name = g_string_chunk_insert_const (k->names, e->group->str),
                      .what = g_string_chunk_insert_const (k->names, e->group_what->str),
                      .size = small (&e->group_size) };
  take_ranks (&g, e->ranks->str);
  if (g.stride == 0 && e->ranks->len == 0 && g.size > 0) {
    g.start = small (&e->rank_start);
    g.stride = small (&e->rank_stride);
  }
  const LsKinetoGroup *known = g.stride == 0 ? group_called (k, g.name) : NULL;
  if (known && (g.size == 0 || g.size == known->size))
    return (uint32_t) (known - (const LsKinetoGroup *) (gconstpointer) k->groups->data) + 1;
  return g.size > 0 ? add_group (k, &g) : 0;
}

/* --- what can be told once all events are there -------------------------------------------------- */

static void
link_op (KinetoReader *r, LsKinetoOp *op)
{
  int64_t correlation = (int64_t) op->correlation;
  const Launch *launch = correlation != 0 ? g_hash_table_lookup (r->launches, &correlation) : NULL;
  if (launch) {
    op->launch = CLAMP (launch->start - r->first, -MAX_SPAN_NS, MAX_SPAN_NS);
    op->called = CLAMP (launch->end - r->first, -MAX_SPAN_NS, MAX_SPAN_NS);
    op->thread = launch->thread;
  }
  op->in_graph = launch && launch->is_graph;
  op->start -= r->first;
  op->end -= r->first;
  const Message *message = op->external >= 0 && g_ascii_strncasecmp (op->name, "nccl", 4) == 0
      ? g_hash_table_lookup (r->messages, &op->external)
      : NULL;
  if (!message)
    return;
  if (op->bytes == 0) {
    op->bytes = message->bytes;
    op->dtype = message->dtype;
  }
  op->group = op->group ? op->group : message->group;
  if (message->class != LS_CLASS_OTHER && (op->class == LS_CLASS_OTHER || op->class == message->class))
    op->class = message->class;
}

static int
by_start (gconstpointer a, gconstpointer b)
{
  const LsKinetoOp *x = a, *y = b;
  LS_SMALLER_FIRST (x->start, y->start);
  return LS_ORDER (x->record, y->record);
}

static int
calls_by_start (gconstpointer a, gconstpointer b)
{
  const LsKinetoCall *x = a, *y = b;
  LS_SMALLER_FIRST (x->start, y->start);
  return LS_ORDER (x->correlation, y->correlation);
}

/* Times from the first event on, and what CUPTI says of them besides. */
static void
finish_calls (KinetoReader *r)
{
  for (guint i = 0; i < r->k->calls->len; i++) {
    LsKinetoCall *call = &g_array_index (r->k->calls, LsKinetoCall, i);
    const SyncDetail *d = call->correlation ? g_hash_table_lookup (r->details, &call->correlation) : NULL;
    call->start = CLAMP (call->start - r->first, -MAX_SPAN_NS, MAX_SPAN_NS);
    call->end = CLAMP (call->end - r->first, -MAX_SPAN_NS, MAX_SPAN_NS);
    call->stream = d ? d->stream : -1;
    call->awaited = d ? d->awaited : -1;
    call->record = d ? d->record : 0;
  }
  g_array_sort (r->k->calls, calls_by_start);
}

static int
steps_by_start (gconstpointer a, gconstpointer b)
{
  return LS_ORDER (((const LsKinetoStep *) a)->start, ((const LsKinetoStep *) b)->start);
}

static void G_GNUC_PRINTF (2, 3) note (LsKineto *k, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  g_ptr_array_add (k->notes, g_strdup_printf ("%s: %s", k->path, text));
}

/* Of one stream, in order of their start. */
static void
note_overlaps (LsKineto *k)
{
  g_autoptr (GHashTable) last = g_hash_table_new (g_direct_hash, g_direct_equal); /* stream -> op */
  guint n = 0;
  const LsKinetoOp *first = NULL, *under = NULL;
  for (guint i = 0; i < k->ops->len; i++) {
    const LsKinetoOp *op = &g_array_index (k->ops, LsKinetoOp, i),
                     *before = g_hash_table_lookup (last, GINT_TO_POINTER (op->stream));
    if (op->stream < 0)
      continue;
    if (before && before->end > op->start + OVERLAP_NS && n++ == 0) {
      first = op;
      under = before;
    }
    if (!before || op->end > before->end)
      g_hash_table_insert (last, GINT_TO_POINTER (op->stream), (gpointer) op);
  }
  g_autofree char *name = first ? kineto_short_name (first->name) : NULL;
  if (first)
    note (k,
          "%u kernel%s overlap%s another one of the same stream, the first is record %u \"%s\" on stream %d, "
          "under record %u: a merge of several traces, or kernels that start early on purpose",
          n, n > 1 ? "s" : "", n > 1 ? "" : "s", first->record, name, first->stream, under->record);
}

static void
note_missing (LsKineto *k)
{
  guint n_streamless = 0, n_unlinked = 0;
  for (guint i = 0; i < k->ops->len; i++) {
    n_streamless += g_array_index (k->ops, LsKinetoOp, i).stream < 0;
    n_unlinked += g_array_index (k->ops, LsKinetoOp, i).launch == LS_KINETO_NONE;
  }
  if (n_streamless > 0)
    note (k,
          "%u of %u kernels and copies do not say their \"stream\", as PyTorch's do: whether they overlap is "
          "not checked",
          n_streamless, k->ops->len);
  if (n_unlinked > 0)
    note (k,
          "%u of %u kernels and copies have no launch by the host in the trace (\"correlation\" of a "
          "cuda_runtime event): waiting for the host shows as gaps of the device",
          n_unlinked, k->ops->len);
}

static bool
check_span (KinetoReader *r)
{
  int64_t last = r->first;
  for (guint i = 0; i < r->k->ops->len; i++)
    last = MAX (last, g_array_index (r->k->ops, LsKinetoOp, i).end);
  for (guint i = 0; i < r->k->steps->len; i++)
    last = MAX (last, g_array_index (r->k->steps, LsKinetoStep, i).end);
  if (last - r->first <= MAX_SPAN_NS)
    return true;
  ls_diag_add (r->diags, LS_ERROR_INPUT, r->k->path, 0, 0, NULL, NULL, "are \"ts\" and \"dur\" microseconds?",
               "the events span more than 11 days");
  return false;
}

static void
refuse_without_kernels (const KinetoReader *r)
{
  g_autoptr (GString) seen = g_string_new (NULL);
  for (guint i = 0; i < r->categories->len; i++)
    g_string_append_printf (seen, "%s\"%s\"", i > 0 ? ", " : "; there are ",
                            (const char *) r->categories->pdata[i]);
  ls_diag_add (r->diags, LS_ERROR_INPUT, r->k->path, 0, 0, NULL, NULL,
               r->is_xla ? "it is of XLA (JAX, TPUs); read are those of torch.profiler on GPUs"
                         : "was the GPU profiled? activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
               "no kernels: none of %" G_GUINT64_FORMAT " records is of the category \"kernel\"%s",
               r->k->n_records, seen->str);
}

void
kineto_finish (KinetoReader *r)
{
  LsKineto *k = r->k;
  if (!r->has_kernels) {
    refuse_without_kernels (r);
    return;
  }
  if (!check_span (r))
    return;
  for (guint i = 0; i < k->ops->len; i++)
    link_op (r, &g_array_index (k->ops, LsKinetoOp, i));
  for (guint i = 0; i < k->steps->len; i++) {
    LsKinetoStep *step = &g_array_index (k->steps, LsKinetoStep, i);
    step->start -= r->first;
    step->end -= r->first;
  }
  finish_calls (r);
  g_array_sort (k->ops, by_start);
  g_array_sort (k->steps, steps_by_start);
  note_overlaps (k);
  note_missing (k);
}
