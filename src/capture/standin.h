/* capture/standin.h — what the libraries of CUDA share that stand in a training process where there is no
 * GPU.
 *
 * Problem. PyTorch reaches a GPU through the CUDA runtime, the driver, cuBLAS, NCCL and cuDNN. Where each of
 * these answers as the named GPU would, a program trains as it is: its caching allocator, autograd, sharding
 * and compilers run, only kernels do not, and bytes do not travel. What it allocates is then what it would
 * allocate.
 *
 * One library has all functions, of all of these; libraries with their sonames only need it. They are loaded
 * before PyTorch, so that whoever needs a soname has it. What a function does stands in names/ *.txt, a line
 * each; generate.py makes the C of it. A name that is not in a table, or that a table refuses, ends the
 * process with its name.
 *
 * Time. Nothing runs, so events would be done at once, and an allocator that waits for them would keep less
 * memory than on a GPU. Each stream has the time at which its work is done: of products by their FLOPs, of
 * collectives and other kernels by their bytes. The host has a time, which every launch, record, wait and
 * query moves on by a fixed cost, never by the wall's. It does so at once for GPUs of half and of double the
 * speed: where an event is done by one of these and not by another, memory may depend on how fast the GPU is,
 * and that is counted.
 *
 * Values. Device memory is memory of the host that nobody touches: zeros. Small copies (LS_SMALL) are made,
 * so that counts and shapes which a program sends through the GPU come back. Other ranks answer as this one.
 *
 * Configuration comes by the environment: LOCKSTEP_CAPTURE, words "key=value" with spaces between them, as
 * standin_state.c lists them. All state is under one lock. */
#ifndef LS_CAPTURE_STANDIN_H
#define LS_CAPTURE_STANDIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LS_SMALL        ((size_t) 1 << 20) /* bytes of a copy that is made: longer ones leave zeros */
#define LS_MOST_DEVICES 256
#define LS_REGISTERS    64 /* of a kernel whose code is not read: assumed */
#define LS_N_SPEEDS     3  /* of the GPU: as it is, half, double */

#define LS_EXIT_STUCK 72 /* captured ranks wait for each other */

enum { CUDA_OK = 0, CUDA_INVALID = 1, CUDA_NO_MEMORY = 2, CUDA_NOT_FOUND = 500, CUDA_NOT_READY = 600 };

/* The GPU that is named, and where it stands. */
typedef struct {
  char name[96];
  uint64_t memory;                                /* bytes that cudaMemGetInfo calls total */
  uint64_t context;                               /* of these, that a process takes for itself */
  int capability;                                 /* 90: 9.0 */
  int n_sm, n_devices, cuda, driver, nccl, cudnn; /* 13020: 13.2 */
  int warps_per_sm, blocks_per_sm, shared_per_sm, shared_per_block, l2; /* bytes */
  double flops[4], hbm, bus; /* 16 bits, 8 bits, tf32, fp32; bytes/s; of a collective on a rank */
  double speed;              /* of work on streams, over that of the GPU */
} LsDevice;

extern LsDevice ls_device;

typedef struct {
  char bytes[128];
} LsUniqueId; /* ncclUniqueId */

typedef struct LsStream {
  int64_t done[LS_N_SPEEDS];   /* ps */
  int64_t before[LS_N_SPEEDS]; /* the graph that is made of it */
  int capturing;               /* that graph's id; 0: none is */
  int priority;
  int device;
  int era, number; /* in a record */
} LsStream;

typedef struct {
  int64_t done[LS_N_SPEEDS];
  int64_t recorded; /* seconds of this machine's clock */
  int capturing;    /* as of its stream */
  int era, number;  /* in a record */
} LsEvent;

/* --- state.c --- */

void ls_enter (const char *name); /* takes the lock; loads the configuration at first */
void ls_leave (void);
/* Ends the process: the name is not answered, and why. */
void ls_refuse (const char *name, const char *why) __attribute__ ((noreturn));
int64_t ls_count (const char *what, int64_t n); /* n more of it; ls_capture_counts() lists them */
uint64_t ls_mix (uint64_t hash, uint64_t word); /* a hash of both */
/* What is done next: ranks that did the same, in the same order, have the same trace. Its key: the same where
 * the same is done. */
uint64_t ls_trace (const char *what, const int64_t *values, size_t n);
int *ls_current_device (void);
int ls_n_visible (void); /* devices that $CUDA_VISIBLE_DEVICES leaves, as it was when first asked */

/* --- clock.c --- */

LsStream *ls_stream_of (void *stream); /* NULL, 1 and 2: the default ones */
/* Work of that key (ls_trace); takes what the table of predicted times has for it, else so long. */
void ls_stream_work (void *stream, uint64_t key, double seconds);
void ls_stream_pass (void *stream, uint64_t key, const int64_t ps[LS_N_SPEEDS]);
void ls_stream_wait (void *stream, const LsEvent *event);
/* From now on a graph is made of this stream, and of those that wait for it; of none any more: ret_done is
 * when the last of them would be done. */
