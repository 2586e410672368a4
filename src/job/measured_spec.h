/* job/measured_spec.h — a measured step from text. */
#ifndef LS_JOB_MEASURED_SPEC_H
#define LS_JOB_MEASURED_SPEC_H

#include "analysis/logged_step.h"

#define LS_MEASURED_EXPECTED                                                                                 \
  "a time with a unit such as 13.9s; behind it, if they are known, tflops=145 (of one rank), memory=61GiB, " \
  "tokens_per_s=9400"                                                                                        \
  " or tokens_per_s_per_gpu=147, with commas; and :SOURCE"
#define LS_PUBLISHED_EXPECTED                                                                                \
  "seconds from 1e-9 to 1e9, or a time with a unit; behind it, if one likes, a source: 13.75:paper or "      \
  "38s:log"

/* False leaves it alone. The second takes seconds without a unit too, and nothing beside the time. */
bool ls_measured_parse (const char *text, LsMeasured *m);
bool ls_published_parse (const char *text, LsMeasured *m);

#endif
