/* lockstep/explore.h — what there is and what would be best: collectives, schedules, clusters, comparisons,
 * sweeps, lists. Include <lockstep/lockstep.h>. */
#ifndef LOCKSTEP_EXPLORE_H
#define LOCKSTEP_EXPLORE_H

#include <stdio.h>

#include <lockstep/job.h>

G_BEGIN_DECLS

/* ---- Collectives --------------------------------------------------------- */

/* All as text, as the flags of `lockstep collective` of the same names take it; NULL:
 * the default. */
typedef struct {
  const char *cluster;     /* name or path; may be NULL only with `compare`, as op      */
  const char *op;          /* "all-reduce", "all-gather", "reduce-scatter", "broadcast",
                            "reduce", "all-to-all", "gather", "scatter", "barrier",
                            "send-recv" or "p2p"                                     */
  const char *nodes;       /* the file's, or as many as the GPUs need                   */
  const char *gpus;        /* the first so many: "8", or each of "2,4,24" or of the
                            doublings "2..1024"; all of the nodes                    */
  const char *algorithm;   /* what NCCL would take                                      */
  const char *protocol;    /* "simple", "ll", "ll128"; what NCCL would take             */
  const char *network;     /* "flow", "alphabeta", "step", or "all" beside each other;
                            "flow"                                                   */
  const char *min, *max;   /* sizes such as "1KiB" and "8GiB", which are the defaults;
                            "1MiB" of several numbers of GPUs                         */
  const char *factor;      /* of a size over the one before; "2", of several numbers of
                            GPUs "8"                                                  */
  const char *compare;     /* path of a CSV of measured times, whose rows are simulated
                            instead; cluster, op, nodes, gpus, min and max then
                            select rows                                              */
  const char *trust;       /* only rows of this trust, "all" for any; "A"               */
  const char *slice;       /* chips of a TPU slice, "8x16"; as the file says, or the
                            GPUs need                                                 */
  const char *nccl;        /* NCCL file instead of that of the cluster's GPU            */
  LsProgressFunc progress; /* of messages one by one, on the thread that asks; or NULL */
  gpointer progress_data;
} LsCollectiveOptions;

typedef struct LsCollective LsCollective;

/* Times one operation alone on a cluster, over sizes and numbers of GPUs, or as often as it was
 * measured. A measured row that cannot be simulated is skipped, with a note.
 * LS_ERROR_USAGE: no cluster or op, a malformed value, min above max, no row matches;
 * LS_ERROR_INPUT: a file; LS_ERROR_CONFLICT: more GPUs than there are, or an algorithm
 * that does not do this. Free with ls_collective_free(). */
LS_PUBLIC LsCollective *ls_collective_run (const LsCollectiveOptions *options, GError **error);
LS_PUBLIC void ls_collective_free (LsCollective *collective); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsCollective, ls_collective_free)

/* For people, in the shape of nccl-tests; of a comparison a line per cluster and
 * operation. The other two have every row. */
LS_PUBLIC char *ls_collective_text (const LsCollective *collective);
LS_PUBLIC char *ls_collective_json (const LsCollective *collective);
LS_PUBLIC char *ls_collective_csv (const LsCollective *collective);

/* Why measured rows were skipped, a line each; "" if none was. */
LS_PUBLIC char *ls_collective_notes (const LsCollective *collective);

/* Bus bandwidth over size, measured beside simulated, or over GPUs; .svg or .png, drawn by gnuplot, or .gp.
 * Errors as of ls_result_write_timeline();
 * LS_ERROR_CONFLICT: nothing has a size, as of a barrier on one number of GPUs. */
LS_PUBLIC gboolean ls_collective_plot (const LsCollective *collective, const char *path, GError **error);

/* ---- Pipeline schedules -------------------------------------------------- */

/* All as text, as the flags of `lockstep schedule` of the same names take it; NULL: the
 * default. */
