#include "data/measured/read_kineto.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "analysis/op_class.h"
#include "base/dtype.h"
#include "base/order.h"
#include "data/measured/kineto_reader.h"
#include "data/text/read_file.h"

void
ls_kineto_free (LsKineto *k)
{
  if (!k)
    return;
  g_free (k->path);
  g_free (k->gpu);
  g_array_unref (k->ops);
  g_array_unref (k->steps);
  g_array_unref (k->calls);
  g_array_unref (k->groups);
  g_string_chunk_free (k->names);
  g_ptr_array_unref (k->notes);
  g_free (k);
}

LsKineto *
kineto_new (const char *path)
{
  LsKineto *k = g_new0 (LsKineto, 1);
  k->path = g_strdup (path);
  k->ops = g_array_new (FALSE, FALSE, sizeof (LsKinetoOp));
  k->steps = g_array_new (FALSE, FALSE, sizeof (LsKinetoStep));
  k->calls = g_array_new (FALSE, FALSE, sizeof (LsKinetoCall));
  k->groups = g_array_new (FALSE, FALSE, sizeof (LsKinetoGroup));
  k->names = g_string_chunk_new (4096);
  k->notes = g_ptr_array_new_with_free_func (g_free);
  k->rank = k->world_size = -1;
  return k;
}

/* ---- one event ---- */

typedef enum { NUMBER, MICROSECONDS, TEXT, RANKS } MemberKind;

typedef struct {
  const char *key;
  MemberKind kind;
  size_t offset; /* of an LsKinetoNumber, or a GString * */
} Member;

/* What is kept of it, and where; behind what it has itself what its "args" have. */
#define N_OWN 6
static const Member members[] = {
  { "ts", MICROSECONDS, offsetof (LsKinetoEvent, ts) },
  { "dur", MICROSECONDS, offsetof (LsKinetoEvent, dur) },
  { "tid", NUMBER, offsetof (LsKinetoEvent, thread) },
  { "cat", TEXT, offsetof (LsKinetoEvent, category) },
  { "name", TEXT, offsetof (LsKinetoEvent, name) },
  { "ph", TEXT, offsetof (LsKinetoEvent, phase) },
  { "correlation", NUMBER, offsetof (LsKinetoEvent, correlation) },
  { "External id", NUMBER, offsetof (LsKinetoEvent, external) },
  { "stream", NUMBER, offsetof (LsKinetoEvent, stream) },
  { "device", NUMBER, offsetof (LsKinetoEvent, device) },
  { "bytes", NUMBER, offsetof (LsKinetoEvent, bytes) },
  { "In msg nelems", NUMBER, offsetof (LsKinetoEvent, n_in) },
  { "Out msg nelems", NUMBER, offsetof (LsKinetoEvent, n_out) },
  { "Collective name", TEXT, offsetof (LsKinetoEvent, collective) },
  { "dtype", TEXT, offsetof (LsKinetoEvent, dtype) },
  { "Group size", NUMBER, offsetof (LsKinetoEvent, group_size) },
  { "Global rank start", NUMBER, offsetof (LsKinetoEvent, rank_start) },
  { "Global rank stride", NUMBER, offsetof (LsKinetoEvent, rank_stride) },
  { "Process Group Name", TEXT, offsetof (LsKinetoEvent, group) },
  { "Process Group Description", TEXT, offsetof (LsKinetoEvent, group_what) },
  { "Process Group Ranks", RANKS, offsetof (LsKinetoEvent, ranks) },
  { "wait_on_stream", NUMBER, offsetof (LsKinetoEvent, wait_stream) },
  { "wait_on_cuda_event_record_corr_id", NUMBER, offsetof (LsKinetoEvent, wait_record) },
};

/* Of a process group that the head of the file lists. */
static const Member listed[] = {
  { "pg_name", TEXT, offsetof (LsKinetoEvent, group) },
  { "pg_desc", TEXT, offsetof (LsKinetoEvent, group_what) },
  { "ranks", RANKS, offsetof (LsKinetoEvent, ranks) },
  { "pg_size", NUMBER, offsetof (LsKinetoEvent, group_size) },
};

