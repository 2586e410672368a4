/* data/machines/nccl_env.h — variables of NCCL's environment as changes of a cluster's file and of what NCCL
 * reaches there.
 *
 * What each variable does is a row of topologies/environment/nccl.json: with which values, and a change
 * of the cluster, a change of NCCL's file, or why neither. The first row with that name and value holds. */
#ifndef LS_DATA_MACHINES_NCCL_ENV_H
#define LS_DATA_MACHINES_NCCL_ENV_H

#include <glib.h>

#include "base/diag.h"
#include "data/text/field.h"

/* All owned. */
typedef struct {
  char *cluster, *nccl; /* changes (data/text/override.h); NULL: none                        */
  GPtrArray *lines;     /* char *: what each variable does, "NCCL_NET=Socket: node.nics.transport=tcp" */
} LsNcclEnv;

/* text: "NCCL_ALGO=Ring NCCL_NET=Socket", by blanks; a variable that is given twice has its last value, as in
 * a shell, and a line says so. typed_cluster, typed_nccl: changes that were typed (data/text/override.h), of
 * the cluster and of NCCL's file, NULL: none; what they change no variable does, and its line says so.
 * False: diagnostics (LS_ERROR_USAGE: a word that is not VARIABLE=VALUE, or has no row). The caller clears
 * *ret_env. */
bool ls_nccl_env_read (const char *text, const char *typed_cluster, const char *typed_nccl,
                       LsNcclEnv *ret_env, LsDiagList *diags);
void ls_nccl_env_clear (LsNcclEnv *env);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (LsNcclEnv, ls_nccl_env_clear)

/* --- topologies/environment/nccl.json -------------------------------------------------------- */

extern const LsField ls_nccl_env_fields[];
/* What such a file is, in words, newly allocated; NULL: diagnostics. */
char *ls_nccl_env_inspect (const LsJsonDoc *doc, LsDiagList *diags);

#endif
