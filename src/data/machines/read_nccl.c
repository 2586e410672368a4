/* data/machines/read_nccl.c — topologies/calib/, NCCL, read. */
#include "data/machines/machines.h"

#include "data/datadir.h"
#include "data/text/override.h"

#define USUAL_GENERATION "volta"

/* As the file has it: the name of the generation. */
typedef struct {
  LsNccl nccl;
  char *generation;
} File;

#define CHANNELS(member, meaning_)                                                                           \
  {                                                                                                          \
#member, LS_FIELD_UINT, offsetof(LsNccl, member), .required = true, .min = 1, .max = 1024,               \
                                                      .meaning = (meaning_)                                  \
  }
#define RATE(member, meaning_)                                                                               \
  {                                                                                                          \
#member, LS_FIELD_RATE, offsetof(LsNccl, member), .required = true, .above = true, .meaning = (meaning_) \
  }
#define LATENCY(member, meaning_)                                                                            \
  {                                                                                                          \
#member, LS_FIELD_TIME, offsetof(LsNccl, member), .required = true, .max = (double) LS_S,                \
                                                      .meaning = (meaning_)                                  \
  }
#define NUMBER(member, max_, meaning_)                                                                       \
  {                                                                                                          \
#member, LS_FIELD_DOUBLE, offsetof(LsNccl, member), .required = true, .max = (max_),                     \
                                                        .meaning = (meaning_)                                \
  }

#define LINK_RATE(member, meaning_)                                                                          \
  {                                                                                                          \
#member, LS_FIELD_RATE, offsetof(LsNccl, measured_on.member), .above = true, .default_text = "none",     \
                                                                  .meaning = (meaning_)                      \
  }
#define LINK_LATENCY(member, meaning_)                                                                       \
  {                                                                                                          \
#member, LS_FIELD_TIME, offsetof(LsNccl, measured_on.member),                                            \
        .max = (double) LS_S, .default_text = "0us", .meaning = (meaning_)                                   \
  }

static const LsField links_fields[] = {
  LINK_RATE (nvlink, "all NVLinks of a GPU, one direction, by the data sheet"),
  LINK_LATENCY (nvlink_latency, "of one hop, as in the cluster's file"),
  LINK_RATE (nic, "one NIC, by the data sheet"),
  LINK_LATENCY (nic_latency, "of its link"),
  LINK_LATENCY (pcie_latency, "of a PCIe link on the way to it"),
  { NULL },
};

#define DISPATCH(of_, key_, kind_, member, ...)                                                              \
  {                                                                                                          \
    key_, kind_, offsetof (LsNccl, of_.member), .required = true, __VA_ARGS__                                \
  }
#define DISPATCH_ROW(of_, key_, side_, meaning_)                                                             \
  {                                                                                                          \
    key_, LS_FIELD_TIME, offsetof (LsNccl, of_.side_.row), .max = (double) LS_MS, .default_text = "0us",     \
                                                           .meaning = meaning_                               \
  }