typedef struct {
  const char *schedule; /* a name, or a path (with a slash, or ending in .csv) of a file in
                           PyTorch's text format                                       */
  gboolean all;         /* instead: all of them, compared                              */
  const char *pp, *vpp, *micro_batches;
  const char *group, *rounds, *waves, *pipes;                 /* of the schedules that have such       */
  const char *f_time, *b_time, *w_time, *fb_time, *comm_time; /* "1.5", or all with a
                           unit: "2ms"; of a chunk, with `all` of a rank's share of the
                           model                                                       */
  const char *memory_limit; /* of the schedules that are searched for: micro-batches of
                               a rank's full activations                               */
} LsScheduleOptions;

typedef struct LsSchedule LsSchedule;

/* The order in which each rank of a pipeline executes what it has to, and when that is.
 * LS_ERROR_USAGE: something is missing, malformed or unknown; LS_ERROR_INPUT: the file,
 * or what it says cannot run; LS_ERROR_CONFLICT: the rule that is broken; LS_ERROR_LIMIT.
 * Free with ls_schedule_free(). */
LS_PUBLIC LsSchedule *ls_schedule_new (const LsScheduleOptions *options, GError **error);
LS_PUBLIC void ls_schedule_free (LsSchedule *schedule); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsSchedule, ls_schedule_free)

/* A chart at most `width` columns wide, with its figures; of all a table. CSV is PyTorch's
 * text format; of all a row each. */
LS_PUBLIC char *ls_schedule_text (const LsSchedule *schedule, LsTextStyle style, guint width);
LS_PUBLIC char *ls_schedule_json (const LsSchedule *schedule);
LS_PUBLIC char *ls_schedule_csv (const LsSchedule *schedule);
/* A picture of the chart, or of the bubbles of all over micro-batches and over stages, .svg or
 * .png; errors as of ls_result_write_timeline(). */
LS_PUBLIC gboolean ls_schedule_plot (const LsSchedule *schedule, const char *path, GError **error);
/* Writes one of the texts to a file; errors as of ls_result_write_csv(). */
LS_PUBLIC gboolean ls_schedule_write (const char *text, const char *path, GError **error);

/* ---- Sweeps -------------------------------------------------------------- */

typedef struct LsSweep LsSweep;

/* All legal configurations of a job, the best of them found. */
LS_PUBLIC LsSweep *ls_sweep_new (void);
LS_PUBLIC void ls_sweep_free (LsSweep *sweep); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsSweep, ls_sweep_free)

/* Sets one knob from text, as ls_job_set() does. Axes take a list, "1,2,4", which narrows their
 * range: "gpus", "global-batch", "tp", "pp", "cp", "ep", "vpp", "sp", "zero", "dp-kind",
 * "micro-batch", "schedule", "recompute", "tp-overlap". Besides: "prune" (on, off), "top" (how many
 * are ranked), "threads", "gpu-hour" (dollars), "gpu-watts", "pue". LS_ERROR_USAGE. */
LS_PUBLIC gboolean ls_sweep_set (LsSweep *sweep, const char *key, const char *value, GError **error);
/* Replaces all knobs of the strategy that no axis sets; errors as of ls_job_load_strategy(). */
LS_PUBLIC gboolean ls_sweep_load_strategy (LsSweep *sweep, const char *name_or_path, GError **error);
/* Ranges of axes from a file (the manual: formats/ranges.md); what is set later overrides it.
 * LS_ERROR_INPUT. */
LS_PUBLIC gboolean ls_sweep_load_ranges (LsSweep *sweep, const char *path, GError **error);
/* Also finds what nothing beats in time, memory and cost together. */
LS_PUBLIC void ls_sweep_set_pareto (LsSweep *sweep, gboolean is_wanted);
/* Whether the text and JSON say how long it took, which differs from run to run. */
LS_PUBLIC void ls_sweep_set_timing (LsSweep *sweep, gboolean is_wanted);

/* What charts are wanted, before it runs, so that a mistake costs no search. axes: two, "tp,pp" (NULL:
 * these), across and up; figure: "step", "tokens", "mfu" (NULL: "step"). LS_ERROR_USAGE. */