/* The text of a member; NULL: it is a number. */
static GString **
text_of (LsKinetoEvent *e, const Member *m)
{
  return m->kind >= TEXT ? (GString **) (gpointer) ((char *) e + m->offset) : NULL;
}

static LsKinetoNumber *
number_of (LsKinetoEvent *e, const Member *m)
{
  return (LsKinetoNumber *) (gpointer) ((char *) e + m->offset);
}

static void
number_reset (LsKinetoNumber *n)
{
  g_free (n->got);
  *n = (LsKinetoNumber) { 0 };
}

/* Nothing is known of it. */
static void
event_reset (LsKinetoEvent *e)
{
  for (guint i = 0; i < G_N_ELEMENTS (members); i++)
    if (!text_of (e, &members[i]))
      number_reset (number_of (e, &members[i]));
    else if (!*text_of (e, &members[i]))
      *text_of (e, &members[i]) = g_string_new (NULL);
    else
      g_string_truncate (*text_of (e, &members[i]), 0);
  e->is_xla = false;
}

/* Digits before the point and `digits` after it, the next one rounds. */
static bool
plain_decimal (const char *c, int digits, int64_t *ret)
{
  bool is_negative = *c == '-', has_digit = false;
  int64_t value = 0;
  int n_after = -1; /* digits seen behind the point; -1: none yet */
  bool round_up = false;
  for (c += is_negative; *c; c++) {
    if (*c == '.' && n_after < 0) {
      n_after = 0;
      continue;
    }
    if (!g_ascii_isdigit (*c))
      return false;
    has_digit = true;
    if (n_after >= 0 && ++n_after > digits) {
      round_up = round_up || (n_after == digits + 1 && *c >= '5');
      continue;
    }
    if (value > (G_MAXINT64 - 9) / 10)
      return false;
    value = 10 * value + (*c - '0');
  }
  for (int i = MAX (n_after, 0); i < digits; i++) {
    if (value > G_MAXINT64 / 10)
      return false;
    value *= 10;
  }
  value += round_up && value < G_MAXINT64;
  *ret = is_negative ? -value : value;
  return has_digit;
}

bool
ls_kineto_decimal (const char *text, int digits, int64_t *ret)
{
  if (!strpbrk (text, "eE"))
    return plain_decimal (text, digits, ret);
  char *end;
  double value = g_ascii_strtod (text, &end) * pow (10, digits);
  if (end == text || *end || !(fabs (value) < 9e18))
    return false;
  *ret = (int64_t) llround (value);
  return true;
}

/* PyTorch quotes some numbers. */
static bool
read_number (LsJsonPull *p, int digits, LsKinetoNumber *n)
{
  LsJsonToken token = ls_json_pull_next (p);
  number_reset (n);
  n->is_there = true;
  n->where = ls_json_pull_where (p);
  bool is_text = token == LS_TOKEN_NUMBER || token == LS_TOKEN_STRING;
  n->is_good = is_text && ls_kineto_decimal (ls_json_pull_text (p), digits, &n->value);
  if (!n->is_good && token != LS_TOKEN_BAD)
    n->got = ls_json_pull_describe (p, token);
  return ls_json_pull_skip (p, token);
}

static bool
read_string (LsJsonPull *p, GString *to)
{
  LsJsonToken token = ls_json_pull_next (p);
  if (token == LS_TOKEN_STRING || token == LS_TOKEN_NUMBER)
    g_string_assign (to, ls_json_pull_text (p));
  return ls_json_pull_skip (p, token);
}

/* "[0, 1]", a list or the text of one; false: bad JSON. */
static bool
read_ranks (LsJsonPull *p, GString *to)
{
  LsJsonToken token = ls_json_pull_next (p);
  if (token == LS_TOKEN_STRING)
    g_string_assign (to, ls_json_pull_text (p));
  if (token != LS_TOKEN_ARRAY)
    return ls_json_pull_skip (p, token);
  while ((token = ls_json_pull_next (p)) != LS_TOKEN_ARRAY_END) {
    if (token == LS_TOKEN_NUMBER)
      g_string_append_printf (to, "%s%s", to->len > 0 ? "," : "", ls_json_pull_text (p));
    if (!ls_json_pull_skip (p, token))
      return false;
  }
  return true;
}