#define DISPATCH_FIELDS(of_)                                                                                 \
  {                                                                                                          \
    DISPATCH (of_, "dispatch_token", LS_FIELD_TIME, dispatch.token, .max = (double) LS_MS,                   \
              .meaning = "to experts: what a token costs an SM, whatever its width"),                        \
        DISPATCH (of_, "dispatch_per_sm", LS_FIELD_RATE, dispatch.per_sm, .above = true,                     \
                  .meaning = "to experts: what an SM moves"),                                                \
        DISPATCH (of_, "combine_token", LS_FIELD_TIME, combine.token, .max = (double) LS_MS,                 \
                  .meaning = "back: what a token costs an SM"),                                              \
        DISPATCH (of_, "combine_per_sm", LS_FIELD_RATE, combine.per_sm, .above = true,                       \
                  .meaning = "back: what an SM moves"),                                                      \
        DISPATCH_ROW (of_, "dispatch_row", dispatch,                                                         \
                      "to experts: what each copy of a token that a member gets costs an SM besides"),       \
        DISPATCH_ROW (of_, "combine_row", combine, "back: what each copy costs an SM besides"),              \
        DISPATCH (of_, "of_nvlink", LS_FIELD_DOUBLE, of_nvlink, .above = true, .max = 1,                     \
                  .meaning = "of the NVLinks' data sheet, what rows that members get may take"),             \
        DISPATCH (of_, "of_nic", LS_FIELD_DOUBLE, of_nic, .above = true, .max = 1,                           \
                  .meaning = "of the NICs' data sheet"),                                                     \
        DISPATCH (of_, "base_intra", LS_FIELD_TIME, base_intra, .max = (double) LS_S,                        \
                  .meaning = "fixed part of a call inside a node"),                                          \
        DISPATCH (of_, "base_inter", LS_FIELD_TIME, base_inter, .max = (double) LS_S,                        \
                  .meaning = "of one across nodes"),                                                         \
        { NULL },                                                                                            \
  }

static const LsField dispatch_fields[] = DISPATCH_FIELDS (dispatch);
static const LsField hybrid_fields[] = DISPATCH_FIELDS (hybrid_dispatch);

const LsField ls_nccl_fields[] = {
  LS_FIELDS_HEADER (LsNccl),
  { "measured_on", LS_FIELD_OBJECT, 0, .fields = links_fields,
    .default_text = "any: the rates hold as they stand",
    .meaning = "the links on which the rates and latencies were measured: on a cluster with other links they "
               "follow these" },
  { "generation", LS_FIELD_STRING, offsetof (File, generation), .default_text = "`\"" USUAL_GENERATION "\"`",
    .meaning = "name of a file in topologies/nccl: whose tables NCCL's tuner uses" },
  { "nvlink", LS_FIELD_RATE, offsetof (LsNccl, nvlink), .default_text = "0GB/s",
    .meaning = "what NCCL counts for the NVLinks of a GPU; 0GB/s: its tuner goes by ring_bus_intra; where no "
               "generation is named either there is no tuner, the fastest algorithm runs, with Simple" },
  CHANNELS (channels_ring, "of ring collectives inside a node"),
  CHANNELS (channels_net, "of ring collectives across nodes, for each NIC that a node uses"),
  { "channels_nvls", LS_FIELD_UINT, offsetof (LsNccl, channels_nvls), .required = true, .max = 1024,
    .meaning = "of all-reduces in the NVSwitches (NVLink SHARP); 0: none" },
  CHANNELS (channels_p2p, "of one peer on another node"),
  RATE (ring_bus_intra, "bus bandwidth of a ring inside a node"),
  { "ring_bus_staged", LS_FIELD_RATE, offsetof (LsNccl, ring_bus_staged), .default_text = "0GB/s",
    .meaning = "the same where a step passes the memory of a CPU (NCCL's transport SHM); 0GB/s: as the links "
               "let it" },
  RATE (ring_bus_per_nic, "what a ring gets through one NIC"),
  { "nvls_bus", LS_FIELD_RATE, offsetof (LsNccl, nvls_bus), .required = true,
    .meaning = "bus bandwidth of an all-reduce in the NVSwitches over a whole node; 0GB/s: none" },
  RATE (p2p_intra, "one send and receive inside a node"),
  RATE (p2p_inter, "one send and receive across nodes"),
  LATENCY (base_all_reduce, "fixed part of the latency of an all-reduce"),
  LATENCY (base_all_gather, "of an all-gather"),
  LATENCY (base_reduce_scatter, "of a reduce-scatter"),
  LATENCY (base_nvls, "of an all-reduce in the NVSwitches"),
  LATENCY (base_p2p_intra, "of a send and receive inside a node"),
  LATENCY (base_p2p_inter, "of a send and receive across nodes"),
  LATENCY (hop_intra, "part for each step inside a node"),
  LATENCY (hop_inter, "part for each step across nodes"),
  { "handshake", LS_FIELD_TIME, offsetof (LsNccl, handshake), .default_text = "0us", .max = (double) LS_S,
    .meaning = "part once with the protocols Simple and LL128" },
  { "handshake_hop", LS_FIELD_TIME, offsetof (LsNccl, handshake_hop), .default_text = "0us",
    .max = (double) LS_S, .meaning = "part for each step inside a node with the protocol Simple" },
  { "ramp_bytes", LS_FIELD_BYTES_DOUBLE, offsetof (LsNccl, ramp_bytes), .required = true,
    .meaning = "a message of W bytes on the wire costs W ramp / (W + ramp) bytes more of the bus's time; "
               "across nodes times the share of a node's channels" },
  NUMBER (drain, 16, "time of the last step of a ring over that of one that also sends"),
  { "self_copy", LS_FIELD_DOUBLE, offsetof (LsNccl, self_copy), .default_text = "0", .max = 16,
    .meaning = "all-to-all: time of what a member copies to itself over that of a message" },
  NUMBER (sm_share_per_channel, 1, "SMs held by one channel / SMs of the GPU"),
  { "stall_per_byte", LS_FIELD_DOUBLE, offsetof (LsNccl, stall_per_byte), .default_text = "0", .max = 16,
    .meaning
    = "a compute-bound kernel together with moving data stands still while the HBM could move this many "
      "bytes per byte of the array" },
  NUMBER (hbm_per_wire_all_reduce, 16, "HBM bytes for each byte on the wire, all-reduce"),
  NUMBER (hbm_per_wire_all_gather, 16, "all-gather"),
  NUMBER (hbm_per_wire_reduce_scatter, 16, "reduce-scatter"),
  NUMBER (hbm_per_wire_p2p, 16, "send and receive"),
  { "dispatch", LS_FIELD_OBJECT, 0, .fields = dispatch_fields,
    .default_text = "nothing is known: `dispatcher` `deepep` is refused",
    .meaning = "DeepEP's kernels on this GPU" },
  { "hybrid_dispatch", LS_FIELD_OBJECT, 0, .fields = hybrid_fields,
    .default_text = "nothing is known: `dispatcher` `hybridep` is refused",
    .meaning = "the same of HybridEP's" },
  { "sources", LS_FIELD_SOURCES, .default_text = "none", .meaning = "where each figure comes from, by key" },
  { NULL },
};