void ls_stream_capture (LsStream *s, int id);
void ls_stream_captured (int id, int64_t ret_done[LS_N_SPEEDS]);
void ls_event_record (LsEvent *event, void *stream);
bool ls_event_is_done (const LsEvent *event);
bool ls_stream_is_done (void *stream);
void ls_host_waits (const int64_t done[LS_N_SPEEDS]);
void ls_host_waits_all (void);
float ls_event_ms (const LsEvent *from, const LsEvent *to);
LsStream *ls_stream_new (int priority);
void ls_stream_free (void *stream);

/* --- memory.c --- */

int ls_device_alloc (void **ret, size_t bytes); /* CUDA_NO_MEMORY beyond what the GPU has */
int ls_device_free (void *memory);
int ls_host_alloc (void **ret, size_t bytes);
int ls_host_free (void *memory);
bool ls_is_device (const void *memory, uint64_t *ret_base, uint64_t *ret_bytes);
bool ls_is_pinned (const void *memory);
int ls_device_of (const void *memory); /* 0: it is not known */
extern size_t ls_small;                /* bytes of the longest copy and message that is made now */
void ls_copy (void *to, const void *from, size_t bytes, void *stream, bool is_async);
void ls_fill (void *to, int value, size_t bytes, void *stream);
/* Writes that are made: of these a block that is handed out again must not keep anything. */
void ls_written (const void *memory, size_t bytes);
bool ls_is_written (const void *memory);
void ls_memory_info (size_t *ret_free, size_t *ret_total);
void ls_take (size_t bytes); /* memory that a library takes for itself, and keeps */
/* Virtual memory: address ranges, and physical memory that is mapped into them. */
int ls_reserve (uint64_t *ret, size_t bytes);
int ls_unreserve (uint64_t address, size_t bytes);
int ls_physical_new (uint64_t *ret_handle, size_t bytes);
int ls_physical_free (uint64_t handle);
int ls_physical_export (int *ret_file, uint64_t handle); /* for another process, which imports it */
int ls_physical_import (uint64_t *ret_handle, int file);
int ls_map (uint64_t address, size_t bytes, uint64_t handle);
int ls_unmap (uint64_t address, size_t bytes);
uint64_t ls_physical_of (const void *memory);

/* --- kernels.c --- */

typedef struct {
  unsigned x, y, z;
} LsDim3;

void ls_kernel_register (const void *host, const char *name);
const char *ls_kernel_name (const void *host);
void ls_launch (const char *name, LsDim3 grid, LsDim3 block, void *stream);
int ls_blocks_per_sm (int registers, int threads, size_t shared);
void ls_call_push (LsDim3 grid, LsDim3 block, size_t shared, void *stream);
int ls_call_pop (LsDim3 *grid, LsDim3 *block, size_t *shared, void **stream);
void *ls_module_new (const void *image);
void *ls_module_load (const char *path); /* NULL: it cannot be read */
void *ls_module_function (void *module, const char *name);
int ls_function_attribute (const void *function, int attribute);
void ls_function_attributes (const void *host, void *ret);
int ls_device_attribute (int attribute); /* ends the process where it is not known */
void ls_device_properties (void *ret);

/* --- blas.c --- */

/* A product of these FLOPs by the kind of a flops[] above. */
void ls_product (void *stream, double m, double n, double k, double batch, int kind);
int ls_kind_of_compute (int compute_type, int data_type);
void *ls_blas_stream (void *handle);

/* --- nccl.c --- */

typedef enum {
  LS_SEND_ALL_REDUCE,
  LS_SEND_GATHER,
  LS_SEND_SCATTER,
  LS_SEND_ROOT,
  LS_SEND_ALL_TO_ALL,
  LS_SEND_PEER
} LsSendKind;

void *ls_communicator_new (int n, int rank, const LsUniqueId *id); /* id: of ls_unique_id(), or NULL */
void ls_unique_id (LsUniqueId *ret);
int ls_communicator_n (void *communicator);
int ls_communicator_rank (void *communicator);
void *ls_communicator_split (void *communicator);
void ls_group_start (void);
void ls_group_end (void);
/* count: elements as NCCL's function counts them. op: of a reduction (0: a sum), of others the root or the
 * peer. */
void ls_collective (const char *name, const void *from, void *to, size_t count, int type, int op,
                    void *communicator, void *stream, LsSendKind kind);

/* What was sent to this memory, and was not needed until now, is written: waits for who sends it. */
void ls_settle (const void *memory, size_t bytes);
void ls_forget (const void *memory, size_t bytes); /* it is written anew */