/* Bytes of an element of a number format of c10, by how its name begins; 0: unknown. */
static uint32_t
dtype_bytes (const char *name)
{
  static const struct {
    uint32_t bytes;
    const char *names[7];
  } sizes[] = {
    { 1, { "float8", "byte", "uint8", "int8", "char", "bool" } },
    { 2, { "bfloat16", "half", "float16", "short", "int16" } },
    { 8, { "float64", "double", "int64", "long" } },
    { 4, { "float", "int" } },
  };
  g_autofree char *small = g_ascii_strdown (name, -1);
  const char *plain = g_str_has_prefix (small, "torch.") ? small + strlen ("torch.") : small;
  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++)
    for (const char *const *known = sizes[i].names; *known; known++)
      if (g_str_has_prefix (plain, *known))
        return sizes[i].bytes;
  return 0;
}

/* LsDtype of as many bytes as elements of that name have; fp32 if it is not known. */
static uint8_t
dtype_of (const char *name)
{
  uint32_t bytes = dtype_bytes (name);
  return (uint8_t) (bytes == 2 ? LS_DTYPE_BF16 : bytes == 1 ? LS_DTYPE_BYTE : LS_DTYPE_FP32);
}

static bool
pass_over (KinetoReader *r)
{
  return ls_json_pull_skip (r->p, ls_json_pull_next (r->p));
}

/* The value of a key, if it is one of n members, else passed over. */
static bool
read_one_of (KinetoReader *r, const Member *from, guint n, const char *key,
             int (*compare) (const char *, const char *))
{
  LsKinetoEvent *e = &r->event;
  const Member *m = from;
  while (m < from + n && compare (key, m->key) != 0)
    m++;
  return m == from + n   ? pass_over (r)
      : m->kind == RANKS ? read_ranks (r->p, *text_of (e, m))
      : m->kind == TEXT  ? read_string (r->p, *text_of (e, m))
                         : read_number (r->p, m->kind == MICROSECONDS ? 3 : 0, number_of (e, m));
}

/* Reads the value of a member of an object; false: bad JSON. */
typedef bool ReadMember (KinetoReader *r, const char *key);

/* An object whose first token is there; anything else is passed over. */
static bool
read_object (KinetoReader *r, LsJsonToken token, ReadMember *member)
{
  if (token != LS_TOKEN_OBJECT)
    return ls_json_pull_skip (r->p, token);
  while ((token = ls_json_pull_next (r->p)) == LS_TOKEN_KEY)
    if (!member (r, ls_json_pull_text (r->p)))
      return false;
  return token == LS_TOKEN_OBJECT_END;
}

/* The same of a list of objects, each of which `take` gets, unless NULL. */
static bool
read_objects (KinetoReader *r, LsJsonToken token, ReadMember *member, void (*take) (KinetoReader *r))
{
  if (token != LS_TOKEN_ARRAY)
    return ls_json_pull_skip (r->p, token);
  while ((token = ls_json_pull_next (r->p)) != LS_TOKEN_ARRAY_END) {
    event_reset (&r->event);
    if (!read_object (r, token, member))
      return false;
    if (take)
      take (r);
  }
  return true;
}

static bool
read_arg (KinetoReader *r, const char *key)
{
  r->event.is_xla = r->event.is_xla || strcmp (key, "hlo_op") == 0 || strcmp (key, "hlo_module") == 0;
  return read_one_of (r, members + N_OWN, G_N_ELEMENTS (members) - N_OWN, key,
                      g_ascii_strcasecmp); /* "external id", once */
}

static bool
read_member (KinetoReader *r, const char *key)
{
  return strcmp (key, "args") == 0 ? read_object (r, ls_json_pull_next (r->p), read_arg)
                                   : read_one_of (r, members, N_OWN, key, g_strcmp0);
}

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

uint32_t
kineto_add_group (LsKineto *k, const LsKinetoGroup *g)
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

static int64_t
small (const LsKinetoNumber *n)
{
  return n->is_good && n->value > 0 && n->value < G_MAXINT32 ? n->value : 0;
}

/* The process group that an event names: 1 + its place in k->groups, where it is added if it is new; 0: it
 * names none. */
