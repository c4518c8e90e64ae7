// SPDX-License-Identifier: Apache-2.0
// Reads the zip archives of torch.save.
#include <algorithm>
#include <mutex>
#include <set>

#include "vitrail/base/error.h"
#include "vitrail/weights/pytorch/state_dict_internal.h"
#include "vitrail/weights/pytorch/torch_file_internal.h"

namespace vitrail::weights {
namespace {

constexpr std::string_view kPickle = "data.pkl";
constexpr uint64_t kMaxPickle = uint64_t{1} << 30;

// "NAME/data.pkl", or data.pkl itself.
bool is_pickle(const std::string& name) {
  return name == kPickle || (name.ends_with(kPickle) && name[name.size() - kPickle.size() - 1] == '/');
}

class TorchZipFile : public TensorFile {
 public:
  TorchZipFile(const FileBytes& bytes, ZipReader zip, size_t choice) : bytes_(bytes), zip_(std::move(zip)) {
    format_ = "pytorch zip";
    const ZipEntry* entry = nullptr;
    for (const ZipEntry& candidate : zip_.entries()) {
      if (!is_pickle(candidate.name)) continue;
      if (entry != nullptr) throw Error(bytes_.where, "one data.pkl", "several");
      entry = &candidate;
    }
    folder_ = entry->name.substr(0, entry->name.size() - kPickle.size());
    check_byte_order();
    if (entry->method == 0) zip_.check_stored(*entry);
    const std::vector<std::byte> copy = entry->method == 0 ? std::vector<std::byte>() : zip_.read(*entry, kMaxPickle);
    const Pickle pickle(entry->method == 0 ? zip_.stored(*entry) : copy, bytes_.where);
    const bool is_script = zip_.find(folder_ + "constants.pkl") != nullptr;
    StateDict found = is_script
                          ? find_script_tensors(pickle.root(), bytes_.where)
                          : find_tensors(
                                pickle.root(), bytes_.where,
                                [this](const PickledTensor& tensor) { return read(tensor, bytes_.where); }, choice);
    objects_ = std::move(found.objects);
    state_dicts_ = std::move(found.choices);
    for (auto& [name, tensor] : found.tensors) {
      tensors_.push_back(describe(name, *tensor));
      pickled_.push_back(std::move(tensor));
    }
  }

  Tensor tensor(size_t index) const override {
    return read(*pickled_[index], str(bytes_.where, ": ", tensors_[index].name));
  }

 private:
  Tensor read(const PickledTensor& tensor, const std::string& where) const {
    const std::string name = folder_ + "data/" + tensor.storage.key;
    FileBytes bytes = bytes_;
    bytes.where = where;
    const ZipEntry* entry = zip_.find(name);
    if (entry == nullptr) throw Error(bytes.where, "its storage in the archive", "no entry \"" + name + "\"");
    if (entry->method != 0) {
      bytes = FileBytes::hold(zip_.read(*entry, entry->size), bytes.where);
      return make_tensor(bytes, 0, bytes.data.size(), tensor);
    }
    check_once(*entry);
    const auto content = zip_.stored(*entry);
    return make_tensor(bytes, static_cast<uint64_t>(content.data() - bytes_.data.data()), content.size(), tensor);
  }

  // The entry exists since PyTorch 2.1.  Older files are assumed to be little-endian.
  void check_byte_order() const {
    const ZipEntry* entry = zip_.find(folder_ + "byteorder");
    if (entry == nullptr) return;
    const auto content = zip_.read_beginning(*entry, 16);
    const std::string_view order(reinterpret_cast<const char*>(content.data()), content.size());
    if (order != "little") throw Error(bytes_.where, "little-endian data", "\"" + std::string(order) + "\"");
  }

  // Several tensors may be views of one storage.
  void check_once(const ZipEntry& entry) const {
    const std::lock_guard lock(checked_mutex_);
    if (checked_.contains(&entry)) return;
    zip_.check_stored(entry);
    checked_.insert(&entry);
  }

  FileBytes bytes_;
  ZipReader zip_;
  mutable std::mutex checked_mutex_;  // protects checked_
  mutable std::set<const ZipEntry*> checked_;
  std::string folder_;  // "NAME/"
  std::vector<std::shared_ptr<const PickledTensor>> pickled_;
};

}  // namespace

std::unique_ptr<TensorFile> open_torch_zip(const FileBytes& bytes, ZipReader zip, size_t choice) {
  return std::make_unique<TorchZipFile>(bytes, std::move(zip), choice);
}

bool is_torch_zip(const ZipReader& zip) {
  return std::any_of(zip.entries().begin(), zip.entries().end(),
                     [](const ZipEntry& entry) { return is_pickle(entry.name); });
}

}  // namespace vitrail::weights
