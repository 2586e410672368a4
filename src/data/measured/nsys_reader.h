/* data/measured/nsys_reader.h — an export of Nsight Systems on the way (private to read_nsys.c and
 * nsys_nccl.c). */
#ifndef LS_DATA_MEASURED_NSYS_READER_H
#define LS_DATA_MEASURED_NSYS_READER_H

#include "data/measured/kineto_reader.h"
#include "data/measured/nsys_db.h"

#define NSYS_MAX_ROWS 20000000

typedef struct {
  NsysDb db;
  KinetoReader r;
  int64_t device, process; /* whose kernels are taken; process -1: not said */
} NsysReader;

/* nsys_nccl.c: what collectives move, from NVTX ranges of NCCL. Once ops and launches are there, before
 * kineto_finish(). */
void nsys_add_messages (NsysReader *n);

#endif
