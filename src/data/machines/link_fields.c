/* data/machines/link_fields.c — the keys of a link, which files of clusters and drafts of fabrics have. */
#include "data/machines/machines.h"

#include <lockstep/units.h>

const LsField ls_link_fields[] = {
  { "bandwidth", LS_FIELD_RATE, offsetof (LsLinkSpec, bandwidth_bytes_per_s), .required = true, .above = true,
    .max = 1e15 },
  { "efficiency", LS_FIELD_DOUBLE, offsetof (LsLinkSpec, efficiency), .required = true, .above = true,
    .max = 1 },
  { "latency", LS_FIELD_TIME, offsetof (LsLinkSpec, latency), .required = true, .max = (double) LS_S },
  { "source", LS_FIELD_STRING, offsetof (LsLinkSpec, source), .required = true },
  { .table = "cluster.link" },
};
