#include "data/measured/kineto_reader.h"

#include <math.h>
#include <string.h>

static void
number_reset (LsKinetoNumber *n)
{
  g_free (n->got);
  *n = (LsKinetoNumber) { 0 };
}

static LsKinetoNumber *
numbers_of (LsKinetoEvent *e, guint i)
{
  LsKinetoNumber *const all[]
      = { &e->ts,         &e->dur,        &e->correlation, &e->external,    &e->stream,
          &e->device,     &e->bytes,      &e->n_in,        &e->n_out,       &e->thread,
          &e->group_size, &e->rank_start, &e->rank_stride, &e->wait_stream, &e->wait_record };
  return i < G_N_ELEMENTS (all) ? all[i] : NULL;
}

static GString **
text_of (LsKinetoEvent *e, guint i)
{
  GString **const all[] = { &e->category, &e->name,  &e->phase,      &e->collective,
                            &e->dtype,    &e->group, &e->group_what, &e->ranks };
  return i < G_N_ELEMENTS (all) ? all[i] : NULL;
}

void
ls_kineto_event_init (LsKinetoEvent *e)
{
  GString **text;
  *e = (LsKinetoEvent) { 0 };
  for (guint i = 0; (text = text_of (e, i)); i++)
    *text = g_string_new (NULL);
}

void
ls_kineto_event_clear (LsKinetoEvent *e)
{
  LsKinetoNumber *n;
  GString **text;
  for (guint i = 0; (n = numbers_of (e, i)); i++)
    number_reset (n);
  for (guint i = 0; (text = text_of (e, i)); i++)
    g_string_free (*text, TRUE);
}

static void
reset (LsKinetoEvent *e, LsJsonWhere where)
{
  LsKinetoNumber *n;
  GString **text;
  for (guint i = 0; (n = numbers_of (e, i)); i++)
    number_reset (n);
  for (guint i = 0; (text = text_of (e, i)); i++)
    g_string_truncate (*text, 0);
  e->where = where;
  e->is_xla = false;
}

/* ---- values ---- */

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
  if (token == LS_TOKEN_STRING)
    g_string_assign (to, ls_json_pull_text (p));
  return ls_json_pull_skip (p, token);
}

bool
ls_kineto_read_ranks (LsJsonPull *p, GString *to)
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

uint32_t
ls_kineto_dtype_bytes (const char *name)
{
  static const struct {
    const char *name;
    uint32_t bytes;
  } sizes[] = {
    { "bfloat16", 2 }, { "half", 2 },  { "float16", 2 }, { "float32", 4 }, { "float64", 8 },
    { "float8", 1 },   { "float", 4 }, { "double", 8 },  { "byte", 1 },    { "uint8", 1 },
    { "int8", 1 },     { "char", 1 },  { "bool", 1 },    { "short", 2 },   { "int16", 2 },
    { "int64", 8 },    { "int32", 4 }, { "int", 4 },     { "long", 8 },
  };
  g_autofree char *small = g_ascii_strdown (name, -1);
  const char *plain = g_str_has_prefix (small, "torch.") ? small + strlen ("torch.") : small;
  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++)
    if (g_str_has_prefix (plain, sizes[i].name))
      return sizes[i].bytes;
  return 0;
}

/* ---- objects ---- */

static bool
read_arg (LsKinetoEvent *e, LsJsonPull *p, const char *key)
{
  const struct {
    const char *key;
    LsKinetoNumber *number;
    GString *text;
  } known[] = {
    { "correlation", &e->correlation, NULL },
    { "External id", &e->external, NULL },
    { "stream", &e->stream, NULL },
    { "device", &e->device, NULL },
    { "bytes", &e->bytes, NULL },
    { "In msg nelems", &e->n_in, NULL },
    { "Out msg nelems", &e->n_out, NULL },
    { "Collective name", NULL, e->collective },
    { "dtype", NULL, e->dtype },
    { "Group size", &e->group_size, NULL },
    { "Global rank start", &e->rank_start, NULL },
    { "Global rank stride", &e->rank_stride, NULL },
    { "Process Group Name", NULL, e->group },
    { "Process Group Description", NULL, e->group_what },
    { "wait_on_stream", &e->wait_stream, NULL },
    { "wait_on_cuda_event_record_corr_id", &e->wait_record, NULL },
  };
  for (guint i = 0; i < G_N_ELEMENTS (known); i++)
    if (g_ascii_strcasecmp (key, known[i].key) == 0) /* "external id", once */
      return known[i].number ? read_number (p, 0, known[i].number) : read_string (p, known[i].text);
  e->is_xla = e->is_xla || strcmp (key, "hlo_op") == 0 || strcmp (key, "hlo_module") == 0;
  return g_ascii_strcasecmp (key, "Process Group Ranks") == 0 ? ls_kineto_read_ranks (p, e->ranks)
                                                              : ls_json_pull_skip (p, ls_json_pull_next (p));
}

static bool
read_args (LsKinetoEvent *e, LsJsonPull *p)
{
  LsJsonToken token = ls_json_pull_next (p);
  if (token != LS_TOKEN_OBJECT)
    return ls_json_pull_skip (p, token);
  while ((token = ls_json_pull_next (p)) == LS_TOKEN_KEY)
    if (!read_arg (e, p, ls_json_pull_text (p)))
      return false;
  return token == LS_TOKEN_OBJECT_END;
}

static bool
read_member (LsKinetoEvent *e, LsJsonPull *p, const char *key)
{
  if (strcmp (key, "args") == 0)
    return read_args (e, p);
  if (strcmp (key, "tid") == 0)
    return read_number (p, 0, &e->thread);
  if (strcmp (key, "ts") == 0 || strcmp (key, "dur") == 0)
    return read_number (p, 3, *key == 't' ? &e->ts : &e->dur);
  GString *text = strcmp (key, "cat") == 0 ? e->category
      : strcmp (key, "name") == 0          ? e->name
      : strcmp (key, "ph") == 0            ? e->phase
                                           : NULL;
  return text ? read_string (p, text) : ls_json_pull_skip (p, ls_json_pull_next (p));
}

bool
ls_kineto_event_read (LsKinetoEvent *e, LsJsonPull *p)
{
  LsJsonToken token;
  reset (e, ls_json_pull_where (p));
  while ((token = ls_json_pull_next (p)) == LS_TOKEN_KEY)
    if (!read_member (e, p, ls_json_pull_text (p)))
      return false;
  return token == LS_TOKEN_OBJECT_END;
}
