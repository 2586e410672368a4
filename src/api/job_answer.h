/* api/job_answer.h — a job that was run, and what was found out about it: what `run` and `memory` show
 * (private). */
#ifndef LS_API_JOB_ANSWER_H
#define LS_API_JOB_ANSWER_H

#include "analysis/critical_path.h"
#include "api/answer.h"
#include "api/request.h"
#include "ask/reruns.h"
#include "ask/step_spread.h"
#include "ask/whatif.h"
#include "job/job_interval.h"
#include "show/run/write_run.h"

typedef struct {
  LsJobSpec spec;
  LsJobResult *job;
  LsWhatIf *advice; /* NULL: nobody asked, as the seven that follow */
  LsCriticalPath *critical_path;
  LsPathSummary *critical_summary;
  LsSensitivityTable *sensitivity;
  LsFaultTable *faults;
  LsEcmpTable *ecmp;
  LsWhatIf *what_if;
  LsStepSpread *step_spread;
  LsInterval *interval; /* NULL: not wanted               */
  GPtrArray *findings;  /* char *: what its numbers say   */
  char *title, *subtitle;
  char *emitted;            /* for another program, in place of the summary; NULL: nobody asked */
  gboolean has_placement;   /* is shown with the summary                 */
  gboolean has_whole_trace; /* a Chrome trace is of all ranks and ops    */
} LsJobAnswer;

/* Runs the job of a request, and says in the answer what is worth knowing. Errors as of ls_job_spec_run().
 * Free with ls_job_answer_free(). */
LsJobAnswer *ls_job_answer_new (const LsRequest *r, LsAnswer *a, GError **error);
/* The same of a launch file in the place of --from; NULL: as above. */
LsJobAnswer *ls_job_answer_new_of (const LsRequest *r, const char *from, LsAnswer *a, GError **error);
/* What was asked for besides, borrowed. */
LsReportExtras ls_job_answer_extras (const LsJobAnswer *j);
/* As `run --json` of that version of Lockstep prints it, newly allocated. */
char *ls_job_answer_to_json (const LsJobAnswer *j, const char *version);
void ls_job_answer_free (gpointer answer); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsJobAnswer, ls_job_answer_free)

/* Says what a launch file was read as, and takes the step that it timed; nothing without --from. */
void ls_job_tell_from (LsJobSpec *spec, LsAnswer *a);
/* Of answers that propose other configurations: that the program of a launch file was not asked about them.
 * */
void ls_job_tell_unasked (const LsJobSpec *spec, LsAnswer *a);
/* Notes options of memory that were given where none is shown; and those of a replay, where there is none. */
typedef enum { LS_IDLE_OF_MEMORY, LS_IDLE_OF_REPLAY } LsIdleOptions;
void ls_job_tell_idle (const LsRequest *r, LsIdleOptions of, LsAnswer *a);
/* Notes between which times a measured step of r, the job of `spec`, would lie, and by which runs. what:
 * whose, "a step of the job as it is". Nothing where the spec wants no interval. */
void ls_job_tell_interval (const LsJobSpec *spec, const LsJobResult *r, const char *what, LsAnswer *a);

/* "does not fit: ...", LS_ERROR_NO_FIT, of a report that does not. */
GError *ls_job_misfit (const LsReport *r);

/* A job that does not fit is a result: a warning, with the line `help` unless that is NULL; a failure where
 * the request has "require-fit". */
void ls_job_answer_check_fit (const LsJobAnswer *j, const LsRequest *r, const char *help, LsAnswer *a);

/* Draws what a rank holds over the step; -1: the fullest. LS_ERROR_USAGE: there is no such rank. */
gboolean ls_job_answer_plot_memory (const LsJobAnswer *j, gint64 rank, const char *path, GError **error);

/* Give a page the title of the job and what ranks hold over the step; the first also its timeline, and how
 * busy links were. */
void ls_job_answer_page (gconstpointer job_answer, LsPage *page);
void ls_job_answer_memory_page (gconstpointer job_answer, LsPage *page);

/* What was found out about a job, with its title and subtitle. */
typedef struct {
  gpointer result;
  char *title, *subtitle;
  GDestroyNotify free; /* of the result */
  guint top;           /* rows that are shown; 0: all */
} LsTitled;

/* Takes the result. */
LsTitled *ls_titled_new (gpointer result, GDestroyNotify free, const LsJobResult *job);
void ls_titled_free (gpointer titled);

/* "tp 8 + sp, pp 8 x 3 chunks, ...", or where a trace comes from. Newly allocated. */
char *ls_job_subtitle (const LsJobResult *r);

/* --- job_answer.c: `lockstep run --timeline` -------------------------------------------------- */

/* LS_ERROR_USAGE: rows, ranks, a part or a width that no picture can have, or that its suffix does not
 * heed. */
gboolean ls_timeline_options_check (const LsRequest *r, GError **error);
/* Draws each, and fails the answer where that fails. */
void ls_job_answer_draw_timelines (const LsJobAnswer *j, const LsRequest *r, LsAnswer *a);

#endif