static uint32_t
group_of (LsKineto *k, const LsKinetoEvent *e)
{
  LsKinetoGroup g = { .name = g_string_chunk_insert_const (k->names, e->group->str),
                      .what = g_string_chunk_insert_const (k->names, e->group_what->str),
                      .size = small (&e->group_size) };
  take_ranks (&g, e->ranks->str);
  if (g.stride == 0 && e->ranks->len == 0 && g.size > 0) {
    g.start = small (&e->rank_start);
    g.stride = small (&e->rank_stride);
  }
  guint known = 0;
  while (known < k->groups->len && g_array_index (k->groups, LsKinetoGroup, known).name != g.name)
    known++;
  if (g.stride == 0 && *g.name && known < k->groups->len
      && (g.size == 0 || g.size == g_array_index (k->groups, LsKinetoGroup, known).size))
    return known + 1;
  return g.size > 0 ? kineto_add_group (k, &g) : 0;
}

/* ---- events ---- */

/* Of a kernel, without arguments: names of templates go on for lines. Newly allocated. */
static char *
short_name (const char *name)
{
  return g_utf8_strlen (name, -1) > 60 ? g_utf8_substring (name, 0, 60) : g_strdup (name);
}

/* The record is told as the place is: an editor may not open a file of a gigabyte. */
static void
complain (KinetoReader *r, LsJsonWhere where, const char *hint, const char *message)
{
  g_autofree char *name = short_name (r->event.name->str);
  ls_json_pull_diag (r->p, where, r->diags, hint, "record %" G_GUINT64_FORMAT " (%s \"%s\"): %s",
                     r->k->n_records, r->event.category->str, name, message);
}

static bool
check_number (KinetoReader *r, const char *key, const LsKinetoNumber *n, bool is_required)
{
  if (n->is_there ? n->is_good : !is_required)
    return true;
  g_autofree char *message = n->is_there ? g_strdup_printf ("\"%s\": expected a number; got %s", key, n->got)
                                         : g_strdup_printf ("missing key \"%s\"", key);
  complain (r, n->is_there ? n->where : r->event.where, NULL, message);
  return false;
}

static bool
check_times (KinetoReader *r)
{
  const LsKinetoEvent *e = &r->event;
  if (!check_number (r, "ts", &e->ts, true) || !check_number (r, "dur", &e->dur, true))
    return false;
  const char *message = e->dur.value < 0 ? "\"dur\": expected 0 or more; it lasts a negative time"
      : e->ts.value < 0                  ? "\"ts\": expected 0 or more; it starts before all clocks"
      : e->ts.value > MAX_NS || e->dur.value > MAX_NS ? "\"ts\": beyond what a clock of nanoseconds reaches"
                                                      : NULL;
  if (!message)
    return true;
  complain (r, e->dur.value < 0 ? e->dur.where : e->ts.where,
            "PyTorch writes no such event: the file was changed, or damaged, after it was written", message);
  return false;
}

static uint64_t
message_bytes (const LsKinetoEvent *e)
{
  int64_t n = MAX (e->n_in.is_good ? e->n_in.value : 0, e->n_out.is_good ? e->n_out.value : 0);
  return n > 0 && n < G_MAXINT64 / 16 ? (uint64_t) n * dtype_bytes (e->dtype->str) : 0;
}

LsKinetoOp *
kineto_add_op (KinetoReader *r, int64_t start, int64_t end, const char *name, LsOpClass class,
               int64_t correlation)
{
  const LsKinetoOp op = { .start = start,
                          .end = end,
                          .launch = LS_KINETO_NONE,
                          .called = LS_KINETO_NONE,
                          .name = g_string_chunk_insert_const (r->k->names, name),
                          .dtype = dtype_of (""),
                          .correlation = (uint64_t) correlation,
                          .thread = -1,
                          .stream = -1,
                          .external = -1,
                          .class = (uint8_t) class };
  g_array_append_val (r->k->ops, op);
  r->first = MIN (r->first, start);
  return &g_array_index (r->k->ops, LsKinetoOp, r->k->ops->len - 1);
}