/* --- record.c --- */

/* Where Python is: a number of its own. */
typedef int LsCapturePlace (void);

bool ls_is_recorded (void);
void ls_record_key (uint64_t key); /* of each line that is work on a stream, in order, in a file of its own */
/* A line "WHAT OPERATOR STREAM ..." */
void ls_record (char what, void *stream, const char *format, ...) __attribute__ ((format (printf, 3, 4)));
void ls_record_mark (const char *text);
void ls_record_graph (char what, int graph);
int ls_record_name (const char *name); /* its number in a record */
void ls_record_event (LsEvent *event, void *stream);
void ls_record_wait (void *stream, const LsEvent *event);
void ls_record_host (void *stream, const LsEvent *event); /* NULL: it waits for all of the stream */
void ls_record_block (const void *memory, int64_t bytes); /* below 0: it is taken back */

/* --- time.c: a library of its own, which is preloaded --- */

/* Nanoseconds that a clock has moved since it was first asked, after it was moved on by n; -1: the thread
 * that asks does not follow it. */
typedef int64_t LsClockHost (int64_t n);

/* From now on the process's clocks follow it. */
void ls_clock_follow (LsClockHost *of);

/* --- mail.c --- */

typedef enum { LS_CALL_PEERS, LS_CALL_STUCK } LsCallKind;

/* number: of a group whose ranks send to single ones, or of the captured rank that is waited for, -1: any. */
typedef int LsCaptureCall (int kind, int number, int peer);

/* Of the Python side, under the lock; false: it did not want to know. */
bool ls_mail_call (LsCallKind kind, int number, int peer);
/* Bytes of the message, of which most are written to `to`; -1: nobody will send it. is_for_anyone: where all
 * wait, this one goes on without. */
int64_t ls_mail_get (int slot, uint64_t key, void *to, size_t most, bool is_for_anyone);

/* --- for the Python side, by ctypes --- */

/* Of the communicator that is made with an id of this mark, or of the next that is split off (mark NULL):
 * number is the Python side's; sources, of each rank the captured one that answers for it, -1: this one;
 * NULL: for all. key: the same on all its ranks. */
void ls_capture_group (const char *mark, int number, int n, int rank, uint64_t key, const int *sources,
                       const uint8_t *is_real);
/* Of n captured ranks this is number slot; they meet in folder. */
void ls_capture_mail_open (const char *folder, int n, int slot);
void ls_capture_mail_close (void);
void ls_capture_mail_put (uint64_t key, const void *data, size_t bytes);
int64_t ls_capture_mail_get (int slot, uint64_t key, void *to, size_t most, int is_for_anyone);
void ls_capture_on_call (LsCaptureCall *call);
/* Values of memory. Whether they are known: it waits for what was sent; they were written; they are zeros. */
int ls_capture_read (const void *memory, size_t bytes);
void ls_capture_wrote (const void *memory, size_t bytes);
void ls_capture_zeroed (void *memory, size_t bytes);
/* Copies and messages of so many bytes are made from now on; 0: as at first, LS_SMALL. */
void ls_capture_small (size_t bytes);
/* Whenever PyTorch's allocator has handed out and taken back so many blocks: add_pending is
 * Py_AddPendingCall, by which Python calls it between two lines of the program. */
typedef int LsCapturePending (void *);
void ls_capture_on_blocks (int (*add_pending) (LsCapturePending *, void *), LsCapturePending *call,
                           int64_t n);
/* What stands in for an extension does: a kernel, a product. */
void ls_capture_launch (const char *name, unsigned x, unsigned y, unsigned z, unsigned threads, void *stream);
void ls_capture_product (double m, double n, double k, int kind, void *stream);
/* The attention that runs next multiplies so many queries and keys in each head. */
void ls_capture_pairs (double pairs);
/* Times that were predicted of a step, from a file as ask/captured_clock.c writes it; where the library of
 * time.c is preloaded, clocks of the process follow the host's time. 0: all of it is done; 1: the file cannot
 * be read; 2: that library is not there. */
int ls_capture_clock (const char *path);
void ls_capture_clock_step (void); /* a step ends: what comes next is in the order of the table again */
int ls_capture_called (void *object, void *frame, int what, void *argument); /* of PyEval_SetProfile() */
void ls_capture_apart (int is_apart); /* begins, ends; within it calls of functions are not counted */
/* From now on all goes into this file; NULL: nothing any more. place: called where an operator begins, out of
 * the lock. */
void ls_capture_record (const char *path, LsCapturePlace *place);
size_t ls_capture_counts (char *text, size_t size);
uint64_t ls_capture_trace (void);
/* What was done, each once by its hash, and how often, in no order: how many these are; most 0: only that. */
size_t ls_capture_kinds (uint64_t *keys, int64_t *how_often, size_t most);

#endif
