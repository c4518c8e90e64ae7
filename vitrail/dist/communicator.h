// SPDX-License-Identifier: Apache-2.0
#pragma once
// What training processes say to each other.  One process needs nothing; several are started by mpirun and talk through
// a module that is loaded on first use, so that the program itself links no MPI.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace vitrail::dist {

// Every process calls the same functions in the same order.  Calls may come from any thread, one at a time.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;  // from 0
  virtual int size() const = 0;

  // data ← the sum over all processes; the same bits in each.
  virtual void all_reduce_sum(float* data, int64_t n) = 0;
  virtual void all_reduce_sum(double* data, int64_t n) = 0;
  virtual void broadcast(void* data, size_t bytes, int root) = 0;  // from the process `root` to all others
  virtual void barrier() = 0;                                      // returns when every process has come here

  // Leaves in good order; all processes must.  A communicator that is destroyed without it (an error on the way) ends
  // all processes of the run, which would otherwise wait for this one.
  virtual void finish() = 0;
};

// The process's place in a run, from what mpirun (Open MPI, MPICH, Slurm) puts into the environment.
struct Launch {
  int rank = 0, size = 1;
  int on_machine = 1;  // processes of the run on this machine, as far as the variables tell
  bool parallel() const { return size > 1; }
};
Launch launch_from_environment();  // throws Error when the variables make no sense

// One process: nothing to exchange.
std::shared_ptr<Communicator> single_process();

// All processes of the run: over MPI when mpirun started more than one, else single_process().  The second call in a
// process gives the same communicator.  Throws Error that says how to build or find the module when it is missing.
std::shared_ptr<Communicator> connect();

}  // namespace vitrail::dist
