#include <math.h>
#include <stddef.h>
#include <string.h>

#include "ask/schedule.h"
#include "data/text/field.h"

#define MAX_COUNT (1u << 29)
#define MAX_TIME  1e9        /* of a time without a unit */
#define MAX_CELLS (1u << 22) /* stages times micro-batches */
#define MAX_TOTAL 4e18       /* picoseconds, below the largest LsTime */

/* ---- times ---- */

/* "1.5", or "2ms". */
static bool
parse_time (const char *text, bool may_be_zero, LsScheduleTime *ret_time)
{
  LsScheduleTime t = { .is_given = true };
  char *end;
  double number = g_ascii_strtod (text, &end);
  if (!g_ascii_isdigit (*text))
    return false;
  if (*end == '\0' && strpbrk (text, "xX") == NULL) {
    if (!(number <= MAX_TIME))
      return false;
    t.value = (LsTime) llround (number * (double) LS_SCHEDULE_ONE);
  } else if (ls_parse_time (text, &t.value, NULL) && t.value < LS_TIME_NEVER) {
    t.has_unit = true;
  } else {
    return false;
  }
  if (t.value == 0 && !may_be_zero)
    return false;
  *ret_time = t;
  return true;
}

#define PARSE_TIME(member, may_be_zero)                                                                      \
  static bool parse_##member (const char *text, void *target)                                                \
  {                                                                                                          \
    return parse_time (text, may_be_zero, &((LsScheduleSpec *) target)->member);                             \
  }
PARSE_TIME (f, false)
PARSE_TIME (b, false)
PARSE_TIME (w, true)
PARSE_TIME (fb, false)
PARSE_TIME (comm, true)

/* ---- flags ---- */

static const LsEnumName rounds[]
    = { { "megatron", LS_ROUNDS_MEGATRON }, { "pytorch", LS_ROUNDS_PYTORCH }, { NULL } };

#define AT(member) offsetof (LsScheduleSpec, member)
#define COUNT(key_, member)                                                                                  \
  {                                                                                                          \
    key_, LS_FIELD_UINT, AT (member), .min = 1, .max = MAX_COUNT                                             \
  }
#define TIME(key_, member)                                                                                   \
  {                                                                                                          \
    key_, LS_FIELD_CUSTOM, .parse = parse_##member,                                                          \
                           .expected = "a number above 0 such as 1.5, or a time with a unit such as 2ms"     \
  }
#define TIME_OR_ZERO(key_, member)                                                                           \
  {                                                                                                          \
    key_, LS_FIELD_CUSTOM, .parse = parse_##member,                                                          \
                           .expected = "a number such as 1.5, or a time with a unit such as 2ms"             \
  }

static const LsField fields[] = {
  { "schedule", LS_FIELD_STRING, AT (schedule) },
  COUNT ("pp", pp),
  COUNT ("vpp", vpp),
  COUNT ("micro_batches", n_micro_batches),
  COUNT ("group", group),
  COUNT ("waves", waves),
  COUNT ("pipes", pipes),
  { "rounds", LS_FIELD_ENUM, AT (rounds), .names = rounds },
  TIME ("f_time", f),
  TIME ("b_time", b),
  TIME_OR_ZERO ("w_time", w),
  TIME ("fb_time", fb),
  TIME_OR_ZERO ("comm_time", comm),
  { "memory_limit", LS_FIELD_DOUBLE, AT (memory_limit), .above = true, .max = MAX_COUNT },
  { NULL },
};

void
ls_schedule_spec_init (LsScheduleSpec *spec)
{
  *spec = (LsScheduleSpec) { .rounds = -1 };
}

void
ls_schedule_spec_clear (LsScheduleSpec *spec)
{
  ls_fields_clear (fields, spec);
  ls_schedule_spec_init (spec);
}

bool
ls_schedule_spec_set (LsScheduleSpec *spec, const char *key, const char *value, LsDiagList *diags)
{
  return ls_field_set_text (fields, spec, key, value, diags);
}

bool
ls_schedule_is_path (const char *text)
{
  return strchr (text, '/') || g_str_has_suffix (text, ".csv");
}

bool
ls_schedule_is_list (const char *text)
{
  return !ls_schedule_is_path (text) && strchr (text, ',');
}

/* ---- what follows from them ---- */