void
kineto_add_step (KinetoReader *r, LsKinetoStep step)
{
  g_array_append_val (r->k->steps, step);
  r->first = MIN (r->first, step.start);
}

static int32_t
stream_of (const LsKinetoNumber *n)
{
  return n->is_good ? (int32_t) CLAMP (n->value, 0, G_MAXINT32) : -1;
}

static void
add_op (KinetoReader *r, LsOpClass class)
{
  const LsKinetoEvent *e = &r->event;
  bool is_communication = ls_op_class_is_communication (class);
  if (!check_times (r) || !check_number (r, "stream", &e->stream, false)
      || !check_number (r, "correlation", &e->correlation, false)
      || !check_number (r, "device", &e->device, false))
    return;
  if (e->device.is_there && r->device >= 0 && e->device.value != r->device && !r->has_devices) {
    r->has_devices = true;
    g_autofree char *message = g_strdup_printf (
        "on device %" G_GINT64_FORMAT ", others on device %" G_GINT64_FORMAT, e->device.value, r->device);
    complain (r, e->device.where, "a trace is of one rank, which has one GPU: give the trace of one process",
              message);
  }
  if (e->device.is_there && r->device < 0)
    r->device = e->device.value;
  LsKinetoOp *op = kineto_add_op (r, e->ts.value, e->ts.value + e->dur.value, e->name->str, class,
                                  e->correlation.is_there ? e->correlation.value : 0);
  op->bytes = is_communication ? message_bytes (e) : 0;
  op->group = is_communication ? group_of (r->k, e) : 0;
  op->dtype = dtype_of (e->dtype->str);
  op->record = (uint32_t) r->k->n_records;
  op->stream = stream_of (&e->stream);
  op->external = e->external.is_good ? e->external.value : -1;
}

/* Of CUDA's and HIP's runtime and driver: "cudaStreamSynchronize", "hipEventRecord", "cuStreamWaitEvent"; -1:
 * another. */
static int
kind_of_call (const char *name)
{
  return strstr (name, "Synchronize")    ? LS_CALL_SYNC
      : strstr (name, "StreamWaitEvent") ? LS_CALL_WAIT
      : strstr (name, "EventRecord")     ? LS_CALL_RECORD
                                         : -1;
}

void
kineto_add_call (KinetoReader *r, int64_t correlation, const char *name, Launch launch)
{
  int kind = kind_of_call (name);
  const LsKinetoCall call = { .start = launch.start,
                              .end = launch.end,
                              .correlation = (uint64_t) correlation,
                              .stream = -1,
                              .awaited = -1,
                              .kind = (uint8_t) kind };
  launch.is_graph = strstr (name, "GraphLaunch") != NULL;
  if (kind >= 0)
    g_array_append_val (r->k->calls, call);
  else if (correlation != 0)
    g_hash_table_insert (r->launches, GSIZE_TO_POINTER (correlation), g_memdup2 (&launch, sizeof launch));
}

/* One that launches is of no use without its correlation. */
static void
add_call (KinetoReader *r)
{
  const LsKinetoEvent *e = &r->event;
  int64_t correlation = e->correlation.is_good ? e->correlation.value : 0;
  if ((kind_of_call (e->name->str) >= 0 || correlation != 0) && check_times (r))
    kineto_add_call (r, correlation, e->name->str,
                     (Launch) { .start = e->ts.value,
                                .end = e->ts.value + e->dur.value,
                                .thread = e->thread.is_good ? e->thread.value : -1 });
}

void
kineto_add_detail (KinetoReader *r, int64_t correlation, SyncDetail detail)
{
  g_hash_table_insert (r->details, GSIZE_TO_POINTER (correlation), g_memdup2 (&detail, sizeof detail));
}

/* "Stream Wait Event", "Stream Sync", "Context Sync": what CUPTI knows of a call besides. */
static void
add_detail (KinetoReader *r)
{
  const LsKinetoEvent *e = &r->event;
  bool is_wait = e->wait_stream.is_good;
  if (!e->correlation.is_good || e->correlation.value == 0)
    return;
  kineto_add_detail (r, e->correlation.value,
                     (SyncDetail) { .record = e->wait_record.is_good ? (uint64_t) e->wait_record.value : 0,
                                    .stream = is_wait ? stream_of (&e->stream) : -1,
                                    .awaited = stream_of (is_wait ? &e->wait_stream : &e->stream) });
}

