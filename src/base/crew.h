/* base/crew.h — threads that do one thing after the other, and are gone at the end. Those of a GThreadPool
 * stay for the next pool of the process; a process that forks would wait for them, as a child has none. */
#ifndef LS_BASE_CREW_H
#define LS_BASE_CREW_H

#include <glib.h>

typedef struct LsCrew LsCrew;

/* work (item, data) for each item, on at most n threads, which are made as they are needed. */
LsCrew *ls_crew_new (GFunc work, gpointer data, guint n);
/* item: not NULL. */
void ls_crew_push (LsCrew *crew, gpointer item);
/* Returns when all that was pushed is done and no thread is left. Frees it. */
void ls_crew_end (LsCrew *crew);

#endif
