/* cluster/interior_server_check.c — which nodes of NVSwitch, NVLink mesh, PCIe and CPUs there can be. */
#include "cluster/dealt.h"
#include "cluster/interior.h"
#include "cluster/nvlink_mesh.h"
#include "cluster/spec.h"

static gboolean
check_links (const LsClusterSpec *s, GError **error)
{
  bool has_pcie = s->pcie_switches > 0 || (s->cpu_sockets > 0 && (!has_c2c (s) || s->nics > 0));
  return ls_spec_check_link ("nvswitch link", s->nvswitch_planes > 0, &s->nvlink, error)
      && ls_spec_check_link ("nvlink_mesh link", s->mesh != LS_MESH_NONE, &s->nvlink, error)
      && ls_spec_check_link ("pcie link", has_pcie, &s->pcie, error)
      && ls_spec_check_link ("c2c link", has_c2c (s), &s->c2c, error)
      && ls_spec_check_link ("cpu interconnect", n_socket_pairs (s) > 0, &s->cpu_interconnect, error)
      && ls_spec_check_link ("cpu memory", s->cpu_sockets > 0, &s->cpu_memory, error)
      && ls_spec_check_link ("nvme link", s->nvme_drives > 0, &s->nvme, error)
      && ls_spec_check_link ("p2p_writes bridge", has_writes (s), &s->write_bridge, error)
      && ls_spec_check_link ("p2p_writes sockets", has_writes (s) && n_socket_pairs (s) > 0,
                             &s->write_sockets, error);
}

static gboolean
check_writes (const LsClusterSpec *s, GError **error)
{
  if (!has_writes (s))
    return TRUE;
  if (s->copies != LS_COPIES_ANYWHERE || s->cpu_sockets == 0)
    return ls_spec_conflict (error, "\"p2p_writes\" goes with \"p2p\": true and with \"cpu\" in the node");
  if (s->faults)
    return ls_spec_conflict (error, "ways around faults are not known with \"p2p_writes\"");
  return TRUE;
}

static gboolean
check_nvlink (const LsClusterSpec *s, GError **error)
{
  if (s->nvswitch_planes > s->nvlinks_per_gpu)
    return ls_spec_conflict (error, "%u NVLinks per GPU cannot reach %u NVSwitch planes", s->nvlinks_per_gpu,
                             s->nvswitch_planes);
  if (s->mesh == LS_MESH_NONE)
    return TRUE;
  if (s->nvswitch_planes > 0)
    return ls_spec_conflict (error, "GPUs are joined by NVSwitch or in a mesh, not both");
  return ls_mesh_check (s, n_plugs (s) > 0, error);
}

/* Devices at their PCIe switches or CPUs. */
static gboolean
check_plugs (const LsClusterSpec *s, GError **error)
{
  uint32_t n = n_plugs (s);
  const char *what = s->pcie_switches > 0 ? "PCIe switches" : "CPU sockets";
  if (n == 0) {
    if (s->nics > 0 || s->nvme_drives > 0 || has_c2c (s))
      return ls_spec_conflict (error, "NICs, NVMe drives and NVLink-C2C need a PCIe switch or a CPU");
    return TRUE;
  }
  if (has_c2c (s) && s->pcie_switches > 0)
    return ls_spec_conflict (error, "NVLink-C2C joins a GPU to its CPU: expected 0 PCIe switches; got %u",
                             s->pcie_switches);
  if (s->gpus_per_node % n != 0)
    return ls_spec_conflict (error, "%u GPUs per node do not deal out to %u %s", s->gpus_per_node, n, what);
  if (s->pcie_switches > 0
      && (s->cpu_sockets == 0 ? s->pcie_switches > 1 : s->pcie_switches % s->cpu_sockets != 0))
    return ls_spec_conflict (error, "%u PCIe switches do not deal out to %u CPU sockets", s->pcie_switches,
                             s->cpu_sockets);
  if (s->nvme_drives > 0 && !ls_deals_out (s->nvme_drives, n))
    return ls_spec_conflict (error, "%u NVMe drives do not deal out to %u %s", s->nvme_drives, n, what);
  if (s->nics > 0 && !ls_deals_out (s->nics, n))
    return ls_spec_conflict (error, "%u NICs do not deal out to %u %s", s->nics, n, what);
  if (s->nics > 0 && !ls_deals_out (s->nics, s->gpus_per_node))
    return ls_spec_conflict (error, "%u NICs do not deal out to %u GPUs per node", s->nics, s->gpus_per_node);
  return TRUE;
}

gboolean
ls_server_check (const LsClusterSpec *s, GError **error)
{
  if (!check_nvlink (s, error))
    return FALSE;
  if (s->nvswitch_planes == 0 && s->mesh == LS_MESH_NONE && n_plugs (s) == 0 && s->gpus_per_node > 1)
    return ls_spec_conflict (error, "%u GPUs of a node need NVSwitch, an NVLink mesh or PCIe between them",
                             s->gpus_per_node);
  if (!check_plugs (s, error) || !check_writes (s, error))
    return FALSE;
  if (s->is_staged && s->cpu_sockets == 0)
    return ls_spec_conflict (
        error, "without GPUDirect data wait in the memory of a CPU: expected \"cpu\" in the node");
  if (s->copies != LS_COPIES_ANYWHERE && s->cpu_sockets == 0)
    return ls_spec_conflict (error,
                             "without P2P data pass the memory of a CPU: expected \"cpu\" in the node");
  if ((s->is_staged || s->copies != LS_COPIES_ANYWHERE) && s->faults)
    return ls_spec_conflict (error, "ways around faults are not known without %s",
                             s->is_staged ? "GPUDirect" : "P2P");
  if (s->cpu_sockets % n_boards (s) != 0)
    return ls_spec_conflict (error, "%u CPU sockets do not deal out to %u boards", s->cpu_sockets,
                             n_boards (s));
  if (n_boards (s) > 1 && s->nvswitch_planes == 0)
    return ls_spec_conflict (error, "nothing joins the %u boards of a node: expected NVSwitch", n_boards (s));
  return check_links (s, error);
}
