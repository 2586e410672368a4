/* base/parallel.h — the same for each of many, over threads. */
#ifndef LS_BASE_PARALLEL_H
#define LS_BASE_PARALLEL_H

#include <glib.h>

/* Who wants to know how far it is: n_done of at most n_to_do, 0 where nobody can tell.
 * Called from any thread, one call at a time. func NULL: nobody asks. */
typedef struct {
  void (*func) (guint64 n_done, guint64 n_to_do, gpointer data);
  gpointer data;
  /* The best of a search that is known so far, in words. Called as func. NULL: nobody asks. */
  void (*best) (double step_s, const char *what, gpointer data);
  gpointer best_data;
} LsProgress;

void ls_progress_tell (const LsProgress *progress, guint64 n_done, guint64 n_to_do); /* NULL: nobody asks */

typedef void (*LsParallelFunc) (guint i, gpointer data);

/* each (i, data) once for each i < n, in any order, by n_threads at once, 0: one per processor;
 * returns when all have. progress: told after each; or NULL. */
void ls_parallel (guint n, guint n_threads, LsParallelFunc each, gpointer data, const LsProgress *progress);

/* Of errors that each left at a place of its own ([n], NULL: none) the first goes to *error, the others are
 * freed; all places are NULL then. Which one it was; n: there is none. */
guint ls_parallel_first_error (GError **errors, guint n, GError **error);

/* Threads that do one thing after the other, and are gone at the end. Those of a GThreadPool stay for the
 * next pool of the process; a process that forks would wait for them, as a child has none. */
typedef struct LsCrew LsCrew;

/* work (item, data) for each item, on at most n threads, which are made as they are needed. */
LsCrew *ls_crew_new (GFunc work, gpointer data, guint n);
/* item: not NULL. */
void ls_crew_push (LsCrew *crew, gpointer item);
/* Returns when all that was pushed is done and no thread is left. Frees it. */
void ls_crew_end (LsCrew *crew);

#endif
