/* show/plot/plot_memory.h — what a rank holds over a step as a picture: areas on top of each
 * other, one for each category, and the capacity as a line. */
#ifndef LS_SHOW_PLOT_PLOT_MEMORY_H
#define LS_SHOW_PLOT_PLOT_MEMORY_H

#include "exec/memory/memory.h"

typedef struct {
  const char *title, *note; /* lines of UTF-8 */
  const GArray *samples;    /* LsMemorySample, of ls_memory_curve() */
  LsTime window;
  uint64_t capacity_bytes;
} LsMemoryPlot;

/* path: NAME.svg or NAME.png; files and errors as of ls_plot_timeline(). */
gboolean ls_plot_memory (const LsMemoryPlot *plot, const char *path, GError **error);

#endif
