/* base/handover.h — what one thread leaves to another, said to ThreadSanitizer. GLib's locks, queues and
 * pools order threads by themselves, but GLib is not instrumented: in a build with -Db_sanitize=thread what
 * they order would look like races. In all other builds these are nothing. */
#ifndef LS_BASE_HANDOVER_H
#define LS_BASE_HANDOVER_H

#include <glib.h>
#include <stdbool.h>

#if defined(__SANITIZE_THREAD__)
#define LS_HAS_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define LS_HAS_THREAD_SANITIZER 1
#endif
#endif

#ifdef LS_HAS_THREAD_SANITIZER
void __tsan_acquire (void *object);
void __tsan_release (void *object);
#define LS_HAND_OVER(object)                                                                                 \
  __tsan_release (object) /* all that this thread has written, to who takes it over */
#define LS_TAKE_OVER(object) __tsan_acquire (object)
#else
#define LS_HAND_OVER(object) ((void) 0)
#define LS_TAKE_OVER(object) ((void) 0)
#endif

/* g_once_init_enter() and g_once_init_leave(). */
static inline bool
ls_once_enter (gsize *is_done)
{
  bool is_first = g_once_init_enter (is_done);
  if (!is_first)
    LS_TAKE_OVER (is_done);
  return is_first;
}

static inline void
ls_once_leave (gsize *is_done)
{
  LS_HAND_OVER (is_done);
  g_once_init_leave (is_done, 1);
}

#endif
