// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collective communication between the processes of a data-parallel training run.  Several processes are started by
// mpirun and communicate through a module that is loaded on first use, so that the program itself does not link MPI.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace vitrail::dist {

// Collective operations: every process must call the same functions in the same order.  Calls may come from any thread,
// one at a time.  A failed operation throws Error.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;  // 0 ≤ rank < size
  virtual int size() const = 0;  // number of processes

  // Replaces `n` elements by their sum over all processes.  All processes get the same bits.
  virtual void all_reduce_sum(float* data, int64_t n) = 0;
  virtual void all_reduce_sum(double* data, int64_t n) = 0;
  virtual void broadcast(void* data, size_t bytes, int root) = 0;  // copies from rank `root` to all others
  virtual void barrier() = 0;                                      // returns when every process has called it

  // Ends communication; all processes must call it.  MPI is finalised unless the host program has initialised it.
  // Destroying a communicator without finish(), as an exception does, ends all processes of the run, because they
  // would wait for this one forever.
  virtual void finish() = 0;
};

// This process's rank in a run, as mpirun (Open MPI, MPICH) announces it in environment variables.
struct Launch {
  int rank = 0, size = 1;
  int local_size = 1;  // processes of the run on this machine; 1 if the variables do not tell
  bool distributed() const { return size > 1; }
};
Launch launch_from_environment();  // throws Error for invalid values

// Returns a communicator of one process, whose operations do nothing.
std::shared_ptr<Communicator> single_process();

// Returns the communicator of all processes of the run: MPI if mpirun started more than one, else single_process().
// Later calls return the same communicator.  Throws Error, which names the build option, if the MPI module is missing.
std::shared_ptr<Communicator> connect();

}  // namespace vitrail::dist
