/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crosstie.h: collectives on host memory that know where the ranks are.
 *
 * Errors. Every function that can fail returns a crosstie_status_t and sets no output unless it
 * returns CROSSTIE_OK. crosstie_last_error() says in one line what failed, where, and which rank
 * or host is at fault.
 *
 * Threads. Functions on different communicators may be called at once from any threads.
 * Functions on one communicator may be called from any thread, one at a time.
 *
 * Fork. A communicator belongs to the process that made it. In a forked child calls on it fail with
 * INVALID, crosstie_comm_destroy frees it without a word to the others, and a request of it must
 * not be touched; the child may make communicators of its own. A child keeps its parent's
 * connections open: while it lives, ranks on other hosts learn of the parent's death only by its
 * silence.
 *
 * ABI. Symbols are added, never changed or removed within one soname. Structures that the caller
 * fills begin with their size, set by their INIT macro, and grow only at the end.
 */
#ifndef CROSSTIE_CROSSTIE_H
#define CROSSTIE_CROSSTIE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CROSSTIE_API __attribute__((visibility("default")))
#else
#define CROSSTIE_API
#endif

#define CROSSTIE_VERSION_MAJOR 0
#define CROSSTIE_VERSION_MINOR 1
#define CROSSTIE_VERSION_PATCH 0

typedef enum {
  CROSSTIE_OK = 0,
  CROSSTIE_ERR_INVALID = 1,     /* an argument or a variable is wrong */
  CROSSTIE_ERR_MISSING = 2,     /* something that is needed is not there */
  CROSSTIE_ERR_IO = 3,          /* the operating system refused */
  CROSSTIE_ERR_TIMEOUT = 4,     /* a deadline passed */
  CROSSTIE_ERR_PEER = 5,        /* another rank died, left, gave up, or calls something else */
  CROSSTIE_ERR_EXHAUSTED = 6,   /* memory, descriptors or slots ran out */
  CROSSTIE_ERR_UNSUPPORTED = 7, /* valid, but not available here */
  CROSSTIE_ERR_INTERNAL = 8     /* a fault of this library */
} crosstie_status_t;

typedef enum {
  CROSSTIE_F32 = 0, /* IEEE 754 binary32 */
  CROSSTIE_U64 = 1, /* unsigned 64-bit; sums wrap */
  CROSSTIE_TYPE_MAX_ = 0x7fffffff /* not a type: keeps the size as types are added */
} crosstie_type_t;

typedef enum {
  CROSSTIE_SUM = 0,
  CROSSTIE_OP_MAX_ = 0x7fffffff /* not an operation: keeps the size as they are added */
} crosstie_op_t;

/* What a collective is for: the parallelism of the model whose traffic it is. */
typedef enum {
  CROSSTIE_CLASS_UNKNOWN = 0,
  CROSSTIE_CLASS_TP = 1,      /* tensor parallel */
  CROSSTIE_CLASS_PP = 2,      /* pipeline parallel */
  CROSSTIE_CLASS_DP = 3,      /* data parallel */
  CROSSTIE_CLASS_CP = 4,      /* context parallel */
  CROSSTIE_CLASS_EP = 5,      /* expert parallel */
  CROSSTIE_CLASS_CONTROL = 6, /* small and urgent */
  CROSSTIE_CLASS_MAX_ = 0x7fffffff /* not a class: keeps the size as they are added */
} crosstie_class_t;

/* A group of ranks, one process each. Owned by the caller from create to destroy. */
typedef struct crosstie_comm crosstie_comm_t;

/* A collective under way. Owned by the caller until crosstie_wait or crosstie_test ends it. */
typedef struct crosstie_request crosstie_request_t;

/* Where this process stands in the job. Everything unset is taken from the environment. */
typedef struct {
  size_t size;         /* sizeof(crosstie_config_t) */
  int rank;            /* 0 to ranks-1, or -1: from the environment */
  int ranks;           /* ≥ 1, or -1: from the environment */
  const char *address; /* "HOST:PORT" at which rank 0 is met, or NULL: from the environment */
  const char *host;    /* name of this host; ranks with one name share a host. NULL: from the system */
} crosstie_config_t;

#define CROSSTIE_CONFIG_INIT {sizeof(crosstie_config_t), -1, -1, NULL, NULL}

/*
 * How one collective is to be done; NULL in its place means CROSSTIE_CALL_INIT. The same on all
 * ranks, but for `timeout`.
 *
 * check: the ranks compare what they call before a result is written, and a difference fails the
 * collective with PEER and a message that shows both calls. Each rank tells the next, so that it
 * takes one message more between neighbours. Without it a notice of 8 bits is compared, and of
 * 256 different calls one goes unnoticed and gives wrong data.
 */
typedef struct {
  size_t size;                    /* sizeof(crosstie_call_t) */
  void *stream;                   /* NULL: host memory, as of the call. Others are UNSUPPORTED yet */
  crosstie_class_t traffic_class; /* compared by `check`; selects nothing yet */
  int check;                      /* 1: compare the ranks' calls; 0: CROSSTIE_CHECK */
  double timeout;        /* seconds until it counts as failed; 0: CROSSTIE_COLLECTIVE_TIMEOUT */
  const char *algorithm; /* "ring", "hierarchical"; NULL: chosen from the shape and the size */
} crosstie_call_t;

