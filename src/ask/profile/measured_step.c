#include "ask/profile/measured_step.h"

#include <lockstep/error.h>

#define PS_PER_NS 1000

void
ls_measured_step_clear (LsMeasuredStep *step)
{
  ls_step_side_free (step->side);
  g_clear_pointer (&step->chosen, g_array_unref);
  g_free (step->what);
  *step = (LsMeasuredStep) { 0 };
}

static const LsKinetoOp *
op_at (const LsKineto *k, guint i)
{
  return &g_array_index (k->ops, LsKinetoOp, i);
}

static gboolean
fail (GError **error, const LsKineto *k, const char *message, const char *hint)
{
  return ls_fail (error, LS_ERROR_INPUT, "%s: error: %s\nnote: %s", k->path, message, hint);
}

/* ---- which ---- */

typedef struct {
  bool is_range;
  uint64_t number;
  LsTime from, to;
} Which;

static gboolean
parse_which (const char *text, Which *ret, GError **error)
{
  guint64 number;
  const char *expected;
  g_auto (GStrv) ends = g_strsplit (text, ":", 2);
  *ret = (Which) { 0 };
  if (g_ascii_string_to_unsigned (text, 10, 0, G_MAXINT64, &number, NULL)) {
    ret->number = number;
    return TRUE;
  }
  ret->is_range = true;
  if (g_strv_length (ends) == 2 && ls_parse_time (ends[0], &ret->from, &expected)
      && ls_parse_time (ends[1], &ret->to, &expected) && ret->from < ret->to)
    return TRUE;
  return ls_fail (error, LS_ERROR_USAGE,
                  "--step: expected the N of ProfilerStep#N, or FROM:TO such as \"120ms:180ms\"; got \"%s\"",
                  text);
}

gboolean
ls_measured_step_check (const char *which, GError **error)
{
  Which parsed;
  return !which || parse_which (which, &parsed, error);
}

/* ---- by annotations ---- */

static int64_t
issue_time (const LsKinetoOp *op)
{
  return op->launch == LS_KINETO_NONE ? op->start : op->launch;
}

/* The op with which the GPU begins a step; NULL: none. */
static const LsKinetoOp *
first_op (const LsKineto *k, guint step)
{
  const LsKinetoStep *s = &g_array_index (k->steps, LsKinetoStep, step);
  for (guint i = 0; i < k->ops->len; i++) {
    int64_t at = issue_time (op_at (k, i));
    if (at >= s->start && at < s->end)
      return op_at (k, i);
  }
  return NULL;
}

static void
end_with (LsMeasuredStep *cut, const LsKinetoOp *next)
{
  cut->end = next ? next->start : LS_KINETO_NONE;
  cut->next_launch = next ? next->launch : LS_KINETO_NONE;
}

static void
choose_issued (const LsKineto *k, int64_t from, int64_t to, LsMeasuredStep *cut)
{
  for (guint i = 0; i < k->ops->len; i++) {
    int64_t at = issue_time (op_at (k, i));
    if (at >= from && at < to)
      g_array_append_val (cut->chosen, i);
  }
}

static gboolean
find_step (const LsKineto *k, const Which *which, guint *ret_step, GError **error)
{
  guint n = k->steps->len;
  if (!which) {
    *ret_step = n > 1 && first_op (k, n - 1) ? n - 2 : n - 1;
    return TRUE;
  }
  for (guint i = 0; i < n; i++)
    if (g_array_index (k->steps, LsKinetoStep, i).number == which->number) {
      *ret_step = i;
      return TRUE;
    }
  g_autofree char *message = g_strdup_printf ("no ProfilerStep#%" G_GUINT64_FORMAT, which->number);
  g_autofree char *hint = n > 0
      ? g_strdup_printf ("it has ProfilerStep#%" G_GUINT64_FORMAT " to #%" G_GUINT64_FORMAT,
                         g_array_index (k->steps, LsKinetoStep, 0).number,
                         g_array_index (k->steps, LsKinetoStep, n - 1).number)
      : g_strdup ("it has no steps at all: call prof.step() after each, or give --step FROM:TO");
  return fail (error, k, message, hint);
}

static gboolean
cut_annotated (const LsKineto *k, const Which *which, LsMeasuredStep *ret, GError **error)
{
  guint step = 0;
  if (!find_step (k, which, &step, error))
    return FALSE;
  const LsKinetoStep *s = &g_array_index (k->steps, LsKinetoStep, step);
  choose_issued (k, s->start, s->end, ret);
  ret->what = g_strdup_printf ("ProfilerStep#%" G_GUINT64_FORMAT, s->number);
  ret->host_end = s->end;
  ret->thread = s->thread;
  end_with (ret, step + 1 < k->steps->len ? first_op (k, step + 1) : NULL);
  return TRUE;
}

/* ---- by range ---- */

static void
cut_range (const LsKineto *k, const Which *which, const char *text, LsMeasuredStep *ret)
{
  int64_t from = which->from / PS_PER_NS, to = which->to / PS_PER_NS;
  for (guint i = 0; i < k->ops->len; i++)
    if (op_at (k, i)->start >= from && op_at (k, i)->start < to)
      g_array_append_val (ret->chosen, i);
  ret->start = from;
  ret->end = to;
  ret->what = g_strdup (text);
}

