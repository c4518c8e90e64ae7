// SPDX-License-Identifier: Apache-2.0
// The module that talks MPI: built on its own (vitrail_mpi.so), loaded by mpi_communicator.cpp.
//
// Every operation is started without blocking and polled.  MPI's own waiting spins, on a core that another process or
// this one's compute threads need; here it spins for a moment, then sleeps between polls.
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

MPI_Comm world = MPI_COMM_NULL;  // our own copy, so that a host program's messages and ours stay apart

int failed(int code, char* message) {
  if (code == MPI_SUCCESS) return 0;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  std::snprintf(message, kMpiMessage, "%s", text);
  return code;
}

// Spins for 100 µs, which is what a small message takes; sleeps 20 µs at a time for 20 ms, which is what a bucket takes
// on one machine; then 1 ms at a time, for another process that evaluates or writes a checkpoint.
int wait_for(MPI_Request request, char* message) {
  const Clock::time_point begin = Clock::now();
  while (true) {
    int finished = 0;
    if (const int code = MPI_Test(&request, &finished, MPI_STATUS_IGNORE)) return failed(code, message);
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
    return failed(code, message);
  }
  // The communication thread and the main thread both call MPI, never at once.
  if (provided < MPI_THREAD_SERIALIZED) {
    std::snprintf(message, kMpiMessage, "this MPI does not let several threads call it in turn");
    return 1;
  }
  if (const int code = MPI_Comm_dup(MPI_COMM_WORLD, &world)) return failed(code, message);
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  MPI_Comm_rank(world, rank);
  MPI_Comm_size(world, size);
  return 0;
}

int all_reduce_sum(void* data, int64_t n, int doubles, char* message) {
  const MPI_Datatype type = doubles ? MPI_DOUBLE : MPI_FLOAT;
  auto* at = static_cast<char*>(data);
  while (n > 0) {  // MPI counts in int
    const int count = static_cast<int>(std::min<int64_t>(n, INT_MAX / 2));
    MPI_Request request;
    if (const int code = MPI_Iallreduce(MPI_IN_PLACE, at, count, type, MPI_SUM, world, &request)) {
      return failed(code, message);
    }
    if (const int code = wait_for(request, message)) return code;
    at += static_cast<size_t>(count) * (doubles ? sizeof(double) : sizeof(float));
    n -= count;
  }
  return 0;
}

int broadcast(void* data, size_t bytes, int root, char* message) {
  auto* at = static_cast<char*>(data);
  while (bytes > 0) {
    const int count = static_cast<int>(std::min<size_t>(bytes, INT_MAX / 2));
    MPI_Request request;
    if (const int code = MPI_Ibcast(at, count, MPI_BYTE, root, world, &request)) return failed(code, message);
    if (const int code = wait_for(request, message)) return code;
    at += count;
    bytes -= static_cast<size_t>(count);
  }
  return 0;
}

int barrier(char* message) {
  MPI_Request request;
  if (const int code = MPI_Ibarrier(world, &request)) return failed(code, message);
  return wait_for(request, message);
}

int finish(char* message) {
  if (const int code = barrier(message)) return code;
  MPI_Comm_free(&world);
  return failed(MPI_Finalize(), message);
}

void fail() { MPI_Abort(MPI_COMM_WORLD, 1); }

}  // namespace
}  // namespace vitrail::dist

extern "C" __attribute__((visibility("default"))) const vitrail::dist::MpiModule* vitrail_mpi_module() {
  using namespace vitrail::dist;
  static const MpiModule module{kMpiModuleVersion, start, all_reduce_sum, broadcast, barrier, finish, fail};
  return &module;
}