#define CROSSTIE_CALL_INIT {sizeof(crosstie_call_t), NULL, CROSSTIE_CLASS_UNKNOWN, 0, 0, NULL}

/* Bytes of payload that this rank has put to other ranks, exact, counted by its endpoints. */
typedef struct {
  uint64_t inside_bytes; /* to ranks of its own host */
  uint64_t across_bytes; /* to ranks of other hosts */
} crosstie_traffic_t;

/* The version of the library in use, which may differ from the header's. Pointers may be NULL. */
CROSSTIE_API void crosstie_version(int *major, int *minor, int *patch);

/* A status in words, as "timeout". Static storage; never NULL. */
CROSSTIE_API const char *crosstie_status_string(crosstie_status_t status);

/*
 * What the last failed call of this thread said, in one line; "" if none failed. Valid until the
 * next call of this thread into the library.
 */
CROSSTIE_API const char *crosstie_last_error(void);

/*
 * Joins the job: meets the other ranks at rank 0's address, learns where they are, and returns
 * once all have joined. Collective: every rank calls it, in the same order where a process makes
 * several. `config` may be NULL.
 *
 * From the environment: CROSSTIE_RANK and CROSSTIE_RANKS, or what torchrun, Open MPI's mpirun,
 * MPICH's mpiexec (PMI) or Slurm's srun set; crosstie(1) lists them. With none, a job of one rank.
 *
 * Rank 0 holds a connection to every other rank. Where its process may not open so many files, its
 * soft RLIMIT_NOFILE is raised to the hard one, and stays so.
 *
 * Fails with INVALID for a contradictory configuration, TIMEOUT when not all ranks have come
 * within CROSSTIE_JOIN_TIMEOUT (the message names who is missing, on rank 0), MISSING, IO or
 * EXHAUSTED for what the system lacks.
 */
CROSSTIE_API crosstie_status_t crosstie_comm_create(crosstie_comm_t **comm,
                                                    const crosstie_config_t *config);

/*
 * Leaves the job and frees the communicator. Requests must have ended. Waits at most a second
 * for the news to be sent; never on another rank. NULL is allowed.
 */
CROSSTIE_API void crosstie_comm_destroy(crosstie_comm_t *comm);

/* This process's rank, 0 to ranks-1; the number of ranks; the number of hosts. -1 for NULL. */
CROSSTIE_API int crosstie_comm_rank(const crosstie_comm_t *comm);
CROSSTIE_API int crosstie_comm_ranks(const crosstie_comm_t *comm);
CROSSTIE_API int crosstie_comm_hosts(const crosstie_comm_t *comm);

/* What this rank has moved since the communicator was made. */
CROSSTIE_API crosstie_status_t crosstie_comm_traffic(crosstie_comm_t *comm,
                                                     crosstie_traffic_t *traffic);

/*
 * Element-wise reduction of `count` elements of every rank's `in` into every rank's `out`.
 * Collective: all ranks call it with the same count, type, op and call, in the same order.
 *
 * in, out: count elements each, host memory, aligned to their element; equal (in place) or not
 * overlapping. Both belong to the library until the collective has ended. count may be 0, less than
 * the ranks, or above 2^31.
 * call: NULL for defaults. request: NULL to block until done; else set to a request, to be ended
 * by crosstie_wait or crosstie_test. Collectives of one communicator run in the order of their
 * calls.
 *
 * Order of summation: fixed by count, algorithm and shape of the job, so equal calls give equal
 * bits; it is not the same for all counts.
 *
 * Fails with INVALID, UNSUPPORTED (algorithm); and once it is running, here or from wait and test,
 * with PEER (a rank died, left or gave up: the message names it and its host) or TIMEOUT. After
 * PEER or TIMEOUT the communicator is of no further use: every later collective fails alike, until
 * it is destroyed.
 */
CROSSTIE_API crosstie_status_t crosstie_allreduce(crosstie_comm_t *comm, const void *in, void *out,
                                                  size_t count, crosstie_type_t type,
                                                  crosstie_op_t op, const crosstie_call_t *call,
                                                  crosstie_request_t **request);

/*
 * Moves the communicator on and says whether the request has ended. If so, *done is 1, the
 * request is freed, *request set to NULL, and the collective's own status returned. Never blocks.
 */
CROSSTIE_API crosstie_status_t crosstie_test(crosstie_request_t **request, int *done);

/*
 * Blocks until the request has ended, frees it, sets *request to NULL and returns its status. It
 * ends within the call's timeout, counted from when those called before it have ended. A *request
 * of NULL has ended.
 */
CROSSTIE_API crosstie_status_t crosstie_wait(crosstie_request_t **request);

/*
 * What the Schedule of such an allreduce says that all ranks together put, computed from the
 * Schedule alone, without sending anything. Same arguments as crosstie_allreduce. The name of
 * the algorithm that would be used is stored in *algorithm, if not NULL (static storage).
 */
CROSSTIE_API crosstie_status_t crosstie_allreduce_traffic(crosstie_comm_t *comm, size_t count,
                                                          crosstie_type_t type,
                                                          const crosstie_call_t *call,
                                                          crosstie_traffic_t *traffic,
                                                          const char **algorithm);

#ifdef __cplusplus
}
#endif

#endif
