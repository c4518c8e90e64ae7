// SPDX-License-Identifier: Apache-2.0
// The MPI module: built as a shared object of its own (vitrail_mpi.so), which mpi_communicator.cpp loads.
//
// Every operation is non-blocking and polled.  MPI's blocking operations spin on a core that the compute threads of
// this or another process need; the polling here spins only briefly and then sleeps between polls.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstring>
#include <thread>

#include "vitrail/dist/mpi_module_internal.h"

namespace vitrail::dist {
namespace {

using Clock = std::chrono::steady_clock;

MPI_Comm world = MPI_COMM_NULL;  // a duplicate, so that its messages do not mix with those of the host program
bool finalizes = false;          // whether MPI was initialised here, not by the host program

// Writes the text of an MPI error to `message` and returns its code; 0 on success.
int report(int code, char* message) {
  if (code == MPI_SUCCESS) return 0;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  std::snprintf(message, kMpiMessageBytes, "%s", text);
  return code;
}

// Polls with growing pauses: none for 100 µs, enough for a small message; 20 µs up to 20 ms, enough for a bucket within
// one machine; then 1 ms, for another process that evaluates or writes a checkpoint.
int wait_for(MPI_Request request, char* message) {
  const Clock::time_point begin = Clock::now();
  while (true) {
    int finished = 0;
    if (const int code = MPI_Test(&request, &finished, MPI_STATUS_IGNORE)) return report(code, message);
    if (finished) return 0;
    const auto waited = Clock::now() - begin;
    if (waited < std::chrono::microseconds(100)) {
      std::this_thread::yield();
    } else if (waited < std::chrono::milliseconds(20)) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

int start(int* rank, int* size, char* message) {
  int ready = 0, provided = 0;
  MPI_Initialized(&ready);
  if (ready) {
    MPI_Query_thread(&provided);
  } else if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided)) {
    return report(code, message);
  }
  finalizes = !ready;
  // The communication thread and the main thread both call MPI, but never at the same time.
  if (provided < MPI_THREAD_SERIALIZED) {
    std::snprintf(message, kMpiMessageBytes, "this MPI does not support MPI_THREAD_SERIALIZED");
    return 1;
  }
  if (const int code = MPI_Comm_dup(MPI_COMM_WORLD, &world)) return report(code, message);
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  MPI_Comm_rank(world, rank);
  MPI_Comm_size(world, size);
  return 0;
}

int all_reduce_sum(void* data, int64_t n, int is_double, char* message) {
  const MPI_Datatype type = is_double ? MPI_DOUBLE : MPI_FLOAT;
  auto* next = static_cast<char*>(data);
  while (n > 0) {  // MPI counts elements in int
    const int count = static_cast<int>(std::min<int64_t>(n, INT_MAX / 2));
    MPI_Request request;
    if (const int code = MPI_Iallreduce(MPI_IN_PLACE, next, count, type, MPI_SUM, world, &request)) {
      return report(code, message);
    }
    if (const int code = wait_for(request, message)) return code;
    next += static_cast<size_t>(count) * (is_double ? sizeof(double) : sizeof(float));
    n -= count;
  }
  return 0;
}

int broadcast(void* data, size_t bytes, int root, char* message) {
  auto* next = static_cast<char*>(data);
  while (bytes > 0) {
    const int count = static_cast<int>(std::min<size_t>(bytes, INT_MAX / 2));
    MPI_Request request;
    if (const int code = MPI_Ibcast(next, count, MPI_BYTE, root, world, &request)) return report(code, message);
    if (const int code = wait_for(request, message)) return code;
    next += count;
    bytes -= static_cast<size_t>(count);
  }
  return 0;
}

int barrier(char* message) {
  MPI_Request request;
  if (const int code = MPI_Ibarrier(world, &request)) return report(code, message);
  return wait_for(request, message);
}

int finish(char* message) {
  if (const int code = barrier(message)) return code;
  MPI_Comm_free(&world);
  return finalizes ? report(MPI_Finalize(), message) : 0;
}

void abort_all() { MPI_Abort(MPI_COMM_WORLD, 1); }

}  // namespace
}  // namespace vitrail::dist

extern "C" __attribute__((visibility("default"))) const vitrail::dist::MpiModule* vitrail_mpi_module() {
  using namespace vitrail::dist;
  static const MpiModule module{kMpiModuleVersion, start, all_reduce_sum, broadcast, barrier, finish, abort_all};
  return &module;
}
