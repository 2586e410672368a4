/* ask/capture_layouts.h — a training program captured in several layouts, each replayed on a cluster.
 *
 * Problem. Which of some layouts of one's own program is the fastest of those that fit.
 *
 * Method. In the words of its command each {KEY} is a value of that axis. Every combination is captured
 * (captured.h), and its trace replayed (job/job.c): memory is the program's, time the simulation's.
 *
 * Worked example. {tp} of 1 and 2, {mb} of 4: two captures. tests/golden/capture.txt, capture-sweep.
 *
 * Deviations. Those of captured.h and of data/traces/traces.h. */
#ifndef LS_ASK_CAPTURE_LAYOUTS_H
#define LS_ASK_CAPTURE_LAYOUTS_H

#include "ask/captured.h"

#define LS_MOST_LAYOUTS 64

typedef struct {
  char *key;     /* "tp" */
  char **values; /* NULL-terminated */
} LsCaptureAxis;

typedef struct {
  char **values; /* of each axis; NULL-terminated, each borrowed */
  bool fits;
  uint64_t needed_bytes, total_bytes; /* of the rank that decides */
  double step_time_s;                 /* NaN: it failed */
  char *error;                        /* why; NULL: it did not */
} LsCaptureLayout;

typedef struct {
  char *cluster;
  GArray *axes;    /* LsCaptureAxis */
  GArray *layouts; /* LsCaptureLayout: those that fit first, the fastest of them first */
} LsCaptureLayouts;

/* ask: of each, with a command that has {KEY}s. Takes axes. LS_ERROR_USAGE: an axis that no word has, or
 * too many layouts; LS_ERROR_STOPPED; of one that fails the row says why. */
LsCaptureLayouts *ls_capture_layouts (const LsCaptureAsk *ask, const char *cluster, GArray *axes,
                                      GError **error);
GArray *ls_capture_axes_new (void);
void ls_capture_layouts_free (LsCaptureLayouts *layouts); /* NULL allowed */

#endif
