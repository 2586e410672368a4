/* data/traces/trace_read.h — how the parts of reading a trace report. Used by trace_read*.c
 * only. Each part relies on those before it and stops the reading if anything in it
 * was wrong. */
#ifndef LS_DATA_TRACES_TRACE_READ_H
#define LS_DATA_TRACES_TRACE_READ_H

#include "data/traces/trace_file.h"
#include "data/traces/trace_json.h"

typedef struct {
  const LsJsonDoc *doc;
  const TraceFile *file;
  LsPlan *plan;
  LsDiagList *diags;
  bool ok;
} TraceReading;

/* A complaint about member `key` of object, or about the object if it has none;
 * about element i of that list unless i is TRACE_ALL. */
#define TRACE_ALL UINT32_MAX
void ls_trace_complain (TraceReading *r, const cJSON *object, const char *key, uint32_t i, const char *format,
                        ...) G_GNUC_PRINTF (5, 6);

/* trace_read_ops.c: kernels and segments. */
void ls_trace_read_kernels (TraceReading *r);
void ls_trace_read_segments (TraceReading *r);

/* trace_read_ranks.c: programs; ranks by mesh, or one by one. */
void ls_trace_read_roles (TraceReading *r);
void ls_trace_read_mesh (TraceReading *r, const LsMesh *mesh);
void ls_trace_read_ranks (TraceReading *r);
bool ls_trace_uses_slot (const TraceReading *r, LsSlot slot);

#endif
