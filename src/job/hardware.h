/* job/hardware.h — a cluster as its file describes it, with what goes with its
 * GPU: measured kernel efficiencies and NCCL figures. Immutable once loaded, so
 * many jobs may build clusters of different sizes from one. */
#ifndef LS_JOB_HARDWARE_H
#define LS_JOB_HARDWARE_H

#include <stdbool.h>

#include "base/diag.h"
#include "cluster/cluster.h"
#include "compute/cost.h"
#include "exec/memory/memory.h"
#include "exec/replay/replay.h"
#include "network/coll.h"
#include "strategy/strategy.h"

typedef struct {
  LsClusterSpec spec;
  LsCalibration calibration;
  LsNccl nccl;
  const char *own_generation; /* of its GPUs by their own NCCL file, beside the one that was asked for in its
                                 place; NULL: that of nccl. Interned */
  const char *calibration_of; /* the GPUs whose own the calibration is that was asked for, "h100, h800", where
                                 its GPU is none of them; NULL: nobody's, or its GPU's. Interned */
  GPtrArray *environment;    /* char *: what each variable of NCCL's environment does; NULL: none was given */
  uint64_t max_memory_bytes; /* of what is built for a job: its cluster, and its plan with what a run
                                keeps of it; 0: any. Not in the file, set by who asks */
} LsHardware;

/* Loads the cluster, its GPU's calibration and NCCL file (none for a torus); NULL, with located
 * diagnostics, if any is missing or wrong. Free with ls_hardware_free(). */
LsHardware *ls_hardware_load (const char *name_or_path, LsDiagList *diags);
/* The same with other measurements than those that the GPU's file names; NULL: as it names. LS_ERROR_CONFLICT
 * besides: a torus, which has no NCCL. */
typedef struct {
  const char *calibration, *nccl; /* names or paths */
  const char *nccl_env;           /* variables of NCCL (data/machines/nccl_env.h) */
  const char *nccl_typed;         /* "max_ctas=1,": changes of NCCL's file that options stand for; they win */
} LsMeasuredFiles;
LsHardware *ls_hardware_load_with (const char *name_or_path, const LsMeasuredFiles *files, LsDiagList *diags);
void ls_hardware_free (LsHardware *hardware); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsHardware, ls_hardware_free)

/* The NCCL file of a GPU, named or by its calibration; newly allocated. */
char *ls_hardware_nccl_name (const LsGpu *gpu);

/* Of its GPUs, static: "ampere"; of a torus "tpu". */
const char *ls_hardware_architecture (const LsHardware *hardware);

/* Whether its NCCL is that of another generation than its GPUs. */
bool ls_hardware_has_other_nccl (const LsHardware *hardware);

/* "8x16" or "8x16x16", 0 beyond; else false, and nothing is changed. */
#define LS_SLICE_EXPECTED "chips along the axes of a torus, such as 8x16 or 8x16x16"
bool ls_slice_parse (const char *text, void *ret_slice);

/* Slices of a torus with these axes, 0 beyond them; all 0 changes nothing.
 * LS_ERROR_CONFLICT: no torus, or one of other axes. */
gboolean ls_hardware_set_slice (LsHardware *hardware, const uint32_t slice[LS_TORUS_AXES], GError **error);

/* The same, by ls_cluster_build_brief(). */
LsCluster *ls_hardware_build_brief (const LsHardware *hardware, uint32_t n_nodes, uint32_t n_gpus,
                                    GError **error);

/* A cluster of that many nodes. Errors as of ls_cluster_build(). */
LsCluster *ls_hardware_build (const LsHardware *hardware, uint32_t n_nodes, GError **error);

/* As --nodes and --gpus ask, each 0 if not given: that many nodes, else as many as hold the
 * GPUs, else the file's. Also LS_ERROR_CONFLICT: the nodes do not hold the GPUs. */
LsCluster *ls_hardware_build_asked (const LsHardware *hardware, uint32_t n_nodes, uint32_t n_gpus,
                                    GError **error);

/* Whether its accelerator was measured with an implementation of attention (LsAttentionKernel); with AUTO
 * always. */
bool ls_hardware_has_attention (const LsHardware *hardware, int kernel);

/* The hardware as a job runs it: with its implementation of attention (LsAttentionKernel) and its GEMMs
 * (LsStrategy.dynamic_gemms), at the pace of the slowest of so many GPUs (compute/cost.c; 1: of a mean one).
 * Borrows all. */
