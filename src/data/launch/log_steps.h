/* data/launch/log_steps.h — the lines of a log that time steps (private to launch/). */
#ifndef LS_DATA_LAUNCH_LOG_STEPS_H
#define LS_DATA_LAUNCH_LOG_STEPS_H

#include "data/launch/import_reader.h"

typedef struct {
  double step_s;
  /* 0: the line does not say. Sequences of the step; FLOP/s and tokens/s of one GPU as the log counts them.
   * */
  double batch, flops_per_gpu, tokens_per_s_per_gpu;
} LogStep;

/* The number behind such words before the end of a line of n bytes, "6,180" and "12.3K" too; NAN: there is
 * none. */
double log_number_behind (const char *line, gsize n, const char *words);

/* The same; 0 where there is none that is above 0. */
double log_amount_behind (const char *line, gsize n, const char *words);

/* Without what colours it on a terminal. Newly allocated. */
char *log_without_colours (const char *text);

/* Where a line ends. */
const char *log_line_end (const char *line);

/* Where an object of JSON or Python ends, behind its brace; NULL: it does not. Braces in texts count too. */
const char *log_object_end (const char *object);

/* Sets what is measured from lines (LogStep): the median of the later half of those that have the batch of
 * the last one, without the first line of the log; of few, of all of them. A batch that is not that of the
 * job is a contradiction. What lines say of FLOP/s and tokens is the median of the same. */
void log_measure (const GArray *lines, LsImport *import);

#endif
