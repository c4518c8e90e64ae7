// SPDX-License-Identifier: Apache-2.0
#include <mutex>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/module_loader_internal.h"
#include "vitrail/dist/mpi_communicator_internal.h"
#include "vitrail/dist/mpi_module_internal.h"

namespace vitrail::dist {
namespace {

// The module remains loaded, because MPI cannot be initialised twice in a process.  Its symbols are global, because
// Open MPI's own plug-ins look them up globally.
const MpiModule& load_mpi_module() {
  void* const entry = load_module({.where = "mpi",
                                   .file = kMpiModuleFile,
                                   .entry = kMpiModuleEntry,
                                   .built = "where CMake finds MPI and VITRAIL_MPI is ON",
                                   .global = true});
  const MpiModule* const module = reinterpret_cast<MpiModuleEntry>(entry)();
  if (module->version != kMpiModuleVersion) {
    throw Error("mpi", str("version ", kMpiModuleVersion, " of ", kMpiModuleFile), str(module->version));
  }
  return *module;
}

class MpiCommunicator : public Communicator {
 public:
  explicit MpiCommunicator(const Launch& launch) : module_(load_mpi_module()) {
    call("start", [&](char* message) { return module_.start(&rank_, &size_, message); });
    running_ = true;
    if (size_ != launch.size || rank_ != launch.rank) {
      throw Error("mpi", str("process ", launch.rank, " of ", launch.size, ", as the environment says"),
                  str(rank_, " of ", size_, ": mpirun belongs to another MPI than the module"));
    }
  }
  // Without finish(), MPI_Abort ends all processes.  mpirun reports the rank, but may lose its message under load, so
  // this process warns as well.
  ~MpiCommunicator() override {
    if (!running_) return;
    try {
      warn(str("rank ", rank_, " of ", size_, " leaves the run early and ends all its processes"));
    } catch (...) {  // an exception of the callback must not keep the other processes waiting
    }
    module_.abort_all();
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void all_reduce_sum(float* data, int64_t n) override {
    call("all_reduce_sum", [&](char* message) { return module_.all_reduce_sum(data, n, 0, message); });
  }
  void all_reduce_sum(double* data, int64_t n) override {
    call("all_reduce_sum", [&](char* message) { return module_.all_reduce_sum(data, n, 1, message); });
  }
  void broadcast(void* data, size_t bytes, int root) override {
    if (root < 0 || root >= size_) throw Error("broadcast", str("a process from 0 to ", size_ - 1), str(root));
    call("broadcast", [&](char* message) { return module_.broadcast(data, bytes, root, message); });
  }
  void barrier() override {
    call("barrier", [&](char* message) { return module_.barrier(message); });
  }
  void finish() override {
    if (!running_) return;
    call("finish", [&](char* message) { return module_.finish(message); });
    running_ = false;
  }

 private:
  template <class Function>
  void call(const char* what, Function function) {
    const std::lock_guard lock(mutex_);
    char message[kMpiMessageBytes] = "";
    if (function(message) != 0) throw Error("mpi", str(what, " to work on process ", rank_), std::string(message));
  }

  const MpiModule& module_;
  std::mutex mutex_;  // MPI_THREAD_SERIALIZED allows one call at a time
  int rank_ = 0, size_ = 1;
  bool running_ = false;
};

}  // namespace

std::shared_ptr<Communicator> join_mpi(const Launch& launch) { return std::make_shared<MpiCommunicator>(launch); }

}  // namespace vitrail::dist