LS_PUBLIC gboolean ls_sweep_set_heat_map (LsSweep *sweep, const char *axes, const char *figure,
                                          GError **error);
LS_PUBLIC void ls_sweep_set_scaling_chart (LsSweep *sweep, gboolean is_wanted);

/* A file to which every simulation is written: a sweep that was stopped, or killed, goes on from
 * there. NULL: none. */
LS_PUBLIC void ls_sweep_set_journal (LsSweep *sweep, const char *path);

/* Processes that mpirun started with one command line, to do one sweep together. The first, of rank 0,
 * leads: it alone has results and a journal. All must join before they do anything that may fail,
 * and leave at the end, with the error if there was one: so the leader gets it, and nobody waits
 * for who is not there. Without mpirun it is one process. */
typedef struct LsTeam LsTeam;
/* LS_ERROR_UNSUPPORTED: this Lockstep is without MPI. */
LS_PUBLIC LsTeam *ls_team_join (GError **error);
LS_PUBLIC guint ls_team_rank (const LsTeam *team);
LS_PUBLIC void ls_team_leave (LsTeam *team, const GError *error); /* frees it; NULL allowed */
/* Borrowed, to the end of the sweep. */
LS_PUBLIC void ls_sweep_set_team (LsSweep *sweep, LsTeam *team);

/* Runs it, once. stop: may be set to 1 at any time, by a signal handler too, and ends the sweep with what it
 * has; or NULL. progress: or NULL. LS_ERROR_IO: the journal; LS_ERROR_INPUT, LS_ERROR_USAGE, LS_ERROR_LIMIT,
 * LS_ERROR_CONFLICT; of a team those of all. A process that does not lead its team helps until the leader
 * leaves, and has no results: nothing below is for it. */
LS_PUBLIC gboolean ls_sweep_run (LsSweep *sweep, const gint *stop, LsProgressFunc progress, gpointer data,
                                 GError **error);

/* Once it has run. */
LS_PUBLIC gboolean ls_sweep_was_stopped (const LsSweep *sweep);
/* FALSE, with LS_ERROR_STOPPED if it was, LS_ERROR_NO_FIT if nothing is legal and fits. */
LS_PUBLIC gboolean ls_sweep_check (const LsSweep *sweep, GError **error);
LS_PUBLIC char *ls_sweep_text (const LsSweep *sweep);
LS_PUBLIC char *ls_sweep_json (const LsSweep *sweep);
LS_PUBLIC char *ls_sweep_csv (const LsSweep *sweep);
/* Every simulated configuration, with its picoseconds and the flags of `lockstep run` that give
 * the same; errors as of ls_result_write_csv(). */
LS_PUBLIC gboolean ls_sweep_write_list (const LsSweep *sweep, const char *path, GError **error);
/* Pictures, .svg or .png; errors as of ls_result_write_timeline(), LS_ERROR_CONFLICT: there is nothing
 * to draw. The best step time (or another figure) over two axes; needs ls_sweep_set_heat_map(). */
LS_PUBLIC gboolean ls_sweep_write_heat_map (const LsSweep *sweep, const char *path, GError **error);
/* All that was simulated by memory, time and cost, the front marked; needs ls_sweep_set_pareto(). */
LS_PUBLIC gboolean ls_sweep_write_pareto_chart (const LsSweep *sweep, const char *path, GError **error);
/* The best over numbers of GPUs and global batches, beside ideal scaling. */
LS_PUBLIC gboolean ls_sweep_write_scaling_chart (const LsSweep *sweep, const char *path, GError **error);

/* ---- Topology ------------------------------------------------------------ */

/* All as text, as the flags of `lockstep topology` of the same names take it; NULL: the
 * default. */
typedef struct {
  const char *cluster;      /* name or path                                                  */
  const char *nodes;        /* the file's, or as many as the GPUs need                       */
  const char *gpus;         /* as many nodes as hold so many                                 */
  const char *slice;        /* of a TPU pod, "4x4"                                           */
  const char *const *paths; /* ways to show, each "A,B": two GPUs of the cluster such as
                               "0,12" or "node0/gpu0,node1/gpu4"; NULL-terminated        */
} LsTopologyOptions;