void ls_hardware_for_job (const LsHardware *hardware, const LsStrategy *s, uint32_t n_gpus,
                          LsHardware *ret_hardware);

/* LS_ERROR_CONFLICT: the GPU's file gives no peak rate for the number format; says which it has. */
gboolean ls_hardware_check_dtype (const LsGpu *gpu, LsDtype dtype, GError **error);
/* The same of a job and of every accelerator of a cluster, and of what its recipe wants of the matrix
 * units. */
gboolean ls_hardware_check_formats (const LsClusterSpec *spec, const LsStrategy *strategy, GError **error);

/* What else a job, which is resolved, wants of a machine: drives, figures of DeepEP. LS_ERROR_CONFLICT: it
 * lacks one. */
gboolean ls_hardware_check_parts (const LsHardware *hardware, const LsCluster *cluster,
                                  const LsStrategy *strategy, GError **error);

/* LS_ERROR_CONFLICT: the caching allocator, which is PyTorch's, on TPUs. */
gboolean ls_hardware_check_allocator (const LsClusterSpec *spec, const LsMemoryOptions *memory,
                                      GError **error);

/* LS_ERROR_UNSUPPORTED where nodes are of several kinds: `what` ("--sensitivity") is of one. */
gboolean ls_hardware_check_alike (const LsClusterSpec *spec, const char *what, GError **error);

/* --- GPUs by what their driver calls them: "NVIDIA A100-SXM4-80GB" is a100-80g ------------------- */

/* The GPU file all of whose words the driver's begin with, that with most of them; NULL: none or
 * several. Newly allocated. */
char *ls_gpu_called (const char *driver_name);

/* Whether the driver's name contradicts that of our GPU: it is that of a file some of whose words ours lacks,
 * or of none, or several, and says no word of ours. Not so "NVIDIA H100" and "my-h100". */
bool ls_gpu_is_other (const char *driver_name, const char *name);

/* The clusters at hand that can be read, as LsClusterSpec. Free with g_ptr_array_unref(). */
GPtrArray *ls_clusters_at_hand (void);
/* The only one of them with that accelerator and so many in a node, or in a tray of a rack (0: any), or of
 * several the one that the accelerator's file names. NULL: there is none; *ret_n: how many have them.
 * Borrowed. */
const LsClusterSpec *ls_cluster_with (const GPtrArray *clusters, const char *gpu, uint32_t per_node,
                                      guint *ret_n);

/* --- clusters that rows name ------------------------------------------------------------------------- */

/* Owned by its table. */
typedef struct {
  LsHardware *hardware; /* NULL: it cannot be used */
  char *reason;         /* why not, in a line      */
  LsCluster *cluster;   /* for who builds one of it, to keep; NULL: none */
} LsNamedHardware;

/* By names, which are borrowed. */
GHashTable *ls_named_hardware_new (void);
/* Loaded when it is asked for first. files: as of ls_hardware_load_with(); NULL: none. */
LsNamedHardware *ls_named_hardware (GHashTable *all, const char *name, const LsMeasuredFiles *files);

/* --- what was fitted ----------------------------------------------------------------------------- */

/* What a cluster file's "fitted" (LsFitted, cluster/cluster.h) does to what is
 * known of the hardware:
 *
 *   compute    efficiency of arithmetic, and rows of matrix products and attention in a measured
 *              table
 *   overlap    what moving data cost a kernel beside them (LsNccl.stall_per_byte)
 *   intra_node links inside a node (NVLink, PCIe, ICI), and what NCCL gets through them
 *   inter_node NICs and switches, and what NCCL gets through them
 *
 * An efficiency of a link stays at most 1. What launching costs the host is an option of a run,
 * which job/job.c sets. */

/* In place; 0 and 1 change nothing. Lists are changed too: they must be the hardware's own. */
void ls_fitted_apply (LsHardware *hardware, const LsFitted *fitted);

/* A copy changed so; it borrows what does not change, strings above all. */
LsHardware *ls_fitted_copy_new (const LsHardware *base, const LsFitted *fitted);
void ls_fitted_copy_free (LsHardware *copy); /* NULL allowed */

/* What the host pays: by itself, times the call_time of its CPUs; over that what a cluster was fitted to
 * (above), over that what the strategy says. costs: those of an x86 server, replaced. */
void ls_hardware_host (const LsHardware *hardware, const LsStrategy *s, LsHostCosts *costs);

#endif