static void
add_message (KinetoReader *r)
{
  const LsKinetoEvent *e = &r->event;
  if (!e->external.is_good || e->collective->len == 0)
    return;
  const Message message = { .bytes = message_bytes (e),
                            .group = group_of (r->k, e),
                            .class = (uint8_t) ls_op_class_of_collective (e->collective->str),
                            .dtype = dtype_of (e->dtype->str) };
  g_hash_table_insert (r->messages, GSIZE_TO_POINTER (e->external.value),
                       g_memdup2 (&message, sizeof message));
}

static void
add_step (KinetoReader *r)
{
  const LsKinetoEvent *e = &r->event;
  guint64 number;
  if (!g_ascii_string_to_unsigned (e->name->str + strlen (STEP_NAME), 10, 0, G_MAXINT64, &number, NULL)
      || !check_times (r))
    return;
  kineto_add_step (r,
                   (LsKinetoStep) { e->ts.value, e->ts.value + e->dur.value, number,
                                    e->thread.is_good ? e->thread.value : -1 });
}

static bool
is_category (const LsKinetoEvent *e, const char *name)
{
  return g_ascii_strcasecmp (e->category->str, name) == 0;
}

/* What a trace without kernels has instead. */
static void
see_category (KinetoReader *r)
{
  r->is_xla = r->is_xla || r->event.is_xla;
  if (r->has_kernels || r->categories->len == MAX_SHOWN || r->event.category->len == 0
      || g_ptr_array_find_with_equal_func (r->categories, r->event.category->str, g_str_equal, NULL))
    return;
  g_ptr_array_add (r->categories, short_name (r->event.category->str));
}

static void
take_event (KinetoReader *r)
{
  const LsKinetoEvent *e = &r->event;
  if (strcmp (e->phase->str, "X") != 0)
    return;
  see_category (r);
  if (is_category (e,
                   "kernel")) { /* what the call says goes before the name of the kernel, which NCCL shares */
    LsOpClass called
        = e->collective->len > 0 ? ls_op_class_of_collective (e->collective->str) : LS_CLASS_OTHER;
    r->has_kernels = true;
    add_op (r, called != LS_CLASS_OTHER ? called : ls_op_class_of_kernel (e->name->str));
  } else if (is_category (e, "gpu_memcpy") || is_category (e, "memcpy"))
    add_op (r, LS_CLASS_COPY);
  else if (is_category (e, "gpu_memset") || is_category (e, "memset"))
    add_op (r, LS_CLASS_MEMSET);
  else if (is_category (e, "cuda_runtime") || is_category (e, "cuda_driver") || is_category (e, "runtime"))
    add_call (r);
  else if (is_category (e, "cuda_sync"))
    add_detail (r);
  else if (g_str_has_prefix (e->name->str, STEP_NAME) && !is_category (e, "gpu_user_annotation"))
    add_step (r);
  else if (strcmp (e->name->str, COMMS_NAME) == 0)
    add_message (r);
}

/* --- what can be told once all events are there -------------------------------------------------- */