typedef struct LsTopology LsTopology;

typedef enum {
  LS_TOPOLOGY_BRIEF,
  LS_TOPOLOGY_LINKS, /* every kind of link, with its source; JSON always has these */
  LS_TOPOLOGY_ALL,   /* and every link                                            */
} LsTopologyDetail;

/* A cluster described: nodes, fabric, bandwidths. LS_ERROR_USAGE: no cluster, a malformed
 * value, a way from a GPU to itself; LS_ERROR_INPUT: the file; LS_ERROR_CONFLICT: it cannot
 * be built, or has no such GPU. Free with ls_topology_free(). */
LS_PUBLIC LsTopology *ls_topology_new (const LsTopologyOptions *options, GError **error);
LS_PUBLIC void ls_topology_free (LsTopology *topology); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsTopology, ls_topology_free)

LS_PUBLIC char *ls_topology_text (const LsTopology *topology, LsTopologyDetail detail, LsTextStyle style);
LS_PUBLIC char *ls_topology_json (const LsTopology *topology, LsTopologyDetail detail);
/* The same to a file as it is made, as it may be gigabytes; errors stay with the file. */
LS_PUBLIC void ls_topology_print_json (const LsTopology *topology, LsTopologyDetail detail, FILE *out);

/* As a graph for Graphviz; errors as of ls_result_write_csv(). */
LS_PUBLIC gboolean ls_topology_write_dot (const LsTopology *topology, const char *path, GError **error);
/* A picture, .svg or .png; errors as of ls_result_write_timeline(). */
LS_PUBLIC gboolean ls_topology_plot (const LsTopology *topology, const char *path, GError **error);

/* ---- Comparisons --------------------------------------------------------- */

/* Two results as ls_result_json() gives them, from files, side by side: as text for people or
 * as JSON. LS_ERROR_INPUT. */
LS_PUBLIC char *ls_compare_results (const char *path_a, const char *path_b, gboolean as_json, GError **error);

/* Any number of them, two or more, a column for each; paths ends in NULL. LS_ERROR_INPUT. */
LS_PUBLIC char *ls_compare_many (const char *const *paths, gboolean as_json, GError **error);

/* Spans that tools/kernelbench measured on one rank beside those of
 * ls_result_write_csv(). LS_ERROR_INPUT: a file; LS_ERROR_USAGE: one holds the other kind;
 * LS_ERROR_CONFLICT: that rank is not in the prediction. */
LS_PUBLIC char *ls_compare_spans (const char *path_measured, const char *path_predicted, gboolean as_json,
                                  GError **error);
/* LS_ERROR_TOLERANCE if the predicted step is off the measured one by more than max_pct percent; other errors
 * as above. */
LS_PUBLIC gboolean ls_check_spans (const char *path_measured, const char *path_predicted, double max_pct,
                                   GError **error);

/* ---- What there is ------------------------------------------------------- */

/* kind: "models", "clusters", "gpus", "strategies", "software", "traces", "schedules", or NULL for all.
 * LS_ERROR_USAGE for another one. */
/* The word of a NULL-terminated list that was probably meant by what was typed; NULL: none is near.
 * Borrowed. */
LS_PUBLIC const char *ls_nearest_word (const char *typed, const char *const *words);

LS_PUBLIC char *ls_list_text (const char *kind, GError **error);

/* Reads one data file, of the kind that its "schema" names or a Hugging Face
 * config.json, and checks all that can be checked. A strategy is also checked
 * against a model and a cluster where both are given (or NULL). Returns a line
 * that says what the file holds. LS_ERROR_INPUT, LS_ERROR_CONFLICT. */
LS_PUBLIC char *ls_check_file (const char *path, const char *model, const char *cluster, GError **error);

G_END_DECLS

#endif
