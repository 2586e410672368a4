/* data/measured/kineto_groups.c — process groups of a trace of torch.profiler.
 *
 * Their ranks are "[0, 1, 2, 3]", of more than some thirty "[0, 1, ..., 127]"; newer releases also say
 * "Global rank start" and "Global rank stride". Kept is the rule: start, stride and size. */
#include <string.h>

#include "base/dtype.h"
#include "data/measured/kineto_reader.h"

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

/* ---- as the head lists them ---- */

typedef struct {
  GString *name, *what, *ranks;
  int64_t size;
} Listed;

static bool
read_text (LsJsonPull *p, GString *to)
{
  LsJsonToken token = ls_json_pull_next (p);
  if (token == LS_TOKEN_STRING || token == LS_TOKEN_NUMBER)
    g_string_assign (to, ls_json_pull_text (p));
  return ls_json_pull_skip (p, token);
}

static bool
read_size (LsJsonPull *p, int64_t *ret)
{
  LsJsonToken token = ls_json_pull_next (p);
  int64_t size;
  if (token == LS_TOKEN_NUMBER && ls_kineto_decimal (ls_json_pull_text (p), 0, &size) && size > 0
      && size < G_MAXINT32)
    *ret = size;
  return ls_json_pull_skip (p, token);
}

static bool
read_listed (LsJsonPull *p, Listed *l)
{
  LsJsonToken token;
  while ((token = ls_json_pull_next (p)) == LS_TOKEN_KEY) {
    const char *key = ls_json_pull_text (p);
    bool ok = strcmp (key, "pg_name") == 0 ? read_text (p, l->name)
        : strcmp (key, "pg_desc") == 0     ? read_text (p, l->what)
        : strcmp (key, "ranks") == 0       ? ls_kineto_read_ranks (p, l->ranks)
        : strcmp (key, "pg_size") == 0     ? read_size (p, &l->size)
                                           : ls_json_pull_skip (p, ls_json_pull_next (p));
    if (!ok)
      return false;
  }
  return token == LS_TOKEN_OBJECT_END;
}

static bool
take_listed (LsJsonPull *p, LsKineto *k)
{
  Listed l = { g_string_new (NULL), g_string_new (NULL), g_string_new (NULL), 0 };
  bool ok = read_listed (p, &l);
  LsKinetoGroup g = { .name = g_string_chunk_insert_const (k->names, l.name->str),
                      .what = g_string_chunk_insert_const (k->names, l.what->str),
                      .size = l.size };
  take_ranks (&g, l.ranks->str);
  if (ok && g.size > 0)
    add_group (k, &g);
  g_string_free (l.name, TRUE);
  g_string_free (l.what, TRUE);
  g_string_free (l.ranks, TRUE);
  return ok;
}

bool
kineto_read_groups (LsJsonPull *p, LsKineto *k)
{
  LsJsonToken token = ls_json_pull_next (p);
  if (token != LS_TOKEN_ARRAY)
    return ls_json_pull_skip (p, token);
  while ((token = ls_json_pull_next (p)) != LS_TOKEN_ARRAY_END)
    if (token != LS_TOKEN_OBJECT ? !ls_json_pull_skip (p, token) : !take_listed (p, k))
      return false;
  return true;
}

uint8_t
kineto_dtype (const char *name)
{
  uint32_t bytes = ls_kineto_dtype_bytes (name);
  return (uint8_t) (bytes == 2 ? LS_DTYPE_BF16 : bytes == 1 ? LS_DTYPE_BYTE : LS_DTYPE_FP32);
}
