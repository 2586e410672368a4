/* show/run/write_summary.h — the result of a run for people, at a terminal of 80 columns
 * or more. */
#ifndef LS_SHOW_RUN_WRITE_SUMMARY_H
#define LS_SHOW_RUN_WRITE_SUMMARY_H

#include "analysis/interval.h"
#include "analysis/logged_step.h"
#include "analysis/report.h"
#include "show/run/write_parts.h"

/* What the report does not know. Strings are borrowed; NULL ones leave their line
 * out. */
typedef struct {
  const char *title;    /* "gpt3-175b on dgx-a100-80g, 64 GPUs"            */
  const char *subtitle; /* "tp 8, pp 8, interleaved-1f1b, ..."             */
  const LsInterval *interval;
  const LsMeasured *measured; /* of time 0: none                           */
  const GPtrArray *findings;  /* char *: what its numbers say              */
  const LsPathSummary *critical_path;
  const LsSensitivityTable *sensitivity;
  bool color; /* ANSI escapes                                     */
  bool ascii; /* no block characters: the terminal is not UTF-8   */
} LsSummaryText;

/* Newly allocated, ends in a newline. */
char *ls_summary_format (const LsReport *r, const LsSummaryText *text);

#endif