/* ---- by periodicity ---- */

/* Of the names of all kernels; 0: none of which two fit. Names are interned: equal names are
 * one pointer. */
static guint
find_period (const LsKineto *k)
{
  guint n = k->ops->len;
  g_autofree guint *border = g_new0 (guint, n + 1);
  for (guint i = 1, m = 0; i < n; i++) {
    while (m > 0 && op_at (k, i)->name != op_at (k, m)->name)
      m = border[m];
    if (op_at (k, i)->name == op_at (k, m)->name)
      m++;
    border[i + 1] = m;
  }
  guint period = n - border[n];
  return n > 1 && period <= n / 2 ? period : 0;
}

/* A step begins where the longest stretch without an optimizer does; without any, where the
 * trace does. */
static guint
find_phase (const LsKineto *k, guint period)
{
  guint best = 0, longest = 0, run = 0;
  for (guint i = 0; i < 2 * period; i++) {
    run = op_at (k, i % period)->class == LS_CLASS_OPTIMIZER ? 0 : run + 1;
    if (run > longest && run <= period) {
      longest = run;
      best = i + 1 - run;
    }
  }
  return longest == period ? 0 : best % period;
}

static gboolean
cut_periodic (const LsKineto *k, LsMeasuredStep *ret, GError **error)
{
  guint period = find_period (k);
  if (period == 0)
    return fail (error, k, "no steps: neither ProfilerStep#N annotations, nor kernels that repeat",
                 "call prof.step() after each step, or say which range is one: --step FROM:TO");
  guint n = k->ops->len, begin = find_phase (k, period);
  while (begin + 2 * period < n)
    begin += period;
  if (begin + period > n)
    begin -= period;
  for (guint i = begin; i < begin + period; i++)
    g_array_append_val (ret->chosen, i);
  end_with (ret, begin + period < n ? op_at (k, begin + period) : NULL);
  ret->what = g_strdup_printf ("a period of %u kernels and copies, from record %u", period,
                               op_at (k, begin)->record);
  return TRUE;
}

/* ---- the side ---- */

static LsTime
ps (int64_t ns)
{
  return ns * PS_PER_NS;
}

static void
fill_side (const LsKineto *k, LsMeasuredStep *step)
{
  step->side = ls_step_side_new ();
  for (guint i = 0; i < step->chosen->len; i++) {
    const LsKinetoOp *op = op_at (k, g_array_index (step->chosen, guint, i));
    const LsStepOp row = { .start = ps (op->start),
                           .end = ps (op->end),
                           .bytes = op->bytes,
                           .name = op->name,
                           .class = op->class,
                           .in_graph = op->in_graph,
                           .launch = op->launch == LS_KINETO_NONE ? LS_TIME_NEVER : ps (op->launch) };
    g_array_append_val (step->side->ops, row);
  }
  step->side->length = ps (step->end - step->start);
  ls_step_side_finish (step->side, ps (step->start));
}

/* Where it begins and ends, if that is not said. */
static gboolean
bound (const LsKineto *k, LsMeasuredStep *ret, GError **error)
{
  g_autofree char *message = g_strdup_printf ("%s: nothing ran on the GPU", ret->what);
  if (ret->chosen->len == 0)
    return fail (error, k, message, "was the profiler's schedule still warming up? Try another --step");
  int64_t last = 0;
  for (guint i = 0; i < ret->chosen->len; i++)
    last = MAX (last, op_at (k, g_array_index (ret->chosen, guint, i))->end);
  if (ret->start < 0)
    ret->start = op_at (k, g_array_index (ret->chosen, guint, 0))->start;
  ret->is_open = ret->end == LS_KINETO_NONE || ret->end <= ret->start;
  if (ret->is_open)
    ret->end = last;
  if (ret->end <= ret->start)
    return fail (error, k, message, "its kernels take no time");
  fill_side (k, ret);
  return ret->side->ops->len > 0 || fail (error, k, "its kernels take no time", "try another --step");
}

gboolean
ls_measured_step_cut (const LsKineto *k, const char *which, LsMeasuredStep *ret_step, GError **error)
{
  Which parsed;
  *ret_step = (LsMeasuredStep) { 0 };
  if (which && !parse_which (which, &parsed, error))
    return FALSE;
  *ret_step = (LsMeasuredStep) { .chosen = g_array_new (FALSE, FALSE, sizeof (guint)),
                                 .start = -1,
                                 .end = LS_KINETO_NONE,
                                 .host_end = LS_KINETO_NONE,
                                 .next_launch = LS_KINETO_NONE,
                                 .thread = -1 };
  gboolean ok = TRUE;
  if (which && parsed.is_range)
    cut_range (k, &parsed, which, ret_step);
  else if (which || k->steps->len > 0)
    ok = cut_annotated (k, which ? &parsed : NULL, ret_step, error);
  else
    ok = cut_periodic (k, ret_step, error);
  if (ok && bound (k, ret_step, error))
    return TRUE;
  ls_measured_step_clear (ret_step);
  return FALSE;
}