gboolean
ls_schedule_spec_times (const LsScheduleSpec *s, LsSchedTimes *ret_times, bool *ret_has_unit, GError **error)
{
  const LsScheduleTime *const all[] = { &s->f, &s->b, &s->w, &s->fb, &s->comm };
  bool has_unit = false, has_plain = false;
  for (guint i = 0; i < G_N_ELEMENTS (all); i++) {
    has_unit |= all[i]->is_given && all[i]->has_unit;
    has_plain |= all[i]->is_given && !all[i]->has_unit && all[i]->value != 0;
  }
  if (has_unit && (has_plain || !s->f.is_given || !s->b.is_given)) {
    g_set_error_literal (
        error, LS_ERROR, LS_ERROR_USAGE,
        has_plain ? "expected a unit with all times or with none; got both"
                  : "expected --f-time and --b-time where times have a unit: their defaults have none");
    return FALSE;
  }
  LsChunkTimes c = { .f = s->f.is_given ? s->f.value : LS_SCHEDULE_ONE };
  LsTime b = s->b.is_given ? s->b.value : s->w.is_given ? LS_SCHEDULE_ONE : 2 * LS_SCHEDULE_ONE;
  c.w = s->w.is_given ? s->w.value : b / 2;
  c.i = s->w.is_given ? b : b - b / 2;
  c.b = c.i + c.w;
  c.fb = s->fb.is_given ? s->fb.value : c.f + c.b;
  *ret_times = (LsSchedTimes) { .chunk = c, .comm = s->comm.value };
  *ret_has_unit = has_unit;
  return TRUE;
}

LsSchedShape
ls_schedule_spec_shape (const LsScheduleSpec *s, const LsSchedTimes *times)
{
  return (LsSchedShape) {
    .pp = s->pp,
    .vpp = s->vpp,
    .n_micro_batches = s->n_micro_batches,
    .group = s->group,
    .rounds = s->rounds < 0 ? LS_ROUNDS_MEGATRON : (LsRounds) s->rounds,
    .waves = s->waves,
    .pipes = s->pipes,
    .times = *times,
    .memory_limit = s->memory_limit,
  };
}

static gboolean
refuse (const LsSched *sched, const char *why, GError **error)
{
  g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT, "%s: %s", sched->name, why);
  return FALSE;
}

/* "interleaved-1f1b and hanayo"; newly allocated. */
static char *
schedules_with (LsSchedKnob knob)
{
  GString *names = g_string_new (NULL);
  const LsSched *sched;
  for (guint i = 0; (sched = ls_sched_at (i)); i++)
    if (sched->knobs & knob)
      g_string_append_printf (names, "%s%s", names->len > 0 ? " and " : "", sched->name);
  return g_string_free (names, FALSE);
}

gboolean
ls_schedule_spec_fits (const LsScheduleSpec *s, const LsSched *sched, GError **error)
{
  const struct {
    LsSchedKnob knob;
    const char *flag;
    bool is_given;
  } knobs[] = {
    { LS_SCHED_ROUNDS, "--rounds", s->rounds >= 0 && !sched->has_pytorch_rounds },
    { LS_SCHED_GROUP, "--group", s->group > 0 },
    { LS_SCHED_WAVES, "--waves", s->waves > 0 },
    { LS_SCHED_PIPES, "--pipes", s->pipes > 0 },
  };
  if (sched->has_pytorch_rounds && s->rounds == LS_ROUNDS_MEGATRON)
    return refuse (sched, "its rounds are always PyTorch's", error);
  for (guint i = 0; i < G_N_ELEMENTS (knobs); i++) {
    if (!knobs[i].is_given || (sched->knobs & knobs[i].knob))
      continue;
    g_autofree char *names = schedules_with (knobs[i].knob),
                    *why = g_strdup_printf ("%s applies to %s only", knobs[i].flag, names);
    return refuse (sched, why, error);
  }
  if (s->memory_limit > 0 && !ls_sched_is_searched (sched))
    return refuse (sched, "--memory-limit applies to schedules that are searched for: this order is fixed",
                   error);
  return TRUE;
}

gboolean
ls_schedule_check_size (guint64 n_cells, const LsSchedTimes *times, GError **error)
{
  const LsChunkTimes *c = &times->chunk;
  double total
      = (double) n_cells * ((double) c->f + (double) c->b + (double) c->fb + 2 * (double) times->comm);
  if (n_cells > MAX_CELLS)
    g_set_error (error, LS_ERROR, LS_ERROR_LIMIT,
                 "%" G_GUINT64_FORMAT " stages times micro-batches are more than %u", n_cells, MAX_CELLS);
  else if (total > MAX_TOTAL)
    g_set_error_literal (error, LS_ERROR, LS_ERROR_LIMIT,
                         "these times add up to more than can be counted: take a larger unit");
  return n_cells <= MAX_CELLS && total <= MAX_TOTAL;
}
