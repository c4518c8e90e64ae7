// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "vitrail/base/atomic_file.h"
#include "vitrail/base/error.h"
#include "vitrail/base/temporary_file_internal.h"
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/train/run/run_files_internal.h"
#include "vitrail/train/run/run_folder_internal.h"
#include "vitrail/weights/hub_layout.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::train {
namespace fs = std::filesystem;
namespace {

std::vector<std::pair<std::string, Tensor>> to_pairs(const std::vector<nn::NamedTensor>& weights) {
  std::vector<std::pair<std::string, Tensor>> pairs;
  for (const nn::NamedTensor& tensor : weights) pairs.emplace_back(tensor.name, tensor.tensor);
  return pairs;
}

void require_plain(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (fs::is_symlink(status))
    throw Error(path.string(), "files and folders of the run itself", "a symbolic link, which may lead outside of it");
  if (fs::is_other(status)) throw Error(path.string(), "files and folders of the run itself", "a pipe or a device");
}

// The folder of a run may come from anywhere.  A link in it would let the run overwrite a file elsewhere, and a pipe
// would let it wait for ever.
void require_plain_files(const fs::path& run) {
  for (const char* name : {"recipe.json", "metrics.csv", "report.html", "summary.json"}) require_plain(run / name);
  for (const char* name : {"checkpoints", "tensorboard", "model", "last", "retrain", "explain", "embeddings"}) {
    require_plain(run / name);
    for_each_entry(run / name, require_plain);
  }
}

}  // namespace

void for_each_entry(const fs::path& folder, const std::function<void(const fs::path&)>& body) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    body(entry->path());
}

RunFolder::RunFolder(const fs::path& path) : path_(path) {
  require_plain_files(path);
  std::error_code error;
  for (fs::path folder = path / "checkpoints"; !folder.empty(); folder = folder.parent_path()) {
    const fs::file_type type = fs::symlink_status(folder, error).type();
    if (type == fs::file_type::not_found) created_.push_back(folder);
    if (type != fs::file_type::not_found && type != fs::file_type::none) break;  // none: a name that is too long
  }
  try {
    create_and_lock();
  } catch (...) {
    remove_created();
    throw;
  }
}

RunFolder::~RunFolder() {
  std::error_code ignored;
  if (!created_.empty()) fs::remove(path_ / "checkpoints" / ".lock", ignored);
  remove_created();
  ::close(lock_);
}

void RunFolder::create_and_lock() {
  std::error_code error;
  fs::create_directories(path_ / "checkpoints", error);
  if (error) throw Error(str(path_.string(), ": cannot be created: ", error.message()));
  const fs::path file = path_ / "checkpoints" / ".lock";
  lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
  if (lock_ < 0) throw Error(str(file.string(), ": cannot be written: ", std::strerror(errno)));
  if (::flock(lock_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
    return;  // a file system without locks is accepted
  ::close(lock_);
  throw Error(path_.string(), "a folder that no other run is writing to", "one in use");
}

// A folder with files remains.
void RunFolder::remove_created() {
  for (const fs::path& folder : created_) ::rmdir(folder.c_str());
}

fs::path RunFolder::checkpoint(const std::string& name) const {
  return path_ / "checkpoints" / (name + ".safetensors");
}

bool RunFolder::holds_run() const { return has_checkpoint(path_); }

void RunFolder::remove_temporary_files() const {
  std::error_code ignored;
  for (const fs::path& folder : {path_, path_ / "checkpoints", path_ / "model", path_ / "last"}) {
    std::vector<fs::path> temporary;
    for_each_entry(folder, [&](const fs::path& entry) {
      if (is_temporary_name(entry.filename().string())) temporary.push_back(entry);
    });
    for (const fs::path& file : temporary) fs::remove(file, ignored);
  }
  for (const fs::path& file : temporary_checkpoints(checkpoint("last"))) fs::remove(file, ignored);
}

void write_text(const fs::path& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void write_weights(const fs::path& path, const std::vector<nn::NamedTensor>& weights) {
  weights::write_safetensors(path, to_pairs(weights), {{"format", "pt"}});
}

void write_model(const fs::path& folder, const std::string& config_json, const std::vector<nn::NamedTensor>& weights) {
  weights::write_hub_folder(folder, config_json, to_pairs(weights));
}

}  // namespace vitrail::train