/* A complaint about the name of a generation points at the key that has it. */
static bool
load_tables (const LsJsonDoc *doc, const char *name, LsNcclTables *ret_tables, LsDiagList *diags)
{
  const char *changes = ls_override_find (name);
  g_autofree char *bare = changes ? g_strndup (name, (gsize) (changes - 1 - name)) : g_strdup (name);
  g_autofree char *message = NULL;
  g_autofree char *path = ls_data_find (LS_DATA_NCCL_TABLES, bare, &message);
  if (path)
    return ls_nccl_tables_load (name, ret_tables, diags);
  ls_json_doc_diag (doc, cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "generation"),
                    LS_JSON_AT_VALUE, diags, NULL, "%s", message);
  return false;
}

bool
ls_nccl_read (const LsJsonDoc *doc, LsNccl *ret_nccl, LsDiagList *diags)
{
  File file = { .generation = NULL };
  bool ok = ls_fields_read_file (ls_nccl_fields, "nccl", doc, &file, diags)
      && load_tables (doc, file.generation ? file.generation : USUAL_GENERATION, &file.nccl.tables, diags);
  file.nccl.names_generation = file.generation != NULL;
  g_free (file.generation);
  if (ok)
    *ret_nccl = file.nccl;
  else
    ls_nccl_clear (&file.nccl);
  return ok;
}

bool
ls_nccl_load (const char *name, LsNccl *ret_nccl, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_CALIBRATIONS, name, diags);
  return doc && ls_nccl_read (doc, ret_nccl, diags);
}
