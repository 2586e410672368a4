/* data/machines/machines.h — files of topologies/: GPUs, clusters, and how fast either was measured to be.
 *
 * Most are of an LsDataFile (data/datadir.h): ls_data_file_load (&ls_gpu_file, "h100", &gpu, diags). What
 * else loads does so by name or path, what reads takes a document. On success the caller clears what *ret is;
 * on failure that is untouched and diags says why (LS_ERROR_INPUT). */
#ifndef LS_DATA_MACHINES_MACHINES_H
#define LS_DATA_MACHINES_MACHINES_H

#include "analysis/interval.h"
#include "base/diag.h"
#include "cluster/cluster.h"
#include "cluster/gpu.h"
#include "cluster/reliability.h"
#include "compute/cost.h"
#include "data/datadir.h"
#include "data/text/field.h"
#include "data/text/json_doc.h"
#include "network/coll.h"
#include "network/nccl/nccl.h"

/* --- read_gpu.c: topologies/gpu/NAME.json: an accelerator ------------------------------------------ */

extern const LsDataFile ls_gpu_file; /* LsGpu */
extern const LsField ls_gpu_fields[];

/* Of an LsKnown; what one of its keys alone cannot show. `at` is where it stands, NULL: nowhere. */
extern const LsField ls_known_fields[];
bool ls_known_check (const LsJsonDoc *doc, const cJSON *at, const LsKnown *known, LsDiagList *diags);

/* ls_gpu_file, loaded; LsGpu.left_out is of a user's own file alone. */
bool ls_gpu_load (const char *name, LsGpu *ret_gpu, LsDiagList *diags);

/* The same of an object inside a document, which needs no "schema", "name" and "source" there: the first says
 * nothing, and the others are as_name and as_source then. */
bool ls_gpu_read_part (const LsJsonDoc *doc, const cJSON *object, const char *as_name, const char *as_source,
                       LsGpu *ret_gpu, LsDiagList *diags);

/* --- read_cluster.c -------------------------------------------------------------------------------- */

/* topologies/NAME.json: a cluster, with its accelerator, which is found by name. Whether its counts deal out
 * evenly is for ls_cluster_build() to say. */

extern const LsDataFile ls_cluster_file; /* LsClusterSpec */
extern const LsField ls_cluster_fields[];
extern const LsField ls_link_fields[]; /* of an LsLinkSpec */

/* By a name or path, as of ls_cluster_open(). */
bool ls_cluster_load (const char *name, LsClusterSpec *ret_spec, LsDiagList *diags);
/* The link of which "node.nics.link" or a key inside it, "node.nics.link.bandwidth", speaks; NULL: of
 * none. */
const LsLinkSpec *ls_cluster_link_at (const LsClusterSpec *spec, const char *path);

/* The document as our files are indented, newly allocated. */
char *ls_cluster_print (const cJSON *root);

/* A cluster of one listed node, with a leaf-spine if it has NICs, as a file, without what was guessed; newly
 * allocated. */
char *ls_cluster_list_to_json (const LsClusterSpec *spec);

/* A GPU that the cluster names becomes an object in it: paths in an object are found from where the file is.
 * Takes doc; NULL: diagnostics. */
LsJsonDoc *ls_cluster_with_own_gpu (LsJsonDoc *doc, LsDiagList *diags);

/* `base` (a cluster; taken, freed) with changes as of data/text/override.h (char *), under another name, with
 * its source. Newly allocated; NULL: diagnostics. */
char *ls_cluster_changed_to_json (LsJsonDoc *base, const GPtrArray *changes, const char *name,
                                  const char *source, LsDiagList *diags);

/* --- read_calibration.c -------------------------------------------------------------------------- */

/* topologies/calib/NAME.json: how close the kernels of one accelerator come to its peaks. */

/* LsCalibration: kernel kinds that the file leaves out are plain rooflines, not fitted. */
extern const LsDataFile ls_calibration_file;
extern const LsField ls_calibration_fields[];
extern const LsField ls_kind_fit_fields[];        /* of an LsKindFit */
const char *ls_entry_key (guint slot);            /* of an LsCalibrationEntry; static */
extern const LsEnumName ls_measured_attentions[]; /* LsAttentionKernel that rows may be of */
extern const LsEnumName ls_gemms_names[];         /* LsGemms */

/* topologies/calib/access-NAME.json: how fast kernels of one accelerator are by how they touch memory
 * (LsAccess), for kernels that are listed one by one as a framework launches them. */

typedef struct {
  char *name, *source;
  LsTime gap; /* of each launch, what is the gap between two kernels of a full queue; 0: not known */
  LsAccessFit fit[LS_N_ACCESSES];
} LsAccessFile;

/* Access kinds that the file leaves out go at the bandwidth, not fitted. */
extern const LsDataFile ls_access_file;
extern const LsField ls_access_fields[];

