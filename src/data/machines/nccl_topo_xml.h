/* data/machines/nccl_topo_xml.h — what stands in a topology file of NCCL (NCCL_TOPO_DUMP_FILE,
 * NCCL_TOPO_FILE): the tree of CPUs, PCI devices, GPUs and network ports of a node
 * (private to data/machines/read_nccl_topo.c).
 *
 *     <system version="1">
 *       <cpu numaid= arch= vendor= familyid= modelid=>
 *         <pci busid= class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">   a bridge
 *           <pci busid= class="0x030200" ..>
 *             <gpu dev= sm="90" ..> <nvlink target="busid" count= tclass=/> <c2c bw= count=/> </gpu>
 *           </pci>
 *           <pci busid= class="0x020700" ..> <nic> <net name= dev= speed= ../> </nic> </pci>
 *
 * Attributes that NCCL has and we do not need, and unknown elements, are passed over.
 * The attribute x-gpu of <system> is ours: the accelerator's name in topologies/gpu. */
#ifndef LS_DATA_MACHINES_NCCL_TOPO_XML_H
#define LS_DATA_MACHINES_NCCL_TOPO_XML_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

#define LS_TOPO_NONE UINT32_MAX

typedef enum { LS_TOPO_CPU, LS_TOPO_PCI, LS_TOPO_GPU, LS_TOPO_NET } LsTopoThingKind;

/* In the order of the file, so that a parent comes before its children. */
typedef struct {
  LsTopoThingKind kind;
  uint32_t parent; /* thing; LS_TOPO_NONE of a CPU                           */
  int line;
  double rate;          /* bytes/s to the parent, of PCI and GPU                  */
  uint64_t busid;       /* of PCI and GPU                                         */
  uint32_t dev, sm;     /* of GPU and NET; of GPU                                 */
  double c2c;           /* bytes/s to the CPU; 0: none                            */
  double net;           /* bytes/s of the port                                    */
  double interconnect;  /* bytes/s from a CPU to another                         */
  const char *cpu_name; /* static, for people                                   */
} LsTopoThing;

/* NVLinks of a GPU as its side tells them. */
typedef struct {
  uint32_t gpu; /* thing */
  uint32_t count;
  bool to_switch;
  uint64_t busid; /* of the other GPU */
  int line;
} LsTopoNvlink;

typedef struct {
  char *gpu;       /* x-gpu; NULL: not said */
  GArray *things;  /* LsTopoThing           */
  GArray *nvlinks; /* LsTopoNvlink          */
} LsTopoXml;

/* false and located diagnostics (LS_ERROR_INPUT) for what is no such file. */
bool ls_topo_xml_parse (const char *text, gsize n, const char *path, LsTopoXml *ret_xml, LsDiagList *diags);
void ls_topo_xml_clear (LsTopoXml *xml);

#endif