static void
link_op (KinetoReader *r, LsKinetoOp *op)
{
  const Launch *launch
      = op->correlation != 0 ? g_hash_table_lookup (r->launches, GSIZE_TO_POINTER (op->correlation)) : NULL;
  if (launch) {
    op->launch = CLAMP (launch->start - r->first, -MAX_SPAN_NS, MAX_SPAN_NS);
    op->called = CLAMP (launch->end - r->first, -MAX_SPAN_NS, MAX_SPAN_NS);
    op->thread = launch->thread;
  }
  op->in_graph = launch && launch->is_graph;
  op->start -= r->first;
  op->end -= r->first;
  const Message *message = op->external >= 0 && g_ascii_strncasecmp (op->name, "nccl", 4) == 0
      ? g_hash_table_lookup (r->messages, GSIZE_TO_POINTER (op->external))
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
    const SyncDetail *d
        = call->correlation ? g_hash_table_lookup (r->details, GSIZE_TO_POINTER (call->correlation)) : NULL;
    call->start = CLAMP (call->start - r->first, -MAX_SPAN_NS, MAX_SPAN_NS);
    call->end = CLAMP (call->end - r->first, -MAX_SPAN_NS, MAX_SPAN_NS);
    call->stream = d ? d->stream : -1;
    call->awaited = d ? d->awaited : -1;
    call->record = d ? d->record : 0;
  }
  g_array_sort (r->k->calls, calls_by_start);
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
  g_autofree char *name = first ? short_name (first->name) : NULL;
  if (first)
    ls_note (
        k->notes,
        "%s: %u kernel%s overlap%s another one of the same stream, the first is record %u \"%s\" on stream "
        "%d, under record %u: a merge of several traces, or kernels that start early on purpose",
        k->path, n, n > 1 ? "s" : "", n > 1 ? "" : "s", first->record, name, first->stream, under->record);
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
    ls_note (
        k->notes,
        "%s: %u of %u kernels and copies do not say their \"stream\", as PyTorch's do: whether they overlap "
        "is not checked",
        k->path, n_streamless, k->ops->len);
  if (n_unlinked > 0)
    ls_note (k->notes,
             "%s: %u of %u kernels and copies have no launch by the host in the trace (\"correlation\" of a "
             "cuda_runtime event): waiting for the host shows as gaps of the device",
             k->path, n_unlinked, k->ops->len);
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
  return ls_file_diag (r->diags, LS_ERROR_INPUT, r->k->path, "are \"ts\" and \"dur\" microseconds?",
                       "the events span more than 11 days");
}