/* By name or path, into the calibration of a GPU; NULL: at the bandwidth. Where the calibration holds a gap
 * that was measured, it takes the place of the file's; a file that does not say its gap keeps its launches.
 * Diagnostics as above. */
bool ls_access_load (const char *name, LsCalibration *calibration, LsDiagList *diags);

/* What of each launch in that file is the gap of a queue; 0: it does not say, or NULL was named. */
bool ls_access_gap (const char *name, LsTime *ret_gap, LsDiagList *diags);

/* topologies/calib/residuals.json: what published runs measured over what was predicted for them.
 * `lockstep validate CASES.csv --residuals FILE.json` writes it. */

extern const LsField ls_residuals_fields[];

/* By name or path; NULL and diagnostics (LS_ERROR_INPUT). Free with ls_residuals_free(). */
LsResiduals *ls_residuals_load (const char *name, LsDiagList *diags);
LsResiduals *ls_residuals_read (const LsJsonDoc *doc, LsDiagList *diags);

/* Whether there is a file of that name. */
bool ls_residuals_exist (const char *name);

/* --- read_gpu.c: NCCL on one accelerator, a file of topologies/calib ------------------------------ */

extern const LsDataFile ls_nccl_file; /* LsNccl */
extern const LsField ls_nccl_fields[];

/* --- read_gpu.c: topologies/nccl/NAME.json: NCCL's numbers for a generation of GPUs -------- */

extern const LsDataFile ls_nccl_tables_file; /* LsNcclTables */
extern const LsField ls_nccl_tables_fields[];

/* Of all files that are found by name, that of the compute capability with this major number, or where gcn
 * is not NULL the one that has it among its own; the caller clears it. False with diagnostics if a file
 * cannot be read, or with *reterr_why, newly allocated, if none has it: "expected 7x (v100) or 8x
 * (a100-80g)", with the usual GPUs. */
bool ls_nccl_tables_find (uint32_t compute_capability, const char *gcn, LsNcclTables *ret_tables,
                          char **reterr_why, LsDiagList *diags);

/* --- read_calibration.c: topologies/reliability/NAME.json: how often parts of a cluster fail -------- */

extern const LsDataFile ls_reliability_file; /* LsReliability, whose causes have their rates */
extern const LsField ls_reliability_fields[];

/* --- read_calibration.c: topologies/jitter/NAME.json: how much GPUs and steps differ ------------- */

extern const LsDataFile ls_jitter_file; /* LsJitter */
extern const LsField ls_jitter_fields[];

/* A node as NCCL sees it: a topology file of NCCL (*.xml, from NCCL_TOPO_DUMP_FILE) as a cluster of
 * one node. */

/* The node is an explicit list. Rates are those that NCCL 2.30.7 reckons with
 * (src/graph/topo.cc, topo.h), net of overheads, so all efficiencies are 1:
 *
 *     PCI      link_width · v / 80 GB/s, v 15 30 60 120 240 480 for gen 1 to 6; x16
 *              where the width is not known, gen 3 where the speed is not
 *     NVLink   count · 20, 20, 20.6, 40.1 GB/s for sm 70, 80, 90, 100; all NVSwitches
 *              are one
 *     C2C      bw · count / 1000 GB/s, GPU to CPU
 *     CPUs     any two joined: 6 10 22 40 GB/s Intel by model, 16 AMD, 6 ARM, 32 POWER9
 *     NIC      speed / 8000 GB/s at the port; the fastest ports of the node, the others
 *              (storage, management) are left out
 *
 * PCI devices that lead to no GPU and no such port are left out, and so are NVLinks to
 * GPUs that the file does not have. The file knows neither latencies nor switches
 * outside: latencies are those of the shipped clusters, and the nodes are joined by a
 * non-blocking leaf-spine with a rail for each NIC.
 *
 * Deviations: NCCL multiplies PCI traffic between GPUs at Intel CPUs by 6/5; not here. */

/* --- topology_from.c: a cluster from files of other programs ---------------------------------- */

/* The kinds of files are rows there; each describes a node or a fabric, and "FILE:gpu=NAME" says which
 * accelerator a node has. A name of a cluster, or the path of one in JSON, stands for a node too, and for the
 * fabric if no file has one. NULL-terminated. The cluster as JSON (ls_json_is_given()), with what was guessed
 * under that key, newly allocated; NULL: diagnostics (LS_ERROR_INPUT). */
char *ls_topology_from (const char *const *files, const char *name, LsDiagList *diags);

/* The cluster of a name or path, or of such files, "A+B:gpu=NAME,nodes=4", with the changes made; NULL:
 * diagnostics (LS_ERROR_INPUT). */
LsJsonDoc *ls_cluster_open (const char *name, LsDiagList *diags);
bool ls_cluster_is_of_files (const char *name);

#endif
