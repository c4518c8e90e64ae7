// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file of named tensors, of whichever format the library reads.
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "vitrail/weights/file_bytes.h"
#include "vitrail/weights/tensor_file.h"

namespace vitrail::weights {

// Opening reads only the index; tensors come when asked for, from the mapped file where the format allows it.
// Prefixes that training scripts put before every name ("module.") are taken off: see wrapper_prefixes_internal.h.
// Immutable after opening: tensor() may be called by several threads at once.
class Checkpoint {
 public:
  // The format is recognised by the file's content, not by its name.  Throws Error (with the path) for a file that is
  // missing, of no known format, truncated or damaged.
  static Checkpoint open(const std::filesystem::path& file);
  static Checkpoint open(const FileBytes& bytes);
  // Several files that together are one checkpoint, as a hub's shards are.  A name in two of them is an Error.
  static Checkpoint open(const std::vector<std::filesystem::path>& shards);

  const std::string& path() const { return path_; }  // of the first file
  const std::string& format() const;                 // "safetensors", "pytorch zip", "pytorch legacy", "npz"
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  std::vector<std::string> names() const;
  bool has(const std::string& name) const { return places_.contains(name); }
  const TensorInfo& info(const std::string& name) const;  // throws Error when there is no such tensor
  // A view of the mapped file where alignment allows, else a copy.  Throws Error when there is no such tensor or the
  // library has no type for its elements.
  Tensor tensor(const std::string& name) const;
  const std::map<std::string, std::string>& metadata() const;

 private:
  struct Place {
    size_t file, index;
  };
  const Place& place(const std::string& name) const;
  void add(const FileBytes& bytes);
  void index();

  std::string path_;
  std::vector<std::shared_ptr<const TensorFile>> files_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string, Place> places_;
};

}  // namespace vitrail::weights