static void
refuse_without_kernels (const KinetoReader *r)
{
  g_autoptr (GString) seen = g_string_new (NULL);
  for (guint i = 0; i < r->categories->len; i++)
    g_string_append_printf (seen, "%s\"%s\"", i > 0 ? ", " : "; there are ",
                            (const char *) r->categories->pdata[i]);
  ls_file_diag (r->diags, LS_ERROR_INPUT, r->k->path,
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
  g_array_sort (k->steps, ls_compare_int64); /* by start */
  note_overlaps (k);
  note_missing (k);
}

/* ---- the document ---- */

static bool
read_events (KinetoReader *r, LsJsonToken token)
{
  if (token != LS_TOKEN_ARRAY) {
    if (token != LS_TOKEN_BAD)
      ls_json_pull_diag (r->p, ls_json_pull_where (r->p), r->diags, NULL,
                         "\"traceEvents\": expected an array of events");
    return ls_json_pull_skip (r->p, token);
  }
  while ((token = ls_json_pull_next (r->p)) != LS_TOKEN_ARRAY_END) {
    event_reset (&r->event);
    r->event.where = ls_json_pull_where (r->p);
    if (!read_object (r, token, read_member))
      return false;
    if (token == LS_TOKEN_OBJECT && ls_diag_list_n (r->diags) < MAX_DIAGS)
      take_event (r);
    r->k->n_records++;
  }
  return true;
}

static bool
read_integer (KinetoReader *r, int64_t *ret)
{
  LsJsonToken token = ls_json_pull_next (r->p);
  int64_t value;
  if (token == LS_TOKEN_NUMBER && ls_kineto_decimal (ls_json_pull_text (r->p), 0, &value) && value >= 0)
    *ret = value;
  return ls_json_pull_skip (r->p, token);
}

static bool
read_listed (KinetoReader *r, const char *key)
{
  return read_one_of (r, listed, G_N_ELEMENTS (listed), key, g_strcmp0);
}

static void
take_group (KinetoReader *r)
{
  group_of (r->k, &r->event);
}

static bool
read_distributed (KinetoReader *r, const char *key)
{
  return strcmp (key, "rank") == 0      ? read_integer (r, &r->k->rank)
      : strcmp (key, "world_size") == 0 ? read_integer (r, &r->k->world_size)
      : strcmp (key, "pg_config") == 0  ? read_objects (r, ls_json_pull_next (r->p), read_listed, take_group)
                                        : pass_over (r);
}

/* All of a host are listed, and alike. */
static bool
read_device (KinetoReader *r, const char *key)
{
  bool is_name = strcmp (key, "name") == 0;
  LsJsonToken token = ls_json_pull_next (r->p);
  if (is_name && token == LS_TOKEN_STRING && !r->k->gpu)
    r->k->gpu = g_strdup (ls_json_pull_text (r->p));
  return ls_json_pull_skip (r->p, token);
}

static bool
read_part (KinetoReader *r, const char *key)
{
  bool is_events = strcmp (key, "traceEvents") == 0, is_job = strcmp (key, "distributedInfo") == 0,
       are_devices = strcmp (key, "deviceProperties") == 0;
  LsJsonToken token = ls_json_pull_next (r->p);
  r->has_events |= is_events;
  return is_events  ? read_events (r, token)
      : is_job      ? read_object (r, token, read_distributed)
      : are_devices ? read_objects (r, token, read_device, NULL)
                    : ls_json_pull_skip (r->p, token);
}

static bool
read_root (KinetoReader *r)
{
  LsJsonToken token = ls_json_pull_next (r->p);
  if (token == LS_TOKEN_ARRAY) /* the format allows the events alone */
    return read_events (r, token) && ls_json_pull_next (r->p) == LS_TOKEN_END;
  if (token != LS_TOKEN_OBJECT) {
    if (token != LS_TOKEN_BAD)
      ls_json_pull_diag (r->p, ls_json_pull_where (r->p), r->diags, NULL,
                         "expected a trace, an object with \"traceEvents\"");
    return token != LS_TOKEN_BAD;
  }
  if (!read_object (r, token, read_part) || ls_json_pull_next (r->p) != LS_TOKEN_END)
    return false;
  if (!r->has_events)
    ls_file_diag (r->diags, LS_ERROR_INPUT, r->k->path,
                  "expected what torch.profiler's export_chrome_trace() writes",
                  "missing key \"traceEvents\"");
  return true;
}

void
kineto_reader_init (KinetoReader *r, LsKineto *k, LsDiagList *diags)
{
  *r = (KinetoReader) { .k = k, .diags = diags, .device = -1, .first = G_MAXINT64 };
  r->launches = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  r->messages = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  r->details = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  r->categories = g_ptr_array_new_with_free_func (g_free);
  event_reset (&r->event);
}

void
kineto_reader_clear (KinetoReader *r)
{
  event_reset (&r->event);
  for (guint i = 0; i < G_N_ELEMENTS (members); i++)
    if (text_of (&r->event, &members[i]))
      g_string_free (*text_of (&r->event, &members[i]), TRUE);
  g_hash_table_unref (r->details);
  g_ptr_array_unref (r->categories);
  g_hash_table_unref (r->launches);
  g_hash_table_unref (r->messages);
}

static LsKineto *
read_all (LsInput *input, const char *name, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  g_autoptr (LsJsonPull) p = ls_json_pull_new (input, name);
  g_autoptr (LsKineto) k = kineto_new (name);
  KinetoReader r;
  kineto_reader_init (&r, k, diags);
  r.p = p;
  if (!read_root (&r))
    ls_json_pull_complain (p, diags);
  else if (ls_diag_list_n (diags) == n_before)
    kineto_finish (&r);
  kineto_reader_clear (&r);
  return ls_diag_list_n (diags) == n_before ? g_steal_pointer (&k) : NULL;
}

LsKineto *
ls_kineto_load (const char *path, LsDiagList *diags)
{
  char head[16] = "";
  g_autoptr (LsDiagList) unsaid = ls_diag_list_new ();
  FILE *file = strcmp (path, "/dev/stdin") != 0 ? ls_open_file (path, unsaid) : NULL;
  size_t n = file ? fread (head, 1, sizeof head, file) : 0;
  if (file)
    fclose (file);
  if (ls_nsys_is (head, n))
    return ls_nsys_load (path, NULL, 0, diags);
  LsInput *input = ls_input_open (path, diags);
  return input ? read_all (input, path, diags) : NULL;
}

LsKineto *
ls_kineto_parse (const char *name, const void *bytes, size_t n, LsDiagList *diags)
{
  if (ls_nsys_is (bytes, n))
    return ls_nsys_load (name, bytes, n, diags);
  return read_all (ls_input_of_memory (bytes, n), name, diags);
}
