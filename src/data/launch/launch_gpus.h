/* data/launch/launch_gpus.h — on how many GPUs a command starts a job, by its launcher and the lines of a
 * batch system (private to launch/). What their words mean is the map "starters". */
#ifndef LS_DATA_LAUNCH_LAUNCH_GPUS_H
#define LS_DATA_LAUNCH_LAUNCH_GPUS_H

#include "data/launch/import_reader.h"
#include "data/launch/launch_words.h"
#include "data/shell/shell.h"

/* What starts processes, beside its own words. */
typedef struct {
  LaunchWords *batch;  /* what lines and commands ask of a batch system: "batch.nodes", as the map has it */
  GHashTable *seen;    /* variables that it sees: name -> text */
  bool is_one_of_many; /* each process has one GPU, and something else starts them */
} LaunchPlace;

/* The number at the end: "8", "gpu:8", "gpu:a100:8"; 0: there is none. */
guint64 launch_last_number (const char *text);
/* The first of these options with a number. */
guint64 launch_first_of (const LaunchWords *w, const char *const *names);

/* What a line of a script asks of a batch system is added to batch: "#SBATCH --nodes=4"; "sbatch --nodes=4
 * --export=A=1 job.sh", for the script that it starts; "kubernetes-pods --nodes=16 --gpus-per-node=4", one
 * for each kind of pods (program/program_wrap.c); "xpk workload create --tpu-type=v6e-256". Other commands
 * are passed over. Variables that the batch system sets are set in the shell; what is not decided is told. */
void launch_read_batch (LaunchWords *batch, LsShell *shell, const LsShellCommand *c, LsImport *import);
/* "srun --export=ALL,A=1": of names that a command sees, and of what variables are, those that this changes.
 * Without ALL it sees none but what stands there. */
void launch_export (char *const *words, guint n, GHashTable *variables, GHashTable *exported);
/* A variable that is given: that of the nodes goes before lines, too. */
void launch_given_nodes (LaunchWords *batch, const char *name, const char *value);

/* front: char *, the words in front of the program. is_command: it is one that a package installs, which
 * starts processes as variables say. 0: not known; what is not decided is told in import. */
guint64 launch_count_gpus (const LaunchPlace *place, const GPtrArray *front, bool is_command,
                           LsImport *import);

#endif
