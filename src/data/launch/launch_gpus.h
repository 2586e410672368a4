/* data/launch/launch_gpus.h — on how many GPUs a command starts a job, by its launcher and the lines of a
 * batch system (private to launch/). */
#ifndef LS_DATA_LAUNCH_LAUNCH_GPUS_H
#define LS_DATA_LAUNCH_LAUNCH_GPUS_H

#include "data/launch/import_reader.h"
#include "data/launch/launch_words.h"
#include "data/shell/shell.h"

/* What lines of a batch system ask for; 0: not said. */
typedef struct {
  guint64 nodes, per_node;
  guint64 submitted_nodes, submitted_per_node; /* which options of sbatch ask for: these go before lines */
  guint64 pods, in_pods;                       /* of Kubernetes or XPK, and the GPUs of them all */
  guint64 per_pod;                             /* 0: they differ, or it is not said */
  guint64 slices;                              /* of TPUs; 0: not known, or they are none */
  guint of_chip;                               /* devices of JAX on each chip; 0: they are no TPUs */
} LaunchBatch;

/* What starts processes, beside its own words. */
typedef struct {
  LaunchBatch batch;
  GHashTable *seen;    /* variables that it sees: name -> text */
  bool is_one_of_many; /* each process has one GPU, and something else starts them */
} LaunchPlace;

/* The number at the end: "8", "gpu:8", "gpu:a100:8"; 0: there is none. */
guint64 launch_last_number (const char *text);
/* The first of these options with a number. */
guint64 launch_first_of (const LaunchWords *w, const char *const *names);

/* "#SBATCH --nodes=4", "#PBS -l select=4:ngpus=8". Variables that the batch system sets are set in the
 * shell. */
void launch_read_directive (LaunchBatch *batch, LsShell *shell, const LsShellCommand *line);

/* "sbatch --nodes=4 --export=A=1 job.sh": for the script that it starts; what is not decided is told. */
void launch_read_submit (LaunchBatch *batch, LsShell *shell, const LsShellCommand *c, LsImport *import);
/* "srun --export=ALL,A=1": of names that a command sees, and of what variables are, those that this changes.
 * Without ALL it sees none but what stands there. */
void launch_export (char *const *words, guint n, GHashTable *variables, GHashTable *exported);
/* A variable that is given: that of the nodes goes before lines, too. */
void launch_given_nodes (LaunchBatch *batch, const char *name, const char *value);

/* launch_pods.c: "kubernetes-pods --nodes=16 --gpus-per-node=4", one for each kind of pods
 * (program/program_wrap.c), and "xpk workload create --tpu-type=v6e-256"; other commands are passed over. */
void launch_read_pods (LaunchBatch *batch, const LsShellCommand *c, LsImport *import);

/* front: char *, the words in front of the program, by the map "starters". is_command: it is one that a
 * package installs, which starts processes as variables say. 0: not known; what is not decided is told in
 * import. */
guint64 launch_count_gpus (const LaunchPlace *place, const GPtrArray *front, bool is_command,
                           LsImport *import);

/* Whether a job has one of these options, with blanks between; NULL: there are none. */
bool launch_says_gpus (const char *options, const LaunchWords *words);

#endif
