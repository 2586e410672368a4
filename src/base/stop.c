#include "base/stop.h"

static _Thread_local struct {
  LsStop *stop;
  gint64 grace_us;
} own;

/* us since it was asked; -1: it was not. */
static gint64
asked_for (LsStop *s)
{
  bool is_asked = s->asked && g_atomic_int_get (s->asked) != 0;
  if (!is_asked && s->deadline <= 0) /* mostly, and a clock is dear */
    return -1;
  gint64 now = g_get_monotonic_time (), seen = 0;
  if (s->deadline > 0 && now >= s->deadline)
    return now - s->deadline;
  bool is_first = is_asked
      && __atomic_compare_exchange_n (&s->since, &seen, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return !is_asked ? -1 : is_first ? 0 : now - seen;
}

bool
ls_stop_is_asked (LsStop *stop, gint64 grace_us)
{
  return asked_for (stop) >= grace_us;
}

void
ls_stop_begin (LsStop *stop, gint64 grace_us)
{
  own.stop = stop;
  own.grace_us = grace_us;
}

LsStop *
ls_stop_current (gint64 *ret_grace_us)
{
  *ret_grace_us = own.grace_us;
  return own.stop;
}

bool
ls_stopped (void)
{
  return own.stop && ls_stop_is_asked (own.stop, own.grace_us);
}
