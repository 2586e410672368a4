/* capture/standin_clock.c — when work on streams is done, for a GPU as it is and of half and double its
 * speed: see standin.h. Work, records, waits and questions that are answered by no cost the host LS_CALL_PS
 * each, and nothing else does: how often PyTorch makes an event, or asks for one that is done, depends on how
 * soon its watchdog took it. The default streams are one. */
#include "capture/standin.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LS_CALL_PS                                                                                           \
  INT64_C (5000000)       /* 5 us: what a launch takes PyTorch's eager operators, README of kernelbench */
#define LS_OTHERS_WAIT 60 /* seconds of this machine's clock */

static const double speed[LS_N_SPEEDS] = { 1, 0.5, 2 };
static int64_t host[LS_N_SPEEDS];
static LsStream blank; /* the default stream */
static LsStream **all; /* of all that were made, for a wait for all */
static size_t n_all, max_all;
static _Thread_local bool launches; /* watchdogs and the like only ask */

LsStream *
ls_stream_of (void *stream)
{
  return (uintptr_t) stream <= 2 ? &blank : stream;
}

LsStream *
ls_stream_new (int priority)
{
  LsStream *s = calloc (1, sizeof *s);
  s->priority = priority;
  s->device = *ls_current_device ();
  if (n_all == max_all)
    all = realloc (all, (max_all = max_all ? 2 * max_all : 64) * sizeof (LsStream *));
  all[n_all++] = s;
  return s;
}

/* Others may still hold it: it stays. */
void
ls_stream_free (void *stream)
{
  (void) stream;
}

static void
take_a_call (void)
{
  for (int i = 0; i < LS_N_SPEEDS && launches; i++)
    host[i] += LS_CALL_PS;
}

void
ls_stream_pass (void *stream, const int64_t ps[LS_N_SPEEDS])
{
  LsStream *s = ls_stream_of (stream);
  launches = true;
  take_a_call ();
  for (int i = 0; i < LS_N_SPEEDS; i++)
    s->done[i] = (s->done[i] > host[i] || s->capturing ? s->done[i] : host[i]) + ps[i];
}

void
ls_stream_work (void *stream, double seconds)
{
  int64_t ps[LS_N_SPEEDS];
  for (int i = 0; i < LS_N_SPEEDS; i++)
    ps[i] = (int64_t) (seconds / ls_device.speed * 1e12 / speed[i]);
  ls_stream_pass (stream, ps);
}

/* A graph's time begins at 0; what was there before it goes on after it. */
void
ls_stream_capture (LsStream *s, int id)
{
  memcpy (s->before, s->done, sizeof s->done);
  memset (s->done, 0, sizeof s->done);
  s->capturing = id;
}

static void
end_capture (LsStream *s, int id, int64_t ret_done[LS_N_SPEEDS])
{
  for (int i = 0; s->capturing == id && i < LS_N_SPEEDS; i++) {
    ret_done[i] = s->done[i] > ret_done[i] ? s->done[i] : ret_done[i];
    s->done[i] = s->before[i];
  }
  s->capturing = s->capturing == id ? 0 : s->capturing;
}

void
ls_stream_captured (int id, int64_t ret_done[LS_N_SPEEDS])
{
  end_capture (&blank, id, ret_done);
  for (size_t i = 0; i < n_all; i++)
    end_capture (all[i], id, ret_done);
}

/* Who waits for a graph's event is of the graph; an event from outside is none of its time. */
void
ls_stream_wait (void *stream, const LsEvent *event)
{
  LsStream *s = ls_stream_of (stream);
  take_a_call ();
  ls_record_wait (stream, event);
  if (event->capturing && !s->capturing)
    ls_stream_capture (s, event->capturing);
  for (int i = 0; s->capturing == event->capturing && i < LS_N_SPEEDS; i++)
    if (s->done[i] < event->done[i])
      s->done[i] = event->done[i];
}

void
ls_event_record (LsEvent *event, void *stream)
{
  const LsStream *s = ls_stream_of (stream);
  take_a_call ();
  ls_record_event (event, stream);
  event->recorded = time (NULL);
  event->capturing = s->capturing;
  for (int i = 0; i < LS_N_SPEEDS; i++)
    event->done[i] = s->done[i] > host[i] || s->capturing ? s->done[i] : host[i];
}

static bool
is_done (const int64_t done[LS_N_SPEEDS])
{
  bool now = done[0] <= host[0];
  bool depends = now != (done[1] <= host[1]) || now != (done[2] <= host[2]);
  if (!now)
    take_a_call ();
  if (depends && launches)
    ls_count ("answers that depend on the speed of the GPU", 1);
  return now;
}

/* A watchdog that asks when this machine's clock tells it to would take what is done from the thread that
 * launches, now and then: its answer is so late that this thread has asked before, and before it gives up.
 * That all is done then, even where this thread waits for another rank, keeps it from ending the program. */
bool
ls_event_is_done (const LsEvent *event)
{
  if (!launches && event->recorded > 0)
    return time (NULL) - event->recorded >= LS_OTHERS_WAIT;
  return is_done (event->done);
}

bool
ls_stream_is_done (void *stream)
{
  return is_done (ls_stream_of (stream)->done);
}

/* Other threads than those that launch wait for nothing, and time does not pass for them. */
void
ls_host_waits (const int64_t done[LS_N_SPEEDS])
{
  for (int i = 0; i < LS_N_SPEEDS && launches; i++)
    if (host[i] < done[i])
      host[i] = done[i];
}

void
ls_host_waits_all (void)
{
  ls_record_mark ("a");
  ls_host_waits (blank.done);
  for (size_t i = 0; i < n_all; i++)
    ls_host_waits (all[i]->done);
}

float
ls_event_ms (const LsEvent *from, const LsEvent *to)
{
  return (float) ((double) (to->done[0] - from->done[0]) / 1e9);
}
