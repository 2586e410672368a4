/* ask/lab.h — answers of a student, graded by simulating (data/jobs/read_lab.h).
 *
 *     right      |answer - value| <= min (within |value|, half the distance to the nearest known mistake)
 *     a mistake  |answer - mistake| <= min (half its distance to the value, a tenth of |mistake|); of several
 *                the nearest
 *     a unit     right times a factor between two units, and nearer to that than to the mistake; of an answer
 *                that has one
 *
 * What is right is nowhere kept and never shown. */
#ifndef LS_ASK_LAB_H
#define LS_ASK_LAB_H

#include "data/jobs/read_lab.h"

/* The JSON of a command line without "lockstep". is_own: with the student's knobs after it. NULL: *error. */
typedef cJSON *(*LsLabRun) (const char *line, bool is_own, gpointer data, GError **error);

typedef enum { LS_LAB_OPEN, LS_LAB_RIGHT, LS_LAB_WRONG } LsLabVerdict;
/* "open", "right", "wrong". */
const char *ls_lab_verdict_name (LsLabVerdict verdict);

typedef struct {
  const char *name; /* of the question; "configuration" of the task */
  LsLabVerdict verdict;
  double given;     /* NaN: open, or a configuration */
  const char *unit; /* "": none */
  const char *hint; /* NULL: right or open */
} LsLabGrade;

typedef struct {
  const LsLab *lab; /* texts are its */
  GArray *grades;   /* LsLabGrade, one for each question, then of the task */
  guint n_right, n_wrong;
} LsLabGrades;

/* answers: "NAME=NUMBER", ending in NULL; NULL: none. has_own: knobs are given too. LS_ERROR_USAGE: an answer
 * to no question, or that is no number; errors of run. lab must outlive it. Free with ls_lab_grades_free().
 */
LsLabGrades *ls_lab_grade (const LsLab *lab, const char *const *answers, bool has_own, LsLabRun run,
                           gpointer data, GError **error);
void ls_lab_grades_free (LsLabGrades *grades); /* NULL allowed */

#endif
