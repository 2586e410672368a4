/* data/launch/kubernetes/kubernetes.h — objects of Kubernetes in YAML as the shell script that their
 * containers run (private to launch/).
 *
 * A container's variables are exported, its command is a command, and a ConfigMap's files are files that the
 * script writes. How many pods there are, and what each has, is said by a command in front, which
 * launch_gpus.c counts by:
 *
 *     kubernetes-pods --nodes=16 --gpus-per-node=4
 *
 * Values that a tool puts in before the file is used ("$NUM_NODES" of envsubst,
 * "{{workflow.parameters.gpus}}" of Argo) are variables of the script, NUM_NODES and gpus. */
#ifndef LS_DATA_LAUNCH_KUBERNETES_H
#define LS_DATA_LAUNCH_KUBERNETES_H

#include "data/launch/import_reader.h"

#define KUBERNETES_PODS "kubernetes-pods"

/* Puts the script in place of a file of Kubernetes, which loses its tree; another file stays as it is. told:
 * takes what is said of it, char *, owned by the array. False: a diagnostic, LS_ERROR_INPUT: no container has
 * a command. */
bool kubernetes_unpack (ImportFile *file, GPtrArray *told, LsDiagList *diags);

/* The same of a task of SkyPilot (skypilot.c). */
void skypilot_unpack (ImportFile *file, GPtrArray *told);

/* The file is this script from now on. */
void kubernetes_put_in_place (ImportFile *file, const GString *script);

/* --- kubernetes_script.c: lines of the script --- */

/* A member that is a text, borrowed; "": there is none. */
const char *kubernetes_string (const cJSON *object, const char *key);
/* A scalar as text, newly allocated; NULL: it is none. */
char *kubernetes_text (const cJSON *value);

/* Appends a text as a word in double quotes, in which values that are put in are variables, and "$(NAME)" is
 * the container's. */
void kubernetes_add_word (GString *script, const char *text);

/* "export NAME=..." */
void kubernetes_add_export (GString *script, const char *name, const char *text);

/* What a container runs: its command behind its variables. maps: name to the data of a ConfigMap (cJSON).
 * False: it has no command. */
bool kubernetes_add_container (GString *script, const cJSON *container, GHashTable *maps);

/* Files of a ConfigMap, as here documents. */
void kubernetes_add_files (GString *script, const cJSON *data);

#endif
