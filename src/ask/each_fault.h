/* ask/each_fault.h — which link, accelerator or node would hurt a step most if it were slower.
 *
 * Problem. Of thousands of parts one is always worse than the rest. Which of them a job waits for follows
 * neither from its load nor from the shares of the step: what overlaps may cost nothing, and what is on the
 * way of all costs all.
 *
 * Method. The job is run again with one part at a share s of what it can do, all others as they are:
 *
 *     link   a trunk (cluster/cluster.h) at s of its capacity, both ways; s = 0: failed, and gone around
 *     gpu    an accelerator whose kernels take 1 / s as long (exec/slow.h)
 *     node   all accelerators of a node
 *
 * Parts that are alike are run once, the first of them. Accelerators are alike whose ranks are of one class
 * of the step without a fault (exec/shortcuts/fold.h), nodes whose ranks are, one by one. Links are alike
 * that have names of one form, carry the same bytes each way, and are of alike nodes. Links that carry
 * nothing are left out.
 *
 * Worked example. 8 GPUs that do the same: one group of 8 with s = 0.5, whose kernels take twice as long. All
 * others wait for it: the step grows by the kernels' time, whichever it is.
 *
 * Deviations. That parts are alike without a fault does not prove that the step is as long with either of
 * them slower; with folding checked (LS_SHORTCUT_CHECK) the last of each group is run too, and another step
 * is an error; without folding no parts are alike. Faults do not come together. */
#ifndef LS_ASK_EACH_FAULT_H
#define LS_ASK_EACH_FAULT_H

#include <glib.h>
#include <stdbool.h>

#include "base/parallel.h"
#include "job/job.h"

typedef enum { LS_FAULT_LINK, LS_FAULT_GPU, LS_FAULT_NODE, LS_N_FAULT_KINDS } LsFaultKind;

const char *ls_fault_kind_name (LsFaultKind kind); /* static: "link" */

typedef struct {
  LsFaultKind kind;
  double share; /* [0, 1), of links; (0, 1) else: what is left */
} LsFaultAsk;

/* "link", "gpu=0.9", "node=0.5"; the share is a half if none is given. */
bool ls_fault_ask_parse (const char *text, LsFaultAsk *ret_ask);

typedef struct {
  char *first;   /* "node0/nic0>leaf0", "rank 3 on gpu 3", "node 2"        */
  char *pattern; /* of all that are alike, "node*" / "nic*>leaf*"; NULL: one */
  guint n_alike;
  double step_s; /* NAN: nothing leads around it                           */
  char *cut_off; /* who cannot reach whom then; NULL: all can              */
} LsFaultRow;

typedef struct {
  LsFaultAsk ask;
  const char *chip; /* static: what an accelerator is called there */
  double step_s;    /* without a fault                                       */
  guint n_idle;     /* links that carry nothing                              */
  GArray *rows;     /* LsFaultRow: what cuts off, then by step, longest first */
} LsFaultTable;

#define LS_FAULTS_MAX 4096 /* groups of parts */

/* r: the job as it ran. n_threads 0: one per processor; the result is the same. LS_ERROR_LIMIT: more than
 * LS_FAULTS_MAX groups. LS_ERROR_FAILED: parts taken for alike that are not. */
LsFaultTable *ls_fault_table_new (const LsJobSpec *spec, const LsJobResult *r, const LsFaultAsk *ask,
                                  guint n_threads, const LsProgress *progress, GError **error);
void ls_fault_table_free (LsFaultTable *table); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsFaultTable, ls_fault_table_free)

#endif
