// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <filesystem>
#include <mutex>
#include <vector>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/env_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/base/installation_internal.h"
#include "vitrail/dist/mpi_communicator_internal.h"
#include "vitrail/dist/mpi_module_internal.h"

namespace vitrail::dist {
namespace {

namespace fs = std::filesystem;

// The folders that are searched for the module: the program's own folder and its parent (a build tree), the
// installations of the program and of the shared library, and the installation that this library was built for.
std::vector<fs::path> module_folders() {
  if (const auto folder = environment("VITRAIL_MODULES")) return {*folder};
  const fs::path program = program_folder();
  std::vector<fs::path> folders{program, program.parent_path()};
  for (const fs::path& prefix : installation_prefixes()) folders.push_back(prefix / VITRAIL_LIBRARY_FOLDER / "vitrail");
  folders.push_back(fs::path(VITRAIL_LIBRARY_PATH) / "vitrail");
  return folders;
}

// Loads the module and keeps it loaded, because MPI cannot be initialised twice in a process.
const MpiModule& load_module() {
  std::string searched;
  for (const fs::path& folder : module_folders()) {
    const fs::path path = folder / kMpiModuleFile;
    searched += (searched.empty() ? "" : ", ") + folder.string();
    std::error_code unknown;
    if (!fs::exists(path, unknown)) continue;
    // RTLD_GLOBAL, because Open MPI's own plug-ins look up its symbols globally.
    void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    void* const entry = handle ? ::dlsym(handle, kMpiModuleEntry) : nullptr;
    if (!entry) throw Error("mpi", "a module that loads", std::string(::dlerror()));
    const MpiModule* const module = reinterpret_cast<MpiModuleEntry>(entry)();
    if (module->version != kMpiModuleVersion) {
      throw Error("mpi", str("version ", kMpiModuleVersion, " of ", path.string()), str(module->version));
    }
    return *module;
  }
  throw Error("mpi",
              str("the module ", kMpiModuleFile, " in ", searched,
                  " (VITRAIL_MODULES names another folder; it is built where CMake finds MPI and VITRAIL_MPI is ON)"),
              "none");
}

class MpiCommunicator : public Communicator {
 public:
  explicit MpiCommunicator(const Launch& launch) : module_(load_module()) {
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
